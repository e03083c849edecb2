"""The tool that changes many files at once: patch_apply."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, Annotated, Literal

from filepact.domain.document import LINK
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
    PatchAlreadyAppliedError,
    PatchAmbiguousError,
    PatchContextMismatchError,
    PatchMalformedError,
)
from filepact.text.edit import EditList
from filepact.tools.edit import DryRun, Expected
from filepact.tools.parameters import about
from filepact.tools.registry import tool
from filepact.values import dataclass, replace
from filepact.workspace.draft import Draft

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from filepact.text.edit import RequestMatch
    from filepact.text.patch import FilePatch
    from filepact.workspace.target import Target

    _Step = tuple[str | None, str | None]

__all__ = ["patch_apply"]


@tool(title="Apply patch", level="moderate", tier="standard", destructive=True)
def patch_apply(
    draft: Draft,
    patch: Annotated[
        str,
        about(min_length=1, description="Unified diff, or `*** Begin Patch` ... `*** End Patch`."),
    ],
    path: Annotated[
        str | None,
        about(description="Only for a patch that does not name its file."),
    ] = None,
    reverse: Annotated[bool, about(description="Take the patch back.")] = False,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Apply a patch: change, create, delete and rename files, all or none.

    Every context line is checked.
    """
    # A server that is asked for none needs nothing of it.
    from filepact.text.patch import is_envelope, parse  # noqa: PLC0415
    from filepact.text.patch import reverse as reversed_patch  # noqa: PLC0415

    draft.dry_run = dry_run
    patches = [reversed_patch(one) for one in parse(patch)[::-1]] if reverse else [*parse(patch)]
    if path is not None and len(patches) > 1:
        raise InvalidParamsError(
            f"the patch changes {len(patches)} files, but path names one",
            hint="Leave path out; the patch names its files.",
        )
    if expected_revision is not None and len(patches) > 1:
        raise InvalidParamsError("expected_revision goes with a patch of one file")
    patches = _without_replaced([_as_written(draft, one, path) for one in patches])
    if path is not None and is_envelope(patch):
        _check_names(patches[0], path)
    steps = [_sides(one, path) for one in patches]
    names = list(dict.fromkeys(name for step in steps for name in step if name is not None))
    together = _by_file(patches, steps)
    there = {
        old
        for parts, (old, new) in together
        if old is not None and not (old == new and _only_begins(parts[-1]))
    }
    # As in Git, what is deleted or renamed is a link itself, and not what it leads to.
    itself = {old for old, new in steps if old is not None and old != new}
    try:
        if len(patches) == 1 and len(names) == 1:
            (name,) = names
            target = draft.open(
                name,
                expected_revision=expected_revision,
                there=name in there,
                itself=name in itself,
            )
            targets = {name: target}
        else:
            opened = draft.open_all(names, there=there, itself=itself)
            targets = dict(zip(names, opened, strict=True))
    except NotFoundError as missing:
        raise _perhaps_renamed(draft, missing, patches) from None
    moves = [step for _, step in together if _renames(step)]
    given_up, taken = {old for old, _ in moves}, {new for _, new in moves}
    for parts, step in together:
        _apply_one(draft, parts, step, targets, given_up & taken)
    shown = {name: target.location.shown for name, target in targets.items()}
    words = [_words(parts, step, targets) for parts, step in together]
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    if all(old == new for _, (old, new) in together):
        hunks = _hunks(patches)
        return f"{'take back' if reverse else 'apply'} a patch of {hunks} to " + (
            ", ".join(shown[name] for name in names[:5]) + more
        )
    return ("take back: " if reverse else "") + ", ".join(words[:5]) + more


def _hunks(patches: Sequence[FilePatch]) -> str:
    count = sum(len(one.hunks) for one in patches)
    return f"{count} {'hunk' if count == 1 else 'hunks'}"


def _words(parts: Sequence[FilePatch], step: _Step, targets: Mapping[str, Target]) -> str:
    """The change of one file in words."""
    old, new = step
    shown = {name: target.location.shown for name, target in targets.items()}
    if new is None:
        return f"delete {shown[old or '']}"
    over = targets[new].document is not None
    if old is None:
        return f"{'overwrite' if over else 'create'} {shown[new]}"
    if old == new:
        return f"patch {shown[new]} ({_hunks(parts)})"
    edited = f" ({_hunks(parts)})" if any(one.hunks for one in parts) else ""
    return f"rename {shown[old]} to {shown[new]}{', which it overwrites' * over}{edited}"


