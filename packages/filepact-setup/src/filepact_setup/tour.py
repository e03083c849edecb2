"""Command `tour`: an agent reads and changes a project, and a person undoes it.

Nothing in it is played: the server is a process of its own, the client speaks MCP with it, and
the last steps are the very commands that a person would type.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.app import journal_roots
from filepact.config.person import read_settings, read_store, state_folder
from filepact.extension import open_diagnostics
from filepact.faces.cli import isolated_command
from filepact.text.diff import unified
from filepact.values import asdict, dataclass
from filepact_cli.main import execute
from filepact_cli.render import paint_diff
from filepact_cli.screen import DONE, FAILED, CommandAnswer, Terminal, TerminalText
from filepact_mcp.results import RECEIPT_KEY
from filepact_setup.tour_tree import choose, copy_folder, fingerprint, make_project

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator

    from filepact_setup.tour_tree import TourEdit

__all__ = ["tour"]


# A terminal that is closed ends its programs; the temporary folder goes in that case as well.
_ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _Unexpected(Exception):  # noqa: N818 - ends the tour, not a fault of the program
    """A step came out otherwise, and the later ones make no sense without it."""


def tour(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Show filepact at work on a made-up project or on a copy of a folder."""
    environment = _environment()  # which looks at the journal: that is not to be interrupted
    folder = Path(tempfile.mkdtemp(prefix="filepact-tour-"))
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in _ENDINGS}
    try:
        walk = _Tour(folder, screen, environment)
        walk.start(arguments.directory)
        try:
            walk.act()
            walk.go_back()
        except _Unexpected:
            pass
        return walk.finish(kept=arguments.keep)
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


