"""Features: what a server is asked about a place in a text, and its places and edits as values.

Nothing that a server answers is done here.  What is not as the protocol has it is refused: of edits
that cannot be read, none may be left out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from filepact.text.lines import LineIndex, Position
from filepact.values import dataclass, replace
from filepact_diagnostics.lsp.documents import position_value
from filepact_diagnostics.lsp.failures import RequestFailedError, RequestTimeoutError, ServerError
from filepact_wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND
from filepact_wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from filepact.text.lines import Unit
    from filepact_diagnostics.lsp.client import LanguageClient
    from filepact_diagnostics.lsp.documents import OpenDocument, OpenDocuments

__all__ = [
    "ActionsQuery",
    "CodeAction",
    "DependentsQuery",
    "FileStep",
    "FormattingQuery",
    "LanguageQuery",
    "QueryAnswer",
    "ReferencesQuery",
    "RenameQuery",
    "Step",
    "Symbol",
    "SymbolReferencesQuery",
    "SymbolsQuery",
    "TextRange",
    "TextStep",
]

_MOST_ACTIONS: Final = 200
_MOST_SYMBOLS: Final = 20_000
_ANSWERING: Final = 0.03
_TITLE_LENGTH: Final = 200
_NOT_OFFERED: Final = "does not offer it"
_NO_EDITS: Final = "its edits are not as the protocol has them"
_OLD_EDITS: Final = "its edits are for another version of a text than it was shown"


# -- values ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class TextRange:
    """A part of a file's text; positions as its server counts.

    Attributes:
        path: The file, absolute.
    """

    path: str
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class TextStep:
    """Edits of one file's text, all of them of the text before.

    Attributes:
        path: The file, absolute.
        edits: Starts, ends and new texts, in the order in which they came.
        version: Of the text that they are for; None where the server does not say it.
    """

    path: str
    edits: tuple[tuple[Position, Position, str], ...]
    version: int | None = None


@dataclass(frozen=True, slots=True)
class FileStep:
    """A file that is made, gets another name, or is deleted.

    Attributes:
        path: The file, absolute.
        new: Its other name, absolute; else empty.
        overwrite: Whether a file that is there gives way.
        lenient: Whether nothing is done, and that is no mistake, where it cannot be done.
    """

    kind: Literal["create", "rename", "delete"]
    path: str
    new: str = ""
    overwrite: bool = False
    lenient: bool = False


Step = TextStep | FileStep


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration in a text.

    Attributes:
        name: With the names of what it is declared in, joined by dots.
        kind: The protocol's number.
        start: Where it, or its name, begins; as its server counts.
    """

    name: str
    kind: int
    start: Position


@dataclass(frozen=True, slots=True)
class CodeAction:
    """A change that a server offers.

    Attributes:
        title: What it would do.
        kind: The protocol's word, such as ``quickfix``; may be empty.
        steps: The change; None where only a command of the server could make it.
        disabled: Why it cannot be done now; else empty.
    """

    title: str
    kind: str
    steps: tuple[Step, ...] | None
    disabled: str = ""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """A server's answer to a question.

    Attributes:
        server: Its name.
        value: As its question says; None if there is no answer.
        unit: What its columns count.
        state: ``refused``: it can, and does not do it here. ``lacking``: it does not offer it.
            ``late``: it has not answered in time.  ``failed``: it is not there, or makes no sense.
        reason: Why there is no answer; else empty.
    """

    server: str
    value: Any = None
    unit: Unit = "utf-16"
    state: Literal["answered", "refused", "lacking", "late", "failed"] = "answered"
    reason: str = ""


class UnknownMethodError(ServerError):
    """The server does not offer what it was asked for."""


# -- questions -------------------------------------------------------------------------------


class LanguageQuery(Protocol):
    """A question to a server, asked while its documents have the wanted texts."""

    async def ask(self, client: LanguageClient, documents: OpenDocuments, deadline: float) -> Any:
        """The answer, as a value.

        Args:
            client: The server.
            documents: What it holds open.
            deadline: The loop's time until which to wait.

        Raises:
            ServerError: There is none, or it cannot be read.
        """


