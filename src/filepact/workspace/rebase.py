"""Fitting a change set to files that may have moved since it was made.

A proposal that waited for a person, an undo, a redo and a restore are the same question: a file should go from one
state to another, and stands at a third.  Where the third is the first, the answer is plain; where texts differ by lines
that do not touch, and it is certain which lines of the one are which of the other, both changes are kept; else the
change is refused and both sides are shown.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange, moved_over
from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import (
    FOLDER,
    Document,
    Revision,
    WorkspacePath,
    same_bytes,
    same_state,
)
from filepact.domain.protected import is_bookkeeping, steers_git
from filepact.errors import (
    BinaryFileError,
    FilepactError,
    NoChangeError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
    TooLargeError,
)
from filepact.fs.atomic import LARGEST
from filepact.fs.path_form import folders_above
from filepact.fs.walk import TreeReader
from filepact.text.codec import rewrite
from filepact.text.confusables import shown_name
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.edit import TextRequest, merge
from filepact.text.landmarks import has_slid, lost_place
from filepact.text.lines import line_ends, split_lines, with_line_ends_of
from filepact.values import dataclass, replace
from filepact.workspace.documents import DocumentCache
from filepact.workspace.file_states import with_rights
from filepact.workspace.folder_steps import same_rights, turning_above
from filepact.workspace.journal import changed_since
from filepact.workspace.moves import fit_whole, lost_repositories, same_entries, whole_moves
from filepact.workspace.receipt import not_kept, renames, states

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from filepact.domain.operation import Operation
    from filepact.fs.locks import FileLocks
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.receipt import Hides

__all__ = ["Conflicts", "Rebase", "RebaseResult", "fit", "nothing_to_do", "together"]

Conflicts = dict[WorkspacePath, FilepactError]
"""What keeps files from being changed, by file."""

_DIFF_IN_ERROR = 4_000
_CONFLICTS = 20  # that are shown together


@dataclass(frozen=True, slots=True)
class RebaseResult:
    """A change set that starts from what is there now.

    Attributes:
        contents: The bytes of every revision that the changes name, by content id.
        notes: What was merged or was there already.
    """

    changes: ChangeSet
    contents: dict[str, bytes]
    notes: tuple[str, ...]


class Rebase:
    """Change sets, and the files in the folders that they are about.

    Args:
        guard: The roots.
        documents: What files hold, with what editors show.
        store: The journal, which has the states before and after.
        locks: The locks that every change of a file holds.
    """

    def __init__(
        self, guard: Guard, documents: Documents, store: JournalStore, locks: FileLocks
    ) -> None:
        self._guard = guard
        self._documents = documents
        self._store = store
        self._locks = locks

    @contextmanager
    def locked(self, paths: Iterable[WorkspacePath]) -> Iterator[None]:
        """Hold the locks of some files."""
        with self._locks.hold({self._guard.root_of(x.root).lock_key(x.path) for x in paths}):
            yield

    def fit(
        self,
        changes: ChangeSet,
        hides: Hides,
        deadline: Deadline = FOREVER,
        content: Callable[[str], bytes] | None = None,
        conflicts: Conflicts | None = None,
        among: Collection[WorkspacePath] = (),
    ) -> RebaseResult:
        """A change set fitted to what its locked files hold; arguments and errors as `fit`.

        The bytes of its states are those of ``content`` where the journal does not have them; ``among`` are what
        else is changed with them, and what turns is for `turned` then.
        """
        return self.fit_all((changes,), hides, deadline, conflicts, content, among)

    def fit_all(
        self,
        steps: Sequence[ChangeSet],
        hides: Hides,
        deadline: Deadline = FOREVER,
        conflicts: Conflicts | None = None,
        content: Callable[[str], bytes] | None = None,
        among: Collection[WorkspacePath] = (),
    ) -> RebaseResult:
        """Change sets fitted one after the other, each to what the one before it leaves.

        The first names every file, and the locks of all are held.  Other arguments and errors as for `fit`; a file
        of ``conflicts`` is left as it is, whatever the steps before made of it.
        """
        began: dict[WorkspacePath, Document | None] = {}
        standing: dict[WorkspacePath, Document | None] = {}
        contents: dict[str, bytes] = {}
        notes: list[str] = []
        named = {*steps[0].paths, *among}

        def current(path: WorkspacePath) -> Document | None:
            if path not in standing:
                # Below what is no folder there is nothing, whether it is going to be one or was to be one.
                ways = path.path.split("/")[:-1]
                while ways and (way := WorkspacePath(path.root, "/".join(ways))) not in named:
                    ways.pop()
                above = current(way) if ways else None
                lies_open = not ways or (above is not None and above.revision.is_folder)
                standing[path] = began[path] = self.current(path) if lies_open else None
            return standing[path]

        for whole in steps:
            step = with_rights(self._guard, whole.without(conflicts or ()), current)
            with suppress(NoChangeError):
                fitted = fit(
                    *(step, current, content or self._store.content),
                    show=self._show,
                    hides=hides,
                    deadline=deadline,
                    conflicts=conflicts,
                )
                contents |= fitted.contents
                notes += fitted.notes
                if len(steps) == 1:
                    return fitted if among else self.turned(fitted, conflicts)
                for path, after in ((one.path, one.after) for one in fitted.changes.changes):
                    given = self._documents.given(path)
                    data = b"" if after is None else contents.get(after.content, b"")
                    standing[path] = None if after is None else Document(path, data, after, given)
        changes = tuple(
            FileChange(path, before, after)
            for path, now in standing.items()
            if path not in (conflicts or ())
            and (before := _revision(began[path])) != (after := _revision(now))
        )
        if not changes:
            raise nothing_to_do()
        return self.turned(
            RebaseResult(ChangeSet(changes), contents, tuple(dict.fromkeys(notes))), conflicts
        )

    def turned(self, fitted: RebaseResult, conflicts: Conflicts | None) -> RebaseResult:
        """This result where folders that make way turned out to hold nothing else.

        Folders that nobody has told of, and that hold nothing but what goes, go with them.  Of what stays as it is
        nothing below is made.
        """
        changes = fitted.changes
        turning = {one.path: one for one in changes.changes if one.turns}
        if not turning and not conflicts:
            return fitted
        found: Conflicts = {}
        more: list[FileChange] = []
        going = {one.path for one in changes.changes if one.after is None}
        whole = {old.path for old, _ in whole_moves(changes.changes)}
        around = {x._replace(path=up) for x in going for up in folders_above(x.path)}
        for path in (x for x, one in turning.items() if one.before and one.before.is_folder):
            root = self._guard.root_of(path.root)
            with _entries(self._guard, path, whole) as entries:
                for entry in entries:
                    inside = WorkspacePath(path.root, entry.path)
                    if inside in going:
                        continue
                    if entry.kind == "folder" and inside in around:
                        state = root.folder_state(entry.path) or FOLDER
                        more.append(FileChange(inside, state, None))
                        continue
                    found[path] = _stale(
                        self._show(path),
                        f"the folder that stands there holds {entry.path}, which would be lost",
                    )
                    break
        if found and conflicts is None:
            raise next(iter(found.values()))
        stays = found | (conflicts or {})
        for one in changes.changes:
            way = turning_above(one.path, stays)
            if one.after is not None and way is not None:
                found[one.path] = _stale(self._show(one.path), f"{self._show(way)} stays as it is")
        if conflicts is not None:
            conflicts |= found
        kept = changes.without(stays | found).changes
        added = [one for one in more if turning_above(one.path, turning) not in stays]
        if not kept:
            raise nothing_to_do()
        contents = fitted.contents | ({FOLDER.content: b""} if added else {})
        return RebaseResult(ChangeSet((*kept, *added)), contents, fitted.notes)

    def moved(self, changes: ChangeSet) -> tuple[WorkspacePath, ...]:
        """The files of a change set that are not what it starts from any more."""
        found: list[WorkspacePath] = []
        for path, before, _after in changes.exact:
            with suppress(FilepactError):
                if same_state(_revision(self.current(path)), before):
                    continue
            found.append(path)
        return tuple(found)

    def made_anew(
        self, steps: Sequence[ChangeSet], fitted: ChangeSet, operations: Sequence[Operation]
    ) -> Conflicts:
        """The files that hold nothing of what goes back any more: somebody removed them since, and made them anew.

        `steps` go back, as of `fit_all`, have been `fitted`, and take back these `operations`.
        """
        known = {one.path: one.before for one in steps[0].changes}
        ours = (one for one in fitted.changes if one.before and one.of_file and known.get(one.path))
        apart = {one.path for one in ours if not same_bytes(one.before, known[one.path])}
        apart |= {path for step in steps[1:] for path in step.paths}
        return {
            one.path: _stale(self._show(one.path), "somebody removed it meanwhile and made it anew")
            for later in changed_since(self._store, operations, apart)
            for one in later.changes.changes
            if one.path in apart and one.after is None and one.of_file
        }

    def torn(self, changes: ChangeSet, conflicts: Conflicts) -> Conflicts:
        """The names of what does not get its former one again: there may be no other copy of it."""
        some = changes.changes if conflicts else ()
        pairs = moved_over(some) | {new.path: old.path for old, new in same_entries(some)}
        with suppress(NotFoundError):
            pairs |= {new: old.path for new, old in renames(some, self._store.content).items()}
        stay, show = {**conflicts}, self._show
        while more := {y: x for x, y in pairs.items() if x in stay and y not in stay}:
            stay |= {y: _stale(show(y), f"{show(x)} stays as it is") for y, x in more.items()}
        return {x: why for x, why in stay.items() if x not in conflicts}

    def are_bookkeeping(self, changes: ChangeSet, conflicts: Conflicts) -> bool:
        """Whether all that cannot go back is what Git notes for itself, which keeps nothing else from going back."""
        sides = {one.path: (one.before, one.after) for one in changes.changes}

        def counts_not(path: WorkspacePath) -> bool:
            held = (None if x is None else self._store.content(x.content) for x in sides[path])
            return steers_git(path.path) and is_bookkeeping(path.root, path.path, *held)

        try:
            return len(conflicts) < len(sides) and all(
                x in sides and counts_not(x) for x in conflicts
            )
        except NotFoundError:
            return False

    def _show(self, path: WorkspacePath) -> str:
        return shown_name(self._guard.show(path.root, path.path))

    def current(self, path: WorkspacePath) -> Document | None:
        """The document at a path as it is now; None where there is none."""
        # A journal's path is a true name: what stands there is meant, also where it is a link.
        try:
            location = self._guard.find(path, "write", follow=False, back=True)
        except NotFoundError:
            return None  # Something else has taken the place of a folder that it lay in.
        if location.path != path:
            # What was shown was another file; what this one holds is not told.
            raise _stale(self._show(path), "leads elsewhere now, through a link")
        if location.place.kind == "directory":
            state = location.root.folder_state(path.path) or Revision.folder(location.place.mode)
            return Document(path, b"", state)
        return self._documents.merged(location, limit=LARGEST).shown


def _entries(guard: Guard, at: WorkspacePath, whole: Collection[WorkspacePath]) -> TreeReader:
    root, own = guard.root_of(at.root), {one.path for one in whole if one.root == at.root}
    return TreeReader(root, at.path, allow=lambda x, _: x not in own, ignore=False)


def fit(
    changes: ChangeSet,
    current: Callable[[WorkspacePath], Document | None],
    content: Callable[[str], bytes],
    *,
    show: Callable[[WorkspacePath], str],
    hides: Hides = lambda _path, _held: False,
    deadline: Deadline = FOREVER,
    conflicts: Conflicts | None = None,
) -> RebaseResult:
    """Make a change set start from the files' present states.

    Args:
        changes: From the states that were known to the states that are wanted.
        current: The file as it is now, None when there is none.
        content: Stored bytes by content id.
        show: How a path is shown in messages.
        hides: Whether the reader may not see what a file holds; then nothing tells of it, not
            even that it is already as it should be.
        deadline: Asked before each file.
        conflicts: Takes what keeps a file from being fitted, which is left out then; None raises
            the first.

    Raises:
        NotFoundError: What a file is to hold was given up, or never kept.
        StaleFileError: A file was changed in the same lines, or made, or removed, meanwhile.
        NoChangeError: Everything is already as the change set wants it.
    """
    versions = DocumentCache(content, lambda _path: None)
    fitted, contents = list[FileChange](), dict[str, bytes]()
    lost = lost_repositories(changes, current)
    notes = [f"{show(old)} is not there any more, and does not come back." for old in lost[::2]]
    changes = changes.without(lost)
    carried = _carried(changes, current, content, show, hides)
    for change in changes.changes:
        if change.path in carried:
            one, there, note = carried[change.path]
            fitted.append(one)
            notes += [note] if note else []
            contents |= {side.content: there for side in (one.before, one.after) if side}
            continue
        deadline.check()
        try:
            if any(side and side.is_whole for side in (change.before, change.after)):
                raise _stale(
                    show(change.path),
                    "the folder that was moved is gone or was changed, or its other name is taken",
                )
            now = _as_known(current(change.path), change)
            hidden = hides(change.path, chain([now] if now else [], states(change, versions)))
            result = _fit_shown(change, now, content, show(change.path), hidden=hidden)
        except (NotFoundError, StaleFileError, PathBlockedError, TooLargeError) as error:
            if conflicts is None:
                raise
            conflicts[change.path] = error
            continue
        if now is not None:
            contents[now.revision.content] = now.data
        before = _revision(now)
        if result is None and hidden and before is not None and not before.is_folder:
            # That it is so already would confirm a guess: it is written once more.
            fitted.append(FileChange(change.path, before.aside, before))
            continue
        if result is None:
            after = change.after
            other = before and after and after.is_folder and not same_rights(before, after)
            said = "stays as somebody made it" if other else "is already as it should be"
            notes.append(f"{show(change.path)} {said}.")
            continue
        after, data = result
        if after is not None and data is not None:
            contents[after.content] = data
        if not same_state(before, change.before and change.before.compared) and not hidden:
            notes.append(f"{show(change.path)} had changed; the later changes were kept.")
        fitted.append(FileChange(change.path, before, after))
    if not fitted:
        raise nothing_to_do()
    return RebaseResult(ChangeSet(tuple(fitted)), contents, tuple(notes))


def _carried(
    changes: ChangeSet,
    current: Callable[[WorkspacePath], Document | None],
    content: Callable[[str], bytes],
    show: Callable[[WorkspacePath], str],
    hides: Hides,
) -> dict[WorkspacePath, tuple[FileChange, bytes, str]]:
    """Both ends of renames of files that were changed meanwhile: what was changed goes with the file.

    Of each end its change is told, with the bytes that it is about, and what is to be said.
    """
    found = {one.path: (one, b"", "") for one in fit_whole(changes, current)}
    made = {one.path: one.after for one in changes.changes if one.before is None}
    gone = [one for one in changes.changes if made and one.before and one.after is None]
    changed: dict[WorkspacePath, Document] = {}
    for one in gone:
        with suppress(FilepactError):
            there = current(one.path)
            if there is not None and not there.revision.is_folder and there.revision != one.before:
                changed[one.path] = there
    pairs: dict[WorkspacePath, FileChange] = {}
    if changed:
        with suppress(NotFoundError):
            pairs = renames(changes.changes, content)
        pairs |= {new.path: old for old, new in same_entries(changes.changes)}
    for new, old in pairs.items():
        now, after = changed.get(old.path), made.get(new)
        if now is None or old.before is None or after is None:
            continue
        with suppress(FilepactError):
            if current(new) is not None or hides(old.path, (now,)) or hides(new, (now,)):
                continue
            state: Revision | None = now.revision
            data: bytes | None = now.data
            if old.before != after:
                wanted = FileChange(old.path, old.before, after)
                state, data = _fit_one(wanted, now, content, show(old.path)) or (state, data)
            if state is None or data is None:
                continue
            note = f"{show(new)} keeps what was changed in {show(old.path)} meanwhile."
            found[new] = FileChange(new, None, state), data, note
            found[old.path] = FileChange(old.path, now.revision, None), now.data, ""
    return found


def _as_known(now: Document | None, change: FileChange) -> Document | None:
    """A file or folder as it is; of a folder that nobody may look into, what was known of it says more."""
    shut = now is not None and now.revision.is_folder and now.revision.attributes is None
    known = change.before if shut and now and now.revision == change.before else None
    return Document(change.path, b"", known) if known else now


def _fit_shown(
    change: FileChange,
    now: Document | None,
    content: Callable[[str], bytes],
    shown: str,
    *,
    hidden: bool,
) -> tuple[Revision | None, bytes | None] | None:
    """As `_fit_one`, with errors that tell nothing that is hidden from the reader."""
    try:
        return _fit_one(change, now, content, shown)
    except NotFoundError:
        raise not_kept(shown) from None
    except StaleFileError:
        if hidden:
            raise _stale(shown, "somebody changed it meanwhile") from None
        raise


def nothing_to_do(hint: str = "") -> NoChangeError:
    hint = hint or "Nothing has to be done; `filepact log` shows what happened."
    return NoChangeError("every file is already as it should be", hint=hint)


def _revision(document: Document | None) -> Revision | None:
    return None if document is None else document.revision


def together(
    conflicts: Conflicts, files: int, way: str = "", verb: str = "taken back"
) -> FilepactError:
    """One refusal for all files that cannot be changed, of their own kind if they have one.

    Args:
        conflicts: At least one of them.
        files: How many files were to be changed in all.
        way: What may be done instead, in whole sentences; empty for what the errors say, the first for all.
        verb: What they cannot be.
    """
    errors = list(conflicts.values())
    if files == 1:
        one = errors[0]
        if not way:
            return one
        return type(one)(one.message, hint=f"Nothing was changed. {way}", **one.details)
    hint = f"Nothing was changed. {way}" if way else errors[0].hint
    said = "\n".join(error.message for error in errors[:_CONFLICTS])
    more = len(errors) - _CONFLICTS
    kind = type(errors[0]) if len({*map(type, errors)}) == 1 else StaleFileError
    return kind(
        f"{len(errors):,} of {files:,} files cannot be {verb}:\n{said}"
        + (f"\nand {more:,} more" if more > 0 else ""),
        hint=hint,
        conflicts=tuple(
            (path.path, error.code, error.message) for path, error in conflicts.items()
        ),
    )


def _fit_one(
    change: FileChange, now: Document | None, content: Callable[[str], bytes], shown: str
) -> tuple[Revision | None, bytes | None] | None:
    """The state a file goes to with its bytes; None when it is there already."""
    before = change.before and change.before.compared
    after = change.after and change.after.compared
    at = now.revision if now is not None else None
    if at is not None and after is not None and at.is_folder and after.is_folder:
        # One that was made meanwhile is left as it is.
        if before is None or not before.is_folder:
            return None
        wanted = _other_rights(before, after, at)
        return None if same_state(at, wanted) else (wanted, b"")
    if same_state(at, after):
        return None
    # An empty folder comes and goes unseen; that it is empty is seen to before it makes way.
    unseen = {one is None or one.is_folder for one in (at, before)} == {True}
    same = same_state(at, before) or (after is None and same_bytes(at, before))
    if same or unseen:
        # What has other rights by now, and goes, comes back with them.
        if after is not None and after.is_folder:
            return after, b""
        return (after, content(after.content) if after is not None else None)
    if any(one is not None and one.is_link for one in (before, after, at)):
        raise _stale(shown, "a link was, is or would be there")
    if now is not None and now.revision.is_folder:
        raise _stale(shown, "a folder stands there now")
    if any(one is not None and one.is_folder for one in (before, after)):
        raise _stale(shown, "the folder that stood there is gone, or something has taken its place")
    if before is None:
        raise _stale(shown, "somebody made a file of this name meanwhile")
    if now is None:
        raise _stale(shown, "somebody removed the file meanwhile")
    if after is None:
        raise _stale(
            shown,
            "the file was changed meanwhile, and removing it would lose that:\n"
            f"{_difference(content(before.content), now.data, shown)}",
        )
    data = _merge(content(before.content), content(after.content), now, shown)
    result = _other_rights(before, after, now.revision.with_bytes(data))
    if result.content != after.content and result.attributes is not None:
        result = Revision(result.content, result.mode, result.attributes.written(None))
    return None if result == at else (result, data)


def _other_rights(before: Revision, after: Revision, now: Revision) -> Revision:
    """The present state of a file or folder, with the mode and attributes of a change applied."""
    attributes = now.attributes
    if attributes is not None and after.attributes is not None:
        attributes = attributes.changed(before.attributes, after.attributes)
    # What somebody has made of it since stays, such as a protection.
    return Revision(now.content, after.mode if now.mode == before.mode else now.mode, attributes)


def _merge(before: bytes, after: bytes, now: Document, shown: str) -> bytes:
    if now.data == before:
        return after
    try:
        base = Document(now.path, before, now.revision, now.named_encoding).source
        wanted = Document(now.path, after, now.revision, now.named_encoding).source
        present = now.source
    except BinaryFileError:
        raise _stale(shown, "the file is not text and was changed meanwhile") from None
    if wanted.encoding.damaged and present.encoding.name == "utf-8":
        present = replace(present, encoding=wanted.encoding)  # raw bytes may come back
    # A change of line ends is no conversion by somebody else.
    like = present.text if line_ends(base.text) == line_ends(wanted.text) else ""
    known, mine = (with_line_ends_of(like, one.text) for one in (base, wanted))
    merged = merge(known, mine, present.text)
    whole = (0, len(split_lines(known)), len(split_lines(mine)))
    if merged.text is None or has_slid(known, mine, present.text, [whole]):
        raise _stale(
            shown,
            f"the same lines were changed meanwhile.\nWhat happened since:\n{_difference(before, now.data, shown)}\n"
            f"What was to be done:\n{_difference(before, after, shown)}",
        )
    lost = lost_place(known, mine, present.text)
    if lost is not None:
        raise _stale(
            shown,
            f"where line {lost.line} of it belongs is no longer certain: {lost.reason}.\n"
            "What happened since:\n" + _difference(before, now.data, shown),
        )
    return rewrite(present, merged.edits, name=shown, asked=TextRequest(pieces=merged.pieces))


def _stale(shown: str, why: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: {why}",
        hint="Nothing was changed. Look at the file, and make the change by hand if it is wanted.",
        path=shown,
    )


def _difference(old: bytes, new: bytes, shown: str) -> str:
    texts = [data.decode("utf-8", errors="surrogateescape") for data in (old, new)]
    return cut_diff(unified(texts[0], texts[1], old_name=shown, new_name=shown), _DIFF_IN_ERROR)
