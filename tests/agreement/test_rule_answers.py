"""What `policy lint` says that rules answer is what the proxy answers."""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING

import pytest

from filepact.domain.policy import ACTIONS, Policy, Rule
from filepact.fs.root import Root
from filepact.workspace.guard import Guard
from filepact_acp.permissions import read_question, rule_on
from filepact_cli.policy import QUESTIONS, answers

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.policy import Verdict

CALLS = {
    "read": {"kind": "read"},
    "edit": {"kind": "edit"},
    "new": {"kind": "edit", "locations": [{"path": "new.txt"}]},
    "delete": {"kind": "delete"},
    "move": {"kind": "move", "rawInput": {"source": "a.txt", "destination": "b.txt"}},
    "command": {"kind": "execute", "rawInput": {"command": "true"}},
    "fetch": {"kind": "fetch", "rawInput": {"url": "http://x.invalid"}},
    "other": {"kind": "other", "rawInput": {"path": "a.txt", "target": "all"}},
    "mode": {"kind": "switch_mode", "rawInput": {"mode": "all"}},
}
SOME = [
    frozenset(some)
    for some in chain.from_iterable(combinations(sorted(ACTIONS), n) for n in range(1, 6))
]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "a.txt").write_text("a\n")
    return Root.open(str(tmp_path))


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_a_rule_answers_each_question_as_lint_says(verdict: Verdict, root: Root) -> None:
    assert CALLS.keys() == QUESTIONS.keys()
    for actions in SOME:
        rule = Rule("mine", verdict, ("*.txt",), "", actions=actions, layer="person")
        guard = Guard([root], policy=Policy([rule]))
        found = {
            name: rule_on(
                read_question({"toolCall": {"locations": [{"path": "a.txt"}], **call}}, root.path),
                guard,
                "agent",
            ).verdict
            for name, call in CALLS.items()
        }
        assert found == answers([rule]), actions


def test_a_rule_about_changing_files_allows_no_new_one(root: Root) -> None:
    rule = Rule("mine", "allow", ("*.txt",), "", actions=frozenset({"write"}), layer="person")
    default = Rule("default", "ask", ("**",), "", actions=frozenset({"create"}), layer="person")
    guard = Guard([root], policy=Policy([rule], [default]))
    for path, verdict in (("a.txt", "allow"), ("new.txt", "person")):
        call = {"kind": "edit", "locations": [{"path": path}]}
        assert rule_on(read_question({"toolCall": call}, root.path), guard, "").verdict == verdict


def test_the_defaults_of_a_file_answer_together() -> None:
    defaults = [
        Rule("default", "deny", ("**",), "", actions=frozenset({"create"})),
        Rule("default", "allow", ("**",), "", actions=frozenset({"write", "read"})),
    ]
    said = answers(defaults)
    assert (said["new"], said["edit"], said["delete"]) == ("deny", "allow", "person")
    assert said["command"] == "person"
