"""The two tools that change one file: write_file, edit_file."""

from __future__ import annotations

from posixpath import dirname
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from filepact.errors import InvalidParamsError, NotFoundError
from filepact.text.lines import line_of
from filepact.text.sequence import Wanted, place_all
from filepact.tools.registry import Alias, tool
from filepact.workspace.draft import Draft

if TYPE_CHECKING:
    from filepact.text.edit import EditList
    from filepact.text.locate import Placement
    from filepact.workspace.target import Target

__all__ = ["DryRun", "Expected", "edit_file", "write_file"]

Path = Annotated[str, Field(min_length=1, description="File.")]
DryRun = Annotated[bool, Field(description="Only show the diff, change nothing.")]
Expected = Annotated[
    str | None,
    Field(
        description="Of read_file; refuse if anything in the file was changed since.", min_length=8
    ),
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
        _check_parent(draft, target, create=create_dirs)
    draft.write(target, content, append=append)
    if target.unread and not append:
        draft.notes.append("You had not read this file; the diff shows what it held.")
    elif target.document is None and target.seen is not None:
        draft.notes.append("The file was deleted since you read it; this makes it again.")
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
            description="Several replacements, one after the other, all or none; instead of "
            "old_string and new_string.",
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
    try:
        target = draft.open_existing(path, expected_revision=expected_revision)
    except NotFoundError as missing:
        raise _to_be_written(missing) from None
    if (
        target.document is not None
        and not target.hidden
        and not target.document.text
        and replacements[0].old_string == ""
    ):
        raise InvalidParamsError(
            f"{target.spot.shown}: is empty, there is nothing in it to replace",
            hint="Send its whole text with write_file.",
            path=target.spot.shown,
        )
    placements: list[Placement] = []

    def make(text: str) -> EditList:
        wanted = [Wanted(one.old_string, one.new_string, one.replace_all) for one in replacements]
        placed = place_all(text, wanted, name=target.spot.shown, check=draft.deadline.check)
        placements[:] = placed.placements
        return placed.edits

    made = draft.edit(target, make)
    ways = dict.fromkeys(one.words for one in placements if not one.exact)
    if ways:
        draft.notes.append(f"Placed by: {', '.join(ways)}.")
    lines = [line for one in placements for line in one.lines]
    count = len(lines)
    if target.moved and target.document is not None:
        # They were placed in the text of before.
        lines = list({line_of(target.document.text, one.start): None for one in made.edits})
    where = ", ".join(map(str, sorted(lines)[:10])) + (", ..." if len(lines) > 10 else "")
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


def _to_be_written(missing: NotFoundError) -> NotFoundError:
    """The refusal of a file that is not there, with the way to make one."""
    hint = " ".join(filter(None, [missing.hint, "A new file is made with write_file."]))
    return NotFoundError(missing.message, hint=hint, **missing.details)


def _check_parent(draft: Draft, target: Target, *, create: bool) -> None:
    """Refuse a file in a folder that does not exist, unless folders may be made."""
    parent = dirname(target.spot.place.path) or "."
    if not create and not draft.folders.has(target.spot, parent):
        raise NotFoundError(
            f"{target.spot.shown}: the folder {parent} does not exist",
            hint="Send createDirs: true to make it, or correct the path.",
            path=target.spot.shown,
        )


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"
