"""Searches through a server beside programs that are started for each of them.

    python bench/search_compare.py TREE [--rounds N] [--rg COMMAND] [--json FILE]

Fifty searches that an agent might send, drawn from the tree itself, each with the first fifty matches wanted.
Both sides do each in turn, so that what else the machine does meets both.  A ratio is the other's time by ours,
pair by pair: above 1 filepact is faster.  ``--cold`` has a server of its own for each search.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.search_queries import TextQuery, draw
from bench.stdio_client import StdioServer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Compared", "Timed", "cold", "index_memory", "names", "texts"]

_LIMIT = 50
_SCHED = 2  # of a process's clocks the one that counts nanoseconds on a processor


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds by the clock and on processors."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Compared:
    """One search on both sides, round by round."""

    kind: str
    what: str
    ours: list[Timed] = field(default_factory=list)
    theirs: list[Timed] = field(default_factory=list)

    def ratio(self, of: str) -> float:
        """The other's time by ours: the median of all pairs."""
        pairs = zip(self.theirs, self.ours, strict=True)
        return statistics.median(getattr(a, of) / max(getattr(b, of), 1e-9) for a, b in pairs)

    def middle(self, side: str, of: str) -> float:
        """Milliseconds of one side, in the middle."""
        return statistics.median(getattr(one, of) for one in getattr(self, side)) * 1_000


def spawned(command: Sequence[str], tree: Path) -> tuple[Timed, bool]:
    """Run a program to its end, and read all that it prints; what it took, and whether it found something."""
    begin = time.perf_counter()
    read, write = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, write, 1),
    ]
    here = os.open(".", os.O_RDONLY)
    os.chdir(tree)
    try:
        pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=actions)
    finally:
        os.fchdir(here)
        os.close(here)
    os.close(write)
    with open(read, "rb", buffering=0) as stream:
        while stream.read(1 << 20):
            pass
    _, status, used = os.wait4(pid, 0)
    return Timed(time.perf_counter() - begin, used.ru_utime + used.ru_stime), not status


def called(server: StdioServer, call: tuple[str, dict[str, Any]]) -> tuple[Timed, str]:
    """Call a tool; what it took, and the answer."""
    clock = (~server.pid << 3) | _SCHED
    before = time.clock_gettime(clock)
    seconds, text, failed = server.call(*call)
    after = time.clock_gettime(clock)
    if failed:
        raise RuntimeError(f"{call}: {text[:300]}")
    return Timed(seconds, after - before), text


def serve(tree: Path, scratch: Path, *, name: str = "state") -> StdioServer:
    """A server of this tree's filepact, with a state of its own."""
    command = [sys.executable, "-m", "filepact", "mcp", str(tree), "--state", str(scratch / name)]
    env = {"HOME": str(scratch), "PATH": os.environ["PATH"]}
    return StdioServer(command, env=env, cwd=tree)


def settle(server: StdioServer) -> None:
    """Wait until a server that was asked once takes no processor time any more."""
    clock, quiet = (~server.pid << 3) | _SCHED, 0
    before = time.clock_gettime(clock)
    while quiet < 5:
        time.sleep(0.1)
        now = time.clock_gettime(clock)
        quiet = quiet + 1 if now - before < 0.002 else 0
        before = now


def texts(
    tree: Path, queries: Sequence[TextQuery], rg: str, *, rounds: int = 7, seed: int = 1
) -> list[Compared]:
    """Searches of a server that has its index, beside ripgrep started for each."""
    dice = random.Random(seed)
    found = [Compared(query.kind, query.pattern) for query in queries]
    with tempfile.TemporaryDirectory() as scratch, serve(tree, Path(scratch)) as server:
        called(server, queries[0].ours(_LIMIT))
        settle(server)
        for turn in range(-1, rounds):
            for at in dice.sample(range(len(queries)), len(queries)):
                text, some = "", False
                for side in dice.sample((0, 1), 2):
                    if side:
                        done, some = spawned([rg, *queries[at].ripgrep()], tree)
                    else:
                        done, text = called(server, queries[at].ours(_LIMIT))
                    if turn >= 0:
                        (found[at].theirs if side else found[at].ours).append(done)
                if some and "[no matches" in text:
                    raise RuntimeError(f"{queries[at].pattern}: not found")
    return found


