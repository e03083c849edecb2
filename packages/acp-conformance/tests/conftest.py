"""What every test of the suite has: a quiet protocol package."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet():
    """The protocol's package logs what it cannot read, which is what the suite sends."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
