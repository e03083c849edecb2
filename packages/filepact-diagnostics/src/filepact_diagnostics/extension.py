"""What the package adds to filepact: what language servers find in changes, the tools of a solution, and their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.config.settings import Settings
    from filepact.extension import SettingInfo
    from filepact.workspace.workspace import Workspace
    from filepact_cli.parser import CommandGroup
    from filepact_cli.render import CheckResult
    from filepact_diagnostics.opening import Diagnostics
    from filepact_diagnostics.settings import LanguageServerOptions, LanguageServerSettings

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    from filepact_cli.parser import seconds  # noqa: PLC0415 - as all here: when it is needed

    add = group.add(
        "trust",
        "filepact_diagnostics.command:trust",
        "let a language server work for agents in this folder",
        "filepact trust rust-analyzer",
        "Some servers run code from a project's build files. They work for agents only in folders where you trust "
        "them. Others can reveal any file that a source file names. Without your trust they run in a sandbox. "
        "Without SERVER: lists the installed servers.",
        place=("set up", "last"),
        answers="folder, servers; of one server: server, folder, risk, trusted",
    )
    add("server", metavar="SERVER", nargs="?", help="its name, as `filepact doctor` lists it")
    add("--withdraw", action="store_true", help="do not trust it in this folder any more")
    add = group.add(
        "diagnostics",
        "filepact_diagnostics.command:diagnostics",
        "list what language servers find in files",
        "filepact diagnostics src --severity error",
        "Starts the installed servers, and stops them afterwards. The exit code is 1 if "
        "there are errors or a file got no answer, 3 if no server knows any of the files.",
        place=("set up", "last"),
        answers="diagnostics, counts, files, complete, unanswered; where no file was looked at: message",
    )
    add(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files or folders (default: every root)",
    )
    add(
        "--severity",
        choices=("error", "warning", "information", "hint"),
        default="warning",
        help="list diagnostics of at least this severity (default: warning)",
    )
    add(
        "--seconds",
        metavar="N",
        type=seconds(3_600),
        default=60.0,
        help="how long to wait in all (default: 60)",
    )
    add = group.add(
        "install",
        "filepact_diagnostics.programs:install",
        "fetch a language server's own parts, for machines that lack them",
        "filepact install csharp",
        "csharp: downloads a C# compiler and a .NET runtime, for machines without the .NET SDK.",
        place=("set up", "last"),
    )
    add("what", metavar="WHAT", choices=("csharp",), help="csharp")


def _read(found: Mapping[str, Any], text: str, name: str) -> LanguageServerOptions:
    from filepact_diagnostics.settings import read_wishes  # noqa: PLC0415

    return read_wishes(found, text, name)


def _in_force(options: LanguageServerOptions) -> LanguageServerSettings:
    return options.diagnosing


def _join(
    mine: LanguageServerOptions | None, above: LanguageServerOptions
) -> LanguageServerOptions:
    return (mine or type(above)()).beneath(above)


def _keys() -> tuple[SettingInfo, ...]:
    from filepact_diagnostics.settings import keys  # noqa: PLC0415

    return keys()


def _open(settings: Settings, state: str) -> Diagnostics:
    from filepact_diagnostics.opening import Diagnostics  # noqa: PLC0415

    return Diagnostics(settings, state)


def _check(
    workspace: Workspace, settings: Settings, state: str, start: bool, tell: Callable[[str], None]
) -> Iterator[CheckResult]:
    from filepact_diagnostics.command import check_servers  # noqa: PLC0415
    from filepact_diagnostics.settings import read_trust  # noqa: PLC0415

    return check_servers(workspace, settings, read_trust(state), start=start, tell=tell)


EXTENSION: Final = Extension(
    "diagnostics",
    add_commands=_add_commands,
    tables=("diagnostics", "servers"),
    read_settings=_read,
    setting_keys=_keys,
    in_force=_in_force,
    join=_join,
    against_projects=": language servers are programs, and a folder that somebody else wrote must not start any",
    schema={"servers": {"type": "object"}},
    open_diagnostics=_open,
    check=_check,
)
