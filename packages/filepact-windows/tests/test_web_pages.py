"""The pages: what a person sees is all that is in it, and what they decide is done, as they saw it."""

from __future__ import annotations

import html
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from socket import SO_RCVBUF, SOL_SOCKET, socket
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Approval, Session
from filepact.values import replace
from filepact_cli.review import in_groups
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Page
    from filepact.workspace.workspace import Workspace

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = OLD.replace("line 3\n", "third\n").replace("line 20\n", "").replace("line 38\n", "last\n")


@pytest.fixture
def workspace(open_here: Callable[..., Workspace], root: Path) -> Workspace:
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(OLD)
    return open_here("preview")


@pytest.fixture
def page(workspace: Workspace, serving: Callable[[Workspace], Page]) -> Page:
    page = serving(workspace)
    page.enter()
    return page


def propose(page: Page, session: Session, path: str = "a.txt", text: str = NEW) -> str:
    return f"/p/{write(page.review.workspace, session, path, text).operation}"


def told(page: Page, session: Session) -> str:
    return " ".join(one.text for one in page.review.workspace.events(session))


def waiting(page: Page) -> list[str]:
    return [f"/p/{one.id}" for one in page.review.waiting()]


class Texts(HTMLParser):
    """What a browser would take for text, and for elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.values: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.values += [value for _, value in attrs if value]

    def handle_data(self, data: str) -> None:
        self.found.append(data)


# -- deciding --------------------------------------------------------------------------------------


def test_hunks_are_accepted_and_rejected_one_by_one_and_the_agent_is_told_which(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session)
    after = page.send(path, {"do": "reject:2", "reason": "keep <20>"})
    assert "rejected" in after.said
    assert (root / "a.txt").read_text() == OLD
    (left,) = waiting(page)
    assert left != path
    page.send(left, {"do": "accept:1"})
    assert (root / "a.txt").read_text() == OLD.replace("line 3\n", "third\n")
    (left,) = waiting(page)
    page.send(left, {"do": "accept:1"})
    assert (root / "a.txt").read_text() == NEW.replace("line 19\n", "line 19\nline 20\n")
    assert waiting(page) == []
    heard = told(page, session)
    assert "hunk 2 rejected" in heard
    assert "keep <20>" in heard


def test_a_decision_leads_to_what_waits_next(page: Page, session: Session) -> None:
    first, second = propose(page, session), propose(page, session, "b.txt")
    after = page.send(first, {"do": "accept:1,2,3"})
    assert f'data-id="{second[3:]}" class="entry"' in after.text
    assert 'data-kind="proposal"' in after.text
    assert 'data-kind="inbox"' in page.send(second, {"do": "reject:1,2,3"}).text


def test_an_empty_answer_decides_nothing(page: Page, session: Session) -> None:
    path = propose(page, session)
    for what in ({"do": "nothing:"}, {}, {"do": "accept"}, {"do": "Accept:1"}):
        assert page.send(path, {"reason": "typed, and Enter pressed", **what}).code in (204, 409)
    assert waiting(page) == [path]


@pytest.mark.parametrize("numbers", ["", "4", "0", "1,1,9", "-1", "1 ", "x", "99999999999"])
def test_hunks_that_are_not_there_are_not_decided_about(
    page: Page, session: Session, root: Path, numbers: str
) -> None:
    path = propose(page, session)
    assert page.send(path, {"do": f"accept:{numbers}"}).code == 409
    assert page.send(path, {"do": f"reject:{numbers}"}).code == 409
    assert waiting(page) == [path]
    assert (root / "a.txt").read_text() == OLD


def test_what_was_not_shown_cannot_be_accepted(page: Page, session: Session, root: Path) -> None:
    other = propose(page, session, "b.txt")
    path = propose(page, session)
    assert page.send(path, {"do": "accept:1"}, at=other).code == 409
    assert page.send(path, {"do": "accept:1", "fine": "1"}).code == 409
    assert (root / "a.txt").read_text() == OLD
    assert "done" in page.send(path, {"do": "accept:1"}).said


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("HEAD", {}),
        ("GET", {"Sec_Purpose": "prefetch"}),
        ("GET", {"Sec_Purpose": "prefetch;prerender"}),
        ("GET", {"Purpose": "prefetch"}),
        ("GET", {"X_Purpose": "preview"}),
        ("GET", {"X_Moz": "Prefetch"}),
    ],
)
def test_who_fetches_a_page_without_looking_at_it_has_not_seen_it(
    page: Page, session: Session, root: Path, method: str, said: dict[str, str]
) -> None:
    path, secret = propose(page, session), page.get(propose(page, session, "b.txt")).secret
    assert page.ask(method, path, Cookie=page.cookie, **said).code in (405, 503)
    accept = {"secret": secret, "do": "accept:1"}
    assert page.post(path, accept).code == 409
    assert page.get(path).code == 200
    assert page.post(path, accept).code == 303
    assert "third" in (root / "a.txt").read_text()


def test_a_page_that_a_browser_did_not_take_was_not_shown(page: Page, session: Session) -> None:
    path = propose(page, session, text=f"{'x' * 3_900}\n" * 1_900)
    secret = page.get(propose(page, session, "b.txt")).secret
    with socket() as browser:
        browser.setsockopt(SOL_SOCKET, SO_RCVBUF, 4_096)
        browser.connect(("127.0.0.1", int(page.host.rpartition(":")[2])))
        head = f"GET {path} HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\n\r\n"
        browser.sendall(head.encode())
        assert browser.recv(15) == b"HTTP/1.1 200 OK"
    accept = {"secret": secret, "do": "accept:1"}
    assert page.post(path, accept).code == 409
    assert len(page.get(path).text) > 7_000_000
    assert page.post(path, accept).code == 303


def test_a_long_proposal_has_to_be_looked_through_to_its_end(
    page: Page, session: Session, root: Path
) -> None:
    long = "".join(f"new {number}\n" for number in range(4_500))
    path = propose(page, session, "long.txt", long)
    first = page.get(path)
    assert "page 1 of 3" in first.text
    assert "new 1999" not in first.text
    assert page.send(path, {"do": "accept:1"}).code == 409
    assert "new 3000" in page.get(f"{path}?page=2").text
    assert page.send(path, {"do": "accept:1"}).code == 409
    assert "new 4499" in page.get(f"{path}?page=3").text
    assert page.get(f"{path}?page=4").code == 404
    page.send(path, {"do": "accept:1"})
    assert (root / "long.txt").read_text() == long


def test_a_line_that_no_page_shows_whole_is_not_accepted_in_one(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session, "wide.txt", f"{'x' * 100_000}hidden\n")
    shown = page.get(path)
    assert "hidden\n" not in shown.text
    assert len(shown.text) < 50_000
    assert page.send(path, {"do": "accept:1"}).code == 409
    assert not (root / "wide.txt").exists()
    page.send(path, {"do": "reject:1"})
    assert waiting(page) == []


def test_where_others_changed_the_file_nothing_is_done_and_it_is_shown_again(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session)
    page.get(path)
    (root / "a.txt").write_text("first\n" + OLD)
    after = page.send(path, {"do": "accept:1,2,3"})
    assert "Nothing was done" in after.said
    assert (root / "a.txt").read_text() == "first\n" + OLD
    (now,) = waiting(page)
    assert now != path
    assert "first" in after.text
    page.send(now, {"do": "accept:1,2,3"})
    assert (root / "a.txt").read_text() == "first\n" + NEW


def test_where_others_changed_the_same_lines_it_is_not_done_and_waits(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session)
    (root / "a.txt").write_text(OLD.replace("line 3\n", "mine\n"))
    assert "no place" in page.get("/").text
    assert page.send(path, {"do": "accept:1,2,3"}).code == 409
    assert waiting(page) == [path]


def test_what_somebody_else_has_decided_leads_on(
    page: Page, session: Session, open_here: Callable[..., Workspace]
) -> None:
    path, other = propose(page, session), propose(page, session, "b.txt")
    secret = page.get(path).secret
    elsewhere = open_here("preview")
    elsewhere.reject(path[3:], Approval(Actor("person", "bob")))
    reply = page.post(path, {"secret": secret, "do": "accept:1,2,3"})
    assert (reply.code, reply.headers["location"]) == (303, "/")
    grown = propose(page, session, "b.txt", NEW + "more\n")
    assert page.get(other).headers["location"] == grown
    assert page.get("/p/czzzzzzzzzz").code == 404


def test_what_was_done_is_taken_back_and_brought_back(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session)
    other = propose(page, session, "b.txt")
    page.send(path, {"do": "accept:1,2,3"})
    assert (root / "a.txt").read_text() == NEW
    assert "taken back" in page.send("/undo", {}, at=other).said
    assert (root / "a.txt").read_text() == OLD
    assert "brought back" in page.send("/redo", {}, at=other).said
    assert (root / "a.txt").read_text() == NEW
    assert page.send("/redo", {}, at=other).code == 303 or waiting(page) == [other]


def test_split_hunks_have_numbers_of_their_own(page: Page, session: Session, root: Path) -> None:
    near = OLD.replace("line 3\n", "third\n").replace("line 5\n", "fifth\n")
    path = propose(page, session, text=near)
    assert "hunk 1 of 1" in page.get(path).text
    assert "hunk 2 of 2" in page.get(f"{path}?fine=1").text
    page.send(path, {"do": "accept:2", "fine": "1"}, at=f"{path}?fine=1")
    assert (root / "a.txt").read_text() == OLD.replace("line 5\n", "fifth\n")


def test_a_turn_is_looked_at_and_decided_about_as_a_whole(
    page: Page, session: Session, other: Session, root: Path
) -> None:
    mine = [
        propose(page, session),
        propose(page, session, "b.txt"),
        propose(page, session, "c", "c\n"),
    ]
    theirs = propose(page, other, "d", "d\n")
    ids = ",".join(one[3:] for one in mine)
    place = f"/turn/{mine[1][3:]}"
    assert page.send(place, {"do": f"accept:{ids}"}, at=theirs).code == 409
    page.send(place, {"do": f"accept:{ids},{theirs[3:]}"})
    assert waiting(page) == [theirs]
    assert (root / "b.txt").read_text() == NEW
    more = [propose(page, other, f"e{number}", "e\n") for number in range(2)]
    ids = ",".join(one[3:] for one in (theirs, *more))
    page.send(f"/turn/{theirs[3:]}", {"do": f"reject:{ids}", "reason": "not now"}, at="/")
    assert waiting(page) == []
    assert told(page, other).count("not now") == 3


def test_a_removed_file_and_one_that_goes_back_are_decided_about_as_a_whole(
    page: Page, session: Session, root: Path
) -> None:
    path = f"/p/{delete(page.review.workspace, session, 'a.txt').operation}"
    assert "removed" in page.get(path).text
    page.send(path, {"do": "accept:1"})
    assert not (root / "a.txt").exists()


def test_like_changes_are_accepted_in_advance_and_that_is_revoked_in_the_page(
    page: Page, session: Session, root: Path
) -> None:
    path = propose(page, session, "docs/a.md", "a\n")
    assert page.send(path, {"do": "accept:1", "also": "src/**"}).code == 409
    assert waiting(page) == [path]
    assert "in advance" in page.send(path, {"do": "accept:1", "also": "docs/**"}).said
    propose(page, session, "docs/b.md", "b\n")
    assert (root / "docs/b.md").read_text() == "b\n"
    shown = page.get("/grants")
    (given,) = re.findall(r'action="/grants/(g[0-9a-z]+)"', shown.text)
    assert "docs/**" in shown.text
    assert "counts no more" in page.send(f"/grants/{given}", {}, at="/grants").said
    assert page.post(f"/grants/{given}", {"secret": shown.secret}).code == 303
    third = propose(page, session, "docs/c.md", "c\n")
    assert waiting(page) == [third]


# -- editing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_person_edits_before_it_is_done_and_both_texts_are_kept(
    page: Page, session: Session, root: Path, end: str
) -> None:
    text = f"{end}<textarea>a & b</textarea>{end}x{end}"
    path = propose(page, session, "new.txt", text)
    field = page.get(f"{path}/edit?file=0").text
    assert field.count("</textarea>") == 1
    sent = text.replace("\r\n", "\n").replace("\n", "\r\n").replace("x", "mine")
    after = page.send(
        f"{path}/edit", {"file": "0", "text": sent, "reason": "so"}, at=f"{path}/edit?file=0"
    )
    assert "Nothing is done yet" in after.said
    assert not (root / "new.txt").exists()
    (now,) = waiting(page)
    page.send(now, {"do": "accept:1"})
    assert (root / "new.txt").read_bytes() == text.replace("x", "mine").encode()
    workspace = page.review.workspace
    assert workspace.texts(workspace.proposal(path[3:]))[0].after == text
    assert "changed it" in told(page, session)


@pytest.mark.parametrize("text", ["a\u202eb\n", "a\r\nb\n", "a\rb\n", "\x1b[2J\n", "p\u0430ypal\n"])
def test_a_text_that_a_field_would_not_show_or_keep_is_not_edited_there(
    page: Page, session: Session, text: str
) -> None:
    path = propose(page, session, "odd.txt", text)
    assert page.get(f"{path}/edit?file=0").code == 409
    reply = page.send(f"{path}/edit", {"file": "0", "text": "x"}, at=path)
    assert reply.code == 409
    assert waiting(page) == [path]


@pytest.mark.parametrize("number", ["1", "-1", "", "x", "9" * 30])
def test_a_file_that_is_not_there_is_not_edited(page: Page, session: Session, number: str) -> None:
    path = propose(page, session)
    assert page.get(f"{path}/edit?file={number}").code == 404


# -- looking ---------------------------------------------------------------------------------------


def test_news_are_told_to_a_page_that_waits_for_them(page: Page, session: Session) -> None:
    path = propose(page, session)
    version = re.findall(r'data-version="([^"]+)"', page.get("/").text)[0]
    propose(page, session, "b.txt")
    news = page.get(f"/wait?seen={version}").text
    assert path[3:] in news
    assert version not in news
    assert version not in page.get("/wait?seen=nothing").text


def test_the_timeline_has_what_was_done_by_file_agent_and_turn(
    page: Page, open_here: Callable[..., Workspace], session: Session
) -> None:
    workspace = open_here()
    turn = Session("s7", Actor("agent", "other <b>", "1"), turn="t & 1")
    first = write(workspace, session, "a.txt", NEW).operation
    second = write(workspace, turn, "dir/b.txt", "b\n").operation
    third = edit(workspace, turn, "a.txt", "third", "3rd").operation
    everything = page.get("/log").text
    assert "<svg" in everything
    assert all(one in everything for one in (first, second, third))
    for query, found in (
        ("path=a.txt", {first, third}),
        ("path=dir", {second}),
        ("agent=other+%3Cb%3E", {second, third}),
        ("turn=t+%26+1&path=dir", {second}),
        ("agent=nobody", set()),
    ):
        shown = page.get(f"/log?{query}").text
        assert {one for one in (first, second, third) if one in shown} == found, query
    assert page.get("/log?path=../../etc").code == 409
    shown = page.get(f"/o/{third}").text
    assert "3rd" in shown
    assert "taken back" in page.send(f"/o/{third}/undo", {}, at=f"/o/{third}").said
    assert "undone by" in page.get("/log").text
    assert page.get("/o/czzzzzzzzzz").code == 404


def test_what_cannot_all_go_back_goes_back_in_part_by_a_button(
    page: Page, open_here: Callable[..., Workspace], root: Path
) -> None:
    workspace, agent = open_here(), Session("s7", Actor("agent", "other"))
    with workspace.draft(agent, "t") as draft:
        for target in draft.open_all(["a.txt", "b.txt"]):
            draft.write(target, NEW)
        made = workspace.submit(draft, "write two files").operation
    (root / "a.txt").write_text("of a person\n")
    refused = page.send(f"/o/{made}/undo", {}, at=f"/o/{made}")
    assert refused.code == 409
    assert f"filepact undo {made} --partly" in html.unescape(refused.text)
    form = re.search(
        r'action="([^"]+)">(?=(?:(?!</form>).)*name="partly" value="(1)")', refused.text
    )
    assert form is not None
    done = page.send(form[1], {"partly": form[2]}, at=f"/o/{made}")
    assert "a.txt" in done.said
    assert (root / "a.txt").read_text() == "of a person\n"
    assert (root / "b.txt").read_text() == OLD


def test_older_operations_are_on_further_pages(
    page: Page, open_here: Callable[..., Workspace]
) -> None:
    workspace = open_here()
    agent = Session("s8", Actor("agent", "busy"))
    ids = [write(workspace, agent, "n.txt", f"{number}\n").operation for number in range(203)]
    shown = page.get("/log").text
    assert ids[-1] in shown
    assert ids[0] not in shown
    older = re.findall(r'href="(/log\?before=\d+)"', shown)[0]
    assert ids[0] in page.get(older).text
    assert re.findall(r'href="(/log\?before=\d+)"', page.get(older).text) == []


# -- hostile texts ---------------------------------------------------------------------------------

CODES = [
    code
    for code in range(0x110000)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and chr(code) not in "\n\t\r\0"
]
HTML = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;b&gt;'\"><a href=javascript:x>"
    "</textarea></table></form><form action=//evil><!-- ]]> {{x}} %3Cb%3E \x1b[31mred\x1b[0m"
)


def test_no_byte_of_an_agents_text_is_raw_in_any_page(
    page: Page, open_here: Callable[..., Workspace], root: Path
) -> None:
    """Code points that are hidden or obeyed, HTML, and terminals' orders: in texts, names, and who it is."""
    text = HTML + "\n" + "".join(f"<{chr(code)}>\n" for code in CODES)
    hostile = Session(HTML[:60], Actor("agent", HTML, "\u202e"), turn=HTML + "\u2066")
    name = "<img src=x onerror=alert(1)>'\"&.txt"
    (root / "\u202etxt").write_text("named so by somebody else\n")
    done = write(open_here(), hostile, name, text)
    if done.status == "pending":
        page.send(f"/p/{done.operation}", {"do": "accept:1", "reason": HTML})
    path = propose(page, hostile, name, "".join(reversed(text.splitlines(keepends=True))) + "more")
    propose(page, hostile, "\u202etxt", "x\n")
    places = ["/", path, f"{path}?view=split", f"{path}?fine=1", f"/turn/{path[3:]}", "/log"]
    places += [f"/log?agent={HTML[:8]}", f"/o/{done.operation}", f"{path}/diagnostics"]
    for place in places:
        shown = page.get(place.replace(" ", "+"))
        texts = Texts()
        texts.feed(shown.text)
        whole = "".join((*texts.found, *texts.values))
        raw = [hex(code) for code in CODES if chr(code) in whole]
        assert not raw, (place, raw)
        assert not texts.tags & {"img", "b>", "i>"} - {"svg"}, place
        assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>([^<]*)", shown.text))
    assert len(CODES) > 200
    assert "onerror=alert" in page.get(path).text


