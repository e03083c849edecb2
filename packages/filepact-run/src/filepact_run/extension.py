"""What the package adds to filepact: the commands `run`, `runs` and `guard`, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.extension import SettingInfo
    from filepact_cli.parser import CommandGroup
    from filepact_run.settings import RunSettings

__all__ = ["EXTENSION"]

_PLACE: Final = ("run and watch programs", "first")


def _add_commands(group: CommandGroup) -> None:
    from argparse import REMAINDER  # noqa: PLC0415 - settings are read without

    add = group.add(
        "run",
        "filepact_run.command:run",
        "run a program; all its changes are checked, recorded and undoable",
        "filepact run -- claude",
        "What the program and its children write below the roots goes into a layer first and is committed from there. "
        "The rest of the system is read-only for it, and secrets are hidden. On other systems than Linux, changes are "
        "only recorded. The exit code is the program's.",
        place=_PLACE,
        answers="exit, run, operations, proposals, left, notes, moved, dropped",
    )
    add(
        "--mode",
        choices=("auto", "review"),
        default="auto",
        help="auto: do what the rules allow; review: all of it waits for `filepact approve` (default: auto)",
    )
    add(
        "--writable",
        metavar="DIR",
        action="append",
        default=[],
        help="folder or file outside the roots, or a `.git` inside, that the program may change directly, without a record; may be given several times",
    )
    add("--resume", metavar="ID", help="continue with the layers of an earlier run")
    add(
        "--layers",
        choices=("auto", "required", "off"),
        default="auto",
        help="auto: use layers if the system has them, else record changes afterwards; required: do not start without layers; off: never use layers (default: auto)",
    )
    add(
        "--commit",
        choices=("quiet", "end"),
        help="quiet: commit what the rules allow at the end, and whenever the program has changed nothing for two seconds; end: only at the end (default: that of the settings, or quiet)",
    )
    add("words", metavar="CMD", nargs=REMAINDER, help="the program and its arguments, after `--`")
    add = group.add(
        "runs",
        "filepact_run.command:runs",
        "list, commit or discard runs whose layers are not committed",
        "filepact runs --commit r1a2b3c4d",
        "A run is kept if filepact was killed together with its program, or if a part of its layers could not be committed.",
        place=_PLACE,
        answers="runs; of one that is named: run, operations, proposals, left, notes, moved, dropped",
    )
    add(
        "--commit",
        metavar="ID",
        help="commit the layers of a run; while it still runs, only what the rules allow",
    )
    add("--discard", metavar="ID", help="delete the layers of a run")
    add = group.add(
        "guard",
        "filepact_run.guard:guard",
        "record every change to a folder's files, so that you can undo it",
        "filepact guard ~/project --detach",
        "Works with agents, scripts, formatters and Git, without their help. Changes with less than a second between them "
        "become one operation. The log names the program if the system tells it. What filepact does itself is not "
        "recorded twice. A folder has one guard; `[recording]` in the settings limits what it keeps.",
        place=_PLACE,
        answers="root, running, since, pid, operations, files, left_out",
    )
    add("directory", metavar="DIR", nargs="?", help="the folder (default: see --root)")
    add("--detach", action="store_true", help="run in the background")
    add("--stop", action="store_true", help="stop the guard of this folder")
    add("--status", action="store_true", help="say whether one runs; the exit code is 3 if not")


def _read_settings(found: Mapping[str, Any], text: str, name: str) -> RunSettings:
    from filepact_run.settings import read_run  # noqa: PLC0415 - the command line is parsed without

    return read_run(found, text, name)


def _setting_keys() -> tuple[SettingInfo, ...]:
    from filepact_run.settings import RUN_KEYS  # noqa: PLC0415 - few commands list them

    return RUN_KEYS


EXTENSION: Final = Extension(
    "run",
    add_commands=_add_commands,
    tables=("run",),
    read_settings=_read_settings,
    setting_keys=_setting_keys,
)
