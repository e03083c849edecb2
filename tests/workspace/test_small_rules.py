"""Rules of the workspace that its wider tests only pass by: what is looked at, how often, and where lines end."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.document import FOLDER, Revision, RootId, WorkspacePath
from filepact.domain.operation import ChangeId
from filepact.fs.watch import Stamp
from filepact.workspace import displaced_files
from filepact.workspace.displaced_files import DisplacedFiles
from filepact.workspace.file_snapshot import FileSnapshot
from filepact.workspace.file_states import FileState, kept_state, named_below
from filepact.workspace.handing import stays_joined
from filepact.workspace.read_tracker import KnownText
from filepact.workspace.reader import Reader, _spans
from filepact_hooks.call_rules import CallJudge
from filepact_hooks.tool_call import FileSearch, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

STAMP = Stamp(1, 3, 5, 5, 0o100644)


class Replaced:
    """A replaced file that somebody has open for writing, and never writes to."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = threading.Event()
        self.closed = False

    def has_writer(self) -> bool:
        self.asked += 1
        self.was_asked.set()
        return True

    def late_write(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True


def test_a_file_that_is_open_for_writing_is_looked_at_now_and_then_and_not_all_the_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displaced_files, "_LOOKS", (0.0, 0.0))
    monkeypatch.setattr(displaced_files, "_AGAIN", 300.0)
    watched = DisplacedFiles(workspace._store, workspace._state)
    replaced, name = Replaced(), WorkspacePath(RootId("/r"), "a.txt")
    watched.watch(ChangeId("c0123456789"), name, replaced)  # type: ignore[arg-type]
    assert replaced.was_asked.wait(60)
    while not watched._queues[-1]:
        os.sched_yield()
    (waiting,) = watched._queues[-1]
    assert 300 <= waiting.since - waiting.begun < 600
    watched.close()
    assert (replaced.asked, replaced.closed) == (1, True)


@pytest.mark.parametrize(
    ("stamp", "keeps", "read"),
    [(STAMP, True, True), (STAMP, False, False), (None, True, False), (None, False, False)],
)
def test_a_copy_is_read_of_a_file_that_was_there_and_is_kept(
    stamp: Stamp | None, *, keeps: bool, read: bool
) -> None:
    asked: list[Any] = []
    whole = SimpleNamespace(data=b"one", revision=Revision.of(b"one", 0o644))
    copies = SimpleNamespace(
        is_aside=lambda _stamp: False, read=lambda *what: [asked.append(what), whole][1]
    )
    guard = SimpleNamespace(keeps=lambda _path: keeps)
    path, state = WorkspacePath(RootId("/r"), "a.txt"), FileState(stamp)
    found = kept_state(guard, path, state, copies)  # type: ignore[arg-type]
    assert asked == ([(path, stamp)] if read else [])
    assert found.revision == (whole.revision if read else None)


@pytest.mark.parametrize("text", ["one\ntwo\nthree", "one\ntwo\n", "one\r\ntwo\r\nthree", "é\nü\n"])
def test_a_line_goes_to_its_end_and_the_last_one_to_that_of_the_text(text: str) -> None:
    data, whole = text.encode(), text.splitlines(keepends=True)
    starts = [len("".join(whole[:number]).encode()) for number in range(len(whole))]
    lines = [SimpleNamespace(number=n, start=start) for n, start in enumerate(starts, start=1)]
    found = _spans(data, text, lines)  # type: ignore[arg-type]
    assert [text[start:end] for start, end in found] == whole


@pytest.mark.parametrize(("large", "found"), [(2, {"a.txt"}), (3, set()), (4, set())])
def test_a_file_is_large_that_has_more_bytes_than_one_that_is_not(
    workspace: Workspace, root: Path, large: int, found: set[str]
) -> None:
    guard = workspace.guard
    (folder,) = (RootId(str(root)),)
    snapshot = SimpleNamespace(
        hidden=(), stamps={"a.txt": STAMP}, was_free=lambda _folder: True, know_folders=print
    )
    names, more = named_below({folder: snapshot}, guard, [(folder, ".")], large)  # type: ignore[dict-item]
    assert ({one.path for one in names}, more) == (found, [])


@pytest.mark.parametrize(
    ("folder", "verdict"),
    [
        ("", "deny"),
        (".", "deny"),
        ("sub", "allow"),
        ("s*", "allow"),
        ("k*", "deny"),
        ("[k]eys", "deny"),
    ],
)
def test_wildcards_of_a_folder_stand_for_what_is_there(
    workspace: Workspace, root: Path, folder: str, verdict: str
) -> None:
    for name in ("sub/a.txt", "keys/id_rsa"):
        (root / name).parent.mkdir()
        (root / name).write_text("x\n")
    judge = CallJudge(workspace.guard, "claude-code", str(root))
    call = ToolCall("search", "read", searches=(FileSearch(folder),))
    assert judge.judge(call).verdict == verdict


