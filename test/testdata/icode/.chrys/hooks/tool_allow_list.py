"""Only tools whose names are in ALLOWED_TOOLS may be called."""

import json
import os
import sys


def main():
    with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as f:
        name = json.load(f)["tool"]["name"]
    allowed = {t.strip().lower() for t in os.environ.get("ALLOWED_TOOLS", "").split(",") if t.strip()}
    if name.lower() in allowed:
        verdict = {"action": "allow"}
    else:
        verdict = {"action": "block", "reason": f"The tool {name} is not on the list of allowed tools."}
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as f:
        json.dump(verdict, f)


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever it is, nothing was checked
        print(f"the payload could not be checked: {e!r}", file=sys.stderr)
        sys.exit(2)
