"""What passes through the proxy as it is, and what does not."""

import json

import pytest
from acp.meta import AGENT_METHODS, CLIENT_METHODS

from filepact_acp.proxy.line import GUARDED
from tests.faces.acp.proxy.rig import BOTH, Rig

FROM_AGENT = [
    b'{"jsonrpc":"2.0","id":0,"method":"terminal/create","params":{"sessionId":"s1","command":"ls"}}',
    b'{"jsonrpc": "2.0", "id": "a b", "method": "craft/drain", "params": {"deep": [1.0, 1e400]}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"new":null}}}',
    b'{"jsonrpc":"2.0","method":"_auth/status_update"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"x","params":[1,2],"more":{"\\u00e9":"\xc3\xa9"}}',
    b'{"jsonrpc":"2.0","id":77,"result":null}',
    b' {"jsonrpc":"2.0","method":"x"} \r',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"a":1,"a":1.10}}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"a":"\xff\xc3"}}}',
    b'{"jsonrpc":"2.0","id":78,"result":{"x":"\xe2"}}',
]
FROM_EDITOR = [
    b'{"jsonrpc":"2.0","id":0,"method":"session/set_model","params":{"sessionId":"s1"}}',
    b'{ "id" : "0", "jsonrpc" : "2.0", "method" : "_vendor/thing" }',
    b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}',
    b'{"jsonrpc":"2.0","id":"a b","result":{"x":1}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}',
    b"[1, 2, 3]",
    b"not json at all",
    b'\t{"jsonrpc":"2.0","method":"_vendor/crlf"}\r',
    b'{"jsonrpc":"2.0","method":"_vendor/x","params":{"a":1,"a":2},"method":"_vendor/y"}',
    b'{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s1","x":"\xff"}}',
]


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path, fs=BOTH, checked=False) as made:
        yield made


def test_what_is_not_about_files_passes_byte_for_byte_and_in_order(rig):
    rig.start()
    for line in FROM_AGENT:
        rig.agent.raw(line)
    assert [rig.editor.line() for _ in FROM_AGENT] == FROM_AGENT
    for line in FROM_EDITOR:
        rig.editor.raw(line)
    assert [rig.agent.line() for _ in FROM_EDITOR] == FROM_EDITOR


LOOKED_INTO = {"initialize", "session/new", "session/load", "session/resume", "session/fork"}
"""Requests of the editor that are not passed on as they came; of the agent all that are guarded."""


@pytest.mark.parametrize("protocol", [1, 2])
def test_every_method_of_the_newest_schema_passes_byte_for_byte(tmp_path, protocol):
    with Rig(tmp_path, fs=BOTH, protocol=protocol, checked=False) as rig:
        rig.introduce()
        rig.open()
        params = (
            b'{"sessionId":"s1","connectionId":"c","configId":"theirs","value":"x","mode":"url"}'
        )
        for number, method in enumerate(sorted({*AGENT_METHODS.values()} - LOOKED_INTO)):
            line = b'{"jsonrpc":"2.0","id":"e%d","method":"%s","params":%s}'
            rig.editor.raw(sent := line % (number, method.encode(), params))
            assert rig.agent.line() == sent
        for number, method in enumerate(sorted({*CLIENT_METHODS.values()} - GUARDED)):
            line = b'{"jsonrpc":"2.0","id":"a%d","method":"%s","params":%s}'
            rig.agent.raw(sent := line % (number, method.encode(), params))
            assert rig.editor.line() == sent


def test_a_server_behind_the_editors_own_connection_passes_with_the_session(rig):
    rig.introduce()
    over = {"type": "acp", "name": "theirs", "serverId": "m1"}
    rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": [over]})
    assert rig.agent.request("session/new")["params"]["mcpServers"][0] == over


