"""The protocol that the proxy speaks with both sides: a line goes in, steps come out, in the order in which they are to be done.

No I/O happens here.  A line is passed on, changed, or answered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.values import dataclass, field
from filepact_acp.agents import ENDED, ConnectionInfo
from filepact_acp.proxy.line import GUARDED, encode, without_overrides
from filepact_wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    error_response,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.workspace.workspace import Mode
    from filepact_acp.proxy.line import MessageLine
    from filepact_wire.messages import Message

__all__ = [
    "READ",
    "SERVER",
    "WRITE",
    "AgentMessage",
    "AgentRequest",
    "AgentResponse",
    "CancelRequest",
    "DocumentNotification",
    "EditorMessage",
    "EditorResponse",
    "ProxyProtocol",
    "SessionCancel",
    "SessionEnd",
    "SessionOpen",
    "SessionReport",
    "SessionResponse",
    "SessionSettings",
    "SessionTurn",
    "Step",
    "ToolCallEnd",
    "ToolCallMessage",
]


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """Send this line to the agent."""

    data: bytes


@dataclass(frozen=True, slots=True)
class EditorMessage:
    """Send this line to the editor."""

    data: bytes


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """The agent wants something that is answered here.

    Attributes:
        line: The request, to be passed on when it is for the person to answer.
    """

    id: Any
    method: str
    params: Message
    line: MessageLine


@dataclass(frozen=True, slots=True)
class SessionOpen:
    """The editor opens a session; its folders count from now on, under a token.

    Attributes:
        session: Its id, where the editor names it.
        alone: Whether the editor names no server of tools that is called as ours.
    """

    token: str
    cwd: str
    additional: tuple[str, ...]
    session: str | None
    alone: bool = True


@dataclass(frozen=True, slots=True)
class SessionResponse:
    """The agent has given a session that was opened its id."""

    token: str
    session: str


@dataclass(frozen=True, slots=True)
class SessionCancel:
    """The agent refused to open a session."""

    token: str


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """A session is over."""

    session: str


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The person wants a session's changes to be done, or to wait, from now on."""

    session: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A turn is about to end: what is to be told of it, is told now."""

    session: str


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn of the agent begins, with the person's words, or ends."""

    session: str
    begins: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The agent has ended something that it did by itself."""

    session: str


@dataclass(frozen=True, slots=True)
class ToolCallMessage:
    """The agent tells of a call of its own tools."""

    session: str
    call: Message


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The step that gives up the work for a session, or for one request of the agent, which told that in a line."""

    session: str | None = None
    request: Any = None
    line: bytes = b""


@dataclass(frozen=True, slots=True)
class EditorResponse:
    """The editor answers a request of ours."""

    id: str
    message: Message


@dataclass(frozen=True, slots=True)
class AgentResponse:
    """The editor has answered the agent, perhaps a question for permission."""

    id: Any
    message: Message


@dataclass(frozen=True, slots=True)
class DocumentNotification:
    """The editor says what happens to a file that it shows."""

    method: str
    params: Message


Step = (
    AgentMessage
    | EditorMessage
    | AgentRequest
    | SessionOpen
    | SessionResponse
    | SessionCancel
    | SessionEnd
    | SessionSettings
    | SessionReport
    | SessionTurn
    | ToolCallEnd
    | ToolCallMessage
    | CancelRequest
    | EditorResponse
    | AgentResponse
    | DocumentNotification
)


SERVER: Final = "filepact"
"""The name of our server of tools."""

OPTION: Final = "filepact.mode"
"""The id of our option among a session's."""

_SET_OPTION: Final = "session/set_config_option"
_MODES: Final[dict[str, Mode]] = {"auto": "auto", "preview": "preview"}

OURS: Final = "filepact-"
"""How the ids of our own requests to the editor begin."""

_MADE: Final = frozenset({"session/new", "session/fork"})
_FOUND: Final = frozenset({"session/load", "session/resume"})
_ENDED: Final = frozenset({"session/close", "session/delete"})
READ: Final = "fs/read_text_file"
WRITE: Final = "fs/write_text_file"
_DOCUMENTS: Final = frozenset(
    {"document/didOpen", "document/didChange", "document/didClose", "document/didSave"}
)

_NO_FOLDERS: Final = (
    "A session's folders, cwd and additionalDirectories, have to be absolute paths."
)

_CHUNK: Final = "tool_call_content_chunk"
_CALLS: Final = ("tool_call", "tool_call_update", _CHUNK)


