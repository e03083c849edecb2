"""What a file says itself about its encoding.

Which forms count depends on what the file is, by its name or by how it begins: a sentence about
encodings in a text must not be taken for one of these.  All of them can only be read when the
file extends ASCII, so a file that says it is UTF-16 in them is not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from filepact.text.charsets import UNIT, find_charset, is_misleading

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["declared", "heeded", "misleading", "names_encoding"]

_HEAD = 1_024
"""Bytes in which a declaration has to stand; browsers look as far."""

_MENTIONS = (b"coding", b"charset", b"fenc")
_AT_END = (b"fenc", b"fileencoding")
_COMMENT = re.compile(rb"[ \t\f]*(?:#|\r?$)")
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_EMACS_LINE = re.compile(rb"-\*-(.*?)-\*-")
_EMACS = re.compile(rb"(?:^|[; \t])(?:file)?coding[ \t]*:[ \t]*([-\w.:]+)", re.IGNORECASE)
_VIM = re.compile(
    rb"(?:^|[ \t])(?:vim?(?:[<=>]?\d+)?|ex):[ \t]*(?:.*?[ \t:])?(?:fileencoding|fenc)=([-\w.]+)"
)
_XML = re.compile(rb"<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*[\"']([-\w.:]+)[\"']")
_CSS = re.compile(rb'@charset "([^"\r\n]{1,40})";')
_META = re.compile(
    rb"<meta[ \t\r\n/][^>]*?charset[ \t\r\n]*=[ \t\r\n]*[\"']?[ \t\r\n]*([-\w.:]+)", re.IGNORECASE
)
_HTML_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HTML_START = re.compile(
    rb"(?>\s|<!--.*?-->|<\?xml[^>]*>)*+<(?:!doctype[ \t\r\n]+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_SCRIPT = re.compile(rb"#!.*\b(?:python|ruby)")

_CODED = (".py", ".pyi", ".pyw", ".pyx", ".pxd", ".rb", ".rake")
_STYLES = (".css", ".scss", ".sass", ".less")
_PAGES = (".html", ".htm", ".xhtml", ".xht", ".shtml")


def declared(data: bytes, name: str = "", *, complete: bool = True) -> str | None:
    """The encoding that a file names in itself, by Python's name; None when it names none.

    Known are the coding line of Python and Ruby, ``-*- coding: x -*-`` in the first two lines,
    ``fileencoding=`` in a Vim modeline of the first or last five, the XML declaration, ``<meta
    charset>`` and ``@charset``.

    Args:
        data: The file's bytes, or its first ones.
        name: The file's name, whose ending tells what kind of file it is.
        complete: Whether this is all of the file, so that its end can be looked at.
    """
    for word, _ in _named(data, name, complete=complete):
        codec = find_charset(word)
        if codec is not None and codec not in UNIT and codec not in ("utf-16", "utf-32"):
            return codec.removesuffix("-sig")
    return None


def names_encoding(data: bytes) -> bool:
    """Whether a file may name an encoding in itself; false is certain."""
    small = data[:_HEAD].lower()
    return any(word in small for word in _MENTIONS) or any(
        word in data[-_HEAD:] for word in _AT_END
    )


def heeded(data: bytes, name: str, codec: str) -> bool:
    """Whether programs that read such a file heed its word that it is in an encoding."""
    return any(programs and find_charset(word) == codec for word, programs in _named(data, name))


def misleading(data: bytes, name: str) -> str:
    """A word in a file that has programs read other text than stands there; empty for none."""
    words = (word for word, programs in _named(data, name) if programs and is_misleading(word))
    return next(words, "")


def _named(data: bytes, name: str, *, complete: bool = True) -> Iterator[tuple[str, bool]]:
    """Every name of an encoding that stands where one counts, the weightiest first.

    With each, whether it is for the programs that such files are made for, or for editors alone.
    """
    head = data[:_HEAD]
    tail = data[max(len(data) - _HEAD, _HEAD) :] if complete else b""
    small = head.lower()
    if not any(word in small for word in _MENTIONS) and not any(word in tail for word in _AT_END):
        return
    for found, programs in _words(head, tail, name.lower()):
        if found is not None:
            yield found[1].decode("ascii", "replace"), programs


def _words(head: bytes, tail: bytes, name: str) -> Iterator[tuple[re.Match[bytes] | None, bool]]:
    yield _XML.match(head), True
    if name.endswith(_STYLES):
        yield _CSS.match(head), True
    if name.endswith(_PAGES) or _HTML_START.match(head):
        yield _META.search(_HTML_COMMENT.sub(b"", head)), True
    lines = _lines(head)
    variables = [_EMACS_LINE.search(line) for line in lines[:2]]
    for line in variables:
        if line is not None:
            yield _EMACS.search(line[1]), False
    if name.endswith(_CODED) or _SCRIPT.match(head):
        yield _CODING.match(lines[0]), True
        # The second line counts only where the first is none of the program's.
        if len(lines) > 1 and _COMMENT.match(lines[0]):
            yield _CODING.match(lines[1]), True
    if b"fenc" in head or b"fileencoding" in head:
        for text in lines[:5]:
            yield _VIM.search(text), False
    if tail:
        for text in _lines(tail.rstrip(b"\r\n"))[-5:]:
            yield _VIM.search(text), False


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n" if b"\n" in data else b"\r")