def test_an_introduction_keeps_what_nobody_here_knows(rig):
    params = {
        "protocolVersion": 1,
        "clientInfo": {"name": "e", "version": "2"},
        "clientCapabilities": {"terminal": True, "fs": {"_meta": {"a": 1}}, "later": [1]},
        "_meta": {"b": 2},
    }
    rig.editor.send({"id": "first", "method": "initialize", "params": params, "more": 3})
    heard = rig.agent.next()
    fs = {"_meta": {"a": 1}, **BOTH}
    able = {"terminal": True, "fs": fs, "later": [1]}
    assert heard["params"] == {**params, "clientCapabilities": able}
    assert (heard["id"], heard["more"]) == ("first", 3)
    line = b'{"jsonrpc":"2.0","id":"first","result":{"protocolVersion":1,"x":[1.0]}}'
    rig.agent.raw(line)
    assert rig.editor.line() == line


def test_a_session_gets_the_tools_beside_its_own_servers(rig):
    rig.introduce()
    theirs = {"name": "theirs", "command": "/bin/theirs", "args": [], "env": []}
    for method in ("session/new", "session/load", "session/resume"):
        params = {"cwd": str(rig.work), "mcpServers": [theirs], "sessionId": "s9", "x": 1}
        rig.editor.ask(method, params)
        heard = rig.agent.request(method)["params"]
        first, ours = heard.pop("mcpServers")
        assert first == theirs
        assert ours["name"] == "filepact"
        assert heard == {"cwd": str(rig.work), "sessionId": "s9", "x": 1}


def test_tools_can_be_left_out_and_version_2_gets_them_in_its_own_form(tmp_path):
    with Rig(tmp_path, "--no-tools") as rig:
        rig.introduce()
        assert rig.open()["params"]["mcpServers"] == []
    (tmp_path / "s").unlink()
    with Rig(tmp_path, fs=BOTH, protocol=2) as rig:
        rig.introduce()
        # Later versions know no files of editors, and may refuse who announces them.
        assert rig.introduced["params"]["clientCapabilities"] == {"fs": BOTH}
        (server,) = rig.open()["params"]["mcpServers"]
        assert server["type"] == "stdio"


def test_no_second_member_of_a_name_passes(rig):
    rig.start()
    rig.agent.raw(
        b'{"jsonrpc":"2.0","method":"fs/write_text_file","id":5,"method":"session/update",'
        b'"params":{"sessionId":"s1","path":"/etc/x","content":""}}'
    )
    heard = rig.editor.line()
    assert b"fs/write_text_file" not in heard
    assert json.loads(heard)["method"] == "session/update"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"x","params":{"a":1,"a":2}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"_meta":{"path":1,"path":2,"b":3}}}',
        b'{"jsonrpc":"2.0","id":9,"result":{"sessionId":"s1","sessionId":"s2"}}',
        (
            b'{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s1",'
            b'"toolCall":{"toolCallId":"1","kind":"read","kind":"execute"},"options":[]}}'
        ),
    ],
)
def test_where_the_proxy_looks_itself_only_one_of_two_members_passes(rig, line):
    rig.start()
    rig.agent.raw(line)
    heard = rig.editor.line()
    assert heard != line
    assert not {"a", "path", "sessionId", "kind"} & set(_doubled(heard))


def _doubled(line):
    """The names that an object in a line has twice."""
    found = []

    def members(pairs):
        names = [name for name, _ in pairs]
        found.extend({name for name in names if names.count(name) > 1})
        return dict(pairs)

    json.loads(line, object_pairs_hook=members)
    return found


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'[{"jsonrpc":"2.0","id":5,"method":"fs/write_text_file","params":{}}]', -32600),
        (b'{"jsonrpc":"2.0","id":"filepact-1","method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{}', -32700),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"x","params":'
            + b"[" * 200_000
            + b"]" * 200_000
            + b"}",
            -32700,
        ),
    ],
)
def test_ways_around_are_answered_with_an_error_and_do_not_pass(rig, line, code):
    rig.start()
    rig.agent.raw(line)
    assert rig.agent.next()["error"]["code"] == code
    assert rig.editor.quiet


def test_a_request_about_files_that_is_no_unicode_is_answered_and_writes_nothing(tmp_path):
    with Rig(tmp_path, checked=False) as rig:
        rig.start()
        path = str(rig.work / "x.txt").encode()
        wrong = ((path, b"a\xffb", "bad_text"), (path + b"\xff", b"ab", "path_blocked"))
        for named, text, kind in wrong:
            rig.agent.raw(
                b'{"jsonrpc":"2.0","id":5,"method":"fs/write_text_file","params":'
                b'{"sessionId":"s1","path":"%s","content":"%s"}}' % (named, text)
            )
            assert rig.agent.next()["error"]["data"]["errorKind"] == kind
        assert list(rig.work.glob("x*")) == []


