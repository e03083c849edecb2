"""Approvals in advance: for the same session, rules and files, until they are revoked or over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.config.person import read_settings
from filepact.config.settings import Settings
from filepact.domain.document import RootId, WorkspacePath
from filepact.domain.operation import PREVIEW_MODE, Actor, Approval, Session
from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, NotFoundError
from filepact.text.glob import compile_filter
from filepact.values import replace
from filepact.workspace.session_approvals import pattern_of
from tests.workspace.acting import delete, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.permission_log import SessionApproval
    from filepact.workspace.workspace import Workspace

ANN = Approval(Actor("person", "ann", "at a terminal"))


@pytest.fixture
def preview(open_here: Callable[..., Workspace]) -> Workspace:
    return open_here("preview", settings=Settings())


def approve(
    workspace: Workspace, session: Session, path: str = "docs/a.md", pattern: str = "docs/**"
) -> SessionApproval:
    """Approve a change, and the like of it in advance."""
    proposal = workspace.proposal(str(write(workspace, session, path, "x\n").operation))
    workspace.approve(proposal.id, ANN)
    return workspace.approving.granted.give(proposal, pattern, ANN)


def state(workspace: Workspace, session: Session, path: str, text: str = "new\n") -> str:
    return write(workspace, session, path, text).status


def test_what_fits_is_done_and_says_by_whose_word(preview: Workspace, session: Session) -> None:
    given = approve(preview, session)
    receipt = write(preview, session, "docs/deep/b.md", "b\n")
    assert receipt.status == "applied"
    operation = preview.operation(str(receipt.operation))
    assert "ann" in operation.approved_by
    assert given.id in operation.approved_by
    assert given.id in " ".join(receipt.notes)
    assert preview.undo(session, operation.id).status == "applied"


def test_other_files_sessions_and_agents_wait_as_before(
    preview: Workspace, session: Session, other: Session
) -> None:
    approve(preview, session)
    impostor = replace(session, actor=Actor("agent", "impostor", "1.0"))
    newer = replace(session, actor=replace(session.actor, version="2"))
    assert state(preview, session, "src/a.py") == "pending"
    assert state(preview, session, "docs.md") == "pending"
    for somebody in (other, impostor, newer, replace(session, id="s9")):
        assert state(preview, somebody, f"docs/{somebody.id}{somebody.actor.name}") == "pending"


def test_a_change_of_several_files_needs_all_of_them(preview: Workspace, session: Session) -> None:
    approve(preview, session)
    for paths, status in ((["docs/b", "docs/c"], "applied"), (["docs/d", "e"], "pending")):
        with preview.draft(session, "patch_apply") as draft:
            for target in draft.open_all(paths):
                draft.write(target, "x\n")
            assert preview.submit(draft, "some").status == status


def test_what_goes_on_with_a_waiting_change_waits_as_well(
    preview: Workspace, session: Session
) -> None:
    first = write(preview, session, "docs/w.md", "one\n")
    assert first.status == "pending"
    approve(preview, session)
    assert state(preview, session, "docs/w.md", "two\n") == "pending"
    assert state(preview, session, "docs/v.md", "two\n") == "applied"


def test_a_revoked_one_counts_no_more_in_any_process(
    preview: Workspace, session: Session, open_here: Callable[..., Workspace]
) -> None:
    given = approve(preview, session)
    elsewhere = open_here("preview", settings=Settings()).approving.granted
    assert [one.id for one in elsewhere.listed()] == [given.id]
    elsewhere.revoke(given.id[:5])
    assert state(preview, session, "docs/b.md") == "pending"
    (listed,) = preview.approving.granted.listed()
    assert listed.revoked is not None
    with pytest.raises(NoChangeError):
        elsewhere.revoke(given.id)
    for name in ("g", "", "gzzzz", "x"):
        with pytest.raises(NotFoundError):
            elsewhere.revoke(name)


def test_one_that_is_over_counts_no_more(
    preview: Workspace, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = approve(preview, session)
    monkeypatch.setattr("time.time", lambda: given.expires)
    assert state(preview, session, "docs/b.md") == "pending"
    with pytest.raises(NoChangeError):
        preview.approving.granted.revoke(given.id)


RULES = """
[[ask]]
name = "the guide"
paths = ["docs/guide/**"]
why = "many read it"

