"""The two methods on files, without the protocol's transport: plain calls that a thread runs."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Literal

from filepact.domain.operation import Actor, Proposal, Session
from filepact.errors import FilepactError, NoChangeError, NotFoundError
from filepact.values import dataclass
from filepact.workspace.excerpt import ExcerptOptions, excerpt_of
from filepact.workspace.excerpt import cut as part_of
from filepact_acp.errors import CANCELLED, INVALID, refuse, to_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.domain.document import Document
    from filepact.domain.operation import Operation
    from filepact.workspace.excerpt import Excerpt
    from filepact.workspace.location import Location
    from filepact.workspace.receipt import Receipt
    from filepact_acp.sessions import AcpSession

__all__ = [
    "ANSWER_LIMIT",
    "Change",
    "DiskFile",
    "Question",
    "beforehand",
    "changes",
    "cut",
    "excerpt",
    "key",
    "named",
    "read",
    "redo",
    "undo",
    "write",
]

ANSWER_LIMIT = 24 * 1_048_576
"""Bytes of the longest answer: other programs end the connection at a message over 32 MiB."""

_DONE = ("applied", "interrupted")
_PAGE = 200  # operations that are looked at at once

_SMALL = ANSWER_LIMIT // 12
_ESCAPED = bytes([*range(32), *b'"\\', 127])


def read(
    bound: AcpSession, session: Session, path: str, line: int | None, limit: int | None
) -> str:
    """A file's text, or the lines asked for, with unsaved text before the disk's.

    Raises:
        Refusal: There is nothing to be shown.
    """
    return excerpt(bound, session, path, line, limit).text


def excerpt(
    bound: AcpSession,
    session: Session,
    path: str,
    line: int | None,
    limit: int | None,
    *,
    found: Location | None = None,
) -> Excerpt:
    """Read a file's text, or some of its lines, with the facts that the read has found.

    Args:
        bound: The session's folders.
        session: Who reads.
        path: Absolute.
        line: The first line, 1-based.
        limit: Most lines.
        found: The file, where it has just been found to be read by this session.

    Raises:
        Refusal: There is nothing to be shown.
    """
    _check_path(path)
    wanted = ExcerptOptions(_first(line), _count(limit), ANSWER_LIMIT, _encoded, _at_most)
    try:
        with bound.workspace.auditing(session, "fs/read_text_file", path):
            return bound.workspace.reader(session).excerpt(path, wanted, found=found)
    except FilepactError as error:
        raise to_refusal(error, path, bound.roots) from None


@dataclass(frozen=True, slots=True)
class DiskFile:
    """A file on the disk, before it is known what an editor shows of it.

    Attributes:
        document: The file.
        part: What to answer where the editor shows the same.
    """

    document: Document
    part: Excerpt

    def agrees(self, bound: AcpSession, session: Session, text: str | None) -> bool:
        """Whether an editor shows just that; it counts as shown to the session then."""
        if text is None or text != self.document.text:
            return False
        self.remember(bound, session)
        return True

    def remember(self, bound: AcpSession, session: Session) -> None:
        """Count the text as shown to the session."""
        shown = (self.part.start, self.part.start + len(self.part.text))
        bound.workspace.reader(session).remember(self.document, [shown])


def beforehand(
    bound: AcpSession, session: Session, path: str, line: int | None, limit: int | None
) -> DiskFile | None:
    """Read from the disk a file that an editor is asked about.

    None where an editor has said before that it holds something else, where the session has
    proposed something else, and where there is something to refuse: all that is for the long way.
    """
    wanted = ExcerptOptions(_first(line), _count(limit), ANSWER_LIMIT, _encoded, _at_most)
    try:
        document = bound.workspace.reader(session, proposed=False).glance(path)
        if bound.workspace.editors.buffers.get(document.path) or bound.workspace.proposes(
            session, document.path
        ):
            return None
        if document.raw_bytes:
            return None
        return DiskFile(document, excerpt_of(document.text, wanted, path))
    except FilepactError:
        return None


def key(bound: AcpSession, session: Session, path: str) -> str:
    """The lock key that all names of one real file share; for a refused file, its name."""
    try:
        return bound.workspace.guard.find(path, "list", agent=session.agent).lock_key
    except (FilepactError, ValueError):
        return path


def cut(text: str, line: int | None, limit: int | None) -> str:
    """The part of a text from a line on, 1-based; only LF ends a line."""
    return part_of(text, _first(line), _count(limit))


def _first(line: int | None) -> int:
    return max(line or 1, 1) - 1


def _count(limit: int | None) -> int | None:
    return None if limit is None else max(limit, 0)


def _encoded(text: str) -> int:
    """The length of a text in an answer, in bytes, where all but ASCII is escaped."""
    return len(encode_basestring_ascii(text)) - 2


def _at_most(text: str) -> int:
    """No less than that, found more quickly: a character comes to 12 at most, one of ASCII to 6."""
    if len(text) <= _SMALL or not text.isascii():
        return 12 * len(text)
    data = text.encode("ascii")
    return len(data) + 5 * (len(data) - len(data.translate(None, _ESCAPED)))


def write(  # noqa: PLR0913 - what a request says, by name
    bound: AcpSession,
    session: Session,
    path: str,
    content: str,
    drops: int,
    *,
    dropped: Callable[[], bool] = lambda: False,
    locked: Callable[[], object] = lambda: None,
    form: Mapping[str, object] | None = None,
    found: Location | None = None,
) -> Receipt:
    """Give a file a new text; it is on the disk when this returns, or waits for a person.

    Args:
        bound: The session's folders.
        session: Who writes.
        path: Absolute.
        content: The whole text.
        drops: Those of the session when the request came.
        dropped: Whether the request was cancelled.
        locked: Called once nobody else changes the file here, and before it is changed.
        form: What the agent says of a new file's form: ``bom`` and ``lineEnding``.
        found: The file, where it has just been found to be written by this session.

    Raises:
        Refusal: The file is what it was.
    """
    _check_path(path)
    try:
        content.encode()
    except UnicodeEncodeError:
        raise refuse(INVALID, "bad_text", "The content holds half a character.") from None
    try:
        workspace, tool = bound.workspace, "fs/write_text_file"
        with workspace.auditing(session, tool, path), workspace.draft(session, tool) as draft:
            draft.mode = bound.mode
            target = draft.open(path, found=found)
            if form is not None and target.document is None:
                content = _in_form(content, form)
            draft.write(target, content)
            locked()
            if dropped():
                raise refuse(CANCELLED, "cancelled", "The request was cancelled.")
            if bound.drops != drops:
                raise refuse(CANCELLED, "cancelled", "The turn ended before this was written.")
            return workspace.submit(draft, f"write {target.location.shown}")
    except FilepactError as error:
        raise to_refusal(error, path, bound.roots) from None


def _in_form(content: str, form: Mapping[str, object]) -> str:
    """A new file's text with the line ends and the mark that were said apart from it."""
    if form.get("lineEnding") == "crlf" and "\r" not in content:
        content = content.replace("\n", "\r\n")
    if form.get("bom") is True and not content.startswith("\ufeff"):
        content = "\ufeff" + content
    return content


