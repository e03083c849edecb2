"""A name that becomes something of another kind: through every door one operation, taken back as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from filepact_hooks.service import HookDaemon
from run_place import Place
from test_hooks import event
from tests import forked, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.slow(measured=True),
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (made.root / "kept").write_text("kept\n")
    kinds.make(made.root, 0)
    return made


@contextmanager
def hooked(place: Place) -> Iterator[None]:
    """A command of an agent's own tool."""
    state = place.environment["FILEPACT_STATE_DIR"]
    with closing(HookDaemon((str(place.root),), state, clock=lambda: 0.0)) as daemon:
        daemon.answer("claude", event("PreToolUse", "Bash", command="make"))
        yield
        daemon.answer("claude", event("PostToolUse", "Bash", command="make"))


@contextmanager
def guarded(place: Place) -> Iterator[None]:
    """A guard that, in the end, records what is left."""
    with forked.Command(("guard", str(place.root)), **place.options()) as process:
        while not (line := process.stdout.readline()).startswith("Guarding"):
            assert line, process.stderr.read()
        yield
        process.send_signal(signal.SIGTERM)
        process.communicate()


@pytest.mark.parametrize("door", ["hooks", "guard", "run", "off"])
def test_what_a_program_makes_of_names_goes_back_and_forth(place: Place, door: str) -> None:
    was = kinds.tree(place.root)
    assert place.command("checkpoint", "start").returncode == 0
    if door in ("hooks", "guard"):
        with (hooked if door == "hooks" else guarded)(place):
            kinds.make(place.root, 1)
    else:
        layers = "auto" if door == "run" else "off"
        program = ("--", sys.executable, "-I", kinds.__file__, str(place.root))
        done = place.command("run", "--layers", layers, *program)
        assert done.returncode == 0, done.stderr
    now = kinds.tree(place.root)
    assert was != now
    (operation,) = place.operations()
    for words, state in (
        (("undo", operation), was),
        (("redo",), now),
        (("undo", operation, "--partly"), was),
        (("redo",), now),
        # Of what a guard saw nobody knows whose it is.
        (("restore", "start", *(("--all",) if door == "guard" else ())), was),
    ):
        done = place.command(*words, "--unattended")
        assert done.returncode == 0, (words, done.stderr)
        assert kinds.tree(place.root) == state, words


RUN = (
    ("link elsewhere", "ln -s one l", "ln -sfn two l"),
    ("link to file", "ln -s one l", "rm l; echo text > l"),
    ("file to link", "echo text > l", "rm l; ln -s one l"),
    ("link to folder", "ln -s one l", "rm l; mkdir l; echo k > l/k"),
    ("folder to link", "mkdir l; echo k > l/k", "rm -r l; ln -s one l"),
    ("file to folder", "echo text > f", "rm f; mkdir -p f/in; echo k > f/in/k"),
    ("folder to file", "mkdir -p f/in; echo k > f/in/k", "rm -r f; echo text > f"),
    ("file to empty folder", "echo text > f", "rm f; mkdir f"),
    ("empty folder to file", "mkdir f", "rmdir f; echo text > f"),
    ("empty folders come", "true", "mkdir -p new/er; mkdir -m 700 shut"),
    ("empty folders go", "mkdir -p old/er; mkdir -m 700 shut", "rmdir old/er old shut"),
    ("empty folder moves", "mkdir -m 750 a", "mv a b"),
    ("mode of a folder", "mkdir d; echo k > d/k", "chmod 711 d"),
    ("closed folder", "mkdir d; echo k > d/k", "chmod 0 d"),
    ("setgid folder", "mkdir d", "chmod 2775 d"),
    ("private folder comes", "true", "umask 077; mkdir -p p/q; echo k > p/q/k"),
    ("private folder goes", "mkdir -m 700 p; echo k > p/k", "rm -r p"),
    ("private folder moves", "mkdir -m 700 p; echo k > p/k", "mv p vault"),
    ("mode of a file", "echo text > f; chmod 640 f", "chmod 600 f"),
    ("case of a file", "echo text > Readme", "mv Readme README"),
    ("case of a folder", "mkdir -m 700 Src; echo k > Src/k", "mv Src src"),
    (
        "no UTF-8",
        "echo text > \"$(printf 'a\\377')\"",
        "mv \"$(printf 'a\\377')\" \"$(printf 'b\\376')\"",
    ),
    ("no UTF-8 folder", "mkdir \"$(printf 'd\\377')\"", "echo k > \"$(printf 'd\\377/k\\377')\""),
    ("no UTF-8 link", "ln -s \"$(printf 'x\\377')\" l", "ln -sfn \"$(printf 'y\\376')\" l"),
    ("swapped", "echo 1 > a; echo 2 > b", "mv a c; mv b a; mv c b"),
    ("replaced as a whole", "mkdir d; echo k > d/k", "rm -r d; mkdir d; echo x > d/x"),
)
"""What it is called, what makes it beforehand, and what a program does to it."""


