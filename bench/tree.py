"""A tree of source-like files, the same on every machine that has the same seed."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SEED", "plant", "source_lines"]

SEED = 20_261_124

_WORDS = """
account amount build cache client config cursor data decode encode error event field file
flush handle index input key line list load lock map match merge name node offset open parse
path plan point query read record render reset result route save scan send shape size stage
state store stream table text token tree update value view walk write
""".split()  # noqa: SIM905 - words read better than a list

_SHAPES = (
    "def {0}({1}, {2}):",
    "    {0} = {1}.{2}({3})",
    "    if {0} is not None and {1} > {4}:",
    "        return {0}({1}, {2}={4})",
    "import {0}",
    "    # the {1} of a {2} before the {3}",
    "const {0} = await {1}.{2}(`${{{3}}}`);",
    '    raise ValueError(f"no {1} in {{{0}}}")',
    "",
)
_LINES = 20_000
_ENDINGS = ("py", "py", "py", "ts", "ts", "js", "md", "json", "c", "h")


def plant(folder: Path, *, files: int, seed: int = SEED) -> int:
    """Fill a folder; returns the number of bytes written.

    Names are as common as they are in sources: few of them stand everywhere, most in one file or two.
    There are three files in a folder and a hundred lines in a file, in the middle.
    """
    dice = random.Random(seed)
    lines = source_lines(dice)
    folders = _folders(folder, dice, files // 3)
    size = 0
    for number in range(files):
        start = dice.randrange(len(lines))
        many = int(dice.lognormvariate(4.6, 0.7))
        own = f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}_{number}"
        text = "\n".join([f"# {own}", *lines[start : start + many], f"{own} = {many}", ""])
        data = text.encode()
        ending = dice.choice(_ENDINGS)
        stem = dice.choice(_WORDS)
        test = "test_" if dice.random() < 0.1 else ""
        (dice.choice(folders) / f"{test}{stem}_{number}.{ending}").write_bytes(data)
        size += len(data)
    return size


def source_lines(dice: random.Random) -> list[str]:
    names = [f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}{n}" for n in range(6_000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(names) + len(_WORDS) + 1)))
    picked = iter(dice.choices([*_WORDS, *names], cum_weights=weights, k=_LINES * 4))
    return [
        dice.choice(_SHAPES).format(*(next(picked) for _ in range(4)), dice.randrange(10_000))
        for _ in range(_LINES)
    ]


def _folders(top: Path, dice: random.Random, count: int) -> list[Path]:
    found = [top]
    for number in range(count):
        parent = dice.choice(found[-400:])
        if len(parent.relative_to(top).parts) >= 7:
            continue
        made = parent / f"{dice.choice(_WORDS)}_{number}"
        made.mkdir()
        found.append(made)
    return found
