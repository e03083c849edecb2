"""Files in many encodings through the workspace: what is changed, and every byte that is not."""

# ruff: noqa: RUF001 - texts in many scripts are what this is about
from __future__ import annotations

import codecs
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Approval, Session
from filepact.tools.registry import CallContext
from filepact.workspace import documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "tester"))

TEXTS = {
    "shift_jis": "一行目 日本語\r\n表示ソ能\r\nthird line\n",
    "cp932": "①②㈱ 日本語\n表ソ\nthird line\n",
    "euc_jp": "日本語\nテスト\nthird line\n",
    "gb18030": "中文 𠀀 文本\n第二行\r\nthird line\n",
    "gbk": "中文文本\n第二行\nthird line\n",
    "big5": "中文許功蓋\n第二行\nthird line\n",
    "euc_kr": "한국어 문서\n둘째 줄\nthird line\n",
    "koi8_r": "Русский текст\nвторая\nthird line\n",
    "cp1251": "Русский текст\nвторая\nthird line\n",
    "cp1252": "café – naïve\nzweite Zeile ä\nthird line\n",
    "cp1250": "Příliš žluťoučký\ndruhý řádek\nthird line\n",
    "cp1253": "Ελληνικά\nδεύτερη\nthird line\n",
    "latin_1": "café\nä\nthird line\n",
    "utf_8_sig": "café\nä\nthird line\n",
    "utf_16": "café 日本\r\nä\nthird line\n",
    "utf_32": "café 日本\nä\nthird line\n",
}


def call(workspace: Workspace, tool: str, **arguments: object) -> str:
    outcome = open_toolbox(workspace).call(tool, arguments, CallContext(AGENT))
    assert not outcome.failed, outcome.text
    return outcome.text + str((outcome.receipt or {}).get("diff", ""))


def refusal(workspace: Workspace, tool: str, **arguments: object) -> str:
    outcome = open_toolbox(workspace).call(tool, arguments, CallContext(AGENT))
    assert outcome.failed
    return outcome.code


@pytest.mark.parametrize("encoding", TEXTS)
def test_an_edit_through_the_tools_changes_its_line_and_undo_brings_every_byte_back(
    root: Path, opened: Callable[..., Workspace], encoding: str
) -> None:
    text = TEXTS[encoding]
    before = text.encode(encoding)
    (root / "a.txt").write_bytes(before)
    with closing(opened(("a.txt", encoding))) as workspace:
        assert text.splitlines()[0] in call(workspace, "read_file", path="a.txt")
        second = text.splitlines()[1]
        call(
            workspace, "edit_file", path="a.txt", old_string=second, new_string=f"{second}{second}"
        )
        after = text.replace(second, second + second, 1)
        changed = (root / "a.txt").read_bytes()
        assert changed.decode(encoding) == after
        cut = len(text.partition("\n")[0].encode(encoding))
        assert changed[:cut] == before[:cut]
        assert second in call(workspace, "grep", pattern="third line", context=1)
        workspace.undo(AGENT, dry_run=False)
        assert (root / "a.txt").read_bytes() == before


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "euc_kr", "big5", "utf_16"])
def test_a_patch_is_applied_to_the_text_and_written_in_the_files_encoding(
    root: Path, opened: Callable[..., Workspace], encoding: str
) -> None:
    text = TEXTS[encoding].replace("\r\n", "\n")
    (root / "a.txt").write_bytes(text.encode(encoding))
    first, second, third = text.splitlines()
    patch = f"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n {first}\n-{second}\n+{second} {first}\n {third}\n"
    with closing(opened(("*.txt", encoding))) as workspace:
        call(workspace, "patch_apply", patch=patch)
    assert (root / "a.txt").read_bytes().decode(encoding) == f"{first}\n{second} {first}\n{third}\n"


def test_the_settings_go_before_editorconfig_and_that_before_the_file_itself(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root / ".editorconfig").write_text("root = true\n[*.txt]\ncharset = latin1\n")
    line = "# -*- coding: koi8-r -*-\n"
    data = line.encode() + "вода\n".encode("koi8_r")
    for name in ("a.txt", "b.txt", "c.py"):
        (root / name).write_bytes(data)
    with closing(opened(("b.txt", "cp1251"))) as workspace:
        for name, encoding in (("a.txt", "latin_1"), ("b.txt", "cp1251"), ("c.py", "koi8_r")):
            assert data.decode(encoding).splitlines()[1] in call(workspace, "read_file", path=name)


