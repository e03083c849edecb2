"""What one server sees of the files: told in order, repeated where its policy asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import time
from typing import TYPE_CHECKING, Final

from filepact.lsp.changes import Change, Teller
from filepact.lsp.documents import Documents
from filepact.lsp.failures import ServerError
from filepact.lsp.twins import Twins
from filepact.lsp.uris import path_of
from filepact.lsp.watched import Watchers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact.lsp.client import Client
    from filepact.lsp.documents import Notification
    from filepact.lsp.servers import Server

__all__ = ["Sight"]

_OPEN_AT_MOST: Final = 40
_CHANGES_KEPT: Final = 5_000
_TICK: Final = 0.02


class Sight:
    """The files as one server has them; it outlives the server's process.

    Args:
        server: Whose policy counts.
        root: The folder that it serves, absolute.
        on_sent: Called with everything that may change what the server finds.
    """

    def __init__(self, server: Server, root: str, on_sent: Callable[[], None]) -> None:
        self._server = server
        self._root = root
        self._on_sent = on_sent
        self._client: Client | None = None
        self._inbox: list[Change] = []
        self._behind: set[str] = set()
        self._twins = Twins(time.time)
        self.documents = Documents(self._language)
        self._teller = Teller(server, root, self.documents)
        self.told = 0
        """How many changes it was told of."""

    def begin(self, client: Client) -> None:
        """Bring a new conversation to where the last one was."""
        self._client = client
        self.documents.kind, self.documents.unit = client.sync, client.unit
        self._teller.forget()
        self._twins.forget()
        self._behind.clear()
        self._send(self.documents.reopen())

    def note(self, changes: Iterable[Change]) -> bool:
        """Take down what happened on the disk; False if that was too much to be told one by one."""
        new = list(changes)
        self._inbox += new
        self.told += len(new)
        if len(self._inbox) <= _CHANGES_KEPT:
            return True
        self._inbox.clear()
        for path in self.documents.paths:
            self.documents.close(path)
        return False

    def deliver(self) -> None:
        """Send what has happened on the disk."""
        changes, self._inbox = self._inbox, []
        if not changes:
            return
        client = self._client
        # Without a server the documents still have to follow, for the next one.
        watchers = Watchers(self._root) if client is None else client.answers.watchers
        operations = {} if client is None else client.file_operations
        sent = self._teller.tell(changes, watchers, operations)
        if self._teller.repeats:
            self._teller.repeats = False
            self._behind |= set(self.documents.paths)
        self._send(sent, replaced=True)

    async def show(self, files: Mapping[str, str]) -> None:
        """Have the server see these texts, and again those that it would not look at otherwise."""
        sent: list[Notification] = []
        for path, text in files.items():
            new = self.documents.hold(path, text)
            if new and self._server.sync.unsaved == "repeat":
                self._behind |= set(self.documents.paths)
            if new:
                self._behind.discard(path)
            sent += new
        sent += self._repeated(self._behind & files.keys())
        self._behind -= files.keys()
        for path in self.documents.paths[: max(len(self.documents.paths) - _OPEN_AT_MOST, 0)]:
            if path not in files:
                sent += self.documents.close(path)
                self._behind.discard(path)
        self._send(sent)
        if self._twins.pause:
            await asyncio.sleep(self._twins.pause + _TICK)
            twins = self._twins.take()
            self._send([*self._repeated(twins), *self._repeated(files.keys() - twins)])

    def withdraw(self, proposed: Mapping[str, str], files: Mapping[str, str]) -> None:
        """Give the server the disk's texts again; documents follow also when it is gone."""
        sent: list[Notification] = []
        for path in proposed:
            if path in files:
                sent += self.documents.hold(path, files[path])
            else:
                sent += self.documents.close(path)
        if self._server.sync.unsaved == "repeat":
            self._behind |= set(self.documents.paths)
        self._send(sent)

    def at_work(self) -> None:
        """The server has just looked at files."""
        self._twins.at_work()

    def _repeated(self, paths: Iterable[str]) -> list[Notification]:
        held = [path for path in paths if path in self.documents]
        return [sent for path in held for sent in self.documents.repeat(path)]

    def _send(self, notifications: Iterable[Notification], *, replaced: bool = False) -> None:
        """Send, if the server is there; a text that is not sent now is sent at its next start."""
        sent = list(notifications)
        if not sent or self._client is None:
            return
        self._on_sent()
        if self._server.sync.coarse:
            for method, params in sent:
                path = path_of(params.get("textDocument", {}).get("uri", ""))
                document = None if path is None else self.documents.get(path)
                if document is not None and method.endswith(("didOpen", "didChange")):
                    self._twins.given(document.path, document.text, replaced=replaced)
                elif path is not None and method.endswith("didClose"):
                    self._twins.left(path)
            self._twins.at_work()
        with contextlib.suppress(ServerError):
            self._client.send(sent)

    def _language(self, path: str) -> str:
        return self._server.language(posixpath.relpath(path, self._root)) or "plaintext"