# -- colours --------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["unified", "split"])
def test_a_diff_is_coloured_by_the_name_of_its_file_and_stays_the_same_text(
    page: Page, session: Session, view: str
) -> None:
    text = 'def one(): # "<b>&\n    return "<script>" + 12\n'
    place = propose(page, session, "new.py", text)
    shown = page.get(f"{place}?view={view}").text
    for kind, word in (("keyword", "def"), ("number", "12"), ("keyword", "return")):
        assert f'<span class="{kind}">{word}</span>' in shown
    assert '<span class="string">"&lt;script&gt;"</span>' in shown
    cells = re.findall(r'<td class="text[^"]*">(.*?)</td>', shown)
    bare = [html.unescape(re.sub(r"</?(?:span|mark)[^>]*>", "", one)) for one in cells]
    assert [f"{one}\n" for one in bare if one] == text.splitlines(keepends=True)
    plain = page.get(propose(page, session, "new.txt", text)).text
    assert '<span class="keyword">' not in plain


def test_changed_words_are_marked_whatever_their_colour(page: Page, session: Session) -> None:
    (Path(page.review.workspace.guard.roots[0].path) / "old.py").write_text("x = 10  # ten\n")
    place = propose(page, session, "old.py", "x = 20  # ten\n")
    shown = page.get(place).text
    assert '<mark class="number">' in shown
    assert '<span class="comment"># ten</span>' in shown


