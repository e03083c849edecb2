"""Commands `config ...`: every key is there with its default, and a wrong file never takes the place of a right one."""

from __future__ import annotations

import json
import os
import pty
import re
import tomllib
from typing import TYPE_CHECKING

import jsonschema
import pytest

from filepact.config.keys import all_keys, json_schema, template
from filepact.config.person import read_settings
from filepact.config.settings import Settings, other_keys, parse_settings
from filepact.errors import FilepactError
from filepact_cli import config
from tests.forked import Command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine


def uncommented(text: str) -> str:
    """The template with all its settings taken for real, but for rules and encodings."""
    settings = text[text.index("# [guard]") :]
    return re.sub("^# ", "", settings, flags=re.MULTILINE)


def test_every_key_of_the_template_has_the_default_that_counts_without_it() -> None:
    wanted = [
        line
        for line in uncommented(template()).splitlines()
        if not line.startswith(
            ("page", "heads", "syslog", "telemetry", "url", "issuer", "audience", "tokens")
        )
    ]
    said = parse_settings("\n".join(wanted), name="filepact.toml")
    assert config.in_force(said) == config.in_force(Settings())
    assert tomllib.loads(template()) == {}


def test_the_template_and_the_schema_know_every_key_that_is_read() -> None:
    tables = {key.table for key in all_keys()}
    assert tables | {"encodings", "servers", "realms", "access"} == set(other_keys("person"))
    for table in sorted(tables):
        with pytest.raises(FilepactError) as caught:
            parse_settings(f"[{table}]\nno_such_key = 1\n", name="f")
        known = caught.value.message.rpartition("known are ")[2].split(", ")
        assert {key.name for key in all_keys() if key.table == table} == set(known), table


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (uncommented(template()), True),
        ('[[deny]]\npaths = ["x"]\nactions = ["read"]\n[encodings]\n"*.txt" = "cp1252"\n', True),
        ("[guard]\nmounts = 1\n", False),
        ("[mcp]\ntimeout = 0\n", False),
        ("[run]\nbuilds = 'keep'\n", False),
        ("[run]\nwritable = ['relative']\n", False),
        ("[[deny]]\nwhy = 'no path'\n", False),
        ("[nowhere]\nx = 1\n", False),
    ],
)
def test_the_schema_says_of_a_file_what_the_reader_says(text: str, right: bool) -> None:
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(tomllib.loads(text)) is right
    try:
        parse_settings(text, name="f")
    except FilepactError:
        assert not right
    else:
        assert right


def test_it_shows_what_is_in_force_and_what_is_the_persons_own(
    cli: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[mcp]\ntimeout = 7\n")
    text = cli("config", "show", "--config", str(file)).out
    assert re.search(r"timeout = 7 +# yours; ", text)
    assert "quiet = 1" in text
    known = cli.json("config", "show", "--config", str(file))
    assert known["settings"]["mcp"]["timeout"] == 7
    assert cli.json("config", "path", "--config", str(file)) == {"path": str(file), "exists": True}
    assert json.loads(cli("config", "schema").out)["title"] == "filepact.toml"


def edited(file: Path, script: str, typed: bytes) -> tuple[int, str]:
    """`config edit` on a terminal, with an editor that is a script; its exit code and what it shows."""
    editor = file.parent / "editor.sh"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "VISUAL": str(editor), "COUNT": str(file.parent / "count")}
    words = ["config", "edit", "--config", str(file)]
    shown = b""
    with Command(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        os.write(ours, typed)
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return process.returncode, shown.decode()


def test_editing_begins_with_the_template_and_puts_a_right_file_in_place(tmp_path: Path) -> None:
    file = tmp_path / "filepact.toml"
    code, shown = edited(
        file, 'grep -q "^# idle" "$1" && printf "[mcp]\\ntimeout = 9\\n" > "$1"', b""
    )
    assert code == 0, shown
    assert read_settings(str(file)).server.timeout == 9


def test_a_wrong_file_takes_no_place_and_can_be_edited_again(tmp_path: Path) -> None:
    file = tmp_path / "filepact.toml"
    file.write_text("[mcp]\ntimeout = 5\n")
    wrong = 'printf "[mcp]\\ntimeout = -1\\n" > "$1"'
    code, shown = edited(file, wrong, b"n\n")
    assert code == 2, shown
    assert file.read_text() == "[mcp]\ntimeout = 5\n"
    again = f'if [ -e "$COUNT" ]; then printf "[mcp]\\ntimeout = 6\\n" > "$1"; else touch "$COUNT"; {wrong}; fi'
    code, shown = edited(file, again, b"y\n")
    assert code == 0, shown
    assert read_settings(str(file)).server.timeout == 6


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "filepact.toml"
    file.write_text("[mcp]\ntimeout = 5\n")
    theirs = f'printf "[mcp]\\ntimeout = 8\\n" > {file}; printf "[mcp]\\ntimeout = 6\\n" > "$1"'
    code, shown = edited(file, theirs, b"")
    assert code == 1, shown
    assert file.read_text() == "[mcp]\ntimeout = 8\n"


@pytest.mark.parametrize(("script", "code"), [("true", 3), ("exit 4", 1)])
def test_nothing_changes_when_nothing_was_edited_or_the_editor_failed(
    script: str, code: int, tmp_path: Path
) -> None:
    file = tmp_path / "filepact.toml"
    assert edited(file, script, b"")[0] == code
    assert not file.exists()


def test_without_a_terminal_there_is_no_editing(cli: CommandLine) -> None:
    assert cli.json("config", "edit", code=2)["error"]["code"] == "INVALID_PARAMS"
