"""What an agent has told of the calls of its tools, for questions that only name such a call."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from filepact.faces.acp.proxy.permission import MOST, both, read_call

if TYPE_CHECKING:
    from filepact.faces.acp.proxy.permission import Asked
    from filepact.faces.wire.lines import Message

__all__ = ["Calls"]

_OPEN: Final = 1_000  # calls that are remembered; an agent has a few at once
_LONGEST_ID: Final = 1_000


class Calls:
    """The calls of all sessions, by session and id."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Asked] = OrderedDict()

    def learn(self, session: str, call: Message, cwd: str) -> None:
        """The agent tells of a call, or of more of one."""
        name = call.get("toolCallId")
        if not isinstance(name, str) or len(name) > _LONGEST_ID:
            return
        self._known[session, name] = self.whole(session, call, read_call(call, cwd))
        self._known.move_to_end((session, name))
        if len(self._known) > _OPEN:
            self._known.popitem(last=False)

    def whole(self, session: str, call: Message, asked: Asked) -> Asked:
        """What is asked, with what was told of the call before."""
        known = self._known.get((session, str(call.get("toolCallId"))))
        if known is None:
            return asked
        paths = tuple(dict.fromkeys((*asked.paths, *known.paths)))[:MOST]
        action = known.action if asked.action == "read" else asked.action
        return replace(
            asked,
            title=asked.title or known.title,
            action=action,
            paths=paths,
            plain=both(asked.plain, known.plain),
            runs=asked.runs or known.runs,
            tool=_same(asked.tool, known.tool),
        )

    def forget(self, session: str) -> None:
        """A session is over."""
        for key in [key for key in self._known if key[0] == session]:
            del self._known[key]


def _same(one: str, other: str) -> str:
    """What two parts of one call say of its tool; nothing where they disagree."""
    if one and other and one != other:
        return ""
    return one or other
