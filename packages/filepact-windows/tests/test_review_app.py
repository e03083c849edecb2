"""The review within a chat: what a client that shows apps is told, and that no call of its frame decides anything."""

from __future__ import annotations

import asyncio
import hashlib
import re
import subprocess
import sys
from base64 import b64encode
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import stdio_client

from filepact_mcp.app import shows_apps
from test_elicitation import BEFORE, EDIT, Place, answer, form, said
from tests.faces.envelopes import CAPABILITIES_KEY, modern
from tests.faces.line_client import LineClient, serving

if TYPE_CHECKING:
    from pathlib import Path

UI = "io.modelcontextprotocol/ui"
SHOWS = {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}
PLACE = "ui://filepact/review"
TWO = {"path": "a.py", "content": f"# top\n{BEFORE}# end\n"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, 'elicitation = "form"\npatience = 20')


@pytest.fixture
def silent(tmp_path: Path) -> Place:
    """One whose person has set nothing."""
    return Place(tmp_path, "")


def greet(client: LineClient, **capabilities: Any) -> dict[str, Any]:
    return client.shake_hands("2025-11-25", extensions=SHOWS, **capabilities)


def waiting(
    client: LineClient, tool: str = "edit_file", *, asks: bool = False, **given: Any
) -> str:
    """The id of a change that waits, which the person has put off where they are asked."""
    call = client.begin("tools/call", {"name": tool, "arguments": given or EDIT})
    if asks:
        answer(client, client.asked.get(timeout=60), **form(decision="later"))
    receipt = client.answer(call)["result"]["_meta"]["filepact/receipt"]
    assert receipt["status"] == "pending"
    return receipt["operation"]


def listed(place: Place, version: str, setting: str, **capabilities: Any) -> bytes:
    """The line that answers ``tools/list``."""
    place.config.write_text(f"[mcp]\n{setting}\n")
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        if version:
            client.shake_hands(version, **capabilities)
            client.ask("tools/list")
        else:
            client.ask("tools/list", modern(_meta={CAPABILITIES_KEY: capabilities}))
        return client.raw[-1]


@pytest.mark.parametrize("version", ["2025-11-25", ""])
def test_who_shows_no_apps_is_told_not_a_byte_of_it(silent: Place, version: str) -> None:
    plain = listed(silent, version, "app = false")
    assert listed(silent, version, "") == plain
    assert listed(silent, version, "", extensions={UI: {"mimeTypes": ["text/html"]}}) == plain
    assert listed(silent, version, "app = false", extensions=SHOWS) == plain
    assert listed(silent, version, "", extensions=SHOWS) != plain


@pytest.mark.parametrize("other", [None, {}, {"mimeTypes": []}, {"mimeTypes": SHOWS}, []])
def test_only_who_declares_the_type_of_the_frame_shows_it(other: object) -> None:
    assert shows_apps({"extensions": SHOWS})
    assert not shows_apps({"extensions": {UI: other}})
    assert not shows_apps({"extensions": other})
    assert not shows_apps(other)


def test_who_shows_none_has_neither_its_calls_nor_its_resource(silent: Place) -> None:
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, client):
        assert set(client.shake_hands("2025-11-25")["capabilities"]) == {"tools"}
        change = waiting(client)
        for tool in ("review_show", "review_answer"):
            call = {"name": tool, "arguments": {"change": change}}
            assert client.ask("tools/call", call)["error"]["code"] == -32602
        for method in ("resources/list", "resources/templates/list", "resources/read"):
            assert client.ask(method, {"uri": PLACE})["error"]["code"] == -32601
            asked = client.ask(method, {"uri": PLACE})
            assert asked["error"]["message"] == "Method not found"


def test_the_frame_holds_nothing_of_anybody_and_lets_nothing_else_run(silent: Place) -> None:
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, client):
        assert greet(client)["capabilities"]["extensions"] == {UI: {}}
        waiting(client)
        first, again = (client.ask("resources/read", {"uri": PLACE})["result"] for _ in "12")
        missing = client.ask("resources/read", {"uri": f"{PLACE}/x"})
        lists = ("resources/list", "resources/templates/list")
        refused = [client.ask(method, {"cursor": "x"})["error"]["code"] for method in lists]
    assert missing["error"]["code"] == -32002
    assert refused == [-32602] * 2
    assert first == again  # nothing secret is in it, nor what waits
    (content,) = first["contents"]
    assert content["mimeType"] == SHOWS[UI]["mimeTypes"][0]
    assert content["_meta"]["ui"]["csp"] == {}
    html = content["text"]
    (script,) = re.findall("<script>(.*)</script>", html, re.DOTALL)
    (style,) = re.findall("<style>(.*)</style>", html, re.DOTALL)
    for part, kind in ((script, "script"), (style, "style")):
        digest = b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src &#x27;sha256-{digest}&#x27;" in html
    assert "default-src &#x27;none&#x27;" in html
    assert not re.search(r"(?:https?:)?//[a-z]|\bsrc=|\bhref=|@import|url\(", html)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_shows_a_change_and_has_the_person_asked(
    place: Place, mode: str
) -> None:
    given = iter([{"decision": "later"}, {"decision": "accept", "hunks": "2"}])
    asked: list[types.ElicitRequestFormParams] = []

    async def callback(_context: object, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content=next(given))

    async def talk() -> tuple[Any, ...]:
        words = ["-m", "filepact", *place.words]
        server = stdio_client(StdioServerParameters(command=sys.executable, args=words))
        shows = [advertise(UI, SHOWS[UI])]
        async with Client(
            server, mode=mode, elicitation_callback=callback, extensions=shows
        ) as client:
            tools = {one.name: one.meta for one in (await client.list_tools()).tools}
            (resource,) = (await client.list_resources()).resources
            read = await client.read_resource(resource.uri)
            put = await client.call_tool("write_file", TWO)
            change = put.meta["filepact/receipt"]["operation"]
            shown = await client.call_tool("review_show", {"change": change})
            done = await client.call_tool("review_answer", {"change": change, "hunks": "2"})
            heard = await client.call_tool("read_file", {"path": "a.py"})
            return tools, read, shown, done, heard

    tools, read, shown, done, heard = asyncio.run(talk())
    assert tools["edit_file"]["ui"] == {"resourceUri": PLACE}
    assert tools["read_file"] is None
    for name in ("review_show", "review_answer"):
        assert tools[name]["ui"] == {"resourceUri": PLACE, "visibility": ["app"]}
    assert read.contents[0].text.startswith("<!doctype html>")
    facts = shown.structured_content
    assert facts["waits"] is facts["asks"] is True
    assert "# end" in facts["html"]
    assert done.meta["filepact/receipt"]["status"] == "applied"
    assert place.text == f"{BEFORE}# end\n"
    # The marks are filled in; what is to be done is not.
    fields = asked[1].requested_schema["properties"]
    assert fields["hunks"]["default"] == "2"
    assert "default" not in fields["decision"]
    # What the frame was told, the agent has yet to hear.
    assert "approved by a person" in heard.content[0].text


