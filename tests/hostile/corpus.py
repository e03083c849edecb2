"""Hostile and benign cases as data, each really built, called and judged by what is on the disk.

``python -m tests.hostile.corpus [--door DOOR] [ID...]`` runs them and says what was answered.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filepact.domain.policy import AccessRequest, Policy, decide
from filepact.domain.protected import BUILT_IN_RULES
from filepact.errors import CODES, FilepactError
from filepact.fs.path_form import check_form, check_new_name, this_system
from tests.hostile import doors
from tests.hostile.doors import COMMANDS, NO_TOOL, Answer, approve, approving, go_back
from tests.hostile.plans import Step, plan
from tests.hostile.world import CannotBuildError, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.hostile.doors import Door, Opens
    from tests.hostile.world import Fingerprint

__all__ = ["CASES", "DOORS", "Case", "Result", "load", "run", "run_case"]

CASES = Path(__file__).with_name("cases")
PENDING = "APPROVAL_REQUIRED"
NEEDS_DOOR = frozenset({"propose", "approve", "write", "undo", "checkpoint", "swap"})
REFUSALS = frozenset(CODES) | {NO_TOOL}
DOORS: dict[str, Opens] = {
    "library": doors.library,
    "protocol": doors.protocol,
    "command": doors.command,
}

Verdict = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Case:
    """One request, what was there before it, and the right answer.

    Attributes:
        system: Where it can happen: any, posix, linux, macos, windows.
        tree: Steps that build the world; those in `NEEDS_DOOR` are done by the runner.
        do: What is asked for; `tests.hostile.plans` says with which tools.
        given: What else the request says.
        codes: The only right codes of a refusal; empty when every stable code is right.
        impossible: Why it cannot be run at all, where it cannot.
        number: Which one it is of the cases of its line.
    """

    id: str
    do: str
    verdict: Verdict
    why: str
    path: str = ""
    system: str = "any"
    tree: tuple[tuple[Any, ...], ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    mode: Literal["auto", "preview"] = "auto"
    impossible: str = ""
    number: int = 1

    @property
    def family(self) -> str:
        return self.id.rpartition("-")[0]

    @property
    def lexical(self) -> bool:
        """Whether only the form of its name can be judged here."""
        return self.system in ("windows", "macos") and self.system != this_system()

    def fits(self, door: str) -> bool:
        """Whether a door has what the case asks for."""
        if self.lexical:
            return door == "library"
        if self.do == "line":
            return door == "protocol"
        if door == "command":
            return (
                self.mode == "auto"
                and self.do not in ("approve", "call", "undo", "redo", "restore")
                and all(step[0] not in NEEDS_DOOR for step in self.tree)
                and not {"folders", "tries"} & self.given.keys()
                and all(step.tool in COMMANDS and _typable(step) for step in plan(self, {}))
            )
        return True


def _typable(step: Step) -> bool:
    """Whether a person could send the same on a command line."""
    return all(
        (isinstance(value, str) and "\0" not in value) or value is True
        for value in step.arguments.values()
    )


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case.

    Attributes:
        got: The verdict as it was given; empty when the case could not be run.
        code: Of the refusal.
        wrong: What is not as it has to be, one sentence each.
        skipped: Why it was not run.
    """

    case: Case
    got: str = ""
    code: str = ""
    wrong: tuple[str, ...] = ()
    skipped: str = ""
    said: str = ""


def load(folder: Path = CASES) -> list[Case]:
    """Every case, in the order of the files and their lines."""
    cases: list[Case] = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            cases += _expanded(json.loads(line))
    if len({case.id for case in cases}) != len(cases):
        raise ValueError("two cases share an id")
    return cases


def _expanded(raw: dict[str, Any]) -> Iterator[Case]:
    """A line's cases: one, or one for each of its values."""
    values = raw.pop("each", None)
    if values is None:
        yield _case(raw)
        return
    template = json.dumps(raw)
    for number, value in enumerate(values, start=1):
        inside = json.dumps(value)[1:-1]
        one = json.loads(template.replace("{each}", inside))
        yield _case(one | {"id": f"{raw['id']}-{number}", "number": number})


def _case(raw: dict[str, Any]) -> Case:
    return Case(
        **raw
        | {
            "tree": tuple(tuple(step) for step in raw.get("tree", ())),
            "codes": tuple(raw.get("codes", ())),
        }
    )


# -- one case -------------------------------------------------------------------------------------


def run_case(case: Case, base: Path, door: str = "library") -> Result:
    """Build a case's world in an empty folder, ask, and judge."""
    if case.impossible:
        return Result(case, skipped=case.impossible)
    if case.lexical:
        return _judge_form(case)
    if case.system == "linux" and this_system() != "linux":
        return Result(case, skipped="needs Linux")
    world = World.make(base)
    try:
        return _run(case, world, DOORS[door])
    except CannotBuildError as error:
        return Result(case, skipped=str(error))


