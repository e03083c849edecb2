"""What a person says yes to is what is done: the bytes, paths, types and modes under one id."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings, parse_settings
from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError
from filepact.fs.root import Root
from tests.workspace.acting import edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.domain.operation import Proposal, Session
    from filepact.fs.staged import StagedChange
    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))
TEXT = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def preview(open_here: Callable[..., Workspace], root: Path) -> Workspace:
    (root / "a.txt").write_text(TEXT)
    return open_here("preview")


@pytest.fixture
def under(root: Path, tmp_path: Path) -> Iterator[Callable[..., Workspace]]:
    """Open the same root and journal under settings of a person."""
    opened: list[Workspace] = []

    def open_one(text: str, mode: str = "auto") -> Workspace:
        settings = parse_settings(text, name="filepact.toml") if text else Settings()
        workspace = open_workspace(
            [str(root)], state_dir=str(tmp_path / "state"), settings=settings, mode=mode
        )
        opened.append(workspace)
        return workspace

    yield open_one
    for one in opened:
        one.close()


def refused(action: Callable[[], object]) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        action()
    return caught.value


def proposed(workspace: Workspace, session: Session, old: str, new: str) -> Proposal:
    receipt = edit(workspace, session, "a.txt", old, new)
    assert receipt.status == "pending"
    return workspace.proposal(str(receipt.operation))


# -- the files have moved -----------------------------------------------------------------------


def test_a_change_whose_file_moved_is_fitted_anew_shown_and_done_only_then(
    preview: Workspace, session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    moved = TEXT.replace("line 15", "by hand")
    (root / "a.txt").write_text(moved)
    error = refused(lambda: preview.approve(shown.id, PERSON))
    assert error.code == "PROPOSAL_CHANGED"
    assert (root / "a.txt").read_text() == moved
    (fitted,) = preview.pending()
    assert error.details["proposal"] == fitted.id != shown.id
    assert error.details["diff"] == preview.diff(fitted)
    assert preview.proposal(shown.id).superseded_by == fitted.id
    preview.approve(fitted.id, PERSON)
    assert (root / "a.txt").read_text() == moved.replace("line 3\n", "LINE 3\n")
    assert preview.pending() == ()


def test_another_mode_is_another_change(preview: Workspace, session: Session, root: Path) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").chmod(0o600)
    assert refused(lambda: preview.approve(shown.id, PERSON)).code == "PROPOSAL_CHANGED"
    (fitted,) = preview.pending()
    preview.approve(fitted.id, PERSON)
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o600


def test_a_merge_of_adjacent_lines_is_shown_again(
    preview: Workspace, session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT.replace("line 4\n", "by hand\n"))
    error = refused(lambda: preview.approve(shown.id, PERSON))
    assert error.code == "PROPOSAL_CHANGED"
    assert "LINE 3" not in (root / "a.txt").read_text()


def test_of_several_files_one_that_is_as_it_should_be_is_left_out_and_the_rest_shown_again(
    preview: Workspace, session: Session, root: Path
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        first, second = draft.open_all(["b.txt", "c.txt"])
        draft.write(first, "b\n")
        draft.write(second, "c\n")
        receipt = preview.submit(draft, "both")
    (root / "b.txt").write_text("b\n")
    assert refused(lambda: preview.approve(str(receipt.operation), PERSON)).code == (
        "PROPOSAL_CHANGED"
    )
    (fitted,) = preview.pending()
    assert [path.path for path in fitted.changes.paths] == ["c.txt"]


def test_the_same_lines_changed_since_leave_the_change_waiting_under_its_id(
    preview: Workspace, session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT.replace("line 3\n", "by hand\n"))
    assert refused(lambda: preview.approve(shown.id, PERSON)).code == "STALE_FILE"
    assert preview.pending() == (shown,)
    (root / "a.txt").write_text(TEXT)
    preview.approve(shown.id, PERSON)


def test_a_folder_that_became_a_link_refuses_a_new_file_in_it(
    preview: Workspace, session: Session, root: Path
) -> None:
    (root / "one").mkdir()
    (root / "two").mkdir()
    receipt = write(preview, session, "one/new.txt", "x\n")
    (root / "one").rmdir()
    (root / "one").symlink_to("two")
    assert refused(lambda: preview.approve(str(receipt.operation), PERSON)).code == "STALE_FILE"
    assert os.listdir(root / "two") == []
    assert len(preview.pending()) == 1


def test_an_edit_that_was_allowed_cannot_ride_on_an_approval_of_another(
    workspace: Workspace, session: Session, root: Path
) -> None:
    script = root / "tool.sh"
    script.write_text("#!/bin/sh\necho hello\n\n\n\n\n\n# end\n")
    script.chmod(0o644)
    with workspace.draft(session, "patch_apply") as draft:
        draft.put(draft.open("tool.sh"), script.read_bytes().replace(b"hello", b"hi"), mode=0o755)
        shown = workspace.submit(draft, "let it run")
    assert (shown.status, shown.rule) == ("pending", "executable files")
    # From a session of its own, so that nothing of it is taken up into what waits.
    other = session.__class__("s9", session.actor)
    edit(workspace, other, "tool.sh", "# end", "echo EVIL")
    error = refused(lambda: workspace.approve(str(shown.operation), PERSON))
    assert error.code == "PROPOSAL_CHANGED"
    assert script.stat().st_mode & 0o111 == 0
    assert "+echo EVIL" in str(error.details["since"])
    (fitted,) = workspace.pending()
    assert fitted.rule == "executable files"


# -- what the agent goes on with ----------------------------------------------------------------


def test_what_was_seen_under_an_id_cannot_grow_under_it(
    preview: Workspace, session: Session, root: Path
) -> None:
    seen = proposed(preview, session, "line 3\n", "LINE 3\n")
    grown = proposed(preview, session, "line 9\n", "EVIL\n")
    error = refused(lambda: preview.approve(seen.id, PERSON))
    assert (error.code, error.details["superseded_by"]) == ("NO_CHANGE", grown.id)
    assert (root / "a.txt").read_text() == TEXT


def test_the_author_goes_on_from_what_was_fitted_and_hears_of_it(
    preview: Workspace,
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT.replace("line 15", "by hand"))
    person = open_here()
    assert refused(lambda: person.approve(shown.id, PERSON)).code == "PROPOSAL_CHANGED"
    (fitted,) = person.pending()
    (said,) = preview.events(session)
    assert (said.key, fitted.id in said.text) == (shown.id, True)
    preview.acknowledge(session, [said])
    assert preview.events(session) == ()
    assert "by hand" in read(preview, session, "a.txt")
    assert "LINE 3" in read(preview, session, "a.txt")
    person.approve(fitted.id, PERSON)
    (said,) = preview.events(session)
    assert said.key == fitted.id


def test_after_a_no_to_what_was_fitted_the_author_knows_what_it_knew_before(
    preview: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    known = read(preview, session, "a.txt")
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT.replace("line 15", "by hand"))
    person = open_here()
    refused(lambda: person.approve(shown.id, PERSON))
    (fitted,) = person.pending()
    person.reject(fitted.id, PERSON)
    # Made from what was read before anything was proposed: the person's line is kept.
    write(preview, session, "a.txt", known.replace("line 7\n", "LINE 7\n"))
    (waiting,) = preview.pending()
    preview.approve(waiting.id, PERSON)
    assert (root / "a.txt").read_text() == TEXT.replace("line 15", "by hand").replace(
        "line 7\n", "LINE 7\n"
    )


# -- rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agents", ["", 'agents = ["test*"]'])
def test_a_denial_that_came_later_counts_for_the_agent_that_proposed(
    under: Callable[..., Workspace], session: Session, root: Path, agents: str
) -> None:
    (root / "a.txt").write_text(TEXT)
    shown = proposed(under("", "preview"), session, "line 3\n", "LINE 3\n")
    person = under(f'[[deny]]\npaths = ["a.txt"]\nwhy = "no"\n{agents}\n')
    error = refused(lambda: person.approve(shown.id, PERSON))
    assert (error.code, error.details["path"]) == ("PATH_BLOCKED", "a.txt")
    assert (root / "a.txt").read_text() == TEXT
    assert person.pending() == (shown,)
    under("").approve(shown.id, PERSON)


def test_a_denial_for_another_agent_does_not_count(
    under: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text(TEXT)
    shown = proposed(under("", "preview"), session, "line 3\n", "LINE 3\n")
    under('[[deny]]\npaths = ["a.txt"]\nwhy = "no"\nagents = ["other"]\n').approve(shown.id, PERSON)
    assert "LINE 3" in (root / "a.txt").read_text()


def test_what_shows_only_on_the_merged_text_is_named_when_it_is_shown_again(
    under: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text(TEXT)
    shown = proposed(under("", "preview"), session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT + "more\n")
    person = under('[[ask]]\nname = "later"\npaths = ["a.txt"]\nwhy = "look"\n')
    refused(lambda: person.approve(shown.id, PERSON))
    (fitted,) = person.pending()
    assert fitted.rules == ("preview mode", "later")


def test_a_private_key_that_somebody_put_into_the_file_refuses_the_approval(
    preview: Workspace, session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    words = ("BEGIN", "PRIVATE KEY"), ("END", "PRIVATE KEY")
    begin, end = (f"-----{' '.join(pair)}-----\n" for pair in words)
    (root / "a.txt").write_text(f"{TEXT}{begin}{'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC' * 2}\n{end}")
    assert refused(lambda: preview.approve(shown.id, PERSON)).code == "PATH_BLOCKED"
    assert preview.pending() == (shown,)


def test_a_name_that_became_protected_hides_what_moved_from_the_agent_alone(
    under: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text(TEXT)
    shown = proposed(under("", "preview"), session, "line 3\n", "LINE 3\n")
    person = under(
        '[[deny]]\nactions = ["read"]\npaths = ["a.txt"]\nwhy = "secret"\nagents = ["test*"]\n'
    )
    (root / "a.txt").write_text(TEXT.replace("line 3\n", "SECRET\n"))
    told = refused(lambda: person.approve(shown.id, PERSON, to_agent=True))
    assert "SECRET" not in told.report() + repr(told.details)
    assert "SECRET" in refused(lambda: person.approve(shown.id, PERSON)).report()
    (root / "a.txt").write_text(TEXT.replace("line 4\n", "line 4\n\n\nSECRET\n\n\n"))
    told = refused(lambda: person.approve(shown.id, PERSON, to_agent=True))
    assert told.code == "PROPOSAL_CHANGED"
    assert "SECRET" not in told.report() + repr(told.details)


# -- once ---------------------------------------------------------------------------------------


def test_many_approvals_at_once_do_it_once(
    preview: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    people, start = [open_here() for _ in range(6)], threading.Barrier(6)
    ends: list[str] = []

    def say_yes(person: Workspace) -> None:
        start.wait()
        try:
            ends.append(person.approve(shown.id, PERSON).status)
        except FilepactError as error:
            ends.append(error.code)

    threads = [threading.Thread(target=say_yes, args=(one,)) for one in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["NO_CHANGE"] * 5 + ["applied"]
    assert len(preview.log()) == 1


def test_an_approval_counts_once_also_when_what_it_did_was_taken_back(
    preview: Workspace, session: Session, root: Path
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    preview.approve(shown.id, PERSON)
    person = session.__class__("p", PERSON.actor)
    preview.undo(person, shown.id)
    assert refused(lambda: preview.approve(shown.id, PERSON)).code == "NO_CHANGE"
    assert (root / "a.txt").read_text() == TEXT
    preview.redo(person)
    assert "LINE 3" in (root / "a.txt").read_text()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_all_ids_begin_with_names_none(
    preview: Workspace, session: Session, length: int
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    for decide in (preview.approve, preview.reject):
        assert refused(lambda d=decide: d(shown.id[:length], PERSON)).code == "INVALID_PARAMS"
    preview.approve(shown.id[:4], PERSON)


# -- it ends as done, or waits again ------------------------------------------------------------


def test_a_save_in_the_last_moment_leaves_the_change_waiting(
    preview: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    moved = TEXT.replace("line 15", "by hand")
    begin = preview._store.begin

    def saved_meanwhile(*arguments: object) -> object:
        begun = begin(*arguments)
        (root / "a.txt").write_text(moved)
        return begun

    monkeypatch.setattr(preview._store, "begin", saved_meanwhile)
    error = refused(lambda: preview.approve(shown.id, PERSON))
    monkeypatch.undo()
    assert error.code == "PROPOSAL_CHANGED"
    assert (root / "a.txt").read_text() == moved
    (fitted,) = preview.pending()
    assert [one.text for one in preview.events(session) if "applied" in one.text] == []
    preview.approve(fitted.id, PERSON)
    assert (root / "a.txt").read_text() == moved.replace("line 3\n", "LINE 3\n")


def test_what_a_crash_cut_off_waits_again_under_its_id_and_the_agent_hears_nothing_false(
    preview: Workspace,
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, "a\n")
        draft.write(second, "b\n")
        shown = str(preview.submit(draft, "both").operation)
    person = open_here()

    class CutOff(BaseException):
        pass

    apply = Root.apply
    done: list[object] = []

    def cut_off(held: Root, one: StagedChange) -> None:
        if done:
            raise CutOff
        done.append(one)
        apply(held, one)

    monkeypatch.setattr(Root, "apply", cut_off)
    with pytest.raises(CutOff):
        person.approve(shown, PERSON)
    monkeypatch.undo()
    assert (root / "a.txt").read_text() == "a\n"
    assert preview.events(session) == (), "nobody knows yet what becomes of it"
    later = open_here()
    assert [one.id for one in later.recovered] == [shown]
    assert (root / "a.txt").read_text() == TEXT
    assert [one.id for one in later.pending()] == [shown]
    assert preview.events(session) == ()
    assert read(preview, session, "b.txt") == "b\n"
    later.approve(shown, PERSON)
    assert (root / "b.txt").read_text() == "b\n"
    (said,) = preview.events(session)
    assert said.key == shown
    assert [one.state for one in later.log()] == ["applied"]


def test_what_was_done_in_part_and_cannot_be_taken_back_waits_once_more(
    preview: Workspace,
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, TEXT.replace("line 3\n", "LINE 3\n"))
        draft.write(second, "b\n")
        shown = str(preview.submit(draft, "both").operation)
    person = open_here()
    apply = Root.apply

    def fail(held: Root, one: StagedChange) -> None:
        if (root / "a.txt").read_text() == TEXT:
            apply(held, one)
            return
        # Another program is faster with the file that was done, and the disk refuses the next.
        (root / "a.txt").write_text("by hand\n")
        (root / "b.txt").mkdir(exist_ok=True)
        apply(held, one)

    monkeypatch.setattr(Root, "apply", fail)
    error = refused(lambda: person.approve(shown, PERSON))
    monkeypatch.undo()
    (again,) = person.pending()
    assert again.id == error.details["proposal"] != shown
    assert again.changes.exact == preview.proposal(shown).changes.exact
    (said,) = preview.events(session)
    assert said.key == shown
    assert "applied" not in said.text
    (root / "a.txt").write_text(TEXT)
    (root / "b.txt").rmdir()
    person.approve(again.id, PERSON)
    assert (root / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize("room", range(0, 24, 3))
def test_an_approval_on_a_full_disk_is_done_or_waits_again(
    preview: Workspace,
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
    room: int,
) -> None:
    other = "".join(f"{number * 7919 % 10_007}\n" for number in range(9_000))
    with preview.draft(session, "patch_apply") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, "a\n")
        draft.write(second, other)
        shown = str(preview.submit(draft, "both").operation)
    # What fits the file then has to be stored as well.
    (root / "a.txt").write_text(TEXT + "more\n") if room % 2 else None
    person = open_here()
    journal = person._store._database._connection
    journal.pragma("max_page_count", journal.pragma("page_count") + room)
    with suppress(FilepactError):
        person.approve(shown, PERSON)
    later = open_here()
    waiting = later.pending()
    if (root / "b.txt").exists():
        assert waiting == ()
        assert [one.state for one in later.log()] == ["applied"]
        assert (root / "a.txt").read_text() == "a\n"
    else:
        assert len(waiting) == 1
        later.approve(waiting[0].id, PERSON)
        assert (root / "b.txt").read_text() == other


# -- how much waits, and for how long -----------------------------------------------------------


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def noise(seed: int, size: int) -> str:
    return random.Random(seed).randbytes(size // 2).hex()


def test_what_waited_for_too_long_expires_with_its_contents(
    under: Callable[..., Workspace],
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = under("", "preview")
    write(agent, session, "small.txt", "x\n")
    before = bytes_of(tmp_path / "state")
    shown = str(write(agent, session, "large.txt", noise(1, 3_000_000)).operation)
    assert bytes_of(tmp_path / "state") > before + 1_000_000
    person = under("[proposals]\ndays = 3\n")
    assert len(person.pending()) == 2
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 3 * 86_400 + 60)
    error = refused(lambda: person.approve(shown, PERSON))
    assert error.code == "PROPOSAL_EXPIRED"
    assert refused(lambda: person.reject(shown, PERSON)).code == "PROPOSAL_EXPIRED"
    assert person.pending() == ()
    assert bytes_of(tmp_path / "state") < before + 200_000
    assert person.proposal(shown).state == "expired"
    assert {one.key for one in agent.events(session)} >= {shown}
    assert refused(lambda: read(agent, session, "large.txt")).code == "NOT_FOUND"


@pytest.mark.parametrize("how", ["reject", "withdraw", "supersede"])
def test_what_nobody_will_do_any_more_takes_no_room(
    preview: Workspace, session: Session, tmp_path: Path, how: str
) -> None:
    write(preview, session, "small.txt", "x\n")
    preview.reject(preview.pending()[0].id, PERSON)
    before = bytes_of(tmp_path / "state")
    for seed in range(3):
        shown = write(preview, session, "large.txt", noise(seed, 4_000_000))
        assert bytes_of(tmp_path / "state") > before + 1_500_000
        if how == "reject":
            preview.reject(str(shown.operation), PERSON)
        elif how == "withdraw":
            preview.past(session).undo(shown.operation, dry_run=False)
    if how == "supersede":
        assert bytes_of(tmp_path / "state") < before + 3_000_000
        (last,) = preview.pending()
        assert noise(2, 4_000_000)[:40] in preview.diff(last)
        preview.reject(last.id, PERSON)
    assert bytes_of(tmp_path / "state") < before + 200_000


def test_what_others_still_need_is_kept_when_a_proposal_is_refused(
    preview: Workspace, session: Session, other: Session, root: Path
) -> None:
    text = noise(5, 300_000)
    first = write(preview, session, "one.txt", text)
    second = write(preview, other, "two.txt", text)
    preview.reject(str(first.operation), PERSON)
    preview.approve(str(second.operation), PERSON)
    third = write(preview, session, "two.txt", f"{text}\nmore\n")
    preview.reject(str(third.operation), PERSON)
    preview.undo(session.__class__("p", PERSON.actor))
    assert not (root / "two.txt").exists()
    preview.redo(session.__class__("p", PERSON.actor))
    assert (root / "two.txt").read_text() == text


def test_a_refused_proposal_is_still_told_of_without_its_contents(
    preview: Workspace, session: Session
) -> None:
    shown = proposed(preview, session, "line 3\n", "LINE 3\n")
    preview.reject(shown.id, Approval(PERSON.actor, "not this"))
    gone = preview.proposal(shown.id)
    assert (gone.state, gone.reason) == ("rejected", "not this")
    assert "LINE 3" not in preview.diff(gone)
    assert "a.txt" in preview.diff(gone)
    assert "LINE 3" not in preview.past(session).diff(gone)
    assert refused(lambda: preview.patch(gone)).code == "NOT_FOUND"


def test_only_so_many_of_a_session_wait_and_the_agent_is_told(
    under: Callable[..., Workspace], session: Session, other: Session, root: Path
) -> None:
    agent = under("[proposals]\ncount = 2\n", "preview")
    write(agent, session, "one.txt", "1\n")
    write(agent, session, "two.txt", "2\n")
    assert refused(lambda: write(agent, session, "three.txt", "3\n")).code == "PENDING_FULL"
    assert [one.summary for one in agent.pending()] == ["write one.txt", "write two.txt"]
    assert write(agent, other, "four.txt", "4\n").status == "pending"
    edit(agent, session, "two.txt", "2", "two")
    agent.reject(agent.pending()[0].id, PERSON)
    assert write(agent, session, "three.txt", "3\n").status == "pending"
    # What does not have to wait is done all the same.
    assert write(under("[proposals]\ncount = 1\n"), session, "four.txt", "4\n").status == "applied"


def test_only_so_much_waits_in_one_root(
    under: Callable[..., Workspace], session: Session, root: Path, tmp_path: Path
) -> None:
    agent = under("[proposals]\nmegabytes = 3\n", "preview")
    write(agent, session, "one.txt", noise(1, 2_000_000))
    before = bytes_of(tmp_path / "state")
    for seed in range(2, 8):
        error = refused(lambda s=seed: write(agent, session, "two.txt", noise(s, 2_000_000)))
        assert error.code == "PENDING_FULL"
    assert bytes_of(tmp_path / "state") < before + 200_000
    write(agent, session, "one.txt", noise(9, 2_500_000))
    write(agent, session, "two.txt", "small\n")
    assert len(agent.pending()) == 2


def test_what_fits_a_file_that_moved_waits_however_much_waits(
    under: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text(TEXT)
    agent = under("[proposals]\ncount = 1\n", "preview")
    shown = proposed(agent, session, "line 3\n", "LINE 3\n")
    (root / "a.txt").write_text(TEXT + "more\n")
    assert refused(lambda: agent.approve(shown.id, PERSON)).code == "PROPOSAL_CHANGED"
    assert len(agent.pending()) == 1


def test_all_that_waits_is_refused_together_or_not_at_all(
    preview: Workspace, session: Session, root: Path
) -> None:
    for number in range(30):
        write(preview, session, f"n{number}.txt", "x\n")
    waiting = preview.pending()
    preview.reject(waiting[7].id, PERSON)
    assert refused(lambda: preview.reject_all(waiting, PERSON)).code == "NO_CHANGE"
    assert len(preview.pending()) == 29
    preview.reject_all(preview.pending(), Approval(PERSON.actor, "too many"))
    assert preview.pending() == ()
    assert {preview.proposal(one.id).reason for one in waiting} == {"", "too many"}
