"""A day's work of real agents on scripted models, with their own tools and with those of filepact.

    python -m bench.day_of_agents [AGENT...] [--parts NAME...] [--show] [--write]

The day is written once, as what an agent means to do; each agent does it twice in the same project, with the same person
beside it, who stashes, checks out, merges, types, and has a formatter run when a file is saved.  After every change
the files are compared with what was meant: it is made, or refused, or something else came of it.  A model that is refused
reads the file again and sends the change again.  ``--show`` prints each refusal and what else was not as meant;
``--write`` puts the table into bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.day_hands import own_hands, served_hands
from bench.day_parts import HELP, PARTS, Mind, Project, Tally, Worker, help_with
from tests.agents.dialects import Heard, Reply
from tests.agents.guarded import able
from tests.agents.installed import node_program
from tests.agents.machines import AGENTS, Machine
from tests.agents.model import Call, ScriptedModel
from tests.agents.recorder import SEARCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by day_of_agents.py -->"
END = "<!-- end of what day_of_agents.py wrote -->"
ASIDE = '{"unproductive_state_analysis": "none", "unproductive_state_confidence": 0}'
"""What is said aside: Gemini CLI asks after thirty calls whether its model goes round in circles."""


class Talk:
    """A conversation: what was said in it, and the mind that says it.

    Attributes:
        failure: Why the mind gave up.
        over: Whether it has said all.
    """

    def __init__(self, mind: Mind) -> None:
        self.failure: BaseException | None = None
        self.over = False
        self._mind = mind
        self._steps: list[Sequence[Call]] = []
        self._turn = threading.Lock()

    def go_on(self, answers: Sequence[str]) -> Sequence[Call]:
        """The next calls, or the last again where a request is sent again; none when it is over."""
        with self._turn:
            done = 0
            for step in self._steps:
                if done >= len(answers):
                    return step
                done += len(step)
            last = [*answers[done - len(self._steps[-1]) :]] if self._steps else None
            try:
                step = self._mind.send(last) if last is not None else next(self._mind)
            except StopIteration:
                self.over = True
                return ()
            except Exception as error:  # noqa: BLE001 - told by whoever started the day
                self.failure = error
                return ()
            self._steps.append(step)
            return step


class ThinkingModel(ScriptedModel):
    """Minds that hear what is answered to them, by the word in the prompt that chooses them."""

    def __init__(self, minds: Mapping[str, Mind]) -> None:
        super().__init__(dict.fromkeys(minds, ()))
        self.talks = {word: Talk(mind) for word, mind in minds.items()}
        self.listed = 0

    def weigh(self, request: dict[str, Any]) -> None:
        tools = len(json.dumps(request.get("tools") or [], ensure_ascii=False))
        self.listed = max(self.listed, tools)

    def reply(self, heard: Heard) -> Reply:
        chosen, answers = self.place(heard)
        if chosen is None or not heard.tools:
            return Reply(len(heard.turns), text=ASIDE)
        said = [one.text for one in answers]
        calls = self.talks[chosen].go_on(said)
        return Reply(len(heard.turns), calls=tuple(calls), text="" if calls else "All done.")


def work(
    name: str, folder: Path, *, served: bool, parts: Sequence[str]
) -> tuple[Tally, dict[str, str]]:
    """Have an agent do its day; what it took, and how the files are in the evening.

    Args:
        name: The agent.
        folder: An empty folder.
        served: Whether it has, and uses, the tools of filepact.
        parts: The parts of the day.
    """
    agent = able(next(one for one in AGENTS if one.name == name))
    machine = Machine(agent, folder)
    project, tally = Project(machine.root), Tally()
    hands = served_hands(name, agent.tool) if served else own_hands(name, machine.root)

    def approve() -> bool:
        if not served:
            return False
        filepact = str(machine.program)
        waits = json.loads(machine.run([filepact, "pending", "--json"]).stdout)["pending"]
        if waits:
            machine.run([filepact, "approve", "--all", "--unattended"])
        return bool(waits)

    def day(worker: Worker) -> Mind:
        for part in parts:
            worker.part = part
            yield from PARTS[part](worker)

    ready = threading.Barrier(len(HELP))
    minds = {"": day(Worker(hands, project, tally, approve))}
    for part in HELP:
        helper = Worker(hands, project, tally, approve, alone=False)
        helper.part = "sub_agents"
        minds[part] = help_with(helper, part, ready)
    package, program, group = agent.package
    searcher = node_program("@openai/codex-linux-x64", SEARCH, group="hosts")[0]
    (machine.program.parent / "rg").symlink_to(searcher)
    with ThinkingModel(minds) as model:
        machine.settle(model.url)
        before = project.tree()
        if served:
            machine.setup("--write")
        settings = project.tree().keys() - before.keys()  # OpenCode's lie in the project
        words = [*node_program(package, program, group=group), *agent.words]
        done = machine.run(words, model.url, patience=1_800)
    for talk in model.talks.values():
        if talk.failure is not None:
            raise RuntimeError(f"{name}: the day could not be told") from talk.failure
    if not model.talks[""].over:
        raise RuntimeError(f"{name} stopped: {done.stdout[-2_000:]} {done.stderr[-2_000:]}")
    tally.listed = model.listed
    return tally, {path: text for path, text in project.tree().items() if path not in settings}


def one_day(name: str, parts: Sequence[str], *, served: bool) -> tuple[Tally, dict[str, str]]:
    """An agent's day in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return work(name, Path(folder).resolve() / "day", served=served, parts=parts)


