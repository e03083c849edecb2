"""Unsaved texts of a client's own editors: read, written into, delivered, reconciled."""

import asyncio
import logging

import pytest

from filepact.acp import ClientFileSystem, Delivery, Position, Typed
from filepact.errors import InvalidParamsError, StaleFileError
from filepact_acp import editor_documents
from tests.faces.acp.talking import READ, WRITE, talk


class Editor:
    """Shows files as an editor does: its own text, its own count of changes."""

    def __init__(self, tmp_path, **options):
        self.texts = {}
        self.deliveries = []
        self.notes = []
        self.obey = True
        self.files = ClientFileSystem(
            state_dir=str(tmp_path / "state"),
            on_delivery=self.deliver,
            on_note=self.notes.append,
            **options,
        )

    def open(self, path, text, version=1):
        self.texts[str(path)] = (text, version)
        self.files.buffers.open(str(path), text, version)

    async def deliver(self, delivery: Delivery) -> bool:
        self.deliveries.append(delivery)
        if self.obey:
            for name in self.files.buffers.names(delivery.path):
                text, version = self.texts[name]
                assert version == delivery.version
                self.texts[name] = (delivery.edits.apply(text), version + 1)
        return self.obey


def scene(tmp_path, editor, play):
    """Let something happen in a session with the folder ``work``."""

    async def whole():
        await editor.files.session_started("s1", str(tmp_path / "work"))
        try:
            return await play(editor.files)
        finally:
            editor.files.close()

    return asyncio.run(whole())


def test_what_was_typed_before_the_session_is_read_and_written_into(tmp_path, work):
    path = work / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    editor = Editor(tmp_path)
    editor.open(path, "1\ntwo\nthree\n", 4)
    editor.open("/elsewhere/b.txt", "kept\n")
    read, written, again = talk(
        tmp_path,
        editor.files,
        prompt=[
            [READ, {"path": str(path)}],
            [WRITE, {"path": str(path), "content": "1\ntwo\n3\n"}],
            [READ, {"path": str(path), "line": 3}],
        ],
    )["answers"]
    # The file's own line ends, as everybody reads them.
    assert read["result"] == {"content": "1\r\ntwo\r\nthree\r\n"}
    assert written["result"] == {}
    assert again["result"] == {"content": "3\r\n"}
    assert path.read_bytes() == b"1\r\ntwo\r\n3\r\n"
    (delivery,) = editor.deliveries
    assert [delivery.version, len(delivery.edits.edits)] == [4, 1]
    assert delivery.typed() == (Typed("3\n", Position(2, 0), Position(3, 0)),)
    assert editor.texts[str(path)] == ("1\ntwo\n3\n", 5)
    assert editor.files.buffers.text("/elsewhere/b.txt") == "kept\n"


def test_the_persons_typing_stays_when_the_agents_change_is_taken_back(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n\ntwo\n")
    editor = Editor(tmp_path)
    editor.open(path, "1\n\ntwo\n")

    async def play(files):
        await files.write_text_file("s1", str(path), "1\n\n2\n")
        (workspace,) = files._sessions.workspaces
        agents, editors = workspace.log()
        assert (editors.tool, agents.tool) == ("editor", "fs/write_text_file")
        workspace.undo(agents.session, agents.id, dry_run=False)
        await files.buffers.tell(())

    scene(tmp_path, editor, play)
    assert path.read_text() == "1\n\ntwo\n"
    assert editor.texts[str(path)] == ("1\n\ntwo\n", 3)


@pytest.mark.parametrize(
    ("unit", "column"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)], ids=["8", "16", "32"]
)
def test_changes_count_columns_in_the_unit_that_was_named(tmp_path, work, unit, column):
    path = work / "a.txt"
    editor = Editor(tmp_path)
    editor.open(path, "\U0001f600 one\n")

    async def play(files):
        where = Position(0, column)
        files.buffers.change(str(path), [Typed("1"), Typed("!", Position(0, 1))], 2)
        assert files.buffers.text(str(path)) == "1!"
        files.buffers.change(str(path), "\U0001f600 one\n", 3)
        changes = [Typed("1", where, Position(0, column + 3)), Typed("\n", where)]
        files.buffers.change(str(path), changes, 4, unit=unit)
        answer = await files.read_text_file("s1", str(path))
        assert not path.exists()
        return answer.content

    assert scene(tmp_path, editor, play) == "\U0001f600 \n1\n"


