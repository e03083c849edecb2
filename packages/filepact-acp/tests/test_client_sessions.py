"""Whose rules count, in which order requests are served, and what becomes of early and late ones."""

import asyncio
import gc
import os
import threading

import pytest
from acp import RequestError, text_block

from filepact.acp import ClientFileSystem, Settings, read_settings, state_folder
from filepact.config import layers
from filepact.errors import InvalidParamsError
from filepact_acp import client as client_module
from filepact_acp import files as files_module
from filepact_acp.cancellation import KeyedLock
from tests.faces.acp.talking import READ, WRITE, run, talk
from tests.hostile.sweeps import often

DENY = '[[deny]]\npaths = ["plans/**"]\nactions = ["read", "write"]\nwhy = "not yet"\n'


def files_in(tmp_path, **options):
    return ClientFileSystem(state_dir=str(tmp_path / "state"), **options)


# -- whose rules ------------------------------------------------------------------------


def test_the_persons_settings_count_where_none_are_given(tmp_path):
    folder = tmp_path / "settings" / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text(DENY)
    plan = tmp_path / "work" / "plans" / "a.txt"
    plan.parent.mkdir(parents=True)
    plan.write_text("x")
    (refused,) = run(tmp_path, (READ, {"path": str(plan)}))
    assert refused["error"]["data"]["errorKind"] == "protected"
    (shown,) = run(tmp_path, (READ, {"path": str(plan)}), settings=Settings())
    assert shown["result"] == {"content": "x"}


def test_other_settings_can_be_named(tmp_path):
    named = tmp_path / "other.toml"
    named.write_text(f'{DENY}\n[encodings]\n"*.txt" = "cp1252"\n')
    (tmp_path / "work" / "plans").mkdir(parents=True)
    text = tmp_path / "work" / "a.txt"
    text.write_bytes("caf\xe9 \u20ac\n".encode("cp1252"))
    plan = tmp_path / "work" / "plans" / "a.txt"
    shown, refused = run(
        tmp_path,
        (READ, {"path": str(text)}),
        (WRITE, {"path": str(plan), "content": "x"}),
        settings=read_settings(str(named)),
    )
    assert shown["result"] == {"content": "caf\xe9 \u20ac\n"}
    assert refused["error"]["data"]["errorKind"] == "protected"
    assert not plan.exists()


def test_wrong_settings_stop_a_client_before_it_starts(tmp_path):
    folder = tmp_path / "settings" / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text("[[deny]]\nwhat = 1\n")
    with pytest.raises(InvalidParamsError) as caught:
        files_in(tmp_path)
    assert "filepact.toml" in caught.value.message


def test_the_own_state_folder_is_where_the_command_line_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("FILEPACT_STATE_DIR", str(tmp_path / "mine"))
    assert state_folder() == str(tmp_path / "mine")


# -- early and late ---------------------------------------------------------------------


