"""Receipts of changes: facts for programs, and the diff that people read."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import FOLDER, LINK, OVER, UNSEEN
from filepact.errors import BinaryFileError, FilepactError, NotFoundError, WriteFailedError
from filepact.text.codec import detect
from filepact.text.compare import compare_lines
from filepact.text.confusables import encoding_named, shown_name, with_bytes_shown
from filepact.text.detect_encoding import UNIT
from filepact.text.diff import quote_name, unified, unified_binary
from filepact.values import dataclass
from filepact.workspace.documents import EDIT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.domain.operation import Operation
    from filepact.text.codec import SourceText
    from filepact.workspace.documents import DocumentCache

    _Sides = tuple[Revision | None, Revision | None]

__all__ = [
    "ENCODING",
    "ChangeDiff",
    "FileReport",
    "FileTexts",
    "Hides",
    "Receipt",
    "SkippedFile",
    "Status",
    "done_receipt",
    "first_refused",
    "is_of_one_file",
    "not_kept",
    "only_elsewhere",
    "origins",
    "patch_of",
    "refused_files",
    "renames",
    "show_changes",
    "states",
    "summary_of",
    "texts_of",
]

Status = Literal["applied", "preview", "pending", "unchanged", "withdrawn"]
"""``withdrawn``: nothing waits any more of what the session itself had proposed."""

Hides = Callable[["WorkspacePath", Iterable["bytes | Document"]], bool]
"""Whether the reader may not see what a file holds, by its path and what it holds or held."""

ENCODING: Final = "Encoding of "
"""The beginning of the line of a diff that names a file's encoding."""

_NAMED = 5
_FEW_PAIRS = 16
_COMPARED = 1_000_000
_REMOVED: Final = "Removed folder"
_STAYS: Final = re.compile("(?:^|; )the folder (.+?) stays: (.+?)(?=; |$)", re.DOTALL)
_SET_ASIDE = "--- {name}\n+++ {name}\n(too large to be shown; the file itself was set aside)\n"
_UNREAD = "--- {name}\n+++ {name}\n(what the file held or holds was not kept)\n"
_AWAY = "--- {name}\n+++ {name}\n(a link; where it leads is outside and not told)\n"
_HIDDEN = "--- {name}\n+++ {name}\n(what the file holds may not be seen)\n"


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a change.

    Attributes:
        before: Short revision before, None when there was no file or it may not be seen.
        after: Short revision after, None when there is no file any more or it may not be seen.
        added: Lines added.
        removed: Lines removed.
    """

    path: str
    before: str | None
    after: str | None
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was to go back and stays.

    Attributes:
        path: As it is shown.
        reason: Why, in one line.
        bytes: How many bytes are lost, if that is known.
        lost: Whether it stays in any case: what it held was not kept, or it holds something else.
    """

    path: str
    reason: str
    bytes: int | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a change.

    Attributes:
        operation: The id under which it is shown, undone or approved; None when nothing is stored.
        summary: One line: what happened or would happen.
        diff: Unified diff, whole: all that stands under the id.
        notes: What the reader should know besides.
        rule: For a pending change the rule that wants approval.
        step: Of that only what this call has added to a proposal that waited; empty for all.
        confirmed: Of an applied change, whether the disk and the journal confirmed that it lasts;
            where they did not, a note says what is missing.
        present: Of an applied change, whether each of its files is there now; nothing of what is in
            them, which the session may not be allowed to know.
        left: Of going back, the files that were to go too and stay as they are.
        as_sent: Whether a change is exactly what its author sent, who knows the diff.
    """

    operation: str | None
    status: Status
    summary: str
    files: tuple[FileReport, ...] = ()
    diff: str = ""
    notes: tuple[str, ...] = ()
    rule: str = ""
    step: str = ""
    confirmed: bool = True
    present: tuple[tuple[WorkspacePath, bool], ...] = ()
    left: tuple[SkippedFile, ...] = ()
    as_sent: bool = False


@dataclass(frozen=True, slots=True)
class ChangeDiff:
    """A change set as it is shown.

    Attributes:
        whole: Whether nothing of it was hidden from the reader.
    """

    diff: str
    files: tuple[FileReport, ...]
    whole: bool = True

    @property
    def lines(self) -> tuple[int, int] | None:
        """The numbers of lines added and removed; None when not all of them are shown."""
        if not self.whole:
            return None
        return sum(one.added for one in self.files), sum(one.removed for one in self.files)


def done_receipt(
    operation: Operation, shown: ChangeDiff, notes: tuple[str, ...] = (), *, as_sent: bool = False
) -> Receipt:
    """The answer to a change that was done just now, perhaps exactly as it was sent."""
    files, diff, note = shown.files, shown.diff, operation.note
    notes = (*notes, note) if note else notes
    stay = {f"{path}/": why for path, why in _STAYS.findall(note)}
    if stay:
        files = tuple(one for one in files if shown_name(one.path) not in stay)
        gone = tuple(f"{_REMOVED} {path}" for path in stay)
        diff = "\n".join(line for line in diff.split("\n") if not line.startswith(gone))
    return Receipt(
        operation.id,
        "applied",
        operation.summary,
        files,
        diff,
        notes,
        confirmed=operation.confirmed,
        present=tuple((one.path, one.after is not None) for one in operation.changes.changes),
        left=tuple(SkippedFile(path, why, lost=True) for path, why in stay.items()),
        as_sent=as_sent and not note,
    )


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The texts of a file before and after a change; None for no file."""

    path: WorkspacePath
    before: str | None
    after: str | None


