"""Real language servers, as far as this machine has them, on throw-away trees."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.lsp.spec import parse_servers
from filepact_supervisor.server_sandbox import ServerSandbox
from tests.node_programs import NodeError, install
from tests.servers.asking import Preview, delta_of, preview_of, report_of
from tests.servers.csharp_toolchain import ToolchainError, toolchain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact_csharp.toolchain import Toolchain
    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics
    from filepact_diagnostics.lsp.spec import ServerSpec

SECONDS = 150.0
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
def server_folder(group: str = "servers") -> str:
    """The folder of the commands of language servers from npm; empty where they cannot be had."""
    try:
        return str(install(group).modules / ".bin")
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
    """A program among those of the test environment."""
    if name == "filepact-csharp doctor --json":
        return None if csharp() is None else name
    beside = str(Path(sys.executable).parent)
    name = name.removesuffix(" --lsp --stdio").removesuffix(" --version")
    folders = [beside, *(node_folders() if name == "tsc" else ())]
    if name in FROM_NPM:
        folders.append(server_folder())
    if name == "intelephense":
        folders.append(server_folder("php"))
    if name == "svelteserver":
        folders.append(server_folder("svelte"))
    if name in ("gopls", "emmylua_ls", "jdtls", "rust-analyzer"):
        folders.append("/usr/bin")  # of no registry that tests install from
    return shutil.which(name, path=os.pathsep.join(folders))


def server(name: str, sdk: str = "") -> ServerSpec:
    """A server by its name; the test is skipped where it is not installed.

    Args:
        name: Of one that is known.
        sdk: The folder of an SDK for it; empty for none.
    """
    found = next(one for one in builtin_servers() if one.name == name)
    for program in (found.command[0], *found.needs):
        if locate(program) is None:
            pytest.skip(f"{program} is not installed")
    compiler = csharp() if found.needs == ("filepact-csharp doctor --json",) else None
    if compiler is not None:
        # What is fetched for tests lies where no person would keep it.
        more = ["--roslyn", compiler.roslyn, "--dotnet", compiler.dotnet]
        folders = [*found.toolchain, compiler.roslyn, compiler.dotnet]
        if sdk:
            more, folders = [*more, "--sdk", sdk], [*folders, str(Path(sdk).parents[1])]
        table = {"command": [*found.command, *more], "toolchain": folders}
        (found,) = parse_servers({name: table}, [found])
    return found


class Tree:
    """A folder of files, and one server that is told of what happens in it.

    Args:
        root: An empty folder.
        name: The server.
        options: Its initialisation options, if not its own.
        confined: Whether it is confined to a sandbox.
        sdk: The folder of an SDK for it; empty for none.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        options: dict[str, Any] | None = None,
        *,
        confined: bool = False,
        sdk: str = "",
    ) -> None:
        self.root = root
        self.server = replace(server(name, sdk), confined=confined)
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

    def write(self, name: str, text: str) -> DiskChange:
        """Write a file; the answer is what happened."""
        place = self.root / name
        kind = "changed" if place.exists() else "created"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return DiskChange(str(place), kind, text)

    def delete(self, name: str) -> DiskChange:
        (self.root / name).unlink()
        return DiskChange(self.path(name), "deleted")

    def rename(self, old: str, new: str) -> DiskChange:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)
        return DiskChange(self.path(new), "renamed", self.text(new), self.path(old))

    def tell(self, *changes: DiskChange) -> None:
        self.pool.tell(changes)

    def report(self, *names: str) -> dict[str, FileDiagnostics]:
        """What the server says about files; all that it knows, if none are named."""
        texts = {self.path(name): self.text(name) for name in names or self.files()}
        reports = report_of(self.pool, str(self.root), texts, SECONDS)
        return {os.path.relpath(one.path, self.root): one for one in reports}

    def preview(self, name: str, text: str, others: Iterable[str]) -> Preview:
        """What the server would say about files if one held another text."""
        files = {self.path(one): self.text(one) for one in others}
        (seen,) = preview_of(self.pool, str(self.root), {self.path(name): text}, files, SECONDS)
        again = report_of(self.pool, str(self.root), files, SECONDS)
        before = {one.path: one.diagnostics for one in seen.before}
        withdrawn = all(before.get(one.path, one.diagnostics) == one.diagnostics for one in again)
        return Preview(withdrawn, delta_of(seen), seen.message)

    def cold(self) -> dict[str, FileDiagnostics]:
        """What a server says that was started just now."""
        warm, self.pool = self.pool, self._pool()
        try:
            return self.report()
        finally:
            self.pool.close()
            self.pool = warm

    def close(self) -> None:
        self.pool.close()

    def _pool(self) -> ServerPool:
        # No cache and no setting of the person's may make one start differ from another.
        environment = {
            "HOME": os.environ["HOME"],
            "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
            "LANG": "C.UTF-8",
        }
        sandbox = ServerSandbox("", (str(self.root),), ())
        return ServerPool([self.server], environment, locate, sandbox=sandbox)
