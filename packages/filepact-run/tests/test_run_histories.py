"""Random programs beside a person's random edits, and kills: the folder equals a model of both.

``FILEPACT_RUNS`` is how many of each; the deep checks set it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_place import Place
from tests import forked

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.slow,
]

COUNT = int(os.environ.get("FILEPACT_RUNS", "12"))

PROGRAMS = (
    "sed -i 's/line 3/LINE 3/' {a}",
    "sed -i '/line 7/d' {a} {b}",
    "printf 'more\\n' >> {a}",
    "awk '{{print NR\": \"$0}}' {a} > {n} && mv {n} {a}",
    "cp {a} {n}",
    "mv {a} {n}",
    "rm {a}",
    "rm -r {d}",
    "rm -r {d}; mkdir {d}; echo new > {d}/only",
    "mkdir -p {n}/x/y && cp {a} {n}/x/y/z",
    "mv {d} {n}",
    "tar cf - {d} | (mkdir {n}; cd {n}; tar xf -)",
    "cp -a {d} {n}",
    "find {d} -type f -exec sed -i s/line/LINE/ {{}} +",
    "ln -s {a} {n}",
    # Of a file that only the root has, the kernel's overlay gives two names two lengths.
    "cp {a} {n}.x; ln {n}.x {n}; echo linked >> {n}",
    "chmod 600 {a}",
    "touch {a}",
    # As editors save: over a file beside, with the old one kept, in place, by truncation.
    "cp {a} {a}.new; echo saved >> {a}.new; mv {a}.new {a}",
    "mv {a} {a}~; sed s/line/saved/ {a}~ > {a}",
    "cat {a} > {n}; cat {n} {n} > {a}; rm {n}",
    ": > {a}; echo anew > {a}",
    "dd if={a} of={n} bs=7 2>/dev/null; dd if=/dev/zero of={a} bs=1 count=3 seek=2 conv=notrunc 2>/dev/null",
    "printf 'all: {n}\\n{n}: {a}\\n\\tcp {a} {n}\\n' > {n}.rules; make -sf {n}.rules",
    "diff -u --label {a} --label {b} {a} {b} > {n}; patch -s {a} {n}; rm -f {a}.orig {a}.rej",
    "sort -r {a} -o {a}",
    "rm {a}; mkdir {a}; echo inside > {a}/f",
    "rm -r {d}; echo now a file > {d}",
    "git diff --no-index {a} {b} > {n}; git hash-object {a} >> {n}",
    "for i in 1 2 3; do echo $i > {n}.$i; done; rm {n}.2",
    "perl -pi -e 's/line 5/LINE 5/' {a} {b}",
    "git stripspace < {a} > {n}; mv {n} {a}",
    "git merge-file -p {a} {b} {a} > {n}",
    "truncate -s 20 {a}; cat {b} >> {a}",
    "split -l 9 {a} {n}. && cat {n}.* > {n} && rm {n}.*",
    "tar czf {n}.tgz {a} {d}; rm -r {d}; tar xzf {n}.tgz; rm {n}.tgz",
    "mv {d} {d}.old; mkdir {d}; cp {d}.old/* {d}/; rm -r {d}.old",
    "ln -s {d} {n}; echo through > {n}/t; rm {n}",
    # As editors save that ask the disk to keep it, and keep the bits.
    (
        'python3 -c \'import os,shutil; f=open("{n}","w"); f.write(open("{a}").read()+"p"); f.flush(); os.fsync(f.fileno()); '
        'shutil.copymode("{a}","{n}"); os.replace("{n}","{a}")\''
    ),
    "install -m 640 {a} {n}",
    "mkdir -p {n}/a/b; mv {a} {n}/a/b/; mv {n}/a {n}/c",
)
FILES = [f"f{number}.txt" for number in range(6)] + [
    f"d{at}/g{number}" for at in range(3) for number in range(3)
]


def fill(root: Path) -> None:
    for at, name in enumerate(FILES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {line} of {at}\n" for line in range(1, 30)))
    for number in range(4):
        (root / f"mine{number}.txt").write_text(f"mine {number}\n")


def script_of(chance: random.Random) -> str:
    steps = [
        chance.choice(PROGRAMS).format(
            a=chance.choice(FILES),
            b=chance.choice(FILES),
            d=f"d{chance.randrange(3)}",
            n=f"n{number}",
        )
        for number in range(chance.randrange(1, 6))
    ]
    return "\n".join(steps)


def edits_of(chance: random.Random) -> list[Callable[[Path], None]]:
    """What a person does, to files of their own; each as a function of a folder."""

    def write(name: str, text: str) -> Callable[[Path], None]:
        return lambda root: (root / name).write_text(text) and None

    def replace(name: str, text: str) -> Callable[[Path], None]:
        def do(root: Path) -> None:
            (root / f"{name}.tmp").write_text(text)
            (root / f"{name}.tmp").rename(root / name)

        return do

    def remove(name: str) -> Callable[[Path], None]:
        return lambda root: (root / name).unlink(missing_ok=True)

    made: list[Callable[[Path], None]] = []
    for number in range(chance.randrange(4)):
        name = f"mine{chance.randrange(6)}.txt"
        made.append(
            chance.choice((write(name, f"{number}\n"), replace(name, f"{number}!\n"), remove(name)))
        )
    return made


def tree(root: Path) -> dict[str, object]:
    """Files by name with what they hold and whether others may read them; links, and empty folders."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


