"""What editors send, as it was recorded, is what the published schema allows, and works behind the proxy.

| editor | where its lines are from |
| --- | --- |
| Zed 1.20.2 | a trace of a session that somebody has published, and Zed's source: ids are texts, capabilities of several kinds |
| JetBrains' | reports about their client in Kotlin: every message has a member `type` that the protocol does not know |
| CodeCompanion, avante, acp.el | recorded here, by their own code (`tests/editors`) |
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from filepact.values import dataclass
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.acp.schema import check

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recorded:
    """How an editor introduces itself.

    Attributes:
        params: Of `initialize`.
        ids: Of its requests.
        more: A member of every message beside the protocol's, by what that is.
        saved: Its answer to a file that it was given.
    """

    params: dict[str, Any]
    ids: tuple[Any, ...] = (1, 2, 3)
    more: tuple[tuple[str, str], ...] = ()
    saved: Any = None


def _able(**more: Any) -> dict[str, Any]:
    return {"protocolVersion": 1, "clientCapabilities": {"fs": BOTH, **more}}


ZED: Final = {
    "terminal": True,
    "session": {"configOptions": {"boolean": {}}},
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}
EDITORS: Final = {
    "Zed": Recorded(
        {**_able(**ZED), "clientInfo": {"name": "zed", "title": "Zed", "version": "1.20.2"}},
        tuple(f"9833c79c-89a1-4d9a-84e1-17af69e1b54{number}" for number in range(3)),
        saved={},
    ),
    "JetBrains": Recorded(
        {**_able(terminal=True), "clientInfo": {"name": "JetBrains Rider", "version": "2026.2"}},
        more=(
            ("request", "com.agentclientprotocol.rpc.JsonRpcRequest"),
            ("answer", "com.agentclientprotocol.rpc.JsonRpcResponse"),
        ),
        saved={},
    ),
    "CodeCompanion": Recorded(
        {**_able(), "clientInfo": {"name": "CodeCompanion.nvim", "version": "1.0.0"}}, (2, 4, 5)
    ),
    "avante": Recorded(_able()),
    "acp.el": Recorded(_able()),
}


@pytest.mark.parametrize("name", EDITORS)
def test_what_an_editor_sends_is_allowed_and_works(tmp_path: Path, name: str) -> None:
    editor = EDITORS[name]
    more = dict(editor.more)
    with Rig(tmp_path, checked=False) as rig:
        file = rig.work / "a.txt"
        file.write_text("one\ntwo\n")

        def send(message: dict[str, Any], kind: str, asked: str = "") -> None:
            check({"jsonrpc": "2.0", **message}, "client", asked)
            extra = {"type": more[kind]} if more else {}
            rig.editor.raw(json.dumps({**extra, "jsonrpc": "2.0", **message}).encode())

        def ask(number: int, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
            send({"id": editor.ids[number], "method": method, "params": params}, "request")
            heard = rig.agent.request(method)
            check({key: one for key, one in heard.items() if key != "type"}, "client")
            assert heard["id"] == editor.ids[number]
            rig.agent.answer(heard, result)
            assert rig.editor.answer_to(editor.ids[number])["result"].items() >= result.items()

        def answer(method: str, result: Any) -> dict[str, Any]:
            request = rig.editor.request(method)
            check(request, "agent")
            send({"id": request["id"], "result": result}, "answer", method)
            params: dict[str, Any] = request["params"]
            return params

        agent = {"name": "far", "version": "1"}
        ask(0, "initialize", editor.params, {"protocolVersion": 1, "agentInfo": agent})
        ask(1, "session/new", {"cwd": str(rig.work), "mcpServers": []}, {"sessionId": "s1"})
        prompt = {"sessionId": "s1", "prompt": [{"type": "text", "text": "go"}]}
        send({"id": editor.ids[2], "method": "session/prompt", "params": prompt}, "request")
        asked = rig.agent.request("session/prompt")
        wanted = rig.begin_read("a.txt")
        answer("fs/read_text_file", {"content": "one\nTWO\n"})
        assert rig.agent.answer_to(wanted)["result"] == {"content": "one\nTWO\n"}
        wanted = rig.begin_write("a.txt", "1\nTWO\n")
        for _ in range(3):  # before the change, after it, and together with the new text
            answer("fs/read_text_file", {"content": "one\nTWO\n"})
        given = rig.editor.request("fs/write_text_file")
        assert given["params"]["content"] == "1\nTWO\n"
        extra = {"type": more["answer"]} if more else {}
        said = {**extra, "jsonrpc": "2.0", "id": given["id"], "result": editor.saved}
        rig.editor.raw(json.dumps(said).encode())
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert file.read_text() == "1\nTWO\n"
        rig.agent.answer(asked, {"stopReason": "end_turn"})
        assert rig.editor.answer_to(editor.ids[2])["result"] == {"stopReason": "end_turn"}
        rig.command("undo", "--unattended")
        assert file.read_text() == "one\nTWO\n"
