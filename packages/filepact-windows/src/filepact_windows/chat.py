"""The person's side of a server: how they are asked in their chat, and the page that a link there leads to."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from filepact.text.confusables import visible
from filepact.values import replace
from filepact_cli.context import person
from filepact_cli.review import Review
from filepact_windows.elicitation import ElicitationReview
from filepact_wire.pipes import listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import ExitStack

    from filepact.config.settings import ServerSettings
    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

__all__ = ["ElicitationContext"]

_LONGEST = 80


class ElicitationContext:
    """The person at a client; made before the process confines itself.

    Args:
        settings: In which ways they may be asked, and how long they have.
        stack: Ends the page.
        above: What is above the client's program: `no agent above`, or that it is not known.
    """

    def __init__(self, settings: ServerSettings, stack: ExitStack, above: str) -> None:
        self._above = above
        self._settings = settings
        self._stack = stack
        self._session = person()
        self._page: socket.socket | None = None
        packages = ("starlette", "uvicorn")
        if settings.elicitation != "form" and all(find_spec(one) for one in packages):
            # What is inside the sandbox can take no port any more.
            self._page = stack.enter_context(listen("127.0.0.1", 0))

    def chat(self, workspace: Workspace) -> ElicitationReview:
        """Return the review that puts a workspace's waiting changes to the person in their chat."""
        modes = {"both": ("form", "url")}.get(
            self._settings.elicitation, (self._settings.elicitation,)
        )
        link = None if self._page is None else self._linking(workspace, self._page)
        review = partial(self._review, workspace)
        return ElicitationReview(review, frozenset(modes), self._settings.patience, link)

    def _review(self, workspace: Workspace, client: str) -> Review:
        said = " ".join(visible(client).split())[:_LONGEST]
        return Review(workspace, self._speaking(f"in the chat of {said}, {self._above}"))

    def _speaking(self, how: str) -> Session:
        return replace(self._session, actor=replace(self._session.actor, version=how))

    def _linking(self, workspace: Workspace, page: socket.socket) -> Callable[[str], str]:
        """Makes links into the page, which is served from the first one on."""
        ended, lock = Event(), Lock()
        review = Review(
            workspace, self._speaking(f"page, cookie; by a link in the chat, {self._above}")
        )
        served: list[tuple[Thread, Callable[[str], str]]] = []

        def end() -> None:
            ended.set()
            for thread, _ in served:
                thread.join()

        def link(change: str) -> str:
            from filepact_windows.web.access import PageAccess  # noqa: PLC0415 - with the next
            from filepact_windows.web.server import (  # noqa: PLC0415 - an extra, and it takes its time
                addresses,
                serve_at,
            )

            with lock:
                if not served:
                    access = PageAccess(addresses(page))
                    work = partial(_quietly, partial(serve_at, page, access, review, ended))
                    served.append((Thread(target=work, name="page", daemon=True), access.link))
                    served[0][0].start()
            return served[0][1](change)

        self._stack.callback(end)
        return link


def _quietly(work: Callable[[], None]) -> None:
    with suppress(OSError):
        work()
