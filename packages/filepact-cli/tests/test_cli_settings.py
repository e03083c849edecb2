"""The table [guard] of the person's settings, through the command and the server."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.needs import MOUNTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU" * 3 + "\n"


@pytest.fixture
def settings(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    above = cli.root.parent
    file = above / "home" / ".config" / "filepact" / "filepact.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(above / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(above / "home" / ".config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(above / "etc"))
    return file


def test_contents_are_looked_through_unless_a_person_says_no(
    cli: CommandLine, settings: Path
) -> None:
    (cli.root / "notes.txt").write_text(KEY)
    assert cli.json("read", "notes.txt", code=1)["error"]["details"]["rule"] == "private keys"
    settings.write_text("[guard]\ncontent = false\n")
    assert cli("read", "notes.txt").code == 0


@MOUNTS
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_is_mounted_is_used_if_a_person_says_so(cli: CommandLine, settings: Path) -> None:
    (cli.root / "in").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "none", str(cli.root / "in")], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (cli.root / "in" / "a.txt").write_text("a\n")
        assert cli.json("read", "in/a.txt", code=1)["error"]["code"] == "PATH_BLOCKED"
        settings.write_text("[guard]\nmounts = true\n")
        assert cli("read", "in/a.txt").code == 0
    finally:
        subprocess.run(["umount", "-l", str(cli.root / "in")], check=True)


def test_a_wrong_setting_stops_everything(cli: CommandLine, settings: Path) -> None:
    settings.write_text('[guard]\nlandlock = "yes"\n')
    error = cli.json("status", code=2)["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert (error["details"]["line"], error["details"]["key"]) == (2, "guard.landlock")
