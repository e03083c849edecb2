"""Somebody types a line at each moment of an exchange between an agent and their editor; none is lost.

The editor takes a new text in place of what it shows, whatever that is by then.
"""

import asyncio
import importlib.util
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from filepact.acp import ClientFileSystem, Position, Typed
from filepact.domain.document import Document, Revision, RootId, WorkspacePath
from filepact.errors import StaleFileError
from filepact_acp.client_buffers import ClientWrite
from test_agent_files import Editor, edit, run
from test_agent_notices import CHANGE, OPEN, changed, opened, tell, typed
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.acp.sides import AgentSide, ProxySide

BASE = "".join(f"line {number}\n" for number in range(1, 11))
AGENTS = BASE.replace("line 9", "line 9 AGENT")
LINE_5, TYPED_5 = "line 5\n", "line 5\nTYPED\n"
LINE_7, TYPED_7 = "line 7\n", "line 7\nTOO\n"
BOTHS = AGENTS.replace(LINE_5, TYPED_5)

asked = pytest.mark.parametrize("side", [ProxySide, AgentSide])


def types_before(it, moments):
    """Somebody types a line before the questions with these numbers; what was asked."""
    questions = []

    def ask(_path):
        if len(questions) in moments:
            it.type("b.txt", *((LINE_5, TYPED_5), (LINE_7, TYPED_7))[moments.index(len(questions))])
        questions.append(it.disk("b.txt"))

    it.screen.on_read = ask
    return questions


@asked
@pytest.mark.parametrize("moments", [(0,), (1,), (2,), (0, 1), (1, 2), (2, 3), (2, 4)])
def test_a_line_that_is_typed_before_any_question_stays(tmp_path, side, moments):
    with side(tmp_path, in_order=True) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")
        questions = types_before(it, moments)
        it.write("b.txt", text.replace("line 9", "line 9 AGENT"))
        assert len(questions) > max(moments)
        shown = BOTHS if len(moments) == 1 else BOTHS.replace(LINE_7, TYPED_7)
        assert it.shown("b.txt") == shown
        assert it.disk("b.txt") == shown.encode()


@pytest.mark.parametrize("moment", range(5))
def test_a_line_that_is_typed_before_any_question_stays_after_a_tools_change(tmp_path, moment):
    """The editor has unsaved text: it is asked to save that first."""
    with AgentSide(tmp_path, in_order=True) as it:
        (it.work / "b.txt").write_text(BASE)
        unsaved = BASE.replace("line 2", "line 2 UNSAVED")
        it.show("b.txt", unsaved)
        questions = types_before(it, (moment,))
        answered = it.tool("edit_file", edit("b.txt", "line 9\n", "line 9 AGENT\n"))
        assert len(questions) > moment, answered
        assert it.shown("b.txt") == BOTHS.replace("line 2", "line 2 UNSAVED"), answered
        assert it.disk("b.txt") == it.shown("b.txt").encode()


def test_what_cannot_come_back_to_a_client_comes_back_in_place_of_the_change(tmp_path):
    mine = BASE.replace("line 9", "TYPED 9")
    with AgentSide(tmp_path, in_order=True) as it:
        (it.work / "b.txt").write_text(BASE)
        it.show("b.txt", BASE)
        text = it.read("b.txt")
        asked = []

        def type_in_the_same_line(_path):
            asked.append(it.shown("b.txt"))
            if len(asked) == 3:
                it.show("b.txt", mine)

        it.screen.on_read = type_in_the_same_line
        with pytest.raises(Exception, match="typed") as refused:
            it.write("b.txt", text.replace("line 9", "AGENT 9"))
        assert refused.value.kind == "stale"
        assert it.shown("b.txt") == mine


def test_an_editor_that_answers_out_of_order_shows_the_new_text_and_loses_nothing(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "b.txt").write_text(BASE)
        rig.start()
        wanted = rig.begin_write("b.txt", AGENTS)
        rig.shows(BASE)
        rig.shows(BASE)
        question = rig.editor.request("fs/read_text_file")
        rig.editor.answer(rig.editor.request("fs/write_text_file"), {})
        rig.editor.answer(question, {"content": BOTHS})
        assert "result" in rig.agent.answer_to(wanted)
        assert rig.editor.quiet


# -- a client that says by itself what is typed ------------------------------------------------