@dataclass(slots=True)
class ProxyProtocol:
    """One connection between an editor and an agent.

    Args:
        server: Makes the entry of the server of file tools for a session's token; None for none.
        check: Why a session in these folders is refused; empty when it is not.
        mode: Whether a session's allowed changes are done or wait; None for no such session.
        files: Whether the editor is asked for files, where it offers any.
    """

    server: Callable[[str], Message] | None = None
    check: Callable[[tuple[str, ...]], str] = lambda _folders: ""
    mode: Callable[[str], Mode | None] = lambda _session: None
    files: bool = True
    facts: ConnectionInfo = field(default_factory=ConnectionInfo)
    _asked: dict[Any, tuple[str, Message, str]] = field(default_factory=dict)
    _count: int = 0
    _options: dict[str, list[Any]] = field(default_factory=dict)

    # -- from the editor ------------------------------------------------------------------

    def from_editor(self, line: MessageLine) -> Iterator[Step]:
        """Take a line of the editor."""
        message = line.message
        if message is None:
            yield AgentMessage(line.raw)
            return
        method, params = message.get("method"), _params(message)
        if not isinstance(method, str):
            yield from self._answer_of_editor(line, message)
        elif "id" in message:
            yield from self._request_of_editor(line, message, method, params)
        else:
            yield from self._notification_of_editor(method, params)
            yield AgentMessage(line.raw)

    def _answer_of_editor(self, line: MessageLine, message: Message) -> Iterator[Step]:
        wanted = message.get("id")
        if isinstance(wanted, str) and wanted.startswith(OURS):
            yield EditorResponse(wanted, message)
        else:
            yield AgentMessage(line.raw)
            result = message.get("result")
            if "error" in message or (isinstance(result, dict) and "outcome" in result):
                yield AgentResponse(wanted, message)

    def _request_of_editor(
        self, line: MessageLine, message: Message, method: str, params: Message
    ) -> Iterator[Step]:
        data, token = line.raw, ""
        if method == "initialize":
            data = self._introduce(message, params)
        elif method in _MADE | _FOUND:
            folders = _folders(params)
            # One whose folders nobody knows could not be guarded.
            refused = _NO_FOLDERS if folders is None else self.check(folders)
            if folders is None or refused:
                yield EditorMessage(_error(message["id"], INVALID_PARAMS, refused))
                return
            self._count += 1
            token = f"t{self._count}"
            named = params.get("sessionId") if method in _FOUND else None
            yield SessionOpen(token, folders[0], folders[1:], named, self._is_alone(params))
            data = self._with_server(message, params, token)
        elif method == "session/prompt":
            yield from _turn(params, begins=True)
        elif self._is_our_option(method, params):
            yield from self._choose(message["id"], params)
            return
        self._asked[_key(message["id"])] = (method, params, token)
        yield AgentMessage(data)

    def _notification_of_editor(self, method: str, params: Message) -> Iterator[Step]:
        session = params.get("sessionId")
        if method == "$/cancel_request":
            # With a prompt all is cancelled that the agent asks for because of it.
            asked, about, _ = self._asked.get(_key(params.get("requestId")), ("", {}, ""))
            session = about.get("sessionId") if asked == "session/prompt" else None
            method = "session/cancel"
        if method == "session/cancel" and isinstance(session, str):
            yield CancelRequest(session=session)
        elif method in _DOCUMENTS:
            yield DocumentNotification(method, params)

    def _introduce(self, message: Message, params: Message) -> bytes:
        """The editor's introduction, with files announced that are served here."""
        able = params.get("clientCapabilities")
        able = able if isinstance(able, dict) else {}
        fs = able.get("fs")
        fs = fs if isinstance(fs, dict) else {}
        self.facts.reads = self.files and fs.get("readTextFile") is True
        self.facts.writes = self.files and fs.get("writeTextFile") is True
        if params.get("protocolVersion") != 1:
            # Later versions know no such methods, and may refuse who announces them.
            return encode(message)
        announced = {**able, "fs": {**fs, "readTextFile": True, "writeTextFile": True}}
        return encode({**message, "params": {**params, "clientCapabilities": announced}})

    def _is_alone(self, params: Message) -> bool:
        """Whether a session's tools that are called as ours can only be ours."""
        return self.server is not None and SERVER not in _server_names(params)

    def _with_server(self, message: Message, params: Message, token: str) -> bytes:
        if self.server is None:
            return encode(message)
        entry, taken = self.server(token), _server_names(params)
        # Agents that know servers by their names would drop one of two.
        names = (SERVER, *(f"{SERVER}-{number}" for number in range(2, len(taken) + 3)))
        entry["name"] = next(name for name in names if name not in taken)
        if self.facts.protocol != 1:
            entry = {"type": "stdio", **entry}
        others = params.get("mcpServers")
        servers = [*others, entry] if isinstance(others, list) else [entry]
        return encode({**message, "params": {**params, "mcpServers": servers}})

    # -- from the agent -------------------------------------------------------------------

    def from_agent(self, line: MessageLine) -> Iterator[Step]:
        """Take a line of the agent."""
        message = line.message
        if message is None:
            # Several messages in one would be a way around what is looked at here, and a stray
            # word would end the connection of many an editor.
            begins = line.raw.lstrip()[:1]
            if begins == b"[":
                yield AgentMessage(_error(None, INVALID_REQUEST, "One message a line; no batches."))
            elif begins == b"{":
                # Who sent it may wait for an answer.
                yield AgentMessage(_error(None, PARSE_ERROR, "No JSON, or nested too deeply."))
            return
        method, params = message.get("method"), _params(message)
        if not isinstance(method, str):
            yield from self._answer_of_agent(line, message)
        elif "id" in message:
            if method in GUARDED:
                yield AgentRequest(message["id"], method, params, line)
            elif _is_ours(message["id"]):
                yield AgentMessage(
                    _error(message["id"], INVALID_REQUEST, f"Ids begin with {OURS} only here.")
                )
            else:
                yield EditorMessage(without_overrides(line).encoded)
        elif method in GUARDED:
            # As a notification nobody could be told that it was refused.
            return
        else:
            yield from self._notification_of_agent(line, method, params)

    def _notification_of_agent(
        self, line: MessageLine, method: str, params: Message
    ) -> Iterator[Step]:
        if method == "$/cancel_request":
            yield CancelRequest(None, params.get("requestId"), without_overrides(line).encoded)
            return
        update, session = params.get("update"), params.get("sessionId")
        if isinstance(update, dict) and update.get("sessionUpdate") == "config_option_update":
            # Whoever hears of options takes them for all that there are.
            merged = self._with_option(session, update)
            clean = without_overrides(line).message
            if merged is not update and clean is not None:
                told = {**_params(clean), "update": merged}
                yield EditorMessage(encode({**clean, "params": told}))
                return
        known = update if method == "session/update" and isinstance(update, dict) else {}
        what = (known.get("sessionUpdate"), known.get("state") or known.get("status"))
        if what == ("state_update", "idle") and isinstance(session, str):
            yield SessionReport(session)
        yield EditorMessage(without_overrides(line).encoded)
        if what == ("state_update", "idle"):
            yield from _turn(params, begins=False)
        elif what[0] in _CALLS and isinstance(session, str):
            # A chunk holds one more piece of the content, in the second version of the protocol.
            more = {"content": [known.get("content")]} if what[0] == _CHUNK else {}
            yield ToolCallMessage(session, {**known, **more})
            if what[1] in ENDED:
                yield ToolCallEnd(session)

    def _answer_of_agent(self, line: MessageLine, message: Message) -> Iterator[Step]:
        method, params, token = self._asked.pop(_key(message.get("id")), ("", {}, ""))
        result = message.get("result")
        failed = "error" in message
        if method == "initialize" and isinstance(result, dict):
            self._learn(result)
        elif token:
            session = _opened(method, params, result)
            if failed or session is None:
                yield SessionCancel(token)
            else:
                yield SessionResponse(token, session)
        data = line.encoded
        if not failed and isinstance(result, dict):
            changed = result
            if token:
                changed = self._offer(_opened(method, params, result), result)
            elif method == _SET_OPTION:
                changed = self._with_option(params.get("sessionId"), result)
            if changed is not result:
                data = encode({**message, "result": changed})
        ends = method == "session/prompt" and self.facts.protocol == 1 and not failed
        if ends and isinstance(params.get("sessionId"), str):
            yield SessionReport(params["sessionId"])
        yield EditorMessage(data)
        if method == "session/prompt" and (self.facts.protocol == 1 or failed):
            yield from _turn(params, begins=False)
        elif method in _ENDED and not failed and isinstance(params.get("sessionId"), str):
            self._options.pop(params["sessionId"], None)
            yield SessionEnd(params["sessionId"])

    # -- an option of ours --------------------------------------------------------------------

    def _is_our_option(self, method: str, params: Message) -> bool:
        session = params.get("sessionId")
        return (
            method == _SET_OPTION
            and params.get("configId") == OPTION
            and isinstance(session, str)
            and session in self._options
        )

    def _offer(self, session: str | None, result: Message) -> Message:
        """A session's answer with an option of ours beside the agent's.

        An editor that is given options shows no modes any more, nor models: so an agent that has
        these and no options is left alone.
        """
        options = result.get("configOptions")
        plain = options is None and not result.get("modes") and not result.get("models")
        if session is None or self.facts.protocol != 1 or not (plain or isinstance(options, list)):
            return result
        if any(isinstance(one, dict) and one.get("id") == OPTION for one in options or ()):
            return result
        self._options[session] = []
        return self._with_option(session, result)

    def _with_option(self, session: Any, holder: Message) -> Message:
        """Add our option to a message that lists all options of a session, where it has ours."""
        known = isinstance(session, str) and session in self._options
        mode = self.mode(session) if known else None
        if mode is None:
            return holder
        theirs = holder.get("configOptions")
        self._options[session] = theirs = theirs if isinstance(theirs, list) else []
        return {**holder, "configOptions": [*theirs, _option(mode)]}

    def _choose(self, wanted: Any, params: Message) -> Iterator[Step]:
        """The editor sets our option: no agent hears of it."""
        session = params["sessionId"]
        mode = _MODES.get(str(params.get("value")))
        if mode is None:
            yield EditorMessage(_error(wanted, INVALID_PARAMS, "The value is auto or preview."))
            return
        yield SessionSettings(session, mode)
        options = self._with_option(session, {"configOptions": self._options[session]})
        yield EditorMessage(encode(response(wanted, options)))

    def _learn(self, result: Message) -> None:
        version = result.get("protocolVersion")
        self.facts.protocol = version if type(version) is int else 1
        info = result.get("agentInfo") or result.get("info")
        if isinstance(info, dict):
            self.facts.agent = str(info.get("name") or self.facts.agent)
            self.facts.version = str(info.get("version") or "")


