"""The tools over what a client shows: unsaved text, given back to it, undone when it says no."""

import asyncio
import re

import pytest
from acp import RequestError

from filepact.domain.operation import who
from filepact.tools.registry import UnknownToolError
from filepact_acp import buffer_sync
from test_agent_files import edit, refused, run
from tests.faces.acp.schema import Talk
from tests.pictures import png

DENIED = RequestError(-32603, "not today", {"errorKind": "denied"})


def test_all_seven_tools_start_from_unsaved_text(tmp_path):
    patch = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n ONE\n-typed\n+patched\n"

    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\ntwo\n")
        editor.unsaved[str(work / "a.txt")] = "one\ntyped\n"
        assert [one.name for one in files.tools] == list(steps)
        for tool, (arguments, part) in steps.items():
            outcome = await files.call(tool, arguments)
            assert not outcome.failed, outcome.text
            assert part in outcome.text, outcome.text
        return editor.unsaved[str(work / "a.txt")], editor.writes()

    steps = {
        "read_file": ({"path": "a.txt"}, "typed"),
        "write_file": (
            {"path": "a.txt", "content": "more\n", "append": True},
            "append 1 line to a.txt",
        ),
        "edit_file": (edit("a.txt", "one", "ONE"), "edit a.txt, line 1"),
        "search_files": ({"pattern": "*.txt"}, "a.txt"),
        "grep": ({"pattern": "typed"}, "a.txt"),
        "directory_tree": ({}, "a.txt"),
        "patch_apply": ({"patch": patch}, "apply a patch of 1 hunk to a.txt"),
    }
    text, writes = run(scene, tmp_path)
    assert text == "ONE\npatched\nmore\n"
    assert (tmp_path / "work" / "a.txt").read_text() == text
    assert [written for _path, written in writes] == [
        "one\ntyped\n",
        "one\ntyped\nmore\n",
        "ONE\ntyped\nmore\n",
        "ONE\npatched\nmore\n",
    ]


def test_several_files_are_read_as_the_client_shows_them_and_pictures_as_they_are(tmp_path):
    picture = png(2, 3)

    async def scene(editor, files, work):
        for name in ("a.txt", "b.txt"):
            (work / name).write_text("one\n")
            editor.unsaved[str(work / name)] = f"typed in {name}\n"
        (work / "p.png").write_bytes(picture)
        both = await files.call("read_file", {"paths": ["a.txt", "b.txt"]})
        return both.text, await files.call("read_file", {"path": "p.png"})

    text, seen = run(scene, tmp_path)
    assert "1\u2502typed in a.txt" in text
    assert "1\u2502typed in b.txt" in text
    assert (seen.data, seen.mime, seen.failed) == (picture, "image/png", False)
    assert "2 x 3" in seen.note


