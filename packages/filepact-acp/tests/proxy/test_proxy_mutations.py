"""What mutated messages do to the proxy: nothing.  `scripts/deep messages` sends others."""

import json

import pytest

from tests.faces.acp.proxy.mutations import run
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.hostile.sweeps import often


@pytest.mark.slow
@pytest.mark.parametrize("serves", [False, True], ids=["disk", "editor"])
@pytest.mark.parametrize("sender", ["agent", "editor"])
def test_mutated_messages_break_nothing_and_right_ones_are_answered(tmp_path, sender, serves):
    tries = often(2_500, 5_000)
    report = run(tmp_path, sender, tries, seed=7, serves=serves)
    assert report.wrong == []
    assert report.tries == tries
    assert report.passed > 50
    assert report.answered > 20


def test_a_request_is_answered_or_passed_on_however_deep_it_is(tmp_path):
    # Somewhere here lies a depth that can be read and not be written again.
    depths = range(880, 1_000, 8)
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        rig.introduce()
        for depth in depths:
            deep = b"[" * depth + b"]" * depth
            rig.editor.raw(
                b'{"jsonrpc":"2.0","id":"%d","method":"session/new","params":{"cwd":"%s","x":%s}}'
                % (depth, str(rig.work).encode(), deep)
            )
        rig.editor.raw(b'{"jsonrpc":"2.0","id":"last","method":"_vendor/last"}')
        heard = []
        while not heard or b'"last"' not in heard[-1]:
            heard.append(rig.agent.line())
        rig.agent.raw(b'{"jsonrpc":"2.0","id":"last","result":{}}')
        while b'"last"' not in (line := rig.editor.line()):
            heard.append(line)
        for depth in depths:
            assert len([line for line in heard if b'"%d"' % depth in line]) == 1
        assert b"Traceback" not in rig.said


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    "folders",
    [
        {"cwd": "/\0"},
        {"cwd": "/\ud800"},
        {"cwd": "../work"},
        {"cwd": ""},
        {"cwd": None},
        {},
        {"cwd": "/", "additionalDirectories": ["work"]},
    ],
)
@pytest.mark.parametrize("method", ["session/new", "session/load"])
def test_a_session_in_a_folder_of_no_possible_name_is_refused(tmp_path, folders, method):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        rig.introduce()
        wanted = rig.editor.ask(method, {**folders, "sessionId": "s9", "mcpServers": []})
        assert rig.editor.answer_to(wanted)["error"]["code"] == -32602
        rig.open()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "params", [{}, {"contentChanges": [{"text": "x", "range": {"start": {}}}]}]
)
def test_what_an_editor_says_of_a_file_passes_also_when_it_lacks_something(tmp_path, params):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        rig.start()
        told = {"sessionId": "s1", "uri": f"file://{rig.work}/a.txt", "version": 1, **params}
        for method in ("document/didOpen", "document/didChange"):
            rig.editor.send({"method": method, "params": told})
            assert rig.agent.request(method)["params"] == told
        assert b"Traceback" not in rig.said


def test_an_error_whose_message_is_no_text_is_an_error(tmp_path):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        rig.start()
        (rig.work / "a.txt").write_text("disk\n")
        wanted = rig.begin_read("a.txt")
        question = json.dumps(rig.editor.request("fs/read_text_file")["id"]).encode()
        deep = b"[" * 970 + b"]" * 970
        rig.editor.raw(b'{"jsonrpc":"2.0","id":%s,"error":{"message":%s}}' % (question, deep))
        error = rig.agent.answer_to(wanted)["error"]
        assert error["data"]["errorKind"] == "editor_refused"
