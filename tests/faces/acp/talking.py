"""Conversations of the client's file system with an agent that sends raw lines, over real pipes."""

import asyncio
import json
import sys
from pathlib import Path

from acp import spawn_agent_process, text_block

from filepact.acp import ClientFileSystem
from tests.faces.acp.schema import Talk

__all__ = ["AGENT", "READ", "WRITE", "run", "talk"]

AGENT = Path(__file__).with_name("raw_agent.py")
READ, WRITE = "fs/read_text_file", "fs/write_text_file"


async def ask_once(agent, session_id):
    """One prompt, and what its answer says besides."""
    return await agent.prompt(prompt=[text_block("go")], session_id=session_id)


def talk(tmp_path, filesystem, name="raw", play=ask_once, **script):
    """What passed between a client and an agent whose session has the folder ``work``.

    Everything that the client sent is held against the protocol's schema.
    """
    (tmp_path / "work").mkdir(exist_ok=True)

    async def scene():
        arguments = [str(AGENT), json.dumps(script), name]
        async with spawn_agent_process(filesystem, sys.executable, *arguments) as (agent, _):
            await agent.initialize(1, client_capabilities=filesystem.capabilities())
            session = await agent.new_session(cwd=str(tmp_path / "work"), mcp_servers=[])
            done = await play(agent, session.session_id)
            return None if done is None else done.field_meta

    try:
        done = asyncio.run(scene())
    finally:
        filesystem.close()
    seen = Talk()
    for side, message in () if done is None else done["passed"]:
        if side == "client":
            seen.see(message, side)
        elif "method" in message:
            seen.asked(message, side)
    return done


def run(tmp_path, *script, name="raw", **options):
    """The answers to an agent's requests."""
    filesystem = ClientFileSystem(state_dir=str(tmp_path / "state"), **options)
    return talk(tmp_path, filesystem, name, prompt=script)["answers"]
