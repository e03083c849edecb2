"""Where faulty edits of real files end: seventeen kinds of slips, counted.

    python bench/faulty_edits.py [--count N] [--seed N] [--write]

The cases are those of faulty_cases.py.  The engines are filepact, a search for the exact text
that must stand once, and two packages if they are installed (``purepatch``,
``apply-edit-block``); every one gets the same cases in the same run.  ``--write`` puts the tables
into bench/README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.faulty_cases import (
    KINDS,
    OUTCOMES,
    Case,
    Source,
    blocks,
    cases,
    crlf_file,
    dedented,
    exact,
    judge,
    line_numbers,
    sources,
    text_of,
    trailing_in_copy,
    typography,
)
from filepact.errors import FilepactError
from filepact.text.locate import place

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by faulty_edits.py -->"
END = "<!-- end of what faulty_edits.py wrote -->"


# -- engines ------------------------------------------------------------------------------


def filepact(text: str, old: str, new: str) -> str | None:
    try:
        return place(text, old, new).edits.apply(text)
    except FilepactError:
        return None


def exact_once(text: str, old: str, new: str) -> str | None:
    return text.replace(old, new) if text.count(old) == 1 else None


def engines() -> dict[str, Callable[[str, str, str], str | None]]:
    """The engines that are here."""
    found: dict[str, Callable[[str, str, str], str | None]] = {
        "filepact": filepact,
        "exact, once": exact_once,
    }
    if importlib.util.find_spec("purepatch"):
        import purepatch  # noqa: PLC0415 - only where it is installed

        def by_purepatch(text: str, old: str, new: str) -> str | None:
            try:
                return purepatch.apply_edit(text, old, new)
            except purepatch.PatchError:
                return None

        found["purepatch"] = by_purepatch
    if importlib.util.find_spec("apply_edit_block"):
        import apply_edit_block  # noqa: PLC0415 - only where it is installed

        def by_blocks(text: str, old: str, new: str) -> str | None:
            result = apply_edit_block.apply_edit(text, {"search": old, "replace": new})
            return result.text if result.ok else None

        found["apply-edit-block"] = by_blocks
    return found


# -- the report ---------------------------------------------------------------------------


def measure(count: int, seed: int) -> list[str]:
    """Run everything; the lines of the report."""
    files = sources()
    runs = engines()
    totals: dict[str, Counter[str]] = {name: Counter() for name in runs}
    forced: Counter[str] = Counter()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    rows = []
    for kind, some in cases(files, count, seed):
        row = [kind]
        for name, engine in runs.items():
            outcomes: Counter[str] = Counter()
            for case in some:
                start = time.perf_counter()
                result = engine(case.text, case.old, case.new)
                seconds[name].append(time.perf_counter() - start)
                outcomes[judge(case, result)] += 1
                forced[name] += case.right is None and result is not None
            totals[name] += outcomes
            row.append(", ".join(f"{outcomes[o]} {o}" for o in OUTCOMES if outcomes[o]))
        rows.append(row)
    solvable = (len(KINDS) - 4) * count
    intro = (
        f"{len(KINDS)} kinds x {count} cases from {len(files)} files (Python, C headers, "
        f"JavaScript and TypeScript), seed {seed}; {solvable:,} are edits of a block that is "
        f"there, {4 * count} must be refused. A block with a typo or with escaped quotes is "
        f"refused by design, so {solvable - 2 * count:,} is all that can be right here."
    )
    head = [*OUTCOMES, "of these where it must refuse", "median"]
    lines = [intro, "", f"| engine | {' | '.join(head)} |", "| --- " * (len(head) + 1) + "|"]
    for name, counted in totals.items():
        figures = " | ".join(str(counted[outcome]) for outcome in OUTCOMES)
        median = statistics.median(seconds[name]) * 1e6
        lines.append(f"| {name} | {figures} | {forced[name]} | {median:,.0f} \u00b5s |")
    lines += ["", "| kind | " + " | ".join(runs) + " |", "| --- " * (len(runs) + 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return [*lines, "", *timing()]


def timing(rounds: int = 300) -> list[str]:
    """What one placement costs in a file of 2,000 lines, by the step that finds it."""
    chance = random.Random(2)
    files = [source for source in sources() if source.name.endswith(".py")]
    lines = [line for source in files for line in source.lines][:2_000]
    whole = text_of(lines)
    found: dict[str, list[float]] = {}
    for damage in (exact, crlf_file, trailing_in_copy, dedented, typography, line_numbers):
        some: list[Case] = []
        for block in blocks([Source("long.py", tuple(lines))], chance):
            case = damage(block, chance)
            if case is not None and filepact(case.text, case.old, case.new) is not None:
                some.append(case)
            if len(some) == rounds:
                break
        for case in some:
            start = time.perf_counter()
            step = place(case.text, case.old, case.new).step
            found.setdefault(step, []).append(time.perf_counter() - start)
    head = f"One placement in a file of 2,000 lines ({len(whole) // 1_000} kB), by step:"
    table = ["| step | median | 95 of 100 within |", "| --- | --- | --- |"]
    for step, times in found.items():
        if len(times) >= 20:
            ninety = statistics.quantiles(times, n=20)[-1]
            table.append(
                f"| {step} | {statistics.median(times) * 1e6:.0f} \u00b5s | {ninety * 1e6:.0f} \u00b5s |"
            )
    return [head, "", *table]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    options = parser.parse_args()
    lines = measure(options.count, options.seed)
    print("\n".join(lines))
    if options.write:
        readme = HERE / "README.md"
        head, _, rest = readme.read_text().partition(MARK)
        tail = rest.partition(END)[2]
        readme.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n\n" + END + tail)


if __name__ == "__main__":
    main()