def test_undo_leaves_what_the_person_had_not_saved_and_tells_the_client(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\ntwo\n")
        editor.unsaved[path] = "one\ntyped\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        undone = await files.undo(done.receipt["operation"])
        assert not undone.failed, undone.text
        assert editor.unsaved[path] == "one\ntyped\n"
        assert [one.tool for one in files.workspace.log()] == ["undo", "edit_file"]
        return await files.undo("c0000000000")

    assert run(scene, tmp_path).code == "NOT_FOUND"
    assert (tmp_path / "work" / "a.txt").read_text() == "one\ntyped\n"


def test_a_tool_that_is_not_there_is_the_callers_mistake(tmp_path):
    async def scene(editor, files, work):
        with pytest.raises(UnknownToolError):
            await files.call("format_disk", {})
        return [
            (await files.call("edit_file", {"path": 7})).code,
            (await files.call("patch_apply", {"patch": "nonsense"})).code,
            (await files.call("patch_apply", {"patch": 3})).code,
        ]

    assert run(scene, tmp_path) == ["INVALID_PARAMS", "PATCH_MALFORMED", "INVALID_PARAMS"]


# -- searching ----------------------------------------------------------------------------


def test_grep_sees_unsaved_text_of_files_that_are_known_and_asks_for_it_again(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("saved\n")
        editor.unsaved[str(work / "a.txt")] = "apple\n"
        first = await files.call("grep", {"pattern": "apple|pear", "output_mode": "count"})
        named = await files.call("grep", {"pattern": "apple", "path": "a.txt"})
        editor.unsaved[str(work / "a.txt")] = "pear\n"
        later = await files.call("grep", {"pattern": "pear"})
        editor.unreadable[str(work / "a.txt")] = DENIED
        denied = await files.call("grep", {"pattern": "pear"})
        return first.text, named.text, later.text, denied.failed

    first, named, later, denied = run(scene, tmp_path)
    assert "a.txt" not in first
    assert "apple" in named
    assert "pear" in later
    assert not denied


# -- giving it to the client --------------------------------------------------------------


def test_a_new_file_is_given_to_the_client(tmp_path):
    async def scene(editor, files, work):
        done = await files.call(
            "write_file", {"path": "deep/new.txt", "content": "x\n", "createDirs": True}
        )
        assert not done.failed, done.text
        return editor.writes()

    written = run(scene, tmp_path)
    assert written == [(str(tmp_path / "work" / "deep" / "new.txt"), "x\n")]


def test_a_client_that_answers_an_empty_text_for_a_missing_file_has_none(tmp_path):
    async def scene(editor, files, work):
        editor.unsaved[str(work / "new.txt")] = ""
        missing = await files.call("read_file", {"path": "new.txt"})
        done = await files.call("write_file", {"path": "new.txt", "content": "x\n"})
        return missing.code, done.receipt["files"][0]["before"]

    assert run(scene, tmp_path) == ("NOT_FOUND", None)


def test_what_the_client_refuses_is_undone_and_is_the_tools_error(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\n")
        editor.refuses = {path: DENIED, str(work / "new.txt"): DENIED}
        refusals = [
            await files.call("edit_file", edit("a.txt", "one", "1")),
            await files.call("write_file", {"path": "new.txt", "content": "x"}),
        ]
        assert "not today" in refusals[0].text
        assert len(editor.writes()) == 2
        # What cannot be saved is not changed either.
        editor.unsaved[path] = "typed one\n"
        await files.call("read_file", {"path": "a.txt"})
        refusals.append(await files.call("edit_file", edit("a.txt", "one", "1")))
        assert editor.unsaved[path] == "typed one\n"
        assert editor.writes()[2:] == [(path, "typed one\n")]
        shown = await files.call("read_file", {"path": "a.txt"})
        assert "typed one" in shown.text
        return [one.code for one in refusals]

    assert run(scene, tmp_path) == ["USER_DENIED"] * 3
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"
    assert not (tmp_path / "work" / "new.txt").exists()


def test_an_undo_that_the_client_refuses_is_taken_back(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\n")
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        editor.refuses = {path: DENIED}
        assert (await files.undo(done.receipt["operation"])).code == "USER_DENIED"
        assert (work / "a.txt").read_text() == "1\n"
        editor.refuses = {}
        return (await files.undo(done.receipt["operation"])).failed

    assert run(scene, tmp_path) is False
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"


def test_a_client_that_does_not_answer_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(buffer_sync, "_PATIENCE", 0.05)

    async def scene(editor, files, work):
        for name in ("a", "b"):
            (work / f"{name}.txt").write_text(f"{name}\n")
        editor.refuses = {str(work / "b.txt"): DENIED}

        def hold(text):
            editor.held = asyncio.Event()
            return text

        editor.formats = hold
        outcome = await files.call("patch_apply", {"patch": TWO})
        editor.refuses[str(work / "a.txt")] = DENIED
        editor.held.set()
        return outcome.code

    # The second file is refused at once, and the first is not taken back by the client.
    assert run(scene, tmp_path) == "USER_DENIED"
    assert (tmp_path / "work" / "a.txt").read_text() == "a\n"


TWO = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-a\n+A\n--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-b\n+B\n"


def test_when_one_file_of_several_is_refused_the_others_get_their_old_text_back(tmp_path):
    async def scene(editor, files, work):
        for name in ("a", "b"):
            (work / f"{name}.txt").write_text(f"{name}\n")
        editor.refuses = {str(work / "b.txt"): DENIED}
        assert (await files.call("patch_apply", {"patch": TWO})).code == "USER_DENIED"
        return editor.writes()

    work = tmp_path / "work"
    assert run(scene, tmp_path) == [
        (str(work / "a.txt"), "A\n"),
        (str(work / "b.txt"), "B\n"),
        (str(work / "a.txt"), "a\n"),
    ]
    assert (work / "a.txt").read_text() == "a\n"
    assert (work / "b.txt").read_text() == "b\n"


def test_a_client_that_takes_nothing_back_is_left_with_what_it_has(tmp_path):
    async def scene(editor, files, work):
        for name in ("a", "b"):
            (work / f"{name}.txt").write_text(f"{name}\n")
        editor.refuses = {str(work / "b.txt"): DENIED}

        def once(text):
            editor.refuses[str(work / "a.txt")] = DENIED
            return text

        editor.formats = once
        return (await files.call("patch_apply", {"patch": TWO})).code

    assert run(scene, tmp_path) == "USER_DENIED"
    assert (tmp_path / "work" / "a.txt").read_text() == "a\n"


def test_what_cannot_be_taken_back_is_said(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\n")

        def instead(path, content):
            (work / "a.txt").write_text("somebody else\n")
            raise DENIED

        editor.instead = instead
        return await files.call("edit_file", edit("a.txt", "one", "1"))

    outcome = run(scene, tmp_path)
    assert outcome.code == "WRITE_ERROR"
    assert "could not be taken back" in outcome.text
    assert (tmp_path / "work" / "a.txt").read_text() == "somebody else\n"


def test_the_client_gets_line_ends_as_it_shows_them_and_the_file_keeps_its_own(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
        editor.unsaved[str(path)] = "one\ntwo\nthree\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert editor.writes() == [
            (str(path), "one\ntwo\nthree\n"),
            (str(path), "1\ntwo\nthree\n"),
        ]
        return done

    done = run(scene, tmp_path)
    assert not done.failed
    assert "its own again" in done.text
    assert (tmp_path / "work" / "a.txt").read_bytes() == b"\xef\xbb\xbf1\r\ntwo\r\nthree\r\n"


def test_a_client_that_shows_the_mark_at_the_start_gets_it_back(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_bytes(b"\xef\xbb\xbfone\r\n")
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        return done.text, editor.writes()

    text, writes = run(scene, tmp_path)
    assert writes == [(str(tmp_path / "work" / "a.txt"), "\ufeff1\r\n")]
    assert "its own again" not in text


def test_what_a_client_formats_stays_and_is_said(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\n")
        editor.formats = str.upper
        done = await files.call("edit_file", edit("a.txt", "one", "two"))
        again = await files.call("edit_file", edit("a.txt", "TWO", "three"))
        return done, again

    done, again = run(scene, tmp_path)
    assert "another text" in done.text
    assert not again.failed
    assert (tmp_path / "work" / "a.txt").read_text() == "THREE\n"


def test_a_client_that_removes_the_file_is_told_of(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\n")

        editor.instead = lambda *_: (work / "a.txt").unlink()
        return (await files.call("edit_file", edit("a.txt", "one", "two"))).text

    assert "not on the disk" in run(scene, tmp_path)


def test_a_client_that_takes_no_writes_shows_the_old_text_and_that_is_not_taken_for_unsaved(
    tmp_path,
):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\ntwo\n")
        editor.unsaved[path] = "one\ntyped\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert "takes no writes" in done.text
        shown = await files.call("read_file", {"path": "a.txt"})
        assert "1" in shown.text
        # Somebody types on in the old text: both changes are kept.
        editor.unsaved[path] = "one\ntyped\nmore\n"
        await files.call("write_file", {"path": "a.txt", "content": "end\n", "append": True})
        new = await files.call("write_file", {"path": "b.txt", "content": "new\n"})
        assert not new.failed
        return "takes no writes" in new.text

    assert run(scene, tmp_path, write=False) is False
    assert (tmp_path / "work" / "a.txt").read_text() == "1\ntyped\nmore\nend\n"


def test_a_deleted_file_and_bytes_that_are_no_text_are_not_for_the_client(tmp_path):
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"

    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\n")
        (work / "b.txt").write_bytes(b"\0\1")
        first = await files.call("patch_apply", {"patch": patch})
        assert not first.failed, first.text
        assert editor.writes() == []
        # Bringing it back is for the client again.
        undone = await files.undo()
        assert not undone.failed, undone.text
        return editor.writes()

    assert run(scene, tmp_path) == [(str(tmp_path / "work" / "a.txt"), "one\n")]


def test_a_change_that_cannot_be_made_leaves_the_client_its_unsaved_text(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\n")
        editor.unsaved[path] = "typed\n"
        nowhere = await files.call("edit_file", edit("a.txt", "one", "1"))
        shown = await files.call("edit_file", {**edit("a.txt", "typed", "1"), "dry_run": True})
        same = await files.call("write_file", {"path": "a.txt", "content": "typed\n"})
        assert editor.writes() == []
        # A client that does not save: the text is written to the disk before the change.
        editor.saves = False
        done = await files.call("edit_file", edit("a.txt", "typed", "1"))
        assert [one.tool for one in files.workspace.log()] == ["edit_file", "editor"]
        return nowhere.code, shown.receipt["status"], same.receipt["status"], done.failed

    expected = ("STRING_NOT_FOUND", "preview", "unchanged", False)
    assert run(scene, tmp_path) == expected


# -- the disk and the client --------------------------------------------------------------


def test_what_others_wrote_on_other_lines_is_merged_and_on_the_same_is_refused(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_text("one\nsame\ntwo\nalso\nthree\n")
        await files.call("read_file", {"path": "a.txt"})
        editor.unsaved[str(path)] = "typed\nsame\ntwo\nalso\nthree\n"
        path.write_text("one\nsame\ntwo\nalso\nformatted\n")
        done = await files.call("edit_file", edit("a.txt", "two", "2"))
        assert "merged" in done.text
        assert editor.unsaved[str(path)] == "typed\nsame\n2\nalso\nformatted\n"
        editor.unsaved[str(path)] = "typed on\nsame\n2\nalso\nformatted\n"
        path.write_text("else\nsame\n2\nalso\nformatted\n")
        return (await files.call("edit_file", edit("a.txt", "2", "two"))).code

    assert run(scene, tmp_path) == "STALE_FILE"
    assert (tmp_path / "work" / "a.txt").read_text() == "else\nsame\n2\nalso\nformatted\n"


def test_a_client_that_shows_an_older_text_has_nothing_unsaved(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_text("old\n")
        editor.unsaved[str(path)] = "old\n"
        await files.call("read_file", {"path": "a.txt"})
        path.write_text("new\nmore\n")
        assert "new" in (await files.call("read_file", {"path": "a.txt"})).text
        # So what the agent reads is what the disk has, all of it or some lines.
        assert await files.read(str(path)) == "new\nmore\n"
        assert await files.read(str(path), 2, 1) == "more\n"
        await files.write(str(path), "new\n2\n")
        path.unlink()
        return await refused(files.read(str(path)))

    assert run(scene, tmp_path) == "NOT_FOUND"


def test_what_the_client_saved_and_then_typed_on_is_no_conflict(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_text("one\nsame\n")
        await files.call("read_file", {"path": "a.txt"})
        editor.unsaved[str(path)] = "one\nsame\ntwo\n"
        await files.call("read_file", {"path": "a.txt"})
        path.write_text("one\nsame\ntwo\n")
        editor.unsaved[str(path)] = "one\nsame\ntwo\nthree\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        return done.failed, editor.unsaved[str(path)]

    assert run(scene, tmp_path) == (False, "1\nsame\ntwo\nthree\n")


# -- writing ------------------------------------------------------------------------------


def test_a_write_keeps_what_was_typed_since_the_agent_read(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\ntwo\nthree\n")
        text = await files.read(path)
        editor.unsaved[path] = "one\ntwo\ntyped\n"
        await files.write(path, text.replace("one", "1"))
        return editor.unsaved[path]

    assert run(scene, tmp_path) == "1\ntwo\ntyped\n"


def test_a_write_through_the_client_leaves_the_files_own_line_ends(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_bytes(b"one\r\ntwo\r\n")
        editor.newline = "\n"
        done = await files.write(str(path), "1\ntwo\n")
        assert "its own again" in done.text
        await files.write(str(work / "sub" / "new.txt"), "x\r\n")
        await files.write(str(path), "1\ntwo\n")

    run(scene, tmp_path)
    assert (tmp_path / "work" / "a.txt").read_bytes() == b"1\r\ntwo\r\n"
    assert (tmp_path / "work" / "sub" / "new.txt").read_bytes() == b"x\n"


def test_a_client_that_does_not_save_is_seen_to_have_unsaved_text(tmp_path):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\n")
        editor.saves = False
        editor.unsaved[path] = "one\n"
        done = await files.write(path, "two\n")
        assert "another text" in done.text
        return (await files.call("edit_file", edit("a.txt", "two", "three"))).failed

    assert run(scene, tmp_path) is False
    assert (tmp_path / "work" / "a.txt").read_text() == "three\n"


@pytest.mark.parametrize("write", [True, False])
def test_where_every_change_waits_a_write_waits_and_the_client_hears_nothing(tmp_path, write):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        assert await refused(files.write(path, "x")) == "APPROVAL_REQUIRED"
        waiting = await files.call("write_file", {"path": "a.txt", "content": "x"})
        assert waiting.receipt["status"] == "pending"
        assert len(files.workspace.pending()) == 1
        return editor.writes()

    assert run(scene, tmp_path, mode="preview", write=write) == []
    assert not (tmp_path / "work" / "a.txt").exists()


def chosen(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.mark.parametrize("write", [True, False])
def test_what_waits_is_put_to_the_person_in_front_of_the_client(tmp_path, write):
    async def scene(editor, files, work):
        path = str(work / "a.txt")
        (work / "a.txt").write_text("one\n```\n")
        editor.says = chosen("filepact-reject")
        denied = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert denied.code == "USER_DENIED"
        assert await refused(files.write(path, "x")) == "USER_DENIED"
        editor.says = chosen("filepact-allow")
        editor.unsaved[path] = "one\n```\ntyped\n"
        done = await files.call("edit_file", edit("a.txt", "one", "1"))
        assert done.receipt["status"] == "applied", done.text
        assert "Proposal" not in done.text
        written = await files.write(path, "all new\n")
        assert written.receipt["status"] == "applied"
        (_, call, options), *_ = [one for one in editor.heard if one[0] == "asked"]
        asking = re.escape(who(files._session.actor))
        assert re.search(rf" {asking} at \d{{4}}-\d\d-\d\dT[\d:+-]+$", call.title), call.title
        kinds = [one.kind for one in options]
        assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once"]
        assert [(one.path, one.line) for one in call.locations] == [(path, 1)]
        (only,) = call.content
        assert (only.path, only.old_text, only.new_text) == (path, "one\n```\n", "1\n```\n")
        editor.says = {"outcome": {"outcome": "cancelled"}}
        waiting = await files.call("edit_file", edit("a.txt", "all", "very"))
        assert waiting.receipt["status"] == "pending"
        editor.says = {"outcome": 7}
        assert await refused(files.write(path, "x")) == "APPROVAL_REQUIRED"
        return len(files.workspace.pending()), [text for _path, text in editor.writes()]

    waiting, written = run(scene, tmp_path, mode="preview", write=write)
    assert waiting == 1
    unsaved = "one\n```\ntyped\n"
    assert written == ([unsaved, "1\n```\ntyped\n", "all new\n"] if write else [])
    assert (tmp_path / "work" / "a.txt").read_text() == "all new\n"


def test_a_file_that_moves_while_the_person_looks_is_shown_again_with_what_happened(tmp_path):
    async def scene(editor, files, work):
        path = work / "a.txt"
        path.write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
        looks = iter(["1\n2\n3\n4\n5\nby hand\n7\n8\n", None])

        def says():
            moved = next(looks)
            if moved is not None:
                path.write_text(moved)
            return chosen("filepact-allow")

        editor.says = says
        done = await files.call("edit_file", edit("a.txt", "8", "EIGHT"))
        assert done.receipt["status"] == "applied", done.text
        assert "Proposal" not in done.text
        asked = [one[1] for one in editor.heard if one[0] == "asked"]
        assert files.workspace.events(files._session) == ()
        return [[one.type for one in call.content] for call in asked], asked[1].content[0]

    kinds, since = run(scene, tmp_path, mode="preview", write=False)
    assert kinds == [["diff"], ["content", "diff"]]
    assert "+by hand" in since.content.text
    assert (tmp_path / "work" / "a.txt").read_text() == "1\n2\n3\n4\n5\nby hand\n7\nEIGHT\n"


def test_a_dialog_hides_nothing_and_what_it_cuts_cannot_be_allowed_there(tmp_path):
    async def scene(editor, files, work):
        editor.says = chosen("filepact-reject")
        assert await refused(files.write(str(work / "a.txt"), "a\u202e\x1b[2J\n")) == "USER_DENIED"
        lines = "".join(f"line {number} {'x' * 60}\n" for number in range(3_000))
        large = files.write(str(work / "b.txt"), f"{lines}\u200bevil\n")
        editor.says = chosen("filepact-allow")
        assert await refused(large) == "APPROVAL_REQUIRED"
        return [one for one in editor.heard if one[0] == "asked"]

    (_, small, _), (_, large, options) = run(scene, tmp_path, mode="preview", write=False)
    said = small.content[0].content.text
    assert "\\u202e\\x1b[2J" in said
    assert not {"\u202e", "\x1b"} & set(said)
    said = large.content[0].content.text
    assert "more lines" in said
    assert "filepact diff c" in said
    assert {one.kind for one in options} == {"reject_once"}
    assert not (tmp_path / "work" / "b.txt").exists()


def test_what_is_allowed_for_a_file_is_not_asked_again_and_each_question_is_closed(tmp_path):
    async def scene(editor, files, work):
        editor.says = chosen("filepact-allow-file")
        await files.write(str(work / "a.txt"), "one\n")
        editor.says = chosen("filepact-reject")
        await files.write(str(work / "a.txt"), "two\n")
        assert await refused(files.write(str(work / "b.txt"), "x")) == "USER_DENIED"
        asked = [one[1].tool_call_id for one in editor.heard if one[0] == "asked"]
        await files.read(str(work / "a.txt"))  # which is answered after what was told
        closed = [(one[1].tool_call_id, one[1].status) for one in editor.heard if one[0] == "told"]
        assert closed == list(zip(asked, ["completed", "failed"], strict=True))

    run(scene, tmp_path, mode="preview", write=False)
    assert (tmp_path / "work" / "a.txt").read_text() == "two\n"


def test_what_a_person_allows_in_a_protected_file_is_not_shown_to_the_agent(tmp_path):
    async def scene(editor, files, work):
        (work / ".env").write_text("TOKEN=SECRET\n")
        editor.says = chosen("filepact-allow")
        arguments = {"path": ".env", "content": "NEW=1\n", "append": True}
        done = await files.call("write_file", arguments)
        assert done.receipt["status"] == "applied", done.text
        return done.text

    assert "SECRET" not in run(scene, tmp_path)
    assert (tmp_path / "work" / ".env").read_text() == "TOKEN=SECRET\nNEW=1\n"


def test_a_question_that_nobody_waits_for_is_withdrawn(tmp_path):
    async def scene(editor, files, work):
        editor.says, editor.held = chosen("filepact-allow"), asyncio.Event()
        call = asyncio.ensure_future(files.write(str(work / "a.txt"), "x"))
        await editor.began.wait()
        await cancelled(call)
        editor.held.set()
        return files.workspace.pending()

    assert run(scene, tmp_path, mode="preview") == ()
    assert not (tmp_path / "work" / "a.txt").exists()


def test_everything_that_is_sent_is_what_the_schema_allows(tmp_path):
    seen = []

    async def scene(editor, files, work):
        path = str(work / "a.txt")
        editor.unsaved[path] = "one\n"
        await files.read(path, 1, 1)
        await files.write(path, "two\n")
        editor.says = chosen("filepact-allow")
        files.workspace.mode = "preview"
        done = await files.call("edit_file", edit("a.txt", "two", "three"))
        editor.refuses[path] = DENIED
        undone = await files.undo(done.receipt["operation"])
        return done.receipt["status"], undone.code

    status = run(scene, tmp_path, sees=lambda *message: seen.append(message))
    assert status == ("applied", "USER_DENIED")
    talk = Talk()
    for message, direction in seen:
        talk.see(message, direction)
    assert talk.count >= 20


def test_without_asking_a_change_waits_for_the_command(tmp_path):
    async def scene(editor, files, work):
        code = await refused(files.write(str(work / "a.txt"), "x"))
        return code, editor.heard[1:]

    assert run(scene, tmp_path, mode="preview", ask=False) == ("APPROVAL_REQUIRED", [])


def test_contents_that_cannot_be_sent_are_refused_before_anything_is(tmp_path):
    async def scene(editor, files, work):
        (work / "a.bin").write_bytes(b"\0\1\2")
        path = str(work / "a.txt")
        codes = [
            await refused(files.write(path, "\ud800")),
            await refused(files.write(path, "x" * 10_000_001)),
            await refused(files._remote.write(path, "x" * 25_200_000)),
            await refused(files.write(str(work / "a.bin"), "x")),
        ]
        return codes, editor.writes()

    codes, writes = run(scene, tmp_path)
    assert codes == ["INVALID_PARAMS", "FILE_TOO_LARGE", "FILE_TOO_LARGE", "BINARY_FILE"]
    assert writes == []


@pytest.mark.parametrize("answer", [None, {}, {"_meta": 7}, {"_meta": {}}])
def test_every_answer_to_a_write_is_one(tmp_path, answer):
    async def scene(editor, files, work):
        editor.instead = lambda *_: answer
        await files._remote.write(str(work / "a.txt"), "x")

    run(scene, tmp_path)


# -- cancelling ---------------------------------------------------------------------------


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def held(editor, files, work):
    """An edit that the client has been asked to make, and holds."""
    (work / "a.txt").write_text("one\n")
    editor.held = asyncio.Event()
    call = asyncio.ensure_future(files.call("edit_file", edit("a.txt", "one", "1")))
    await editor.began.wait()
    return call


def test_a_call_that_is_cancelled_while_the_client_holds_it_is_taken_back(tmp_path):
    async def scene(editor, files, work):
        call = await held(editor, files, work)
        waiting = asyncio.ensure_future(files.read(str(work / "a.txt")))
        await asyncio.sleep(0)
        await cancelled(waiting)
        await cancelled(call)
        assert (work / "a.txt").read_text() == "one\n"
        editor.refuses[str(work / "a.txt")] = DENIED
        editor.held.set()
        return await files.read(str(work / "a.txt"))

    assert run(scene, tmp_path) == "one\n"


def test_a_change_that_a_client_makes_after_it_was_cancelled_is_in_the_log(tmp_path):
    async def scene(editor, files, work):
        call = await held(editor, files, work)
        await cancelled(call)
        assert (work / "a.txt").read_text() == "one\n"
        editor.held.set()
        # Its answer comes before that to what is asked afterwards.
        assert await files.read(str(work / "a.txt")) == "1\n"
        await asyncio.gather(*files._sync._late)
        assert files.workspace.log()[0].tool == "outside"
        await files.undo()
        return (work / "a.txt").read_text()

    assert run(scene, tmp_path) == "one\n"


def test_a_call_that_the_client_holds_ends_with_its_session(tmp_path):
    async def scene(editor, files, work):
        call = await held(editor, files, work)
        waiting = asyncio.ensure_future(files.read(str(work / "a.txt")))
        await asyncio.sleep(0)
        await editor.client.close_session(session_id="s1")
        codes = [await refused(call), await refused(waiting)]
        editor.refuses[str(work / "a.txt")] = DENIED
        editor.held.set()
        return codes

    assert run(scene, tmp_path) == ["INVALID_PARAMS", "INVALID_PARAMS"]
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"


def test_a_write_that_is_cancelled_while_the_client_holds_it_is_over_for_the_agent(tmp_path):
    async def scene(editor, files, work):
        editor.held = asyncio.Event()
        call = asyncio.ensure_future(files.write(str(work / "a.txt"), "x"))
        await editor.began.wait()
        await cancelled(call)
        editor.refuses[str(work / "a.txt")] = DENIED
        editor.held.set()

    run(scene, tmp_path)
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_call_that_is_cancelled_before_it_is_told_to_the_client_is_taken_back(tmp_path):
    async def scene(editor, files, work):
        (work / "a.txt").write_text("one\n")
        run_tool, loop = files._toolbox.call, asyncio.get_running_loop()
        calls = []

        def call(*arguments):
            outcome = run_tool(*arguments)
            loop.call_soon_threadsafe(calls[0].cancel)
            return outcome

        files._toolbox.call = call
        calls.append(asyncio.ensure_future(files.call("edit_file", edit("a.txt", "one", "1"))))
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        return editor.writes()

    assert run(scene, tmp_path) == []
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"
