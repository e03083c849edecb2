"""Workspaces as those of the core's tests."""

from __future__ import annotations

from tests.conftest import open_here

__all__ = ["open_here"]
