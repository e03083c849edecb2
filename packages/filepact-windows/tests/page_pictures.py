"""Makes the pictures of docs/images: `./scripts/pictures`."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Approval, Session
from filepact_cli.review import Review
from filepact_windows.web.server import serve
from page_scenes import SESSIONS, propose_all, set_up
from tests.architecture.pictures import IMAGES
from tests.browser import Browser
from tests.workspace.acting import write

if TYPE_CHECKING:
    from filepact.workspace.workspace import Workspace

READY = "document.body.dataset.ready === 'yes'"


def take(workspace: Workspace) -> None:
    """Serve the review of a workspace to a browser, and keep what it shows."""
    review = Review(workspace, Session("cli-1", Actor("person", "ann")))
    links: list[str] = []
    ready, ended = threading.Event(), threading.Event()

    def told(link: str) -> None:
        links.append(link)
        ready.set()

    options = {"port": 0, "told": told, "ended": ended}
    server = threading.Thread(target=serve, args=(review,), kwargs=options)
    server.start()
    try:
        ready.wait(60)
        with Browser() as browser:
            browser.go(links[0])
            browser.until(f"{READY} && document.body.dataset.kind === 'inbox'")
            first = browser.says("document.querySelectorAll('table.list a.go')[1].href")
            home = browser.says("location.origin")
            places = {"list": f"{home}/", "proposal": first, "timeline": f"{home}/log"}
            for width, high in ((1280, 760), (400, 900)):
                for scheme in ("light", "dark"):
                    browser.look(dark=scheme == "dark", width=width, height=high)
                    for name, place in places.items():
                        browser.send("Page.navigate", url=place)
                        browser.until(f"location.href === {place!r} && {READY}")
                        browser.settle()
                        browser.picture(IMAGES / f"review-{name}-{width}-{scheme}.png")
            browser.look(dark=True, width=1280, height=760)
            browser.send("Page.navigate", url=first)
            browser.until(f"location.href === {first!r} && {READY}")
            browser.key("v")
            browser.until(f"{READY} && document.querySelector('table.split')")
            browser.picture(IMAGES / "review-split.png")
    finally:
        ended.set()
        server.join()


def main() -> None:
    """Make a project with proposals, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        root.mkdir()
        set_up(root)
        with open_workspace(
            [str(root)], state_dir=f"{folder}/state", mode="preview", settings=Settings()
        ) as workspace:
            for session in SESSIONS:
                workspace.asked.turn(session, f"Please do this next: {session.turn}.")
            ids = propose_all(workspace)
            write(workspace, SESSIONS[1], ".github/workflows/ci.yml", "on: push\njobs: {}\n")
            for one in ids[:4]:
                workspace.approve(one, Approval(Actor("person", "ann")))
            take(workspace)


if __name__ == "__main__":
    main()
