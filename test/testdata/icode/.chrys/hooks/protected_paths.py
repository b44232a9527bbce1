"""Nothing is written outside the working directory, nor to what guards it."""

import json
import os
import sys

GUARDED = {".git", ".chrys", ".fermata", ".env", ".ssh"}
PATH_ARGUMENTS = ("path", "file_path", "destination")


def refused(path, cwd):
    full = os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
    inside = os.path.relpath(full, os.path.realpath(cwd))
    if inside == os.pardir or inside.startswith(os.pardir + os.sep):
        return f"{path} is outside the working directory."
    if GUARDED.intersection(inside.split(os.sep)):
        return f"{path} is protected."
    return None


def main():
    with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as f:
        payload = json.load(f)
    tool = payload["tool"]
    verdict = {"action": "allow"}
    if tool["kind"].lower() == "filesystem.write":
        for name in PATH_ARGUMENTS:
            path = tool["args"].get(name)
            reason = path is not None and refused(path, payload["cwd"])
            if reason:
                verdict = {"action": "block", "reason": reason}
                break
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as f:
        json.dump(verdict, f)


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever it is, nothing was checked
        print(f"the payload could not be checked: {e!r}", file=sys.stderr)
        sys.exit(2)