def _option(mode: Mode) -> Message:
    return {
        "id": OPTION,
        "name": "filepact",
        "description": "Whether changes that the rules allow are done, or wait until you say yes",
        "type": "select",
        "currentValue": mode,
        "options": [
            {"value": "auto", "name": "Do what the rules allow"},
            {"value": "preview", "name": "Ask about every change"},
        ],
    }


def _opened(method: str, params: Message, result: Any) -> str | None:
    """The id of a session that was made or found."""
    opened = result if method in _MADE else params
    session = opened.get("sessionId") if isinstance(opened, dict) else None
    return session if isinstance(session, str) else None


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _folders(params: Message) -> tuple[str, ...] | None:
    """A session's folders; None when they are not given as they have to be."""
    cwd, more = params.get("cwd"), params.get("additionalDirectories")
    more = more if isinstance(more, list) else []
    folders = tuple(one for one in (cwd, *more) if isinstance(one, str) and one.startswith("/"))
    return folders if len(folders) == 1 + len(more) else None


def _server_names(params: Message) -> frozenset[str]:
    """Return the names of the editor's own servers in a session, in lower case."""
    servers = params.get("mcpServers")
    named = [one for one in servers if isinstance(one, dict)] if isinstance(servers, list) else []
    return frozenset(str(one.get("name")).lower() for one in named)


def _turn(params: Message, *, begins: bool) -> Iterator[SessionTurn]:
    session, prompt = params.get("sessionId"), params.get("prompt")
    blocks = [one for one in prompt if isinstance(one, dict)] if isinstance(prompt, list) else []
    words = [text for one in blocks if isinstance(text := one.get("text"), str)]
    if isinstance(session, str):
        yield SessionTurn(session, begins, " ".join(words))


def _error(wanted: Any, code: int, reason: str) -> bytes:
    return encode(error_response(wanted, code, reason))


def _is_ours(wanted: Any) -> bool:
    return isinstance(wanted, str) and wanted.startswith(OURS)


def _key(wanted: Any) -> Any:
    """An id as a key: 1 and "1" are two, and what cannot be one is none."""
    return (type(wanted).__name__, wanted) if isinstance(wanted, str | int | float) else None
