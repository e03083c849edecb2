"""What one server sees of the files: told in order, repeated where its policy asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.changes import Change, Teller
from filepact.lsp.documents import Documents
from filepact.lsp.failures import ServerError
from filepact.lsp.twins import Twins
from filepact.lsp.watched import Watchers, beneath
from filepact.wire.uris import path_of, uri_of

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
        facts: What may stand in braces in the server's announcements.
        on_sent: Called with everything that may change what the server finds.
    """

    def __init__(
        self, server: Server, root: str, facts: Mapping[str, str], on_sent: Callable[[], None]
    ) -> None:
        self._server = server
        self._root = root
        whole = uri_of(root)
        opened = facts.get("solution_uri", whole)
        self._facts = {"root_uri": whole, "opened_uri": opened, **facts}
        self._on_sent = on_sent
        self._client: Client | None = None
        self._inbox: list[Change] = []
        self._behind: set[str] = set()
        self._twins = Twins(time.time)
        self.documents = Documents(self._language)
        self._teller = Teller(server, root, self.documents)
        self._words: dict[str, None] = {}
        self._counting = False
        self.told = 0
        """How many changes it was told of."""
        self.blind = ""
        """Why the server is known not to see the files as they are; else empty."""

    def begin(self, client: Client) -> None:
        """Bring a new conversation to where the last one was."""
        self._client = client
        self.documents.kind, self.documents.unit = client.sync, client.unit
        self._teller.forget()
        self._twins.forget()
        self._behind.clear()
        self.blind = ""
        self._send([*self._announcements(), *self.documents.reopen()])

    @property
    def lost(self) -> bool:
        """Whether the server has to be started anew to see the files as they are."""
        return self._teller.anew

    def leave(self) -> None:
        """The server was stopped; the next one sees the disk as it is then."""
        self._client = None
        self._teller.forget()
        self._words["restart"] = None

    def count_words(self) -> None:
        """From now on take down what is sent, unless that has begun since it was last taken."""
        if not self._counting:
            self._words.clear()
            self._counting = True

    def take_words(self) -> str:
        """What was sent since then."""
        self._counting = False
        return ", ".join(self._words)

    def note(self, changes: Iterable[Change]) -> None:
        """Take down what happened on the disk."""
        new = list(changes)
        self.count_words()
        self._inbox += new
        self.told += len(new)
        if len(self._inbox) > _CHANGES_KEPT:
            # A new start sees the disk as it is, and costs less than so many events.
            self._inbox.clear()
            for path in self.documents.paths:
                self.documents.close(path)
            self._teller.anew = True

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
        if self._teller.announces:
            self._teller.announces = False
            again = self._announcements()
            # What cannot be announced once more only a new start finds.
            self._teller.anew |= not again
            sent += again
        self._send(sent, replaced=True)

    def show(self, files: Mapping[str, str]) -> None:
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

    def answered(self) -> None:
        """The server has answered something behind all that was sent."""
        self._twins.answered()

    @property
    def has_twins(self) -> bool:
        """Whether it was sent texts that it may take for the ones before."""
        return bool(self._twins)

    async def tell_twins_apart(self, files: Iterable[str]) -> None:
        """Send such texts again when they can be told apart, and those who may look at them."""
        await asyncio.sleep(self._twins.pause + _TICK)
        twins = self._twins.take()
        self._send([*self._repeated(twins), *self._repeated(set(files) - twins)])

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

    def _announcements(self) -> list[Notification]:
        """What the server wants to be told after its start, if all of it is known."""
        found: list[Notification] = []
        for method, params in self._server.announce:
            try:
                found.append((method, _filled(params, self._facts)))
            except KeyError as missing:
                if self._server.discovers:
                    continue
                self.blind = f"the server was not told of {method}: {missing.args[0]} is not known"
        return found

    def _repeated(self, paths: Iterable[str]) -> list[Notification]:
        held = [path for path in paths if path in self.documents]
        return [sent for path in held for sent in self.documents.repeat(path)]

    def _send(self, notifications: Iterable[Notification], *, replaced: bool = False) -> None:
        """Send, if the server is there; a text that is not sent now is sent at its next start."""
        sent = list(notifications)
        if not sent or self._client is None:
            return
        self._on_sent()
        for method, _ in sent:
            self._words[method.removeprefix("textDocument/").removeprefix("workspace/")] = None
        if self._server.sync.coarse:
            for method, params in sent:
                path = path_of(params.get("textDocument", {}).get("uri", ""))
                document = None if path is None else self.documents.get(path)
                if document is not None and method.endswith(("didOpen", "didChange")):
                    self._twins.given(document.path, document.text, replaced=replaced)
                elif path is not None and method.endswith("didClose"):
                    self._twins.left(path)
            self._twins.sent()
        with contextlib.suppress(ServerError):
            self._client.send(sent)

    def _language(self, path: str) -> str:
        name = beneath(self._root, path)
        return (name and self._server.language(name)) or "plaintext"


def _filled(value: Any, facts: Mapping[str, str]) -> Any:
    """A value with all braces in its texts filled; KeyError if a fact is not known."""
    if isinstance(value, str):
        return value.format_map(facts)
    if isinstance(value, dict):
        return {key: _filled(one, facts) for key, one in value.items()}
    return [_filled(one, facts) for one in value] if isinstance(value, list) else value
