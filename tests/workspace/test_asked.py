"""What agents asked and told, as a workspace's folders have it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.document import RootId
from filepact.domain.operation import Actor, Approval, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord
from filepact.errors import FilepactError
from filepact.text.query import Query
from filepact.values import replace
from filepact.workspace import permission_log
from tests.workspace.acting import read, write

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace


def question(when: float, root: str, *paths: str, session: str = "s1") -> PermissionRecord:
    return PermissionRecord(
        when=when,
        session=Session(session, Actor("agent", "robot", "9")),
        root=RootId(root),
        title=f"{when}",
        action="write",
        files=tuple(map(LoggedFile, paths)),
        verdict="allowed",
        by="person",
        how="allow_once",
    )


def test_a_workspace_lists_what_was_asked_in_all_its_folders(tmp_path: Path) -> None:
    one, two, state = (tmp_path / name for name in ("one", "two", "state"))
    for folder in (one, two):
        folder.mkdir()
    with closing(open_workspace([str(one), str(two)], state_dir=str(state))) as both:
        both.asked.note(question(1.0, str(one), "src/a.py"))
        both.asked.note(question(2.0, str(two), "b.py", str(one / "src" / "b.py"), session="s2"))
        both.asked.note(question(3.0, str(one), "/etc/passwd"))
        both.asked.note(question(4.0, str(tmp_path / "three"), "c.py"))

        def found(**narrowed: object) -> list[float]:
            return [known.when for known in both.asked.questions(**narrowed)]  # type: ignore[arg-type]

        assert found() == [3.0, 2.0, 1.0]
        assert found(limit=2) == [3.0, 2.0]
        assert found(session="s2") == [2.0]
        assert found(path="src") == [2.0, 1.0]
        assert found(path="src", limit=1) == [2.0]
        assert found(path=str(two / "b.py")) == [2.0]
        assert found(path="nowhere") == []
    with closing(open_workspace([str(two)], state_dir=str(state))) as other:
        assert [known.when for known in other.asked.questions()] == [2.0]


def refused(call) -> None:
    with pytest.raises(FilepactError) as caught:
        call()
    assert caught.value.code == "PATH_BLOCKED"


def test_what_agents_read_is_listed_once_a_turn_with_its_session(
    root, workspace, session, open_here
):
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one\n")
    for _ in range(3):
        workspace.reader(session).window("a.txt", first=0, count=1)
    workspace.reader(session).document("b.txt")
    workspace.reader(session).grep(
        "sub", Query.compile("one"), glob="**", limit=5, offset=0, context=0, mode="content"
    )
    workspace.reader(Session("p", Actor("person", "p"))).document("b.txt")
    workspace.asked.flush()
    (row,) = workspace.asked.questions(reads=True)
    assert row.paths == ("a.txt", "b.txt", "sub")
    assert (row.session, row.action, row.verdict, row.by) == (session, "read", "allowed", "rules")
    assert workspace.asked.questions() == ()
    assert workspace.asked.questions(reads=True, path="sub") == (row,)
    assert workspace.asked.questions(reads=True, path="nowhere") == ()
    workspace.asked.turn(session)
    workspace.reader(session).window("a.txt", first=0, count=1)
    workspace.asked.close()
    newest, _ = open_here().asked.questions(reads=True)
    assert newest.paths == ("a.txt",)


def test_what_the_rules_refuse_is_listed_with_the_path_and_the_rule(
    root, workspace, session, open_here
):
    (root / ".env").write_text("TOKEN=1\n")
    (root / ".git").mkdir()
    for _ in range(2):
        refused(lambda: workspace.reader(session).document(".env"))
    refused(lambda: workspace.reader(session).document("/etc/passwd"))
    refused(lambda: write(workspace, session, ".git/config", "x"))
    workspace.asked.close()
    later = open_here()
    rows = {row.paths: row for row in later.asked.questions()}
    assert set(rows) == {(".env",), ("/etc/passwd",), (".git/config",)}
    assert {row.verdict for row in rows.values()} == {"refused"}
    assert rows[("/etc/passwd",)].by == "rule roots"
    assert rows[(".env",)].by.startswith("rule ")
    assert (rows[(".env",)].action, rows[(".git/config",)].action) == ("read", "write")
    assert later.asked.questions(reads=True) == ()


def test_what_filepact_asked_itself_is_listed_with_what_was_said(root, open_here, session):
    workspace = open_here(mode="preview")
    first, second, third = (
        write(workspace, session, f"{name}.txt", "x\n").operation for name in "abc"
    )
    workspace.approve(first, Approval(Actor("person", "ann")))
    workspace.reject(second, Approval(Actor("person", "bob"), "not like this"))
    rows = {row.change: row for row in workspace.asked.questions()}
    said = {key: (row.verdict, row.by, row.reason) for key, row in rows.items()}
    assert said == {
        first: ("allowed", "ann", ""),
        second: ("refused", "bob", "not like this"),
        third: ("waits", "", ""),
    }
    assert rows[second].paths == ("b.txt",)
    assert [row.change for row in workspace.asked.questions(limit=1)] == [third]
    assert workspace.asked.questions(session="other") == ()


def test_only_so_much_is_remembered_of_what_was_written_down(
    root: Path, workspace: Workspace, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permission_log, "_REMEMBERED", 2)
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("x\n")
    for name in ("a.txt", "b.txt", "c.txt", "c.txt", "a.txt"):
        read(workspace, session, name)
    assert len(workspace.asked._noted) == 2
    assert {name for *_, name, _ in workspace.asked._noted} == {
        *(str(root / "a.txt"), str(root / "c.txt"))
    }


@pytest.mark.parametrize(
    ("said", "hidden"),
    [
        ("password: hunter2, log in", "hunter2"),
        ("das Passwort ist Sommer24!", "Sommer24!"),
        ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "wJalrXUtnFEMI"),
        ("Authorization: Bearer eyJhbGciOiJI.eyJz.abc1", "eyJhbGciOiJI.eyJz.abc1"),
        ("use postgres://ann:s3cr3t@host/db", "s3cr3t"),
        ("curl -u ann:s3cr3t https://example.org", "s3cr3t"),
        ("with the API key 9f86d081884c7d65", "9f86d081884c7d65"),
        ("fix the token refresh, and the keyword of https://example.org:80/a@b", ""),
    ],
)
def test_what_a_person_asked_for_is_kept_without_what_they_call_a_secret(
    workspace, session, said, hidden
):
    workspace.asked.turn(replace(session, turn="t1"), said)
    kept = workspace.asked.requests()["t1"]
    assert (hidden not in kept) if hidden else (kept == said)
    assert kept[:3] == said[:3]
