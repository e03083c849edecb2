"""A folder to use the command in, as the tests of all faces have it."""

from __future__ import annotations

from tests.faces.conftest import cli, latin

__all__ = ["cli", "latin"]
