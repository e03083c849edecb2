"""Commands `config ...`: the person's settings file, what is in force of it, and a safe way to edit it."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.config.keys import KEYS, all_keys, json_schema, template
from filepact.config.person import read_settings, settings_file
from filepact.config.settings import Settings, parse_settings
from filepact.domain.operation import AuditOptions, StoreOptions
from filepact.errors import InvalidParamsError, NoChangeError, WriteFailedError
from filepact.extension import extensions
from filepact_cli.history import agrees
from filepact_cli.screen import CommandAnswer, TerminalText, plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from filepact_cli.screen import Terminal

__all__ = ["edit", "path", "schema", "show"]


def path(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Where the person's settings file is, or would be."""
    file = settings_file(arguments.config)
    return CommandAnswer(plain(f"{file}\n"), {"path": str(file), "exists": file.exists()})


def show(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Every setting in force, and whether it is the default."""
    file = settings_file(arguments.config)
    found, usual = in_force(read_settings(arguments.config)), in_force(Settings())
    spans = [TerminalText(f"# {file}{'' if file.exists() else ', not there: defaults'}\n", "dim")]
    table = ""
    for key in all_keys():
        if key.table != table:
            table = key.table
            spans.append(TerminalText(f"\n[{table}]\n", "title"))
        value = found[key.table, key.name]
        changed = value != usual[key.table, key.name]
        said = f"{key.name} = {_toml(value)}" if value not in (None, "") else f"# {key.name} ="
        spans += [
            TerminalText(f"{said:<32}", "strong" if changed else "plain"),
            TerminalText(f"  # {'yours; ' if changed else ''}{key.about}\n", "dim"),
        ]
    spans.append(TerminalText("\nRules are listed by `filepact policy show`.\n", "dim"))
    facts: dict[str, dict[str, Any]] = {}
    for (name, key_name), value in found.items():
        facts.setdefault(name, {})[key_name] = value
    return CommandAnswer(
        tuple(spans), {"path": str(file), "exists": file.exists(), "settings": facts}, long=True
    )


def schema(_arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """The JSON schema of the file."""
    import json  # noqa: PLC0415 - for this command only

    made = json_schema()
    return CommandAnswer(plain(f"{json.dumps(made, indent=2)}\n"), made)


def edit(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Edit a copy of the file, which takes its place only when nothing in it is wrong."""
    from filepact.app import replace_outside  # noqa: PLC0415 - loads the workspace

    command = _editor()
    file = settings_file(arguments.config)
    before = file.read_bytes() if file.exists() else None
    text = template() if before is None else before.decode("utf-8", "surrogateescape")
    copy = Path(_scratch(text))
    try:
        while True:
            if subprocess.run([*command, str(copy)], check=False).returncode:  # noqa: S603 - the person's own
                raise WriteFailedError(
                    f"{command[0]} ended with an error, so nothing was changed",
                    hint="Set EDITOR to an editor that waits until you are done.",
                )
            data = copy.read_bytes()
            if data == text.encode("utf-8", "surrogateescape"):
                raise NoChangeError("nothing was changed")
            try:
                parse_settings(data.decode("utf-8", "surrogateescape"), name=str(file))
                break
            except InvalidParamsError as error:
                screen.write(plain(f"{error.message}\n"))
                if not agrees("Edit it again?", screen):
                    raise
        replace_outside(str(file), data, expected=before, token=f"{secrets.randbits(32):08x}")
    finally:
        copy.unlink(missing_ok=True)
    return CommandAnswer(
        plain(f"{file} is in force from the next start of a server or command on.\n"),
        {"path": str(file)},
    )


def in_force(settings: Settings) -> dict[tuple[str, str], Any]:
    """The settings by table and key; None for what is not set."""
    parts = {
        "guard": settings.guard,
        "mcp": settings.server,
        "hooks": settings.hooks,
        "recording": settings.recording,
        "proposals": settings.limits,
        "audit": settings.audit or AuditOptions(),
    }
    found = {
        (key.table, key.name): settings.notify
        if key.name == "notify"
        else _plain(getattr(parts[key.table], key.name))
        for key in KEYS
    }
    for one in extensions():
        said = one.in_force(settings.extensions.get(one.name) or one.read_settings({}, "", ""))
        if isinstance(said, StoreOptions):
            said = settings.store or said  # which a variable may name as well
        found |= {
            (key.table, key.name): _plain(getattr(said, key.name)) for key in one.setting_keys()
        }
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _toml(value: Any) -> str:
    import json  # noqa: PLC0415 - its texts, numbers, lists and switches are TOML as well

    return json.dumps(value, ensure_ascii=False)


def _editor() -> Sequence[str]:
    """The person's editor.

    Raises:
        InvalidParamsError: There is no terminal, or no editor is set.
    """
    words = list(_words())
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidParamsError(
            "an editor needs a terminal", hint="`filepact config path` says which file it is."
        )
    if not words:
        raise InvalidParamsError("no editor is set", hint="Set EDITOR, for example to nano.")
    return words


def _words() -> Iterator[str]:
    import shutil  # noqa: PLC0415 - for this command only

    wanted = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    for one in filter(None, (wanted, "nano", "vi")):
        words = shlex.split(one)
        if words and shutil.which(words[0]):
            yield from words
            return


def _scratch(text: str) -> str:
    import tempfile  # noqa: PLC0415 - for this command only

    handle, name = tempfile.mkstemp(suffix=".toml", prefix="filepact-")
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return name