def test_requests_that_come_before_the_session_is_known_are_served_once_it_is(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("be kind\n")
    done = talk(
        tmp_path,
        files_in(tmp_path),
        around=[
            [
                [READ, {"path": str(work / "AGENTS.md")}],
                [WRITE, {"path": str(work / "a.txt"), "content": "early\n"}],
            ]
        ],
    )
    assert [one["result"] for one in done["answers"]] == [{"content": "be kind\n"}, {}]
    assert (work / "a.txt").read_text() == "early\n"


def test_an_agent_that_reads_before_it_answers_the_sessions_start_gets_its_folders(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(client_module, "_PATIENCE", 0.3)
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("be kind\n")
    path = str(work / "AGENTS.md")
    done = talk(
        tmp_path,
        files_in(tmp_path),
        before=[
            [READ, {"path": path}],
            [READ, {"path": path}],
            [READ, {"path": "/etc/hostname"}],
            # Nobody knows yet that it is this session's, and what is written stays.
            [WRITE, {"path": str(work / "a.txt"), "content": "early\n"}],
            [WRITE, {"path": path, "content": "", "sessionId": "\0early s1"}],
        ],
        prompt=[[READ, {"path": path}]],
    )
    *read, outside, written, posing, last = done["answers"]
    assert [one["result"] for one in (*read, last)] == [{"content": "be kind\n"}] * 3
    kinds = [one["error"]["data"]["errorKind"] for one in (outside, written, posing)]
    assert kinds == ["path_outside_workspace", "unknown_session", "unknown_session"]
    assert not (work / "a.txt").exists()


def test_of_two_sessions_that_start_at_once_nobody_knows_whose_folders_are_meant(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(client_module, "_PATIENCE", 0.3)
    path = tmp_path / "one" / "a.txt"
    path.parent.mkdir()
    path.write_text("x")

    async def scene():
        files = files_in(tmp_path)
        async with files.starting(("", (str(path.parent),))):
            early = await files.read_text_file("s9", str(path))
            async with files.starting(("s2", (str(tmp_path),))):
                # The second has its id already, so the first is meant.
                again = await files.read_text_file("s9", str(path))
                with pytest.raises(RequestError) as caught:
                    await files.read_text_file("s2", str(path))
        assert files._sessions.workspaces == ()
        with pytest.raises(RequestError):
            await files.read_text_file("s9", str(path))
        files.close()
        return early.content, again.content, caught.value.code

    assert asyncio.run(scene()) == ("x", "x", -32602)


@pytest.mark.parametrize("when", ["before", "turn", "after"])
def test_a_request_that_is_cancelled_is_answered_with_what_became_of_it(
    tmp_path, monkeypatch, when
):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text("old")
    begun, go_on = threading.Event(), threading.Event()
    write = files_module.write

    def slow(*arguments, **options):
        done = write(*arguments, **options) if when == "after" else None
        begun.set()
        assert go_on.wait(30)
        return done or write(*arguments, **options)

    monkeypatch.setattr(files_module, "write", slow)

    async def scene():
        files = files_in(tmp_path)
        await files.session_started("s1", str(path.parent))
        writing = asyncio.ensure_future(files.write_text_file("s1", str(path), "new"))
        await asyncio.to_thread(begun.wait, 30)
        closing = asyncio.ensure_future(files.session_closed("s1"))
        if when != "turn":
            writing.cancel()
        await asyncio.sleep(0)
        go_on.set()
        (answer,) = await asyncio.gather(writing, return_exceptions=True)
        await closing
        files.close()
        return getattr(answer, "code", None)

    assert asyncio.run(scene()) == (None if when == "after" else -32800)
    assert path.read_text() == ("new" if when == "after" else "old")


def test_a_request_is_cancelled_by_its_number(tmp_path):
    path = str(tmp_path / "work" / "a.txt")
    steps = [[WRITE, {"path": path, "content": "new"}]]
    steps += [["notify", "$/cancel_request", params] for params in ({"requestId": 0}, {}, None)]
    done = talk(tmp_path, files_in(tmp_path), hold=True, prompt=steps)
    assert done["answers"][0].get("error", {"code": -32800})["code"] == -32800


def test_a_request_that_is_cancelled_while_it_waits_for_a_person_is_answered(tmp_path):
    path = tmp_path / "work" / "a.txt"
    asked = asyncio.Event()

    async def ask(_question):
        asked.set()
        await asyncio.Event().wait()

    done = talk(
        tmp_path,
        files_in(tmp_path, mode="preview", ask=ask),
        hold=True,
        prompt=[
            [WRITE, {"path": str(path), "content": "new"}],
            ["notify", "$/cancel_request", {"requestId": 0}],
        ],
    )
    assert done["answers"][0]["error"]["code"] == -32800
    assert not path.exists()


def test_a_request_that_is_cancelled_while_its_change_is_stored_asks_nobody(tmp_path, monkeypatch):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    stored, go_on = threading.Event(), threading.Event()
    write = files_module.write

    def slow(*arguments, **options):
        receipt = write(*arguments, **options)
        stored.set()
        assert go_on.wait(30)
        return receipt

    monkeypatch.setattr(files_module, "write", slow)

    async def ask(_question):
        raise AssertionError

    async def scene():
        files = files_in(tmp_path, mode="preview", ask=ask)
        await files.session_started("s1", str(path.parent))
        (workspace,) = files._sessions.workspaces
        writing = asyncio.ensure_future(files.write_text_file("s1", str(path), "new"))
        await asyncio.to_thread(stored.wait, 30)
        writing.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(RequestError) as caught:
            await writing
        waiting = workspace.pending()
        files.close()
        return caught.value.code, waiting

    assert asyncio.run(scene()) == (-32800, ())


@pytest.mark.parametrize("end", ["cancel", "close", "again", "request"])
def test_nobody_is_asked_any_more_when_the_turn_or_the_session_has_ended(tmp_path, end):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    gone = []

    async def scene():
        asked = asyncio.Event()

        async def ask(_question):
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                gone.append(True)

        files = files_in(tmp_path, mode="preview", ask=ask)
        await files.session_started("s1", str(path.parent))
        await files.session_started("s2", str(path.parent))
        (workspace,) = files._sessions.workspaces
        writing = asyncio.ensure_future(files.write_text_file("s1", str(path), "new"))
        await asked.wait()
        if end == "cancel":
            files.turn_ended("s1")
        elif end == "close":
            await files.session_closed("s1")
        elif end == "again":
            await files.session_started("s1", str(path.parent))
        else:
            writing.cancel()
        (answer,) = await asyncio.gather(writing, return_exceptions=True)
        waiting = workspace.pending()
        files.close()
        return getattr(answer, "code", "cancelled"), waiting

    code, waiting = asyncio.run(scene())
    assert code == ("cancelled" if end == "request" else -32800)
    assert waiting == ()
    assert gone == [True]
    assert not path.exists()


def test_a_person_who_cannot_be_asked_leaves_the_change_waiting(tmp_path):
    path = tmp_path / "work" / "a.txt"

    async def ask(_question):
        raise RuntimeError("/secret/place")

    steps = (WRITE, {"path": str(path), "content": "new"})
    (answer,) = run(tmp_path, steps, mode="preview", ask=ask)
    assert answer["error"]["data"]["errorKind"] == "approval_required"
    assert "/secret" not in str(answer)


# -- sessions on the wire ---------------------------------------------------------------


def test_the_folders_follow_what_the_client_sends(tmp_path):
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    kinds = []

    async def play(agent, session_id):
        async def look():
            done = await agent.prompt(prompt=[text_block("go")], session_id="s1")
            (answer,) = done.field_meta["answers"][-1:]
            kinds.append(answer.get("error", {}).get("data", {}).get("errorKind", "shown"))
            return done

        await look()
        await agent.load_session(cwd=str(other), session_id="s1", mcp_servers=[])
        await look()
        await agent.resume_session(
            cwd=str(other), session_id="s1", additional_directories=[str(work)]
        )
        await look()
        with pytest.raises(RequestError):
            await agent.load_session(cwd="/nowhere", session_id="refused", mcp_servers=[])
        await look()
        await agent.close_session(session_id="s1")
        with pytest.raises(RequestError):
            await agent.prompt(prompt=[text_block("go")], session_id="refused")
        return await look()

    talk(
        tmp_path,
        files_in(tmp_path),
        play=play,
        refuse="refused",
        prompt=[[READ, {"path": str(work / "a.txt")}]],
    )
    assert kinds == ["shown", "path_outside_workspace", "shown", "shown", "unknown_session"]


def test_a_write_that_is_held_is_refused_when_the_client_cancels_the_turn(tmp_path):
    path = tmp_path / "work" / "a.txt"
    asked = asyncio.Event()

    async def ask(_question):
        asked.set()
        await asyncio.Event().wait()

    async def play(agent, session_id):
        prompt = agent.prompt(prompt=[text_block("go")], session_id=session_id)
        asking = asyncio.ensure_future(prompt)
        await asked.wait()
        await agent.cancel(session_id=session_id)
        return await asking

    done = talk(
        tmp_path,
        files_in(tmp_path, mode="preview", ask=ask),
        play=play,
        hold=True,
        prompt=[
            [WRITE, {"path": str(path), "content": "new"}],
            # After the cancellation, and before the turn's end.
            ["await", "session/cancel"],
            [WRITE, {"path": str(path), "content": "late"}],
            [READ, {"path": str(path)}],
        ],
    )
    assert [one["error"]["code"] for one in done["answers"]] == [-32800, -32800, -32002]
    assert not path.exists()


def test_after_a_turn_that_was_cancelled_the_next_one_writes_again(tmp_path):
    path = tmp_path / "a.txt"

    async def scene():
        files = files_in(tmp_path.parent / f"{tmp_path.name} state")
        await files.session_started("s1", str(tmp_path))
        for end in (files.turn_cancelled, files.turn_ended):
            end("s1")
            with pytest.raises(RequestError) as caught:
                await files.write_text_file("s1", str(path), "late")
            assert caught.value.code == -32800
        files.turn_started("s1")
        await files.write_text_file("s1", str(path), "new")
        for call in (files.turn_started, files.turn_cancelled, files.turn_ended):
            call("nobody")
        files.close()

    asyncio.run(scene())
    assert path.read_text() == "new"


def test_lines_that_are_no_messages_do_not_end_the_connection(tmp_path):
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text("x")
    lines = [
        *([], [1], None, 7, "text", True),
        {"jsonrpc": "2.0", "id": [], "result": {}},
        {"jsonrpc": "2.0", "id": {}, "method": READ, "params": {}},
        {"jsonrpc": "2.0", "id": 99, "error": "no"},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": []}},
        {"jsonrpc": "2.0", "id": "y", "method": "terminal/create", "params": {}},
        {"jsonrpc": "2.0", "id": "z", "method": 7},
        {"jsonrpc": "2.0", "method": [READ]},
        {"jsonrpc": "2.0", "id": 1.5, "method": READ, "params": {}},
        {"jsonrpc": "2.0", "id": True, "method": READ, "params": {}},
    ]
    steps = [["raw", line] for line in lines]
    done = talk(tmp_path, files_in(tmp_path), prompt=[*steps, [READ, {"path": str(path)}]])
    assert done["answers"][-1]["result"] == {"content": "x"}
    codes = [
        message["error"]["code"]
        for side, message in done["passed"]
        if side == "client" and "error" in message
    ]
    assert sorted(codes) == [-32601] + [-32600] * 12


def test_what_was_sent_wrongly_and_texts_of_exceptions_do_not_come_back(tmp_path, monkeypatch):
    def broken(*_arguments):
        raise RuntimeError("/secret/place")

    monkeypatch.setattr(files_module, "excerpt", broken)
    path = str(tmp_path / "work" / "a.txt")
    missing, wrong, broke = run(
        tmp_path,
        (WRITE, {"content": "K3Y"}),
        (WRITE, {"path": path, "content": ["K3Y"]}),
        (READ, {"path": path}),
    )
    errors = [one["error"] for one in (missing, wrong, broke)]
    assert [(error["code"], error["data"]) for error in errors] == [
        (-32602, {"errorKind": "invalid_params"}),
        (-32602, {"errorKind": "invalid_params"}),
        (-32603, {"errorKind": "internal"}),
    ]
    assert "path" in missing["error"]["message"]
    assert "K3Y" not in str(errors)
    assert "/secret" not in str(errors)


def test_notices_that_the_protocol_does_not_have_are_ignored(tmp_path, caplog):
    steps = [["notify", method, {"x": 1}] for method in ("vendor/notice", "_vendor/notice")]
    path = str(tmp_path / "work" / "a.txt")
    done = talk(tmp_path, files_in(tmp_path), prompt=[*steps, [READ, {"path": path}]])
    assert done["answers"][0]["error"]["code"] == -32002
    assert caplog.text == ""


def test_an_answer_that_is_none_is_a_failure(tmp_path):
    async def play(agent, session_id):
        with pytest.raises(RequestError):
            await agent.prompt(prompt=[text_block("go")], session_id="wrong")

    talk(tmp_path, files_in(tmp_path), play=play, wrong="wrong")


def test_a_client_that_hangs_up_while_a_person_is_asked_leaves_nothing_behind(tmp_path):
    path = tmp_path / "work" / "a.txt"
    asked, gone = asyncio.Event(), []

    async def ask(_question):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.append(True)

    async def play(agent, session_id):
        prompt = agent.prompt(prompt=[text_block("go")], session_id=session_id)
        asking = asyncio.ensure_future(prompt)
        await asked.wait()
        await agent.close()
        await asyncio.gather(asking, return_exceptions=True)

    files = files_in(tmp_path, mode="preview", ask=ask)
    talk(tmp_path, files, play=play, prompt=[[WRITE, {"path": str(path), "content": "new"}]])
    assert gone == [True]
    assert not path.exists()


# -- order ------------------------------------------------------------------------------


def test_a_client_that_hangs_up_while_a_file_is_read_does_not_wait_to_answer(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    real, reading, hung_up = files_module.excerpt, threading.Event(), threading.Event()

    def read_late(*asked):
        reading.set()
        hung_up.wait()
        return real(*asked)

    monkeypatch.setattr(files_module, "excerpt", read_late)
    tasks = []

    async def watch():
        while not any(one.cancelling() for one in asyncio.all_tasks()):  # noqa: ASYNC110 - the package's tasks
            await asyncio.sleep(0.01)
        hung_up.set()

    async def leave(agent, session_id):
        prompt = agent.prompt(prompt=[text_block("go")], session_id=session_id)
        tasks.append(asyncio.ensure_future(asyncio.wait_for(prompt, None)))
        await asyncio.to_thread(reading.wait)
        tasks.append(asyncio.create_task(watch()))

    script = [(READ, {"path": str(tmp_path / "work" / "a.txt")})]
    assert talk(tmp_path, files_in(tmp_path), play=leave, prompt=script) is None
    prompt, watcher = tasks
    assert isinstance(prompt.exception(), ConnectionError)
    assert watcher.done()


def test_writes_of_one_file_are_done_in_the_order_in_which_they_were_sent(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("0\n")
    (work / "b.txt").symlink_to("a.txt")
    paths = [str(work / name) for name in ("a.txt", "b.txt", "a.txt", "b.txt", "a.txt")]
    batch = [[WRITE, {"path": path, "content": f"{n}\n"}] for n, path in enumerate(paths, 1)]
    done = talk(tmp_path, files_in(tmp_path), prompt=[batch, [READ, {"path": paths[1]}]])
    *written, read = done["answers"]
    assert [one["result"] for one in written] == [{}] * 5
    assert done["order"] == [0, 1, 2, 3, 4, 5]
    assert read["result"] == {"content": "5\n"}


def test_one_file_does_not_wait_for_another(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    both = threading.Barrier(2, timeout=30)
    write = files_module.write

    def meeting(*arguments, **options):
        both.wait()
        return write(*arguments, **options)

    monkeypatch.setattr(files_module, "write", meeting)
    batch = [[WRITE, {"path": str(work / name), "content": name}] for name in ("a", "b")]
    done = talk(tmp_path, files_in(tmp_path), prompt=[batch])
    assert [one["result"] for one in done["answers"]] == [{}, {}]


def test_an_empty_queue_is_forgotten():
    async def scene():
        queues, order = KeyedLock(), []

        async def pass_through(number):
            async with queues.hold("key"):
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*map(pass_through, range(5)))
        return order, len(queues)

    assert asyncio.run(scene()) == ([0, 1, 2, 3, 4], 0)


# -- many -------------------------------------------------------------------------------


def held():
    """Open descriptors, and objects of ours and of what we use."""
    # Decisions are remembered up to a bound, whichever session asked.
    layers._compiled.cache_clear()
    gc.collect()
    ours = ("filepact", "apsw", "asyncio", "_asyncio", "acp")
    modules = (type(one).__module__ for one in gc.get_objects())
    count = sum(name.partition(".")[0] in ours for name in modules if isinstance(name, str))
    return len(os.listdir("/proc/self/fd")), count


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_many_sessions_leave_nothing_behind(tmp_path):
    folders, last = [], often(120, 1_000)
    for number in range(last):
        folder = tmp_path / f"f{number}"
        folder.mkdir()
        (folder / "a.txt").write_text("old\n")
        folders.append(folder)

    async def one(files, number):
        path = str(folders[number] / "a.txt")
        name = f"s{number}"
        await files.session_started(name, str(folders[number]), [str(tmp_path / "shared")])
        files.buffers.open(path, "old\n", 1)
        await files.read_text_file(name, path)
        await files.write_text_file(name, path, f"{number}\n")
        files.buffers.close(path)
        files.buffers.take()
        await files.session_closed(name)

    async def scene():
        files = files_in(tmp_path)
        for number in range(60):
            await one(files, number)
        before = held()
        for start in range(60, last, 20):
            await asyncio.gather(*(one(files, number) for number in range(start, start + 20)))
        after = held()
        assert len(files._locks) == 0
        assert files._sessions.workspaces == ()
        files.close()
        return before, after

    (tmp_path / "shared").mkdir()
    before, after = asyncio.run(scene())
    assert after[0] <= before[0]
    assert after[1] - before[1] < 100
    assert (folders[-1] / "a.txt").read_text() == f"{last - 1}\n"
