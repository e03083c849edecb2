"""A client program: starts the agent that its words name and lets it work in this folder.

The first word says what it does once the session is open: ``prompt`` sends one, ``lines`` sends one for
every line of its standard input, ``wait`` sends none, ``elsewhere`` opens the session in another folder,
``leave`` starts no agent, ``drop`` ends the agent and itself when the first check reads, ``fall`` exits at a
read from line 2.
"""

import asyncio
import logging
import os
import shlex
import sys
import tempfile

from acp import spawn_agent_process, text_block

from right_client import RightClient


class Falling(RightClient):
    async def read(self, params):
        if params.get("line") == 2:
            os._exit(9)
        return await super().read(params)


class Dropping(RightClient):
    async def read(self, params):
        if not params["path"].endswith("/alive.txt"):
            self.agent.kill()
            os._exit(0)
        return await super().read(params)


async def main(way, *words):
    logging.disable(logging.CRITICAL)
    if way == "leave":
        sys.exit(7)
    with tempfile.TemporaryDirectory() as folder:
        files = {"fall": Falling, "drop": Dropping}.get(way, RightClient)()
        cwd = folder if way == "elsewhere" else os.getcwd()
        async with spawn_agent_process(files, *words) as (agent, process):
            await agent.initialize(1, client_capabilities=files.capabilities())
            session = await agent.new_session(cwd=cwd, mcp_servers=[])
            files.agent = process
            if way == "wait":
                await process.wait()
            elif way == "lines":
                while line := await asyncio.to_thread(sys.stdin.readline):
                    await agent.prompt(prompt=[text_block(line)], session_id=session.session_id)
            else:
                await agent.prompt(prompt=[text_block("go")], session_id=session.session_id)


asyncio.run(main(sys.argv[1], *(shlex.split(" ".join(sys.argv[2:])))))
