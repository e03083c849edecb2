"""The door of the page: one browser with the link comes in, and nobody else's page gets through."""

from __future__ import annotations

import re
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from socket import create_connection
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact_windows.web import server
from tests.workspace.acting import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from socket import socket

    from conftest import Page
    from filepact.workspace.workspace import Workspace

HELD = "the text that nobody else may see"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="module")
def workspace(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    state = str(tmp_path_factory.mktemp("state"))
    with open_workspace([str(root)], state_dir=state, mode="preview") as workspace:
        yield workspace


@pytest.fixture(scope="module")
def page(workspace: Workspace, serving: Callable[[Workspace], Page]) -> Page:
    """One for all: nothing here may change anything."""
    session = Session("s1", Actor("agent", "tester", "1.0"))
    for name in ("a.txt", "b.txt"):
        write(workspace, session, name, f"{HELD}\n")
    page = serving(workspace)
    page.enter()
    return page


def proposal(page: Page) -> str:
    return f"/p/{page.review.waiting()[0].id}"


def accepting(page: Page) -> dict[str, str]:
    """A form that would accept a proposal, were it sent by the page."""
    return {"secret": page.get(proposal(page)).secret, "do": "accept:1"}


def untouched(page: Page, root: Path) -> bool:
    return len(page.review.waiting()) == 2 and not (root / "a.txt").exists()


def test_the_link_lets_one_browser_in_and_is_used_up(page: Page) -> None:
    assert HELD in page.get(proposal(page)).text
    again = page.ask("GET", page.entrance)
    assert again.code == 403
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?tokens=x", "?token=" + "A" * 43])
def test_no_other_token_lets_anybody_in(page: Page, query: str) -> None:
    reply = page.ask("GET", f"/enter{query}")
    assert (reply.code, "set-cookie" in reply.headers) == (403, False)


def test_a_token_is_not_used_up_by_a_form_or_under_another_name(
    workspace: Workspace, serving: Callable[[Workspace], Page]
) -> None:
    page = serving(workspace)
    origin = f"http://{page.host}"
    form = "application/x-www-form-urlencoded"
    assert page.ask("POST", page.entrance, "", Origin=origin, Content_Type=form).code == 403
    assert page.ask("HEAD", page.entrance).code == 405
    assert page.ask("GET", page.entrance, Host="evil.example").code == 421
    page.enter()
    assert page.cookie


def test_the_cookie_is_for_this_page_alone(
    workspace: Workspace, serving: Callable[[Workspace], Page]
) -> None:
    page = serving(workspace)
    held = page.ask("GET", page.entrance).headers["set-cookie"]
    assert {part.strip() for part in held.split(";")[1:]} == {
        "HttpOnly",
        "SameSite=Strict",
        "Path=/",
    }


@pytest.mark.parametrize(
    "path", ["/", "/log", "/wait", "/page.js", "/page.css", "/nothing", "/p/c"]
)
@pytest.mark.parametrize(
    "cookie", ["", "filepact=x", "{name}=", "{name}=x", "{name}x", "a=b; {name}=y"]
)
def test_nothing_is_told_without_the_cookie(page: Page, path: str, cookie: str) -> None:
    name = page.cookie.partition("=")[0]
    reply = page.ask("GET", path, Cookie=cookie.format(name=name))
    assert reply.code == 403
    assert HELD not in reply.text


HOSTS = (
    "", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}",
    "127.0.0.1:{port}.evil.example", "localhost:{port}.evil.example", "localhost.:{port}", "[::1]:{port}",
    "0.0.0.0:{port}", "127.0.0.2:{port}", "user@127.0.0.1:{port}", "127.1:{port}", "2130706433:{port}",
)  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_was_led_here_is_refused(page: Page, host: str) -> None:
    """DNS rebinding: the browser believes that it speaks with the other page."""
    named = host.format(port=page.host.partition(":")[2])
    reply = page.get("/", Host=named)
    assert reply.code in (400, 421)
    assert HELD not in reply.text


def test_a_request_with_two_hosts_is_refused(page: Page) -> None:
    connection = HTTPConnection(page.host, timeout=60)
    connection.putrequest("GET", "/", skip_host=True)
    for name in (page.host, "evil.example"):
        connection.putheader("Host", name)
    connection.putheader("Cookie", page.cookie)
    connection.endheaders()
    assert connection.getresponse().status in (400, 421)
    connection.close()


ORIGINS = (
    "null", "http://evil.example", "https://{host}", "http://{host}.evil.example", "http://{host}/", "http://127.0.0.1",
    "http://127.0.0.1:1", "http://localhost", "file://", "http://evil@{host}", "HTTP://{host}", " ", "http://[::1]:1",
)  # fmt: skip


@pytest.mark.parametrize("origin", ["", *ORIGINS])
def test_another_page_decides_nothing(page: Page, root: Path, origin: str) -> None:
    """Cross-origin, also where the other page should have learnt the secret of the form."""
    reply = page.post(proposal(page), accepting(page), Origin=origin.format(host=page.host))
    assert reply.code == 403
    assert untouched(page, root)