def test_a_very_long_hunk_is_not_coloured(page: Page, session: Session) -> None:
    place = propose(page, session, "long.py", "return 1\n" * 1_500)
    assert '<span class="keyword">' not in page.get(place).text


def test_who_only_looks_for_news_does_not_take_what_the_next_page_is_to_say(
    page: Page, session: Session
) -> None:
    place = propose(page, session)
    secret = page.get(place).secret
    page.post(place, {"secret": secret, "do": "reject:1,2,3"})
    assert page.get("/?part=1").said == ""
    assert "rejected" in page.get("/").said
    assert page.get("/").said == ""


# -- unchanged lines ------------------------------------------------------------------------------

FOLD = re.compile(r'<section class="fold" id="(\w+)"><a href="([^"]+)" rel="nofollow">([^<]*)</a>')


def folds(page: Page, address: str) -> dict[str, tuple[str, str]]:
    found = FOLD.findall(page.get(address).text)
    return {name: (html.unescape(place).partition("#")[0], said) for name, place, said in found}


def test_lines_between_hunks_are_folded_and_a_link_shows_them(page: Page, session: Session) -> None:
    path = propose(page, session)
    at = folds(page, path)
    assert {name: said for name, (_, said) in at.items()} == {
        "above2": "… 10 unchanged lines",
        "above3": "… 11 unchanged lines",
    }
    shown = page.get(at["above2"][0]).text
    for number in range(7, 17):
        assert f'<td class="no">{number}</td><td class="no">{number}</td>' in shown
        assert f">line {number}<" in shown
    assert ">line 25<" not in shown
    # Afterwards there is one line less; what is asked for stays asked for, until it is folded again.
    both = folds(page, at["above2"][0])["above3"][0]
    shown = page.get(both).text
    assert '<td class="no">25</td><td class="no">24</td>' in shown
    assert ">line 7<" in shown
    after = folds(page, both)
    assert after["above2"][1] == "fold 10 unchanged lines"
    assert folds(page, after["above2"][0]) == folds(page, at["above3"][0])