def test_changes_that_do_not_fit_are_refused_and_the_file_can_be_opened_again(tmp_path, work):
    path = str(work / "a.txt")
    editor = Editor(tmp_path)
    buffers = editor.files.buffers
    for call in (
        lambda: buffers.open("a.txt", ""),
        lambda: buffers.open("/", ""),
        lambda: buffers.open("/a\0", ""),
        lambda: buffers.change(path, "x", 2),
        lambda: buffers.saved(path),
    ):
        with pytest.raises(InvalidParamsError):
            call()
    buffers.close(path)
    editor.open(path, "one\n", 5)
    for change, error in (
        (("x", 5), StaleFileError),
        (([Typed("x", Position(9, 0))], 6), InvalidParamsError),
    ):
        with pytest.raises(error):
            buffers.change(path, *change)
    buffers.open(path, "again\n", 1)
    assert buffers.text(path) == "again\n"
    buffers.close(path)
    assert buffers.text(path) is None


def test_a_file_is_kept_until_a_session_has_its_folder_by_any_of_its_names(tmp_path, work):
    (work / "sub").mkdir()
    (tmp_path / "alias").symlink_to(work)
    path = work / "sub" / "a.txt"
    path.write_text("saved\n")
    editor = Editor(tmp_path)
    alias = f"{tmp_path}/alias/./sub/../sub/a.txt"
    editor.open(alias, "typed\n")
    editor.files.buffers.saved(alias)

    async def play(files):
        assert (await files.read_text_file("s1", str(path))).content == "typed\n"
        await files.session_started("s2", str(tmp_path / "alias"))
        texts = [(await files.read_text_file(s, str(path))).content for s in ("s1",)]
        texts.append((await files.read_text_file("s2", alias)).content)
        for session in ("s1", "s2"):
            await files.session_closed(session)
        # Nobody has its folder now, and what is typed counts for whoever comes.
        files.buffers.change(alias, "more\n", 2)
        files.buffers.open(alias, "most\n", 3)
        await files.session_started("s3", str(work / "sub"))
        return [*texts, (await files.read_text_file("s3", str(path))).content]

    assert scene(tmp_path, editor, play) == ["typed\n", "typed\n", "most\n"]


