"""The tools that change files: write_file, edit_file, manage_files; and history, which takes changes back."""

from __future__ import annotations

import time
from functools import partial
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Annotated, Literal

from filepact.domain.operation import Operation, decider_of
from filepact.errors import InvalidParamsError, NotAFileError, NotFoundError, TooLargeError
from filepact.text.multi_edit import EditRequest, place_all
from filepact.text.page import beginning, cut_to, size_of
from filepact.text.raw_bytes import shown_for_raw_bytes
from filepact.tools.answers import CallResult, fitted, receipt_facts, render_receipt
from filepact.tools.parameters import about
from filepact.tools.registry import ParameterName, tool
from filepact.values import dataclass
from filepact.workspace.draft import Draft
from filepact.workspace.folders import MOST_MOVED, MOST_OPENED
from filepact.workspace.history import SessionHistory
from filepact.workspace.location import in_other_letters, not_there
from filepact.workspace.target import changed_ends, check_revision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.domain.operation import Proposal
    from filepact.text.edit import EditList
    from filepact.text.locate import MatchResult
    from filepact.workspace.folders import FolderContents
    from filepact.workspace.target import Target

__all__ = ["DryRun", "Expected", "edit_file", "history", "manage_files", "write_file"]

Path = Annotated[str, about(min_length=1, description="File.")]
DryRun = Annotated[bool, about(description="Only show the diff, change nothing.")]
Expected = Annotated[
    str | None,
    about(
        description="Of read_file; refuse if anything in the file was changed since.", min_length=8
    ),
]


@dataclass(frozen=True, slots=True)
class EditParameters:
    """One replacement of several in one file."""

    old_string: str
    new_string: str
    replace_all: bool = False


