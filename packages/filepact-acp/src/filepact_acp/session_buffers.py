"""One session's texts of its client, for the agent's side: what the client tells by itself, and what it answers."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.values import dataclass, replace
from filepact.workspace.buffers import apply_typed
from filepact.workspace.documents import EDIT_LIMIT
from filepact_acp.client_buffers import ClientBuffers, typed_of, typed_over
from filepact_acp.client_methods import TEXT_LIMIT
from filepact_wire import uris

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Operation
    from filepact.text.lines import Unit
    from filepact.workspace.buffers import Buffers, BufferStatus
    from filepact.workspace.location import Name
    from filepact.workspace.workspace import Workspace

__all__ = [
    "ClientDocument",
    "ClientDocuments",
    "ClientFile",
    "PendingWrite",
    "SessionBuffers",
    "path_of",
]

_MOST = 1_000


@dataclass(slots=True)
class ClientDocument:
    """One document that the client shows.

    Attributes:
        path: As the client names it.
        session: Under which the client told of it.
        text: What the notices say that it holds.
        version: The client's count of changes.
        broken: A notice did not fit, so that `text` is not what the client shows.
        sent: A text that was handed to the client, until it has said what came of it.
        saved: The text when the client saved it last; None when it did not yet.
        stamp: Tells one state of the document from every other.
    """

    path: str
    session: str
    text: str
    version: int
    broken: bool = False
    sent: str | None = None
    saved: str | None = None
    stamp: int = 0

    @property
    def sure(self) -> bool:
        """Whether `text` is what the client shows."""
        return not self.broken and self.sent is None

    @property
    def likely(self) -> str | None:
        """The client's text as far as it is known without asking; None for unknown."""
        return None if self.broken else self.text if self.sent is None else self.sent


class ClientDocuments:
    """All documents that a client says it shows, by its names for them.

    Args:
        unit: What its columns count.
    """

    def __init__(self, unit: Unit = "utf-16") -> None:
        self._unit = unit
        self._known: dict[str, ClientDocument] = {}
        self._followed: dict[str, list[str]] = {}
        self._stamps = 0

    def present(self) -> tuple[ClientDocument, ...]:
        """All documents as they are now; what comes later does not change them."""
        return tuple(replace(one) for one in self._known.values())

    def text(self, path: str) -> str | None:
        """The client's text of a document; None where its notifications leave a doubt."""
        known = self._known.get(path)
        return known.text if known is not None and known.sure else None

    @contextmanager
    def following(self, path: str | None) -> Iterator[list[str] | None]:
        """The texts of a document from now on, one after the other; None where there is a doubt."""
        if path is None or self.text(path) is None:
            yield None
            return
        texts = self._followed[path] = []
        try:
            yield texts
        finally:
            del self._followed[path]

    def receive(self, method: str, params: object) -> None:
        """Take one notice down.

        Raises:
            InvalidParamsError: It is none, or does not fit what is known; the document's text is
                in doubt then.
        """
        fields = params if isinstance(params, dict) else {}
        path = path_of(fields.get("uri"))
        match method:
            case "document/didOpen":
                self._open(path, fields)
            case "document/didChange":
                self._change(path, fields)
            case "document/didSave":
                known = self._known.get(path)
                if known is not None:
                    known.saved = known.text
                    self._stamp(known)
            case "document/didClose":
                self._known.pop(path, None)
            case _:
                # What a person looks at, for example, changes no text.
                return

    def forget(self, session: str) -> None:
        """A session of the client has ended, and with it what was told under it."""
        self._known = {path: one for path, one in self._known.items() if one.session != session}

    def record_sent(self, path: str, text: str) -> None:
        """The client was handed a text for a file, and has yet to say what it shows now."""
        known = self._known.get(path)
        if known is not None and known.text != text:
            known.sent = text
            self._stamp(known)

    def confirm(self, path: str, text: str) -> None:
        """The client has said what it shows; if the notices say the same, there is no doubt."""
        known = self._known.get(path)
        if known is not None and known.text == text:
            known.broken, known.sent = False, None

    def _open(self, path: str, fields: dict[str, Any]) -> None:
        if path in self._known:
            self._known[path].broken = True
        text = _text(fields.get("text"))
        version = _number(fields.get("version"), 0)
        known = ClientDocument(path, str(fields.get("sessionId")), text, version)
        self._known.pop(path, None)
        self._known[path] = known
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        self._stamp(known)

    def _change(self, path: str, fields: dict[str, Any]) -> None:
        known = self._known.get(path)
        if known is None:
            raise InvalidParamsError(f"{path}: is not open", hint="Open it first.", path=path)
        broken, known.broken = known.broken, True
        self._stamp(known)
        version = _number(fields.get("version"), known.version + 1)
        if version <= known.version:
            raise InvalidParamsError(
                f"{path}: version {version} came after version {known.version}", path=path
            )
        text = known.text
        changes = fields.get("contentChanges")
        for change in changes if isinstance(changes, list) else []:
            broken = broken and not _is_whole(change)
            typed = typed_of(change)
            text = apply_typed(text, replace(typed, text=_text(typed.text)), self._unit)
        known.text, known.version = _text(text), version
        known.broken, known.sent = broken, None
        if path in self._followed:
            self._followed[path].append(known.text)

    def _stamp(self, known: ClientDocument) -> None:
        self._stamps += 1
        known.stamp = self._stamps


