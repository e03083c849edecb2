"""The tour's agent: the official MCP client, talking to a real server process."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import Implementation, TextContent

import filepact
from filepact.app import journal_roots
from filepact.config.person import state_folder
from filepact.faces.cli.programs import Programs
from filepact.faces.mcp.fast_path import RECEIPT_KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["ToolAnswer", "TourAgent", "connected"]

_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered.

    Attributes:
        facts: The receipt of a change; empty for other tools.
    """

    text: str
    refused: bool
    facts: dict[str, Any]


class TourAgent:
    """Calls tools on a server, as any agent program does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def protocol(self) -> str:
        """The version of the protocol that both sides settled on."""
        return self._client.protocol_version

    async def tools(self) -> list[str]:
        """The names of the tools that the server shows."""
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call one tool."""
        result = await self._client.call_tool(tool, arguments)
        texts = [part.text for part in result.content if isinstance(part, TextContent)]
        return ToolAnswer(
            "\n".join(texts), bool(result.is_error), (result.meta or {}).get(RECEIPT_KEY, {})
        )


@asynccontextmanager
async def connected(root: Path, state: Path, log: Path) -> AsyncIterator[TourAgent]:
    """Start a server over a folder and connect to it; it ends with the block.

    Args:
        root: The only folder that it may use.
        state: Its state folder.
        log: Where its standard error goes.
    """
    # From a folder of ours, and without that folder on its path: no file that happens to lie
    # where the person stands may be taken for a module.
    package = str(Path(filepact.__file__).parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    # Its state is a throw-away one, which does not know where else agents may change programs.
    changeable = (str(Path.cwd()), *journal_roots(state_folder()))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("FILEPACT_")
    } | {
        "PATH": Programs(changeable).environment.get("PATH", ""),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONSAFEPATH": "1",
    }
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "filepact", "mcp", str(root), "--state", str(state)],
        env=environment,
        cwd=state.parent,
    )
    with log.open("w", encoding="utf-8") as errors:
        client = Client(
            stdio_client(server, errlog=errors),
            client_info=Implementation(name="tour-agent", version="1.0"),
            read_timeout_seconds=_PATIENCE_SECONDS,
        )
        async with client:
            yield TourAgent(client)
