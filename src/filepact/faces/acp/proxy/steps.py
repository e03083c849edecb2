"""What is to be done with a line that passes, in the order in which it is to be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from filepact.faces.acp.proxy.line import Line
    from filepact.wire.messages import Message
    from filepact.workspace.workspace import Mode

__all__ = [
    "ENDED",
    "Acted",
    "Answered",
    "Bind",
    "Cancel",
    "Close",
    "Configure",
    "Document",
    "Drop",
    "Open",
    "Reported",
    "Request",
    "Settled",
    "Step",
    "ToAgent",
    "ToEditor",
    "Turn",
]


ENDED: Final = ("completed", "failed")
"""The states of a call that is over."""


@dataclass(frozen=True, slots=True)
class ToAgent:
    """Send this line to the agent."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ToEditor:
    """Send this line to the editor."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """The agent wants something that is answered here.

    Attributes:
        line: The request, to be passed on when it is for the person to answer.
    """

    id: Any
    method: str
    params: Message
    line: Line


@dataclass(frozen=True, slots=True)
class Open:
    """The editor opens a session; its folders count from now on, under a token.

    Attributes:
        session: Its id, where the editor names it.
        alone: Whether the editor names no server of tools that is called as ours.
    """

    token: str
    cwd: str
    additional: tuple[str, ...]
    session: str | None
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Bind:
    """The agent has given a session that was opened its id."""

    token: str
    session: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The agent refused to open a session."""

    token: str


@dataclass(frozen=True, slots=True)
class Close:
    """A session is over."""

    session: str


@dataclass(frozen=True, slots=True)
class Configure:
    """The person wants a session's changes to be done, or to wait, from now on."""

    session: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of the agent begins or ends."""

    session: str
    begins: bool


@dataclass(frozen=True, slots=True)
class Acted:
    """The agent has ended something that it did by itself."""

    session: str


@dataclass(frozen=True, slots=True)
class Reported:
    """The agent tells of a call of its own tools."""

    session: str
    call: Message


@dataclass(frozen=True, slots=True)
class Cancel:
    """What is being done for a session, or one request of the agent, is not wanted any more."""

    session: str | None = None
    request: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The editor answers a request of ours."""

    id: str
    message: Message


@dataclass(frozen=True, slots=True)
class Settled:
    """The editor has answered the agent, perhaps a question for permission."""

    id: Any
    message: Message


@dataclass(frozen=True, slots=True)
class Document:
    """The editor says what happens to a file that it shows."""

    method: str
    params: Message


Step = (
    ToAgent
    | ToEditor
    | Request
    | Open
    | Bind
    | Drop
    | Close
    | Configure
    | Turn
    | Acted
    | Reported
    | Cancel
    | Answered
    | Settled
    | Document
)
