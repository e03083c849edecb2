"""What the gateway adds to filepact: the command `serve` and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.extension import SettingInfo
    from filepact_cli.parser import CommandGroup
    from filepact_gateway.settings import GatewaySettings

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    from filepact_cli.parser import add_offer, count  # noqa: PLC0415 - settings are read without

    add = group.add(
        "serve",
        "filepact_gateway.command:serve",
        "serve folders to many agents over HTTP, as a gateway",
        "filepact serve ~/project --listen 127.0.0.1:8750",
        "Speaks MCP over Streamable HTTP at /mcp, with and without sessions. Say who may use it in [serve] of the settings. "
        "Needs filepact's extra `serve`. After SIGTERM it finishes the calls in progress, then stops.",
        extra="serve",
        answers="with --new-token: name, token, line",
    )
    add(
        "roots",
        metavar="ROOT",
        nargs="*",
        help="folder that agents may use; the first is their working folder (default: the workspaces in the settings)",
    )
    add(
        "--listen",
        metavar="ADDRESS",
        default="127.0.0.1:8750",
        help="where to listen, as HOST:PORT (default: 127.0.0.1:8750)",
    )
    add(
        "--health",
        metavar="ADDRESS",
        help="address for /healthz, /readyz and /metrics, as HOST:PORT (default: none)",
    )
    add("--workers", metavar="N", type=count, help="number of worker processes (default: 1)")
    add(
        "--new-token",
        metavar="NAME",
        help="print a new token and its line for the tokens file, then exit",
    )
    add(
        "--mode",
        choices=("auto", "review", "read-only"),
        default="auto",
        help="auto: do what the rules allow; review: every change waits for a person; read-only: "
        "only tools that change nothing (default: auto)",
    )
    add_offer(add)


def _read_settings(found: Mapping[str, Any], text: str, name: str) -> GatewaySettings:
    from filepact_gateway.settings import read_serving  # noqa: PLC0415 - the command line is parsed without

    return read_serving(found, text, name)


def _setting_keys() -> tuple[SettingInfo, ...]:
    from filepact_gateway.settings import KEYS  # noqa: PLC0415 - few commands list them

    return KEYS


EXTENSION: Final = Extension(
    "gateway",
    add_commands=_add_commands,
    tables=("serve", "realms", "access"),
    read_settings=_read_settings,
    setting_keys=_setting_keys,
    schema={"realms": {"type": "object"}, "access": {"type": "array", "items": {"type": "object"}}},
    extras={"serve": ("jwt", "many users over the network")},
)
