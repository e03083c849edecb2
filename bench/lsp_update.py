"""From a write to the confirmed answer of a language server, on projects of medium size.

    PYTHONPATH=src python bench/lsp_update.py [SERVER...] [--rounds N] [--write]

Each round writes another last line into one of five files of the project, right and wrong by turns,
and takes the time until the server's diagnostics of that file are proven to be about the new text
(`ServerPool.tell` and `ask`); then the same with a second server on a copy of the project and a client that is
nothing but a loop.  Then the next line is proposed and withdrawn again (`ServerPool.propose`).  A third
server, on another copy, is what an agent's write through the door meets (`ServerJudge.verify`): files
that mention the changed one are asked about as well, and the whole folder is looked over for what
others wrote.  Every answer is looked at: a wrong one ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.lsp_alone import Alone
from bench.lsp_projects import PROJECTS, plant
from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact_diagnostics.judging import ServerJudge
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.asking import preview_of, update_of
from tests.servers.real_servers import locate, node_folders, server

if TYPE_CHECKING:
    from collections.abc import Sequence

README = Path(__file__).resolve().parent / "README.md"
MARK = "<!-- figures: written by lsp_update.py -->"
END = "<!-- end of what lsp_update.py wrote -->"
WANTED = {  # milliseconds
    "ruff": 50,
    "ty": 500,
    "typescript": 500,
    "clangd": 500,
    "basedpyright": 2_500,
    "filepact-csharp": 300,
}
ROUNDS = {"basedpyright": 20, "clangd": 30}
SECONDS = 120.0
BUDGET = 2.0  # what a write waits if nobody says otherwise
AGENT = Session("bench", Actor("agent", "bench", "1"))


class NotingPool(ServerPool):
    """A pool that notes what else it was asked about with a changed file.

    Attributes:
        others: The files, absolute.
    """

    others: tuple[str, ...] = ()

    def ask(self, root: str, files: Any, also: Any, seconds: float, **more: Any) -> Any:
        self.others = tuple(also) if files else self.others
        return super().ask(root, files, also, seconds, **more)


class Door:
    """An agent's writes, and what the servers of the workspace make of each."""

    def __init__(self, root: Path, state: Path, pool: ServerPool) -> None:
        self._root = root
        self._workspace = open_workspace([str(root)], state_dir=str(state), settings=Settings())
        self._semantics = ServerJudge(self._workspace, pool, mode="always", budget=SECONDS)

    def write(self, place: str, text: str, line: str, seconds: float) -> tuple[float, bool | None]:
        """Write a file; seconds from then to the answer, and whether a line is newly wrong.

        None where that was not confirmed in time.
        """
        with self._workspace.draft(AGENT, "write_file") as draft:
            (target,) = draft.open_all([place])
            draft.write(target, text)
            changes = draft.changes
            self._workspace.submit(draft, "a change")
        before = time.perf_counter()
        update = self._semantics.verify(changes, draft.versions, session=AGENT, seconds=seconds)
        took = time.perf_counter() - before
        if update.findings is None or not update.findings.fresh:
            return took, None
        return took, any(one.line == line.strip() for one in update.findings.new)

    def settle(self) -> None:
        """Wait until nobody is asked any more: what goes on behind a receipt blurs other times."""
        self._semantics.turn_summary(session=AGENT, seconds=SECONDS)

    def close(self) -> None:
        self._semantics.close()
        self._workspace.close()


@dataclass
class Times:
    """Seconds of each kind, and what the table says besides."""

    first: float = 0.0
    update: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    followed: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    pending: int = 0
    preview: list[float] = field(default_factory=list)
    version: str = ""
    size: str = ""


