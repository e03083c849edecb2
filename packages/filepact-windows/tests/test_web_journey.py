"""Twelve proposals with forty hunks, reviewed by real keys and clicks in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Approval
from page_scenes import FILES, SESSIONS, count, new, old, propose_all
from tests.browser import CHROMIUM, Browser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Page
    from filepact.workspace.workspace import Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is here (package chromium)"),
]


def ready(browser: Browser, *so: str) -> None:
    """A page is there, its script runs, and something is so in it."""
    browser.until(" && ".join(("document.body.dataset.ready === 'yes'", *so)))


def said(text: str) -> str:
    return f"document.querySelector('#said').innerText.includes({text!r})"


def shows(change: str) -> str:
    return f"document.querySelector('form.proposal')?.dataset.id === {change!r}"


def told(page: Page) -> str:
    sessions = {session.id: session for session in SESSIONS}.values()
    events = [one for session in sessions for one in page.review.workspace.events(session)]
    return " ".join(one.text for one in events)


def problems(browser: Browser) -> list[dict[str, object]]:
    kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
    return [one for one in browser.events if one["method"] in kinds]


def test_a_review_by_keys_and_clicks_does_exactly_what_was_accepted(
    browser: Browser, page: Page, root: Path, open_here: Callable[..., Workspace]
) -> None:
    ids = propose_all(page.review.workspace)
    assert sum(map(count, range(len(FILES)))) == 40
    browser.go(page.link)
    ready(browser, "document.body.dataset.kind === 'inbox'")
    assert all(one in browser.text() for one in ids)
    # The list, then the first: its second hunk is rejected by keys, with a reason; then the rest.
    browser.key("j")
    browser.key("o")
    ready(browser, shows(ids[0]))
    for key in "jc":
        browser.key(key)
    browser.type("keep the <name>")
    browser.key("Escape")
    browser.click("#h2 .hunk-no")
    ready(browser, said("rejected"))
    assert "keep the <name>" in told(page)
    browser.key("y")
    ready(browser, said("1 of 3 hunks"))
    browser.key("A")
    ready(browser, said("done, as"), shows(ids[1]))
    assert (root / FILES[0]).read_text() == new(0, frozenset({1, 3, 4}))
    # Side by side, by the mouse; the whole proposal is accepted, undone and brought back.
    browser.click("a.view")
    ready(browser, "document.querySelector('table.split')")
    browser.click(".all-yes")
    ready(browser, shows(ids[2]), said("done, as"))
    assert (root / FILES[1]).read_text() == new(1)
    browser.key("u")
    ready(browser, said("taken back"))
    assert (root / FILES[1]).read_text() == old(1)
    browser.key("U")
    ready(browser, said("brought back"))
    assert (root / FILES[1]).read_text() == new(1)
    # A file is edited before it is accepted.
    browser.click(f'#side a[data-id="{ids[2]}"]')
    ready(browser, shows(ids[2]))
    browser.key("e")
    ready(browser, "document.body.dataset.kind === 'edit'")
    edited = new(2).replace("Step 0", "The first step")
    browser.says(f"document.querySelector('textarea').value = {edited!r}")
    browser.click("form .yes")
    ready(browser, said("Nothing is done yet"), "document.body.dataset.kind === 'proposal'")
    assert (root / FILES[2]).read_text() == old(2)
    browser.key("A")
    ready(browser, said("done, as"), shows(ids[3]))
    assert (root / FILES[2]).read_text() == edited
    # Somebody else decides, and the list tells it by itself; so does the page.
    open_here().reject(ids[3], Approval(Actor("person", "bob"), "somebody else"))
    browser.until("!document.querySelector('#news').hidden")
    browser.until(f"!document.querySelector('#side a[data-id=\"{ids[3]}\"]')")
    # A turn as a whole; then all that is left is rejected or accepted by keys.
    browser.click(f'#side a[data-id="{ids[6]}"]')
    ready(browser, shows(ids[6]))
    browser.click(f'#side a.turn[href="/turn/{ids[6]}"]')
    ready(browser, "document.body.dataset.kind === 'turn'")
    browser.click(".decide .all-yes")
    ready(browser, said("done, as"), "document.body.dataset.kind !== 'turn'")
    assert [(root / name).read_text() for name in FILES[6:9]] == [new(6), new(7), new(8)]
    browser.key("D")
    ready(browser, said("rejected"), shows(ids[5]))
    for after in (ids[9], ids[10], ids[11]):
        browser.key("A")
        ready(browser, said("done, as"), shows(after))
    browser.key("d")
    ready(browser, "document.body.dataset.kind === 'inbox'")
    assert page.review.waiting() == ()
    states = [(root / name).read_text() for name in FILES]
    kept = (frozenset({1, 3, 4}), None, None, frozenset(), frozenset(), *[None] * 6, frozenset())
    wanted = [new(number, hunks) for number, hunks in enumerate(kept)]
    wanted[2] = edited
    assert states == wanted
    heard = told(page)
    assert heard.count("somebody else") == 1
    assert not [one for one in ids if one not in heard], heard
    browser.key("l")
    ready(browser, "document.querySelector('svg rect')")
    assert not problems(browser)


def test_unchanged_lines_are_unfolded_by_key_by_click_and_by_their_link(
    browser: Browser, page: Page
) -> None:
    first = propose_all(page.review.workspace)[0]
    browser.go(f"{page.link}&to={first}")
    ready(browser, shows(first))
    drawn = "document.querySelectorAll('#above2 tr').length"
    count = int(browser.says("document.querySelector('#above2 a').innerText.match(/[0-9]+/)[0]"))
    assert browser.says(drawn) == 0
    browser.key("j")
    browser.key("x")
    browser.until(f"{drawn} === {count}")
    # The person still is at the second hunk, and has chosen nothing.
    assert browser.says("document.activeElement.id") == "h2"
    browser.key("x")
    browser.until(f"{drawn} === 0")
    browser.click("#above3 a")
    browser.until("document.querySelectorAll('#above3 tr').length > 0")
    assert browser.says(drawn) == 0
    # The link itself leads to a page with the lines in it.
    address = browser.says("document.querySelector('#above2 a').href")
    browser.send("Page.navigate", url=address)
    browser.until(f"location.href === {address!r} && {drawn} === {count}")
    assert not problems(browser)


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window_and_one_button_is_filled(
    browser: Browser, page: Page, width: int
) -> None:
    propose_all(page.review.workspace)
    ready = "document.body.dataset.ready === 'yes' && document.body.dataset.kind"
    browser.look(dark=False, width=width, height=800)
    browser.go(page.link)
    browser.until(f"{ready} === 'inbox'")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.says(wide) == 0
    browser.key("j")
    browser.key("o")
    browser.until(f"{ready} === 'proposal'")
    assert browser.says(wide) == 0
    filled = (
        "[...document.querySelectorAll('article button')].filter((one) => "
        "getComputedStyle(one).backgroundColor === getComputedStyle(document.querySelector('.all-yes')).backgroundColor).length"
    )
    assert browser.says(filled) == 1
    tall = "[...document.querySelectorAll('header a')].every((one) => one.offsetHeight < 40)"
    assert browser.says(tall) is True


PLACES = "new Set([...document.querySelectorAll({!r})].map((one) => Math.round(one.getBoundingClientRect().{}))).size"


@pytest.mark.parametrize("width", [400, 700, 960, 1130, 1280])
def test_what_belongs_together_stands_in_one_row_or_below_each_other(
    browser: Browser, page: Page, width: int
) -> None:
    workspace = page.review.workspace
    done, *_ = propose_all(workspace)
    workspace.approve(done, Approval(Actor("person", "ann")))
    workspace.asked.turn(workspace.log(limit=1)[0].session, "All of it, please")
    ready = "document.body.dataset.ready === 'yes' && document.body.dataset.kind"
    browser.look(dark=False, width=width, height=800)
    browser.go(page.link)
    browser.until(f"{ready} === 'inbox'")
    # The head is one row, with the button for the keys.
    assert browser.says("document.querySelector('header').offsetHeight < 50")
    if width >= 1120:
        assert browser.says(PLACES.format("td.counts", "left")) == 1
    room = "Math.min(...[...document.querySelectorAll('td:nth-child(2)')].map((one) => one.offsetWidth))"
    assert browser.says(room) > 180
    first = "section:nth-of-type(1) tr:first-child"
    beside = f"{first} td.counts, {first} td.when"
    assert browser.says(PLACES.format(beside, "top" if width > 640 else "bottom")) == 1
    browser.send("Page.navigate", url=browser.says("document.querySelector('#timeline').href"))
    browser.until(f"{ready} === 'log'")
    assert browser.says("document.querySelector('form[action=\"/log\"]').offsetHeight < 60")
    # What was asked for stands beside who did it, and nothing is below it.
    assert browser.says("document.querySelector('tr.turn').offsetHeight < 60")
