"""What an editor behind, before or over us can do, and what must not be lost by it."""

import threading

import pytest

from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.acp.sides import SILENT, AgentSide, ClientSide, ProxySide, Refused

BASE = "".join(f"line {number}\n" for number in range(1, 11))
UNSAVED = BASE.replace("line 2", "line 2 UNSAVED")

every = pytest.mark.parametrize("side", [ProxySide, AgentSide, ClientSide])
asked = pytest.mark.parametrize("side", [ProxySide, AgentSide])
"""Those that ask the editor what it shows."""


def refuse(_path):
    raise Refused("Blocked: excluded from AI in this project's settings")


@every
def test_what_is_typed_while_the_person_is_asked_is_kept(tmp_path, side):
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        it.screen.on_ask = lambda: it.type("b.txt", "line 5\n", "line 5 TYPED\n")
        it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 AGENT"))
        both = BASE.replace("line 5", "line 5 TYPED").replace("line 9", "line 9 AGENT")
        assert it.shown("b.txt") == both
        assert it.disk("b.txt") == both.encode()


@every
@pytest.mark.parametrize(
    ("typed", "times"),
    [("line 1\n", 1), ("line 5\n", 1), ("line 7\n", 2), ("line 10\n", 2)],
)
def test_an_answer_counts_where_the_lines_that_were_shown_have_only_moved(
    tmp_path, side, typed, times
):
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        asked = []

        def type_once():
            asked.append(None)
            if len(asked) == 1:
                it.type("b.txt", typed, f"TYPED\n{typed}")

        it.screen.on_ask = type_once
        it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 AGENT"))
        both = BASE.replace(typed, f"TYPED\n{typed}").replace("line 9", "line 9 AGENT")
        assert it.shown("b.txt") == both
        assert it.disk("b.txt") == both.encode()
        assert len(asked) == times


@every
def test_lines_that_stand_twice_are_asked_about_again_when_what_is_above_them_changes(
    tmp_path, side
):
    block = "".join(f"like {number}\n" for number in range(9))
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(f"# one\n{block}# two\n{block}")
        it.show("b.txt", f"# one\n{block}# two\n{block}")
        asked = []

        def swap_once():
            asked.append(None)
            if len(asked) == 1:
                it.type("b.txt", "# one", "# 2")
                it.type("b.txt", "# two", "# one")

        it.screen.on_ask = swap_once
        it.write("b.txt", it.read("b.txt").replace("like 4", "like 4 AGENT", 1))
        assert len(asked) == 2


@every
def test_a_person_is_asked_three_times_at_most_while_the_lines_beside_change(tmp_path, side):
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        asked = []

        def type_each_time():
            asked.append(None)
            it.type("b.txt", "line 7", "line 7 TYPED")

        it.screen.on_ask = type_each_time
        with pytest.raises(Refused):
            it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 AGENT"))
        assert len(asked) == 3
        assert "line 7 TYPED TYPED TYPED" in it.shown("b.txt")
        assert "AGENT" not in it.shown("b.txt")


@every
def test_what_is_typed_in_the_same_lines_while_the_person_is_asked_is_not_lost(tmp_path, side):
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        it.screen.on_ask = lambda: it.type("b.txt", "line 9", "line 9 TYPED")
        with pytest.raises(Refused) as refused:
            it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 AGENT"))
        assert refused.value.kind == "stale"
        assert "+line 9 TYPED" in refused.value.message
        assert "line 9 TYPED" in it.shown("b.txt")
        assert b"AGENT" not in it.disk("b.txt")


