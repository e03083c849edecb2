"""Undo of what people think in: a turn, a session, a time, files; and what others did meanwhile stays."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import BY_NOBODY, BY_SEVERAL, Actor, Session
from filepact.errors import FilepactError, NoChangeError
from filepact.workspace import selection
from filepact.workspace.selection import NEWEST, Selection
from filepact.workspace.undo_plan import plan_selection
from tests.hostile.sweeps import often
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

ROBOT = Session("robot-1", Actor("agent", "robot"))
OTHER = Session("other-1", Actor("agent", "other"))
ADA = Session("cli-1", Actor("person", "ada"))
GRACE = Session("cli-2", Actor("person", "grace"))
LINES = "".join(f"line {number}\n" for number in range(40))


def in_turn(name: str, session: Session = ROBOT) -> Session:
    return replace(session, turn=name)


def refused(call: Callable[[], object]) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        call()
    return caught.value


def undo(workspace: Workspace, **given: object) -> str:
    partly = bool(given.pop("partly", False))
    receipt = workspace.undo_selected(ADA, Selection(**given), partly=partly)  # type: ignore[arg-type]
    assert receipt.operation is not None
    return receipt.operation


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_of_a_turn_in_which_nothing_was_recorded_nothing_else_goes_back(
    workspace: Workspace, root: Path
) -> None:
    write(workspace, in_turn("o1", OTHER), "o1", "1\n")
    workspace.asked.turn(in_turn("r1"))
    # The host names its turn with the first call only, and the calls of our tools come from elsewhere.
    write(workspace, in_turn("named later"), "r1", "1\n")
    undo(workspace, turn=NEWEST)
    workspace.redo(ADA)
    server = Session("mcp-1", Actor("agent", "robot-mcp-client"), turn="r2")
    workspace.asked.turn(in_turn("r2"))
    write(workspace, server, "r2", "1\n")
    assert workspace.undo_selected(ADA, Selection(turn=NEWEST), dry_run=True).files[0].path == "r2"
    workspace.asked.turn(in_turn("r3"))
    # What an earlier turn does late is none of this one.
    write(workspace, in_turn("named later"), "late", "1\n")
    for said in ({}, {"agent": "robot"}, {"session": ROBOT}):
        error = refused(lambda said=said: undo(workspace, turn=NEWEST, **said))  # type: ignore[misc]
        assert error.code == "NO_CHANGE"
        assert "filepact undo --turn" in error.hint
    assert sorted(files(root)) == ["late", "o1", "r1", "r2"]
    assert workspace.asked.questions() == workspace.asked.questions(reads=True) == ()
    write(workspace, in_turn("o2", OTHER), "o2", "1\n")
    undo(workspace, turn=NEWEST)
    assert "o2" not in files(root)
    undo(workspace, turn=NEWEST, agent="other")
    undo(workspace, turn="r2")
    undo(workspace, turn="named later")
    assert files(root) == {}


def test_the_newest_turn_of_an_agent_or_session_is_its_own_newest(
    workspace: Workspace, root: Path
) -> None:
    theirs = replace(ROBOT, id="robot-2")
    server = Session("mcp-1", Actor("agent", "robot-mcp-client"), turn="r2")
    for session, name in (
        (in_turn("r1"), "r1"),
        (in_turn("r2", theirs), "r2"),
        (server, "by-our-tools"),
        (in_turn("o1", OTHER), "o1"),
    ):
        write(workspace, session, f"{name}.txt", "1\n")
    assert (
        refused(lambda: workspace.undo_selected(ADA, Selection(turn="r1", agent="other"))).code
        == "NO_CHANGE"
    )
    undo(workspace, turn=NEWEST, agent="robot")
    assert {*files(root)} >= {"r1.txt", "o1.txt"}
    assert not {*files(root)} & {"r2.txt", "by-our-tools.txt"}
    undo(workspace, turn=NEWEST, session=ROBOT)
    assert "r1.txt" not in files(root)
    error = refused(lambda: workspace.undo_selected(ADA, Selection(turn=NEWEST, agent="robot")))
    assert error.code == "NO_CHANGE"
    # A number is that of the list of all turns.
    error = refused(lambda: workspace.undo_selected(ADA, Selection(turn="2", agent="other")))
    assert error.code == "NO_CHANGE"
    undo(workspace, turn="1", agent="other")
    assert "o1.txt" not in files(root)


def test_what_was_done_meanwhile_and_stays_is_named(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Session("mcp-1", Actor("agent", "robot-mcp-client"))
    several = Session("several", Actor("agent", "other or robot"))
    nobody = Session("nobody", Actor("program", "unknown"))
    workspace.external.snapshot()

    def seen(session: Session, tool: str, name: str) -> str:
        (root / name).write_text("1\n")
        found = workspace.external.detect(session, tool=tool).operation
        assert found is not None
        return found.id

    seen(nobody, BY_NOBODY, "before.txt")
    write(workspace, in_turn("r1"), "a.txt", "1\n")
    named = [seen(nobody, BY_NOBODY, "mine.txt"), seen(several, BY_SEVERAL, "any.txt")]
    write(workspace, server, "own.txt", "1\n")
    named.append(workspace.log(limit=1)[0].id)
    write(workspace, OTHER, "other.txt", "1\n")
    write(workspace, in_turn("r1"), "b.txt", "1\n")
    late = seen(nobody, BY_NOBODY, "late.txt")
    write(workspace, in_turn("r2"), "c.txt", "1\n")
    seen(nobody, BY_NOBODY, "after.txt")
    receipt = workspace.undo_selected(ADA, Selection(turn="r1"), dry_run=True)
    made = {**dict(zip(named, ("mine.txt", "any.txt", "own.txt"), strict=True)), late: "late.txt"}
    for one, name in made.items():
        (note,) = [note for note in receipt.notes if one in note]
        assert f": {name} (`filepact undo {one}` does)." in note
    assert len(receipt.notes) == 4
    with monkeypatch.context() as patch:
        # An agent is not told of a name that it may not know of.
        patch.setattr(type(workspace.guard), "hides", lambda _self, one, *_: one.path == "mine.txt")
        plan = plan_selection(workspace._store, workspace._root_ids(), Selection(turn="r1"))
        notes = workspace._plans.carry_out(plan, OTHER, dry_run=True).notes
        assert ("mine.txt" in str(notes), "any.txt" in str(notes), len(notes)) == (False, True, 4)
        patch.setattr(selection, "_BESIDE", 3)
        receipt = workspace.undo_selected(ADA, Selection(turn="r1"), dry_run=True)
        left = [one for one in (*named, late) if not any(one in note for note in receipt.notes)]
        assert (left, len(receipt.notes)) == ([named[0]], 4)
    workspace.undo(ADA, late)
    receipt = workspace.undo_selected(ADA, Selection(turn="r1"))
    assert all(one in note for one, note in zip(reversed(named), receipt.notes, strict=True))
    assert {*files(root)} >= {"mine.txt", "any.txt", "own.txt", "other.txt", "before.txt"}
    assert not {*files(root)} & {"a.txt", "b.txt"}
    for one in named:
        workspace.undo(ADA, one)
    assert not {*files(root)} & {"mine.txt", "any.txt", "own.txt"}


def test_a_turn_is_taken_back_as_one_operation_and_comes_back_as_one(
    workspace: Workspace, root: Path
) -> None:
    (root / "old.txt").write_text("old\n")
    (root / "a.txt").write_text(LINES)
    write(workspace, in_turn("turn-a"), "first.txt", "1\n")
    before = files(root)
    turn = in_turn("turn-b")
    edit(workspace, turn, "a.txt", "line 3\n", "three\n")
    edit(workspace, turn, "a.txt", "line 30\n", "thirty\n")
    write(workspace, turn, "deep/er/new.txt", "new\n")
    delete(workspace, turn, "old.txt")
    (root / "a.txt").write_text((root / "a.txt").read_text().replace("line 15\n", "by hand\n"))
    after = files(root)
    seq = workspace.log(limit=1)[0].seq

    done = undo(workspace, turn=NEWEST)
    assert files(root) == before | {"a.txt": LINES.replace("line 15\n", "by hand\n")}
    assert not (root / "deep").exists()
    [operation] = workspace.log(limit=1)
    assert (operation.id, operation.kind, operation.seq) == (done, "undo", seq + 1)
    assert [one.undone_by for one in workspace.log(limit=5)[1:]] == [done] * 4
    workspace.redo(ADA)
    assert files(root) == after
    assert [one.undone_by for one in workspace.log(limit=6)[2:]] == [None] * 4
    undo(workspace, turn="2")
    assert "first.txt" not in files(root)
    assert refused(lambda: undo(workspace, turn="2")).code == "NO_CHANGE"
    undo(workspace, turn="turn-b")
    assert refused(lambda: undo(workspace, turn=NEWEST)).code == "NO_CHANGE"
    assert refused(lambda: undo(workspace, turn="turn")).code == "INVALID_PARAMS"
    assert refused(lambda: undo(workspace, turn="3")).code == "NOT_FOUND"
    assert refused(lambda: undo(workspace, turn="nobody")).code == "NOT_FOUND"


def test_all_that_is_said_has_to_hold(workspace: Workspace, root: Path) -> None:
    for session, name in ((ROBOT, "src/a"), (ROBOT, "b"), (OTHER, "src/c"), (ADA, "src/d")):
        write(workspace, session, name, "1\n")
    at = workspace.log(limit=1)[0].created
    one = workspace.log(limit=2)[1].id
    here = workspace.guard.roots[0].path
    assert refused(lambda: undo(workspace, session=ROBOT, ids=(one,))).code == "NO_CHANGE"
    undo(workspace, session=ROBOT, places=((here, "src"),))
    assert list(files(root)) == ["b", "src/c", "src/d"]
    undo(workspace, agent="other")
    assert list(files(root)) == ["b", "src/d"]
    # What a person took back is theirs, and stays; if that goes too, all is as it was before that moment.
    assert refused(lambda: undo(workspace, since=at)).code == "NO_CHANGE"
    undo(workspace, since=at, everybody=True)
    assert list(files(root)) == ["b", "src/a", "src/c"]


def test_files_alone_go_back_one_step_each(workspace: Workspace, root: Path) -> None:
    here = workspace.guard.roots[0].path
    with workspace.draft(ROBOT, "patch_apply") as draft:
        for target in draft.open_all(["a", "b"]):
            draft.write(target, "1\n")
        workspace.submit(draft, "two files")
    write(workspace, OTHER, "a", "2\n")
    undo(workspace, places=((here, "a"),))
    assert files(root) == {"a": "1\n", "b": "1\n"}
    undo(workspace, places=((here, "a"),))
    assert files(root) == {"b": "1\n"}
    # What is left of the first operation is in force, and is all that is taken back now.
    write(workspace, ADA, "a", "mine\n")
    assert refused(lambda: undo(workspace, places=((here, "nothing"),))).code == "NO_CHANGE"
    undo(workspace, session=ROBOT)
    assert files(root) == {"a": "mine\n"}
    workspace.redo(ADA)
    assert files(root) == {"a": "mine\n", "b": "1\n"}


def test_a_folder_goes_though_what_was_made_in_it_was_removed_again_and_not_all_goes_back(
    workspace: Workspace, root: Path
) -> None:
    (root / "a").write_text("a\n")
    with workspace.draft(ROBOT, "patch_apply") as draft:
        for target in draft.open_all(["a", "c", "made/b"]):
            draft.write(target, "1\n")
        workspace.submit(draft, "three files")
    delete(workspace, ROBOT, "made/b")
    undo(workspace, places=((workspace.guard.roots[0].path, "c"),))
    assert sorted(one.name for one in root.iterdir()) == ["a", "made"]  # That was not asked for.
    workspace.redo(ADA)
    (root / "a").write_text("mine\n")
    undo(workspace, session=ROBOT, partly=True)
    assert [(one.name, one.read_text()) for one in root.iterdir()] == [("a", "mine\n")]


def test_an_empty_folder_that_was_moved_away_and_made_anew_for_a_file_stays(
    workspace: Workspace, root: Path
) -> None:
    (root / "old").mkdir()
    external = workspace.external
    external.resnapshot()
    (root / "old").rename(root / "new")
    external.detect(ROBOT)
    (root / "old").mkdir()
    (root / "old/file").write_text("1\n")
    external.detect(ROBOT)
    undo(workspace, session=ROBOT)
    assert [path.name for path in root.iterdir()] == ["old"]
    assert [*(root / "old").iterdir()] == []


def test_conflicts_are_told_together_and_nothing_is_done_unless_partly(
    workspace: Workspace, root: Path
) -> None:
    for name in ("a", "b", "c"):
        write(workspace, ROBOT, name, f"{name}\n")
    (root / "a").write_text("mine\n")
    (root / "b").write_text("mine too\n")
    error = refused(lambda: undo(workspace, session=ROBOT))
    assert error.code == "STALE_FILE"
    assert [one[0] for one in error.details["conflicts"]] == ["a", "b"]  # type: ignore[union-attr,index]
    assert files(root) == {"a": "mine\n", "b": "mine too\n", "c": "c\n"}
    # A bare `undo --partly` would take back the newest operation, whatever was meant.
    assert "The same with `--partly`" in error.hint
    assert "undo --partly" not in error.hint
    here = workspace.guard.roots[0].path
    alone = refused(lambda: undo(workspace, places=((here, "a"),)))
    both = refused(lambda: undo(workspace, places=((here, "a"), (here, "b"))))
    assert both.hint == alone.hint
    undo(workspace, session=ROBOT, partly=True)
    assert files(root) == {"a": "mine\n", "b": "mine too\n"}
    assert [one.undone_by is None for one in workspace.log(limit=4)[1:]] == [False, True, True]
    (root / "a").write_text("a\n")
    (root / "b").unlink()
    undo(workspace, session=ROBOT)
    assert files(root) == {}


def test_a_file_that_somebody_removed_and_made_anew_holds_nothing_of_what_goes_back(
    workspace: Workspace, root: Path
) -> None:
    """Also where it has the same lines: a stash that was popped has, and a person who has written them."""
    write(workspace, ADA, "a", LINES)
    write(workspace, ADA, "b", LINES)
    edit(workspace, ROBOT, "a", "line 3\n", "line 3\nrobot\n")
    write(workspace, ROBOT, "c", "1\n")
    robots = (root / "a").read_text()
    delete(workspace, GRACE, "a")
    write(workspace, GRACE, "a", f"{robots}more\n")
    write(workspace, GRACE, "b", "of another\n")
    before = files(root)
    error = refused(lambda: undo(workspace, session=ROBOT))
    assert error.code == "STALE_FILE"
    assert "a: somebody removed it meanwhile and made it anew" in error.message
    assert "--partly" in error.hint
    assert files(root) == before
    undo(workspace, session=ROBOT, partly=True)
    assert files(root) == {name: text for name, text in before.items() if name != "c"}


def test_a_file_that_was_removed_and_came_back_as_it_was_goes_back(
    workspace: Workspace, root: Path
) -> None:
    write(workspace, ADA, "a", LINES)
    edit(workspace, ROBOT, "a", "line 3\n", "line 3\nrobot\n")
    robots = (root / "a").read_text()
    delete(workspace, GRACE, "a")
    write(workspace, GRACE, "a", robots)
    undo(workspace, session=ROBOT)
    assert files(root) == {"a": LINES}


def test_where_a_file_was_made_anew_between_two_changes_the_first_is_gone(
    workspace: Workspace, root: Path
) -> None:
    write(workspace, ADA, "a", LINES)
    edit(workspace, ROBOT, "a", "line 3\n", "line 3\nrobot\n")
    graces = (root / "a").read_text() + "more\n"
    delete(workspace, GRACE, "a")
    write(workspace, GRACE, "a", graces)
    edit(workspace, replace(ROBOT, id="robot-2"), "a", "line 30\n", "line 30\nrobot too\n")
    before = files(root)
    error = refused(lambda: undo(workspace, agent="robot"))
    assert "a: somebody removed it meanwhile and made it anew" in error.message
    assert files(root) == before
    newest = workspace.log()[0]
    undo(workspace, ids=(newest.id,))
    assert files(root) == {"a": graces}


def test_what_a_session_undid_itself_stays_undone_and_a_foreign_undo_is_taken_back(
    workspace: Workspace, root: Path
) -> None:
    write(workspace, ADA, "ada", "1\n")
    theirs = workspace.log(limit=1)[0].id
    write(workspace, ROBOT, "own", "1\n")
    workspace.undo(ROBOT)
    workspace.undo(ROBOT, theirs)
    write(workspace, ROBOT, "more", "1\n")
    assert files(root) == {"more": "1\n"}
    undo(workspace, session=ROBOT)
    assert files(root) == {"ada": "1\n"}
    assert workspace.operation(theirs).undone_by is None
    workspace.redo(ADA)
    assert files(root) == {"more": "1\n"}
    assert workspace.operation(theirs).undone_by is not None
    workspace.undo(ADA)
    write(workspace, ADA, "ada", "2\n")


def test_a_redo_of_another_session_is_taken_back_with_it(workspace: Workspace, root: Path) -> None:
    write(workspace, ADA, "ada", "1\n")
    theirs = workspace.log(limit=1)[0].id
    workspace.undo(ADA, theirs)
    workspace.redo(ROBOT)
    undo(workspace, session=ROBOT)
    assert files(root) == {}
    assert workspace.operation(theirs).undone_by is not None


def test_everything_goes_back_to_before_an_operation(workspace: Workspace, root: Path) -> None:
    write(workspace, ROBOT, "a", "1\n")
    write(workspace, ROBOT, "a", "2\n")
    second = workspace.log(limit=1)[0].id
    write(workspace, OTHER, "b", "1\n")
    # Two agents worked since then, and nobody said whose work is meant.
    assert refused(lambda: undo(workspace, before=second)).code == "INVALID_PARAMS"
    undo(workspace, before=second, everybody=True)
    assert files(root) == {"a": "1\n"}
    assert refused(lambda: undo(workspace, before="c0000")).code == "NOT_FOUND"


def test_an_agent_takes_back_its_own_turn_and_no_other(workspace: Workspace, root: Path) -> None:
    write(workspace, in_turn("turn-a"), "a", "1\n")
    write(workspace, in_turn("turn-b", OTHER), "b", "1\n")
    mine = in_turn("turn-c")
    write(workspace, mine, "c", "1\n")
    workspace.past(mine).undo("turn", dry_run=False)
    assert files(root) == {"a": "1\n", "b": "1\n"}
    workspace.past(mine).undo("session", dry_run=False)
    assert files(root) == {"b": "1\n"}
    assert (
        refused(lambda: workspace.past(ROBOT).undo("turn", dry_run=False)).code == "INVALID_PARAMS"
    )


SLOTS = (3, 10, 17, 24, 31, 38)


class Model:
    """Files of forty lines; every session writes to lines of its own, and makes files of its own."""

    def __init__(self, root: Path, names: list[str]) -> None:
        self.slots = {(name, slot): f"line {slot}" for name in names for slot in SLOTS}
        self.made: dict[str, str] = {}
        for name in names:
            (root / name).write_text(self.text(name))

    def text(self, name: str) -> str:
        return "".join(f"{self.slots.get((name, at), f'line {at}')}\n" for at in range(40))

    def files(self) -> dict[str, str]:
        return {name: self.text(name) for name, _ in self.slots} | self.made


@pytest.mark.parametrize("seed", range(often(3, 6)))
@pytest.mark.slow(after=2)
def test_undo_of_a_session_is_the_start_with_what_all_others_did(
    workspace: Workspace, root: Path, seed: int
) -> None:
    choose = random.Random(seed)
    model = Model(root, ["a", "b", "c"])
    mine = Model(root, ["a", "b", "c"])  # what the others have done
    for step in range(choose.randint(5, 14)):
        name, kind = choose.choice("abc"), choose.randrange(6)
        robot = choose.random() < 0.6
        slot = choose.choice(SLOTS[:3] if robot else SLOTS[3:])
        session = in_turn(f"turn-{step // 4}") if robot else choose.choice((OTHER, None))
        new = f"step {step}"
        if kind < 4:
            old = model.slots[name, slot]
            if session is None:
                path = root / name
                path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))
            else:
                edit(workspace, session, name, f"{old}\n", f"{new}\n")
            for one in (model,) if robot else (model, mine):
                one.slots[name, slot] = new
        elif kind == 4 and session is not None:
            write(workspace, session, f"new-{step}", "made\n")
            for one in (model,) if robot else (model, mine):
                one.made[f"new-{step}"] = "made\n"
        elif robot and any(one.session.id == ROBOT.id for one in workspace.log()):
            with suppress(NoChangeError):
                workspace.past(ROBOT).undo(None, dry_run=False)
                workspace.past(ROBOT).redo(None, dry_run=False)
        assert files(root) == model.files()
    start = files(root)
    if model.files() == mine.files():
        return
    undo(workspace, session=ROBOT)
    assert files(root) == mine.files()
    workspace.redo(ADA)
    assert files(root) == start


def test_a_name_of_a_turn_that_is_whole_or_long_enough_is_found(
    workspace: Workspace, root: Path
) -> None:
    for turn in ("turn-of-monday", "turn-of-tuesday"):
        write(workspace, in_turn(turn), f"{turn}.txt", "x\n")
    assert refused(lambda: undo(workspace, turn="turn-of-")).code == "INVALID_PARAMS"
    assert refused(lambda: undo(workspace, turn="turn-of-friday")).code == "NOT_FOUND"
    undo(workspace, turn="turn-of-m")
    undo(workspace, turn="turn-of-tuesday")
    assert files(root) == {}


def test_what_people_do_with_their_editors_is_not_taken_back_by_a_time(
    workspace: Workspace, root: Path
) -> None:
    (root / "typed.txt").write_text("saved\n")
    workspace.editors.open("typed.txt", "typed\n", client="zed", version=1)
    edit(workspace, ROBOT, "typed.txt", "typed", "typed by hand, and more")
    (root / "outside.txt").write_text("1\n")
    workspace.external.resnapshot()
    (root / "outside.txt").write_text("2\n")
    assert workspace.external.detect(ROBOT).operation is not None
    undo(workspace, since=0.0)
    assert files(root)["typed.txt"] == "typed\n"
