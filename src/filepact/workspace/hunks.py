"""The hunks of a proposal, by numbers: what of it a person accepts, and what is left.

A number means the same for as long as the id does, since the id stands for exactly these changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.errors import BinaryFileError, InvalidParamsError
from filepact.text.codec import rewrite, rewrite_whole
from filepact.text.confusables import encoding_named
from filepact.text.diff import split_hunks
from filepact.text.edit import Edit, EditList
from filepact.values import dataclass
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.receipt import not_kept, origins, show_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.workspace.documents import DocumentCache

__all__ = ["HunkSelection", "ProposalHunk", "choose_hunks", "replace_texts", "split_proposal"]


@dataclass(frozen=True, slots=True)
class ProposalHunk:
    """A part of a proposal that can be accepted without the others.

    Attributes:
        number: From 1, over all files in the order of the diff.
        path: The file; of one that was renamed, its new name.
        diff: The hunk as the diff shows it; of a file that is accepted or not as a whole, all that is
            shown of it.
        added: Lines added.
        removed: Lines removed.
        kind: What becomes of the file; ``rename`` where it only gets another name, or nearly.
        origin: Its name before it was renamed.
    """

    number: int
    path: WorkspacePath
    diff: str
    added: int
    removed: int
    kind: Literal["create", "modify", "delete", "rename"] = "modify"
    origin: WorkspacePath | None = None


@dataclass(frozen=True, slots=True)
class HunkSelection:
    """Chosen hunks of a proposal as a change set, and the undecided rest on top of it.

    Attributes:
        accepted: The hunks that were accepted.
        rest: Those that were neither accepted nor rejected; from what the files hold with the former.
        contents: What files hold with some of their hunks, by content id.
    """

    accepted: ChangeSet
    rest: ChangeSet
    contents: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A hunk with what it changes: edits of one text, or whole files."""

    hunk: ProposalHunk
    changes: tuple[FileChange, ...]
    edit: Edit | None = None


def split_proposal(
    changes: ChangeSet,
    versions: DocumentCache,
    show: Callable[[WorkspacePath], str],
    *,
    fine: bool = False,
) -> tuple[ProposalHunk, ...]:
    """The hunks of a change set.

    A file that is made, removed, renamed or given another mode is one hunk; so is one that holds no
    text, or text in an encoding of which bytes have to be written out to be seen.

    Args:
        changes: The change set.
        versions: The states that it names.
        show: How a path is shown.
        fine: Whether every run of changed lines is a hunk, also where they are shown together.
    """
    return tuple(piece.hunk for piece in _pieces(changes, versions, show, fine=fine))


def choose_hunks(
    changes: ChangeSet,
    versions: DocumentCache,
    accepted: Collection[int],
    rejected: Collection[int] = (),
    *,
    fine: bool = False,
) -> HunkSelection:
    """Divide a change set by the numbers of hunks; the last argument is as for `split_proposal`.

    Raises:
        InvalidParamsError: There is no hunk of a number, or one is in both.
        EncodingUnsafeError: A file cannot be written with some of its hunks alone.
    """
    pieces = _pieces(changes, versions, lambda path: path.path, fine=fine)
    _check_numbers({*accepted}, {*rejected}, len(pieces))
    some: list[FileChange] = []
    rest: list[FileChange] = []
    contents: dict[str, bytes] = {}
    edits: dict[FileChange, tuple[list[Edit], list[Edit]]] = {}
    for piece in pieces:
        number = piece.hunk.number
        if piece.edit is not None:
            taken, kept = edits.setdefault(piece.changes[0], ([], []))
            if number in accepted:
                taken.append(piece.edit)
            if number not in rejected:
                kept.append(piece.edit)
        elif number in accepted:
            some.extend(piece.changes)
        elif number not in rejected:
            rest.extend(piece.changes)
    for change, (taken, kept) in edits.items():
        before = versions.sides(change)[0]
        if before is None:
            raise not_kept(change.path.path)
        between = _revised(before, taken, contents)
        after = _revised(before, kept, contents)
        for part, start, end in ((some, before.revision, between), (rest, between, after)):
            if start != end:
                part.append(FileChange(change.path, start, end))
    order = {path: number for number, path in enumerate(changes.paths)}
    some.sort(key=lambda one: order[one.path])
    rest.sort(key=lambda one: order[one.path])
    return HunkSelection(ChangeSet(tuple(some)), ChangeSet(tuple(rest)), contents)


