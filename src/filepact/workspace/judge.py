"""What the rules say about the changes of one call, with what shows on each of them."""

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
from filepact.text.declared import names_encoding
from filepact.text.disguise import disguises
from filepact.text.hidden import adds_hidden
from filepact.text.lookalike import resembles
from filepact.text.tripping import trips_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.change import FileChange
    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.policy import Action, Sign
    from filepact.text.codec import SourceText
    from filepact.workspace.guard import Guard, Spot

__all__ = ["Judge"]

_RUNS = 0o111


class Judge:
    """The verdicts about one agent's changes; what is denied is refused at once.

    Args:
        guard: The rules.
        agent: The name that they know the agent by; empty for a person.
    """

    def __init__(self, guard: Guard, agent: str) -> None:
        self._guard = guard
        self._agent = agent
        self._asking: dict[str, str] = {}

    def find(self, path: str, *, follow: bool = True) -> Spot:
        """The place that a path leads to, for a change; what is there need not be a file.

        Args:
            path: The path as it was sent.
            follow: Whether a link at its end is followed; else the link itself is to be changed.

        Raises:
            PathBlockedError: It leads outside, or a rule denies it.
        """
        return self._guard.find(path, "write", agent=self._agent, missing="create", follow=follow)

    def show(self, path: WorkspacePath) -> str:
        """A path as it is shown, and as it can be sent."""
        return self._guard.show(path.root, path.path)

    def find_file(self, path: str, held: Callable[[WorkspacePath], bool]) -> Spot:
        """The same for what has to be an existing regular file, or one that an editor holds."""
        return self._guard.find_file(path, "write", agent=self._agent, held=held)

    def meant(self, path: str) -> str:
        """What a name of something that is there stands for."""
        return self._guard.meant(path)

    def hides(self, spot: Spot) -> bool:
        """Whether the agent may write the file but not see what it holds."""
        return self._guard.hides(spot.path, self._agent)

    def check_held(self, spot: Spot, data: bytes) -> None:
        """Refuse a file for what it holds.

        Raises:
            PathBlockedError: It holds a private key.
        """
        self._guard.check_held(spot.path, "write", data, agent=self._agent)

    def check_open(self, spot: Spot) -> None:
        """Refuse a change that depends on what a file holds where that may not be seen.

        Whether an edit fits would tell it, piece by piece.

        Raises:
            PathBlockedError: It may not be seen.
        """
        if self.hides(spot):
            raise PathBlockedError(
                f"{spot.shown}: what it holds may not be seen, so it cannot be edited in part",
                hint="Give it a whole new text with write_file; a person is asked first.",
                path=spot.shown,
            )

    @contextmanager
    def untold(self, spot: Spot, *, hidden: bool) -> Iterator[None]:
        """What goes wrong for what a hidden file holds is told as no more than that.

        Raises:
            PathBlockedError: In place of an error that tells its size, its encoding or its text.
        """
        try:
            yield
        except (BinaryFileError, EncodingUnsafeError, StaleFileError, TooLargeError):
            if not hidden:
                raise
            raise PathBlockedError(
                f"{spot.shown}: what it holds may not be seen, and nothing can be put into it here",
                hint="Ask the person to do this step.",
                path=spot.shown,
            ) from None

    def hear(
        self,
        spot: Spot,
        change: FileChange,
        *,
        source: Document | None = None,
        written: Document | None = None,
    ) -> None:
        """Take in one change, in place of an earlier one of the same file.

        Args:
            spot: Where it is made.
            change: The change.
            source: What it comes from, under this name or another.
            written: What it is to hold; None when it is removed.

        Raises:
            PathBlockedError: A rule denies it.
        """
        decision = self._guard.permit(
            change.path,
            _action(change),
            agent=self._agent,
            signs=frozenset() if written is None else _signs(spot, change, source, written),
        )
        asking = [each for each in (spot.decision, decision) if each.verdict == "ask"]
        self._asking.pop(spot.shown, None)
        if asking:
            self._asking[spot.shown] = asking[0].rule.name

    def drop(self, spot: Spot) -> None:
        """Forget the change of one file, which came to nothing."""
        self._asking.pop(spot.shown, None)

    def require(self, rule: str) -> None:
        """Have a person asked about all of it, in the name of a rule that is about no file."""
        self._asking[f"\0{rule}"] = rule

    @property
    def asks(self) -> str:
        """The names of the rules that want a person's approval; empty when none does."""
        return ", ".join(dict.fromkeys(self._asking.values()))


def _action(change: FileChange) -> Action:
    if change.after is None:
        return "delete"
    return "create" if change.before is None else "write"


def _signs(
    spot: Spot, change: FileChange, source: Document | None, written: Document
) -> frozenset[Sign]:
    """What shows on a change."""
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
        if not name.isascii() and resembles(name, spot.root.names(folder or ".")):
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
