"""filepact beside its peers: `python -m bench`.

Makes trees (or takes a folder), installs the peers that can be had here into a folder of their own, measures by turns
in random order, and writes a record (JSON) and pictures (SVG).  The exit status is 1 where a gate on growth does not
hold, an answer was stale, or two answers that should say the same do not; it never depends on a time.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import filepact
from bench import picture, record, report, stale
from bench.growth import BOUND, NO_SERVERS, Growth
from bench.measure import Pairs, Timing, by_turns
from bench.operations import Operation, operations
from bench.peers import FILESYSTEM, Peers
from bench.stdio_client import StdioServer
from bench.tree import SEED, plant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench import search_compare

HERE = Path(__file__).resolve().parent
SIZES = {"2k": 2_000, "13k": 13_000, "30k": 30_000, "100k": 100_000, "1M": 1_000_000}
SEARCHES = {"2k": 6.0, "13k": 30.0, "30k": 40.0, "100k": 80.0}
"""The ratio to ripgrep that is wanted, by the size of the tree."""
PARTS = ("start", "calls", "search", "stale", "growth", "installed")


class Run:
    """One run of the benchmark, and the record that comes of it."""

    def __init__(self, options: argparse.Namespace, base: Path) -> None:
        self._options = options
        self._base = base
        self._dice = random.Random(options.seed)
        # As after any installation: a module that was edited since would be compiled by every server that loads it.
        compileall.compile_dir(filepact.__path__[0], quiet=2)
        self.peers = Peers(options.peers)
        home = base / "home"
        home.mkdir()
        settings = base / "settings.toml"
        # Which language servers are installed here is nobody's figure; write_latency.py measures them.
        settings.write_text(NO_SERVERS)
        self._environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "FILEPACT_CONFIG": str(settings),
        }
        self._ours = [sys.executable, "-m", "filepact"]
        self._theirs = self.peers.wanted(FILESYSTEM, self.peers.filesystem)
        self.record: dict[str, Any] = {
            "format": record.FORMAT,
            "when": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "seed": options.seed,
            "machine": record.machine(base),
            "versions": record.versions(),
            "missing": self.peers.missing,
            "results": [],
            "growth": [],
            "stale": [],
            "facts": {"sync, ms": round(sync_cost(base, options.rounds) * 1_000, 3)},
        }

    def tree(self, name: str) -> Path:
        """A tree of a size, or a copy of a folder."""
        place = self._base / re_name(name)
        if name in SIZES or name.isdigit():
            place.mkdir()
            plant(place, files=SIZES.get(name) or int(name), seed=self._options.seed)
        else:
            shutil.copytree(name, place, symlinks=True)
        return place

    def beside_node(self, name: str, tree: Path) -> None:
        """Start, calls, search and staleness on one tree."""
        parts = self._options.parts
        ours = [*self._ours, "mcp", str(tree), "--state", str(self._base / f"state-{tree.name}")]
        theirs = None if self._theirs is None else [*self._theirs, str(tree)]
        if "start" in parts and theirs is not None:
            self._start("start to first answer", ours, theirs, name, tree, goal=3.0)
        with ExitStack() as stack:
            us = stack.enter_context(self._server(ours, tree))
            us.call("read_file", {"path": str(self._first_file(tree)), "lines": 1})
            self._fact(f"memory of filepact at rest, {name}, MiB of its own", us.own_memory())
            if theirs is not None:
                them = stack.enter_context(self._server(theirs, tree))
                them.call("list_allowed_directories", {})
                self._fact(
                    f"memory of the server in Node, {name}, MiB of its own", them.own_memory()
                )
                if "calls" in parts:
                    prepared = operations(tree, big=self._options.big)
                    us.rest()
                    for operation in prepared:
                        self._operation(operation, name, us, them)
            if "stale" in parts:
                rounds = max(6, self._options.rounds // 4)
                found = stale.look(us, tree, rounds, self._dice).to_json()
                self.record["stale"].append({"tree": name, **found})
                self._say(f"stale: {found['wrong']} of {found['asked']} wrong")
            self._fact(f"memory of filepact after that, {name}, MiB of its own", us.own_memory())
        if "search" in parts:
            self._search(name, tree)

    def installed(self) -> None:
        """The start of filepact as people install it."""
        if self._theirs is None:
            return
        tree = self._base / "installed"
        tree.mkdir()
        plant(tree, files=200)
        for tool in ("pip", "uv"):
            find = {"pip": self.peers.filepact_by_pip, "uv": self.peers.filepact_by_uv}[tool]
            command = self.peers.wanted(f"filepact by {tool}", find)
            if command is not None:
                state = str(self._base / f"state-{tool}")
                ours = [*command, "mcp", str(tree), "--state", state]
                name = f"start to first answer, installed by {tool}"
                # As nearly everybody starts it: without settings.
                self._environment.pop("FILEPACT_CONFIG", None)
                self._start(name, ours, [*self._theirs, str(tree)], "200 files", tree, goal=3.0)

    def growth(self) -> None:
        """Ratios of filepact to itself, with more and more of something."""
        options = self._options
        growth = Growth(
            self._ours,
            self._base,
            self._environment,
            rounds=options.rounds,
            seconds=options.seconds,
            dice=self._dice,
            bound=None if options.quick else BOUND,
        )
        little, *more = options.growth_files
        found = [gate for much in more for gate in growth.files(little, much)]
        found += growth.windows(
            [100_000, 1_000_000, *([options.big] if options.big > 10**6 else [])]
        )
        found += growth.operations(min(100, options.operations // 4), options.operations)
        found += growth.rules(500)
        crowd, facts = growth.servers(options.servers, options.growth_files[0])
        found += crowd
        self.record["growth"] = [gate.to_json() for gate in found]
        self.record["facts"] |= {f"{options.servers} servers: {k}": v for k, v in facts.items()}
        for gate in found:
            sign = "ok" if gate.holds else "TOO MUCH"
            self._say(f"{gate.grows}: {gate.work}: {gate.ratio:.2f} ({sign})")

    def finish(self) -> None:
        self.record["versions"] |= self.peers.versions

    # -- how ------------------------------------------------------------------------------

    def _server(self, words: Sequence[str], tree: Path) -> StdioServer:
        return StdioServer(words, env=self._environment, cwd=tree)

    def _start(
        self,
        said: str,
        ours: Sequence[str],
        theirs: Sequence[str],
        name: str,
        tree: Path,
        goal: float,
    ) -> None:
        def start(words: Sequence[str]) -> Callable[[int], Timing]:
            def once(_: int) -> Timing:
                with self._server(words, tree) as server:
                    return Timing(server.started, server.started_cpu)

            return once

        rounds = max(3, self._options.rounds // 10)
        pairs = self._by_turns(rounds, start(ours), start(theirs), warm=2)
        self._result(said, name, pairs, agree=True, goal=goal)

    def _operation(
        self, operation: Operation, name: str, us: StdioServer, them: StdioServer
    ) -> None:
        texts: dict[int, str] = {}

        def side(number: int) -> Callable[[int], Timing]:
            server = (us, them)[number]
            make = (operation.ours, operation.theirs)[number]

            def once(turn: int) -> Timing:
                before = server.cpu()
                if operation.together > 1:
                    calls = [make(turn + n) for n in range(operation.together)]
                    seconds, _ = server.call_together(calls)
                    return Timing(seconds, server.cpu() - before)
                seconds, texts[number], failed = server.call(*make(turn))
                spent = server.cpu() - before
                if failed != operation.fails:
                    raise RuntimeError(f"{operation.name}: {texts[number][:300]}")
                return Timing(seconds, spent)

            return once

        rounds = self._options.rounds
        if operation.heavy or operation.together > 1:
            rounds = max(3, rounds // 10)
        pairs = self._by_turns(rounds, side(0), side(1))
        if operation.together > 1:
            for number in (0, 1):
                make = (operation.ours, operation.theirs)[number]
                texts[number] = (us, them)[number].call(*make(0))[1]
        agree = operation.alike(texts[0], texts[1])
        self._result(operation.name, name, pairs, agree=agree, goal=operation.goal)

    def _by_turns(
        self,
        rounds: int,
        ours: Callable[[int], Timing],
        theirs: Callable[[int], Timing],
        warm: int = 2,
    ) -> Pairs:
        seconds = self._options.seconds
        return by_turns(rounds, ours, theirs, warm=warm, seconds=seconds, dice=self._dice)

    def _result(
        self, said: str, tree: str, pairs: Pairs, *, agree: bool, goal: float | None
    ) -> None:
        self.add(
            {
                "operation": said,
                "tree": tree,
                "peer": "Node",
                "agree": agree,
                "goal": goal,
                **pairs.to_json(),
            }
        )

    def add(self, one: dict[str, Any]) -> None:
        """Take a result into the record."""
        self.record["results"].append(one)
        wall, cpu = one["ratio"]["wall"], one["ratio"]["cpu"]
        goal = f", wanted {one['goal']}" if one["goal"] else ""
        wrong = "  ANSWERS DIFFER" if one["agree"] is False else ""
        self._say(
            f"{one['operation']}, {one['tree']}: {wall[1]:.2f} ({wall[0]:.2f} to {wall[2]:.2f}) as "
            f"fast as {one['peer']}, {cpu[1]:.2f} on processors{goal}{wrong}"
        )

    def _search(self, name: str, tree: Path) -> None:
        """Fifty searches and a few globs beside ripgrep, as `search_compare` has them."""
        try:
            from bench import search_compare, search_fff, search_queries  # noqa: PLC0415 - a part by itself
        except ImportError as error:
            self.record["missing"]["search"] = str(error)
            return
        queries, rounds = search_queries.draw(tree), max(2, self._options.rounds // 30)
        rg = self.peers.wanted("ripgrep", self.peers.rg)
        if rg is not None:
            said, goal = f"grep, {len(queries)} searches", SEARCHES.get(name)
            found = search_compare.texts(tree, queries, rg[0], rounds=rounds)
            self._searched(said, "ripgrep", name, found, goal)
            found = search_compare.cold(tree, queries[::5], rg[0])
            self._searched("first grep of a new server", "ripgrep", name, found, 0.95)
            found = search_compare.cold(tree, queries[::5], rg[0], again=True)
            self._searched("first grep after a restart", "ripgrep", name, found, 0.95)
            found = search_compare.names(tree, rg[0], rounds=3 * rounds)
            self._searched("find, six globs", "ripgrep", name, found, 6.0)
        if not self._options.quick:
            more, text = search_compare.index_memory(tree)
            self._fact(f"memory of the index at rest, {name}, MiB", more)
            self._fact(
                f"memory of the index at rest, {name}, of 100 bytes of text", 100 * more / text
            )
        node = self.peers.wanted("fff", self.peers.fff)
        if node is not None:
            packages = self.peers.npm_folder()
            found = search_fff.texts(tree, queries, node, packages, rounds=rounds)
            self._searched("grep", "fff", name, found, 2.0)

    def _searched(
        self,
        said: str,
        peer: str,
        tree: str,
        found: Sequence[search_compare.Compared],
        goal: float | None,
    ) -> None:
        """Take searches into the record: of each what it takes in the middle, and the worst ratio."""
        pairs = Pairs()
        for one in found:
            pairs.add(_middle(one.ours), _middle(one.theirs))
        worst = min(one.ratio("wall") for one in found)
        more = {"worst": round(worst, 2), "agree": None, "goal": goal}
        self.add({"operation": said, "tree": tree, "peer": peer, **more, **pairs.to_json()})

    def _first_file(self, tree: Path) -> Path:
        return next(path for path in sorted(tree.rglob("*.py")) if path.is_file())

    def _fact(self, said: str, value: float) -> None:
        self.record["facts"][said] = round(value, 1)
        self._say(f"{said}: {value:.1f}")

    def _say(self, text: str) -> None:
        print(text, flush=True)


def _middle(timings: Sequence[search_compare.Timed]) -> Timing:
    """What a search takes in the middle of its rounds."""
    clocks = ([one.wall for one in timings], [one.cpu for one in timings])
    return Timing(*map(statistics.median, clocks))


def re_name(name: str) -> str:
    """A folder's name for a tree."""
    return f"tree-{Path(name).name}"