@tool(title="Write file", level="moderate", tier="essential", destructive=True)
def write_file(
    draft: Draft,
    path: Path,
    content: Annotated[str, about(description="The whole text, or the text to append.")],
    append: Annotated[bool, about(description="Append instead of overwriting.")] = False,
    create_dirs: Annotated[
        bool, about(description="Make missing parent folders."), ParameterName("createDirs")
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
        draft.surprises = True
        draft.notes.append("You had not read this file; the diff shows what it held.")
    elif target.document is None and target.seen is not None:
        draft.notes.append("The file was deleted since you read it; this makes it again.")
    lines = draft.lines(target)
    if append and target.document is not None:
        # A part of its last line that goes on adds none.
        lines -= target.document.marks.total
        return f"append {lines} {_lines(lines)} to {target.location.shown}"
    return f"{'write' if target.document else 'create'} {target.location.shown}, {lines} {_lines(lines)}"


@tool(title="Edit file", level="moderate", tier="essential", destructive=True)
def edit_file(
    draft: Draft,
    path: Path,
    old_string: Annotated[
        str | None,
        about(
            description="Exact text to replace, unique in the file; whole lines are best.",
            empty=True,
        ),
    ] = None,
    new_string: Annotated[
        str | None, about(description="What to put in its place.", empty=True)
    ] = None,
    replace_all: Annotated[bool, about(description="Replace every occurrence.")] = False,
    edits: Annotated[
        list[EditParameters] | None,
        about(
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
            f"{target.location.shown}: is empty, there is nothing in it to replace",
            hint="Send its whole text with write_file.",
            path=target.location.shown,
        )
    wanted = [EditRequest(one.old_string, one.new_string, one.replace_all) for one in replacements]
    place = partial(
        place_all, wanted=wanted, name=target.location.shown, check=draft.deadline.check
    )
    made, placed = draft.edit(target, place)
    placements: tuple[MatchResult, ...] = () if placed is None else placed.placements
    ways = dict.fromkeys(one.words for one in placements if not one.exact)
    notes = changed_ends(target, "".join(one.new_string for one in replacements))
    notes += [f"Placed by: {', '.join(ways)}."] if ways else []
    notes += _bytes_left(target, replacements)
    draft.surprises |= bool(notes) or any(len(one.spans) > 1 for one in placements)
    draft.notes.extend(notes)
    if any(one.breaks for one in placements):
        draft.notes.append("Whole lines were removed, each with its line break.")
    count = sum(len(one.spans) for one in placements)
    spans = (
        []
        if target.document is None
        else _lines_of(made, target.document.text, draft.lines(target))
    )
    where = ", ".join(spans[:10]) + (", ..." if len(spans) > 10 else "")
    said = f"edit {target.location.shown}"
    if count != 1:
        said += f", {count} places"
    many = len(spans) != 1 or "-" in where
    return f"{said}, {'lines' if many else 'line'} {where}" if spans else said


def _lines_of(made: EditList, text: str, most: int) -> list[str]:
    """The lines of edits, as they are numbered after them, each stretch once, in a file of at most so many."""
    separator = "\n" if "\n" in text else "\r" if "\r" in text else "\n"
    found: dict[str, None] = {}
    line, at = 1, 0
    for one in made.edits:
        line += text.count(separator, at, one.start)
        last = line + one.text.count(separator)
        first, end = (
            max(min(number, most), 1) for number in (line, last - one.text.endswith(separator))
        )
        found[f"{first}-{end}" if end > first else f"{first}"] = None
        line, at = last, one.end
    return list(found)


def _bytes_left(target: Target, replacements: Sequence[EditParameters]) -> list[str]:
    """Notes on raw bytes that look the same as the characters that were replaced, and stay."""
    if target.hidden or target.document is None:
        return []
    text = target.document.text
    return [
        f"{beginning(one.old_string, 40)} is shown in {more} more place{'s' * (more > 1)} for bytes that are no "
        "text, which were left as they are; send the same again to replace them."
        for one in replacements
        if (more := shown_for_raw_bytes(text, one.old_string)) > 0 and one.old_string in text
    ]


def _replacements(
    old: str | None, new: str | None, edits: list[EditParameters] | None, *, replace_all: bool
) -> list[EditParameters]:
    """Collect the replacements from either form of the parameters."""
    if edits is not None:
        if old or new:
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
    return [EditParameters(old_string=old, new_string=new, replace_all=replace_all)]


def _to_be_written(missing: NotFoundError) -> NotFoundError:
    """The refusal of a file that is not there, with the way to make one."""
    hint = " ".join(filter(None, [missing.hint, "A new file is made with write_file."]))
    return NotFoundError(missing.message, hint=hint, **missing.details)


def _check_parent(draft: Draft, target: Target, *, create: bool) -> None:
    """Refuse a file in a folder that does not exist, unless folders may be made."""
    shown, parent = target.location.shown, dirname(target.location.place.path) or "."
    if not create and not draft.folders.has(target.location, parent):
        raise not_there(
            draft.folders.find(dirname(shown))[0],
            f"{shown}: the folder {parent} does not exist",
            "Send createDirs: true to make it, or correct the path.",
            path=shown,
        )


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"


# -- manage_files ----------------------------------------------------------------------------------


@tool(title="Move and delete", level="moderate", tier="standard", destructive=True)
def manage_files(
    draft: Draft,
    action: Annotated[Literal["create_dir", "move", "delete"], about(description="Which.")],
    path: Annotated[str, about(min_length=1, description="File or folder.")],
    to: Annotated[
        str | None, about(min_length=1, description="move: the new path, which is free.")
    ] = None,
    dry_run: DryRun = False,
    expected_revision: Expected = None,
) -> str:
    """Create a folder; move, rename or delete a file or a folder with all it holds."""
    draft.dry_run = dry_run
    if (to is None) == (action == "move"):
        raise InvalidParamsError(
            "action move needs to" if to is None else "to goes with action move only",
            hint="Send the whole new path as to." if to is None else "Leave it out.",
        )
    if action == "create_dir":
        location, there = draft.folders.find(path)
        if not there:
            draft.folders.make(path)
        return f"create the folder {location.shown}"
    inside = draft.folders.inside(path, MOST_OPENED if to is None else MOST_MOVED)
    if inside is not None and expected_revision is not None:
        raise InvalidParamsError("expected_revision is for a file, but this is a folder")
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


def _delete(draft: Draft, path: str, inside: FolderContents | None, expected: str | None) -> str:
    if inside is None:
        target = draft.open(path, expected_revision=expected, there=True, itself=True)
        draft.delete(target, emptied_by=None)
        return f"delete {target.location.shown}"
    location, _ = draft.folders.find(path)
    draft.folders.check_opened(location, inside)
    names = [draft.folders.named(location, one) for one in inside.files]
    for target in draft.open_all(names, there={*names}, itself={*names}):
        draft.delete(target, emptied_by=None)
    for folder in reversed(inside.folders):
        draft.folders.remove(draft.folders.named(location, folder))
    return f"delete the folder {location.shown} with {_count_files(inside)}"


def _move(
    draft: Draft, path: str, to: str, inside: FolderContents | None, expected: str | None
) -> str:
    if inside is None:
        try:
            source, target = draft.open_all([path, to], there=[path], itself=[path, to])
        except NotAFileError as error:
            inner = f"{to.rstrip('/')}/{basename(path.rstrip('/'))}"
            hint = f"Send the whole new path, which is {inner} if you mean to move it in there."
            raise NotAFileError(error.message, hint=hint, path=to) from None
        if expected is not None:
            check_revision(source, expected)
        draft.move(source, target, None)
        return f"move {source.location.shown} to {target.location.shown}"
    (old, _), (new, there) = draft.folders.find(path), draft.folders.find(to)
    if new.path == old.path and (letters := in_other_letters(new, to)):
        new, there = draft.folders.find(letters)
    base = old.place.path
    if there or f"{new.place.path}/".startswith(f"{base}/"):
        raise InvalidParamsError(
            f"{to}: cannot take this name, "
            + ("a folder has it" if there else "it lies in the folder that is moved"),
            hint="Send a whole new path that is free.",
            path=to,
        )
    if draft.move_folder(old, new, inside):
        return f"move the folder {old.shown} with {_count_files(inside)} to {new.shown}"
    sources = [draft.folders.named(old, one) for one in inside.files]
    renamed = [f"{new.place.path}{one[len(base) :]}" for one in inside.files]
    targets = [draft.folders.named(new, one) for one in renamed]
    names = [*sources, *targets]
    opened = draft.open_all(names, there={*sources}, itself={*names})
    for folder in inside.folders:
        name = draft.folders.named(new, f"{new.place.path}{folder[len(base) :]}")
        draft.folders.make(name, draft.folders.state(old, folder))
    count = len(sources)
    for source, target in zip(opened[:count], opened[count:], strict=True):
        draft.move(source, target, None)
    for folder in reversed(inside.folders):
        draft.folders.remove(draft.folders.named(old, folder))
    return f"move the folder {old.shown} with {_count_files(inside)} to {new.shown}"


def _count_files(inside: FolderContents) -> str:
    return f"{len(inside.files):,} {'file' if len(inside.files) == 1 else 'files'}"


# -- history ---------------------------------------------------------------------------------------


_LISTED = 20


@tool(title="Own changes", level="moderate", tier="standard", destructive=True)
def history(
    past: SessionHistory,
    action: Annotated[
        Literal["log", "diff", "undo", "redo", "status", "errors"],
        about(
            description="status: what waits for a person, or was decided; errors: this turn's new ones."
        ),
    ],
    change: Annotated[
        str | None,
        about(min_length=2, description="Its id; for undo also turn or session."),
    ] = None,
    wait: Annotated[int, about(ge=0, le=25, description="For status: seconds to wait.")] = 0,
    dry_run: DryRun = False,
) -> str | CallResult:
    """List, show, undo or redo your own changes.

    undo of a change that waits takes it back.
    """
    if wait and action != "status":
        raise InvalidParamsError("wait goes with action status", hint="Leave it out.")
    if action in ("undo", "redo"):
        go_back = past.undo if action == "undo" else past.redo
        receipt = go_back(change, dry_run=dry_run)
        text = render_receipt(receipt, page=past.page)
        return CallResult(text, receipt=receipt_facts(receipt))
    if action == "errors":
        return cut_to(past.errors(), past.page)
    if action == "diff":
        return _shown(past, past.change(change))
    if change is not None:
        if wait:
            past.status(wait, past.change(change).id)
        return _line(past.change(change), time.time())
    if action == "log":
        done = past.log(_LISTED + 1)
        lines = [_line(one, time.time()) for one in done[:_LISTED]]
        if len(done) > _LISTED:
            lines.append(f"[the newest {_LISTED}; name others by their ids]")
        return cut_to("\n".join(lines), past.page) or "You have changed nothing yet."
    lines = [_line(one, time.time()) for one in past.status(wait)]
    return cut_to("\n".join(lines), past.page) or "Nothing waits."


def _shown(past: SessionHistory, change: Operation | Proposal) -> str:
    line = _line(change, time.time())
    return f"{line}\n{fitted(past.diff(change), past.page - size_of(line) - 1)}"


def _line(change: Operation | Proposal, now: float) -> str:
    """Render one change as a line: id, state, age and summary."""
    seconds = max(0, int(now - change.created))
    ago = f"{seconds} s" if seconds < 120 else f"{seconds // 60:,} min"
    return f"{change.id} {_state(change)} | {ago} ago | {change.summary}"


def _state(change: Operation | Proposal) -> str:
    if isinstance(change, Operation):
        if change.undone_by is not None:
            return f"undone by {change.undone_by}"
        by = f", approved by {decider_of(change.approved_by)}" if change.approved_by else ""
        return change.state.replace("_", " ") + by
    if change.state == "proposed":
        return f"waits for a person ({change.rule})"
    if change.state == "superseded":
        return f"superseded by {change.superseded_by}"
    return {"committed": "approved"}.get(change.state, change.state) + (
        f": {change.reason}" if change.reason else ""
    )
