"""How many characters and tokens a session's answers have, beside those of agents' own tools.

    python bench/session_length.py [--calls N] [--seed N] [--write]

The calls have the proportions of 896 recorded sessions of coding agents: 2,677 readings of whole files, 3,710 of a part,
6,059 edits, 1,120 new files, 89 files written over and 225 patches.  They are made through the tools of a real
workspace, and what is counted is the text that a model sees.  What an agent's own tool answers to a reading is made here,
each line behind its number as `cat -n` has it; to a change it is the mean length that was recorded, of which the tokens
cannot be counted.  The tokens are those of the encoding o200k_base.  ``--write`` puts the table into bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stdio_client import StdioServer
from bench.tree import SEED, source_lines
from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext
from filepact_mcp.results import describe_tool
from tests.node_programs import install

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by session_length.py -->"
END = "<!-- end of what session_length.py wrote -->"

CALLS = {
    "reading, whole": 2_677,
    "reading, a part": 3_710,
    "edit, beside Claude Code today": 4_278,
    "edit, beside Claude Code before": 968,
    "edit, beside TRAE": 813,
    "new file": 1_120,
    "file written over": 89,
    "patch": 225,
}
OWN = {
    "edit, beside Claude Code today": 118,
    "edit, beside Claude Code before": 1_409,
    "edit, beside TRAE": 1_859,
    "new file": 140,
    "file written over": 6_369,
    "patch": 143,
}
"""Characters that agents' own tools answer to a change: means of recorded calls."""
WINDOW = 50
COUNTER = """
const { encode } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((one) => encode(one).length)));
"""


def tokens(texts: Sequence[str]) -> list[int]:
    """How many tokens each text has."""
    programs = install("tokens")
    done = subprocess.run(
        [str(programs.node), "-e", COUNTER],
        cwd=programs.modules.parent,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[int] = json.loads(done.stdout)
    return found


def listed(tools: Sequence[dict[str, Any]]) -> str:
    """The tools as a client lists them to its model."""
    return json.dumps(tools, separators=(",", ":"), ensure_ascii=False)


def reference(folder: Path) -> str:
    """What the reference server for files lists."""
    programs = install()
    command = programs.command("@modelcontextprotocol/server-filesystem", "dist/index.js")
    environment = programs.environment(folder)
    with StdioServer([*command, str(folder)], env=environment, cwd=folder) as server:
        return listed(server.request("tools/list", {})["tools"])


class Agent:
    """An agent at work in a folder of its own.

    Attributes:
        ours: Each answer, by the kind of call.
        own: The same of an agent's own tools; its length, where that was recorded.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._dice = random.Random(seed)
        self._lines = source_lines(self._dice)
        self._root = folder / "root"
        self._root.mkdir()
        self._workspace = open_workspace([str(self._root)], state_dir=str(folder / "state"))
        self._tools = open_toolbox(self._workspace)
        self._call = CallContext(Session("s1", Actor("agent", "bench")))
        self._made = 0
        self.ours: dict[str, list[str]] = defaultdict(list)
        self.own: dict[str, list[str | int]] = defaultdict(list)

    def close(self) -> None:
        self._workspace.close()

    def schemas(self) -> str:
        """The tools as a client lists them."""
        return listed([describe_tool(one) for one in self._tools.tools])

    def act(self, kind: str) -> None:
        """Make a call of this kind, in a file that the agent has just read."""
        name = f"src/part{self._made}/module.py"
        self._made += 1
        many = max(20, int(self._dice.lognormvariate(5.3, 0.8)))
        start = self._dice.randrange(len(self._lines) - many)
        # Each line is there once, so that an edit is one place.
        lines = [f"{one}  # {at}" for at, one in enumerate(self._lines[start : start + many])]
        file = self._root / name
        file.parent.mkdir(parents=True)
        if kind != "new file":
            file.write_text("\n".join(lines) + "\n")
        at = self._dice.randrange(many - 8)
        shown = lines if kind == "reading, whole" else lines[at : at + WINDOW]
        match kind:
            case "reading, whole":
                self._send(kind, "read_file", path=name)
            case "reading, a part":
                self._send(kind, "read_file", path=name, offset=at, lines=WINDOW)
            case "new file":
                self._send(kind, "write_file", path=name, content="\n".join(lines) + "\n")
            case "file written over":
                self._send("", "read_file", path=name)
                lines[at : at + 5] = ["changed = True"]
                self._send(kind, "write_file", path=name, content="\n".join(lines) + "\n")
            case _:
                self._send("", "read_file", path=name)
                old, new = lines[at : at + 3], [f"{one} changed" for one in lines[at : at + 4]]
                if kind != "patch":
                    said = {"old_string": "\n".join(old), "new_string": "\n".join(new)}
                    self._send(kind, "edit_file", path=name, **said)
                else:
                    body = "\n".join([*(f"-{one}" for one in old), *(f"+{one}" for one in new)])
                    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n{body}\n*** End Patch"
                    self._send(kind, "patch_apply", patch=patch)
        numbered = "".join(f"{number:6}\t{one}\n" for number, one in enumerate(shown, at + 1))
        self.own[kind].append(OWN.get(kind, numbered))

    def _send(self, kind: str, tool: str, **arguments: object) -> None:
        answer = self._tools.call(tool, arguments, self._call)
        if answer.failed:
            raise RuntimeError(answer.text)
        if kind:
            self.ours[kind].append(answer.text)


def report(calls: int, seed: int) -> list[str]:
    """The table, as lines of Markdown."""
    with tempfile.TemporaryDirectory() as folder, closing(Agent(Path(folder), seed)) as agent:
        for kind, many in CALLS.items():
            for _ in range(max(3, round(calls * many / sum(CALLS.values())))):
                agent.act(kind)
        lists = agent.schemas(), reference(Path(folder) / "root")
    rows = [
        "| answer, mean | filepact, characters | own tool | ratio | filepact, tokens | own tool | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    total = [0.0, 0.0]
    for kind, many in CALLS.items():
        ours, own = agent.ours[kind], agent.own[kind]
        sides = (
            mean(map(len, ours)),
            mean(one if isinstance(one, int) else len(one) for one in own),
        )
        total = [before + many * side for before, side in zip(total, sides, strict=True)]
        counted = mean(tokens(ours))
        texts = [one for one in own if isinstance(one, str)]
        others = mean(tokens(texts)) if texts else 0
        beside = f"{others:,.0f} | {counted / others:.2f}" if others else "- | -"
        rows.append(
            f"| {kind} | {sides[0]:,.0f} | {sides[1]:,.0f} | {sides[0] / sides[1]:.2f} "
            f"| {counted:,.0f} | {beside} |"
        )
    rows.append(f"| all, in their proportions | | | {total[0] / total[1]:.2f} | | | |")
    ours_listed, theirs = (
        f"{len(one):,} characters ({tokens([one])[0]:,} tokens)" for one in lists
    )
    said = (
        f"The seven tools are listed in {ours_listed}, those of the reference server in {theirs}."
    )
    return [*rows, "", said]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1_400)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    said = "\n".join(report(options.calls, options.seed))
    print(said)
    if options.write:
        page = HERE / "README.md"
        before, _, rest = page.read_text().partition(MARK)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{MARK}\n\n{said}\n\n{END}{after}")


if __name__ == "__main__":
    main()