class _Tour:
    """The steps taken so far, shown while they are taken."""

    def __init__(self, folder: Path, screen: Terminal, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._root = folder / "project"
        self._state = folder / "state"
        self._log = folder / "server.log"
        self._screen = screen
        self._report = TourReport(screen)
        self._before = ""
        self._edit: TourEdit
        self._patched: TourEdit

    # -- the project ------------------------------------------------------------------------

    def start(self, source: str | None) -> None:
        """Make or copy the project."""
        self._root.mkdir()
        self._report.say([TerminalText("filepact tour\n", "title")])
        if source is None:
            self._edit, self._patched = make_project(self._root)
            self._report.say([TerminalText(f"A small project in {self._root}\n\n", "dim")])
        else:
            copied = copy_folder(Path(source), self._root)
            chosen = choose(self._root)
            self._edit, self._patched = chosen or make_project(self._root)
            (self._root / ".env").write_bytes(b"TOKEN=made-up-for-the-tour\n")
            part = "" if copied.whole else ", the part that fits into a tour"
            self._report.say(
                [
                    TerminalText(
                        f"A copy of {source} in {self._root}: {copied.files:,} files, "
                        f"{copied.size:,} bytes{part}\n\n",
                        "dim",
                    )
                ]
            )
        self._before = fingerprint(self._root)

    # -- the agent --------------------------------------------------------------------------

    def act(self) -> None:
        """Take the steps of the agent, over MCP."""
        self._report.say([TerminalText("The agent, over MCP\n", "title")])
        try:
            self._steps_of_agent()
        except (OSError, ValueError, LookupError) as error:
            self._report.note(
                "Talk to the server",
                "",
                "\n".join([f"{type(error).__name__}: {error}", *self._server_said()]),
                "The server has to answer.",
                ok=False,
            )
            raise _Unexpected from None

    def _server_said(self) -> list[str]:
        """The end of what the server wrote to its standard error."""
        if not self._log.exists():
            return []
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]

    def _steps_of_agent(self) -> None:
        with connected(self._root, self._state, self._log, self._environment) as agent:
            names = agent.tools()
            self._report.note(
                "Start the server and ask for its tools",
                f"filepact mcp {self._root}",
                ", ".join(names),
                f"{len(names)} tools, protocol {agent.protocol}.",
                ok={"read_file", "edit_file", "patch_apply"} <= set(names),
            )
            self._look(agent)
            self._change(agent)
            self._trespass(agent)

    def _look(self, agent: TourAgent) -> None:
        edit = self._edit
        self._call(
            agent,
            "Read a file",
            "read_file",
            {"path": edit.path, "lines": 12},
            "Line numbers are beside the text, never in it.",
            lambda reply: not reply.refused and "revision" in reply.text,
        )
        word = max(_words(edit.old), key=len)
        self._call(
            agent,
            "Search all files",
            "grep",
            {"pattern": word, "max_results": 5},
            "Protected and ignored files are left out.",
            lambda reply: not reply.refused and word.lower() in reply.text.lower(),
        )

    def _change(self, agent: TourAgent) -> None:
        edit, patched = self._edit, self._patched
        arguments = {"path": edit.path, "old_string": edit.old, "new_string": edit.new}
        self._call(
            agent,
            "Preview an edit",
            "edit_file",
            arguments | {"dry_run": True},
            "The diff is there, and not a byte has changed.",
            lambda reply: _status(reply) == "preview" and fingerprint(self._root) == self._before,
        )
        self._call(
            agent,
            "Make the edit",
            "edit_file",
            arguments,
            "Done, written down in the journal, and it can be taken back.",
            lambda reply: _status(reply) == "applied" and edit.new in self._text(edit.path),
        )
        text = self._text(patched.path)
        changed = text.replace(patched.old, patched.new)
        patch = unified(text, changed, old_name=patched.path, new_name=patched.path)
        self._call(
            agent,
            "Apply a patch",
            "patch_apply",
            {"patch": patch},
            "Every line outside the change is as it was, line ends and all.",
            lambda reply: _status(reply) == "applied" and self._text(patched.path) == changed,
        )

    def _trespass(self, agent: TourAgent) -> None:
        for title, path, verdict in (
            ("Reach for a file outside", "../../../etc/hosts", "Outside the folder: refused."),
            ("Reach for a secret inside", ".env", "Inside, but protected by its name: refused."),
        ):
            self._call(
                agent,
                title,
                "read_file",
                {"path": path},
                verdict,
                lambda reply: reply.refused and reply.text.startswith("PATH_BLOCKED"),
            )

    def _call(
        self,
        agent: TourAgent,
        title: str,
        tool: str,
        arguments: dict[str, Any],
        verdict: str,
        as_expected: Any,
    ) -> None:
        reply = agent.call(tool, arguments)
        ok = bool(as_expected(reply))
        self._report.note(title, f"{tool} {json.dumps(arguments)}", reply.text, verdict, ok=ok)
        if not ok:
            raise _Unexpected

    # -- the person -------------------------------------------------------------------------

    def go_back(self) -> None:
        """Take the steps of the person, with the command."""
        self._report.say([TerminalText("You, with the command\n", "title")])
        listed = self._command("See what was done", ["log"], "Who did what, newest first.")
        operations = listed.facts["operations"]
        newest = operations[0]["id"] if isinstance(operations, list) and operations else ""
        self._command(
            "See exactly what changed", ["diff", newest], "A patch that `git apply` takes."
        )
        self._command("Take the newest operation back", ["undo"], "Undo is an operation too.")
        self._command("And the one before", ["undo"], "Nothing is left of either.")
        same = fingerprint(self._root) == self._before
        self._report.note(
            "Compare every file with what it was",
            "",
            "",
            "Every byte and every mode is as it was before the agent came."
            if same
            else "The project is not what it was.",
            ok=same,
        )

    def _command(self, title: str, words: list[str], verdict: str) -> CommandAnswer:
        places = ["--root", str(self._root), "--state", str(self._state)]
        # Whoever started the tour has asked for this; the folders are its own.
        decided = ["--unattended"] if words[0] == "undo" else []
        answer = execute([*places, *words, *decided], self._screen)
        ok = answer is not None and answer.code == DONE
        shown = answer.spans if answer is not None else ()
        self._report.note(title, f"$ filepact {' '.join(words)}", shown, verdict, ok=ok)
        if answer is None or not ok:
            raise _Unexpected
        return answer

    # -- showing ----------------------------------------------------------------------------

    def finish(self, *, kept: bool) -> CommandAnswer:
        """Count up, and say how to go on."""
        good = sum(step.ok for step in self._report.steps)
        ok = self._report.ok
        self._report.say(
            [
                TerminalText(
                    f"{good} of {len(self._report.steps)} steps came out as they have to.\n",
                    "good" if ok else "bad",
                ),
                *([TerminalText(f"Kept: {self._folder}\n", "dim")] if kept else []),
                TerminalText("\nConnect your own agent\n\n", "title"),
                TerminalText("  cd YOUR-PROJECT\n  filepact setup           # what is here\n"),
                TerminalText(
                    "  filepact setup claude    # what would be changed for Claude Code\n"
                ),
            ]
        )
        facts = {
            "ok": ok,
            "steps": [asdict(step) for step in self._report.steps],
            "kept": str(self._folder) if kept else None,
        }
        return CommandAnswer((), facts, DONE if ok else FAILED)

    def _text(self, path: str) -> str:
        return (self._root / path).read_bytes().decode("utf-8")


def _status(reply: ToolAnswer) -> object:
    return None if reply.refused else reply.facts.get("status")


def _words(line: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in line).split()


# -- what is shown ----------------------------------------------------------------------------


_MOST_LINES = 16
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class TourStep:
    """One thing that was done, and whether it came out as it has to.

    Attributes:
        sent: The call or the command.
        verdict: What it shows, in one sentence.
    """

    title: str
    sent: str
    answer: str
    verdict: str
    ok: bool


