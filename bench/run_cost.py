"""What `filepact run` costs: its start, programs at work in it, and the commit of what they did.

Each figure is a ratio, or a difference, of two programs that do the same, one inside and one outside, by
turns; what is reported is the median over the rounds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 5
FILES = 300
COMMITTED = 1_000


def seconds(words: Sequence[str], folder: Path, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def timed(script: str, folder: Path, environment: dict[str, str], *, inside: bool) -> float:
    """Seconds that a script takes the second time, by its own clock: no start is in it, no first look."""
    words = ["sh", "-c", f"{script}; a=$(date +%s%N); {script}; b=$(date +%s%N); echo $((b-a))"]
    if inside:
        words = [sys.executable, "-m", "filepact", "run", "--layers", "required", "--", *words]
    done = subprocess.run(
        words, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1]) / 10**9


def sources(folder: Path) -> None:
    for number in range(FILES):
        body = f"int f{number}(int a) {{ return a + {number}; }}\n"
        (folder / f"f{number}.c").write_text(f"#include <stdio.h>\n{body}")
    objects = " ".join(f"f{number}.o" for number in range(FILES))
    (folder / "Makefile").write_text(f"all: {objects}\nclean:\n\trm -f *.o\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def committed(folder: Path, base: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds that a commit of many files takes, and a copy of them with fsync."""
    made = base / "made"
    made.mkdir(exist_ok=True)
    for number in range(COMMITTED):
        (made / f"m{number}.txt").write_text(f"{number}\n" * 100)
    words = [sys.executable, "-m", "filepact", "run", "--writable", str(made), "--"]
    nothing = seconds([*words, "true"], folder, environment)
    copied = seconds([*words, "cp", "-a", str(made), "made"], folder, environment)
    shutil.rmtree(folder / "made")
    begun = time.perf_counter()
    subprocess.run(["cp", "-a", str(made), str(base / "copy")], check=True)
    for path in (base / "copy").iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    plain = time.perf_counter() - begun
    shutil.rmtree(base / "copy")
    return copied - nothing, plain


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="filepact-bench-", dir=Path.home()))
    try:
        folder = home / "root"
        folder.mkdir()
        environment = {**os.environ, "FILEPACT_STATE_DIR": str(home / "state")}
        run = [sys.executable, "-m", "filepact", "run", "--", "true"]
        starts = [
            seconds(run, folder, environment)
            - seconds(["unshare", "-Urm", "true"], folder, environment)
            for _ in range(ROUNDS)
        ]
        print(f"run -- true: {statistics.median(starts) * 1000:.0f} ms above unshare -Urm true")
        version = [sys.executable, "-m", "filepact", "--version"]
        plain = statistics.median(seconds(version, folder, environment) for _ in range(ROUNDS))
        print(f"  of these {plain * 1000:.0f} ms for the start of Python and the command")
        sources(folder)
        for name, script in (
            ("git status", "git status --short >/dev/null"),
            ("search", "grep -r return . >/dev/null"),
            ("build of 300 C files", "make -s CC=cc all >/dev/null; rm -f *.o"),
        ):
            ratios = [
                timed(script, folder, environment, inside=True)
                / timed(script, folder, environment, inside=False)
                for _ in range(ROUNDS)
            ]
            print(f"{name}: {statistics.median(ratios):.2f} of outside")
        pairs = [committed(folder, home, environment) for _ in range(3)]
        ratio = statistics.median(mine / plain for mine, plain in pairs)
        print(f"commit of {COMMITTED:,} files: {ratio:.1f} of cp -a with fsync")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
