"""What it costs to decide what a file is in, beside detectors that guess by frequencies.

    PYTHONPATH=src python bench/encoding_cost.py [--write]

Real Python sources of a usual size, as they are and with comments in other scripts, are decided in
turn.  Beside it stand chardet and charset-normalizer, where they can be imported; how often they
name the encoding in which the text was written, or one that reads it alike, is counted too.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.text.detect_encoding import NamedEncoding, find_charset, recognise

if TYPE_CHECKING:
    from collections.abc import Callable

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by encoding_cost.py -->"
END = "<!-- end of what encoding_cost.py wrote -->"
FILES = 40
SMALLEST, LARGEST = 8_000, 20_000
ROUNDS = 20

# A comment for every twentieth line, in what the file is then written in.
KINDS: dict[str, tuple[str, str, str]] = {
    "ASCII": ("", "utf-8", ""),
    "UTF-8": ("Größe in Metern, auf höchstens zwei Stellen gerundet", "utf-8", ""),
    "UTF-16 with mark": ("Größe in Metern", "utf-16", ""),
    "Latin-1, declared": ("Größe in Metern, höchstens zwei", "latin-1", "declared"),
    "KOI8-R, in the settings": ("размер окна в точках", "koi8-r", "settings"),
    "Shift-JIS, in the settings": ("画面の大きさを設定する", "shift_jis", "settings"),
    "GB 18030, in .editorconfig": ("设置窗口的大小", "gb18030", ".editorconfig"),
    "Windows-1252, nobody says so": ("Größe \u2013 höchstens „zwei“", "cp1252", ""),
}


def sources() -> list[str]:
    """Sources of the standard library that are ASCII and of a usual size."""
    found: list[str] = []
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        data = path.read_bytes()
        if SMALLEST <= len(data) <= LARGEST and data.isascii() and b"coding" not in data[:200]:
            found.append(data.decode("ascii"))
    return found[:FILES]


def written(text: str, comment: str, codec: str, origin: str) -> bytes:
    lines = text.splitlines(keepends=True)
    if comment:
        for at in range(0, len(lines), 20):
            lines[at] = f"# {comment}\n{lines[at]}"
    head = f"# -*- coding: {codec} -*-\n" if origin == "declared" else ""
    return (head + "".join(lines)).encode(codec)


def timed(act: Callable[[bytes], object], files: list[bytes], rounds: int) -> list[float]:
    """Microseconds of each file, the best of several rounds."""
    best = [float("inf")] * len(files)
    for _ in range(rounds):
        for number, data in enumerate(files):
            before = time.perf_counter_ns()
            act(data)
            best[number] = min(best[number], (time.perf_counter_ns() - before) / 1000)
    return best


def detectors() -> dict[str, Callable[[bytes], str | None]]:
    found: dict[str, Callable[[bytes], str | None]] = {}
    for package, module in (("chardet", "chardet"), ("charset-normalizer", "charset_normalizer")):
        try:
            detect = import_module(module).detect
        except ImportError:
            continue
        found[f"{package} {version(package)}"] = lambda data, ask=detect: ask(data)["encoding"]
    return found


def alike(data: bytes, named: str | None, codec: str) -> bool:
    """Whether a name reads the bytes as the text that was written."""
    try:
        return named is not None and data.decode(named) == data.decode(codec)
    except (LookupError, UnicodeError):
        return False


def report() -> str:
    texts = sources()
    others = detectors()
    size = round(statistics.fmean(map(len, texts)))
    about = (
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}; "
        f"{len(texts)} files of {size:,} bytes on average, each the best of {ROUNDS} rounds; for "
        "the detectors, of one."
    )
    names = " | ".join(f"{name}, µs | read alike" for name in others)
    lines = [
        MARK,
        "",
        about,
        "",
        f"| kind | filepact, µs: median | largest{' | ' * bool(names)}{names} |",
        f"| --- | --- | ---{' | ---' * 2 * len(others)} |",
    ]
    for kind, (comment, codec, origin) in KINDS.items():
        files = [written(text, comment, codec, origin) for text in texts]
        named = find_charset(codec)
        said = None
        if origin in ("settings", ".editorconfig"):
            said = NamedEncoding(
                named or codec, "settings" if origin == "settings" else ".editorconfig"
            )

        def decide(data: bytes, said: NamedEncoding | None = said) -> object:
            return recognise(data, complete=True, name="a.py", given=said)

        own = timed(decide, files, ROUNDS)
        cells = [kind, f"{statistics.median(own):.0f}", f"{max(own):.0f}"]
        for ask in others.values():
            took = timed(ask, files, 1)
            right = sum(alike(data, ask(data), codec) for data in files)
            cells += [f"{statistics.median(took):,.0f}", f"{right} of {len(files)}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    found = report()
    print(found)
    if parser.parse_args().write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
