"""Workspaces as those of the core's tests."""

from __future__ import annotations

from tests.conftest import open_here, workspace

__all__ = ["open_here", "workspace"]
