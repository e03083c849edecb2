"""Every call ends at its time limit: searches with what they have, changes before they begin.

The clock goes on by a second each time it is looked at, so a limit of so many seconds ends a call
at so many looks; every limit from one second up is tried until the call is through.
"""

from __future__ import annotations

from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.engine import SERVER_TOOLS, WorkspaceEngine
from filepact.tools.registry import CallContext, Toolset
from filepact.workspace import draft, grep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.tools.answers import CallResult
    from filepact.workspace.workspace import Workspace

CALL = CallContext(Session("s1", Actor("agent", "tester")))
MOST_LOOKS = 400
FILES = {
    "a.txt": "".join(f"line {n}\n" for n in range(60)),
    "b.txt": "".join(f"row {n}\n" for n in range(60)),
    "sub/c.txt": "line 1\n",
    "sub/deep/d.txt": "line 1\n",
}
HUNKS = "".join(f"@@ -{n + 1} +{n + 1} @@\n-line {n}\n+item {n}\n" for n in range(0, 60, 3))
PATCH = f"--- a/a.txt\n+++ b/a.txt\n{HUNKS}--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-row 0\n+r 0\n"
EDITS = [{"old_string": f"line {n}\n", "new_string": f"item {n}\n"} for n in range(40)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as opened:
        yield opened


def held(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.is_file()
    }


def limited(workspace: Workspace, seconds: float) -> Toolset:
    looks = count()
    engine = WorkspaceEngine(workspace)
    return Toolset(SERVER_TOOLS, engine, seconds=seconds, clock=lambda: float(next(looks)))


def answers(workspace: Workspace, tool: str, sent: dict[str, object]) -> Iterator[CallResult]:
    """What a call answers with one look more each time, up to the first that is not refused."""
    for seconds in range(1, MOST_LOOKS):
        outcome = limited(workspace, seconds).call(tool, sent, CALL)
        yield outcome
        if not outcome.failed:
            return
    pytest.fail("the call was never carried out")


@pytest.mark.parametrize("shown_only", [False, True], ids=["done", "dry run"])
@pytest.mark.parametrize(
    ("tool", "sent", "least"),
    [
        ("write_file", {"path": "a.txt", "content": "all new\n"}, 4),
        ("write_file", {"path": "new.txt", "content": "all new\n"}, 4),
        ("edit_file", {"path": "a.txt", "edits": EDITS}, len(EDITS)),
        ("patch_apply", {"patch": PATCH}, 20),
        ("manage_files", {"action": "delete", "path": "sub"}, 6),
        ("manage_files", {"action": "move", "path": "sub", "to": "moved"}, 8),
    ],
)
def test_a_change_out_of_time_is_refused_before_the_first_file_is_touched(
    workspace: Workspace,
    root: Path,
    tool: str,
    sent: dict[str, object],
    least: int,
    shown_only: bool,
) -> None:
    refused = 0
    for outcome in answers(workspace, tool, {**sent, "dry_run": shown_only}):
        if outcome.failed:
            refused += 1
            assert outcome.code == "TIMEOUT"
            assert held(root) == FILES
            assert workspace.log() == ()
            assert workspace.pending() == ()
    assert refused >= least, "the limit is looked at on the way"
    assert (held(root) == FILES) is shown_only


def test_going_back_out_of_time_is_refused_before_the_first_file_is_touched(
    workspace: Workspace, root: Path
) -> None:
    limited(workspace, 1e6).call("patch_apply", {"patch": PATCH}, CALL)
    changed = held(root)
    *refused, done = answers(workspace, "history", {"action": "undo"})
    assert {outcome.code for outcome in refused} == {"TIMEOUT"}
    assert len(refused) >= 4
    assert not done.failed
    assert held(root) == FILES != changed
    assert len(workspace.log()) == 2


@pytest.mark.parametrize(
    ("tool", "sent", "found"),
    [
        ("grep", {"pattern": "^line 1$"}, "3 matches"),
        ("grep", {"pattern": "^line 1$", "output_mode": "files"}, "3 files"),
        ("grep", {"pattern": "(?=l)line 1$"}, "3 matches"),
        ("search_files", {"pattern": "*.txt"}, "4 files"),
        ("directory_tree", {}, "4 files"),
    ],
)
def test_a_search_out_of_time_answers_what_it_has_and_says_so(
    workspace: Workspace, tool: str, sent: dict[str, object], found: str
) -> None:
    partial = 0
    for seconds in range(1, MOST_LOOKS):
        outcome = limited(workspace, seconds).call(tool, sent, CALL)
        assert not outcome.failed
        last = outcome.text.rstrip().rpartition("\n")[2]
        if "out of time" not in last:
            assert found in last
            assert "at least" not in last
            break
        partial += 1
        assert "at least" in last or "no matches" in last or "nothing matches" in last
    assert partial >= 2


def test_what_is_not_read_in_time_is_named(workspace: Workspace) -> None:
    assert limited(workspace, 0.5).call("read_file", {"path": "a.txt"}, CALL).code == "TIMEOUT"
    several = {"paths": list(FILES)}
    told = [limited(workspace, n).call("read_file", several, CALL).text for n in range(1, 40)]
    counts = [text.count("TIMEOUT: ") for text in told]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 3
    assert counts[-1] == 0
    for name in FILES:
        assert all(f"==> {name} <==" in text for text in told)


def test_a_large_file_that_is_not_read_in_time_is_not_said_to_end(
    workspace: Workspace, root: Path
) -> None:
    (root / "large.txt").write_text("line of a large file\n" * 600_000)
    for sent in ({"offset": 599_999}, {"offset": -3}, {"offset": 599_999, "lines": 1}):
        *refused, shown = answers(workspace, "read_file", {"path": "large.txt", **sent})
        assert {outcome.code for outcome in refused} == {"TIMEOUT"}
        assert refused
        assert "line of a large file" in shown.text


def test_who_has_given_up_has_nothing_changed(workspace: Workspace, root: Path) -> None:
    gone = CallContext(CALL.session, cancelled=lambda: True)
    outcome = limited(workspace, 1e6).call("write_file", {"path": "n.txt", "content": "x"}, gone)
    assert outcome.code == "CANCELLED"
    assert held(root) == FILES


def test_a_change_of_more_files_than_can_be_finished_is_refused(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_FILES", 3)
    parts = [f"--- /dev/null\n+++ b/n{n}.txt\n@@ -0,0 +1 @@\n+x\n" for n in range(4)]
    refused = limited(workspace, 1e6).call("patch_apply", {"patch": "".join(parts)}, CALL)
    assert refused.code == "INVALID_PARAMS"
    assert held(root) == FILES
    done = limited(workspace, 1e6).call("patch_apply", {"patch": "".join(parts[:3])}, CALL)
    assert not done.failed


def test_counting_ends_when_there_is_enough_to_show(workspace: Workspace, root: Path) -> None:
    (root / "many.txt").write_text("\n" * 200_000)
    box = limited(workspace, 1e6)
    shown = box.call("grep", {"path": "many.txt", "pattern": "^$", "maxResults": 5}, CALL).text
    assert f"matches 1-5 of at least {5 + grep._COUNT_HITS:,} | next: offset=5" in shown
    sent = {"path": "many.txt", "pattern": "^$", "output_mode": "count"}
    assert f"many.txt: at least {grep._MOST_COUNTED:,}" in box.call("grep", sent, CALL).text