@pytest.mark.parametrize("layers", ["auto", "off"])
def test_a_restore_takes_back_each_kind_of_change_of_a_run(place: Place, layers: str) -> None:
    for name, makes, _ in RUN:
        (place.root / name).mkdir()
        subprocess.run(["sh", "-ec", makes], cwd=place.root / name, check=True)
    was = kinds.tree(place.root)
    assert place.command("checkpoint", "start").returncode == 0
    script = "".join(f"(cd '{name}'; {does})\n" for name, _, does in RUN)
    done = place.run(f"set -e\n{script}", "--layers", layers)
    assert done.returncode == 0, done.stderr
    now = kinds.tree(place.root)
    changed = {name for name, *_ in RUN if _below(was, name) != _below(now, name)}
    assert changed == {name for name, *_ in RUN}
    operations = place.operations()
    for words, state in (
        (("restore", "start"), was),
        (("redo",), now),
        (("restore", "--before", operations[-1]), was),
        (("redo",), now),
        (("undo", "--session", place.facts("log")["operations"][-1]["session"]), was),
    ):
        done = place.command(*words, "--unattended")
        assert done.returncode == 0, (words, done.stderr)
        found = kinds.tree(place.root)
        wrong = {name for name, *_ in RUN if _below(found, name) != _below(state, name)}
        assert (wrong, found == state) == (set(), True), words


def _below(tree: dict[str, object], folder: str) -> dict[str, object]:
    return {name: held for name, held in tree.items() if name.startswith(f"{folder}/")}


def test_a_pipe_in_place_of_a_file_and_a_file_in_place_of_a_pipe_are_named(place: Place) -> None:
    for name in ("a", "b", "turns"):
        (place.root / name).write_text("old\n")
    os.mkfifo(place.root / "pipe")
    with hooked(place):
        for name in ("a", "b", "pipe"):
            (place.root / name).unlink(missing_ok=True)
            (place.root / name).write_text("new\n")
        (place.root / "turns").unlink()
        os.mkfifo(place.root / "turns")
    operations = place.facts("log")["operations"]
    named = [{one["path"] for one in each["files"]} for each in operations]
    assert named == [{"a", "b", "turns"}, {"pipe", "turns"}]
    done = place.command("undo", operations[0]["id"], "--unattended")
    assert done.stdout.startswith("Done")
    assert all(name in done.stdout for name in ("pipe", "turns"))
    assert [(place.root / one).read_text() for one in ("a", "b", "pipe")] == ["old\n"] * 2 + [
        "new\n"
    ]
    assert (place.root / "turns").is_fifo()


def test_the_rights_of_the_root_itself_are_committed_and_go_back(place: Place) -> None:
    place.root.chmod(0o755)
    done = place.command("run", "--commit", "end", "--", "sh", "-c", "chmod 700 .; echo x > new")
    assert done.returncode == 0
    assert place.root.stat().st_mode & 0o777 == 0o700
    assert place.command("undo", "--unattended").returncode == 0
    assert place.root.stat().st_mode & 0o777 == 0o755
    assert not (place.root / "new").exists()
