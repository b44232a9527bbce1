"""Fermata's agents' door for Python: a tool runs when rules and people let it.

    async with Session("conversation-1", cwd="/home/ana/web-shop") as session:
        text = await session.call("delete_file", "filesystem.write", {"path": "a.txt"}, delete_file)

`call` returns what the model is to read, or raises `Refused`, whose message tells the
model why it did not run. Cancel the task that awaits it, and the question is withdrawn.
When the core is killed meanwhile, the same call waits on at the next one.

The wire is NATS' text protocol with JSON bodies over a Unix socket; A1 and so on are
the rules of docs/protocol.md. Python 3.11, standard library only.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from connection import JSON, Connection, Lost, runtime_dir, ulid

Run = Callable[[JSON], Awaitable[str]]

FIRST_CONTACT = 3.0  # seconds to look for a core at the beginning (A15)
AGAIN = 60.0  # and after one was lost
LAST_WORD = 2.0  # for what is said on the way out


class Refused(Exception):
    """It did not run. `message` is the text for the model, `code` says why in a word."""

    def __init__(self, code: str, message: str, end_reason: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.end_reason = code, message, end_reason


class Session:
    """One conversation of the agent, on a connection of its own. Calls may wait side by side."""

    def __init__(self, native: str, cwd: str, agent: str = "generic", socket: Path | None = None) -> None:
        self._id = ulid()  # A6: the server pins it; it stands in every subject that we may use
        self._opening = {"agent": agent, "native": native, "cwd": cwd}
        self._socket = socket or runtime_dir() / "nats.sock"
        self._connection: Connection | None = None
        self._subject = ""
        self._dialling = asyncio.Lock()

    async def __aenter__(self) -> Session:
        return self  # the first call opens it: without a core the model hears why, and nothing runs

    async def __aexit__(self, *_: object) -> None:
        if self._connection:
            await last_word(self.tell("session_close"))
            self._connection.close("closed")

    async def call(self, tool: str, kind: str, args: JSON, run: Run, turn: str = "") -> str:
        """Asks, and runs the tool with what came back: rules may have changed the arguments."""
        operation = Operation({"kind": "tool_call", "tool": {"name": tool, "kind": kind}, "args": args, "turn": turn})
        try:
            permitted = await self._permitted(operation)
        except asyncio.CancelledError:
            await last_word(self._about(operation, "withdraw"))
            await last_word(self._about(operation, "finish", {"outcome": "not_run"}))  # if a commit got through
            raise
        ran, began = {"ran": digest(permitted)}, time.monotonic()
        try:
            text = await run(json.loads(permitted))
        except asyncio.CancelledError:
            await last_word(self._finish(operation, "unknown", ran))
            raise
        except Exception as error:
            result: JSON = {"error": repr(error), "duration_ms": since(began)}
            await self._finish(operation, "failed", ran | {"result": result})
            raise
        result = {"text": text, "duration_ms": since(began)}
        context = await self._finish(operation, "ok", ran | {"result": result})
        return f"{text}\n\n{context}" if context else text

    async def tell(self, verb: str, body: JSON | None = None) -> None:
        """Says what happens in the session: turn_started, turn_ended, interrupt and others (A13)."""
        while True:
            with contextlib.suppress(Lost):
                await self._send(await self._connected(), verb, body or {})
                return

    async def _permitted(self, operation: Operation) -> bytes:
        """The arguments to run now: somebody has decided so, and the core has confirmed it."""
        while True:
            with contextlib.suppress(Lost):  # A8: then the same operation at the next core
                args = None
                while args is None:
                    args = decided(await self._about(operation, "await"))  # A9: each keeps the lease
                await self._about(operation, "commit", {"digest": digest(args)})  # A11: no commit, no run
                return args

    async def _finish(self, operation: Operation, outcome: str, more: JSON | None = None) -> str:
        """Reports the end (A12). It has run or not: a refused report must not look like a refused call."""
        while True:
            try:
                reply = await self._about(operation, "finish", {"outcome": outcome} | (more or {}))
                return str(json.loads(reply).get("extra_context", ""))
            except Lost:
                continue
            except Refused as error:
                logging.getLogger("fermata").warning("an end was not recorded: %s", error)
                return ""

    async def _about(self, operation: Operation, verb: str, body: JSON | None = None) -> bytes:
        """Sends a verb about an operation. Where it is not known yet, propose comes first (A8)."""
        connection = await self._connected()
        if operation.on is not connection:
            await self._send(connection, "propose", operation.key | operation.what)
            operation.on = connection
        try:
            return await self._send(connection, verb, operation.key | (body or {}))
        except Refused as refused:
            if verb != "await" or refused.code != "unknown_operation":
                raise
            operation.on = None  # its lease is over, this machine slept: propose tells what became of it
            raise Lost("the lease is over") from None

    async def _send(self, connection: Connection, verb: str, body: JSON) -> bytes:
        return accepted(connection, await connection.request(f"{self._subject}.op.{self._id}.{verb}", body))

    async def _connected(self) -> Connection:
        """The connection that lives, or the next as soon as a core answers."""
        async with self._dialling:
            if self._connection and not self._connection.lost:
                return self._connection
            end = time.monotonic() + (AGAIN if self._connection else FIRST_CONTACT)
            while True:
                try:
                    self._connection = await asyncio.wait_for(self._dial(), end - time.monotonic())
                    return self._connection
                except (OSError, Lost):  # a TimeoutError is an OSError
                    if time.monotonic() > end:
                        raise refusal("core_unreachable", "Fermata's core cannot be reached.") from None
                await asyncio.sleep(0.05)

    async def _dial(self) -> Connection:
        """A new connection, with the session open on it (A7)."""
        connection = Connection(self._id, *await asyncio.open_unix_connection(self._socket))
        lobby = "fermata.lobby.v1.{}.op." + self._id + ".{}"
        try:
            cores = accepted(connection, await connection.request(lobby.format("all", "cores"), {}))
            here = lobby.format(json.loads(cores)["core"], "session_open")
            place = json.loads(accepted(connection, await connection.request(here, self._opening)))
        except BaseException:
            connection.close("not opened")
            raise
        self._subject = f"fermata.v1.{place['project']}.{place['session']}"
        return connection


class Operation:
    """One call: its id and secret are ours and new (A1), and stay the same at every core."""

    def __init__(self, what: JSON) -> None:
        self.key: JSON = {"operation": ulid(), "secret": secrets.token_hex(16)}
        self.what = what
        self.on: Connection | None = None  # which has heard of it


def decided(reply: bytes) -> bytes | None:
    """The arguments that may run, None while nothing is decided.

    They are cut out of the reply and not written anew: 1.0 or 1e3, once parsed, may
    come out as other bytes, and then they are not what was checked (A10).
    """
    verdict = json.loads(reply).get("verdict")
    if verdict is None:
        return None
    if verdict["allow"] is not True:
        raise Refused(verdict["code"], verdict["message"], verdict.get("end_reason", ""))
    begin = reply.index(b'"args":') + len(b'"args":')
    args = reply[begin : begin + verdict["version"]["bytes"]]
    if digest(args) != verdict["version"]["digest"]:
        raise refusal("changed_after_check", "Its arguments arrived damaged.")
    return args


def accepted(connection: Connection, reply: bytes) -> bytes:
    """The reply, if the core took the command."""
    refused = json.loads(reply).get("refused")
    if refused and refused["code"] == "not_attached":
        raise connection.close("the core does not know the session")  # A7: open it again
    if refused:
        raise refusal(refused["code"], refused.get("hint") or refused["code"], refused.get("end_reason", ""))
    return reply


def refusal(code: str, why: str, end_reason: str = "") -> Refused:
    return Refused(code, f"The tool call did not run. {why}", end_reason)


async def last_word(saying: Awaitable[object]) -> None:
    """Says something on the way out, and does not wait for long."""
    with contextlib.suppress(Lost, Refused, TimeoutError):
        await asyncio.wait_for(saying, LAST_WORD)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
