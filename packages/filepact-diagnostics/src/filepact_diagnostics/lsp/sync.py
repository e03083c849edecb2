"""Synchronisation of one server with the files: what it is sent, in order, and what it is sent again.

Some servers tell texts of a file apart only by size and whole seconds.  A text as long as another
that the server may have got within the same second is *racy*, as Git says of an index entry: it has
to be sent once more when that second is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filepact_diagnostics.lsp.documents import FileWatchers, OpenDocuments, SyncProtocol
from filepact_diagnostics.lsp.failures import ServerError
from filepact_diagnostics.lsp.spec import beneath
from filepact_wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from filepact_diagnostics.lsp.client import LanguageClient
    from filepact_diagnostics.lsp.documents import DiskChange, Notification
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["DocumentSync", "RacyTexts", "ServerTurns"]

_T = TypeVar("_T")

_MOST_OPEN: Final = 40
_MOST_IDLE: Final = 1_000
"""How many documents a server holds open, and one to which they are no work, but each opening is."""
_MOST_CHANGES: Final = 5_000
_MOST_TOLD: Final = 2_000
_TICK: Final = 0.02


class DocumentSync:
    """The files as one server has them; it outlives the server's process.

    Args:
        spec: The server, whose policy counts.
        root: The folder that it serves, absolute.
        facts: Values for the braces in the server's announcements.

    Attributes:
        documents: What the server holds open.
        changes: How many changes of files it was told of.
        restart: Whether only a new start makes the server see the files as they are.
        reload: A file, absolute, whose return makes the server's `reload` command necessary; else
            None.
        blind: Why the server is known not to see the files as they are; else empty.
    """

    def __init__(self, spec: ServerSpec, root: str, facts: Mapping[str, str]) -> None:
        self._spec = spec
        self._root = root
        whole = uri_of(root)
        opened = facts.get("solution_uri", whole)
        self._facts = {"root_uri": whole, "opened_uri": opened, **facts}
        self._client: LanguageClient | None = None
        self._inbox: list[DiskChange] = []
        # Of each file, how many changes there were with its last one, and what that made of it.
        self._told: dict[str, tuple[int, int | None]] = {}
        self._told_of_others = 0
        self._behind: set[str] = (
            set()
        )  # open documents to be sent again before they are asked about
        self._racy = RacyTexts(time.time)
        self.documents = OpenDocuments(self._language)
        self._translator = SyncProtocol(spec, root, self.documents)
        self._events: dict[str, None] = {}
        self._counting = False
        self.changes = 0
        self.restart = False
        self.reload: str | None = None
        self.blind = ""

    # -- the server comes and goes --------------------------------------------------------

    def begin(self, client: LanguageClient) -> None:
        """Bring a new server to where the last one was."""
        self._client = client
        self.documents.kind = client.capabilities.sync
        self.documents.unit = client.capabilities.unit
        self._translator.reset()
        self._racy.clear()
        self._behind.clear()
        self.restart = False
        self.reload = None
        self.blind = ""
        self._send([*self._announcements(), *self.documents.reopen()])

    def end(self) -> None:
        """The server was stopped; the next one reads the disk as it is then."""
        self._client = None
        self._translator.reset()
        self.restart = False
        self._events["restart"] = None

    # -- what happened on the disk --------------------------------------------------------

    def note(self, changes: Iterable[DiskChange]) -> None:
        """Keep what happened on the disk until it is delivered."""
        new = list(changes)
        self.count_events()
        self._inbox += new
        self.changes += len(new)
        for one in new:
            for path, text in {one.old_path or one.path: None, one.path: one.text}.items():
                self._told.pop(path, None)
                self._told[path] = (self.changes, None if text is None else hash(text))
        while len(self._told) > _MOST_TOLD:
            self._told_of_others, _ = self._told.pop(next(iter(self._told)))
        if len(self._inbox) > _MOST_CHANGES:
            # A new start reads the disk as it is, and costs less than so many events.
            self._inbox.clear()
            for path in self.documents.paths:
                self.documents.close(path)
            self.restart = True

    def deliver(self) -> None:
        """Send what has happened on the disk."""
        changes, self._inbox = self._inbox, []
        if not changes:
            return
        # Without a server the documents still have to follow, for the next one.
        client, watchers, operations = self._client, FileWatchers(self._root), dict[str, Any]()
        if client is not None:
            watchers = client.capabilities.watchers
            operations = dict(client.capabilities.file_operations)
        found = self._translator.translate(changes, watchers, operations)
        sent = found.notifications
        self.restart |= found.restart
        if self._spec.sync.reload and found.back is not None:
            self.reload = found.back
        if found.repeat:
            self._behind |= set(self.documents.paths)
        if found.announce:
            again = self._announcements()
            # What cannot be announced once more only a new start finds.
            self.restart |= not again
            sent += again
        self._send(sent, replaced=True)

    # -- texts ----------------------------------------------------------------------------

    def is_outdated(self, path: str, text: str, as_of: int) -> bool:
        """Whether a file that held a text after so many changes may hold another one since."""
        count, told = self._told.get(path, (self._told_of_others, None))
        return count > as_of and told != hash(text)

    def outdated(self, files: Mapping[str, str], as_of: int) -> bool:
        """Whether one of several files may."""
        return any(self.is_outdated(path, text, as_of) for path, text in files.items())

    def show(self, files: Mapping[str, str], as_of: int | None = None) -> None:
        """Make the server see these texts, and again those that it would not look at otherwise.

        Not those of files that have changed after so many changes (`as_of`; None for proposals).
        """
        if as_of is not None:
            files = {
                path: text
                for path, text in files.items()
                if not self.is_outdated(path, text, as_of)
            }
        sent: list[Notification] = []
        for path, text in files.items():
            new = self.documents.hold(path, text)
            if new and self._spec.sync.unsaved == "repeat":
                self._behind |= set(self.documents.paths)
            if new:
                self._behind.discard(path)
            sent += new
        sent += self._repeated(self._behind & files.keys())
        self._behind -= files.keys()
        most = _MOST_IDLE if self._spec.sync.idle else _MOST_OPEN
        for path in self.documents.paths[: max(len(self.documents.paths) - most, 0)]:
            if path not in files:
                sent += self.documents.close(path)
                self._behind.discard(path)
        self._send(sent)

    def withdraw(self, proposed: Mapping[str, str], files: Mapping[str, str], as_of: int) -> None:
        """Give the server the disk's texts again; documents follow also when it is gone.

        What has changed after so many changes (`as_of`) the server reads from the disk by itself.
        """
        sent: list[Notification] = []
        for path in proposed:
            if path in files and not self.is_outdated(path, files[path], as_of):
                sent += self.documents.hold(path, files[path])
            else:
                sent += self.documents.close(path)
        if self._spec.sync.unsaved == "repeat":
            self._behind |= set(self.documents.paths)
        self._send(sent)

    def confirm(self) -> None:
        """The server has answered a request behind all that was sent."""
        self._racy.confirm()

    @property
    def racy(self) -> bool:
        """Whether the server was sent texts that it may take for earlier ones."""
        return bool(self._racy)

    async def repeat_racy(self, files: Iterable[str]) -> None:
        """Send racy texts again as soon as they can be told apart, and the files that use them."""
        await asyncio.sleep(self._racy.pause + _TICK)
        racy = self._racy.take()
        self._send([*self._repeated(racy), *self._repeated(set(files) - racy)])

    # -- the words of a receipt -----------------------------------------------------------

    def count_events(self) -> None:
        """Begin to record which notifications are sent, unless that has begun already."""
        if not self._counting:
            self._events.clear()
            self._counting = True

    def take_events(self) -> str:
        """The names of notifications sent since the last call, without their prefix."""
        self._counting = False
        return ", ".join(self._events)

    # -- parts ----------------------------------------------------------------------------

    def _announcements(self) -> list[Notification]:
        """The notifications that the server needs after its start, if all of them are known."""
        found: list[Notification] = []
        for method, params in self._spec.announce:
            try:
                found.append((method, _filled(params, self._facts)))
            except KeyError as missing:
                if self._spec.discovers:
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
        for method, _ in sent:
            self._events[method.removeprefix("textDocument/").removeprefix("workspace/")] = None
        if self._spec.sync.coarse:
            self._date(sent, replaced=replaced)
        with contextlib.suppress(ServerError):
            self._client.send(sent)

    def _date(self, sent: Iterable[Notification], *, replaced: bool) -> None:
        """Record when the server gets texts that it tells apart by date."""
        for method, params in sent:
            path = path_of(params.get("textDocument", {}).get("uri", ""))
            document = None if path is None else self.documents.get(path)
            if document is not None and method.endswith(("didOpen", "didChange")):
                self._racy.sent_text(document.path, document.text, replaced=replaced)
            elif path is not None and method.endswith("didClose"):
                self._racy.forget(path)
        self._racy.note_sent()

    def _language(self, path: str) -> str:
        name = beneath(self._root, path) or posixpath.basename(path)
        return self._spec.language(name) or "plaintext"


def _filled(value: Any, facts: Mapping[str, str]) -> Any:
    """A value with all braces in its texts filled; KeyError if a fact is not known."""
    if isinstance(value, str):
        return value.format_map(facts)
    if isinstance(value, dict):
        return {key: _filled(one, facts) for key, one in value.items()}
    return [_filled(one, facts) for one in value] if isinstance(value, list) else value


class ServerTurns:
    """Who uses a server: one after the other.

    Attributes:
        urgent: How many are waiting for it for whom somebody waits.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._hurry = asyncio.Event()
        self.urgent = 0

    @property
    def busy(self) -> bool:
        """Whether somebody uses it."""
        return self._lock.locked()

    async def acquire(self, deadline: float, *, urgent: bool = True) -> bool:
        """Wait until nobody else uses the server; False if that takes too long."""
        if not self._lock.locked():
            return await self._lock.acquire()
        self.urgent += urgent
        if urgent:
            self._hurry.set()
        try:
            async with asyncio.timeout_at(deadline):
                return await self._lock.acquire()
        except TimeoutError:
            return False
        finally:
            self.urgent -= urgent
            if not self.urgent:
                self._hurry.clear()

    def release(self) -> None:
        """Let the next one use it."""
        self._lock.release()

    async def unless_urgent(
        self, work: Coroutine[Any, Any, _T], useless: Callable[[], bool] = lambda: True
    ) -> _T | None:
        """The result of work; None, and it is left, once somebody comes for whom it is useless."""
        asking, hurry = asyncio.create_task(work), asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait({asking, hurry}, return_when=asyncio.FIRST_COMPLETED)
            return None if not asking.done() and useless() else await asking
        finally:
            hurry.cancel()
            asking.cancel()


