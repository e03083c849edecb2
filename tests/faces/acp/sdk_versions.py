"""Other versions of the protocol's package than the one that is installed, each in a folder of its own.

They stand in ``.sdks`` beside the project file, for tests that put one of them first on the path.
"""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

from tests.fetching import PIP, FetchError
from tests.fetching import fetch as fetch_with

__all__ = ["VERSIONS", "SdkError", "fetch", "fetch_all"]

VERSIONS = ("0.11.0", "0.11.1", "0.12.0")
"""The oldest that we work with, what others pin, and the last before the one that is installed."""

_FOLDER = Path(__file__).resolve().parents[3] / ".sdks"


class SdkError(Exception):
    """A version cannot be had here; the message says why."""


def fetch(version: str) -> Path:
    """The folder of a version, installed on first use.

    Raises:
        SdkError: It cannot be had.
    """
    folder = _FOLDER / version
    stamp = folder / "stamp"
    _FOLDER.mkdir(exist_ok=True)
    with (_FOLDER / f"{version}.lock").open("w") as lock:
        # Two processes may want it at the same moment: the second waits, and finds it there.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            # All that it needs is installed already, with the version beside it.
            words = ["pip", "install", "--no-deps", "--upgrade", "--target", str(folder), *PIP]
            try:
                fetch_with([sys.executable, "-m", *words, f"agent-client-protocol=={version}"])
            except FetchError as error:
                raise SdkError(f"version {version}: {error}") from error
            stamp.touch()
    return folder


def fetch_all() -> None:
    """All of them."""
    for version in VERSIONS:
        fetch(version)
