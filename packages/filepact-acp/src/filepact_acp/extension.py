"""What the package adds to filepact: the commands `acp` and `acp-check`, and the proxy's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.extension import SettingInfo
    from filepact_acp.settings import ProxySettings
    from filepact_cli.parser import CommandGroup

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    """Add those for the Agent Client Protocol, in the order in which the help shows them."""
    _add_proxy(group)
    _add_check(group)


def _add_proxy(group: CommandGroup) -> None:
    from filepact_cli.parser import seconds  # noqa: PLC0415 - settings are read without

    add = group.add(
        "acp",
        "filepact_acp.command:acp",
        "run an agent behind filepact in an editor, with the Agent Client Protocol",
        "filepact acp -- gemini --acp",
        "Put `filepact acp --` before the agent's command in the editor's settings. Files that the "
        "agent asks for are guarded and recorded, the agent also gets the seven tools, and everything "
        "else passes unchanged. The folders are the editor's; --root narrows them. Without AGENT: one "
        "link in a chain of proxies that a conductor starts.",
        answers="with --list: agents",
    )
    add("agent", metavar="AGENT", nargs="*", help="the agent's command, after `--`")
    add(
        "--mode",
        choices=("auto", "preview"),
        default="auto",
        help="auto: do what the rules allow; preview: ask the person about every change (default: auto)",
    )
    add(
        "--explain",
        action="store_true",
        help="list the ways in which agents reach files; with AGENT: start it, ask what it is, stop it",
    )
    add("--no-tools", action="store_true", help="do not give the agent the seven tools")
    add(
        "--no-editor-files",
        action="store_true",
        help="use the files on the disk, and do not ask the editor for them: for editors that cannot tell unsaved "
        "text, or stop when a file that they show was changed",
    )
    add(
        "--no-watch",
        action="store_true",
        help="do not look for changes that the agent makes without the protocol",
    )
    add(
        "--patience",
        metavar="SECONDS",
        type=seconds(86_400),
        default=30.0,
        help="how long the editor may take to send its text of a file; then the request fails and "
        "nothing is written (default: 30)",
    )


def _add_check(group: CommandGroup) -> None:
    group.hand_on(
        "acp-check",
        "filepact_acp.command:acp_check",
        "check how a client of the Agent Client Protocol serves files",
        "Takes the arguments of the command acp-conformance. Install this separate package first.",
    )


def _read_settings(found: Mapping[str, Any], text: str, name: str) -> ProxySettings:
    from filepact_acp.settings import read_proxy  # noqa: PLC0415 - the command line is parsed without

    return read_proxy(found, text, name)


def _setting_keys() -> tuple[SettingInfo, ...]:
    from filepact_acp.settings import PROXY_KEYS  # noqa: PLC0415 - few commands list them

    return PROXY_KEYS


EXTENSION: Final = Extension(
    "acp",
    add_commands=_add_commands,
    tables=("acp",),
    read_settings=_read_settings,
    setting_keys=_setting_keys,
    extras={"acp": ("acp", "editors and clients of agents")},
)
