"""Where edits and patches end whose file somebody has changed since it was read.

    python bench/stale_edits.py [--count N] [--seed N] [--unread] [--lists] [--write]

The cases are those of stale_cases.py.  Each goes through the tools of a real workspace: the file
is read, changed behind its back, and the call is made.  With ``--unread`` it is not read before,
so that only the call itself says what was meant.  With ``--lists`` each edit is one of two that a
call makes.  ``--write`` puts the table into bench/README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stale_cases import MUST_REFUSE, SERIES, Stale, cases
from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by stale_edits.py -->"
END = "<!-- end of what stale_edits.py wrote -->"


class World:
    """A workspace over a folder of its own, in which one case after the other happens."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.workspace = open_workspace([str(self.root)], state_dir=str(folder / "state"))
        self.tools = open_toolbox(self.workspace)
        self.call = CallContext(Session("s1", Actor("agent", "bench")))
        self.done = 0

    def close(self) -> None:
        self.workspace.close()

    def run(self, case: Stale, *, read: bool = True) -> tuple[str, str]:
        """``right``, ``refused`` or ``WRONG``, and what was answered."""
        self.done += 1
        name = f"f{self.done}.{case.suffix}"
        file = self.root / name
        file.write_bytes(case.read.encode())
        if read:
            self.tools.call("read_file", {"path": name}, self.call)
        if case.first is not None:
            self.tools.call(case.tool, {"path": name, **case.first}, self.call)
        file.write_bytes(case.now.encode())
        if case.read_again:
            self.tools.call("read_file", {"path": name}, self.call)
        arguments = dict(case.arguments)
        if "patch" in arguments:
            arguments["patch"] = arguments["patch"].replace("{path}", name)
        if "Begin Patch" not in arguments.get("patch", ""):
            arguments["path"] = name
        outcome = self.tools.call(case.tool, arguments, self.call)
        after = file.read_bytes().decode()
        file.unlink()
        if after == case.now and (outcome.failed or case.right is None):
            return "refused", outcome.text
        return ("right" if after == case.right else "WRONG"), outcome.text


def in_list(case: Stale) -> Stale:
    """A case whose edit is sent with one of the last line, which nobody else touches; others as they are."""
    if case.tool != "edit_file" or not case.read.endswith("\n") or not case.now.endswith("\n"):
        return case
    last, other = "the_last_line = 17\n", "the_last_line = 18\n"
    edits = case.arguments.get("edits", [case.arguments])
    return replace(
        case,
        read=case.read + last,
        now=case.now + last,
        arguments={"edits": [{"old_string": last, "new_string": other}, *edits]},
        right=None if case.right is None else case.right + other,
    )


def measure(
    count: int, seed: int, *, read: bool = True, lists: bool = False, show: str = ""
) -> dict[str, Counter[str]]:
    """For each series how often each outcome came."""
    table: dict[str, Counter[str]] = {series: Counter() for series in SERIES}
    with tempfile.TemporaryDirectory() as folder, closing(World(Path(folder))) as world:
        for case in map(in_list, cases(count, seed)) if lists else cases(count, seed):
            outcome, text = world.run(case, read=read)
            table[case.series][outcome] += 1
            if outcome == show:
                print(f"== {case.series}: {outcome}\n{case.arguments}\n{text}\n", file=sys.stderr)
    return table


def report(count: int, seed: int, *, read: bool, lists: bool, show: str) -> list[str]:
    table = measure(count, seed, read=read, lists=lists, show=show)
    lines = [
        f"{count} cases of each series, seed {seed}; the file was {'' if read else 'not '}read before.",
        "",
        "| series | right | refused | WRONG |",
        "| --- | --- | --- | --- |",
    ]
    for series, counted in table.items():
        right = "-" if series in MUST_REFUSE else counted["right"]
        lines.append(f"| {series} | {right} | {counted['refused']} | {counted['WRONG']} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Count where stale edits end.")
    parser.add_argument("--count", type=int, default=100, help="cases of each series")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unread", action="store_true", help="nothing was read before")
    parser.add_argument("--lists", action="store_true", help="each edit is one of a list")
    parser.add_argument("--show", default="", help="show the cases that end so, such as WRONG")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    options = parser.parse_args()
    lines = report(
        options.count, options.seed, read=not options.unread, lists=options.lists, show=options.show
    )
    print("\n".join(lines))
    if options.write:
        readme = HERE / "README.md"
        head, _, rest = readme.read_text().partition(MARK)
        tail = rest.partition(END)[2]
        readme.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n\n" + END + tail)


if __name__ == "__main__":
    main()