@dataclass(frozen=True, slots=True)
class RenameQuery:
    """Another name for what stands at a place; answered by steps, none if there is nothing to rename.

    Attributes:
        path: The file, absolute, which the server is shown.
        offset: The place in its text, in characters.
        name: The other name.
        old: The name that stands there.
        follow: Whether references that are called so get the other name too, where the server stops
            at imports that say the name twice, as ``from a import b as b``.
    """

    path: str
    offset: int
    name: str
    old: str
    follow: bool = False

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[Step, ...]:
        options = _offered(client, "textDocument/rename", "renameProvider")
        place = _place(client, documents, self.path, self.offset)
        if options.get("prepareProvider"):
            try:
                known = await client.request("textDocument/prepareRename", place, deadline)
            except RequestFailedError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
            else:
                if not known:
                    return ()
        params = {**place, "newName": self.name}
        answer = await client.request("textDocument/rename", params, deadline)
        steps = read_steps(answer, documents)
        if not self.follow or not steps:
            return steps
        question = ReferencesQuery(self.path, self.offset)
        try:
            found = await question.ask(client, documents, deadline)
        except UnknownMethodError:
            return steps
        return (*steps, *self._followed(steps, found, documents, client.capabilities.unit))

    def _followed(
        self,
        steps: Sequence[Step],
        found: Sequence[TextRange],
        documents: OpenDocuments,
        unit: Unit,
    ) -> Iterator[TextStep]:
        """Steps for the references that no other step changes; empty ones for files that are not open yet."""
        done = {
            (one.path, start)
            for one in steps
            if isinstance(one, TextStep)
            for start, _, _ in one.edits
        }
        indexes: dict[str, LineIndex] = {}
        for span in found:
            document = documents.get(span.path)
            if document is None:
                yield TextStep(span.path, ())
                continue
            index = indexes.setdefault(span.path, LineIndex(document.text))
            if (span.path, span.start) in done or span.start.line >= index.lines:
                continue
            first, last = (index.offset(one, unit) for one in (span.start, span.end))
            if document.text[first:last] == self.old:
                yield TextStep(span.path, ((span.start, span.end, self.name),))


@dataclass(frozen=True, slots=True)
class ReferencesQuery:
    """Where something is used, and declared, or only declared; answered by spans. Other attributes as for a rename."""

    path: str
    offset: int
    declared: bool = False

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[TextRange, ...]:
        what = "definition" if self.declared else "references"
        _offered(client, f"textDocument/{what}", f"{what}Provider")
        params = _place(client, documents, self.path, self.offset)
        params |= {} if self.declared else {"context": {"includeDeclaration": True}}
        answer = await client.request(f"textDocument/{what}", params, deadline)
        if not answer:
            return ()
        try:
            found = [
                _span(
                    _path(one.get("uri") or one["targetUri"]),
                    one.get("range") or one["targetSelectionRange"],
                )
                for one in (answer if isinstance(answer, list) else [answer])
            ]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ServerError("its places do not follow the protocol") from error
        return tuple(sorted(set(found)))


@dataclass(frozen=True, slots=True)
class SymbolReferencesQuery:
    """The references of several symbols; answered place by place: spans, or None where they are not known in time.

    Attributes:
        places: Files, absolute, and places in their texts, in characters; the server is shown these.
        declared: As for one of them.
    """

    places: tuple[tuple[str, int], ...]
    declared: bool = False

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[tuple[TextRange, ...] | None, ...]:
        questions = (ReferencesQuery(*one, declared=self.declared) for one in self.places)
        asked = [one.ask(client, documents, deadline - _ANSWERING) for one in questions]
        found: list[tuple[TextRange, ...] | None] = []
        exact = "filepact.dependents" in client.capabilities.commands  # it renames all uses
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            lacks = self.declared and isinstance(answer, UnknownMethodError)
            if not lacks and not isinstance(
                answer, tuple | RequestFailedError | RequestTimeoutError
            ):
                raise answer
            late = isinstance(answer, RequestTimeoutError) or (lacks and exact)
            found.append(None if late else answer if isinstance(answer, tuple) else ())
        return tuple(found)


@dataclass(frozen=True, slots=True)
class SymbolsQuery:
    """The symbols of a file, in the order of the text.

    Attributes:
        path: The file, absolute, which the server is shown.
    """

    path: str

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[Symbol, ...]:
        _offered(client, "textDocument/documentSymbol", "documentSymbolProvider")
        params = {"textDocument": {"uri": _document(documents, self.path).uri}}
        answer = await client.request("textDocument/documentSymbol", params, deadline)
        try:
            found = list(_symbols(answer or (), ""))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ServerError("its symbols do not follow the protocol") from error
        return tuple(sorted(found, key=lambda one: one.start)[:_MOST_SYMBOLS])


