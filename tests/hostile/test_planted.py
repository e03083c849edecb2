"""No answer to an agent carries anything of a file that it may not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.workspace.guard import Guard
from tests.hostile.planted import FORMS, SIDES, at_the_editor, look_everywhere

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.acp.sides import Side
    from tests.hostile.planted import Form

FEW = FORMS[::3]
"""As many as a test run has time for; `scripts/deep planted` takes all."""

AT_EDITORS = [FORMS[0], *(one for one in FORMS if str(one) in ("link plain.txt", "key notes.txt"))]


def test_the_forms_are_a_hundred_and_differ() -> None:
    assert len({(one.what, one.name) for one in FORMS}) == len(FORMS) >= 100


def test_nothing_of_a_planted_secret_is_seen(tmp_path: Path) -> None:
    seen, answers = look_everywhere(tmp_path, FEW)
    assert seen == []
    assert answers > 100 * len(FEW)


def test_a_door_that_does_not_ask_whether_it_hides_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "hides", lambda *_arguments, **_words: False)
    seen, _answers = look_everywhere(tmp_path, FORMS[:1])
    assert {line.partition(" ")[0] for line in seen} >= {"text", "revision", "sameness"}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("form", AT_EDITORS, ids=str)
def test_nothing_of_it_is_seen_behind_an_editor(
    tmp_path: Path, side: type[Side], form: Form
) -> None:
    assert at_the_editor(side(tmp_path), form) == []


@pytest.mark.parametrize("side", SIDES[1:])  # The first is in a process of its own.
def test_an_editor_whose_door_does_not_ask_is_found_out(
    tmp_path: Path, side: type[Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "hides", lambda *_arguments, **_words: False)
    assert at_the_editor(side(tmp_path), FORMS[0]) != []
