"""A guard over a folder that random programs work in, beside a person: by hand, and for `scripts/deep`."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faces.command_line import command
from tests.forked import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 120.0
INSTALL = (
    "for p in $(seq 10 19); do mkdir -p {folder}/p$p/lib; for f in $(seq 10 29); do"
    " printf 'exports.f = %s;\\n' $p$f > {folder}/p$p/lib/$f.js; done; done"
)
"""What an installer does, in short: two hundred files, of ten packages."""
SLOTS = (2, 9, 16, 23, 30, 37)


class Folder:
    """A folder, and guards over it."""

    def __init__(self, place: Path) -> None:
        self.root = place / "root"
        self.state = place / "state"
        self.root.mkdir()
        self.config = place / "settings.toml"
        self.config.write_text("[recording]\nquiet = 0.5\nlongest = 2\n")
        self.common = ("--state", str(self.state), "--config", str(self.config))

    def start(self) -> Command:
        process = Command(
            ["guard", str(self.root), *self.common], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not (line := process.stdout.readline()).startswith(b"Guarding"):
            assert line, "it has ended"
        return process

    @contextmanager
    def guard(self, *, kill: bool = False) -> Iterator[Command]:
        """A guard that looks; in the end it is told to record what is left and to end."""
        process = self.start()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        assert kill or process.returncode == 0

    def run(self, *words: str) -> Any:
        said = command(*words, "--root", str(self.root), *self.common, "--json")
        return json.loads(said.out)

    def run_here(self, *words: str) -> str:
        """All that a command says."""
        said = command(*words, *self.common)
        return " ".join((said.out + said.err).split())

    def log(self) -> list[dict[str, Any]]:
        return self.run("log", "--all")["operations"]

    def wait_for(self, number: int) -> list[dict[str, Any]]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if len(found := self.log()) >= number:
                return found
            time.sleep(0.05)
        raise AssertionError(found)

    def shell(self, script: str) -> None:
        subprocess.run(["sh", "-ec", script], cwd=self.root, check=True, stdout=subprocess.DEVNULL)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }


PROGRAMS = (
    "echo {n} > new-{n}.txt",
    "printf '%s\\n' {n} {n} > new-{k}.txt",
    "mkdir -p deep/{n}/er; echo {n} > deep/{n}/er/file.txt",
    "rm -rf deep",
    "sed -i 's/^.*@{slot}$/program {n} @{slot}/' {name}",
    "awk '/@{slot}$/ {{ print \"awk {n} @{slot}\"; next }} {{ print }}' {name} > .t && cat .t > {name}; rm .t",
    # How editors save: a new file over the old one, a backup beside it, in place.
    "sed 's/^.*@{slot}$/vim {n} @{slot}/' {name} > .{name}.swp && mv .{name}.swp {name}",
    "cp -p {name} {name}~ && sed 's/^.*@{slot}$/emacs {n} @{slot}/' {name}~ > {name}; rm {name}~",
    "ln -sf new-{k}.txt link-{k}",
    "tar cf pack.tar new-*.txt 2>/dev/null || true; rm -f new-{k}.txt",
    "if [ -f pack.tar ]; then tar xf pack.tar; fi",
    "printf 'all:\\n\\techo {n} > made.txt\\n' > Makefile; if command -v make >/dev/null; then make -s; fi",
    "mv new-{k}.txt moved-{k}.txt 2>/dev/null || true",
    "git init -q . 2>/dev/null; git add -A 2>/dev/null; git stash -q 2>/dev/null || true; git stash pop -q 2>/dev/null || true",
    "chmod +x new-{k}.txt 2>/dev/null || true",
)


def run_programs(folder: Folder, seed: int, *, steps: int) -> None:
    """Random programs beside a person's edits, and all of the programs taken back in the end."""
    choose = random.Random(seed)
    names = ("a.txt", "b.txt")
    texts = {name: [f"line {at} @{at}" for at in range(40)] for name in names}
    for name in names:
        (folder.root / name).write_text("\n".join(texts[name]) + "\n")
    kept = [one for one in PROGRAMS if "git" not in one or shutil.which("git")]
    with folder.guard():
        for number in range(steps):
            name = choose.choice(names)
            if choose.random() < 0.3:
                slot = choose.choice(SLOTS[3:])
                (old,) = [line for line in texts[name] if line.endswith(f"@{slot}")]
                new = f"person {number} @{slot}"
                done = folder.run("edit", name, "--old", f"{old}\n", "--new", f"{new}\n")
                assert done.get("status") == "applied", done
                texts[name] = [new if line == old else line for line in texts[name]]
            else:
                program = choose.choice(kept)
                given = {"n": number, "k": choose.randrange(steps), "name": name}
                folder.shell(program.format(slot=choose.choice(SLOTS[:3]), **given))
            time.sleep(choose.choice((0, 0, 0.2)))
    found = folder.log()
    guards = {one["session"] for one in found if one["session"].startswith("guard-")}
    for guard in guards:
        done = folder.run("undo", "--unattended", "--session", guard)
        assert done.get("status") == "applied", (seed, done)
    expected = {name: ("\n".join(texts[name]) + "\n").encode() for name in names}
    with suppress(FileNotFoundError):
        shutil.rmtree(folder.root / ".git")
    assert folder.files() == expected, seed
    assert not [path for path in folder.root.iterdir() if path.is_symlink()]


