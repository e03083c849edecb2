"""`filepact guard`: what programs of all kinds do to a folder is recorded, and can be taken back."""

from __future__ import annotations

import json
import random
import shlex
import signal
import subprocess
import sys
import time
from copy import copy
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_observed
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact_run import recorder
from tests.crash.near_full import fill, small_disk
from tests.faces.command_line import command
from tests.faces.guarded import INSTALL, PATIENCE, Folder, run_kills, run_many, run_programs
from tests.hostile.sweeps import often
from tests.needs import MOUNTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_what_a_program_does_is_one_operation_and_can_be_taken_back(folder: Folder) -> None:
    (folder.root / "a.txt").write_text("one\n")
    (folder.root / "old.txt").write_text("old\n")
    before = folder.files()
    with folder.guard():
        folder.shell("sed -i s/one/two/ a.txt; rm old.txt; mkdir -p x/y; echo new > x/y/new.txt")
        (made,) = folder.wait_for(1)
    assert {one["path"]: one["change"] for one in made["files"]} == {
        "a.txt": "modify",
        "old.txt": "delete",
        "x/y/new.txt": "create",
    }
    assert (made["actor"]["name"], made["session"][:6]) == ("unknown", "guard-")
    assert folder.run("undo", "--unattended", made["id"])["status"] == "applied"
    assert folder.files() == before
    assert not (folder.root / "x").exists()


def test_what_steers_git_is_recorded_by_itself_and_what_git_does_is_not(folder: Folder) -> None:
    folder.shell("git init -q; git config user.name p; git config user.email p@example.org")
    with folder.guard():
        folder.shell("git commit -q --allow-empty -m one; git gc -q; git tag v1")
        folder.shell("echo evil > .git/hooks/pre-push")
        (hook,) = folder.wait_for(1)
        folder.shell("git config core.pager evil")
        settings = folder.wait_for(2)[0]
    assert [one["path"] for one in hook["files"]] == [".git/hooks/pre-push"]
    assert [one["path"] for one in settings["files"]] == [".git/config"]
    for one in (settings, hook):
        assert folder.run("undo", "--unattended", one["id"])["status"] == "applied"
    assert not (folder.root / ".git/hooks/pre-push").exists()
    assert b"evil" not in (folder.root / ".git/config").read_bytes()


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ("printf 'data/\\n' > .gitignore", "c.local"),
        ("git add -f c.local; printf 'data/\\n' > .gitignore", "c.local"),
        ("printf '*.local\\n' > .gitignore", "data/base"),
        ("mv c.local c; echo new > n", "c"),
        ("mv data seen; echo new > n", "seen/base"),
    ],
)
def test_what_was_ignored_and_is_looked_at_by_now_comes_back_if_it_is_changed_or_removed(
    folder: Folder, seen: str, name: str
) -> None:
    folder.shell("git init -q; printf 'data/\n*.local\n' > .gitignore; mkdir data")
    folder.shell("echo base > data/base; echo mine > c.local")
    with folder.guard():
        folder.shell(seen)
        folder.wait_for(1)
        before = (folder.root / name).read_bytes()
        folder.shell(f"echo more >> {name}; rm -f n")
        folder.wait_for(2)
        folder.shell(f"rm {name}")
        later = folder.wait_for(3)[:2]
    undone = folder.run("undo", "--unattended", *(one["id"] for one in later))
    assert undone["left"] == []
    assert (folder.root / name).read_bytes() == before


def test_that_files_are_still_being_read_is_told(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.root / "a.txt").write_text("one\n")
    session = Session("s", Actor("program", "p"))
    for patience, read in ((-1.0, False), (recorder._READ, True)):
        monkeypatch.setattr(recorder, "_READ", patience)
        with open_observed(
            (str(folder.root),), state_dir=str(folder.state), settings=Settings(), guards=True
        ) as workspace:
            one = recorder.ChangeRecorder(
                workspace, session, quiet=1, longest=1, room=1 << 20, told=lambda _operation: None
            )
            assert (one.begin(), one.has_read) == (1, read)


