"""Nobody's own settings count in a test; and a folder to work in."""

import pytest

from tests.faces.conftest import cli

__all__ = ["cli"]
"""A fixture of the faces' tests."""


@pytest.fixture(autouse=True)
def _nobodys_rules(tmp_path, monkeypatch):
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))


@pytest.fixture
def work(tmp_path):
    """The folder that an editor has opened."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
