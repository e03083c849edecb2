"""What an agent asks to permit: told whole, judged by the rules, and written into the journal."""

import asyncio

import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse

from filepact.acp import ClientFileSystem, check_client
from filepact.app import open_workspace
from tests.faces.acp.talking import READ, WRITE, run, talk

ASK = "session/request_permission"
OPTIONS = [
    {"optionId": "allow_always", "name": "Always", "kind": "allow_always"},
    {"optionId": "allow", "name": "Yes", "kind": "allow_once"},
    {"optionId": "reject", "name": "No", "kind": "reject_once"},
]


# ruff: noqa: ARG002 - the protocol names the parameters
class Asked(ClientFileSystem):
    """Says yes to every question, and keeps them."""

    def __init__(self, **options):
        super().__init__(**options)
        self.calls = []

    async def request_permission(self, session_id, tool_call, options, **_):
        self.calls.append(tool_call)
        chosen = AllowedOutcome(outcome="selected", option_id="allow")
        return RequestPermissionResponse(outcome=chosen)


def update(**call):
    params = {"sessionId": "s1", "update": {"sessionUpdate": "tool_call", **call}}
    return ["notify", "session/update", params]


def ask(**call):
    return (ASK, {"toolCall": call, "options": OPTIONS})


def asked(tmp_path, *script, **options):
    """The client, and the answers."""
    client = Asked(state_dir=str(tmp_path / "state"), **options)
    return client, talk(tmp_path, client, prompt=script)["answers"]


def journal(tmp_path):
    with open_workspace(str(tmp_path / "work"), state_dir=str(tmp_path / "state")) as workspace:
        return [
            (one.title, one.action, one.paths, one.verdict, one.by)
            for one in reversed(workspace.asked.questions())
        ]


def test_a_question_is_put_with_all_that_was_told_of_its_call(tmp_path):
    diff = {"type": "diff", "path": str(tmp_path / "work" / "a.txt"), "newText": "new\n"}
    client, (answer,) = asked(
        tmp_path,
        update(toolCallId="t", title="Edit", kind="edit", status="pending", content=[diff]),
        update(toolCallId="t", sessionUpdate="tool_call_update", locations=[{"path": "a.txt"}]),
        update(toolCallId="other", title="Run", kind="execute"),
        ask(toolCallId="t", title="Edit a.txt", rawInput={"file_path": "a.txt"}),
    )
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "allow"}
    (call,) = client.calls
    assert (call.title, call.kind, call.locations[0].path) == ("Edit a.txt", "edit", "a.txt")
    assert (call.content[0].new_text, call.raw_input) == ("new\n", {"file_path": "a.txt"})
    assert journal(tmp_path) == [("Edit a.txt", "write", ("a.txt",), "allowed", "person")]


@pytest.mark.parametrize("told", [True, False])
def test_what_the_rules_deny_is_refused_and_nobody_is_asked(tmp_path, told):
    notes = []
    secret = {"kind": "edit", "locations": [{"path": str(tmp_path / "work" / "id_rsa")}]}
    client, (answer,) = asked(
        tmp_path,
        update(toolCallId="t", title="Edit", **(secret if told else {})),
        ask(toolCallId="t", title="Edit", **({} if told else secret)),
        on_note=notes.append,
    )
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "reject"}
    assert client.calls == []
    assert len(notes) == 1
    ((title, action, paths, verdict, by),) = journal(tmp_path)
    assert (title, action, paths, verdict) == ("Edit", "write", ("id_rsa",), "refused")
    assert by.startswith("rule ")


def test_what_a_persons_rule_allows_needs_no_second_question(tmp_path):
    folder = tmp_path / "settings" / "filepact"
    folder.mkdir(parents=True)
    rule = '[[allow]]\npaths = ["docs/**"]\nactions = ["write"]\nwhy = "mine"\nname = "docs"\n'
    (folder / "filepact.toml").write_text(f'{rule}\n[default]\nwrite = "ask"\n')
    docs = tmp_path / "work" / "docs"
    docs.mkdir(parents=True)
    (docs / "a.md").write_text("a\n")
    client, (one, other) = asked(
        tmp_path,
        ask(toolCallId="1", title="Edit", kind="edit", locations=[{"path": "docs/a.md"}]),
        ask(toolCallId="2", title="Edit", kind="edit", locations=[{"path": "src/a.md"}]),
    )
    assert one["result"]["outcome"]["optionId"] == other["result"]["outcome"]["optionId"]
    assert [call.tool_call_id for call in client.calls] == ["2"]
    assert [by for *_, by in journal(tmp_path)] == ["rule docs", "person"]


def test_a_question_of_a_client_that_asks_nobody_is_refused_and_written_down(tmp_path):
    (answer,) = run(tmp_path, ask(toolCallId="t", title="Run tests", kind="execute"))
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "reject"}
    assert [(title, verdict) for title, _, _, verdict, _ in journal(tmp_path)] == [
        ("Run tests", "refused")
    ]


def test_a_question_whose_call_was_told_wrongly_is_put_as_it_was_sent(tmp_path):
    client, (answer,) = asked(
        tmp_path,
        update(toolCallId="t", title="Edit", kind="dance", locations="everywhere"),
        update(toolCallId=["t"], title="Edit"),
        update(title="Edit"),
        ask(toolCallId="t", title="Edit"),
    )
    assert answer["result"]["outcome"]["optionId"] == "allow"
    assert client.calls[0].kind is None


