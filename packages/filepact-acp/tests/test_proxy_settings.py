"""The table `acp` of a person's settings."""

from __future__ import annotations

import pytest

from filepact.config.settings import parse_settings
from filepact.errors import InvalidParamsError


def test_whether_the_proxy_answers_for_its_own_tools_is_set() -> None:
    assert parse_settings("[acp]\n", name="f.toml").extensions["acp"].answer_own
    text = "[acp]\nanswer_own = false\n"
    assert not parse_settings(text, name="f.toml").extensions["acp"].answer_own


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("acp = 1\n", 1, "acp"),
        ("[acp]\nanswers = true\n", 2, "acp.answers"),
        ("[acp]\nanswer_own = 1\n", 2, "acp.answer_own"),
    ],
)
def test_what_is_wrong_about_the_proxy_is_refused_with_its_line(
    text: str, line: int, key: str
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name="f.toml")
    assert (caught.value.details["line"], caught.value.details["key"]) == (line, key)