def sync_cost(folder: Path, rounds: int) -> float:
    """Seconds, in the middle, that the disk takes for what makes one change durable.

    That is one sync of the journal, one of the new file and one of its folder: no program that keeps a
    change over a power cut, and a record of it, can be quicker than this.
    """
    journal = os.open(folder / "sync.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    holder = os.open(folder, os.O_RDONLY)
    times = []
    for _ in range(max(5, rounds)):
        os.write(journal, b"x" * 8_192)
        temp = os.open(folder / "sync.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(temp, b"x" * 4_096)
        begin = time.perf_counter()
        os.fdatasync(journal)
        os.fsync(temp)
        os.rename(folder / "sync.tmp", folder / "sync.txt")
        os.fsync(holder)
        times.append(time.perf_counter() - begin)
        os.close(temp)
    os.close(journal)
    os.close(holder)
    return statistics.median(times)


def faults(found: dict[str, Any]) -> list[str]:
    """What a run has found that must not be, on any machine."""
    said = [
        f"answers differ: {one['operation']}" for one in found["results"] if one["agree"] is False
    ]
    said += [
        f"too much: {one['grows']}: {one['work']}: {one['ratio']['cpu'][1]:.2f}"
        for one in found["growth"]
        if not one["holds"]
    ]
    said += [f"stale: {example}" for one in found["stale"] for example in one["examples"]]
    return said


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "trees",
        nargs="*",
        default=["13k"],
        help=f"sizes ({', '.join(SIZES)}, or a number of files) or folders, which are copied; 13k",
    )
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=200, help="pairs of each operation; 200")
    parser.add_argument(
        "--seconds",
        type=float,
        default=30.0,
        help="after which an operation has been measured enough; 30",
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--servers", type=int, default=30, help="on one root; 30")
    parser.add_argument("--operations", type=int, default=100_000, help="in the journal; 100,000")
    parser.add_argument("--growth-files", nargs="+", type=int, default=[2_000, 13_000, 100_000])
    parser.add_argument("--big", type=int, default=100_000_000, help="bytes of the largest file")
    parser.add_argument(
        "--peers",
        type=Path,
        default=HERE.parent / ".peers",
        help="where the peers are installed; .peers in the project",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=HERE.parent / ".bench",
        help="where the record and the pictures go; .bench in the project",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=None,
        help="where trees and journals are made for the time of the run; the system's place for such",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tree of 60 files and a few rounds, to see that everything works",
    )
    parser.add_argument(
        "--report",
        nargs="+",
        type=Path,
        metavar="RECORD",
        help="measure nothing: put what records say into README.md, record.json and docs/images",
    )
    return parser


def quick(options: argparse.Namespace) -> None:
    """As little of everything as there can be."""
    options.trees = ["60"]
    options.rounds, options.seconds = 6, 5.0
    options.servers, options.operations, options.big = 2, 20, 1_000_000
    options.growth_files = [40, 80]
    StdioServer.young = 0.1  # no time means anything here


def main() -> int:
    options = arguments().parse_args()
    if options.report:
        report.write(options.report)
        return 0
    if options.quick:
        quick(options)
    with tempfile.TemporaryDirectory(dir=options.work, prefix="filepact-bench-") as scratch:
        run = Run(options, Path(scratch).resolve())
        for name in options.trees:
            run.beside_node(Path(name).name if "/" in name else name, run.tree(name))
        if "growth" in options.parts:
            run.growth()
        if "installed" in options.parts and not options.quick:
            run.installed()
        run.finish()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "record.json"
    path.write_text(json.dumps(run.record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    drawn = picture.draw(run.record, options.out)
    print(f"{path}, and {len(drawn)} pictures, of which {drawn[0].name} shows everything")
    for name, why in run.peers.missing.items():
        print(f"left out: {name}: {why}")
    said = [*record.problems(run.record), *faults(run.record)]
    for line in said:
        print(line)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