def _check_numbers(accepted: set[int], rejected: set[int], count: int) -> None:
    both, strange = accepted & rejected, sorted((accepted | rejected) - {*range(1, count + 1)})
    if both:
        said = f"hunk {min(both)} is both accepted and rejected"
    elif strange:
        said = f"there is no hunk {strange[0]}; there are 1 to {count}"
    elif not accepted and not rejected:
        said = "no hunk was named"
    else:
        return
    raise InvalidParamsError(said, hint="Nothing was done.")


def replace_texts(
    changes: ChangeSet, versions: DocumentCache, texts: Mapping[WorkspacePath, str]
) -> tuple[ChangeSet, Mapping[str, bytes]]:
    """A change set in which some files are to hold other texts.

    A file that is to hold what it holds already is left out.

    Returns:
        The changes, and the bytes of the texts by content id.

    Raises:
        InvalidParamsError: A file is not among those that are changed, or is to hold no text.
        EncodingUnsafeError: A text cannot be written in its file's encoding.
    """
    contents: dict[str, bytes] = {}
    edited: list[FileChange] = []
    for path in texts:
        if path not in changes.paths:
            raise InvalidParamsError(f"{path}: the proposal does not change it")
    for change in changes.changes:
        after = change.after
        if change.path in texts:
            proposed = versions.sides(change)[1]
            if proposed is None or after is None or after.is_link or after.is_folder:
                raise InvalidParamsError(f"{change.path}: there is no proposed text to edit")
            data = rewrite_whole(proposed.source, texts[change.path], name=change.path.path)
            after = after.with_bytes(data)
            contents[after.content] = data
        if change.before != after:
            edited.append(FileChange(change.path, change.before, after))
    return ChangeSet(tuple(edited)), contents


def _revised(before: Document, edits: list[Edit], contents: dict[str, bytes]) -> Revision:
    if not edits:
        return before.revision
    data = rewrite(before.source, EditList(tuple(edits)), name=before.path.path)
    revision = before.revision.with_bytes(data)
    contents[revision.content] = data
    return revision


def _pieces(
    changes: ChangeSet, versions: DocumentCache, show: Callable[[WorkspacePath], str], *, fine: bool
) -> list[_Piece]:
    renamed = origins(changes.changes, versions.content)
    gone = {one.path for one in renamed.values()}
    pieces: list[_Piece] = []
    for change in changes.changes:
        if change.path in gone:
            continue
        texts = _texts(change, versions)
        number = len(pieces) + 1
        if texts is None or change.path in renamed:
            whole = [renamed[change.path]] if change.path in renamed else []
            some = ChangeSet((*whole, change))
            shown = show_changes(some, versions, show)
            added, removed = shown.lines or (0, 0)
            old = whole[0].path if whole else None
            kind = change.kind if old is None else "rename"
            hunk = ProposalHunk(number, change.path, shown.diff, added, removed, kind, old)
            pieces.append(_Piece(hunk, some.changes))
            continue
        for at, (text, edit) in enumerate(split_hunks(*texts, 0 if fine else 3)):
            added, removed = (f"\n{text}".count(f"\n{sign}") for sign in "+-")
            hunk = ProposalHunk(number + at, change.path, text, added, removed)
            pieces.append(_Piece(hunk, (change,), edit))
    return pieces


def _texts(change: FileChange, versions: DocumentCache) -> tuple[str, str] | None:
    """The texts before and after of a file that can be accepted in part; None for any other."""
    before, after = change.before, change.after
    if before is None or after is None or before.mode != after.mode or after.is_folder:
        return None
    documents = versions.sides(change)
    texts: list[str] = []
    for document in documents:
        if document is None or document.revision.is_link or document.size > EDIT_LIMIT:
            return None
        try:
            source = document.source
        except BinaryFileError:
            return None
        if encoding_named(source):
            return None
        texts.append(source.text)
    return texts[0], texts[1]
