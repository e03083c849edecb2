"""Where faulty patches of real files end: twenty-three kinds, counted.

    python bench/faulty_patches.py [--count N] [--seed N] [--write]

The cases are those of patch_cases.py.  The engines are filepact, GNU patch, git apply, and two
packages if they are installed (``purepatch``, ``unipatch``); every one gets the same cases in the
same run.  ``--write`` puts the tables into bench/README.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.patch_cases import FITTING, KINDS, Case, cases
from filepact.errors import FilepactError
from filepact.text.patch import apply, created_text, parse
from filepact.text.patch import reverse as reversed_patch

if TYPE_CHECKING:
    from collections.abc import Callable

    Engine = Callable[[Case], str | None]

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by faulty_patches.py -->"
END = "<!-- end of what faulty_patches.py wrote -->"


def filepact(case: Case) -> str | None:
    """The file afterwards, empty when it is deleted; None when the patch is refused."""
    try:
        (patch,) = parse(case.patch)
        patch = reversed_patch(patch) if case.reverse else patch
        if patch.creates:
            return created_text(patch) if case.text is None else None
        text = case.text or ""
        return apply(text, patch).edits.apply(text)
    except FilepactError:
        return None


def program(*command: str) -> Engine:
    def run(case: Case) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "f")
            if case.text is not None:
                file.write_bytes(case.text.encode())
            flags = ["-R"] if case.reverse else []
            named = ["f"] if command[0] == "patch" and case.text is not None else []
            done = subprocess.run(
                [*command, *flags, *named],
                cwd=folder,
                input=case.patch.encode(),
                capture_output=True,
                check=False,
            )
            if done.returncode:
                return None
            return file.read_bytes().decode() if file.exists() else ""

    return run


def engines() -> dict[str, Engine]:
    found: dict[str, Engine] = {"filepact": filepact}
    if shutil.which("patch"):
        found["GNU patch"] = program("patch", "-p1", "-s", "-f", "--no-backup-if-mismatch", "-r-")
    if shutil.which("git"):
        found["git apply"] = program("git", "apply", "--whitespace=nowarn")
    for package, function in (("purepatch", "apply"), ("unipatch", "apply_patch")):
        if importlib.util.find_spec(package):
            found[package] = peer(getattr(importlib.import_module(package), function), package)
    return found


def peer(apply_text: Callable[..., str], package: str) -> Engine:
    def run(case: Case) -> str | None:
        text = case.text or ""
        try:
            if package == "purepatch":
                return apply_text(case.patch, text, reverse=case.reverse)
            return apply_text(text, case.patch, forwards=not case.reverse)
        except Exception:  # noqa: BLE001 - whatever another engine raises is a refusal
            return None

    return run


def judge(case: Case, result: str | None) -> str:
    """``right``, ``refused`` or ``WRONG``; a refusal is right where nothing fits."""
    if result is None:
        return "right" if case.right is None else "refused"
    return "right" if result == case.right else "WRONG"


def measure(count: int, seed: int, chosen: dict[str, Engine]) -> dict[str, dict[str, Counter[str]]]:
    """For each engine and kind how often each outcome came."""
    table: dict[str, dict[str, Counter[str]]] = {
        engine: {kind: Counter() for kind in KINDS} for engine in chosen
    }
    for case in cases(count, seed):
        for engine, run in chosen.items():
            table[engine][case.kind][judge(case, run(case))] += 1
    return table


def short(counted: Counter[str]) -> str:
    letters = (("right", "R"), ("refused", "-"), ("WRONG", "**W**"))
    return " ".join(f"{sign}{counted[name]}" for name, sign in letters if counted[name])


def report(count: int, seed: int) -> list[str]:
    chosen = engines()
    table = measure(count, seed, chosen)
    fitting, total = len(FITTING) * count, len(KINDS) * count
    heading = (
        f"| engine | right (of {fitting}) | refused | WRONG | WRONG, must refuse "
        f"(of {total - fitting}) | median |"
    )
    lines = [
        f"{len(KINDS)} kinds, {count} patches each, seed {seed}.",
        "",
        heading,
        "| --- | --- | --- | --- | --- | --- |",
    ]
    timed = cases(4, seed)
    for engine, kinds in table.items():
        good: Counter[str] = sum((kinds[kind] for kind in FITTING), Counter())
        bad: Counter[str] = sum((kinds[kind] for kind in KINDS if kind not in FITTING), Counter())
        spent = []
        for case in timed:
            begin = time.perf_counter()
            chosen[engine](case)
            spent.append(time.perf_counter() - begin)
        lines.append(
            f"| {engine} | {good['right']} | {good['refused']} | {good['WRONG']} | {bad['WRONG']} "
            f"| {statistics.median(spent) * 1e6:,.0f} µs |"
        )
    lines += [
        "",
        f"Of {count}: R right, - refused though it fits, W wrong. The last four must be refused.",
        "",
        "| kind | " + " | ".join(table) + " |",
        "| --- |" + " --- |" * len(table),
    ]
    lines += [
        f"| {kind} | " + " | ".join(short(table[engine][kind]) for engine in table) + " |"
        for kind in KINDS
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Count where faulty patches end.")
    parser.add_argument("--count", type=int, default=40, help="patches of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    options = parser.parse_args()
    lines = report(options.count, options.seed)
    print("\n".join(lines))
    if options.write:
        readme = HERE / "README.md"
        head, _, rest = readme.read_text().partition(MARK)
        tail = rest.partition(END)[2]
        readme.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n\n" + END + tail)


if __name__ == "__main__":
    main()
