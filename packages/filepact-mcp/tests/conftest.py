"""Clients of the small server, as the tests of all faces have them."""

from __future__ import annotations

from tests.faces.conftest import client, engine, in_thread, program, small

__all__ = ["client", "engine", "in_thread", "program", "small"]
