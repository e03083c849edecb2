"""A review that is served as it is, and a client of it; what the tests of the core's faces have."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Session
from filepact_cli.review import Review
from filepact_windows.web.server import serve
from page_client import PageClient
from page_scenes import set_up
from tests.browser import Browser
from tests.conftest import open_here, other, session, workspace
from tests.faces.conftest import cli, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

__all__ = ["cli", "open_here", "other", "programs", "session", "workspace"]
"""Fixtures of the core's tests."""

PERSON = Session("cli-1", Actor("person", "ann"))


class Page(PageClient):
    """The same, with the review that is served."""

    def __init__(self, link: str, review: Review) -> None:
        super().__init__(link)
        self.review = review


@pytest.fixture(scope="module")
def serving() -> Iterator[Callable[[Workspace], Page]]:
    """Serves the reviews of workspaces until the tests of a file are over."""
    ends: list[tuple[threading.Event, threading.Thread]] = []

    def start(workspace: Workspace) -> Page:
        review = Review(workspace, PERSON)
        links: list[str] = []
        ready, ended = threading.Event(), threading.Event()

        def told(link: str) -> None:
            links.append(link)
            ready.set()

        thread = threading.Thread(
            target=serve, args=(review,), kwargs={"port": 0, "told": told, "ended": ended}
        )
        thread.start()
        ends.append((ended, thread))
        assert ready.wait(60)
        return Page(links[0], review)

    yield start
    for ended, _thread in ends:
        ended.set()
    for _ended, thread in ends:
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def page(
    open_here: Callable[..., Workspace],
    root: Path,
    serving: Callable[[Workspace], Page],
    browser: Browser,
) -> Iterator[Page]:
    set_up(root)
    yield serving(open_here("preview"))
    # Its page waits for news, and is not to hear that the journal is closed.
    browser.leave()