def test_pipes_that_go_are_said_by_the_guard_and_named_in_the_log_and_by_undo(
    folder: Folder,
) -> None:
    folder.shell("mkfifo first second; echo one > a.txt")
    with folder.guard() as process:
        folder.shell("rm first; rm second; echo two > a.txt")
        found = folder.wait_for(2)
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
    assert b"cannot be taken back: first, second" in b" ".join(said.split())
    named = sorted([file["path"] for file in one["files"]] for one in found)
    assert named == [["a.txt"], ["first", "second"]]
    (whole,) = [one["id"] for one in found if len(one["files"]) == 1]
    undone = folder.run("undo", "--unattended", whole)
    assert sorted(one["path"] for one in undone["left"]) == ["first", "second"]
    assert folder.files() == {"a.txt": b"one\n"}


def test_what_filepact_does_itself_is_not_recorded_twice(folder: Folder) -> None:
    with folder.guard():
        folder.run("write", "a.txt", "--content", "mine\n")
        folder.shell("echo more > b.txt")
        newest = folder.wait_for(2)[0]
        folder.run("undo", "--unattended", newest["id"])
        folder.shell("echo more > c.txt")
        found = folder.wait_for(4)
    assert [(one["kind"], one["actor"]["name"] == "unknown") for one in found] == [
        ("change", True),
        ("undo", False),
        ("change", True),
        ("change", False),
    ]


def test_what_was_written_just_before_a_change_of_ours_is_recorded_too(folder: Folder) -> None:
    lines = "".join(f"line {number}\n" for number in range(40))
    (folder.root / "a.txt").write_text(lines)
    folder.config.write_text("[recording]\nquiet = 600\nlongest = 600\n")
    with folder.guard():
        folder.shell("sed -i 's/^line 3$/by a program/' a.txt")
        folder.run("edit", "a.txt", "--old", "line 30\n", "--new", "by hand\n")
    found = folder.log()
    (guard,) = {one["session"] for one in found if one["session"].startswith("guard-")}
    folder.run("undo", "--unattended", "--session", guard)
    assert (folder.root / "a.txt").read_text() == lines.replace("line 30\n", "by hand\n")


def test_one_guard_is_enough_for_a_folder_and_can_be_asked_and_stopped(folder: Folder) -> None:
    name = str(folder.root)
    assert json.loads(command("guard", name, *folder.common, "--status", "--json").out) == {
        "root": name,
        "running": False,
    }
    started = json.loads(command("guard", name, *folder.common, "--detach", "--json").out)
    try:
        again = json.loads(command("guard", name, *folder.common, "--json").out)
        assert again["error"]["code"] == "NO_CHANGE"
        folder.shell("echo one > a.txt")
        folder.wait_for(1)
        # It tells of an operation once that stands in the log.
        until = time.monotonic() + PATIENCE
        told: dict[str, Any] = {}
        while told.get("operations") != 1 and time.monotonic() < until:
            told = json.loads(command("guard", name, *folder.common, "--status", "--json").out)
        assert (told["pid"], told["operations"], told["running"]) == (started["pid"], 1, True)
        folder.shell("echo two > a.txt")
    finally:
        ended = json.loads(command("guard", name, *folder.common, "--stop", "--json").out)
    assert (ended["pid"], ended["operations"]) == (started["pid"], 2)
    assert command("guard", name, *folder.common, "--stop", "--json").code == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("limit", ["watches", "instances"])
