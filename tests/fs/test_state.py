"""What the state folder keeps by itself: its name among all that use a database, and small notes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from filepact.domain.person import AGENT_VARIABLES, Ancestor
from filepact.errors import StateFailedError
from filepact.fs.state import (
    NAME,
    ancestors,
    calls_no_hook,
    descendants,
    forget_host,
    note_host,
    note_turns,
    open_state,
    read_note,
    turn_noted,
    who_calls,
)
from tests.needs import PROCESSES

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_has_one_name_whoever_asks_first(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(open_state(str(tmp_path / "s")).name))
        for _ in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert open_state(str(tmp_path / "s")).name == found[0] != ""


def test_a_name_that_a_crash_left_empty_is_made(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    name = open_state(str(tmp_path)).name
    assert name
    assert open_state(str(tmp_path)).name == name


def test_a_name_that_cannot_be_read_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(StateFailedError):
        _ = open_state(str(tmp_path)).name
    assert (tmp_path / NAME).is_dir()


def test_a_note_that_is_a_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "note").mkdir()
    assert read_note(str(tmp_path), "note") == b""


@PROCESSES
def test_a_program_is_noted_while_its_call_is_under_way_and_not_longer(tmp_path):
    state = str(tmp_path / "state")
    mine, known = ancestors(os.getpid())
    assert mine[0].process == os.getpid()
    assert known or sys.platform != "linux"
    host = Ancestor(mine[0].process, mine[0].started, "helper-7", ("/opt/helper-7",))
    shell = Ancestor(1, "1", "bash", ("bash",))
    assert note_host(state, [shell, host], "helper") is None  # a person may sit at a shell
    assert calls_no_hook(state, [shell, host]) is False
    assert calls_no_hook(state, [host]) is True
    assert note_host(state, [host], "helper") == host
    assert note_host(state, [host], "helper") == host
    assert calls_no_hook(state, [host]) is False
    (note,) = (tmp_path / "state" / "hooks").iterdir()
    assert note.read_text() == "helper"
    forget_host(state, (host.process, host.started))
    forget_host(state, (host.process, host.started))
    assert not note.exists()
    assert calls_no_hook(state, [host], "once") is True
    assert calls_no_hook(state, [host], "once") is False


@PROCESSES
def test_a_server_learns_for_which_turn_the_program_that_has_started_it_calls(tmp_path):
    state = str(tmp_path / "state")
    (mine, *_), _ = ancestors(os.getpid())
    host = Ancestor(mine.process, mine.started, "helper-7", ("/opt/helper-7",))
    named = host.process, host.started
    note_turns(state, named, {"c1": "t1"})  # of a program that was not noted
    assert turn_noted(state, [host], "c1") == ""
    note_host(state, [host], "helper")
    assert turn_noted(state, [host], "c1") == ""
    note_turns(state, named, {"c1": "t1", "c2": "t2"})
    assert [turn_noted(state, [host], call) for call in ("c1", "c2", "c3", "")] == [
        *("t1", "t2", "", "")
    ]
    note_turns(state, named, {"c1": "t1", "c2": "t1"})
    assert turn_noted(state, [Ancestor(1, "1", "x", ()), host], "") == "t1"
    (note,) = (tmp_path / "state" / "hooks").iterdir()
    assert note.read_text().partition("\n")[0] == "helper"
    note_turns(state, named, {})
    assert turn_noted(state, [host], "c1") == ""


@PROCESSES
def test_what_a_program_has_started_is_found_at_any_depth():
    with subprocess.Popen(
        ["/bin/sh", "-c", "exec 3<&0; cat <&3 & wait"], stdin=subprocess.PIPE
    ) as shell:
        found = ()
        while len(found) < 2:
            found = descendants(shell.pid)[:1] and tuple(
                one for one in descendants(os.getpid()) if one.name in ("sh", "cat")
            )
        assert found[0].process == shell.pid
        assert found[0].started == ancestors(shell.pid)[0][0].started
    assert descendants(shell.pid) == ()


@PROCESSES
def test_notes_of_programs_that_are_gone_go_with_the_next(tmp_path):
    state = tmp_path / "state"
    (mine, *_), _ = ancestors(os.getpid())
    host = Ancestor(mine.process, mine.started, "helper-7", ("/opt/helper-7",))
    folder = state / "hooks"
    folder.mkdir(parents=True)
    for name in ("host-4194305-7", f"host-{mine.process}-1", "host-x-y", "x.sock"):
        (folder / name).write_text("")
    note_host(str(state), [host], "")
    left = {one.name for one in folder.iterdir()}
    assert left == {f"host-{mine.process}-{mine.started}", "x.sock"}


def test_where_nothing_can_be_noted_the_program_is_known_all_the_same(tmp_path):
    (tmp_path / "state").write_text("")
    host = Ancestor(7, "7", "helper-7", ("/opt/helper-7",))
    assert note_host(str(tmp_path / "state"), [host], "") == host


@PROCESSES
def test_who_calls_is_told_by_the_notes_of_any_state_folder(tmp_path, monkeypatch):
    above, _ = ancestors()
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "hooks"
    folder.mkdir()
    assert who_calls([str(tmp_path)]).agent == ""
    (folder / f"host-{above[0].process}-{above[0].started}").write_text("robot")
    assert who_calls(["/nowhere", str(tmp_path)]).agent == "robot"
    monkeypatch.setenv("CLAUDECODE", "1")
    assert who_calls(["/nowhere"]).agent == "claude-code"
    assert who_calls(["/nowhere"], serves=True).agent == ""


def test_a_process_that_is_not_there_has_nothing_above_it():
    assert ancestors(4_194_305) == ((), False)


def test_room_is_kept_once_and_made_anew_where_some_of_it_is_gone(tmp_path: Path) -> None:
    state = open_state(str(tmp_path / "s"))
    place = tmp_path / "s" / "room"
    state.keep_room()
    kept = place.read_bytes()
    assert len(kept) == len(set(kept)) << 10  # of all bytes; nothing that could be left out
    state.keep_room()
    assert place.read_bytes() == kept
    for size in (0, len(kept) - 1, len(kept) + 1):
        os.truncate(place, size)
        state.keep_room()
        assert place.stat().st_size >= len(kept)