def test_a_client_that_tells_what_is_typed_loses_nothing_however_late(tmp_path):
    """The line is typed when the client has the new text already, and has not taken it."""

    class Notifying(Editor):
        version = 1

        async def say(self, path, change):
            self.version += 1
            await self.client._conn.send_notification(CHANGE, changed(path, self.version, change))

        async def write_text_file(self, session_id, path, content, **more):
            if self.version == 1:
                self.unsaved[path] = self.unsaved[path].replace(LINE_5, TYPED_5)
                await self.say(path, typed("TYPED\n", (5, 0), (5, 0)))
            done = await super().write_text_file(session_id, path, content, **more)
            await self.say(path, typed(content))
            return done

    shows = Notifying()

    async def scene(editor, files, work):
        path, shows.client = str(work / "b.txt"), editor.client
        (work / "b.txt").write_text(BASE)
        shows.unsaved[path] = BASE
        await tell(editor, OPEN, opened(path, BASE))
        done = await files.call("edit_file", edit(path, "line 9\n", "line 9 AGENT\n"))
        assert not done.failed, done.text
        assert shows.reads() == []
        return shows.unsaved[path], (work / "b.txt").read_text()

    assert run(scene, tmp_path, client_files=shows) == (BOTHS, BOTHS)


def test_notices_of_typing_do_not_go_on_from_a_text_that_was_asked_for(tmp_path):
    """Once an editor behind the proxy was given a text it is asked, and its notices are too late."""
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        path = rig.work / "b.txt"
        path.write_text(BASE)
        rig.start()
        document = opened(path, BASE, session="s1")
        rig.editor.send({"method": OPEN, "params": document})
        assert rig.agent.request(OPEN)
        wanted = rig.begin_write("b.txt", AGENTS)
        rig.shows(BASE.replace(LINE_5, TYPED_5))
        assert rig.takes()["content"] == BOTHS
        assert "result" in rig.agent.answer_to(wanted)
        wanted = rig.begin_read("b.txt")
        rig.shows(BOTHS.replace(LINE_7, TYPED_7))
        assert "TOO" in rig.agent.answer_to(wanted)["result"]["content"]
        # The notice of that comes after the answer.
        late = {**changed(path, 4, typed("TOO\n", (8, 0), (8, 0))), "sessionId": "s1"}
        rig.editor.send({"method": CHANGE, "params": late})
        assert rig.agent.request(CHANGE)
        wanted = rig.begin_read("b.txt")
        rig.shows(BOTHS.replace(LINE_7, TYPED_7))
        assert rig.agent.answer_to(wanted)["result"]["content"].count("TOO") == 1


# -- a client with the editor in its own process -----------------------------------------------


class Window:
    """An editor that replaces its text, and counts its own versions."""

    def __init__(self, tmp_path, **more):
        self.path = str(tmp_path / "work" / "b.txt")
        Path(self.path).write_text(BASE)
        self.text, self.version, self.offered = BASE, 1, []
        self.on_delivery = lambda: None
        self.files = ClientFileSystem(
            state_dir=str(tmp_path / "state"), on_delivery=self.deliver, **more
        )

    def type(self, old, new):
        """Somebody types; the way to tell it."""
        at = self.text[: self.text.index(old) + len(old)].count("\n")
        self.text, self.version = self.text.replace(old, new), self.version + 1
        place = Position(at, 0)
        change = (self.path, [Typed(new.removeprefix(old), place, place)], self.version)
        return lambda: self.files.buffers.change(*change)

    async def deliver(self, delivery):
        self.offered.append(delivery.version)
        self.on_delivery()
        if delivery.version != self.version:
            return False
        self.text, self.version = delivery.text, self.version + 1
        return True

    def written(self):
        """What the editor shows, and the disk has, after an agent has written to the file."""

        async def play():
            await self.files.session_started("s1", str(Path(self.path).parent))
            self.files.buffers.open(self.path, self.text, self.version)
            await self.files.write_text_file("s1", self.path, AGENTS)
            text = self.files.buffers.text(self.path)
            self.files.close()
            assert text == self.text

        asyncio.run(play())
        return self.text, Path(self.path).read_text()