def test_where_no_more_may_be_watched_a_guard_looks_by_itself_and_says_so(
    folder: Folder, limit: str
) -> None:
    """The limit is that of a namespace of its own, which the system counts for itself."""
    for number in range(40):
        (folder.root / f"d{number}").mkdir()
        (folder.root / f"d{number}/a.txt").write_text("before\n")
    before, most = folder.files(), 20 if limit == "watches" else 0
    script = f'echo {most} > /proc/sys/user/max_inotify_{limit} && exec "$@"'
    words = [sys.executable, "-m", "filepact", "guard", str(folder.root), *folder.common]
    with subprocess.Popen(
        ["unshare", "-Ur", "sh", "-c", script, "-", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stdout.readline()
            if not said:
                assert b"unshare" in (told := process.stderr.read()), told
                pytest.skip("no namespaces may be made here")
            told = json.loads(
                command("guard", str(folder.root), *folder.common, "--status", "--json").out
            )
            assert told["watched"] is False
            folder.shell("echo changed > d39/a.txt; rm d0/a.txt; echo new > d20/new.txt")
            folder.wait_for(1)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
    ids = [one["id"] for one in folder.log()]
    assert folder.run("undo", "--unattended", *ids)["status"] == "applied"
    assert folder.files() == before


def test_a_folder_that_holds_the_state_or_is_not_there_is_refused(folder: Folder) -> None:
    place = str(folder.root.parent)
    for words in ((place,), (f"{place}/nothing",), (f"{place}/nothing", "--detach")):
        said = command("guard", *words, *folder.common, "--json")
        assert said.code == 1
        assert json.loads(said.out)["error"]["code"] in ("STATE_ERROR", "NOT_FOUND")


def test_what_happened_while_no_guard_ran_is_told_apart(folder: Folder) -> None:
    (folder.root / "a.txt").write_text("one\n")
    with folder.guard():
        folder.shell("echo two > a.txt")
        folder.wait_for(1)
    folder.shell("echo three > a.txt; echo b > b.txt")
    with folder.guard():
        newest = folder.wait_for(2)[0]
    assert newest["tool"] == "unobserved"
    # Nobody means that who says `undo`.
    assert "error" in folder.run("undo", "--unattended")
    assert (folder.root / "b.txt").exists()
    folder.run("undo", "--unattended", newest["id"])
    assert not (folder.root / "b.txt").exists()


def test_a_file_that_comes_where_a_pipe_was_while_nothing_looks_is_known(folder: Folder) -> None:
    (folder.root / "a.txt").write_text("one\n")
    with folder.guard():
        # Other rules of what is ignored have it look everywhere, and so see the pipe.
        folder.shell("rm a.txt; mkfifo a.txt; echo '*.log' > .gitignore")
    folder.shell("rm a.txt; echo again > a.txt")
    with folder.guard():
        folder.shell("mv a.txt b.txt")
    moved = folder.log()[0]
    assert [one["path"] for one in moved["files"]] == ["a.txt", "b.txt"]
    folder.run("undo", "--unattended", moved["id"])
    assert folder.files()["a.txt"] == b"again\n"


def test_what_goes_again_after_an_undo_while_nothing_looks_is_told_apart(folder: Folder) -> None:
    (folder.root / "a.txt").write_text("one\n")
    with folder.guard():
        folder.shell("rm a.txt")
    folder.run("undo", "--unattended", folder.log()[0]["id"])
    folder.shell("rm a.txt")
    with folder.guard():
        folder.shell("echo two > b.txt")
    seen, found, *_ = folder.log()
    assert [one["path"] for one in seen["files"]] == ["b.txt"]
    assert (found["tool"], [one["path"] for one in found["files"]]) == ("unobserved", ["a.txt"])


def test_the_session_of_a_guard_is_what_it_saw_and_not_what_it_found_as_it_began(
    folder: Folder,
) -> None:
    with folder.guard():
        folder.shell("echo one > a.txt")
        folder.wait_for(1)
    folder.shell("echo mine > mine.txt")
    with folder.guard():
        folder.shell("echo two > b.txt")
        seen, found, _ = folder.wait_for(3)
    said = json.dumps(folder.run("undo", "--unattended", "--session", seen["session"]))
    assert folder.files() == {"a.txt": b"one\n", "mine.txt": b"mine\n"}
    assert found["session"] == seen["session"]
    # What went back is not named as what stayed.
    assert "Not taken back" not in said


@pytest.mark.parametrize("words", [(), ("a.txt",), (".",)], ids=["bare", "file", "folder"])
def test_what_may_be_a_persons_own_save_is_taken_back_only_by_its_id(
    folder: Folder, words: tuple[str, ...]
) -> None:
    (folder.root / "a.txt").write_text("one\n")
    with folder.guard():
        folder.run("edit", "a.txt", "--old", "one", "--new", "two")
        (folder.root / "a.txt").write_text("two\nby hand\n")
        saved, edited = folder.wait_for(2)
    error = folder.run("undo", "--unattended", *words)["error"]
    assert (error["code"], error["details"]["operation"]) == ("INVALID_PARAMS", saved["id"])
    assert (folder.root / "a.txt").read_text() == "two\nby hand\n"
    folder.run("undo", "--unattended", edited["id"])
    assert (folder.root / "a.txt").read_text() == "one\nby hand\n"
    folder.run("undo", "--unattended", saved["id"])
    assert (folder.root / "a.txt").read_text() == "one\n"


@pytest.mark.slow
def test_many_large_changes_in_few_operations_stay_within_the_room(folder: Folder) -> None:
    folder.config.write_text("[recording]\nquiet = 0.1\nlongest = 1\nmegabytes = 1\n")
    choose = random.Random(1)
    with folder.guard():
        for number in range(1, 6):
            for name in range(60):
                (folder.root / f"{name}.bin").write_bytes(choose.randbytes(20_000))
            folder.wait_for(number)
        last = folder.files()
    kept = sum(one.stat().st_size for one in folder.state.rglob("*") if one.is_file())
    assert kept < 5_000_000, kept
    assert folder.files() == last


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs user namespaces")
def test_where_the_system_watches_no_more_folders_changes_are_found_all_the_same(
    folder: Folder,
) -> None:
    for number in range(30):
        (folder.root / f"d{number}").mkdir()
        (folder.root / f"d{number}" / "f.txt").write_text("one\n")
    limit = "echo 35 > /proc/sys/user/max_inotify_watches && exec"
    words = [sys.executable, "-P", "-m", "filepact", "guard", str(folder.root), *folder.common]
    process = subprocess.Popen(
        ["unshare", "-Ur", "sh", "-c", f"{limit} {shlex.join(words)}"], stdout=subprocess.PIPE
    )
    try:
        if not process.stdout.readline().startswith(b"Guarding"):
            pytest.skip("no user namespace can be made here")
        # More folders come than can be watched, and what is changed in them later is found too.
        folder.shell("for i in 1 2 3 4 5 6 7 8 9; do mkdir n$i; echo one > n$i/f.txt; done")
        folder.wait_for(1)
        folder.shell("echo two > n9/f.txt; echo two > d9/f.txt")
        found = folder.wait_for(2)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert {one["path"] for one in found[0]["files"]} == {"n9/f.txt", "d9/f.txt"}


def test_guards_of_a_folder_and_of_one_in_it_tell_the_same_and_either_takes_it_back(
    folder: Folder,
) -> None:
    inner = copy(folder)
    inner.root = folder.root / "sub"
    inner.root.mkdir()
    (inner.root / "a.txt").write_text("one\n")
    (folder.root / "b.txt").write_text("one\n")
    with folder.guard(), inner.guard():
        folder.shell("echo two > sub/a.txt; echo two > b.txt")
        (outer_made,), (inner_made,) = folder.wait_for(1), inner.wait_for(1)
    assert [one["path"] for one in outer_made["files"]] == ["b.txt", "sub/a.txt"]
    assert [one["path"] for one in inner_made["files"]] == ["a.txt"]
    assert inner.run("undo", "--unattended", inner_made["id"])["status"] == "applied"
    assert folder.files() == {"b.txt": b"two\n", "sub/a.txt": b"one\n"}
    folder.run("undo", "--unattended", outer_made["id"])
    assert folder.files() == {"b.txt": b"one\n", "sub/a.txt": b"one\n"}


@pytest.mark.slow
def test_an_install_is_one_line_and_one_step_back_and_what_programs_fill_stays(
    folder: Folder,
) -> None:
    with folder.guard():
        folder.shell(f"{INSTALL.format(folder='vendor')}; {INSTALL.format(folder='node_modules')}")
        folder.wait_for(1)
    made = folder.log()
    assert sum(len(one["files"]) for one in made) == 200
    assert len(folder.run_here("log", "--root", str(folder.root))) < 250 * len(made)
    assert sum(one.stat().st_size for one in folder.state.rglob("*") if one.is_file()) < 5 << 20
    ids = [one["id"] for one in made]
    assert folder.run("undo", "--unattended", *ids)["status"] == "applied"
    assert not (folder.root / "vendor").exists()
    assert len(folder.files()) == 200


def test_a_guard_that_stands_still_for_a_while_records_all_that_happened_then(
    folder: Folder,
) -> None:
    """As on a machine that sleeps."""
    (folder.root / "a.txt").write_text("one\n")
    with folder.guard() as process:
        process.send_signal(signal.SIGSTOP)
        folder.shell("echo two > a.txt; echo new > b.txt; rm a.txt; echo three > a.txt")
        process.send_signal(signal.SIGCONT)
        (made,) = folder.wait_for(1)
    assert {one["path"] for one in made["files"]} == {"a.txt", "b.txt"}
    assert made["actor"]["name"] == "unknown"
    assert folder.run("undo", "--unattended", made["id"])["status"] == "applied"
    assert folder.files() == {"a.txt": b"one\n"}


@MOUNTS
@pytest.mark.slow(after=1)
def test_on_a_full_state_disk_a_guard_says_so_loses_nothing_and_records_once_there_is_room(
    folder: Folder,
) -> None:
    with small_disk(folder.root.parent / "disk", "3m") as disk:
        folder.state = disk / "state"
        folder.common = ("--state", str(folder.state), "--config", str(folder.config))
        (folder.root / "a.txt").write_text("one\n")
        text = random.Random(1).randbytes(50_000).hex()
        with folder.guard():
            fill(disk / "fill", 0)
            (folder.root / "a.txt").write_text(text)
            until = time.monotonic() + PATIENCE
            while "is not recorded yet" not in (
                said := folder.run_here("guard", str(folder.root), "--status")
            ):
                assert time.monotonic() < until, said
                time.sleep(0.05)
            (disk / "fill").unlink()
            # Without anything else that happens.
            (made,) = folder.wait_for(1)
            said = folder.run_here("guard", str(folder.root), "--status")
        assert "is not recorded yet" not in said
        assert (folder.root / "a.txt").read_text() == text
        assert folder.run("undo", "--unattended", made["id"])["status"] == "applied"
        assert (folder.root / "a.txt").read_text() == "one\n"


def test_a_root_that_moves_ends_its_guard_and_nothing_is_taken_for_removed(folder: Folder) -> None:
    (folder.root / "a.txt").write_text("one\n")
    process = folder.start()
    folder.root.rename(folder.root.parent / "moved")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, b"PATH_BLOCKED" in err) == (1, True)
    folder.root.mkdir()
    assert folder.log() == []
    assert (folder.root.parent / "moved" / "a.txt").read_text() == "one\n"


def test_a_move_of_git_says_that_it_was_git(folder: Folder) -> None:
    who = "-c user.name=ada -c user.email=ada@example.org"
    (folder.root / "a.txt").write_text("one\n")
    folder.shell(
        f"git init -q -b main .; git add .; git {who} commit -qm one; git checkout -qb next"
    )
    (folder.root / "a.txt").write_text("two\n")
    folder.shell(f"git {who} commit -qam two")
    with folder.guard():
        folder.shell("git checkout -q main")
        (made,) = folder.wait_for(1)
    assert made["actor"]["name"] == "git"
    assert "moving from next to main" in made["summary"]


def test_what_a_guard_does_not_look_at_is_said_at_its_start_and_by_every_command(
    folder: Folder,
) -> None:
    folder.config.write_text("[recording]\nquiet = 0.5\nlongest = 2\nfiles = 1000\n")
    for number in range(1_003):
        (folder.root / f"{number:04}").write_text("one\n")
    with folder.guard() as process:
        said = [process.stdout.readline() for _ in range(2)]
        (folder.root / "0001").write_text("two\n")
        (folder.root / "1002").write_text("two\n")
        (made,) = folder.wait_for(1)
        status = folder.run_here("guard", str(folder.root), "--status")
    assert said[0] == b"What Git ignores is not recorded.\n"
    assert said[1].startswith(b"3 files are not watched here")
    assert [one["path"] for one in made["files"]] == ["0001"]
    assert "3 files are not watched" in status
    for words in (("doctor",), ("log",), ("undo", "--unattended", made["id"])):
        assert "3 files are not watched" in folder.run_here(*words, "--root", str(folder.root))
    assert (folder.root / "0001").read_text() == "one\n"
    detached = folder.run_here("guard", str(folder.root), "--detach")
    folder.run_here("guard", str(folder.root), "--stop")
    assert " ".join(b"".join(said).decode().split()) in " ".join(detached.split())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads what the system says of the process")
def test_many_files_are_watched_and_nothing_is_done_while_nothing_changes(folder: Folder) -> None:
    run_many(folder, 5_500)


@pytest.mark.parametrize("seed", range(often(3, 8)))
@pytest.mark.slow(after=1)
def test_a_kill_loses_nothing_that_was_recorded(folder: Folder, seed: int) -> None:
    run_kills(folder, seed, kills=3)


@pytest.mark.parametrize("seed", range(often(3, 6)))
@pytest.mark.slow(after=1)
def test_programs_are_taken_back_and_what_a_person_did_meanwhile_stays(
    folder: Folder, seed: int
) -> None:
    run_programs(folder, seed, steps=10)


def test_a_guard_says_at_its_start_that_what_is_ignored_is_not_recorded(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    process = folder.start()
    assert b"ignores is not recorded" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert "ignores is not recorded" in folder.run_here("guard", str(folder.root), "--detach")
    folder.run_here("guard", str(folder.root), "--stop")
