"""Workspaces as those of the core's tests, and the command line."""

from __future__ import annotations

from tests.conftest import open_here, session, workspace
from tests.faces.conftest import cli, latin, programs

__all__ = ["cli", "latin", "open_here", "programs", "session", "workspace"]
