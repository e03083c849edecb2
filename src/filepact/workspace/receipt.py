"""What a change answers: facts for programs, and the diff that people read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.domain.document import FOLDER
from filepact.errors import BinaryFileError
from filepact.text.codec import decode
from filepact.text.diff import quote_name, unified, unified_binary

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Revision, WorkspacePath
    from filepact.text.codec import Given

__all__ = [
    "FileReport",
    "Receipt",
    "Shown",
    "Status",
    "Texts",
    "patch_of",
    "show_changes",
    "summary_of",
    "texts_of",
]

Status = Literal["applied", "preview", "pending", "unchanged", "withdrawn"]
"""``withdrawn``: nothing waits any more of what the session itself had proposed."""

_NAMED = 5
_UNREAD = "--- {name}\n+++ {name}\n(what the file held or holds was not kept)\n"
_HIDDEN = "--- {name}\n+++ {name}\n(what the file holds may not be seen)\n"


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a change.

    Attributes:
        before: Short revision before, None when there was no file.
        after: Short revision after, None when there is no file any more.
        added: Lines added.
        removed: Lines removed.
    """

    path: str
    before: str | None
    after: str | None
    added: int
    removed: int


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
    """

    operation: str | None
    status: Status
    summary: str
    files: tuple[FileReport, ...] = ()
    diff: str = ""
    notes: tuple[str, ...] = ()
    rule: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A change set as it is shown."""

    diff: str
    files: tuple[FileReport, ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """What a file holds before a change and after it; None for no file."""

    path: WorkspacePath
    before: str | None
    after: str | None


def texts_of(
    changes: ChangeSet,
    content: Callable[[str], bytes],
    given: Callable[[WorkspacePath], Given | None],
) -> tuple[Texts, ...]:
    """The texts of a change set; files that are no text, or were not kept, are left out."""
    texts: list[Texts] = []
    for change in changes.changes:
        if change.retraceable:
            old, new = (
                _side(side, content, change.path.path, given(change.path))
                for side in (change.before, change.after)
            )
            if not isinstance(old, int) and not isinstance(new, int):
                texts.append(Texts(change.path, old, new))
    return tuple(texts)


def show_changes(
    changes: ChangeSet,
    content: Callable[[str], bytes],
    show: Callable[[WorkspacePath], str],
    given: Callable[[WorkspacePath], Given | None],
    hides: Callable[[WorkspacePath], bool] = lambda _path: False,
) -> Shown:
    """The unified diff of a change set, file after file, and the facts of each file.

    Args:
        changes: What changes.
        content: The bytes of a revision by content id.
        show: How a path is shown.
        given: What is said about a file's encoding outside the file.
        hides: Whether the reader may not see what a file holds.
    """
    diffs: list[str] = []
    files: list[FileReport] = []
    several = len(changes.changes) > 1
    moved = {
        change.path: source
        for change, source in _moves(changes).items()
        if not hides(change.path) and not hides(source.path)
    }
    sources = {source.path for source in moved.values()}
    for change in changes.changes:
        shown = show(change.path)
        if FOLDER in (change.before, change.after):
            shown = f"{shown}/"
            diff = f"{'Folder' if change.after else 'Removed folder'} {shown}\n"
        elif change.path in moved:
            diff = _renamed(show(moved[change.path].path), shown)
        elif change.path in sources:
            diff = ""
        elif hides(change.path):
            diff = _HIDDEN.format(name=shown)
        elif not change.retraceable:
            diff = _UNREAD.format(name=shown)
        else:
            diff = _file_diff(change, content, shown, given(change.path), git=several)
        added, removed = _counts(diff)
        diffs.append(diff)
        files.append(
            FileReport(
                path=shown,
                before=change.before.short if change.before is not None else None,
                after=change.after.short if change.after is not None else None,
                added=added,
                removed=removed,
            )
        )
    return Shown("".join(diffs), tuple(files))


def _moves(changes: ChangeSet) -> dict[FileChange, FileChange]:
    """The files that come with the bytes and the mode of one that goes, with that one."""
    gone = {
        one.before: one
        for one in changes.changes
        if one.before is not None and one.after is None and one.before.was_read
    }
    found: dict[FileChange, FileChange] = {}
    for one in changes.changes:
        if one.before is None and one.after in gone and not one.after.is_folder:
            found[one] = gone.pop(one.after)
    return found


def _renamed(old: str, new: str) -> str:
    """A file under another name, as Git writes it."""
    a, b = quote_name(f"a/{old}"), quote_name(f"b/{new}")
    names = f"rename from {quote_name(old)}\nrename to {quote_name(new)}\n"
    return f"diff --git {a} {b}\nsimilarity index 100%\n{names}"


def patch_of(changes: ChangeSet, content: Callable[[str], bytes]) -> bytes:
    """The change set as a patch for programs: the files' own bytes, whatever their encoding."""
    several = len(changes.changes) > 1
    return b"".join(_file_patch(change, content, git=several) for change in changes.changes)


def _file_patch(change: FileChange, content: Callable[[str], bytes], *, git: bool) -> bytes:
    if FOLDER in (change.before, change.after):
        return b""  # patches know files only
    if not change.retraceable:
        return f"What {quote_name(change.path.path)} held or holds was not kept\n".encode()
    # Latin-1 gives every byte one character and takes it back, so lines can be compared as text.
    old, new = (
        content(side.content).decode("latin-1") if side is not None else None
        for side in (change.before, change.after)
    )
    if "\0" in (old or "") or "\0" in (new or ""):
        return unified_binary(len(old or ""), len(new or ""), change.path.path).encode()
    name = os.fsencode(change.path.path).decode("latin-1")
    return _unified(change, old, new, name, git=git).encode("latin-1")


def _unified(change: FileChange, old: str | None, new: str | None, name: str, *, git: bool) -> str:
    return unified(
        old,
        new,
        old_name=name,
        new_name=name,
        old_mode=change.before.mode if change.before is not None else None,
        new_mode=change.after.mode if change.after is not None else None,
        git=git,
    )


def _counts(diff: str) -> tuple[int, int]:
    """Lines added and removed in one file's diff; its header lines are not counted."""
    start = diff.find("\n@@ ")
    if start < 0:
        return 0, 0
    return diff.count("\n+", start), diff.count("\n-", start)


def _file_diff(
    change: FileChange,
    content: Callable[[str], bytes],
    shown: str,
    given: Given | None,
    *,
    git: bool,
) -> str:
    old, new = (_side(side, content, shown, given) for side in (change.before, change.after))
    if isinstance(old, int) or isinstance(new, int):
        sizes = [
            len(content(side.content)) if side is not None else 0
            for side in (change.before, change.after)
        ]
        return unified_binary(sizes[0], sizes[1], shown)
    return _unified(change, old, new, shown, git=git)


def _side(
    revision: Revision | None, content: Callable[[str], bytes], shown: str, given: Given | None
) -> str | int | None:
    """The text of one side, None for no file, or a number of bytes when it is not text."""
    if revision is None:
        return None
    data = content(revision.content)
    try:
        return decode(data, name=shown, given=given).text
    except BinaryFileError:
        return len(data)


def summary_of(files: tuple[FileReport, ...]) -> str:
    """One line about everything that a grown proposal changes."""
    words = [
        f"{'create' if one.before is None else 'delete' if one.after is None else 'edit'} {one.path}"
        for one in files[:_NAMED]
    ]
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return ", ".join(words) + more
