"""What becomes of an operation that was cut off: by a kill, or by a power cut after its answer."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
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

    from filepact.fs.read import FileInfo
    from filepact.workspace.workspace import Workspace

ID = "c0123456789"


def temporary(number: int, change_id: str = ID) -> str:
    return f".filepact-{change_id}-{number}.tmp"


def put(root: Path, name: str, data: bytes, mode: int = 0o644) -> None:
    (root / name).write_bytes(data)
    (root / name).chmod(mode)


Side = bytes | tuple[bytes, int] | None
"""A file's bytes, or with a mode; a folder or a link by the mode of one; None for nothing."""

ID_0, ID_1, ID_2, ID_3 = map(temporary, range(4))
FOLDER_SIDE = (b"", FOLDER.mode)


def revision(side: Side) -> Revision | None:
    if side is None:
        return None
    data, mode = side if isinstance(side, tuple) else (side, 0o644)
    return FOLDER if mode == FOLDER.mode and not data else Revision.of(data, mode)


def left(root: Path) -> dict[str, Side]:
    """All that is in the root; modes are not looked at."""
    found: dict[str, Side] = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            side: Side = (os.readlink(path).encode(), LINK)
        else:
            side = FOLDER_SIDE if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(root))] = side
    return found


class Crash:
    """Puts an intention into the journal as a process would that dies right after.

    Attributes:
        open: Opens a further workspace, as the next start does.
        root: The root.
    """

    def __init__(self, open_here: Callable[..., Workspace], session: Session, root: Path) -> None:
        self.open = open_here
        self.workspace = open_here()
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

    def leave(self, there: dict[str, Side]) -> None:
        """Leave what a crash has left, by name; what is None is not there."""
        for name, side in there.items():
            data, mode = side if isinstance(side, tuple) else (side, 0o644)
            if mode == LINK:
                (self.root / name).symlink_to(data.decode())
            elif mode == FOLDER.mode:
                (self.root / name).mkdir()
            elif data is not None:
                put(self.root, name, data, mode)

    def settled(self) -> Operation:
        """The one operation that the next start settles."""
        (settled,) = self.open().recovered
        return settled

    def left(self) -> dict[str, Side]:
        return left(self.root)

    def rescued(self) -> list[bytes]:
        """What was found of others, and kept in the state folder."""
        kept = self.workspace._state.path
        return [path.read_bytes() for path in (Path(kept) / "rescued").glob("*")]


@pytest.fixture
def crash(open_here: Callable[..., Workspace], session: Session, root: Path) -> Crash:
    return Crash(open_here, session, root)


OLD, NEW = b"one\ntwo\nthree\n", b"ONE\ntwo\nthree\n"
ON_OLD, ON_NEW, FOREIGN = b"one\ntwo\nPERSON\n", b"ONE\ntwo\nPERSON\n", b"nothing of it\n"