def _perhaps_renamed(
    draft: Draft, missing: NotFoundError, patches: Sequence[FilePatch]
) -> NotFoundError:
    """The refusal of a new name that nothing has, with the way to say that a file gets it."""
    for one in patches:
        old, new = one.old_path, one.new_path
        if old is None or new is None or old == new or missing.details.get("path") != new:
            continue
        if _is_file(draft, old):
            hint = (
                f"The patch is for {old}. To change it, name it in both lines, --- and +++; to rename it, "
                f"put three lines above them: diff --git a/{old} b/{new}, rename from {old}, "
                f"rename to {new}."
            )
            return NotFoundError(missing.message, hint=hint, **missing.details)
    return missing


def _as_written(draft: Draft, patch: FilePatch, path: str | None) -> FilePatch:
    """The patch of an envelope for the file whose name has the quotes, where that is the one that is there."""
    plain, written = patch.old_path, patch.written
    if not written or plain is None or written == plain:
        return patch
    if path is None and _is_file(draft, written) and _is_file(draft, plain):
        raise PatchAmbiguousError(
            f"{written}: both a file with these quotes in its name and {plain} are there",
            hint=f"Name {plain} without quotes if that is meant; for the other one send its name, with "
            "the quotes, as path as well.",
            path=plain,
        )
    if path != written and (path is not None or not _is_file(draft, written)):
        return patch
    new = written if patch.new_path == plain else patch.new_path
    return replace(patch, old_path=written, new_path=new)


def _without_replaced(patches: list[FilePatch]) -> list[FilePatch]:
    """The parts without the deletions of files that a later part makes anew, whatever they held."""
    made = {one.new_path: at for at, one in enumerate(patches) if one.creates and one.whole}
    return [
        one
        for at, one in enumerate(patches)
        if not (one.deletes and one.whole and made.get(one.old_path, -1) > at)
    ]


def _is_file(draft: Draft, name: str) -> bool:
    try:
        draft.folders.find(name)
    except NotAFileError:
        return True
    except FilepactError:
        return False
    return False


def _check_names(patch: FilePatch, path: str) -> None:
    """Refuse a path beside a patch that always names its file, unless both are the same."""
    name = patch.old_path or patch.new_path or ""
    same = path == name or (normpath(f"/{path}").endswith(normpath(f"/{name}")))
    if not same or patch.renames:
        raise InvalidParamsError(
            f"path is {path}, but the patch names {patch.new_path if same else name}",
            hint="Leave path out; the patch names its files.",
        )


def _sides(patch: FilePatch, path: str | None) -> _Step:
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


def _by_file(
    patches: Sequence[FilePatch], steps: Sequence[_Step]
) -> list[tuple[list[FilePatch], _Step]]:
    """The parts of a patch that belong together: several may edit one file, one after another."""
    found: dict[_Step, list[FilePatch]] = {}
    used: dict[tuple[str, bool], _Step] = {}
    for patch, step in zip(patches, steps, strict=True):
        for end, name in enumerate(step):
            if name is None:
                continue
            # A file may take the name that another one gives up: names are exchanged, or handed on.
            for side in (bool(end),) if _renames(step) else (False, True):
                before = used.setdefault((name, side), step)
                if before != step or (step in found and step[0] != step[1]):
                    raise PatchMalformedError(
                        f"the patch changes {name} twice",
                        hint="Only edits may follow each other; send the other changes one by one.",
                    )
        found.setdefault(step, []).append(patch)
    return [(parts, step) for step, parts in found.items()]


def _renames(step: _Step) -> bool:
    return None not in step and step[0] != step[1]


@dataclass(frozen=True, slots=True)
class _Edits:
    """A patch's edits of one text, and sentences about how they were placed."""

    edits: EditList
    notes: tuple[str, ...]
    steps: tuple[tuple[RequestMatch, ...], ...] = ()
    every: Literal["none"] = "none"
    exact: bool = True


