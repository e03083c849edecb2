"""Agents that nobody here wrote, offline, each with a scripted model, through our doors."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import filepact
from tests.agents.agents import AGENTS, BOUNDED, Agent
from tests.agents.installed import or_skip
from tests.agents.model import ScriptedModel
from tests.agents.scenes import (
    FILES,
    MADE,
    OUTSIDE_HAS,
    PAST,
    SAVED,
    TYPED,
    TYPED_AND_WRITTEN,
    TYPING,
    WRITTEN_BY_BOTH,
    Played,
    contents,
    journal,
    play,
    undo,
)
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = str(Path(filepact.__file__).parents[1])

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# The proxy is what people use, so every agent goes through it; another shows that the library is alike, two in the sweeps.
LIBRARY = ("kimi-code", "gemini-cli")[: often(1, 2)]
PROXIED = [(agent, "proxy") for agent in BOUNDED]
OWN_FILES = [
    *[(agent, "proxy") for agent in BOUNDED if agent.writes],
    *[(agent, "library") for agent in BOUNDED if agent.name in LIBRARY],
]


def each(pairs: list[tuple[Agent, str]]) -> pytest.MarkDecorator:
    names = [f"{client}-{agent.name}" for agent, client in pairs]
    return pytest.mark.parametrize(("agent", "client"), pairs, ids=names)


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Agent, str], Played]:
    """Plays an agent's sessions through a client, once for all tests."""

    @functools.cache
    def played(name: str, client: str) -> Played:
        agent = next(one for one in BOUNDED if one.name == name)
        return play(agent, client, tmp_path_factory.mktemp("scene"))

    def answer(agent: Agent, client: str) -> Played:
        with or_skip():
            agent.package.command()
        return played(agent.name, client)

    return answer


# Both only name in their question the call whose kind they have told before.
ASKING = [one for one in AGENTS if one.name in {"kimi-code", "claude-code-acp"}]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("agent", ASKING[: often(1, 2)], ids=lambda one: one.name)
def test_the_example_of_a_client_lets_an_agent_edit(agent, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    path = work / "notes.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    change = agent.change(str(path), "one\r\ntwo\r\n", "two", "zwei")
    if agent not in BOUNDED and not (EXAMPLES.parent / ".node" / "agents" / "stamp").exists():
        pytest.skip("of the large form, which `scripts/deep` installs")
    with or_skip():
        agent.package.command()
    with ScriptedModel([agent.read.call(path=str(path)), change]) as model:
        home = tmp_path / "home"
        environment = agent.prepare(home, model.url)
        words = [EXAMPLES / "acp_client.py", "go", *agent.command(home, model.url)]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=work,
            env={
                **environment,
                "PYTHONPATH": SOURCE,
                "FILEPACT_STATE_DIR": str(tmp_path / "state"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == b"one\r\nzwei\r\n", (done.stdout, model.answers)
    assert f"applied: {path} +1 -1" in done.stdout


@each(OWN_FILES)
def test_an_agent_reads_what_is_not_saved_yet(agent, client, playing):
    said = playing(agent, client).said("read unsaved")
    # A reading tool that never asks its client sees the disk; nobody can change that for it.
    assert ("unsaved text" if agent.reads else "saved text") in said


@each(OWN_FILES)
def test_an_agent_writes_into_what_is_not_saved_yet(agent, client, playing):
    played = playing(agent, client)
    assert played.shown["draft.txt"] == "one\r\ntyped\r\nzwei\r\n"
    assert played.after["draft.txt"] == b"one\r\ntyped\r\nzwei\r\n"


@each([(agent, "proxy") for agent in BOUNDED if agent.reads and agent.writes])
def test_what_a_person_types_between_reading_and_writing_is_kept(agent, client, playing):
    played = playing(agent, client)
    if played.shown["typed.txt"] == TYPED_AND_WRITTEN:
        assert played.after["typed.txt"] == TYPED_AND_WRITTEN.encode()
        return
    # An agent that reads again just before it writes hides which text its change was made for.
    assert played.shown["typed.txt"] == TYPED
    assert played.after["typed.txt"] == FILES["typed.txt"]
    assert "+ONE" in played.said(TYPING), "the agent is told what was typed"


@each(PROXIED)
def test_what_a_person_saves_between_reading_and_writing_is_kept(agent, client, playing):
    assert playing(agent, client).after["both.txt"] == WRITTEN_BY_BOTH


@each(OWN_FILES)
def test_files_keep_their_line_ends_and_new_ones_get_their_folders(agent, client, playing):
    after = playing(agent, client).after
    assert after["crlf.txt"] == b"one\r\nzwei\r\nthree\r\n"
    assert after["whole.txt"] == b"one\r\nzwei\r\nthree\r\n"
    assert after["sub/deep/new.txt"] == b"new\n"


@each(OWN_FILES)
def test_the_outside_and_secrets_are_refused(agent, client, playing):
    played = playing(agent, client)
    assert OUTSIDE_HAS not in played.said("read outside")
    assert "hush" not in played.said("read secret")
    assert not (played.root.parent / MADE).exists()
    assert played.after[".env"] == FILES[".env"]
    assert played.after["id_rsa"] == FILES["id_rsa"]


@each(PROXIED)
def test_a_server_over_the_same_files_is_given_to_every_agent(agent, client, playing):
    played = playing(agent, client)
    # The newer version of the protocol has no way to ask an editor for unsaved text.
    assert ("unsaved text" if agent.protocol == 1 else "saved text") in played.said("served read")
    assert played.after["served.txt"] == b"one\r\nzwei\r\n"
    assert played.after["sub/served.txt"] == b"new\n"
    assert OUTSIDE_HAS not in played.said("served outside")
    assert "hush" not in played.said("served secret")


@each([(agent, "proxy") for agent in BOUNDED if not agent.writes])
def test_an_agent_that_asks_for_permission_alone_is_refused_the_outside(agent, client, playing):
    played = playing(agent, client)
    assert OUTSIDE_HAS not in played.said("read outside")
    assert not (played.root.parent / MADE).exists()
    assert played.after["id_rsa"] == FILES["id_rsa"]


@each([*PROXIED, *OWN_FILES[-len(LIBRARY) :]])
def test_what_is_held_when_its_turn_is_cancelled_is_never_written(agent, client, playing):
    played = playing(agent, client)
    assert played.held
    assert played.cancelled["held.txt"] == FILES["held.txt"]
    assert "held.txt" not in str(journal(played))


@each(PROXIED)
def test_what_an_agent_does_past_the_doors_is_seen(agent, client, playing):
    played = playing(agent, client)
    assert played.cancelled["past.txt"].decode() == f"{PAST}\n"
    done = [one for one in journal(played) if one["kind"] == "change"]
    changed = {name for name, text in played.cancelled.items() if FILES.get(name) != text}
    assert {file["path"] for one in done for file in one["files"]} == changed
    (past,) = [one for one in done if "past.txt" in str(one["files"])]
    assert past["actor"]["kind"] == "agent"


@each(PROXIED)
def test_everything_is_undone_afterwards(agent, client, playing):
    played = playing(agent, client)
    undo(played)
    left = contents(played.root)
    # What a person saves while an agent works is either never taken for the agent's, or undone too.
    assert left["both.txt"] in (FILES["both.txt"], SAVED)
    assert left | {"both.txt": FILES["both.txt"]} == FILES


@each(OWN_FILES[-len(LIBRARY) :])
def test_what_went_through_the_library_is_undone_afterwards(agent, client, playing):
    played = playing(agent, client)
    undo(played)
    assert contents(played.root) == FILES | {"past.txt": f"{PAST}\n".encode()}
