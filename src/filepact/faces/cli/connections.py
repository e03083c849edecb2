"""How agents and editors are connected to filepact in a project, as their settings files say."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

from filepact.errors import FilepactError
from filepact.faces.cli.host_files import held
from filepact.faces.cli.hosts import HOSTS, Guarding, Host, HostFile, hook_lines
from filepact.text.settings_edit import OWN
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Connection", "connections"]


@dataclass(frozen=True, slots=True)
class Connection:
    """How a host is connected here.

    Attributes:
        host: Which.
        installed: Where its program is; empty for nowhere.
        server: Whether it is told of a server of ours.
        guard: How its own tools are guarded; None for not at all.
        hooks: The command lines of its hooks of ours.
        plugin: Whether server and hooks come with the plugin of ours.
        reachable: Whether they find the command that they start.
        problem: Why its files cannot be understood; empty if they can.
    """

    host: Host
    installed: str
    server: bool = False
    guard: Guarding | None = None
    hooks: tuple[str, ...] = ()
    problem: str = ""
    plugin: bool = False
    reachable: bool = True

    @property
    def said(self) -> str:
        """In few words."""
        if self.problem:
            return "settings cannot be read"
        if not self.server and self.guard is None:
            return "not connected"
        if self.guard == "only-filepact":
            return "connected, only through filepact"
        if self.plugin:
            return "plugin, own tools guarded"
        if self.guard == "own-tools":
            return "connected, own tools guarded"
        if self.guard == "record":
            return "recorded"
        return "connected, own tools unguarded" if self.host.tools else "connected"


def connections(project: Path) -> Iterator[Connection]:
    """How each known host is connected in a project, as its files say."""
    for host in HOSTS:
        found = next(filter(None, map(shutil.which, host.programs)), "")
        try:
            yield _connection(host, found, project)
        except FilepactError as error:
            yield Connection(host, found, problem=error.message)


def _connection(host: Host, installed: str, project: Path) -> Connection:
    server = _has(host.server, project)
    hooks: list[str] = []
    guard: Guarding | None = None
    if host.hooks is not None:
        wanted, *_ = host.hooks.wanted()
        value = held(wanted, project)
        if isinstance(value, str):
            hooks = re.findall(r"^const HOOK = (.*)$", value, re.MULTILINE)
            called = next(iter(re.findall(r"^const EVENTS = (.*)$", value, re.MULTILINE)), "")
            asked = all(f'"{one}"' in called for one in host.hooks.before)
        else:
            named = value.get("hooks") if isinstance(value, dict) else None
            events = named if isinstance(named, dict) else {}
            ours = {event: found for event, items in events.items() if (found := hook_lines(items))}
            hooks = [line for lines in ours.values() for line in lines]
            asked = any(one in ours for one in host.hooks.before)
        if hooks:
            judges = asked and not any("--record" in line for line in hooks)
            guard = "own-tools" if judges else "record"
    plugin = guard != "own-tools" and any(_is_plugged(one, project) for one in host.plugins)
    if plugin:
        # Of OpenCode it is the hooks alone.
        server, guard = server or host.plugins[0].kind != "text", "own-tools"
    only = host.only and all(_within(one.wants, held(one, project)) for one in host.only)
    if only and server and (guard == "own-tools" or host.hooks is None):
        guard = "only-filepact"
    lines = () if plugin else tuple(dict.fromkeys(hooks))
    reachable = not plugin or shutil.which("filepact") is not None
    return Connection(*(host, installed, server, guard, lines), plugin=plugin, reachable=reachable)


def _is_plugged(file: HostFile, project: Path) -> bool:
    """Whether the plugin of ours is named in a file, or is that file."""
    value = held(file, project)
    if file.kind == "text":
        return isinstance(value, str) and "filepact" in value
    return _within(file.wants, value)


def _has(file: HostFile, project: Path) -> bool:
    """Whether there is an entry of ours in a file."""
    value, wants = held(file, project), file.wants
    while isinstance(value, dict) and isinstance(wants, dict):
        ((key, wants),) = wants.items()
        value = value.get(key)
        if key == OWN:
            return isinstance(value, dict)
    return False


def _within(wants: Any, value: Any) -> bool:
    """Whether a value has all that is wanted."""
    if isinstance(wants, dict):
        return isinstance(value, dict) and all(
            _within(one, value.get(key)) for key, one in wants.items()
        )
    if isinstance(wants, list):
        return isinstance(value, list) and all(one in value for one in wants)
    return bool(wants == value)
