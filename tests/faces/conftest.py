"""A folder to use the command in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faces.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cli(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("port = 80\nhost = 'a'\n")
    (root / "windows.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (root / ".env").write_text("KEY=SECRET\n")
    for name in ("FILEPACT_ROOT", "FILEPACT_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FILEPACT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(root)
    return CommandLine(root, tmp_path / "state", capsysbinary, monkeypatch)