# -- one file: every trace ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "aside", "own", "state", "then"),
    [
        # A replacement: staged, not exchanged.
        (OLD, NEW, NEW, OLD, "rolled_back", OLD),
        (OLD, NEW, NEW, ON_OLD, "rolled_back", ON_OLD),
        (OLD, NEW, (b"ONE\nt", 0o600), OLD, "rolled_back", OLD),
        (OLD, NEW, (b"", 0o600), OLD, "rolled_back", OLD),
        # Exchanged, and the old text not gone or there again.
        (OLD, NEW, OLD, NEW, "applied", NEW),
        (OLD, NEW, OLD, ON_NEW, "applied", ON_NEW),
        (OLD, NEW, OLD, FOREIGN, "applied", FOREIGN),
        (OLD, NEW, OLD, OLD, "applied", OLD),
        (OLD, NEW, OLD, None, "applied", None),
        # Answered, or not begun.
        (OLD, NEW, None, NEW, "applied", NEW),
        (OLD, NEW, None, ON_NEW, "applied", ON_NEW),
        (OLD, NEW, None, OLD, "rolled_back", OLD),
        (OLD, NEW, None, ON_OLD, "rolled_back", ON_OLD),
        (OLD, NEW, None, FOREIGN, "interrupted", FOREIGN),
        (OLD, NEW, None, b"Q\ntwo\nthree\n", "interrupted", b"Q\ntwo\nthree\n"),
        (OLD, NEW, None, None, "interrupted", None),
        # A creation.
        (None, NEW, NEW, None, "rolled_back", None),
        (None, NEW, (b"ON", 0o600), None, "rolled_back", None),
        (None, NEW, NEW, FOREIGN, "rolled_back", FOREIGN),
        # Two names, where the system cannot rename safely.
        (None, NEW, NEW, NEW, "rolled_back", None),
        (None, NEW, None, NEW, "applied", NEW),
        (None, NEW, None, None, "rolled_back", None),
        (None, NEW, None, ON_NEW, "applied", ON_NEW),
        (None, NEW, None, FOREIGN, "interrupted", FOREIGN),
        # A removal.
        (OLD, None, OLD, None, "applied", None),
        (OLD, None, OLD, FOREIGN, "applied", FOREIGN),
        (OLD, None, OLD, OLD, "applied", OLD),
        (OLD, None, None, None, "applied", None),
        (OLD, None, None, OLD, "rolled_back", OLD),
        (OLD, None, None, FOREIGN, "interrupted", FOREIGN),
        # Links.
        (None, (b"to", LINK), (b"to", LINK), None, "rolled_back", None),
        (None, (b"to", LINK), None, (b"to", LINK), "applied", (b"to", LINK)),
        ((b"from", LINK), None, (b"from", LINK), None, "applied", None),
        ((b"from", LINK), None, None, (b"from", LINK), "rolled_back", (b"from", LINK)),
        # A half written text is told from the old one that it begins with.
        (b"one\n", b"one\ntwo\n", (b"one\n", 0o600), b"one\n", "rolled_back", b"one\n"),
        (b"one\n", b"one\ntwo\n", b"one\n", b"one\n", "applied", b"one\n"),
    ],
)
def test_what_a_change_left_tells_what_became_of_it(
    crash: Crash, before: Side, after: Side, aside: Side, own: Side, state: str, then: Side
) -> None:
    crash.leave({ID_0: aside, "a.txt": own})
    crash.begin(("a.txt", before, after))
    settled = crash.settled()
    assert settled.state == state
    assert settled.note.startswith("kept; ")
    assert crash.left() == ({} if then is None else {"a.txt": then})
    assert crash.rescued() == []
    assert crash.open().unfinished() == ()


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
    crash: Crash, aside: int | None, own: int, state: str
) -> None:
    crash.leave({"a.sh": (OLD, own), ID_0: None if aside is None else (OLD, aside)})
    crash.begin(("a.sh", OLD, (OLD, 0o755)))
    assert crash.settled().state == state
    assert (crash.root / "a.sh").stat().st_mode & 0o777 == own
    assert crash.left() == {"a.sh": OLD}


# -- several: what was there, what was begun, what came of it, and what is there then ---------------

GOING = (("a.txt", b"a\n", None), ("b.txt", b"b\n", None))
SIGN = (b"", 0o600)
"""What lies behind the last of several removals while they are under way."""
MADE: tuple[tuple[str, Side, Side], ...] = (("x", None, FOLDER_SIDE), ("x/y", None, FOLDER_SIDE))
TRACES: dict[str, tuple[dict[str, Side], tuple[tuple[str, Side, Side], ...], str, dict[str, Side]]]
TRACES = {
    "removals leave a sign while they are under way": (
        {ID_0: b"a\n", ID_2: SIGN, "b.txt": b"b\n"},
        GOING,
        "rolled_back",
        {"a.txt": b"a\n", "b.txt": b"b\n"},
    ),
    "without the sign removals were done, and what is there is somebody's": (
        {ID_0: b"a\n", "b.txt": b"b\n"},
        GOING,
        "applied: b.txt",
        {"b.txt": b"b\n"},
    ),
    "what the disk has lost is written anew from the journal": (
        {"a.txt": NEW, "b.txt": b"b\n", ID_2: b"B\n"},
        (("gone.txt", b"gone\n", None), ("a.txt", OLD, NEW), ("b.txt", b"b\n", b"B\n")),
        "rolled_back",
        {"gone.txt": b"gone\n", "a.txt": OLD, "b.txt": b"b\n"},
    ),
    "folders alone are completed when both are there": (
        {"x": FOLDER_SIDE, "x/y": FOLDER_SIDE},
        MADE,
        "applied",
        {"x": FOLDER_SIDE, "x/y": FOLDER_SIDE},
    ),
    "folders alone count as made when one is there, and the other is named": (
        {"x": FOLDER_SIDE},
        MADE,
        "applied: x/y",
        {"x": FOLDER_SIDE},
    ),
    "folders of which none is there are not made": ({}, MADE, "rolled_back", {}),
    "folders that were to go go when the rest was done": (
        {"d": FOLDER_SIDE, f"d/{ID_0}": b"a\n"},
        (("d/a.txt", b"a\n", None), ("d", FOLDER_SIDE, None)),
        "applied",
        {},
    ),
    "folders of a half done change go, and those that were to go stay": (
        {"old": FOLDER_SIDE, f"old/{ID_0}": b"a\n", "new": FOLDER_SIDE, f"new/{ID_1}": b"a\n"},
        (
            ("old/a.txt", b"a\n", None),
            ("new/a.txt", None, b"a\n"),
            ("new", None, FOLDER_SIDE),
            ("old", FOLDER_SIDE, None),
        ),
        "rolled_back",
        {"old": FOLDER_SIDE, "old/a.txt": b"a\n"},
    ),
    **{
        f"what {'comes' if comes else 'goes'} with the name {name!r}, which no new file may have": (
            {ID_0: b"a\n", ID_2: SIGN, "b.txt": b"b\n"},
            ((name, None, b"a\n") if comes else (name, b"a\n", None), ("b.txt", b"b\n", None)),
            "rolled_back",
            {"b.txt": b"b\n"} | ({} if comes else {name: b"a\n"}),
        )
        for name in (os.fsdecode(b"lat\xe9.txt"), "in\u200bvisible.txt", "line\n.txt")
        for comes in (False, True)
    },
}


