"""Which settings file is read, by every command and by the server, and what the doctor says of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

SJIS = '[encodings]\n"*.txt" = "shift_jis"\n'
JAPANESE = "日本 = 1\n".encode("shift_jis")


@pytest.fixture
def folder(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own settings folder, with nothing in it."""
    found = tmp_path / "home" / ".config" / "filepact"
    found.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(found.parent))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    (cli.root / "a.txt").write_bytes(JAPANESE)
    return found


def settings(cli: CommandLine, *words: str, code: int = 0) -> list[dict[str, Any]]:
    """What the doctor says of settings files."""
    checks = cli.json("doctor", *words, code=code)["checks"]
    return [one for one in checks if one["name"] == "settings"]


def test_the_usual_file_is_read_by_commands(cli: CommandLine, folder: Path) -> None:
    assert "日本" not in cli("read", "a.txt").out
    (folder / "filepact.toml").write_text(SJIS)
    assert "日本" in cli("read", "a.txt").out
    assert cli("edit", "a.txt", "--old", "日本", "--new", "語").code == 0
    assert (cli.root / "a.txt").read_bytes() == "語 = 1\n".encode("shift_jis")


@pytest.mark.parametrize("before", [True, False])
def test_an_option_goes_before_a_variable_and_that_before_the_usual_file(
    cli: CommandLine,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: bool,
) -> None:
    wrong = SJIS.replace("shift_jis", "koi8-r")
    (folder / "filepact.toml").write_text(wrong)
    named = tmp_path / "home" / "mine.toml"
    named.write_text(SJIS)
    monkeypatch.setenv("FILEPACT_CONFIG", "~/mine.toml")
    assert "日本" in cli("read", "a.txt").out
    (tmp_path / "home" / "other.toml").write_text(wrong)
    monkeypatch.setenv("FILEPACT_CONFIG", str(tmp_path / "home" / "other.toml"))
    assert "日本" not in cli("read", "a.txt").out
    option = ("--config", str(named))
    words = (*option, "read", "a.txt") if before else ("read", "a.txt", *option)
    assert "日本" in cli(*words).out


def test_a_file_that_was_named_has_to_be_there(cli: CommandLine, folder: Path) -> None:
    missing = str(folder.parent / "missing.toml")
    for words in (("read", "a.txt"), ("log",), ("status",), ("explain", "a"), ("policy", "show")):
        error = cli.json(*words, "--config", missing, code=2)["error"]
        assert (error["code"], error["details"]) == ("INVALID_PARAMS", {"file": missing})
    assert [one["level"] for one in settings(cli, "--config", missing, code=1)] == ["fail"]


