"""Programs that call us as MCP clients: their folders, how large an answer may be, and how conversations are named.

A client cuts what is over its limit, most of them out of the middle, or writes it to a file of
which the model sees the beginning.  So an answer stays below the limit, and is paged.

What a session knows of files goes on with its conversation when the server is started anew, and
is told apart between agents that use one connection.  No name of a conversation is proof of
anything: it decides only whose text a change is merged from.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filepact.domain.operation import Actor
from filepact.errors import FilepactError, FoldersUnknownError
from filepact.text.page import PAGE
from filepact.values import late_logger, late_regex
from filepact_wire.messages import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from filepact.domain.operation import Session
    from filepact_wire.messages import Message

__all__ = [
    "NOTES",
    "PAGES",
    "QUESTION_ID",
    "ClientFolders",
    "ClientHooks",
    "ClientQuestions",
    "actor_named",
    "agent_with_hooks",
    "conversation_in",
    "conversation_of_server",
    "page_for",
    "turn_and_call",
]

_log = late_logger(__name__)

QUESTION_ID: Final = "filepact:question:"
"""How the ids of questions for a person begin."""

PAGES: Final[dict[str, int]] = {
    # Cline's issue 13263: tools' results are cut after 8,000 characters; and its model is given
    # the whole result as JSON, in which every line end takes two.
    "cline": 7_000,
    # VS Code's pull request 329276: what is over 8 KiB is put into a file
    # (`chat.agent.largeToolResultsToDisk.thresholdBytes`), of which the model sees the beginning.
    "visual studio code": 7_500,
    # Codex's issues 5913, 6544 and 7906: 10 KiB, or 10,000 bytes by the model
    # (`TruncationPolicy::Bytes(10_000)`), and the middle is cut out; 0.169 let 12,000 bytes pass.
    "codex": 9_000,
    # The same pull request of VS Code: Copilot CLI puts what is over 20 KB into a file; in its own
    # issue 1732 the limit was 30 KB, and the middle of what is over 10 KB was lost for a while.
    "copilot": 19_000,
    "github-copilot": 19_000,
    # Qwen Code's `packages/core/src/config/config.ts`, DEFAULT_TRUNCATE_TOOL_OUTPUT_THRESHOLD and
    # _LINES: 25,000 characters, and 1,000 lines.
    "qwen": 19_000,
    # Gemini CLI 0.61 as seen: of more than 40,000 characters, in which it counts a frame of its
    # own, the first 8,000 and the last 32,000.
    "gemini": 32_000,
    # No entry, since the usual page is below their limits: Claude Code (50,000 characters, and
    # MAX_MCP_OUTPUT_TOKENS is 25,000), OpenCode and pi (50 KiB and 2,000 lines).
}
"""What an answer may take, by how a client's name begins; in bytes as UTF-8."""


def page_for(client: str, wish: int | None = None) -> int:
    """The largest answer for a client, in bytes.

    Args:
        client: What it calls itself.
        wish: What the person has set, which goes before what is known of clients.
    """
    if wish is not None:
        return wish
    name = client.lower()
    return next((page for begin, page in PAGES.items() if name.startswith(begin)), PAGE)


_WITH_HOOKS: Final = {
    **{one: one for one in ("codex", "gemini", "opencode", "copilot")},
    "claude-code": "claude",
    "github-copilot-cli": "copilot",
}
"""Programs whose hooks are called before each call of ours, too, by how a client's name begins.

Not Cursor: which of its processes calls hooks has not been seen.
"""


class ClientHooks(NamedTuple):
    """Callbacks for a client whose program may have hooks of ours.

    Attributes:
        beside: Told the client's name at its first call; has what is said beside the answer, if anything.
        turn_of: Told the host's name for a call, or nothing; has that for the turn, if a hook has told of it.
        changed: Told the session, with its turn, of each call that may have changed files.
    """

    beside: Callable[[str], str]
    turn_of: Callable[[str], str]
    changed: Callable[[Session], None]


