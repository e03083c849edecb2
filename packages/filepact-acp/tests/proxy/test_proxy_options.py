"""What a person can switch in the editor: whether changes are done or wait."""

import pytest

from tests.faces.acp.proxy.rig import Rig

SELECT = {"type": "select", "currentValue": "x", "options": [{"value": "x", "name": "X"}]}
THEIRS = {"id": "model", "name": "Model", **SELECT}


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as made:
        made.introduce()
        yield made


def open_with(rig, result, method="session/new", session="s1"):
    """What the editor is answered when the agent answers this."""
    params = {"cwd": str(rig.work), "mcpServers": []}
    if method != "session/new":
        params["sessionId"] = session
    wanted = rig.editor.ask(method, params)
    rig.agent.answer(rig.agent.request(method), result)
    return rig.editor.answer_to(wanted)["result"]


def choose(rig, value, option="filepact.mode", session="s1"):
    params = {"sessionId": session, "configId": option, "value": value}
    return rig.editor.ask("session/set_config_option", params)


def ours(options):
    return {one["id"]: one["currentValue"] for one in options}.get("filepact.mode")


def test_a_session_offers_the_mode_beside_the_agents_own_options(rig):
    first, second = open_with(rig, {"sessionId": "s1", "configOptions": [THEIRS]})["configOptions"]
    assert first == THEIRS
    assert (second["id"], second["currentValue"]) == ("filepact.mode", "auto")
    assert {one["value"] for one in second["options"]} == {"auto", "preview"}
    assert ours(open_with(rig, {}, "session/load")["configOptions"]) == "auto"


LEFT_ALONE = {
    "modes": {"sessionId": "s1", "modes": {"currentModeId": "a", "availableModes": []}},
    "one of the same name": {
        "sessionId": "s1",
        "configOptions": [{**THEIRS, "id": "filepact.mode"}],
    },
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("answer", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_an_agent_whose_own_choice_would_be_hidden_is_left_alone(rig, answer):
    assert open_with(rig, answer) == answer
    wanted = choose(rig, "preview")
    assert rig.agent.request("session/set_config_option")["id"] == wanted


def test_what_is_switched_counts_from_then_on_and_no_agent_hears_of_it(rig):
    open_with(rig, {"sessionId": "s1", "configOptions": [THEIRS]})
    open_with(rig, {"sessionId": "s2"})
    rig.prompt()
    assert rig.write("a.txt", "1\n")["result"] == {}
    options = rig.editor.answer_to(choose(rig, "preview"))["result"]["configOptions"]
    assert options[0] == THEIRS
    assert ours(options) == "preview"
    assert rig.agent.quiet
    wanted = rig.begin_write("a.txt", "2\n")
    question = rig.editor.request("session/request_permission")
    rig.editor.answer(question, {"outcome": {"outcome": "cancelled"}})
    assert "error" in rig.agent.answer_to(wanted)
    # The other session in the same folder is what it was.
    params = {"sessionId": "s2", "path": str(rig.work / "b.txt"), "content": "1\n"}
    assert rig.agent.answer_to(rig.agent.ask("fs/write_text_file", params))["result"] == {}
    assert ours(rig.editor.answer_to(choose(rig, "auto"))["result"]["configOptions"]) == "auto"
    assert rig.write("a.txt", "3\n")["result"] == {}
    assert (rig.work / "a.txt").read_text() == "3\n"


def test_the_tools_follow_the_sessions_mode(rig):
    params = {"cwd": str(rig.work), "mcpServers": []}
    wanted = rig.editor.ask("session/new", params)
    request = rig.agent.request("session/new")
    rig.agent.answer(request, {"sessionId": "s1"})
    rig.editor.answer_to(wanted)
    rig.prompt()
    early = rig.tools(request)
    assert early.call("write_file", path="a.txt", content="1\n")[0]
    rig.editor.answer_to(choose(rig, "preview"))
    late = rig.tools(request)
    for tools in (early, late):
        tools.begin("write_file", path="b.txt", content="1\n")
        question = rig.editor.request("session/request_permission")
        rig.editor.answer(question, {"outcome": {"outcome": "cancelled"}})
        assert not tools.end()[0]
        tools.close()


def test_another_value_is_refused_and_other_options_are_the_agents(rig):
    open_with(rig, {"sessionId": "s1", "configOptions": [THEIRS]})
    assert rig.editor.answer_to(choose(rig, "always"))["error"]["code"] == -32602
    wanted = choose(rig, "x", "model")
    rig.agent.answer(rig.agent.request("session/set_config_option"), {"configOptions": [THEIRS]})
    answer = rig.editor.answer_to(wanted)["result"]["configOptions"]
    assert [one["id"] for one in answer] == ["model", "filepact.mode"]


def test_options_that_the_agent_tells_of_are_told_with_ours(rig):
    open_with(rig, {"sessionId": "s1", "configOptions": [THEIRS]})
    rig.editor.answer_to(choose(rig, "preview"))
    update = {"sessionUpdate": "config_option_update", "configOptions": [THEIRS, THEIRS]}
    told = {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
    rig.agent.send(told)
    heard = rig.editor.next()["params"]["update"]
    assert heard["configOptions"][:2] == [THEIRS, THEIRS]
    assert ours(heard["configOptions"]) == "preview"


def test_version_2_is_left_alone(tmp_path):
    with Rig(tmp_path, protocol=2) as rig:
        rig.introduce()
        assert open_with(rig, {"sessionId": "s1"}) == {"sessionId": "s1"}
