"""What a session has changed, as its client can show it, take it back and bring it again."""

import asyncio
import json

import pytest
from acp import RequestError

from filepact.acp import ClientFileSystem
from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, NotFoundError
from tests.faces.acp.talking import READ, WRITE, talk
from tests.faces.command_line import command


class Scene:
    """A client without a connection: its sessions are started by hand."""

    def __init__(self, tmp_path, **options):
        self.told = []
        self.files = ClientFileSystem(
            state_dir=str(tmp_path / "state"), on_change=self.told.append, **options
        )
        self.folder = tmp_path / "work"

    async def start(self, *names):
        for name in names:
            await self.files.session_started(name, str(self.folder))

    async def write(self, name, text, session="s1"):
        await self.files.write_text_file(session, str(self.folder / name), text)

    def states(self):
        return [(one.state, one.receipt.files[0].path) for one in self.told]


def play(scene, plot):
    try:
        return asyncio.run(plot())
    finally:
        scene.files.close()


def test_changes_are_listed_with_their_diffs_and_told_when_they_are_done(tmp_path, work):
    scene = Scene(tmp_path)
    (work / "a.txt").write_text("one\ntwo\n")

    async def plot():
        await scene.start("s1", "s2")
        await scene.write("a.txt", "one\n2\n3\n")
        await scene.write("b/new.txt", "x\n")
        await scene.write("b/new.txt", "x\n")
        await scene.write("other.txt", "x\n", "s2")
        return await scene.files.changes("s1"), await scene.files.changes("s1", limit=1)

    listed, newest = play(scene, plot)
    assert [one.paths for one in listed] == [
        (str(work / "b" / "new.txt"),),
        (str(work / "a.txt"),),
    ]
    assert newest == listed[:1]
    assert all(one.state == "applied" and one.session == "s1" for one in listed)
    ((report,), diff) = listed[1].receipt.files, listed[1].receipt.diff
    assert (report.path, report.added, report.removed) == ("a.txt", 2, 1)
    assert "-two\n+2\n+3\n" in diff
    assert [one.id for one in scene.told] == [
        *(one.id for one in reversed(listed)),
        scene.told[2].id,
    ]
    assert scene.told[0].receipt.diff == diff
    assert scene.told[0].paths == listed[1].paths


def test_undo_and_redo_go_through_a_sessions_own_changes(tmp_path, work):
    scene = Scene(tmp_path)
    path, other = work / "a.txt", work / "other.txt"
    path.write_text("0\n")

    async def plot():
        files = scene.files
        await scene.start("s1", "s2")
        await scene.write("a.txt", "1\n")
        await scene.write("a.txt", "2\n")
        await scene.write("other.txt", "mine\n", "s2")
        undone = await files.undo("s1")
        assert (undone.state, undone.session, path.read_text()) == ("undone", "s1", "1\n")
        first = (await files.changes("s1"))[-1]
        assert (await files.undo("s1", first.id)).id == first.id
        assert path.read_text() == "0\n"
        with pytest.raises(NoChangeError):
            await files.undo("s1")
        assert (await files.redo("s1")).id == first.id
        assert (await files.redo("s1", undone.id)).state == "applied"
        assert path.read_text() == "2\n"
        with pytest.raises(NoChangeError):
            await files.redo("s1")
        with pytest.raises(NotFoundError):
            await files.undo("s1", (await files.changes("s2"))[0].id)
        await files.undo("s1")
        await scene.write("b.txt", "new\n")
        with pytest.raises(NoChangeError):
            await files.redo("s1")

    play(scene, plot)
    assert other.read_text() == "mine\n"
    states = [state for state, path in scene.states() if path == "a.txt"]
    assert states == ["applied"] * 2 + ["undone"] * 2 + ["applied"] * 2 + ["undone"]


def test_an_agent_does_not_write_over_what_was_undone_without_its_knowing(tmp_path, work):
    scene = Scene(tmp_path)
    path = work / "a.txt"
    path.write_text("1\n2\n3\n4\n5\n")

    async def plot():
        await scene.start("s1")
        await scene.files.read_text_file("s1", str(path))
        await scene.write("a.txt", "1\n2\n3\n4\nfive\n")
        await scene.files.undo("s1")
        await scene.write("a.txt", "one\n2\n3\n4\nfive\n")

    play(scene, plot)
    assert path.read_text() == "one\n2\n3\n4\n5\n"


