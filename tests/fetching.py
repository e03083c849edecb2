"""Runs the package managers that tests fetch with, so that none of them waits for a dead network.

`scripts/test` fetches everything first (`tests.prepare`).  Where that failed, it sets `NO_FETCH`, and
what is not there by then counts as not to be had: no test waits for the network once more.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tarfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["NO_FETCH", "NPM", "PIP", "FetchError", "fetch", "unpack"]

NO_FETCH = "FILEPACT_TESTS_NO_FETCH"
NPM = ("--loglevel=http", "--fetch-timeout=60000", "--fetch-retries=1")
"""Print each answer, and give up a registry that begins none within a minute, twice."""
PIP = ("--timeout=30", "--retries=1")
"""Give up a registry that sends nothing for 30 seconds, twice."""

_SILENCE = 180.0
_failed: dict[tuple[str, ...], str] = {}


class FetchError(Exception):
    """A package manager could not fetch something; the message says why."""


def fetch(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    silence: float = _SILENCE,
) -> None:
    """Run a package manager to its end; one that has failed is not run again by this process.

    Args:
        command: Its command line.
        cwd: Where to run it.
        env: Its environment; None for the one of this process.
        silence: After how many seconds in which it printed nothing it is ended.

    Raises:
        FetchError: It failed, printed nothing for too long, or may not be tried again.
    """
    if os.environ.get(NO_FETCH):
        raise FetchError("it could not be fetched at the beginning of this run")
    key = (str(cwd), *command)
    if key not in _failed and (why := _run(command, cwd, env, silence)):
        _failed[key] = why
    if key in _failed:
        raise FetchError(_failed[key])


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive that a package manager has fetched; nothing leads out of the folder, as far as Python can tell."""
    with tarfile.open(archive) as packed:
        # Pythons before 3.11.4 know no filters.
        if hasattr(tarfile, "data_filter"):
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(folder)  # noqa: S202 - filtered, or of a release that is pinned


def _run(
    command: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None, silence: float
) -> str:
    """Why a command failed; empty if it did not."""
    printed: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout

        def read() -> None:
            for line in output:
                printed.put(line)
            printed.put(None)

        threading.Thread(target=read, daemon=True).start()
        last = ""
        try:
            while (line := printed.get(timeout=silence)) is not None:
                last = (last + line)[-500:]
            with suppress(subprocess.TimeoutExpired):
                process.wait(silence)
        except queue.Empty:
            return f"nothing has arrived for {silence:g} s; is there a network, or a proxy to set?"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return last.strip() or f"exit status {process.returncode}" if process.returncode else ""
