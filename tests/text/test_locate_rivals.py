"""A place that differs in blanks is not written to when the place that was meant was rewritten."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from bench.faulty_cases import Block, blocks, rewritten, sources, text_of
from filepact.errors import AmbiguousMatchError, FilepactError
from filepact.text.locate import place

if TYPE_CHECKING:
    from collections.abc import Callable

COPY = """\
if cls in copiers:
    rv = reductor(x)
else:
    reductor = getattr(x, "__reduce__", None)
    if reductor:
        rv = reductor()
"""
DEEPER = text_of(["    " + line for line in COPY.splitlines()])
NEW = DEEPER.replace("reductor()", "reductor(2)")


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(DEEPER.replace("None", "0"), id="a line rewritten"),
        pytest.param(DEEPER.replace("None", "0").replace("else", "elif x"), id="two rewritten"),
        pytest.param(DEEPER.replace("cls", "x"), id="the first line rewritten"),
        pytest.param(DEEPER.replace("reductor()", "x()"), id="the last line rewritten"),
        pytest.param(
            DEEPER.replace("    else:\n", "    elif y:\n        pass\n    else:\n"),
            id="lines put in",
        ),
        pytest.param(DEEPER.replace("        rv = reductor(x)\n", ""), id="a line taken away"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", [True, False])
def test_a_twin_in_other_blanks_is_not_taken_for_a_block_that_was_rewritten(
    there: str, end: str, first: bool
) -> None:
    parts = [there, COPY] if first else [COPY, there]
    text = "def one():\n" + "def two():\n".join(parts)
    with pytest.raises(AmbiguousMatchError) as caught:
        place(text.replace("\n", end), DEEPER, NEW)
    low, high = caught.value.details["lines"]
    assert low < high


def test_mixed_line_ends_do_not_hide_where_the_lines_stand() -> None:
    lines = ("def one():\n" + DEEPER.replace("None", "0") + "def two():\n" + COPY).split("\n")
    text = "".join(line + ("\r\n" if i % 2 else "\n") for i, line in enumerate(lines))
    with pytest.raises(AmbiguousMatchError):
        place(text, DEEPER, NEW)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("    if cls in copiers:\n        pass\n", id="the first line alone"),
        pytest.param("            rv = reductor()\n    if cls in copiers:\n", id="out of order"),
        pytest.param(
            "    if cls in copiers:\n" + "    pass\n" * 20 + "            rv = reductor()\n",
            id="far apart",
        ),
    ],
)
def test_a_line_that_also_stands_elsewhere_does_not_hinder(other: str) -> None:
    text = "def one():\n" + other + "def two():\n" + COPY
    after = place(text, DEEPER, NEW).edits.apply(text)
    assert after == text.replace("None)\n    if reductor:\n        rv = reductor()",
                                 "None)\n    if reductor:\n        rv = reductor(2)")  # fmt: skip


def test_lines_that_repeat_too_often_to_tell_are_refused() -> None:
    text = "}\n" * 15_000 + "only here\n" + "}\n" * 15_000
    with pytest.raises(AmbiguousMatchError):
        place(text, "}\n" * 5 + " only here\n" + "}\n" * 5, "now here\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_long_block_has_its_twin_too(end: str) -> None:
    lines = [f"    value_{number} = make({number})" for number in range(40)]
    there = text_of([*lines[:20], "    value = None", *lines[21:]])
    twin = text_of([line[2:] for line in lines])
    text = ("def one():\n" + there + "def two():\n" + twin).replace("\n", end)
    with pytest.raises(AmbiguousMatchError):
        place(text, text_of(lines), text_of(lines[1:]))


def _deeper(lines: list[str], _chance: random.Random) -> list[str]:
    return ["    " + line if line else line for line in lines]


def _trailing(lines: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(lines))
    return [line + "  " * (i == at) for i, line in enumerate(lines)]


def _blank_line(lines: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(1, len(lines))
    return [*lines[:at], "", *lines[at:]]


def _quotes(lines: list[str], _chance: random.Random) -> list[str]:
    return [line.replace('"', "\u201d").replace("'", "\u2019") for line in lines]


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("damage", [_deeper, _trailing, _blank_line, _quotes])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_no_twin_of_a_rewritten_block_of_a_real_file_is_written_to(
    damage: Callable[[list[str], random.Random], list[str]], end: str
) -> None:
    chance = random.Random(5)
    tried = 0
    for block in blocks(sources(60), chance):
        case = rewritten(block, chance)
        twin = damage(block.old, chance)
        if case is None or twin == block.old:
            continue
        lines = case.text.removesuffix("\n").split("\n")
        at = _seam(block, chance, len(lines))
        text = text_of([*lines[:at], *twin, *lines[at:]], end)
        with pytest.raises(FilepactError):
            place(text, case.old, case.new)
        tried += 1
        if tried == 60:
            break


def _seam(block: Block, chance: random.Random, count: int) -> int:
    """A line outside the block before which something can be put."""
    start, end = len(block.before), len(block.before) + len(block.old)
    at = chance.randrange(count - (end - start) + 1)
    return at if at <= start else at + (end - start)
