"""The pictures of commands show what they print now."""

from __future__ import annotations

import html
import re

import pytest

from filepact_cli.render import width
from tests.architecture.pictures import IMAGES, PICTURES, masked, run, svg, text_of


def words(picture: str) -> str:
    """The lines of text in a picture of ours."""
    lines = re.findall("<text [^>]*>(.*)</text>", picture)
    return masked("\n".join(html.unescape(re.sub("<[^>]*>", "", line)) for line in lines))


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_of_what_the_commands_print(name: str) -> None:
    columns, typed = PICTURES[name]
    shown = run(columns, typed)
    drawn = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert words(drawn) == masked(text_of(shown)).rstrip("\n"), "run ./scripts/pictures"
    assert words(svg(shown, columns)) == words(drawn)
    assert max(map(width, text_of(shown).splitlines())) <= max(columns, 80)
    assert not re.search("/home|/tmp|/root", text_of(shown))