def served_day(name: str, parts: Sequence[str]) -> Tally:
    """An agent's day with the tools of filepact alone."""
    return one_day(name, parts, served=True)[0]


def both_days(name: str, parts: Sequence[str]) -> tuple[Tally, Tally]:
    """An agent's day with its own tools, and with those of filepact; in the evening the files are alike."""
    (own, tree), (ours, other) = (one_day(name, parts, served=one) for one in (False, True))
    if tree != other:
        names = sorted(one for one in tree.keys() | other.keys() if tree.get(one) != other.get(one))
        raise RuntimeError(f"{name}: {names} are not the same in the evening")
    return own, ours


def rows(name: str, tallies: tuple[Tally, Tally]) -> list[str]:
    """The lines of the table for an agent."""
    found = []
    for tools, one in zip((f"{name}, its own", f"{name}, filepact"), tallies, strict=True):
        counts = (
            one.calls,
            one.calls - one.meant,
            len(one.refused),
            one.waited,
            one.left,
            len(one.wrong),
        )
        numbers = " | ".join(f"{count:,}" for count in (*counts, one.said, one.listed))
        found.append(f"| {tools} | {numbers} |")
    return found


def show(name: str, tally: Tally) -> None:
    """Print what was not as it was meant."""
    for part, call, answer in tally.refused:
        print(f"{name}: {part}: refused {json.dumps(call)[:600]}\n  {answer[:1_300]}\n")
    for part, call, answer, came in tally.wrong:
        print(f"{name}: {part}: WRONG {came}: {json.dumps(call)[:600]}\n  {answer[:1_300]}\n")
    for tool, (calls, sent, told) in tally.by_tool.items():
        print(f"{name}: {tool}: {calls} calls, {sent:,} characters sent, {told:,} answered")
    if not tally.together:
        print(f"{name}: its agents worked one after the other\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("agents", nargs="*", default=[one.name for one in AGENTS])
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    table = [
        "| tools | calls | again | refused | waited | left | WRONG | said | listed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in options.agents:
        tallies = both_days(name, options.parts)
        for tools, one in zip(("own", "filepact"), tallies, strict=True):
            if options.show:
                show(f"{name}, {tools}", one)
        table += rows(name, tallies)
        print("\n".join(table), flush=True)
    if options.write:
        page = HERE / "README.md"
        before, _, rest = page.read_text().partition(MARK)
        _, _, after = rest.partition(END)
        said = "\n".join(table)
        page.write_text(f"{before}{MARK}\n\n{said}\n\n{END}{after}")


if __name__ == "__main__":
    main()
