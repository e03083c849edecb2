"""What a client says of the files that it shows, and what it is to show, for every side of ACP.

It does no asking and no telling: who talks with the client hands in what it said.  What is known of
a file is in the buffers of the workspaces.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError, InvalidParamsError, StaleFileError
from filepact.text.edit import EditList
from filepact.text.lines import Position, common_head, common_tail
from filepact.text.patch import parse
from filepact.workspace.buffers import BufferFormat, Typed, same_text, standing
from filepact.workspace.documents import merge_unsaved, with_text
from filepact_wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.document import Document, WorkspacePath
    from filepact.workspace.buffers import Buffers, BufferStatus
    from filepact.workspace.editors import BufferWriteResult
    from filepact.workspace.workspace import Workspace
    from filepact_wire.messages import Message

__all__ = [
    "PATIENCE",
    "ClientBuffers",
    "ClientWrite",
    "named_files",
    "typed_of",
    "typed_over",
]

PATIENCE: Final = 30.0
"""Seconds in which a client has to say what it shows of a file; a person is not asked for that."""

_NEXT: Final = 0.02  # seconds that the next key of somebody who types is waited for
_LONGEST: Final = 0.3  # seconds until a text goes out whoever types
_TURNS: Final = 100  # in which a text is given again with what was typed before it came
_BOM: Final = "\ufeff"


class ClientBuffers:
    """One client's texts; for all threads.

    What it shows is in the buffers of the workspaces: a text that the client has and the disk has not
    becomes one, so that every tool starts from it.

    Args:
        client: The client's name among the buffers.
        shown: The buffers of all workspaces whose files the client shows.

    Attributes:
        client: As given.
        shown: As given.
    """

    def __init__(self, client: str, shown: Buffers) -> None:
        self.client = client
        self.shown = shown
        self._versions = count(1)

    # -- what the client shows ------------------------------------------------------------

    def take(
        self, path: WorkspacePath, text: str | None, stored: Callable[[], Document | None]
    ) -> BufferStatus:
        """Take over what the client says that a file holds when it is asked.

        Args:
            path: The file's true name.
            text: Its text; None when the client has no such file.
            stored: Tells what the disk has, which is None for no file.

        Returns:
            What the text is beside what the disk has.

        Raises:
            FilepactError: What the disk has cannot be told.
        """
        buffer = self.shown.get(path)
        self.close(path)
        disk, history = stored(), self.shown.history(path)
        known = None if buffer is None else buffer.text
        found = standing(text, disk, agreed=history.agreed, known=known)
        facts: dict[str, Any] = {"absent": found.kind == "nothing"}
        if found.kind == "same":
            facts["agreed"] = disk
        elif found.base is not None:
            facts["agreed"] = found.base
        if text is not None and found.kind not in ("nothing", "doubtful", "mangled"):
            facts["style"] = BufferFormat.of(text)
        self.shown.remember(path, **facts)
        if found.kind == "doubtful":
            self.shown.doubt(path, client=self.client)
        elif text is not None and found.kind == "unsaved":
            self.shown.open(
                *(path, text.removeprefix(_BOM)),
                client=self.client,
                version=next(self._versions),
                base=found.base,
            )
        return found

    def close(self, path: WorkspacePath) -> None:
        """The client has no unsaved text of a file, or none that counts any more."""
        self.shown.close(path, client=self.client)

    def receive(self, workspace: Workspace, method: str, params: Message) -> None:
        """Take one ``document/...`` notification.

        Raises:
            FilepactError: It does not fit, or the file lies outside the workspace.
        """
        path, client = path_of(params.get("uri")), self.client
        if path is None:
            return
        text, version = params.get("text"), params.get("version")
        if method == "document/didOpen" and isinstance(text, str) and type(version) is int:
            workspace.editors.open(path, text, client=client, version=version, announced=True)
            return
        location = workspace.editors.locate(path)
        if not self.shown.announces(location.path):
            # It has been asked since, and what it shows then is not what this goes on from.
            return
        if method == "document/didChange":
            changes = params.get("contentChanges")
            if isinstance(changes, list) and type(version) is int:
                typed = list(map(typed_of, changes))
                self.shown.change(location.path, typed, client=client, version=version)
        elif method == "document/didSave":
            stored = workspace.editors.stored(location)
            self.shown.saved(location.path, client=client, base=stored)
        elif method == "document/didClose":
            self.close(location.path)

    # -- what the client is to show -------------------------------------------------------

    def in_style(self, path: WorkspacePath, text: str) -> str:
        """A text of a file as the client shows such texts."""
        return self.shown.history(path).style.apply(text)

    def joined(
        self, workspace: Workspace, meant: Document, text: str | None, *, agent: str
    ) -> Document:
        """A file's new text with what was typed since the client last said what it shows.

        Args:
            workspace: Has the file.
            meant: What the client is to be given.
            text: What it shows at this moment; None for no such file.
            agent: The name that rules know the agent by, who is told what is in the way.

        Returns:
            The same document where nothing was typed.

        Raises:
            StaleFileError: It was typed in the same lines.
            EncodingUnsafeError: Nobody can know what was typed, or the file's encoding cannot hold
                it.
        """
        path, buffer = meant.path, self.shown.get(meant.path)
        before = self.shown.history(path).agreed
        if buffer is not None and buffer.is_unsaved:
            with suppress(FilepactError):
                before = workspace.editors.shown(path) or before
        if text is None or (before is None and not text):
            return meant
        if before is not None and same_text(text, before):
            return meant
        found = standing(text, meant, agreed=before)
        if found.kind == "unsaved":
            if before is None:
                raise typed_over(path)
            with suppress(FilepactError):
                both = merge_unsaved(meant, before, text.removeprefix(_BOM))
                if both is not None:
                    return both
        elif found.kind != "doubtful":
            return meant
        self.take(path, text, lambda: meant)
        try:
            # It refuses for the same reason, and shows what was typed to whom may see it.
            workspace.editors.merge(path, agent=agent)
        finally:
            self.close(path)
        raise typed_over(path)

    def settle(
        self, workspace: Workspace, meant: Document, operation: str, over: Document | None
    ) -> BufferWriteResult | None:
        """See what the client made of a file that it was given to write.

        The same text in other bytes, such as other line ends, is put back as the file had it.

        Args:
            workspace: Has the file.
            meant: What the client was given.
            operation: What made it so; empty where nothing in the journal did.
            over: What the disk had, where the client was given more, since somebody typed.

        Returns:
            What the disk has; None where that cannot be found out.
        """
        self.close(meant.path)
        left = None
        try:
            left = workspace.editors.check_saved(
                meant, client=self.client, operation=operation, over=over
            )
        except FilepactError:
            left = None
        self.shown.remember(meant.path, absent=False)
        if left is not None:
            self.shown.remember(meant.path, agreed=left.document)
        return left


class ClientWrite:
    """One text on its way to a client in which somebody may be typing, until it has all of both.

    The protocol has no "only if unchanged": a client takes a text in place of whatever it shows by then.  So
    it is asked once more together with the new text, and answers with what that replaces.  What was
    typed until then is given to it again.

    While ``waits``, ask the client what it shows and say it to `looked`.  Then give it ``text``; where
    ``asks``, with a question for what it shows right before that, whose answer is for `given`.  Again
    until that is True.

    Args:
        meant: The file as it is to be.
        styled: A text of the file as the client shows such texts.
        showed: What the client showed when that was made; None where it was not asked.
        typing: Whether somebody has typed while it was made.

    Attributes:
        meant: The file as it is to be, with what was typed.
        text: Its text for the client.
    """

    def __init__(
        self,
        meant: Document,
        styled: Callable[[str], str],
        showed: str | None,
        *,
        typing: bool,
    ) -> None:
        self._styled = styled
        self._showed = showed
        self._turns = 0
        self.meant, self.text = meant, styled(meant.text)
        self._wait() if typing else self._go()

    def _go(self) -> None:
        self._until = self._last = self._key = 0.0

    def _wait(self) -> None:
        """Somebody types: right after a key is the longest time before the next."""
        self._key = self._last = now = time.monotonic()
        self._until, self._end = now + _NEXT, now + _LONGEST

    @property
    def waits(self) -> bool:
        """Whether the client is to be asked before it is given the text."""
        return self.asks and time.monotonic() < self._until

    @property
    def asks(self) -> bool:
        """Whether it is to be asked with the text as well; they who never pause get it without."""
        return self._showed is not None and self._turns < _TURNS

    @property
    def was_given(self) -> bool:
        """Whether the client has had the text once, in place of what it showed."""
        return self._turns > 0

    def looked(self, seen: str | None) -> None:
        """Take what the client shows before it was given the text; None for no answer.

        Raises:
            StaleFileError: The same characters were changed; the client shows them.
        """
        if seen is None:
            self._go()
            return
        before, self._last = self._last, time.monotonic()
        if seen != self._showed:
            self._take(seen)
            # A key that was seen late tells little of when the next comes.
            now = time.monotonic()
            if 4 * (now - before) < now - self._key:
                self._go()
            else:
                self._key, self._until = now, min(now + _NEXT, self._end)

    def given(self, seen: str | None) -> bool:
        """Take what the client showed before it had the text; whether nothing of that is missing now.

        Raises:
            StaleFileError: The same characters were changed; the client does not show them any more.
        """
        self._turns += 1
        if seen is None or self._showed is None or not _is_typed(seen, self._showed, self.text):
            return True
        given = self.text
        self._take(seen)
        self._showed = given
        self._wait()
        return False

    def _take(self, seen: str) -> None:
        """Make what was typed in the text that the client showed in the text for it as well."""
        showed = self._showed or ""
        typed = EditList.between(showed, seen).trim(showed)
        moved = typed.following(EditList.between(showed, self.text).trim(showed))
        if moved is None:
            raise typed_over(self.meant.path)
        both = moved.apply(self.text).removeprefix("\ufeff")
        with suppress(FilepactError):
            self.meant = with_text(self.meant, both)
            self.text, self._showed = self._styled(self.meant.text), seen
            return
        raise typed_over(self.meant.path)


def typed_over(path: WorkspacePath) -> StaleFileError:
    """The error for a new text where somebody has just typed another one."""
    return StaleFileError(
        f"{path.path}: somebody typed in it just now",
        hint="Nothing was changed. Read the file again and make the change for what it holds now.",
        path=path.path,
    )


def _is_typed(seen: str, showed: str, given: str) -> bool:
    """Whether a text that was asked for right before another was given has what neither has.

    An editor may read the disk while it writes there: the beginning of the new text, or that and the rest
    of the old one, is no typing.  One that answers out of order shows what was typed into the new
    text, where it stays.
    """
    if "\ufffd" in seen and "\ufffd" not in showed + given:
        return False
    if seen == showed or given.startswith(seen):
        return False
    if len(seen) == len(showed) and common_head(seen, given) + common_tail(seen, showed) >= len(
        seen
    ):
        return False
    return _gone(showed, seen) <= _gone(given, seen)


def _gone(before: str, after: str) -> int:
    """How many characters of a text at the most are not in another one that came of it."""
    head = common_head(before, after)
    return len(before) - head - common_tail(before[head:], after[head:])


def typed_of(change: object) -> Typed:
    """One of the ``contentChanges`` of a notification.

    Raises:
        InvalidParamsError: It is none.
    """
    fields = change if isinstance(change, dict) else {}
    text, where = fields.get("text"), fields.get("range")
    if not isinstance(text, str):
        raise InvalidParamsError("a change needs a text")
    if where is None:
        return Typed(text)
    try:
        start, end = (_position(where[side]) for side in ("start", "end"))
    except (LookupError, TypeError):
        raise InvalidParamsError("a change's range needs a start and an end") from None
    return Typed(text, start, end)


def _position(place: Message) -> Position:
    line, character = place["line"], place["character"]
    if type(line) is not int or type(character) is not int:
        raise TypeError
    return Position(line, character)


_BY_PATH = frozenset({"read_file", "write_file", "edit_file", "grep", "patch_apply"})


def named_files(tool: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
    """The paths that a call names, as they were sent; a reader and a patch may name many.

    Arguments that the tool will refuse name nothing.
    """
    path = arguments.get("path")
    if isinstance(path, str) and path:
        return (path,) if tool in _BY_PATH else ()
    paths = arguments.get("paths")
    if tool == "read_file" and isinstance(paths, list):
        return tuple(dict.fromkeys(name for name in paths if isinstance(name, str) and name))
    patch = arguments.get("patch")
    if tool != "patch_apply" or not isinstance(patch, str):
        return ()
    try:
        parts = parse(patch)
    except FilepactError:
        return ()
    names = (name for part in parts for name in (part.old_path, part.new_path))
    return tuple(dict.fromkeys(name for name in names if name))
