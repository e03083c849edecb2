"""The command line itself: what it takes, how it teaches, and how light it is."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

import filepact
from filepact.faces.cli import isolated_command, run
from filepact_cli import main
from filepact_cli.main import build_parser, parse
from filepact_cli.parser import GROUPS, OLD_NAMES, CommandError
from tests.architecture.manual import COMPLETIONS
from tests.needs import DESCRIPTORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAVY = ("pydantic", "mcp", "apsw", "re2", "regex", "backports", "asyncio", "anyio")


def commands(
    parser: argparse.ArgumentParser | None = None, above: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its words, those below another word as well."""
    for action in (parser or build_parser())._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                below = list(commands(one, f"{above}{name} "))
                yield from below or [(above + name, one)]


NAMES = [name for name, _ in commands()]
EXTENDING = {
    "decide": "review",
    "set up": "setup tour",
    "run and watch programs": "run runs guard",
}
"""Commands of extensions that stand before the core's own of a group."""
BEHIND = {"set up": "trust diagnostics install", "servers and teams": "hook"}
"""Those that stand behind the core's own of a group."""
LAST = {"acp", "acp-check", "serve", "store", "workspace"}
"""Those that stand behind all others."""


def test_each_command_names_the_fields_of_its_object() -> None:
    silent = {name for name, one in commands() if not getattr(one, "answers", "")}
    # What they print is a conversation, a schema, or nothing.
    assert silent == {"mcp", "hook", "acp-check", "config schema", "install"}


