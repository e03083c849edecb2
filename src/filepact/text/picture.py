"""Recognises pictures by their first bytes: the format and the size in pixels."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Image", "picture_of"]

_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
_ALONE = frozenset({0x01, 0xFF, *range(0xD0, 0xDA)})


class Image(NamedTuple):
    """A picture.

    Attributes:
        name: Its format, for people.
        mime: The same for programs.
        width: Pixels; 0 where its first bytes do not say.
        height: The same.
    """

    name: str
    mime: str
    width: int = 0
    height: int = 0


def picture_of(head: bytes) -> Image | None:
    """The picture that begins with these bytes; None for everything but PNG, JPEG, GIF and WebP."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image("PNG", "image/png", _big(head[16:20]), _big(head[20:24]))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Image("GIF", "image/gif", _little(head[6:8]), _little(head[8:10]))
    if head.startswith(b"\xff\xd8\xff"):
        return Image("JPEG", "image/jpeg", *_jpeg(head))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Image("WebP", "image/webp", *_webp(head))
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _jpeg(head: bytes) -> tuple[int, int]:
    """From the first frame's header, which segments of other kinds stand before."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        kind = head[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAME:
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        if kind == 0xFF:
            at += 1
        elif kind in _ALONE:
            at += 2
        else:
            at += 2 + max(_big(head[at + 2 : at + 4]), 2)
    return 0, 0


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return 0, 0
