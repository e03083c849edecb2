"""The edits of a server, applied to texts of files: folded into a text each, and carried over into a draft."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoServerError,
    NotAFileError,
    NotFoundError,
    ServerRefusedError,
    StaleFileError,
    TimedOutError,
)
from filepact.text.edit import Edit, EditList
from filepact.text.lines import LineIndex, Position, adopt_line_ends
from filepact.values import dataclass
from filepact.workspace.folders import MOST_OPENED
from filepact_diagnostics.lsp.features import FileStep, TextStep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import Revision
    from filepact.text.lines import Unit
    from filepact.workspace.draft import Draft
    from filepact.workspace.target import Target
    from filepact_diagnostics.lsp.features import QueryAnswer, Step, TextRange

__all__ = [
    "BY_HAND",
    "FileEdits",
    "FileResult",
    "KeptNames",
    "ServerEdits",
    "answered",
    "carry_out",
    "count_places",
    "names_in",
    "no_servers",
    "offset_of",
    "replaced_by",
    "steps_in",
    "with_contents",
]


BY_HAND: Final = "Make the change with write_file."


def no_servers() -> NoServerError:
    """The refusal of what only a language server can do, where there is none."""
    return NoServerError(
        "language servers are switched off, or none is installed",
        hint="Make the change with write_file, or ask the person to switch them on.",
    )


def answered(answer: QueryAnswer, what: str) -> QueryAnswer:
    """An answer that is one.

    Raises:
        NoServerError: The server is not there.
        ServerRefusedError: It does not do it.
        TimedOutError: It has not answered in time.
    """
    if answer.state == "answered":
        return answer
    if answer.state == "refused":
        raise ServerRefusedError(
            f"{answer.server} does not {what} there: {answer.reason}", hint=BY_HAND
        )
    if answer.state == "late":
        raise TimedOutError(
            f"{answer.server} has not answered in time: {answer.reason}",
            hint="Call load, which waits for it, and send it again.",
        )
    raise NoServerError(
        f"{answer.server} cannot {what}: {answer.reason}",
        hint="server_status says what it is doing; reload restarts it.",
    )


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of a server's edits in one file.

    Attributes:
        path: The file, absolute; of one that gets another name, the new one.
        old: Its name before, absolute; empty for a new file.
        before: The text that the edits start from; empty for a new file.
        after: The text that it is to hold; None for a file that is to go.
        over: Whether a file that has the name already gives way.
        kind: A text; any file, which gets another name and stays what it is; or a folder, with all that is in it.
    """

    path: str
    old: str
    before: str
    after: str | None
    over: bool = False
    kind: Literal["text", "file", "folder"] = "text"


