"""Measures what answers say of files that depend on a change, against compilers that start cold.

Trees are generated to the shape of real ones: packages that hand on what their modules declare,
modules that use those of other packages by name, and chains whose types are inferred; or they are
other people's (`real_trees`).  Each round makes one edit, asks as a preview and as a receipt, and
compares with what the language's own command line, or a server that starts cold, finds in the whole
tree.  It is wrong if an answer that said to be complete lacked an error, or if any answer told one
that is none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact_diagnostics.judging import ServerJudge
from filepact_diagnostics.lsp.pool import ServerPool
from tests.fetching import FetchError
from tests.servers.project_trees import REAL, edit
from tests.servers.real_servers import locate, server
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

PATIENT = 120.0
COLD = 900.0
PAUSE = 3.0
"""Seconds between two edits, where nothing is compared, for what is asked in the background."""
BUDGET = 2.0
PROMPT = 0.5

Found = set[tuple[str, int, str]]
"""Errors: file, line and code."""

Edit = Callable[[Mapping[str, str], int], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A generated tree.

    Attributes:
        server: The language server.
        packages: How many folders.
        modules: How many files each.
    """

    server: str
    packages: int
    modules: int


SHAPES = {
    "small-ty": Shape("ty", 3, 8),
    "medium-ty": Shape("ty", 12, 25),
    "large-ty": Shape("ty", 112, 25),
    "small-basedpyright": Shape("basedpyright", 3, 8),
    "large-basedpyright": Shape("basedpyright", 112, 25),
    "small-typescript": Shape("typescript", 3, 8),
    "large-typescript": Shape("typescript", 20, 25),
}


@dataclass(slots=True)
class Counts:
    """What came of the rounds.

    Attributes:
        missed: Errors that a complete answer did not have.
        left: Errors that an answer did not have that said it was not complete, and the news neither.
        invented: Errors that nobody else finds.
        in_time: Changed files of which all servers had answered when a receipt came, within its time.
        foreseen_known: The same of previews.
        own: Seconds until the changed file was answered.
        added: Seconds that a receipt took.
        foreseen: Seconds that a preview took.
        used: Seconds of processor time that servers used meanwhile.
        alone: Seconds that a server alone took for the changed file.
    """

    rounds: int = 0
    errors: int = 0
    complete: int = 0
    missed: int = 0
    left: int = 0
    invented: int = 0
    pending: int = 0
    told_later: int = 0
    in_time: int = 0
    foreseen_known: int = 0
    own: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    foreseen: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)


def tree(shape: Shape, dice: random.Random) -> dict[str, str]:
    """The files of a tree."""
    return (_script if shape.server == "typescript" else _python)(shape, dice)


def _python(shape: Shape, dice: random.Random) -> dict[str, str]:
    files = {"pyproject.toml": '[project]\nname = "p"\nversion = "1"\n'}
    for p in range(shape.packages):
        names = range(shape.modules)
        files[f"p{p}/__init__.py"] = "".join(
            f"from p{p}.m{m} import Thing{p}x{m} as Thing{p}x{m}, make{p}x{m} as make{p}x{m}\n"
            for m in names
        )
        for m in names:
            text = "from dataclasses import dataclass\n"
            uses = ""
            if p:
                for number in range(3):
                    q, n = dice.randrange(p), dice.randrange(shape.modules)
                    text += f"from p{q} import Thing{q}x{n}, make{q}x{n}\n"
                    uses += (
                        f"\n\ndef use{number}_{p}x{m}() -> int:\n    thing = make{q}x{n}(1)\n"
                        f"    total: int = thing.size{q}x{n}\n    return total + Thing{q}x{n}(1, 2).size{q}x{n}\n"
                    )
            text += (
                f"\n\n@dataclass\nclass Thing{p}x{m}:\n    number: int\n    size{p}x{m}: int\n\n\n"
                f"def make{p}x{m}(number: int) -> Thing{p}x{m}:\n    return Thing{p}x{m}(number, 1)\n"
            )
            filler = "".join(
                f"\n\ndef helper{number}(values: list[int]) -> int:\n    total = 0\n"
                f"    for one in values:\n        total += one * {number}\n    return total\n"
                for number in range(6)
            )
            files[f"p{p}/m{m}.py"] = text + uses + filler
    return files


