"""A task is handed to a sub-agent only with a token of 32 hexadecimal digits."""

import json
import os
import re
import sys


def main():
    with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as f:
        tool = json.load(f)["tool"]
    token = tool["args"].get("delegation_token")
    if isinstance(token, str) and re.fullmatch("[0-9a-f]{32}", token):
        verdict = {"action": "allow"}
    else:
        verdict = {"action": "block", "reason": f"{tool['name']} was given no valid delegation token."}
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as f:
        json.dump(verdict, f)


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever it is, nothing was checked
        print(f"the payload could not be checked: {e!r}", file=sys.stderr)
        sys.exit(2)