[[deny]]
name = "closed"
paths = ["docs/closed/**"]
why = "nobody writes it"
"""


def ruled(open_here: Callable[..., Workspace], tmp_path: Path, mode: str = "auto") -> Workspace:
    file = tmp_path / "filepact.toml"
    file.write_text(RULES)
    return open_here(mode, settings=read_settings(str(file)))


def test_only_the_rules_that_were_shown_are_answered(
    open_here: Callable[..., Workspace], tmp_path: Path, session: Session
) -> None:
    workspace = ruled(open_here, tmp_path)
    approve(workspace, session, "docs/guide/a.md", "**")
    assert state(workspace, session, "docs/guide/b.md") == "applied"
    assert state(workspace, session, "package.json", "{}\n") == "pending"
    assert state(workspace, session, "docs/guide/c.md", "a\u202eb\n") == "pending"
    assert state(workspace, session, "docs/guide/package.json", "{}\n") == "pending"
    with pytest.raises(FilepactError):
        write(workspace, session, "docs/closed/a.md", "x\n")


def test_where_every_change_waits_a_rule_still_asks(
    open_here: Callable[..., Workspace], tmp_path: Path, session: Session
) -> None:
    workspace = ruled(open_here, tmp_path, "preview")
    assert approve(workspace, session, "docs/a.md", "docs/**").rules == (PREVIEW_MODE,)
    assert state(workspace, session, "docs/b.md") == "applied"
    assert state(workspace, session, "docs/guide/b.md") == "pending"


@pytest.mark.parametrize("pattern", ["src/**", "!docs/**", "docs/[", "", "../**"])
def test_a_pattern_that_fits_nothing_that_was_seen_is_refused(
    preview: Workspace, session: Session, pattern: str
) -> None:
    with pytest.raises(FilepactError):
        approve(preview, session, pattern=pattern)
    assert preview.approving.granted.listed() == ()


def test_what_asks_about_a_change_itself_is_not_answered_in_advance(
    open_here: Callable[..., Workspace], session: Session
) -> None:
    workspace = open_here(settings=Settings())
    receipt = write(workspace, session, "a.txt", "a\u202eb\n")
    with pytest.raises(InvalidParamsError):
        workspace.approving.granted.give(workspace.proposal(str(receipt.operation)), "*", ANN)


@pytest.mark.parametrize(
    ("pattern", "given"),
    [("**", False), ("AGENTS.md", False), ("/AGENTS.*", False), ("/AGENTS.md", True)],
)
def test_what_is_protected_from_the_start_is_approved_for_the_files_that_were_seen_alone(
    open_here: Callable[..., Workspace], session: Session, pattern: str, given: bool
) -> None:
    workspace = open_here(settings=Settings())
    proposal = workspace.proposal(str(write(workspace, session, "AGENTS.md", "x\n").operation))
    assert workspace.approving.granted.scope(proposal) == "file"
    workspace.approve(proposal.id, ANN)
    if given:
        workspace.approving.granted.give(proposal, pattern, ANN)
    else:
        with pytest.raises(InvalidParamsError):
            workspace.approving.granted.give(proposal, pattern, ANN)
    assert state(workspace, session, "AGENTS.md") == ("applied" if given else "pending")
    assert state(workspace, session, "sub/AGENTS.md") == "pending"


NAMES = [
    "a",
    "a b.md",
    "!a",
    "{x,y}.md",
    "[a]*.c",
    "a?b",
    "a\\b",
    "-x",
    "#x",
    "sub/a",
    "é",
    "\udcff",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_pattern_of_a_file_fits_it_alone(name: str) -> None:
    fits = compile_filter(pattern_of(WorkspacePath(RootId("/r"), name)))
    assert [one for one in NAMES if fits(one)] == [name]
    assert not fits(f"below/{name}")


def test_an_agent_that_deletes_is_covered_by_what_it_deletes(
    preview: Workspace, session: Session, root: Path
) -> None:
    approve(preview, session)
    assert delete(preview, session, "docs/a.md").status == "applied"
    assert not (root / "docs/a.md").exists()
    (root / "kept.txt").write_text("x\n")
    assert delete(preview, session, "kept.txt").status == "pending"
