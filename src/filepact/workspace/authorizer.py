"""Authorizes the changes of one call: asks the rules about each, with the risk signs that it shows."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filepact.domain.operation import PREVIEW_MODE, Approval
from filepact.domain.policy import AccessRequest
from filepact.errors import (
    BinaryFileError,
    EncodingUnsafeError,
    FilepactError,
    PathBlockedError,
    StaleFileError,
    TooLargeError,
)
from filepact.fs.read import FileInfo
from filepact.text.confusables import adds_hidden, disguises, resembles, trips_programs
from filepact.text.detect_encoding import names_encoding
from filepact.values import replace
from filepact.workspace.folder_steps import turning_above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import ExitStack

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.domain.permission_log import SessionApproval
    from filepact.domain.policy import Action, Sign
    from filepact.fs.root import Root
    from filepact.text.codec import SourceText
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.location import Location, Name

__all__ = ["ChangePolicy", "SessionPermissions", "rules_on"]

_RUNS = 0o6111
"""Whoever runs a file runs it, with the last two as somebody else."""
_PRINTED = bytes(range(0x20, 0x7F)) + b"\t\n\r"


class SessionPermissions:
    """The permissions that a person has given a session, and those that a call has used.

    Args:
        store: The journal, which is asked when a rule asks.
        session: Whose.

    Attributes:
        used: By its id, what was needed.
    """

    def __init__(self, store: JournalStore, session: Session) -> None:
        self._store = store
        self._session = session
        self._found: tuple[SessionApproval, ...] | None = None
        self.used: dict[str, SessionApproval] = {}

    def allows(self, path: WorkspacePath, rule: str) -> bool:
        """Whether a person has allowed what a rule asks about a file."""
        if self._found is None:
            every = self._store.session_approvals(self._session.id) if self._session.agent else ()
            now = self._store.now() if every else 0.0
            self._found = tuple(
                one
                for one in every
                if one.session.actor == self._session.actor and one.in_force(now)
            )
        from filepact.text.glob import compile_filter  # noqa: PLC0415 - few rules ask

        for one in self._found:
            same = rule in one.rules and one.root == path.root
            if same and compile_filter(one.pattern)(path.path):
                self.used[one.id] = one
                return True
        return False

    def preview(self, paths: Iterable[WorkspacePath]) -> str:
        """The rule by which a change waits where every change does; empty where it is allowed."""
        return "" if all(self.allows(one, PREVIEW_MODE) for one in paths) else PREVIEW_MODE

    @property
    def approval(self) -> Approval | None:
        """The person's word for what was allowed; None where nobody needed to be asked."""
        if not self.used:
            return None
        first = next(iter(self.used.values()))
        names = ", ".join(f"{one.id} for {one.pattern}" for one in self.used.values())
        return Approval(
            replace(
                self._session.actor, kind="person", name=first.by, version=f"in advance ({names})"
            )
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for the author."""
        return tuple(
            f"A person has approved changes of {one.pattern} in advance for this session ({one.id})."
            for one in self.used.values()
        )


class ChangePolicy:
    """Asks the rules about one agent's changes, and refuses at once what they deny.

    Args:
        guard: The rules.
        agent: The name that they know the agent by; empty for a person.
        granted: What a person has allowed in advance; None for nothing.
    """

    def __init__(self, guard: Guard, agent: str, granted: SessionPermissions | None = None) -> None:
        self._guard = guard
        self._agent = agent
        self._granted = granted
        self._asking: dict[str, str] = {}

    def find(self, path: Name, *, follow: bool = True) -> Location:
        """Find the location of a path for a change; there may be a folder, or nothing.

        Args:
            path: The path as it was sent, or a true name.
            follow: Whether a link at its end is followed; else the link itself is to be changed.

        Raises:
            PathBlockedError: It leads outside, or a rule denies it.
        """
        return self._guard.find(path, "write", agent=self._agent, missing="create", follow=follow)

    def recent(self, paths: Iterable[Name]) -> dict[Name, Location]:
        """Where names led that were files' true names when they were looked for last."""
        found = {path: self._guard.recent(path, "write", self._agent) for path in paths}
        return {path: one for path, one in found.items() if one is not None}

    def locate(self, path: WorkspacePath, coming: frozenset[WorkspacePath]) -> Location:
        """The location of a change of a true name, which may lie in a folder that is yet to come, as of `ChangeSet.coming`.

        Raises:
            PathBlockedError: It leads outside, or a rule denies it.
        """
        way = turning_above(path, coming)
        if way is None:
            return self.find(self._sendable(path), follow=False)
        above = self.find(self.show(way), follow=False)
        place = FileInfo(path.path, "missing", above.place.lock_key)
        return replace(above, place=place, shown=self.show(path))

    def _sendable(self, path: WorkspacePath) -> Name:
        """A true name as it would be sent; one that could not be, and is there, or is shown in escapes, as it is."""
        if not path.path.isprintable():
            without_bytes = path.path.encode("utf-8", "surrogateescape").decode("utf-8", "ignore")
            if without_bytes.isprintable():
                return path
            with suppress(FilepactError):
                root = self._guard.root_of(path.root)
                if root.place(path.path, follow=False, known=True).kind != "missing":
                    return path
        return self.show(path)

    def show(self, path: WorkspacePath) -> str:
        """The name of a path to show, which can also be sent."""
        return self._guard.show(path.root, path.path)

    def find_file(
        self, path: Name, held: Callable[[WorkspacePath], bool], *, follow: bool = True
    ) -> Location:
        """Find an existing regular file, or one that only an editor holds, for a change."""
        location = self._guard.find_file(path, "write", agent=self._agent, held=held, follow=follow)
        if location.place.kind == "missing":
            # The change makes it on the disk.
            return self.find(self._meant(path), follow=follow)
        return location

    def _meant(self, path: Name) -> Name:
        return self._guard.meant(path) if isinstance(path, str) else path

    def find_again(self, location: Location, keep: ExitStack | None = None) -> Location:
        """Resolve a location again, as it is now; arguments as for `Guard.find_again`.

        Raises:
            PathBlockedError: It leads outside by now, or a rule denies where it leads.
        """
        now = self._guard.find_again(location, keep)
        if now.place.kind == "missing" and now.action == "write":
            # It was there: nobody has asked yet whether it may be made.
            name = now.path if now.lookup.known else self._guard.meant(now.lookup.sent)
            return self.find(name, follow=now.lookup.follow)
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
                f"{location.shown}: its content may not be seen, and it cannot be written here",
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
        ends: str = "",
    ) -> None:
        """Check one change against the rules, and record it; it replaces an earlier one of the file.

        Args:
            location: Where it is made.
            change: The change.
            source: What it comes from, under this name or another.
            written: What it is to hold; None when it is removed, or a folder.
            ends: How the lines of a new file are to end; empty for any way.

        Raises:
            PathBlockedError: A rule denies it.
        """
        action = change.action
        signs: frozenset[Sign] = frozenset()
        if written is not None:
            signs = _signs(location, change, source, written, ends)
        elif action == "create" and _looks_alike(location.root, change.path.path):
            signs = frozenset({"look-alike name"})
        found = (one for one in (source, written) if one is not None)
        contents = {one.revision.content: one.data for one in found}
        # A link steers by its own name as well.
        if location.decision.rule.spares and location.lookup.relative == change.path.path:
            signs |= self._guard.signs_of(change, contents.__getitem__, agent=self._agent)
        decision = location.decision
        if signs or action != location.action or change.path != location.path:
            decision = self._guard.permit(change.path, action, agent=self._agent, signs=signs)
        voices = [decision] if "harmless" in signs else [location.decision, decision]
        asking = [each for each in voices if each.verdict == "ask"]
        if asking and not signs and self._allowed(location, change.path, action):
            asking = []
        self._asking.pop(location.shown, None)
        if asking:
            self._asking[location.shown] = asking[0].rule.name

    def _allowed(self, location: Location, path: WorkspacePath, action: Action) -> bool:
        """Whether a person has allowed in advance what any rule asks about a file."""
        if self._granted is None or path != location.path:
            return False
        rules: set[str] = set()
        for one in {action, location.action}:
            rules |= self._guard.policy.asking(
                AccessRequest(path.root, path.path, one, self._agent)
            )
        return bool(rules) and all(self._granted.allows(path, one) for one in sorted(rules))

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


