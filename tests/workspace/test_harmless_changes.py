"""Changes of manifests: what steers nothing is done at once, whatever door it comes by; all else waits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from filepact.config.settings import parse_settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from tests.domain.steering import BUMPS, HARMLESS, PACKAGE, STEERING
from tests.workspace.acting import delete, edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

ANN = Approval(Actor("person", "ann"))
SAID = ('"A shop"', '"A small shop"')
RUNS = ('"build": "tsc"', '"build": "tsc", "postinstall": "x"')


def with_settings(open_here: Callable[..., Workspace], text: str) -> Workspace:
    return open_here(settings=parse_settings(text, name="filepact.toml"))


def laid(root: Path, text: str = PACKAGE, name: str = "package.json") -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def put(workspace: Workspace, session: Session, path: str, data: bytes | None) -> str:
    """Give a file these bytes or remove it, and tell what came of it."""
    try:
        with workspace.draft(session, "write_file") as draft:
            target = draft.open(path, itself=data is None)
            if data is None:
                draft.delete(target, emptied_by=None)
            else:
                draft.put(target, data)
            return workspace.submit(draft, "put").status
    except FilepactError as error:
        return error.code


def test_nothing_of_the_attack_list_gets_through(workspace: Workspace, root: Path) -> None:
    through = []
    for number, case in enumerate(STEERING):
        file = root / str(number) / case.path
        file.parent.mkdir(parents=True)
        if case.before is not None:
            file.write_bytes(case.before)
        session = Session(f"s{number}", Actor("agent", "tester"))
        said = put(workspace, session, f"{number}/{case.path}", case.after)
        there = file.read_bytes() if file.exists() else None
        if said != "pending" or there != case.before:
            through.append((said, case.path, case.about))
    assert not through


@pytest.mark.parametrize("number", range(len(HARMLESS)))
def test_what_steers_nothing_is_done_at_once(
    workspace: Workspace, session: Session, root: Path, number: int
) -> None:
    case = HARMLESS[number]
    file = laid(root, name=case.path)
    file.write_bytes(case.before or b"")
    assert put(workspace, session, case.path, case.after) == "applied"
    assert file.read_bytes() == case.after
    (done,) = workspace.log()
    assert not done.approved_by
    assert not done.was_unasked
    assert workspace.pending() == ()


def test_an_agent_takes_back_what_it_did_so(
    workspace: Workspace, session: Session, root: Path
) -> None:
    file = laid(root)
    assert edit(workspace, session, "package.json", *SAID).status == "applied"
    assert workspace.past(session).undo(None, dry_run=False).status == "applied"
    assert file.read_text() == PACKAGE
    assert workspace.past(session).redo(None, dry_run=False).status == "applied"


def test_what_goes_back_is_judged_as_it_is_made(
    workspace: Workspace, session: Session, root: Path
) -> None:
    file = laid(root)
    waits = edit(workspace, session, "package.json", *RUNS)
    workspace.approve(str(waits.operation), ANN)
    assert workspace.past(session).undo(None, dry_run=False).status == "pending"
    assert "postinstall" in file.read_text()


def test_what_a_merge_makes_is_judged(workspace: Workspace, session: Session, root: Path) -> None:
    file = laid(root)
    seen = read(workspace, session, "package.json")
    file.write_text(PACKAGE.replace(*RUNS))
    # Of the session's own text the rest is old; what comes of it differs from the disk in a description.
    receipt = write(workspace, session, "package.json", seen.replace(*SAID))
    assert receipt.status == "applied"
    assert file.read_text() == PACKAGE.replace(*RUNS).replace(*SAID)


def test_a_change_of_several_files_waits_for_one(
    workspace: Workspace, session: Session, root: Path
) -> None:
    laid(root)
    laid(root, name="sub/package.json")
    with workspace.draft(session, "patch_apply") as draft:
        first, second = draft.open_all(["package.json", "sub/package.json"])
        draft.put(first, PACKAGE.replace(*SAID).encode())
        draft.put(second, PACKAGE.replace(*RUNS).encode())
        assert workspace.submit(draft, "both").status == "pending"
    assert (root / "package.json").read_text() == PACKAGE


def test_what_is_proposed_already_stays_so(
    workspace: Workspace, session: Session, root: Path
) -> None:
    file = laid(root)
    edit(workspace, session, "package.json", *RUNS)
    assert edit(workspace, session, "package.json", *SAID).status == "pending"
    assert file.read_text() == PACKAGE


def test_a_link_steers_by_its_own_name(workspace: Workspace, session: Session, root: Path) -> None:
    laid(root, name="data.json")
    os.symlink("data.json", root / "package.json")
    assert edit(workspace, session, "package.json", *SAID).status == "pending"


@pytest.mark.parametrize("name", ["package.json", "sub/package.json"])
def test_a_file_that_takes_the_name_waits(
    workspace: Workspace, session: Session, root: Path, name: str
) -> None:
    laid(root, name="a.json")
    laid(root, PACKAGE.replace(*SAID), "sub/package.json")
    with workspace.draft(session, "patch_apply") as draft:
        source, target = draft.open_all(["a.json", name])
        draft.move(source, target, None, over=True)
        assert workspace.submit(draft, "move").status == "pending"


def test_other_rights_and_other_signs_still_wait(
    workspace: Workspace, session: Session, root: Path
) -> None:
    file = laid(root)
    with workspace.draft(session, "manage_files") as draft:
        draft.set_mode(draft.open("package.json"), 0o666)
        assert workspace.submit(draft, "rights").status == "pending"
    other = Session("s9", Actor("agent", "tester"))
    hidden = edit(workspace, other, "package.json", '"version"', '"version":\r "1.2.0", "mystery"')
    assert hidden.status == "pending"
    assert file.read_text() == PACKAGE


@pytest.mark.parametrize(
    "text",
    [
        '[[ask]]\nname = "mine"\npaths = ["package.json"]\nactions = ["write"]\nwhy = "x"\n',
        '[default]\nwrite = "ask"\n',
    ],
)
def test_what_a_person_wants_to_be_asked_about_waits(
    open_here: Callable[..., Workspace], session: Session, root: Path, text: str
) -> None:
    laid(root)
    receipt = edit(with_settings(open_here, text), session, "package.json", *SAID)
    assert receipt.status == "pending"


@pytest.mark.parametrize("number", range(len(BUMPS)))
def test_other_versions_wait_unless_a_person_lets_them_pass(
    open_here: Callable[..., Workspace], session: Session, root: Path, number: int
) -> None:
    case = BUMPS[number]
    laid(root, name=case.path).write_bytes(case.before or b"")
    assert put(open_here(), session, case.path, case.after) == "pending"
    free = with_settings(open_here, "[guard]\ndependency_versions = true\n")
    other = Session("s9", Actor("agent", "tester"))
    assert put(free, other, case.path, case.after) == "applied"
    assert delete(free, other, case.path).status == "pending"


def test_a_program_that_does_so_went_past_no_rule(
    workspace: Workspace, session: Session, root: Path
) -> None:
    file = laid(root)
    outside = workspace.external
    outside.resnapshot()
    file.write_text(PACKAGE.replace(*SAID))
    assert not outside.detect(session).unasked
    file.write_text(PACKAGE.replace(*RUNS))
    assert outside.detect(session).unasked
