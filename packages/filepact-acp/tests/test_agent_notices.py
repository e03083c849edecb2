"""A client that tells by itself what it shows: its notices are followed, and it is not asked."""

import asyncio
from contextlib import suppress

import pytest
from acp import RequestError
from hypothesis import given
from hypothesis import strategies as st

from filepact.errors import FilepactError, InvalidParamsError
from filepact.text.lines import LineIndex
from filepact_acp.session_buffers import ClientDocuments, path_of
from test_agent_files import edit, refused, run

OPEN, CHANGE = "document/didOpen", "document/didChange"
SAVE, CLOSE = "document/didSave", "document/didClose"


def opened(path, text, version=1, session="n1"):
    return {
        "sessionId": session,
        "uri": f"file://{path}",
        "languageId": "text",
        "version": version,
        "text": text,
    }


def changed(path, version, *changes):
    return {
        "sessionId": "n1",
        "uri": f"file://{path}",
        "version": version,
        "contentChanges": [*changes],
    }


def typed(text, start=None, end=None):
    if start is None:
        return {"text": text}
    places = {
        side: dict(zip(("line", "character"), place, strict=True))
        for side, place in (("start", start), ("end", end))
    }
    return {"text": text, "range": places}


async def tell(editor, method, params):
    """Send a notice, and wait until the agent has it: what follows a notice comes after it."""
    await editor.client._conn.send_notification(method, params)
    with pytest.raises(RequestError):
        await editor.client.ext_method("ping", {})


def test_a_client_that_tells_what_it_shows_is_not_asked(tmp_path):
    async def scene(editor, files, work):
        path = work / "a b.txt"
        path.write_text("saved\n")
        uri = str(path).replace(" ", "%20")
        await tell(editor, OPEN, opened(uri, "shown\n"))
        assert await files.read(str(path)) == "shown\n"
        await tell(editor, CHANGE, changed(uri, 2, typed("😀 ", (0, 0), (0, 0))))
        await tell(editor, CHANGE, changed(uri, 3, typed("!", (0, 3), (0, 8))))
        found = await files.call("grep", {"pattern": "😀 !"})
        assert "a b.txt" in found.text
        assert await files.read(str(path), 1, 1) == "😀 !\n"
        assert editor.heard == []
        await tell(editor, CLOSE, {"sessionId": "n1", "uri": f"file://{uri}"})
        await files.read(str(path))
        return len(editor.reads())

    assert run(scene, tmp_path) == 1


