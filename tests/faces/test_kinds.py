"""A name that becomes something of another kind: through every door one operation, taken back as a whole."""

from __future__ import annotations

import signal
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from filepact.faces.hooks.service import HookDaemon
from tests import forked, kinds
from tests.faces.test_hooks import event
from tests.faces.test_run import Place

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