def test_the_administrator_s_file_counts_whatever_is_named(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    house = tmp_path / "etc" / "filepact" / "filepact.toml"
    house.parent.mkdir(parents=True)
    house.write_text('[[deny]]\npaths = ["a.txt"]\nname = "house"\n')
    named = tmp_path / "named.toml"
    named.write_text(SJIS)
    error = cli.json("read", "a.txt", "--config", str(named), code=1)["error"]
    assert error["details"]["rule"] == "house"
    assert [one["said"].partition(" ")[0] for one in settings(cli, "--config", str(named))] == [
        str(house),
        str(named),
    ]


@pytest.mark.parametrize("link", [True, False])
def test_a_named_file_inside_a_root_cannot_be_changed_but_its_neighbours_can(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    (cli.root / "conf").mkdir()
    true = cli.root / ("conf/true.toml" if link else "mine.toml")
    true.write_text("")
    if link:
        (cli.root / "mine.toml").symlink_to("conf/true.toml")
    monkeypatch.setenv("FILEPACT_CONFIG", "mine.toml")
    for name in {"mine.toml", str(true.relative_to(cli.root))}:
        error = cli.json("write", name, stdin=SJIS.encode(), code=1)["error"]
        assert error["details"]["rule"] == "own files"
    assert true.read_text() == ""
    assert cli("write", "conf/else.toml", stdin=b"x\n").code == 0
    assert cli("write", "else.toml", stdin=b"x\n").code == 0


def test_the_usual_folder_stays_closed_when_another_file_is_named(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    named = tmp_path / "named.toml"
    named.write_text("")
    words = ("--root", str(folder.parent), "--config", str(named))
    error = cli.json("write", "filepact/filepact.toml", *words, stdin=b"x", code=1)["error"]
    assert error["details"]["rule"] == "own files"


def test_the_doctor_says_which_file_is_read_and_whether_it_is_right(
    cli: CommandLine, folder: Path
) -> None:
    mine = folder / "filepact.toml"
    (found,) = settings(cli)
    assert (found["level"], str(mine) in found["said"]) == ("ok", True)
    mine.write_text(SJIS)
    (found,) = settings(cli)
    assert (found["level"], str(mine) in found["said"]) == ("ok", True)
    mine.write_text('[encodings]\n"a" = "klingon"\n[[deny]]\npaths = 1\n')
    wrong = settings(cli, code=1)
    assert [one["level"] for one in wrong] == ["fail", "fail"]
    assert [f"line {line}," in one["said"] for one, line in zip(wrong, (2, 4), strict=True)]
    assert not any(one["name"] == "workspace" for one in cli.json("doctor", code=1)["checks"]), (
        "what is wrong is said once"
    )


def test_the_server_reads_the_file_that_is_named(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    named = tmp_path / "named.toml"
    named.write_text(SJIS)
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "filepact", "mcp", str(cli.root), "--config", str(named)],
        env=dict(os.environ),
    )
    (cli.root / "declared.py").write_bytes(b"# coding: euc-kr\n" + "한국 = 1\n".encode("euc-kr"))

    async def talk() -> list[str]:
        async with Client(parameters) as client:
            said = []
            for name in ("a.txt", "declared.py"):
                answer = await client.call_tool("read_file", {"path": name})
                said.append(answer.content[0].text)
            return said

    japanese, korean = anyio.run(talk)
    assert "日本" in japanese
    assert "한국" in korean


def test_the_server_keeps_the_time_limit_that_is_set(cli: CommandLine, tmp_path: Path) -> None:
    named = tmp_path / "named.toml"
    named.write_text("[mcp]\ntimeout = 1\n")
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "filepact", "mcp", str(cli.root), "--config", str(named)],
        env=dict(os.environ),
    )
    text = "".join(f"line {n}\n" for n in range(500_000))
    (cli.root / "large.txt").write_text(text)
    # Without a limit this takes a minute.
    edits = [{"old_string": f"line {n}\n", "new_string": f"{n}\n"} for n in range(1_000, 2_000)]

    async def talk() -> str:
        async with Client(parameters) as client:
            answer = await client.call_tool("edit_file", {"path": "large.txt", "edits": edits})
            return answer.content[0].text

    assert anyio.run(talk).startswith("TIMEOUT: ")
    assert (cli.root / "large.txt").read_text() == text


def test_the_doctor_says_what_projects_files_are_read_and_whether_they_are_right(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for root in (cli.root, other):
        (root / ".filepact.toml").write_text('[[deny]]\npaths = ["private"]\n')
    words = ("--root", str(cli.root), "--root", str(other), "--root", str(cli.root))
    read = settings(cli, *words)
    assert [one["level"] for one in read] == ["ok", "ok", "ok"]
    for root, one in zip((cli.root, other), read[1:], strict=True):
        assert one["said"].startswith(f"{root}/.filepact.toml ")
    (other / ".filepact.toml").write_text("[[deny]]\npaths = 1\n[[allow]]\npaths = ['a']\n")
    wrong = [one for one in settings(cli, *words, code=1) if one["level"] == "fail"]
    assert [f"line {line}," in one["said"] for one, line in zip(wrong, (2, 3), strict=True)]


def test_a_project_s_file_that_cannot_be_opened_fails_the_doctor_once(
    cli: CommandLine, folder: Path
) -> None:
    (cli.root / ".filepact.toml").symlink_to("a.txt")
    checks = cli.json("doctor", code=1)["checks"]
    assert [one["name"] for one in checks if one["level"] == "fail"] == ["workspace"]


def test_the_doctor_says_how_far_the_guard_goes(cli: CommandLine, folder: Path) -> None:
    usual = {"mounts": False, "content": True, "landlock": "auto", "hard_links": "keep"}
    usual |= {"dependency_versions": False}
    assert cli.json("doctor")["guard"] == usual
    (folder / "filepact.toml").write_text("[guard]\nmounts = true\ncontent = false\n")
    found = cli.json("doctor")
    assert found["guard"] == usual | {"mounts": True, "content": False}
    (said,) = [one["said"] for one in found["checks"] if one["name"] == "guard"]
    assert "mounts = true, content = false" in said
    (folder / "filepact.toml").write_text("[guard]\nmounts = 1\n")
    assert cli.json("doctor", code=1)["guard"] is None