EXCHANGES = ("/f", "now a file")
"""In programs that put a folder in a file's place, or the other way: one change cannot take that back."""


def take_back(place: Place, *, exchanged: bool) -> None:
    """Take a run back: as a session, and else operation by operation."""
    operations = place.facts("log")["operations"]
    if not operations:
        return
    (session,) = {one["session"] for one in operations}
    before = tree(place.root)
    done = place.command("undo", "--unattended", "--session", session)
    if done.returncode:
        assert exchanged, done.stderr
        assert tree(place.root) == before
        for one in operations:
            place.undo(one["id"])


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_folder_equals_a_model_of_program_and_person(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    place = Place(tmp_path)
    fill(place.root)
    model, start = tmp_path / "model", tmp_path / "start"
    shutil.copytree(place.root, model, symlinks=True)
    shutil.copytree(place.root, start, symlinks=True)
    script, edits = script_of(chance), edits_of(chance)
    subprocess.run(["sh", "-c", script], cwd=model, check=False, capture_output=True)

    def person() -> None:
        for edit in edits:
            for root in (place.root, model, start):
                edit(root)

    said = place.beside(f"{script}\necho begun\nread x", person)
    assert "not committed" not in said, (script, said)
    assert place.waiting() == [], (script, said)
    assert tree(place.root) == tree(model), script
    take_back(place, exchanged=any(one in script for one in EXCHANGES))
    assert tree(place.root) == tree(start), script


def family(process: int) -> list[int]:
    """A process twice, and all that have come from it."""
    above: dict[int, int] = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            with suppress(OSError):
                stat = (one / "stat").read_text().rpartition(")")[2].split()
                above[int(one.name)] = int(stat[1])
    found = [process]
    for one in found:
        found += [child for child, parent in above.items() if parent == one]
    return [process, *found]


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_kill_at_any_moment_loses_nothing_and_leaves_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    place = Place(tmp_path)
    fill(place.root)
    steps = 30
    script = (
        f'for i in $(seq {steps}); do echo $i > n$i; sed -i "s/line $i of/LINE $i of/" f0.txt; '
        "echo $i; done; rm -r d1"
    )
    words = ("run", "--", "sh", "-c", script)
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        seen = 0
        # Within the program, or somewhere in the commit.
        for _ in range(chance.randrange(1, 2 * steps)):
            if not process.stdout.readline():
                break
            seen += 1
        if seen == steps:
            process.stdout.read()
            for _ in range(chance.randrange(20_000)):
                os.getppid()
        # Us, or one of those that we have started: the keeper, the init, or a program.
        with suppress(ProcessLookupError):
            os.kill(chance.choice(family(process.pid)), signal.SIGKILL)
        process.stdout.read()
        process.wait()
    assert place.left_over() == []
    runs = place.facts("runs")["runs"]
    for one in runs:
        done = place.command("runs", "--commit", one["run"])
        assert done.returncode == 0, done.stderr
    assert place.facts("runs") == {"runs": []}
    assert place.waiting() == []
    found = tree(place.root)
    for number in range(1, seen + 1):
        assert found[f"n{number}"] == (f"{number}\n".encode(), 0o644)
        assert f"LINE {number} of".encode() in found["f0.txt"][0] or number > 29  # type: ignore[index]
    if seen == steps:
        assert "d1" not in found
    assert len([name for name in found if name.startswith("mine")]) == 4


if __name__ == "__main__":
    os.environ["FILEPACT_RUNS"] = sys.argv[sys.argv.index("--runs") + 1]
    sys.exit(pytest.main([__file__, "-q", "-n", str(os.cpu_count() or 1)]))
