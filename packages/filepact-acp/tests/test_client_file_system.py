"""The client's file system, over a real stdio connection with an agent that sends raw lines."""

import asyncio
import tempfile

import pytest
from acp import RequestError

from filepact.acp import ClientFileSystem
from filepact.errors import InvalidParamsError
from filepact_acp.files import cut
from tests.faces.acp.talking import READ, WRITE, run


def test_a_file_is_read_and_written_with_its_own_line_ends(tmp_path):
    (tmp_path / "work").mkdir()
    path = tmp_path / "work" / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    answers = run(
        tmp_path,
        (READ, {"path": str(path), "line": 2, "limit": 1}),
        (WRITE, {"path": str(path), "content": "one\n2\n"}),
    )
    assert answers[0]["result"] == {"content": "two\r\n"}
    assert answers[1]["result"] == {}
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"


def test_a_new_file_gets_its_folders(tmp_path):
    path = tmp_path / "work" / "new" / "deep" / "a.txt"
    (answer,) = run(tmp_path, (WRITE, {"path": str(path), "content": "x\n"}))
    assert answer["result"] == {}
    assert path.read_text() == "x\n"


def test_refusals_have_their_numbers_and_kinds(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("secret")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / ".env").write_text("K=1")
    cases = [
        (READ, {"path": str(work / "none")}, -32002, "not_found"),
        (READ, {"path": "a.txt"}, -32602, "invalid_params"),
        (READ, {"path": str(work)}, -32602, "not_a_file"),
        (READ, {"path": str(tmp_path / "secret")}, -32603, "path_outside_workspace"),
        (READ, {"path": str(work / "link")}, -32603, "symlink_escape"),
        (READ, {"path": str(work / ".env")}, -32603, "protected"),
        (WRITE, {"path": str(tmp_path / "new"), "content": ""}, -32603, "path_outside_workspace"),
        (WRITE, {"path": str(work / "x"), "content": "\ud800"}, -32602, "bad_text"),
        (READ, {"path": str(work / "x"), "sessionId": "other"}, -32602, "unknown_session"),
    ]
    answers = run(tmp_path, *[(method, params) for method, params, _, _ in cases])
    got = [(one["error"]["code"], one["error"]["data"]["errorKind"]) for one in answers]
    assert got == [(code, kind) for _, _, code, kind in cases]
    assert answers[0]["error"]["data"]["uri"] == str(work / "none")
    assert not (tmp_path / "new").exists()


def test_meta_does_not_replace_parameters(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a")
    (work / "b.txt").write_text("b")
    read, written = run(
        tmp_path,
        (READ, {"path": str(work / "a.txt"), "_meta": {"path": str(work / "b.txt"), "limit": 0}}),
        (WRITE, {"path": str(work / "a.txt"), "content": "c", "_meta": {"content": "d"}}),
    )
    assert read["result"] == {"content": "a"}
    assert written["result"] == {}
    assert (work / "a.txt").read_text() == "c"


@pytest.mark.parametrize(("answer", "code", "text"), [(True, None, "new"), (False, -32603, "old")])
def test_a_person_is_asked(tmp_path, answer, code, text):
    (tmp_path / "work").mkdir()
    path = tmp_path / "work" / "a.txt"
    path.write_text("old")
    asked = []

    async def ask(question):
        asked.append(question)
        return answer

    (said,) = run(tmp_path, (WRITE, {"path": str(path), "content": "new"}), mode="preview", ask=ask)
    assert said.get("error", {}).get("code") == code
    assert path.read_text() == text
    assert "+new" in asked[0].diff


def test_with_nobody_to_ask_the_agent_learns_where_the_person_finds_it(tmp_path):
    path = tmp_path / "work" / "a.txt"
    (said,) = run(tmp_path, (WRITE, {"path": str(path), "content": "new"}), mode="preview")
    assert said["error"]["data"]["errorKind"] == "approval_required"
    assert "filepact review --list" in said["error"]["message"]
    assert not path.exists()


def test_what_is_switched_off_is_not_served(tmp_path):
    path = str(tmp_path / "work" / "a.txt")
    answers = run(
        tmp_path,
        (READ, {"path": path}),
        (WRITE, {"path": path, "content": ""}),
        read=False,
        write=False,
    )
    assert [one["error"]["code"] for one in answers] == [-32601, -32601]


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "a\r\nb\u2028c\nd"),
        (0, 1, "a\r\n"),
        (2, 1, "b\u2028c\n"),
        (3, 9, "d"),
        (4, None, ""),
        (1, 0, ""),
    ],
)
def test_windows_are_substrings(line, limit, expected):
    assert cut("a\r\nb\u2028c\nd", line, limit) == expected


