"""What agents are made to do, and the folder in which they do it.

In a first session an agent does one task after the other; in a second one the person is asked about
every change, and cancels the turn before answering.  Then everything is undone.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.agents.clients import CLIENTS, Place
from tests.agents.model import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.agents.agents import Agent
    from tests.agents.clients import Talk
    from tests.agents.model import Call

__all__ = [
    "FILES",
    "MADE",
    "OUTSIDE_HAS",
    "PAST",
    "SAVED",
    "TYPED",
    "TYPED_AND_WRITTEN",
    "TYPING",
    "WRITTEN_BY_BOTH",
    "Done",
    "Played",
    "contents",
    "journal",
    "play",
    "undo",
]

FILES = {
    "notes.txt": b"saved text\r\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "whole.txt": b"one\r\ntwo\r\n",
    "draft.txt": b"one\r\ntwo\r\n",
    "served.txt": b"one\r\ntwo\r\n",
    "typed.txt": b"one\r\ntwo\r\nthree\r\nfour\r\n",
    "both.txt": b"one\ntwo\nthree\nfour\n",
    "held.txt": b"old\n",
    "past.txt": b"before\n",
    ".env": b"KEY=hush\n",
    "id_rsa": b"a private key\n",
}
"""What the folder has at first."""

UNSAVED = {
    "notes.txt": "unsaved text\r\n",
    "draft.txt": "one\r\ntyped\r\ntwo\r\n",
    "typed.txt": FILES["typed.txt"].decode(),
}
"""What the editor shows of some of them; a person has typed into the first two."""

MADE = "made.txt"
"""What agents try to make beside the folder."""

PAST = "past the doors"

TYPING, WRITING = "write what is typed in", "served write"
"""Tasks in which a person changes the first line between the agent's reading and its writing."""

TYPED = "ONE\r\ntwo\r\nthree\r\nfour\r\n"
TYPED_AND_WRITTEN = "ONE\r\ntwo\r\nthree\r\nvier\r\n"
SAVED = b"ONE\ntwo\nthree\nfour\n"
WRITTEN_BY_BOTH = b"ONE\nzwei\nthree\nvier\n"
"""What has to come of them."""

# Below /tmp some agents help themselves; what is outside is better looked for elsewhere.
OUTSIDE, OUTSIDE_HAS = Path(os.__file__).with_name("antigravity.py"), "geohash"


@dataclass(frozen=True, slots=True)
class Done:
    """A turn.

    Attributes:
        stop: Why it ended.
        answers: What the agent's tools answered in it.
        requests: The methods that the client was asked for in it.
    """

    stop: str
    answers: list[str]
    requests: list[str]


@dataclass(slots=True)
class Played:
    """What came of an agent's doing.

    Attributes:
        root: The folder.
        state: The state folder of filepact.
        turns: By name of the task.
        after: The folder's files after the first session.
        shown: What the editor shows then, by name, of what was not saved.
        cancelled: The files after the second session.
        held: Whether anybody was asked about the change that was to be held.
    """

    root: Path
    state: Path
    turns: dict[str, Done] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    cancelled: dict[str, bytes] = field(default_factory=dict)
    held: bool = False

    def said(self, task: str) -> str:
        """The last that a tool answered in a turn."""
        answers = self.turns[task].answers
        return answers[-1] if answers else ""


def own_tasks(agent: Agent, root: Path) -> dict[str, list[Call]]:
    """What an agent does with its own tools in the first session's turns, by name."""
    inside = {name: str(root / name) for name in (*FILES, "sub/deep/new.txt")}
    read, write = agent.read.call, agent.write.call

    def change(name: str, text: str) -> list[Call]:
        path = str(root / name)
        return [read(path=path), agent.change(path, text, "two", "zwei")]

    return {
        "read unsaved": [read(path=inside["notes.txt"])],
        "edit lines": change("crlf.txt", FILES["crlf.txt"].decode()),
        "write whole": [
            read(path=inside["whole.txt"]),
            write(path=inside["whole.txt"], content="one\nzwei\nthree\n"),
        ],
        "edit unsaved": change("draft.txt", UNSAVED["draft.txt"]),
        "write new": [write(path=inside["sub/deep/new.txt"], content="new\n")],
        TYPING: [
            read(path=inside["typed.txt"]),
            write(path=inside["typed.txt"], content="one\ntwo\nthree\nvier\n"),
        ],
        "read outside": [read(path=str(OUTSIDE))],
        "write outside": [write(path=str(root.parent / MADE), content="made\n")],
        "read secret": [read(path=inside[".env"])],
        "write secret": [write(path=inside["id_rsa"], content="stolen\n")],
    }


