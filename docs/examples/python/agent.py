"""An agent with two tools that asks Fermata before each call.

    python3 agent.py DIRECTORY ['list_files {}' 'delete_file {"path": "a.txt"}' ...]

A call is a tool's name and its arguments as JSON. Without calls on the command line
they are read from stdin, one a line. It prints what a model would read, and exits 1
when a call was refused or failed.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from fermata import JSON, Refused, Session

KINDS = {"list_files": "filesystem.read", "delete_file": "filesystem.write"}


async def list_files(directory: Path, args: JSON) -> str:
    return "\n".join(sorted(entry.name for entry in directory.iterdir())) or "no files"


async def delete_file(directory: Path, args: JSON) -> str:
    path = (directory / args["path"]).resolve()
    if path.parent != directory:
        raise ValueError(f"{args['path']} is not a file of {directory}")
    path.unlink()
    return f"deleted {path.name}"


TOOLS = {"list_files": list_files, "delete_file": delete_file}


async def calls(argv: list[str]) -> AsyncIterator[str]:
    for call in argv:
        yield call
    while not argv and (line := await asyncio.to_thread(sys.stdin.readline)):
        yield line


async def main(directory: Path, argv: list[str]) -> int:
    failed = 0
    async with Session(f"example-{os.getpid()}", cwd=str(directory)) as session:
        async for call in calls(argv):
            tool, _, args = call.strip().partition(" ")
            try:
                run = functools.partial(TOOLS[tool], directory)
                print(await session.call(tool, KINDS[tool], json.loads(args or "{}"), run), flush=True)
            except Refused as refused:
                failed = 1
                print(f"refused ({refused.code}): {refused.message}", flush=True)
            except (KeyError, ValueError, OSError) as error:
                failed = 1
                print(f"failed: {error!r}", flush=True)
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        sys.exit(asyncio.run(main(Path(sys.argv[1]).resolve(), sys.argv[2:])))
    except KeyboardInterrupt:  # what was open has been withdrawn
        sys.exit(130)
