"""Messages of an agent, mutated at random, against the client's file system in one process.

Whatever comes, every message that goes back is one that the schema allows, requests are answered,
the next good request is served, and nothing outside the session's folder is read or written.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acp._transport import memory_transport_pair
from acp.client.connection import ClientSideConnection

from filepact.acp import ClientFileSystem, Settings
from tests.faces.acp.schema import check

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SECRET", "Outcome", "fuzz"]

SECRET = "K3Y-OUTSIDE"  # noqa: S105 - of nobody
READ, WRITE = "fs/read_text_file", "fs/write_text_file"
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        sent: Mutated messages.
        answers: Messages that came back.
    """

    sent: int
    answers: list[dict[str, Any]]


class Mutator:
    """Makes messages that are nearly right."""

    def __init__(self, work: Path, outside: Path, chance: random.Random) -> None:
        self._chance = chance
        self._paths = [
            *(str(work / name) for name in ("a.txt", "b.txt", "new/deep.txt", ".env", "", ".")),
            *(str(outside / name) for name in ("secret.txt", "new.txt", "")),
            f"{work}/../{outside.name}/secret.txt",
            f"{work}/link/secret.txt",
            f"{work}/./a.txt",
            *("a.txt", "", "/", "//", "/\0", f"{work}/\ud800", f"{work}/{'x' * 5000}", "/dev/zero"),
        ]

    def next(self, number: int) -> Any:
        """One message; seldom not even that."""
        message = self._good(number)
        for _ in range(self._chance.choice((0, 1, 1, 2, 4))):
            message = self._mutated(message)
        return message

    def _good(self, number: int) -> dict[str, Any]:
        choose = self._chance.choice
        path = choose(self._paths)
        params: dict[str, Any] = {"sessionId": "s1", "path": path}
        method = choose(
            (READ, READ, WRITE, "$/cancel_request", "session/update", "terminal/create")
        )
        if method == READ:
            params |= {"line": choose((None, 0, 1, 7)), "limit": choose((None, 0, 1, 2**40))}
        elif method == WRITE:
            params["content"] = choose(("", "x\n", "\r\n", "\ud800", "\ufeffx", "x" * 70_000))
        elif method == "$/cancel_request":
            return {"jsonrpc": "2.0", "method": method, "params": {"requestId": number - 1}}
        if self._chance.random() < 0.3:
            params["_meta"] = {choose(("path", "session_id", "content")): choose(self._paths)}
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def _mutated(self, message: Any) -> Any:
        """The same with one place in it changed, taken out or put in."""
        if self._chance.random() < 0.02:
            return self._any()
        places = list(_places(message)) if isinstance(message, (dict, list)) else []
        if not places:
            return message
        holder, key = self._chance.choice(places)
        deed = self._chance.random()
        if deed < 0.6:
            holder[key] = self._any()
        elif deed < 0.8 and isinstance(holder, dict):
            del holder[key]
        elif isinstance(holder, dict):
            holder[self._chance.choice(("id", "result", "error", "path", "x"))] = self._any()
        return message

    def _any(self) -> Any:
        return copy.deepcopy(
            self._chance.choice(
                [None, True, 0, -1, 1.5, 2**70, "", "x", [], [[]], {}, {"path": "/"}, *self._paths]
            )
        )


def _places(value: Any) -> Any:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def fuzz(root: Path, *, count: int, seed: int) -> Outcome:
    """Send mutated messages, and after each few a good one that has to be answered.

    Args:
        root: An empty folder.
        count: How many.
        seed: Which ones.
    """
    work, outside = root / "work", root / "outside"
    for folder in (work, outside):
        folder.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (work / "link").symlink_to(outside)
    (work / ".env").write_text(SECRET)
    (work / "a.txt").write_text("text\n")
    mutator = Mutator(work, outside, random.Random(seed))
    return asyncio.run(_talk(root, work, mutator, count))


async def _talk(root: Path, work: Path, mutator: Mutator, count: int) -> Outcome:
    files = ClientFileSystem(state_dir=str(root / "state"), settings=Settings())
    ours, theirs = memory_transport_pair()
    connection = ClientSideConnection(files, ours)
    await files.session_started("s1", str(work))
    answers: list[dict[str, Any]] = []
    try:
        for number in range(count):
            # As a line would bring it.
            message = json.loads(json.dumps(mutator.next(number)))
            if message is None:
                continue  # Between two ends in one process that is the end.
            await theirs._outbox.put(message)
            if number % 20 == 19:
                good = {"sessionId": "s1", "path": str(work / "a.txt")}
                probe = {"jsonrpc": "2.0", "id": f"probe {number}", "method": READ, "params": good}
                await theirs._outbox.put(probe)
                async with asyncio.timeout(PATIENCE):
                    answers += await _until(theirs, probe["id"])
    finally:
        # Lets everything end that is still being answered.
        await asyncio.sleep(0)
        with contextlib.suppress(ConnectionError):
            await connection.close()
        files.close()
    return Outcome(count, answers)


async def _until(transport: Any, number: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not found or found[-1].get("id") != number:
        message = await transport.receive()
        check(message, "client")
        found.append(message)
    assert "content" in found[-1].get("result", {}), found[-1]
    return found
