"""One client: what the conversation decides about its messages is done here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from filepact.faces.mcp.aside import Aside
from filepact.faces.mcp.conversation import (
    Answer,
    AskFolders,
    Cancel,
    CarryOut,
    Conversation,
    FoldersTold,
    PassOn,
)
from filepact.faces.mcp.flights import Flights
from filepact.faces.mcp.folders import Folders
from filepact.faces.mcp.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.operation import Actor, Session
    from filepact.faces.mcp.aside import Attach
    from filepact.faces.mcp.ordinary import ServerFacts
    from filepact.faces.wire.lines import Message
    from filepact.tools.registry import Toolbox

__all__ = ["Connection"]


class Connection:
    """Everything that is kept for one client.

    Args:
        send: Takes what the client is to get; must not block.
        session_factory: Makes the session of an actor; asked once for each.
        narrow: Told the client's folders; answers what a person should know of it, if anything.
        page: What one answer may take, in bytes; None for what is known of the client.
        direct: Whether ordinary requests are dealt with without the protocol package.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        facts: ServerFacts,
        send: Callable[[Message], None],
        *,
        session_factory: Callable[[Actor], Session],
        narrow: Callable[[Sequence[str]], str | None],
        page: int | None = None,
        direct: bool = True,
    ) -> None:
        self._send = send
        self._conversation = Conversation(facts, direct=direct)
        self._folders = Folders(narrow)
        service = Service(
            toolbox, session_factory=session_factory, folders=self._folders, page=page
        )
        self._flights = Flights(service, facts, send)

        def run_package(attach: Attach, answer: Callable[[Message], None]) -> None:
            from filepact.faces.mcp.package import run  # noqa: PLC0415 - half a second of imports

            run(attach, answer, service=service, facts=facts)

        self._aside = Aside(run_package, send)

    def receive(self, message: Message) -> None:
        """Take the next message; waits only while too many calls do."""
        for step in self._conversation.take(message):
            match step:
                case Answer(answer):
                    self._send(answer)
                case CarryOut():
                    self._flights.begin(step)
                case Cancel(wanted):
                    self._flights.cancel(wanted)
                case AskFolders(question):
                    self._folders.asked()
                    self._send(question)
                case FoldersTold(answer):
                    self._folders.told(answer)
                case PassOn(passed):
                    self._aside.give(passed)

    def settle(self, patience: float) -> None:
        """Let what is in flight be answered, for so many seconds: some clients pipe a script."""
        self._aside.wait_until_there()  # its import is nobody's delay but ours
        until = time.monotonic() + patience
        self._flights.settle(patience)
        self._aside.settle(max(0.0, until - time.monotonic()))

    def finish(self) -> None:
        """Cancel what is in flight; nothing runs any more when this returns."""
        self._flights.finish()
        self._aside.finish()
