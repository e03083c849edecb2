"""XML of project files as plain values, with nothing in it that could grow when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MAX_DEPTH", "MAX_ELEMENTS", "XmlElement", "XmlError", "parse"]

MAX_ELEMENTS: Final = 50_000
MAX_DEPTH: Final = 100
MALFORMED: Final = "MSB4025"
"""The code of a project file that is no XML."""


class XmlError(Exception):
    """A text is no XML, or is none that is read.

    Attributes:
        line: Where, from 1.
        code: Under which a build says the same; empty where it would read it.
    """

    def __init__(self, message: str, line: int, code: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.code = code


@dataclass(frozen=True, slots=True)
class XmlElement:
    """An element.

    Attributes:
        name: Without its namespace.
        line: Where it starts, from 1.
        attributes: By name, without namespaces.
        children: In order.
        text: All text directly in it.
    """

    name: str
    line: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[XmlElement, ...] = ()
    text: str = ""

    def get(self, name: str) -> str:
        """An attribute, whatever the case of its name; empty where there is none."""
        wanted = name.lower()
        return next((v for key, v in self.attributes.items() if key.lower() == wanted), "")

    def all(self) -> Iterator[XmlElement]:
        """The element and all beneath it."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(reversed(one.children))


@dataclass(slots=True)
class _Open:
    """An element whose end has not been read."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[XmlElement] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def closed(self) -> XmlElement:
        return XmlElement(
            self.name, self.line, self.attributes, tuple(self.children), "".join(self.text)
        )


class _Reader:
    """Collects what the parser reports."""

    def __init__(self) -> None:
        # The text is decoded already: what it says about its encoding does not count any more.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.stack: list[_Open] = []
        self.root: XmlElement | None = None
        self.count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        line = self.parser.CurrentLineNumber
        if self.count > MAX_ELEMENTS:
            raise XmlError(f"it has more than {MAX_ELEMENTS:,} elements", line)
        if len(self.stack) >= MAX_DEPTH:
            raise XmlError(f"its elements are nested deeper than {MAX_DEPTH} levels", line)
        plain = {_local(key): value for key, value in attributes.items()}
        self.stack.append(_Open(_local(name), line, plain))

    def _end(self, _name: str) -> None:
        element = self.stack.pop().closed()
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element

    def _text(self, text: str) -> None:
        if self.stack:
            self.stack[-1].text.append(text)

    def _doctype(self, *_what: object) -> None:
        raise XmlError(
            "it declares a document type, which is not read", self.parser.CurrentLineNumber
        )


def parse(text: str) -> XmlElement:
    """The outermost element of a text.

    Raises:
        XmlError: The text is not well-formed, too large, or declares a document type.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise XmlError(
            f"it is no well-formed XML: {expat.errors.messages[error.code]}",
            error.lineno,
            MALFORMED,
        ) from error
    if reader.root is None:
        raise XmlError("it is empty", 1, MALFORMED)
    return reader.root


def _local(name: str) -> str:
    return name.rpartition(":")[2]