@every
def test_what_is_typed_between_a_read_and_a_write_is_kept(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")
        it.type("b.txt", "line 5", "line 5 TYPED")
        it.write("b.txt", text.replace("line 9", "line 9 AGENT"))
        assert "line 5 TYPED" in it.shown("b.txt")
        assert "line 9 AGENT" in it.shown("b.txt")


@pytest.mark.parametrize("typed", ["line 5", "line 9"])
def test_what_is_typed_while_the_disk_is_written_is_kept(tmp_path, typed):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")

        def type_once_it_is_written(_path):
            # It is asked before the change is made, and before it is told of it.
            if b"AGENT" in it.disk("b.txt"):
                it.type("b.txt", f"{typed}\n", f"{typed} TYPED\n")

        it.screen.on_read = type_once_it_is_written
        mine = text.replace("line 9", "line 9 AGENT")
        if typed == "line 5":
            it.write("b.txt", mine)
            assert "line 9 AGENT" in it.shown("b.txt")
        else:
            with pytest.raises(Refused) as refused:
                it.write("b.txt", mine)
            assert refused.value.kind == "stale"
            assert "+line 9 TYPED" in refused.value.message
            assert b"AGENT" not in it.disk("b.txt")
        assert f"{typed} TYPED" in it.shown("b.txt")


@pytest.mark.parametrize("saves", [True, False])
def test_nothing_is_written_between_the_editors_last_answer_and_its_new_text(tmp_path, saves):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")
        answered, told = [], []

        def type_once_it_is_written(_path):
            # A busy proxy may ask once more when all is told.
            if b"AGENT" in it.disk("b.txt") and not told:
                it.type("b.txt", "line 5\n", "line 5 TYPED\n")
                answered[:] = [it.disk("b.txt"), len(it.log())]

        def write(path, new):
            told.append(([it.disk("b.txt"), len(it.log())], new))
            it.show("b.txt", new)
            if saves:
                save(path, new)

        save, it.screen.write = it.screen.write, write
        it.screen.on_read = type_once_it_is_written
        it.write("b.txt", text.replace("line 9", "line 9 AGENT"))
        both = BASE.replace("line 5", "line 5 TYPED").replace("line 9", "line 9 AGENT")
        assert told == [(answered, both)]
        assert it.disk("b.txt") == both.encode()
        assert it.log() == [("editor", "editor"), ("far", "fs/write_text_file")]
        it.undo()
        assert it.disk("b.txt") == BASE.replace("line 5", "line 5 TYPED").encode()


def types_after_the_first_answer(it, old, new):
    """Somebody types right after the editor's next answer, which does not have it."""
    typed = []

    def type_it(_path):
        if not typed:
            typed.append(new)
            it.type("b.txt", old, new)

    it.screen.on_answer = type_it


EDIT = {"path": "b.txt", "old_string": "line 9\n", "new_string": "line 9 AGENT\n"}


@asked
@pytest.mark.parametrize("shown", [BASE, UNSAVED], ids=["saved", "unsaved"])
def test_what_is_typed_after_the_first_answer_of_the_editor_is_kept_by_a_tool(
    tmp_path, side, shown
):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", shown)
        it.read("b.txt")
        types_after_the_first_answer(it, "line 5\n", "line 5 TYPED\n")
        answered = it.tool("edit_file", EDIT)
        both = shown.replace("line 5", "line 5 TYPED").replace("line 9", "line 9 AGENT")
        assert it.shown("b.txt") == both, answered
        assert it.disk("b.txt") == both.encode()


def test_what_is_typed_after_the_first_answer_of_the_editor_is_kept_by_a_write(tmp_path):
    with AgentSide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        text = it.read("b.txt")
        types_after_the_first_answer(it, "line 5\n", "line 5 TYPED\n")
        it.write("b.txt", text.replace("line 9", "line 9 AGENT"))
        both = UNSAVED.replace("line 5", "line 5 TYPED").replace("line 9", "line 9 AGENT")
        assert it.shown("b.txt") == both
        assert it.disk("b.txt") == both.encode()


def test_what_is_typed_after_the_first_answer_of_the_editor_is_kept_by_an_undo(tmp_path):
    with AgentSide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        it.tool("edit_file", EDIT)
        types_after_the_first_answer(it, "line 5\n", "line 5 TYPED\n")
        it.take_back()
        assert it.shown("b.txt") == BASE.replace("line 5", "line 5 TYPED")
        assert it.disk("b.txt") == it.shown("b.txt").encode()


def test_what_is_typed_between_the_last_answer_and_the_new_text_comes_back(tmp_path):
    """The editor is asked with the new text as well, and tells what that replaced."""
    agents = BASE.replace("line 9", "line 9 AGENT")
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "b.txt").write_text(BASE)
        rig.start()
        wanted = rig.begin_write("b.txt", agents)
        rig.shows(BASE)
        rig.shows(BASE)
        rig.shows(f"{BASE}first")
        assert rig.takes()["content"] == agents
        # Whoever types goes on, before the first is back, at the same place.
        rig.shows(f"{agents} second\n")
        while rig.takes()["content"] != f"{agents}first second\n":
            pass
        assert "result" in rig.agent.answer_to(wanted)
        assert (rig.work / "b.txt").read_text() == f"{agents}first second\n"


