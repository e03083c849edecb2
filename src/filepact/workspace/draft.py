"""The draft: a change in the making, with the files opened for it and their new contents.

A tool works on a draft and can only compute.  Opening a file takes its lock until the draft is
closed, so that two agents never compute from the same old text.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Self

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, Document, Revision
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    InvalidParamsError,
    PatchContextMismatchError,
    PathBlockedError,
    StaleFileError,
    TooLargeError,
)
from filepact.fs.locks import PATIENCE
from filepact.text.codec import SourceText, rewrite, rewrite_whole
from filepact.text.detect_encoding import UTF_8
from filepact.text.diff import shown_by_diff
from filepact.text.edit import Edit, EditList
from filepact.text.raw_bytes import restore
from filepact.values import replace
from filepact.workspace.authorizer import ChangePolicy
from filepact.workspace.documents import EDIT_LIMIT, DocumentCache
from filepact.workspace.folders import ProposalFolders
from filepact.workspace.pending import DraftChanges
from filepact.workspace.placement import (
    as_shown,
    carried_whole,
    holds_already,
    kept_typed,
    placed,
)
from filepact.workspace.read_tracker import KnownText
from filepact.workspace.target import (
    FileReader,
    Target,
    appended,
    check_link_moves,
    check_nothing_left_in,
    check_overtaken,
    check_revision,
    check_still,
    check_taken_back,
    check_unshown,
    escape_notes,
    existing,
    fitted_ends,
    readable,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from filepact.domain.deadline import Deadline
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal, Session
    from filepact.fs.locks import FileLocks
    from filepact.fs.read_only_root import OpenFile
    from filepact.workspace.authorizer import SessionPermissions
    from filepact.workspace.documents import Documents
    from filepact.workspace.folders import FolderContents
    from filepact.workspace.guard import Guard
    from filepact.workspace.location import Location, Name
    from filepact.workspace.pending import ProposalFile
    from filepact.workspace.placement import EditResult, Made, RebasedFile
    from filepact.workspace.read_tracker import KnownTextCache

__all__ = ["MOST_FILES", "Draft"]

MOST_FILES: Final = 5_000
"""Most files of one change: once it is begun, it is finished, however long that takes."""


class Draft:
    """The changes that one call wants to make.  Use it as a context manager: it holds locks.

    Attributes:
        tool: Name of the tool that works on it.
        dry_run: Set by the tool: show, but do nothing.
        mode: Set by whoever has one of its own: what counts instead of the workspace's.
        notes: Sentences for the answer, such as how a text was placed.
        judged: What language servers said to it, as `CHECKED` and the like have it; empty for nothing.
        surprises: Whether something of the change was not sent so, and its author should see the diff.
        deadline: Until when it may be worked on; what is begun to be written is finished.
        folders: Folders that are made, moved or removed with the files.
        opened: What the files held that there were when they were opened.
        held: The files that are kept open until the draft is closed.
        versions: The states of files that the change names.
    """

    def __init__(  # noqa: PLR0913 - the parts that it puts together
        self,
        guard: Guard,
        locks: FileLocks,
        seen: KnownTextCache,
        *,
        documents: Documents,
        session: Session,
        tool: str,
        deadline: Deadline,
        granted: SessionPermissions,
        refused: Callable[[FilepactError], None] = lambda _error: None,
    ) -> None:
        self.session, self.granted = session, granted
        self.tool = tool
        self.dry_run = False
        self.mode: Literal["auto", "preview"] | None = None
        self.notes: list[str] = []
        self.surprises, self.judged = False, ""
        self.deadline = deadline
        self._judge = ChangePolicy(guard, session.agent, granted)
        self._locks = locks
        self._seen = seen
        self._documents = documents
        self._refused = refused
        self._held = ExitStack()
        self.opened: tuple[Document, ...] = ()
        self.held: dict[WorkspacePath, OpenFile] = {}
        self._opened = False
        self._changes: dict[str, FileChange] = {}
        self._written: dict[WorkspacePath, Document] = {}
        self._hidden: set[WorkspacePath] = set()
        self._known: dict[WorkspacePath, KnownText | None] = {}
        self._contents: dict[str, bytes] = {}
        self._layers: dict[WorkspacePath, ProposalFile] = {}
        self._result: DraftChanges | None = None
        self.versions = DocumentCache(self._content, documents.given)
        self.folders = ProposalFolders(
            guard, session.agent, self._judge, documents, self._layers, self._put_folder
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._held.close()
        if isinstance(error, PathBlockedError | ApprovalRequiredError):
            self._refused(error)

    # -- opening --------------------------------------------------------------------------

    def open(
        self,
        path: str,
        *,
        expected_revision: str | None = None,
        there: bool = False,
        itself: bool = False,
        found: Location | None = None,
    ) -> Target:
        """Open one file, which need not exist yet; arguments as for `open_all`.

        It may be told where it was ``found`` just now, for this author and to be written.
        """
        known: dict[Name, Location] = {path: found} if found and found.place.kind == "file" else {}
        (target,) = self.open_all([path], there=[path] * there, itself=[path] * itself, known=known)
        if expected_revision is not None:
            check_revision(target, expected_revision)
            target = replace(target, checked=True)
        return target

    def open_existing(self, path: str, *, expected_revision: str | None = None) -> Target:
        """Open one file that has to exist.

        Raises:
            NotFoundError: It does not.
        """
        target = self.open(path, expected_revision=expected_revision, there=True)
        existing(target)
        return target

    def open_all(
        self,
        paths: Sequence[Name],
        *,
        there: Collection[Name] = (),
        itself: Collection[Name] = (),
        known: Mapping[Name, Location] = MappingProxyType({}),
    ) -> list[Target]:
        """Open all files of a change at once, their locks taken in one order everywhere.

        May be called once: taking further locks while holding some could block another call
        that waits the other way round.

        Args:
            paths: The files, as they were sent, or by their true names.
            there: Those that have to exist; they are looked for before any lock is taken.
            itself: Those that are to be deleted or renamed: a link is meant itself, and not what
                it leads to, and they may be larger than what can be edited.
            known: Where some were found just now, so that they are looked for only once more, under
                their locks; so are those that were found before, and mostly are there still.
        """
        if self._opened:
            raise RuntimeError("a draft opens its files once")
        self._opened = True
        if len(paths) > MOST_FILES:
            raise InvalidParamsError(
                f"the change has {len(paths):,} files, the limit is {MOST_FILES:,}",
                hint="Send it in parts.",
            )
        opener = FileReader(self._judge, self._documents, self._seen, self.session, self.deadline)
        targets, notes = opener.open_all(paths, there, itself, known, self._held, self._lock)
        self.notes += notes
        for target in targets.values():
            if target.document is not None:
                self.versions.add(target.document)
            if target.hidden:
                self._hidden.add(target.location.path)
        if len({one.location.path for one in targets.values()}) < len(targets):
            raise InvalidParamsError(
                "two of the paths lead to the same file", hint="Name each file once, by one name."
            )
        some = targets.values()
        self.held = {one.location.path: one.location.held for one in some if one.location.held}
        self.opened = tuple(one.document for one in some if one.document and not one.proposal)
        self._layers |= {one.location.path: one.proposal for one in some if one.proposal}
        return [targets[path] for path in paths]

    def _lock(self, keys: Iterable[str]) -> None:
        patience = min(PATIENCE, self.deadline.left)
        self._held.enter_context(self._locks.hold(set(keys), timeout=patience))

    # -- changing -------------------------------------------------------------------------

    def edit(self, target: Target, make: Callable[[str], Made]) -> tuple[EditList, Made | None]:
        """Change a file's text; every byte outside the edits stays as it is.

        Args:
            target: An existing file.
            make: Computes the edits for a text; raises when they do not fit it.

        Returns:
            The edits, in places of what the file holds now; and as they were made, which may be
            for what the session knows of it.  None where a proposal of its own holds them already.
        """
        readable(target)
        make = as_shown(make)
        proposed, layer = self._documents.proposed, target.proposal
        before = None if proposed is None or layer is None else proposed.before(layer)
        if holds_already(target, before, make):
            return EditList(()), None
        found = self._placed(target, make)
        self._put(target, found.bytes_of(target))
        self._know_edits(target, found.edits)
        return found.edits, found.made

    def write(self, target: Target, text: str, *, append: bool = False) -> None:
        """Give a file a whole new text, or one more piece at its end.

        An existing file keeps its encoding and line ends.  What came since the session read it, or
        is unsaved in an editor, if it never did, is merged by lines.
        """
        shown, document, path = target.location.shown, target.document, target.location.path
        there = "" if document is None or target.hidden else text_of(document)
        check_nothing_left_in(shown, text, there)
        if document is None or (there is None and not append):
            whole, notes = fitted_ends(target, text, "", self._documents.line_ends)
            if document is not None:
                check_still(target)
                notes += [f"{shown} held no text ({document.size:,} bytes); it was replaced."]
            self._say(notes)
            new = SourceText("", UTF_8, b"", self._documents.given(path))
            self._put(target, rewrite_whole(new, whole, name=shown, sent=text))
            return
        with self._judge.conceal_errors(target.location) if target.hidden else nullcontext():
            self._write_over(target, document, text, append=append)

    def _write_over(self, target: Target, document: Document, text: str, *, append: bool) -> None:
        shown, seen = target.location.shown, target.seen
        if not append and not target.hidden:
            known = None if seen is None or target.checked else seen.content
            text = restore(known or document.text, text)
        if append:
            more, notes = appended(target, text, self._documents.line_ends)
            self._say(notes)
            size = len(document.text)
            edits = EditList((Edit(size, size, more),) if more else ())
            self._put(target, rewrite(document.source, edits, name=shown))
            self._know_edits(target, edits)
            return
        like = seen.text if seen is not None and target.moved else document.text
        mine, notes = fitted_ends(target, text, like, self._documents.line_ends)
        self._say(notes)
        if seen is not None and not target.checked:
            check_unshown(target, seen, mine)
            check_overtaken(target, seen, mine)
            try:
                self.notes.extend(check_taken_back(target, seen, mine))
            except StaleFileError:
                self._seen.doubt(self.session, target.location.path)
                raise
        if seen is not None and target.moved and not (target.checked and mine == seen.text):
            found = carried_whole(target, seen, mine)
        elif seen is None and target.saved is not None and not target.checked:
            found = kept_typed(target, target.saved, text)
            if not found.edits and not target.overtaken:
                # The disk has it already; what is typed over that stays with the editor.
                self.opened = tuple(one for one in self.opened if one is not document)
        else:
            self._put(target, rewrite_whole(document.source, mine, name=shown, sent=text))
            return
        self.notes.extend(found.notes)
        self._put(target, found.bytes_of(target))
        self._known[target.location.path] = found.known

    def _say(self, notes: list[str]) -> None:
        """Tell what was not done as it was sent, which the diff shows."""
        self.notes += notes
        self.surprises |= bool(notes)

    def _know_edits(self, target: Target, edits: EditList) -> None:
        """Update the known text after edits of the file's present text."""
        document, seen, path = existing(target), target.seen, target.location.path
        if path in self._known:
            return  # its own text, which was merged
        if seen is None:
            self._known[path] = replace(KnownText.of(document, ()).edited(edits), read=False)
        elif not target.moved:
            self._known[path] = seen.edited(edits)
        else:
            # The answer need not show what stands around it, which others may have changed.
            shown = shown_by_diff(document.text, edits.apply(document.text), context=0)
            known = seen.renewed(self._written[path], shown)
            self._known[path] = replace(known, read=seen.read)

    def put(self, target: Target, data: bytes, *, mode: int | None = None) -> None:
        """Give a file exactly these bytes, and a mode when one is named."""
        self._known.pop(target.location.path, None)
        there = None if target.document is None else target.document.revision
        state = there if mode is None else replace(there or Revision.of(b"", mode), mode=mode)
        self._put(target, data, state=state)

    def set_mode(self, target: Target, mode: int) -> None:
        """Give a file other permission bits, with what the draft makes of its bytes."""
        document = self._written.get(target.location.path) or existing(target)
        self._put(target, document.data, state=replace(document.revision, mode=mode))

    def delete(
        self, target: Target, *, emptied_by: Callable[[str], EditList | EditResult] | None
    ) -> None:
        """Remove a file.

        Args:
            target: An existing file.
            emptied_by: Computes edits that have to leave nothing of its text; None removes it
                whatever it holds, unless it is no longer what the session saw.
        """
        readable(target, "removed")
        if emptied_by is None:
            check_still(target)
        elif self._placed(target, as_shown(emptied_by)).text_of(target):
            check_still(target)
            raise PatchContextMismatchError(
                f"{target.location.shown}: the file holds more than the patch removes",
                hint="Read the file again; a patch that deletes it has to list every line.",
                path=target.location.shown,
            )
        self._remove(target)

    def move(
        self,
        source: Target,
        target: Target,
        make: Callable[[str], Made] | None,
        *,
        over: bool = False,
        taken: bool = False,
    ) -> Made | None:
        """Give a file another name, and edits on the way.

        Args:
            source: An existing file.
            target: A name that is free.
            make: Computes the edits of its text; None leaves every byte as it is.
            over: The name need not be free; what it holds is replaced, unless the session saw something else.
            taken: Another file of the change takes the name that it had.

        Returns:
            The edits as they were made.
        """
        document = readable(source, "moved")
        if document.revision.is_link:
            check_link_moves(source, target, edited=make is not None)
        if target.document is not None and over:
            check_still(target)
        elif target.document is not None:
            raise InvalidParamsError(
                f"{target.location.shown}: cannot take this name, the file exists",
                hint="Choose another name.",
                path=target.location.shown,
            )
        found = None if make is None else self._placed(source, as_shown(make))
        data = document.data if found is None else found.bytes_of(source)
        self._put(target, data, state=document.revision, source=document)
        if make is None:
            # Its name says nothing of what it holds.
            self._known[target.location.path] = None if source.moved else source.seen
        elif source.location.path in self._known:
            self._known[target.location.path] = self._known.pop(source.location.path)
        if not taken:
            self._remove(source)
        return None if found is None else found.made

    def move_folder(self, old: Location, new: Location, inside: FolderContents) -> bool:
        """Move a folder as `ProposalFolders.move` does; false, and nothing is recorded, where each file has to be opened."""
        if not self.folders.moves_as_one(old, new, inside):
            return False
        self._lock((old.lock_key, new.lock_key))
        self.folders.move(old, new)
        return True

    def _remove(self, target: Target) -> None:
        document = existing(target)
        self._contents[document.revision.content] = document.data
        self._record(target, FileChange(target.location.path, document.revision, None))

    def _placed(self, target: Target, make: Callable[[str], Made]) -> RebasedFile[Made]:
        """Edits of what a file holds now, and what the session knows of it then."""
        found = placed(target, make)
        self.notes.extend(found.notes)
        if found.known is not None:
            self._known[target.location.path] = found.known
        return found

    def _put(
        self,
        target: Target,
        data: bytes,
        *,
        state: Revision | None = None,
        source: Document | None = None,
    ) -> None:
        """Give a file these bytes, with the mode and the attributes of a state, or those that it has."""
        self.deadline.check()
        if len(data) > EDIT_LIMIT and (source is None or source.data != data):
            raise TooLargeError(
                f"{target.location.shown}: would have {len(data):,} bytes, the limit is {EDIT_LIMIT:,}",
                hint="Write it in several smaller files.",
                path=target.location.shown,
            )
        document = target.document
        before = document.revision if document is not None else None
        if before is not None and target.hidden and target.proposal is None:
            # Whether a text is what the file holds already would confirm a guess.
            before = before.aside
        state = state or before or Revision.of(b"", target.location.new_mode)
        after = state.with_bytes(data)
        if source is not None:  # So its other names stay names of it, or are told of.
            after = after.as_whole(source.revision)
            after = after.of_another_file if before else after
        path = target.location.path
        written = Document(path, data, after, self._documents.given(path))
        self._judge.check_held(target.location, written, like=document)
        known = None if target.hidden else document
        self.notes.extend([] if source else escape_notes(known, written))
        self._result = None
        self._contents[after.content] = data
        if document is not None:
            self._contents[document.revision.content] = document.data
        self.versions.add(written)
        self._documents.keep(written)
        self._written[target.location.path] = written
        if before == after:
            self._changes.pop(target.location.shown, None)
            self._judge.drop(target.location)
            return
        change = FileChange(target.location.path, before, after)
        self._record(target, change, source=source or document, written=written)

    def _put_folder(self, location: Location, change: FileChange) -> None:
        self._result = None
        self._contents[FOLDER.content] = b""
        self._judge.record(location, change)
        self._changes[f"{location.shown}/"] = change

    def _record(
        self,
        target: Target,
        change: FileChange,
        *,
        source: Document | None = None,
        written: Document | None = None,
    ) -> None:
        new = source is None and written is not None and b"\r" in written.data
        ends = self._documents.line_ends(change.path) if new else ""
        self._judge.record(target.location, change, source=source, written=written, ends=ends)
        self._result = None
        self._changes[target.location.shown] = change

    def hides(self, path: WorkspacePath, held: Iterable[bytes | Document]) -> bool:
        """Whether its author may not see what a file holds; see `Guard.hides`."""
        if path in self._written and path not in self._layers:
            return path in self._hidden or self._judge.hides_key(path, held)
        return self._judge.hides_all(path, held)

    def lines(self, target: Target) -> int:
        """How many lines a file is to have."""
        held = self._written.get(target.location.path, target.document)
        return 0 if held is None else held.marks.total

    def require(self, rule: str) -> None:
        """Require a person's approval of the change, whatever the rules say of its files."""
        self._judge.require(rule)

    # -- the result -----------------------------------------------------------------------

    @property
    def changes(self) -> ChangeSet:
        """The changes of this call combined with the proposals that it extends."""
        return self.result().changes

    def result(self) -> DraftChanges:
        """The result of the draft so far."""
        if self._result is None:
            step = ChangeSet(tuple(self._changes.values()))
            grows = self._proposals_of(step.paths) if self._layers else ()
            changes, contents, proposed = step, self._contents, self._documents.proposed
            for proposal in reversed(grows):
                changes = proposal.changes.then(changes)
            if grows and proposed is not None:
                contents = proposed.contents(grows) | contents
            self._result = DraftChanges(step, grows, changes, contents)
        return self._result

    def _content(self, name: str) -> bytes:
        """The bytes of one of these revisions."""
        return self.result().contents[name]

    @property
    def holds(self) -> tuple[Proposal, ...]:
        """The session's own proposals that wait and have to do with the files opened."""
        return self._proposals_of(tuple(self._layers))

    def _proposals_of(self, paths: Sequence[WorkspacePath]) -> tuple[Proposal, ...]:
        found = {
            layer.proposal.id: layer.proposal
            for path in paths
            if (layer := self._layers.get(path)) is not None
        }
        return tuple(sorted(found.values(), key=lambda proposal: proposal.created))

    @property
    def known(self) -> dict[WorkspacePath, KnownText]:
        """The known texts of the files that the session may see, once the change is done."""
        known: dict[WorkspacePath, KnownText] = {}
        for path, written in self._written.items():
            whole = replace(KnownText.of(written), sole="" if self.session.shared else "sent")
            of = self._known.get(path, whole)
            if of is not None and path not in self._hidden:
                known[path] = replace(of, revision=written.revision)
        return known

    @property
    def asks(self) -> str:
        """The rules that want a person's approval, or an empty string."""
        return self._judge.asks
