"""The first ten minutes of somebody new, typed from the README: installed from the clone, with four real agents.

    python -m bench.first_minutes [AGENT ...]

`FILEPACT` names a program that is installed already.

Each has a home and a project of their own.  What a person types is typed on a terminal; the model alone is
scripted.  Printed is how long each step took, and the first step that did not do what the README says ends it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.agents.hooked import HOOKED
from tests.agents.installed import node_program
from tests.agents.machines import AGENTS, SetUp
from tests.agents.model import Call, ScriptedModel
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

PROJECT = Path(__file__).resolve().parent.parent
NAMES = ("claude", "codex", "gemini", "opencode")
CART = "def total(items):\n    return sum(items)\n\n\ndef count(items):\n    return len(items)\n"
HIDDEN = "SECRETSECRET"


class StumbleError(Exception):
    """Something did not go as the README says."""


def expect(so: bool, about: object) -> None:
    """End here unless something is so."""
    if not so:
        raise StumbleError(about)


class Newcomer:
    """A person with a fresh home, a project, and an agent that has never heard of filepact."""

    def __init__(self, agent: SetUp, folder: Path, program: Path) -> None:
        self.agent, self.program = agent, program
        self.home, self.root = folder / "home", folder / "shop"
        self.steps: list[tuple[str, float]] = []
        for one in (self.home, self.root / "src"):
            one.mkdir(parents=True)
        for file, text in agent.settings.items():
            (self.home / file).parent.mkdir(parents=True, exist_ok=True)
            (self.home / file).write_text(text)
        (self.root / "src" / "cart.py").write_text(CART)
        (self.root / "notes.md").write_text("# Notes\n")
        (self.root / ".env").write_text(f"TOKEN={HIDDEN}\n")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(self.root)]
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
            subprocess.run([*git, *words], check=True)

    def environment(self, url: str) -> dict[str, str]:
        values = {"ADDRESS": url, "HOME": str(self.home), "ROOT": str(self.root)}
        own = dict(self.agent.environment)
        for name, value in own.items():
            for mark, text in values.items():
                own[name] = own[name].replace(mark, text) if mark in value else own[name]
        path = f"{self.program.parent}:/usr/local/bin:/usr/bin:/bin"
        return {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm", **own}

    def types(self, line: str, *wanted: str, answer: str = "y\n", status: int = 0) -> str:
        """Type a command of filepact on a terminal; it has to say some things.

        Raises:
            StumbleError: It ended otherwise, or did not say them.
        """
        began = time.monotonic()
        code, shown = on_terminal(
            [str(self.program), *line.split()],
            typed=[("[y/N]", answer)],
            cwd=self.root,
            env={**self.environment(""), "COLUMNS": "80", "NO_COLOR": "1"},
        )
        self.steps.append((f"filepact {line}", time.monotonic() - began))
        said = " ".join(shown.split())
        expect(code == status, (line, code, shown))
        for one in wanted:
            expect(one in said, (line, one, shown))
        return shown

    def asks(self, script: Sequence[Call]) -> list[str]:
        """Ask the agent, whose model does what a script says; what it was shown of each call."""
        began = time.monotonic()
        package, name, group = self.agent.package
        with ScriptedModel(list(script)) as model:
            for file in self.agent.settings:
                place = self.home / file
                place.write_text(place.read_text().replace("ADDRESS", model.url))
            words = [*node_program(package, name, group=group), *self.agent.words]
            words = [one.replace("mcp__filepact,Write", "Read,Write,Edit,Bash") for one in words]
            done = subprocess.run(
                words,
                cwd=self.root,
                env=self.environment(model.url),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
        self.steps.append((f"{self.agent.name}, {len(script)} calls", time.monotonic() - began))
        told = (
            model.tools,
            done.stdout[-2000:],
            done.stderr[-2000:],
        )
        expect(len(model.answers) == len(script), told)
        return [text for _, text in model.answers]


def first_minutes(newcomer: Newcomer) -> None:
    """All that the README has up to the first undo, and how to leave."""
    name, root = newcomer.agent.name, newcomer.root
    own = next(one for one in HOOKED if one.name == name)
    newcomer.types("setup", name)
    newcomer.types(f"setup {name}", "--write")
    newcomer.types(f"setup {name} --write", "Connected", "filepact log", "undo --turn")
    newcomer.types("doctor", "Not seen at work yet" if name != "opencode" else "")
    line = f"printf 'RATE = 0.9\\n' > {root}/src/rate.py && rm {root}/notes.md"
    cart = f"{root}/src/cart.py"
    if name == "codex":  # it has no tool of its own for that where it does not know the model
        edit = own.run(f"sed -i 's/sum(items)/& * 0.9/' {cart}")
    else:
        edit = own.edit(cart, "return sum(items)", "return sum(items) * 0.9")
    answers = newcomer.asks([own.read(f"{root}/.env"), own.read(cart), edit, own.run(line)])
    expect(HIDDEN not in answers[0], answers[0])
    expect("sum(items) * 0.9" in (root / "src" / "cart.py").read_text(), answers)
    expect(not (root / "notes.md").exists(), answers)
    file = root / "src" / "cart.py"
    file.write_text(file.read_text() + "# my own line\n")
    newcomer.types("doctor", "own tools guarded")
    newcomer.types("log", "src/cart.py", "ago")
    newcomer.types("log --turns", "deleted notes.md", "ago", "go")
    newcomer.types("diff")
    newcomer.types("undo --turn", "notes.md", "cart.py")
    expect(file.read_text() == CART + "# my own line\n", file.read_text())
    expect((root / "notes.md").read_text() == "# Notes\n", newcomer.steps)
    expect(not (root / "src" / "rate.py").exists(), newcomer.steps)
    newcomer.types("redo")
    expect(not (root / "notes.md").exists(), newcomer.steps)
    newcomer.types("explain .env", "denied")
    newcomer.types("review --list", "Nothing waits")
    newcomer.types(f"setup {name} --remove")


def install(folder: Path) -> tuple[Path, float]:
    """An environment with a copy of this clone in it, as the README says."""
    began = time.monotonic()
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", str(PROJECT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    pip = [str(folder / "env" / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "."]
    subprocess.run(pip, cwd=clone, check=True)
    return folder / "env" / "bin" / "filepact", time.monotonic() - began


def main(arguments: Any = None) -> int:
    """Go through it with each agent, and print the times."""
    names = list(arguments or sys.argv[1:]) or list(NAMES)
    given = os.environ.get("FILEPACT")
    folder = Path(tempfile.mkdtemp(prefix="first-minutes"))
    try:
        program, seconds = (Path(given), 0.0) if given else install(folder)
        print(f"installed in {seconds:.1f} s")
        for name in names:
            agent = next(one for one in AGENTS if one.name == name)
            newcomer = Newcomer(agent, folder / name, program)
            failed = ""
            try:
                first_minutes(newcomer)
            except (StumbleError, subprocess.TimeoutExpired) as error:
                failed = f": {error}"
            print(f"{name}: {sum(taken for _, taken in newcomer.steps):.1f} s{failed}")
            for what, taken in newcomer.steps:
                print(f"  {taken:6.1f}  {what}")
            sys.stdout.flush()
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
