"""What single agents need, each by the name that it gives itself."""

import asyncio

import pytest

from filepact.acp import ClientFileSystem
from filepact_acp.agents import QUIRKS, AgentProfile, quirks_of
from tests.faces.acp.talking import READ, WRITE, run


def test_an_agent_is_known_with_and_without_the_scope_of_its_package():
    assert quirks_of("@zed-industries/claude-code-acp") is QUIRKS["claude-code-acp"]
    assert quirks_of("Gemini-CLI") is QUIRKS["gemini-cli"]
    assert quirks_of("somebody") == quirks_of("") == AgentProfile()


# -- gemini-cli -------------------------------------------------------------------------


def test_a_missing_file_is_empty_for_gemini_inside_its_folders_alone(tmp_path, work):
    (work / "link").symlink_to(tmp_path / "nothing")
    script = [(READ, {"path": str(path)}) for path in (work / "new.txt", tmp_path / "new.txt")]
    inside, outside, link = run(
        tmp_path, *script, (READ, {"path": str(work / "link")}), name="gemini-cli"
    )
    assert inside["result"] == {"content": ""}
    assert outside["error"]["data"]["errorKind"] == "path_outside_workspace"
    assert link["error"]["data"]["errorKind"] == "symlink_escape"
    missing, *_ = run(tmp_path, *script)
    assert missing["error"]["code"] == -32002


# -- qwen-code --------------------------------------------------------------------------


def test_qwen_pages_by_the_number_of_lines_of_what_is_read(tmp_path, work):
    path = work / "a.txt"
    path.write_text("".join(f"{number}\n" for number in range(1500)))
    params = {"path": str(path), "limit": 1000}
    first, second = run(
        tmp_path, (READ, params), (READ, {**params, "line": 1001}), name="qwen-code"
    )
    # As it counts itself: what line feeds divide, also when nothing follows the last one.
    for answer in (first, second):
        assert answer["result"]["_meta"] == {"originalLineCount": 1501}
    assert second["result"]["content"].startswith("1000\n")
    (plain,) = run(tmp_path, (READ, params))
    assert "_meta" not in plain["result"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_files_own_form_is_kept_whatever_qwen_says_of_it(tmp_path, work, mark):
    path = work / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    meta = {"bom": True, "encoding": "utf-8", "lineEnding": "lf"}
    read, written = run(
        tmp_path,
        (READ, {"path": str(path)}),
        (WRITE, {"path": str(path), "content": f"{mark}one\n2\n", "_meta": meta}),
        name="qwen-code",
    )
    assert read["result"]["content"] == "one\r\ntwo\r\n"
    assert written["result"] == {}
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"


@pytest.mark.parametrize(
    ("meta", "content", "data"),
    [
        ({"lineEnding": "crlf", "bom": True}, "a\nb\n", b"\xef\xbb\xbfa\r\nb\r\n"),
        ({"lineEnding": "crlf"}, "a\r\nb\n", b"a\r\nb\n"),
        ({"lineEnding": "lf", "bom": False, "encoding": "utf-8"}, "a\n", b"a\n"),
        ({"bom": True}, "\ufeffa\n", b"\xef\xbb\xbfa\n"),
        ({"bom": "yes", "lineEnding": 7}, "a\n", b"a\n"),
    ],
)
def test_a_new_file_gets_the_form_that_qwen_tells_apart(tmp_path, work, meta, content, data):
    path = work / "new.txt"
    params = {"path": str(path), "content": content, "_meta": meta}
    (answer,) = run(tmp_path, (WRITE, params), name="qwen-code")
    assert answer["result"] == {}
    assert path.read_bytes() == data


def test_qwen_is_told_in_which_refusals_it_may_look_for_itself(tmp_path, work):
    (tmp_path / "own.txt").write_text("x")
    (work / "link").symlink_to(tmp_path / "own.txt")
    outside, link = run(
        tmp_path,
        (READ, {"path": str(tmp_path / "own.txt")}),
        (READ, {"path": str(work / "link")}),
        name="qwen-code",
    )
    kinds = [one["error"]["data"]["errorKind"] for one in (outside, link)]
    assert kinds == ["path_outside_workspace", "symlink_escape"]


# -- opencode ---------------------------------------------------------------------------


def test_opencode_may_tell_what_it_has_written_already(tmp_path, work):
    path = work / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    asked = []

    async def ask(question):
        asked.append(question)
        return False

    def play(*steps, **options):
        return run(tmp_path, *steps, name="opencode", **options)

    play((READ, {"path": str(path)}))
    # It has changed the file by itself, and tells it in line ends of its own.
    path.write_bytes(b"one\r\n2\r\n")
    notice = (WRITE, {"path": str(path), "content": "one\n2\n"})
    answers = [*play(notice, notice), *play(notice, mode="preview", ask=ask)]
    assert [one["result"] for one in answers] == [{}, {}, {}]
    assert asked == []
    assert path.read_bytes() == b"one\r\n2\r\n"
    assert quirks_of("opencode").writes_itself


def test_a_notice_of_a_change_to_a_file_that_was_read_before_is_none(tmp_path, work):
    path = work / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\n")

    async def scene():
        files = ClientFileSystem(state_dir=str(tmp_path / "state"))
        files.agent_named("opencode", "1.18")
        await files.session_started("s1", str(work))
        await files.read_text_file("s1", str(path))
        path.write_bytes(b"one\r\n2\r\n")
        await files.write_text_file("s1", str(path), "one\n2\n")
        (workspace,) = files._sessions.workspaces
        done = workspace.log()
        files.close()
        return done

    assert asyncio.run(scene()) == ()
    assert path.read_bytes() == b"one\r\n2\r\n"


# -- claude-code-acp --------------------------------------------------------------------


def test_the_window_that_claude_asks_for_is_exact_and_a_write_of_all_is_not_cut_to_it(
    tmp_path, work
):
    name = "@zed-industries/claude-code-acp"
    window = {"line": 1, "limit": quirks_of(name).window}
    short, long = work / "short.txt", work / "long.txt"
    short.write_bytes(b"a\r\nb")
    lines = [f"{number}\n" for number in range(2500)]
    long.write_text("".join(lines))
    whole = "".join(["first\n", *lines[1:]])
    answers = run(
        tmp_path,
        (READ, {"path": str(short), **window}),
        (READ, {"path": str(long), **window}),
        # Its edits read the whole file before they write it.
        (READ, {"path": str(long)}),
        (WRITE, {"path": str(long), "content": whole}),
        name=name,
    )
    assert answers[0]["result"] == {"content": "a\r\nb"}
    assert answers[1]["result"] == {"content": "".join(lines[:2000])}
    assert answers[2]["result"] == {"content": "".join(lines)}
    assert answers[3]["result"] == {}
    assert long.read_text() == whole
