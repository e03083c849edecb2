"""Every kind of entry through every door: a part of the table in the suite, all of it in the deep checks."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from tests.entries import ENTRIES
from tests.every_door import DOORS, OF_ROOT, Cell, Door, crashed, judged, root_judged, table
from tests.hostile.sweeps import often
from tests.unprivileged import unprivileged

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux", reason="access lists and namespaces as Linux has them"
    ),
    pytest.mark.slow(measured=True),
]

IN_THIS_PROCESS = [
    door for door in DOORS if not door.whole and door.name not in ("mcp", "command", "restore")
]


def some(number: int, usual: int) -> list:
    """Some of the entries, others for each number; all of them in the deep checks."""
    step = often(usual, 1)
    return list(ENTRIES[number % step :: step])


def check(cells: list[Cell]) -> None:
    wrong = [str(cell)[:500] for cell in cells if cell.verdict == "wrong"]
    assert not wrong, "\n".join([table(cells), *wrong])
    assert any(cell.verdict == "as it is to be" for cell in cells)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name.replace(" ", "-"))
def test_what_goes_through_a_door_comes_back_as_it_was(door: type, tmp_path: Path) -> None:
    usual = 5 if door.whole else 9 if door in IN_THIS_PROCESS[:3] else 15
    check(judged(door, some(DOORS.index(door), usual), tmp_path))


@pytest.mark.parametrize("door", IN_THIS_PROCESS, ids=lambda door: door.name)
def test_the_same_for_an_ordinary_user(door: type, tmp_path: Path) -> None:
    check(unprivileged(partial(judged, door, some(DOORS.index(door) + 4, 16), tmp_path)))


SEEING = [door for door in DOORS if door.program is not Door.program]


@pytest.mark.parametrize("door", SEEING, ids=lambda door: door.name.replace(" ", "-"))
def test_what_a_program_makes_of_the_root_itself_goes_back(door: type, tmp_path: Path) -> None:
    step = often(4, 1)
    check([*root_judged(door, tmp_path, [*OF_ROOT][SEEING.index(door) % step :: step])])


def test_the_same_of_the_root_for_an_ordinary_user(tmp_path: Path) -> None:
    check(unprivileged(lambda: [*root_judged(SEEING[0], tmp_path, [*OF_ROOT][: often(1, 8)])]))


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory here")
@pytest.mark.parametrize("door", IN_THIS_PROCESS[:1], ids=lambda door: door.name)
def test_the_same_on_a_file_system_in_memory(door: type) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        check(judged(door, some(5, 7), Path(folder)))


def test_what_is_killed_on_the_way_is_as_it_was_or_as_it_is_to_be(tmp_path: Path) -> None:
    cells = [
        cell
        for number, entry in enumerate(some(12, 21))
        for cell in crashed(
            entry, tmp_path / "w", first=often(60 + 45 * number, 1), step=often(110, 1)
        )
    ]
    check(cells)
