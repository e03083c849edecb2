"""What the tests of the command in the core have."""

from __future__ import annotations

from tests.faces.conftest import cli, latin, programs

__all__ = ["cli", "latin", "programs"]