class RacyTexts:
    """The texts that one server may take for the ones before, as it dates them.

    When it got a text is known only from both sides: not before the text was sent, and not after
    the server has answered a request behind it.

    Args:
        clock: The system's time in seconds, by which the server dates what it gets.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._got: dict[str, tuple[int | None, dict[int, str]]] = {}
        self._again: set[str] = set()
        self._answered = 0
        self._waiting = False

    def __bool__(self) -> bool:
        return bool(self._again)

    def sent_text(self, path: str, text: str, *, replaced: bool) -> None:
        """The server is sent a text.

        Args:
            path: Of the file.
            text: Its text.
            replaced: Whether the server may have had another before, unknown to the caller.
        """
        second, size = int(self._clock()), len(text.encode("utf-8", "replace"))
        known = path in self._got
        last, texts = self._got.get(path, (0, dict[int, str]()))
        if last is not None and last < second:
            texts = {}
        elif texts.get(size, text) != text:
            self._again.add(path)
        if not known and replaced and (self._waiting or self._answered >= second):
            self._again.add(path)
        self._got[path] = (None, {**texts, size: text})

    def forget(self, path: str) -> None:
        """The server reads the file from the disk again, and nothing is known of its date."""
        self._got.pop(path, None)
        self._again.discard(path)

    def note_sent(self) -> None:
        """Note that a message was sent which the server has not answered yet."""
        self._waiting = True

    def confirm(self) -> None:
        """The server has answered a request behind all that was sent."""
        self._waiting, self._answered = False, int(self._clock())
        for path, (last, texts) in self._got.items():
            if last is None:
                self._got[path] = (self._answered, texts)

    @property
    def pause(self) -> float:
        """Seconds until a text that is sent has another date than those sent so far."""
        return max(self._answered + 1 - self._clock(), 0.0)

    def take(self) -> set[str]:
        """The paths of all racy texts; sent again, they are racy no more."""
        again, self._again = self._again, set()
        return again

    def clear(self) -> None:
        """The server starts anew."""
        self._got.clear()
        self._again.clear()
        self._waiting = False