def test_every_line_of_a_file_can_be_seen_once(page: Page, session: Session) -> None:
    new = OLD.replace("line 10\n", "tenth\nand more\n").replace("line 30\n", "")
    for fine in ("", "&fine=1"):
        path = f"{propose(page, session, 'b.txt', new)}?page=1{fine}"
        names = ",".join(folds(page, path))
        assert names == "above1,above2,below2"
        texts = re.findall(r'<td class="text">([^<]*)<', page.get(f"{path}&open={names}").text)
        assert sorted(one for one in texts if one in OLD) == sorted(OLD.splitlines())


def test_nothing_is_folded_where_a_hunk_ends_with_its_file(page: Page, session: Session) -> None:
    for number, new in enumerate((f"first\n{OLD}last\n", OLD.replace("line 39\n", ""), OLD[:-1])):
        path = propose(page, session, "b.txt", new)
        assert not [name for name in folds(page, path) if name.startswith("below")], number


def test_what_is_asked_for_is_bounded_and_never_raw(
    page: Page, session: Session, root: Path
) -> None:
    hostile = f"{HTML}\u202e\n" * 3_000
    (root / "c.txt").write_text(f"first\n{hostile}last\n")
    text = f"1st\n{(root / 'c.txt').read_text().partition(chr(10))[2]}".replace("last\n", "end\n")
    path = propose(page, session, "c.txt", text)
    shown = page.get(f"{path}?open=above2,below2,x,%3Cb%3E,above99,{'above2,' * 90}").text
    assert "1,994 more are not shown here" in shown
    texts = Texts()
    texts.feed(shown)
    assert "\u202e" not in shown
    assert "img" not in texts.tags
    assert shown.count("onerror=alert") < 1_100
    for odd in ("above", "above0000000", "../x", "%3Cb%3E", "below-1"):
        assert page.get(f"{path}?open={odd}").code == 200


