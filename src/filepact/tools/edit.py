"""The three tools that change: write_file, edit_file, patch_apply."""

from __future__ import annotations

from posixpath import dirname
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    PatchAlreadyAppliedError,
    PatchContextMismatchError,
    PatchMalformedError,
)
from filepact.text.edit import EditList
from filepact.text.locate import place
from filepact.text.patch import apply, created_text, parse
from filepact.text.patch import reverse as reversed_patch
from filepact.tools.registry import Alias, tool
from filepact.workspace.draft import Draft

if TYPE_CHECKING:
    from filepact.text.patch import FilePatch
    from filepact.workspace.draft import Target

__all__ = ["edit_file", "patch_apply", "write_file"]

Path = Annotated[str, Field(min_length=1, description="File, relative to the root or absolute.")]
DryRun = Annotated[bool, Field(description="Only show the diff, change nothing.")]
Expected = Annotated[
    str | None,
    Field(description="Revision from read_file; refuse if the file is at another.", min_length=8),
]


class Replacement(BaseModel):
    """One replacement of several in one file."""

    model_config = ConfigDict(extra="forbid")

    old_string: str
    new_string: str
    replace_all: bool = False


@tool(title="Write file", level="moderate", tier="essential", idempotent=True, destructive=True)
def write_file(
    draft: Draft,
    path: Path,
    content: Annotated[str, Field(description="The whole text, or the text to append.")],
    append: Annotated[bool, Field(description="Append instead of overwriting.")] = False,
    create_dirs: Annotated[
        bool, Field(description="Make missing parent folders."), Alias("createDirs")
    ] = False,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Create a file or overwrite it with new text.

    An existing file keeps its encoding, line ends and mode. Prefer edit_file for small changes.
    """
    draft.dry_run = dry_run
    target = draft.open(path, expected_revision=expected_revision)
    if target.document is None:
        _check_parent(target, create=create_dirs)
    draft.write(target, content, append=append)
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    if append and target.document is not None:
        return f"append {lines} {_lines(lines)} to {target.spot.shown}"
    return (
        f"{'write' if target.document else 'create'} {target.spot.shown}, {lines} {_lines(lines)}"
    )


@tool(title="Edit file", level="moderate", tier="essential", destructive=True)
def edit_file(
    draft: Draft,
    path: Path,
    old_string: Annotated[
        str | None,
        Field(description="Exact text to replace, unique in the file; whole lines are best."),
    ] = None,
    new_string: Annotated[str | None, Field(description="What to put in its place.")] = None,
    replace_all: Annotated[bool, Field(description="Replace every occurrence.")] = False,
    edits: Annotated[
        list[Replacement] | None,
        Field(
            description="Several replacements, all or none, each on the result of those before; "
            "instead of old_string and new_string.",
            min_length=1,
            max_length=1_000,
        ),
    ] = None,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Replace exact text in a file; far cheaper than rewriting it.

    Do not put the line numbers of read_file into old_string.
    """
    draft.dry_run = dry_run
    replacements = _replacements(old_string, new_string, edits, replace_all=replace_all)
    target = draft.open_existing(path, expected_revision=expected_revision)
    lines: list[int] = []
    steps: list[str] = []

    def make(text: str) -> EditList:
        lines.clear()
        steps.clear()
        result, whole = EditList(()), text
        for one in replacements:
            placement = place(
                whole,
                one.old_string,
                one.new_string,
                replace_all=one.replace_all,
                name=target.spot.shown,
            )
            lines.extend(placement.lines)
            steps.append(placement.step)
            result, whole = placement.edits, placement.edits.apply(whole)
        if len(replacements) > 1:
            result = EditList.between(text, whole)
        if not result or whole == text:
            raise NoChangeError(
                f"{target.spot.shown}: the edits leave the file as it is",
                hint="Nothing was changed; read the file again if you expected otherwise.",
            )
        return result

    draft.edit(target, make)
    placed = sorted({step for step in steps if step != "exact"})
    if placed:
        draft.notes.append(f"Placed by: {', '.join(placed)}.")
    count = len(lines)
    where = ", ".join(str(line) for line in sorted(lines)[:10]) + (", ..." if count > 10 else "")
    return (
        f"edit {target.spot.shown}, {count} {'place' if count == 1 else 'places'} "
        f"({_lines(count)} {where})"
    )


def _replacements(
    old: str | None, new: str | None, edits: list[Replacement] | None, *, replace_all: bool
) -> list[Replacement]:
    """The replacements asked for, whichever way."""
    if edits is not None:
        if old is not None or new is not None:
            raise InvalidParamsError(
                "edits and old_string/new_string cannot be used together",
                hint="Put every replacement into edits.",
            )
        return edits
    if old is None or new is None:
        missing = "old_string" if old is None else "new_string"
        raise InvalidParamsError(
            f"{missing} is missing", hint="Send old_string and new_string, or edits."
        )
    return [Replacement(old_string=old, new_string=new, replace_all=replace_all)]


@tool(title="Apply patch", level="moderate", tier="standard", destructive=True)
def patch_apply(
    draft: Draft,
    patch: Annotated[str, Field(min_length=1, description="Unified diff (`diff -u`, `git diff`).")],
    path: Annotated[
        str | None,
        Field(description="The one file to patch; leave it out when the patch names its files."),
    ] = None,
    reverse: Annotated[bool, Field(description="Take the patch back.")] = False,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Apply a unified diff to one file, or to all files that the diff names, all or none.

    Every context line is checked.
    """
    draft.dry_run = dry_run
    patches = [reversed_patch(one) if reverse else one for one in parse(patch)]
    if path is not None and len(patches) > 1:
        raise InvalidParamsError(
            f"the patch changes {len(patches)} files, but path names one",
            hint="Leave path out; the patch names its files.",
        )
    if expected_revision is not None and len(patches) > 1:
        raise InvalidParamsError("expected_revision goes with a patch of one file")
    steps = [_sides(one, path) for one in patches]
    names = list(dict.fromkeys(name for step in steps for name in step if name is not None))
    if len(patches) == 1 and len(names) == 1:
        targets = {names[0]: draft.open(names[0], expected_revision=expected_revision)}
    else:
        targets = dict(zip(names, draft.open_all(names), strict=True))
    used: set[str] = set()
    for one, step in zip(patches, steps, strict=True):
        for name in {name for name in step if name is not None}:
            if name in used:
                raise PatchMalformedError(
                    f"the patch changes {name} twice", hint="Send one part for each file."
                )
            used.add(name)
        _apply_one(draft, one, step, targets)
    hunks = sum(len(one.hunks) for one in patches)
    shown = ", ".join(targets[name].spot.shown for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    verb = "take back" if reverse else "apply"
    return f"{verb} a patch of {hunks} {'hunk' if hunks == 1 else 'hunks'} to {shown}{more}"


def _sides(patch: FilePatch, path: str | None) -> tuple[str | None, str | None]:
    """The names before and after; None on a side where the file does not exist."""
    if path is not None:
        return (None if patch.creates else path, None if patch.deletes else path)
    if patch.old_path is None and patch.new_path is None:
        raise InvalidParamsError(
            "the patch does not name its file",
            hint="Send the file's name as path, or put ---/+++ lines into the patch.",
        )
    old = None if patch.creates else patch.old_path or patch.new_path
    new = None if patch.deletes else patch.new_path or patch.old_path
    if old is not None and new is not None and not patch.renames:
        # `diff -u file.orig file` names two files and means one: the new name is the target.
        old = new
    return old, new


def _apply_one(
    draft: Draft,
    patch: FilePatch,
    step: tuple[str | None, str | None],
    targets: dict[str, Target],
) -> None:
    """Put what one part of a patch does into the draft."""
    old, new = step
    if old is None:
        if new is not None:
            _create(draft, patch, targets[new])
        return
    source = targets[old]

    def make(text: str) -> EditList:
        return apply(text, patch, name=source.spot.shown).edits

    if new is None:
        draft.delete(source, emptied_by=make)
        return
    if new == old:
        if patch.hunks:
            draft.edit(source, make)
    else:
        draft.move(source, targets[new], make if patch.hunks else None)
    if patch.new_mode is not None and source.document is not None:
        mode = _executable(source.document.revision.mode, like=patch.new_mode)
        draft.set_mode(targets[new], mode)


def _executable(mode: int, *, like: int) -> int:
    """A mode with the right to execute as in a patch, which knows no other permission.

    Whoever may read the file may execute it then, so a private file stays private.
    """
    return mode | (mode & 0o444) >> 2 if like & 0o100 else mode & ~0o111


def _create(draft: Draft, patch: FilePatch, target: Target) -> None:
    text = created_text(patch)
    if target.document is not None:
        if target.document.text == text:
            raise PatchAlreadyAppliedError(
                f"{target.spot.shown}: already holds what the patch would make of it",
                hint="Nothing has to be done.",
            )
        raise PatchContextMismatchError(
            f"{target.spot.shown}: the patch creates this file, but it exists",
            hint="Send a patch against what the file holds.",
        )
    draft.write(target, text)
    if patch.new_mode is not None:
        draft.set_mode(target, _executable(target.spot.root.new_mode, like=patch.new_mode))


def _check_parent(target: Target, *, create: bool) -> None:
    """Refuse a file in a folder that does not exist, unless folders may be made."""
    parent = dirname(target.spot.place.path) or "."
    if not create and target.spot.root.place(parent).kind == "missing":
        raise NotFoundError(
            f"{target.spot.shown}: the folder {parent} does not exist",
            hint="Send createDirs: true to make it, or correct the path.",
            path=target.spot.shown,
        )


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"
