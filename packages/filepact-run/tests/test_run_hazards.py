"""`filepact run`: disks that are full, roots that move, and several programs on one root."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from run_place import TEXT, Place
from tests import forked
from tests.crash.near_full import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.slow,
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place of which the state folder has a small disk of its own."""
    with small_disk(place.root.parent / "disk", "270m") as disk:
        place.environment["FILEPACT_STATE_DIR"] = str(disk / "state")
        yield place


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_disk_that_a_program_fills_loses_nothing(small: Place, goes_on: bool) -> None:
    small.file("kept")
    script = "echo x > a; echo new > kept; dd if=/dev/zero of=big bs=1M count=400"
    done = small.run(f"{script}; {'read x; sleep 1000' if goes_on else 'exit 9'}")
    assert done.returncode == (137 if goes_on else 1), done.stderr
    (left,) = small.facts("runs")["runs"]
    assert left["run"] in done.stderr
    assert small.state() == {"kept": TEXT}
    # There is no room for the journal either.
    assert small.command("runs", "--commit", left["run"]).returncode == 1
    assert small.state() == {"kept": TEXT}
    disk = small.root.parent / "disk"
    subprocess.run(["mount", "-o", "remount,size=1g", str(disk)], check=True)
    small.command("runs", "--commit", left["run"])
    assert small.state() == {"a": "x\n", "kept": "new\n"}
    # What is larger than any file that is kept stays where it is.
    (left,) = small.facts("runs")["runs"]
    assert [*left["left"]] == [str(small.root / "big")]
    small.undo()
    assert small.state() == {"kept": TEXT}


@pytest.mark.parametrize("how", ["moved", "removed"])
def test_what_a_run_left_goes_into_no_other_folder_of_that_name(place: Place, how: str) -> None:
    place.file("a.txt")
    moved = place.root.with_name("moved")

    def replace_root() -> None:
        if how == "moved":
            place.root.rename(moved)
        else:
            shutil.rmtree(place.root)
        place.root.mkdir()
        place.file("mine.txt", "mine\n")

    place.beside("echo x > new; echo begun; read x", replace_root)
    (left,) = place.facts("runs")["runs"]
    for words in (
        ("runs", "--commit", left["run"]),
        ("run", "--resume", left["run"], "--", "true"),
    ):
        refused = place.command(*words)
        assert refused.returncode == 1
        assert "PATH_BLOCKED" in refused.stderr
    assert place.state() == {"mine.txt": "mine\n"}
    if how == "moved":
        shutil.rmtree(place.root)
        moved.rename(place.root)
        assert place.command("runs", "--commit", left["run"]).returncode == 0
        assert place.state() == {"a.txt": TEXT, "new": "x\n"}


@pytest.mark.parametrize("how", ["mv {} {}-moved; mkdir {}", "rm -r {}; mkdir {}", "rm -r {}"])
def test_of_a_root_that_is_another_one_after_a_run_without_layers_nothing_is_recorded(
    place: Place, how: str
) -> None:
    place.file("a.txt")
    script = how.replace("{}", shlex.quote(str(place.root)))
    done = place.run(f"cd /; {script}; echo new > {place.root}/a.txt", "--layers", "off")
    assert done.returncode == 1
    assert "PATH_BLOCKED" in done.stderr
    place.root.mkdir(exist_ok=True)
    assert place.facts("log", "--all")["operations"] == []


@pytest.mark.parametrize("layers", ["auto", "off"])
@pytest.mark.parametrize("how", ["moved", "removed", "restored"])
def test_a_folder_that_is_made_where_another_one_lay_has_no_history_of_that(
    place: Place, how: str, layers: str
) -> None:
    """Nobody has looked at it but runs; one that was restored, or cloned once more, is the same project."""
    place.file("a.txt")
    assert place.run("echo agent > a.txt", "--layers", layers).returncode == 0
    kept = place.root.with_name("kept")
    if how == "removed":
        shutil.rmtree(place.root)
    else:
        place.root.rename(kept)
    place.root.mkdir()
    place.file("a.txt" if how == "restored" else "other.txt", "agent\n")
    assert place.run("echo more > c.txt", "--layers", layers).returncode == 0
    found = place.facts("log", "--all")["operations"]
    assert len(found) == (2 if how == "restored" else 1)
    undone = place.command("undo", "--unattended", found[-1]["id"])
    assert undone.returncode == 0
    if how == "restored":
        assert place.state()["a.txt"] == TEXT
    else:
        assert place.state() == {"other.txt": "agent\n"}
        assert "--moved" in place.facts("status")["moved"]


def test_a_root_that_is_renamed_meanwhile_loses_nothing(place: Place) -> None:
    place.file("a.txt")
    moved = place.root.with_name("moved")
    script = "echo x > n; sed -i s/two/2/ a.txt; echo begun; read x; echo y > m; cat a.txt > c.txt"
    said = place.beside(script, lambda: place.root.rename(moved))
    assert not place.root.exists()
    assert (moved / "a.txt").read_text() == TEXT
    moved.rename(place.root)
    (left,) = place.facts("runs")["runs"]
    assert left["run"] in said
    assert place.command("runs", "--commit", left["run"]).returncode == 0
    assert place.state() == {
        "a.txt": TEXT.replace("two", "2"),
        "c.txt": TEXT.replace("two", "2"),
        "m": "y\n",
        "n": "x\n",
    }
    assert place.facts("runs") == {"runs": []}


