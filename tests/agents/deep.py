"""Every agent, through every client: what it asks, what holds, and whether all can be undone.

``python -m tests.agents.deep [AGENT...]`` installs and runs them, and prints a table; what cannot
be had here is said to be so.  It ends with 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agents.agents import AGENTS
from tests.agents.editor import PERMISSION, READ, WRITE, EndedError
from tests.agents.installed import MissingError
from tests.agents.scenes import (
    FILES,
    MADE,
    OUTSIDE_HAS,
    PAST,
    SAVED,
    TYPED,
    TYPED_AND_WRITTEN,
    WRITTEN_BY_BOTH,
    Played,
    contents,
    journal,
    play,
    undo,
)

if TYPE_CHECKING:
    from tests.agents.agents import Agent

__all__ = ["asks", "main", "wrong"]


def asks(bare: Played) -> dict[str, str]:
    """What an agent asks of an editor that has all there is, by what one may ask."""
    turns = bare.turns

    def often(method: str, *names: str) -> str:
        asked = [name for name in names if method in turns[name].requests]
        return "yes" if len(asked) == len(names) else "some" if asked else "no"

    unsaved = "unsaved text" in bare.said("read unsaved")
    return {
        "reads": "yes" if unsaved else "to edit" if READ in turns["edit lines"].requests else "no",
        "writes": often(WRITE, "edit lines", "write whole", "write new"),
        "permission to write": often(PERMISSION, "edit lines", "write whole", "write new"),
        "to read outside": often(PERMISSION, "read outside"),
        "to write outside": often(PERMISSION, "write outside"),
        "for a command": often(PERMISSION, "go past"),
    }


def helps_itself(played: Played) -> list[str]:
    """What an agent reads although it was refused, or without asking."""
    found = {"read outside": OUTSIDE_HAS, "read secret": "hush"}
    return [task for task, text in found.items() if text in played.said(task)]


def wrong(agent: Agent, client: str, bare: Played, played: Played) -> list[str]:
    """What is not as it has to be; it undoes everything, so it comes last.

    A secret that an agent writes by itself, and asks nobody, is no fault of the client.
    """
    asked = agent.writes or PERMISSION in bare.turns["write secret"].requests
    found: list[str] = []
    if agent.reads and "unsaved text" not in played.said("read unsaved"):
        found.append("unsaved text was not read")
    if agent.reads and (task := helps_itself(played)):
        found.append(f"was not refused: {', '.join(task)}")
    if agent.writes and played.shown["draft.txt"] != "one\r\ntyped\r\nzwei\r\n":
        found.append("unsaved text was not kept")
    if agent.writes and played.after["whole.txt"] != b"one\r\nzwei\r\nthree\r\n":
        found.append("line ends were not kept")
    typing = client == "proxy" and agent.reads and agent.writes
    if typing and played.shown["typed.txt"] not in (TYPED, TYPED_AND_WRITTEN):
        found.append("what a person typed between reading and writing was lost")
    if client == "proxy" and "typed" not in played.shown["draft.txt"]:
        found.append("unsaved text was taken out of the editor")
    if client == "proxy" and played.after["both.txt"] != WRITTEN_BY_BOTH:
        found.append("what a person saved between reading and writing was lost")
    if "sub/deep/new.txt" not in played.after:
        found.append("a new file was not made")
    if (played.root.parent / MADE).exists():
        found.append("a file outside was written")
    if asked and any(played.cancelled[name] != FILES[name] for name in (".env", "id_rsa")):
        found.append("a secret was written")
    if played.held and played.cancelled["held.txt"] != FILES["held.txt"]:
        found.append("what was held was written after the turn")
    left = dict(FILES)
    if not asked:
        left["id_rsa"] = played.cancelled["id_rsa"]  # secrets are not kept, so not given back
    if client == "proxy":
        if played.after.get("sub/served.txt") != b"new\n":
            found.append("the server was not used")
        named = {file["path"] for one in journal(played) for file in one["files"]}
        changed = {name for name, text in played.cancelled.items() if FILES.get(name) != text}
        if unseen := changed - named:
            found.append(f"not in the journal: {', '.join(sorted(unseen))}")
    elif "past.txt" in played.cancelled:
        left["past.txt"] = played.cancelled["past.txt"]
    undo(played)
    now = contents(played.root, agent.keeps)
    if now["both.txt"] == SAVED:
        left["both.txt"] = SAVED  # a person's, and never taken for the agent's
    if kept := [name for name in now | left if now.get(name) != left.get(name)]:
        found.append(f"not undone: {', '.join(sorted(kept))}")
    return found


def drive(agent: Agent, folder: Path) -> tuple[bool, list[str]]:
    """Run an agent through all clients; whether all was right, and what to say of it."""
    lines: list[str] = []
    right = True
    bare = play(agent, "bare", folder / "bare")
    asked = ", ".join(f"{what}: {answer}" for what, answer in asks(bare).items())
    lines.append(f"{agent.name} {agent.version} asks: {asked}")
    for client in ("proxy", "library"):
        if client == "library" and not agent.writes:
            continue  # the library has no part in what such an agent does
        start = time.monotonic()
        played = play(agent, client, folder / client)
        took = time.monotonic() - start
        itself = ", ".join(helps_itself(played)) or "nothing"
        past = "yes" if PAST in played.cancelled["past.txt"].decode() else "no"
        held = "yes" if played.held else "nobody was asked"
        found = wrong(agent, client, bare, played)
        right = right and not found
        lines.append(
            f"{agent.name} {client}: {'; '.join(found) or 'right'} ({took:.0f} s; reads past the "
            f"doors: {itself}; a command past them: {past}; held: {held})"
        )
    return right, lines


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.agents.deep", description=__doc__)
    parser.add_argument("agent", nargs="*", help="only these (default: all)")
    chosen = set(parser.parse_args(arguments).agent)
    logging.basicConfig(level=logging.CRITICAL)
    table: list[str] = []
    all_right = True
    for agent in AGENTS:
        if chosen and agent.name not in chosen:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                agent.package.command()
                right, lines = drive(agent, Path(folder))
            except MissingError as error:
                right, lines = True, [f"{agent.name} {agent.version} cannot be had here: {error}"]
            except (EndedError, OSError, KeyError) as error:
                right, lines = False, [f"{agent.name} {agent.version} did not play: {error!r}"]
        all_right = all_right and right
        table += lines
        print("\n".join(lines), flush=True)
    print(f"\n{sum('right (' in line for line in table)} ways right of {len(table)} lines")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
