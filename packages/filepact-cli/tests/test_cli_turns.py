"""What people select by turn, session, time and file, and what they see of turns."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError
from filepact_cli.turns import files_shown, time_named
from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine

ROBOT = Session("mcp-1234abcd", Actor("agent", "robot", "9"))
NOW = datetime.fromisoformat("2026-03-10T14:30:00").timestamp()


def act(cli: CommandLine, *steps: tuple[str, str, str | None]) -> None:
    """Turns, names and texts; no text deletes."""
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        for turn, name, text in steps:
            with workspace.draft(replace(ROBOT, turn=turn), "write_file") as draft:
                if text is None:
                    target = draft.open(name, there=True, itself=True)
                    draft.delete(target, emptied_by=None)
                else:
                    draft.write(draft.open(name), text)
                workspace.submit(draft, f"write {name}")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("10m", NOW - 600),
        ("1h30m", NOW - 5_400),
        ("2 days ago", NOW - 2 * 86_400),
        ("1 week", NOW - 604_800),
        ("90s", NOW - 90),
        ("today", at("2026-03-10")),
        ("Yesterday", at("2026-03-09")),
        ("14:30", NOW),
        ("9:05", at("2026-03-10T09:05")),
        ("15:00", at("2026-03-10T15:00") - 86_400),
        ("2026-03-01", at("2026-03-01")),
        ("2026-03-01 10:00", at("2026-03-01T10:00")),
        ("2026-03-01T10:00:00Z", at("2026-03-01T10:00:00+00:00")),
    ],
)
def test_a_time_is_read_as_people_type_it(said: str, meant: float) -> None:
    assert time_named(said, NOW) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "soon",
        "10",
        "10x",
        "m10",
        "1h 5",
        "25:00",
        "2026-13-01",
        "2027-01-01",
        "-5m",
        "20260301",
    ],
)
def test_what_is_no_time_or_lies_ahead_is_refused(said: str) -> None:
    with pytest.raises(InvalidParamsError):
        time_named(said, NOW)


def test_a_file_that_has_another_name_now_is_one_line_of_a_turn_and_of_its_undo(
    cli: CommandLine,
) -> None:
    (cli.root / "old.bin").write_bytes(bytes(range(256)))
    assert cli("mv", "old.bin", "new.bin").code == 0
    assert cli("write", "old.bin", "--content", "another").code == 0
    said = [" ".join(line.split()) for line in cli("log", "--turns").out.splitlines()]
    assert "made old.bin +1 -0" in said
    assert "moved old.bin -> new.bin" in said
    moved = cli.json("log", "--turns", "-n", "2")["turns"][1]["files"]
    assert [one["change"] for one in moved] == ["delete", "create"]
    (cli.root / "old.bin").unlink()
    operation = cli.json("log", "-n", "2")["operations"][1]["id"]
    assert "moved   new.bin -> old.bin\n" in cli("undo", operation, "--unattended").out


@pytest.mark.parametrize(("more", "moved"), [((), 1), (("lib/",), 0)])
def test_a_folder_is_said_to_be_renamed_only_if_no_other_can_be_meant(more, moved) -> None:
    """All folders with the same rights have one state."""
    files = [("docs2/", "delete", 0, 0), *((one, "create", 0, 0) for one in ("docs/", *more))]
    states = {one: (None, "state") for one, *_ in files} | {"docs2/": ("state", None)}
    said = "".join(one.text for one in files_shown(files, states))
    assert said.count("docs2/ -> docs/") == said.count("->") == moved
    assert all(one in said for one in ("docs/", "docs2/", *more))


def test_turns_are_listed_with_their_files_within_eighty_columns(cli: CommandLine) -> None:
    long = f"src/{'deep/' * 20}module.py"
    act(cli, ("turn-one", "a.txt", "1\n"), ("turn-one", "a.txt", "1\n2\n"), ("", "b.txt", "b\n"))
    act(
        cli,
        ("turn-two", "empty.txt", ""),
        ("turn-two", "b.txt", None),
        ("turn-two", long, "x\n"),
        ("turn-two", "a.txt", "1\n"),
    )
    said = cli("log", "--turns").out
    heads = [line for line in said.splitlines() if not line.startswith("     ")]
    assert [re.search(r"(turn|session) \S+", line)[0] for line in heads] == [  # type: ignore[index]
        "turn turn-two",
        "session mcp-1234abcd",
        "turn turn-one",
    ]
    assert [line[:3] for line in heads] == ["  1", "  -", "  2"]
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(r"deleted +b\.txt", said)
    assert "+0 -0" not in said
    known = cli.json("log", "--turns", "-n", "1")["turns"]
    assert [one["number"] for one in known] == [1]
    assert [(one["path"], one["change"], one["removed"]) for one in known[0]["files"]] == [
        ("b.txt", "delete", 1),
        ("empty.txt", "create", 0),
        (long, "create", 0),
        ("a.txt", "modify", 1),
    ]
    cli.json("undo", "--turn", "--unattended")
    [newest, *_] = cli.json("log", "--turns", "--all")["turns"]
    assert newest["session"].startswith("cli-")
    undone = cli.json("log", "--turns", "--all")["turns"][1]
    assert (undone["files"], undone["undone"]) == ([], undone["operations"])
    assert cli("log", "--turns", "a.txt").code == 2


def hours_ago(cli: CommandLine, age: dict[str, float]) -> None:
    """Make operations by their summary begin so many hours before now."""
    with sqlite3.connect(cli.state / "journal.db") as journal:
        for summary, hours in age.items():
            began = time.time() - hours * 3_600
            assert journal.execute(
                "UPDATE operation SET created = ? WHERE summary = ?", (began, summary)
            ).rowcount


def test_the_log_begins_when_it_is_told_to(cli: CommandLine) -> None:
    act(cli, *((f"turn-{name}", f"{name}.txt", "x\n") for name in "abc"), ("", "d.txt", "d\n"))
    act(cli, *(("turn-late", f"late-{number:03}.txt", "x\n") for number in range(120)))
    hours_ago(cli, {"write a.txt": 50, "write b.txt": 30, "write c.txt": 3, "write d.txt": 2})

    def listed(*words: str) -> list[str]:
        return [one["summary"] for one in cli.json("log", *words)["operations"]]

    assert len(listed()) == 20
    assert listed("--since", "1h") == [
        f"write late-{number:03}.txt" for number in range(119, -1, -1)
    ]
    assert listed("--since", "4h")[120:] == ["write d.txt", "write c.txt"]
    assert listed("--since", "4h", "-n", "2") == ["write late-119.txt", "write late-118.txt"]
    assert listed("--since", "4h", "c.txt") == ["write c.txt"]
    assert listed("--since", "1h", "c.txt") == []
    turns = cli.json("log", "--turns", "--since", "4h")["turns"]
    assert [one["turn"] for one in turns] == ["turn-late", "", "turn-c"]
    assert cli("log", "--since", "1h", "c.txt").out == "No operations on c.txt since 1h.\n"
    hours_ago(cli, {f"write late-{number:03}.txt": 9 for number in range(120)})
    assert cli("log", "--since", "1h").out == "Nothing was done here since 1h.\n"
    assert cli("log", "--since", "1h", "--turns").out == "Nothing was done here since then.\n"
    assert (
        cli("log", "--since", "1h", "--asked").out
        == "No agent has asked for anything here since 1h.\n"
    )
    assert cli("log", "--since", "soon").code == 2


def test_undo_takes_what_is_selected(cli: CommandLine) -> None:
    act(
        cli,
        ("turn-one", "a.txt", "1\n"),
        ("turn-two", "b.txt", "2\n"),
        ("turn-two", "c.txt", "3\n"),
    )
    shown = cli.json("undo", "--turn", "--dry-run")
    assert shown["status"] == "preview"
    assert len(shown["files"]) == 2
    assert cli.json("undo", "--unattended", "c.txt")["status"] == "applied"
    assert cli.json("undo", "--unattended", "--session", "mcp-12", "--since", "1h")["files"]
    assert not any((cli.root / name).exists() for name in ("a.txt", "b.txt", "c.txt"))
    for _ in range(2):
        cli.json("redo", "--unattended")
    one, two = cli.json("log")["operations"][-2:]
    cli.json("undo", "--unattended", one["id"], two["id"][:6])
    assert (cli.root / "c.txt").exists()
    assert not (cli.root / "a.txt").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("zzz",), "NOT_FOUND"),
        (("c0000",), "NOT_FOUND"),
        (("--turn",), "NO_CHANGE"),
        (("--turn", "1"), "NOT_FOUND"),
        (("--session", "nobody"), "NOT_FOUND"),
        (("--session", ""), "NOT_FOUND"),
        (("--agent", "nobody"), "NO_CHANGE"),
        (("--since", "soon"), "INVALID_PARAMS"),
        (("src",), "NO_CHANGE"),
        (("/etc/passwd",), "PATH_BLOCKED"),
    ],
)
def test_what_selects_nothing_is_refused(
    cli: CommandLine, words: tuple[str, ...], code: str
) -> None:
    status = {"NO_CHANGE": 3, "INVALID_PARAMS": 2}.get(code, 1)
    answer = cli.json("undo", "--unattended", *words, code=status)
    assert answer["error"]["code"] == code


def test_a_word_that_is_an_id_and_a_file_has_to_be_told_apart(cli: CommandLine) -> None:
    act(cli, ("", "a.txt", "1\n"))
    (name,) = (one["id"] for one in cli.json("log")["operations"])
    (cli.root / name).write_text("a file\n")
    assert cli.json("undo", "--unattended", name, code=2)["error"]["code"] == "INVALID_PARAMS"
    assert cli.json("undo", "--unattended", name[:8])["status"] == "applied"


def test_restore_goes_to_before_an_operation(cli: CommandLine) -> None:
    act(cli, ("", "a.txt", "1\n"), ("", "a.txt", "2\n"), ("", "b.txt", "3\n"))
    second = cli.json("log")["operations"][1]["id"]
    assert cli.json("restore", "--unattended", "--before", second)["status"] == "applied"
    assert (cli.root / "a.txt").read_text() == "1\n"
    assert not (cli.root / "b.txt").exists()
    refusal = cli.json("restore", "--unattended", code=2)["error"]
    assert refusal["code"] == "INVALID_PARAMS"
    # With an operation, what else is said is a file.
    refusal = cli.json("restore", "--unattended", "name", "--before", second, code=1)["error"]
    assert refusal["code"] == "NOT_FOUND"


def test_every_way_back_takes_paths_and_leaves_what_cannot_go(cli: CommandLine) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (cli.root / name).write_text("1\n2\n3\n")
    cli("checkpoint", "here")
    act(cli, *(("t", name, "1\ntwo\n3\n") for name in ("a.txt", "b.txt", "c.txt")))
    (cli.root / "a.txt").write_text("1\nmine\n3\n")
    refusal = cli.json("restore", "here", "--unattended", code=1)["error"]
    assert "--partly" in refusal["hint"]
    done = cli.json("restore", "here", "c.txt", "--unattended")
    assert [one["path"] for one in done["files"]] == ["c.txt"]
    done = cli.json("restore", "here", "--partly", "--unattended")
    assert [one["path"] for one in done["left"]] == ["a.txt"]
    assert (cli.root / "b.txt").read_text() == "1\n2\n3\n"
    done = cli.json("redo", done["operation"], "b.txt", "--unattended")
    assert [one["path"] for one in done["files"]] == ["b.txt"]
    assert cli.json("redo", done["operation"], "--unattended", code=3)
    ids = [one["id"] for one in cli.json("log")["operations"][:2]]
    assert cli.json("redo", *ids, "--unattended", code=2)["error"]["code"] == "INVALID_PARAMS"


def test_the_question_names_only_what_goes_back(cli: CommandLine) -> None:
    cli("checkpoint", "here")
    act(cli, ("t", "a.txt", "1\n"))
    patch = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+1\n" for name in ("b", "c"))
    cli.json("patch", stdin=patch.encode())
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "NO_COLOR": "1"}
    words, typed = ("restore", "here", "b", "--all"), [("[y/N]", "n\n")]
    _, shown = on_terminal(words, start=Command, typed=typed, env=environment)
    asked = [line.strip() for line in shown.splitlines() if "ago: " in line]
    assert len(asked) == 1, shown
    assert asked[0].startswith("you  1 file, "), shown
    assert asked[0].endswith("ago: b"), shown


@pytest.mark.skipif(sys.platform == "darwin", reason="every name is text there")
def test_a_name_that_is_no_text_is_taken_as_the_shell_has_it_and_as_lists_show_it(
    cli: CommandLine,
) -> None:
    odd, shown = os.fsdecode(b"caf\xe9.txt"), r"caf\xe9.txt"
    (cli.root / odd).write_text("one\n")
    for name in (odd, shown):
        assert "one" in cli.json("read", name)["text"]
        assert "denied" not in str(cli.json("explain", name))
        cli.json("rm", name)
        assert not (cli.root / odd).exists()
        # What is gone is found by its name as well.
        (done, *_) = cli.json("log", name)["operations"]
        assert done["files"][0]["path"] == odd
        refusal = cli.json("undo", name, "--unattended", code=2)["error"]
        assert done["id"] in refusal["message"], "which is a person's own"
        cli.json("undo", done["id"], "--unattended")
        cli.json("mv", name, "new.txt")
        cli.json("undo", cli.newest(), "--unattended")
        assert (cli.root / odd).read_text() == "one\n"
    new = os.fsdecode(b"n\xe9w.txt")
    assert cli.json("mv", odd, new, code=1)["error"]["code"] == "NOT_FOUND"
    assert cli.json("mkdir", new, code=1)["error"]["code"] == "NOT_FOUND"
    made = {r"n\xe9w.txt", new}.intersection(os.listdir(cli.root))
    assert not made, "a name that only looks like it is not made"
    (cli.root / shown).write_text("two\n")
    cli.json("rm", odd, code=2)
    assert (cli.root / odd).exists()
    assert (cli.root / shown).exists()
