"""Asking language servers about files from the command line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.fakes import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine


@pytest.fixture
def settings(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's settings file; nothing that is installed on this machine is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "settings" / "filepact").mkdir(parents=True)
    (cli.root / "src" / "a.x").write_text("fine\nthis is wrong\n")
    (cli.root / "src" / "b.x").write_text("wrong and wrong\n")
    (cli.root / "c.x").write_text("fine\n")
    (cli.root / ".env.x").write_text("fine\n")
    path = tmp_path / "settings" / "filepact" / "filepact.toml"
    path.write_text(table())
    return path


def table(orders: dict[str, Any] | None = None) -> str:
    command = [sys.executable, "-I", "-S", PROGRAM, json.dumps(orders or {})]
    return f'[servers.fake]\nfiles = {{"*.x" = "x"}}\ncommand = {json.dumps(command)}\nfirst = 5\n'


def places(answer: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(one["path"], one["line"], one["column"]) for one in answer["diagnostics"]]


def test_files_and_folders_are_looked_at_and_errors_end_with_1(
    cli: CommandLine, settings: Path
) -> None:
    both = [("src/a.x", 2, 9), ("src/b.x", 1, 1), ("src/b.x", 1, 11)]
    assert places(cli.json("diagnostics", "src/a.x", code=1)) == both[:1]
    answer = cli.json("diagnostics", "src", code=1)
    assert places(answer) == both
    assert answer["counts"]["error"] == 3
    assert (answer["files"], answer["complete"], answer["unanswered"]) == (2, True, [])
    assert places(cli.json("diagnostics", code=1)) == both
    assert places(cli.json("diagnostics", "c.x", "src/a.x", code=1)) == both[:1]
    first = answer["diagnostics"][0]
    assert (first["severity"], first["code"], first["server"]) == ("error", "wrong", "fake")
    assert (first["end_line"], first["end_column"]) == (2, 14)


def test_a_person_reads_one_line_for_each_and_a_summary(cli: CommandLine, settings: Path) -> None:
    said = cli("diagnostics", "src/a.x")
    assert said.code == 1
    assert said.out == (
        "src/a.x:2:9 error wrong this is wrong (fake)\n1 error, 0 warnings in 1 file (fake).\n"
    )
    assert said.err == "filepact: asking language servers about 1 file ...\n"


def test_names_count_from_the_present_folder(
    cli: CommandLine, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cli.root / "src")
    words = ("--root", str(cli.root), "a.x")
    assert places(cli.json("diagnostics", *words, code=1)) == [("src/a.x", 2, 9)]


def test_files_without_errors_end_with_0(cli: CommandLine, settings: Path) -> None:
    assert cli.json("diagnostics", "c.x")["diagnostics"] == []
    assert cli("diagnostics", "c.x").out == "0 errors, 0 warnings in 1 file (fake).\n"


def test_what_is_listed_is_at_least_as_bad_as_asked_and_all_of_it_counts(
    cli: CommandLine, settings: Path
) -> None:
    found = [
        {
            "range": {
                "start": {"line": 0, "character": number},
                "end": {"line": 0, "character": number + 1},
            },
            "severity": number,
            "message": "so",
        }
        for number in (1, 2, 3, 4)
    ]
    settings.write_text(table({"answer": {"kind": "full", "items": found}}))
    for severity, listed in (("error", 1), (None, 2), ("information", 3), ("hint", 4)):
        words = () if severity is None else ("--severity", severity)
        answer = cli.json("diagnostics", "c.x", *words, code=1)
        assert len(answer["diagnostics"]) == listed
        assert answer["counts"] == {"error": 1, "warning": 1, "information": 1, "hint": 1}


def test_a_file_that_got_no_answer_is_named_and_is_no_success(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(table({"hang": True}))
    answer = cli.json("diagnostics", "c.x", "--seconds", "1", code=1)
    assert answer["diagnostics"] == []
    (open_,) = answer["unanswered"]
    assert (open_["path"], open_["server"]) == ("c.x", "fake")
    assert open_["reason"]
    assert answer["complete"] is False


def test_where_no_server_knows_a_file_nothing_is_found(cli: CommandLine, settings: Path) -> None:
    assert cli("diagnostics", "windows.txt").code == 3
    settings.write_text("")
    assert "filepact doctor" in cli("diagnostics", "c.x").out
    assert cli.json("diagnostics", "c.x", code=3)["message"]


def test_a_server_of_which_only_differences_count_has_nothing_to_list(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(f"{table()}only_new = true\n")
    answer = cli.json("diagnostics", "src/a.x", code=3)
    assert answer["diagnostics"] == []
    assert "only what a change adds" in answer["message"]


def test_names_are_checked_by_the_guard(cli: CommandLine, settings: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.x").write_text("wrong\n")
    (cli.root / "link.x").symlink_to(tmp_path / "outside.x")
    for name in ("link.x", str(tmp_path / "outside.x"), "../outside.x"):
        error = cli.json("diagnostics", name, code=1)["error"]
        assert error["code"] == "PATH_BLOCKED"
    assert cli.json("diagnostics", "missing.x", code=1)["error"]["code"] == "NOT_FOUND"
    paths = {path for path, _, _ in places(cli.json("diagnostics", code=1))}
    assert paths == {"src/a.x", "src/b.x"}
    settings.write_text(f'{table()}[[deny]]\npaths = ["b.x"]\nactions = ["read"]\n')
    error = cli.json("diagnostics", "src/b.x", code=1)["error"]
    assert error["code"] == "PATH_BLOCKED"
    paths = {path for path, _, _ in places(cli.json("diagnostics", "src", code=1))}
    assert paths == {"src/a.x"}


def test_nothing_is_started_where_servers_are_switched_off(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(f'diagnostics = "off"\n{table()}')
    assert cli.json("diagnostics", "c.x", code=2)["error"]["code"] == "INVALID_PARAMS"


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "nan", "soon"])
def test_a_time_that_is_none_is_wrong_usage(cli: CommandLine, settings: Path, seconds: str) -> None:
    assert cli("diagnostics", "c.x", "--seconds", seconds).code == 2