def test_a_notification_does_not_write_and_a_stray_word_does_not_pass(rig):
    rig.start()
    params = {"sessionId": "s1", "path": str(rig.work / "x"), "content": "x"}
    rig.agent.send({"method": "fs/write_text_file", "params": params})
    rig.agent.raw(b"npm warn something")
    rig.agent.raw(FROM_AGENT[0])
    assert rig.editor.line() == FROM_AGENT[0]
    assert not (rig.work / "x").exists()


def test_what_would_replace_parameters_is_taken_out_of_what_passes(rig):
    rig.start()
    meta = {"command": "rm", "session_id": "s2", "kept": 1}
    rig.agent.ask("terminal/create", {"sessionId": "s1", "command": "ls", "_meta": meta})
    assert rig.editor.next()["params"]["_meta"] == {"kept": 1}
    overriding = {"path": "/etc/passwd", "line": 1}
    wanted = rig.begin_read("a.txt", _meta=overriding)
    asked = rig.shows("typed")
    assert asked["params"] == {"sessionId": "s1", "path": str(rig.work / "a.txt")}
    assert rig.agent.answer_to(wanted)["result"] == {"content": "typed"}


def test_a_long_line_passes_and_one_that_is_too_long_does_not(rig):
    rig.start()
    long = b'{"jsonrpc":"2.0","method":"session/update","params":"%s"}' % (b"x" * 3_000_000)
    for _ in range(3):
        rig.agent.raw(long)
    assert [rig.editor.line() for _ in range(3)] == [long] * 3
    for _ in range(66):
        rig.agent._write(b"x" * 1_048_576)
    rig.agent.raw(b"")
    assert rig.agent.next()["error"]["code"] == -32600
    rig.agent.raw(FROM_AGENT[0])
    assert rig.editor.line() == FROM_AGENT[0]


def test_a_session_outside_of_the_named_folders_is_refused(tmp_path):
    (tmp_path / "work" / "sub").mkdir(parents=True)
    with Rig(tmp_path, "--root", str(tmp_path / "work" / "sub")) as rig:
        rig.introduce()
        wanted = rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": []})
        error = rig.editor.answer_to(wanted)["error"]
        assert error["code"] == -32602
        assert str(rig.work / "sub") in error["message"]
        assert rig.agent.quiet
        rig.open(cwd=rig.work / "sub")


@pytest.mark.parametrize(("root", "cwd"), [("var/sub", "link/sub/x"), ("link/sub", "var/sub/x")])
def test_a_session_is_inside_a_named_folder_by_whichever_name(tmp_path, root, cwd):
    (tmp_path / "var" / "sub" / "x").mkdir(parents=True)
    (tmp_path / "link").symlink_to("var")
    (tmp_path / "var" / "sub" / "out").symlink_to(tmp_path)
    with Rig(tmp_path, "--root", str(tmp_path / root), fs=BOTH) as rig:
        rig.introduce()
        wanted = rig.editor.ask(
            "session/new", {"cwd": str(tmp_path / "link/sub/out"), "mcpServers": []}
        )
        assert rig.editor.answer_to(wanted)["error"]["code"] == -32602
        rig.open(cwd=tmp_path / cwd)


def test_a_session_in_a_folder_that_cannot_be_guarded_is_refused(tmp_path):
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / ".filepact.toml").write_text("nonsense = 1\n")
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.introduce()
        for folder, why in (
            (tmp_path, "state folder"),
            (tmp_path / "none", "No such file"),
            (wrong, "nonsense"),
        ):
            wanted = rig.editor.ask("session/new", {"cwd": str(folder), "mcpServers": []})
            error = rig.editor.answer_to(wanted)["error"]
            assert error["code"] == -32602
            assert why in error["message"]
        assert rig.agent.quiet
        rig.open()
