"""What a check works with: the client, a session, and folders of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from filepact.faces.acp.check.outcome import Failed, Skipped, expect, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.acp.check.conversation import Conversation
    from filepact.faces.acp.check.folder import Folder, Scratch
    from filepact.faces.acp.check.messages import Message, Reply
    from filepact.faces.acp.check.peer import Peer

__all__ = ["READ", "WRITE", "Scene"]

READ, WRITE = "fs/read_text_file", "fs/write_text_file"
_FLAGS = {READ: "readTextFile", WRITE: "writeTextFile"}


class Scene:
    """One check's surroundings.

    Args:
        peer: The client.
        talk: What it has said so far, and how it is asked for more.
        scratch: All folders.
        name: Names the check's own folders.

    Attributes:
        folder: The check's own, inside the session's.
        outside: The check's own, outside of all sessions' folders.
        session: The id of the session.
    """

    def __init__(self, peer: Peer, talk: Conversation, scratch: Scratch, name: str) -> None:
        self.peer = peer
        self.talk = talk
        self.scratch = scratch
        self.session = talk.first_session
        self.folder: Folder = scratch.work.below(name)
        self.outside: Folder = scratch.outside.below(name)

    # -- requests ---------------------------------------------------------------------------

    def announced(self, method: str) -> bool:
        """Whether the client offers a method."""
        return self.talk.capability("fs", _FLAGS[method]) is True

    def read_request(self, path: object, more: Mapping[str, Any] | None = None) -> Message:
        """A read that is not sent yet.

        Args:
            path: What to read.
            more: Further parameters, or others in the place of the usual ones.
        """
        self._need(READ)
        return self.peer.request(READ, {"sessionId": self.session, "path": path, **(more or {})})

    def write_request(
        self, path: object, content: object, more: Mapping[str, Any] | None = None
    ) -> Message:
        """A write that is not sent yet."""
        self._need(WRITE)
        return self.peer.request(
            WRITE, {"sessionId": self.session, "path": path, "content": content, **(more or {})}
        )

    def read(self, path: object, more: Mapping[str, Any] | None = None) -> Reply:
        """The answer to a read."""
        return self._ask(self.read_request(path, more))

    def write(self, path: object, content: object, more: Mapping[str, Any] | None = None) -> Reply:
        """The answer to a write."""
        return self._ask(self.write_request(path, content, more))

    def text(self, path: str, more: Mapping[str, Any] | None = None) -> str:
        """The text that a read answers.

        Raises:
            Failed: It answers none.
        """
        return self.read(path, more).content

    def written(self, path: str, content: str, more: Mapping[str, Any] | None = None) -> None:
        """Write, and go on only if it is said to be done."""
        reply = self.write(path, content, more)
        expect(not reply.is_error, f"the write was refused: {reply.told}")

    def ask(self, method: str, params: object, number: object = None) -> Reply:
        """The answer to any request, announced or not."""
        return self.peer.ask(method, params, number)

    def _ask(self, request: Message) -> Reply:
        self.peer.send(request)
        return self.peer.wait(request)

    def _need(self, method: str) -> None:
        if not self.announced(method):
            raise Skipped(f"the client does not announce {_FLAGS[method]}")

    # -- what is seen -----------------------------------------------------------------------

    def holds(self, name: str, data: bytes, folder: Folder | None = None) -> None:
        """Go on only if a file of the check holds just these bytes."""
        there = (folder or self.folder).get(name)
        expect(there == data, f"{name} holds {shown(there)} instead of {shown(data)}")

    def same(self, got: str, wanted: str) -> None:
        """Go on only if a text is the wanted one."""
        expect(got == wanted, f"it answered {shown(got)} instead of {shown(wanted)}")

    def alive(self) -> None:
        """Go on only if the client still answers ordinary requests."""
        method, path = (READ, "alive.txt") if self.announced(READ) else (WRITE, "alive-too.txt")
        params = {"sessionId": self.session, "path": self.scratch.work.at(path)}
        if method == WRITE:
            self._need(WRITE)
            params["content"] = "alive\n"
        reply = self.ask(method, params)
        if reply.is_error:
            raise Failed(f"an ordinary request was refused afterwards: {reply.told}")

    def announced_as_text(self) -> str:
        """What the client announced, for a reason."""
        return json.dumps(self.talk.initialize.get("clientCapabilities"))
