"""Calls that can change something need a profile that is in AUTH_PROFILES."""

import json
import os
import sys

RESTRICTED = {"shell", "filesystem.write", "mcp", "sub_agent", "web_fetch"}


def main():
    with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as f:
        payload = json.load(f)
    kind = payload["tool"]["kind"].lower()
    profile = payload["profile"]
    known = {p.strip() for p in os.environ.get("AUTH_PROFILES", "").split(",") if p.strip()}
    if kind in RESTRICTED and profile not in known:
        verdict = {"action": "block", "reason": f"The profile {profile!r} may not make calls of kind {kind}."}
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
