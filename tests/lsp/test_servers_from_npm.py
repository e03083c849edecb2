"""Each server from npm, and one from elsewhere, as it is: found, right at first, right after an edit, clean after a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.lsp.diagnostics import compare
from tests.hostile.sweeps import often
from tests.lsp.asking import delta_of, preview_of, update_of
from tests.lsp.real_servers import Tree
from tests.lsp.situations import BODIES, CASES, LAST, SITUATIONS, observe, places

if TYPE_CHECKING:
    from pathlib import Path

QUICK = {"html": ("start", "crash", "load"), "php": ("start",)}
"""What the suite does with some; the deep checks put all of them into every situation."""


@pytest.mark.parametrize(
    "name",
    [name if name == "json" else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_a_server_from_npm_is_right_before_and_after_an_edit_and_a_preview(
    name: str, tmp_path: Path
) -> None:
    file, wrong, right, expected = CASES[name]
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    tree = Tree(root.resolve(), name)
    try:
        tree.write(file, wrong)
        first = tree.report(file)[file]
        assert (places(first.diagnostics), first.fresh) == (expected, True), first.reason

        (update,) = update_of(
            tree.pool, str(tree.root), [tree.write(file, right)], {tree.path(file): right}, 60.0
        )
        assert (update.state, update.fresh) == ("answered", True)
        delta = compare(first.diagnostics, update.reports[0].diagnostics)
        assert places(delta.fixed) == expected
        assert not delta.total

        path = tree.path(file)
        (seen,) = preview_of(tree.pool, str(tree.root), {path: wrong}, {path: right}, 60.0)
        assert delta_of(seen) is not None
        assert places(delta_of(seen).new) == expected
        assert not tree.report(file)[file].diagnostics
        assert not tree.report(file)[file].diagnostics
    finally:
        tree.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in BODIES if one in QUICK or often(0, 1)])
def test_what_a_server_is_said_to_find_is_about_the_text_that_it_was_sent(
    name: str, tmp_path: Path
) -> None:
    for situation in SITUATIONS if often(0, 1) else QUICK[name]:
        told = observe(name, situation, tmp_path / situation, load=often(0, 10))
        assert not told.untrue
        assert told.fresh >= LAST
