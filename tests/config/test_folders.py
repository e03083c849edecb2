"""Where each system keeps what is a person's, and what is an agent's."""

from __future__ import annotations

from pathlib import Path

import pytest

from filepact.config.folders import agents_place, state_folder, usual_folder
from filepact_setup.hosts import HOSTS, host_place

VARIABLES = ("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "FILEPACT_STATE_DIR")
XDG = ("XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
SUPPORT = "Library/Application Support/filepact"


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *XDG):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")


@pytest.mark.parametrize(
    ("what", "system", "folder"),
    [
        ("administrator", "linux", "/etc/xdg/filepact"),
        ("administrator", "darwin", f"/{SUPPORT}"),
        ("administrator", "win32", "C:\\ProgramData\\filepact"),
        ("data", "linux", "/home/me/.local/share/filepact"),
        ("data", "darwin", f"/home/me/{SUPPORT}"),
        ("data", "win32", "\\home\\me\\AppData\\Local\\filepact"),
        ("settings", "linux", "/home/me/.config/filepact"),
        ("settings", "darwin", f"/home/me/{SUPPORT}"),
        ("settings", "win32", "\\home\\me\\AppData\\Roaming\\filepact"),
        ("state", "linux", "/home/me/.local/state/filepact"),
        ("state", "darwin", f"/home/me/{SUPPORT}"),
        ("state", "win32", "\\home\\me\\AppData\\Local\\filepact"),
    ],
)
def test_a_system_has_a_place_of_its_own_for_each_kind(what: str, system: str, folder: str) -> None:
    assert usual_folder(what, system) == folder


@pytest.mark.parametrize(
    ("what", "system", "variable", "value", "folder"),
    [
        ("administrator", "linux", "XDG_CONFIG_DIRS", "/a:/b", "/a/filepact"),
        ("administrator", "darwin", "XDG_CONFIG_DIRS", "/a:/b", "/a/filepact"),
        ("administrator", "win32", "PROGRAMDATA", "D:\\All", "D:\\All\\filepact"),
        ("data", "linux", "XDG_DATA_HOME", "/d", "/d/filepact"),
        ("data", "win32", "LOCALAPPDATA", "D:\\L\\", "D:\\L\\filepact"),
        ("settings", "darwin", "XDG_CONFIG_HOME", "/c", "/c/filepact"),
        ("settings", "win32", "APPDATA", "\\\\server\\me", "\\\\server\\me\\filepact"),
        ("state", "linux", "XDG_STATE_HOME", "/s", "/s/filepact"),
        ("state", "win32", "LOCALAPPDATA", "C:/Users/é/x", "C:\\Users\\é\\x\\filepact"),
    ],
)
def test_a_variable_of_the_system_names_another_place(
    what: str,
    system: str,
    variable: str,
    value: str,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = usual_folder(what, system)
    monkeypatch.setenv(variable, value)
    assert usual_folder(what, system) == folder
    monkeypatch.setenv(variable, " ")
    assert usual_folder(what, system) == usual


def test_a_variable_of_another_system_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {system: usual_folder("settings", system) for system in ("linux", "win32")}
    monkeypatch.setenv("APPDATA", "D:\\R")
    assert usual_folder("settings", "linux") == usual["linux"]
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    monkeypatch.delenv("APPDATA")
    assert usual_folder("settings", "win32") == usual["win32"]


def test_a_state_folder_that_is_named_is_whole_and_has_no_stroke_at_its_end() -> None:
    assert state_folder("x/") == str(Path.cwd() / "x")
    assert state_folder("~/x") == "/home/me/x"
    assert state_folder("/") == "/"


@pytest.mark.parametrize(
    ("folder", "system", "there"),
    [
        ("~/.config/Claude", "linux", "~/.config/Claude"),
        ("~/.config/Claude", "darwin", "~/Library/Application Support/Claude"),
        ("~/.config/Claude", "win32", "~/AppData/Roaming/Claude"),
        ("/etc/claude-code", "darwin", "/Library/Application Support/ClaudeCode"),
        ("/etc/claude-code", "win32", "C:/Program Files/ClaudeCode"),
        ("~/.config/zed", "darwin", "~/.config/zed"),
        ("~/.config/zed", "win32", "~/AppData/Roaming/Zed"),
    ],
)
def test_an_agent_has_its_settings_elsewhere_on_another_system(
    folder: str, system: str, there: str
) -> None:
    assert agents_place(folder, system) == there


def test_a_roaming_folder_that_lies_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{agents_place('~/.config/Claude', 'win32')}/claude_desktop_config.json"
    assert host_place(place, Path("/p")) == Path(f"/home/me{place[1:]}")
    monkeypatch.setenv("APPDATA", "/srv/roaming")
    assert host_place(place, Path("/p")) == Path("/srv/roaming/Claude/claude_desktop_config.json")


def test_no_agent_has_a_folder_of_one_system_alone() -> None:
    """Whatever a host's file lies in is beneath the home folder or the project, or asked of `agents_place`."""
    for host in HOSTS:
        for file in host.every_file():
            assert not file.path.startswith(("/", "~/Library", "~/AppData"))
            assert ".." not in file.path
