"""The tool for folders, and for files as a whole: manage_files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from filepact.errors import InvalidParamsError, TooLargeError
from filepact.tools.edit import DryRun, Expected
from filepact.tools.registry import tool
from filepact.workspace.draft import Draft

if TYPE_CHECKING:
    from filepact.workspace.folders import Inside

__all__ = ["manage_files"]


@tool(title="Move and delete", level="moderate", tier="standard", destructive=True)
def manage_files(
    draft: Draft,
    action: Annotated[Literal["create_dir", "move", "delete"], Field(description="Which.")],
    path: Annotated[str, Field(min_length=1, description="File or folder.")],
    to: Annotated[
        str | None, Field(min_length=1, description="move: the new path, which is free.")
    ] = None,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Create a folder; move, rename or delete a file or a folder with all it holds."""
    draft.dry_run = dry_run
    if (to is None) == (action == "move"):
        raise InvalidParamsError(
            "to goes with action move, and with no other",
            hint="Send the whole new path as to." if to is None else "Leave it out.",
        )
    if action == "create_dir":
        spot, there = draft.folders.find(path)
        if not there:
            draft.folders.make(path)
        return f"create the folder {spot.shown}"
    inside = draft.folders.inside(path)
    if inside is not None and expected_revision is not None:
        raise InvalidParamsError("expected_revision is of a file, and this is a folder")
    try:
        if to is None:
            return _delete(draft, path, inside, expected_revision)
        return _move(draft, path, to, inside, expected_revision)
    except TooLargeError as error:
        raise TooLargeError(
            error.message,
            hint="Ask the person to do this step: a file of this size could not be brought back.",
            **error.details,
        ) from None


def _delete(draft: Draft, path: str, inside: Inside | None, expected: str | None) -> str:
    if inside is None:
        target = draft.open(path, expected_revision=expected, there=True, itself=True)
        draft.delete(target, emptied_by=None)
        return f"delete {target.spot.shown}"
    spot, _ = draft.folders.find(path)
    names = [draft.folders.named(spot, one) for one in inside.files]
    for target in draft.open_all(names, there=names, itself=names):
        draft.delete(target, emptied_by=None)
    for folder in reversed(inside.folders):
        draft.folders.remove(draft.folders.named(spot, folder))
    return f"delete the folder {spot.shown} with {_count(inside)}"


def _move(draft: Draft, path: str, to: str, inside: Inside | None, expected: str | None) -> str:
    if inside is None:
        source, target = draft.open_all([path, to], there=[path], itself=[path, to])
        if expected is not None:
            draft.check_revision(source, expected)
        draft.move(source, target, None)
        return f"move {source.spot.shown} to {target.spot.shown}"
    (old, _), (new, there) = draft.folders.find(path), draft.folders.find(to)
    base = old.place.path
    if there or f"{new.place.path}/".startswith(f"{base}/"):
        raise InvalidParamsError(
            f"{to}: cannot take this name, "
            + ("a folder has it" if there else "it lies in the folder that is moved"),
            hint="Send the whole new path, which is free.",
            path=to,
        )
    sources = [draft.folders.named(old, one) for one in inside.files]
    renamed = [f"{new.place.path}{one[len(base) :]}" for one in inside.files]
    targets = [draft.folders.named(new, one) for one in renamed]
    names = [*sources, *targets]
    opened = draft.open_all(names, there=sources, itself=names)
    for folder in inside.folders:
        draft.folders.make(draft.folders.named(new, f"{new.place.path}{folder[len(base) :]}"))
    count = len(sources)
    for source, target in zip(opened[:count], opened[count:], strict=True):
        draft.move(source, target, None)
    for folder in reversed(inside.folders):
        draft.folders.remove(draft.folders.named(old, folder))
    return f"move the folder {old.shown} with {_count(inside)} to {new.shown}"


def _count(inside: Inside) -> str:
    return f"{len(inside.files):,} {'file' if len(inside.files) == 1 else 'files'}"
