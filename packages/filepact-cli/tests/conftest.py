"""A folder to use the command in, as the tests of all faces have it, and the workspace in it."""

from __future__ import annotations

from tests.conftest import open_here, other, session
from tests.faces.conftest import cli, latin

__all__ = ["cli", "latin", "open_here", "other", "session"]