@pytest.mark.parametrize("torn", ["", "line 1\n", "line 1\nli", "line 1\nline 2 AG\ufffd"])
def test_an_answer_from_the_middle_of_a_write_is_not_taken_for_typing(tmp_path, torn):
    """An editor that answers while it writes may read its own half-written file."""
    agents = BASE.replace("line 2", "line 2 AGENT")
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "b.txt").write_text(BASE)
        rig.start()
        wanted = rig.begin_write("b.txt", agents)
        rig.shows(BASE)
        rig.shows(BASE)
        rig.shows(torn)
        assert rig.takes()["content"] == agents
        assert "result" in rig.agent.answer_to(wanted)
        assert (rig.work / "b.txt").read_text() == agents


def test_what_cannot_come_back_beside_the_new_text_comes_back_in_its_place(tmp_path):
    mine = BASE.replace("line 9", "TYPED 9")
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "b.txt").write_text(BASE)
        rig.start()
        wanted = rig.begin_write("b.txt", BASE.replace("line 9", "AGENT 9"))
        rig.shows(BASE)
        rig.shows(BASE)
        rig.shows(mine)
        assert "AGENT" in rig.takes()["content"]
        assert rig.takes()["content"] == mine
        assert rig.agent.answer_to(wanted)["error"]["data"]["errorKind"] == "stale"
        assert (rig.work / "b.txt").read_text() == BASE


