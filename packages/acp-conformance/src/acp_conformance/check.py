"""Checks as values, how they are declared, and what a running check works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acp_conformance.connection import READ, WRITE
from acp_conformance.report import CheckFailedError, CheckSkippedError, expect, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from acp_conformance.connection import Connection, Message, RequestResult
    from acp_conformance.conversation import ClientRequests
    from acp_conformance.report import Level
    from acp_conformance.scratch import CheckFolders, Folder

__all__ = [
    "ADVICE",
    "CANCELLING",
    "EXTENDING",
    "JSON_RPC",
    "PAGE",
    "PRACTICE",
    "SCHEMA",
    "SETUP",
    "START",
    "TOOL_CALLS",
    "TRANSPORT",
    "Check",
    "CheckContext",
    "CheckGroup",
    "requires",
]

PAGE = "file system page"
ADVICE = "file system page, best practices"
SCHEMA = "schema"
SETUP = "session setup page"
START = "initialization page"
CANCELLING = "cancellation page"
EXTENDING = "extensibility page"
TOOL_CALLS = "tool calls page"
TRANSPORT = "transports page"
JSON_RPC = "JSON-RPC 2.0"
PRACTICE = "practice"
"""The source of a rule; ``practice`` is what real agents rely on though no document says it."""

_CAPABILITIES = {READ: "readTextFile", WRITE: "writeTextFile"}


@dataclass(frozen=True, slots=True)
class Check:
    """One rule for clients, and the function that tests it.

    Attributes:
        id: As ``group.name``; stable.
        source: The document that has the rule.
        says: The rule in one sentence.
        run: Raises `CheckFailedError` or `CheckSkippedError`.
    """

    id: str
    level: Level
    source: str
    says: str
    run: Callable[[CheckContext], None]

    @property
    def group(self) -> str:
        """The first half of the id."""
        return self.id.partition(".")[0]


class _UnfoundedError(CheckSkippedError):
    """A check that the present one requires fails."""


def requires(context: CheckContext, *checks: Check) -> None:
    """Skip the present check if another one fails, without which it could tell nothing.

    Raises:
        CheckSkippedError: One of them fails, or itself requires one that fails.
    """
    for check in checks:
        try:
            check.run(context)
        except _UnfoundedError:
            raise
        except CheckSkippedError:
            continue
        except CheckFailedError:
            raise _UnfoundedError(f"{check.id} fails, and this builds on it") from None


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """Checks about one subject.

    Attributes:
        name: The first half of their ids.
        title: For people.
    """

    name: str
    title: str
    checks: list[Check] = field(default_factory=list)

    def must(self, source: str, says: str) -> Callable[[Callable[[CheckContext], None]], Check]:
        """Declare a function as a check of what the documents demand.

        The function's name is the check's id, written ``group_some_name``.
        """
        return self._declare("must", source, says)

    def should(self, source: str, says: str) -> Callable[[Callable[[CheckContext], None]], Check]:
        """Declare a function as a check of what is advised, named likewise."""
        return self._declare("should", source, says)

    def _declare(
        self, level: Level, source: str, says: str
    ) -> Callable[[Callable[[CheckContext], None]], Check]:
        def declare(run: Callable[[CheckContext], None]) -> Check:
            name = run.__name__.removeprefix(f"{self.name}_").replace("_", "-")
            check = Check(f"{self.name}.{name}", level, source, says, run)
            self.checks.append(check)
            return check

        return declare


class CheckContext:
    """The client, a session, and folders of its own, as a running check uses them.

    Attributes:
        connection: To the client.
        conversation: Sessions and turns, and how further ones are obtained.
        scratch: All folders.
        folder: The check's own, inside the session's.
        outside: The check's own, outside of all sessions' folders.
        session: The id of the session.
    """

    def __init__(
        self, connection: Connection, conversation: ClientRequests, scratch: CheckFolders, name: str
    ) -> None:
        self.connection = connection
        self.conversation = conversation
        self.scratch = scratch
        self.session = conversation.first_session
        self.folder: Folder = scratch.work.below(name)
        self.outside: Folder = scratch.outside.below(name)

    # -- requests ---------------------------------------------------------------------------

    def announced(self, method: str) -> bool:
        """Whether the client announced a method."""
        return self.conversation.capability("fs", _CAPABILITIES[method]) is True

    def read_request(self, path: object, more: Mapping[str, Any] | None = None) -> Message:
        """A read that is not sent yet.

        Args:
            path: What to read.
            more: Further parameters, or others in the place of the usual ones.
        """
        self._need(READ)
        params = {"sessionId": self.session, "path": path, **(more or {})}
        return self.connection.request(READ, params)

    def write_request(
        self, path: object, content: object, more: Mapping[str, Any] | None = None
    ) -> Message:
        """A write that is not sent yet."""
        self._need(WRITE)
        params = {"sessionId": self.session, "path": path, "content": content, **(more or {})}
        return self.connection.request(WRITE, params)

    def read(self, path: object, more: Mapping[str, Any] | None = None) -> RequestResult:
        """Send a read; returns the answer."""
        return self._ask(self.read_request(path, more))

    def write(
        self, path: object, content: object, more: Mapping[str, Any] | None = None
    ) -> RequestResult:
        """Send a write; returns the answer."""
        return self._ask(self.write_request(path, content, more))

    def text(self, path: str, more: Mapping[str, Any] | None = None) -> str:
        """The text that a read gives.

        Raises:
            CheckFailedError: It gives none.
        """
        return self.read(path, more).content

    def written(self, path: str, content: str, more: Mapping[str, Any] | None = None) -> None:
        """Write; fails the check if the client refuses."""
        reply = self.write(path, content, more)
        expect(not reply.is_error, f"the write was refused: {reply.error_text}")

    def ask(self, method: str, params: object, number: object = None) -> RequestResult:
        """Send any request, announced or not; returns the answer."""
        return self.connection.ask(method, params, number)

    def _ask(self, request: Message) -> RequestResult:
        self.connection.send(request)
        return self.connection.wait(request)

    def _need(self, method: str) -> None:
        if not self.announced(method):
            raise CheckSkippedError(f"the client does not announce {_CAPABILITIES[method]}")

    # -- expectations -----------------------------------------------------------------------

    def holds(self, name: str, data: bytes, folder: Folder | None = None) -> None:
        """Fail the check unless a file of its own has exactly these bytes."""
        there = (folder or self.folder).get(name)
        expect(there == data, f"{name} holds {short(there)} instead of {short(data)}")

    def expect_text(self, got: str, wanted: str) -> None:
        """Fail the check unless two texts are equal."""
        expect(got == wanted, f"it answered {short(got)} instead of {short(wanted)}")

    def expect_alive(self) -> None:
        """Fail the check unless the client still answers an ordinary request."""
        method, path = (READ, "alive.txt") if self.announced(READ) else (WRITE, "alive-too.txt")
        params = {"sessionId": self.session, "path": self.scratch.work.at(path)}
        if method == WRITE:
            self._need(WRITE)
            params["content"] = "alive\n"
        reply = self.ask(method, params)
        if reply.is_error:
            raise CheckFailedError(
                f"an ordinary request was refused afterwards: {reply.error_text}"
            )
