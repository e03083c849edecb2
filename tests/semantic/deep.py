"""Measures what answers say of files that depend on a change, against compilers that start cold.

Trees are generated to the shape of real ones: packages that hand on what their modules declare,
modules that use those of other packages by name, and chains whose types are inferred.  Each round
makes one edit that breaks something, asks as a preview, as a write and as a receipt, and compares
with what the language's own command line finds new in the whole tree.  It is wrong if an answer that
said to be complete lacked an error, or if any answer told one that is none.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lsp.real_servers import locate
from tests.semantic.scene import AGENT, Scene

if TYPE_CHECKING:
    from filepact.semantic.updates import WorkspaceUpdate

PATIENT = 120.0
BUDGET = 2.0


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
        own: Seconds until the changed file was answered.
        added: Seconds that a receipt took.
    """

    rounds: int = 0
    errors: int = 0
    complete: int = 0
    missed: int = 0
    left: int = 0
    invented: int = 0
    pending: int = 0
    told_later: int = 0
    own: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)


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


def truth(scene: Scene, server: str) -> set[tuple[str, int]]:
    """The lines of all errors that the language's command line finds."""
    if server == "typescript":
        said = _run([locate("tsc") or "", "-p", "."], scene.root)
        return {
            (one[1], int(one[2]))
            for one in re.finditer(r"^(\S+)\((\d+),\d+\): error", said, re.MULTILINE)
        }
    if server == "ty":
        command = [locate("ty") or "", "check", "--output-format", "concise", "--no-progress"]
        said = _run(command, scene.root)
        return {
            (one[1], int(one[2]))
            for one in re.finditer(r"^(\S+?):(\d+):\d+: error", said, re.MULTILINE)
        }
    program = str(Path(locate("basedpyright-langserver") or "").with_name("basedpyright"))
    found = json.loads(_run([program, "--outputjson", "."], scene.root))
    return {
        (os.path.relpath(one["file"], scene.root), one["range"]["start"]["line"] + 1)
        for one in found["generalDiagnostics"]
        if one["severity"] == "error"
    }


def _run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def new_errors(scene: Scene, update: WorkspaceUpdate) -> set[tuple[str, int]]:
    """The lines of the new errors of an answer."""
    if update.findings is None:
        return set()
    return {
        (os.path.relpath(one.path, scene.root), one.start.line + 1)
        for one in update.findings.new
        if one.severity == "error"
    }


def measure(name: str, rounds: int, *, compare: bool) -> Counts:
    """Take the figures of one shape."""
    shape, dice, counts = SHAPES[name], random.Random(11), Counts()
    with tempfile.TemporaryDirectory() as folder:
        files = tree(shape, dice)
        scene = Scene(Path(folder).resolve(), [shape.server], files, mode="auto", budget=BUDGET)
        try:
            places = [one for one in files if re.search(r"/m\d+\.", one)]
            scene.semantics.look([places[0]], session=AGENT, seconds=PATIENT)
            before = truth(scene, shape.server) if compare else set()
            for number in range(rounds):
                place = dice.choice(places[: len(places) // 2])
                old = scene.get(place)
                text = edits(old, place)[number % 5]
                _round(scene, counts, place, text, before if compare else None, shape.server)
                scene.write({place: old}, seconds=PATIENT)
                _drop(scene)
        finally:
            scene.close()
    return counts


def _round(
    scene: Scene,
    counts: Counts,
    place: str,
    text: str,
    before: set[tuple[str, int]] | None,
    server: str,
) -> None:
    counts.rounds += 1
    foreseen = scene.foresee({place: text})
    began = time.perf_counter()
    with scene.workspace.draft(AGENT, "write_file") as draft:
        (target,) = draft.open_all([place])
        draft.write(target, text)
        changes, versions = draft.changes, draft.versions
        scene.workspace.submit(draft, "a change")
    began = time.perf_counter()
    done = scene.semantics.verify(changes, versions, session=AGENT, brief=True)
    counts.added.append(time.perf_counter() - began)
    counts.own += [one.seconds for one in done.servers if one.confirmed_by != "none"][:1]
    counts.pending += done.kind == "pending"
    if before is None:
        return
    wanted = truth(scene, server) - before
    counts.errors += len(wanted)
    later = _news(scene, done)
    for update in (foreseen, done):
        told = new_errors(scene, update)
        counts.invented += len(told - wanted)
        if update.findings is not None and update.findings.complete:
            counts.complete += 1
            counts.missed += len(wanted - told)
        elif update is done:
            missing = wanted - told
            counts.told_later += bool(later)
            counts.left += (
                0 if later and _count(later) >= len(missing) else len(missing) - _count(later)
            )


def _count(news: str) -> int:
    found = re.search(r"(\d+) new error", news)
    return int(found[1]) if found else 0


def _news(scene: Scene, done: WorkspaceUpdate) -> str:
    """What is told later of what an answer left open."""
    waits = done.kind == "pending" or (done.findings is not None and done.findings.pending)
    end = time.monotonic() + (PATIENT / 4 if waits else 0)
    while time.monotonic() < end:
        found = scene.semantics.events(AGENT.id)
        if found:
            scene.semantics.acknowledge(AGENT.id, found)
            return "\n".join(one.text for one in found)
        if not scene.semantics.waits(AGENT.id):
            return ""
        time.sleep(0.05)
    return ""


def _drop(scene: Scene) -> None:
    end = time.monotonic() + PATIENT
    while scene.semantics.waits(AGENT.id) and time.monotonic() < end:
        time.sleep(0.05)
    scene.semantics.acknowledge(AGENT.id, scene.semantics.events(AGENT.id))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", nargs="*", choices=[[], *SHAPES], help="only these")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--times", action="store_true", help="no comparison with a compiler")
    given = parser.parse_args()
    wrong = 0
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for name in given.shape or list(SHAPES):
        found = measure(name, given.rounds, compare=not given.times)
        wrong += found.missed + found.invented
        own = sorted(found.own) or [0.0]
        print(
            f"{name}: {found.rounds} edits, {found.errors} errors; complete answers {found.complete}, "
            f"missed by these {found.missed}, invented {found.invented}; incomplete: not told {found.left}, "
            f"told later {found.told_later}; own pending {found.pending}; own p50 "
            f"{statistics.median(own) * 1000:.0f} ms, worst {own[-1] * 1000:.0f} ms; receipt p50 "
            f"{statistics.median(found.added) * 1000:.0f} ms, worst {max(found.added) * 1000:.0f} ms; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