@pytest.mark.parametrize("view", ["unified", "split"])
def test_a_browser_never_has_a_large_table_to_lay_out(
    page: Page, session: Session, view: str
) -> None:
    """It would draw nothing before it has the height of every row."""
    path = propose(page, session, "long.txt", "".join(f"line {n}\n" for n in range(5_000)))
    shown = page.get(f"{path}?view={view}").text
    tables = shown.split("<table ")[1:]
    rows = [one.count("<tr") for one in tables]
    assert max(rows) <= 100
    assert sum(rows) == 1_998  # two lines are the head of the diff
    assert shown.count('<div class="part"><table ') == len(tables) == 20
    css = page.get("/page.css").text
    assert "content-visibility: auto" in css
    assert "table-layout: auto" not in css


# -- where one is ----------------------------------------------------------------------------------


def test_every_page_names_the_project_and_what_the_person_had_asked_for(
    page: Page, session: Session
) -> None:
    session = replace(session, turn="t1")
    page.review.workspace.asked.turn(session, "make the <b>header</b> blue")
    path = propose(page, session)
    for place in ("/", path, f"/turn/{path[3:]}", "/log", "/grants"):
        shown = page.get(place).text
        assert re.search(r"<title>[^<]* - root</title>", shown), place
        assert "make the &lt;b&gt;header&lt;/b&gt; blue" in shown


