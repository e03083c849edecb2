"""write_file and edit_file on a real workspace: what they answer where there is nothing to edit."""

from __future__ import annotations

import re
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.tools.registry import CallResult

CALL = CallContext(Session("s1", Actor("agent", "tester")))


@pytest.mark.parametrize(
    ("path", "code"), [("missing.txt", "NOT_FOUND"), ("empty.txt", "INVALID_PARAMS")]
)
def test_who_edits_what_holds_nothing_is_sent_to_write_file(tmp_path: Path, path: str, code: str):
    root = tmp_path / "root"
    root.mkdir()
    (root / "empty.txt").touch()
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        sent = {"path": path, "old_string": "", "new_string": "text\n"}
        outcome = open_toolbox(workspace).call("edit_file", sent, CALL)
    assert outcome.code == code
    assert "write_file" in outcome.text
    assert [file.name for file in root.iterdir()] == ["empty.txt"]
    assert (root / "empty.txt").read_bytes() == b""


def test_edits_go_with_the_empty_parameters_that_some_clients_always_send(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    filled = {"old_string": "", "new_string": "", "expected_revision": "", "replace_all": None}
    edit = {"old_string": "one", "new_string": "", "replace_all": ""}
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box = open_toolbox(workspace, own=True)
        sent = {"path": "a.txt", "edits": [edit], **filled}
        assert not box.call("edit_file", sent, CALL).failed
        assert (root / "a.txt").read_bytes() == b""
        moved = {"action": "delete", "path": "a.txt", "to": "", "expected_revision": ""}
        assert not box.call("manage_files", moved, CALL).failed
    assert not list(root.iterdir())


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Path, Callable[..., CallResult]]]:
    """A folder, and calls of tools on it."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "root"
        root.mkdir()
        with closing(open_workspace([str(root)], state_dir=f"{made}/state")) as workspace:
            box = open_toolbox(workspace)
            yield root, lambda tool, **sent: box.call(tool, sent, CALL)


def read(call: Callable[..., CallResult], path: str) -> str:
    """A file's text as an agent puts it together again from what it is shown."""
    shown, _, footer = call("read_file", path=path, numbers=False).text.rpartition("[")
    if "empty file" in footer:
        return ""
    return shown.removesuffix("\n") if "no newline at the end" in footer else shown


