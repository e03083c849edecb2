"""Roots, names and narrowing: what the guard makes of a path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.document import RootId, WorkspacePath
from filepact.domain.operation import Actor, Approval
from filepact.domain.policy import Policy, Rule
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    InvalidParamsError,
    PathBlockedError,
    StaleFileError,
)
from filepact.fs.root import Root
from filepact.text.edit import Edit, EditList
from filepact.workspace.authorizer import ChangePolicy
from filepact.workspace.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Workspace]:
    """Two roots; the second is also known by a link to it."""
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / f"{name}.txt").write_text(f"{name}\n")
    (tmp_path / "alias").symlink_to("two")
    workspace = open_workspace(
        [str(tmp_path / "one"), str(tmp_path / "alias"), str(tmp_path / "two")],
        state_dir=str(tmp_path / "state"),
    )
    yield workspace
    workspace.close()


def test_a_relative_path_starts_at_the_first_root(two: Workspace, tmp_path: Path) -> None:
    location = two.guard.find("sub/one.txt", "read")
    assert location.path == WorkspacePath(RootId(str(tmp_path / "one")), "sub/one.txt")
    assert location.shown == "sub/one.txt"


@pytest.mark.parametrize("spelling", ["two", "alias"])
def test_an_absolute_path_finds_its_root_by_any_spelling(
    two: Workspace, tmp_path: Path, spelling: str
) -> None:
    location = two.guard.find(str(tmp_path / spelling / "sub" / "two.txt"), "read")
    assert location.root.path == str(tmp_path / "two")
    assert location.shown == str(tmp_path / "two" / "sub" / "two.txt")
    assert two.guard.find(str(tmp_path / spelling), "list").shown == str(tmp_path / "two")


def test_the_same_root_named_twice_is_one(two: Workspace) -> None:
    assert len(two.guard.roots) == 2


def test_a_name_that_only_begins_like_a_root_is_outside(two: Workspace, tmp_path: Path) -> None:
    (tmp_path / "one-evil").mkdir()
    (tmp_path / "one-evil" / "x").write_text("SECRET")
    with pytest.raises(PathBlockedError):
        two.guard.find(str(tmp_path / "one-evil" / "x"), "read")


def test_no_root_is_not_everything(tmp_path: Path) -> None:
    with pytest.raises(InvalidParamsError):
        open_workspace([], state_dir=str(tmp_path / "state"))


def test_the_state_folder_may_not_lie_in_a_root(tmp_path: Path) -> None:
    with pytest.raises(FilepactError) as caught:
        open_workspace([str(tmp_path)], state_dir=str(tmp_path / "state"))
    assert caught.value.code == "STATE_ERROR"


def test_a_link_to_a_protected_name_is_protected_and_a_link_of_that_name_too(
    workspace: Workspace, root: Path
) -> None:
    (root / "plain.txt").write_text("x")
    (root / "id_rsa").symlink_to("plain.txt")
    (root / "server.pem").write_text("SECRET")
    (root / "innocent").symlink_to("server.pem")
    for path in ("id_rsa", "innocent"):
        with pytest.raises(PathBlockedError):
            workspace.guard.find(path, "read")


def test_find_file_tells_missing_folders_and_special_files_apart(
    workspace: Workspace, root: Path
) -> None:
    (root / "folder").mkdir()
    codes = {}
    for path in ("missing", "folder"):
        with pytest.raises(FilepactError) as caught:
            workspace.guard.find_file(path, "read")
        codes[path] = caught.value.code
    assert codes == {"missing": "NOT_FOUND", "folder": "NOT_A_FILE"}


def test_a_client_narrows_to_its_own_folders(two: Workspace, tmp_path: Path) -> None:
    shared = str(tmp_path / "one" / "sub")
    assert f"narrowed to {shared}" in two.guard.narrow([shared, "/elsewhere"])
    for path in (
        "..",
        "../top.txt",
        str(tmp_path / "one" / "top.txt"),
        str(tmp_path / "two" / "sub" / "two.txt"),
        "/elsewhere/x",
    ):
        with pytest.raises(PathBlockedError) as refused:
            two.guard.find(path, "read")
        assert shared in (refused.value.hint or "")
    (first, second) = two.guard.roots
    allow = two.guard.listing(first, "read")
    assert allow("sub", True)
    assert allow("sub/one.txt", False)
    assert not allow("top.txt", False)
    assert allow.among("", ["sub", "sub/", "top.txt"]) == ["sub", "sub/"]
    assert allow.among("sub/", [".env", "one.txt"]) == ["one.txt"]
    assert not two.guard.listing(second, "read")("sub", True)


def test_names_start_at_the_clients_folder_and_what_is_shown_can_be_sent(
    two: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "one" / "sub" / "sub").mkdir()
    (tmp_path / "one" / "sub" / "deep").mkdir()
    (tmp_path / "one" / "sub" / "sub" / "inner.txt").write_text("")
    two.guard.narrow([str(tmp_path / "one" / "sub"), str(tmp_path / "two")])
    wanted = {
        ".": ".",
        "": ".",
        "one.txt": "one.txt",
        "./deep/../one.txt": "one.txt",
        "deep": "deep",
        "sub/inner.txt": "sub/inner.txt",
        # Counted from the first root, as the server said before it knew the client's folder.
        "sub/one.txt": "one.txt",
        str(tmp_path / "one" / "sub" / "one.txt"): "one.txt",
        str(tmp_path / "two" / "sub" / "two.txt"): str(tmp_path / "two" / "sub" / "two.txt"),
    }
    for sent, shown in wanted.items():
        location = two.guard.find(sent, "read")
        assert (sent, location.shown) == (sent, shown)
        assert two.guard.find(location.shown, "read").path == location.path
    missing = two.guard.find("sub/new.txt", "write", missing="create")
    assert missing.path.path == "sub/sub/new.txt"
    assert two.guard.find("sub/one.txt", "write", missing="create").path.path == "sub/sub/one.txt"


def test_names_can_go_on_starting_at_the_root(two: Workspace, tmp_path: Path) -> None:
    two.guard.narrow([str(tmp_path / "one" / "sub")], moves=False)
    assert two.guard.find("sub/one.txt", "read").shown == "sub/one.txt"
    with pytest.raises(PathBlockedError):
        two.guard.find(".", "read")


def test_a_client_that_shares_a_folder_above_a_root_narrows_nothing_of_it(
    two: Workspace, tmp_path: Path
) -> None:
    two.guard.narrow([str(tmp_path)])
    assert two.guard.find("sub/one.txt", "read").place.kind == "file"
    assert two.guard.find(str(tmp_path / "two" / "sub"), "read").place.kind == "directory"


def test_folders_that_lie_outside_narrow_nothing(two: Workspace, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    said = two.guard.narrow(["/elsewhere", str(tmp_path / "far")])
    assert "stay as they are" in said
    assert two.guard.find("sub/one.txt", "read").place.kind == "file"


@pytest.mark.parametrize("name", ["file", "gone", "gone/below", "file/below"])
def test_what_lies_inside_and_is_no_folder_is_not_taken_for_all(
    two: Workspace, tmp_path: Path, name: str
) -> None:
    (tmp_path / "one" / "file").write_text("")
    wrong = str(tmp_path / "one" / name)
    with pytest.raises(PathBlockedError):
        two.guard.narrow(["/elsewhere", wrong])
    # Beside a folder that can be used it is left out.
    two.guard.narrow([wrong, str(tmp_path / "one" / "sub")])
    assert two.guard.find("one.txt", "read").place.kind == "file"
    with pytest.raises(PathBlockedError):
        two.guard.find(str(tmp_path / "one" / "file"), "read")


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Workspace]:
    """A root below a folder that a link above it has another name for, which nobody has typed."""
    (tmp_path / "var" / "home" / "p" / "sub").mkdir(parents=True)
    (tmp_path / "home").symlink_to("var/home")
    (tmp_path / "var" / "home" / "p" / "sub" / "a.txt").write_text("a\n")
    (tmp_path / "var" / "home" / "p" / "top.txt").write_text("top\n")
    (tmp_path / "elsewhere").mkdir()
    workspace = open_workspace(
        [str(tmp_path / "var" / "home" / "p")], state_dir=str(tmp_path / "state")
    )
    yield workspace
    workspace.close()


def test_a_root_is_found_by_a_name_that_nobody_has_typed(linked: Workspace, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to("home/p/sub")
    (tmp_path / "out").symlink_to("elsewhere")
    for sent, path in {
        "home/p/top.txt": "top.txt",
        "home/p/new/file.txt": "new/file.txt",
        "home/p/./sub/../top.txt": "top.txt",
        "home/p/": ".",
        "home/p": ".",
        "short/a.txt": "sub/a.txt",
    }.items():
        found = linked.guard.find(str(tmp_path) + f"/{sent}", "list")
        assert (sent, found.place.path) == (sent, path)
    for outside in ("home", "home/q.txt", "out/x", "home/p/../q.txt", "short", "gone/p/top.txt"):
        with pytest.raises(PathBlockedError):
            linked.guard.find(str(tmp_path / outside), "read")


def test_rules_hold_by_whichever_name(linked: Workspace, tmp_path: Path) -> None:
    (tmp_path / "var" / "home" / "p" / ".env").write_text("K=1\n")
    with pytest.raises(PathBlockedError):
        linked.guard.find(str(tmp_path / "home" / "p" / ".env"), "read")


@pytest.mark.parametrize("name", ["home/p/sub", "short", "var/home/p/sub"])
def test_a_client_narrows_by_whichever_name_it_has(
    linked: Workspace, tmp_path: Path, name: str
) -> None:
    (tmp_path / "short").symlink_to("home/p/sub")
    linked.guard.narrow([str(tmp_path / name)])
    assert linked.guard.find("a.txt", "read").path.path == "sub/a.txt"
    assert linked.guard.find(str(tmp_path / "home/p/sub/a.txt"), "read").shown == "a.txt"
    for path in ("../top.txt", str(tmp_path / "home/p/top.txt"), str(tmp_path / "var/home/p")):
        with pytest.raises(PathBlockedError):
            linked.guard.find(path, "read")


def test_a_folder_above_a_root_by_another_name_narrows_nothing(
    linked: Workspace, tmp_path: Path
) -> None:
    linked.guard.narrow([str(tmp_path / "home")])
    assert linked.guard.find("top.txt", "read").place.kind == "file"


def test_a_walk_hides_protected_names(workspace: Workspace) -> None:
    allow = workspace.guard.listing(workspace.guard.roots[0], "read")
    assert allow("src", True)
    assert not allow(".env", False)
    assert not allow("home/id_rsa", False)
    assert allow("home/other.pub", False)
    assert not allow(".ssh", True)
    assert allow.among("", [".env", ".ssh/", "README.md", "src/"]) == ["README.md", "src/"]
    assert allow.among("home/", ["id_rsa", "other.pub"]) == ["other.pub"]


def test_a_root_that_was_replaced_is_noticed(
    open_here: Callable[..., Workspace], root: Path, tmp_path: Path
) -> None:
    workspace = open_here()
    (root / "a.txt").write_text("a")
    root.rename(tmp_path / "moved")
    root.mkdir()
    (root / "a.txt").write_text("b")
    with pytest.raises(PathBlockedError):
        workspace.guard.find("a.txt", "read")


def test_a_path_of_a_foreign_root_is_refused(workspace: Workspace) -> None:
    with pytest.raises(PathBlockedError):
        workspace.guard.root_of(RootId("/elsewhere"))


def test_a_project_secret_is_written_whole_with_approval_and_never_shown(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("TOKEN=SECRET\n")
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(".env"), "TOKEN=new\n")
        receipt = workspace.submit(draft, "write .env")
    assert (receipt.status, receipt.rule) == ("pending", "project secrets")
    assert "SECRET" not in receipt.diff
    assert (root / ".env").read_text() == "TOKEN=SECRET\n"
    proposal = workspace.proposal(receipt.operation)
    assert "-TOKEN=SECRET" in workspace.diff(proposal), "the person sees all of it"
    workspace.approve(receipt.operation, Approval(Actor("person", "ann")))
    assert (root / ".env").read_text() == "TOKEN=new\n"


def test_a_file_that_may_not_be_seen_cannot_be_probed_by_edits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("TOKEN=SECRET\n")
    with workspace.draft(session, "edit_file") as draft:
        target = draft.open_existing(".env")
        for length in (1, 99):
            edits = EditList((Edit(0, length, "x"),))
            with pytest.raises(PathBlockedError) as caught:
                draft.edit(target, lambda _text, edits=edits: edits)
            assert "write_file" in caught.value.hint


def test_what_was_approved_over_a_hidden_text_does_not_show_it_later(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("A=1\n")
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(".env"), "A=2\n")
        receipt = workspace.submit(draft, "write .env")
    workspace.approve(receipt.operation, Approval(Actor("person", "ann")))
    (root / ".env").write_text("A=SECRET\n")
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(".env"), "A=3\n")
        assert workspace.submit(draft, "write .env").notes == ()


def test_an_approval_tells_the_agent_nothing_of_what_it_may_not_read(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("TOKEN=SECRET\nB=1\n")
    person = Approval(Actor("person", "ann"))
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(".env"), "NEW=1\n", append=True)
        waiting = workspace.submit(draft, "append to .env")
    done = workspace.approve(waiting.operation, person, to_agent=True)
    assert done.status == "applied"
    assert "SECRET" not in repr(done)
    taken_back = workspace.undo(session, done.operation, dry_run=False)
    assert "SECRET" not in repr(taken_back)
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(".env"), "TOKEN=mine\n")
        waiting = workspace.submit(draft, "write .env")
    (root / ".env").write_text("TOKEN=SECRETER\nB=1\n")
    with pytest.raises(StaleFileError) as caught:
        workspace.approve(waiting.operation, person, to_agent=True)
    assert "SECRET" not in caught.value.report()
    with pytest.raises(StaleFileError) as caught:
        workspace.approve(waiting.operation, person)
    assert "SECRET" in caught.value.report(), "the person sees what happened"


def test_an_ask_for_a_read_is_a_refusal_that_says_how_to_allow_it(
    root: Path, tmp_path: Path
) -> None:
    (root / "notes.txt").write_text("x")
    opened = Root.open(str(root))
    rule = Rule("mine", "ask", ("notes.txt",), "private", layer="person")
    guard = Guard([opened], policy=Policy([rule]))
    with pytest.raises(ApprovalRequiredError) as caught:
        guard.find("notes.txt", "read")
    assert "[[allow]]" in caught.value.hint
    assert guard.find("notes.txt", "write").decision.rule == rule
    opened.close()


def test_an_agent_hears_at_its_next_call_what_a_person_has_said(
    workspace: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    waiting = []
    for name in ("AGENTS.md", "CLAUDE.md", "sub/AGENTS.md"):
        with workspace.draft(session, "write_file") as draft:
            draft.write(draft.open(name), "be kind\n")
            waiting.append(workspace.submit(draft, f"write {name}").operation)
    assert workspace.events(session) == ()
    ann = Actor("person", "ann")
    person = open_here()
    person.approve(waiting[0], Approval(ann))
    person.reject(waiting[1], Approval(ann, "not here"))
    news = workspace.events(session)
    assert [one.text for one in news] == [
        f"Proposal {waiting[0]} was approved by a person and applied.",
        f"Proposal {waiting[1]} was rejected by a person: not here",
    ]
    assert workspace.events(session) == news
    workspace.acknowledge(session, news[:1])
    assert workspace.events(session) == news[1:]
    workspace.acknowledge(session, news)
    assert workspace.events(session) == ()
    assert (root / "AGENTS.md").read_text() == "be kind\n"
    assert not (root / "CLAUDE.md").exists()


def test_a_special_file_is_refused_before_it_is_looked_at(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    for action in ("read", "write"):
        with pytest.raises(PathBlockedError):
            workspace.guard.find_file("pipe", action)


def test_a_root_within_another_is_used_for_what_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "outer" / "inner" / "a.txt").write_text("a")
    roots = [str(tmp_path / "outer"), str(tmp_path / "outer" / "inner")]
    workspace = open_workspace(roots, state_dir=str(tmp_path / "state"))
    location = workspace.guard.find(f"{roots[1]}/a.txt", "read")
    assert (location.root.path, location.place.path) == (roots[1], "a.txt")
    assert workspace.guard.find("inner/a.txt", "read").root.path == roots[0]
    workspace.close()


def test_what_a_name_leads_to_by_now_is_judged_when_it_is_resolved_again(
    two: Workspace, tmp_path: Path
) -> None:
    location = two.guard.find("sub/one.txt", "write", missing="create")
    assert two.guard.find_again(location).decision is location.decision
    (tmp_path / "one" / ".env").write_text("KEY=1\n")
    (tmp_path / "one" / "sub" / "one.txt").unlink()
    (tmp_path / "one" / "sub" / "one.txt").symlink_to("../.env")
    assert location.decision.verdict == "allow"
    assert two.guard.find_again(location).decision.verdict == "ask"
    assert two.guard.hides(two.guard.find_again(location).path, "tester")
    (tmp_path / "one" / "sub" / "one.txt").unlink()
    (tmp_path / "one" / "sub" / "one.txt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathBlockedError):
        two.guard.find_again(location)


def test_a_file_that_is_gone_by_now_is_made_only_where_one_may_be_made(root: Path) -> None:
    rule = Rule("none new", "deny", ("*.txt",), "as it is", actions=("create",), layer="person")
    (root / "a.txt").write_text("one\n")
    with Root.open(root) as opened:
        judge = ChangePolicy(Guard([opened], policy=Policy((rule,))), "agent")
        location = judge.find_file("a.txt", lambda _path: False)
        assert judge.find_again(location).decision is location.decision
        (root / "a.txt").unlink()
        with pytest.raises(PathBlockedError):
            judge.find_again(location)
        # An editor has it, and it would be made on the disk.
        with pytest.raises(PathBlockedError):
            judge.find_file("a.txt", lambda _path: True)


def test_a_folder_that_is_not_shared_any_more_is_refused_when_it_is_resolved_again(
    two: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "one" / "other").mkdir()
    location = two.guard.find("sub/one.txt", "write")
    two.guard.narrow([str(tmp_path / "one" / "other")])
    with pytest.raises(PathBlockedError):
        two.guard.find_again(location)
