"""How agents and editors are connected to filepact in a project, as their settings files say."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from filepact.config.folders import read_set_up, set_up_root, state_folder
from filepact.errors import FilepactError, InvalidParamsError
from filepact.faces.cli import isolated_command
from filepact.values import dataclass, late_regex
from filepact_cli.screen import CommandAnswer, TerminalText
from filepact_setup.hook_command import NAMED, command_lines, hook_lines
from filepact_setup.host_files import held
from filepact_setup.hosts import (
    HOSTS,
    Guarding,
    Host,
    HostFile,
    hook_wants,
    hook_words,
    host_place,
)
from filepact_setup.settings_edit import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact_cli.screen import Style
    from filepact_setup.host_files import SettingsFile
    from filepact_setup.hosts import HostEvents

__all__ = [
    "Connection",
    "check_state",
    "connections",
    "fire_hook",
    "last_heard",
    "overview",
]

_STATE: Final = late_regex(r"""--state(?:", | )("[^"]*"|'[^']*'|[^'"\s\\]+)""")
_PATIENCE = 30  # seconds; hosts wait as long


@dataclass(frozen=True, slots=True)
class Connection:
    """How a host is connected here.

    Attributes:
        host: Which.
        installed: Where its program is; empty for nowhere.
        server: Whether it is told of a server of ours.
        guard: How its own tools are guarded; None for not at all.
        hooks: The command lines of its hooks of ours that are called here.
        root: The folder that they guard.
        here: Whether they are called only where the host is started in this very folder.
        off: The setting with which the host is told to call no hooks; empty where it is not.
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
    root: str = ""
    here: bool = False
    off: str = ""

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
            return "connected, own tools guarded" if self.server else "own tools guarded"
        if self.guard == "record":
            return "recorded"
        return "connected, own tools unguarded" if self.host.tools else "connected"


def connections(folder: Path, state: str) -> Iterator[Connection]:
    """How each known host is connected when it is started in a folder, as its files say.

    Args:
        folder: The folder, absolute.
        state: The state folder, which knows what was set up.
    """
    for host in HOSTS:
        found = next(filter(None, map(shutil.which, host.programs)), "")
        try:
            yield _connection(host, found, folder, state)
        except FilepactError as error:
            yield Connection(host, found, problem=error.message)


def _connection(host: Host, installed: str, folder: Path, state: str) -> Connection:
    server = _has(host.server, folder)
    lines: list[str] = []
    guard: Guarding | None = None
    root, here, off = os.path.realpath(folder), False, ""
    if host.hooks is not None:
        lines, guard, root, here = _hooks(host, host.hooks, folder, state)
        off = _switched_off(host.hooks, folder) if guard or host.plugins else ""
    plugin = guard in (None, "record") and any(_is_plugged(one, folder) for one in host.plugins)
    if plugin:
        server, guard, lines = True, "own-tools", []
    only = host.only and all(_within(one.wants, held(one, folder)) for one in host.only)
    if guard not in (None, "record") or host.hooks is None:
        if only and server:
            guard = "only-filepact"
        elif guard is not None:
            guard = "own-tools"
    reachable = not plugin or shutil.which("filepact") is not None
    return Connection(
        host,
        installed,
        server,
        None if off else guard,
        tuple(dict.fromkeys(lines)),
        plugin=plugin,
        reachable=reachable,
        root=root,
        here=bool(lines) and here,
        off=off,
    )


def _hooks(
    host: Host, hooks: HostEvents, folder: Path, state: str
) -> tuple[list[str], Guarding | None, str, bool]:
    """The hooks of ours that a session in a folder calls, how far, for which root, and whether only here."""
    here = os.path.realpath(folder)
    lines, asked = _lines(hooks, hooks.wanted()[0], folder)
    known = {name: guard for agent, guard, name in read_set_up(state) if agent == host.name}
    found = set_up_root(here, known)
    if not known or not all("--where-set-up" in line for line in lines):
        top = next(
            (one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), here
        )
        found = (os.path.realpath(top), "")
    if lines and found is not None:
        guard = cast("Guarding", known.get(found[1], "own-tools"))
        return lines, guard if _judges(lines, asked=asked) else "record", found[0], False
    above = (folder, *folder.parents) if hooks.upwards else (folder,)
    for project in above:
        for path in filter(None, (hooks.team, hooks.former)):
            lines, asked = _lines(hooks, hooks.wanted(path)[0], project)
            if lines:
                way: Guarding = "own-tools" if _judges(lines, asked=asked) else "record"
                return lines, way, os.path.realpath(project), not hooks.upwards
    return [], None, here, False


def _judges(lines: list[str], *, asked: bool) -> bool:
    return asked and not any("--record" in line for line in lines)


def _lines(hooks: HostEvents, file: HostFile, project: Path) -> tuple[list[str], bool]:
    """The command lines of hooks of ours in a file, and whether one is called before a tool."""
    value = held(file, project)
    if hooks.plain and value is not None:
        with suppress(OSError), host_place(file.path, project).open(encoding="utf-8") as read:
            try:
                json.load(read)
            except ValueError:
                why = "its program reads nothing of it while it has comments or a comma too many"
                raise InvalidParamsError(f"{file.path}: {why}") from None
    if isinstance(value, str):
        called = next(iter(re.findall(r"^const EVENTS = (.*)$", value, re.MULTILINE)), "")
        return re.findall(r"^const HOOK = (.*)$", value, re.MULTILINE), all(
            f'"{one}"' in called for one in hooks.before
        )
    named = value.get("hooks") if isinstance(value, dict) else None
    events = named if isinstance(named, dict) else {}
    ours = {event: found for event, items in events.items() if (found := hook_lines(items))}
    return [line for lines in ours.values() for line in lines], any(
        one in ours for one in hooks.before
    )


def _switched_off(hooks: HostEvents, folder: Path) -> str:
    """The setting by which the host calls no hooks here; empty where there is none."""
    for files, name, wanted in hooks.off:
        for path in files:
            value = held(HostFile(path, {}, "toml" if path.endswith(".toml") else "json"), folder)
            for key in name.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is wanted:
                return f"{name} in {path}"
    return ""


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


def last_heard(one: Connection, options: Sequence[str]) -> float | None:
    """When an agent's own program called its hook here last, in seconds since the epoch."""
    from filepact_hooks.client import HookRequest  # noqa: PLC0415 - only the doctor asks

    given = dict(zip(options[::2], options[1::2], strict=False))
    state = state_folder(given.get("--state"))
    agent = one.host.name
    config, roots = given.get("--config", ""), (one.root,)
    request = HookRequest(agent, "", "", state=state, config=config, roots=roots)
    with suppress(OSError):
        return Path(state, "hooks", f"{request.key}.{agent}").stat().st_mtime
    return None