PIECES = st.sampled_from(["a", "b", "\r", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\x0b"])


@settings(max_examples=150)
@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_what_is_read_and_written_back_unchanged_is_unchanged(
    place: tuple[Path, Callable[..., CallResult]], text: str
):
    root, call = place
    file = root / "a.txt"
    file.write_bytes(text.encode())
    shown = read(call, "a.txt")
    again = call("write_file", path="a.txt", content=shown)
    assert file.read_bytes() == text.encode()
    assert not again.failed
    if shown.endswith("\n"):
        # Where the file is not the classic Mac's, a line that is added leaves the others as they are.
        call("write_file", path="a.txt", content=f"{shown}new\n")
        assert file.read_bytes().startswith(text.encode())


@pytest.mark.parametrize(
    ("held", "sent", "left", "said"),
    [
        (b"a\r\n5%\r9%\r\nb\r\n", "a\n5%\r9%\nB\n", b"a\r\n5%\r9%\r\nB\r\n", ""),
        (b"one\ntwo\n", "one\r\nTWO\r\n", b"one\nTWO\n", "CRLF"),
        (b"one\r\r\ntwo\r\n", "one\r\nTWO\n", b"one\r\r\nTWO\r\n", ""),
        (b"a\rb\r", "a\r\nB\r\n", b"a\rB\r", "CR"),
    ],
)
def test_a_file_keeps_its_line_ends_and_the_answer_says_where_others_were_sent(
    place: tuple[Path, Callable[..., CallResult]], held: bytes, sent: str, left: bytes, said: str
):
    root, call = place
    name = f"ends-{len(list(root.iterdir()))}.txt"
    (root / name).write_bytes(held)
    call("read_file", path=name)
    answer = call("write_file", path=name, content=sent)
    assert (root / name).read_bytes() == left
    notes = answer.text.partition("\n")[2].partition("---")[0]
    assert said in notes if said else not notes


def test_an_edit_that_was_sent_with_crlf_says_which_ends_it_took(
    place: tuple[Path, Callable[..., CallResult]],
):
    root, call = place
    (root / "lf.txt").write_bytes(b"a\nb\nc\n")
    answer = call("edit_file", path="lf.txt", old_string="b", new_string="b\r\nb2")
    assert (root / "lf.txt").read_bytes() == b"a\nb\nb2\nc\n"
    assert "CRLF was sent" in answer.text


APPENDED = [
    (b"node\n*.log", "dist/\n", b"node\n*.log\ndist/\n", 1, True),
    (b"a\r\nb", "c\n", b"a\r\nb\r\nc\r\n", 1, True),
    (b"a", "b\r\n", b"a\r\nb\r\n", 1, True),
    (b"a\rb", "c\n", b"a\rb\rc\r", 1, True),
    (b"a\n", "b\nc", b"a\nb\nc", 2, False),
    (b"a", "\nb\n", b"a\nb\n", 1, False),
    (b"", "a\nb", b"a\nb", 2, False),
]


@pytest.mark.parametrize(("held", "sent", "left", "lines", "told"), APPENDED)
def test_what_is_appended_begins_a_line_of_its_own(
    place: tuple[Path, Callable[..., CallResult]],
    held: bytes,
    sent: str,
    left: bytes,
    lines: int,
    told: bool,
):
    root, call = place
    (root / "end.txt").write_bytes(held)
    answer = call("write_file", path="end.txt", content=sent, append=True)
    assert (root / "end.txt").read_bytes() == left
    assert f"append {lines} line" in answer.text
    assert ("had no end" in answer.text) is told


@pytest.mark.parametrize(
    ("wanted", "sent", "left"),
    [
        ("crlf", "a\nb\n", b"a\r\nb\r\n"),
        ("lf", "a\r\nb\r\n", b"a\nb\n"),
        ("unset", "a\r\nb\n", b"a\r\nb\n"),
        ("cr", "a\nb\n", b"a\rb\r"),
        ("cr", "a\rb\r", b"a\rb\r"),
        ("none of them", "a\nb\n", b"a\nb\n"),
    ],
)
def test_the_lines_of_a_new_file_end_as_its_editorconfig_says(
    place: tuple[Path, Callable[..., CallResult]], wanted: str, sent: str, left: bytes
):
    root, call = place
    folder = root / wanted
    folder.mkdir(exist_ok=True)
    config = f"[*]\nend_of_line = crlf\n[*.txt]\nend_of_line = {wanted}\n"
    if wanted == "none of them":
        config = config.replace("crlf", "lf")
    (folder / ".editorconfig").write_text(config)
    answer = call("write_file", path=f"{wanted}/a.txt", content=sent)
    assert (folder / "a.txt").read_bytes() == left
    assert (".editorconfig says" in answer.text) is (sent.encode() != left)


@pytest.mark.parametrize(
    ("text", "edits", "said"),
    [
        ("one\ntwo\none\none\n", [("one", "1\n1", True)], "3 places, lines 1-2, 4-5, 6-7"),
        ("one\ntwo\none\none\n", [("one\n", "", True)], "3 places, line 1"),
        ("one\ntwo\nthree\n", [("three\n", "", False)], "line 2"),
        ("one\ntwo\nthree\n", [("two\n", "", False)], "line 2"),
        ("one\ntwo\nthree\n", [("three", "3", False), ("one\n", "a\nb\nc\n", False)], "2 places, lines 1-3, 5"),
        ("one\rtwo\rthree\r", [("one", "a\nb", False), ("three", "3", False)], "2 places, lines 1-2, 4"),
        ("one\r\ntwo\r\nthree\r\n", [("one", "a\nb", False), ("three", "3", False)], "2 places, lines 1-2, 4"),
        ("one", [("one", "", False)], "line 1"),
    ],
)  # fmt: skip
def test_a_summary_names_lines_of_what_the_file_has_become(
    place: tuple[Path, Callable[..., CallResult]],
    text: str,
    edits: list[tuple[str, str, bool]],
    said: str,
):
    root, call = place
    file = f"{re.sub(r'[^a-z0-9]', '', f'{text}{edits}')}.txt"  # that nobody knows yet
    (root / file).write_bytes(text.encode())
    names = ("old_string", "new_string", "replace_all")
    sent = [dict(zip(names, one, strict=True)) for one in edits]
    answer = call("edit_file", path=file, edits=sent)
    assert f"edit {file}, {said}" in answer.text


TWINS = [
    ("Shot at 8.55\u202fPM.txt", "Shot at 8.55 PM.txt", "Shot at 8.55\\u202fPM.txt"),
    ("cafe\u0301.md", "caf\xe9.md", "cafe\\u0301.md"),
    ("\u1112\u1161\u11ab.md", "\ud55c.md", "\\u1112\\u1161\\u11ab.md"),
    ("a\u200db\xa0c/f\u3000g.md", "ab c/f g.md", "a\\u200db\\u00a0c/f\\u3000g.md"),
    ("Case/ReadMe.MD", "case/README.md", "Case/ReadMe.MD"),
]


@pytest.mark.parametrize(("name", "asked", "escapes"), TWINS)
def test_a_name_that_looks_the_same_is_read_with_a_note_and_named_in_escapes_for_a_change(
    tmp_path: Path, name: str, asked: str, escapes: str
):
    root = tmp_path / "root"
    (root / name).parent.mkdir(parents=True)
    (root / name).write_text("old\n")
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box = open_toolbox(workspace, own=True)
        for path in (asked, f"./{asked}", str(root / asked)):
            seen = box.call("read_file", {"path": path}, CALL)
            assert seen.text.startswith("1\u2502old\n")
            assert f"; this is {escapes}," in seen.text
        found = box.call("grep", {"pattern": "old", "path": asked}, CALL)
        assert f"; this is {escapes}," in found.text
        edit = {"old_string": "old", "new_string": "new"}
        refused = box.call("edit_file", {"path": asked, **edit}, CALL)
        assert refused.code == "NOT_FOUND"
        assert f"Did you mean {escapes}?" in refused.text
        assert (root / name).read_text() == "old\n"
        # What was told can be sent back: as JSON has it, and as it stands there.
        for sent in (name, escapes):
            assert not box.call("edit_file", {"path": sent, **edit}, CALL).failed
            assert (root / name).read_text() == "new\n"
            edit = {"old_string": "new", "new_string": "new"} | {"new_string": "old"}
            assert not box.call("edit_file", {"path": sent, **edit}, CALL).failed
            edit = {"old_string": "old", "new_string": "new"}
            assert "there is no" not in box.call("read_file", {"path": sent}, CALL).text


def test_of_two_names_that_look_the_same_none_is_read_and_both_are_named(
    place: tuple[Path, Callable[..., CallResult]],
):
    root, call = place
    for name in ("two\xa0x.txt", "two\u2009x.txt"):
        (root / name).write_text("x\n")
    refused = call("read_file", path="two x.txt")
    assert refused.code == "NOT_FOUND"
    assert "two\\u00a0x.txt" in refused.text
    assert "two\\u2009x.txt" in refused.text


def test_what_looks_like_another_name_is_not_made_without_a_person(
    place: tuple[Path, Callable[..., CallResult]],
):
    root, call = place
    (root / "Bild\xa01.txt").write_text("x\n")
    made = call("write_file", path="Bild 1.txt", content="y\n")
    assert "look-alike" in made.text
    assert not (root / "Bild 1.txt").exists()


@pytest.mark.parametrize(
    ("tool", "sent", "most"),
    [
        ("write_file", {"content": "x = 1\n" * 500}, 90),
        ("edit_file", {"old_string": "two\n", "new_string": "2\n" * 100}, 90),
        ("edit_file", {"edits": [{"old_string": "two\n", "new_string": "2\n" * 100}, {"old_string": "one", "new_string": "1"}]}, 100),
        ("write_file", {"content": "3\n" * 50, "append": True}, 90),
        ("patch_apply", {"patch": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, 100),
    ],
)  # fmt: skip
def test_what_was_done_as_it_was_sent_is_told_in_one_line(
    place: tuple[Path, Callable[..., CallResult]], tool: str, sent: dict[str, Any], most: int
):
    root, call = place
    name = f"{tool}{most}.txt"
    if tool != "write_file" or "append" in sent:
        (root / name).write_bytes(b"one\ntwo\nthree\n")
    answer = call(tool, path=name, **sent)
    assert not answer.failed, answer.text
    assert "\n" not in answer.text
    assert len(answer.text) <= most
    assert answer.receipt
    assert answer.receipt["diff"]


def test_an_exact_change_of_what_came_back_is_told_without_a_difference(
    place: tuple[Path, Callable[..., CallResult]],
):
    root, call = place
    file = root / "back.txt"
    file.write_bytes(b"one\ntwo\nthree\nfour\n")
    call("read_file", path=file.name)
    sent = {"path": file.name, "old_string": "two\n", "new_string": "two\n2\n"}
    assert not call("edit_file", **sent).failed
    file.write_bytes(b"one\ntwo\nthree\nfour\n")
    again = call("edit_file", **sent)
    assert file.read_bytes() == b"one\ntwo\n2\nthree\nfour\n"
    assert "+2" not in again.text.partition("\n")[2]
    assert again.receipt
    assert "+2" in str(again.receipt["diff"])


@pytest.mark.parametrize("slip", [False, True])
def test_what_waits_as_it_was_sent_is_told_without_a_difference(tmp_path: Path, slip: bool):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n    two or three\nfour\n")
    with closing(
        open_workspace([str(root)], state_dir=str(tmp_path / "state"), mode="preview")
    ) as workspace:
        old = "\ttwo or three\nfour\n" if slip else "    two or three\nfour\n"
        sent = {"path": "a.txt", "old_string": old, "new_string": old.replace("three", "3")}
        toolbox = open_toolbox(workspace)
        answer = toolbox.call("edit_file", sent, CALL)
        again = toolbox.call("edit_file", sent, CALL)
        (waits,) = workspace.pending()
        assert "+    two or 3" in workspace.diff(waits)
    assert answer.receipt
    assert answer.receipt["status"] == "pending"
    assert ("+    two or 3" in answer.text) == slip
    assert slip or "+    two or 3" in str(answer.receipt["diff"])
    assert waits.id in again.text


@pytest.mark.parametrize(
    "sent",
    [
        {"old_string": "  two\n  three\n", "new_string": "  2\n  3\n"},
        {"old_string": "one", "new_string": "1", "replace_all": True},
        {"old_string": "two\r\n", "new_string": "2\r\n"},
        {"old_string": "two", "new_string": "2", "dry_run": True},
    ],
    ids=["blanks", "several", "line ends", "dry run"],
)
def test_a_difference_is_shown_where_it_tells_something_new(
    place: tuple[Path, Callable[..., CallResult]], sent: dict[str, Any]
):
    root, call = place
    (root / "new.txt").write_bytes(
        b"one\n    two\n    three\none\n" if sent["old_string"][0] == " " else b"one\ntwo\none\n"
    )
    answer = call("edit_file", path="new.txt", **sent)
    assert not answer.failed, answer.text
    assert "\n+++ b/new.txt\n" in answer.text