def agent_with_hooks(client: str) -> str:
    """Return the agent's name, as of `filepact setup`, of a client that would have called a hook by now; empty for others."""
    name = client.lower()
    return next((agent for begin, agent in _WITH_HOOKS.items() if name.startswith(begin)), "")


_KEYS: Final = {
    # One for each agent, sub-agents too.
    "threadId": "codex",
    "ai.opencode/sessionID": "",
    "vscode.conversationId": "",
    "antigravity.google/conversation_id": "",
}
"""Notes that hosts put beside a call, by the beginning of the client's name where they are short."""

_VARIABLES: Final = {"claude-code": "CLAUDE_CODE_SESSION_ID"}
"""Variables that hosts set for the servers that they start, by the client's name.

Programs hand on what they inherit, so a variable counts for its own host's client alone.
"""

_LONGEST: Final = 200
_LONGEST_NOTE: Final = 4_000
_NAME: Final = late_regex(r"[\w.:-]{1,200}", re.ASCII)


def conversation_in(client: str, meta: Mapping[str, Any] | None) -> str:
    """The host's name for a call's conversation; empty where the call has none.

    Args:
        client: The client's name for itself.
        meta: The call's notes.
    """
    for key, whose in _KEYS.items():
        value = (meta or {}).get(key)
        if isinstance(value, str) and client.startswith(whose) and 0 < len(value) <= _LONGEST:
            return f"{key} {value}"
    return ""


_TURNS: Final = {
    # In an object of Codex's own; by the name of the value in it.
    "x-codex-turn-metadata": "turn_id",
    "vscode.requestId": "",
}
_CALLS: Final = ("claudecode/toolUseId",)

NOTES: Final = frozenset((*_KEYS, *_TURNS, *_CALLS))
"""The names of the notes that tell something here."""


def turn_and_call(meta: Mapping[str, Any] | None) -> tuple[str, str]:
    """The host's names for the turn, and for the agent's call of a tool; empty where it tells none.

    Args:
        meta: The call's notes.
    """
    if not meta:
        return "", ""
    told = [_inside(meta.get(key), name) for key, name in _TURNS.items()]
    return _name(told), _name(meta.get(key) for key in _CALLS)


def _inside(note: object, name: str) -> object:
    if not name:
        return note
    if isinstance(note, str):
        with suppress(ValueError):
            note = json.loads(note[:_LONGEST_NOTE])
    return note.get(name) if isinstance(note, dict) else None


def _name(told: Iterable[object]) -> str:
    """The first that can be a name; short, and to be typed as it is shown."""
    return next((one for one in told if isinstance(one, str) and _NAME.fullmatch(one)), "")


def conversation_of_server(client: str, variables: Mapping[str, str]) -> str:
    """The host's name for the conversation that it has started a server for; empty for none.

    Args:
        client: The client's name for itself.
        variables: Those that the server was started with.
    """
    name = _VARIABLES.get(client, "")
    value = variables.get(name, "")
    return f"{name} {value}" if 0 < len(value) <= _LONGEST else ""


_LOOK: Final = 0.2  # seconds between two looks whether a call that waits was cancelled

_NOT_SAID: Final = (
    "the client has not said which folders may be used",
    "Try again; if that goes on, tell the person that the client does not answer `roots/list`.",
)


