"""Real language servers, as far as this machine has them, on throw-away trees."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.lsp.builtin import builtin_servers
from filepact.lsp.changes import Change
from filepact.lsp.pool import Pool
from filepact.lsp.servers import parse_servers
from tests.csharp.toolchain import ToolchainError, toolchain
from tests.node_programs import NodeError, install

if TYPE_CHECKING:
    from filepact.csharp.found import Toolchain
    from filepact.lsp.diagnostics import Report
    from filepact.lsp.servers import Server

SECONDS = 60.0
"""Far more than any answer takes; what is slower fails."""

FROM_NPM = frozenset(
    {
        *("bash-language-server", "pyright-langserver", "typescript-language-server", "tsserver"),
        *("vscode-css-language-server", "vscode-html-language-server"),
        *("vscode-json-language-server", "yaml-language-server"),
    }
)
"""Programs that `tests/node/servers` pins."""


@cache
def node_folders() -> tuple[str, ...]:
    """The folders of the npm programs' commands and of Node itself."""
    try:
        programs = install()
    except NodeError:
        return ()
    return str(programs.modules / ".bin"), str(programs.node.parent)


@cache
def server_folder() -> str:
    """The folder of the commands of language servers from npm; empty where they cannot be had."""
    try:
        return str(install("servers").modules / ".bin")
    except NodeError:
        return ""


@cache
def csharp() -> Toolchain | None:
    """The compiler for C# and its runtime."""
    try:
        return toolchain()
    except ToolchainError:
        return None


def locate(name: str) -> str | None:
    """A program among those of the test environment, and what is ours to find."""
    if name == "filepact-python":
        return sys.executable
    if name in ("filepact-roslyn", "filepact-dotnet"):
        found = csharp()
        return found and (found.roslyn if name == "filepact-roslyn" else found.dotnet)
    beside = str(Path(sys.executable).parent)
    folders = [beside, *(node_folders() if name == "tsc" else ())]
    if name in FROM_NPM:
        folders.append(server_folder())
    if name == "gopls":
        folders.append("/usr/bin")  # of no registry that tests install from
    return shutil.which(name, path=os.pathsep.join(folders))


def server(name: str) -> Server:
    """A server by its name; the test is skipped where it is not installed."""
    found = next(one for one in builtin_servers() if one.name == name)
    for program in (found.command[0], *found.needs):
        if locate(program) is None:
            pytest.skip(f"{program} is not installed")
    return found


class Tree:
    """A folder of files, and one server that is told of what happens in it.

    Args:
        root: An empty folder.
        name: The server.
        options: Its initialisation options, if not its own.
    """

    def __init__(self, root: Path, name: str, options: dict[str, Any] | None = None) -> None:
        self.root = root
        self.server = server(name)
        if options is not None:
            (self.server,) = parse_servers({name: {"options": options}}, [self.server])
        self.pool = self._pool()

    def path(self, name: str) -> str:
        return str(self.root / name)

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def files(self) -> list[str]:
        """All files that the server knows."""
        names = [str(one.relative_to(self.root)) for one in self.root.rglob("*") if one.is_file()]
        return sorted(name for name in names if self.server.language(name))

    def write(self, name: str, text: str) -> Change:
        """Write a file; the answer is what happened."""
        place = self.root / name
        kind = "changed" if place.exists() else "created"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return Change(str(place), kind, text)

    def delete(self, name: str) -> Change:
        (self.root / name).unlink()
        return Change(self.path(name), "deleted")

    def rename(self, old: str, new: str) -> Change:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)
        return Change(self.path(new), "renamed", self.text(new), self.path(old))

    def tell(self, *changes: Change) -> None:
        self.pool.tell(str(self.root), changes)

    def report(self, *names: str) -> dict[str, Report]:
        """What the server says about files; all that it knows, if none are named."""
        texts = {self.path(name): self.text(name) for name in names or self.files()}
        reports = self.pool.report(str(self.root), texts, SECONDS)
        return {os.path.relpath(one.path, self.root): one for one in reports}

    def cold(self) -> dict[str, Report]:
        """What a server says that was started just now."""
        warm, self.pool = self.pool, self._pool()
        try:
            return self.report()
        finally:
            self.pool.close()
            self.pool = warm

    def close(self) -> None:
        self.pool.close()

    def _pool(self) -> Pool:
        # No cache and no setting of the person's may make one start differ from another.
        environment = {
            "HOME": os.environ["HOME"],
            "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
            "LANG": "C.UTF-8",
        }
        return Pool([self.server], environment, locate)