def served_tasks(agent: Agent) -> dict[str, list[Call]]:
    """The same with the tools of the server that the proxy gives it."""
    serve = agent.serve
    change = {"path": "served.txt", "old_string": "two", "new_string": "zwei"}
    whole = {"path": "both.txt", "content": "one\ntwo\nthree\nvier\n"}
    again = {"path": "both.txt", "content": "one\nzwei\nthree\nvier\n"}
    return {
        WRITING: [
            *serve("read_file", {"path": "both.txt"}),
            *serve("write_file", whole),
            *serve("write_file", again),
        ],
        "served read": serve("read_file", {"path": "notes.txt"}),
        "served edit": serve("edit_file", dict(change)),
        "served new": serve("write_file", {"path": "sub/served.txt", "content": "new\n"}),
        "served outside": serve("read_file", {"path": str(OUTSIDE)}),
        "served secret": serve("read_file", {"path": ".env"}),
    }


def contents(root: Path, keeps: str = "") -> dict[str, bytes]:
    """All files of a folder, except those in a folder that the agent keeps there."""
    paths = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    kept = {name: path for name, path in paths.items() if not keeps or not name.startswith(keeps)}
    return {name: path.read_bytes() for name, path in kept.items()}


def play(agent: Agent, client: str, folder: Path) -> Played:
    """Play both sessions with an agent through a client, in a fresh folder."""
    played = Played(folder / "work", folder / "state")
    played.root.mkdir(parents=True)
    for name, content in FILES.items():
        (played.root / name).write_bytes(content)
    held = str(played.root / "held.txt")
    late = [agent.read.call(path=held), agent.change(held, "old\n", "old", "late")]
    command = f"printf '{PAST}\\n' > past.txt"
    past = [agent.shell.call(command=command)] if agent.shell else []
    second = {"be late": late, "go past": past}
    first = own_tasks(agent, played.root) | (served_tasks(agent) if client == "proxy" else {})
    scripts = {_words(name): calls for name, calls in (first | second).items()}
    unsaved = {str(played.root / name): text for name, text in UNSAVED.items()}
    with ScriptedModel(scripts, _meanwhile(played.root, unsaved, scripts)) as model:
        place = Place(agent, model.url, folder / "home", played.root, played.state, unsaved)
        asyncio.run(_work(place, client, model, played, tuple(first)))
        played.after = contents(played.root, agent.keeps)
        asyncio.run(_go_past(place, client, model, played))
        played.cancelled = contents(played.root, agent.keeps)
    return played


def _meanwhile(
    root: Path, unsaved: dict[str, str], scripts: Mapping[str, list[Call]]
) -> dict[tuple[str, int], Callable[[], None]]:
    """What a person does between a reading and the writing that follows it."""
    typed, both = str(root / "typed.txt"), root / "both.txt"

    def type_in() -> None:
        unsaved[typed] = unsaved[typed].replace("one", "ONE")

    def save() -> None:
        both.write_bytes(both.read_bytes().replace(b"one", b"ONE"))

    # Some agents make several calls to use one served tool; this task uses three.
    served = len(scripts.get(_words(WRITING), ())) // 3
    return {(_words(TYPING), 1): type_in, (_words(WRITING), served): save}


def _words(task: str) -> str:
    """What a prompt says so that the model plays a task."""
    return f"The task is “{task}”."


async def _work(
    place: Place, client: str, model: ScriptedModel, played: Played, tasks: tuple[str, ...]
) -> None:
    async with CLIENTS[client](place) as talk:
        for task in tasks:
            played.turns[task] = await _turn(talk, model, task)
        played.shown = {name: place.unsaved[str(place.root / name)] for name in UNSAVED}


async def _go_past(place: Place, client: str, model: ScriptedModel, played: Played) -> None:
    async with CLIENTS[client](replace(place, unsaved={}, mode="preview", hold="held.txt")) as talk:
        played.turns["go past"] = await _turn(talk, model, "go past")
        if client != "bare":
            await _cancel(talk, model, played)


async def _cancel(talk: Talk, model: ScriptedModel, played: Played) -> None:
    before, task = len(talk.requests()), "be late"
    turn = asyncio.create_task(talk.prompt(_words(task)))
    waiting = asyncio.create_task(talk.held.wait())
    await asyncio.wait({turn, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    waiting.cancel()
    played.held = talk.held.is_set()
    await talk.cancel()
    talk.release()
    stop = await turn
    played.turns[task] = Done(stop, model.answers_to(_words(task)), talk.requests()[before:])


async def _turn(talk: Talk, model: ScriptedModel, task: str) -> Done:
    before = len(talk.requests())
    stop = await talk.prompt(_words(task))
    return Done(stop, model.answers_to(_words(task)), talk.requests()[before:])


def journal(played: Played) -> list[dict[str, Any]]:
    """What `filepact log` lists, newest first."""
    return list(json.loads(_filepact(played, "log", "--all").stdout)["operations"])


def undo(played: Played) -> None:
    """Take back everything that stands in the journal, the newest first, as a person would."""
    for done in journal(played):
        _filepact(played, "undo", "--unattended", str(done["id"]))


def _filepact(played: Played, *words: str) -> subprocess.CompletedProcess[str]:
    where = ("--root", str(played.root), "--state", str(played.state), "--json")
    command = [sys.executable, "-m", "filepact", *words, *where]
    return subprocess.run(command, capture_output=True, text=True, check=False)