@pytest.mark.parametrize("name", NAMES)
def test_each_command_teaches_itself(
    name: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*name.split(), "--help"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert f"usage: filepact {name}" in text
    assert "\nexample:\n  " in text
    assert "--json" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_a_function(name: str) -> None:
    does = dict(commands())[name].get_default("does")
    module, _, function = does.partition(":")
    place = module if "." in module else f"filepact_cli.{module}"
    assert callable(getattr(import_module(place), function))


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_the_help_of_all_has_each_command_once_in_groups_of_ten(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    groups = {
        title: f"{EXTENDING.get(title, '')} {names} {BEHIND.get(title, '')}".split()
        for title, names in GROUPS.items()
    }
    listed = [name for names in groups.values() for name in names]
    listed += dict.fromkeys(one for name in NAMES if (one := name.partition(" ")[0]) in LAST)
    assert sorted(listed) == sorted({name.partition(" ")[0] for name in NAMES})
    assert max(map(len, groups.values())) <= 10
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["--help"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    shown = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3].isalpha()]
    assert [one for one in shown if one in listed] == listed
    assert max(map(len, lines)) <= int(columns)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom filepact.faces.cli import run\nrun(['--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "files by hand:" in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["setup"], set()),
        (["completion", "bash"], set()),
        (["log"], {"apsw", "re2", "regex", "backports", "pydantic"}),
        (["read", "x"], {"apsw", "re2", "regex", "backports", "pydantic"}),
    ],
)
def test_a_command_loads_no_more_than_it_needs(
    words: list[str], needed: set[str], tmp_path: Path
) -> None:
    code = (
        f"import sys\nfrom filepact.faces.cli import run\nrun({words!r})\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(done.stderr.splitlines()[-1].split()) <= needed


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, filepact\nprint(sorted(n for n in sys.modules if n.startswith('filepact')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['filepact']"


def test_every_public_name_can_be_had() -> None:
    # Constants, classes, functions; each by the alphabet.
    order = sorted(filepact.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert filepact.__all__ == order
    assert set(filepact.__all__) <= set(dir(filepact))
    for name in filepact.__all__:
        assert getattr(filepact, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = filepact.nothing


# -- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--root", "a", "--root", "b", "--json", "--state", "s", "log"],
        ["log", "--root", "a", "--root", "b", "--json", "--state", "s"],
        ["--root", "a", "--state", "s", "log", "--json", "--root", "b"],
    ],
)
def test_common_options_stand_before_or_after_the_command(words: list[str]) -> None:
    given = build_parser().parse_args(words)
    assert [*(given.root or []), *getattr(given, "root_after", [])] == ["a", "b"]
    assert given.json is True
    assert given.state == "s"
    assert given.no_color is False


@pytest.mark.parametrize(
    "words",
    [
        ["acp", "--", "agent", "--root", "x"],
        ["--root", "a", "--state", "s", "acp", "--mode", "preview", "--no-watch", "--", "acp"],
        ["--json", "acp", "--root", "b", "--", "agent", "--", "--help"],
        ["acp-check", "--", "client", "acp"],
        ["read", "acp", "--", "acp"],
        ["acp", "--wrong", "--", "agent"],
        ["log", "acp"],
        ["log"],
        ["--root", "log", "status"],
        ["--root", "log", "log"],
        ["--", "log"],
        ["policy", "log"],
        ["doctor", "--journal"],
        ["check"],
        ["--json"],
        [],
    ],
)
def test_a_part_of_the_commands_is_understood_as_all_of_them_are(words: list[str]) -> None:
    try:
        whole: object = vars(build_parser().parse_args(words))
    except CommandError as misuse:
        whole = misuse.message
    try:
        said: object = vars(parse(words))
    except CommandError as misuse:
        said = misuse.message
    assert said == whole


@pytest.mark.parametrize("words", [["--help", "acp", "--", "x"], ["--help", "log"], ["-h", "log"]])
def test_help_before_a_command_names_every_command(
    words: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(words) == 0
    assert b"undo" in capsysbinary.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["no-such-command"],
        ["mcp"],
        ["log", "-n", "0"],
        ["log", "-n", "many"],
        ["read", "x", "--lines", "-1"],
        ["completion", "powershell"],
        ["setup", "claude", "--guard", "all"],
        ["edit"],
        ["log", "--jso"],
    ],
)
def test_wrong_usage_is_explained_with_exit_code_2(
    words: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(words) == 2
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert captured.err.startswith(b"filepact: ")
    assert captured.err.count(b"filepact") > 1  # what to type instead
    assert run([*words, "--json"]) == 2
    captured = capsysbinary.readouterr()
    assert json.loads(captured.out)["error"]["code"] == "INVALID_PARAMS"
    assert captured.err == b""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["lgo"], "`filepact log`"),
        (["policy", "lnt"], "`filepact policy lint`"),
        (["log", "--al"], "--all"),
        (["undo", "--sesion", "x"], "--session"),
    ],
)
def test_what_was_probably_meant_is_named(
    words: list[str], meant: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(words) == 2
    assert meant in capsysbinary.readouterr().err.decode()


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (["help"], ["--help"]),
        (["help", "log"], ["log", "--help"]),
        (["version"], ["--version"]),
        (["-V"], ["--version"]),
    ],
)
def test_help_and_version_are_words_too(
    typed: list[str], known: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(typed) == 0
    said = capsysbinary.readouterr()
    assert run(known) == 0
    assert capsysbinary.readouterr() == said


@pytest.mark.parametrize(("before", "now"), OLD_NAMES.items())
def test_what_a_command_was_called_before_is_understood_and_not_shown(
    before: str, now: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    value = ["old"] if before == "state move" else []
    for first in ([], ["--root", "pending", "--json"]):
        old, new = ([*first, *name.split(), *value] for name in (before, now))
        assert vars(parse(old)) == vars(parse(new))
    assert run([*before.split(), *value, "--help"]) == 0
    said = capsysbinary.readouterr()
    assert run([*now.split(), *value, "--help"]) == 0
    assert capsysbinary.readouterr() == said
    assert run(["--help"]) == 0
    assert f"\n  {before} " not in capsysbinary.readouterr().out.decode()


def test_the_version_is_one_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["--version"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert text.startswith("filepact ")
    assert run(["--version", "--json"]) == 0
    assert f"filepact {json.loads(capsysbinary.readouterr().out)['version']}\n" == text


# -- completion ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_each_shell_gets_a_script_that_knows_the_commands(
    shell: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["completion", shell]) == 0
    text = capsysbinary.readouterr().out.decode()
    for name in NAMES:
        assert name.split()[-1] in text
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=text, text=True, check=True)


@DESCRIPTORS
def test_the_bash_script_completes_commands_and_options() -> None:
    lines = [
        (COMPLETIONS / "bash").read_text(),
        "COMP_WORDS=(filepact chec); COMP_CWORD=1; _shtab_filepact; echo ${COMPREPLY[@]}",
        "COMP_WORDS=(filepact log --a); COMP_CWORD=2; _shtab_filepact; echo ${COMPREPLY[@]}",
    ]
    done = subprocess.run(
        ["bash", "--norc"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["checkpoint", "--all", "--asked"]


# -- hosts --------------------------------------------------------------------------------------


def test_the_command_in_the_lines_can_be_started() -> None:
    done = subprocess.run(
        [*isolated_command(), "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("filepact ")


WORDS_OF_A_SERVER = (
    *("a", "b/c", "", "-", "--", "-x", "1", "-1", "auto", "preview", "full", "safe", "solution"),
    *("--mode", "--mode=auto", "--tier", "--toolset", "--max-level", "--read-only", "--state"),
    *("--config", "--root", "--json", "--no-color", "-V", "--mod", "mcp", "a b", "-a b"),
)


def test_a_plain_line_for_a_server_is_read_as_the_parser_reads_it() -> None:
    dice = random.Random(7)
    lines = [["mcp", *dice.choices(WORDS_OF_A_SERVER, k=dice.randint(0, 6))] for _ in range(4_000)]
    lines += [["mcp", "a", *words] for words in ([], ["--mode", "preview"], ["b", "--read-only"])]
    lines += [["mcp", "--state", "s", "--tier", "essential", "a", "b", "--config", "c"]]
    whole, read = build_parser(frozenset({"mcp"})), 0
    for line in lines:
        if (found := main._plain_server(line)) is None:
            continue
        read += 1
        assert vars(found) == vars(whole.parse_args(line)), line
    assert read > len(lines) // 50


def test_a_plain_line_for_a_server_loads_no_parser() -> None:
    assert main._plain_server(["mcp", "."]) is not None
    assert main._plain_server(["mcp", "/a", "--mode", "review", "--state", "/b"]) is not None
    for odd in (["mcp"], ["mcp", ".", "--help"], ["mcp", ".", "--json"], ["log"], []):
        assert main._plain_server(odd) is None


@pytest.mark.parametrize(("word", "meant"), [("--session", ""), ("--trns", "--turns")])
def test_the_dashes_of_an_option_do_not_make_it_like_another(word: str, meant: str) -> None:
    with pytest.raises(CommandError) as misuse:
        build_parser().parse_args(["log", word])
    assert ("Did you mean" in misuse.value.hint) == bool(meant)
    assert meant in misuse.value.hint


@pytest.mark.parametrize("words", [["log"], ["doctor"], ["setup"], ["mcp", "."]])
def test_a_folder_that_was_removed_under_a_person_is_named_as_that(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert run(words) == 1
    assert b"[NOT_FOUND]" in capfdbinary.readouterr().err


def test_where_something_failed_is_shown_to_whoever_wants_to_see_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("filepact_cli.main._perform", fails)
    assert run(["log"]) == 1
    monkeypatch.setenv("FILEPACT_DEBUG", "1")
    with pytest.raises(PermissionError):
        run(["log"])