def test_more_than_a_person_reads_is_not_kept_for_the_question(tmp_path):
    (tmp_path / "work").mkdir()
    client = ClientFileSystem(state_dir=str(tmp_path / "state"))
    shown = []

    def tell(name, letters=1):
        diff = {"type": "diff", "path": "a.txt", "newText": "x" * letters}
        call = {"toolCallId": name, "title": "Edit", "kind": "edit", "content": [diff]}
        client.update_received(
            {"sessionId": "s1", "update": {"sessionUpdate": "tool_call", **call}}
        )

    async def show(params):
        shown.append(sorted(params["toolCall"]))
        return {"outcome": {"outcome": "cancelled"}}

    async def plot():
        await client.session_started("s1", str(tmp_path / "work"))
        for number in range(300):
            tell(str(number))
        tell("heavy", 1_100_000)
        for number in range(20):
            tell(f"large {number}", 900_000)
        for name in ("0", "299", "heavy", "large 0", "large 19"):
            params = {"sessionId": "s1", "toolCall": {"toolCallId": name}, "options": OPTIONS}
            await client.permission(params, show)

    asyncio.run(plot())
    client.close()
    whole = ["content", "kind", "title", "toolCallId"]
    assert shown == [["toolCallId"]] * 4 + [whole]


def test_a_heavy_call_keeps_all_but_its_texts(tmp_path):
    (tmp_path / "work").mkdir()
    diff = {"type": "diff", "path": "a.txt", "newText": "x" * 50_000}
    heavy = update(toolCallId="t", title="Edit", kind="edit", content=[diff] * 2)
    client, _ = asked(tmp_path, heavy, ask(toolCallId="t"))
    assert len(client.calls[0].content) == 2


def test_what_an_agent_changed_by_itself_is_written_down_once(tmp_path):
    (tmp_path / "work").mkdir()
    diff = {"type": "diff", "path": str(tmp_path / "work" / "a.txt"), "newText": "new\n"}
    told = {"toolCallId": "t", "title": "Edit", "kind": "edit", "content": [diff]}
    client = Asked(state_dir=str(tmp_path / "state"))
    done = update(**told, status="completed")
    talk(tmp_path, client, prompt=[done, done, (READ, {"path": str(tmp_path / "work" / "b")})])
    assert journal(tmp_path) == [("Edit", "write", ("a.txt",), "told", "")]


class Waits(ClientFileSystem):
    """Asks a person who does not answer."""

    async def request_permission(self, session_id, tool_call, options, **_):
        await asyncio.Event().wait()


def test_a_question_that_is_open_when_its_turn_is_cancelled_is_answered_for_the_client(tmp_path):
    client = Waits(state_dir=str(tmp_path / "state"))
    try:
        found = asyncio.run(check_client(client, only=["permissions.at-cancel"], patience=20))
    finally:
        client.close()
    assert [(one.outcome, one.why) for one in found.verdicts] == [("passed", "")]


class Cancels(Waits):
    """Cancels the turn in which a file is read."""

    def on_connect(self, connection):
        super().on_connect(connection)
        self.agent = connection

    async def read_text_file(self, path, session_id, **more):
        await self.agent.cancel(session_id)
        return await super().read_text_file(path, session_id, **more)


def test_a_question_that_comes_when_its_turn_is_cancelled_already_is_put_to_nobody(tmp_path):
    client = Cancels(state_dir=str(tmp_path / "state"))
    script = [(READ, {"path": str(tmp_path / "work" / "a.txt")}), ask(toolCallId="t")]
    _, answer = talk(tmp_path, client, prompt=script)["answers"]
    assert answer["result"] == {"outcome": {"outcome": "cancelled"}}


class Own(ClientFileSystem):
    """Has an ``on_connect`` of its own, which leaves out ours."""

    def on_connect(self, connection):
        self.connected = connection


class Mixed(Own):
    """The same, further down, and handed on."""

    def on_connect(self, connection):
        super().on_connect(connection)
        self.twice = connection


@pytest.mark.parametrize("kind", [Own, Mixed])
def test_a_client_with_an_on_connect_of_its_own_knows_its_sessions(tmp_path, kind):
    (tmp_path / "work").mkdir()
    path = tmp_path / "work" / "a.txt"
    client = kind(state_dir=str(tmp_path / "state"))
    script = [
        (WRITE, {"path": str(path), "content": "new\n"}),
        update(toolCallId="t", title="Edit", kind="edit"),
        ask(toolCallId="t"),
    ]
    written, _ = talk(tmp_path, client, prompt=script)["answers"]
    assert written["result"] == {}
    assert path.read_text() == "new\n"
    assert client.connected is not None
    assert [title for title, *_ in journal(tmp_path)] == ["Edit"], "listened to once"


class Forwards:
    """Hands its files on, and forgets the connection."""

    def __init__(self, files):
        self._files = files

    def capabilities(self):
        return self._files.capabilities()

    async def read_text_file(self, **more):
        return await self._files.read_text_file(**more)

    def close(self):
        self._files.close()


def test_a_client_that_tells_of_no_connection_is_told_what_is_missing(tmp_path):
    (tmp_path / "work").mkdir()
    client = Forwards(ClientFileSystem(state_dir=str(tmp_path / "state")))
    script = [(READ, {"path": str(tmp_path / "work" / "a.txt")})]
    (answer,) = talk(tmp_path, client, prompt=script)["answers"]
    assert answer["error"]["data"]["errorKind"] == "unknown_session"
    assert "on_connect" in answer["error"]["message"]
