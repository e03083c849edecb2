# ruff: noqa: ARG002, ASYNC240 - the protocol names the parameters; a client may block in a test
"""An agent and a client of the official package on two operating system pipes, in one loop."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

from acp import (
    InitializeResponse,
    NewSessionResponse,
    RequestError,
)
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.schema import (
    ClientCapabilities,
    CloseSessionResponse,
    FileSystemCapabilities,
    Implementation,
    ReadTextFileResponse,
    WriteTextFileResponse,
)

from filepact.acp import AgentFiles

UNSET = object()


class Editor:
    """A client with texts that it has not saved; what it is asked is kept in ``heard``.

    Attributes:
        unsaved: Texts by path, in front of the disk's.
        saves: Whether a text that it is given goes to the disk too.
        refuses: Errors by path, for writes.
        unreadable: Errors by path, for reads.
        answer_read: Answers every read as it is, whatever it is.
        instead: Answers every write.
        says: Answers every question, or is called for the answer to each.
        newline: How it ends lines on the disk, None for as they come.
    """

    def __init__(self):
        self.unsaved = {}
        self.heard = []
        self.saves = True
        self.refuses = {}
        self.unreadable = {}
        self.newline = None
        self.formats = lambda text: text
        self.answer_read = self.instead = self.says = UNSET
        self.held = None
        self.began = asyncio.Event()

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        self.heard.append(("read", path, line, limit))
        if self.answer_read is not UNSET:
            return self.answer_read
        if path in self.unreadable:
            raise self.unreadable[path]
        text = self.unsaved.get(path)
        if text is None:
            try:
                text = Path(path).read_bytes().decode()
            except FileNotFoundError:
                raise RequestError.resource_not_found(path) from None
        lines = text.split("\n")
        lines = [one + "\n" for one in lines[:-1]] + lines[-1:]
        first = max((line or 1) - 1, 0)
        last = len(lines) if limit is None else first + limit
        return ReadTextFileResponse(content="".join(lines[first:last]))

    async def write_text_file(self, session_id, path, content, **_):
        self.heard.append(("write", path, content))
        self.began.set()
        if self.instead is not UNSET:
            return self.instead(path, content)
        if path in self.refuses:
            raise self.refuses[path]
        if self.held is not None:
            await self.held.wait()
        if path in self.refuses:
            raise self.refuses[path]
        content = self.formats(content)
        if path in self.unsaved:
            self.unsaved[path] = content
        if self.saves:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            if self.newline:
                content = content.replace("\r\n", "\n").replace("\n", self.newline)
            Path(path).write_bytes(content.encode())
        return WriteTextFileResponse()

    async def session_update(self, session_id, update, **_):
        self.heard.append(("told", update))

    async def request_permission(self, session_id, tool_call, options, **_):
        self.heard.append(("asked", tool_call, options))
        if self.says is UNSET:
            raise RequestError.method_not_found("session/request_permission")
        if self.held is not None:
            self.began.set()
            await self.held.wait()
        return self.says() if callable(self.says) else self.says

    def writes(self):
        return [one[1:] for one in self.heard if one[0] == "write"]

    def reads(self):
        return [one[1:] for one in self.heard if one[0] == "read"]


class Agent:
    """An agent that does nothing but hold its files."""

    def __init__(self, state, **options):
        self.state = state
        self.options = options

    def on_connect(self, connection):
        self.files = AgentFiles(connection, state_dir=self.state, agent="tester", **self.options)

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd, additional_directories=None, **_):
        await self.files.session("s1", cwd, additional_directories)
        return NewSessionResponse(session_id="s1")

    async def close_session(self, session_id, **_):
        return CloseSessionResponse()


async def pipe():
    """The two ends of an operating system pipe as streams: reader, writer."""
    loop = asyncio.get_running_loop()
    out, into = os.pipe()
    reader = asyncio.StreamReader(limit=50 * 1024 * 1024)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(into, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


@asynccontextmanager
async def talking(
    tmp_path,
    *,
    read=True,
    write=True,
    folders=(),
    name="editor",
    client_files=None,
    sees=None,
    **options,
):
    """An editor and the files of a session with the folder ``work``: ``(editor, files)``.

    ``sees`` is given every message with the side that sent it.
    """
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    editor, agent = Editor(), Agent(str(tmp_path / "state"), **options)
    to_agent, from_client = await pipe()
    to_client, from_agent = await pipe()
    side = AgentSideConnection(agent, from_agent, to_agent, use_unstable_protocol=True)
    if sees is not None:
        sides = {"outgoing": "agent", "incoming": "client"}
        side._conn.add_observer(lambda event: sees(event.message, sides[event.direction.value]))
    client = ClientSideConnection(
        client_files or editor, from_client, to_client, use_unstable_protocol=True
    )
    try:
        fs = FileSystemCapabilities(read_text_file=read, write_text_file=write)
        await client.initialize(
            1,
            client_capabilities=ClientCapabilities(fs=fs),
            client_info=Implementation(name=name, version="1"),
        )
        await client.new_session(
            cwd=str(work), additional_directories=[*map(str, folders)], mcp_servers=[]
        )
        editor.client, editor.agent = client, agent
        yield editor, agent.files.get("s1")
    finally:
        await agent.files.close()
        await client.close()
        await side.close()
        for writer in (from_client, from_agent):
            writer.close()
