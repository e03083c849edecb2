"""Each server from npm, and one from elsewhere, as it is: found, right at first, right after an edit, clean after a preview."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from filepact_diagnostics.lsp.diagnostics import compare
from filepact_diagnostics.lsp.features import ReferencesQuery, SymbolReferencesQuery
from filepact_diagnostics.programs import Programs
from tests.hostile.sweeps import often
from tests.servers.asking import delta_of, preview_of, update_of
from tests.servers.real_servers import SECONDS, Tree, node_folders, server, server_folder
from tests.servers.situations import BODIES, CASES, LAST, SITUATIONS, observe, places

if TYPE_CHECKING:
    from filepact_diagnostics.lsp.client import LanguageClient
    from filepact_diagnostics.lsp.documents import OpenDocuments
    from filepact_diagnostics.lsp.features import LanguageQuery, QueryAnswer

QUICK = {"html": ("start", "crash", "load", "cancel")}
"""What the suite does with one; the deep checks put all of them into every situation."""


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


def test_a_compiler_of_before_version_7_is_not_taken_for_its_server(tmp_path: Path) -> None:
    if len(folders := node_folders()) < 2:
        pytest.skip("the servers from npm are not here")
    (new, _), old = folders, server_folder()
    both = f"{old}:{new}"
    for path, there in ((both, (None, "typescript-language-server")), (new, ("tsc", None))):
        programs = Programs([str(tmp_path)], {**os.environ, "PATH": f"{path}:/usr/bin:/bin"})
        found = [
            programs.place(server(one)) for one in ("typescript", "typescript-language-server")
        ]
        assert [one and Path(one).name for one in found] == [*there]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in BODIES if one in QUICK or often(0, 1)])
def test_what_a_server_is_said_to_find_is_about_the_text_that_it_was_sent(
    name: str, tmp_path: Path
) -> None:
    for situation in SITUATIONS if often(0, 1) else QUICK[name]:
        told = observe(name, situation, tmp_path / situation, load=often(0, 10))
        assert not told.untrue
        assert told.fresh >= LAST


class Hasty(NamedTuple):
    """A question for references that is given up while it is answered."""

    place: tuple[str, int]

    async def ask(self, client: LanguageClient, documents: OpenDocuments, _deadline: float) -> Any:
        soon = asyncio.get_running_loop().time() + 0.2
        return await ReferencesQuery(*self.place).ask(client, documents, soon)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["pyright", "basedpyright"])
def test_all_uses_are_told_after_a_question_was_given_up_and_of_two_at_once(
    name: str, tmp_path: Path
) -> None:
    """One cancelled request for references makes all later ones of these fail; of two at once the first is told in part."""
    uses = "from lib import give\n" + "".join(
        f"def f{n}(x: int) -> int:\n    return give() + x + {n}\n" for n in range(120)
    )
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    tree = Tree(root.resolve(), name)
    try:
        for number in range(20):
            tree.write(f"use{number}.py", uses)
        tree.write("lib.py", "def give() -> int:\n    return 1\n")
        path = tree.path("lib.py")
        place = path, len("def ")

        def ask(question: LanguageQuery, text: str, seconds: float) -> QueryAnswer:
            shown = {tree.path(one): tree.text(one) for one in tree.files()} | {path: text}
            asked = {"proposed": {}, "files": shown, "seconds": seconds}
            (answer,) = tree.pool.query(str(tree.root), name, question, **asked).result()
            return answer

        found = ask(ReferencesQuery(*place), tree.text("lib.py"), SECONDS).value
        assert len(found) == 1 + 20 * 121
        for number in range(3):
            ask(Hasty(place), tree.text("lib.py") + "\n" * (number + 1), SECONDS)
        twice = ask(SymbolReferencesQuery((place, place)), tree.text("lib.py"), SECONDS)
        assert twice.value == (found, found), twice.reason
    finally:
        tree.close()
