"""A tree of source-like files, the same on every machine."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["plant"]

_WORDS = """
account amount build cache client config cursor data decode encode error event field file
flush handle index input key line list load lock map match merge name node offset open parse
path plan point query read record render reset result route save scan send shape size stage
state store stream table text token tree update value view walk write
""".split()  # noqa: SIM905 - words read better than a list


def plant(folder: Path, *, files: int = 6_000, seed: int = 20_261_121) -> int:
    """Fill a folder; returns the number of files made."""
    dice = random.Random(seed)
    folders = [folder]
    for number in range(files // 5):
        parent = dice.choice(folders[-400:])
        made = parent / f"{dice.choice(_WORDS)}_{number}"
        if len(made.relative_to(folder).parts) > 8:
            continue
        made.mkdir(parents=True)
        folders.append(made)
    for number in range(files):
        ending = dice.choice(["py", "py", "ts", "md", "json", "c", "h"])
        lines = [
            " ".join(dice.choice(_WORDS) for _ in range(dice.randint(1, 10)))
            for _ in range(dice.randint(10, 300))
        ]
        path = dice.choice(folders) / f"{dice.choice(_WORDS)}_{number}.{ending}"
        path.write_text("\n".join(lines) + "\n")
    return files
