"""The MCP server: one client over a pair of pipes, from its first message to its last."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from filepact.values import before_logging, json_writer
from filepact_mcp.calls import WORKERS, CallExecutor, ToolExecutor
from filepact_mcp.clients import ClientFolders, ClientQuestions
from filepact_mcp.protocol import (
    CancelCall,
    ClientMessage,
    ElicitationResponse,
    FoldersRequest,
    FoldersResponse,
    ServerProtocol,
    TaskRequest,
    ToolRequest,
)
from filepact_mcp.results import ServerInfo, ToolCache
from filepact_wire.framing import one_line
from filepact_wire.pipes import MessagePipes, standard_pipes, stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.operation import Actor, Session
    from filepact.tools.registry import Toolset
    from filepact_mcp.calls import ElicitationHandler, FrameHandler
    from filepact_mcp.clients import ClientHooks
    from filepact_wire.messages import Message
    from filepact_wire.pipes import Wait

__all__ = ["INSTRUCTIONS_LIMIT", "ClientConnection", "decode", "encode", "serve"]

INSTRUCTIONS_LIMIT = 1_000
"""Most characters of the instructions; hosts put them into every conversation."""

_as_json = json_writer(ascii_only=False)
_DECODER = json.JSONDecoder()
_LONG = 4_096  # characters from which on a text is quoted by itself
_MARK = "\0"  # stands for such a text
_MARKED = b'"\\u0000"'  # and this for it in JSON
_CONTROLS = bytes(set(range(32)) - {9, 10})
_PLAIN = 65_536
_FLAT = 100
"""What either decoder reads alike: lines that are shorter, and not nested as deep."""

_GRACE = 1.5  # seconds for calls in flight when the client closes its end


def serve(  # noqa: PLR0913 - what a server is made of, by name
    open_tools: Callable[[], Toolset],
    *,
    name: str,
    version: str,
    instructions: str,
    session_factory: Callable[[Actor], Session],
    narrow: Callable[[Sequence[str]], str | None] | None = None,
    patience: float = 20.0,
    page: int | None = None,
    pipes: tuple[int, int] | None = None,
    chat: ElicitationHandler | None = None,
    app: Callable[[], FrameHandler] | None = None,
    hooks: ClientHooks | None = None,
) -> None:
    """Serve one client until it closes its end or the process gets SIGTERM or SIGINT.

    Calls in flight are told that they are cancelled and waited for, so that the engine behind the
    toolbox can be closed when this returns.

    Args:
        open_tools: Makes the tools, once, when they are first listed or called: a client that
            connects is answered before.  They are called from several worker threads at once.
        name: The server's name as hosts show it.
        version: The program's version.
        instructions: What an agent should know before its first call.
        session_factory: Makes the session of an actor; called once for each in the connection.
        narrow: Told the folders of a client that has some, as absolute paths; may only narrow what
            was configured.  Answers a sentence for the log, or None.  None for a client that is not asked.
        patience: Seconds that a call waits for these.
        page: What one answer may take, in bytes as UTF-8; None for what is known of the client.
        pipes: Descriptors to read from and write to; standard input and output if None.
        chat: Puts what waits to the person in their chat; None where that is not wanted.
        app: Makes the review as a frame in their chat, for clients that show such; None for none.
        hooks: What is known of the client's, if it may have some.

    Raises:
        ValueError: The instructions are too long.
    """
    if len(instructions) > INSTRUCTIONS_LIMIT:
        raise ValueError(f"instructions of {len(instructions)} characters are too long")
    before_logging(_say_on_stderr)

    def opened() -> Toolset:
        toolbox = open_tools()
        if toolbox.tools:  # else there is nobody who could have calls, or records of them
            tools.write_records = wire.before = toolbox.gather_records()
        return toolbox

    tools = ToolCache(opened)
    facts = ServerInfo(
        name=name,
        version=version,
        instructions=instructions,
        tools=tools.described,
        leaving=tools.leaving,
        app=None if app is None else lambda: app().document(),
    )
    over: SimpleQueue[bool] = SimpleQueue()  # which a signal's handler may use at any moment
    with ExitStack() as stack:
        source, sink = pipes or stack.enter_context(standard_pipes())
        stack.enter_context(stopped_by_signals(lambda: over.put(True)))
        wire = MessagePipes(source, sink, decode, encode, workers=WORKERS)
        stack.callback(wire.close)
        connection = ClientConnection(
            tools,
            facts,
            wire.send,
            wire.run,
            session_factory=session_factory,
            narrow=narrow,
            patience=patience,
            page=page,
            chat=chat,
            app=app,
            hooks=hooks,
        )

        def ended() -> None:
            connection.settle(_GRACE)
            over.put(True)

        def receive(message: Message) -> None:
            wire.receive = connection.receive
            wire.receive(message)
            over.put(False)

        wire.takes_batches = lambda: connection.takes_batches
        wire.start(receive, ended=ended, lost=lambda: over.put(True))
        if not over.get():
            _load(tools)
            over.get()
        connection.finish()


def _say_on_stderr() -> None:
    import logging  # noqa: PLC0415 - mostly there is nothing to say

    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="filepact: %(levelname)s: %(message)s"
    )


def _load(tools: ToolCache) -> None:
    """Load the modules of the first call, while the client reads its first answer."""
    with suppress(Exception):
        # What is wrong is said to whoever calls a tool.
        tools.toolbox()


def decode(line: bytes) -> Any:
    """JSON of a client.  The strict decoder takes its time to load, and is not loaded for plain lines."""
    plain = (
        len(line) < _PLAIN and b"\\u" not in line and line.count(b"{") + line.count(b"[") < _FLAT
    )
    with suppress(UnicodeDecodeError):
        if plain and "pydantic_core" not in sys.modules:
            text = line.decode()
            found, end = _DECODER.raw_decode(text)
            return found if end == len(text) else json.loads(text)  # which says what is wrong
    from pydantic_core import from_json  # noqa: PLC0415 - as said

    try:
        return from_json(line, cache_strings="keys")
    except ValueError as error:
        # Half a surrogate pair, and a byte that is no UTF-8, are judged where the argument's name is known.
        try:
            read = json.loads(line.decode("utf-8", "surrogateescape"))
            from_json(json.dumps(read, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise error from None
        return read


def encode(message: Message) -> bytes:
    """JSON for a client, by the fast encoder once that is loaded."""
    return one_line(_encoded(message))


def _encoded(message: Message) -> bytes:
    if (fast := sys.modules.get("pydantic_core")) is not None:
        # Half a surrogate pair is for the other one; so is everything while this is being loaded.
        with suppress(ValueError, AttributeError):
            encoded: bytes = fast.to_json(message)
            return encoded
    result: Any = message.get("result")
    content: Any = result.get("content") if isinstance(result, dict) else None
    text = content[0].get("text", "") if content else ""
    if len(text) < _LONG or (quoted := _quoted(text)) is None:
        return _plain(message)
    # The text of an answer is most of it, and quoted by itself.
    marked = [{**content[0], "text": _MARK}, *content[1:]]
    pieces = _plain({**message, "result": {**result, "content": marked}}).split(_MARKED)
    return quoted.join(pieces) if len(pieces) == 2 else _plain(message)


def _plain(message: Message) -> bytes:
    # A lone surrogate becomes \udcxx, which is how JSON spells it.
    return _as_json(message).encode("utf-8", "backslashreplace")


def _quoted(text: str) -> bytes | None:
    """A long text as JSON, several times as fast as the standard library does it; None for what is rare in texts."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    if any(map(data.__contains__, _CONTROLS)):
        return None
    data = data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'"%b"' % data.replace(b"\n", b"\\n").replace(b"\t", b"\\t")


