"""Each server from npm, as it is: found, right at first, right after an edit, clean after a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.lsp.diagnostics import compare
from tests.lsp.asking import delta_of, preview_of, update_of
from tests.lsp.real_servers import Tree

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.lsp.diagnostics import Diagnostic

# Server, file, a text in which something is wrong, one in which nothing is, line and code of each.
CASES = {
    "typescript-language-server": (
        *("a.ts", 'const n: number = 1;\nconst s: number = "x";\n', "const n: number = 1;\n"),
        {(1, "2322")},
    ),
    "pyright": (
        *("a.py", 'n: int = 1\ns: int = "x"\n', "n: int = 1\n"),
        {(1, "reportAssignmentType")},
    ),
    "json": ("a.json", '{\n  "a": 1,\n}\n', '{\n  "a": 1\n}\n', {(1, "519")}),
    "css": (
        *("a.css", "a {\n  colour: red;\n}\n", "a {\n  color: red;\n}\n"),
        {(1, "unknownProperties")},
    ),
    "html": (
        "a.html",
        "<style>\na { colour: red; }\n</style>\n<script>\nlet a = ;\n</script>\n",
        # What browsers have is known, and is no error.
        "<script>\nconst a = [1].map(x => x + 1);\ndocument.title = String(a);\n</script>\n",
        {(1, "unknownProperties"), (4, "")},
    ),
    "yaml": ("a.yaml", "a: [1, 2\nb: 3\n", "a: [1, 2]\nb: 3\n", {(1, "0")}),
    "bash": (
        *("a.sh", "#!/bin/bash\necho $1\n", '#!/bin/bash\necho "$1"\n'),
        {(1, "SC2086")},
    ),
}


def places(found: tuple[Diagnostic, ...]) -> set[tuple[int, str]]:
    return {(one.start.line, one.code) for one in found}


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
