"""Answers of language servers about names, and their edits: references, renames, code actions, formatting.

A server is asked once the texts that it has are those that a change would start from: what an editor
has not saved and what the session has proposed count, and every file that an answer names is shown to
the server before the answer counts.  What comes of it is what each file would hold, and no effect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import (
    AmbiguousMatchError,
    ApprovalRequiredError,
    BinaryFileError,
    EncodingUnsafeError,
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    NoServerError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    ServerRefusedError,
    StaleFileError,
    StringNotFoundError,
    TimedOutError,
    TooLargeError,
)
from filepact.text.lines import LineIndex, Position
from filepact.values import dataclass, late_regex, replace
from filepact.workspace.file_snapshot import some_names
from filepact_diagnostics.lsp.features import (
    ActionsQuery,
    FormattingQuery,
    ReferencesQuery,
    RenameQuery,
    SymbolReferencesQuery,
    SymbolsQuery,
)
from filepact_diagnostics.semantic.edited_files import (
    BY_HAND,
    FileEdits,
    KeptNames,
    ServerEdits,
    answered,
    names_in,
    offset_of,
    replaced_by,
    steps_in,
)
from filepact_diagnostics.semantic.updates import Reference, ReferenceList, ServerAction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.workspace.reader import Reader
    from filepact_diagnostics.lsp.features import CodeAction, LanguageQuery, QueryAnswer
    from filepact_diagnostics.semantic.deadline import CallDeadline
    from filepact_diagnostics.semantic.edited_files import FileResult
    from filepact_diagnostics.semantic.root_servers import RootServers

__all__ = [
    "FORMAT",
    "NamePosition",
    "ServerQueries",
]

FORMAT: Final = "Format document"
"""The title under which formatting stands among code actions."""

_ROUNDS: Final = 4
_INDEXING: Final = 3.0
_MOST_SHOWN: Final = 300
_MOST_FILES: Final = 5_000
_MOST_CANDIDATES: Final = 12
_LINE_LENGTH: Final = 200
_NEW_NAME: Final = late_regex(r"(?!\d)[\w$@#!?-]+")
_INDENTED: Final = late_regex(r"^([ \t]+)\S", re.MULTILINE)
_WORD: Final = late_regex(r"\w+")
_UNREADABLE: Final = (
    *(ApprovalRequiredError, BinaryFileError, EncodingUnsafeError, NotAFileError, NotFoundError),
    *(PathBlockedError, TooLargeError),
)
_CALLABLE: Final = frozenset({6, 9, 12})
"""Methods, constructors, functions: of one name there may be several."""


@dataclass(frozen=True, slots=True)
class NamePosition:
    """Where a name stands, as far as its caller says it.

    Attributes:
        line: From 1; None for any.
        column: In characters, from 1; None for any.
        name: The name itself; empty for whatever stands there.
    """

    line: int | None = None
    column: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer, and the texts that the server had when it gave it, by absolute path."""

    answer: QueryAnswer
    texts: Mapping[str, str]