def run_kills(folder: Folder, seed: int, *, kills: int) -> None:
    """Guards that are killed while files change, and one that finds what is left; all of it taken back."""
    choose = random.Random(seed)
    for number in range(30):
        (folder.root / f"{number}.txt").write_text(f"{number}\n")
    before = folder.files()
    for _ in range(kills):
        with folder.guard(kill=True):
            for number in choose.sample(range(30), 5):
                folder.shell(f"echo {choose.random()} > {number}.txt")
                time.sleep(choose.random() * 0.1)
            # Until one of its operations may be half done.
            time.sleep(choose.choice((0, 0.3, choose.random())))
    with folder.guard():
        pass
    assert folder.run("state", "check")["sound"], seed
    ids = [one["id"] for one in folder.log()]
    done = folder.run("undo", "--unattended", *ids)
    assert folder.files() == before, (seed, done)


def run_many(folder: Folder, files: int) -> str:
    """A guard over many files: all are known and watched, each change is found, nothing is done meanwhile."""
    for number in range(files):
        place = folder.root / f"d{number // 5_000}" / f"e{number // 100}"
        if number % 100 == 0:
            place.mkdir(parents=True)
        (place / f"{number}.txt").write_text(f"{number}\n")
    with folder.guard() as process:
        known = json.loads(
            command("guard", str(folder.root), *folder.common, "--status", "--json").out
        )
        assert (known["files"], known["watched"]) == (files, True)
        # What they hold is read beside, and can be taken back from then on; nothing is done until something changes.
        before = wait_until_idle(process.pid)
        last = files - 1
        names = ("d0/e0/1.txt", f"d{last // 5_000}/e{last // 100}/{last}.txt", "d0/made/new.txt")
        for made, name in enumerate(names, start=1):
            (folder.root / name).parent.mkdir(exist_ok=True)
            (folder.root / name).write_text("changed\n")
            found = folder.wait_for(made)[0]
            assert [one["path"] for one in found["files"]] == [name], found
        memory = _memory(process.pid)
    ids = [one["id"] for one in folder.log()]
    assert folder.run("undo", "--unattended", *ids)["status"] == "applied"
    assert (folder.root / "d0/e0/1.txt").read_text() == "1\n"
    assert not (folder.root / "d0/made").exists()
    return f"{files} files, {before / 100:.1f} s of processor time, {memory // 1_000} MB"


def wait_until_idle(pid: int) -> int:
    """Wait until a process does nothing for a second; the processor time that it has taken, as `_ticks`."""
    until = time.monotonic() + PATIENCE * 5
    while (before := _ticks(pid)) != _after(1.0, pid):
        assert time.monotonic() < until, "it is never idle"
    return before


def _after(seconds: float, pid: int) -> int:
    time.sleep(seconds)
    return _ticks(pid)


def _ticks(pid: int) -> int:
    """The processor time of a process, in hundredths of a second."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(told[11]) + int(told[12])


def _memory(pid: int) -> int:
    """The most memory that a process has had, in kilobytes."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.faces.guarded", description=__doc__)
    parser.add_argument("--tries", type=int, default=200, help="how many folders, or kills")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--kills", action="store_true", help="kill guards instead, ten in a folder")
    parser.add_argument("--files", type=int, default=0, help="guard so many files instead")
    given = parser.parse_args(arguments)
    if given.files:
        with tempfile.TemporaryDirectory() as place:
            print(run_many(Folder(Path(place)), given.files))
        return 0
    folders = -(-given.tries // 10) if given.kills else given.tries
    for seed in range(given.seed, given.seed + folders):
        with tempfile.TemporaryDirectory() as place:
            folder = Folder(Path(place))
            try:
                if given.kills:
                    run_kills(folder, seed, kills=min(10, given.tries))
                else:
                    run_programs(folder, seed, steps=20)
            except AssertionError as error:
                print(f"WRONG with --seed {seed}: {error}")
                return 1
    print(f"{given.tries} {'kills' if given.kills else 'folders'}, 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
