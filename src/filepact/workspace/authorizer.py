"""Authorizes the changes of one call: asks the rules about each, with the risk signs that it shows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.errors import (
    BinaryFileError,
    EncodingUnsafeError,
    PathBlockedError,
    StaleFileError,
    TooLargeError,
)
from filepact.text.confusables import adds_hidden, disguises, resembles, trips_programs
from filepact.text.detect_encoding import names_encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import ExitStack

    from filepact.domain.change import FileChange
    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.policy import Action, Sign
    from filepact.text.codec import SourceText
    from filepact.workspace.guard import Guard, Location

__all__ = ["ChangePolicy"]

_RUNS = 0o111


class ChangePolicy:
    """Asks the rules about one agent's changes, and refuses at once what they deny.

    Args:
        guard: The rules.
        agent: The name that they know the agent by; empty for a person.
    """

    def __init__(self, guard: Guard, agent: str) -> None:
        self._guard = guard
        self._agent = agent
        self._asking: dict[str, str] = {}

    def find(self, path: str, *, follow: bool = True) -> Location:
        """Find the location of a path for a change; there may be a folder, or nothing.

        Args:
            path: The path as it was sent.
            follow: Whether a link at its end is followed; else the link itself is to be changed.

        Raises:
            PathBlockedError: It leads outside, or a rule denies it.
        """
        return self._guard.find(path, "write", agent=self._agent, missing="create", follow=follow)

    def show(self, path: WorkspacePath) -> str:
        """The name of a path to show, which can also be sent."""
        return self._guard.show(path.root, path.path)

    def find_file(
        self, path: str, held: Callable[[WorkspacePath], bool], *, follow: bool = True
    ) -> Location:
        """Find an existing regular file, or one that only an editor holds, for a change."""
        location = self._guard.find_file(path, "write", agent=self._agent, held=held, follow=follow)
        if location.place.kind == "missing":
            # The change makes it on the disk.
            return self.find(self._guard.meant(path), follow=follow)
        return location

    def find_again(self, location: Location, keep: ExitStack | None = None) -> Location:
        """Resolve a location again, as it is now; arguments as for `Guard.find_again`.

        Raises:
            PathBlockedError: It leads outside by now, or a rule denies where it leads.
        """
        now = self._guard.find_again(location, keep)
        if now.place.kind == "missing" and now.action == "write":
            # It was there: nobody has asked yet whether it may be made.
            return self.find(self._guard.meant(now.lookup.sent), follow=now.lookup.follow)
        return now

    def hides(self, location: Location) -> bool:
        """Whether the agent may write the file but not see its content."""
        return self._guard.hides(location.path, self._agent)

    def check_held(
        self, location: Location, held: Document, *, like: Document | None = None
    ) -> None:
        """Refuse a file for what it holds; ``like`` is what that was made from.

        Raises:
            PathBlockedError: It holds a private key.
        """
        self._guard.check_held(location.path, "write", held, agent=self._agent, like=like)

    def hides_all(self, path: WorkspacePath, held: Iterable[bytes | Document]) -> bool:
        """Whether a file's content is hidden from the agent, for its name or for a private key in it."""
        return self._guard.hides(path, self._agent, held)

    def hides_key(self, path: WorkspacePath, held: Iterable[bytes | Document]) -> bool:
        """Whether a file's content is hidden from the agent for a private key in it."""
        return self._guard.hides_key(path, self._agent, held)

    @contextmanager
    def conceal_errors(self, location: Location) -> Iterator[None]:
        """Replace errors that would reveal the content of a hidden file by one that does not.

        Raises:
            PathBlockedError: In place of an error that tells its size, its encoding or its text.
        """
        try:
            yield
        except (BinaryFileError, EncodingUnsafeError, StaleFileError, TooLargeError):
            raise PathBlockedError(
                f"{location.shown}: what it holds may not be seen, and nothing can be put into it here",
                hint="Ask the person to do this step.",
                path=location.shown,
            ) from None

    def record(
        self,
        location: Location,
        change: FileChange,
        *,
        source: Document | None = None,
        written: Document | None = None,
    ) -> None:
        """Check one change against the rules, and record it; it replaces an earlier one of the file.

        Args:
            location: Where it is made.
            change: The change.
            source: What it comes from, under this name or another.
            written: What it is to hold; None when it is removed.

        Raises:
            PathBlockedError: A rule denies it.
        """
        action = _action(change)
        signs = frozenset() if written is None else _signs(location, change, source, written)
        decision = location.decision
        if signs or action != location.action or change.path != location.path:
            decision = self._guard.permit(change.path, action, agent=self._agent, signs=signs)
        asking = [each for each in (location.decision, decision) if each.verdict == "ask"]
        self._asking.pop(location.shown, None)
        if asking:
            self._asking[location.shown] = asking[0].rule.name

    def drop(self, location: Location) -> None:
        """Forget the recorded change of one file, which will not be made."""
        self._asking.pop(location.shown, None)

    def require(self, rule: str) -> None:
        """Require a person's approval of the whole change, under the name of a rule about no file."""
        self._asking[f"\0{rule}"] = rule

    @property
    def asks(self) -> str:
        """The names of the rules that ask for a person's approval, joined by commas; empty for none."""
        return ", ".join(dict.fromkeys(self._asking.values()))


def _action(change: FileChange) -> Action:
    if change.after is None:
        return "delete"
    return "create" if change.before is None else "write"


def _signs(
    location: Location, change: FileChange, source: Document | None, written: Document
) -> frozenset[Sign]:
    """The risk signs of a change."""
    signs: set[Sign] = set()
    could_run = source.revision.mode if source is not None else 0
    if written.revision.mode & ~could_run & _RUNS:
        signs.add("executable")
    same = source is not None and source.data == written.data
    if not same and adds_hidden("" if source is None else _text_of(source), _text_of(written)):
        signs.add("hidden characters")
    if not same and _disguises(source, written):
        signs.add("encoding")
    if change.before is None:
        if trips_programs(change.path.path):
            signs.add("shell name")
        folder, _, name = change.path.path.rpartition("/")
        if not name.isascii() and resembles(name, location.root.names(folder or ".")):
            signs.add("look-alike name")
    return frozenset(signs)


def _disguises(source: Document | None, written: Document) -> bool:
    if written.data.isascii() and not names_encoding(written.data):
        return False
    sides: list[SourceText | None] = []
    for side in (source, written):
        try:
            sides.append(None if side is None else side.source)
        except BinaryFileError:
            sides.append(None)
    return sides[1] is not None and disguises(sides[0], sides[1])


def _text_of(document: Document) -> str:
    if document.data.isascii() and b"\0" not in document.data:
        return document.data.decode("ascii")
    try:
        return document.text
    except BinaryFileError:
        return ""