class ServerQueries:
    """Questions to the servers of one file's root, for one call.

    Args:
        servers: The root's servers.
        reader: Reads files as the session has them.
        place: The root and path of an absolute path; None outside of all roots.
        may_see: Whether the session may be told what is in a file.
        show: A file's absolute path as a reader knows it.
        deadline: How long to wait.
    """

    def __init__(
        self,
        servers: RootServers,
        reader: Reader,
        place: Callable[[str], WorkspacePath | None],
        may_see: Callable[[WorkspacePath], bool],
        show: Callable[[str], str],
        deadline: CallDeadline,
    ) -> None:
        self._servers = servers
        self._reader = reader
        self._place = place
        self._may_see = may_see
        self._show = show
        self._deadline = deadline

    # -- what can be asked ----------------------------------------------------------------

    def rename(self, path: WorkspacePath, place: NamePosition, new: str) -> ServerEdits:
        """The edits of renaming the symbol at a place.

        Args:
            path: The file.
            place: The name in it.
            new: The other name.

        Raises:
            AmbiguousMatchError: Several names fit the place.
            NoChangeError: It has this name already.
            NoServerError: No server offers it, or none has answered.
            PathBlockedError: It would change files that may not be seen or used.
            ServerRefusedError: The server does not do it, or its edits fit nothing.
            StaleFileError: Files went on changing while it was asked.
        """
        if not _NEW_NAME.fullmatch(new):
            raise InvalidParamsError(
                f"{new!r}: is not a name", hint="Send one name, without blanks."
            )
        offset, name, start = self._resolve(path, place)
        if name == new:
            raise NoChangeError(
                f"{self._shown(path)}: {name} has this name already", hint="Send another newName."
            )
        follow = path.path.endswith((".py", ".pyi"))
        question = RenameQuery(path.absolute, offset, new, name, follow=follow)
        asked = self._ask(question, "rename", path, self._candidates(path, name), start=start)
        if not asked.answer.value:
            raise ServerRefusedError(
                f"{self._shown(path)}: {asked.answer.server} has nothing to rename at {name!r}",
                hint="Name a place where the project's own code declares or uses it.",
            )
        files = self._fold(asked)
        meant = replaced_by(new, asked.answer.value, asked.texts, asked.answer.unit)
        if not files or (meant and name not in meant):
            other = f": it takes {' or '.join(sorted(meant))} to be meant" if meant else ""
            raise ServerRefusedError(
                f"{self._shown(path)}: {asked.answer.server} does not rename {name!r} there{other}",
                hint="Send line and column of the name itself.",
            )
        notes, left = self._left(name, asked, files)
        summary = f"rename {name} to {new}"
        steps = steps_in(asked.answer.value)
        return ServerEdits(asked.answer.server, summary, files, tuple(notes), tuple(left), steps)

    def references(self, path: WorkspacePath, place: NamePosition) -> ReferenceList:
        """Where what stands at a place is used and declared; arguments and errors as for `rename`."""
        offset, name, start = self._resolve(path, place)
        question = ReferencesQuery(path.absolute, offset)
        asked = self._ask(
            question, "find references", path, self._candidates(path, name), start=start
        )
        answer, found, hidden, outside = asked.answer, list[Reference](), 0, 0
        indexes: dict[str, LineIndex] = {}
        for span in answer.value:
            there = self._place(span.path)
            if there is None:
                outside += 1
            elif span.path not in asked.texts:
                hidden += 1
            else:
                text = asked.texts[span.path]
                index = indexes.setdefault(span.path, LineIndex(text))
                first, last = (
                    index.position(offset_of(index, text, one, answer.unit), "utf-32")
                    for one in (span.start, span.end)
                )
                line = index.line(first.line).strip()[:_LINE_LENGTH]
                self._reader.quoted(there)
                found.append(Reference(span.path, first, last, line))
        if not answer.value:
            raise ServerRefusedError(
                f"{self._shown(path)}: {answer.server} knows no use of {name!r} there",
                hint="Name a place where the project's own code declares or uses it.",
            )
        return ReferenceList(answer.server, name, tuple(sorted(found)), hidden, outside)

    def actions(self, path: WorkspacePath, first: int, last: int) -> tuple[ServerAction, ...]:
        """The code actions that servers offer for lines of a file.

        Args:
            path: The file.
            first: The first line, from 1.
            last: The last line.

        Raises:
            NoServerError: No server offers any, or none has answered.
        """
        question, start = self._about_lines(path, first, last, "")
        found: list[ServerAction] = []
        errors: list[NoServerError | ServerRefusedError] = []
        for server in self._servers.servers(path.absolute):
            try:
                asked = self._ask(question, "code actions", path, start=start, only=server)
            except (NoServerError, ServerRefusedError) as error:
                errors.append(error)
                continue
            found += [
                ServerAction(one.title, one.kind, server, one.disabled)
                for one in asked.answer.value
            ]
        try:
            server = self._ask(self._formatting(path), "format", path).answer.server
            found.append(ServerAction(FORMAT, "source", server, ""))
        except (NoServerError, ServerRefusedError) as error:
            errors.append(error)
        if not found and errors:
            raise errors[0]
        titles: dict[str, ServerAction] = {}
        for one in found:
            title = one.title if one.title not in titles else f"{one.title} ({one.server})"
            titles.setdefault(title, replace(one, title=title))
        return tuple(titles.values())

    def action(self, path: WorkspacePath, first: int, last: int, title: str) -> ServerEdits:
        """The change of one of the `actions`, by its title; other arguments are the same.

        Raises:
            NotFoundError: There is none of that title.
            ServerRefusedError: It cannot be done now, or only a command of the server could do it.
        """
        question, start = self._about_lines(path, first, last, title)
        for server in self._servers.servers(path.absolute):
            # Of a title that several servers have, each but the first adds its name.
            named = replace(question, title=title.removesuffix(f" ({server})"))
            try:
                asked = self._ask(named, "code actions", path, start=start, only=server)
            except (NoServerError, ServerRefusedError):
                continue
            found: Sequence[CodeAction] = asked.answer.value
            if not found:
                continue
            (one, *_) = found
            if one.disabled:
                raise ServerRefusedError(
                    f"{title}: cannot be done here: {one.disabled}", hint=BY_HAND
                )
            if one.steps is None:
                raise ServerRefusedError(
                    f"{title}: is a command of {server}, which would write past the workspace; it is "
                    "not executed",
                    hint=BY_HAND,
                )
            files = self._fold(asked)
            if not files:
                raise NoChangeError(f"{title}: changes nothing there")
            return ServerEdits(server, f"{title} ({server})", files, steps=steps_in(found))
        raise NotFoundError(
            f"{self._shown(path)}: no server offers an action of this title there",
            hint="Leave title out to see the titles for these lines.",
        )

    def format(self, path: WorkspacePath) -> ServerEdits:
        """A whole file in its server's form.

        Raises:
            NoChangeError: It has that form.
            NoServerError: No server offers it, or none has answered.
        """
        asked = self._ask(self._formatting(path), "format", path)
        files = self._fold(asked)
        if not files:
            raise NoChangeError(
                f"{self._shown(path)}: {asked.answer.server} leaves it as it is",
                hint="Nothing has to be done.",
            )
        return ServerEdits(asked.answer.server, f"format {self._shown(path)}", files)

    def _formatting(self, path: WorkspacePath) -> FormattingQuery:
        """The question for a file's form, with the indentation that it has."""
        blanks = _INDENTED.findall(self._reader.glance(path).text)
        if not blanks or blanks[0].startswith("\t"):
            return FormattingQuery(path.absolute, spaces=not blanks)
        return FormattingQuery(path.absolute, min(len(one) for one in blanks if " " in one))

    # -- asking ---------------------------------------------------------------------------

    def _ask(
        self,
        question: LanguageQuery,
        what: str,
        path: WorkspacePath,
        also: Iterable[WorkspacePath] = (),
        *,
        start: str = "",
        only: str = "",
    ) -> _Asked:
        """The answer of the first server that offers it, about texts that are all known.

        Args:
            question: The question.
            what: It, in a few words.
            path: The file that it is about.
            also: Files that the answer may be about.
            start: The text that places in the question are places of; empty for any.
            only: The only server to ask; empty for all of the file's.
        """
        servers = (only,) if only else self._servers.servers(path.absolute)
        lacking: list[str] = []
        for server in servers:
            asked = self._ask_one(server, question, path, also, start)
            if asked.answer.state != "lacking":
                return replace(asked, answer=answered(asked.answer, what))
            lacking.append(server)
        ending = path.path.rpartition(".")[2] if "." in path.path.rpartition("/")[2] else "such"
        why = f" ({', '.join(lacking)} does not offer it)" if lacking else ""
        raise NoServerError(
            f"{self._shown(path)}: no installed server offers to {what} in .{ending} files{why}",
            hint="server_status with includeMissing: true names servers that can be installed.",
        )

    def _ask_one(
        self,
        server: str,
        question: LanguageQuery,
        path: WorkspacePath,
        also: Iterable[WorkspacePath],
        start: str,
    ) -> _Asked:
        """One server's answer, asked again until it was shown every file that the answer names.

        Raises:
            StaleFileError: Files went on changing.
            TimedOutError: It has not answered in time.
        """
        unwritten = self._reader.unwritten(path.root)
        claims = self._servers.servers
        shown = dict.fromkeys((path, *also))
        shown |= dict.fromkeys(one for one in unwritten if server in claims(one.absolute))
        for _ in range(_ROUNDS):
            texts = self._texts(shown)
            if start and texts.get(path.absolute) != start:
                break
            answer, reason = self._servers.query(
                server, question, list(shown), texts, self._deadline
            )
            if answer is None:
                if self._deadline.left and reason:
                    raise StaleFileError(f"{self._shown(path)}: {reason}", hint="Send it again.")
                raise TimedOutError(
                    f"{server} has not answered in time",
                    hint="Call load, which waits for it, and send it again.",
                )
            named = self._readable(answer.value) - shown.keys()
            if not named and self._texts(shown) == texts:
                return _Asked(answer, texts)
            if len(named) > _MOST_FILES:
                raise ServerRefusedError(
                    f"{server} names more than {_MOST_FILES:,} files", hint=BY_HAND
                )
            shown |= dict.fromkeys(named)
        raise StaleFileError(
            f"{self._shown(path)}: files went on changing while {server} was asked",
            hint="Send it again.",
        )

    def _texts(self, paths: Iterable[WorkspacePath]) -> dict[str, str]:
        """The texts of files for the session, by absolute path; files without text are left out."""
        found: dict[str, str] = {}
        for path in paths:
            try:
                found[path.absolute] = self._reader.glance(path).text
            except _UNREADABLE:
                continue
        return found

    def _readable(self, value: Any) -> set[WorkspacePath]:
        """The files of an answer that may be shown."""
        places = (self._place(one) for one in names_in(value))
        return {one for one in places if one is not None and self._may_see(one)}

    def _candidates(self, path: WorkspacePath, name: str) -> list[WorkspacePath]:
        """Files that hold a name, as many as a server is shown at once; of each kind that it knows."""
        found, _ = self._servers.mentioning(name, min(_INDEXING, self._deadline.left / 4))
        seen = [one for one in found if one != path and self._may_see(one)]
        return seen if len(seen) <= _MOST_SHOWN else []

    def _left(
        self, name: str, asked: _Asked, files: Sequence[FileResult]
    ) -> tuple[list[str], list[str]]:
        """The leftovers of a renaming: texts that hold the old name as a word and stay.

        Returns:
            A note about other files; and the places in code that seem to mean what gets another name.
        """
        found, whole = self._servers.mentioning(name, min(_INDEXING, self._deadline.left / 4))
        seen = [one for one in found if self._may_see(one)]
        texts = {**self._texts(seen[:_MOST_SHOWN]), **asked.texts}
        word, changed = re.compile(rf"\b{re.escape(name)}\b"), {one.old for one in files}
        stay = [path for path, text in texts.items() if path not in changed and word.search(text)]
        names = [self._show(path) for path in stay]
        notes: list[str] = []
        if names:
            count = f"{len(names)} other {'file holds' if len(names) == 1 else 'files hold'}"
            unsure = "" if whole and len(seen) <= _MOST_SHOWN else " (not all were looked through)"
            notes.append(
                f"{count} the word {name} and stay as they are{unsure}: {some_names(names)}"
            )
        server = asked.answer.server
        known = {
            path: text for path, text in texts.items() if server in self._servers.servers(path)
        }
        left = KeptNames(name, asked.answer, known)
        question = SymbolReferencesQuery(left.places, declared=True)
        paths = [one for path in dict(left.places) if (one := self._place(path)) is not None]
        wait = self._deadline.within(_INDEXING)
        answer, _ = self._servers.query(server, question, paths, known, wait)
        meant = left.meant(answer.value) if answer and answer.state == "answered" else ()
        return notes, [f"{self._show(path)}:{line}" for path, line in sorted(meant)]

    # -- places ---------------------------------------------------------------------------

    def _about_lines(
        self, path: WorkspacePath, first: int, last: int, title: str
    ) -> tuple[ActionsQuery, str]:
        text = self._reader.glance(path).text
        index = LineIndex(text)
        if not 1 <= first <= last <= index.lines:
            raise InvalidParamsError(
                f"{self._shown(path)}: has {index.lines} lines; it does not have all of {first} to {last}"
            )
        start = index.offset(Position(first - 1, 0), "utf-32")
        end = index.offset(Position(last - 1, 0), "utf-32") + len(index.line(last - 1))
        return ActionsQuery(path.absolute, start, end, title), text

    def _resolve(self, path: WorkspacePath, place: NamePosition) -> tuple[int, str, str]:
        """The offset of a name in its file, the name, and the file's text.

        Raises:
            AmbiguousMatchError: Several fit.
            InvalidParamsError: There is no such place, or no name there.
            StringNotFoundError: The name is not there.
        """
        text = self._reader.glance(path).text
        index, shown = LineIndex(text), self._shown(path)
        if place.line is None:
            if not place.name:
                raise InvalidParamsError(
                    "no name and no line was sent",
                    hint="Send name, or line and column, or both.",
                )
            return self._declared(path, text, index, place.name)
        if place.line > index.lines:
            raise InvalidParamsError(
                f"{shown}: has {index.lines} lines, and no line {place.line}",
                hint="Read the file again.",
            )
        line = index.line(place.line - 1)
        start = index.offset(Position(place.line - 1, 0), "utf-32")
        words = [found for found in _WORD.finditer(line) if place.name in ("", found[0])]
        if place.column is not None:
            at = place.column - 1
            words = [found for found in words if found.start() <= at <= found.end()]
            # Between two names, the one that begins there.
            words = [found for found in words if found.start() == at] or words
        if len(words) == 1:
            return start + words[0].start(), words[0][0], text
        if not words:
            what = place.name or "name"
            raise StringNotFoundError(
                f"{shown}:{place.line}: no {what} stands there: {line.strip()[:_LINE_LENGTH]}",
                hint="Lines and columns begin at 1, and columns count characters.",
            )
        columns = ", ".join(f"{found[0]} at column {found.start() + 1}" for found in words[:20])
        raise AmbiguousMatchError(
            f"{shown}:{place.line}: several names stand there: {columns}",
            hint="Send column as well.",
        )

    def _declared(
        self, path: WorkspacePath, text: str, index: LineIndex, name: str
    ) -> tuple[int, str, str]:
        """The one place that declares a name in its file, or else the one that has it."""
        last = name.rpartition(".")[2]
        places: dict[int, str] = {}
        try:
            asked = self._ask(SymbolsQuery(path.absolute), "list symbols", path)
        except (NoServerError, ServerRefusedError):
            pass
        else:
            text = asked.texts[path.absolute]
            index = LineIndex(text)
            named: set[str] = set()
            for one in asked.answer.value:
                if f".{one.name}".endswith(f".{name}") and (
                    one.kind in _CALLABLE or one.name not in named
                ):
                    named.add(one.name)
                    start = offset_of(index, text, one.start, asked.answer.unit)
                    found = re.compile(rf"\b{re.escape(last)}\b").search(text, start)
                    if found is not None:
                        places.setdefault(found.start(), one.name)
        if not places:
            found_all = re.finditer(rf"\b{re.escape(last)}\b", text) if name == last else ()
            places = {found.start(): name for found in found_all}
        if len(places) == 1:
            return next(iter(places)), last, text
        shown = self._shown(path)
        if not places:
            raise StringNotFoundError(
                f"{shown}: does not hold {name}", hint="Name the file that declares it, or uses it."
            )
        listed: list[str] = []
        for offset, whole in list(places.items())[:_MOST_CANDIDATES]:
            at = index.position(offset, "utf-32")
            listed.append(
                f"{whole} at line {at.line + 1}, column {at.column + 1}: "
                f"{index.line(at.line).strip()[:_LINE_LENGTH]}"
            )
        more = len(places) - len(listed)
        raise AmbiguousMatchError(
            f"{shown}: {name} stands in {len(places)} places:\n"
            + "\n".join([*listed, *([f"... and {more} more"] if more else [])]),
            hint="Send line and column as well.",
        )

    def _shown(self, path: WorkspacePath) -> str:
        return self._show(path.absolute)

    # -- edits ----------------------------------------------------------------------------

    def _fold(self, asked: _Asked) -> tuple[FileResult, ...]:
        """The files after the steps of an answer, one step after the other.

        Raises:
            PathBlockedError: A file lies outside, or may not be seen.
            ServerRefusedError: A step fits nothing.
        """
        steps = steps_in(asked.answer.value)
        names = {name for one in steps for name in names_in((one,))}
        places = [self._place(name) for name in names]
        outside = sum(1 for one in places if one is None)
        hidden = sum(1 for one in places if one is not None and not self._may_see(one))
        if outside or hidden:
            counts = [
                f"{count} {'file' if count == 1 else 'files'} {where}"
                for count, where in ((outside, "outside"), (hidden, "that you may not read"))
                if count
            ]
            raise PathBlockedError(
                f"{asked.answer.server} would change {' and '.join(counts)}; nothing was changed",
                hint="Leave the name as it is, or ask the person to make this change.",
            )
        folded = FileEdits(asked.texts, asked.answer.unit)
        for one in steps:
            folded.take(one)
        try:
            return folded.results()
        except FilepactError as error:
            raise ServerRefusedError(
                f"the edits of {asked.answer.server} cannot be carried out: {error.message}",
                hint="Call reload and send it again; if this repeats, make the change with write_file.",
            ) from None