def _check_path(path: str) -> None:
    if not path.startswith("/") or "\0" in path:
        raise refuse(INVALID, "invalid_params", "The path has to be absolute.")


# -- what a session has changed ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A change that a person has to answer.

    Attributes:
        change: Its id in the journal.
        path: As the agent sent it.
        diff: Unified, whole, with what is hidden in it written out.
        rule: Why it is asked.
    """

    change: str
    path: str
    diff: str
    rule: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a session's files.

    Attributes:
        session: The session's id.
        state: ``refused`` if a person said no, or its turn ended before somebody said yes.
        receipt: Its id, the files with their counted lines, the unified diff, and notes.
        paths: Of these files, absolute.
        when: When it was done or asked for, seconds since the epoch.
    """

    session: str
    state: Literal["applied", "undone", "pending", "refused"]
    receipt: Receipt
    paths: tuple[str, ...]
    when: float

    @property
    def id(self) -> str:
        """As the journal and `filepact log` have it."""
        return str(self.receipt.operation)


def named(bound: AcpSession, session: Session, path: str) -> str:
    """The true name of a file that was just written."""
    try:
        return bound.workspace.guard.find(path, "list", agent=session.agent).path.absolute
    except FilepactError:
        return path


def changes(bound: AcpSession, most: int) -> tuple[Change, ...]:
    """List the changes of a session, done and pending, the newest first."""
    found: list[Operation | Proposal] = [
        one for one in bound.workspace.pending() if one.session.id == bound.id
    ]
    for operation in _operations(bound):
        if len(found) >= most:
            break
        if operation.session.id == bound.id and operation.kind == "change":
            found.append(operation)
    found.sort(key=lambda one: -one.created)
    return tuple(_change(bound, one) for one in found[:most])