def test_a_new_file_gets_the_encoding_that_somebody_named(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root / ".editorconfig").write_text("[*.txt]\ncharset = utf-16le\n")
    with closing(opened(("legacy/**", "cp1252"))) as workspace:
        call(workspace, "write_file", path="a.txt", content="café\n")
        call(workspace, "write_file", path="legacy/b.c", content="café\n", createDirs=True)
        call(workspace, "write_file", path="c.md", content="café\n")
        code = refusal(workspace, "write_file", path="legacy/d.c", content="日本\n")
        # Whoever can write an .editorconfig could have other programs read other text.
        (waiting,) = workspace.pending()
        assert waiting.rule == "unusual encodings"
        workspace.approve(waiting.id, Approval(Actor("person", "ann")))
    assert (root / "a.txt").read_bytes() == codecs.BOM_UTF16_LE + "café\n".encode("utf-16-le")
    assert (root / "legacy/b.c").read_bytes() == b"caf\xe9\n"
    assert (root / "c.md").read_bytes() == "café\n".encode()
    assert code == "ENCODING_UNSAFE"


def test_a_file_that_nobody_knows_is_edited_in_ascii_only(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = b"caf\xe9 \x80\x81\nplain\n\xff\xfe odd\n"
    (root / "a.txt").write_bytes(data)
    with closing(opened()) as workspace:
        assert "unknown 8-bit" in call(workspace, "read_file", path="a.txt")
        call(workspace, "edit_file", path="a.txt", old_string="plain", new_string="simple")
        assert (root / "a.txt").read_bytes() == data.replace(b"plain", b"simple")
        edit = {"path": "a.txt", "old_string": "simple", "new_string": "\u00e9"}
        assert refusal(workspace, "edit_file", **edit) == "ENCODING_UNSAFE"


def test_utf_8_stays_utf_8_whatever_the_rules_for_many_files_say(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    (root / ".editorconfig").write_text("[*]\ncharset = utf-16be\n")
    (root / "a.txt").write_text("café\n")
    with closing(opened()) as workspace:
        call(workspace, "edit_file", path="a.txt", old_string="café", new_string="thé")
    assert (root / "a.txt").read_bytes() == "thé\n".encode()


def test_changing_the_line_that_names_the_encoding_is_refused_where_the_rest_would_change(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = b"# coding: latin-1\nname = 'caf\xe9'\n"
    (root / "a.py").write_bytes(data)
    with closing(opened()) as workspace:
        edit = {"path": "a.py", "old_string": "latin-1", "new_string": "utf-8"}
        assert refusal(workspace, "edit_file", **edit) == "ENCODING_UNSAFE"
        assert (root / "a.py").read_bytes() == data
        call(workspace, "edit_file", path="a.py", old_string="name", new_string="word")
    assert (root / "a.py").read_bytes() == data.replace(b"name", b"word")


def test_a_part_of_a_large_file_is_read_in_its_encoding(
    root: Path, opened: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact.workspace.reader.EDIT_LIMIT", 1_000)
    lines = [f"{number} 行 表示ソ能" for number in range(500)]
    (root / "a.txt").write_bytes(("\n".join(lines) + "\n").encode("shift_jis"))
    with closing(opened(("a.txt", "shift_jis"))) as workspace:
        got = call(workspace, "read_file", path="a.txt", offset=400, lines=3)
    assert all(line in got for line in lines[400:403])
    assert lines[403] not in got


def test_what_is_said_about_files_says_nothing_about_itself(
    opened: Callable[..., Workspace], root: Path
) -> None:
    said = "[*]\ncharset = latin1\n# caf\u00e9\n"
    (root / ".editorconfig").write_text(said, encoding="utf-8")
    (root / "a.txt").write_bytes(b"caf\xe9\n")
    with closing(opened()) as workspace:
        reader = workspace.reader(AGENT)
        assert reader.document("a.txt").text == "caf\u00e9\n"
        assert reader.document(".editorconfig").text == said


def test_a_folder_that_is_called_so_says_nothing(
    opened: Callable[..., Workspace], root: Path
) -> None:
    (root / "sub" / ".editorconfig").mkdir(parents=True)
    (root / ".editorconfig").write_text("[*]\ncharset = latin1\n")
    (root / "sub" / "a.txt").write_bytes(b"caf\xe9\n")
    with closing(opened()) as workspace:
        assert workspace.reader(AGENT).document("sub/a.txt").text == "caf\u00e9\n"


def test_of_more_folders_than_are_kept_each_is_still_heard(
    opened: Callable[..., Workspace], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MOST_KEPT", 2)
    texts = {"latin1": b"caf\xe9\n", "utf-8": "caf\u00e9\n".encode()}
    for number in range(5):
        folder = root / str(number)
        folder.mkdir()
        charset = ("latin1", "utf-8")[number % 2]
        (folder / ".editorconfig").write_text(f"root = true\n[*]\ncharset = {charset}\n")
        (folder / "a.txt").write_bytes(texts[charset])
    with closing(opened()) as workspace:
        reader = workspace.reader(AGENT)
        for number in (*range(5), *range(5)):
            assert reader.document(f"{number}/a.txt").text == "caf\u00e9\n"


TRICKS = {
    "build.sh": ("#!/bin/sh\n# vim: fenc=shift_jis\necho x ポ sh\n", "ポ[\\x83|] sh"),
    "a.c": ("// -*- coding: shift_jis -*-\nint f(){\n  // 表\n  return 0;\n}\n", "表[\\x95\\]\n"),
    "a.py": ("# coding: utf-7\n# +AAo-import os\n", "utf-7"),
}


@pytest.mark.parametrize("name", TRICKS)
def test_bytes_that_programs_read_otherwise_wait_and_are_seen(
    root: Path, opened: Callable[..., Workspace], name: str
) -> None:
    text, seen = TRICKS[name]
    with closing(opened()) as workspace:
        call(workspace, "write_file", path=name, content=text)
        (waiting,) = workspace.pending()
        assert waiting.rule == "unusual encodings"
        assert not (root / name).exists()
        diff = workspace.diff(waiting)
        assert seen in diff
        if name != "a.py":
            assert diff.startswith(f"Encoding of {name}: shift_jis (declared)\n")
        receipt = workspace.approve(waiting.id, Approval(Actor("person", "ann")))
        assert seen in receipt.diff


def test_a_japanese_file_that_is_in_shift_jis_is_worked_on_without_a_question(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    text = "# vim: fenc=shift_jis\n# 能力とサポート\nport=1\n"
    (root / "a.sh").write_bytes(text.encode("shift_jis"))
    with closing(opened()) as workspace:
        edit = {"path": "a.sh", "old_string": "port=1", "new_string": "port=2  # ソート"}
        said = call(workspace, "edit_file", **edit)
        assert "# ソート" in said
        (done,) = workspace.log()
        # A person sees the bytes; the agent the text that it can send again.
        assert "ソ[\\x83\\]ー[\\x81[]ト" in workspace.diff(done)
    assert (root / "a.sh").read_bytes() == (
        text.replace("port=1", "port=2  # ソート").encode("shift_jis")
    )


def test_a_file_with_escapes_is_read_and_not_written(
    root: Path, opened: Callable[..., Workspace]
) -> None:
    data = "日本語です\nthird line\n".encode("iso2022_jp")
    (root / "a.txt").write_bytes(data)
    with closing(opened(("a.txt", "iso2022_jp"))) as workspace:
        assert "日本語です" in call(workspace, "read_file", path="a.txt")
        edit = {"path": "a.txt", "old_string": "third", "new_string": "last"}
        assert refusal(workspace, "edit_file", **edit) == "ENCODING_UNSAFE"
        assert refusal(workspace, "write_file", path="a.txt", content="日\n") == "ENCODING_UNSAFE"
        assert (root / "a.txt").read_bytes() == data
        patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"
        call(workspace, "patch_apply", patch=patch)
        assert not (root / "a.txt").exists()
        workspace.undo(AGENT)
    assert (root / "a.txt").read_bytes() == data
