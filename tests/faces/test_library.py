"""Files for a Python program: read, searched, changed, and taken back, by the person's rules."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import filepact
from filepact import AsyncFiles, FilepactError, Match
from tests.forked import run
from tests.needs import CONFIG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact import Files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("hello world\nsecond\n")
    (folder / "src" / "m.py").write_bytes(b"x = 1\r\ny = 2\r\n")
    (folder / ".env").write_text("TOKEN=1\n")
    return folder


@pytest.fixture
def files(root: Path, tmp_path: Path) -> Iterator[Files]:
    with filepact.open(root, rules="built-in", state_dir=tmp_path / "state") as opened:
        yield opened


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(root)): one.read_bytes() for one in root.rglob("*") if one.is_file()
    }


def test_reading_gives_the_text_exactly_and_windows_of_it(files: Files) -> None:
    assert files.read("a.txt") == "hello world\nsecond\n"
    assert files.read("src/m.py", first=2) == "y = 2\r\n"
    assert files.read(Path("src/m.py"), first=1, lines=1) == "x = 1\r\n"
    assert files.read("a.txt", first=9, lines=3) == ""
    assert files.read_bytes("src/m.py") == b"x = 1\r\ny = 2\r\n"
    with pytest.raises(FilepactError) as caught:
        files.read("a.txt", first=0)
    assert caught.value.code == "INVALID_PARAMS"


def test_searching_answers_with_values_and_never_with_what_the_rules_hide(files: Files) -> None:
    assert files.grep("WORLD") == [Match("a.txt", 1, "hello world")]
    assert files.grep("WORLD", case_sensitive=True) == []
    assert files.grep("x = 1", "src", glob="*.py", literal=True) == [Match("src/m.py", 1, "x = 1")]
    assert files.grep("TOKEN") == []
    assert files.find("*.py") == ["src/m.py"]
    assert files.names() == ["a.txt", "src/"]
    assert "m.py" in files.tree()
    with pytest.raises(FilepactError) as caught:
        files.read(".env")
    assert caught.value.code == "PATH_BLOCKED"
    assert files.write(".env", "TOKEN=2\n").status == "pending"


def test_a_preview_shows_and_changes_nothing(files: Files, root: Path) -> None:
    before = tree(root)
    shown = files.preview().edit("a.txt", "world", "moon")
    assert (shown.status, shown.operation) == ("preview", None)
    assert "+hello moon" in shown.diff
    assert tree(root) == before
    assert files.log() == ()


def test_every_way_to_change_is_recorded_and_goes_back(files: Files, root: Path) -> None:
    before = tree(root)
    with files.turn("tidy up") as turn:
        files.edit("a.txt", "world", "moon")
        files.edit("src/m.py", [("x = 1", "x = 3"), ("y = 2", "y = 4")])
        files.write("new/b.txt", "b\n", create_dirs=True)
        files.write("a.txt", "third\n", append=True)
        files.patch("--- a/src/m.py\n+++ b/src/m.py\n@@ -2 +2 @@\n-y = 4\n+y = 5\n")
        files.move("src/m.py", "src/n.py")
        files.make_dir("empty")
        files.delete("a.txt")
    assert tree(root) == {
        ".env": b"TOKEN=1\n",
        "new/b.txt": b"b\n",
        "src/n.py": b"x = 3\r\ny = 5\r\n",
    }
    assert [one.tool for one in turn.operations] == [
        *("edit_file", "edit_file", "write_file", "write_file"),
        *("patch_apply", "manage_files", "manage_files", "manage_files"),
    ]
    assert turn.id.startswith("tidy-up-")
    assert files.workspace.asked.requests() == {turn.id: "tidy up"}
    taken_back = turn.undo()
    assert taken_back is not None
    assert taken_back.status == "applied"
    assert tree(root) == before
    assert turn.undo() is None


def test_a_turn_keeps_what_somebody_else_wrote_meanwhile(files: Files, root: Path) -> None:
    with files.turn() as turn:
        files.edit("a.txt", "world", "moon")
    (root / "a.txt").write_text("hello moon\nsecond\nmine\n")
    turn.undo()
    assert (root / "a.txt").read_text() == "hello world\nsecond\nmine\n"


def test_a_turn_that_fails_goes_back_if_that_was_wanted_and_turns_do_not_nest(
    files: Files, root: Path
) -> None:
    before = tree(root)

    def work() -> None:
        with files.turn(undo_on_error=True):
            files.edit("a.txt", "world", "moon")
            files.edit("a.txt", "nowhere", "x")

    with pytest.raises(FilepactError) as caught:
        work()
    assert caught.value.code == "STRING_NOT_FOUND"
    assert tree(root) == before
    with files.turn(), pytest.raises(FilepactError) as caught, files.turn():
        pass
    assert caught.value.code == "INVALID_PARAMS"
    with files.turn():  # the first one has ended
        pass


def test_undo_without_an_id_takes_back_this_programs_own_change_only(
    files: Files, root: Path, tmp_path: Path
) -> None:
    files.edit("a.txt", "world", "moon")
    with filepact.open(root, rules="built-in", state_dir=tmp_path / "state") as other:
        made = other.write("theirs.txt", "x\n")
    files.undo()
    assert (root / "a.txt").read_text() == "hello world\nsecond\n"
    files.redo()
    assert (root / "a.txt").read_text() == "hello moon\nsecond\n"
    assert files.undo(made.operation).status == "applied"
    assert not (root / "theirs.txt").exists()
    assert [one.kind for one in files.log(limit=3)] == ["undo", "redo", "undo"]
    with filepact.open(root, rules="built-in", state_dir=tmp_path / "state") as other:
        other.write("theirs.txt", "y\n")
    assert files.undo(partly=True).summary.startswith("undo ")
    assert (root / "a.txt").read_text() == "hello world\nsecond\n"
    assert (root / "theirs.txt").read_text() == "y\n"


def test_what_waits_for_a_person_is_said_and_not_done(root: Path, tmp_path: Path) -> None:
    options = {"rules": "built-in", "state_dir": tmp_path / "state"}
    with filepact.open(root, agent="helper", mode="preview", **options) as files:
        receipt = files.edit("a.txt", "world", "moon")
        assert receipt.status == "pending"
        assert files.read("a.txt") == "hello moon\nsecond\n"  # as its author sees it
        assert (root / "a.txt").read_text() == "hello world\nsecond\n"
        (waiting,) = files.workspace.pending()
        assert (waiting.id, waiting.session.agent) == (receipt.operation, "helper")


def test_the_persons_rules_and_journal_count_unless_left_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    settings = home / CONFIG_FOLDER / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[[deny]]\npaths = ["a.txt"]\nwhy = "it is mine"\nname = "mine"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with filepact.open(root) as files:
        with pytest.raises(FilepactError) as caught:
            files.edit("a.txt", "world", "moon")
        assert caught.value.code == "PATH_BLOCKED"
        files.write("b.txt", "b\n")
    shown = run(
        ["log", "--json", "--root", str(root)], env={"HOME": str(home)}, capture_output=True
    )
    assert [one["summary"] for one in json.loads(shown.stdout)["operations"]] == [
        "create b.txt, 1 line"
    ]


def test_the_tools_for_an_agent_answer_with_text_and_refuse_with_their_codes(
    root: Path, tmp_path: Path
) -> None:
    with filepact.open(
        root, agent="helper", rules="built-in", state_dir=tmp_path / "state"
    ) as files:
        tools = {one.name: one for one in files.tools()}
        assert set(tools) == {
            *("read_file", "write_file", "edit_file", "search_files"),
            *("grep", "directory_tree", "patch_apply"),
        }
        assert tools["read_file"].parameters["properties"]["path"]
        assert "hello world" in tools["read_file"](path="a.txt")
        assert tools["read_file"](path=".env").startswith("PATH_BLOCKED")
        assert tools["edit_file"](path="a.txt").startswith("INVALID_PARAMS")
        with files.turn("one") as turn:
            changed = tools["edit_file"].run(
                {"path": "a.txt", "old_string": "world", "new_string": "moon"}
            )
        assert not changed.failed
        (operation,) = turn.operations
        assert operation.session.agent == "helper"
        assert {one.name for one in files.tools(read_only=True)} == {
            *("read_file", "search_files", "grep", "directory_tree")
        }


async def fail(files: AsyncFiles) -> None:
    async with files.turn(undo_on_error=True):
        await files.edit("a.txt", "world", "moon")
        await files.read(".env")


def test_the_same_files_with_an_event_loop(root: Path, tmp_path: Path) -> None:
    async def work() -> None:
        before = tree(root)
        async with AsyncFiles(root, rules="built-in", state_dir=tmp_path / "state") as files:
            async with files.turn("many") as turn:
                await asyncio.gather(
                    files.edit("a.txt", "world", "moon"),
                    files.write("b.txt", "b\n"),
                    files.make_dir("c"),
                    files.patch("--- a/src/m.py\n+++ b/src/m.py\n@@ -2 +2 @@\n-y = 2\n+y = 5\n"),
                )
                await files.move("b.txt", "d.txt")
                await files.delete("d.txt")
            assert await files.read("a.txt", lines=1) == "hello moon\n"
            assert await files.read_bytes("src/m.py") == b"x = 1\r\ny = 5\r\n"
            assert [one.path for one in await files.grep("moon")] == ["a.txt"]
            assert await files.find("*.py") == ["src/m.py"]
            assert "src" in await files.tree()
            assert len(await files.log()) == 6
            assert (await turn.undo()) is not None
            assert tree(root) == before
            await files.write("e.txt", "e\n")
            await files.undo()
            await files.redo()
            with pytest.raises(FilepactError) as caught:
                await fail(files)
            assert caught.value.code == "PATH_BLOCKED"
            assert tree(root) == before | {"e.txt": b"e\n"}
        with pytest.raises(FilepactError) as caught:
            _ = files.files
        assert caught.value.code == "INVALID_PARAMS"

    asyncio.run(work())


def test_a_call_that_is_given_up_comes_to_its_end_before_the_next(
    root: Path, tmp_path: Path
) -> None:
    async def work() -> None:
        async with AsyncFiles(root, rules="built-in", state_dir=tmp_path / "state") as files:
            writing = asyncio.ensure_future(files.write("b.txt", "b\n"))
            await asyncio.sleep(0)
            writing.cancel()
            assert await files.read("b.txt") == "b\n"
            assert len(await files.log()) == 1

    asyncio.run(work())


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = (
        "import sys, filepact; print([one for one in sys.modules if one.startswith('filepact.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"
