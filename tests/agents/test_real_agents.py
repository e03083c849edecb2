"""Agents that nobody here wrote, offline, each with a scripted model, through our doors."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import pytest

from tests.agents.agents import BOUNDED, Agent
from tests.agents.installed import MissingError
from tests.agents.scenes import (
    FILES,
    MADE,
    OUTSIDE_HAS,
    Played,
    contents,
    journal,
    play,
    undo,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAIRS = [(agent, client) for client in ("proxy", "library") for agent in BOUNDED if agent.writes]


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Agent, str], Played]:
    """Plays an agent's sessions through a client, once for all tests."""

    @functools.cache
    def played(agent_name: str, client: str) -> Played:
        agent = next(one for one in BOUNDED if one.name == agent_name)
        return play(agent, client, tmp_path_factory.mktemp("scene"))

    def answer(agent: Agent, client: str) -> Played:
        try:
            agent.package.command()
        except MissingError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        return played(agent.name, client)

    return answer


each = pytest.mark.parametrize(
    ("agent", "client"), PAIRS, ids=[f"{client}-{agent.name}" for agent, client in PAIRS]
)


@each
def test_unsaved_text_is_what_an_agent_reads(agent, client, playing):
    said = playing(agent, client).said("read unsaved")
    # Those whose reading tool never asks see the disk; nobody can change that for them.
    assert ("unsaved text" if agent.reads and client == "proxy" else "saved text") in said


@each
def test_files_keep_their_line_ends_and_new_ones_get_their_folders(agent, client, playing):
    after = playing(agent, client).after
    assert after["crlf.txt"] == b"one\r\nzwei\r\nthree\r\n"
    assert after["whole.txt"] == b"one\r\nzwei\r\nthree\r\n"
    assert after["sub/deep/new.txt"] == b"new\n"


@each
def test_outside_and_secrets_are_refused(agent, client, playing):
    played = playing(agent, client)
    assert OUTSIDE_HAS not in played.said("read outside")
    assert "hush" not in played.said("read secret")
    assert not (played.root.parent / MADE).exists()
    assert played.after[".env"] == FILES[".env"]
    assert played.after["id_rsa"] == FILES["id_rsa"]


@each
def test_what_was_held_when_the_turn_was_cancelled_is_never_written(agent, client, playing):
    played = playing(agent, client)
    assert played.cancelled == played.after
    assert "held.txt" not in str(journal(played))


@each
def test_everything_is_undone_afterwards(agent, client, playing):
    played = playing(agent, client)
    assert {one["actor"]["kind"] for one in journal(played)} == {"agent"}
    assert undo(played) == 3
    assert contents(played.root) == FILES
