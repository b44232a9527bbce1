"""No call that has one of these words anywhere in its payload."""

import json
import os
import sys

RED_LINE = ("rm -rf", "mkfs", "drop table", "shutdown", "authorized_keys")


def texts(value):
    if isinstance(value, str):
        yield value.lower()
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key.lower()
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def main():
    with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as f:
        payload = json.load(f)
    found = [word for word in RED_LINE if any(word in text for text in texts(payload))]
    if found:
        verdict = {"action": "block", "reason": f"The call contains {found[0]!r}."}
    else:
        verdict = {"action": "allow"}
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as f:
        json.dump(verdict, f)


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever it is, nothing was checked
        print(f"the payload could not be checked: {e!r}", file=sys.stderr)
        sys.exit(2)
