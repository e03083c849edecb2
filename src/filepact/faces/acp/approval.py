"""A change that waits for a person is put to the one in front of the client."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from acp.helpers import text_block, tool_content
from acp.schema import PermissionOption, ToolCallLocation, ToolCallUpdate

from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError, UserDeniedError

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact.faces.acp.remote import Remote
    from filepact.faces.acp.shown import Shown
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = ["Approvals"]

_LONGEST_DIFF = 100_000

_OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


class Approvals:
    """Asks about the stored changes of one session, and does what is answered.

    Args:
        workspace: The session's folders.
        shown: The client's texts of them.
        session: Who wants the changes.
        remote: The client's methods.
        client: The client's name, in which a person answers.
    """

    def __init__(
        self,
        workspace: Workspace,
        shown: Shown,
        *,
        session: Session,
        remote: Remote,
        client: str,
    ) -> None:
        self._workspace = workspace
        self._shown = shown
        self._session = session
        self._remote = remote
        self._person = Approval(Actor("person", client))

    def question(self, change: str) -> ToolCallUpdate:
        """What the person is shown of a stored change."""
        proposal = self._workspace.proposal(change)
        places: list[ToolCallLocation] = []
        for path in proposal.changes.paths:
            with suppress(FilepactError):
                asked = self._shown.ask(path.absolute)
                if asked is not None:
                    places.append(ToolCallLocation(path=asked.name))
        diff = self._workspace.diff(proposal)[:_LONGEST_DIFF]
        fence = "`" * 3
        while fence in diff:
            fence += "`"
        return ToolCallUpdate(
            tool_call_id=change,
            kind="edit",
            status="pending",
            title=f"{proposal.summary} ({proposal.rule})",
            content=[tool_content(text_block(f"{fence}diff\n{diff}\n{fence}"))],
            locations=places,
        )

    async def ask(self, question: ToolCallUpdate) -> bool | None:
        """What the person says; None for nothing."""
        return {"allow": True, "reject": False}.get(await self._remote.choose(question, _OPTIONS))

    def carry_out(self, change: str, *, allowed: bool) -> Receipt:
        """Do what the person has said.

        Raises:
            UserDeniedError: The person said no.
            FilepactError: It can no longer be done; it waits as before.
        """
        if not allowed:
            self._workspace.reject(change, self._person)
            raise UserDeniedError(
                "the person refused this change", hint="Ask what they want instead.", change=change
            )
        return self._workspace.approve(change, self._person, to_agent=True)

    def withdraw(self, change: str) -> None:
        """Nobody waits for the answer any more."""
        with suppress(FilepactError):
            self._workspace.reject(change, Approval(self._session.actor, "it was cancelled"))

    def heard(self, change: str) -> None:
        """What was said to this change is in the answer to it, and is not told again."""
        news = self._workspace.news(self._session)
        self._workspace.heard(self._session, [one for one in news if one.about == change])
