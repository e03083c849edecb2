"""Whether work stays as cheap where there is more of everything: gates on ratios of filepact to itself.

Two servers live side by side, one with little and one with much; they are asked by turns, as in `measure`.
A ratio is the processor time with much by that with little; a gate holds while it is at most its bound.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import Pairs, Timing, by_turns
from bench.stdio_client import StdioServer
from bench.tree import plant

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

__all__ = ["BOUND", "NO_SERVERS", "Gate", "Growth"]

BOUND = 1.3
"""The most that work may cost with much of what it does not concern, as a ratio."""

NO_SERVERS = 'diagnostics = "off"\n'
"""Settings with which no language server is asked."""

_SMALL = "def small():\n    return 1\n" * 150


@dataclass(frozen=True, slots=True)
class Gate:
    """One kind of work with little and with much.

    Attributes:
        grows: What there is more of, and how much.
        work: What was done.
        pairs: What was measured: *ours* with little, *theirs* with much.
        bound: The most that the ratio may be; None where it is only told.
    """

    grows: str
    work: str
    pairs: Pairs
    bound: float | None

    @property
    def ratio(self) -> float:
        return self.pairs.ratio("cpu").middle

    @property
    def holds(self) -> bool:
        return self.bound is None or self.ratio <= self.bound

    def to_json(self) -> dict[str, Any]:
        found = self.pairs.to_json()
        names = {"little": found["ours"], "much": found["theirs"]}
        return {
            "grows": self.grows,
            "work": self.work,
            "rounds": found["rounds"],
            **names,
            "ratio": found["ratio"],
            "bound": self.bound,
            "holds": self.holds,
        }


class Growth:
    """The tables of growth.

    Args:
        command: Starts filepact; to be followed by its arguments.
        base: A folder for trees and states.
        environment: Of the servers.
        rounds: Pairs of each kind of work.
        seconds: Most that one kind of work may take.
        dice: Draws who is first.
        bound: The most that a ratio may be; None if that is only told.
    """

    def __init__(
        self,
        command: Sequence[str],
        base: Path,
        environment: dict[str, str],
        *,
        rounds: int,
        seconds: float,
        dice: random.Random,
        bound: float | None = BOUND,
    ) -> None:
        self._bound = bound
        self._command = command
        self._base = base
        self._environment = environment
        self._rounds = rounds
        self._seconds = seconds
        self._dice = dice

    def files(self, little: int, much: int) -> list[Gate]:
        """Files in the tree."""
        trees = {}
        for count in (little, much):
            trees[count] = self._base / f"tree_{count}"
            if not trees[count].exists():
                trees[count].mkdir()
                plant(trees[count], files=count)
        said = f"files: {little:,} and {much:,}"
        with ExitStack() as stack:
            both = [
                stack.enter_context(self._server(trees[count], f"files_{count}"))
                for count in (little, much)
            ]
            works = self._works([trees[little], trees[much]])
            found = self._gates(said, both, works)
        return [self._starts(said, list(trees.values()), ["files_a", "files_b"]), *found]

    def operations(self, little: int, much: int) -> list[Gate]:
        """Operations in the journal, made by as many edits, in memory, and then copied to the disk."""
        states, trees = [], []
        for count in (little, much):
            tree = self._tree(f"journal_{count}")
            state = self._base / f"state_journal_{count}"
            self._fill(tree, state, count)
            states.append(state)
            trees.append(tree)
        said = f"operations in the journal: {little:,} and {much:,}"
        with ExitStack() as stack:
            both = [
                stack.enter_context(self._server(tree, state.name))
                for tree, state in zip(trees, states, strict=True)
            ]
            found = self._gates(said, both, self._works(trees, also_history=True))
        names = [state.name for state in states]
        return [self._starts(said, trees, names), *found]

    def rules(self, much: int) -> list[Gate]:
        """Rules of a person, which cover none of the files that are used."""
        trees = [self._tree("rules_0"), self._tree(f"rules_{much}")]
        config = self._base / "rules.toml"
        config.write_text(
            NO_SERVERS
            + "".join(
                f'[[deny]]\npaths = ["area{n}/private-{n % 7}/**", "*.kind{n}"]\nactions = ["read", "change"]\n'
                for n in range(much)
            )
        )
        said = f"rules: 0 and {much}"
        with ExitStack() as stack:
            both = [
                stack.enter_context(self._server(trees[0], "rules_none")),
                stack.enter_context(
                    self._server(trees[1], "rules_many", FILEPACT_CONFIG=str(config))
                ),
            ]
            return self._gates(said, both, self._works(trees))

    def servers(self, much: int, files: int) -> tuple[list[Gate], dict[str, float]]:
        """Servers at work on one root; also what they take together."""
        trees = [self._base / f"shared_{files}_{n}" for n in (0, 1)]
        for tree in trees:
            tree.mkdir()
            plant(tree, files=files)
        said = f"servers on one root: 1 and {much}"
        with ExitStack() as stack:
            alone = stack.enter_context(self._server(trees[0], "alone"))
            crowd = [stack.enter_context(self._server(trees[1], "crowd")) for _ in range(much)]
            for number, one in enumerate(crowd):
                # Each has searched, so that each knows the tree as well as it ever does.
                one.call("grep", {"pattern": f"absent_{number}_absent"})
                one.call("search_files", {"pattern": "**/*.md"})
            alone.call("grep", {"pattern": "absent_word_absent"})
            works = self._works(trees) | {
                "grep": lambda _, n: ("grep", {"pattern": f"absent_{n}_absent"}),
                "find": lambda _, n: ("search_files", {"pattern": f"**/*absent_{n}*"}),
            }
            found = self._gates(said, [alone, crowd[0]], works)
            facts = {
                "processor time of each but the first, ms": round(
                    sum(one.cpu() for one in crowd[1:]) / max(1, much - 1) * 1_000
                ),
                "servers": much,
                "own memory of each, MiB": round(sum(one.own_memory() for one in crowd) / much, 1),
                "watches of all": sum(one.watches() for one in crowd),
            }
        return found, facts

    def windows(self, sizes: Sequence[int]) -> list[Gate]:
        """Size of a file of which fifty lines are shown."""
        tree = self._tree("windows")
        files = {}
        for size in sizes:
            files[size] = tree / f"of_{size}.txt"
            line = b"%09d a line of fifty bytes, end of it comes here\n"
            with files[size].open("wb") as stream:
                stream.writelines(line % n for n in range(size // 58))
        least = sizes[0]
        found = []
        with self._server(tree, "windows") as server:
            server.rest()
            for size in sizes[1:]:
                for place, share in (("first", 0.0), ("middle", 0.5), ("last", 1.0)):

                    def look(which: int, share: float = share) -> Callable[[int], Timing]:
                        offset = max(0, int(which // 58 * share) - 50)
                        call = {"path": str(files[which]), "lines": 50, "offset": offset}
                        return lambda _: _timed(server, "read_file", call)

                    pairs = self._pairs(look(least), look(size))
                    said = f"size of a file: {least:,} and {size:,} bytes"
                    bound = None if self._bound is None else 2.0
                    found.append(Gate(said, f"{place} 50 lines", pairs, bound))
        return found

    # -- how ------------------------------------------------------------------------------

    def _tree(self, name: str) -> Path:
        tree = self._base / name
        if not tree.exists():
            tree.mkdir()
            plant(tree, files=300)
        return tree

    def _server(self, tree: Path, state: str, **more: str) -> StdioServer:
        path = self._base / (state if state.startswith("state_") else f"state_{state}")
        words = [*self._command, "mcp", str(tree), "--state", str(path)]
        return StdioServer(words, env=self._environment | more, cwd=tree)

    def _fill(self, tree: Path, state: Path, count: int) -> None:
        fast = self._memory() / f"state_{count}"
        words = [*self._command, "mcp", str(tree), "--state", str(fast)]
        file = tree / "filled.txt"
        try:
            with StdioServer(words, env=self._environment, cwd=tree) as server:
                server.call("write_file", {"path": str(file), "content": "0\n" * 20})
                for done in range(0, count, 100):
                    server.call_together(
                        [
                            (
                                "write_file",
                                {"path": str(file), "content": f"{n}\n" * 20},
                            )
                            for n in range(done + 1, min(done + 100, count) + 1)
                        ]
                    )
                    if done % 10_000 == 0 and count > 10_000:
                        print(f"  {done:,} of {count:,} operations", file=sys.stderr, flush=True)
            shutil.copytree(fast, state)
        finally:
            shutil.rmtree(fast.parent, ignore_errors=True)

    def _memory(self) -> Path:
        """A folder whose files are never synced, if there is one."""
        shared = Path("/dev/shm")  # noqa: S108 - in a folder of our own
        fast = shared / self._base.name if shared.is_dir() else self._base / "fast"
        fast.mkdir(mode=0o700, exist_ok=True)
        return fast

    def _works(
        self, trees: Sequence[Path], *, also_history: bool = False
    ) -> dict[str, Callable[[int, int], tuple[str, dict[str, Any]]]]:
        """Calls by the name of the work; each takes the side and the round."""
        for tree in trees:
            (tree / "beside").mkdir(exist_ok=True)
            (tree / "beside" / "read.py").write_text(_SMALL)
            (tree / "beside" / "edit.py").write_text(_SMALL + "row = 0\n")

        def edit(side: int, number: int) -> tuple[str, dict[str, Any]]:
            path = str(trees[side] / "beside" / "edit.py")
            old, new = f"row = {number}\n", f"row = {number + 1}\n"
            return "edit_file", {"path": path, "old_string": old, "new_string": new}

        def at(side: int, name: str) -> str:
            return str(trees[side] / "beside" / name)

        works: dict[str, Callable[[int, int], tuple[str, dict[str, Any]]]] = {
            "read 4 kB": lambda side, _: ("read_file", {"path": at(side, "read.py")}),
            "edit of 4 kB": edit,
            "write 4 kB": lambda side, n: (
                "write_file",
                {"path": at(side, "written.py"), "content": f"# {n}\n{_SMALL}"},
            ),
            "find in a folder": lambda side, _: (
                "search_files",
                {"directory": str(trees[side] / "beside"), "pattern": "*.py"},
            ),
        }
        if also_history:
            works["history"] = lambda *_: ("history", {"action": "log"})
        return works

    def _gates(
        self,
        said: str,
        servers: Sequence[StdioServer],
        works: dict[str, Callable[[int, int], tuple[str, dict[str, Any]]]],
    ) -> list[Gate]:
        found = []
        for side, server in enumerate(servers[:2]):
            # The first search has an index made in the background.
            _timed(server, *works["find in a folder"](side, 0))
            server.rest()
        for name, call in works.items():
            sides = [
                lambda n, side=side, call=call: _timed(servers[side], *call(side, n))  # type: ignore[misc]
                for side in (0, 1)
            ]
            found.append(Gate(said, name, self._pairs(*sides), self._bound))
        return found

    def _starts(self, said: str, trees: Sequence[Path], states: Sequence[str]) -> Gate:
        def start(side: int) -> Callable[[int], Timing]:
            def once(_: int) -> Timing:
                with self._server(trees[side], states[side]) as server:
                    return Timing(server.started, server.started_cpu)

            return once

        pairs = by_turns(
            max(3, self._rounds // 10),
            start(0),
            start(1),
            warm=1,
            seconds=self._seconds,
            dice=self._dice,
        )
        return Gate(said, "start to first answer", pairs, self._bound)

    def _pairs(self, little: Callable[[int], Timing], much: Callable[[int], Timing]) -> Pairs:
        return by_turns(self._rounds, little, much, seconds=self._seconds, dice=self._dice)


def _timed(server: StdioServer, tool: str, arguments: dict[str, Any]) -> Timing:
    before = server.cpu()
    seconds, text, failed = server.call(tool, arguments)
    if failed:
        raise RuntimeError(f"{tool} {json.dumps(arguments)[:200]}: {text[:300]}")
    return Timing(seconds, server.cpu() - before)
