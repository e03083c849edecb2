"""A fault in placing a change is refused by every maker of changes, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import UnprovenError
from filepact.text.edit import Edit, EditList, merge
from filepact.tools.registry import CallContext, CallResult
from filepact.values import replace
from filepact.workspace.placement import placed
from filepact.workspace.target import fitted_ends

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

    Tool = Callable[..., CallResult]

AGENT = Session("s1", Actor("agent", "tester"))
PERSON = Approval(Actor("person", "p"))
LINES = [f"line {number}" for number in range(1, 21)]
TEXT = "".join(f"{line}\n" for line in LINES)
HUNK = "@@\n line 4\n-line 5\n+five\n line 6\n"


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "a.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def tool(workspace: Workspace, file: Path) -> Tool:
    toolbox = open_toolbox(workspace)

    def call(name: str, **arguments: object) -> CallResult:
        return toolbox.call(name, arguments, CallContext(AGENT))

    assert not call("read_file", path=file.name).failed
    return call


def envelope(part: str) -> dict[str, Any]:
    return {"patch": f"*** Begin Patch\n{part}*** End Patch\n"}


EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("edit_file", {"path": "a.txt", "old_string": "line 5", "new_string": "five"}),
    "slip": (
        "edit_file",
        {"path": "a.txt", "old_string": "  line 5\n  line 6", "new_string": "  five\n  line 6"},
    ),
    "every place": (
        "edit_file",
        {"path": "a.txt", "old_string": "line", "new_string": "row", "replace_all": True},
    ),
    "list": (
        "edit_file",
        {
            "path": "a.txt",
            "edits": [
                {"old_string": "line 5", "new_string": "five"},
                {"old_string": "line 7", "new_string": "seven"},
            ],
        },
    ),
    "patch": ("patch_apply", envelope(f"*** Update File: a.txt\n{HUNK}")),
    "patch and move": (
        "patch_apply",
        envelope(f"*** Update File: a.txt\n*** Move to: b.txt\n{HUNK}"),
    ),
}


def moved(edits: EditList, by: int) -> EditList:
    return EditList(tuple(Edit(e.start + by, e.end + by, e.text) for e in edits.edits))


@pytest.mark.parametrize("changed", [False, True], ids=["as read", "changed since"])
@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize(
    "fault",
    [
        lambda edits: moved(edits, 1),
        lambda edits: EditList(edits.edits[1:]),
        lambda edits: EditList((*edits.edits, Edit(149, 150, ""))),
    ],
    ids=["shifted", "one lost", "one more"],
)
def test_edits_at_another_place_are_refused(
    fault: Callable[[EditList], EditList],
    name: str,
    changed: bool,
    *,
    tool: Tool,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    def wrong(target: Any, make: Any) -> Any:
        found = placed(target, make)
        return replace(found, edits=fault(found.edits))

    monkeypatch.setattr("filepact.workspace.draft.placed", wrong)
    text = TEXT + "more\n" if changed else TEXT
    file.write_text(text)
    kind, arguments = EDITS[name]
    assert tool(kind, **arguments).code == "RESULT_UNPROVEN"
    assert {one.name: one.read_text() for one in file.parent.iterdir()} == {"a.txt": text}


@pytest.mark.parametrize("new", [True, False], ids=["new", "there"])
def test_a_whole_text_that_lacks_something_is_refused(
    new: bool, tool: Tool, file: Path, monkeypatch: pytest.MonkeyPatch
):
    def wrong(*given: Any) -> tuple[str, list[str]]:
        text, notes = fitted_ends(*given)
        return text.replace("line 7\n", ""), notes

    monkeypatch.setattr("filepact.workspace.draft.fitted_ends", wrong)
    name = "new.txt" if new else file.name
    assert tool("write_file", path=name, content=f"{TEXT}more\n").code == "RESULT_UNPROVEN"
    assert {one.name: one.read_text() for one in file.parent.iterdir()} == {"a.txt": TEXT}


def losing(base: str, mine: str, theirs: str) -> Any:
    """A merge that forgets what is theirs."""
    return replace(merge(base, mine, theirs), pieces=((base, mine, base),), text=mine)


@pytest.mark.parametrize("name", ["edit", "list", "patch", "whole text"])
def test_a_merge_that_loses_the_persons_line_is_refused(
    name: str, tool: Tool, file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("filepact.workspace.placement.merge", losing)
    theirs = TEXT.replace("line 18", "a person's")
    file.write_text(theirs)
    whole = ("write_file", {"path": "a.txt", "content": TEXT.replace("line 5\n", "five\n")})
    kind, arguments = EDITS.get(name, whole)
    assert tool(kind, **arguments).code == "RESULT_UNPROVEN"
    assert file.read_text() == theirs


def test_an_undo_whose_merge_is_wrong_is_refused(
    workspace: Workspace, tool: Tool, file: Path, monkeypatch: pytest.MonkeyPatch
):
    assert not tool("edit_file", **EDITS["edit"][1]).failed
    theirs = file.read_text().replace("line 18", "a person's")
    file.write_text(theirs)
    monkeypatch.setattr("filepact.workspace.rebase.merge", losing)
    with pytest.raises(UnprovenError):
        workspace.undo(AGENT)
    assert file.read_text() == theirs


def test_an_approval_whose_merge_is_wrong_is_refused(
    open_here: Callable[..., Workspace], file: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = open_here(mode="preview")
    toolbox = open_toolbox(workspace)
    assert not toolbox.call("edit_file", EDITS["edit"][1], CallContext(AGENT)).failed
    theirs = TEXT.replace("line 18", "a person's")
    file.write_text(theirs)
    monkeypatch.setattr("filepact.workspace.rebase.merge", losing)
    (waits,) = workspace.pending()
    with pytest.raises(UnprovenError):
        workspace.approve(waits.id, PERSON)
    assert file.read_text() == theirs
    assert [one.id for one in workspace.pending()] == [waits.id]


# -- a text that has come to stand in several places ---------------------------------------------------

FUNCTIONS = "def a():\n    one = 1\n    kept = 1\n\n\ndef b():\n    two = 2\n    other = 2\n"
COPIED = FUNCTIONS.replace("kept = 1", "kept = 9") + "\n\ndef c():\n    two = 2\n    more = 3\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "edit_file",
            {
                "path": "a.txt",
                "edits": [
                    {
                        "old_string": "    one = 1\n    kept = 1\n",
                        "new_string": "    one = 5\n    kept = 1\n",
                    },
                    {"old_string": "    two = 2\n", "new_string": "    two = 7\n"},
                ],
            },
        ),
        (
            "patch_apply",
            envelope(
                "*** Update File: a.txt\n@@\n-    one = 1\n+    one = 5\n     kept = 1\n"
                "@@\n-    two = 2\n+    two = 7\n"
            ),
        ),
    ],
)
def test_one_of_several_with_two_places_by_now_is_ambiguous_whatever_was_read(
    name: str, arguments: dict[str, Any], tool: Tool, file: Path
):
    file.write_text(FUNCTIONS)
    assert not tool("read_file", path=file.name).failed
    file.write_text(COPIED)
    assert tool(name, **arguments).code == "AMBIGUOUS_MATCH"
    assert file.read_text() == COPIED