def test_a_write_that_was_approved_after_its_turn_is_dropped(tmp_path):
    path = tmp_path / "a.txt"
    folder = str(tmp_path)

    async def scene(state):
        async def ask(_question):
            files.turn_ended("s1")
            return True

        files = ClientFileSystem(state_dir=state, mode="preview", ask=ask)
        await files.session_started("s1", folder)
        with pytest.raises(RequestError) as caught:
            await files.write_text_file("s1", str(path), "late")
        await files.session_closed("s1")
        with pytest.raises(RequestError) as closed:
            await files.read_text_file("s1", str(path))
        return caught.value.code, closed.value.code

    with tempfile.TemporaryDirectory() as state:
        assert asyncio.run(scene(state)) == (-32800, -32602)
    assert not path.exists()


def test_sessions_of_the_same_folders_share_a_workspace_until_the_last_is_closed(tmp_path):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()

    async def scene():
        files = ClientFileSystem(state_dir=str(tmp_path / "state"))
        for name in ("one", "two"):
            await files.session_started(name, str(path.parent))
        await files.session_closed("one")
        await files.write_text_file("two", str(path), "kept")
        answer = await files.read_text_file("two", str(path))
        files.close()
        return answer.content

    assert asyncio.run(scene()) == "kept"


def test_an_answer_that_would_be_too_long_is_refused_and_its_lines_can_be_read(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    large, dense = work / "large.txt", work / "dense.txt"
    line = f"{'x' * 99}\n"
    large.write_text(line * 300_000)
    # Each of these characters is six in an answer.
    dense.write_text("\x01" * 5_000_000)
    whole, part, escaped, end = run(
        tmp_path,
        (READ, {"path": str(large)}),
        (READ, {"path": str(large), "line": 299_000, "limit": 2}),
        (READ, {"path": str(dense)}),
        (READ, {"path": str(large), "line": 299_999}),
    )
    for refused in (whole, escaped):
        assert refused["error"]["code"] == -32603
        assert refused["error"]["data"]["errorKind"] == "too_large"
    assert part["result"] == {"content": line * 2}
    assert end["result"] == {"content": line * 2}


def test_a_change_that_no_longer_fits_when_it_is_approved_is_refused(tmp_path):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text("one\n")

    async def ask(_question):
        path.write_text("other\n")
        return True

    (said,) = run(tmp_path, (WRITE, {"path": str(path), "content": "1\n"}), mode="preview", ask=ask)
    assert said["error"]["data"]["errorKind"] == "stale"
    assert path.read_text() == "other\n"


def test_a_file_that_moves_while_the_person_looks_is_asked_about_again(tmp_path):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text("1\n2\n3\n4\n5\n6\n")
    asked = []

    async def ask(question):
        asked.append(question)
        if len(asked) == 1:
            path.write_text("1\n2\n3\nby hand\n5\n6\n")
        return True

    wanted = {"path": str(path), "content": "1\n2\n3\n4\n5\nSIX\n"}
    (said,) = run(tmp_path, (WRITE, wanted), mode="preview", ask=ask)
    assert "error" not in said
    first, second = asked
    assert first.change != second.change
    assert "+SIX" in second.diff
    assert path.read_text() == "1\n2\n3\nby hand\n5\nSIX\n"


def test_a_turn_that_ends_between_the_answer_and_the_write_drops_it(tmp_path):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()

    async def scene():
        answered = asyncio.Event()

        async def ask(_question):
            answered.set()
            return True

        files = ClientFileSystem(state_dir=str(tmp_path / "state"), mode="preview", ask=ask)
        await files.session_started("s1", str(path.parent))
        (workspace,) = files._sessions.workspaces
        writing = asyncio.ensure_future(files.write_text_file("s1", str(path), "late"))
        await answered.wait()
        async with files._locks.hold(workspace.guard.find(str(path), "list").lock_key):
            # The answer is here, and waits for its place behind this.
            for _ in range(5):
                await asyncio.sleep(0)
            files.turn_ended("s1")
        with pytest.raises(RequestError) as caught:
            await writing
        waiting = workspace.pending()
        files.close()
        return caught.value.code, waiting

    assert asyncio.run(scene()) == (-32800, ())
    assert not path.exists()


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (
            ["allow_always", "allow_once", "reject_always", "reject_once"],
            ("selected", "reject_once"),
        ),
        (["allow_always", "allow_once"], ("cancelled", None)),
    ],
)
def test_without_anybody_who_can_be_asked_permission_is_refused_once(tmp_path, kinds, outcome):
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
    params = {"toolCall": {"toolCallId": "t"}, "options": options}
    (answer,) = run(tmp_path, ("session/request_permission", params))
    said = answer["result"]["outcome"]
    assert (said["outcome"], said.get("optionId")) == outcome


def test_a_session_without_an_absolute_folder_is_not_started(tmp_path):
    with pytest.raises(InvalidParamsError):
        asyncio.run(
            ClientFileSystem(state_dir=str(tmp_path)).session_started("s1", "relative/folder")
        )
