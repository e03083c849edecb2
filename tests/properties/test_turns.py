"""What an agent did in a turn goes back, and what a person did meanwhile stays; also if something is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.properties import killed_turns, turns
from tests.properties.turn_histories import IN_GIT, PROGRAMS, Call, History, Step, smaller

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("git") is None, reason="namespaces are Linux's"
    ),
    pytest.mark.slow,
]


@pytest.mark.parametrize(("door", "tries"), [("hook", 12), ("off", 2), ("guard", 2), ("layers", 2)])
def test_only_the_agents_changes_go_back(door: turns.Door, tries: int) -> None:
    count = turns.through_doors(tries, 5, [door])
    assert not count.wrong, count.said
    assert count.acted > tries // 2


@pytest.mark.parametrize("door", ["off", "layers"])
def test_a_history_that_stands_still_ends_and_tells_what_each_process_does(
    door: turns.Door,
) -> None:
    """The program waits for a pipe that nobody writes to."""
    call = Call("Bash", (Step("agent", "mkfifo p; cat p"),))
    one = History(door, "--session", ("mkdir d",), (), (call,), ())
    turns.ready()
    wrong = turns.tried(one, patience=3.0).wrong
    assert wrong is not None
    assert wrong.kind == f"{door}: stands still"
    # The test's own stack, which program waits, and the stacks of `filepact run`.
    for said in ("in _play_run", ": cat p", "in perform"):
        assert said in wrong.said


def test_what_the_system_refuses_a_program_behind_layers_is_not_expected_in_the_root() -> None:
    tree = "mkdir sub; cd sub; git init -q --template= .; echo s > s"
    steps = (Step("agent", "mv sub/.git sub/git; echo s3 > sub/s"),)
    one = History("layers", "--session", (tree,), (), (Call("Bash", steps),), ())
    turns.ready()
    assert turns.tried(one) == turns.Played(acted=True)


def test_what_a_history_is_made_smaller_to_is_read_to_its_end_by_a_shell() -> None:
    """Else who plays it waits for ever."""
    lines = [line.format(a="a", b="b", d="d", D="D", n="n", A="A") for line in (*PROGRAMS, *IN_GIT)]
    call = Call("Bash", tuple(Step("agent", line) for line in lines))
    one = History("hook", "--session", (), (), (call,), ())
    shorter = {step.line for less in smaller(one) for move in less.turn for step in move.steps}
    assert len(shorter) > len(lines)
    for line in shorter:
        done = subprocess.run(
            ["sh", "-n"], check=False, input=f"({line}\n)\n".encode(), capture_output=True
        )
        assert not done.returncode, (line, done.stderr)


@pytest.mark.parametrize("victim", killed_turns.VICTIMS)
def test_a_kill_at_any_moment_loses_nothing_of_a_person(victim: str) -> None:
    count = killed_turns.through_kills(1, 1, [victim])
    assert not count.wrong, count.said
