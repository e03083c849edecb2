"""The picture of the README shows what the commands print now."""

from __future__ import annotations

import html
import re

from tests.architecture.pictures import PICTURE, masked, run, svg, text_of


def words(picture: str) -> str:
    """The lines of text in a picture of ours."""
    lines = re.findall("<text [^>]*>(.*)</text>", picture)
    return masked("\n".join(html.unescape(re.sub("<[^>]*>", "", line)) for line in lines))


def test_the_picture_is_of_what_the_commands_print() -> None:
    shown = run()
    drawn = PICTURE.read_text(encoding="utf-8")
    assert words(drawn) == masked(text_of(shown)).rstrip("\n"), "run ./scripts/pictures"
    assert words(svg(shown)) == words(drawn)
    assert max(map(len, text_of(shown).splitlines())) <= 80
    assert not re.search("/home|/tmp|/root", text_of(shown))
