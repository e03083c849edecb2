"""What `filepact doctor` says of agents and editors: whether a session that they start in a folder is guarded."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from filepact_cli.render import CheckResult, age
from filepact_setup.connections import connections, fire_hook, last_heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact_cli.render import Level
    from filepact_setup.connections import Connection

__all__ = ["check_agents"]


def check_agents(folder: Path, options: Sequence[str], state: str) -> Iterator[CheckResult]:
    """The agents and editors that are here, and whether a session that they start in a folder is guarded.

    Args:
        folder: The folder.
        options: Of every command line for a host.
        state: The state folder.
    """
    here = Path(os.path.normpath(folder.expanduser().absolute()))
    for one in connections(here, state):
        name, host = f"agent {one.host.name}", one.host
        connected = one.server or one.guard is not None or bool(one.off)
        facts = {"installed": one.installed, "server": one.server, "guard": one.guard}
        facts["unguarded"] = bool(
            host.tools and (one.installed or connected) and one.guard in (None, "record")
        )
        if one.problem:
            yield CheckResult(name, "warn", one.problem, "Correct that file.", facts)
        elif one.off:
            said = f"{host.title} calls no hooks, so it is not guarded: {one.off}"
            yield CheckResult(name, "warn", said, "Take that setting out.", facts)
        elif not connected and one.installed:
            said = f"{host.title} is installed and not connected: what it does here is not seen"
            yield CheckResult(name, "none", said, f"filepact setup {host.name}", facts)
        elif connected and one.guard is None and host.tools:
            said = f"{host.title} is connected, and its own tools are not guarded"
            way = "" if host.hooks else " --guard only-filepact"
            after = host.by_hand
            if host.hooks or host.only:
                after = f"filepact setup {host.name}{way}"
            yield CheckResult(name, "warn", said, after, facts)
        elif host.hooks and (one.hooks or one.plugin):
            yield _check_hook(one, here, options, facts)
        elif connected:
            yield CheckResult(name, "ok", f"{host.title}: {one.said}", host.trust, facts)


def _check_hook(
    one: Connection, here: Path, options: Sequence[str], facts: dict[str, object]
) -> CheckResult:
    """Whether the hook of an agent answers, and was heard of."""
    host = one.host
    wrong = fire_hook(one, options, here)
    heard = None if wrong else last_heard(one, options)
    said = f"{host.title}: {one.said}, and its hook {wrong or 'answers'}"
    level: Level = "warn" if wrong else "ok"
    after = f"filepact setup {host.name} --write" if wrong else ""
    root = Path(one.root)
    if not wrong and not root.samefile(here):
        said += f" for {root}"
    if heard:
        said += f"; last called {age(heard, time.time())} ago"
    elif not wrong:
        # That it answers us is no proof that the agent's program calls it.
        said += f"; {host.title} has not called it here yet"
        level, after = ("none" if host.trust else "ok"), host.trust
    if one.here and not wrong:
        said += ". It guards only sessions that are started in this very folder"
        after = after or f"filepact setup {host.name}"
    more = {
        "heard": heard,
        "waits": level == "none",
        "unguarded": bool(facts["unguarded"] or wrong),
    }
    return CheckResult(f"agent {host.name}", level, said, after, {**facts, **more})
