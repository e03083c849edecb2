"""What becomes of an operation that was cut off: by a kill, or by a power cut after its answer."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import OpenFolders, open_folders, open_workspace
from filepact.config.settings import Settings
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, LINK, Revision, RootId, WorkspacePath
from filepact.domain.operation import ChangeId, Operation, Session
from filepact.errors import FilepactError, StaleFileError, StateFailedError
from filepact.fs import path_form
from filepact.fs.root import Root
from filepact.store.sqlite import SqliteStore
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.fs.read import FileInfo
    from filepact.workspace.workspace import Workspace

ID = "c0123456789"


def rescued(tmp_path: Path) -> list[bytes]:
    return [path.read_bytes() for path in (tmp_path / "state" / "rescued").glob("*")]


def temporary(number: int, change_id: str = ID) -> str:
    return f".filepact-{change_id}-{number}.tmp"


def put(root: Path, name: str, data: bytes, mode: int = 0o644) -> None:
    (root / name).write_bytes(data)
    (root / name).chmod(mode)


def left(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


Side = bytes | tuple[bytes, int] | None


def revision(side: Side) -> Revision | None:
    if side is None:
        return None
    data, mode = side if isinstance(side, tuple) else (side, 0o644)
    return FOLDER if mode == FOLDER.mode and not data else Revision.of(data, mode)


class Crash:
    """Puts an intention into the journal as a process would that dies right after."""

    def __init__(self, workspace: Workspace, session: Session, root: Path) -> None:
        self.workspace = workspace
        self.session = session
        self.root = root

    def begin(self, *changes: tuple[str, Side, Side], change_id: str = ID) -> Operation:
        contents: dict[str, bytes] = {}
        for side in (side for change in changes for side in change[1:]):
            if side is not None:
                data = side[0] if isinstance(side, tuple) else side
                contents[Revision.of(data, 0).content] = data
        operation = Operation(
            id=ChangeId(change_id),
            seq=0,
            kind="change",
            session=self.session,
            tool="t",
            summary="cut off",
            changes=ChangeSet(
                tuple(
                    FileChange(
                        WorkspacePath(RootId(str(self.root)), path),
                        revision(before),
                        revision(after),
                    )
                    for path, before, after in changes
                )
            ),
            created=time.time(),
            directories=((RootId(str(self.root)), "made"),),
            state="intended",
            note="kept",
        )
        return self.workspace._store.begin(operation, contents)

    def leave(self, aside: bytes | None, own: bytes | None) -> None:
        """Leave a text under the first temporary name, and one in ``a.txt``; None for no file."""
        for name, data in ((temporary(0), aside), ("a.txt", own)):
            if data is not None:
                half = name != "a.txt" and data not in (OLD, NEW)
                put(self.root, name, data, 0o600 if half else 0o644)


@pytest.fixture
def crash(open_here: Callable[..., Workspace], session: Session, root: Path) -> Crash:
    return Crash(open_here(), session, root)


OLD, NEW = b"one\ntwo\nthree\n", b"ONE\ntwo\nthree\n"
ON_OLD, ON_NEW, FOREIGN = b"one\ntwo\nPERSON\n", b"ONE\ntwo\nPERSON\n", b"nothing of it\n"


# -- one file: every trace ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aside", "own", "state"),
    [
        # Staged, not exchanged.
        (NEW, OLD, "rolled_back"),
        (NEW, ON_OLD, "rolled_back"),
        (b"ONE\nt", OLD, "rolled_back"),
        (b"", OLD, "rolled_back"),
        # Exchanged, and the old text not gone or there again.
        (OLD, NEW, "applied"),
        (OLD, ON_NEW, "applied"),
        (OLD, FOREIGN, "applied"),
        (OLD, OLD, "applied"),
        (OLD, None, "applied"),
        # Answered, or not begun.
        (None, NEW, "applied"),
        (None, ON_NEW, "applied"),
        (None, OLD, "rolled_back"),
        (None, ON_OLD, "rolled_back"),
        (None, FOREIGN, "interrupted"),
        (None, b"Q\ntwo\nthree\n", "interrupted"),
        (None, None, "interrupted"),
    ],
)
def test_what_a_replacement_left_tells_what_became_of_it(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    tmp_path: Path,
    aside: bytes | None,
    own: bytes | None,
    state: str,
) -> None:
    crash.leave(aside, own)
    crash.begin(("a.txt", OLD, NEW))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert settled.note.startswith("kept; ")
    assert left(root) == ({} if own is None else {"a.txt": own})
    assert rescued(tmp_path) == []
    assert open_here().unfinished() == ()


@pytest.mark.parametrize(
    ("aside", "own", "state", "then"),
    [
        (NEW, None, "rolled_back", None),
        (b"ON", None, "rolled_back", None),
        (NEW, FOREIGN, "rolled_back", FOREIGN),
        (NEW, NEW, "rolled_back", None),  # Two names, where the system cannot rename safely.
        (None, NEW, "applied", NEW),
        (None, None, "rolled_back", None),
        (None, ON_NEW, "applied", ON_NEW),
        (None, FOREIGN, "interrupted", FOREIGN),
    ],
)
def test_what_a_creation_left_tells_what_became_of_it(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    aside: bytes | None,
    own: bytes | None,
    state: str,
    then: bytes | None,
) -> None:
    crash.leave(aside, own)
    crash.begin(("a.txt", None, NEW))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert left(root) == ({} if then is None else {"a.txt": then})


@pytest.mark.parametrize(
    ("aside", "own", "state"),
    [
        (OLD, None, "applied"),
        (OLD, FOREIGN, "applied"),
        (OLD, OLD, "applied"),
        (None, None, "applied"),
        (None, OLD, "rolled_back"),
        (None, FOREIGN, "interrupted"),
    ],
)
def test_what_a_removal_left_tells_what_became_of_it(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    aside: bytes | None,
    own: bytes | None,
    state: str,
) -> None:
    crash.leave(aside, own)
    crash.begin(("a.txt", OLD, None))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert left(root) == ({} if own is None else {"a.txt": own})


@pytest.mark.parametrize(
    ("aside", "own", "state"),
    [
        (0o755, 0o644, "rolled_back"),
        (0o600, 0o644, "rolled_back"),
        (0o644, 0o755, "applied"),
        (0o644, 0o700, "applied"),
        (None, 0o755, "applied"),
        (None, 0o644, "rolled_back"),
    ],
)
def test_of_a_change_of_rights_the_rights_tell(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    aside: int | None,
    own: int,
    state: str,
) -> None:
    put(root, "a.sh", OLD, own)
    if aside is not None:
        put(root, temporary(0), OLD, aside)
    crash.begin(("a.sh", OLD, (OLD, 0o755)))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert (root / "a.sh").stat().st_mode & 0o777 == own
    assert left(root) == {"a.sh": OLD}


@pytest.mark.parametrize(
    ("mode", "state"), [(0o600, "rolled_back"), (0o644, "applied")], ids=["half", "back again"]
)
def test_a_half_written_text_is_told_from_the_old_one_that_it_begins_with(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, mode: int, state: str
) -> None:
    put(root, "log.txt", b"one\n")
    put(root, temporary(0), b"one\n", mode)
    crash.begin(("log.txt", b"one\n", b"one\ntwo\n"))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert left(root) == {"log.txt": b"one\n"}


@pytest.mark.parametrize(
    ("aside", "own", "after", "state"),
    [
        ("to", None, "to", "rolled_back"),
        (None, "to", "to", "applied"),
        ("from", None, None, "applied"),
        (None, "from", None, "rolled_back"),
    ],
)
def test_what_a_change_of_a_link_left_tells_what_became_of_it(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    aside: str | None,
    own: str | None,
    after: str | None,
    state: str,
) -> None:
    for name, target in ((temporary(0), aside), ("link", own)):
        if target is not None:
            (root / name).symlink_to(target)
    before = None if after else (b"from", LINK)
    crash.begin(("link", before, (after.encode(), LINK) if after else None))
    (settled,) = open_here().recovered
    assert settled.state == state
    assert [path.name for path in root.iterdir()] == ([] if own is None else ["link"])


# -- several ------------------------------------------------------------------------------------


def test_one_staged_text_says_that_nothing_was_answered(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, temporary(0), b"gone\n")
    put(root, "a.txt", NEW)
    put(root, temporary(1), OLD)
    (root / "made").mkdir()
    put(root, "made/new.txt", b"n\n")
    put(root, "b.txt", b"b\n")
    put(root, temporary(3), b"B\n")
    crash.begin(
        ("gone.txt", b"gone\n", None),
        ("a.txt", OLD, NEW),
        ("made/new.txt", None, b"n\n"),
        ("b.txt", b"b\n", b"B\n"),
    )
    inode = (root / temporary(1)).stat().st_ino
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert left(root) == {"gone.txt": b"gone\n", "a.txt": OLD, "b.txt": b"b\n"}
    assert (root / "a.txt").stat().st_ino == inode
    assert not (root / "made").exists()


def test_what_a_person_made_of_a_half_done_change_is_kept_and_can_be_undone(
    crash: Crash, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    put(root, "a.txt", ON_NEW)
    put(root, temporary(0), OLD)
    put(root, "b.txt", b"b\n")
    put(root, temporary(1), b"B\n")
    crash.begin(("a.txt", OLD, NEW), ("b.txt", b"b\n", b"B\n"))
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "interrupted"
    assert [str(path) for path in settled.changes.paths] == ["a.txt"]
    assert left(root) == {"a.txt": ON_NEW, "b.txt": b"b\n"}
    workspace.undo(session, dry_run=False)
    assert left(root) == {"a.txt": ON_OLD, "b.txt": b"b\n"}


@pytest.mark.parametrize(
    "person",
    [
        {"c.txt": b"C\nPERSON\n"},
        {"c.txt": None},
        {"c.txt": b"c\n"},
        {"b.txt": b"other\n", "c.txt": b"c\n"},
        {"b.txt": None, "c.txt": b"C\nPERSON\n"},
        {"gone.txt": b"gone\n"},
        {"gone.txt": b"other\n", "new.txt": None},
    ],
)
@pytest.mark.parametrize("back", [False, True], ids=["old texts gone", "old texts there again"])
def test_an_answered_change_is_never_taken_back_whatever_a_person_made_of_one_file(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    person: dict[str, bytes | None],
    back: bool,
) -> None:
    done = {"a.txt": NEW, "b.txt": b"B\n", "c.txt": b"C\n", "new.txt": b"n\n"}
    for name, data in done.items():
        put(root, name, data)
    if back:
        for number, data in ((0, OLD), (1, b"b\n"), (2, b"c\n"), (4, b"gone\n")):
            put(root, temporary(number), data)
    crash.begin(
        ("a.txt", OLD, NEW),
        ("b.txt", b"b\n", b"B\n"),
        ("c.txt", b"c\n", b"C\n"),
        ("new.txt", None, b"n\n"),
        ("gone.txt", b"gone\n", None),
    )
    for name, made in person.items():
        if made is None:
            (root / name).unlink()
        else:
            put(root, name, made)
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "applied"
    assert left(root) == {name: data for name, data in (done | person).items() if data is not None}
    assert settled.id in {one.id for one in workspace.log()}


def test_removals_leave_a_sign_while_they_are_under_way(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    changes = (("a.txt", b"a\n", None), ("b.txt", b"b\n", None))
    put(root, temporary(0), b"a\n")
    put(root, temporary(2), b"", 0o600)
    put(root, "b.txt", b"b\n")
    crash.begin(*changes)
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert left(root) == {"a.txt": b"a\n", "b.txt": b"b\n"}


@pytest.mark.parametrize("name", [os.fsdecode(b"lat\xe9.txt"), "in\u200bvisible.txt", "line\n.txt"])
@pytest.mark.parametrize("comes", [False, True])
def test_what_has_a_name_that_no_new_file_may_have_is_settled_all_the_same(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, name: str, comes: bool
) -> None:
    put(root, temporary(0), b"a\n")
    put(root, temporary(2), b"", 0o600)
    put(root, "b.txt", b"b\n")
    sides = (None, b"a\n") if comes else (b"a\n", None)
    crash.begin((name, *sides), ("b.txt", b"b\n", None))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert left(root) == {"b.txt": b"b\n"} | ({} if comes else {name: b"a\n"})


def test_two_names_of_a_file_that_were_going_are_names_of_one_again(
    crash: Crash, root: Path, tmp_path: Path
) -> None:
    put(root, temporary(0), b"a\n")
    os.link(root / temporary(0), root / "b.txt")
    put(root, temporary(2), b"", 0o600)
    crash.begin(("a.txt", b"a\n", None), ("b.txt", b"a\n", None))
    # Who knows where secrets are looks at the names of such a file: one of ours makes no secret of it.
    state = str(tmp_path / "state")
    with closing(open_workspace([str(root)], state_dir=state, home=str(tmp_path))) as workspace:
        assert [one.state for one in workspace.recovered] == ["rolled_back"]
    assert left(root) == {"a.txt": b"a\n", "b.txt": b"a\n"}
    assert (root / "a.txt").samefile(root / "b.txt")


def test_without_the_sign_removals_were_done_and_what_is_there_is_somebody_s(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, temporary(0), b"a\n")
    put(root, "b.txt", b"b\n")
    crash.begin(("a.txt", b"a\n", None), ("b.txt", b"b\n", None))
    (settled,) = open_here().recovered
    assert settled.state == "applied"
    assert "b.txt" in settled.note
    assert left(root) == {"b.txt": b"b\n"}


def test_the_sign_is_there_from_the_first_removal_to_the_last(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        put(root, name, b"x\n")
    signs: list[int] = []
    apply, sync = Root.apply, Root.sync

    def looked(real: Callable[..., object]) -> Callable[..., object]:
        def look(self: Root, *what: object) -> object:
            signs.append(sum(name.endswith("-2.tmp") for name in os.listdir(root)))
            return real(self, *what)

        return look

    monkeypatch.setattr(Root, "apply", looked(apply))
    monkeypatch.setattr(Root, "sync", looked(sync))
    with workspace.draft(session, "t") as draft:
        for target in draft.open_all(["a.txt", "b.txt"]):
            draft.delete(target, emptied_by=None)
        workspace.submit(draft, "both")
    assert signs == [1, 1, 0]
    assert list(root.iterdir()) == []


def test_removals_come_first_so_that_a_staged_text_is_there_until_all_is_done(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "a.txt", b"a\n")
    put(root, "gone.txt", b"gone\n")
    order: list[str] = []
    real = Root.apply
    monkeypatch.setattr(
        Root, "apply", lambda self, one: (order.append(one.shown), real(self, one))[1]
    )
    with workspace.draft(session, "t") as draft:
        a, gone = draft.open_all(["a.txt", "gone.txt"])
        draft.write(a, "A\n")
        draft.delete(gone, emptied_by=None)
        workspace.submit(draft, "both")
    assert order == ["gone.txt", "a.txt"]


@pytest.mark.parametrize(
    ("there", "state"), [(["x", "x/y"], "applied"), (["x"], "applied"), ([], "rolled_back")]
)
def test_folders_alone_are_completed_when_one_is_there(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    there: list[str],
    state: str,
) -> None:
    for name in there:
        (root / name).mkdir()
    folder = (b"", FOLDER.mode)
    crash.begin(("x", None, folder), ("x/y", None, folder))
    (settled,) = open_here().recovered
    assert settled.state == state


def test_folders_that_were_to_go_go_when_the_rest_was_done(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    (root / "d").mkdir()
    put(root / "d", temporary(0), b"a\n")
    crash.begin(("d/a.txt", b"a\n", None), ("d", (b"", FOLDER.mode), None))
    (settled,) = open_here().recovered
    assert settled.state == "applied"
    assert list(root.iterdir()) == []


def test_folders_of_a_half_done_change_go_and_those_that_were_to_go_stay(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    (root / "old").mkdir()
    (root / "new").mkdir()
    put(root / "old", "a.txt", b"a\n")
    put(root / "new", temporary(1), b"a\n")
    folder = (b"", FOLDER.mode)
    crash.begin(
        ("old/a.txt", b"a\n", None),
        ("new/a.txt", None, b"a\n"),
        ("new", None, folder),
        ("old", folder, None),
    )
    (root / "old" / "a.txt").rename(root / "old" / temporary(0))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert [path.name for path in root.iterdir()] == ["old"]
    assert (root / "old" / "a.txt").read_bytes() == b"a\n"


# -- somebody else's ----------------------------------------------------------------------------


def test_foreign_text_under_a_temporary_name_is_kept_and_told(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, tmp_path: Path
) -> None:
    put(root, "a.txt", NEW)
    put(root, temporary(0), b"somebody's text\n")
    crash.begin(("a.txt", OLD, NEW))
    (settled,) = open_here().recovered
    assert settled.state == "applied"
    assert "rescued" in settled.note
    assert left(root) == {"a.txt": NEW}
    assert rescued(tmp_path) == [b"somebody's text\n"]


def test_a_file_of_any_size_does_not_hold_up_the_next_start(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"theirs\n")
    os.truncate(root / "a.txt", 1 << 40)
    crash.begin(("a.txt", OLD, NEW))
    (settled,) = open_here().recovered
    assert settled.state == "interrupted"
    assert (root / "a.txt").stat().st_size == 1 << 40


def test_what_the_disk_has_lost_is_written_anew_from_the_journal(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", NEW)
    put(root, "b.txt", b"b\n")
    put(root, temporary(2), b"B\n")
    crash.begin(("gone.txt", b"gone\n", None), ("a.txt", OLD, NEW), ("b.txt", b"b\n", b"B\n"))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert left(root) == {"gone.txt": b"gone\n", "a.txt": OLD, "b.txt": b"b\n"}


def test_what_cannot_be_taken_back_after_a_crash_stays_undoable(
    crash: Crash, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    # The file is write-protected, as it was before, and its old one is nowhere.
    put(root, "a.txt", b"A\n", 0o444)
    put(root, "b.txt", b"b\n")
    put(root, temporary(1), b"B\n")
    crash.begin(("a.txt", (b"a\n", 0o444), (b"A\n", 0o444)), ("b.txt", b"b\n", b"B\n"))
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "interrupted"
    assert [str(path) for path in settled.changes.paths] == ["a.txt"]
    with pytest.raises(FilepactError):
        workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"A\n"


@pytest.mark.parametrize(
    ("now", "state"),
    [
        ((b"new" * 500)[:1_024] + (b"old" * 1_000)[1_024:], "rolled_back"),
        (b"new" * 500 + bytes(1_500), "rolled_back"),
        (b"old" * 1_000, "rolled_back"),
        (b"new" * 500, "rolled_back"),
        (b"by a person" + b"old" * 400, "rolled_back"),
    ],
    ids=["half", "all but its end", "not begun", "done", "a person"],
)
def test_a_file_that_a_crash_left_half_written_in_place_has_its_old_text_again(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, now: bytes, state: str
) -> None:
    old, new = b"old" * 1_000, b"new" * 500
    put(root, "a.txt", now)
    os.link(root / "a.txt", root / "b.txt")
    put(root, temporary(0), new)
    crash.begin(("a.txt", old, new))
    (settled,) = open_here().recovered
    assert settled.state == state
    found = left(root)
    assert found == dict.fromkeys(("a.txt", "b.txt"), now if b"person" in now else old)
    assert (root / "a.txt").samefile(root / "b.txt")


@pytest.mark.parametrize(
    ("now", "state", "then"),
    [
        ((b"new" * 500)[:1_024] + (b"old" * 1_000)[1_024:], "rolled_back", b"old" * 1_000),
        (b"new" * 500 + bytes(1_500), "rolled_back", b"old" * 1_000),
        (b"old" * 1_000, "rolled_back", b"old" * 1_000),
        (b"new" * 500, "applied", b"new" * 500),
        (b"by a person" + b"old" * 400, "rolled_back", b"by a person" + b"old" * 400),
    ],
    ids=["half", "all but its end", "not begun", "done", "a person"],
)
def test_where_nothing_lay_beside_a_file_its_bytes_tell_what_a_crash_left(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    now: bytes,
    state: str,
    then: bytes,
) -> None:
    put(root, "a.txt", now)
    crash.begin(("a.txt", b"old" * 1_000, b"new" * 500))
    (settled,) = open_here().recovered
    assert settled.state in (state, "interrupted")
    assert left(root) == {"a.txt": then}


def test_what_a_recovery_could_not_tell_the_journal_the_next_one_finds_again(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(root, "a.txt", NEW)
    put(root, temporary(0), OLD)
    put(root, "b.txt", b"b\n")
    put(root, temporary(1), b"B\n")
    crash.begin(("a.txt", OLD, NEW), ("b.txt", b"b\n", b"B\n"))

    def full(*_: object, **__: object) -> None:
        raise StateFailedError("the disk with the state folder is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "finish", full)
        assert open_here().recovered == ()
    assert left(root) == {"a.txt": OLD, "b.txt": b"b\n"}
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert left(root) == {"a.txt": OLD, "b.txt": b"b\n"}


def test_what_recovery_looks_up_grows_with_the_files_and_no_faster(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    place = Root.place

    def counted(self: Root, path: str, **how: bool) -> FileInfo:
        looked.append(path)
        return place(self, path, **how)

    monkeypatch.setattr(Root, "place", counted)
    figures: list[int] = []
    for count in (20, 80):
        names = [f"{count}-{number}.txt" for number in range(count)]
        for name in names:
            put(root, name, b"a\n")
        crash.begin(*((name, b"a\n", b"A\n") for name in names), change_id=f"c{count:010}")
        looked.clear()
        workspace = open_here()
        figures.append(len(looked))
        (settled,) = workspace.recovered
        assert settled.state == "rolled_back"
    assert figures[1] <= 5 * figures[0]


def test_an_operation_that_another_process_is_doing_is_left_alone(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"a\n")
    crash.begin(("a.txt", b"a\n", b"A\n"))
    key = crash.workspace.guard.find("a.txt", "write").lock_key
    with crash.workspace._state.locks.hold([key]):
        assert open_here().recovered == ()
    assert len(open_here().recovered) == 1


def test_an_operation_of_another_root_is_left_to_whoever_has_it(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, tmp_path: Path
) -> None:
    put(root, "a.txt", b"a\n")
    crash.begin(("a.txt", b"a\n", b"A\n"))
    (tmp_path / "other").mkdir()
    other = open_here(roots=[str(tmp_path / "other")])
    assert other.recovered == ()
    assert len(other.unfinished()) == 1


# -- what a power cut brings back of operations that had ended ------------------------------------


def test_old_texts_that_come_back_go_at_the_next_start(
    workspace: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    put(root, "a.txt", b"a\n")
    put(root, "gone.txt", b"gone\n")
    first = edit(workspace, session, "a.txt", "a", "A").operation
    second = delete(workspace, session, "gone.txt").operation
    assert first is not None
    assert second is not None
    put(root, temporary(0, first), b"a\n")
    put(root, temporary(0, second), b"gone\n")
    workspace.close()
    open_here()
    assert left(root) == {"a.txt": b"A\n"}


def test_what_comes_back_and_is_nobody_s_known_text_stays(
    workspace: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    change_id = write(workspace, session, "a.txt", "A\n").operation
    assert change_id is not None
    put(root, temporary(0, change_id), b"never seen\n")
    put(root, ".filepact-somebody-0.tmp", b"A\n")
    workspace.close()
    open_here()
    assert left(root) == {
        "a.txt": b"A\n",
        temporary(0, change_id): b"never seen\n",
        ".filepact-somebody-0.tmp": b"A\n",
    }


def test_a_resumed_change_whose_text_is_gone_is_refused(root: Path) -> None:
    with Root.open(root) as held, pytest.raises(StaleFileError):
        held.resume("a.txt", before=None, after=None, token="c0123456789-0")
    assert path_form.token_of("a.txt") is None


def test_what_another_process_settles_first_is_not_settled_twice(
    crash: Crash,
    open_here: Callable[..., Workspace],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(root, "a.txt", NEW)
    crash.begin(("a.txt", OLD, NEW))
    real = SqliteStore.unfinished
    others: list[Workspace] = []

    def listed(store: SqliteStore) -> tuple[Operation, ...]:
        found = real(store)
        if not others:
            # Between the listing and the lock somebody else starts, and finds the same.
            monkeypatch.undo()
            others.append(open_here())
        return found

    monkeypatch.setattr(SqliteStore, "unfinished", listed)
    assert open_here().recovered == ()
    assert [one.state for one in others[0].recovered] == ["applied"]


def test_folders_are_answered_for_when_what_was_cut_off_is_settled_and_work_in_them_comes_later(
    crash: Crash, root: Path, tmp_path: Path
) -> None:
    def opened() -> OpenFolders:
        return open_folders(
            [str(root)], state_dir=str(tmp_path / "state"), settings=Settings(), home=str(tmp_path)
        )

    resting = opened()
    assert resting._made is None
    resting.close()
    crash.leave(NEW, OLD)
    crash.begin(("a.txt", OLD, NEW))
    settled = opened()
    assert left(root) == {"a.txt": OLD}
    assert settled.workspace().unfinished() == ()
    assert settled.workspace() is settled.workspace()
    settled.close()