def test_a_change_that_is_later_cannot_be_lost_by_an_undo(tmp_path, work):
    scene = Scene(tmp_path)
    path = work / "a.txt"
    path.write_text("0\n")

    async def plot():
        await scene.start("s1")
        await scene.write("a.txt", "1\n")
        path.write_text("mine\n")
        with pytest.raises(FilepactError) as caught:
            await scene.files.undo("s1")
        return caught.value.code

    assert play(scene, plot) == "STALE_FILE"
    assert path.read_text() == "mine\n"


def test_a_session_that_is_not_open_has_no_changes(tmp_path, work):
    scene = Scene(tmp_path)

    async def plot():
        await scene.start("s1")
        await scene.write("a.txt", "1\n")
        await scene.files.session_closed("s1")
        for call in (scene.files.changes, scene.files.undo, scene.files.redo):
            with pytest.raises(InvalidParamsError):
                await call("s1")

    play(scene, plot)


@pytest.mark.parametrize(("answer", "last"), [(True, "applied"), (False, "refused")])
def test_what_waits_for_a_person_is_told_and_so_is_what_becomes_of_it(tmp_path, work, answer, last):
    async def ask(_question):
        listed.extend(await scene.files.changes("s1"))
        return answer

    listed = []
    scene = Scene(tmp_path, mode="preview", ask=ask)
    script = [(WRITE, {"path": str(work / "a.txt"), "content": "1\n"})]
    talk(tmp_path, scene.files, prompt=script)
    assert [one.state for one in scene.told] == ["pending", last]
    assert [(one.state, one.id) for one in listed] == [("pending", scene.told[0].id)]
    assert scene.told[0].id == scene.told[1].id
    assert "+1" in scene.told[1].receipt.diff


def test_what_was_allowed_and_cannot_be_done_any_more_waits_no_more(tmp_path, work):
    async def ask(_question):
        (work / "a.txt").write_text("typed\n")
        return True

    async def plot():
        await scene.start("s1")
        assert (await scene.files.read_text_file("s1", str(work / "a.txt"))).content == "0\n"
        with pytest.raises(RequestError) as refused:
            await scene.write("a.txt", "1\n")
        assert refused.value.data["errorKind"] == "stale"
        assert (await scene.files.read_text_file("s1", str(work / "a.txt"))).content == "typed\n"

    (work / "a.txt").write_text("0\n")
    scene = Scene(tmp_path, mode="preview", ask=ask)
    play(scene, plot)
    assert [one.state for one in scene.told] == ["pending", "refused"]


def test_a_change_that_is_left_waiting_stays_so(tmp_path, work):
    scene = Scene(tmp_path, mode="preview")
    talk(tmp_path, scene.files, prompt=[(WRITE, {"path": str(work / "a.txt"), "content": "1\n"})])
    assert scene.states() == [("pending", "a.txt")]


def test_what_is_written_for_one_prompt_has_the_name_of_its_turn(tmp_path, work):
    files = ClientFileSystem(state_dir=str(tmp_path / "state"))
    script = [(WRITE, {"path": str(work / name), "content": "1\n"}) for name in ("a", "b")]
    talk(tmp_path, files, prompt=script)
    said = command("log", "--json", "--root", str(work), "--state", str(tmp_path / "state"))
    one, other = json.loads(said.out)["operations"]
    assert one["turn"] == other["turn"] != ""


def test_a_client_that_cannot_take_what_it_is_told_loses_nothing(tmp_path, work):
    def fail(_change):
        raise RuntimeError("no screen")

    files = ClientFileSystem(state_dir=str(tmp_path / "state"), on_change=fail)
    path = work / "a.txt"
    script = [(WRITE, {"path": str(path), "content": "1\n"}), (READ, {"path": str(path)})]
    written, shown = talk(tmp_path, files, prompt=script)["answers"]
    assert (written["result"], shown["result"]) == ({}, {"content": "1\n"})