def cold(
    tree: Path, queries: Sequence[TextQuery], rg: str, *, seed: int = 1, again: bool = False
) -> list[Compared]:
    """The first search of a server that has just started, beside ripgrep.

    Args:
        tree: What is searched.
        queries: The searches, each by a server of its own.
        rg: The other program.
        seed: Who is first.
        again: Whether another server has left its index to these.
    """
    dice = random.Random(seed)
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        if again:
            with serve(tree, Path(scratch)) as server:
                called(server, queries[0].ours(_LIMIT))
                settle(server)
        for at, query in enumerate(queries):
            one = Compared(query.kind, query.pattern)
            name = "state" if again else f"state{at}"
            with serve(tree, Path(scratch), name=name) as server:
                # What any first call loads is no part of the search.
                called(server, ("read_file", {"path": str(tree / _first(tree))}))
                for side in dice.sample((0, 1), 2):
                    if side:
                        one.theirs.append(spawned([rg, *query.ripgrep()], tree)[0])
                    else:
                        one.ours.append(called(server, query.ours(_LIMIT))[0])
            found.append(one)
    return found


def index_memory(tree: Path, *, seconds: float = 5.0) -> tuple[float, float]:
    """What the index of a tree takes at rest, and the text in it, in MiB.

    It is what a server takes of its own, less what one takes that has searched ten files.

    Args:
        tree: What is searched.
        seconds: After so long a server is at rest.
    """
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        few = Path(scratch, "few")
        few.mkdir()
        for number in range(10):
            (few / f"{number}.py").write_text("row = 1\n")
        both = [
            stack.enter_context(serve(one, Path(scratch), name=f"state{at}"))
            for at, one in enumerate((few, tree))
        ]
        for server in both:
            called(
                server,
                (
                    "read_file",
                    {"path": str(few / "0.py") if server is both[0] else str(tree / _first(tree))},
                ),
            )
            called(server, ("grep", {"pattern": "absent_word_absent"}))
            settle(server)
        time.sleep(seconds)
        little, much = (server.own_memory() for server in both)
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    return much - little, size / 2**20


def _first(tree: Path) -> Path:
    return next(
        path.relative_to(tree) for path in sorted(tree.rglob("*.py")) if path.stat().st_size
    )


def names(tree: Path, rg: str, *, rounds: int = 15, seed: int = 1) -> list[Compared]:
    """Names by glob, beside ``rg --files``."""
    dice = random.Random(seed)
    globs = ("**/*.py", "**/*.{yml,yaml}", "**/test_*.py", "**/*model*", "**/tests/**", "*.md")
    found = [Compared("glob", glob) for glob in globs]
    with tempfile.TemporaryDirectory() as scratch, serve(tree, Path(scratch)) as server:
        called(server, ("search_files", {"pattern": globs[0]}))
        settle(server)
        for turn in range(-1, rounds):
            for one in found:
                for side in dice.sample((0, 1), 2):
                    if side:
                        done, _ = spawned([rg, "--files", "--glob", one.what, "./"], tree)
                    else:
                        # Another number, so that no answer is given a second time.
                        asked = {"pattern": one.what, "maxResults": 100 + turn}
                        done, _ = called(server, ("search_files", asked))
                    if turn >= 0:
                        (one.theirs if side else one.ours).append(done)
    return found


def report(found: Sequence[Compared]) -> list[str]:
    """A table of all, and what is between them."""
    lines = [
        "| kind | what | theirs, ms | ours, ms | wall | ours, cpu ms | cpu |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.kind} | `{one.what}` | {one.middle('theirs', 'wall'):.1f} "
        f"| {one.middle('ours', 'wall'):.1f} | {one.ratio('wall'):.2f} "
        f"| {one.middle('ours', 'cpu'):.2f} | {one.ratio('cpu'):.2f} |"
        for one in sorted(found, key=lambda one: one.ratio("wall"))
    ]
    for of in ("wall", "cpu"):
        ratios = sorted(one.ratio(of) for one in found)
        lines.append(
            f"{of}: middle {statistics.median(ratios):.2f}, worst {ratios[0]:.2f}, best {ratios[-1]:.2f}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rg", default="/usr/bin/rg", help="the program to compare with")
    parser.add_argument("--only", default="", help="kinds of searches, with commas between")
    parser.add_argument(
        "--what", default="texts", choices=("texts", "cold", "again", "names", "memory")
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tree = options.tree.resolve()
    if options.what == "memory":
        more, text = index_memory(tree)
        print(f"{more:.1f} MiB for {text:.1f} MiB: {more / text:.1%}")
        return
    if options.what == "names":
        found = names(tree, options.rg, rounds=options.rounds)
    else:
        kinds = set(filter(None, options.only.split(",")))
        queries = [one for one in draw(tree) if not kinds or one.kind in kinds]
        if options.what in ("cold", "again"):
            found = cold(tree, queries, options.rg, again=options.what == "again")
        else:
            found = texts(tree, queries, options.rg, rounds=options.rounds)
    print("\n".join(report(found)))
    if options.json:
        rows = [
            {
                "kind": one.kind,
                "what": one.what,
                **{of: one.ratio(of) for of in ("wall", "cpu")},
            }
            for one in found
        ]
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
