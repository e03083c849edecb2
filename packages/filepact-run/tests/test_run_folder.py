"""The folders of runs: one holder at a time, what others may ask of it, and what is left of it."""

from __future__ import annotations

import os
import signal
import stat
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.errors import NotFoundError, PathBlockedError, StateFailedError
from filepact_run import run_folder
from filepact_run.kernel import pin_link
from filepact_run.overlay import remove_tree
from filepact_run.run_folder import RunFolder, ask_commit, is_going_on, kept_files, list_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers are those of overlays")


class Place:
    """A state folder, and a root that runs work in."""

    def __init__(self, base: Path) -> None:
        self.state, self.root = base / "state", base / "root"
        self.root.mkdir(mode=0o750)

    def make(self, *roots: Path) -> RunFolder:
        return RunFolder.make(
            str(self.state),
            command=("sh", "-c", "true"),
            agent="sh",
            mode="auto",
            roots=[str(one) for one in roots or (self.root,)],
            folder=str(self.root),
        )

    def upper(self, run: RunFolder) -> Path:
        return Path(run.layers()[0].upper)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def run(place: Place) -> Iterator[RunFolder]:
    with place.make() as made:
        yield made


def test_a_run_is_as_open_as_its_root_and_is_listed(place: Place, run: RunFolder) -> None:
    assert stat.S_IMODE(place.upper(run).stat().st_mode) == 0o750
    assert list_runs(str(place.state)) == (run.record,)
    assert Path(run.private).is_dir()


def test_where_there_was_no_run_none_is_listed(place: Place) -> None:
    assert list_runs(str(place.state)) == ()


def test_a_record_that_cannot_be_read_is_no_run(place: Place, run: RunFolder) -> None:
    for spoiled in ("", "[]", "{}", '{"command": [], "roots": [], "colour": "red"}'):
        Path(run.path, "run.json").write_text(spoiled)
        assert list_runs(str(place.state)) == ()


def test_a_run_over_a_root_that_is_gone_leaves_nothing_behind(place: Place, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StateFailedError):
        place.make(place.root, tmp_path / "gone")
    assert list((place.state / "runs").iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_state_folder_that_takes_no_runs_is_told(place: Place) -> None:
    place.state.write_text("a file")
    with pytest.raises(StateFailedError):
        place.make()


def test_another_folder_in_the_place_of_a_root_is_refused(place: Place, run: RunFolder) -> None:
    run.record.check_places()
    place.root.rename(place.root.with_name("moved"))
    place.root.mkdir()
    with pytest.raises(PathBlockedError):
        run.record.check_places()


def test_what_a_run_keeps_is_counted_by_files_and_empty_folders(
    place: Place, run: RunFolder, tmp_path: Path
) -> None:
    assert (run.is_empty, kept_files(str(place.state), run.record)) == (True, 0)
    upper = place.upper(run)
    (upper / "deep" / "empty").mkdir(parents=True)
    (upper / "deep" / "a.txt").write_text("a\n")
    (tmp_path / "steers.json").write_text("{}\n")
    run.keep_apart(str(tmp_path / "steers.json"))
    assert (run.is_empty, kept_files(str(place.state), run.record)) == (False, 3)


# -- one holder at a time ---------------------------------------------------------------------


def test_a_run_is_taken_over_by_the_beginning_of_its_id(place: Place) -> None:
    with place.make() as left:
        left.note(ended=3)
    with RunFolder.open(str(place.state), left.record.id[:5]) as taken:
        assert taken.record == left.record
        assert taken.record.ended == 3


def test_a_run_that_is_going_on_is_not_taken_over(place: Place, run: RunFolder) -> None:
    assert is_going_on(str(place.state), run.record.id)
    with pytest.raises(StateFailedError):
        RunFolder.open(str(place.state), run.record.id)


def test_no_run_and_several_runs_are_not_taken_over(place: Place) -> None:
    for _ in range(2):
        place.make().__exit__()
    for name in ("", "r", "nothing"):
        with pytest.raises(NotFoundError):
            RunFolder.open(str(place.state), name)


def settled_first(place: Place) -> None:
    for one in (place.state / "runs").iterdir():
        (one / "run.json").unlink()


def discarded_first(place: Place) -> None:
    with RunFolder.open(str(place.state), list_runs(str(place.state))[0].id) as run:
        run.discard()


def spoiled_first(place: Place) -> None:
    for one in (place.state / "runs").iterdir():
        (one / "lock").unlink()
        (one / "lock").mkdir()


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (settled_first, NotFoundError),
        (discarded_first, NotFoundError),
        (spoiled_first, StateFailedError),
    ],
)
def test_a_run_that_another_process_ends_while_it_is_looked_up_is_not_taken_over(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Place], None],
    error: type[Exception],
) -> None:
    with place.make() as left:
        pass
    real = run_folder.list_runs

    def listed(state: str) -> tuple[run_folder.RunRecord, ...]:
        found = real(state)
        monkeypatch.undo()
        act(place)
        return found

    monkeypatch.setattr(run_folder, "list_runs", listed)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(error):
        RunFolder.open(str(place.state), left.record.id)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_run_that_is_over_or_gone_is_not_going_on(place: Place) -> None:
    with place.make() as left:
        pass
    assert not is_going_on(str(place.state), left.record.id)
    assert not is_going_on(str(place.state), "r00000000")


