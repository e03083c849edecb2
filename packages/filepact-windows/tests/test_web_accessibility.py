"""Every page in a real browser: for keys alone, for screen readers, and for eyes that need contrast.

The measures are those of WCAG 2.2, level AA, of what can be computed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from filepact.domain.operation import Actor, Approval
from page_scenes import FILES, SESSIONS, old, propose_all
from tests.browser import CHROMIUM, Browser
from tests.workspace.acting import write

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is here (package chromium)"),
]

CONTROLS: Final = frozenset(
    {"button", "link", "textbox", "checkbox", "radio", "combobox", "DisclosureTriangle", "dialog"}
)
NAMED: Final = CONTROLS | {"image", "img", "RootWebArea", "navigation", "complementary", "group"}
"""Roles of which a screen reader says the name."""

_LONGEST: Final = 250  # characters that somebody has to listen to before they know what it is

STRUCTURE: Final = """(() => {
  const found = [], all = (s) => [...document.querySelectorAll(s)];
  const ids = all("[id]").map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`twice: #${id}`);
  if (!document.documentElement.lang) found.push("the page has no language");
  if (all("main").length !== 1) found.push(`${all("main").length} of main`);
  if (all("h1").length !== 1) found.push(`${all("h1").length} of h1`);
  let level = 0;
  for (const one of all("h1, h2, h3, h4, h5, h6")) {
    if (!one.checkVisibility()) continue;
    const now = Number(one.tagName[1]);
    if (level && now > level + 1) found.push(`h${level} is followed by h${now}: ${one.innerText}`);
    level = now;
  }
  for (const one of all("[aria-labelledby], [aria-describedby], [aria-controls], label[for]"))
    for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"])
      for (const id of (one.getAttribute(name) ?? "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) found.push(`${name} of nothing: ${id}`);
  for (const one of all("[tabindex]")) if (one.tabIndex > 0) found.push(`an order of its own: ${one.outerHTML}`);
  for (const one of all("ul, ol"))
    for (const child of one.children) if (child.tagName !== "LI") found.push(`${child.tagName} in a list`);
  return found;
})()"""

CONTRAST: Final = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, under, share) => under.map((one, at) => at > 2 ? 1 : one + (top[at] - one) * share);
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const chain = (one) => one ? [...chain(one.parentElement), one] : [];
  const found = new Map();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode, holder = text.parentElement;
    if (!text.data.trim() || holder.closest("script, style, button:disabled, [hidden]")) continue;
    if (!holder.checkVisibility() || getComputedStyle(holder).clipPath !== "none") continue;
    const style = getComputedStyle(holder);
    let under = read(getComputedStyle(document.documentElement).colorScheme.includes("x") ? "white" : "Canvas");
    let opacity = 1;
    for (const one of chain(holder)) {
      const its = getComputedStyle(one), paint = read(its.backgroundColor);
      opacity *= Number(its.opacity);
      under = over(paint, under, paint[3]);
    }
    const ink = read(style.color), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const is = ratio(over(ink, under, ink[3] * opacity), under);
    if (is < (large ? 3 : 4.5)) {
      const name = holder.tagName + "." + holder.className + " " + style.color;
      if (!found.has(name)) found.set(name, `${is.toFixed(2)}: ${name}: ${text.data.trim().slice(0, 40)}`);
    }
  }
  return [...found.values()];
})()"""

REACHABLE: Final = """(() => {
  const some = [...document.querySelectorAll("a[href], button, input, textarea, select, summary, [tabindex='0']")];
  return some.filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0 && one.type !== "hidden")
    .map((one, at) => { one.dataset.walk = at; return at; });
})()"""

FOCUSED: Final = """(() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 || one.matches(".default");
  const over = document.elementFromPoint(box.x + Math.min(box.width, 40) / 2, box.y + Math.min(box.height, 20) / 2);
  const covered = over && !one.contains(over) && !over.contains(one);
  return [one.dataset.walk ?? null, ring, covered && !one.matches(".default") ? over.outerHTML.slice(0, 80) : "", one.outerHTML.slice(0, 120)];
})()"""


def problems(browser: Browser) -> list[str]:
    """What is wrong with the page as it is now; none is wanted."""
    found = [str(one) for one in browser.says(STRUCTURE)]
    browser.send("Accessibility.enable")
    for node in browser.send("Accessibility.getFullAXTree")["nodes"]:
        role, name = (node.get(key, {}).get("value", "") for key in ("role", "name"))
        facts = {one["name"]: one["value"].get("value") for one in node.get("properties", ())}
        if node.get("ignored"):
            continue
        if role in NAMED and role != "group" and not name.strip():
            found.append(f"without a name: {role} {json.dumps(facts)}")
        if role in CONTROLS and len(name) > _LONGEST:
            found.append(f"a name of {len(name)} characters: {role} {name[:60]}")
        if facts.get("focusable") and role in ("", "generic", "none"):
            found.append(f"without a role: {name} {json.dumps(facts)}")
    browser.send("Accessibility.disable")
    return found


def walked(browser: Browser) -> list[str]:
    """What is wrong for somebody who has the Tab key alone, from the top of the page to its end."""
    wanted = set(browser.says(REACHABLE))
    browser.says("document.activeElement.blur(); scrollTo(0, 0)")
    found: list[str] = []
    seen: set[int] = set()
    for _ in range(2 * len(wanted) + 10):  # twice around: the first Tab may be in the middle
        browser.key("Tab")
        number, ring, covered, what = browser.says(FOCUSED)
        if number is None or int(number) in seen:
            continue
        seen.add(int(number))
        if not ring:
            found.append(f"the focus cannot be seen: {what}")
        if covered:
            found.append(f"the focus is covered by {covered}: {what}")
        if seen == wanted:
            break
    missing = [
        browser.says(f"document.querySelector('[data-walk=\"{one}\"]').outerHTML.slice(0, 120)")
        for one in sorted(wanted - seen)
    ]
    return found + [f"no Tab leads to it: {one}" for one in missing]


def visited(browser: Browser, page: Page, ids: list[str], name: str) -> None:
    """Go to a page by its name here."""
    places = {
        "proposal": f"/p/{ids[5]}",
        "split": f"/p/{ids[5]}?view=split",
        "turn": f"/turn/{ids[6]}",
        "edit": "",
        "list": "/",
        "timeline": "/log",
        "grants": "/grants",
        "operation": "",
        "keys": "/",
        "ruled": f"/p/{ids[12]}",
        "moved": f"/p/{ids[10]}",
        "stale": f"/p/{ids[11]}",
        "nothing": "/p/c000000000",
    }
    home = page.link.partition("/enter")[0]
    drawn = "document.body.dataset.ready === 'yes'"
    if name == "edit":
        visited(browser, page, ids, "proposal")
        browser.key("e")
        browser.until(f"{drawn} && document.body.dataset.kind === 'edit'")
        return
    if name == "operation":
        visited(browser, page, ids, "timeline")
        address = browser.says("document.querySelector('table.list a.go').href")
        browser.send("Page.navigate", url=address)
        browser.until(f"location.href === {address!r} && {drawn}")
        return
    address = f"{home}{places[name]}"
    browser.send("Page.navigate", url=address)
    browser.until(f"location.href === {address!r} && {drawn}")
    if name == "keys":
        browser.key("?")
        browser.until("document.querySelector('dialog[open]')")


NAMES: Final = (
    *("list", "proposal", "split", "edit", "turn", "timeline", "operation", "grants", "keys"),
    *("ruled", "moved", "stale", "nothing"),
)


def test_every_page_can_be_read_seen_and_used_by_keys_alone(
    browser: Browser, page: Page, root: Path
) -> None:
    workspace, word = page.review.workspace, Approval(Actor("person", "ann"))
    ids = propose_all(workspace)
    # Of every kind of word: done, undone, for which a rule asks, approved in advance, moved, without a place.
    for one in ids[:3]:
        workspace.approve(one, word)
    workspace.undo(page.review.session, workspace.log(limit=1)[0].id)
    asked = [
        str(write(workspace, SESSIONS[0], name, "# Be kind\n").operation) for name in ("AGENTS.md",)
    ]
    workspace.approving.granted.give(workspace.proposal(ids[0]), "src/**", word)
    ids += asked
    (root / FILES[10]).write_text(f"# a person's\n{old(10)}")
    (root / FILES[11]).write_text("all of it is another\n")
    browser.go(page.link)
    found: dict[str, Any] = {}
    for width in (1280, 400):
        for dark in (False, True):
            browser.look(dark=dark, width=width, height=800)
            for name in NAMES:
                visited(browser, page, ids, name)
                wrong = [*problems(browser), *browser.says(CONTRAST)]
                if not dark and name != "keys":
                    wrong += walked(browser)
                if wrong:
                    found[f"{name} at {width}, {'dark' if dark else 'light'}"] = wrong
    assert found == {}, json.dumps(found, indent=1)


def test_the_measures_find_what_is_wrong(browser: Browser, page: Page) -> None:
    propose_all(page.review.workspace)
    browser.go(page.link)
    browser.until("document.body.dataset.ready === 'yes'")
    assert [*problems(browser), *browser.says(CONTRAST), *walked(browser)] == []
    browser.says(
        "document.querySelector('main').insertAdjacentHTML('beforeend', "
        '\'<button></button><p id="pale">pale</p><h5>deep</h5><i tabindex="0">x</i><img src="data:,">\'); '
        "document.querySelector('#pale').style.opacity = 0.3; "
        "document.querySelector('i').style.outline = 'none'"
    )
    wrong = problems(browser)
    assert len([one for one in wrong if one.startswith("without a")]) == 3, wrong
    assert len([one for one in wrong if "followed by h5" in one]) == 1, wrong
    assert len(browser.says(CONTRAST)) == 1
    assert len(walked(browser)) == 1
