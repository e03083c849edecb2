"""A person is asked about a change, as long as somebody waits for it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError
from filepact.faces.acp.errors import CANCELLED, REFUSED, Refusal, refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from filepact.faces.acp.sessions import Bound

__all__ = ["Asking", "Question", "too_late", "withdraw"]

_log = logging.getLogger("filepact.acp")


@dataclass(frozen=True, slots=True)
class Question:
    """A change that a person has to answer.

    Attributes:
        change: Its id in the journal.
        path: As the agent sent it.
        diff: Unified.
        rule: Why it is asked.
    """

    change: str
    path: str
    diff: str
    rule: str


class Asking:
    """What a person is being asked.

    Args:
        ask: Asks; None leaves every change waiting.
    """

    def __init__(self, ask: Callable[[Question], Awaitable[bool]] | None) -> None:
        self._ask = ask
        self._asked: dict[Bound, dict[str, asyncio.Future[bool]]] = {}

    async def answer(self, bound: Bound, question: Question) -> bool:
        """What a person says to a stored change.

        Raises:
            Refusal: Nobody can be asked, and it waits; or its turn ended, and it waits no more.
        """
        change = question.change
        waits = refuse(
            REFUSED,
            "approval_required",
            f"This change waits for a person as {change} ({question.rule}). "
            f"`filepact approve {change}` does it.",
        )
        if self._ask is None:
            raise waits
        asking = asyncio.ensure_future(self._ask(question))
        self._asked.setdefault(bound, {})[change] = asking
        try:
            return await asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                withdraw(bound, change)
                raise
            raise too_late() from None
        except Exception:  # noqa: BLE001 - a client's own, whose text is not for the agent
            _log.exception("a person could not be asked")
            raise waits from None
        finally:
            asked = self._asked.get(bound, {})
            asked.pop(change, None)
            if not asked:
                self._asked.pop(bound, None)

    def drop(self, bound: Bound) -> None:
        """Ask nothing more for a session's turn; its changes are withdrawn."""
        for change, asking in self._asked.pop(bound, {}).items():
            withdraw(bound, change)
            asking.cancel()


def too_late() -> Refusal:
    """The refusal of a change whose turn ended before a person agreed."""
    return refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")


def withdraw(bound: Bound, change: str) -> None:
    """Let a change that nobody waits for any more wait for nobody."""
    with suppress(FilepactError):
        said = "nobody waited for an answer any more"
        bound.workspace.reject(change, Approval(Actor("program", "client"), said))
