"""Each server from npm, and one from elsewhere, as it is: found, right at first, right after an edit, clean after a preview."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from filepact.lsp.diagnostics import compare
from tests.hostile.sweeps import often
from tests.lsp.asking import delta_of, preview_of, report_of, update_of
from tests.lsp.real_servers import SECONDS, Tree

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
    "php": (
        *("a.php", "<?php\necho gone(1);\n", "<?php\necho strlen('a');\n"),
        {(1, "P1010")},
    ),
    "svelte": (
        "a.svelte",
        '<script lang="ts">\nlet n: number = "x";\n</script>\n<p>{n}</p>\n',
        '<script lang="ts">\nlet n: number = 1;\n</script>\n<p>{n}</p>\n',
        {(1, "2322")},
    ),
    "lua": (*("a.lua", "print(gone)\n", "print(1)\n"), {(0, "undefined-global")}),
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


_TYPES = (
    "type D = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;\ntype S = `${D}${D}${D}${D}`;\n"
    "type Rev<T extends string> = T extends `${infer A}${infer R}` ? `${Rev<R>}${A}` : '';\n"
)
# What makes each take long, to stand behind the text.
BODIES = {
    "typescript-language-server": _TYPES
    + "".join(f"type R{n} = Rev<`{n}${{S}}`>;\nlet a{n}: R{n};\n" for n in range(8)),
    "pyright": "".join(f"def f{n}(x: list[int]) -> int: return sum(x)\n" for n in range(400)),
    "json": " \n" * 20_000,
    "css": "".join(f".a{n} {{ color: red; }}\n" for n in range(5_000)),
    "html": "".join(f"<p>{n}</p>\n" for n in range(5_000)),
    "yaml": "".join(f"k{n}:\n  - a: {n}\n    b: [1, 2, {n}]\n" for n in range(1_000)),
    "php": "".join(
        f"function h{n}(int $x): int {{ $a = [$x]; foreach ($a as $i => $v) {{ "
        f"if ($v > {n}) {{ return $i + count($a); }} }} return h{max(n - 1, 0)}($x); }}\n"
        for n in range(200)
    ),
    "svelte": "".join(f"<p class='a{n}'>{n}</p>\n" for n in range(1_000)),
    "lua": "".join(
        f"local function h{n}(x) return x + {n} end\nprint(h{n}(1))\n" for n in range(180)
    ),
    "bash": "".join(f'a{n}="$(printf %s {n})"; export a{n}\n' for n in range(400)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in CASES if one in ("html", "php") or often(0, 1)])
def test_what_a_server_from_npm_is_said_to_find_is_about_the_text_that_it_was_sent(
    name: str, tmp_path: Path
) -> None:
    file, wrong, right, expected = CASES[name]
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    tree, body, over = Tree(root.resolve(), name), BODIES[name], threading.Event()

    def say(text: str, seconds: float) -> bool:
        (report,) = report_of(tree.pool, str(tree.root), {tree.path(file): text}, seconds)
        if report.fresh:
            found = {one for one in places(report.diagnostics) if one in expected}
            assert found == (expected if text.startswith(wrong) else set()), (report, text[:60])
        return report.fresh

    def one_after_the_other() -> None:
        """Faster than they are checked, and then each until it is."""
        for number in range(6):
            say((wrong if number % 2 else right) + body + "\n" * number, 0.3)
        for text in (wrong, right, wrong):
            assert say(text + body, SECONDS)

    def hold_up() -> None:
        """A machine that is busy with something else most of the time."""
        while not over.wait(0.1):
            (status,) = tree.pool.status()
            if status.pid:
                os.kill(status.pid, signal.SIGSTOP)
                over.wait(0.3)
                os.kill(status.pid, signal.SIGCONT)

    holding = threading.Thread(target=hold_up)
    try:
        tree.write(file, right)
        assert say(wrong + body, SECONDS)  # the first answer after its start
        one_after_the_other()
        (status,) = tree.pool.status()
        os.kill(status.pid, signal.SIGKILL)
        one_after_the_other()
        holding.start()
        one_after_the_other()
    finally:
        over.set()
        if holding.ident:
            holding.join()
        tree.close()
