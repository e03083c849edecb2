"""A package that the core does not know: its command, its settings and its extra are found where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.config.person import read_settings
from filepact.config.settings import parse_settings
from filepact.errors import InvalidParamsError
from filepact.extension import extensions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faces.command_line import CommandLine

GREETER = """
from filepact.config.person import read_settings
from filepact.config.problems import refusal
from filepact.extension import Extension, SettingInfo
from filepact_cli.screen import CommandAnswer, plain
from filepact.values import dataclass

@dataclass(frozen=True)
class Greeting:
    name: str = "you"

def read(found, text, name):
    table = found.get("greeting", {})
    for key in table:
        if key != "name":
            raise refusal(text, name, ("greeting", key), "there is no such key")
    return Greeting(**table)

def greet(arguments, screen):
    said = read_settings(arguments.config).extensions.get("greeter", Greeting()).name
    return CommandAnswer(plain(f"hello {said}\\n"), {"greets": said})

EXTENSION = Extension(
    "greeter",
    add_commands=lambda group: group.add("greet", "greeter.extension:greet", "say hello", "filepact greet", answers="greets"),
    tables=("greeting",),
    read_settings=read,
    setting_keys=lambda: (SettingInfo("greeting", "name", '"you"', "who", {"type": "string"}),),
    extras={"loud": ("no_such_module", "greetings that are heard")},
)
"""


@pytest.fixture
def greeter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer leaves it."""
    folder = tmp_path / "packages"
    told = folder / "greeter-1.0.dist-info"
    told.mkdir(parents=True)
    (folder / "greeter").mkdir()
    (folder / "greeter" / "__init__.py").touch()
    (folder / "greeter" / "extension.py").write_text(GREETER)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(
        "[filepact.extensions]\ngreeter = greeter.extension:EXTENSION\n"
    )
    monkeypatch.syspath_prepend(folder)
    extensions.cache_clear()
    yield
    extensions.cache_clear()


@pytest.mark.usefixtures("greeter")
def test_its_command_runs_and_is_listed(cli: CommandLine, tmp_path: Path) -> None:
    assert cli.json("greet") == {"greets": "you"}
    assert "greet " in cli("--help").out
    file = tmp_path / "mine.toml"
    file.write_text('[greeting]\nname = "all"\n')
    assert cli.json("greet", "--config", str(file)) == {"greets": "all"}
    assert cli.json("config", "show", "--config", str(file))["settings"]["greeting"] == {
        "name": "all"
    }


@pytest.mark.usefixtures("greeter")
def test_its_table_is_read_and_what_is_wrong_in_it_is_refused_with_its_line(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[greeting]\n")
    assert read_settings(str(file)).extensions["greeter"].name == "you"
    with pytest.raises(InvalidParamsError) as refused:
        parse_settings("[greeting]\nnobody = 1\n", name="f.toml")
    assert refused.value.details["line"] == 2


@pytest.mark.usefixtures("greeter")
def test_its_extra_is_named_where_it_is_missing(cli: CommandLine) -> None:
    checks = {one["name"]: one for one in cli.json("doctor")["checks"]}
    assert "loud" in checks["extras"]["extras"]


def test_without_it_its_table_is_unknown_and_so_is_its_command(cli: CommandLine) -> None:
    with pytest.raises(InvalidParamsError):
        parse_settings("[greeting]\n", name="f.toml")
    assert cli("greet").code == 2