def undo(bound: AcpSession, change: str | None) -> Change:
    """Take back one change of a session, the newest in force unless one is named.

    Raises:
        FilepactError: There is none, or the same lines were changed since.
    """
    if change is None:
        done = next(filter(lambda one: _is_in_force(bound, one), _operations(bound)), None)
        if done is None:
            raise NoChangeError("there is nothing to undo in this session")
    else:
        done = _own(bound, change)
    bound.workspace.undo(_person(bound), done.id)
    return _change(bound, bound.workspace.operation(done.id))


def redo(bound: AcpSession, change: str | None) -> Change:
    """Bring back what was undone last in a session, or the change named.

    Without a name, only what was undone after the session's last new change counts, as in editors.

    Raises:
        FilepactError: There is none, or the same lines were changed since.
    """
    done = _own(bound, change) if change is not None else _last_undone(bound)
    if done is None:
        raise NoChangeError("there is nothing to redo in this session")
    bound.workspace.redo(_person(bound), done.id)
    return _change(bound, bound.workspace.operation(done.id))


def _operations(bound: AcpSession) -> Iterator[Operation]:
    """Everything that was done in a session's folders, the newest first."""
    before: int | None = None
    while page := bound.workspace.log(limit=_PAGE, before_seq=before):
        yield from page
        before = page[-1].seq


def _is_in_force(bound: AcpSession, operation: Operation) -> bool:
    return (
        operation.session.id == bound.id
        and operation.kind == "change"
        and operation.state in _DONE
        and operation.undone_by is None
    )


def _last_undone(bound: AcpSession) -> Operation | None:
    for operation in _operations(bound):
        if operation.state not in _DONE:
            continue
        if operation.session.id == bound.id and operation.kind == "change":
            return None
        if operation.kind == "undo" and operation.undone_by is None:
            undone = [bound.workspace.operation(one) for one in operation.taken_back]
            if all(done.session.id == bound.id for done in undone):
                return undone[0]
    return None


def _own(bound: AcpSession, change: str) -> Operation:
    """One operation of a session by its id.

    Raises:
        NotFoundError: It is none, or another session's.
    """
    operation = bound.workspace.operation(change)
    if operation.session.id != bound.id:
        raise NotFoundError(f"there is no change {change!r} in this session")
    return operation


def _person(bound: AcpSession) -> Session:
    # Another session than the agent's, which has not seen what a person takes back.
    return Session(f"client of {bound.id}", Actor("person", "client"))


def _change(bound: AcpSession, one: Operation | Proposal) -> Change:
    state: Literal["applied", "undone", "pending", "refused"] = "applied"
    if isinstance(one, Proposal):
        state = "pending"
    elif one.undone_by is not None:
        state = "undone"
    paths = tuple(path.absolute for path in one.changes.paths)
    return Change(bound.id, state, bound.workspace.receipt(one), paths, one.created)
