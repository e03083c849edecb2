"""Make the pictures of the review in a terminal, from a real folder with real proposals."""

from __future__ import annotations

import asyncio
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact_cli.review import Review
from filepact_windows.review_window import ReviewProgram
from tests.architecture.pictures import IMAGES
from tests.workspace.acting import write

if TYPE_CHECKING:
    from collections.abc import Sequence

BEFORE = '''import os


def render(request, template_name, context=None):
    """Render a template."""
    if context is None:
        context = {}
    text = load(template_name)
    return text.format(**context)  # once


def load(name):
    with open(name) as file:
        return file.read()


class View:
    limit = 10

    def get(self, request):
        return render(request, "index.html", {"limit": self.limit})

    def post(self, request):
        return render(request, "done.html")
'''
AFTER = (
    BEFORE.replace("request, template_name, context=None", "req, template_name, context=None")
    .replace("limit = 10", "limit = 20  # as agreed")
    .replace('render(request, "done.html")', 'render(request, "done.html", {})')
)
CLAUDE = Session("s1", Actor("agent", "claude-code", "2.1"), turn="t7k2mq")
CODEX = Session("s2", Actor("agent", "codex", "0.9"), turn="t9w1x4")


def picture(review: Review, name: str, keys: Sequence[str], size: tuple[int, int]) -> None:
    """One picture of the window, after some keys."""
    program = ReviewProgram(review)

    async def go() -> str:
        async with program.run_test(size=size) as pilot:
            while program.selection.item is None:
                await pilot.pause(0.02)
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            return program.export_screenshot(title="filepact review")

    drawn = asyncio.run(go())
    # A page of ours loads nothing from elsewhere, and these names are made anew each time.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"terminal-\d+", "terminal", drawn)
    (IMAGES / f"{name}.svg").write_text(drawn, encoding="utf-8")


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        root, home = Path(folder, "project"), Path(folder, "home")
        for each in (root, home, root / "docs"):
            each.mkdir()
        (root / "shortcuts.py").write_text(BEFORE)
        (root / "docs" / "install.md").write_text("# Install\n\nRun `make`.\n\nThen start it.\n")
        workspace = open_workspace(
            [str(root)], state_dir=str(Path(folder, "state")), mode="preview", home=str(home)
        )
        stack.callback(workspace.close)
        workspace.asked.turn(CLAUDE, "Twenty a page, please")
        workspace.asked.turn(CODEX, "Say how to begin")
        write(workspace, CLAUDE, "shortcuts.py", AFTER)
        write(
            workspace,
            CLAUDE,
            "tests/test_view.py",
            "def test_limit():\n    assert View.limit == 20\n",
        )
        write(
            workspace,
            CODEX,
            "docs/install.md",
            "# Install\n\nRun `make\u202eetirw`.\n\nThen start it.\n",
        )
        review = Review(workspace, Session("cli", Actor("person", "ann")))
        for size in ((60, 24), (80, 24), (120, 28)):
            picture(review, f"review-terminal-{size[0]}", ["y"], size)
        picture(review, "review-terminal-two", ["b"], (120, 28))
        (root / "docs" / "install.md").write_text(
            "# Install\n\nRun `make`.\n\nThen start the server.\n\nThat is all.\n"
        )
        picture(review, "review-terminal-moved", ["J", "J"], (96, 28))


if __name__ == "__main__":
    main()
