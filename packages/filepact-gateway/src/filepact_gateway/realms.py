"""The workspaces of a gateway, opened when they are first asked for."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from filepact_gateway.context import RealmTools
from filepact_mcp.results import ServerInfo, ToolCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.tools.registry import Toolset
    from filepact.workspace.workspace import Mode, Workspace
    from filepact_gateway.settings import RealmAccess

__all__ = ["Realms", "path_of_realm", "realm_at"]

_ENDPOINT = "/mcp"


def path_of_realm(realm: str) -> str:
    """The path at which a workspace is served; the one without a name stands first."""
    return f"{_ENDPOINT}/{realm}" if realm else _ENDPOINT


def realm_at(path: str) -> str | None:
    """The name of the workspace at a path; None where there can be none."""
    path = path.removesuffix("/")  # as some hosts write it
    if path == _ENDPOINT:
        return ""
    name = path.removeprefix(f"{_ENDPOINT}/")
    return name if name != path and name and "/" not in name else None


class Realms:
    """The workspaces, each in as many ways as it is used.

    Args:
        roots: The folders of each, by its name.
        opened: Opens folders, so that changes are done or wait.
        tools: The tools over a workspace, as somebody may use them.
        facts: What is told of them to a client, by whether anything can be changed.
        page: What one answer may take; None for what is known of each client.
    """

    def __init__(
        self,
        roots: Mapping[str, tuple[str, ...]],
        *,
        opened: Callable[[tuple[str, ...], Mode], Workspace],
        tools: Callable[[Workspace, RealmAccess], Toolset],
        facts: Callable[[Workspace, RealmAccess], tuple[str, str, str]],
        page: int | None = None,
    ) -> None:
        self._roots = dict(roots)
        self._opened = opened
        self._tools = tools
        self._facts = facts
        self._page = page
        self._lock = Lock()
        self._workspaces: dict[tuple[str, Mode], Workspace] = {}
        self._served: dict[tuple[str, RealmAccess], RealmTools] = {}

    def __contains__(self, realm: object) -> bool:
        return realm in self._roots

    def served(self, realm: str, access: RealmAccess) -> RealmTools:
        """The tools of a workspace as somebody may use them.

        Raises:
            FilepactError: The workspace cannot be opened.
        """
        with self._lock:
            found = self._served.get((realm, access))
            if found is None:
                found = self._served[realm, access] = self._make(realm, access)
            return found

    def open_all(self) -> None:
        """Open each once, so that what is wrong with it is told at the start."""
        for realm in self._roots:
            with self._lock:
                self._workspace(realm, "auto")

    def _make(self, realm: str, access: RealmAccess) -> RealmTools:
        workspace = self._workspace(realm, "preview" if access.mode == "review" else "auto")
        tools = ToolCache(lambda: self._tools(workspace, access))
        name, version, said = self._facts(workspace, access)
        facts = ServerInfo(name=name, version=version, instructions=said, tools=tools.described)
        return RealmTools(tools, facts, self._page)

    def _workspace(self, realm: str, mode: Mode) -> Workspace:
        found = self._workspaces.get((realm, mode))
        if found is None:
            found = self._workspaces[realm, mode] = self._opened(self._roots[realm], mode)
        return found

    def close(self) -> None:
        """Close the workspaces."""
        with self._lock:
            for one in self._workspaces.values():
                one.close()
            self._workspaces.clear()
