"""Nobody's own settings count in a test."""

import pytest


@pytest.fixture(autouse=True)
def _nobodys_rules(tmp_path, monkeypatch):
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