def fire_hook(one: Connection, options: Sequence[str], here: Path) -> str:
    """Run the hook of an agent, as its program would; what is wrong with it, empty for nothing.

    What is run is what `setup` writes, and never a line of a file that agents may change.
    """
    from filepact_hooks.client import PROBE  # noqa: PLC0415 - only the doctor asks

    host = one.host
    words, named = [*isolated_command(), "hook", host.name], [*NAMED, "hook", host.name]
    modes: tuple[list[str], ...] = ([], ["--strict"], ["--record"])
    usual = [hook_words(host, here, options)]
    for command in (words, named):
        for root in ([], ["--root", one.root], ["--root", str(here)]):
            usual += [[*command, *mode, *root, *options] for mode in modes]
    known = {json.dumps(each) for each in usual}
    if (hooks := host.hooks) is not None:
        files = [hooks.wanted(path)[0] for path in ("", hooks.team, hooks.former)]
        wanted = [hook_wants(hooks, file, each) for file in files for each in usual]
        known.update(line for each in wanted for line in command_lines(each))
    if not all(line in known for line in one.hooks):
        return "is not the one of this filepact"
    by_name = any("command -v" in line or f'["{NAMED[0]}"' in line for line in one.hooks)
    if not one.reachable or (by_name and not shutil.which(NAMED[0])):
        return "is not found: no filepact is on the PATH"
    call = {
        "session_id": PROBE,
        "tool_use_id": "filepact-doctor",
        "tool_name": "Read",
        "tool_input": {"file_path": "filepact-doctor"},
        "cwd": str(here),
    }
    # Who asks may be an agent's command, with the variables of its session.
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_PROJECT_DIR")
    }
    # The call ends as well: one that goes on would be the author of what changes meanwhile.
    events = (host.hooks.before[0], host.hooks.after[0]) if host.hooks else ()
    for event in events:
        try:
            # Strict, so that what goes wrong is a refusal and not a remark.
            done = subprocess.run(  # noqa: S603 - this very program
                [*words, "--strict", "--root", one.root, *options, "--event", event],
                cwd=here,
                env=environment,
                input=json.dumps({**call, "hook_event_name": event}).encode(),
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
            said = json.loads(done.stdout or b"{}")
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return "gives no answer"
        if done.returncode or done.stderr.strip():
            return "fails"
        if "deny" in _values(said):
            return "refuses every call"
    return ""


def _values(value: object) -> list[object]:
    """All plain values in an answer."""
    if isinstance(value, dict):
        return [one for each in value.values() for one in _values(each)]
    return [value]


def check_state(host: Host, file: SettingsFile, options: Sequence[str]) -> None:
    """Refuse to take hooks for all projects from those that were set up with another state folder.

    Raises:
        InvalidParamsError: There are such.
    """
    text = (file.data or b"").decode("utf-8", "replace")
    if "--where-set-up" not in text:
        return
    found = _STATE.search(text)
    state = state_folder(shlex.split(found[1])[0] if found else None)
    mine = dict(zip(options[::2], options[1::2], strict=False)).get("--state")
    known = [folder for agent, _, folder in read_set_up(state) if agent == host.name]
    if state != state_folder(mine) and known:
        raise InvalidParamsError(
            f"{file.shown}: the hooks of {host.title} are for folders that were set up with "
            f"another state folder, such as {known[0]}",
            hint=f"Give --state {shlex.quote(state)}, or take those out with it first.",
        )


def overview(project: Path, state: str) -> CommandAnswer:
    """All hosts, those that are here first."""
    found = sorted(
        connections(project, state), key=lambda one: not (one.installed or one.server or one.guard)
    )
    spans: list[TerminalText] = []
    for one in found:
        style: Style = "dim"
        if one.server or one.guard or one.problem:
            style = "good" if one.guard or not one.host.tools else "warn"
        elif one.installed:
            style = "plain"
        said = one.said if one.installed or one.server or one.guard else "not found here"
        line = f"  {one.host.name:<15} {one.host.title:<15} {said}\n"
        spans.append(TerminalText(line, style))
    spans.append(
        TerminalText(
            "\n`filepact setup HOST` shows what would change in its settings, and with --write\n"
            "it is changed. `filepact setup acp` is about editors that start agents.\n"
        )
    )
    return CommandAnswer(
        tuple(spans),
        {
            "hosts": [
                {
                    "host": one.host.name,
                    "title": one.host.title,
                    "installed": one.installed,
                    "server": one.server,
                    "guard": one.guard,
                    "problem": one.problem,
                }
                for one in found
            ]
        },
    )
