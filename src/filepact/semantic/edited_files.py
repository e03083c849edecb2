"""What the edits of a server make of files: folded into a text each, and carried over into a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.errors import (
    FilepactError,
    NoServerError,
    NotFoundError,
    ServerRefusedError,
    StaleFileError,
)
from filepact.lsp.features import FileStep, TextStep
from filepact.text.edit import Edit, EditList
from filepact.text.lines import LineIndex, Position, adopt_line_ends
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from filepact.lsp.features import Step
    from filepact.text.lines import Unit
    from filepact.workspace.draft import Draft
    from filepact.workspace.target import Target

__all__ = [
    "FileEdits",
    "FileResult",
    "ServerEdits",
    "carry_out",
    "count_places",
    "names_in",
    "no_servers",
    "offset_of",
    "replaced_by",
    "steps_in",
]


def no_servers() -> NoServerError:
    """The refusal of what only a language server can do, where there is none."""
    return NoServerError(
        "language servers are switched off, or none is installed",
        hint="Make the change with write_file, or ask the person to switch them on.",
    )


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a server's edits make of one file.

    Attributes:
        path: The file, absolute; of one that gets another name, the new one.
        old: Its name before, absolute; empty for a new file.
        before: The text that the edits start from; empty for a new file.
        after: The text that it is to hold; None for a file that is to go.
        over: Whether a file that has the name already gives way.
    """

    path: str
    old: str
    before: str
    after: str | None
    over: bool = False


@dataclass(frozen=True, slots=True)
class ServerEdits:
    """A change that a server would make.

    Attributes:
        server: Its name.
        summary: One line that says what it is.
        files: What becomes of files, in path order.
        notes: What a reader should know besides.
    """

    server: str
    summary: str
    files: tuple[FileResult, ...]
    notes: tuple[str, ...] = ()


class FileEdits:
    """Files under the steps of a server, which happen one after the other.

    Edits of one file between two steps that make, move or delete files are all of the same text.
    """

    def __init__(self, texts: Mapping[str, str], unit: Unit) -> None:
        self._texts = texts
        self._unit = unit
        self._now: dict[str, str | None] = {}
        self._from = {path: path for path in texts}
        self._over: set[str] = set()
        self._edits: dict[str, list[tuple[Position, Position, str]]] = {}
        self._wrong = ""

    def take(self, step: Step) -> None:
        """One step more."""
        if isinstance(step, TextStep):
            self._edits.setdefault(step.path, []).extend(step.edits)
            return
        self._flush()
        there = self._text(step.path) is not None
        if step.kind == "create":
            if there and not step.overwrite:
                self._wrong = self._wrong or ("" if step.lenient else "a file to be made is there")
                return
            self._over |= {step.path} if there else set()
            self._from[step.path] = ""
            self._now[step.path] = ""
            return
        if not there:
            missing = "what is to be moved or deleted is not there, is a folder, or is no text"
            self._wrong = self._wrong or ("" if step.lenient and step.kind == "delete" else missing)
            return
        if step.kind == "rename":
            if self._text(step.new) is not None and not step.overwrite:
                self._wrong = self._wrong or ("" if step.lenient else "a name is taken")
                return
            self._over |= {step.new} if step.overwrite else set()
            self._from[step.new] = self._from.pop(step.path, "")
            self._now[step.new] = self._text(step.path)
        self._from.pop(step.path, None)
        self._now[step.path] = None

    def results(self) -> tuple[FileResult, ...]:
        """What becomes of each file that changes, in path order.

        Raises:
            FilepactError: A step does not fit.
        """
        self._flush()
        if self._wrong:
            raise ServerRefusedError(self._wrong)
        moved = {old for new, old in self._from.items() if self._now.get(new) is not None}
        found: list[FileResult] = []
        for path, after in sorted(self._now.items()):
            if after is None:
                if path in self._texts and path not in moved:
                    found.append(FileResult(path, path, self._texts[path], None))
                continue
            # What is made under a name that was there is another text of it.
            old = self._from.get(path) or (path if path in self._texts else "")
            before = self._texts.get(old, "")
            # What was deleted first, and is then moved over, is replaced.
            over = path in self._over or (old != path and path in self._texts)
            if old != path or before != after:
                found.append(FileResult(path, old, before, after, over))
        self._prove(found)
        return tuple(found)

    def _prove(self, found: Sequence[FileResult]) -> None:
        """Make sure that the results, done at once, leave what the steps leave that are done one by one.

        Raises:
            ServerRefusedError: They do not.
        """
        wanted = {**self._texts, **self._now}
        left: dict[str, str | None] = {**self._texts}
        left |= {one.old: None for one in found if one.old and one.old != one.path}
        left |= {one.path: one.after for one in found}
        if any(left.get(path) != text for path, text in wanted.items()):
            raise ServerRefusedError("its steps cannot be done as one change")

    def _text(self, path: str) -> str | None:
        return self._now[path] if path in self._now else self._texts.get(path)

    def _flush(self) -> None:
        edits, self._edits = self._edits, {}
        for path, some in edits.items():
            text = self._text(path)
            if text is None:
                self._wrong = self._wrong or "a file to be edited is not there, or is no text"
                continue
            try:
                self._now[path] = _edited(text, some, self._unit)
            except (FilepactError, ValueError):
                self._wrong = self._wrong or "edits overlap, or lie outside of their text"


