"""A compiler and a runtime for C# that tests can start, or the reason why there is none.

An installed .NET SDK, else what `filepact install csharp` fetches: through the same code, into `.node`
beside the project file, once for all runs.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from filepact.errors import FilepactError
from filepact_csharp.install import install, is_whole
from filepact_csharp.toolchain import Toolchain, find
from tests.fetching import NO_FETCH

__all__ = ["FOLDER", "ToolchainError", "fetched", "toolchain", "toolchain_or_skip"]

FOLDER = Path(__file__).resolve().parents[2] / ".node" / "csharp"
"""Where what was fetched is kept."""


class ToolchainError(Exception):
    """There is no compiler here; the message says why."""


@cache
def fetched() -> Toolchain:
    """What the recipe makes, fetched on first use.

    Raises:
        ToolchainError: This system has no such packages, or they cannot be fetched now.
    """
    if os.environ.get(NO_FETCH) and not is_whole(str(FOLDER)):
        raise ToolchainError("it could not be fetched at the beginning of this run")
    try:
        install(FOLDER, lambda _text: None)
    except FilepactError as error:
        raise ToolchainError(error.message) from error
    found = find(usual=(), own=lambda: str(FOLDER))
    if found is None:
        raise ToolchainError("what was fetched is not whole")
    return found


@cache
def toolchain() -> Toolchain:
    """A compiler and a runtime, those of an installed SDK first.

    Raises:
        ToolchainError: There is none, or no bridge to it.
    """
    if not all(find_spec(name) for name in ("pythonnet", "clr_loader")):
        raise ToolchainError("the package pythonnet is not installed")
    home = os.environ.get("DOTNET_ROOT", "")
    return find(dotnet_root=home, path=os.environ.get("PATH", "")) or fetched()


def toolchain_or_skip() -> Toolchain:
    """The same; where there is none, the test is skipped with the reason."""
    try:
        return toolchain()
    except ToolchainError as error:
        pytest.skip(str(error))