def texts_of(changes: ChangeSet, versions: DocumentCache) -> tuple[FileTexts, ...]:
    """The texts of a change set; files that are no text, or were not kept, are left out."""
    texts: list[FileTexts] = []
    for change in changes.changes:
        if change.retraceable:
            old, new = (
                _side(change.path, side, versions) for side in (change.before, change.after)
            )
            if not isinstance(old, int) and not isinstance(new, int):
                texts.append(FileTexts(change.path, _text(old), _text(new)))
    return tuple(texts)


def show_changes(
    changes: ChangeSet,
    versions: DocumentCache,
    show: Callable[[WorkspacePath], str],
    hides: Hides = lambda _path, _held: False,
    *,
    to_agent: bool = False,
    deadline: Deadline = FOREVER,
) -> ChangeDiff:
    """The unified diff of a change set, file after file, and the facts of each file.

    Args:
        changes: What changes.
        versions: The states that the changes name.
        show: How a path is shown.
        hides: Whether the reader may not see what a file holds.
        to_agent: Whether it is for an agent, which is told no path outside, and sees each text as
            it can be sent.  For a person the encoding is named where it is not plain UTF-8, and
            bytes that programs may take for ASCII are written out.
        deadline: Asked before each file.
    """
    diffs, files = list[str](), list[FileReport]()
    several = len(changes.changes) > 1
    hidden = {one.path for one in changes.changes if hides(one.path, states(one, versions))}
    whole = not hidden
    seen = [one for one in changes.changes if several and one.path not in hidden]
    renamed = origins(seen, versions.content)
    moved = {one.path for one in renamed.values()}
    for whole_change in changes.changes:
        deadline.check()
        of_file = whole_change.of_file
        change = of_file or whole_change
        shown = show(change.path)
        origin = renamed.get(change.path)
        if of_file is None:
            shown, diff = f"{shown}/", ""
        elif change.path in hidden:
            diff = _HIDDEN.format(name=shown)
        elif not change.retraceable:
            aside = any(one and one.is_set_aside for one in (change.before, change.after))
            diff = (_SET_ASIDE if aside else _UNREAD).format(name=shown)
        elif to_agent and _leads_out(change, versions.content):
            whole, diff = False, _AWAY.format(name=shown)
        elif change.path in moved:
            diff = ""  # It is told of the new name.
        elif origin is not None:
            sides, names = (origin.before, change.after), (show(origin.path), shown)
            diff = _file_diff(change.path, sides, versions, names, git=True, to_agent=to_agent)
        else:
            sides, names = (change.before, change.after), (shown, shown)
            diff = _file_diff(change.path, sides, versions, names, git=several, to_agent=to_agent)
        added, removed = _counts(diff)
        rights = "" if change.path in hidden else _rights(whole_change, shown)
        diffs.append(_folder_line(whole_change, shown) + diff + rights)
        files.append(
            FileReport(
                path=shown,
                before=_short(whole_change.before, change.path in hidden),
                after=_short(whole_change.after, change.path in hidden),
                added=added,
                removed=removed,
            )
        )
    return ChangeDiff("".join(diffs), tuple(files), whole)


