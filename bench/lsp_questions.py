"""What an edit's diagnostics, references and a rename take through our client, beside the server alone.

    PYTHONPATH=src python bench/lsp_questions.py [SERVER...] [--rounds N] [--write]

Two servers of one kind work on copies of one small project, in which twenty files use one function.  Each round
edits a file in both, asks both what is wrong in it, then where the function is used, and then what another name
would change: once through the pool, once by a client that is nothing but a loop.  The first to be asked alternates,
and what counts is the quotient of each pair.  Processor time is that of this process alone, which the machine's
other work blurs less.  A wrong answer ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.lsp_alone import Alone
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.features import ReferencesQuery, RenameQuery
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_wire.uris import uri_of
from tests.servers.asking import update_of
from tests.servers.real_servers import locate, node_folders, server, server_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact_diagnostics.lsp.features import LanguageQuery

README = Path(__file__).resolve().parent / "README.md"
MARK = "<!-- figures: written by lsp_questions.py -->"
END = "<!-- end of what lsp_questions.py wrote -->"
SECONDS = 120.0
FILES = 20
USES = 10

# Ending, the file that has the function, a file that uses it, a line of that, what is wrong, more files.
_TS = (
    "ts",
    "export function give(n: number): number {\n  return n;\n}\n",
    "import { give } from './lib';\n",
    "export const a{n} = give({n});\n",
    "export const b: number = 'x';\n",
    {"tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["*.ts"]}'},
)
_PY = (
    "py",
    "def give(n: int) -> int:\n    return n\n",
    "from lib import give\n",
    "a{n} = give({n})\n",
    "b: int = 'x'\n",
    {},
)
LANGUAGES: dict[str, tuple[str, str, str, str, str, dict[str, str]]] = {
    "ty": _PY,
    "basedpyright": _PY,
    "pyright": _PY,
    "typescript": _TS,
    "typescript-language-server": _TS,
    "clangd": (
        "c",
        '#include "lib.h"\nint give(int n) { return n; }\n',
        '#include "lib.h"\n',
        "int a@_{n}(void) {{ return give({n}); }}\n",
        "int b@(void) { return gone; }\n",
        {"lib.h": "#pragma once\nint give(int n);\n", "compile_flags.txt": "-std=c11\n"},
    ),
    "gopls": (
        "go",
        "package p\n\nfunc give(n int) int { return n }\n",
        "package p\n\n",
        "var a@_{n} = give({n})\n",
        "var b@ int = gone\n",
        {"go.mod": "module p\n\ngo 1.19\n"},
    ),
}
ASKED = ("diagnostics after an edit", "references", "rename")

Taken = tuple[float, float]
"""Seconds by the clock, and of this process's processor time."""


class Bare(Alone):
    """A bare client that asks all three."""

    def errors(self, name: str, version: int, text: str) -> int:
        """Send the text of a file, and count the errors in it."""
        if self._server.asking == "tsserver":
            self.show(name, version, text)
            path = {"file": str(self._root / name)}
            found = 0
            for one in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
                asked = {"command": "typescript.tsserverRequest", "arguments": [one, path]}
                found += len(self._ask("workspace/executeCommand", asked)["body"])
            return found
        found = self.diagnostics(name, version, text, whole=True)
        # One that registers itself under several names answers the same to each.
        return len({str(one["range"]) for one in found if one.get("severity") == 1})

    def show(self, name: str, version: int, text: str) -> None:
        """Send the text of a file."""
        document = {"uri": uri_of(str(self._root / name)), "version": version}
        if name in self._lines:
            change = {"textDocument": document, "contentChanges": [{"text": text}]}
            self._tell("textDocument/didChange", change)
        else:
            self._lines[name] = 0
            document |= {"languageId": self._server.language(name), "text": text}
            self._tell("textDocument/didOpen", {"textDocument": document})

    def about(self, name: str, line: int, column: int, new: str) -> int:
        """The places of what stands there, or those at which another name would be put."""
        place: dict[str, Any] = {
            "textDocument": {"uri": uri_of(str(self._root / name))},
            "position": {"line": line, "character": column},
        }
        if not new:
            context = {"includeDeclaration": True}
            return len(self._ask("textDocument/references", place | {"context": context}))
        edit = self._ask("textDocument/rename", place | {"newName": new})
        parts = edit.get("documentChanges") or []
        return sum(len(one["edits"]) for one in parts) or sum(map(len, edit["changes"].values()))


def plant(root: Path, name: str) -> dict[str, str]:
    """A project; the texts of its sources."""
    ending, lib, head, line, _, more = LANGUAGES[name]
    files = {f"lib.{ending}": lib}
    for number in range(FILES):
        body = head + "".join(line.format(n=one) for one in range(USES))
        files[f"use{number}.{ending}"] = body.replace("@", str(number))
    for file, text in (files | more).items():
        (root / file).write_text(text, encoding="utf-8")
    return files | {file: text for file, text in more.items() if file.endswith(".h")}