@pytest.mark.parametrize("secret", [None, "", "x", "cookie", "other"])
def test_a_form_without_the_secret_of_the_page_does_nothing(
    page: Page, root: Path, secret: str | None
) -> None:
    """CSRF: the cookie came along, and nothing else."""
    form = accepting(page)
    form["secret"] = {"cookie": page.cookie.partition("=")[2], "other": form["secret"][::-1]}.get(
        secret or "", secret or ""
    )
    if secret is None:
        del form["secret"]
    assert page.post(proposal(page), form).code == 403
    assert untouched(page, root)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "x"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_a_browser_says_of_another_page_counts(
    page: Page, root: Path, site: str, method: str
) -> None:
    if not site:
        site = "none, cross-site"
    path = proposal(page)
    if method == "GET":
        assert page.get(path, Sec_Fetch_Site=site).code == 403
    else:
        assert page.post(path, accepting(page), Sec_Fetch_Site=site).code == 403
    assert untouched(page, root)
    assert page.get(path, Sec_Fetch_Site="same-origin").code == 200
    assert page.get(path, Sec_Fetch_Site="none").code == 200


@pytest.mark.parametrize("media", ["", "text/plain", "multipart/form-data", "application/json"])
def test_only_forms_are_taken(page: Page, root: Path, media: str) -> None:
    assert page.post(proposal(page), accepting(page), Content_Type=media).code == 415
    assert untouched(page, root)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_do_nothing(page: Page, root: Path, method: str) -> None:
    assert page.ask(method, proposal(page), Cookie=page.cookie).code == 405
    assert untouched(page, root)


def test_looking_decides_nothing(page: Page, root: Path) -> None:
    for act in ("undo", "redo", proposal(page)[1:], "o/c1234/undo"):
        page.get(f"/{act}?do=accept:1&secret={accepting(page)['secret']}")
    assert untouched(page, root)


PATHS = (
    "/../page.js", "/..%2fpage.js", "/%2e%2e/server.py", "/page.js/..", "/./page.js", "//page.js", "/page.js/",
    "/server.py", "/door.py", "/__init__.py", "/p/../log", "/p/%00", "/p/", "/p//edit", "/p/a/b/c", "/log/", "\\log",
    "/p/c\\..", "/page.js%00", "/PAGE.JS", "/static/page.js", "/etc/passwd", "http://evil.example/log", "*",
    "/p/" + "c" * 5_000, "/o/*", "/turn/%c3%28",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_tricks_with_paths_find_nothing(page: Page, path: str) -> None:
    reply = page.get(path)
    assert reply.code in (303, 400, 404, 409)
    assert HELD not in reply.text
    assert "import" not in reply.text
    assert "root:" not in reply.text


@pytest.mark.parametrize(
    "path", ["/", "/log", "/page.js", "/page.css", "/nothing", "/enter", "/wait"]
)
def test_every_answer_forbids_what_the_page_does_not_need(page: Page, path: str) -> None:
    headers = page.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert not any(name.startswith("access-control") for name in headers)


def test_no_page_has_script_or_style_of_its_own_or_asks_elsewhere(page: Page) -> None:
    for path in ("/", proposal(page), "/log", "/turn/" + proposal(page)[3:]):
        text = page.get(path).text
        assert not re.findall(r"<style|<script>|\sstyle=|\son[a-z]+=|javascript:", text)
        places = re.findall(r'(?:href|src|action)="([^"]*)"', text)
        assert places
        assert all(place.startswith("/") and not place.startswith("//") for place in places)


def test_a_form_that_is_too_much_is_refused(page: Page, root: Path) -> None:
    path, fields = proposal(page), {f"f{number}": "x" for number in range(60)}
    assert page.post(path, {**fields, **accepting(page)}).code == 403
    assert page.post(path, {}, Content_Length=str(10**12)).code == 413
    assert untouched(page, root)


def closed(connection: socket) -> bool:
    """Whether the other side closes a connection; waits for it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def connected(page: Page, said: str = "") -> socket:
    made = create_connection(("127.0.0.1", int(page.host.rpartition(":")[2])), timeout=60)
    made.sendall(said.encode())
    return made


def test_nobody_who_only_connects_locks_the_person_out(
    workspace: Workspace, serving: Callable[[Workspace], Page]
) -> None:
    page = serving(workspace)
    with ExitStack() as stack:
        others = [
            stack.enter_context(connected(page, "GET / HTTP/1.1\r\n" if number % 2 else ""))
            for number in range(300)
        ]
        page.enter()
        assert page.get("/").code == 200
        assert all(map(closed, others[:200]))


def test_the_head_of_a_request_is_not_waited_for_long(
    workspace: Workspace,
    serving: Callable[[Workspace], Page],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_PATIENCE", 0.1)
    page = serving(workspace)
    page.enter()
    asked = f"GET /page.css HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\n"
    for said in ("", "GET / HT", asked):
        with connected(page, said) as stranger:
            assert closed(stranger)
    with connected(page, f"{asked}\r\n") as known:
        answer = HTTPResponse(known)
        answer.begin()
        assert answer.read()
        known.sendall(asked.encode())
        assert closed(known)