def test_a_disk_that_changed_behind_the_editor_is_merged_and_said(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n\ntwo\n\nthree\n")
    editor = Editor(tmp_path)

    async def play(files):
        editor.open(path, "one\n\ntwo\n\nthree\n")
        await files.read_text_file("s1", str(path))
        path.write_text("one\n\ntwo\n\n3\n")
        await files.write_text_file("s1", str(path), "1\n\ntwo\n\nthree\n")

    scene(tmp_path, editor, play)
    assert path.read_text() == "1\n\ntwo\n\n3\n"
    assert editor.texts[str(path)][0] == "1\n\ntwo\n\n3\n"
    assert any("both were merged" in note for note in editor.notes)


def test_what_was_undone_on_the_disk_does_not_come_back_from_the_editor(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n\ntwo\n\nthree\n")
    editor = Editor(tmp_path)

    async def play(files):
        editor.open(path, "one\n\ntwo\n\nthree\n")
        await files.write_text_file("s1", str(path), "BAD\n\ntwo\n\nthree\n")
        # As an undo on the command line, or another program, does it.
        path.write_text("one\n\ntwo\n\nthree\n")
        read = (await files.read_text_file("s1", str(path))).content
        await files.write_text_file("s1", str(path), read.replace("three", "GOOD"))
        return read

    assert scene(tmp_path, editor, play) == "one\n\ntwo\n\nthree\n"
    assert path.read_text() == "one\n\ntwo\n\nGOOD\n"
    assert editor.texts[str(path)][0] == "one\n\ntwo\n\nGOOD\n"


def test_what_an_editor_saved_is_the_disk_and_anything_else_is_said(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n")
    editor = Editor(tmp_path)

    async def play(files):
        editor.open(path, "typed\n")
        path.write_bytes(b"typed\n")
        files.buffers.saved(str(path))
        said = list(editor.notes)
        path.write_bytes(b"\0\1")
        files.buffers.saved(str(path))
        path.unlink()
        files.buffers.saved(str(path))
        await files.session_closed("s1")
        files.buffers.saved(str(path))
        return said

    assert scene(tmp_path, editor, play) == []
    assert len(editor.notes) == 2
    assert all("something else" in note for note in editor.notes)


def test_an_editor_that_does_not_make_the_edits_keeps_its_text_and_that_is_said(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n\ntwo\n")
    editor = Editor(tmp_path)
    editor.obey = False

    async def play(files):
        editor.open(path, "1\n\ntwo\n")
        await files.write_text_file("s1", str(path), "1\n\n2\n")
        assert path.read_text() == "1\n\n2\n"
        shown = (await files.read_text_file("s1", str(path))).content
        editor.obey = True
        await files.write_text_file("s1", str(path), "0\n\n2\n")
        return shown

    # What the editor has is older than the disk by now, and nobody has typed in it.
    assert scene(tmp_path, editor, play) == "1\n\n2\n"
    assert any("did not make" in note for note in editor.notes)
    assert path.read_text() == "0\n\n2\n"
    assert editor.texts[str(path)][0] == "0\n\n2\n"


def test_an_editor_that_opens_a_file_once_more_has_not_taken_back_what_it_did_not_make(
    tmp_path, work
):
    path = work / "a.txt"
    path.write_text("one\n\ntwo\n\nthree\n")
    editor = Editor(tmp_path)
    editor.obey = False

    async def play(files):
        editor.open(path, "one\n\ntwo\n\nthree\n")
        await files.read_text_file("s1", str(path))
        await files.write_text_file("s1", str(path), "1\n\ntwo\n\nthree\n")
        editor.obey = True
        editor.open(path, "one\n\ntwo\n\n3\n", 7)
        await files.read_text_file("s1", str(path))
        await files.write_text_file("s1", str(path), "one\n\n2\n\n3\n")

    scene(tmp_path, editor, play)
    assert path.read_text() == "1\n\n2\n\n3\n"
    assert editor.texts[str(path)] == ("1\n\n2\n\n3\n", 8)


@pytest.mark.parametrize("trouble", ["silent", "broken"])
def test_an_editor_in_trouble_does_not_keep_the_answer(
    tmp_path, work, trouble, monkeypatch, caplog
):
    monkeypatch.setattr(editor_documents, "_PATIENCE", 0.05)
    path = work / "a.txt"
    path.write_text("one\n")

    async def deliver(_delivery):
        if trouble == "broken":
            raise RuntimeError
        await asyncio.Event().wait()

    async def play():
        files = ClientFileSystem(state_dir=str(tmp_path / "state"), on_delivery=deliver)
        await files.session_started("s1", str(work))
        files.buffers.open(str(path), "one\n")
        await files.write_text_file("s1", str(path), "two\n")
        text = files.buffers.text(str(path))
        files.close()
        return text

    with caplog.at_level(logging.INFO, "filepact.acp"):
        assert asyncio.run(play()) == "one\n"
    assert path.read_text() == "two\n"
    assert "brought together" in caplog.text


def test_without_anybody_to_tell_the_edits_wait_to_be_taken(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n")

    async def play():
        files = ClientFileSystem(state_dir=str(tmp_path / "state"))
        await files.session_started("s1", str(work))
        files.buffers.open(str(path), "one\n")
        await files.write_text_file("s1", str(path), "two\n")
        taken = files.buffers.take()
        files.close()
        return taken

    (delivery,) = asyncio.run(play())
    assert delivery.text == "two\n"


def test_an_approved_change_reaches_the_editor_before_the_answer(tmp_path, work):
    path = work / "a.txt"
    path.write_text("one\n")

    async def ask(_question):
        return True

    editor = Editor(tmp_path, mode="preview", ask=ask)
    editor.open(path, "one\n")
    (answer,) = talk(
        tmp_path, editor.files, prompt=[[WRITE, {"path": str(path), "content": "two\n"}]]
    )["answers"]
    assert answer["result"] == {}
    assert editor.texts[str(path)] == ("two\n", 2)
