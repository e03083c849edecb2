"""One call of a tool, whichever way it came: who calls, what is waited for, what may go wrong."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from filepact.faces.mcp.pages import page_for
from filepact.faces.mcp.talks import conversation_in
from filepact.faces.wire.lines import INTERNAL_ERROR, INVALID_PARAMS, Refusal
from filepact.tools.registry import Call, UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Actor, Session
    from filepact.faces.mcp.folders import Folders
    from filepact.tools.registry import Outcome, Toolbox

__all__ = ["Service"]

_log = logging.getLogger(__name__)


class Service:
    """Carries out calls; used from several threads at once.

    Args:
        session_factory: Makes the session of an actor; asked once for each.
        folders: Told by the client before its first call, if it has any.
        page: What one answer may take, in bytes; None for what is known of the client.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        session_factory: Callable[[Actor], Session],
        folders: Folders,
        page: int | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._session_factory = session_factory
        self._sessions: dict[Actor, Session] = {}
        self._lock = threading.Lock()
        self._folders = folders
        self._page = page

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        actor: Actor,
        meta: Mapping[str, object] | None,
        cancelled: Callable[[], bool],
        progress: Callable[[int, str], None],
    ) -> Outcome | Refusal:
        """Call a tool and wait for it; a refusal is an error of the protocol, not of the tool.

        Args:
            name: The tool.
            arguments: As they were sent.
            actor: Who calls.
            meta: What the client's notes beside the call are.
            cancelled: Whether nobody waits any more.
            progress: Told how far it is.
        """
        self._folders.wait()
        try:
            page = page_for(actor.name, self._page)
            call = Call(self._session(actor, meta), cancelled, progress, page)
            return self._toolbox.call(name, arguments, call)
        except UnknownToolError as error:
            return Refusal(INVALID_PARAMS, str(error))
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The exception's text may name host paths: for the log only.
            _log.exception("%s could not be called", name)
            return Refusal(INTERNAL_ERROR, "internal error; the server's log has the details")

    def _session(self, actor: Actor, meta: Mapping[str, object] | None) -> Session:
        with self._lock:
            if actor not in self._sessions:
                self._sessions[actor] = self._session_factory(actor)
            session = self._sessions[actor]
        named = "" if session.conversation is None else conversation_in(actor.name, meta)
        return replace(session, conversation=named) if named else session
