"""An agent's files, with a real client of the official package at the other end of two pipes."""

import asyncio

import pytest

from tests.faces.acp.agent_and_client import talking


def run(scene, tmp_path, **options):
    """Play a scene ``scene(editor, files, work)`` over a fresh connection."""

    async def play():
        async with talking(tmp_path, **options) as (editor, files):
            return await scene(editor, files, tmp_path / "work")

    (tmp_path / "work").mkdir(exist_ok=True)
    return asyncio.run(play())


def code_of(caught):
    return caught.value.code


# -- what is offered ----------------------------------------------------------------------


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("write", [True, False])
def test_each_method_goes_through_the_client_only_where_it_is_offered(tmp_path, read, write):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("disk\n")
        editor.unsaved[path] = "unsaved\n"
        text = await files.read(path)
        receipt = await files.write(path, "new\n")
        return text, receipt, {one[0] for one in editor.heard}

    text, receipt, heard = run(scene, tmp_path, read=read, write=write)
    assert text == ("unsaved\n" if read else "disk\n")
    assert (receipt is None) == write
    assert heard == {name for name, offered in (("read", read), ("write", write)) if offered}
    assert (tmp_path / "work" / "a.txt").read_text() == "new\n"


def test_a_tool_changes_unsaved_text_and_the_client_gets_it(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\ntwo\n")
        editor.unsaved[path] = "one\ntyped\n"
        shown = await files.call("read_file", {"path": "a.txt"})
        assert "typed" in shown.text
        done = await files.call(
            "edit_file", {"path": "a.txt", "old_string": "one", "new_string": "1"}
        )
        assert done.receipt["status"] == "applied", done.text
        assert editor.writes() == [(path, "1\ntyped\n")]
        undone = await files.undo(done.receipt["operation"])
        assert not undone.failed, undone.text
        assert editor.unsaved[path] == "one\ntyped\n"

    run(scene, tmp_path)
    assert (tmp_path / "work" / "a.txt").read_text() == "one\ntyped\n"
