"""A person is asked in their chat: the official client in both eras, and clients that are not so kind."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from page_client import PageClient
from tests.faces.command_line import command
from tests.faces.envelopes import CAPABILITIES_KEY, modern
from tests.faces.line_client import LineClient, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEFORE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n# SECRET-OF-NOBODY\n"
EDIT = {"path": "a.py", "old_string": "return 1\n", "new_string": "return 10\n"}
LATER = "c0000000000"


class Place:
    """A root with settings of its own."""

    def __init__(self, folder: Path, setting: str) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / "a.py").write_text(BEFORE)
        self.state = folder / "state"
        self.config = folder / "filepact.toml"
        self.config.write_text(f"[mcp]\n{setting}\n")
        self.words = (
            *("mcp", str(self.root), "--mode", "preview"),
            *("--state", str(self.state), "--config", str(self.config)),
        )

    @property
    def text(self) -> str:
        return (self.root / "a.py").read_text()

    def person(self, *words: str) -> str:
        said = command(*words, "--root", str(self.root), "--state", str(self.state))
        assert said.code == 0, said
        return said.out

    def waiting(self) -> list[dict]:
        return json.loads(self.person("pending", "--json"))["pending"]

    @contextmanager
    def client(self, elicitation: dict | None, version: str = "2025-11-25") -> Iterator[LineClient]:
        with serving(*self.words, stderr=subprocess.DEVNULL) as (_, client):
            given = {} if elicitation is None else {"elicitation": elicitation}
            client.shake_hands(version, **given)
            yield client


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, 'elicitation = "both"\npatience = 20')


@pytest.fixture
def brief(tmp_path: Path) -> Place:
    """One where nobody is waited for long."""
    return Place(tmp_path, 'elicitation = "both"\npatience = 1')


def said(result: dict) -> str:
    return "\n".join(one["text"] for one in result["content"])


def answer(client: LineClient, asked: dict, **result: Any) -> None:
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def form(**content: Any) -> dict:
    return {"action": "accept", "content": content}


# -- the official client --------------------------------------------------------------------------


@asynccontextmanager
async def official(place: Place, mode: str, callback):
    """The official client, with a real server process."""
    import sys  # noqa: PLC0415

    words = ["-m", "filepact", *place.words]
    transport = stdio_client(StdioServerParameters(command=sys.executable, args=words))
    async with Client(transport, mode=mode, elicitation_callback=callback) as client:
        yield client


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_what_a_person_says_to_the_official_client_is_done(place: Place, mode: str) -> None:
    asked: list[types.ElicitRequestParams] = []
    given = iter(
        [
            {"decision": "accept"},
            {"decision": "reject", "reason": "two is right"},
            {"decision": "accept", "hunks": "2"},
            {"decision": "later"},
        ]
    )

    async def callback(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content=next(given))

    async def talk() -> list[types.CallToolResult]:
        async with official(place, mode, callback) as client:
            return [
                await client.call_tool("edit_file", EDIT),
                await client.call_tool(
                    "edit_file", EDIT | {"old_string": "return 2", "new_string": "return 20"}
                ),
                await client.call_tool(
                    "write_file",
                    {"path": "a.py", "content": f"# top\n{BEFORE}# end\n".replace("1", "10")},
                ),
                await client.call_tool("write_file", {"path": "b.py", "content": "new\n"}),
            ]

    done, refused, partly, later = asyncio.run(talk())
    assert done.meta["filepact/receipt"]["status"] == "applied"
    assert "+    return 10" in asked[0].message
    assert refused.is_error
    assert refused.content[0].text.startswith("USER_DENIED")
    assert "two is right" in refused.content[0].text
    assert partly.meta["filepact/receipt"]["status"] == "applied"
    assert place.text == f"{BEFORE}# end\n".replace("1", "10")
    assert later.meta["filepact/receipt"]["status"] == "pending"
    assert not (place.root / "b.py").exists()
    assert len(place.waiting()) == 2
    approvers = {
        one["approved_by"] for one in json.loads(place.person("log", "--json"))["operations"]
    }
    assert all("in the chat of mcp" in one for one in approvers), approvers


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_link_in_the_chat_leads_to_the_page_and_the_agent_hears(place: Place, mode: str) -> None:
    place.config.write_text('[mcp]\nelicitation = "url"\npatience = 20\n')
    deciding: list[asyncio.Task[None]] = []

    def decide(url: str) -> None:
        page = PageClient(url)
        page.enter()
        place_of_it = f"/p/{url.rpartition('to=')[2]}"
        assert "accept:1" in page.get(place_of_it).text
        page.send(place_of_it, {"do": "accept:1"})

    async def callback(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert params.mode == "url"
        assert "return 10" not in params.message
        deciding.append(asyncio.create_task(asyncio.to_thread(decide, params.url)))
        return types.ElicitResult(action="accept")

    async def talk() -> types.CallToolResult:
        async with official(place, mode, callback) as client:
            done = await client.call_tool("edit_file", EDIT)
            await deciding[0]
            return done

    done = asyncio.run(talk())
    assert done.meta["filepact/receipt"]["status"] == "applied"
    assert "token" not in done.content[0].text
    assert "return 10" in place.text


# -- clients that are not so kind -----------------------------------------------------------------


NO_CLEAR_YES = [
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": {}},
    form(decision="ACCEPT"),
    form(decision=True),
    form(decision=["accept"]),
    form(decision="accept", hunks="7"),
    form(decision="accept", hunks="2-1"),
    form(decision="accept", hunks="0"),
    form(decision="accept", hunks=1),
    form(decision="accept", hunks="1,"),
    form(decision="accept", reason={"a": 1}),
    form(accept=True),
    {"action": "ACCEPT", "content": {"decision": "accept"}},
    {"content": {"decision": "accept"}},
]


def test_an_answer_that_is_no_clear_yes_leaves_it_waiting(place: Place) -> None:
    with place.client({"form": {}}) as client:
        for number, result in enumerate(NO_CLEAR_YES):
            made = {"path": f"{number}.txt", "content": "one\n"}
            call = client.begin("tools/call", {"name": "write_file", "arguments": made})
            answer(client, client.asked.get(timeout=30), **result)
            told = client.answer(call)["result"]
            assert told["_meta"]["filepact/receipt"]["status"] == "pending", result
    assert [one.name for one in place.root.iterdir()] == ["a.py"]
    assert len(place.waiting()) == len(NO_CLEAR_YES)


def test_an_error_or_an_answer_to_another_question_leaves_it_waiting(place: Place) -> None:
    with place.client({}) as client:
        call = client.begin("tools/call", {"name": "edit_file", "arguments": EDIT})
        asked = client.asked.get(timeout=30)
        for wrong in (f"{asked['id']}0", "filepact:question:x", 1):
            client.send({"jsonrpc": "2.0", "id": wrong, "result": form(decision="accept")})
        client.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
        answer(client, asked, **form(decision="accept"))
        told = client.answer(call)["result"]
    assert told["_meta"]["filepact/receipt"]["status"] == "pending"
    assert place.text == BEFORE


def test_who_answers_too_late_or_not_at_all_has_decided_nothing(brief: Place) -> None:
    with brief.client({"form": {}}) as client:
        call = client.begin("tools/call", {"name": "edit_file", "arguments": EDIT})
        asked = client.asked.get(timeout=30)
        told = client.answer(call)["result"]
        assert told["_meta"]["filepact/receipt"]["status"] == "pending"
        assert client.notes.get(timeout=30)["params"]["requestId"] == asked["id"]
        answer(client, asked, **form(decision="accept"))
        assert client.ask("ping")["result"] == {}
        assert brief.text == BEFORE
        # It is not asked again because an agent sends it again.
        client.call("edit_file", **EDIT)
        assert client.asked.empty()
    assert len(brief.waiting()) == 1


def test_a_client_that_leaves_or_cancels_has_decided_nothing(place: Place) -> None:
    with place.client({"form": {}}) as client:
        call = client.begin("tools/call", {"name": "edit_file", "arguments": EDIT})
        client.asked.get(timeout=30)
        client.notify("notifications/cancelled", requestId=call)
        client.notes.get(timeout=30)
        more = {"path": "b.py", "content": "new\n"}
        client.begin("tools/call", {"name": "write_file", "arguments": more})
        client.asked.get(timeout=30)
    assert place.text == BEFORE
    assert len(place.waiting()) == 2


@pytest.mark.parametrize(
    ("setting", "declared", "version"),
    [
        ("both", None, "2025-11-25"),
        ("both", {}, "2025-03-26"),
        ("url", {}, "2025-11-25"),
        ("url", {"form": {}, "url": {}}, "2025-06-18"),
        ("form", {"url": {}}, "2025-11-25"),
        ("off", {"form": {}, "url": {}}, "2025-11-25"),
    ],
)
def test_nobody_is_asked_where_client_or_person_do_not_want_it(
    place: Place, setting: str, declared: dict | None, version: str
) -> None:
    place.config.write_text(f'[mcp]\nelicitation = "{setting}"\npatience = 20\n')
    with place.client(declared, version) as client:
        told = client.call("edit_file", **EDIT)
        assert client.asked.empty()
    assert told["_meta"]["filepact/receipt"]["status"] == "pending"
    assert place.text == BEFORE


def test_a_change_that_moves_while_the_person_looks_is_not_done(place: Place) -> None:
    with place.client({"form": {}}) as client:
        call = client.begin("tools/call", {"name": "edit_file", "arguments": EDIT})
        asked = client.asked.get(timeout=30)
        (place.root / "a.py").write_text(f"{BEFORE}# theirs\n")
        answer(client, asked, **form(decision="accept"))
        told = client.answer(call)["result"]
        assert told["_meta"]["filepact/receipt"]["status"] == "pending"
        (waits,) = place.waiting()
        assert told["_meta"]["filepact/receipt"]["operation"] == waits["id"]
        assert waits["id"] not in asked["params"]["message"]
    assert place.text == f"{BEFORE}# theirs\n"


HOSTILE = "```\n````diff\n\x1b[2J\u202e<b>x</b>\u200b [a](http://x)\r\nx" + " " * 300 + "hidden\n"


def test_nothing_that_an_agent_writes_leaves_the_fence_or_is_hidden(place: Place) -> None:
    with place.client({"form": {}}) as client:
        made = {"path": "``` b.py", "content": HOSTILE}
        call = client.begin("tools/call", {"name": "write_file", "arguments": made})
        asked = client.asked.get(timeout=30)["params"]
        client.notify("notifications/cancelled", requestId=call)
    message = asked["message"]
    assert not set(message) & {"\x1b", "\u202e", "\u200b", "\r"}
    head, fence, rest = re.match(r"([^\n]*\n)(`{3,})diff\n(.*)", message, re.DOTALL).groups()
    inside, _, after = rest.partition(f"\n{fence}\n")
    assert "`" not in head
    assert after.count("`") == 2  # around a command of ours
    assert "``` b" in inside
    assert len(fence) > max(map(len, re.findall("`+", inside)))
    assert "300 blanks" in inside
    assert asked["requestedSchema"]["required"] == ["decision"]
    assert "default" not in json.dumps(asked["requestedSchema"])


def test_what_a_form_cannot_show_whole_is_not_asked_in_one(place: Place) -> None:
    with place.client({"form": {}}) as client:
        told = client.call("write_file", path="long.txt", content="line\n" * 400)
        assert client.asked.empty()
        assert told["_meta"]["filepact/receipt"]["status"] == "pending"
        wide = client.call("write_file", path="wide.txt", content="x" * 20_000)
        assert client.asked.empty()
    assert wide["_meta"]["filepact/receipt"]["status"] == "pending"


# -- without a handshake --------------------------------------------------------------------------


def asking(**params: Any) -> dict:
    return modern(**params, _meta={CAPABILITIES_KEY: {"elicitation": {}}})


def test_a_call_that_comes_again_is_not_made_again(place: Place) -> None:
    call = {"name": "edit_file", "arguments": EDIT}
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        asked = client.ask("tools/call", asking(**call))["result"]
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        again = {
            "requestState": asked["requestState"],
            "inputResponses": {key: form(decision="accept")},
        }
        forged = again | {"requestState": "x" * 32}
        other = again | {"name": "edit_file", "arguments": EDIT | {"path": "b.py"}}
        for wrong in (
            call | forged,
            call | {"inputResponses": again["inputResponses"], "requestState": ""},
        ):
            refused = client.ask("tools/call", asking(**wrong))["result"]
            assert said(refused).startswith("NO_CHANGE")
        assert place.text == BEFORE
        done = client.ask("tools/call", asking(**call, **again))["result"]
        assert done["_meta"]["filepact/receipt"]["status"] == "applied"
        text = place.text
        # An answer counts once.
        for wrong in (call | again, other):
            refused = client.ask("tools/call", asking(**wrong))["result"]
            assert said(refused).startswith("NO_CHANGE")
        assert place.text == text
    assert place.waiting() == []


def test_an_answer_for_other_arguments_is_used_up_and_decides_nothing(place: Place) -> None:
    call = {"name": "edit_file", "arguments": EDIT}
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        asked = client.ask("tools/call", asking(**call))["result"]
        (key,) = asked["inputRequests"]
        again = {
            "requestState": asked["requestState"],
            "inputResponses": {key: form(decision="accept")},
        }
        other = {"name": "edit_file", "arguments": EDIT | {"new_string": "return 11\n"}}
        for one in (other, call):
            refused = client.ask("tools/call", asking(**one, **again))["result"]
            assert said(refused).startswith("NO_CHANGE")
    assert place.text == BEFORE
    assert len(place.waiting()) == 1