@dataclass(frozen=True, slots=True)
class ActionsQuery:
    """The code actions that a server offers for a part of a file.

    Attributes:
        path: The file, absolute, which the server is shown.
        start: Where the part begins in its text, in characters.
        end: Where it ends.
        title: Only the action that is called so, with its steps; empty for all, perhaps without.  Of several
            with one title, the second is called ``title (2)``.
    """

    path: str
    start: int
    end: int
    title: str = ""

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[CodeAction, ...]:
        options = _offered(client, "textDocument/codeAction", "codeActionProvider")
        document = _document(documents, self.path)
        index, unit = LineIndex(document.text), client.capabilities.unit
        start, end = index.position(self.start, unit), index.position(self.end, unit)
        found, _ = await client.items(document, deadline)
        params = {
            "textDocument": {"uri": document.uri},
            "range": {"start": position_value(start), "end": position_value(end)},
            "context": {
                "diagnostics": [one for one in found or () if _touches(one, start, end)],
                "triggerKind": 1,
            },
        }
        answer = await client.request("textDocument/codeAction", params, deadline)
        if not isinstance(answer, list):
            return ()
        actions: list[CodeAction] = []
        called: Counter[str] = Counter()
        for one in answer[:_MOST_ACTIONS]:
            if not isinstance(one, dict) or not isinstance(one.get("title"), str):
                raise ServerError("its code actions do not follow the protocol")
            action, title = one, one["title"]
            called[title] += 1
            if called[title] > 1:
                title = f"{title} ({called[title]})"
            wanted = not self.title or title == self.title
            if wanted and self.title and "edit" not in one and options.get("resolveProvider"):
                action = await client.request("codeAction/resolve", one, deadline)
            if wanted:
                actions.append(replace(_action(action, documents), title=title))
        return tuple(actions)


@dataclass(frozen=True, slots=True)
class FormattingQuery:
    """A whole file in the form that its server gives it; answered by steps.

    Attributes:
        path: The file, absolute, which the server is shown.
        tab: How many columns a tab has, for servers that know no better.
        spaces: Whether indentation is made of spaces, for the same.
    """

    path: str
    tab: int = 4
    spaces: bool = True

    async def ask(
        self, client: LanguageClient, documents: OpenDocuments, deadline: float
    ) -> tuple[Step, ...]:
        _offered(client, "textDocument/formatting", "documentFormattingProvider")
        params = {
            "textDocument": {"uri": _document(documents, self.path).uri},
            "options": {"tabSize": self.tab, "insertSpaces": self.spaces},
        }
        answer = await client.request("textDocument/formatting", params, deadline)
        if not answer:
            return ()
        try:
            return (_text_step(self.path, answer),)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RequestFailedError(INVALID_PARAMS, _NO_EDITS) from error


@dataclass(frozen=True, slots=True)
class DependentsQuery:
    """Which other files a change concerns, by a command of the server's; answered by absolute paths.

    Attributes:
        command: Its name.
        changes: The changed files, absolute, with their texts before and after; None for no file.
    """

    command: str
    changes: tuple[tuple[str, str | None, str | None], ...]

    async def ask(
        self, client: LanguageClient, _documents: OpenDocuments, deadline: float
    ) -> tuple[str, ...]:
        changes = [
            {"uri": uri_of(path), "before": before, "after": after}
            for path, before, after in self.changes
        ]
        answer = await client.execute(self.command, [{"changes": changes}], deadline)
        try:
            return tuple(_path(one) for one in answer["files"])
        except (KeyError, TypeError, ValueError) as error:
            raise ServerError("its list of files is not valid") from error


def _offered(client: LanguageClient, method: str, provider: str) -> Mapping[str, Any]:
    """The options under which a server offers something.

    Raises:
        UnknownMethodError: It does not.
    """
    for one in client.capabilities.registered(method):
        return one.options
    static = client.capabilities.static.get(provider)
    if static is None or static is False:
        raise UnknownMethodError(_NOT_OFFERED)
    return static if isinstance(static, dict) else {}


def _document(documents: OpenDocuments, path: str) -> OpenDocument:
    document = documents.get(path)
    if document is None:
        raise ServerError("the file is not open")
    return document