def _judge_form(case: Case) -> Result:
    """Ask for the form and the rules of another system, which are pure."""
    path = case.path.replace("{root}", "/project").replace("{home}", "/home/anna")
    action = "read" if case.do == "read" else "write"
    try:
        check_form(path, case.system)  # type: ignore[arg-type] # a system's name, from data
        if action == "write":
            check_new_name(path)
    except FilepactError as error:
        return _judged(case, "deny", error.code, [], error.report())
    parts = path.replace("\\", "/") if case.system == "windows" else path
    if parts.startswith("/") or ".." in parts.split("/"):
        inside = os.path.normpath(os.path.join("/project", parts))
        if not inside.startswith("/project/"):
            return _judged(case, "deny", "PATH_BLOCKED", [], "it leaves the root")
        parts = inside.removeprefix("/project/")
    said = decide(AccessRequest("/project", parts, action), Policy(BUILT_IN_RULES))
    code = {"allow": "", "ask": PENDING, "deny": "PATH_BLOCKED"}[said.verdict]
    return _judged(case, said.verdict, code, [], said.why)


def _run(case: Case, world: World, opens: Opens) -> Result:
    folders = [world.fill(uri) for uri in case.given.get("folders", ())]
    with opens(world, case.mode, folders) as door:
        proposals: list[str] = []
        swaps: list[tuple[str, str]] = []
        for step in case.tree:
            if step[0] == "propose":
                proposals.append(_proposed(door, step))
            elif step[0] == "swap":
                swaps.append((step[1], step[2]))
            elif step[0] == "approve":
                _say_yes(world, proposals[-1])
            elif step[0] == "write":
                done = door.call("write_file", {"path": step[1], "content": step[2]})
                assert done.status == "applied", done
            elif step[0] in ("undo", "checkpoint"):
                go_back(world, *step)
            else:
                world.build(step)
        before = world.fingerprint()
        with _swapping(world, swaps):
            answers = _ask(case, world, door, proposals)
        after = world.fingerprint()
        wrong = [
            f"the answer shows a secret: {answer.text[:200]!r}"
            for answer in answers
            if "SECRET" in answer.text
        ]
        last = answers[-1]
        if last.code:
            got = "ask" if last.code == PENDING else "deny"
        else:
            got = "ask" if any(answer.status == "pending" for answer in answers) else "allow"
        if swaps:
            # Either file may be named at the moment; only the outside counts.
            got = "deny"
        wrong += _outside(before, after)
        if got != "allow" and not swaps and before != after:
            wrong.append(f"refused or pending, but changed {_differences(before, after)}")
        if got == "allow":
            wrong += _effect(case, world, before, after, last)
        if got == "ask" and case.verdict == "ask":
            wrong += _approved(case, world, answers, before)
    return _judged(case, got, "" if swaps else last.code, wrong, last.text)


def _proposed(door: Door, step: Sequence[Any]) -> str:
    answer = door.call("write_file", {"path": step[1], "content": step[2], "createDirs": True})
    assert answer.status == "pending", answer
    return answer.change


def _say_yes(world: World, change: str) -> None:
    with approving(world) as workspace:
        answer = approve(workspace, change)
    assert answer.status == "applied", answer


def _ask(case: Case, world: World, door: Door, proposals: list[str]) -> list[Answer]:
    if case.do == "approve":
        with approving(world) as workspace:
            return [approve(workspace, proposals[-1])]
    if case.do in ("undo", "redo", "restore"):
        return [go_back(world, case.do, "here")]
    if case.do == "line":
        assert isinstance(door, doors.Server)
        line = case.given.get("line") or json.dumps({"filler": "x" * case.given["bytes"]})
        return [door.raw(world.fill(line))]
    answers: list[Answer] = []
    for step in plan(case, _files(world, case)):
        arguments = {
            name: world.fill(value) if isinstance(value, str) else value
            for name, value in step.arguments.items()
        }
        tries = range(case.given.get("tries", 1))
        answers += [door.call(step.tool, arguments) for _ in tries]
        if answers[-1].code:
            break
    return answers


def _files(world: World, case: Case) -> dict[str, str]:
    """The files beneath the folder that a case moves, with their texts."""
    folder = world.root / world.fill(case.path).removeprefix(str(world.root)).lstrip("/")
    if case.do not in ("rename", "delete") or not folder.is_dir():
        return {}
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def _judged(case: Case, got: str, code: str, wrong: list[str], said: str) -> Result:
    if got != case.verdict:
        wrong = [f"{got} {code}, not {case.verdict}: {said[:200]!r}", *wrong]
    elif got == "deny" and code not in (case.codes or REFUSALS) and not case.given.get("tries"):
        wrong = [f"the code is {code!r}", *wrong]
    return Result(case, got, code, tuple(wrong), said=said)


