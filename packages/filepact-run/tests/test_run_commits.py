"""`filepact run`: commits while the program runs, and what it sees afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from run_place import TEXT, Place
from tests import forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.slow(measured=True),
]


class Going:
    """A shell under `filepact run` that does a line at a time."""

    def __init__(self, place: Place, process: Any) -> None:
        self.place, self._process = place, process
        self.id = self.does("echo $FILEPACT_RUN").strip()

    def does(self, line: str) -> str:
        """What a line prints."""
        self._process.stdin.write(f"{line}\necho; echo .\n")
        self._process.stdin.flush()
        said = ""
        while not said.endswith("\n.\n"):
            more = self._process.stdout.readline()
            assert more, self._process.stderr.read()
            said += more
        return said[:-3]

    def commit(self) -> Any:
        done = self.place.command("runs", "--commit", self.id, "--json")
        return json.loads(done.stdout)

    def ends(self) -> str:
        _, said = self._process.communicate("exit 0\n")
        return str(said)

    def is_cut_off(self) -> None:
        self._process.kill()
        self._process.stdout.read()
        assert self.place.left_over() == []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextmanager
def going(place: Place, *options: str) -> Iterator[Going]:
    words = ("run", "--commit", "end", *options, "--", "sh")
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        yield Going(place, process)


def test_a_commit_while_the_program_runs_is_seen_by_both_and_done_once(place: Place) -> None:
    path = place.file("a.txt")
    with going(place) as run:
        run.does("sed -i s/two/2/ a.txt; mkdir -p new/er; echo x > new/er/f; exec 3>>new/er/f")
        assert path.read_text() == TEXT
        (first,) = run.commit()["operations"]
        assert path.read_text() == TEXT.replace("two", "2")
        assert run.commit()["operations"] == []
        run.does("echo y >&3; sed -i s/three/3/ a.txt")
        (second,) = run.commit()["operations"]
        assert (place.root / "new/er/f").read_text() == "x\ny\n"
        run.ends()
    assert place.operations() == [second, first]
    assert place.facts("runs") == {"runs": []}
    place.undo(second)
    place.undo(first)
    assert place.state() == {"a.txt": TEXT}


def test_after_a_commit_the_program_sees_what_a_person_wrote_meanwhile(place: Place) -> None:
    path, other, old = place.file("a.txt"), place.file("b.txt"), place.file("c.txt")
    with going(place) as run:
        run.does("sed -i s/two/2/ a.txt; mkdir d; echo p > d/p; cat b.txt; cat later")
        run.commit()
        path.write_text(path.read_text().replace("seven", "7"))
        other.rename(other.with_suffix(".old"))
        place.file("b.txt", "replaced\n")
        place.file("later", "later\n")
        place.file("d/person", "person\n")
        place.file("d/deep/person", "person\n")
        (place.root / "d/p").unlink()
        old.unlink()
        run.commit()
        merged = TEXT.replace("two", "2").replace("seven", "7")
        assert run.does("cat a.txt") == merged
        assert run.does("cat b.txt later d/person d/deep/person") == (
            "replaced\nlater\nperson\nperson\n"
        )
        assert run.does("ls c.txt d/p 2>/dev/null") == ""
        run.does("sed -i s/one/1/ a.txt; rm d/person")
        run.ends()
    assert path.read_text() == merged.replace("one", "1")
    assert place.waiting() == []
    assert sorted(place.state()) == [
        "a.txt",
        "b.old",
        "b.txt",
        "d",
        "d/deep",
        "d/deep/person",
        "later",
    ]


def test_what_a_person_takes_back_stays_taken_back(place: Place) -> None:
    path = place.file("a.txt")
    with going(place) as run:
        run.does("sed -i s/two/2/ a.txt; echo new > n; rm -f gone")
        (operation,) = run.commit()["operations"]
        place.undo(operation)
        run.commit()
        assert run.does("cat a.txt; cat n 2>/dev/null") == TEXT
        run.ends()
    assert place.state() == {"a.txt": TEXT}
    assert path.read_text() == TEXT


def test_what_is_removed_and_moved_after_a_commit_goes(place: Place) -> None:
    place.file("old/x", "x\n")
    with going(place) as run:
        run.does("mkdir d e; echo 1 > d/1; echo 2 > d/2; echo 3 > e/3; echo t > t; rm -r old")
        run.commit()
        place.file("old/anew", "anew\n")
        run.does("rm d/1 t; mv e f; mkdir old")
        run.commit()
        assert sorted(place.state()) == ["d", "d/2", "f", "f/3", "old", "old/anew"]
        assert run.does("cat old/anew") == "anew\n"
        run.does("rm -r d; mkdir d; echo 4 > d/4")
        run.ends()
    assert sorted(place.state()) == ["d", "d/4", "f", "f/3", "old", "old/anew"]
    assert place.waiting() == []


def test_what_waits_or_overlaps_is_left_to_the_end(place: Place) -> None:
    path = place.file("a.txt")
    with going(place) as run:
        run.does("sed -i s/two/2/ a.txt; echo '{}' > package.json; echo x > b")
        path.write_text(TEXT.replace("two", "zwei"))
        facts = run.commit()
        assert len(facts["operations"]) == 1
        assert facts["waiting"] == ["a.txt", "package.json"]
        assert run.does("head -2 a.txt") == "one\n2\n"
        run.ends()
    assert len(place.waiting()) == 2
    assert path.read_text() == TEXT.replace("two", "zwei")


def test_after_a_kill_a_run_goes_on_from_its_last_commit(place: Place) -> None:
    path = place.file("a.txt")
    with going(place) as run:
        run.does("sed -i s/two/2/ a.txt; echo x > n")
        run.commit()
        path.write_text(path.read_text().replace("seven", "7"))
        (place.root / "n").unlink()
        run.does("sed -i s/three/3/ a.txt")
        run.is_cut_off()
        assert place.command("runs", "--commit", run.id).returncode == 0
    assert place.waiting() == []
    assert place.state() == {
        "a.txt": TEXT.replace("two", "2").replace("seven", "7").replace("three", "3")
    }


def test_in_review_a_commit_is_refused_until_the_end(place: Place) -> None:
    with going(place, "--mode", "review") as run:
        run.does("echo x > n")
        assert run.commit()["error"]["code"] == "STATE_ERROR"
        assert place.state() == {}
        run.ends()
    assert len(place.waiting()) == 1


# A quiet moment, and how often one is looked for; the first of these tests waits as long as people do.
SHORTER = {"filepact_run.runs:_QUIET": 0.5, "filepact_run.runs:_EVERY": 0.25}


def test_at_a_quiet_moment_what_is_allowed_is_done(place: Place) -> None:
    place.file("b.txt")
    words = ("run", "--", "sh", "-c", "cat b.txt; echo x > a; read x; cat b.txt; read x")
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        assert "".join(process.stdout.readline() for _ in range(7)) == TEXT
        assert any(place.operations() for _ in range(200))
        assert place.state()["a"] == "x\n"
        process.communicate("\n\n")
    assert place.state()["a"] == "x\n"
    assert len(place.operations()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "option", "operations"),
    [("quiet", "", 2), ("end", "", 1), ("end", "quiet", 2), ("quiet", "end", 1)],
)
def test_it_is_set_whether_quiet_moments_are_used(
    place: Place, setting: str, option: str, operations: int
) -> None:
    settings = place.home / "settings.toml"
    settings.write_text(f'[run]\ncommit = "{setting}"\n')
    options = ["--config", str(settings), *(["--commit", option] if option else [])]
    place.shorter = SHORTER
    place.run("echo x > a; sleep 1.5; echo y > b", *options)
    assert place.state() == {"a": "x\n", "b": "y\n"}
    assert len(place.operations()) == operations