@dataclass(frozen=True, slots=True)
class ServerEdits:
    """A change that a server would make.

    Attributes:
        server: Its name.
        summary: One line that says what it is.
        files: What becomes of files, in path order.
        notes: What a reader should know besides.
        left: Places in code that seem to mean what gets another name, and keep the old one.
        steps: The server's own steps, which what becomes of folders is compared with.
    """

    server: str
    summary: str
    files: tuple[FileResult, ...]
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


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
        # Folders that were moved: the names that they have, and had.
        self._folders: dict[str, str] = {}
        self._edits: dict[str, list[tuple[Position, Position, str]]] = {}
        self._wrong = ""

    def take(self, step: Step) -> None:
        """Take in the next step."""
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
        if not there and step.kind == "rename":
            self._move_folder(step)
            return
        if not there:
            missing = "what is to be deleted is not there, is a folder, or is no text"
            self._wrong = self._wrong or ("" if step.lenient else missing)
            return
        if step.kind == "rename":
            if self._text(step.new) is not None and not step.overwrite:
                self._wrong = self._wrong or ("" if step.lenient else "a name is taken")
                return
            self._over |= {step.new} if step.overwrite else set()
            self._rename(step.path, step.new)
            return
        self._from.pop(step.path, None)
        self._now[step.path] = None

    def _rename(self, path: str, new: str) -> None:
        if path != new:
            self._from[new] = self._from.pop(path, "")
            self._now[new], self._now[path] = self._text(path), None

    def _move_folder(self, step: FileStep) -> None:
        """Move what is no known text as a folder; the draft shows whether it is one."""
        old, new = step.path, step.new
        names = [path for path in {*self._texts, *self._now} if self._text(path) is not None]
        if _moved(new, {old: old}) or any(
            _moved(one, {new: new}) for one in (*names, *self._folders)
        ):
            self._wrong = self._wrong or ("" if step.lenient else "a name is taken")
            return
        was = _moved(old, self._folders)
        if not was and _moved(old, {one: one for one in self._folders.values()}):
            self._wrong = self._wrong or "a folder to be moved is no longer there"
            return
        for path in names:
            self._rename(path, _moved(path, {old: new}) or path)
        self._folders = {_moved(now, {old: new}) or now: one for now, one in self._folders.items()}
        self._folders[new] = was or old

    def results(self) -> tuple[FileResult, ...]:
        """The result for each changed file, in path order.

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
        folders = sorted(self._folders.items())
        return (*found, *(FileResult(now, was, "", "", kind="folder") for now, was in folders))

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


def _moved(path: str, folders: Mapping[str, str]) -> str:
    """The name that a path has where folders have others, by the innermost of them; empty where it lies in none."""
    at = path
    while at and at not in folders:
        at = at.rpartition("/")[0]
    return folders[at] + path[len(at) :] if at else ""


def with_contents(
    edits: ServerEdits, contents: Mapping[str, tuple[Iterable[str], Iterable[str]]]
) -> tuple[list[FileResult], list[tuple[str, str]]]:
    """The results for files, with all in moved folders; and those for folders, in order.

    Args:
        edits: The change.
        contents: The files, and the folders, of each folder that is moved: the innermost belong to all above them.

    Raises:
        ServerRefusedError: All at once is not what the server's steps come to one after the other.
    """
    moves = {one.old: one.path for one in edits.files if one.kind == "folder"}
    found = [one for one in edits.files if one.kind != "folder"]
    known = {one.old or one.path for one in found}
    files = {path for some, _ in contents.values() for path in some}
    found += [
        FileResult(_moved(path, moves), path, "", "", kind="file") for path in sorted(files - known)
    ]
    folders = sorted({path for _, some in contents.values() for path in some})
    ends = {one: _moved(one, moves) for one in folders}
    there = files | {one.old for one in found if one.old}
    coming = [one for one in found if one.after is not None]
    left = {one.path: one.old or one.path for one in coming}
    apart = len(left) == len(coming) and len({*ends.values()}) == len(ends)
    # A folder that goes has to be empty, and one that comes has to be new.
    gone = {one: "/" for one, end in ends.items() if one != end}
    stays = any(_moved(path, gone) for path in (*left, *ends.values()))
    if stays or not apart or left != _stepped(there, edits.steps):
        raise ServerRefusedError("its steps cannot be done as one change", hint=BY_HAND)
    renamed = [one for one in found if one.kind == "text" or one.path != one.old]
    return renamed, [(one, end) for one, end in ends.items() if one in gone]


def _stepped(there: Iterable[str], steps: Iterable[Step]) -> dict[str, str]:
    """Names of files, and those that they had at first, after steps that are done one after the other."""
    names = {path: path for path in there}
    for one in steps:
        if isinstance(one, TextStep):
            continue
        taken = one.new if one.kind == "rename" else one.path
        if (
            one.lenient
            and one.kind != "delete"
            and any(_moved(path, {taken: "/"}) for path in names)
        ):
            continue
        if one.kind == "create":
            names[one.path] = one.path
        elif one.kind == "delete":
            names.pop(one.path, None)
        else:
            moves = {one.path: one.new}
            moving = [path for path in names if _moved(path, moves)]
            names |= {_moved(path, moves): names.pop(path) for path in moving}
    return names


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
    """The absolute paths that an answer names, and those that files had whose folders were moved before."""
    found: set[str] = set()
    moves: dict[str, str] = {}
    for one in value or ():
        if isinstance(one, FileStep):
            found |= {name for name in (one.path, one.new) if name}
            if one.kind == "rename":
                moves[one.new] = _moved(one.path, moves) or one.path
        elif getattr(one, "steps", None):
            found |= names_in(one.steps)
        elif isinstance(getattr(one, "path", None), str):
            # What is edited in a folder that has got another name is the file of its former one.
            found |= {one.path, _moved(one.path, moves) or one.path}
    return found


# -- what a rename leaves ------------------------------------------------------------------

_TYPED: Final = frozenset(
    ("c", "cc", "cpp", "cs", "cxx", "dart", "go", "h", "hh", "hpp", "java", "kt", "m", "mm", "rs")
)
"""Endings of languages in which each name has one meaning that is known before anything runs."""
_COMMENTS: Final = {
    **dict.fromkeys(("py", "pyi"), "#[^\n]*"),
    **dict.fromkeys(
        (*_TYPED, *("cjs", "cts", "js", "jsx", "mjs", "mts", "php", "svelte", "ts", "tsx", "vue")),
        r"//[^\n]*|/\*.*?\*/",
    ),
}
_STRINGS: Final = r"\"\"\".*?\"\"\"|'''.*?'''|`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_MOST_LEFT: Final = 200
_MOST_OF_FILE: Final = 20


class KeptNames:
    """The places in code at which a rename leaves the old name.

    Args:
        name: That name.
        answer: The edits of the server.
        texts: What files that the server knows hold, by absolute path.

    Attributes:
        places: Files and offsets in their texts, for the server to say what they mean.
    """

    def __init__(self, name: str, answer: QueryAnswer, texts: Mapping[str, str]) -> None:
        self._texts = texts
        steps = steps_in(answer.value)
        edits = [
            (one.path, *each) for one in steps if isinstance(one, TextStep) for each in one.edits
        ]
        self._renamed = {(path, start) for path, start, _, _ in edits}
        word = re.compile(rf"\b{re.escape(name)}\b")
        # What goes on under the old name, as TypeScript exports it once more, is right as it is.
        self._goes_on = any(word.search(text) for *_, text in edits)
        found: list[tuple[str, int]] = []
        for path, text in texts.items():
            index = LineIndex(text)
            some = [
                offset
                for offset in _places_in_code(text, name, _ending(path))
                if (path, index.position(offset, answer.unit)) not in self._renamed
            ]
            found += [(path, one) for one in some[:_MOST_OF_FILE]]
        self.places = tuple(found[:_MOST_LEFT])

    def meant(self, declared: Sequence[Sequence[TextRange] | None]) -> Iterator[tuple[str, int]]:
        """The places that seem to mean what is renamed: files, and lines from 1.

        They lead to it; or to nothing that the server knows, where it should know of every name.

        Args:
            declared: Where what stands at each of the `places` is declared; None where that is not known in time.
        """
        for (path, offset), spans in zip(self.places, declared, strict=True):
            text = self._texts[path]
            member = text[:offset].rstrip().endswith((".", "->"))
            if spans:
                leads = any((one.path, one.start) in self._renamed for one in spans)
                left = leads and not self._goes_on
            else:
                left = spans is not None and (_ending(path) in _TYPED or not member)
            if left:
                yield path, text.count("\n", 0, offset) + 1


def _places_in_code(text: str, name: str, ending: str) -> list[int]:
    """Where a name stands in a text outside of comments and strings; nowhere in files of an unknown kind."""
    comment = _COMMENTS.get(ending)
    if comment is None:
        return []
    word = rf"(?<![\w$])({re.escape(name)})(?![\w$])"
    every = re.compile(f"{comment}|{_STRINGS}|{word}", re.DOTALL)
    return [found.start() for found in every.finditer(text) if found[1]]


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()


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
    moved = [one for one in edits.files if one.kind == "folder"]
    contents = _contents(draft, moved, edits.steps) if moved else {}
    files, folders = with_contents(edits, contents) if moved else (edits.files, [])
    before = [one.old for one in files if one.old]
    names = list(dict.fromkeys([*before, *(one.path for one in files)]))
    away = {one.old for one in files if one.after is None or one.old not in ("", one.path)}
    inside = {one.path for one in files if one.kind == "file"}
    opened = draft.open_all(names, there=before, itself=away | inside)
    targets = dict(zip(names, opened, strict=True))
    for old, new in folders:
        draft.folders.make(new, _state(draft, old))
    taken = away & {one.path for one in files if one.after is not None}
    for one in files:
        source = targets[one.old or one.path]
        if one.kind == "file":
            draft.move(source, targets[one.path], None)
            continue
        held = None if source.document is None else source.document.text
        if source.hidden or held != (one.before if one.old else None):
            raise StaleFileError(
                f"{source.location.shown}: has changed since the language server saw it",
                hint="Send it again, and the server is asked again.",
                path=source.location.shown,
            )
        _put(draft, one, source, targets[one.path], taken)
    for old, _ in reversed(folders):
        draft.folders.remove(old)
    return targets


def _contents(
    draft: Draft, moved: Iterable[FileResult], steps: Iterable[Step]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """All that lies in folders that are moved, files and folders, by their absolute paths.

    Raises:
        ServerRefusedError: One is no folder, or its new name is taken.
        TooLargeError: One holds more than is opened for a change.
    """
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for step in steps:
        with suppress(NotAFileError):
            if isinstance(step, FileStep) and step.new and draft.folders.find(step.new)[1]:
                raise ServerRefusedError(f"{step.new}: a folder has this name", hint=BY_HAND)
    for one in moved:
        try:
            inside = draft.folders.inside(one.old, MOST_OPENED)
            (old, _), (new, _) = draft.folders.find(one.old), draft.folders.find(one.path)
        except (InvalidParamsError, NotAFileError) as error:
            raise ServerRefusedError(error.message, hint=BY_HAND) from None
        if inside is None:
            raise ServerRefusedError(
                f"{old.shown}: is to be moved, and is not there, or is no text", hint=BY_HAND
            )
        if new.root is not old.root:
            raise ServerRefusedError(f"{new.shown}: cannot take this name", hint=BY_HAND)
        draft.folders.check_opened(old, inside)
        files, folders = (
            tuple(draft.folders.named(old, each).absolute for each in some)
            for some in (inside.files, inside.folders)
        )
        found[one.old] = files, folders
    return found


def _state(draft: Draft, folder: str) -> Revision:
    location, _ = draft.folders.find(folder)
    return draft.folders.state(location, location.place.path)


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
