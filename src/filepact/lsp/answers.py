"""What a server asks its client, and what it is answered; every request gets an answer.

Servers give up loading when a request of theirs is refused as unknown, and some report nothing
before their settings have arrived.  Nothing here changes a file: edits are refused with a reason
and kept for whoever wants to show them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.failures import METHOD_NOT_FOUND, AnswerError
from filepact.lsp.watched import Watchers
from filepact.wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answers", "Registration"]

NO_EDITS: Final = "files are changed through filepact's own tools, not by a language server"

_MESSAGES = 50
_MESSAGE_LENGTH = 500
_EDITS = 8
_REGISTRATIONS = 2_000
_REFRESHES = frozenset(
    {
        "workspace/codeLens/refresh",
        "workspace/foldingRange/refresh",
        "workspace/inlayHint/refresh",
        "workspace/inlineValue/refresh",
        "workspace/semanticTokens/refresh",
        "workspace/textDocumentContent/refresh",
    }
)


@dataclass(frozen=True, slots=True)
class Registration:
    """A capability that a server added after its start.

    Attributes:
        id: The server's name for it.
        method: What it can do, or wants to be told.
        options: How.
    """

    id: str
    method: str
    options: Mapping[str, Any]


class Answers:
    """The client's side of one server's requests and progress.

    Args:
        root: The folder that it serves, absolute.
        settings: What it is answered when it asks for its configuration, nested by section.
    """

    def __init__(self, root: str, settings: Mapping[str, Any]) -> None:
        self._root = root
        self._settings = settings
        self._registered: dict[str, Registration] = {}
        self._working: set[str] = set()
        self.watchers = Watchers(root)
        self.messages: deque[str] = deque(maxlen=_MESSAGES)
        self.refused_edits: deque[Mapping[str, Any]] = deque(maxlen=_EDITS)
        self.refreshes = 0
        """How often the server has said that its diagnostics are to be asked for again."""

    def answer(self, method: str, params: Any) -> Any:
        """The answer to one request.

        Raises:
            AnswerError: It is not a request that clients know.
        """
        match method:
            case "workspace/configuration":
                return [self._configuration(item) for item in params["items"]]
            case "client/registerCapability":
                for one in params["registrations"]:
                    self._register(one)
            case "client/unregisterCapability":
                # The misspelling is the protocol's.
                for one in params.get("unregisterations", params.get("unregistrations", [])):
                    self._registered.pop(one["id"], None)
                    self.watchers.unregister(one["id"])
            case "workspace/applyEdit":
                edit = params.get("edit")
                if isinstance(edit, dict):
                    self.refused_edits.append(edit)
                return {"applied": False, "failureReason": NO_EDITS}
            case "workspace/workspaceFolders":
                return [{"uri": uri_of(self._root), "name": self._root.rpartition("/")[2] or "/"}]
            case "workspace/diagnostic/refresh":
                self.refreshes += 1
            case "window/showMessageRequest":
                self.say(params)
            case "window/showDocument":
                return {"success": False}
            case "window/workDoneProgress/create":
                pass  # that it begins and ends is said by notifications
            case _ if method in _REFRESHES:
                pass  # we hold nothing of the kind
            case _:
                raise AnswerError(METHOD_NOT_FOUND, f"{method[:100]} is not known here")
        return None

    def progress(self, params: Any) -> None:
        """Take down that some work begins or ends."""
        value, token = params["value"], repr(params["token"])[:100]
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "begin" and len(self._working) < _REGISTRATIONS:
            self._working.add(token)
        elif kind == "end":
            self._working.discard(token)

    def say(self, params: Any) -> None:
        """Keep what the server wants a person to read; the last few."""
        self.messages.append(str(params.get("message", ""))[:_MESSAGE_LENGTH])

    @property
    def working(self) -> bool:
        """Whether the server says that it is at work on something long."""
        return bool(self._working)

    def registered(self, method: str) -> tuple[Registration, ...]:
        """All registrations of a method."""
        return tuple(one for one in self._registered.values() if one.method == method)

    def _register(self, one: Mapping[str, Any]) -> None:
        number, method, options = one["id"], one["method"], one.get("registerOptions")
        if not isinstance(number, str) or not isinstance(method, str):
            raise TypeError("a registration has an id and a method")
        if len(self._registered) >= _REGISTRATIONS:
            raise ValueError("too many registrations")
        options = options if isinstance(options, dict) else {}
        self._registered[number] = Registration(number, method, options)
        if method == "workspace/didChangeWatchedFiles":
            self.watchers.register(number, options)

    def _configuration(self, item: Mapping[str, Any]) -> Any:
        value: Any = self._settings
        for part in filter(None, (item.get("section") or "").split(".")):
            value = value.get(part) if isinstance(value, dict) else None
        return value
