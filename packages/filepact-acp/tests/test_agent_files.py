"""An agent's files, with a real client of the official package at the other end of two pipes."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from acp import RequestError, spawn_agent_process, text_block
from acp.agent.connection import AgentSideConnection
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

from filepact.acp import AgentFiles, ClientFileSystem, Settings
from filepact.errors import FilepactError
from filepact_acp.client_methods import ClientMethods, FileCapabilities
from tests.faces.acp.agent_and_client import Agent, Editor, pipe, talking
from tests.faces.command_line import command

EXAMPLE = Path(__file__).parents[3] / "examples" / "acp_agent.py"


def run(scene, tmp_path, **options):
    """Play a scene ``scene(editor, files, work)`` over a fresh connection."""

    async def play():
        async with talking(tmp_path, **options) as (editor, files):
            return await scene(editor, files, tmp_path / "work")

    (tmp_path / "work").mkdir(exist_ok=True)
    return asyncio.run(play())


async def refused(awaitable):
    """The code with which something is refused."""
    with pytest.raises(FilepactError) as caught:
        await awaitable
    return caught.value.code


def edit(path, old, new):
    return {"path": str(path), "old_string": old, "new_string": new}


# -- what is offered ----------------------------------------------------------------------


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("write", [True, False])
def test_each_method_goes_through_the_client_only_where_it_is_offered(tmp_path, read, write):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("disk\n")
        editor.unsaved[path] = "unsaved\n"
        text = await files.read(path)
        done = await files.write(path, "new\n")
        return text, done.receipt, {one[0] for one in editor.heard}

    text, receipt, heard = run(scene, tmp_path, read=read, write=write)
    assert text == ("unsaved\n" if read else "disk\n")
    assert (receipt is None) == write
    assert heard == {name for name, offered in (("read", read), ("write", write)) if offered}
    assert (tmp_path / "work" / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("capabilities", "read", "write"),
    [
        (None, False, False),
        ({}, False, False),
        ({"fs": None}, False, False),
        ({"fs": []}, False, False),
        ({"fs": {"readTextFile": True}}, True, False),
        ({"fs": {"readTextFile": False, "writeTextFile": True}}, False, True),
        ({"fs": {"readTextFile": "true", "writeTextFile": 1}}, False, False),
    ],
)
def test_only_what_is_announced_is_offered(capabilities, read, write):
    assert FileCapabilities.of(capabilities) == FileCapabilities(read, write)


def test_a_method_that_is_not_offered_puts_no_byte_on_the_wire(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    patch = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-1\n+one\n"

    async def scene():
        from_client, _to_agent = await pipe()
        to_client, from_agent = await pipe()
        agent = Agent(str(tmp_path / "state"))
        side = AgentSideConnection(agent, from_agent, from_client)
        files = await agent.files.session("s1", str(work))
        remote = ClientMethods(side, "s1", agent.files.offers)
        codes = [
            await refused(remote.read(str(work / "a.txt"))),
            await refused(remote.write(str(work / "a.txt"), "x")),
        ]
        await files.read(str(work / "a.txt"))
        await files.write(str(work / "b.txt"), "two\n")
        for tool, arguments in (
            ("read_file", {"path": "a.txt"}),
            ("write_file", {"path": "c.txt", "content": "x"}),
            ("edit_file", edit("a.txt", "one", "1")),
            ("patch_apply", {"patch": patch}),
            ("grep", {"pattern": "one"}),
            ("search_files", {"pattern": "*"}),
            ("directory_tree", {}),
        ):
            outcome = await files.call(tool, arguments)
            assert not outcome.failed, outcome.text
        await files.undo()
        await agent.files.close()
        await side.close()
        _to_agent.close()
        from_agent.close()
        return codes, await to_client.read()

    codes, sent = asyncio.run(scene())
    assert codes == ["READ_ERROR", "WRITE_ERROR"]
    assert sent == b""


def test_a_connection_of_another_kind_says_itself_what_is_offered(tmp_path):
    async def scene():
        editor = Editor()
        files = AgentFiles(editor, state_dir=str(tmp_path / "state"))
        files.initialized(None)
        assert files.offers == FileCapabilities()
        fs = FileSystemCapabilities(read_text_file=True)
        info = Implementation(name="other", version="1")
        files.initialized(ClientCapabilities(fs=fs), info)
        session = await files.session("s1", str(tmp_path / "work"))
        editor.unsaved[str(tmp_path / "work" / "a")] = "typed"
        text = await session.read(str(tmp_path / "work" / "a"))
        await files.close()
        return text

    (tmp_path / "work").mkdir()
    assert asyncio.run(scene()) == "typed"


# -- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize("offered", [True, False])
@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "a\r\nb\u2028c\nd"),
        (0, 1, "a\r\n"),
        (2, 1, "b\u2028c\n"),
        (3, 9, "d"),
        (4, None, ""),
        (1, 0, ""),
        (-3, -1, ""),
        (2**40, 2**40, ""),
        (-1, 2**40, "a\r\nb\u2028c\nd"),
    ],
)
def test_windows_are_the_same_through_the_client_and_from_the_disk(
    tmp_path, offered, line, limit, expected
):
    async def scene(editor, files, work):
        (work / "a").write_bytes("a\r\nb\u2028c\nd".encode())
        return await files.read(str(work / "a"), line, limit)

    assert run(scene, tmp_path, read=offered) == expected


def test_nothing_is_asked_of_the_client_for_a_path_that_may_not_be_used(tmp_path):
    async def scene(editor, files, work):
        (work / ".env").write_text("K=1")
        (work / "link").symlink_to(tmp_path / "secret")
        (tmp_path / "secret").write_text("secret")
        paths = {
            "a.txt": "INVALID_PARAMS",
            f"{work}/a\0b": "INVALID_PARAMS",
            str(work): "NOT_A_FILE",
            str(tmp_path / "secret"): "PATH_BLOCKED",
            f"{work}/../secret": "PATH_BLOCKED",
            f"{work}-evil/a": "PATH_BLOCKED",
            str(work / "link"): "PATH_BLOCKED",
            str(work / ".env"): "PATH_BLOCKED",
        }
        for path, code in paths.items():
            assert await refused(files.read(path)) == code, path
            assert await refused(files.write(path, "x")) == code, path
            if path.startswith("/"):
                assert (await files.call("read_file", {"path": path})).failed
        return editor.heard

    assert run(scene, tmp_path) == []
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_file_that_only_the_client_has_can_be_read_and_one_that_nobody_has_is_missing(tmp_path):
    async def scene(editor, files, work):
        editor.unsaved[str(work / "new.txt")] = "draft\n"
        assert await files.read(str(work / "new.txt")) == "draft\n"
        shown = await files.call("read_file", {"path": "new.txt"})
        assert "draft" in shown.text
        return await refused(files.read(str(work / "none.txt")))

    assert run(scene, tmp_path) == "NOT_FOUND"


def test_a_huge_file_is_read_in_windows_only(tmp_path):
    async def scene(editor, files, work):
        path = work / "huge.txt"
        with path.open("wb") as stream:
            stream.write(b"first\n")
            stream.truncate(25 * 1_048_576)
        assert await refused(files.read(str(path))) == "FILE_TOO_LARGE"
        assert editor.heard == []
        editor.unsaved[str(path)] = "first\nsecond\n"
        assert await files.read(str(path), 1, 1) == "first\n"
        # The tools read it where it is, a piece at a time.
        editor.heard.clear()
        await files.call("read_file", {"path": "huge.txt", "lines": 1})
        return editor.heard

    assert run(scene, tmp_path) == []


@pytest.mark.parametrize(
    "answer",
    [
        {"content": 7},
        {"content": None},
        {},
        None,
        {"content": "\ud800"},
        {"content": "é" * 13_000_000},
        {"content": "x" * 25_200_000},
    ],
    ids=["number", "null", "none", "empty", "half a character", "wide", "long"],
)
def test_what_is_no_text_or_too_much_of_it_is_not_taken_from_a_client(tmp_path, answer):
    async def scene(editor, files, work):
        editor.answer_read = answer
        outcome = await files.call("read_file", {"path": "a.txt"})
        assert outcome.code == "READ_ERROR"
        return await refused(files.read(str(work / "a.txt")))

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("disk")
    assert run(scene, tmp_path) == "READ_ERROR"


@pytest.mark.parametrize(
    ("code", "data", "reading", "writing"),
    [
        (-32002, None, "NOT_FOUND", "NOT_FOUND"),
        (-32603, {"errorKind": "approval_required"}, "APPROVAL_REQUIRED", "APPROVAL_REQUIRED"),
        (-32603, {"errorKind": "denied"}, "USER_DENIED", "USER_DENIED"),
        (-32603, {"errorKind": "protected"}, "PATH_BLOCKED", "PATH_BLOCKED"),
        (-32603, {"errorKind": "path_outside_workspace"}, "PATH_BLOCKED", "PATH_BLOCKED"),
        (-32603, {"errorKind": ["denied"]}, "READ_ERROR", "WRITE_ERROR"),
        (-32603, "whatever", "READ_ERROR", "WRITE_ERROR"),
        (-32800, None, "READ_ERROR", "WRITE_ERROR"),
        (1, None, "READ_ERROR", "WRITE_ERROR"),
    ],
)
def test_a_clients_refusals_become_errors_with_its_own_words(
    tmp_path, code, data, reading, writing
):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("disk\n")
        error = RequestError(code, "because\ud800", data)
        editor.refuses[path] = error
        assert await refused(files.write(path, "new")) == writing
        editor.unreadable[path] = error
        with pytest.raises(FilepactError) as caught:
            await files.read(path)
        assert caught.value.code == reading
        return caught.value.message

    assert "because" in run(scene, tmp_path)
    assert (tmp_path / "work" / "a.txt").read_text() == "disk\n"


def test_a_refused_read_keeps_the_tools_from_the_disk_too(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("disk\n")
        editor.unreadable[str(work / "a.txt")] = RequestError(-32603, "no", {"errorKind": "denied"})
        return [
            (await files.call("read_file", {"path": "a.txt"})).code,
            (await files.call("edit_file", edit("a.txt", "disk", "x"))).code,
        ]

    assert run(scene, tmp_path) == ["USER_DENIED", "USER_DENIED"]
    assert (tmp_path / "work" / "a.txt").read_text() == "disk\n"


def test_a_file_that_is_no_text_is_read_where_it_is(tmp_path):
    async def scene(editor, files, work):
        (work / "a.bin").write_bytes(b"\0\xff\xfe\x01")
        editor.unreadable[str(work / "a.bin")] = RequestError.internal_error()
        done = await files.call("read_file", {"path": "a.bin", "encoding": "base64"})
        return done.text

    assert run(scene, tmp_path) == "AP/+AQ=="


def test_a_name_that_no_message_can_carry_is_not_sent(tmp_path):
    async def scene(editor, files, work):
        path = f"{work}/a\udcff"
        return [
            await refused(files.read(path)),
            await refused(files._remote.read(path)),
            await refused(files._remote.write(path, "x")),
        ], editor.heard

    assert run(scene, tmp_path) == (["PATH_BLOCKED", "READ_ERROR", "WRITE_ERROR"], [])


def test_a_private_key_is_not_read_through_the_client_either(tmp_path):
    key = "-----BEGIN PRIVATE KEY-----\n" + "QUJD" * 16 + "\n-----END PRIVATE KEY-----\n"

    async def scene(editor, files, work):
        editor.unsaved[str(work / "notes.txt")] = key
        return [
            await refused(files.read(str(work / "notes.txt"))),
            (await files.call("read_file", {"path": "notes.txt"})).code,
        ]

    assert run(scene, tmp_path) == ["PATH_BLOCKED", "PATH_BLOCKED"]


def test_when_the_client_is_gone_that_is_said(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("disk\n")
        assert await files.read(str(work / "a.txt")) == "disk\n"
        await files._remote._connection._conn.close()
        return [
            await refused(files.read(str(work / "a.txt"))),
            await refused(files._remote.write(str(work / "a.txt"), "x")),
        ]

    assert run(scene, tmp_path) == ["READ_ERROR", "WRITE_ERROR"]


# -- sessions -----------------------------------------------------------------------------


def test_a_session_has_its_folders_and_ends_with_the_clients(tmp_path):
    more = tmp_path / "more"
    more.mkdir()

    async def scene(editor, files, work):
        (more / "b.txt").write_text("b\n")
        assert await files.read(str(more / "b.txt")) == "b\n"
        again = await editor.agent.files.session("s1", str(work))
        assert await refused(again.read(str(more / "b.txt"))) == "PATH_BLOCKED"
        assert await refused(files.read(str(more / "b.txt"))) == "INVALID_PARAMS"
        await editor.client.close_session(session_id="s1")
        assert editor.agent.files.get("s1") is None
        await again.close()
        assert await refused(editor.agent.files.session("s2", "relative")) == "INVALID_PARAMS"
        return await refused(again.read(str(work / "a.txt")))

    assert run(scene, tmp_path, folders=[more]) == "INVALID_PARAMS"


def test_a_folder_that_is_a_link_is_spelt_as_the_client_spells_it(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("disk\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    async def scene(editor, files, work):
        session = await editor.agent.files.session("s2", str(tmp_path / "link"))
        editor.unsaved[str(tmp_path / "link" / "a.txt")] = "typed\n"
        assert await session.read(str(tmp_path / "real" / "a.txt")) == "typed\n"
        done = await session.call("edit_file", edit("a.txt", "typed", "done"))
        assert not done.failed, done.text
        return editor.writes()

    path = str(tmp_path / "link" / "a.txt")
    assert run(scene, tmp_path) == [(path, "typed\n"), (path, "done\n")]


def test_sessions_leave_nothing_behind(tmp_path):
    def handles():
        return len(os.listdir("/proc/self/fd"))

    async def scene(editor, files, work):
        agent = editor.agent.files
        editor.unsaved[str(work / "a.txt")] = "typed\n"
        counts = []
        for number in range(30):
            name = f"n{number}"
            session = await agent.session(name, str(work))
            assert await session.read(str(work / "a.txt")) == "typed\n"
            await editor.client.close_session(session_id=name)
            assert agent.get(name) is None
            counts.append(handles())
        return counts

    counts = run(scene, tmp_path)
    assert counts[-1] <= counts[0]


def test_a_session_that_is_opened_twice_at_once_is_one(tmp_path):
    async def scene(editor, files, work):
        agent = editor.agent.files
        one, two = await asyncio.gather(
            agent.session("s2", str(work)), agent.session("s2", str(work))
        )
        assert agent.get("s2") in (one, two)
        other = two if agent.get("s2") is one else one
        return await refused(other.read(str(work / "a.txt")))

    assert run(scene, tmp_path) == "INVALID_PARAMS"


def test_our_own_client_is_one_like_any_other(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    client_files = ClientFileSystem(state_dir=str(tmp_path / "state"), settings=Settings())

    async def scene(editor, files, work):
        path = str(work / "a.txt")
        assert await files.read(path, 2, 1) == "two\r\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert not done.failed, done.text
        await files.write(str(work / "new" / "b.txt"), "b\n")
        missing = await refused(files.read(str(work / "none")))
        undone = await files.undo(done.receipt["operation"])
        assert not undone.failed, undone.text
        return missing

    try:
        assert run(scene, tmp_path, client_files=client_files) == "NOT_FOUND"
    finally:
        client_files.close()
    assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (work / "new" / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize("unsaved", ["one\ntwo\n", "one\ntyped\n", "typed one\ntwo\n"])
def test_unsaved_text_of_our_own_client_is_changed_in_its_buffer_and_on_the_disk(tmp_path, unsaved):
    work = tmp_path / "work"
    work.mkdir()
    path = work / "a.txt"
    path.write_text("one\ntwo\n")
    made = []

    async def make(delivery):
        made.append(delivery.text)
        return True

    client_files = ClientFileSystem(
        state_dir=str(tmp_path / "client"), settings=Settings(), on_delivery=make
    )

    async def scene(editor, files, work):
        client_files.buffers.open(str(path), unsaved, 1)
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert not done.failed, done.text
        changed = unsaved.replace("one", "1")
        assert client_files.buffers.text(str(path)) == path.read_text() == changed
        undone = await files.undo(done.receipt["operation"])
        assert not undone.failed, undone.text
        assert client_files.buffers.text(str(path)) == path.read_text() == unsaved
        return made == [changed, unsaved]

    try:
        assert run(scene, tmp_path, client_files=client_files)
    finally:
        client_files.close()


# -- a real agent -------------------------------------------------------------------------


def test_the_example_is_an_agent_that_edits_unsaved_text(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    path = work / "a.txt"
    path.write_text("saved\n")

    class Watching(Editor):
        said = ""

        async def session_update(self, session_id, update, **_):  # noqa: ARG002 - the protocol's
            self.said += update.content.text

    async def scene():
        editor = Watching()
        editor.unsaved[str(path)] = "good day\n"
        fs = FileSystemCapabilities(read_text_file=True, write_text_file=True)
        command = [sys.executable, str(EXAMPLE), str(tmp_path / "state")]
        environment = {"PYTHONPATH": str(Path(sys.modules["filepact"].__file__).parents[1])}
        async with spawn_agent_process(editor, *command, env=environment) as (agent, _):
            await agent.initialize(1, client_capabilities=ClientCapabilities(fs=fs))
            session = await agent.new_session(cwd=str(work), mcp_servers=[])
            for order in ("sing", "replace day with evening in a.txt"):
                done = await agent.prompt(prompt=[text_block(order)], session_id=session.session_id)
                assert done.stop_reason == "end_turn"
        return editor

    editor = asyncio.run(scene())
    assert editor.said.startswith("Say: replace OLD")
    assert "Done: edit a.txt, line 1 (+1 -1)" in editor.said
    assert editor.unsaved[str(path)] == "good evening\n"
    assert path.read_text() == "good evening\n"
    said = command("log", "--json", "--root", str(work), "--state", str(tmp_path / "state"))
    assert json.loads(said.out)["operations"][0]["turn"] != ""
