"""Test data that others keep, fetched from their packages and never copied into this project.

Each package is pinned by the hash of the archive; it is unpacked into ``.suites`` beside the project
file, which Git ignores.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fetching import unpack

__all__ = ["UnavailableError", "codex_scenarios", "gnu_patch_tests", "or_skip"]

_FOLDER = Path(__file__).resolve().parent.parent.parent / ".suites"
_CODEX = (
    "apply_patch_py-0.4.1.tar.gz",
    "8962aa19d12a2b48a92175f7c42e9ce90c54e3d9bcc39210549487d549c36d20",
)
_GNU = (
    "patch_2.7.6.orig.tar.xz",
    "ac610bda97abe0d9f6b7c963255a11dcb196c25e337c61f94e4778d632f1d8fd",
)


class UnavailableError(Exception):
    """A package cannot be had here; the message says why."""


def or_skip(error: UnavailableError) -> None:
    """Skip with the reason, but fail where everything has to run."""
    if os.environ.get("CI"):
        raise error
    pytest.skip(str(error))


def codex_scenarios() -> Path:
    """The folder of scenarios that codex tests its ``apply_patch`` with."""
    archive = _FOLDER / _CODEX[0]
    if not archive.exists():
        _run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-binary", "apply-patch-py", "--ignore-requires-python"),
            *("--dest", str(_FOLDER), "apply-patch-py==0.4.1"),
        )
    return _unpacked(*_CODEX) / "tests" / "fixtures" / "scenarios"


def gnu_patch_tests() -> Path:
    """The folder of GNU patch's own test scripts, from the source package of Debian."""
    archive = _FOLDER / _GNU[0]
    if not archive.exists():
        if shutil.which("apt-get") is None:
            raise UnavailableError("there is no apt-get to fetch GNU patch's source with")
        options = _apt_options()
        _run("apt-get", *options, "update")
        _run("apt-get", *options, "--download-only", "source", "patch")
    return _unpacked(*_GNU) / "tests"


def _apt_options() -> list[str]:
    """Options that make apt-get read this system's source packages, with lists of its own.

    Security updates are left out: their archive drops a version as soon as there is a newer one, and the
    archive that is pinned is that of the release.
    """
    apt = _FOLDER / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    system = Path("/etc/apt")
    found = False
    for name in ("sources.list.d/debian.sources", "sources.list"):
        file = system / name
        if file.exists() and file.read_text().strip():
            text = re.sub(r"(?m)^(Types: )?deb( |$)", r"\1deb-src\2", file.read_text())
            parts = re.split(r"(?m)^\s*\n" if file.suffix == ".sources" else r"(?<=\n)", text)
            text = "\n".join(one for one in parts if "-security" not in one)
            (apt / f"source{file.suffix}").write_text(text)
            found = True
            break
    if not found:
        raise UnavailableError("this system names no Debian sources")
    listed = next(apt.glob("source.*"))
    return [
        "-qq",
        *("-o", f"Dir::Etc::sourcelist={listed}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={apt / 'lists'}", "-o", f"Dir::Cache={apt / 'cache'}"),
    ]


def _run(*command: str) -> None:
    _FOLDER.mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=_FOLDER, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{command[0]} did not end in time") from error
    if done.returncode:
        raise UnavailableError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


def _unpacked(name: str, sha256: str) -> Path:
    archive = _FOLDER / name
    if not archive.exists():
        raise UnavailableError(f"{name} is not what the package index has now")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != sha256:
        archive.unlink()
        raise UnavailableError(f"{name} is not the archive that was pinned")
    folder = _FOLDER / name.split(".tar", maxsplit=1)[0]
    if not folder.exists():
        partial = _FOLDER / f"{folder.name}.{os.getpid()}"
        unpack(archive, partial)
        try:
            partial.rename(folder)
        except OSError:  # another run was quicker
            shutil.rmtree(partial)
    (inner,) = folder.iterdir()
    return inner