def _apply_one(
    draft: Draft,
    patches: list[FilePatch],
    step: _Step,
    targets: dict[str, Target],
    handed_on: Container[str | None] = (),
) -> None:
    """Put what the parts of a patch for one file do into the draft.

    Args:
        draft: The draft.
        patches: The parts.
        step: The names before and after.
        targets: All files of the patch.
        handed_on: Names that one file of the patch gives up, and another takes.
    """
    old, new = step
    patch = patches[-1]
    if old is None:
        if new is not None:
            _create(draft, patch, targets[new])
        return
    source = targets[old]
    if source.document is None and new == old and _only_begins(patch):
        _create(draft, patch, source)
        return

    from filepact.text.patch import apply  # noqa: PLC0415 - loaded by now

    def make(text: str) -> _Edits:
        notes: list[str] = []
        steps: list[tuple[RequestMatch, ...]] = []
        exact = True
        edits, whole = EditList(()), text
        for one in patches:
            applied = apply(whole, one, name=source.location.shown, check=draft.deadline.check)
            if draft.session.agent and source.seen is None:
                # A number that was made up says no more than none, and what is removed says where.
                doubtful = [
                    far for far in applied.far if far[1] != 1 and not one.hunks[far[0] - 1].removes
                ]
                if doubtful:
                    raise _unread(source, *doubtful[0])
            told = applied.notes if source.seen else (*applied.notes, *applied.twins)
            notes.extend(f"{source.location.shown}: {note}" for note in told)
            edits, whole = applied.edits, applied.edits.apply(whole)
            steps.append(applied.asked)
            exact &= applied.exact
        if len(patches) > 1:
            edits = EditList.between(text, whole)
        return _Edits(edits, tuple(notes), tuple(steps), exact=exact)

    if new is None:
        _check_kind(patch, source)
        draft.delete(source, emptied_by=None if patch.whole else make)
        return
    made = None
    if new == old:
        if any(one.hunks for one in patches):
            _, made = draft.edit(source, make)
    else:
        if targets[new].document is not None and patch.whole and new not in handed_on:
            draft.notes.append(f"{targets[new].location.shown} existed and was overwritten.")
            draft.surprises |= targets[new].unread
        made = draft.move(
            source,
            targets[new],
            make if patch.hunks else None,
            over=patch.whole or new in handed_on,
            taken=old in handed_on,
        )
    if made is not None:
        draft.notes.extend(made.notes)
        draft.surprises |= bool(made.notes)
    modes = [one.new_mode for one in patches if one.new_mode is not None]
    if modes and source.document is not None and not source.document.revision.is_link:
        mode = _executable(source.document.revision.mode, like=modes[-1])
        draft.set_mode(targets[new], mode)


def _check_kind(patch: FilePatch, target: Target) -> None:
    """Refuse to delete a file that the patch says is a link, and the other way round."""
    if patch.old_mode is None or target.document is None:
        return
    if (patch.old_mode == LINK) != target.document.revision.is_link:
        words = ("a link", "a file")
        said, there = words if patch.old_mode == LINK else words[::-1]
        raise PatchContextMismatchError(
            f"{target.location.shown}: the patch deletes {said}, but it is {there}",
            hint="Look at it with directory_tree, and make the patch for what is there.",
            path=target.location.shown,
        )


def _unread(target: Target, hunk: int, stated: int, found: int) -> PatchContextMismatchError:
    """The refusal of a hunk that would go far away in a file that nobody has looked into."""
    return PatchContextMismatchError(
        f"{target.location.shown}: hunk {hunk} says line {stated}, and its lines stand at line {found} only; "
        "you have not read this file, so what is meant may have been rewritten",
        hint=f"Read the file around the lines {stated} and {found}, then send the patch again; if line "
        f"{found} is meant, say so in the hunk's header.",
        path=target.location.shown,
        hunk=hunk,
        line=stated,
        twin=found,
    )


def _only_begins(patch: FilePatch) -> bool:
    """Whether a patch adds lines to nothing, which is to create the file where it is missing."""
    same = patch.old_path == patch.new_path
    return (
        same
        and bool(patch.hunks)
        and all(hunk.old_start == 0 and not hunk.old for hunk in patch.hunks)
    )


def _executable(mode: int, *, like: int) -> int:
    """A mode with the right to execute as in a patch, which knows no other permission.

    Whoever may read the file may execute it then, so a private file stays private.
    """
    return mode | (mode & 0o444) >> 2 if like & 0o100 else mode & ~0o111


def _create(draft: Draft, patch: FilePatch, target: Target) -> None:
    if patch.new_mode == LINK:
        raise PatchMalformedError(
            f"line {patch.line} of the patch deletes a link, and taking it back would make one",
            hint="Use undo, which knows where the link led.",
            line=patch.line,
        )
    from filepact.text.patch import created_text  # noqa: PLC0415 - loaded by now

    text = created_text(patch)
    if target.document is not None:
        if not target.hidden and target.document.text == text:
            raise PatchAlreadyAppliedError(
                f"{target.location.shown}: already holds what the patch would make of it",
                hint="Nothing has to be done.",
            )
        if not patch.whole:
            raise PatchContextMismatchError(
                f"{target.location.shown}: the patch creates this file, but it exists",
                hint="Send a patch against what the file holds.",
            )
        draft.notes.append(f"{target.location.shown} existed and was overwritten.")
        draft.surprises |= target.unread
    draft.write(target, text)
    if patch.new_mode is not None:
        draft.set_mode(target, _executable(target.location.new_mode, like=patch.new_mode))