class ClientFolders:
    """The folders that a client announces, and the calls that wait for them.

    Not to know them is not to have none: nothing is used meanwhile.

    Args:
        narrow: Told the folders; answers what a person should know of it, if anything.
        patience: Seconds that a call waits for them.

    Attributes:
        settled: Whether no call waits for them.
    """

    def __init__(
        self, narrow: Callable[[Sequence[str]], str | None], *, patience: float = 20.0
    ) -> None:
        self._narrow = narrow
        self._patience = patience
        self._answered = threading.Event()
        self._refusal = _NOT_SAID
        self.settled = True

    def hold_calls(self) -> None:
        """The client is being asked: let calls wait from now on."""
        self._answered.clear()
        self.settled = False

    def wait(self, cancelled: Callable[[], bool] = lambda: False) -> FilepactError | None:
        """Wait until the client has told; why a call is refused, where it does not, or what it told is no use."""
        until = time.monotonic() + self._patience
        while not self._answered.wait(_LOOK) and not cancelled() and time.monotonic() < until:
            pass
        said, hint = self._refusal
        return None if self.settled else FoldersUnknownError(said, hint=hint)

    def give_up(self) -> None:
        """The client has hung up, and will not tell."""
        self._answered.set()

    def receive(self, answer: Message) -> bool:
        """Use the client's answer to ``roots/list``; whether it is known now which folders may be used.

        A client that does not know the question has none; what else makes no sense says nothing.
        """
        known, self._refusal = False, _NOT_SAID
        try:
            error = answer.get("error")
            if error is None:
                # An object in the place of the list fails here, though it may be empty.
                told = [_told(root["uri"]) for root in answer["result"]["roots"] + []]
                # Where none is on this machine, what is in force stays.
                here = [folder for folder in told if folder is not None]
                if here and (note := self._narrow(here)):
                    _log.warning("%s", note)
            known = error is None or error["code"] == METHOD_NOT_FOUND
        except FilepactError as refused:
            _log.warning("the client's folders could not be used: %s", refused.message)
            self._refusal = refused.message, refused.hint
        except (LookupError, TypeError, ValueError, AttributeError) as wrong:
            _log.warning("the client did not tell its folders: %s", type(wrong).__name__)
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            _log.exception("the client's folders could not be used")
        finally:
            self.settled = known
            self._answered.set()
        return known


_ELSEWHERE: Final = late_regex(
    r"(?!file:)[a-z][a-z0-9+.-]*:|file://(?!localhost/)[a-z0-9][a-z0-9._-]*/[^\0\ud800-\udfff]*\Z",
    re.ASCII | re.IGNORECASE,
)


def _told(uri: object) -> str | None:
    """The path that a URI names, None for a folder elsewhere; what cannot be understood is quoted, and is no path."""
    from filepact_wire.uris import path_of  # noqa: PLC0415 - only clients with folders name any

    if isinstance(uri, str):
        # Some clients send a path for a URI.
        path = uri if uri.startswith("/") and "\0" not in uri else path_of(uri)
        if path is not None or ("%00" not in uri and _ELSEWHERE.match(uri)):
            return path
    return ascii(uri)[:_LONGEST]


class ClientQuestions:
    """Questions that the client puts to its person, while calls wait for the answers.  For all threads.

    Args:
        send: Takes what the client is to get; must not block.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._answered = threading.Condition()
        self._open: dict[str, Message | None] = {}
        self._numbers = itertools.count(1)

    def ask(self, params: Message, seconds: float, cancelled: Callable[[], bool]) -> Message | None:
        """Return the person's answer; None for an error, for none in time, or when the call is given up."""
        name = f"{QUESTION_ID}{next(self._numbers)}"
        with self._answered:
            self._open[name] = None
        asked = {"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": params}
        self._send(asked)
        until = time.monotonic() + seconds
        with self._answered:
            while (answer := self._open[name]) is None and not cancelled():
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._answered.wait(min(left, _LOOK))
            del self._open[name]
        if answer is None:
            reason = "it waits, and is decided about elsewhere"
            self.told("notifications/cancelled", requestId=name, reason=reason)
            return None
        result = answer.get("result")
        return result if isinstance(result, dict) else None

    def told(self, method: str, **params: object) -> None:
        """Send the client a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self, answer: Message) -> None:
        """Take an answer; of one that comes too late, or twice, nothing is made."""
        name = str(answer.get("id"))
        with self._answered:
            if name in self._open and self._open[name] is None:
                self._open[name] = answer
                self._answered.notify_all()


def actor_named(client: Mapping[str, Any] | None) -> Actor:
    """The agent that a client says it is; ``client`` has ``name`` and ``version``."""
    if client is None:
        return Actor("agent", "unknown")
    return Actor("agent", _printable(client["name"]) or "unknown", _printable(client["version"]))


def _printable(text: str) -> str:
    """A client's word for itself, fit for a line of a log."""
    text = text[:80]
    return (text if text.isprintable() else "".join(filter(str.isprintable, text))).strip()