def test_after_a_change_of_ours_the_client_is_asked_until_its_notices_say_the_same(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("saved\n")
        editor.unsaved[path] = "one\n"
        await tell(editor, OPEN, opened(path, "one\n"))
        done = await files.call("edit_file", edit("a.txt", "one", "two"))
        assert not done.failed
        assert editor.unsaved[path] == "two\n"
        assert editor.reads() == []
        assert await files.read(path) == "two\n"
        await files.call("grep", {"pattern": "two"})
        asked = len(editor.reads())
        await tell(editor, CHANGE, changed(path, 2, typed("two", (0, 0), (0, 3))))
        assert "two" in (await files.call("grep", {"pattern": "two"})).text
        assert await files.read(path) == "two\n"
        return asked, len(editor.reads())

    assert run(scene, tmp_path) == (2, 2)


def test_a_client_that_tells_but_cannot_be_asked_is_believed(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("saved\n")
        await tell(editor, OPEN, opened(path, "one\nend\n"))
        await files.call("edit_file", edit("a.txt", "one", "two"))
        done = await files.call("edit_file", edit("a.txt", "two", "three"))
        assert not done.failed, done.text
        await tell(editor, CHANGE, changed(path, 2, typed("three", (0, 0), (0, 3))))
        await tell(editor, CHANGE, changed(path, 3, typed("typed ", (0, 0), (0, 0))))
        text = await files.read(path)
        # A notice that does not fit leaves nothing to be believed; a whole text does again.
        await tell(editor, CHANGE, changed(path, 4, typed("x", (9, 0), (9, 1))))
        assert "typed" not in await files.read(path)
        await tell(editor, CHANGE, changed(path, 5, typed("x", (0, 0), (0, 0))))
        assert "typed" not in await files.read(path)
        await tell(editor, CHANGE, changed(path, 6, typed("whole\n")))
        return text, await files.read(path), editor.reads()

    assert run(scene, tmp_path, read=False) == ("typed three\nend\n", "whole\n", [])


def test_what_was_saved_is_known_to_be_on_the_disk(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_text("one\n")
        await tell(editor, OPEN, opened(path, "one\n"))
        await files.read(str(path))
        await tell(editor, CHANGE, changed(path, 2, typed("one two\n")))
        await files.read(str(path))
        path.write_text("one two three\n")
        await tell(editor, CHANGE, changed(path, 3, typed("one two three\n")))
        await tell(editor, SAVE, {"sessionId": "n1", "uri": f"file://{path}"})
        await tell(editor, CHANGE, changed(path, 4, typed("one two three four\n")))
        editor.unsaved[str(path)] = "one two three four\n"
        done = await files.call("edit_file", edit("a.txt", "four", "4"))
        assert not done.failed, done.text
        return path.read_text()

    assert run(scene, tmp_path) == "one two three 4\n"


def test_documents_that_may_not_be_used_are_passed_over(tmp_path):
    (tmp_path / "other.txt").write_text("other")

    async def scene(editor, files, work):
        (work / ".env").write_text("K=1")
        with (work / "huge").open("wb") as huge:
            huge.truncate(10_000_001)
        for path in (tmp_path / "other.txt", work, work / ".env", work / "huge"):
            await tell(editor, OPEN, opened(path, "shown"))
        await tell(editor, SAVE, {"sessionId": "n1", "uri": "file:///not/open"})
        await tell(editor, "document/didFocus", {"sessionId": "n1", "uri": "file:///a"})
        await tell(editor, OPEN, {"uri": "untitled:1", "text": ""})
        await tell(editor, OPEN, [1])
        assert await refused(files.read(str(tmp_path / "other.txt"))) == "PATH_BLOCKED"
        return (await files.call("grep", {"pattern": "shown"})).text

    assert "other.txt" not in run(scene, tmp_path)


def test_notices_end_with_the_clients_session(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        await tell(editor, OPEN, opened(path, "draft\n", session="s1"))
        assert await files.read(path) == "draft\n"
        await editor.client.close_session(session_id="s1")
        again = await editor.agent.files.session("s1", str(work))
        return await refused(again.read(path))

    assert run(scene, tmp_path) == "NOT_FOUND"


def test_notices_can_come_from_anywhere(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        taken = await editor.agent.files.notification(OPEN, opened(path, "draft\n"))
        other = await editor.agent.files.notification("session/cancel", {})
        return taken, other, await files.read(path)

    assert run(scene, tmp_path) == (True, False, "draft\n")


@pytest.mark.parametrize("uri", ["file://host/a", "https:///a", "/a", None])
def test_a_document_is_named_by_a_file_address(uri):
    assert path_of("file:///a/b%20c") == "/a/b c"
    with pytest.raises(FilepactError) as caught:
        path_of(uri)
    assert caught.value.code == "INVALID_PARAMS"


@pytest.mark.parametrize(
    "change",
    [
        None,
        {},
        {"text": None},
        {"text": "\ud800"},
        {"text": "x" * 25_200_000},
        {"text": "x", "range": []},
        {"text": "x", "range": {"start": {"line": 0, "character": 0}}},
        {"text": "x", "range": {"start": {"line": 0, "character": "a"}, "end": {}}},
        typed("x", (0, float("inf")), (0, 0)),
        typed("x", (0, 2), (0, 1)),
        typed("x", (7, 0), (7, 0)),
    ],
)
def test_a_change_that_is_none_leaves_the_text_in_doubt(change):
    texts = ClientDocuments()
    texts.receive(OPEN, opened("/a", "text"))
    with pytest.raises(FilepactError) as caught:
        texts.receive(CHANGE, changed("/a", 2, change))
    assert caught.value.code == "INVALID_PARAMS"
    (known,) = texts.present()
    assert known.likely is None


def test_versions_grow_and_only_open_documents_change():
    texts = ClientDocuments()
    texts.receive(OPEN, opened("/a", "text", version=5))
    for path, version in (("/a", 5), ("/a", 4), ("/b", 9)):
        with pytest.raises(FilepactError) as caught:
            texts.receive(CHANGE, changed(path, version, typed("x")))
        assert caught.value.code == "INVALID_PARAMS"
    texts.receive(CHANGE, {**changed("/a", None, typed("x")), "version": True})
    assert [one.likely for one in texts.present()] == ["x"]
    with pytest.raises(FilepactError):
        texts.receive(OPEN, {**opened("/a", ""), "text": 1})
    assert [one.likely for one in texts.present()] == [None]
    texts.confirm("/a", "x")
    texts.record_sent("/a", "x")
    assert [one.sure for one in texts.present()] == [True]


EDITS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.text("a\n\r\u2028é😀", max_size=5)),
    max_size=8,
)


@given(st.text("ab\n\r\u2028é😀", max_size=30), EDITS)
def test_edits_by_line_and_column_make_the_text_that_the_client_has(text, edits):
    texts = ClientDocuments()
    texts.receive(OPEN, opened("/a", text))
    for version, (one, other, new) in enumerate(edits, 2):
        start, end = sorted((min(one, len(text)), min(other, len(text))))
        if text[:start].endswith("\r") and text[start:].startswith("\n"):
            continue
        if text[:end].endswith("\r") and text[end:].startswith("\n"):
            continue
        index = LineIndex(text)
        places = [index.position(at, "utf-16") for at in (start, end)]
        change = typed(new, *[(place.line, place.column) for place in places])
        texts.receive(CHANGE, changed("/a", version, change))
        text = text[:start] + new + text[end:]
    assert [one.likely for one in texts.present()] == [text]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.sampled_from(["range", "text", "start", "end", "line", "character"])
LIKE_CHANGES = st.recursive(
    JSON, lambda inner: st.dictionaries(PARTS, inner, max_size=4), max_leaves=12
)
LIKE_NOTICES = st.fixed_dictionaries(
    {"uri": st.just("file:///a") | JSON},
    optional={
        "text": st.text() | JSON,
        "version": st.integers(0, 5) | JSON,
        "contentChanges": st.lists(LIKE_CHANGES, max_size=3) | JSON,
    },
)


@given(st.lists(st.tuples(st.sampled_from([OPEN, CHANGE, SAVE, CLOSE]), LIKE_NOTICES | JSON)))
def test_whatever_a_client_sends_a_text_stays_one_that_can_be_written(notices):
    texts = ClientDocuments()
    texts.receive(OPEN, opened("/a", "one\ntwo\n"))
    for method, params in notices:
        with suppress(InvalidParamsError):
            texts.receive(method, params)
    for one in texts.present():
        (one.likely or "").encode()


def test_only_so_many_documents_are_remembered():
    texts = ClientDocuments()
    for number in range(1_100):
        texts.receive(OPEN, opened(f"/{number}", "x"))
    paths = [one.path for one in texts.present()]
    assert len(paths) == 1_000
    assert paths[-1] == "/1099"


def test_the_loop_is_free_while_files_are_used(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        editor.held = asyncio.Event()
        call = asyncio.ensure_future(files.write(path, "x\n"))
        await editor.began.wait()
        await tell(editor, OPEN, opened(path, "x\n"))
        editor.held.set()
        await call
        return await files.read(path)

    assert run(scene, tmp_path) == "x\n"