@asked
def test_a_tools_change_of_lines_that_were_typed_in_after_the_answer_is_refused(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        it.read("b.txt")
        types_after_the_first_answer(it, "line 9\n", "line 9 TYPED\n")
        answered = it.tool("edit_file", EDIT)
        assert "STALE" in answered or "line 9 TYPED" in answered
        assert it.shown("b.txt") == BASE.replace("line 9", "line 9 TYPED")
        assert it.disk("b.txt") == BASE.encode()


def test_a_new_file_in_which_somebody_typed_meanwhile_is_not_written_over(tmp_path):
    with AgentSide(tmp_path) as it:
        it.show("b.txt", "")
        types_after_the_first_answer(it, "", "TYPED\n")
        with pytest.raises(Refused) as refused:
            it.write("b.txt", BASE)
        assert refused.value.kind == "stale"
        assert it.shown("b.txt") == "TYPED\n"
        assert not (it.work / "b.txt").exists()


@asked
def test_a_file_that_was_removed_with_unsaved_text_is_not_there_because_it_is_still_shown(
    tmp_path, side
):
    removal = f"--- b.txt\n+++ /dev/null\n@@ -1,10 +0,0 @@\n-{UNSAVED[:-1].replace(chr(10), chr(10) + '-')}\n"
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        assert it.read("b.txt") == UNSAVED
        said = it.tool("patch_apply", {"patch": removal})
        assert not (it.work / "b.txt").exists(), said
        with pytest.raises(Refused):
            it.read("b.txt")
        # What was typed is not lost: it was written before the file was removed.
        it.undo()
        assert it.disk("b.txt") == UNSAVED.encode()


PATCH = "".join(
    f"--- {name}\n+++ {name}\n@@ -9 +9 @@\n-line 9\n+line 9 AGENT\n" for name in ("b.txt", "c.txt")
)


@asked
@pytest.mark.parametrize(
    ("old", "new"), [("line 5\n", "line 5 TYPED\n"), ("line 9 AGENT", "line 9 AGTYPEDENT")]
)
def test_what_is_typed_while_a_change_is_taken_back_is_kept(tmp_path, side, old, new):
    with side(tmp_path, in_order=True) as it:
        for name in ("b.txt", "c.txt"):
            (it.work / name).write_text(BASE)
            it.show(name, BASE)
        refused = []

        def refuse_the_second(path):
            if path.endswith("c.txt"):
                refused.append(path)
                raise Refused("Not now")

        def type_after_the_answer(path):
            if refused and path.endswith("b.txt"):
                refused.clear()
                it.type("b.txt", old, new)

        it.screen.on_write, it.screen.on_answer = refuse_the_second, type_after_the_answer
        it.tool("patch_apply", {"patch": PATCH})
        assert it.shown("b.txt") == BASE.replace(old.removesuffix(" AGENT"), new)
        assert it.disk("b.txt") == it.shown("b.txt").encode()


@asked
def test_what_is_typed_before_a_change_is_taken_back_is_kept(tmp_path, side):
    with side(tmp_path) as it:
        for name in ("b.txt", "c.txt"):
            (it.work / name).write_text(BASE)
            it.show(name, BASE)

        def refuse_the_second(path):
            if path.endswith("c.txt"):
                it.type("b.txt", "line 5\n", "line 5 TYPED\n")
                raise Refused("Not now")

        it.screen.on_write = refuse_the_second
        it.tool("patch_apply", {"patch": PATCH})
        assert it.shown("b.txt") == BASE.replace("line 5", "line 5 TYPED")
        assert it.disk("b.txt") == it.shown("b.txt").encode()
        assert it.shown("c.txt") == BASE
        assert it.disk("c.txt") == BASE.encode()


@asked
def test_an_editor_that_is_busy_stops_a_write(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        it.screen.on_read = refuse
        with pytest.raises(Refused) as refused:
            it.write("b.txt", BASE.replace("line 9", "line 9 AGENT"))
        assert refused.value.kind == "editor_refused"
        assert "excluded from AI" in refused.value.message
        assert it.shown("b.txt") == UNSAVED
        assert it.disk("b.txt") == BASE.encode()


@asked
@pytest.mark.parametrize("data", [b"Ann,4111\n", "Anné,4111\n".encode("latin-1")])
def test_what_an_editor_refuses_to_show_is_not_served_from_the_disk(tmp_path, side, data):
    with side(tmp_path) as it:
        (it.work / "customers.csv").write_bytes(data)
        it.screen.on_read = refuse
        with pytest.raises(Refused) as refused:
            it.read("customers.csv")
        assert refused.value.kind == "editor_refused"
        assert "excluded from AI" in refused.value.message


@every
def test_what_is_typed_stays_where_an_agent_writes_what_it_has_not_read(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        it.write("b.txt", BASE.replace("line 9", "line 9 AGENT"))
        both = UNSAVED.replace("line 9", "line 9 AGENT")
        assert it.shown("b.txt") == both
        assert it.disk("b.txt") == both.encode()
        # It goes on from its own text.
        it.write("b.txt", BASE.replace("line 9", "line 9 AGENT").replace("line 5", "line 5 TOO"))
        assert it.shown("b.txt") == both.replace("line 5", "line 5 TOO")


@every
def test_an_agent_that_has_not_read_what_is_typed_cannot_write_over_it(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        with pytest.raises(Refused) as refused:
            it.write("b.txt", BASE.replace("line 2", "line 2 AGENT"))
        assert refused.value.kind == "stale"
        assert it.shown("b.txt") == UNSAVED
        assert it.disk("b.txt") == BASE.encode()
        # Once it has, it may.
        it.write("b.txt", it.read("b.txt").replace("line 2 UNSAVED", "line 2 AGENT"))
        assert "UNSAVED" not in it.shown("b.txt")


@every
def test_a_write_of_what_the_disk_has_takes_nothing_out_of_the_editor(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        it.write("b.txt", BASE)
        assert it.shown("b.txt") == UNSAVED
        assert it.disk("b.txt") == BASE.encode()
        assert it.log() == []


MINE = BASE.replace("line 9", "line 9 AGENT")
MERGED = UNSAVED.replace("line 9", "line 9 AGENT")


@pytest.mark.parametrize(
    "moment", ["first", "asked", "asked again", "merged", "told", "saved", "after"]
)
def test_an_agent_that_writes_by_itself_as_well_takes_nothing_out_of_the_editor(tmp_path, moment):
    work = tmp_path / "work"
    work.mkdir()
    for name in ("b.txt", *(f"z{number}.txt" for number in range(50))):
        (work / name).write_text(BASE)
    with ProxySide(tmp_path, watched="opencode") as it:
        it.learnt()
        it.show("b.txt", UNSAVED)
        reads, save = [], it.screen.write

        def write_itself(now):
            if now == moment:
                (it.work / "b.txt").write_text(MINE)

        def read(_path):
            reads.append(it.disk("b.txt"))
            if len(reads) < 3:
                write_itself(("asked", "asked again")[len(reads) - 1])
            if reads.count(MERGED.encode()) == 1 and reads[-1] == MERGED.encode():
                write_itself("merged")  # once: who writes at each look is at it longer than we are

        def saves(path, text):
            write_itself("told")
            save(path, text)
            write_itself("saved")

        it.screen.on_read, it.screen.write = read, saves
        write_itself("first")
        it.write("b.txt", MINE)
        write_itself("after")
        it.acted()
        assert "UNSAVED" in it.shown("b.txt")
    # What has begun is ended in order before the proxy ends.
    assert "UNSAVED" in it.shown("b.txt")
    assert it.disk("b.txt") == MERGED.encode()
    assert it.shown("b.txt") == MERGED
    it.undo_all("b.txt")
    assert it.disk("b.txt") == BASE.encode()


def test_an_editors_own_words_reach_the_agent(tmp_path):
    data = {"details": "Permission denied for fs/write_text_file"}

    def deny(_path):
        raise Refused("Internal error", data=data)

    with ProxySide(tmp_path) as it:
        it.screen.on_write = deny
        with pytest.raises(Refused) as refused:
            it.write("b.txt", BASE)
        assert data["details"] in refused.value.message
        assert refused.value.data["editor"]["data"] == data
        assert not (it.work / "b.txt").exists()


@asked
def test_an_editor_that_is_late_is_not_taken_for_one_that_shows_the_disk(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        it.screen.on_read = lambda _path: SILENT
        for attempt in (lambda: it.read("b.txt"), lambda: it.write("b.txt", "x\n")):
            with pytest.raises(Refused) as refused:
                attempt()
            assert refused.value.kind == "timeout"
        assert it.disk("b.txt") == BASE.encode()
        it.screen.on_read = lambda _path: None
        assert it.read("b.txt") == UNSAVED


def test_a_person_may_take_longer_over_a_change_than_an_editor_to_answer(tmp_path):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        (it.work / "c.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")
        held, decided = threading.Event(), threading.Event()

        def review(_path):
            held.set()
            decided.wait(20)
            raise Refused("rejected in review")

        it.screen.on_write = review
        writing = it.rig.begin_write("b.txt", text.replace("line 9", "line 9 AGENT"))
        assert held.wait(20)
        # An editor that is asked from now on has been given up by the time this is refused.
        it.screen.on_read = lambda _path: SILENT
        assert it.rig.read("c.txt")["error"]["data"]["retriable"] is True
        assert it.rig.agent.quiet
        decided.set()
        error = it.rig.agent.answer_to(writing)["error"]
        assert error["data"]["errorKind"] == "editor_refused"
        assert "rejected in review" in error["message"]
        assert it.disk("b.txt") == BASE.encode()


@pytest.mark.slow(after=3)
@every
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_what_was_undone_does_not_come_back_from_an_editor_that_does_not_reload(
    tmp_path, side, ends
):
    before = BASE.replace("\n", ends)
    with side(tmp_path) as it:
        (it.work / "b.txt").write_bytes(before.encode())
        it.show("b.txt", BASE)
        # Through the journal on every side.
        with_bad = it.read("b.txt").replace("line 2", "line 2 BAD")
        it.write("b.txt", with_bad)
        (it.work / "b.txt").write_bytes(before.encode())
        assert "BAD" not in it.read("b.txt")
        it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 GOOD"))
        assert it.disk("b.txt") == before.replace("line 9", "line 9 GOOD").encode()
        assert "BAD" not in it.shown("b.txt")
        assert "editor" not in [tool for _who, tool in it.log()]


def test_a_change_that_is_taken_back_in_a_terminal_stays_so(tmp_path):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        it.write("b.txt", it.read("b.txt").replace("line 2", "line 2 BAD"))
        it.undo()
        it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 GOOD"))
        assert it.disk("b.txt") == BASE.replace("line 9", "line 9 GOOD").encode()


@every
def test_what_another_program_wrote_under_a_buffer_that_nobody_typed_in_counts(tmp_path, side):
    with side(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        assert it.read("b.txt") == BASE
        newer = BASE.replace("line 2", "line 2 GIT")
        (it.work / "b.txt").write_text(newer)
        assert it.read("b.txt") == newer
        it.write("b.txt", newer.replace("line 9", "line 9 AGENT"))
        assert it.disk("b.txt") == newer.replace("line 9", "line 9 AGENT").encode()
        assert it.shown("b.txt") == newer.replace("line 9", "line 9 AGENT")


@asked
def test_an_editor_that_reads_and_does_not_write_takes_no_change_back(tmp_path, side):
    with side(tmp_path, write=False) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", UNSAVED)
        it.write("b.txt", it.read("b.txt").replace("line 9", "line 9 ONE"))
        it.write("b.txt", it.read("b.txt").replace("line 7", "line 7 TWO"))
        both = UNSAVED.replace("line 9", "line 9 ONE").replace("line 7", "line 7 TWO")
        assert it.disk("b.txt") == both.encode()


def test_some_lines_of_a_long_file_move_no_more_than_these_lines(tmp_path):
    lines = [f"line {number} {'x' * 40}\n" for number in range(8_000)]
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "long.txt").write_text("".join(lines))
        rig.start()
        wanted = rig.begin_read("long.txt", line=4_001, limit=2)
        # A line near its end is typed in, and nobody has asked for that one.
        typed = [*lines[:-10], "TYPED\n", *lines[-9:]]
        asked = rig.editor.request("fs/read_text_file")
        assert (asked["params"]["line"], asked["params"]["limit"]) == (4_001, 2)
        rig.editor.answer(asked, {"content": "".join(typed[4_000:4_002])})
        answer = rig.agent.answer_to(wanted)["result"]
        assert answer == {"content": "".join(lines[4_000:4_002])}
        # Where these lines differ, all of it tells why.
        wanted = rig.begin_read("long.txt", line=7_991, limit=1)
        rig.editor.answer(rig.editor.request("fs/read_text_file"), {"content": "TYPED\n"})
        assert "limit" not in rig.shows("".join(typed))["params"]
        assert rig.agent.answer_to(wanted)["result"] == {"content": "TYPED\n"}


FORMS = {
    "bom.txt": ("utf-8-sig", "\n"),
    "lat.txt": ("latin-1", "\n"),
    "u16.txt": ("utf-16", "\r\n"),
    "crlf.txt": ("utf-8", "\r\n"),
}


@pytest.mark.slow(after=3)
@asked
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shows", ["bytes", "lines", "marks"])
def test_the_form_of_a_file_outlives_an_editor_that_knows_utf_8_alone(tmp_path, side, name, shows):
    codec, ends = FORMS[name]
    text = "café\ntwo\n"
    with side(tmp_path) as it:
        data = text.replace("\n", ends).encode(codec)
        (it.work / name).write_bytes(data)
        if shows == "lines":
            it.show(name, text)
        elif shows == "marks":
            it.screen.on_read = lambda path: (it.work / path).read_bytes().decode(errors="replace")
        it.write(name, text.replace("two", "TWO"))
        assert it.disk(name) == text.replace("two", "TWO").replace("\n", ends).encode(codec)
        it.write(name, text.replace("two", "2"))
        assert it.disk(name) == text.replace("two", "2").replace("\n", ends).encode(codec)
        assert "editor" not in [tool for _who, tool in it.log()]


@asked
def test_text_typed_into_bytes_that_an_editor_cannot_read_stops_a_write(tmp_path, side):
    data = "café\ntwo\n".encode("latin-1")
    with side(tmp_path) as it:
        (it.work / "lat.txt").write_bytes(data)
        typed = data.decode(errors="replace") + "typed\n"
        it.show("lat.txt", typed)
        assert it.read("lat.txt") == "café\ntwo\n"
        with pytest.raises(Refused) as refused:
            it.write("lat.txt", "café\nTWO\n")
        assert refused.value.kind in ("encoding", "encoding_unsafe")
        assert it.disk("lat.txt") == data
        assert it.shown("lat.txt") == typed


def test_what_an_editor_formats_is_its_own_change(tmp_path):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text("one\n")
        shown = str(it.work / "b.txt")
        write = it.screen.write
        it.screen.write = lambda path, text: write(path, text.upper())
        it.write("b.txt", "two\n")
        assert it.read("b.txt") == "TWO\n"
        assert [tool for _who, tool in it.log()] == ["editor", "fs/write_text_file"]
        assert shown not in it.screen.texts


@pytest.mark.parametrize("side", [ProxySide, ClientSide])
def test_a_file_about_which_the_person_is_asked_can_be_read(tmp_path, side):
    with side(tmp_path, mode="preview") as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        opened, answered = threading.Event(), threading.Event()

        def think():
            opened.set()
            answered.wait(20)

        it.screen.on_ask = think
        if side is ProxySide:
            writing = it.rig.begin_write("b.txt", "x\n")
            assert opened.wait(20)
            assert "content" in it.rig.read("b.txt")["result"]
            answered.set()
            assert it.rig.agent.answer_to(writing)["result"] == {}
        else:
            other = threading.Thread(target=lambda: it.write("b.txt", "x\n"))
            other.start()
            assert opened.wait(20)
            assert it.read("b.txt")
            answered.set()
            other.join(20)
        assert it.disk("b.txt") == b"x\n"


def test_a_change_that_an_editor_makes_after_it_was_cancelled_is_in_the_log(tmp_path):
    with ProxySide(tmp_path) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        held, go, written = threading.Event(), threading.Event(), threading.Event()
        write = it.screen.write

        def hold(path, text):
            held.set()
            go.wait(20)
            write(path, text)
            written.set()

        it.screen.write = hold
        writing = it.rig.begin_write("b.txt", "x\n")
        assert held.wait(20)
        it.rig.editor.send({"method": "session/cancel", "params": {"sessionId": "s1"}})
        assert it.rig.agent.answer_to(writing)["error"]["code"] == -32800
        assert it.disk("b.txt") == BASE.encode()
        go.set()
        assert written.wait(20)
    # What has begun is ended in order before the proxy ends.
    assert it.disk("b.txt") == b"x\n"
    assert it.log()[0] == ("far", "outside")
    it.undo()
    assert it.disk("b.txt") == BASE.encode()
