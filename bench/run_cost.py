"""What `filepact run` costs: its start, programs at work in it, the commit of what they did, and its rest.

Each figure compares two programs that do the same, one inside and one outside, by turns, so that
both have the same machine.  Wall time is what somebody waits for; processor time tells it on a
machine that others use as well.  What is reported is the median, and beside it the least.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 15
FILES = 300
SMALL = 4_000
PACKAGES, PARTS = 40, 60
COMMITTED = 1_000


def seconds(words: Sequence[str], folder: Path, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


WORKER = """
import os, resource, sys, time
for line in sys.stdin:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    os.waitpid(os.posix_spawnp("sh", ["sh", "-c", line], os.environ), 0)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(wall, used, flush=True)
"""
"""Runs what it is told, and says how long each took, and how much processor time."""


class Worker:
    """A program that stays inside or outside, and does one thing after the other."""

    def __init__(self, folder: Path, environment: dict[str, str], *, inside: bool) -> None:
        run = [
            sys.executable,
            "-m",
            "filepact",
            "run",
            "--commit",
            "end",
            "--layers",
            "required",
            "--",
        ]
        self.process = subprocess.Popen(
            [*(run if inside else ()), "/usr/bin/python3", "-c", WORKER],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._told = cast("TextIO", self.process.stdin)
        self._says = cast("TextIO", self.process.stdout)

    def does(self, script: str) -> tuple[float, float]:
        self._told.write(f"{script}\n")
        self._told.flush()
        wall, used = map(float, self._says.readline().split())
        return wall, used

    def end(self) -> None:
        self._told.close()
        self.process.wait()


def compared(script: str, rounds: int, inside: Worker, outside: Worker) -> str:
    """A script inside and outside, by turns: the ratio of what both take."""
    for worker in (inside, outside):
        worker.does(script)  # what is looked up for the first time is not meant
    pairs = [(inside.does(script), outside.does(script)) for _ in range(rounds)]
    said = []
    for at, name in enumerate(("wall", "processor")):
        mine, plain = ([one[side][at] for one in pairs] for side in (0, 1))
        ratio = statistics.median(mine) / statistics.median(plain)
        said.append(f"{name} {ratio:.2f}, least {min(mine) / min(plain):.2f}")
    return "; ".join(said)


def sources(folder: Path) -> None:
    for number in range(FILES):
        body = f"int f{number}(int a) {{ return a + {number}; }}\n"
        (folder / f"f{number}.c").write_text(f"#include <stdio.h>\n{body}")
    objects = " ".join(f"f{number}.o" for number in range(FILES))
    (folder / "Makefile").write_text(f"all: {objects}\nclean:\n\trm -f *.o\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def small_files(folder: Path) -> None:
    """Files of a few hundred bytes, of which opening takes longer than reading."""
    for number in range(SMALL):
        place = folder / f"d{number // 400}" / f"e{number // 20}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}.js").write_text(f"exports.f = () => {{ return {number}; }};\n" * 8)


def packages(folder: Path) -> None:
    """A project whose packages lie beside it, so that an installer needs no network."""
    (folder / "packed").mkdir(parents=True)
    wanted = {}
    for number in range(PACKAGES):
        name = f"packed/p{number}.tgz"
        wanted[f"p{number}"] = f"file:{name}"
        with tarfile.open(folder / name, "w:gz") as archive:
            facts = json.dumps({"name": f"p{number}", "version": "1.0.0"})
            parts = {f"lib/d{at % 6}/f{at}.js": "exports.f = 1;\n" * 80 for at in range(PARTS)}
            for path, text in {"package.json": facts, **parts}.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
    (folder / "package.json").write_text(json.dumps({"name": "x", "dependencies": wanted}))


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


def resting(process: int) -> float:
    """Milliseconds of processor time that ours takes while its program rests."""

    def used() -> int:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(words[11]) + int(words[12])

    before = used()
    time.sleep(20)
    return (used() - before) * 1000 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="filepact-bench-", dir=Path.home()))
    try:
        folder = home / "root"
        folder.mkdir()
        environment = {**os.environ, "FILEPACT_STATE_DIR": str(home / "state")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else all is compiled at each start
        run = [sys.executable, "-m", "filepact", "run", "--", "true"]
        starts = [
            (
                seconds(run, folder, environment),
                seconds(["unshare", "-Urm", "true"], folder, environment),
            )
            for _ in range(ROUNDS)
        ]
        above = statistics.median(mine - plain for mine, plain in starts)
        least = min(mine for mine, _ in starts) - min(plain for _, plain in starts)
        print(
            f"run -- true: {above * 1000:.0f} ms above unshare -Urm true, least {least * 1000:.0f}"
        )
        version = [sys.executable, "-m", "filepact", "--version"]
        plain = statistics.median(seconds(version, folder, environment) for _ in range(ROUNDS))
        print(f"  of these {plain * 1000:.0f} ms for the start of Python and the command")
        sources(folder)
        shutil.copytree(Path(__file__).parents[1] / "src", folder / "tree")
        small_files(folder / "small")
        packages(folder / "install")
        install = "npm install --offline --no-audit --no-fund --cache /tmp/packed >/dev/null 2>&1"
        install = f"cd install && {install}; rm -rf node_modules package-lock.json /tmp/packed"
        search = "rg -c return tree >/dev/null" if shutil.which("rg") else ""
        inside, outside = (Worker(folder, environment, inside=one) for one in (True, False))
        for name, rounds, script in (
            ("nothing", 20, "true"),
            ("git status", 20, "git status --short >/dev/null"),
            ("rg", 20, search),
            ("grep -r", 20, "grep -rc return tree >/dev/null"),
            ("grep -r, 300 C files", 20, "grep -r --include=*.c return . >/dev/null"),
            ("grep -r, small files", 20, "grep -rc return small >/dev/null"),
            ("npm install", 5, install if shutil.which("npm") else ""),
            ("build of 300 C files", 3, "make -s CC=cc all >/dev/null; rm -f *.o"),
        ):
            if script:
                print(f"{name}: {compared(script, rounds, inside, outside)}")
        print(f"at rest: {resting(inside.process.pid):.0f} ms of processor time in 20 seconds")
        inside.end()
        outside.end()
        pairs = [committed(folder, home, environment) for _ in range(5)]
        ratio = statistics.median(mine / plain for mine, plain in pairs)
        said = ", ".join(f"{mine / plain:.1f}" for mine, plain in pairs)
        print(f"commit of {COMMITTED:,} files: {ratio:.1f} of cp -a with fsync (each: {said})")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
