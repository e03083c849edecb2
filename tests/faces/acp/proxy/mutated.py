"""Messages of the protocol, and what nobody should make of them: lines from a seed."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["MINE", "SESSIONS", "Mutator", "Place", "odd_reply"]

Message = dict[str, Any]

MINE: Final = "m-"
"""How the ids begin that a mutation did not touch."""

SESSIONS: Final = ("s1", "s2")

_SHORT: Final = 60  # levels that everybody reads
_DEEP: Final = (_SHORT, 400, 960, 990, 1_100, 5_000, 60_000)
_DIGITS: Final = (20, 310, 4_299, 4_301, 50_000)
_HALVES: Final = ("\ud800", "a\udcffb", "\udfff\ud800")
_STRINGS: Final = (
    *("", " ", "\0", "a\0b", "\n", "\r\n", "\u2028", "\x85", "\ufeff", "\u202e", "\U0010ffff", "\ufffe"),
    *("e\u0301", "%s%n", "${HOME}", "../..", "__proto__", "constructor", "null", "x" * 5_000, *_HALVES),
)  # fmt: skip
_VALUES: Final = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 2**31, 2**53 + 1, 2**63, -(2**64), 1e308),
    *([], {}, [[]], [None], [{}], {"": ""}, {"a": [1]}, [1, "x", None], {"path": 1}),
)
_METHODS: Final = (
    *("fs/read_text_file", "fs/write_text_file", "session/request_permission", "session/update"),
    *("$/cancel_request", "initialize", "session/new", "session/load", "session/close", "", "fs/"),
    *("FS/READ_TEXT_FILE", "fs/read_text_file ", "fs\\u002fread_text_file", "_proxy/successor"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the messages point.

    Attributes:
        work: The sessions' folder, with links that lead out of it.
        outside: A folder that no session has.
    """

    work: Path
    outside: Path

    def hostile(self, chance: random.Random) -> str:
        """A path that leads out, or tries to."""
        work, out = str(self.work), str(self.outside)
        steps = "../" * chance.randint(1, 12)
        return chance.choice(
            [
                f"{out}/canary.txt",
                f"{work}/../outside/canary.txt",
                f"{work}/sub/{steps}outside/canary.txt",
                f"{work}/sub/{steps}{out[1:]}/canary.txt",
                f"{work}/away/canary.txt",
                f"{work}/away/new.txt",
                f"{work}/link.txt",
                f"{work}/loop",
                f"{work}/.env",
                f"{work}/.git/config",
                f"//{out}/canary.txt",
                f"{work}//..//outside/./canary.txt",
                f"file://{out}/canary.txt",
                f"{work}/%2e%2e/outside/canary.txt",
                f"{work}\\..\\outside\\canary.txt",
                f"{work}/a.txt\0{out}/canary.txt",
                f"{work}/a.txt/../../outside/canary.txt",
                f"{work}/\ud800/../../outside/canary.txt",
                f"{work}/{'d/' * 3_000}x",
                f"{work}/{'n' * 300}",
                f"{work}-evil/canary.txt",
                "../outside/canary.txt",
                "canary.txt",
                "~/canary.txt",
                "/proc/self/environ",
                f"/proc/self/root{out}/canary.txt",
                "/dev/stdin",
                "/dev/zero",
                "/",
                work,
                out,
            ]
        )

    def some(self, chance: random.Random) -> str:
        """A path as agents send it."""
        names = ("a.txt", "b.txt", "sub/c.txt", "sub/new/d.txt", "none.txt")
        return f"{self.work}/{chance.choice(names)}"