class TourReport:
    """The steps taken so far; people see each as soon as it is taken."""

    def __init__(self, screen: Terminal) -> None:
        self._screen = screen
        self.steps: list[TourStep] = []

    @property
    def ok(self) -> bool:
        """Whether every step so far came out as it has to."""
        return all(step.ok for step in self.steps)

    def note(
        self, title: str, sent: str, answer: str | Iterable[TerminalText], verdict: str, *, ok: bool
    ) -> None:
        """Keep a step and show it."""
        spans = _paint(answer) if isinstance(answer, str) else tuple(answer)
        text = "".join(span.text for span in spans)
        self.steps.append(TourStep(title, sent, text, verdict, ok))
        shown = [TerminalText(f"{len(self.steps):>2}  {title}\n", "strong")]
        if sent:
            prefix = "" if sent.startswith("$") else "> "
            shown.append(TerminalText(f"    {prefix}{_cut(sent)}\n", "place"))
        shown += _indented(spans)
        mark = (
            TerminalText("    ok  ", "good") if ok else TerminalText("    NOT AS EXPECTED  ", "bad")
        )
        self.say([*shown, mark, TerminalText(f"{verdict}\n\n")])

    def say(self, spans: Iterable[TerminalText]) -> None:
        """Show something between the steps."""
        if not self._screen.json:
            self._screen.write(spans)


def _paint(answer: str) -> tuple[TerminalText, ...]:
    """An answer as an agent gets it; a diff at its end gets colours."""
    starts = [at for mark in ("\ndiff --git ", "\n--- ") if (at := answer.find(mark)) != -1]
    if not starts:
        return (TerminalText(answer),)
    at = min(starts) + 1
    return (TerminalText(answer[:at]), *paint_diff(answer[at:]))


def _indented(spans: Iterable[TerminalText]) -> list[TerminalText]:
    """The first lines of an answer, cut to the width and set in."""
    lines: list[list[TerminalText]] = [[]]
    for span in spans:
        first, *rest = span.text.split("\n")
        lines[-1].append(TerminalText(first, span.style))
        lines += [[TerminalText(text, span.style)] for text in rest]
    while lines and not any(span.text for span in lines[-1]):
        lines.pop()
    shown: list[TerminalText] = []
    for line in lines[:_MOST_LINES]:
        room = _WIDTH
        shown.append(TerminalText("    \u2502 ", "dim"))
        for span in line:
            text = span.text if len(span.text) <= room else f"{span.text[: max(room - 3, 0)]}..."
            shown.append(TerminalText(text if room else "", span.style))
            room = max(0, room - len(span.text))
        shown.append(TerminalText("\n"))
    if len(lines) > _MOST_LINES:
        shown.append(TerminalText(f"    \u2502 ... {len(lines) - _MOST_LINES} more lines\n", "dim"))
    return shown


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


# -- the agent ---------------------------------------------------------------------------------


_PROTOCOL = "2025-11-25"
_PATIENCE_SECONDS = 60.0  # for all of its answers


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool.

    Attributes:
        facts: The receipt of a change; empty for other tools.
    """

    text: str
    refused: bool
    facts: dict[str, Any]


class TourAgent:
    """Calls tools on a server, as any agent program does: a line of JSON for each message.

    Args:
        server: The server's process; it has both its pipes.
    """

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        self._server = server
        self._asked = 0
        client = {"name": "tour-agent", "version": "1.0"}
        greeted = self._ask(
            "initialize",
            {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client},
        )
        self.protocol = str(greeted["protocolVersion"])
        """The version of the protocol that both sides settled on."""
        self._send({"method": "notifications/initialized"})

    def tools(self) -> list[str]:
        """The names of the tools that the server shows."""
        return [tool["name"] for tool in self._ask("tools/list", {})["tools"]]

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call one tool."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        texts = [part["text"] for part in result["content"] if part["type"] == "text"]
        facts = result.get("_meta", {}).get(RECEIPT_KEY, {})
        return ToolAnswer("\n".join(texts), result["isError"], facts)

    def _send(self, message: dict[str, Any]) -> None:
        if self._server.stdin is not None:
            self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._server.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        for line in self._server.stdout or ():
            answer = json.loads(line)
            if answer.get("id") != self._asked or "method" in answer:
                continue
            if "result" not in answer:
                raise ValueError(str(answer.get("error")))
            result: dict[str, Any] = answer["result"]
            return result
        raise BrokenPipeError("the server has ended")


def _environment() -> dict[str, str]:
    # Its state is a throw-away one, which does not know where else agents may change programs.
    changeable = (str(Path.cwd()), *journal_roots(state_folder(), read_store()))
    return {
        name: value for name, value in os.environ.items() if not name.startswith("FILEPACT_")
    } | {"PATH": open_diagnostics(read_settings(), state_folder()).search_path(changeable)}


@contextmanager
def connected(
    root: Path, state: Path, log: Path, environment: dict[str, str]
) -> Iterator[TourAgent]:
    """Start a server over a folder and connect to it; it ends with the block.

    Args:
        root: The only folder that it may use.
        state: Its state folder.
        log: Where its standard error goes.
        environment: Its environment.
    """
    with (
        log.open("wb") as errors,
        subprocess.Popen(  # noqa: S603 - this very program
            [*isolated_command(), "mcp", str(root), "--state", str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=state.parent,
        ) as server,
    ):
        # A server that does not answer is ended, and with it every wait for an answer.
        overdue = threading.Timer(_PATIENCE_SECONDS, server.kill)
        overdue.daemon = True
        try:
            overdue.start()
            yield TourAgent(server)
        finally:
            overdue.cancel()
            if server.stdin is not None:
                server.stdin.close()
