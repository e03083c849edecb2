"""What a file holds protects it too: private keys by refusal, tokens by leaving them out of hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.policy import Policy, Rule
from filepact.domain.protected import SIGN_RULES
from filepact.errors import PathBlockedError
from filepact.fs.root import Root
from filepact.fs.state import open_state
from filepact.store.sqlite import SqliteStore
from filepact.text.query import Query
from filepact.workspace.guard import Guard
from filepact.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.domain.operation import Session

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU" * 3 + "\n"
TOKEN = "ghp_" + "a1B2c3D4" * 5


def hits(workspace: Workspace, session: Session, pattern: str, path: str = "."):
    return workspace.reader(session).grep(
        path, Query.compile(pattern), glob="**", limit=50, offset=0, context=1, mode="content"
    )


def shown(found) -> str:
    return "\n".join(line.text for each in found.files for group in each.groups for line in group)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_with_a_private_key_is_a_secret_whatever_its_name(
    workspace: Workspace, session: Session, root: Path, encoding: str
) -> None:
    (root / "notes.txt").write_text(f"my notes\n{KEY}", encoding=encoding)
    reader = workspace.reader(session)
    for read in (reader.document, lambda path: reader.window(path, first=0, count=9)):
        with pytest.raises(PathBlockedError) as caught:
            read("notes.txt")
        assert caught.value.details["rule"] == "private keys"
    with workspace.draft(session, "edit_file") as draft, pytest.raises(PathBlockedError):
        draft.open("notes.txt")
    found = hits(workspace, session, "notes|b3Bl")
    assert (found.matches, found.unreadable) == (0, ("notes.txt",))
    alone = hits(workspace, session, "b3Bl", "notes.txt")
    assert alone.matches == 0


def test_a_private_key_is_not_written_either(
    workspace: Workspace, session: Session, root: Path
) -> None:
    with workspace.draft(session, "write_file") as draft:
        target = draft.open("new.txt")
        with pytest.raises(PathBlockedError) as caught:
            draft.write(target, KEY)
    assert caught.value.details["rule"] == "private keys"
    assert not (root / "new.txt").exists()


def test_a_part_of_a_file_that_is_too_large_to_load_is_looked_through(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact.workspace.reader.EDIT_LIMIT", 100)
    (root / "big.log").write_text("line\n" * 100 + KEY + "line\n" * 100)
    reader = workspace.reader(session)
    assert reader.window("big.log", first=0, count=5).lines == ("line",) * 5
    with pytest.raises(PathBlockedError):
        reader.window("big.log", first=98, count=5)


def test_a_token_is_left_out_of_what_a_search_shows(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.py").write_text(f"before = 1  # {TOKEN}\ntoken = '{TOKEN}'\nafter = 2\n")
    (root / "long.json").write_text('{"a": "' + "x" * 500 + '", "token": "' + TOKEN + '"}\n')
    found = hits(workspace, session, "token")
    assert found.matches == 2
    assert TOKEN[:12] not in shown(found)
    assert "token = '[GitHub token, not shown]'" in shown(found)
    assert "a long line with a secret" in shown(found)


def test_a_person_can_lift_the_rule_and_switch_the_net_off(
    root: Path, tmp_path: Path, session: Session
) -> None:
    (root / "fixture.txt").write_text(KEY)
    (root / "a.py").write_text(f"token = '{TOKEN}'\n")
    lifting = Rule(
        "mine", "allow", ("fixture.txt",), "a test's", lifts=frozenset({"private keys"}),
        layer="person",
    )  # fmt: skip

    def opened(*, policy: Policy | None = None, net: bool = True) -> Iterator[Workspace]:
        state = open_state(str(tmp_path / "state"))
        guard = Guard([Root.open(str(root))], policy=policy, net=net)
        workspace = Workspace(guard, SqliteStore(state.database), state)
        yield workspace
        workspace.close()

    for workspace in opened(policy=Policy([*SIGN_RULES, lifting])):
        assert workspace.reader(session).document("fixture.txt").text == KEY
    for workspace in opened(net=False):
        assert workspace.reader(session).document("fixture.txt").text == KEY
        assert TOKEN in shown(hits(workspace, session, "token"))