class ClientConnection:
    """Everything that is kept for one client; the arguments are those of `serve`.

    Args:
        send: Takes what the client is to get; must not block.
        run: As of `CallExecutor`.
    """

    def __init__(  # noqa: PLR0913 - as of `serve`
        self,
        tools: ToolCache,
        facts: ServerInfo,
        send: Callable[[Message], None],
        run: Callable[[Callable[[], None], Wait], None],
        *,
        session_factory: Callable[[Actor], Session],
        narrow: Callable[[Sequence[str]], str | None] | None,
        patience: float,
        page: int | None = None,
        chat: ElicitationHandler | None = None,
        app: Callable[[], FrameHandler] | None = None,
        hooks: ClientHooks | None = None,
    ) -> None:
        self._send = send
        self._questions = ClientQuestions(send)
        self._conversation = ServerProtocol(facts, folders=narrow is not None)
        self._folders = ClientFolders(narrow or (lambda _folders: None), patience=patience)
        service = ToolExecutor(
            tools,
            session_factory=session_factory,
            folders=self._folders,
            page=page,
            chat=chat,
            app=app,
            hooks=hooks,
        )
        self._executor = CallExecutor(service, facts, send, run, self._questions)

    @property
    def takes_batches(self) -> bool:
        """Whether the client may send several messages as one."""
        return self._conversation.takes_batches

    def receive(self, message: Message) -> None:
        """Take the next message."""
        for step in list(self._conversation.take(message)):
            match step:
                case ClientMessage(answer):
                    self._send(answer)
                case ToolRequest():
                    self._executor.begin(step)
                case TaskRequest():
                    self._send(self._executor.tasks.answer(step, self._executor.go_on))
                case CancelCall(wanted):
                    self._executor.cancel(wanted)
                case FoldersRequest(question):
                    self._folders.hold_calls()
                    self._send(question)
                case FoldersResponse(answer):
                    self._conversation.to_ask = not self._folders.receive(answer)
                case ElicitationResponse(answer):
                    self._questions.receive(answer)

    def settle(self, patience: float) -> None:
        """Wait up to so many seconds for calls in flight: some clients pipe a script."""
        self._folders.give_up()
        self._executor.settle(patience)

    def finish(self) -> None:
        """Cancel what is in flight; nothing runs any more when this returns."""
        self._executor.finish()