@pytest.mark.parametrize("trace", TRACES)
def test_what_several_changes_left_tells_what_became_of_them(crash: Crash, trace: str) -> None:
    there, changes, state, then = TRACES[trace]
    crash.leave(there)
    crash.begin(*changes)
    settled = crash.settled()
    state, _, said = state.partition(": ")
    assert settled.state == state
    assert said in settled.note
    assert crash.left() == then


def test_one_staged_text_says_that_nothing_was_answered(crash: Crash, root: Path) -> None:
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
    settled = crash.settled()
    assert settled.state == "rolled_back"
    assert crash.left() == {"gone.txt": b"gone\n", "a.txt": OLD, "b.txt": b"b\n"}
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
    assert crash.left() == {"a.txt": ON_NEW, "b.txt": b"b\n"}
    workspace.undo(session, dry_run=False)
    assert crash.left() == {"a.txt": ON_OLD, "b.txt": b"b\n"}


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
    assert crash.left() == {
        name: data for name, data in (done | person).items() if data is not None
    }
    assert settled.id in {one.id for one in workspace.log()}


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
    assert crash.left() == {"a.txt": b"a\n", "b.txt": b"a\n"}
    assert (root / "a.txt").samefile(root / "b.txt")


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


# -- somebody else's ----------------------------------------------------------------------------


def test_foreign_text_under_a_temporary_name_is_kept_and_told(crash: Crash, root: Path) -> None:
    put(root, "a.txt", NEW)
    put(root, temporary(0), b"somebody's text\n")
    crash.begin(("a.txt", OLD, NEW))
    settled = crash.settled()
    assert settled.state == "applied"
    assert "rescued" in settled.note
    assert crash.left() == {"a.txt": NEW}
    assert crash.rescued() == [b"somebody's text\n"]


def test_a_file_of_any_size_does_not_hold_up_the_next_start(crash: Crash, root: Path) -> None:
    put(root, "a.txt", b"theirs\n")
    os.truncate(root / "a.txt", 1 << 40)
    crash.begin(("a.txt", OLD, NEW))
    settled = crash.settled()
    assert settled.state == "interrupted"
    assert (root / "a.txt").stat().st_size == 1 << 40


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
    crash: Crash, root: Path, now: bytes, state: str
) -> None:
    old, new = b"old" * 1_000, b"new" * 500
    put(root, "a.txt", now)
    os.link(root / "a.txt", root / "b.txt")
    put(root, temporary(0), new)
    crash.begin(("a.txt", old, new))
    settled = crash.settled()
    assert settled.state == state
    found = crash.left()
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
    crash: Crash, root: Path, now: bytes, state: str, then: bytes
) -> None:
    put(root, "a.txt", now)
    crash.begin(("a.txt", b"old" * 1_000, b"new" * 500))
    settled = crash.settled()
    assert settled.state in (state, "interrupted")
    assert crash.left() == {"a.txt": then}


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
    assert crash.left() == {"a.txt": OLD, "b.txt": b"b\n"}
    settled = crash.settled()
    assert settled.state == "rolled_back"
    assert crash.left() == {"a.txt": OLD, "b.txt": b"b\n"}


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
    crash.leave({ID_0: NEW, "a.txt": OLD})
    crash.begin(("a.txt", OLD, NEW))
    settled = opened()
    assert crash.left() == {"a.txt": OLD}
    assert settled.workspace().unfinished() == ()
    assert settled.workspace() is settled.workspace()
    settled.close()