def _folder_line(change: FileChange, shown: str) -> str:
    """The change of a folder as a line of a diff; empty for none."""
    folder = change.after if change.after and change.after.is_folder else change.before
    if folder is None or not folder.is_folder or change.of_folder:
        return ""
    verb, mode = "Folder" if folder == change.after else _REMOVED, folder.mode & 0o7777
    if folder.is_whole:
        verb = "Moved here with all that it holds:" if change.after else "Moved away:"
    rights = f" ({mode:o})" if mode not in (0, 0o755, 0o775) else ""
    return f"{verb} {shown.rstrip('/')}/{rights}\n"


def _rights(change: FileChange, shown: str) -> str:
    """The changes of owner, access lists, attributes and of modes that patches do not tell; a line for each."""
    before, after = change.before, change.after
    if before is None or after is None or change.turns:
        return ""
    told: list[str] = []
    if (before.compared.mode ^ after.mode) & (0o7777 if change.of_folder else 0o7000):
        told.append(f"mode {before.mode & 0o7777:04o} -> {after.mode & 0o7777:04o}")
    if before.attributes is not None and after.attributes is not None:
        told += before.attributes.differences(after.attributes)
    return "".join(f"{shown}: {shown_name(one)}\n" for one in told)


def states(change: FileChange, versions: DocumentCache) -> tuple[Document, ...]:
    """The states of a file before and after a change, as far as they were kept."""
    return tuple(one for one in versions.sides(change) if one is not None)


def _leads_out(change: FileChange, content: Callable[[str], bytes]) -> bool:
    """Whether one side is a link whose text names a place that is not below the root."""
    root = change.path.root.rstrip("/")
    for side in (change.before, change.after):
        if side is not None and side.mode == LINK:
            place = join(root, dirname(change.path.path), os.fsdecode(content(side.content)))
            if not f"{normpath(place)}/".startswith(f"{root}/"):
                return True
    return False


def _short(revision: Revision | None, hidden: bool) -> str | None:
    return None if revision is None or hidden else revision.short


def patch_of(changes: ChangeSet, content: Callable[[str], bytes]) -> bytes:
    """The change set as a patch for programs: the files' own bytes, whatever their encoding."""
    several = len(changes.changes) > 1
    renamed = origins(changes.changes, content)
    moved = {one.path for one in renamed.values()}
    parts: list[bytes] = []
    # Patches know files and their bytes only; programs pass over what is said of the rest, before the first of them.
    told = ""
    for whole in changes.changes:
        change, new = whole.of_file, whole.path.path
        told += _rights(whole, quote_name(new))
        if change is None or change.path in moved:
            continue
        origin = renamed.get(change.path)
        if not change.retraceable:
            told += f"What {quote_name(new)} held or holds was not kept\n"
        elif origin is None:
            sides = (change.before, change.after)
            parts.append(_file_patch(sides, content, (new, new), git=several))
        else:
            sides = (origin.before, change.after)
            parts.append(_file_patch(sides, content, (origin.path.path, new), git=True))
    return os.fsencode(told) + b"".join(parts)


def origins(
    changes: Sequence[FileChange], content: Callable[[str], bytes]
) -> dict[WorkspacePath, FileChange]:
    """For files that are new under their names, the removal of what they were before.

    A journal has no renames; as for Git, it is one where the bytes are the same, or most lines are.
    """
    some = [one for one in (each.of_file for each in changes) if one and one.retraceable]
    gone = {one.path: one for one in some if one.before and not one.after}
    made = [(one, one.after) for one in some if one.after and not one.before]
    by_bytes = {
        (one.before.content, one.before.is_link): one for one in gone.values() if one.before
    }
    found: dict[WorkspacePath, FileChange] = {}
    for new, after in made:
        same = by_bytes.pop((after.content, after.is_link), None)
        if same is not None:
            found[new.path] = gone.pop(same.path)
    left = [(one, after) for one, after in made if one.path not in found]
    if len(gone) * len(left) > _FEW_PAIRS:
        return found
    for new, after in left:
        alike = (old for old in gone.values() if _same_lines(old.before, after, content))
        if (one := next(alike, None)) is not None:
            found[new.path] = gone.pop(one.path)
    return found