def path_of(uri: object) -> str:
    """The path that a ``file`` address names.

    Raises:
        InvalidParamsError: It is no such address, or one on another machine.
    """
    path = uris.path_of(uri)
    if path is None:
        raise InvalidParamsError("a document has to be named by a file address of this machine")
    return path


def _is_whole(change: object) -> bool:
    return isinstance(change, dict) and change.get("range") is None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidParamsError("a document's text has to be a string")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise InvalidParamsError("a document's text holds half a character") from None
    if size > TEXT_LIMIT:
        raise InvalidParamsError(f"a document's text has {size:,} bytes, too many")
    return value


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file that the client may have another text of.

    Attributes:
        path: Its one true name.
        name: The name for the client, which spells it, below the session's folders as they were sent.
        size: Bytes on the disk; None when there is no such file.
    """

    path: WorkspacePath
    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A file's new text, for the client to write.

    Attributes:
        document: The file as it is to be; None for one that was not there or stays as it is.
        text: The text with line ends as the client shows them.
        over: What the disk has, where somebody typed meanwhile and `document` has that as well.
    """

    file: ClientFile
    document: Document | None
    text: str
    over: Document | None = None


class SessionBuffers:
    """The client's texts of one session.

    Args:
        workspace: The session's.
        buffers: Of that workspace.
        session: Who asks.
        client: The client's name.
        folders: The session's folders as they were sent.

    Attributes:
        workspace: As given.
        session: As given.
    """

    def __init__(
        self,
        workspace: Workspace,
        buffers: Buffers,
        *,
        session: Session,
        client: str,
        folders: Iterable[str],
    ) -> None:
        self.workspace = workspace
        self.session = session
        self._client = ClientBuffers(client, buffers)
        self._buffers = buffers
        self._own = Session(f"client {client}", Actor("program", client))
        self._spellings: dict[str, str] = {}
        for folder in folders:
            root = workspace.guard.find(folder, "list").root.path
            self._spellings.setdefault(root, folder)
        self._open: dict[WorkspacePath, ClientDocument] = {}

    # -- what the client shows ------------------------------------------------------------

    def ask(self, path: Name) -> ClientFile | None:
        """Find a file that the client may have a text of; None for a folder or the like.

        Raises:
            FilepactError: The session may not read the file.
        """
        location = self.workspace.guard.find(path, "read", agent=self.session.agent)
        if location.place.kind not in ("file", "missing") or location.place.path == ".":
            return None
        name = f"{self._spellings[location.root.path].rstrip('/')}/{location.place.path}"
        size = None if location.place.kind == "missing" else location.place.size
        return ClientFile(location.path, name, size)

    def name_of(self, path: WorkspacePath) -> str | None:
        """The client's name for a file; None where it cannot have a text of it."""
        with suppress(FilepactError):
            asked = self.ask(path)
            return None if asked is None else asked.name
        return None

    def unsaved(self) -> tuple[ClientFile, ...]:
        """The files of which the client had another text than the disk, as far as they may be read."""
        found: list[ClientFile | None] = []
        for buffer in self._buffers.present:
            with suppress(FilepactError):
                found.append(self.ask(buffer.path))
        return tuple(filter(None, found))

    def holds(self, path: WorkspacePath) -> bool:
        """Whether the client had another text of a file than the disk."""
        return self._buffers.get(path) is not None

    def to_save(self, paths: Iterable[Name]) -> tuple[PendingWrite, ...]:
        """The client's unsaved texts that it can save without losing anything.

        Where others have written to the disk meanwhile it cannot: both have to be merged.
        """
        found: list[PendingWrite] = []
        for path in paths:
            with suppress(FilepactError):
                asked = self.ask(path)
                buffer = None if asked is None else self._buffers.get(asked.path)
                if asked is None or buffer is None:
                    continue
                stored = self.workspace.editors.stored(asked.path)
                if _revision(buffer.base) == _revision(stored):
                    text = self.in_client_style(asked.path, buffer.text)
                    found.append(PendingWrite(asked, self.present(asked.path), text))
        return tuple(found)

    def saved(self, write: PendingWrite) -> None:
        """The client was asked to save what it shows of a file, and may have done it."""
        self.settle(write)
        self.keep(write.file, write.text)

    def keep(self, asked: ClientFile, text: str | None, *, read: bool = False) -> BufferStatus:
        """Take over what the client says that a file holds.

        Args:
            asked: The file.
            text: Its text; None when the client has no such file.
            read: Whether the agent sees the text.

        Returns:
            What the text is beside what the disk has.

        Raises:
            FilepactError: What the disk has may not be read, or is too large.
        """
        session = self.session if read else self._own
        found = self._client.take(asked.path, text, partial(self._disk, asked.path, session))
        if read and found.kind == "unsaved":
            self.note_seen(asked.path)
        return found

    def keep_open(
        self, documents: Iterable[ClientDocument], *, can_ask: bool
    ) -> tuple[ClientFile, ...]:
        """Take over the texts of all documents of which the client sends notifications.

        Those that may not be used are passed over.

        Args:
            documents: What it shows.
            can_ask: Whether the client can be asked where its notices leave a doubt.

        Returns:
            The files about which there is a doubt.
        """
        was, self._open = self._open, {}
        doubtful: list[ClientFile] = []
        for one in documents:
            with suppress(FilepactError):
                asked = self.ask(one.path)
                if asked is None or (asked.size or 0) > EDIT_LIMIT:
                    continue
                self._open[asked.path] = one
                if can_ask and not one.sure:
                    doubtful.append(asked)
                elif asked.path not in was or was[asked.path].stamp != one.stamp:
                    self._keep_one(asked, one)
        for path in was.keys() - self._open.keys():
            self._client.close(path)
        return tuple(doubtful)

    def _keep_one(self, asked: ClientFile, one: ClientDocument) -> None:
        text = one.likely
        if one.saved is not None and text is not None:
            # What was saved is what both have alike, whatever was typed since.
            self.keep(asked, one.saved)
        self.keep(asked, text)

    def open_name(self, path: WorkspacePath) -> str | None:
        """The client's name for a document of which it sends notifications; None for any other."""
        one = self._open.get(path)
        return None if one is None else one.path

    def is_sure(self, path: WorkspacePath) -> bool:
        """Whether the client's notices say what it shows of a file."""
        one = self._open.get(path)
        return one is not None and one.sure

    def may_be_older(self, path: WorkspacePath) -> bool:
        """Whether the disk has changed since the client and the disk had the same text."""
        agreed = self._buffers.history(path).agreed
        return agreed is not None and _revision(agreed) != _revision(self.stored(path))

    # -- what the client has to be told ---------------------------------------------------

    def pending_writes(self, operation: Operation) -> tuple[PendingWrite, ...]:
        """The new texts of an operation that was just done, as the client is to have them."""
        self._buffers.take(self._client.client)
        found: list[PendingWrite] = []
        for change in operation.changes.changes:
            before, after = change.before, change.after
            if after is None or (before is not None and before.content == after.content):
                continue
            document = self.present(change.path)
            if document is None or document.revision.content != after.content:
                continue
            with suppress(FilepactError):
                asked = self.ask(change.path)
                if asked is not None:
                    found.append(
                        PendingWrite(
                            asked, document, self.in_client_style(asked.path, document.text)
                        )
                    )
        return tuple(found)

    def merge(self, write: PendingWrite, text: str | None) -> PendingWrite:
        """A file's new text with what was typed since the client last said what it shows.

        Args:
            write: What the client is to be given.
            text: What it shows at this moment; None for no such file.

        Raises:
            StaleFileError: It was typed in the same lines.
            EncodingUnsafeError: Nobody can know what was typed, or the file's encoding cannot hold
                it.
        """
        path, meant = write.file.path, write.document
        if not text and meant is None:
            return write
        if meant is None:
            raise typed_over(path)
        both = self._client.joined(self.workspace, meant, text, agent=self.session.agent)
        if both is meant:
            return write
        return replace(write, document=both, text=self.in_client_style(path, both.text), over=meant)

    def in_client_style(self, path: WorkspacePath, text: str) -> str:
        """A text of a file as the client shows such texts."""
        return self._client.in_style(path, text)

    def check(self, path: WorkspacePath, text: str) -> None:
        """Ask the rules about what a file holds, wherever that came from.

        Raises:
            PathBlockedError: The agent may not see it.
        """
        agent = self.session.agent
        self.workspace.guard.check_held(path, "read", text.encode(), agent=agent)

    def note_seen(self, path: WorkspacePath) -> None:
        """The agent has seen what the file holds."""
        with suppress(FilepactError):
            self.workspace.reader(self.session, proposed=False).document(path)

    def settle(self, write: PendingWrite, operation: str = "") -> str:
        """See what the client's write left on the disk; the answer is what there is to say.

        Args:
            write: What the client was given.
            operation: What made it so; empty where nothing in the journal did.
        """
        path, shown, meant = write.file.path, write.file.path.path, write.document
        if meant is None:
            self._client.close(path)
            disk = self.present(path)
            if disk is not None:
                self._buffers.agree(disk)
                return ""
            return _gone(shown)
        left = self._client.settle(self.workspace, meant, operation, write.over)
        if left is None:
            return f"{shown}: what the client made of it could not be looked at; read it again."
        if left.document is None:
            return _gone(shown)
        if left.kind == "form":
            return (
                f"{shown}: the client wrote it with other line ends or in another encoding; "
                "the file has its own again."
            )
        if left.kind == "text":
            return (
                f"{shown}: the disk has another text than the client was given, which may not have "
                "saved it yet, or formats what it saves; read the file again."
            )
        if write.over is not None:
            return f"{shown}: somebody typed in it meanwhile, which was kept; read it again."
        return ""

    def mark_outdated(self, path: WorkspacePath, before: Document | None) -> None:
        """The client cannot be told of a file's new text: what it shows is older, not unsaved.

        Args:
            path: The file.
            before: What it was, with what the client had not saved.
        """
        if self.holds(path) and before is not None:
            self._buffers.agree(before)
        self._client.close(path)

    def present(self, path: WorkspacePath) -> Document | None:
        """A file as it is now, with what the client has not saved; None if it cannot be read."""
        with suppress(FilepactError):
            return self._disk(path, self._own)
        return None

    # -- parts ----------------------------------------------------------------------------

    def stored(self, path: WorkspacePath) -> Document | None:
        """Read a file from the disk; None for nothing that can be read."""
        with suppress(FilepactError):
            return self.workspace.editors.stored(path)
        return None

    def _disk(self, path: WorkspacePath, session: Session) -> Document | None:
        """A file as it is now, seen by a session; without a buffer that is what the disk has.

        Raises:
            FilepactError: It may not be read, or is too large.
        """
        try:
            return self.workspace.reader(session, proposed=False).document(path)
        except NotFoundError:
            return None


def _revision(document: Document | None) -> str:
    return "" if document is None else document.revision.content


def _gone(shown: str) -> str:
    return f"{shown}: is not on the disk, though the client was given its text."
