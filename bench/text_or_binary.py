"""What is taken for text and for binary, on the files of this machine.

    PYTHONPATH=src python bench/text_or_binary.py [--write] [FOLDER ...]

The corpus is found when this runs: files whose ending, or whose place, tells what they are.  All of the
binary ones that hold a NUL, and so are judged by how few there are, have to stay binary.  Texts are judged
as they are, and with one NUL, with one byte that is not UTF-8, and cut within their last letter.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.text.detect_encoding import recognise
from filepact.values import words

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by text_or_binary.py -->"
END = "<!-- end of what text_or_binary.py wrote -->"
EACH = 400
"""Most files of one ending."""
LARGEST = 2_000_000

TEXT = words(
    ".py .pyi .h .c .txt .md .html .js .ts .json .xml .rst .sh .css .cfg .toml .yaml .yml .pl .pm "
    ".ini .conf .csv .svg .tcl .hpp .go .po .mjs "
)
BINARY = words(
    ".pyc .mo .gmo .png .jpg .jpeg .gif .ico .ttf .otf .woff .woff2 .gz .xz .bz2 .zst .zip .whl .jar "
    ".so .a .o .exe .dll .db .idx .pack .wav .npy .npz .pickle .class .wasm .pdf .tar .typelib "
    ".gresource .sqlite .cache "
)
PLACES = ("/terminfo/", "/zoneinfo/")


def found(tops: list[str]) -> Iterator[tuple[bool, str, bytes]]:
    """Files that are surely the one or the other: whether one is text, its ending, and its bytes."""
    taken: Counter[str] = Counter()
    for top in tops:
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                ending = path.suffix.lower()
                placed = any(part in f"{folder}/" for part in PLACES)
                kind = "placed" if placed else ending
                if (ending not in TEXT and ending not in BINARY and not placed) or taken[
                    kind
                ] >= EACH:
                    continue
                try:
                    if path.is_symlink() or not 0 < path.stat().st_size <= LARGEST:
                        continue
                    data = path.read_bytes()
                except OSError:
                    continue
                taken[kind] += 1
                yield ending in TEXT and not placed, kind, data


def spoiled(data: bytes, chance: random.Random) -> dict[str, bytes]:
    """A text with damage of each kind."""
    at = chance.randrange(len(data))
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    kinds = {
        "with a NUL": data[:at] + b"\0" + data[at:],
        "with a byte FF": data[:at] + b"\xff" + data[at:],
    }
    last = max(
        (i for i in range(len(data) - 1, max(len(data) - 5_000, 0), -1) if data[i] >= 0xC0),
        default=0,
    )
    if last:
        kinds["cut within a letter"] = data[: last + 1]
    return kinds


def is_text(data: bytes) -> bool:
    return recognise(data, complete=True) is not None


def is_utf_8(data: bytes) -> bool:
    judged = recognise(data, complete=True)
    return judged is not None and judged[1].name == "utf-8"


def report(tops: list[str]) -> str:
    chance = random.Random(1)
    rows: dict[str, Counter[str]] = {}
    odd: Counter[str] = Counter()
    for text, kind, data in found(tops):
        holds_nul = "with NULs" if b"\0" in data else "without"
        row = rows.setdefault(f"text, {holds_nul}" if text else f"binary, {holds_nul}", Counter())
        row["files"] += 1
        row["taken for text"] += is_text(data)
        if not text and is_text(data) and b"\0" in data:
            odd[kind] += 1
        if not text or not is_utf_8(data) or b"\0" in data:
            continue
        letters = "ASCII" if data.isascii() else "UTF-8"
        for damage, made in spoiled(data, chance).items():
            row = rows.setdefault(f"{letters}, {damage}", Counter())
            row["files"] += 1
            row["taken for text"] += is_text(made)
            row["as UTF-8"] += is_utf_8(made)
    lines = [
        MARK,
        "",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}; at most {EACH} files of an ending.",
        "",
        "| files | how many | taken for text | as UTF-8 |",
        "| --- | --- | --- | --- |",
    ]
    for name in sorted(rows):
        row = rows[name]
        cells = [f"{row[one]:,}" for one in ("files", "taken for text")]
        lines.append(
            f"| {name} | {' | '.join(cells)} | {row['as UTF-8']:,} |"
            if "as UTF-8" in row
            else f"| {name} | {' | '.join(cells)} | |"
        )
    if odd:
        lines += [
            "",
            "Binary files with NULs that are taken for text: "
            + ", ".join(f"{n} of {k}" for k, n in sorted(odd.items()))
            + ".",
        ]
    return "\n".join([*lines, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    parser.add_argument(
        "folders", nargs="*", help="where to look; else the system and Python's packages"
    )
    given = parser.parse_args()
    said = report(given.folders or ["/usr/share", "/usr/lib", sysconfig.get_path("purelib")])
    print(said)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + said + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
