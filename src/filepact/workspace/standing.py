"""How a text that an editor shows stands to what the disk has: one rule for every face.

An editor that is asked answers with a text, and the text alone does not say whether anybody typed
it.  It may be the file in the editor's own way of showing files, the file as it was before another
program wrote to it, or what is left of bytes that the editor cannot read.  None of these is
unsaved text, and none may reach the disk.
"""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from filepact.errors import BinaryFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.domain.document import Document

__all__ = ["Standing", "differs_in_form", "needs_decoding", "same_text", "standing"]

_LOST: Final = "\ufffd"

_GUESSES: Final = (
    *("latin-1", "cp1252", "cp932", "gb18030", "euc_jp", "euc_kr", "big5"),
    *("cp1250", "cp1251", "koi8_r", "cp437", "cp850", "mac_roman"),
)
"""What editors take bytes for that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a text that an editor shows is.

    Attributes:
        kind: ``nothing``: the editor has no such file.  ``same``: what the disk has.  ``older``:
            what editor and disk agreed on before the disk changed.  ``unsaved``: somebody typed
            it.  ``mangled``: what the disk has or had, read in a wrong encoding.  ``doubtful``:
            read in a wrong encoding, and perhaps typed in.
        base: Of unsaved text, the file that it grew from; None for no file.  Of a text that was
            read in a wrong encoding, the file that was read.
    """

    kind: Literal["nothing", "same", "older", "unsaved", "mangled", "doubtful"]
    base: Document | None = None


def standing(
    text: str | None,
    disk: Document | None,
    *,
    agreed: Document | None = None,
    known: str | None = None,
) -> Standing:
    """Tell what an editor's text is.

    Args:
        text: What the editor shows; None for no such file.
        disk: What the disk has; None for no file.
        agreed: The file as it was when editor and disk last had the same text.
        known: The unsaved text that the editor showed when it was asked before.
    """
    if text is None or (disk is None and not text):
        # Many editors answer an empty text for a file that is not there.
        return Standing("nothing")
    if disk is not None and same_text(text, disk):
        return Standing("same")
    if agreed is not None and same_text(text, agreed):
        return Standing("older")
    if disk is None:
        return Standing("unsaved")
    if _is_damaged(text, disk):
        shown = _seen_in(text, (disk, agreed))
        return Standing("doubtful") if shown is None else Standing("mangled", shown)
    if known is not None and same_text(known, disk):
        # The editor has saved what was known of it, and somebody typed on.
        return Standing("unsaved", disk)
    return Standing("unsaved", agreed or disk)


def same_text(text: str, document: Document) -> bool:
    """Whether a text is a document's, in whatever way an editor shows line ends and marks.

    The end of the last line counts as well: an editor that knows lines only shows none.
    """
    try:
        known = document.text
    except BinaryFileError:
        return False
    return text == known or _bare(text).removesuffix("\n") == _bare(known).removesuffix("\n")


def differs_in_form(written: Document, meant: Document) -> bool:
    """Whether a file has the text that was meant in other bytes.

    Other bytes are another encoding, other line ends, or no mark or no end of the last line where
    there was one.  An end of a last line that was not there is text: editors add it on purpose.
    """
    if written.data == meant.data:
        return False
    try:
        wanted = _bare(meant.text)
    except BinaryFileError:
        return False
    return any(_bare(text) in (wanted, wanted.removesuffix("\n")) for text in _readings(written))


def needs_decoding(disk: Document | None) -> bool:
    """Whether an editor that knows UTF-8 alone cannot show what the disk has."""
    if disk is None:
        return False
    try:
        disk.data.decode()
    except UnicodeDecodeError:
        return True
    try:
        return disk.source.encoding.name != "utf-8"
    except BinaryFileError:
        return True


def _bare(text: str) -> str:
    """A text without what tells how it is stored rather than what it says."""
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _readings(document: Document) -> Iterator[str]:
    """What the bytes of a file say: as it is to be read, and as the usual encoding."""
    with suppress(BinaryFileError):
        yield document.text
    with suppress(UnicodeDecodeError):
        yield document.data.decode()


def _is_damaged(text: str, document: Document) -> bool:
    """Whether an editor may have read a document's bytes in a wrong encoding."""
    try:
        known = document.text
    except BinaryFileError:
        return True
    if text.count(_LOST) > known.count(_LOST):
        return True
    # Only ASCII can be typed into a file of which nobody knows the encoding.
    return not document.source.encoding.known and _beyond(text) != _beyond(known)


def _beyond(text: str) -> str:
    return "" if text.isascii() else "".join(char for char in text if char > "\x7f")


def _seen_in(text: str, documents: tuple[Document | None, ...]) -> Document | None:
    """The document of whose bytes a text is all that some encoding makes."""
    shown = _joined(text)
    for document in documents:
        if document is not None and any(_joined(one) == shown for one in _views(document.data)):
            return document
    return None


def _views(data: bytes) -> Iterator[str]:
    data = data.removeprefix(codecs.BOM_UTF8)
    for errors in ("replace", "ignore"):
        yield data.decode("utf-8", errors)
        yield data.decode("ascii", errors)
    for name in _GUESSES:
        yield data.decode(name, "replace")


def _joined(text: str) -> str:
    """A text in which what was lost counts once, however many characters stand for it."""
    text = _bare(text).removesuffix("\n")
    while _LOST * 2 in text:
        text = text.replace(_LOST * 2, _LOST)
    return text
