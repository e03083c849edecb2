"""An agent's files, on the protocol's official package: its client's texts, guarded and undoable."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from filepact.app import open_workspace
from filepact.config.person import read_settings
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError
from filepact.faces.acp.approval import Approvals
from filepact.faces.acp.client_buffers import PATIENCE
from filepact.faces.acp.notices import OpenTexts
from filepact.faces.acp.own_session import SessionFiles
from filepact.faces.acp.remote import Offers, Remote
from filepact.faces.acp.session_buffers import SessionBuffers
from filepact.workspace.buffers import Buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp.schema import ClientCapabilities, Implementation

    from filepact.config.settings import Settings
    from filepact.text.lines import Unit
    from filepact.workspace.workspace import Mode, Workspace

__all__ = ["AgentFiles"]


class AgentFiles:
    """The files of one connection to a client; make it in the agent's ``on_connect``.

    What the client announces, the documents that it tells of and the ends of its sessions are
    learned from the connection.

    Args:
        connection: What ``on_connect`` is given, or anything with its methods on files.
        state_dir: The state folder, never inside a session's folders; None takes the person's.
        agent: The agent's name, for rules and for the journal.
        version: The agent's version.
        mode: Whether allowed changes are done, or wait for a person.
        ask: Whether the client's person is asked about changes that wait; else they stay waiting
            for the person's own command.
        settings: What people have set; None reads the person's and the administrator's files.
        home: The person's home folder, whose secrets links may lead to; None for the one of
            whoever runs this.
        unit: What columns count in the client's notices about documents.
        patience: Seconds in which the client has to say what it shows of a file.
    """

    def __init__(  # noqa: PLR0913 - options of a public class, by name
        self,
        connection: Any,
        *,
        state_dir: str | None = None,
        agent: str = "acp agent",
        version: str = "",
        mode: Mode = "auto",
        ask: bool = True,
        settings: Settings | None = None,
        home: str | None = None,
        unit: Unit = "utf-16",
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        # Read once, and now: a file that is wrong is not for the first session to find.
        in_force = read_settings() if settings is None else settings
        self._workspace = partial(
            open_workspace, state_dir=state_dir, mode=mode, settings=in_force, home=home
        )
        self._connection = connection
        self._agent = Actor("agent", agent, version)
        self._ask = ask
        self._client = "acp client"
        self._texts = OpenTexts(unit)
        self._sessions: dict[str, SessionFiles] = {}
        self.offers = Offers()
        self._listen()

    # -- what the client says -------------------------------------------------------------

    def initialized(
        self,
        client_capabilities: ClientCapabilities | None,
        client_info: Implementation | None = None,
    ) -> None:
        """Take down what the client offers; learned from the connection where there is one."""
        fs = None if client_capabilities is None else client_capabilities.fs
        self.offers = Offers(
            fs is not None and fs.read_text_file is True,
            fs is not None and fs.write_text_file is True,
        )
        if client_info is not None:
            self._client = client_info.name

    async def notification(self, method: str, params: object) -> bool:
        """Take down a notice about a document; False for any other, which is not looked at.

        Raises:
            InvalidParamsError: It does not fit what is known of the document.
        """
        if not method.startswith("document/"):
            return False
        self._texts.hear(method, params)
        return True

    def _listen(self) -> None:
        """Learn from what passes over the connection."""
        # The package hands notices that it has no method for to nobody.
        wire = getattr(self._connection, "_conn", None)
        handler = getattr(wire, "_handler", None)
        if wire is None or handler is None:
            return

        async def handle(method: str, params: Any, is_notification: bool) -> Any:
            if is_notification and method.startswith("document/"):
                with suppress(InvalidParamsError):
                    await self.notification(method, params)
                return None
            if method == "initialize" and isinstance(params, dict):
                self.offers = Offers.of(params.get("clientCapabilities"))
                info = params.get("clientInfo")
                if isinstance(info, dict) and isinstance(info.get("name"), str):
                    self._client = info["name"][:200] or self._client
            answer = await handler(method, params, is_notification)
            if method in {"session/close", "session/delete", "nes/close"}:
                session_id = params.get("sessionId") if isinstance(params, dict) else None
                self._texts.forget(str(session_id))
                await self.session_closed(str(session_id))
            return answer

        wire._handler = handle  # noqa: SLF001 - see above

    # -- sessions -------------------------------------------------------------------------

    async def session(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] | None = None
    ) -> SessionFiles:
        """Open the files of a session, in place of those it had.

        Args:
            session_id: As the client knows it.
            cwd: The session's working folder, from which relative paths go.
            additional_directories: Its other folders.

        Raises:
            InvalidParamsError: A folder is not absolute.
            NotFoundError: A folder is not there.
        """
        roots = tuple(dict.fromkeys((cwd, *(additional_directories or ()))))
        if not all(root.startswith("/") for root in roots):
            raise InvalidParamsError("a session's folders have to be absolute paths")
        await self.session_closed(session_id)
        caller = Session(session_id, self._agent, session_id)
        workspace, buffers = await asyncio.to_thread(self._open, roots, caller)
        remote = Remote(self._connection, session_id, self.offers, patience=self._patience)
        asking = Approvals(workspace, buffers, session=caller, remote=remote, client=self._client)
        files = SessionFiles(
            workspace,
            buffers,
            session=caller,
            remote=remote,
            texts=self._texts,
            approvals=asking if self._ask and self._connection is not None else None,
        )
        # Another may have been opened under this name while the folders were.
        await self.session_closed(session_id)
        self._sessions[session_id] = files
        return files

    def _open(self, roots: tuple[str, ...], caller: Session) -> tuple[Workspace, SessionBuffers]:
        workspace = self._workspace(roots, buffers=Buffers())
        buffers = SessionBuffers(workspace, session=caller, client=self._client, folders=roots)
        return workspace, buffers

    def get(self, session_id: str) -> SessionFiles | None:
        """The files of a session that was opened and has not ended."""
        return self._sessions.get(session_id)

    async def session_closed(self, session_id: str) -> None:
        """Forget a session, once what is being done for it has ended."""
        files = self._sessions.pop(session_id, None)
        if files is not None:
            await files.close()

    async def close(self) -> None:
        """Forget all sessions; call it when the connection has ended."""
        for session_id in tuple(self._sessions):
            await self.session_closed(session_id)
