"""What a client says by itself about the documents it shows: opened, typed in, saved, closed.

The notices are only taken down here; no file is looked at.  Whether a document may be used is
asked when a session uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from filepact.errors import InvalidParamsError
from filepact.faces.acp.remote import TEXT_LIMIT
from filepact.text.edit import Edit, EditList
from filepact.text.lines import LineIndex, Position
from filepact.wire import uris

if TYPE_CHECKING:
    from filepact.text.lines import Unit

__all__ = ["OpenText", "OpenTexts", "path_of"]

_MOST = 1_000


@dataclass(slots=True)
class OpenText:
    """One document that the client shows.

    Attributes:
        path: As the client names it.
        session: Under which the client told of it.
        text: What the notices say that it holds.
        version: The client's count of changes.
        broken: A notice did not fit, so that `text` is not what the client shows.
        told: A text that was handed to the client, until it has said what came of it.
        saved: The text when the client saved it last; None when it did not yet.
        stamp: Tells one state of the document from every other.
    """

    path: str
    session: str
    text: str
    version: int
    broken: bool = False
    told: str | None = None
    saved: str | None = None
    stamp: int = 0

    @property
    def sure(self) -> bool:
        """Whether `text` is what the client shows."""
        return not self.broken and self.told is None

    @property
    def likely(self) -> str | None:
        """What the client shows as far as can be known without asking; None for unknown."""
        return None if self.broken else self.text if self.told is None else self.told


class OpenTexts:
    """All documents that a client says it shows, by its names for them.

    Args:
        unit: What its columns count.
    """

    def __init__(self, unit: Unit = "utf-16") -> None:
        self._unit = unit
        self._known: dict[str, OpenText] = {}
        self._stamps = 0

    def present(self) -> tuple[OpenText, ...]:
        """All documents as they are now; what comes later does not change them."""
        return tuple(replace(one) for one in self._known.values())

    def text(self, path: str) -> str | None:
        """What the client shows of a document, where its notices leave no doubt."""
        known = self._known.get(path)
        return known.text if known is not None and known.sure else None

    def hear(self, method: str, params: object) -> None:
        """Take one notice down.

        Raises:
            InvalidParamsError: It is none, or does not fit what is known; the document's text is
                in doubt then.
        """
        fields = params if isinstance(params, dict) else {}
        path = path_of(fields.get("uri"))
        match method:
            case "document/didOpen":
                self._open(path, fields)
            case "document/didChange":
                self._change(path, fields)
            case "document/didSave":
                known = self._known.get(path)
                if known is not None:
                    known.saved = known.text
                    self._stamp(known)
            case "document/didClose":
                self._known.pop(path, None)
            case _:
                # What a person looks at, for example, changes no text.
                return

    def forget(self, session: str) -> None:
        """A session of the client has ended, and with it what was told under it."""
        self._known = {path: one for path, one in self._known.items() if one.session != session}

    def told(self, path: str, text: str) -> None:
        """The client was handed a text for a file, and has yet to say what it shows now."""
        known = self._known.get(path)
        if known is not None and known.text != text:
            known.told = text
            self._stamp(known)

    def confirm(self, path: str, text: str) -> None:
        """The client has said what it shows; if the notices say the same, there is no doubt."""
        known = self._known.get(path)
        if known is not None and known.text == text:
            known.broken, known.told = False, None

    def _open(self, path: str, fields: dict[str, Any]) -> None:
        if path in self._known:
            self._known[path].broken = True
        text = _text(fields.get("text"))
        version = _number(fields.get("version"), 0)
        known = OpenText(path, str(fields.get("sessionId")), text, version)
        self._known.pop(path, None)
        self._known[path] = known
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        self._stamp(known)

    def _change(self, path: str, fields: dict[str, Any]) -> None:
        known = self._known.get(path)
        if known is None:
            raise InvalidParamsError(f"{path}: is not open", hint="Open it first.", path=path)
        broken, known.broken = known.broken, True
        self._stamp(known)
        version = _number(fields.get("version"), known.version + 1)
        if version <= known.version:
            raise InvalidParamsError(
                f"{path}: version {version} came after version {known.version}", path=path
            )
        text = known.text
        changes = fields.get("contentChanges")
        for change in changes if isinstance(changes, list) else []:
            broken = broken and not _is_whole(change)
            text = _applied(text, change, self._unit)
        known.text, known.version = _text(text), version
        known.broken, known.told = broken, None

    def _stamp(self, known: OpenText) -> None:
        self._stamps += 1
        known.stamp = self._stamps


def path_of(uri: object) -> str:
    """The path that a ``file`` address names.

    Raises:
        InvalidParamsError: It is no such address, or one on another machine.
    """
    path = uris.path_of(uri)
    if path is None:
        raise InvalidParamsError("a document has to be named by a file address of this machine")
    return path


def _applied(text: str, change: object, unit: Unit) -> str:
    """A text with one change of the client's made in it."""
    fields = change if isinstance(change, dict) else {}
    new = _text(fields.get("text"))
    if _is_whole(change):
        return new
    where = fields["range"]
    try:
        start, end = (
            Position(int(where[side]["line"]), int(where[side]["character"]))
            for side in ("start", "end")
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InvalidParamsError("a change's range needs a start and an end") from None
    index = LineIndex(text)
    first, last = index.offset(start, unit), index.offset(end, unit)
    if last < first:
        raise InvalidParamsError("the end of a change lies before its start")
    return EditList((Edit(first, last, new),)).apply(text)


def _is_whole(change: object) -> bool:
    return isinstance(change, dict) and change.get("range") is None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidParamsError("a document's text has to be a string")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise InvalidParamsError("a document's text holds half a character") from None
    if size > TEXT_LIMIT:
        raise InvalidParamsError(f"a document's text has {size:,} bytes, too many")
    return value


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
