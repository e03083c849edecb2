"""Two agents in one folder at once: told apart by what their calls name, or said to be either's; undo takes back one's alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import BY_SEVERAL
from filepact.errors import NoChangeError
from filepact.workspace.selection import NEWEST, Selection
from tests.faces.test_whose_change import PERSON, Agents, agents

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["agents"]

BOTH = "claude-code or codex"
Step = tuple[str, ...]


def play(agents: Agents, steps: Sequence[Step]) -> None:
    """Play what two programs tell and do: ``claude begins COMMAND``, ``codex ends``, ``write NAME``."""
    under_way: dict[str, dict[str, Any]] = {}
    for who, what, *rest in steps:
        if who == "write":
            agents.write(what, "x\n")
        elif who == "append":
            with (agents.root / what).open("a") as stream:
                stream.write(f"{rest[0]}\n")
        else:
            names = {"begins": "PreToolUse", "asks": "PermissionRequest", "ends": "PostToolUse"}
            if what == "begins":
                tool = rest[1] if rest[1:] else "Bash"
                given = "file_path" if rest[1:] else "command"
                under_way[who] = {"tool": tool, given: rest[0]}
            session = f"{who}'s"
            agents.tell(names[what], **under_way[who], session=session, agent=who, call=who)


def whose(agents: Agents) -> dict[str, str]:
    """The last that is said to have changed each file."""
    with agents.workspace() as workspace:
        return {
            change.path.path: one.session.actor.name
            for one in workspace.log()[::-1]
            for change in one.changes.changes
        }


def begun(command: str = "make", other: str = "make") -> tuple[Step, ...]:
    return ("claude", "begins", command), ("codex", "begins", other)


ENDED: tuple[Step, ...] = (("claude", "ends"), ("codex", "ends"))


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ((*begun(), ("write", "c"), *ENDED), {"c": BOTH}),
        (
            (*begun("make > c", "make > x"), ("write", "c"), ("write", "x"), *ENDED),
            {"c": "claude-code", "x": "codex"},
        ),
        (
            (*begun("make > c"), ("write", "c"), ("write", "x"), *ENDED),
            {"c": "claude-code", "x": BOTH},
        ),
        (
            (
                *begun("echo 1 >> a.txt", "echo 2 >> a.txt"),
                ("append", "a.txt", "1"),
                ("append", "a.txt", "2"),
                *ENDED,
            ),
            {"a.txt": BOTH},
        ),
        (
            (*begun("echo 1 >> a.txt", "echo 2 >> a.txt"), ("append", "a.txt", "1"), *ENDED[::-1]),
            {"a.txt": BOTH},
        ),
        (
            (
                ("claude", "begins", "a.txt", "Write"),
                ("codex", "begins", "sed -i s/x/y/ a.txt"),
                ("append", "a.txt", "1"),
                *ENDED,
            ),
            {"a.txt": BOTH},
        ),
        (
            (
                ("codex", "begins", "make"),
                ("write", "x"),
                ("claude", "begins", "make"),
                ("write", "c"),
                ("claude", "ends"),
                ("write", "x2"),
                ("codex", "ends"),
            ),
            {"x": "codex", "c": BOTH, "x2": "codex"},
        ),
        (
            (
                ("codex", "begins", "make > a.txt"),
                ("codex", "asks"),
                ("claude", "begins", "make >> a.txt"),
                ("append", "a.txt", "1"),
                ("claude", "ends"),
            ),
            {"a.txt": "claude-code"},
        ),
        (
            (
                ("claude", "begins", "a.txt", "Read"),
                ("codex", "begins", "make"),
                ("write", "x"),
                *ENDED,
            ),
            {"x": "codex"},
        ),
        (
            (*begun("rm a.txt", "make > x"), ("write", "x"), ("claude", "ends"), ("codex", "ends")),
            {"x": "codex"},
        ),
    ],
)
def test_what_two_agents_do_at_once(
    agents: Agents, steps: Sequence[Step], wanted: dict[str, str]
) -> None:
    for who in ("claude", "codex"):
        agents.tell("UserPromptSubmit", session=f"{who}'s", agent=who)
    play(agents, steps)
    assert whose(agents) == wanted


def test_the_undo_of_ones_turn_names_what_either_may_have_done_and_leaves_it(
    agents: Agents,
) -> None:
    for who in ("claude", "codex"):
        agents.tell("UserPromptSubmit", session=f"{who}'s", agent=who)
    play(agents, (*begun(), ("write", "c"), ("claude", "ends"), ("write", "x"), ("codex", "ends")))
    with agents.workspace() as workspace:
        (either,) = (one.id for one in workspace.log() if one.tool == BY_SEVERAL)
        with pytest.raises(NoChangeError) as refused:
            workspace.undo_selected(PERSON, Selection(turn=NEWEST, agent="claude-code"))
        assert f"`filepact undo {either}`" in refused.value.hint
        receipt = workspace.undo_selected(PERSON, Selection(turn=NEWEST, agent="codex"))
        assert any(either in note for note in receipt.notes)
        assert sorted(one.name for one in agents.root.iterdir()) == ["a.txt", "c"]
        workspace.undo(PERSON, either)
    assert sorted(one.name for one in agents.root.iterdir()) == ["a.txt"]