def _place(
    client: LanguageClient, documents: OpenDocuments, path: str, offset: int
) -> dict[str, Any]:
    document = _document(documents, path)
    position = LineIndex(document.text).position(offset, client.capabilities.unit)
    return {"textDocument": {"uri": document.uri}, "position": position_value(position)}


# -- reading answers -------------------------------------------------------------------------


def read_steps(value: Any, documents: OpenDocuments) -> tuple[Step, ...]:
    """The steps of a server's ``WorkspaceEdit``; none where it is null or empty.

    Raises:
        RequestFailedError: A part of it is not as the protocol has it, or is for another text than the server has.
    """
    if value is None:
        return ()
    try:
        # Where both are there, the protocol prefers these.
        parts = value.get("documentChanges")
        if parts is not None:
            steps = [_step(one) for one in parts]
        else:
            changes = value.get("changes") or {}
            steps = [_text_step(_path(uri), edits) for uri, edits in changes.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RequestFailedError(INVALID_PARAMS, _NO_EDITS) from error
    for one in steps:
        known, said = documents.get(one.path), getattr(one, "version", None)
        if known is not None and said not in (None, known.version):
            raise RequestFailedError(INVALID_PARAMS, _OLD_EDITS)
    return tuple(one for one in steps if isinstance(one, FileStep) or one.edits)


def _step(one: Mapping[str, Any]) -> Step:
    options = one.get("options") or {}
    over, kind = bool(options.get("overwrite")), one.get("kind")
    match kind:
        case None:
            named = one["textDocument"]
            version = named.get("version")
            if not isinstance(version, int | None):
                raise TypeError("a version is a number")
            return replace(_text_step(_path(named["uri"]), one["edits"]), version=version)
        case "create":
            lenient = bool(options.get("ignoreIfExists")) and not over
            return FileStep("create", _path(one["uri"]), "", over, lenient)
        case "rename":
            lenient = bool(options.get("ignoreIfExists")) and not over
            return FileStep("rename", _path(one["oldUri"]), _path(one["newUri"]), over, lenient)
        case "delete":
            return FileStep(
                "delete", _path(one["uri"]), lenient=bool(options.get("ignoreIfNotExists"))
            )
        case _:
            raise ValueError(f"no kind of step: {kind!r}")


def _text_step(path: str, edits: Sequence[Mapping[str, Any]]) -> TextStep:
    return TextStep(
        path,
        tuple(
            (
                _position(one["range"]["start"]),
                _position(one["range"]["end"]),
                _text(one["newText"]),
            )
            for one in edits
        ),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a new text is a text")
    return value


def _path(uri: Any) -> str:
    path = path_of(uri) if isinstance(uri, str) else None
    if path is None:
        raise ValueError("not the name of a file")
    return path


def _position(value: Mapping[str, Any]) -> Position:
    line, column = value["line"], value["character"]
    if not isinstance(line, int) or not isinstance(column, int) or line < 0 or column < 0:
        raise TypeError("a position has two numbers")
    return Position(line, column)


def _span(path: str, value: Mapping[str, Any]) -> TextRange:
    return TextRange(path, _position(value["start"]), _position(value["end"]))


def _symbols(items: Sequence[Mapping[str, Any]], above: str) -> Iterator[Symbol]:
    for one in items:
        flat = one.get("location")
        inside = str(one.get("containerName") or "") if flat else above
        name = f"{inside}.{one['name']}" if inside else str(one["name"])
        place = flat["range"] if flat else one.get("selectionRange") or one["range"]
        yield Symbol(name, int(one.get("kind", 0)), _position(place["start"]))
        yield from _symbols(one.get("children") or (), name)


def _touches(diagnostic: Any, start: Position, end: Position) -> bool:
    try:
        place = diagnostic["range"]
        return _position(place["start"]) <= end and start <= _position(place["end"])
    except (KeyError, TypeError):
        return False


def _action(value: Any, documents: OpenDocuments) -> CodeAction:
    """A code action; of a bare command there is only the title."""
    if not isinstance(value, dict) or not isinstance(value.get("title"), str):
        raise ServerError("its code actions do not follow the protocol")
    disabled = value.get("disabled")
    return CodeAction(
        value["title"][:_TITLE_LENGTH],
        str(value.get("kind") or "")[:_TITLE_LENGTH],
        read_steps(value["edit"], documents)
        if value.get("edit") and not value.get("command")
        else None,
        str(disabled.get("reason", "disabled"))[:_TITLE_LENGTH]
        if isinstance(disabled, dict)
        else "",
    )
