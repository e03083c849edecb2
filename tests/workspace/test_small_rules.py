"""Rules of the workspace that its wider tests only pass by: what is looked at, how often, and where lines end."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.document import Revision, RootId, WorkspacePath
from filepact.domain.operation import ChangeId
from filepact.domain.tool_call import FileSearch, ToolCall
from filepact.fs.watch import Stamp
from filepact.workspace import displaced_files
from filepact.workspace.call_rules import CallJudge
from filepact.workspace.displaced_files import DisplacedFiles
from filepact.workspace.file_snapshot import named_below
from filepact.workspace.file_states import FileState, kept_state
from filepact.workspace.reader import _spans

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
