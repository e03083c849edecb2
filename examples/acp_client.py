"""A small client: asks any agent that speaks the Agent Client Protocol one thing, in this folder.

    python acp_client.py "PROMPT" AGENT ARGUMENTS...

What the agent reads and writes through the protocol passes the guard; `filepact log` shows it, and
`filepact undo` takes it back.  You are asked, on standard input, where a rule wants a person.
"""

# ruff: noqa: INP001, T201, ARG002 - a program that prints; the protocol names the parameters
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from acp import RequestPermissionResponse, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome

from filepact.acp import Change, ClientFileSystem, Question

HARMLESS = ("read", "edit", "search", "think")


async def yes(question: str) -> bool:
    """What the person says; nobody there is a no."""
    print(f"{question} [y/N] ", end="", flush=True)
    return (await asyncio.to_thread(sys.stdin.readline)).strip().lower() == "y"


class Talker(ClientFileSystem):
    """Prints what the agent says and does, and asks where it has to."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            print(update.content.text, end="", flush=True)
        elif update.session_update == "tool_call":
            print(f"\n[{update.title}]", flush=True)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        # The call is whole here, whatever of it the agent told before.  What goes through the
        # guard needs no second question; a command does.
        allowed = tool_call.kind in HARMLESS or await yes(f"Allow {tool_call.title!r}?")
        # By its kind and never by its place: the first option often is "always".
        for option in options:
            if option.kind == ("allow_once" if allowed else "reject_once"):
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def decide(question: Question) -> bool:
    """Show a change that waits for a person, and ask."""
    print(f"\n{question.diff}")
    return await yes(f"Write {question.path} ({question.rule})?")


def show(change: Change) -> None:
    """Say what became of a change."""
    for path, file in zip(change.paths, change.receipt.files, strict=True):
        print(f"\n{change.state}: {path} +{file.added} -{file.removed}", flush=True)


async def main(prompt: str, *command: str) -> None:
    """Ask one agent one thing."""
    client = Talker(ask=decide, on_change=show, on_note=print)
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