def renames(
    changes: Sequence[FileChange], content: Callable[[str], bytes]
) -> dict[WorkspacePath, FileChange]:
    """The renames of `origins` that are certain: no other file of the change could be meant."""
    found = origins(changes, content)
    files = [one for one in (each.of_file for each in changes) if one is not None]
    made = {one.path: one.after for one in files if one.after and not one.before}
    gone = [one.before.content for one in files if one.before and not one.after]
    several = Counter([one.content for one in made.values()]) | Counter(gone)
    exact = {x for x, old in found.items() if old.before and made[x].content == old.before.content}
    taken = {found[new].path for new in exact}
    left = [x for x in files if x.retraceable and x.after is None and x.path not in taken]
    fits = {
        one.path: [x.path for x in left if _same_lines(x.before, one.after, content)]
        for one in (files if found.keys() - exact else ())
        if one.after and not one.before and one.retraceable and one.path not in exact
    }
    meant = Counter(path for paths in fits.values() for path in paths)
    sure = {x for x, paths in fits.items() if len(paths) == 1 == meant[paths[0]]}
    once = {x for x in exact if several[made[x].content] == 1 and made[x].content != FOLDER.content}
    return {new: old for new, old in found.items() if new in sure | once}


def _same_lines(old: Revision | None, new: Revision, content: Callable[[str], bytes]) -> bool:
    """Whether at least half of the lines of both are the same, in order."""
    if old is None or old.is_link or new.is_link:
        return False
    sides = [content(side.content) for side in (old, new)]
    if any(len(side) > _COMPARED or b"\0" in side for side in sides):
        return False
    before, after = (side.decode("latin-1").splitlines() for side in sides)
    changed = sum(one.old_end - one.old_start for one in compare_lines(before, after))
    return 2 * 2 * (len(before) - changed) >= len(before) + len(after) > 0


def _file_patch(
    sides: _Sides, content: Callable[[str], bytes], paths: tuple[str, str], *, git: bool
) -> bytes:
    # Latin-1 gives every byte one character and takes it back, so lines can be compared as text.
    old, new = (
        content(side.content).decode("latin-1") if side is not None else None for side in sides
    )
    names = [os.fsencode(name).decode("latin-1") for name in paths]
    if old != new and any(_is_binary(content(side.content)) for side in sides if side is not None):
        lengths = [None if side is None else len(side) for side in (old, new)]
        return unified_binary(lengths[0], lengths[1], paths[1]).encode()
    return _unified(sides, old, new, (names[0], names[1]), git=git).encode("latin-1")


def _is_binary(data: bytes) -> bool:
    """Whether patch programs cannot take lines of it: it is no text, or every other byte is a NUL."""
    if b"\0" not in data:
        return False
    encoding = detect(data, complete=True)
    return encoding is None or encoding.name in UNIT


def _unified(
    sides: _Sides, old: str | None, new: str | None, names: tuple[str, str], *, git: bool
) -> str:
    return unified(
        old,
        new,
        old_name=names[0],
        new_name=names[1],
        old_mode=sides[0].compared.mode if sides[0] is not None else None,
        new_mode=sides[1].mode if sides[1] is not None else None,
        git=git,
    )


def _counts(diff: str) -> tuple[int, int]:
    """Lines added and removed in one file's diff; its header lines are not counted."""
    start = diff.find("\n@@ ")
    if start < 0:
        return 0, 0
    return diff.count("\n+", start), diff.count("\n-", start)


def _file_diff(
    path: WorkspacePath,
    sides: _Sides,
    versions: DocumentCache,
    names: tuple[str, str],
    *,
    git: bool,
    to_agent: bool,
) -> str:
    before, after = sides
    if before is not None and after is not None and before.content == after.content:
        return _unified(sides, "", "", names, git=git)
    old, new = _side(path, before, versions), _side(path, after, versions)
    if isinstance(old, int) or isinstance(new, int):
        sizes = [None if side is None else versions.of(path, side).size for side in sides]
        return unified_binary(sizes[0], sizes[1], names[1])
    exact = to_agent or not (encoding := _encodings(old, new))
    texts = [
        None if side is None else side.text if exact else with_bytes_shown(side)
        for side in (old, new)
    ]
    diff = _unified(sides, texts[0], texts[1], names, git=git)
    return diff if exact else f"{ENCODING}{quote_name(names[1])}: {encoding}\n{diff}"