def _script(shape: Shape, dice: random.Random) -> dict[str, str]:
    files = {"tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}}\n'}
    for p in range(shape.packages):
        names = range(shape.modules)
        files[f"p{p}/index.ts"] = "".join(f'export * from "./m{m}";\n' for m in names)
        for m in names:
            text, uses = "", ""
            if p:
                seen = set()
                for number in range(3):
                    q, n = dice.randrange(p), dice.randrange(shape.modules)
                    if (q, n) in seen:
                        continue
                    seen.add((q, n))
                    text += f'import {{ Thing{q}x{n}, make{q}x{n} }} from "../p{q}";\n'
                    uses += (
                        f"\nexport const use{number}x{p}x{m} = (thing: Thing{q}x{n}): number =>\n"
                        f"  thing.size{q}x{n} + make{q}x{n}(1).size{q}x{n};\n"
                    )
            text += (
                f"\nexport interface Thing{p}x{m} {{\n  number: number;\n  size{p}x{m}: number;\n}}\n\n"
                f"export function make{p}x{m}(number: number): Thing{p}x{m} {{\n"
                f"  return {{ number, size{p}x{m}: 1 }};\n}}\n"
            )
            files[f"p{p}/m{m}.ts"] = text + uses
    return files


def edits(text: str, place: str) -> list[str]:
    """Texts that break something, in the file or elsewhere."""
    found = re.search(r"p(\d+)/m(\d+)", place)
    if found is None:
        raise SystemExit(f"{place} has no number")
    mark = f"{found[1]}x{found[2]}"
    python = place.endswith(".py")
    words = [
        (f"size{mark}", f"width{mark}"),
        (f"make{mark}", f"build{mark}"),
        (
            f"size{mark}: {'int' if python else 'number'}",
            f"size{mark}: {'str' if python else 'string'}",
        ),
        (f"make{mark}(number:", f"make{mark}(more: {'int' if python else 'number'}, number:"),
        (f"Thing{mark}", f"Item{mark}"),
    ]
    return [text.replace(old, new) for old, new in words]


def truth(scene: Scene, name: str) -> Found:
    """All errors that the language's command line finds, or a server that starts cold."""
    if name == "typescript":
        said = _run([locate("tsc") or "", "-p", "."], scene.root)
        pattern = r"^(\S+)\((\d+),\d+\): error TS(\d+)"
    elif name == "ty":
        command = [locate("ty") or "", "check", "--output-format", "concise", "--no-progress"]
        said = _run(command, scene.root)
        pattern = r"^(\S+?):(\d+):\d+: error\[([\w-]+)\]"
    elif name == "basedpyright":
        program = str(Path(locate("basedpyright-langserver") or "").with_name("basedpyright"))
        found = json.loads(_run([program, "--outputjson", "."], scene.root))
        return {
            (
                os.path.relpath(one["file"], scene.root),
                one["range"]["start"]["line"] + 1,
                one.get("rule", ""),
            )
            for one in found["generalDiagnostics"]
            if one["severity"] == "error"
        }
    else:
        return _cold(scene, name)
    return {(one[1], int(one[2]), one[3]) for one in re.finditer(pattern, said, re.MULTILINE)}


def _cold(scene: Scene, name: str) -> Found:
    """The errors that a new server finds in all files."""
    with tempfile.TemporaryDirectory() as state:
        workspace = open_workspace([str(scene.root)], state_dir=state)
        pool = ServerPool([server(name)], scene.environment, locate)
        semantics = ServerJudge(workspace, pool, mode="always", budget=COLD)
        try:
            found = semantics.survey(session=AGENT, seconds=COLD)
        finally:
            semantics.close()
            workspace.close()
    if name != "filepact-csharp" and not found.complete:
        raise SystemExit(f"the cold server has not looked at everything: {found.messages[:3]}")
    return {
        (os.path.relpath(one.path, scene.root), one.start.line + 1, one.code)
        for report in found.reports
        for one in report.diagnostics
        if one.severity == "error"
    }


def _run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def new_errors(scene: Scene, update: WorkspaceUpdate) -> Found:
    """The new errors of an answer."""
    if update.findings is None:
        return set()
    return {
        (os.path.relpath(one.path, scene.root), one.start.line + 1, one.code)
        for one in update.findings.new
        if one.severity == "error"
    }


def processor_time() -> float:
    """Seconds that all programs have used that this one has started and that still run."""
    parents: dict[int, tuple[int, float]] = {}
    for place in Path("/proc").iterdir():
        try:
            words = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if place.name.isdigit():
            parents[int(place.name)] = int(words[1]), float(words[11]) + float(words[12])
    known, added = {os.getpid()}, True
    while added:
        new = {pid for pid, (parent, _) in parents.items() if parent in known} - known
        known, added = known | new, bool(new)
    ticks = sum(used for pid, (_, used) in parents.items() if pid in known and pid != os.getpid())
    return ticks / os.sysconf("SC_CLK_TCK")


def subject(name: str, dice: random.Random) -> tuple[str, dict[str, str], Edit]:
    """A tree's server, its files, and what gives the next edit, by its number."""
    if name in REAL:
        real = REAL[name]
        return real.server, real.files(), lambda files, _: edit(real, files, dice)
    shape = SHAPES[name]
    files = tree(shape, dice)
    places = [one for one in files if re.search(r"/m\d+\.", one)]

    def generated(files: Mapping[str, str], number: int) -> tuple[str, str]:
        place = dice.choice(places[: len(places) // 2])
        return place, edits(files[place], place)[number % 5]

    return shape.server, files, generated


def measure(name: str, rounds: int, seed: int, *, compare: bool, alone: bool) -> Counts:
    """Take the figures of one tree."""
    counts = Counts()
    which, files, next_edit = subject(name, random.Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder).resolve(), [which], files, mode="auto", budget=BUDGET)
        other = Bare(Path(folder).resolve() / "other", which, files) if alone else None
        try:
            first, _ = next_edit(files, 0)
            scene.semantics.look([first], session=AGENT, seconds=PATIENT)
            scene.index_words()
            before = truth(scene, which) if compare else set[tuple[str, int, str]]()
            for number in range(rounds):
                place, text = next_edit(files, number)
                if other is not None:
                    counts.alone.append(other.seconds(place, text))
                _round(scene, counts, place, text, before if compare else None, which)
                scene.write({place: files[place]}, seconds=PATIENT, brief=not compare)
                _drop(scene, PATIENT if compare else PAUSE)
        finally:
            scene.close()
            if other is not None:
                other.close()
    return counts


class Bare:
    """A server on a tree of its own, asked by nothing but a loop."""

    def __init__(self, root: Path, name: str, files: Mapping[str, str]) -> None:
        from bench.lsp_alone import Alone  # noqa: PLC0415 - for this alone

        for place, text in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text, encoding="utf-8")
        which = server(name)
        command = [locate(which.command[0]) or which.command[0], *which.command[1:]]
        self._files, self._version, self._shown = files, 0, set[str]()
        self._alone = Alone(which, command, root, dict(os.environ)).__enter__()

    def seconds(self, place: str, text: str) -> float:
        """How long it takes to look at the next text of a file, of which it has seen the present one."""
        if place not in self._shown:
            self._alone.diagnostics(place, 0, self._files[place])
            self._shown.add(place)
        self._version += 2
        began = time.perf_counter()
        self._alone.diagnostics(place, self._version, text, whole=True)
        took = time.perf_counter() - began
        self._alone.diagnostics(place, self._version + 1, self._files[place], whole=True)
        return took

    def close(self) -> None:
        self._alone.__exit__()


def _round(
    scene: Scene,
    counts: Counts,
    place: str,
    text: str,
    before: Found | None,
    which: str,
) -> None:
    counts.rounds += 1
    began = time.perf_counter()
    foreseen = scene.foresee({place: text})
    counts.foreseen.append(time.perf_counter() - began)
    counts.foreseen_known += all(one.confirmed_by != "none" for one in foreseen.servers)
    with scene.workspace.draft(AGENT, "write_file") as draft:
        (target,) = draft.open_all([place])
        draft.write(target, text)
        changes, versions = draft.changes, draft.versions
        scene.workspace.submit(draft, "a change")
    began, used = time.perf_counter(), processor_time()
    done = scene.semantics.verify(changes, versions, session=AGENT, brief=True)
    counts.used.append(processor_time() - used)
    took = time.perf_counter() - began
    counts.added.append(took)
    counts.own += [one.seconds for one in done.servers if one.confirmed_by != "none"][:1]
    known = bool(done.servers) and all(one.confirmed_by != "none" for one in done.servers)
    counts.in_time += known and min(one.seconds for one in done.servers) <= PROMPT
    counts.pending += done.kind == "pending"
    if before is None:
        return
    after = truth(scene, which)
    wanted = after - before
    counts.errors += len(wanted)
    later = _news(scene, done)
    for update in (foreseen, done):
        told = new_errors(scene, update)
        counts.invented += len(told - after)
        for path, line, code in sorted(told - after)[:5]:
            print(f"  invented after an edit of {place}: {path}:{line} {code}", flush=True)
        if update.findings is not None and update.findings.complete:
            counts.complete += 1
            counts.missed += len(wanted - told)
            for path, line, code in sorted(wanted - told)[:5]:
                print(f"  missed after an edit of {place}: {path}:{line} {code}", flush=True)
        elif update is done:
            missing = wanted - told
            counts.told_later += bool(later)
            counts.left += (short := max(len(missing) - _count(later), 0))
            if short:
                print(
                    f"  not told after an edit of {place}: {sorted(missing)[:6]}; later: {later!r}"
                )


def _count(news: str) -> int:
    found = re.search(r"(\d+) new error", news)
    return int(found[1]) if found else 0


def _news(scene: Scene, done: WorkspaceUpdate) -> str:
    """What is told later of what an answer left open."""
    waits = done.kind == "pending" or (done.findings is not None and done.findings.pending)
    end = time.monotonic() + (PATIENT if waits else 0)
    while time.monotonic() < end:
        found = scene.semantics.events(AGENT.id)
        if found:
            scene.semantics.acknowledge(AGENT.id, found)
            return "\n".join(one.text for one in found)
        if not scene.semantics.waits(AGENT.id):
            return ""
        time.sleep(0.05)
    return ""


def _drop(scene: Scene, seconds: float) -> None:
    end = time.monotonic() + seconds
    while scene.semantics.waits(AGENT.id) and time.monotonic() < end:
        time.sleep(0.05)
    scene.semantics.acknowledge(AGENT.id, scene.semantics.events(AGENT.id))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="*", choices=[[], *SHAPES, *REAL], help="only these")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--times", action="store_true", help="no comparison with a compiler")
    parser.add_argument("--alone", action="store_true", help="pairs with a server alone as well")
    given = parser.parse_args()
    wrong = 0
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors", flush=True)
    for name in given.tree or [*SHAPES, *REAL]:
        try:
            found = measure(
                name, given.rounds, given.seed, compare=not given.times, alone=given.alone
            )
        except (FetchError, FileNotFoundError, pytest.skip.Exception) as reason:
            print(f"{name}: cannot be had here: {reason}", flush=True)
            continue
        wrong += found.missed + found.invented
        print(
            f"{name}: {found.rounds} edits, {found.errors} errors; complete answers {found.complete}, "
            f"missed by these {found.missed}, invented {found.invented}; incomplete: not told {found.left}, "
            f"told later {found.told_later}; changed file in time {found.in_time}, pending "
            f"{found.pending}; own {_times(found.own)}; receipt {_times(found.added)}; preview "
            f"{_times(found.foreseen)}, {found.foreseen_known} of the changed file; servers' processor time {_times(found.used)}; "
            f"alone {_times(found.alone)}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    return 1 if wrong else 0


def _times(seconds: list[float]) -> str:
    """The middle, the 95th of a hundred, and the worst."""
    if not seconds:
        return "not measured"
    some = sorted(seconds)
    last = some[min(int(len(some) * 0.95), len(some) - 1)]
    return (
        "/".join(f"{one * 1000:.0f}" for one in (statistics.median(some), last, some[-1])) + " ms"
    )


if __name__ == "__main__":
    sys.exit(main())