class Mutator:
    """Makes lines.

    Args:
        chance: Where everything comes from.
        place: Where the messages point.
    """

    def __init__(self, chance: random.Random, place: Place) -> None:
        self._chance = chance
        self._place = place
        self._count = 0

    def from_agent(self) -> bytes:
        """A line of an agent."""
        return self._line(self._of_agent())

    def from_editor(self) -> bytes:
        """A line of an editor."""
        return self._line(self._of_editor())

    # -- as they should be ----------------------------------------------------------------

    def _path(self) -> str:
        some = self._chance.random() < 0.6
        return (self._place.some if some else self._place.hostile)(self._chance)

    def _named(self, method: str, params: Any, *, told: bool = False) -> Message:
        self._count += 1
        asked = {} if told else {"id": f"{MINE}{self._count}"}
        return {"jsonrpc": "2.0", **asked, "method": method, "params": params}

    def _of_agent(self) -> Message:
        chance, path = self._chance, self._path()
        session = {"sessionId": chance.choice(SESSIONS)}
        call = {
            "toolCallId": "c1",
            "title": "t",
            "kind": "edit",
            "status": "completed",
            "locations": [{"path": path, "line": 1}],
            "content": [{"type": "diff", "path": path, "oldText": "a", "newText": "b"}],
            "rawInput": {"file_path": path, "content": "x"},
        }
        options = [{"optionId": "o", "name": "Yes", "kind": "allow_once"}]
        update = {"sessionUpdate": "tool_call_update", **call}
        asked = {**session, "toolCall": call, "options": options}
        read = {**session, "path": path, "line": chance.randint(0, 9), "limit": 3}
        content = {"content": f"{chance.random()}\r\n"}
        info = {"protocolVersion": 1, "agentInfo": {"name": "far", "version": "1"}}
        shapes: tuple[Callable[[], Message], ...] = (
            lambda: self._named("fs/read_text_file", read),
            lambda: self._named("fs/read_text_file", {**session, "path": path}),
            lambda: self._named("fs/write_text_file", {**session, "path": path, **content}),
            lambda: self._named("session/request_permission", asked),
            lambda: self._named("session/update", {**session, "update": update}, told=True),
            lambda: self._named("terminal/create", {**session, "command": "ls", "cwd": path}),
            lambda: self._named("$/cancel_request", {"requestId": self._some_id()}, told=True),
            lambda: {"jsonrpc": "2.0", "id": self._some_id(), "result": {"sessionId": "s2"}},
            lambda: {"jsonrpc": "2.0", "id": self._some_id(), "result": info},
            lambda: {"jsonrpc": "2.0", "id": self._some_id(), "error": {"code": 1, "message": ""}},
        )
        return chance.choices(shapes, (4, 2, 4, 3, 2, 1, 1, 1, 1, 1))[0]()

    def _of_editor(self) -> Message:
        chance, path = self._chance, self._path()
        session, uri = {"sessionId": chance.choice(SESSIONS)}, {"uri": f"file://{path}"}
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        opened = {"cwd": str(self._place.work), "mcpServers": [], **session}
        able = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}}
        typed = {"contentChanges": [{"text": "x"}, {"range": span, "text": "y"}]}
        known = {**session, **uri, "version": chance.randint(0, 9)}
        asked = ("session/new", "session/load", "session/resume", "session/fork")
        shapes: tuple[Callable[[], Message], ...] = (
            lambda: self._named("initialize", able),
            lambda: self._named(chance.choice(asked), {**opened, "additionalDirectories": [path]}),
            lambda: self._named(chance.choice(asked), {**opened, "cwd": path}),
            lambda: self._named("session/prompt", {**session, "prompt": []}),
            lambda: self._named(chance.choice(("session/close", "session/delete")), session),
            lambda: self._named("session/cancel", session, told=True),
            lambda: self._named("document/didOpen", {**known, "text": "typed\n"}, told=True),
            lambda: self._named("document/didChange", {**known, **typed}, told=True),
            lambda: self._named("document/didClose", {**session, **uri}, told=True),
            lambda: self._named("document/didSave", {**session, **uri}, told=True),
            lambda: self._named("$/cancel_request", {"requestId": self._some_id()}, told=True),
            lambda: {"jsonrpc": "2.0", "id": self._some_id(), "result": {"content": "x"}},
            lambda: {"jsonrpc": "2.0", "id": self._some_id(), "error": {"code": 1, "message": ""}},
        )
        return chance.choices(shapes, (2, 2, 2, 3, 2, 1, 3, 3, 1, 1, 1, 3, 1))[0]()

    def _some_id(self) -> Any:
        """An id of nobody, of a mutation before, or of a question of the proxy's own."""
        number = self._chance.randint(0, self._count + 3)
        return self._chance.choice([number, f"{MINE}{number}", f"filepact-{number}", None, "no"])

    # -- and as they should not -----------------------------------------------------------

    def _line(self, message: Message) -> bytes:
        chance = self._chance
        message = copy.deepcopy(message)
        ways = (self._remove, self._rename, self._retype, self._respell, self._override)
        ways += (self._repath, self._readdress)
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
            chance.choice(ways)(message)
        text = json.dumps(message, ensure_ascii=chance.random() < 0.7)
        line = self._grown(text.encode("utf-8", "backslashreplace"))
        if chance.random() < 0.1:
            line = self._doubled(line)
        if chance.random() < 0.2:
            line = self._damaged(line)
        return line.replace(b"\n", b" ")

    def _spot(self, message: Message) -> tuple[Any, Any]:
        """A container somewhere in a message, and a key of it; the outermost counts most."""
        locations: list[tuple[Any, Any]] = []

        def collect(found: Any, depth: int) -> None:
            keys = list(found) if isinstance(found, dict) else range(len(found))
            for key in keys:
                locations.append((found, key))
                if isinstance(found[key], dict | list):
                    collect(found[key], depth + 1)

        collect(message, 0)
        return self._chance.choice(locations) if locations else (message, "params")

    def _remove(self, message: Message) -> None:
        where, key = self._spot(message)
        if isinstance(where, dict):
            where.pop(key, None)
        else:
            del where[key]

    def _rename(self, message: Message) -> None:
        where, key = self._spot(message)
        if isinstance(where, dict) and key in where:
            odd = (key.upper(), f"{key} ", f"_{key}", self._chance.choice(_STRINGS))
            where[self._chance.choice(odd)] = where.pop(key)

    def _retype(self, message: Message) -> None:
        where, key = self._spot(message)
        chance = self._chance
        grown = (f"@deep{chance.choice(_DEEP)}@", f"@digits{chance.choice(_DIGITS)}@")
        where[key] = copy.deepcopy(chance.choice((*_VALUES, *grown, *grown)))

    def _respell(self, message: Message) -> None:
        where, key = self._spot(message)
        where[key] = self._chance.choice(_METHODS if key == "method" else _STRINGS)

    def _override(self, message: Message) -> None:
        params = message.get("params")
        if isinstance(params, dict):
            hostile = self._place.hostile(self._chance)
            params["_meta"] = self._chance.choice(
                [
                    {"path": hostile, "sessionId": "s2"},
                    {"cwd": hostile, "command": "cat", "args": [hostile]},
                    {"content": "x", "method": "fs/write_text_file", "line": 1},
                    {"bom": 1, "lineEnding": []},
                    [hostile],
                    hostile,
                ]
            )

    def _repath(self, message: Message) -> None:
        params = message.get("params")
        if isinstance(params, dict):
            name = self._chance.choice(("path", "cwd", "uri", "additionalDirectories"))
            path: Any = self._place.hostile(self._chance)
            params[name] = [path] if name == "additionalDirectories" else path

    def _readdress(self, message: Message) -> None:
        chance, params = self._chance, message.get("params")
        if chance.random() < 0.4:
            message.pop("id", None)
        elif chance.random() < 0.5:
            message["id"] = chance.choice([*_VALUES, *_STRINGS, "filepact-1", "@digits400@"])
        elif isinstance(params, dict):
            others = ("s2", "s3", "", "watch s1", "t1", "S1", 1, None, ["s1"])
            params["sessionId"] = chance.choice(others)

    def _grown(self, line: bytes) -> bytes:
        for depth in _DEEP:
            start, end = self._chance.choice(((b"[", b"]"), (b'{"a":', b"}")))
            deep = start * depth + b"1" + end * depth
            line = line.replace(b'"@deep%d@"' % depth, deep)
        for digits in (*_DIGITS, 400):
            line = line.replace(b'"@digits%d@"' % digits, b"9" * digits)
        return line

    def _doubled(self, line: bytes) -> bytes:
        """The line with a second member of a name, before or after the first."""
        chance = self._chance
        name = chance.choice(("method", "params", "id", "path", "sessionId", "result"))
        value: Any = chance.choice((*_METHODS, self._place.hostile(chance), *_VALUES))
        if name == "params":
            value = {"sessionId": "s1", "path": self._place.hostile(chance), "content": "x"}
        member = json.dumps({name: value}).encode()[1:-1]
        if chance.random() < 0.5 or not line.endswith(b"}"):
            return line.replace(b"{", b"{%s," % member.replace(b"\\", b"\\\\"), 1)
        return line[:-1] + b"," + member + b"}"

    def _damaged(self, line: bytes) -> bytes:
        chance = self._chance
        location = chance.randrange(len(line))

        def flipped() -> bytes:
            wrong = bytearray(line)
            for _ in range(chance.randint(1, 4)):
                wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
            return bytes(wrong)

        def otherwise_encoded() -> bytes:
            name = chance.choice(("utf-16-le", "utf-16", "utf-32-be", "utf-7"))
            return line.decode("utf-8", "replace").encode(name, "replace")

        ways: Sequence[Callable[[], bytes]] = (
            flipped,
            otherwise_encoded,
            lambda: line[:location],
            lambda: line[location:],
            lambda: line[:location] + chance.randbytes(chance.randint(1, 9)) + line[location:],
            lambda: b"[" + line + b"]",
            lambda: b"[" + b",".join([line] * 3) + b"]",
            lambda: line + line,
            lambda: b"\xef\xbb\xbf" + line,
            lambda: b" \t\r" + line + b"\r",
            lambda: line + b"\0",
            lambda: b"Content-Length: %d\r" % len(line),
            lambda: b"",
            lambda: b"npm warn " + line,
        )
        return chance.choice(ways)()


def odd_reply(chance: random.Random, wanted: str) -> bytes:
    """What an editor should not say to a question."""
    value = chance.choice([*_VALUES, *_STRINGS])
    member = chance.choice(("result", "error", "content", "method"))
    inner = chance.choice(("content", "outcome", "message", "code"))
    said = chance.choice(({member: value}, {member: {inner: value}}, {}))
    line = json.dumps({"jsonrpc": "2.0", "id": wanted, **said}).encode()
    if chance.random() < 0.1:
        deep = b"[" * 990 + b"]" * 990
        line = b'{"jsonrpc":"2.0","id":"%s","error":{"message":%s}}' % (wanted.encode(), deep)
    return line
