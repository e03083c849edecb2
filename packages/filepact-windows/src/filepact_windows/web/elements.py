"""HTML as values: every text in it is written out as at a terminal, and escaped, or it is none.

Nothing else makes markup, so what agents write has no way into a page but as text.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from filepact.text.confusables import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Element", "document", "join", "tag"]

_EMPTY: Final = frozenset({"br", "col", "hr", "input", "link", "meta", "rect"})


class Element(str):
    """Text that is HTML already."""

    __slots__ = ()


def join(parts: Iterable[str]) -> Element:
    """Join texts and pieces of markup, one after the other."""
    return Element("".join(part if isinstance(part, Element) else _text(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | int | bool | None) -> Element:
    """An element.

    Args:
        name: Of the element.
        children: Its markup and texts.
        attributes: By name, without a trailing underscore and with ``-`` for others; True stands
            without a value, None and False for no attribute.
    """
    opened = f"<{name}{_attributes(attributes)}>"
    if name in _EMPTY:
        return Element(opened)
    return Element(f"{opened}{join(children)}</{name}>")


def document(title: str, head: Iterable[Element], body: Iterable[Element], **facts: str) -> Element:
    """A whole page; facts are attributes of its body."""
    start = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        *head,
    )
    page = tag("html", tag("head", *start), tag("body", *body, **facts), lang="en")
    return Element(f"<!doctype html>{page}")


def _text(text: str) -> str:
    return escape(visible(text), quote=False)


def _attributes(attributes: Mapping[str, str | int | bool | None]) -> str:
    parts: list[str] = []
    for name, value in attributes.items():
        spelt = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {spelt}")
        elif value is not None and value is not False:
            parts.append(f' {spelt}="{escape(visible(str(value)))}"')
    return "".join(parts)