def measure(name: str, rounds: int) -> Times:
    """Take the times of one server."""
    which, project, taken = server(name), PROJECTS[name], Times()
    environment = {
        "HOME": os.environ["HOME"],
        "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
        "LANG": "C.UTF-8",
    }
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, agents = (Path(folder).resolve() / one for one in ("a", "b", "c"))
        for one in (ours, theirs, agents):
            one.mkdir()
            planted = plant(project, one)
        taken.size = f"{planted.files} / {planted.lines // 1000} k"
        program, *arguments = which.filled({one: locate(one) or "" for one in which.needs})
        pool = ServerPool([which], environment, locate)
        noting = NotingPool([which], environment, locate)
        door = Door(agents, Path(folder) / "state", noting)
        command = [locate(program) or program, *arguments]
        command = [word.replace("{root}", str(theirs)) for word in command]
        with Alone(which, command, theirs, environment) as alone:
            for number in range(rounds + len(planted.places)):
                place = planted.places[number % len(planted.places)]
                line = (project.wrong if number % 2 else project.right).format(n=number)
                text = (theirs / place).read_text(encoding="utf-8")
                if number >= len(planted.places):
                    text = "".join(text.splitlines(keepends=True)[:-1])
                text += line

                before = time.perf_counter()
                (ours / place).write_text(text, encoding="utf-8")
                change = DiskChange(str(ours / place), "changed", text)
                (update,) = update_of(pool, str(ours), [change], {change.path: text}, SECONDS)
                update_took = time.perf_counter() - before
                check(name, number, update.fresh and _errors(update.reports, line))

                before = time.perf_counter()
                (theirs / place).write_text(text, encoding="utf-8")
                found = alone.diagnostics(place, number, text)
                alone_took = time.perf_counter() - before
                last = text.count("\n") - 1
                check(name, number, any(one["range"]["start"]["line"] == last for one in found))

                warm = number >= len(planted.places)
                followed_took, wrong = door.write(place, text, line, BUDGET if warm else SECONDS)
                paths = [one[len(str(agents)) + 1 :] for one in noting.others]
                others = [one for one in paths if one not in planted.places]
                door.settle()
                before = time.perf_counter()
                alone.look(others)
                others_took = time.perf_counter() - before
                if wrong is None:
                    taken.pending += warm
                elif warm and not taken.pending:  # else nobody knows what was wrong before
                    check(name, number, wrong)

                other = (project.right if number % 2 else project.wrong).format(n=number)
                proposed = text.removesuffix(line) + other
                before = time.perf_counter()
                (seen,) = preview_of(
                    pool, str(ours), {change.path: proposed}, {change.path: text}, SECONDS
                )
                preview_took = time.perf_counter() - before
                check(name, number + 1, _errors(seen.reports, other))
                update_of(pool, str(ours), [], {change.path: text}, SECONDS)  # it has let go of it

                if number == 0:
                    taken.first = update_took
                elif number >= len(planted.places):
                    taken.update.append(update_took)
                    taken.alone.append(alone_took)
                    taken.followed.append(followed_took)
                    taken.others.append(alone_took + others_took)
                    taken.asked.append(len(paths))
                    taken.preview.append(preview_took)
        (status,) = pool.status()
        taken.version = status.version
        pool.close()
        door.close()
    return taken


def _errors(reports: Sequence[object], line: str) -> bool:
    return any(one.line == line.strip() for report in reports for one in report.diagnostics)


def check(name: str, number: int, wrong: bool) -> None:
    """End the run where the server said anything but the truth about the added line."""
    if wrong != bool(number % 2):
        raise SystemExit(f"{name}: a wrong answer in round {number}")


def report(names: Sequence[str], rounds: int) -> str:
    """The table of some servers."""
    rows = [
        "| server | files / lines | first | alone | update | 95 of 100 | wanted | added | door | alone, the same | asked | preview |",
        "| --- " * 12 + "|",
    ]
    for name in names:
        taken = measure(name, min(rounds, ROUNDS.get(name, rounds)))
        middle, bare = statistics.median(taken.update), statistics.median(taken.alone)
        late = statistics.quantiles(taken.update, n=20)[18]
        number = re.search(r"\d+(\.\d+)+", taken.version)
        said = f"{name} {number[0] if number else ''}".strip()
        door = _ms(statistics.median(taken.followed))
        pulled = server(name).asking == "pull"
        others = _ms(statistics.median(taken.others)) if pulled else "not asked"
        if taken.pending:
            door += f", {taken.pending} of {len(taken.followed)} pending"
        rows.append(
            f"| {said} | {taken.size} | {taken.first:.1f} s | {_ms(bare)} | {_ms(middle)} | {_ms(late)} "
            f"| {WANTED[name]:,} ms | {_ms(middle - bare)} "
            f"| {door} | {others} | {statistics.median(taken.asked):.0f} "
            f"| {_ms(statistics.median(taken.preview))} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    today = datetime.now(tz=UTC).date()
    about = (
        f"Measured {today}: Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {rounds} rounds"
        + "".join(f", {count} of {name}" for name, count in ROUNDS.items() if count < rounds)
        + "."
    )
    return "\n".join([MARK, "", about, "", *rows, "", END])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if abs(seconds) < 0.1 else f"{seconds * 1000:,.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", nargs="*", choices=[[], *PROJECTS], help="only these")
    parser.add_argument("--rounds", type=int, default=60, help="edits of each server")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.server or list(PROJECTS), given.rounds)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
