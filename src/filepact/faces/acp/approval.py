"""A change that waits for a person is put to the one in front of the client."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acp.schema import PermissionOption, ToolCallUpdate

from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError, UserDeniedError
from filepact.faces.acp.proposed import SessionPermissions, exhibit

if TYPE_CHECKING:
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal, Session
    from filepact.faces.acp.proposed import Message
    from filepact.faces.acp.remote import ClientMethods
    from filepact.faces.acp.session_buffers import SessionBuffers
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = ["PermissionQuestion", "SessionApprovals"]


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """One question to the person.

    Attributes:
        call: What they are shown.
        options: What they may say.
    """

    proposal: Proposal
    call: ToolCallUpdate
    options: list[Message]


class SessionApprovals:
    """Asks about the stored changes of one session, and does what is answered.

    Args:
        workspace: The session's folders.
        buffers: The client's texts of them.
        session: Who wants the changes.
        remote: The client's methods.
        client: The client's name, in which a person answers.
    """

    def __init__(
        self,
        workspace: Workspace,
        buffers: SessionBuffers,
        *,
        session: Session,
        remote: ClientMethods,
        client: str,
    ) -> None:
        self._workspace = workspace
        self._buffers = buffers
        self._session = session
        self._remote = remote
        self._person = Approval(Actor("person", client))
        self._grants = SessionPermissions()

    def question(self, change: str, since: str = "") -> PermissionQuestion | None:
        """What the person is shown of a stored change; None where they have said yes before.

        Args:
            change: Its id.
            since: What has happened to the files since they were asked about an earlier one.
        """
        proposal = self._workspace.proposal(change)
        if self._grants.cover(proposal):
            return None

        def name(path: WorkspacePath) -> str | None:
            with suppress(FilepactError):
                asked = self._buffers.ask(path)
                return None if asked is None else asked.name
            return None

        shown = exhibit(self._workspace, proposal, name, since=since)
        call = ToolCallUpdate.model_validate(
            {
                "toolCallId": change,
                "kind": "edit",
                "status": "pending",
                "title": shown.title,
                "content": shown.blocks,
                "locations": list(shown.locations),
            }
        )
        policy = self._workspace.guard.policy
        return PermissionQuestion(
            proposal, call, self._grants.options(proposal, policy, whole=shown.whole)
        )

    async def ask(self, asking: PermissionQuestion | None) -> bool | None:
        """What the person says; None for nothing."""
        if asking is None:
            return True
        options = [PermissionOption.model_validate(one) for one in asking.options]
        chosen = await self._remote.choose(asking.call, options)
        return self._grants.hear(asking.proposal, chosen, asking.options)

    async def close(self, asking: PermissionQuestion | None, *, done: bool) -> None:
        """The client need not show the call as one that waits."""
        if asking is not None:
            await self._remote.close(asking.call.tool_call_id, done=done)

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
        self._workspace.answered(self._session, change)
