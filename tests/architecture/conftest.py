"""What the tests of the house leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.architecture.project import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="package")
def trees_are_dropped() -> Iterator[None]:
    """Let go of the trees of all modules, which other tests of this process would wait for.

    They are half a million objects, through which each full garbage collection goes.
    """
    yield
    syntax.cache_clear()