# -- asking for a commit ----------------------------------------------------------------------


def test_whoever_asks_for_a_commit_gets_the_holders_answer(place: Place, run: RunFolder) -> None:
    got: list[object] = []
    asking = threading.Thread(
        target=lambda: got.append(ask_commit(str(place.state), run.record.id)), daemon=True
    )
    asking.start()
    while not (names := run.asked()):
        assert asking.is_alive()
    run.answer(names[0], {"committed": 2})
    asking.join()
    assert got == [{"committed": 2}]
    assert run.asked() == []


def test_a_question_that_is_still_being_written_is_not_answered(run: RunFolder) -> None:
    Path(run.path, "asked-0123.456").touch()
    Path(run.path, "asked-0123").touch()
    assert run.asked() == ["0123"]


def test_whoever_asks_a_run_that_ends_meanwhile_is_not_answered(place: Place) -> None:
    with place.make() as left:
        pass
    assert ask_commit(str(place.state), left.record.id) is None


def test_a_run_that_does_not_answer_is_told_and_not_asked_any_more(
    place: Place, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "_PATIENCE", 0.05)
    with pytest.raises(StateFailedError):
        ask_commit(str(place.state), run.record.id)
    assert run.asked() == []


# -- what was committed while it went on ------------------------------------------------------


def test_what_was_committed_is_known_until_the_layers_are_settled(run: RunFolder) -> None:
    assert run.committed() is None
    run.note_committed({"a": 1})
    assert run.committed() == {"a": 1}
    run.settle({})
    assert run.committed() is None


def test_what_was_committed_and_cannot_be_read_is_told(run: RunFolder) -> None:
    Path(run.path, "committed.json").write_text("{")
    with pytest.raises(StateFailedError):
        run.committed()


def test_bytes_are_kept_once_and_given_back(run: RunFolder) -> None:
    run.keep("name", b"bytes")
    run.keep("name", b"others, which have another name")
    assert run.kept("name") == b"bytes"
    with pytest.raises(NotFoundError):
        run.kept("unknown")


def test_of_the_layers_only_what_was_not_committed_is_kept(place: Place, run: RunFolder) -> None:
    upper = place.upper(run)
    (upper / "sub").mkdir()
    for name in ("done.txt", "sub/done.txt", "sub/left.txt"):
        (upper / name).write_text(name)
    run.settle({str(place.root / "sub/left.txt"): "denied", "/elsewhere": "of another root"})
    assert [one.name for one in upper.rglob("*") if one.is_file()] == ["left.txt"]
    assert list_runs(str(place.state))[0].left.keys() == {
        *(str(place.root / "sub/left.txt"), "/elsewhere")
    }


def test_a_layer_that_is_gone_is_told(place: Place, run: RunFolder) -> None:
    place.upper(run).rmdir()
    with pytest.raises(StateFailedError):
        run.settle({})


# -- its end ----------------------------------------------------------------------------------


def test_a_file_that_is_put_apart_is_not_lost(run: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    there = Path(run.keep_apart(str(file)))
    assert (there.read_text(), file.exists()) == ("mine", False)
    assert there.is_relative_to(run.path)


def test_a_file_of_another_file_system_is_put_apart_beside_its_place(
    run: RunFolder, tmp_path: Path
) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        file = Path(folder, "file")
        file.write_text("mine")
        there = Path(run.keep_apart(str(file)))
        assert (there.read_text(), file.exists()) == ("mine", False)
        assert there.parent == Path(folder)


def test_what_cannot_be_put_apart_stays(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run.keep_apart(str(tmp_path / "gone"))


def test_a_discarded_run_is_gone(place: Place) -> None:
    with place.make() as first, place.make() as second:
        first.discard()
        assert list_runs(str(place.state)) == (second.record,)
        with pytest.raises(StateFailedError):
            first.discard()


def test_what_is_left_of_a_run_by_who_was_killed_while_it_discarded_it_is_no_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_in_part(_path: str) -> None:
        for upper in Path(place.state).glob("runs/*/0/upper"):
            remove_tree(str(upper))
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        monkeypatch.setattr(run_folder, "remove_tree", removed_in_part)
        place.make().discard()
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    (left,) = Path(place.state, "runs").iterdir()
    with pytest.raises(NotFoundError):
        RunFolder.open(str(place.state), left.name)
    assert list_runs(str(place.state)) == ()
    assert not left.exists()


def test_a_run_is_empty_until_something_is_in_a_layer_or_kept_apart(
    place: Place, run: RunFolder, tmp_path: Path
) -> None:
    assert run.is_empty
    assert run.is_there
    made = place.upper(run) / "a"
    made.write_text("x")
    assert not run.is_empty
    made.unlink()
    steers = tmp_path / "settings.json"
    steers.write_text("{}")
    run.keep_apart(str(steers))
    assert not run.is_empty
    run.discard()
    assert not run.is_there


def test_a_link_that_is_not_there_or_may_not_be_pinned_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        pin_link(str(tmp_path / "nothing"))