def test_a_call_of_the_frames_decides_nothing_whoever_makes_it(silent: Place) -> None:
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client, elicitation={"form": {}})
        change = waiting(client)
        for tool in ("review_answer", "review_show"):
            for more in ({}, {"decision": "accept"}, {"action": "accept", "secret": "x"}):
                client.call(tool, change=change, **more)
        assert client.asked.empty()
        told = client.call("review_answer", change=change)
        assert said(told).startswith("INVALID_PARAMS")
        assert client.call("review_show", change=change)["structuredContent"]["asks"] is False
    assert silent.text == BEFORE
    assert [one["id"] for one in silent.waiting()] == [change]


def test_an_agent_that_makes_the_frames_calls_wears_nobody_down(place: Place) -> None:
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client, elicitation={"form": {}})
        change = waiting(client, asks=True)
        asked = 0
        for _ in range(6):
            given = {"change": change, "decision": "accept"}
            call = client.begin("tools/call", {"name": "review_answer", "arguments": given})
            if asked < 3:
                answer(client, client.asked.get(timeout=60), action="decline")
                asked += 1
            told = client.answer(call)["result"]
        assert said(told).startswith("INVALID_PARAMS")
        assert client.asked.empty()
        assert client.call("review_show", change=change)["structuredContent"]["asks"] is False
    assert place.text == BEFORE


def test_a_rejection_by_the_dialog_is_told_to_the_frame_and_to_the_agent(place: Place) -> None:
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client, elicitation={"form": {}})
        change = waiting(client, asks=True)
        call = client.begin(
            "tools/call", {"name": "review_answer", "arguments": {"change": change}}
        )
        told = form(decision="reject", reason="two is right")
        answer(client, client.asked.get(timeout=60), **told)
        assert "two is right" in said(client.answer(call)["result"])
        facts = client.call("review_show", change=change)["structuredContent"]
        assert facts["waits"] is False
        assert "two is right" in facts["html"]
        assert "two is right" in client.text("read_file", path="a.py")
        assert "two is right" not in client.text("read_file", path="a.py")
    assert place.text == BEFORE


def test_what_is_somebody_elses_or_nobodys_is_not_shown(silent: Place) -> None:
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, one):
        greet(one)
        change = waiting(one)
        with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, other):
            greet(other)
            answers = [
                said(other.call(tool, change=wanted))
                for tool in ("review_show", "review_answer")
                for wanted in (change, change[:6], "c0000000000", "", 5, None, ["x"])
            ]
    assert len(set(answers)) == 1
    assert answers[0].startswith("NOT_FOUND")


class Plain(HTMLParser):
    """Notes whatever is more than text and the few elements of a card."""

    KNOWN = "article h1 p b code small ul li details summary section div table col tr td span mark button"
    SPELT = frozenset(("class", "id", "colspan", "open"))

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.KNOWN.split() or not {name for name, _ in attrs} <= self.SPELT:
            self.strange.append(tag)


EVERY = "".join(
    map(chr, (*range(1, 0x250), *range(0x2000, 0x2070), *range(0xFFF0, 0xFFFE), 0xE0041))
)
HOSTILE = f"<script>x</script><img src=x onerror=y>\n</td><!--\n{EVERY}\n\x1b[2J&lt;\n"


def test_hostile_texts_are_text_and_nothing_hidden_in_them(silent: Place) -> None:
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client)
        change = waiting(client, "write_file", path="<b> & x.py", content=HOSTILE)
        html = client.call("review_show", change=change)["structuredContent"]["html"]
    parser = Plain()
    parser.feed(html)
    assert parser.strange == []
    assert not [char for char in html if not char.isprintable() and char != "\t"]


def test_a_change_of_64_000_lines_is_shown_in_pages_of_a_bounded_size(silent: Place) -> None:
    long = "".join(f"line {number} of a long file\n" for number in range(64_000))
    with serving(*silent.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client)
        change = waiting(client, "write_file", path="long.txt", content=long)
        first = client.call("review_show", change=change)["structuredContent"]
        last = client.call("review_show", change=change, page=10**6)["structuredContent"]
    assert first["pages"] == last["page"] == 65
    assert "line 63999" in last["html"]
    assert max(len(one["html"]) for one in (first, last)) < 400_000