def _outside(before: Fingerprint, after: Fingerprint) -> list[str]:
    changed = [path for path in _differences(before, after) if not path.startswith("project/")]
    return [f"outside the root {path} changed" for path in changed]


def _differences(before: Fingerprint, after: Fingerprint) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _effect(
    case: Case, world: World, before: Fingerprint, after: Fingerprint, answer: Answer
) -> list[str]:
    """What should have been done and was not."""
    path = world.root / world.fill(case.path)
    match case.do:
        case "write" if path.read_bytes().decode() != case.given["content"]:
            return ["the file does not hold what was written"]
        case "read" if answer.text.strip() and not _shows(path, answer.text):
            return ["the answer does not show the file"]
        case "delete" if _holds(path):
            return ["it is still there"]
        case "rename" if _holds(path) or not _holds(world.root / case.given["to"]):
            return ["it was not moved"]
        case "chmod" if not path.stat().st_mode & 0o100:
            return ["it cannot be executed"]
        case "preview" if before != after:
            return ["a preview changed something"]
        case "patch" | "edit" | "approve" | "undo" | "redo" | "restore" if before == after:
            return ["nothing was changed"]
    links = [name for name, what in before.items() if what[0] == "link"]
    return [f"{name} is no link any more" for name in links if before[name] != after.get(name)]


def _holds(path: Path) -> bool:
    """Whether there is a file, or a folder with a file anywhere beneath it."""
    return path.is_file() or any(below.is_file() for below in path.rglob("*"))


def _shows(path: Path, text: str) -> bool:
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return all(line.strip() in text for line in lines[:20])


def _approved(case: Case, world: World, answers: list[Answer], before: Fingerprint) -> list[str]:
    """A person says yes: what was proposed is done then, and nothing else."""
    pending = [answer for answer in answers if answer.status == "pending"]
    if not pending:
        hint = answers[-1].text.strip().count("\n") or answers[-1].text.startswith("{")
        return [] if hint else ["the refusal does not say what to do"]
    with approving(world) as workspace:
        known = {proposal.id for proposal in workspace.pending()}
        for answer in pending:
            if answer.change not in known:
                return [f"{answer.change} is not among the proposals"]
            done = approve(workspace, answer.change)
            if done.code:
                return [f"the approval was refused: {done.text}"]
    after = world.fingerprint()
    wrong = _outside(before, after)
    if before == after:
        wrong.append("an approval changed nothing")
    if case.do in ("write", "delete", "rename", "chmod"):
        wrong += _effect(case, world, before, after, pending[-1])
    return wrong


@contextmanager
def _swapping(world: World, swaps: list[tuple[str, str]]) -> Iterator[None]:
    """Another process exchanges two names for as long as the block runs."""
    if not swaps:
        yield
        return
    program = (
        "import os, sys\n"
        "from filepact.fs.kernel import EXCHANGE, renameat2\n"
        "folder = os.open(sys.argv[1], os.O_RDONLY)\n"
        "print('ready', flush=True)\n"
        "while True: renameat2(folder, sys.argv[2], sys.argv[3], EXCHANGE)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(world.root), *swaps[0]],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    try:
        if process.stdout.readline() != b"ready\n":
            raise CannotBuildError("two names cannot be exchanged here")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# -- all of them ----------------------------------------------------------------------------------


def run(
    door: str = "library",
    *,
    only: Sequence[str] = (),
    told: Callable[[Result], None] = lambda _result: None,
) -> list[Result]:
    """Run every case that a door has, each in a folder of its own."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="filepact-cases-") as folder:
        for number, case in enumerate(load()):
            if case.fits(door) and (not only or case.id in only or case.family in only):
                base = Path(folder, str(number))
                base.mkdir()
                results.append(run_case(case, base, door))
                told(results[-1])
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("ids", nargs="*", help="cases or families; all when none is named")
    parser.add_argument("--door", choices=DOORS, default="library")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell every answer")
    arguments = parser.parse_args()

    def tell(result: Result) -> None:
        if result.wrong:
            print(f"WRONG {result.case.id}: {'; '.join(result.wrong)}")
        elif result.skipped:
            print(f"not run {result.case.id}: {result.skipped}")
        elif arguments.verbose:
            first = ascii(result.said.partition("\n")[0][:120])
            print(f"{result.got} {result.code} {result.case.id}: {first}")

    results = run(arguments.door, only=arguments.ids, told=tell)
    wrong = sum(bool(result.wrong) for result in results)
    skipped = sum(bool(result.skipped) for result in results)
    print(f"{len(results)} cases, {wrong} wrong, {skipped} not run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
