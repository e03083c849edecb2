"""A minute with filepact: an agent reads and changes a project, and a person takes it back.

Nothing in it is played: the server is a process of its own, the client is the official one, and
the last steps are the very commands that a person would type.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.faces.cli.hosts import hosts, own_command, render_hosts
from filepact.faces.cli.main import execute
from filepact.faces.cli.screen import DONE, FAILED, CommandAnswer, Terminal, TerminalText
from filepact.faces.cli.tour_agent import connected
from filepact.faces.cli.tour_report import TourReport
from filepact.faces.cli.tour_tree import choose, copy_folder, fingerprint, make_project
from filepact.text.diff import unified

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.faces.cli.tour_agent import ToolAnswer, TourAgent
    from filepact.faces.cli.tour_tree import TourEdit

__all__ = ["tour"]


# A terminal that is closed ends its programs; the temporary folder goes in that case as well.
_ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _Unexpected(Exception):  # noqa: N818 - ends the tour, not a fault of the program
    """A step came out otherwise, and the later ones make no sense without it."""


def tour(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Show filepact at work on a made-up project or on a copy of a folder."""
    folder = Path(tempfile.mkdtemp(prefix="filepact-tour-"))
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in _ENDINGS}
    try:
        walk = _Tour(folder, screen)
        walk.start(arguments.directory)
        try:
            walk.act()
            walk.go_back()
        except _Unexpected:
            pass
        return walk.finish(kept=arguments.keep, own=arguments.directory or ".")
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


class _Tour:
    """The steps taken so far, shown while they are taken."""

    def __init__(self, folder: Path, screen: Terminal) -> None:
        self._folder = folder
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
        """What an agent does, over the protocol."""
        self._report.say([TerminalText("The agent, over MCP\n", "title")])
        try:
            asyncio.run(self._act())
        except Exception as error:  # noqa: BLE001 - whatever breaks is what a newcomer must see
            # The client's own group of tasks wraps what ended the tour on purpose.
            if self._report.ok:
                self._report.note(
                    "Talk to the server",
                    "",
                    "\n".join([f"{type(error).__name__}: {error}", *self._server_said()]),
                    "The server has to answer.",
                    ok=False,
                )
        if not self._report.ok:
            raise _Unexpected

    def _server_said(self) -> list[str]:
        """The end of what the server wrote to its standard error."""
        if not self._log.exists():
            return []
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]

    async def _act(self) -> None:
        async with connected(self._root, self._state, self._log) as agent:
            names = await agent.tools()
            self._report.note(
                "Start the server and ask for its tools",
                f"filepact mcp {self._root}",
                ", ".join(names),
                f"{len(names)} tools, protocol {agent.protocol}.",
                ok={"read_file", "edit_file", "patch_apply"} <= set(names),
            )
            await self._look(agent)
            await self._change(agent)
            await self._trespass(agent)

    async def _look(self, agent: TourAgent) -> None:
        edit = self._edit
        await self._call(
            agent,
            "Read a file",
            "read_file",
            {"path": edit.path, "lines": 12},
            "Line numbers are beside the text, never in it.",
            lambda reply: not reply.refused and "revision" in reply.text,
        )
        word = max(_words(edit.old), key=len)
        await self._call(
            agent,
            "Search all files",
            "grep",
            {"pattern": word, "max_results": 5},
            "Protected and ignored files are left out.",
            lambda reply: not reply.refused and word.lower() in reply.text.lower(),
        )

    async def _change(self, agent: TourAgent) -> None:
        edit, patched = self._edit, self._patched
        arguments = {"path": edit.path, "old_string": edit.old, "new_string": edit.new}
        await self._call(
            agent,
            "Preview an edit",
            "edit_file",
            arguments | {"dry_run": True},
            "The diff is there, and not a byte has changed.",
            lambda reply: _status(reply) == "preview" and fingerprint(self._root) == self._before,
        )
        await self._call(
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
        await self._call(
            agent,
            "Apply a patch",
            "patch_apply",
            {"patch": patch},
            "Every line outside the change is as it was, line ends and all.",
            lambda reply: _status(reply) == "applied" and self._text(patched.path) == changed,
        )

    async def _trespass(self, agent: TourAgent) -> None:
        for title, path, verdict in (
            ("Reach for a file outside", "../../../etc/passwd", "Outside the folder: refused."),
            ("Reach for a secret inside", ".env", "Inside, but protected by its name: refused."),
        ):
            await self._call(
                agent,
                title,
                "read_file",
                {"path": path},
                verdict,
                lambda reply: reply.refused and reply.text.startswith("PATH_BLOCKED"),
            )

    async def _call(
        self,
        agent: TourAgent,
        title: str,
        tool: str,
        arguments: dict[str, Any],
        verdict: str,
        as_expected: Any,
    ) -> None:
        reply = await agent.call(tool, arguments)
        ok = bool(as_expected(reply))
        self._report.note(title, f"{tool} {json.dumps(arguments)}", reply.text, verdict, ok=ok)
        if not ok:
            raise _Unexpected

    # -- the person -------------------------------------------------------------------------

    def go_back(self) -> None:
        """What a person sees and does afterwards, with the command."""
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

    def finish(self, *, kept: bool, own: str) -> CommandAnswer:
        """Count up, and say how to go on."""
        good = sum(step.ok for step in self._report.steps)
        ok = self._report.ok
        lines = hosts(own_command(), ["mcp", str(Path(own).absolute())])
        self._report.say(
            [
                TerminalText(
                    f"{good} of {len(self._report.steps)} steps came out as they have to.\n",
                    "good" if ok else "bad",
                ),
                *([TerminalText(f"Kept: {self._folder}\n", "dim")] if kept else []),
                TerminalText("\nConnect your own agent to this folder\n\n", "title"),
                *render_hosts(lines, short=True),
                TerminalText("\n`filepact setup HOST` prints the settings file of each.\n", "dim"),
            ]
        )
        facts = {
            "ok": ok,
            "steps": [asdict(step) for step in self._report.steps],
            "hosts": [{"host": host.name, "settings": host.settings} for host in lines],
            "kept": str(self._folder) if kept else None,
        }
        return CommandAnswer((), facts, DONE if ok else FAILED)

    def _text(self, path: str) -> str:
        return (self._root / path).read_bytes().decode("utf-8")


def _status(reply: ToolAnswer) -> object:
    return None if reply.refused else reply.facts.get("status")


def _words(line: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in line).split()