def rules_on(guard: Guard, changes: ChangeSet, contents: Mapping[str, bytes], *, agent: str) -> str:
    """The names of the rules that ask about changes as they are really made, joined by commas; empty for none.

    Raises:
        PathBlockedError: A rule denies one.
    """
    asking: list[str] = []
    for one in changes.changes:
        signs = guard.signs_of(one, contents.__getitem__, agent=agent)
        decision = guard.permit(one.path, one.action, agent=agent, signs=signs)
        asking += [decision.rule.name] * (decision.verdict == "ask")
    return ", ".join(dict.fromkeys(asking))


def _signs(
    location: Location, change: FileChange, source: Document | None, written: Document, ends: str
) -> frozenset[Sign]:
    """The risk signs of a change."""
    signs: set[Sign] = set()
    could_run = source.revision.mode if source is not None else 0
    if written.revision.mode & ~could_run & _RUNS:
        signs.add("executable")
    same = source is not None and source.data == written.data
    before = ends if source is None else _text_of(source)
    if not same and adds_hidden(before, _text_of(written)):
        signs.add("hidden characters")
    named = not written.data.isascii() or names_encoding(written.data)
    if not same and named and _disguises(source, written):
        signs.add("encoding")
    if change.before is None:
        if trips_programs(change.path.path):
            signs.add("shell name")
        if _looks_alike(location.root, change.path.path):
            signs.add("look-alike name")
    return frozenset(signs)


def _looks_alike(root: Root, path: str) -> bool:
    """Whether a new file, or a folder that is made for it, has a name that looks like one beside it."""
    parts = path.split("/")
    for at, name in enumerate(parts):
        if name.isascii() and " " not in name:
            continue
        beside = root.names("/".join(parts[:at]) or ".")
        if name not in beside and resembles(name, beside):
            return True
    return False


def _disguises(source: Document | None, written: Document) -> bool:
    sides: list[SourceText | None] = []
    for side in (source, written):
        try:
            sides.append(None if side is None else side.source)
        except BinaryFileError:
            sides.append(None)
    # Programs read what a binary file names as well.
    return names_encoding(written.data) if sides[1] is None else disguises(sides[0], sides[1])


def _text_of(document: Document) -> str:
    """The text of a file for the signs in it; what is no text, but looks like it, has no fewer of them."""
    if document.data.isascii() and b"\0" not in document.data:
        return document.data.decode("ascii")
    try:
        return document.text
    except BinaryFileError:
        mostly = 2 * len(document.data.translate(None, _PRINTED)) <= document.size
        return document.data.decode("utf-8", "surrogateescape") if mostly else ""
