"""A client program: starts the agent that its words name and lets it work in this folder.

The first word says how it goes on once the session is open: ``prompt`` sends one, ``lines`` sends one for
every line of its standard input, ``wait`` sends none, ``elsewhere`` opens the session in another folder,
``leave`` starts no agent, ``drop`` leaves the agent when it is asked for something, ``fall`` falls at a
read from line 2.
"""

import asyncio
import logging
import os
import shlex
import sys
import tempfile

from acp import spawn_agent_process, text_block

from filepact.faces.acp.client import ClientFileSystem


class Falling(ClientFileSystem):
    async def read_text_file(self, session_id, path, line=None, limit=None, **more):
        if line == 2:
            os._exit(9)
        return await super().read_text_file(session_id, path, line, limit, **more)


async def main(way, *words):
    logging.disable(logging.CRITICAL)
    if way == "leave":
        sys.exit(7)
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        files = (Falling if way == "fall" else ClientFileSystem)(state_dir=state)
        cwd = folder if way == "elsewhere" else os.getcwd()
        async with spawn_agent_process(files, *words) as (agent, process):
            await agent.initialize(1, client_capabilities=files.capabilities())
            session = await agent.new_session(cwd=cwd, mcp_servers=[])
            if way == "drop":
                process.kill()
                os._exit(0)
            elif way == "wait":
                await process.wait()
            elif way == "lines":
                while line := await asyncio.to_thread(sys.stdin.readline):
                    await agent.prompt(prompt=[text_block(line)], session_id=session.session_id)
            else:
                await agent.prompt(prompt=[text_block("go")], session_id=session.session_id)
        files.close()


asyncio.run(main(sys.argv[1], *(shlex.split(" ".join(sys.argv[2:])))))
