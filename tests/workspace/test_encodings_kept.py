"""Traps of encodings through the seven tools: what is refused, and that nothing is damaged."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "tester"))


def call(workspace: Workspace, tool: str, **arguments: object) -> str:
    outcome = open_toolbox(workspace).call(tool, arguments, CallContext(AGENT))
    assert not outcome.failed, outcome.text
    return outcome.text + str((outcome.receipt or {}).get("diff", ""))


def refused(workspace: Workspace, tool: str, **arguments: Any) -> str:
    outcome = open_toolbox(workspace).call(tool, arguments, CallContext(AGENT))
    assert outcome.failed
    assert outcome.code == "ENCODING_UNSAFE"
    return outcome.text


# Of each: the encoding that the settings name, and bytes before, in and after the edited word.
KEPT = {
    "mixed ends": ("shift_jis", b"\x8d\x73\r\n", b"\x95\x5c", b"\n\x83\x5c\r\x94\x5c\r\n"),
    "no end": ("euc_kr", "한국어\n".encode("euc_kr"), "둘째".encode("euc_kr"), b""),
    "four bytes": ("gb18030", "𠀀\r\n".encode("gb18030"), "ḿ".encode("gb18030"), b" \xfd\x9b\n"),
    "two forms": ("cp932", b"\xfb\xfc ", b"\x93\xfa", b" \xee\xe0 \x87\x90\n"),
    "big5": ("big5", b"\xb3\x5c\xa5\x5c\n", b"\xbb\x5c", b"\r\n\xa1\xc3\n"),
    "koi8-u": ("koi8-u", b"\xa4\xb4\n", b"\xc1\xc2", b"\x9f\x9f\r\r\n"),
    "utf-16-be": ("utf-16-be", b"\x59\x27\0\r\0\n", b"\0w", b"\xd8\x40\xdc\x00\0\r"),
    "utf-32-le": ("utf-32-le", b"\x27\x59\0\0\n\0\0\0", b"w\0\0\0", b"\r\0\0\0"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_all_bytes_around_an_edit_stay_in_every_tool_and_undo_brings_back_the_rest(
    root: Path, opened: Callable[..., Workspace], kind: str
) -> None:
    codec, before, word, after = KEPT[kind]
    data = before + word + after
    (root / "a.txt").write_bytes(data)
    old, wanted = word.decode(codec), before + "x y".encode(codec) + after
    with closing(opened(("a.txt", codec))) as workspace:
        edit = {"path": "a.txt", "old_string": old, "new_string": "x y"}
        diff = call(workspace, "edit_file", **edit)
        assert (root / "a.txt").read_bytes() == wanted
        assert old in diff
        assert call(workspace, "grep", pattern="x y", path="a.txt").count("x y") == 1
        workspace.undo(AGENT, dry_run=False)
        assert (root / "a.txt").read_bytes() == data
        workspace.redo(AGENT, dry_run=False)
        assert (root / "a.txt").read_bytes() == wanted


def test_undo_takes_back_its_own_bytes_when_another_line_was_changed_since(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    lines = [f"{number} 行 \xa5 表ソ能".replace("\xa5", "髙") for number in range(9)]
    # The same character in the form that Windows writes.
    data = "\n".join(lines).encode("cp932").replace(b"\xee\xe0", b"\xfb\xfc")
    (root / "a.txt").write_bytes(data)
    with closing(opened(("*.txt", "cp932"))) as workspace:
        call(workspace, "edit_file", path="a.txt", old_string="2 行", new_string="二行")
        changed = (root / "a.txt").read_bytes()
        assert changed == data.replace("2 行".encode("cp932"), "二行".encode("cp932"))
        (root / "a.txt").write_bytes(changed.replace(b"7 ", b"seven "))
        workspace.undo(AGENT, dry_run=False)
    assert (root / "a.txt").read_bytes() == data.replace(b"7 ", b"seven ")


def test_editorconfig_over_utf_8_damages_nothing_and_a_person_can_settle_it(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root / ".editorconfig").write_text("root = true\n[*]\ncharset = latin1\n")
    data = "größe = 1\n".encode()
    (root / "a.txt").write_bytes(data)
    edit = {"path": "a.txt", "old_string": "größe", "new_string": "café"}
    with closing(opened()) as workspace:
        shown = call(workspace, "read_file", path="a.txt")
        assert "größe" in shown
        assert ".editorconfig" in shown
        assert call(workspace, "grep", pattern="größe").count("größe") == 1
        said = refused(workspace, "edit_file", **edit)
        assert ".editorconfig" in said
        patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-größe = 1\n+café = 1\n"
        refused(workspace, "patch_apply", patch=patch)
        refused(workspace, "write_file", path="a.txt", content="é\n")
        assert (root / "a.txt").read_bytes() == data
        call(workspace, "edit_file", path="a.txt", old_string="= 1", new_string="= 2")
        assert (root / "a.txt").read_bytes() == data.replace(b"1", b"2")
    with closing(opened(("*.txt", "utf-8"))) as workspace:
        call(workspace, "edit_file", **edit)
    assert (root / "a.txt").read_bytes() == "café = 2\n".encode()


def test_a_page_whose_line_is_wrong_can_be_put_right_by_an_agent(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = '<!doctype html>\n<meta charset="iso-8859-1">\n<p>größe\n'.encode()
    (root / "a.html").write_bytes(data)
    edit = {"path": "a.html", "old_string": "größe", "new_string": "größte"}
    with closing(opened()) as workspace:
        assert "größe" in call(workspace, "read_file", path="a.html")
        # A letter that both have alike.
        call(workspace, "edit_file", **edit)
        more = {"path": "a.html", "old_string": "größte", "new_string": "é"}
        assert "line" in refused(workspace, "edit_file", **more)
        call(workspace, "edit_file", path="a.html", old_string="iso-8859-1", new_string="utf-8")
        call(workspace, "edit_file", **more)
    assert (root / "a.html").read_bytes() == data.replace(b"iso-8859-1", b"utf-8").replace(
        "größe".encode(), "é".encode()
    )


def test_an_unknown_file_is_told_what_it_is_by_a_line_in_it(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = "name = 'вода'\n".encode("koi8-r")
    (root / "a.py").write_bytes(data)
    line = "# coding: koi8-r\n"
    with closing(opened()) as workspace:
        call(workspace, "edit_file", path="a.py", old_string="name = ", new_string=f"{line}name = ")
        assert (root / "a.py").read_bytes() == line.encode() + data
        call(workspace, "edit_file", path="a.py", old_string="вода", new_string="лёд")
        assert (root / "a.py").read_bytes() == f"{line}name = 'лёд'\n".encode("koi8-r")
        for _ in range(2):
            workspace.undo(AGENT, dry_run=False)
        assert (root / "a.py").read_bytes() == data


def test_wide_text_without_a_mark_is_edited_until_it_could_not_be_told_any_more(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = "plain = 1\r\nof ASCII\r\n".encode("utf-16-le")
    (root / "a.txt").write_bytes(data)
    with closing(opened()) as workspace:
        call(workspace, "edit_file", path="a.txt", old_string="plain", new_string="größe")
        assert (root / "a.txt").read_bytes() == "größe = 1\r\nof ASCII\r\n".encode("utf-16-le")
        whole = "大きさ大きさ大きさ大きさ\r\n"
        said = refused(workspace, "write_file", path="a.txt", content=whole)
        assert "U+FEFF" in said
        call(workspace, "write_file", path="a.txt", content=f"\ufeff{whole}")
    assert (root / "a.txt").read_bytes() == f"\ufeff{whole}".encode("utf-16-le")


def test_an_empty_file_and_one_that_is_emptied_begin_anew(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root / "a.txt").write_bytes(b"")
    (root / "b.txt").write_bytes(b"caf\xe9")
    with closing(opened()) as workspace:
        call(workspace, "write_file", path="a.txt", content="☃")
        call(workspace, "write_file", path="b.txt", content="")
        call(workspace, "write_file", path="b.txt", content="☃")
    assert (root / "a.txt").read_bytes() == (root / "b.txt").read_bytes() == "☃".encode()


def test_editorconfig_is_found_above_the_file_and_not_above_the_root(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root.parent / ".editorconfig").write_text("[*]\ncharset = koi8-r\n")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / ".editorconfig").write_text("[er/*.txt]\ncharset = cp1251\n")
    data = "вода\n".encode("cp1251")
    for name in ("a.txt", "deep/er/a.txt", "deep/a.txt"):
        (root / name).write_bytes(data)
    with closing(opened()) as workspace:
        assert "вода" in call(workspace, "read_file", path="deep/er/a.txt")
        for name in ("a.txt", "deep/a.txt"):
            assert "unknown 8-bit" in call(workspace, "read_file", path=name)
        (root / "deep" / ".editorconfig").write_text("[*.txt]\ncharset = cp1251\n")
        assert "вода" in call(workspace, "read_file", path="deep/a.txt")


def test_a_file_too_large_to_edit_is_read_and_refused_in_its_encoding(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    line = "行 表ソ能 " * 100 + "\n"
    data = "".join(f"{number} {line}" for number in range(10_000)).encode("shift_jis")
    assert len(data) > 10_000_000
    (root / "a.txt").write_bytes(data)
    with closing(opened(("*.txt", "shift_jis"))) as workspace:
        got = call(workspace, "read_file", path="a.txt", offset=9_000, lines=1)
        assert "9000 行 表ソ能" in got
        edit = {"path": "a.txt", "old_string": "9000 行", "new_string": "x"}
        outcome = open_toolbox(workspace).call("edit_file", edit, CallContext(AGENT))
        assert outcome.code == "FILE_TOO_LARGE"
    assert (root / "a.txt").read_bytes() == data
