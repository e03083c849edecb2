"""Special files and bombs are answered by a real server, which then goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.hostile.bombs import BOMBS, Bomb
from tests.hostile.specials import CannotMakeError, detonate

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is looked up in /proc")

# Growth that no machine's other work explains; `scripts/deep` measures against the real bar.
FAR_TOO_MUCH = 256 << 20


@pytest.mark.slow(after=8)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name.replace(" ", "-"))
def test_a_server_answers_and_goes_on(bomb: Bomb, tmp_path: Path) -> None:
    try:
        measured = detonate(bomb, tmp_path)
    except CannotMakeError as error:
        pytest.skip(str(error))
    assert measured.alive
    assert measured.grown < FAR_TOO_MUCH
    if bomb.codes:
        assert set(measured.codes) <= bomb.codes