def _edited(text: str, edits: Sequence[tuple[Position, Position, str]], unit: Unit) -> str:
    """A text after edits that happen at once, with the line ends that it has.

    Raises:
        ValueError: They overlap.
        InvalidParamsError: One lies outside of the text.
    """
    index = LineIndex(text)
    placed = [
        Edit(
            offset_of(index, text, start, unit),
            offset_of(index, text, end, unit),
            adopt_line_ends(new, text),
        )
        for start, end, new in edits
    ]
    # Insertions at one place stay in their order, and before what is replaced from there on.
    placed.sort(key=lambda one: (one.start, one.end))
    return EditList(tuple(placed)).apply(text)


def offset_of(index: LineIndex, text: str, position: Position, unit: Unit) -> int:
    """The offset of a server's position; one behind the last line is the end of the text, as in editors."""
    if position.line >= index.lines:
        return len(text)
    return index.offset(position, unit)


def steps_in(value: Any) -> tuple[Step, ...]:
    """The steps of an answer, which is made of them, or of code actions that have them."""
    found: list[Step] = []
    for one in value or ():
        if isinstance(one, TextStep | FileStep):
            found.append(one)
        else:
            found += getattr(one, "steps", None) or ()
            break  # one action is done, the first
    return tuple(found)


def replaced_by(new: str, value: Any, texts: Mapping[str, str], unit: Unit) -> set[str]:
    """The texts that give way to exactly this one, in files that nothing else is done with."""
    found: set[str] = set()
    for one in steps_in(value):
        text = texts.get(one.path)
        if text is None or isinstance(one, FileStep):
            continue
        index = LineIndex(text)
        for start, end, put in one.edits:
            if put == new:
                first, last = (offset_of(index, text, each, unit) for each in (start, end))
                found.add(text[first:last])
    return found


def names_in(value: Any) -> set[str]:
    """The absolute paths that an answer names."""
    found: set[str] = set()
    for one in value or ():
        if isinstance(one, FileStep):
            found |= {name for name in (one.path, one.new) if name}
        elif getattr(one, "steps", None):
            found |= names_in(one.steps)
        elif isinstance(getattr(one, "path", None), str):
            found.add(one.path)
    return found


# -- into a draft ------------------------------------------------------------------------


def carry_out(draft: Draft, edits: ServerEdits) -> dict[str, Target]:
    """Put what a server would make of files into a draft.

    Args:
        draft: Nothing is opened in it yet.
        edits: The change, and the texts that it starts from.

    Returns:
        The files, by absolute path.

    Raises:
        StaleFileError: A file is not what the server was shown.
        FilepactError: A rule refuses one of the files, or it cannot hold the text.
    """
    before = [one.old for one in edits.files if one.old]
    names = list(dict.fromkeys([*before, *(one.path for one in edits.files)]))
    away = {one.old for one in edits.files if one.after is None or one.old not in ("", one.path)}
    opened = draft.open_all(names, there=before, itself=away)
    targets = dict(zip(names, opened, strict=True))
    taken = away & {one.path for one in edits.files if one.after is not None}
    for one in edits.files:
        source = targets[one.old or one.path]
        held = None if source.document is None else source.document.text
        if source.hidden or held != (one.before if one.old else None):
            raise StaleFileError(
                f"{source.location.shown}: has changed since the language server saw it",
                hint="Send it again, and the server is asked again.",
                path=source.location.shown,
            )
        _put(draft, one, source, targets[one.path], taken)
    return targets


def count_places(one: FileResult) -> int:
    """How many places of a file differ, line by line; at least one."""
    return max(len(EditList.between(one.before, one.after or "").edits), 1)


def _put(
    draft: Draft, one: FileResult, source: Target, target: Target, taken: Collection[str]
) -> None:
    """Put what becomes of one file into a draft; ``taken`` are names that files leave and others get."""
    after = one.after

    def make(text: str) -> EditList:
        if text != one.before:
            # What the session knows of the file is older than what the server was shown.
            raise NotFoundError(f"{source.location.shown}: holds another text")
        return EditList.between(text, "" if after is None else after)

    if after is None:
        draft.delete(source, emptied_by=make)
    elif not one.old:
        draft.write(target, after)
    elif one.old == one.path:
        draft.edit(source, make)
    else:
        edited = make if after != one.before else None
        over = one.over or one.path in taken
        draft.move(source, target, edited, over=over, taken=one.old in taken)