def test_all_that_a_commit_as_a_whole_could_not_do_is_counted(place: Place) -> None:
    place.file("a.txt")
    journal = place.root.parent / "state" / "journal.db"
    aside = journal.with_name("aside")
    script = "echo begun; read x; mkdir -p d/e f; echo x > n; echo y > d/e/m; rm a.txt"
    place.beside(script, lambda: journal.rename(aside))
    assert place.state() == {"a.txt": TEXT}
    aside.rename(journal)
    # Nothing was said of single files: two new ones, one that is gone and an empty folder are kept.
    (left,) = place.facts("runs")["runs"]
    assert (left["kept"], left["left"]) == (4, {})
    assert place.command("runs", "--commit", left["run"]).returncode == 0
    assert place.state() == {"d": None, "d/e": None, "d/e/m": "y\n", "f": None, "n": "x\n"}


def test_another_folder_in_the_roots_place_is_not_written(place: Place) -> None:
    place.file("a.txt")
    moved = place.root.with_name("moved")

    def exchange() -> None:
        place.root.rename(moved)
        place.root.mkdir()
        place.file("other.txt", "other\n")

    said = place.beside("echo x > n; echo begun; read x", exchange)
    assert place.state() == {"other.txt": "other\n"}, said
    assert sorted(one.name for one in moved.iterdir()) == ["a.txt"]


def test_two_programs_on_one_root_are_merged(place: Place) -> None:
    path = place.file("a.txt")
    place.file("b.txt")
    first = "sed -i s/two/2/ a.txt; echo 1 > one; sed -i s/one/first/ b.txt; echo begun; read x"
    second = "sed -i s/six/6/ a.txt; echo 2 > two; sed -i s/one/second/ b.txt"
    said = place.beside(first, lambda: place.run(second))
    # What changed before the first had looked at it all cannot be told apart, and waits as well.
    merged = TEXT.replace("six", "6")
    assert path.read_text() in (merged, merged.replace("two", "2")), said
    assert (place.root / "one").read_text() == "1\n"
    assert (place.root / "two").read_text() == "2\n"
    # Both changed the same line: the later one waits.
    assert (place.root / "b.txt").read_text() == TEXT.replace("one", "second")
    (waiting,) = place.waiting()
    assert {"b.txt"} <= {one["path"] for one in waiting["files"]} <= {"a.txt", "b.txt"}
    for one in place.operations():
        place.undo(one)
    assert place.state() == {"a.txt": TEXT, "b.txt": TEXT}


def test_where_namespaces_are_refused_that_is_said_and_changes_are_recorded(place: Place) -> None:
    place.file("a.txt")
    python = shlex.quote(sys.executable)
    # In a namespace of users that may have no more of them.
    script = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {python} -m filepact run"

    def run(options: str, code: str) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "-Ur", "sh", "-c", f"{script} {options} -- sh -c {shlex.quote(code)}"]
        return subprocess.run(words, stdin=subprocess.DEVNULL, check=False, **place.options())

    if subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespace of users can be made here")
    done = run("--layers required --json", "echo x > a.txt")
    assert json.loads(done.stdout)["error"]["code"] == "INVALID_PARAMS"
    assert place.state() == {"a.txt": TEXT}
    done = run("", "echo x > a.txt; echo y > n; exit 4")
    assert done.returncode == 4, done.stderr
    assert "no layers here" in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert place.state() == {"a.txt": "x\n", "n": "y\n"}
    place.undo()
    assert place.state() == {"a.txt": TEXT}


def test_several_roots_are_one_run(place: Place) -> None:
    other = place.root.with_name("other")
    other.mkdir()
    (other / "b.txt").write_text(TEXT)
    place.file("a.txt")
    done = place.command(
        *("--root", str(place.root), "--root", str(other), "run", "--", "sh", "-c"),
        f"sed -i s/two/2/ a.txt {other}/b.txt; mv {other}/b.txt c.txt; echo x > {other}/n",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(place.state()) == ["a.txt", "c.txt"]
    assert sorted(one.name for one in other.iterdir()) == ["n"]
    both = ("--root", str(place.root), "--root", str(other))
    (operation,) = place.facts(*both, "log")["operations"]
    assert place.command(*both, "undo", "--unattended", operation["id"]).returncode == 0
    assert place.state() == {"a.txt": TEXT}
    assert (other / "b.txt").read_text() == TEXT


def test_a_run_that_goes_on_is_not_taken_by_another(place: Place) -> None:
    words = ("run", "--", "sh", "-c", "echo begun; read x")
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        assert process.stdout.readline() == "begun\n"
        (going,) = place.facts("runs")["runs"]
        assert going["going_on"]
        for refused in (("runs", "--discard"), ("run", "--resume")):
            code = place.facts(*refused, going["run"])["error"]["code"]
            assert code == "STATE_ERROR"
        process.communicate("go\n")
    assert place.facts("runs") == {"runs": []}


def test_a_run_that_was_cut_off_before_it_wrote_anything_is_dropped(place: Place) -> None:
    place.file("a.txt")
    words = ("run", "--", "sh", "-c", "cat a.txt >/dev/null; echo begun; read x")
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
        process.stdout.read()
    assert place.left_over() == []
    assert place.facts("runs") == {"runs": []}
    assert place.state() == {"a.txt": TEXT}