def _text(side: SourceText | None) -> str | None:
    return None if side is None else side.text


def _encodings(old: SourceText | None, new: SourceText | None) -> str:
    """The encodings of a file before and after; empty for plain UTF-8."""
    sides = [encoding_named(side) for side in (old, new) if side is not None]
    if len(set(sides)) == 1:
        return sides[0]
    return ", then ".join(side or "utf-8" for side in sides)


def _side(
    path: WorkspacePath, revision: Revision | None, versions: DocumentCache
) -> SourceText | int | None:
    """The text of one side, None for no file, or a number of bytes when it is not shown as text."""
    if revision is None:
        return None
    document = versions.of(path, revision)
    if document.size > EDIT_LIMIT:
        return document.size
    try:
        return document.source
    except BinaryFileError:
        return document.size


def summary_of(files: tuple[FileReport, ...]) -> str:
    """One line about everything that a grown proposal changes."""
    words = [
        f"{'create' if one.before is None else 'delete' if one.after is None else 'edit'} {one.path}"
        for one in files[:_NAMED]
    ]
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return ", ".join(words) + more


# -- what was refused ----------------------------------------------------------------------

_OF_ALL = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
"""What the system says of a whole disk or process."""


def is_of_one_file(error: FilepactError) -> bool:
    """Whether an error tells of one file, and nothing of what becomes of others."""
    return "path" in error.details and error.details.get("errno") not in _OF_ALL


def first_refused(refused: list[FilepactError]) -> FilepactError:
    """The first error, with all the files that cannot be written."""
    first = refused[0]
    if all(map(is_of_one_file, refused)):
        named = ((str(one.details["path"]), one.message) for one in refused)
        first.details["refused"] = tuple(named)
    return first


def refused_files(error: FilepactError, changes: ChangeSet) -> dict[WorkspacePath, str]:
    """The files that kept a change set from being done, with the reasons; none where not they alone did.

    Without them it can be tried again.
    """
    if error.details.get("outcome") != "not_applied" or not is_of_one_file(error):
        return {}
    named = {str(error.details["path"]): error.message}
    refused = error.details.get("refused")
    for one in refused if isinstance(refused, tuple) else ():
        if isinstance(one, tuple):
            named[str(one[0])] = str(one[1])
    return {
        path: message
        for name, message in named.items()
        for path in changes.paths
        if f"{path.path}/".startswith(f"{name}/")
    }


def only_elsewhere(error: FilepactError) -> WriteFailedError:
    return WriteFailedError(
        f"{error.message}. The shared workspace has the change all the same",
        hint="This folder takes it with the next call. Read the file then, before anything else.",
        outcome="elsewhere",
    )


def not_kept(shown: str, change: FileChange | None = None, *, by: str = "") -> NotFoundError:
    """The refusal for a file whose other state nobody can bring back.

    Args:
        shown: Its name.
        change: What became of it, if it is known; the details have the size of what is lost, in bytes.
        by: The operation that did; what came after it goes back.
    """
    lost = change and (change.before or change.after)
    taken = lost.unread_size if lost else None
    sized = shown if taken is None else f"{shown} ({taken:,} bytes)"
    said = "what the file held is not in the journal, so it cannot be brought back"
    said = f"it is as {by} left it: what it held before that is not in the journal" if by else said
    hint = "Other operations can be taken back by their ids."
    if lost and lost.content == UNSEEN.content:
        said, hint = "it came there from elsewhere, and stays", "Move it away yourself."
    elif lost and lost.content == OVER.content:
        said = "what came there in its place is in the journal alone, and a redo brings it back"
    elif change and not change.before:
        said, hint = "it was made there and stays until you remove it", "Remove it yourself."
    elif lost and lost.is_folder and not lost.was_read:
        said = "what lay in a folder that programs make for themselves was not kept"
        hint = "What has made it makes it again."
        if shown.endswith("/.git"):
            said = "what this repository held besides its settings and hooks was not kept"
            hint = "Clone it again, or bring it back from a copy of your own."
        elif lost.mode & 0o500 != 0o500:
            said = "nobody could look into this folder, so what lay in it was not kept"
            hint = "Move it back yourself."
    return NotFoundError(
        f"{sized}: {said}", hint=f"Nothing was changed. {hint}", path=shown, bytes=taken
    )