@pytest.mark.parametrize("is_told", ["at once", "after the answer"])
def test_what_is_typed_before_an_editor_makes_its_edits_is_in_what_it_is_given_then(
    tmp_path, work, is_told
):
    window = Window(tmp_path)

    def types():
        window.on_delivery = lambda: None
        told = window.type(LINE_5, TYPED_5)
        if is_told == "at once":
            told()
        else:
            asyncio.get_running_loop().call_soon(told)

    window.on_delivery = types
    assert window.written() == (BOTHS, AGENTS)
    assert window.offered == [1, 2]


def test_an_editor_that_takes_a_text_over_what_was_typed_meanwhile_is_given_that_again(
    tmp_path, work
):
    window = Window(tmp_path)

    def types():
        window.on_delivery = lambda: None
        window.type(LINE_5, TYPED_5)()
        window.version -= 1  # it does not look at versions

    window.on_delivery = types

    async def deliver(delivery):
        window.offered.append(delivery.version)
        window.on_delivery()
        window.text, window.version = delivery.text, delivery.version + 1
        return True

    window.files.buffers._deliver = deliver
    assert window.written() == (BOTHS, AGENTS)


def test_an_editor_that_has_made_its_edits_may_be_typed_in_before_it_says_so(tmp_path, work):
    window = Window(tmp_path)

    async def deliver(delivery):
        window.offered.append(delivery.version)
        window.text, window.version = delivery.text, delivery.version + 1
        window.type(LINE_5, TYPED_5)()
        return True

    window.files.buffers._deliver = deliver
    assert window.written() == (BOTHS, AGENTS)
    assert window.offered == [1]


# -- a text on its way ---------------------------------------------------------------------------


def on_its_way(text, showed):
    path = WorkspacePath(RootId("/r"), "b.txt")
    meant = Document(path, text.encode(), Revision.of(text.encode(), 0o644))
    return ClientWrite(meant, str, showed, typing=False)


@pytest.mark.parametrize(
    ("seen", "becomes"),
    [
        (BASE, AGENTS),
        (AGENTS, AGENTS),
        # Read while it was written, with and without the end of the old text.
        ("", AGENTS),
        (AGENTS[:70], AGENTS),
        (BASE.replace(LINE_5, TYPED_5), BOTHS),
        # Removed by whoever types, which leaves the beginning of one and the end of the other.
        (BASE.replace(LINE_5, ""), AGENTS.replace(LINE_5, "")),
        # Typed into the new text, by an editor that answers out of order.
        (BOTHS, AGENTS),
    ],
)
def test_what_an_editor_showed_before_a_new_text_says_what_was_typed(seen, becomes):
    out = on_its_way(AGENTS, BASE)
    assert out.given(seen) is (becomes == AGENTS)
    assert out.text == becomes


def test_lines_that_look_like_what_comes_back_come_back_as_well():
    out = on_its_way(AGENTS, BASE)
    assert not out.given(BASE.replace(LINE_5, "line 5\ntyped 27\n"))
    # The line was taken away by the new text, and the next was typed where it stood.
    assert not out.given(AGENTS.replace(LINE_5, "line 5\ntyped 28\n"))
    assert sorted(out.text.splitlines()[5:7]) == ["typed 27", "typed 28"]
    assert out.given(AGENTS.replace(LINE_5, "line 5\ntyped 27\n"))


def test_the_same_characters_are_not_put_together():
    out = on_its_way(BASE.replace("line 9", "AGENT 9"), BASE)
    with pytest.raises(StaleFileError):
        out.given(BASE.replace("line 9", "TYPED 9"))


# -- the race itself -----------------------------------------------------------------------------


@pytest.mark.slow
def test_of_lines_that_are_typed_at_2_ms_none_is_lost_but_what_nobody_can_see(monkeypatch):
    """Unseen is what is typed between an editor's answer and a text that came with the question."""
    bench = Path(__file__).parents[3] / "bench" / "typing_window.py"
    spec = importlib.util.spec_from_file_location("typing_window", bench)
    measure = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "typing_window", measure)
    spec.loader.exec_module(measure)
    monkeypatch.setattr(measure, "BLOCK", 100)
    found = measure.measure(Namespace(typed=100, pause=0.002, only=""))
    assert len(found) == 7
    for door, at in found.items():
        assert at.typed == 100, door
        assert at.refused == 0, door
        assert at.lost <= at.unseen, (door, at)
