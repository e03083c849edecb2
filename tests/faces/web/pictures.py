"""Makes the pictures of docs/images: `./scripts/pictures`."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.faces.web.server import serve
from filepact.workspace.review import Review
from tests.architecture.project import ROOT
from tests.faces.web.browser import Browser
from tests.faces.web.scenes import propose_all, set_up

if TYPE_CHECKING:
    from filepact.workspace.workspace import Workspace

IMAGES = ROOT / "docs" / "images"
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
            browser.look(dark=False, height=760)
            browser.go(links[0])
            browser.until(f"{READY} && document.body.dataset.kind === 'inbox'")
            browser.key("j")
            browser.key("o")
            browser.until(f"{READY} && document.body.dataset.kind === 'proposal'")
            browser.picture(IMAGES / "review-proposal.png")
            browser.look(dark=True, height=760)
            browser.key("v")
            browser.until(f"{READY} && document.querySelector('table.split')")
            browser.picture(IMAGES / "review-split.png")
            browser.look(dark=False, height=760)
            browser.key("l")
            browser.until(f"{READY} && document.querySelector('svg rect')")
            browser.picture(IMAGES / "review-timeline.png")
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
            for one in propose_all(workspace)[:4]:
                workspace.approve(one, Approval(Actor("person", "ann")))
            take(workspace)


if __name__ == "__main__":
    main()
