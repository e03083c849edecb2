"""Which doors agents use, for people who decide how far to trust them."""

from __future__ import annotations

import json
import selectors
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import ReadFailedError
from filepact.faces.acp.proxy.child import Child
from filepact.faces.acp.proxy.doors import AGENTS, habits_of
from filepact.faces.cli.screen import Answer, plain
from filepact.faces.wire.lines import Cutter
from filepact.faces.wire.pipes import read_some, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.faces.acp.proxy.doors import Habits

__all__ = ["explain"]

_PATIENCE: Final = 60.0  # seconds for an agent to say who it is; some install themselves first
_TABLE: Final = "{:<18} {:<9} {:<8} {:<8} {:<12} {:<6}  {}\n"


def explain(command: Sequence[str]) -> Answer:
    """All agents that are known, or one that is started and asked who it is.

    Raises:
        InvalidParamsError: It cannot be started.
        ReadFailedError: It does not say who it is.
    """
    if not command:
        heads = ("agent", "seen in", "reads", "writes", "permission", "tools", "")
        rows = [_row(name, habits) for name, habits in sorted(AGENTS.items())]
        text = _TABLE.format(*heads) + "".join(rows) + _LEGEND
        return Answer(plain(text), {"agents": {name: asdict(one) for name, one in AGENTS.items()}})
    told = _introduced(command)
    info = told.get("agentInfo") or told.get("info") or {}
    name, version = str(info.get("name") or "?"), str(info.get("version") or "?")
    habits = habits_of(name)
    protocol = told.get("protocolVersion")
    facts = {
        "agent": name,
        "version": version,
        "protocol": protocol,
        "known": asdict(habits) if habits else None,
    }
    return Answer(plain("".join(_about(name, version, protocol, habits))), facts)


_LEGEND: Final = """
reads, writes   it asks its client for files: guarded, unsaved text first, recorded
permission      it asks before it changes a file: the rules answer what they deny
tools           it uses the seven tools that it is offered: guarded, recorded
What an agent writes by itself is seen at the end of its turn, recorded, and can be undone; what
it reads by itself is not seen, and nothing here keeps it from doing either.
"""


def _row(name: str, one: Habits) -> str:
    row = _TABLE.format(name, one.version, one.reads, one.writes, one.asks, one.tools, one.note)
    return f"{row.rstrip()}\n"


def _about(name: str, version: str, protocol: object, habits: Habits | None) -> Iterator[str]:
    yield f"{name} {version}, protocol version {protocol}\n\n"
    if protocol == 1:
        yield "files       offered to it by filepact, whether or not the editor has them\n"
    else:
        yield "files       its version of the protocol has none; it gets them by the tools\n"
    yield "permission  what the rules deny is refused, the rest is for the person\n"
    yield "tools       the seven tools are added to each of its sessions\n"
    yield "watch       what it writes by itself is recorded at the end of its turn\n\n"
    if habits is None:
        yield "It is not known which of these it uses; `filepact log` will show it.\n"
        return
    yield (
        f"Version {habits.version} was seen to read by its client: {habits.reads}, write by it: "
        f"{habits.writes}, ask for permission: {habits.asks}, use tools: {habits.tools}"
    )
    yield f" ({habits.note}).\n" if habits.note else ".\n"


def _introduced(command: Sequence[str]) -> dict[str, Any]:
    """What an agent says of itself."""
    child = Child(command)
    try:
        child.begun()
        source, sink = child.pipes
        able = {"fs": {"readTextFile": True, "writeTextFile": True}}
        asked = {"protocolVersion": 1, "clientCapabilities": able}
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}
        write_all(sink, json.dumps(request).encode() + b"\n")
        for line in _lines(source):
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == 0 and "method" not in message:
                result = message.get("result")
                return result if isinstance(result, dict) else {}
    finally:
        child.end()
    raise ReadFailedError(
        f"{command[0]} did not say who it is within {_PATIENCE:.0f} s",
        hint="Is this the command that an editor would start, with its words for the protocol?",
    )


def _lines(source: int) -> Iterator[bytes]:
    cutter, until = Cutter(), time.monotonic() + _PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0 and selector.select(left):
            data = read_some(source)
            if not data:
                return
            yield from (line for line in cutter.feed(data) if line is not None)
