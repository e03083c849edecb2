"""Searches through a server beside fff, which keeps an index as well: the best indexed peer that was found.

fff runs in a process of Node that is asked by lines of JSON, as a server is.  A pattern that is written in other than
the case that is wanted is left out: fff decides about case by the pattern.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.search_compare import Compared, Timed, called, serve, settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.search_queries import TextQuery

__all__ = ["texts"]

_LIMIT = 50
_SCHED = 2
_SCRIPT = Path(__file__).with_name("fff_search.mjs")


class _Finder:
    """A process of fff; a context of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._read()

    def ask(self, query: TextQuery) -> Timed:
        """What a search takes."""
        asked = {
            "pattern": query.pattern,
            "caseSensitive": query.case_sensitive,
            "limit": _LIMIT,
        }
        clock = (~self._process.pid << 3) | _SCHED
        before, begin = time.clock_gettime(clock), time.perf_counter()
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        done = Timed(time.perf_counter() - begin, time.clock_gettime(clock) - before)
        if not answer["ok"]:
            raise RuntimeError(f"fff: {query.pattern}: {answer}")
        return done

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - as above
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("fff ended")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def _finder(node: Sequence[str], packages: Path, tree: Path) -> Iterator[_Finder]:
    # A script finds packages in the folders above it.
    script = packages.parent / _SCRIPT.name
    shutil.copyfile(_SCRIPT, script)
    with subprocess.Popen(
        [*node, str(script), str(tree)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield _Finder(process)
        finally:
            process.kill()


def texts(
    tree: Path,
    queries: Sequence[TextQuery],
    node: Sequence[str],
    packages: Path,
    *,
    rounds: int = 7,
    seed: int = 1,
) -> list[Compared]:
    """Searches of a server that has its index, beside those of fff that has its own.

    Args:
        tree: What is searched.
        queries: Which.
        node: The command of Node.
        packages: The folder in which fff's package is.
        rounds: How often each.
        seed: Of the order.
    """
    dice = random.Random(seed)
    some = [query for query in queries if query.case_sensitive]
    found = [Compared(query.kind, query.pattern) for query in some]
    with (
        tempfile.TemporaryDirectory() as scratch,
        serve(tree, Path(scratch)) as server,
        _finder(node, packages, tree) as finder,
    ):
        called(server, some[0].ours(_LIMIT))
        settle(server)
        for turn in range(-1, rounds):
            for at in dice.sample(range(len(some)), len(some)):
                for side in dice.sample((0, 1), 2):
                    if side:
                        done = finder.ask(some[at])
                    else:
                        done, _ = called(server, some[at].ours(_LIMIT))
                    if turn >= 0:
                        (found[at].theirs if side else found[at].ours).append(done)
    return found