def test_a_proposal_says_which_of_how_many_it_is_and_leads_to_its_neighbours(
    page: Page, session: Session, root: Path
) -> None:
    assert 'class="place"' not in page.get(propose(page, session)).text
    propose(page, session, "new.txt", "new\n")
    propose(page, session, "b.txt", "b\n")
    every = [f"/p/{one.id}" for group in in_groups(page.review.waiting()) for one in group.entries]
    for at, path in enumerate(every):
        shown = page.get(path).text
        assert f"<b>{at + 1} of 3</b>" in shown
        led = dict(re.findall(r'<a href="(/p/\w+)" rel="(prev|next)">', shown))
        beside = {"prev": every[at - 1 : at], "next": every[at + 1 : at + 2]}
        assert led == {path: kind for kind, paths in beside.items() for path in paths}


def test_what_becomes_of_files_is_a_letter_with_a_word(page: Page, session: Session) -> None:
    propose(page, session)
    propose(page, session, "new.txt", "new\n")
    shown = page.get("/").text
    assert re.search(r'<abbr title="modified" class="became M">M</abbr> a.txt', shown)
    assert re.search(r'<abbr title="added" class="became A">A</abbr> new.txt', shown)
    entry = re.search(r"new\.txt.*?</a>", shown, re.DOTALL)
    assert entry is not None
    assert '<b class="plus">+1</b> <b class="minus">&minus;0</b>' in entry[0]
