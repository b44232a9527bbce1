"""A NATS connection, as far as Fermata's door needs one: requests and their replies."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

JSON = dict[str, Any]

ANSWER = 35.0  # seconds for one reply; the core answers an await within 25 s


class Lost(Exception):
    """The connection ended, or nobody answered on it."""


class Connection:
    """A connection to the core. Its id is pinned: it stands in every subject that it may use."""

    def __init__(self, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lost: Lost | None = None
        self._inbox, self._numbers = f"_IB.{id}.", itertools.count()
        self._reader, self._writer = reader, writer
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        hello = {"name": f"op.{id}", "verbose": False, "headers": True, "no_responders": True, "protocol": 1}
        writer.write(f"CONNECT {json.dumps(hello)}\r\nSUB {self._inbox}* 1\r\n".encode())
        self._listener = asyncio.create_task(self._listen())

    async def request(self, subject: str, body: JSON) -> bytes:
        """Sends a body and returns the reply. A core that does not answer in time is lost."""
        if self.lost:
            raise self.lost
        data = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        inbox = self._inbox + str(next(self._numbers))
        reply = self._waiting[inbox] = asyncio.get_running_loop().create_future()
        self._writer.write(f"PUB {subject} {inbox} {len(data)}\r\n".encode() + data + b"\r\n")
        try:
            return await asyncio.wait_for(reply, ANSWER)
        except TimeoutError:
            raise self.close("no answer in time") from None
        finally:
            del self._waiting[inbox]

    def close(self, why: str) -> Lost:
        """Ends the connection and every request that waits on it."""
        self.lost = self.lost or Lost(why)
        self._listener.cancel()
        self._writer.close()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(self.lost)
        return self.lost

    async def _listen(self) -> None:
        why = "the core went away"
        try:
            while line := await self._reader.readline():
                verb, *fields = line.split()
                if verb in (b"MSG", b"HMSG"):  # subject, sid, [size of headers,] size
                    data = (await self._reader.readexactly(int(fields[-1]) + 2))[:-2]
                    body = data[int(fields[-2]) if verb == b"HMSG" else 0 :]
                    if not body:  # headers alone are NATS' 503
                        why = "no core listens there"
                        break
                    reply = self._waiting.get(fields[0].decode())
                    if reply and not reply.done():
                        reply.set_result(body)
                elif verb == b"PING":
                    self._writer.write(b"PONG\r\n")
                elif verb == b"-ERR":
                    why = line.decode().strip()
                    break
        except (OSError, ValueError, EOFError) as error:
            why = f"{why}: {error}"
        self.close(why)


def ulid() -> str:
    """An id: 48 bits of time and 80 of chance, in Crockford's base 32, lower case."""
    n = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[n >> shift & 31] for shift in range(125, -1, -5))


def runtime_dir() -> Path:
    """Where the core's sockets are."""
    own, xdg, tmp = (os.environ.get(name, "") for name in ("FERMATA_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR"))
    if own:
        return Path(own)
    if xdg.startswith("/"):
        return Path(xdg, "fermata")
    return Path(tmp if tmp.startswith("/") else "/tmp", f"fermata-{os.getuid()}")
