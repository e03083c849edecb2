"""A small agent for any editor that speaks the Agent Client Protocol: it replaces a word in a file.

Tell it "replace OLD with NEW in FILE".  It starts from what the editor shows, saved or not, and
`filepact log` and `filepact undo` know of what it did.
"""

# ruff: noqa: INP001, ARG002 - a program and no package; the protocol names the parameters
import asyncio
import re
import sys
import uuid
from typing import Any

from acp import InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp.helpers import update_agent_message_text

from filepact.acp import AgentFiles

ORDER = re.compile(r"replace (?P<old>.+) with (?P<new>.+) in (?P<file>\S+)")


class Replacer:
    """An agent without a model."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._running: dict[str, asyncio.Task] = {}

    def on_connect(self, connection: Any) -> None:
        self._client = connection
        self.files = AgentFiles(connection, state_dir=self._state_dir, agent="replacer")

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, **_: Any
    ) -> NewSessionResponse:
        session_id = uuid.uuid4().hex
        await self.files.session(session_id, cwd, additional_directories)
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        words = " ".join(block.text for block in prompt if block.type == "text")
        task = self._running[session_id] = asyncio.ensure_future(self._do(session_id, words))
        try:
            answer = await task
        except asyncio.CancelledError:
            # The files are as they were: a call that is cancelled takes back what it had begun.
            return PromptResponse(stop_reason="cancelled")
        await self._client.session_update(session_id, update_agent_message_text(answer))
        return PromptResponse(stop_reason="end_turn")

    async def _do(self, session_id: str, words: str) -> str:
        order = ORDER.search(words)
        if order is None:
            return "Say: replace OLD with NEW in FILE."
        edit = {
            "path": order["file"],
            "old_string": order["old"],
            "new_string": order["new"],
            "replace_all": True,
        }
        return (await self.files.get(session_id).call("edit_file", edit)).text

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._running:
            self._running[session_id].cancel()


async def main() -> None:
    """Serve one editor on the standard streams."""
    agent = Replacer(sys.argv[1])
    try:
        await run_agent(agent)
    finally:
        await agent.files.close()


asyncio.run(main())