@pytest.mark.parametrize(
    ("kept", "last", "looks"),
    [(False, False, 1), (False, True, 1), (True, False, 0), (True, True, 1)],
)
def test_a_late_text_is_looked_for_until_one_is_kept_and_once_more_at_the_end(
    workspace: Workspace, *, kept: bool, last: bool, looks: int
) -> None:
    asked: list[bool] = []
    replaced = SimpleNamespace(late_write=lambda: asked.append(True), close=lambda: None)
    one = displaced_files._Watched(
        ChangeId("c0123456789"),
        WorkspacePath(RootId("/r"), "a.txt"),
        replaced,  # type: ignore[arg-type]
        since=0.0,
        begun=0.0,
        kept=kept,
    )
    left = DisplacedFiles(workspace._store, workspace._state)._look(one, last=last)
    assert (len(asked), left) == (looks, None if last else one)


def test_of_what_is_proposed_files_that_may_be_seen_stand_in_a_folder_and_no_others() -> None:
    file, folder = Revision.of(b"x", 0o644), FOLDER
    layers = [
        SimpleNamespace(
            path=SimpleNamespace(path=name), change=SimpleNamespace(before=before, after=after)
        )
        for name, before, after in (
            ("new.txt", None, file),
            ("secret", None, file),
            ("made", None, folder),
            ("edited.txt", file, file),
            ("gone.txt", file, None),
        )
    ]
    reader = SimpleNamespace(
        _guard=SimpleNamespace(listing=lambda *_what, **_how: lambda path, _dir: path != "secret"),
        _documents=SimpleNamespace(proposed=SimpleNamespace(below=lambda *_what: layers)),
        _agent="tester",
    )
    location = SimpleNamespace(root=SimpleNamespace(path="/r"), place=SimpleNamespace(path="."))
    allow, come = Reader._sight(reader, location)  # type: ignore[arg-type]
    assert come == ("new.txt",)
    assert [allow(name, False) for name in ("edited.txt", "gone.txt")] == [True, False]


@pytest.mark.parametrize(
    ("born", "before"),
    # A number that a known file had is that file's, moved; one that was born later has only its number.
    [(None, False), (5, False), (20, True)],
)
def test_a_file_with_the_number_of_a_known_one_is_that_one_unless_it_was_born_later(
    born: int | None, *, before: bool
) -> None:
    snapshot = SimpleNamespace(
        looked=100,
        _began=200,
        was_free=lambda _name: True,
        stamps={"old.txt": Stamp(7, 3, 10, 10, 0o100644)},
        folders={},
        _seen=[],
        _root=SimpleNamespace(born=lambda _name: born),
    )
    stamps = {"new.txt": Stamp(7, 3, 10, 50, 0o100644)}
    found = FileSnapshot._newly_seen(snapshot, stamps)  # type: ignore[arg-type]
    assert found[0] == (frozenset(stamps) if before else frozenset())


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        # Of four lines that were not shown: half of them stay, so they were known from elsewhere.
        ("shown\nb\nc\nx\n", ()),
        ("shown\nb\nx\n", ((3, 5),)),
        ("shown\nx\n", ((2, 5),)),
        ("shown\nb\nc\nd\ne\n", ()),
    ],
)
def test_lines_that_were_never_shown_are_lost_when_most_of_them_go(
    text: str, lost: tuple[tuple[int, int], ...]
) -> None:
    content = "shown\nb\nc\nd\ne\n"
    known = SimpleNamespace(shown=((0, 5),), content=content, read=True)
    assert KnownText.lost_unshown(known, text) == lost  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("/nowhere/id_rsa", "deny"), ("nowhere/id_rsa", "allow"), ("/nowhere/a.txt", "allow")],
)
def test_a_secret_that_a_program_names_outside_counts_also_where_it_is_not_there(
    workspace: Workspace, root: Path, name: str, verdict: str
) -> None:
    judge = CallJudge(workspace.guard, "claude-code", str(root))
    command = f"awk 'BEGIN {{ getline < \"{name}\" }}'"
    assert judge.judge(ToolCall("Bash", "run", commands=(command,))).verdict == verdict


@pytest.mark.parametrize(("tool", "joined"), [("edit_file", True), ("run", False)])
def test_other_names_of_a_file_get_what_it_gets_but_not_what_was_done_in_layers(
    workspace: Workspace, tool: str, *, joined: bool
) -> None:
    operation = SimpleNamespace(kind="change", tool=tool)
    assert stays_joined(operation, workspace._store) is joined  # type: ignore[arg-type]
