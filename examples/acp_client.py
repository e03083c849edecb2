"""A small client: asks any agent that speaks the Agent Client Protocol one thing, in this folder.

    python acp_client.py "PROMPT" AGENT ARGUMENTS...

What the agent reads and writes through the protocol passes the guard; `filepact log` shows it, and
`filepact undo` takes it back.
"""

# ruff: noqa: INP001, T201, ARG002 - a program that prints; the protocol names the parameters
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from acp import RequestPermissionResponse, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome

from filepact.acp import ClientFileSystem

HARMLESS = ("read", "edit", "search", "think")


class Talker(ClientFileSystem):
    """Prints what the agent says and does."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            print(update.content.text, end="", flush=True)
        elif update.session_update == "tool_call":
            print(f"\n[{update.title}]", flush=True)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        # By its kind and never by its place: the first option often is "always".
        wanted = "allow_once" if tool_call.kind in HARMLESS else "reject_once"
        for option in options:
            if option.kind == wanted:
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def main(prompt: str, *command: str) -> None:
    """Ask one agent one thing."""
    client = Talker()
    # The agent's complaints go where ours go; nobody would read them from a pipe.
    spawned = spawn_agent_process(
        client, *command, env=os.environ, transport_kwargs={"stderr": None}
    )
    async with spawned as (agent, _):
        await agent.initialize(1, client_capabilities=client.capabilities())
        session = await agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])
        done = await agent.prompt(prompt=[text_block(prompt)], session_id=session.session_id)
        print(f"\n({done.stop_reason})")
    client.close()


asyncio.run(main(*sys.argv[1:]))
