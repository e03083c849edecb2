"""Facts about agents by the names that they give themselves, and about the connection with the one here."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.values import dataclass
from filepact.workspace.buffers import same_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.domain.document import Document
    from filepact.domain.operation import Session
    from filepact.workspace.location import Location
    from filepact_acp.sessions import AcpSession

__all__ = [
    "AGENTS",
    "ENDED",
    "QUIRKS",
    "AgentProfile",
    "AgentRecord",
    "AgentWrites",
    "ConnectionInfo",
    "habits_of",
    "quirks_of",
]

ENDED: Final = ("completed", "failed")
"""The states of a call that is over."""

Use = Literal["yes", "no", "in part"]


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """The behaviour that was seen of an agent.

    Attributes:
        version: In which it was seen.
        reads: Whether it reads files through its client.
        writes: Whether it writes them so.
        asks: Whether it asks for permission before it changes a file.
        tools: Whether it uses the tools of a server that the client names.
        note: What else there is to know.
    """

    version: str
    reads: Use
    writes: Use
    asks: Use
    tools: Use
    note: str = ""


AGENTS: Mapping[str, AgentRecord] = {
    "claude-agent-acp": AgentRecord(
        "0.100.0", "no", "no", "yes", "yes", "speaks version 2, which has no files of clients"
    ),
    "claude-code-acp": AgentRecord(
        "0.16.2", "yes", "yes", "yes", "yes", "asks for 2,000 lines at most"
    ),
    "code-puppy": AgentRecord(
        "0.0.946", "yes", "yes", "no", "yes", "reads two or three times an edit"
    ),
    "fast-agent": AgentRecord("0.10.46", "yes", "yes", "in part", "yes"),
    "gemini-cli": AgentRecord(
        "0.61.0", "in part", "yes", "yes", "yes", "its reading tool reads the disk"
    ),
    "kimi-code": AgentRecord("2.1.0", "yes", "yes", "yes", "yes"),
    "mistral-vibe": AgentRecord(
        "3.0.2", "no", "no", "in part", "yes", "asks nobody inside the folder"
    ),
    "opencode": AgentRecord(
        "1.18.33",
        "no",
        "in part",
        "in part",
        "yes",
        "writes by itself and tells its client afterwards",
    ),
    "qwen-code": AgentRecord(
        "0.24.4", "yes", "yes", "in part", "yes", "looks up such tools by a search"
    ),
}
"""By the name that an agent gives itself, without the scope of a package."""


def habits_of(agent: str) -> AgentRecord | None:
    """Return the record of an agent; None for one that was never tried."""
    return AGENTS.get(agent.rpartition("/")[2].lower())


@dataclass(slots=True)
class ConnectionInfo:
    """Facts that both sides have told about themselves.

    Attributes:
        reads: Whether the editor reads files for agents.
        writes: Whether it writes them.
        protocol: The version that the agent chose.
        agent: Its name.
        version: Its version.
    """

    reads: bool = False
    writes: bool = False
    protocol: int = 1
    agent: str = "acp agent"
    version: str = ""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """How one agent differs.

    Attributes:
        missing_is_empty: It reads a file before it makes it, and gives up at any error.
        counts_lines: It pages by ``_meta.originalLineCount`` of an answer, and counts the lines of
            the disk's file where there is none.
        tells_form: It sends LF always, and in ``_meta`` how a new file is to be saved.
        writes_itself: It writes the disk itself, and tells the client afterwards.  Refusing that
            stops nothing; its permission request is the place to say no.
        window: Lines that it asks for, from line 1, where its model wants the file; None if it asks
            for the whole.
    """

    missing_is_empty: bool = False
    counts_lines: bool = False
    tells_form: bool = False
    writes_itself: bool = False
    window: int | None = None


QUIRKS: Mapping[str, AgentProfile] = {
    "claude-code-acp": AgentProfile(window=2000),
    "gemini-cli": AgentProfile(missing_is_empty=True),
    "opencode": AgentProfile(writes_itself=True),
    "qwen-code": AgentProfile(counts_lines=True, tells_form=True),
}


def quirks_of(agent: str) -> AgentProfile:
    """Return the profile of an agent by its name, with or without an npm scope before it."""
    return QUIRKS.get(agent.rpartition("/")[2].lower(), AgentProfile())


@dataclass(slots=True, eq=False)
class _Sent:
    """A text that was merged.

    Attributes:
        turn: The session's turn in which it was sent.
        text: As it was sent.
        meant: The file that came of it.
    """

    session: Session
    turn: int
    text: str
    meant: Document


class AgentWrites:
    """Texts from an agent that writes them to the disk as well, until it has; for all threads.

    Args:
        client: The editor among the buffers.
    """

    def __init__(self, client: str) -> None:
        self._client = client
        self._sent: dict[WorkspacePath, _Sent] = {}
        self._lock = threading.Lock()

    def first(
        self, bound: AcpSession, session: Session, path: str, text: str
    ) -> tuple[Document | None, Document | None]:
        """Return a file as it was before the agent wrote to the disk what it now sends, and as it is.

        What it wrote is in the journal then.  None for the first where it has not, or nobody knows.
        """
        with suppress(FilepactError):
            disk = bound.workspace.editors.stored(path)
            if disk is not None and same_text(text, disk):
                bound.workspace.external.detect_in(disk.path, session)
                return bound.workspace.editors.before_external(disk), disk
        return None, None

    def sent(self, bound: AcpSession, session: Session, text: str, meant: Document) -> None:
        """A text was sent and written; another one may have come of it."""
        with self._lock:
            if same_text(text, meant):
                self._sent.pop(meant.path, None)
            else:
                self._sent[meant.path] = _Sent(session, bound.turn, text, meant)

    def update(self, path: WorkspacePath, meant: Document | None) -> None:
        """The file has become something else since, which is meant as well."""
        with self._lock:
            sent = self._sent.get(path)
            if sent is not None and meant is not None:
                sent.meant = meant

    def forget(self, path: WorkspacePath) -> None:
        """Forget what was sent: it is taken back."""
        with self._lock:
            self._sent.pop(path, None)

    def disk(self, bound: AcpSession, file: WorkspacePath | Location) -> Document | None:
        """Read a file from the disk, after the agent's own writing of it was put right.

        Args:
            bound: The session.
            file: Its true name, or the file where it was found before.

        Raises:
            FilepactError: It cannot be read whole, or not be put right.
        """
        with self._lock:
            sent = self._sent.get(file if isinstance(file, WorkspacePath) else file.path)
        if sent is None or bound.turn != sent.turn:
            return bound.workspace.editors.stored(file)
        return self._keep(bound, sent)

    def put_right(self, bound: AcpSession, path: WorkspacePath) -> None:
        """Put the agent's own writing of a file right, if it may have written it.

        Raises:
            FilepactError: It cannot be.
        """
        with self._lock:
            sent = self._sent.get(path)
        if sent is not None and bound.turn == sent.turn:
            self._keep(bound, sent)

    def end_step(self, bound: AcpSession) -> None:
        """The agent has ended one of its steps: what it wrote in it is on the disk."""
        with self._lock:
            ended = [one for one in self._sent.values() if one.session.id == bound.id]
            for one in ended:
                del self._sent[one.meant.path]
        for one in ended:
            self._keep(bound, one)

    def _keep(self, bound: AcpSession, sent: _Sent) -> Document | None:
        keep = bound.workspace.editors.restore_merge
        return keep(sent.meant, sent.text, sent.session, client=self._client)
