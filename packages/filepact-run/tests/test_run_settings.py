"""The table `run` of a person's settings."""

from __future__ import annotations

import pytest

from filepact.config.settings import parse_settings
from filepact.errors import InvalidParamsError
from filepact_run.settings import RunSettings


def test_what_runs_may_do_is_set() -> None:
    assert parse_settings("[run]\n", name="f.toml").extensions["run"] == RunSettings()
    text = '[run]\nbuilds = "discard"\nwritable = ["/srv/x", "~/y"]\ncommit = "end"\n'
    wanted = RunSettings("discard", ("/srv/x", "~/y"), "end")
    assert parse_settings(text, name="f.toml").extensions["run"] == wanted


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[run]\nbuilds = "keep"\n', "run.builds"),
        ('[run]\nwritable = ["x"]\n', "run.writable"),
        ('[run]\ncommit = "often"\n', "run.commit"),
        ("[run]\nmode = 1\n", "run.mode"),
    ],
)
def test_a_wrong_word_about_runs_is_refused_with_its_line(text: str, key: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name="f.toml")
    assert (caught.value.details["line"], caught.value.details["key"]) == (2, key)
