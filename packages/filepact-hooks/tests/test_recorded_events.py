"""Events that the real programs sent: the same calls with a secret in the place of a file are refused, by each name."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from filepact_hooks.agents import AGENTS, read_event
from filepact_hooks.service import HookDaemon
from tests.agents.recorder import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDED: Final[list[dict[str, Any]]] = [
    json.loads(line) for line in EVENTS.read_text().splitlines()
]
_PROJECT: Final = "/home/person/project"
_CALLS: Final = ("tool_input", "toolArgs", "args")
_TOOLS: Final = ("tool_name", "toolName", "tool")


def event(one: dict[str, Any], root: Path, name: str = "a.txt") -> bytes:
    """An event as it was sent, for a folder, and with another name of a file in what a tool is given."""
    sent = dict(one["sent"])
    for key in _CALLS:
        if key in sent:
            sent[key] = json.loads(json.dumps(sent[key]).replace("a.txt", name))
    return json.dumps(sent).replace(_PROJECT, str(root)).encode()


def calls(needle: str = "") -> list[Any]:
    """The events before a tool is used in which a name stands."""
    found: dict[str, Any] = {}
    for one in RECORDED:
        sent = one["sent"]
        name = one["option"] or sent.get("hook_event_name", "")
        if AGENTS[one["agent"]].events.get(name) != "before":
            continue
        tool = next(sent[key] for key in _TOOLS if key in sent)
        given = json.dumps(next((sent[key] for key in _CALLS if key in sent), {}))
        if needle in given:
            found.setdefault(f"{one['agent']} {tool} {given[:60]}", one)
    return [pytest.param(one, id=name) for name, one in found.items()]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    made = tmp_path / "root"
    (made / "src").mkdir(parents=True)
    (made / "a.txt").write_text("one\ntwo\n")
    (made / "src" / "b.py").write_text("one = 1\n")
    (made / "p.png").write_bytes(b"")
    return made


@pytest.fixture
def daemon(root: Path, tmp_path: Path) -> Iterator[HookDaemon]:
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as made:
        yield made


def refuses(answer: str) -> bool:
    return any(f'"{word}"' in answer for word in ("deny", "ask"))


@pytest.mark.parametrize("one", [pytest.param(one, id=str(n)) for n, one in enumerate(RECORDED)])
def test_every_event_is_one_that_is_known(one: dict[str, Any], root: Path) -> None:
    agent = AGENTS[one["agent"]]
    read = read_event(agent, event(one, root), one["option"])
    assert read.session
    assert read.moment != "other" or "agent_id" in one["sent"] or "new_cwd" in one["sent"]


# Not those in a worktree that Claude Code keeps below `.claude`: there the hook finds another root.
@pytest.mark.parametrize("one", [one for one in calls() if "/.claude/" not in str(one.values)])
def test_what_an_agent_did_with_ordinary_files_is_refused_to_none(
    one: dict[str, Any], root: Path, daemon: HookDaemon
) -> None:
    answer = daemon.answer(one["agent"], event(one, root), one["option"])
    assert not refuses(answer.out), answer


@pytest.mark.parametrize("one", calls("a.txt"))
def test_the_same_call_with_a_secret_in_the_place_of_a_file_is_refused(
    one: dict[str, Any], root: Path, daemon: HookDaemon
) -> None:
    (root / ".env").write_text("TOKEN=SECRET\n")
    answer = daemon.answer(one["agent"], event(one, root, ".env"), one["option"])
    assert refuses(answer.out), answer