def measure(name: str, rounds: int) -> dict[str, tuple[list[Taken], list[Taken]]]:
    """What the bare client took, and ours, by what was asked."""
    which = server(name)
    ending, lib, _, _, wrong, _ = LANGUAGES[name]
    folders = [str(Path(sys.executable).parent), *node_folders(), server_folder()]
    environment = {
        "HOME": os.environ["HOME"],
        "PATH": ":".join([*folders, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
    }
    taken: dict[str, tuple[list[Taken], list[Taken]]] = {one: ([], []) for one in ASKED}
    with tempfile.TemporaryDirectory() as folder:
        mine, other = (Path(folder).resolve() / one for one in ("a", "b"))
        mine.mkdir()
        other.mkdir()
        plant(mine, name)
        files = plant(other, name)
        program, *arguments = which.filled({one: locate(one) or "" for one in which.needs})
        pool = ServerPool([which], environment, locate)
        offset = lib.index("give(")
        line, column = lib.count("\n", 0, offset), offset - lib.rfind("\n", 0, offset) - 1
        texts = {str(mine / file): text for file, text in files.items()}
        place = str(mine / f"lib.{ending}"), offset
        with Bare(which, [locate(program) or program, *arguments], other, environment) as alone:
            for file, text in files.items():
                alone.show(file, 0, text)

            def ours(question: LanguageQuery) -> int:
                asked = {"proposed": {}, "files": texts, "seconds": SECONDS}
                (answer,) = pool.query(str(mine), name, question, **asked).result()
                return sum(len(getattr(one, "edits", (one,))) for one in answer.value or ())

            for number in range(rounds + 4):
                # Right and wrong by turns: of an edit after which the same is found, gopls publishes nothing.
                which_file = number // 2 % FILES
                file, is_wrong = f"use{which_file}.{ending}", number % 2 == 0
                text = files[file] + (wrong.replace("@", str(which_file)) if is_wrong else "")
                text += "\n" * number
                path = str(mine / file)

                def edited(file: str = file, text: str = text, path: str = path) -> int:
                    (mine / file).write_text(text, encoding="utf-8")
                    change = DiskChange(path, "changed", text)
                    (one,) = update_of(pool, str(mine), [change], {path: text}, SECONDS)
                    found = [each for report in one.reports for each in report.diagnostics]
                    return sum(each.severity == "error" for each in found) if one.fresh else -1

                def alone_edited(file: str = file, text: str = text, number: int = number) -> int:
                    (other / file).write_text(text, encoding="utf-8")
                    return alone.errors(file, number + 1, text)

                asked: list[tuple[str, Callable[[], int], Callable[[], int]]] = [
                    (ASKED[0], alone_edited, edited),
                    (
                        ASKED[1],
                        lambda: alone.about(f"lib.{ending}", line, column, ""),
                        lambda: ours(ReferencesQuery(*place)),
                    ),
                    (
                        ASKED[2],
                        lambda: alone.about(f"lib.{ending}", line, column, "given"),
                        lambda: ours(RenameQuery(*place, "given", "give")),
                    ),
                ]
                for what, *both in asked:
                    order = (0, 1) if number % 4 < 2 else (1, 0)
                    counts = [0, 0]
                    for side in order:
                        used, before = time.process_time(), time.perf_counter()
                        counts[side] = both[side]()
                        took = time.perf_counter() - before, time.process_time() - used
                        if number >= 4:
                            taken[what][side].append(took)
                    texts[path] = text
                    least = int(is_wrong) if what == ASKED[0] else FILES * USES
                    right = counts[0] == counts[1] or (what != ASKED[0] and counts[1] >= least)
                    if not right or counts[1] < least:
                        raise SystemExit(f"{name}: {what}: {counts} in round {number}")
        pool.close()
    return taken


def report(names: Sequence[str], rounds: int) -> str:
    rows = [
        "| server | what | alone | ours | quotient of pairs (quartiles) | own, alone | own, ours |",
        "| --- " * 7 + "|",
    ]
    for name in names:
        for what, (bare, ours) in measure(name, rounds).items():
            low, middle, high = statistics.quantiles(
                [mine[0] / alone[0] for alone, mine in zip(bare, ours, strict=True)], n=4
            )
            clock, own = (
                [
                    f"{statistics.median(one[at] for one in side) * 1000:,.1f} ms"
                    for side in (bare, ours)
                ]
                for at in (0, 1)
            )
            row = (
                f"| {name} | {what} | {clock[0]} | {clock[1]} | {middle:.2f} ({low:.2f} to {high:.2f}) "
                f"| {own[0]} | {own[1]} |"
            )
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    about = (
        f"Measured {datetime.now(tz=UTC).date()}: Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {rounds} pairs of each."
    )
    return "\n".join([MARK, "", about, "", *rows, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", nargs="*", choices=[[], *LANGUAGES], help="only these")
    parser.add_argument("--rounds", type=int, default=20, help="pairs of each server")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.server or [*LANGUAGES], given.rounds)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
