"""The guard: resolves a path that somebody sent to a location that may be used, or refuses it.

Every name goes through here: its form is checked, its root found, the rules asked for the name
as it was sent, the kernel resolves it once, and the rules are asked again for what it led to.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, suppress
from functools import partial
from posixpath import dirname, join, split
from typing import TYPE_CHECKING

from filepact.domain.document import RootId, SecretSearch, WorkspacePath
from filepact.domain.policy import AccessRequest, Decision, EntryFilter, Policy
from filepact.domain.protected import (
    BUILT_IN_RULES,
    SIGN_RULES,
    is_repository,
    may_be_inside,
    steers_git,
)
from filepact.errors import ApprovalRequiredError, FilepactError, NotFoundError, PathBlockedError
from filepact.fs.mounts import rest_below
from filepact.fs.path_form import check_form, is_beneath
from filepact.fs.read import look_at
from filepact.values import replace
from filepact.workspace.location import (
    Location,
    NameRequest,
    RuleFilter,
    check_is_file,
    not_there,
    unescaped,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Document
    from filepact.domain.policy import Action, Sign
    from filepact.fs.read import FileInfo
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.root import Root
    from filepact.workspace.location import Name

__all__ = ["Guard"]

_PUT_BACK = (("built-in", "version control internals"), ("built-in", "own files"))
_KEPT = ("built-in", "version control settings")
_MOST_PLAIN = 4_096
"""Names that were found to be their files' true ones, and are remembered."""


class Guard:
    """The roots of a workspace and the rules over them.

    Attributes:
        by_path: The roots by their true paths.
        narrowed: The folders that the client shares, each with its root's path; empty for all.
        moves_whole: Whether a folder may be moved as one change; a shared workspace has files only.

    Args:
        roots: The folders that may be used, the working folder first.
        policy: Every rule in force.
        net: Whether files are looked through for private keys, and hits of searches for tokens.
        bumps: Whether no rule asks where a manifest only names another version of what is in it already.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        *,
        policy: Policy | None = None,
        net: bool = True,
        bumps: bool = False,
    ) -> None:
        self.roots = tuple(roots)
        self.by_path = {root.path: root for root in reversed(self.roots)}
        for root in self.roots:
            root.may_change = partial(self._may_change, root)
        self.policy = Policy((*BUILT_IN_RULES, *SIGN_RULES)) if policy is None else policy
        self.net, self._bumps = net, bumps
        # A folder that was named as a root of its own goes before one that it lies in.
        self._inner_first = sorted(self.roots, key=lambda root: -len(root.path))
        self.narrowed: tuple[tuple[RootId, str], ...] = ()
        self._shared: tuple[str, ...] = ()
        self.moves_whole = True
        self._start: tuple[Root, str] = (self.roots[0], ".")
        self._secrets = SecretSearch()
        self._plain: dict[tuple[Name, str, Action], Location] = {}

    # -- names ----------------------------------------------------------------------------

    def find(
        self,
        path: Name,
        action: Action,
        *,
        agent: str = "",
        missing: Action | None = None,
        follow: bool = True,
        keep: ExitStack | None = None,
        back: bool = False,
    ) -> Location:
        """Resolve a path for one action.

        Args:
            path: The path as it was sent, or a true name, such as one from the journal.
            action: What is to be done.
            agent: The name that rules know the agent by.
            missing: What is to be done instead where nothing is; the rules are asked for both.
            follow: Whether a link is followed at the end of the path; else the link itself is meant.
            keep: Keeps open what it leads to, unless that is a link itself.
            back: As for `permit`.

        Raises:
            PathBlockedError: It leads outside, or a rule protects it.
        """
        plain = self._plain
        if isinstance(path, WorkspacePath):
            root, relative = self.root_of(path.root), path.path
            sent = self.show(path.root, path.path)
        else:
            sent = check_form(path)
            root, relative = self._split(sent if missing is not None else self.meant(sent))
            if "\\" in relative:
                relative = unescaped(root, relative)
        known = back or isinstance(path, WorkspacePath)
        lookup = NameRequest(root, relative, sent, action, agent, missing, follow, known)
        # The name as sent may be a link's: a rule about either name protects the file.
        asked = self._decide(AccessRequest(root.path, relative, action, agent), sent, back=back)
        held = None
        if keep is not None and follow:
            # Of the folder of what is only read nothing has to be known.
            held = root.hold_in_one_step(relative) if action == "read" else None
            held = keep.enter_context(closing(held or root.hold(relative, known=known)))
        place = root.place(relative, follow=follow, known=known) if held is None else held.info
        found = self._resolved(lookup, place, asked, held)
        # Where names start in a folder, what one is meant for may depend on what is there.
        fixed = self._start == (self.roots[0], ".") or str(path).startswith("/")
        if fixed and follow and not back and place.kind == "file" and place.path == relative:
            if len(plain) >= _MOST_PLAIN:
                plain.clear()
            plain[path, agent, action] = found if held is None else replace(found, held=None)
        return found

    def find_again(self, location: Location, keep: ExitStack | None = None) -> Location:
        """Resolve the same name once more, for example under the lock of the file.

        The rules are pure, so they are asked again only where it leads elsewhere by now, or where
        something was made or removed.

        Args:
            location: Where it led before.
            keep: Keeps open what it leads to now, unless that is a link itself.

        Raises:
            PathBlockedError: It leads outside by now, or to what a rule protects.
        """
        lookup, before = location.lookup, location.place
        held = None
        if keep is not None and lookup.follow:
            held = keep.enter_context(
                closing(lookup.root.hold(lookup.relative, known=lookup.known))
            )
            place = held.info
        else:
            place = lookup.root.place(lookup.relative, follow=lookup.follow, known=lookup.known)
        if place.path == before.path and (place.kind == "missing") == (before.kind == "missing"):
            if self.narrowed:
                self._check_narrowed(lookup.root, place.path, lookup.sent)
            return replace(location, place=place, held=held)
        request = AccessRequest(lookup.root.path, lookup.relative, lookup.action, lookup.agent)
        return self._resolved(lookup, place, self._decide(request, lookup.sent), held)

    def _resolved(
        self, lookup: NameRequest, place: FileInfo, asked: Decision, held: OpenFile | None = None
    ) -> Location:
        """Ask the rules about the place that a name led to.

        Args:
            lookup: The name.
            place: Where it leads.
            asked: What the rules said of the name itself.
            held: The place, if it is kept open.
        """
        root, path, agent, action = lookup.root, place.path, lookup.agent, lookup.action
        resolved = asked
        if path != lookup.relative:
            resolved = self._decide(AccessRequest(root.path, path, action, agent), lookup.sent)
        if self.narrowed:
            self._check_narrowed(root, path, lookup.sent)
        if lookup.missing is not None and place.kind == "missing":
            action = lookup.missing
            request = AccessRequest(root.path, lookup.relative, action, agent)
            asked = self._decide(request, lookup.sent)
            resolved = self._decide(AccessRequest(root.path, path, action, agent), lookup.sent)
        decision = asked if asked.verdict == "ask" else resolved
        near, shown = partial(self._near, root, path, agent), self.show(root.path, path)
        return Location(root, place, shown, decision, action, lookup, near, held)

    def find_file(
        self,
        path: Name,
        action: Action,
        *,
        agent: str = "",
        held: Callable[[WorkspacePath], bool] = lambda _path: False,
        follow: bool = True,
        keep: ExitStack | None = None,
    ) -> Location:
        """Resolve a path that must be an existing regular file, or one that an editor holds.

        Arguments as for `find`; ``held`` tells whether an editor has a file that is not on the disk.

        Raises:
            NotFoundError: There is nothing.
            NotAFileError: It is a folder.
            PathBlockedError: It is neither file nor folder, or may not be used.
        """
        location = self.find(path, action, agent=agent, follow=follow, keep=keep)
        if location.place.kind == "file":
            return location
        if location.place.kind == "missing" and not held(location.path):
            advice = f"Look for the name with search_files; relative paths start at {self.start}."
            sent = location.as_sent(path)
            raise not_there(location, f"{sent}: no such file", advice, path=sent)
        check_is_file(location, location.as_sent(path))
        return location

    def open_file(
        self,
        path: Name,
        *,
        agent: str = "",
        held: Callable[[WorkspacePath], bool] = lambda _path: False,
    ) -> Location:
        """Resolve as `find_file` a path that is to be read, and keep open what it leads to; the caller closes it.

        What the form of a name says, and the rules about it, does not change; what it leads to is asked each time.  So
        a name that was its file's true name before is only resolved, in one step, in which it cannot be anything else.
        Whatever stands in the way of that is for the long way.

        Arguments and errors as of `find_file`.
        """
        if (before := self.recent(path, "read", agent)) is not None:
            opened = before.root.hold_in_one_step(before.path.path)
            if opened is not None:
                lookup, decision = before.lookup, before.decision
                found = Location(
                    before.root, opened.info, before.shown, decision, "read", lookup, held=opened
                )
                vars(found)["path"] = before.path
                return found
        with ExitStack() as keep:
            found = self.find_file(path, "read", agent=agent, held=held, keep=keep)
            keep.pop_all()
        return found

    def recent(self, path: Name, action: Action, agent: str) -> Location | None:
        """Where a name led that was a file's true name; it may lead elsewhere by now."""
        return self._plain.get((path, agent, action))

    def _near(self, root: Root, path: str, agent: str) -> tuple[str, ...]:
        """Names of what is there and may be seen that a name may have been meant for."""
        from filepact.workspace.find import near_names  # noqa: PLC0415 - a server answers before it needs it

        found = near_names(root, path, self.listing(root, "read", agent=agent))
        return tuple(
            self.show(root.path, one.rstrip("/")) + "/" * one.endswith("/") for one in found
        )

    @property
    def start(self) -> str:
        """The folder at which relative names start, absolute."""
        return _absolute(self._start[0].path, self._start[1])

    def meant(self, path: str) -> str:
        """Interpret a name of something that exists.

        Where a client works in a folder below the first root, names that start there go first.  Who
        was told of the root before that may count from it: such a name is understood where
        nothing else has it.  Nothing is ever made by such a name.
        """
        root, folder = self._start
        first = self.roots[0]
        if path.startswith("/") or (root is first and folder == "."):
            return path
        whole = os.path.normpath(path)
        if not any(
            id_ == first.path and is_beneath(whole, inside) for id_, inside in self.narrowed
        ):
            return path
        there = root.place(_joined(folder, path or "."), follow=False).kind != "missing"
        if there or first.place(path, follow=False).kind == "missing":
            return path
        return _absolute(first.path, path)

    def show(self, root: RootId, path: str) -> str:
        """A canonical path as people and agents see it, and as it can be sent."""
        start, folder = self._start
        if root == start.path and folder == ".":
            return path
        if root == start.path and is_beneath(path, folder):
            return path[len(folder) + 1 :] or "."
        return _absolute(root, path)

    def inside(self, path: str) -> tuple[Root, str] | None:
        """The innermost root that an absolute path lies in, and its name there.

        It may name a folder above the root otherwise: through a link, or where it is mounted twice.
        """
        for root in self._inner_first:
            if is_beneath(path, root.path):
                return root, path[len(root.path) :].lstrip("/") or "."
        above, name = split(path.rstrip("/"))
        true = join(look_at(above).path, name)
        for root in self._inner_first:
            if (rest := rest_below(true, root.identity)) is not None:
                return root, rest
        return None

    def root_of(self, root: RootId) -> Root:
        """The open root of a path in the journal."""
        if (found := self.by_path.get(root)) is not None:
            return found
        raise PathBlockedError(
            f"{root} is not one of the folders in use", hint="Name that folder as a root as well."
        )

    def permit(
        self,
        path: WorkspacePath,
        action: Action,
        *,
        agent: str = "",
        signs: frozenset[Sign] = frozenset(),
        back: bool = False,
    ) -> Decision:
        """Ask the rules about a canonical path, such as one from the journal.

        With ``back`` a person takes back what was done there: what no program may change is put back
        as well, unless a person or an administrator has forbidden it.

        Raises:
            PathBlockedError: A rule denies it.
        """
        root = self.root_of(path.root)
        if self.narrowed:
            self._check_narrowed(root, path.path, path.path)
        request = AccessRequest(path.root, path.path, action, agent, signs)
        return self._decide(request, self.show(path.root, path.path), back=back)

    def signs_of(
        self, change: FileChange, content: Callable[[str], bytes], *, agent: str
    ) -> frozenset[Sign]:
        """Whether a change of a manifest is harmless, as a sign for the rules; none for any other.

        Args:
            change: As it is really made, or was.
            content: The bytes of its states.
            agent: Who makes it.
        """
        before, after = change.before, change.after
        if before is None or after is None or before.is_link or before != before.compared:
            return frozenset()
        if self.policy.decide(AccessRequest(*change.path, "write", agent)).rule.spares is None:
            return frozenset()
        from filepact.domain.harmless import is_harmless  # noqa: PLC0415 - few files are manifests

        try:
            old, new = content(before.content), content(after.content)
        except (KeyError, NotFoundError):
            return frozenset()
        same = after == before.with_bytes(new)
        harmless = same and is_harmless(change.path.path, old, new, bumps=self._bumps)
        return frozenset({"harmless"} if harmless else ())

    def _may_change(self, root: Root, path: str) -> bool:
        return self.policy.decide(AccessRequest(root.path, path, "write")).verdict == "allow"

    def keeps(self, path: WorkspacePath) -> bool:
        """Whether the journal may hold what a file holds: what agents may read, and the settings of version control.

        A person gets these back, whatever has written to them; agents do not see them there either.
        """
        decision = self.policy.decide(AccessRequest(path.root, path.path, "read"))
        return decision.verdict == "allow" or (decision.rule.layer, decision.rule.name) == _KEPT

    def check_together(self, changes: ChangeSet, *, agent: str) -> None:
        """Ask the rules for what the files of one change make of their folders.

        Raises:
            PathBlockedError: A folder is a repository, or would be one.
        """
        # A person may have one removed that somebody has made, and put back what steers one.
        some = [
            one
            for one in changes.changes
            if agent or (one.after is not None and not steers_git(one.path.path))
        ]
        suspects = {
            WorkspacePath(one.path.root, f"{folder}/HEAD".removeprefix("./")): one
            for one in some
            for folder in may_be_inside(one.path.path)
        }
        if not suspects:
            return
        made = {
            (one.path.root, "/".join(parts[:length]))
            for one in some
            if one.after is not None
            for parts in (one.path.path.split("/"),)
            for length in range(1, len(parts) + 1)
        }
        for head, change in suspects.items():
            root = self.root_of(head.root)

            def there(path: str, root: Root = root) -> bool:
                if (root.path, path) in made:
                    return True
                try:
                    return root.place(path, follow=False).kind != "missing"
                except FilepactError:
                    return True

            if is_repository(dirname(head.path) or ".", there):
                self.permit(change.path, "write", agent=agent, signs=frozenset({"repository"}))

    def check_held(
        self,
        path: WorkspacePath,
        action: Action,
        held: bytes | Document,
        *,
        agent: str,
        like: Document | None = None,
    ) -> None:
        """Ask the rules once more for what a file holds; ``like`` is what that was made from.

        Raises:
            PathBlockedError: It holds a private key.
        """
        if self.holds_key(held, like):
            self.permit(path, action, agent=agent, signs=frozenset({"private key"}))

    def holds_key(self, held: bytes | Document, like: Document | None = None) -> bool:
        """Whether there is a private key in what a file holds, if files are looked through for such."""
        return self.net and self._secrets.holds_key(held, like)

    def hides(self, path: WorkspacePath, agent: str, held: Iterable[bytes | Document] = ()) -> bool:
        """Whether an agent may not see what a file holds, nor its size, revision or sameness.

        Whatever tells an agent of a file that it did not just open itself asks here: receipts,
        differences in refusals, notes, news, previews and looks back.

        Args:
            path: The file.
            agent: The name that rules know the agent by.
            held: What the file held, holds or is to hold, as far as it would be told of.
        """
        request = AccessRequest(path.root, path.path, "read", agent)
        return self.policy.decide(request).verdict != "allow" or self.hides_key(path, agent, held)

    def hides_key(self, path: WorkspacePath, agent: str, held: Iterable[bytes | Document]) -> bool:
        """Whether a private key in a file hides its content from an agent that may read it by name."""
        if not self.net or not any(map(self._secrets.holds_key, held)):
            return False
        request = AccessRequest(path.root, path.path, "read", agent, frozenset({"private key"}))
        return self.policy.decide(request).verdict != "allow"

    # -- walks ----------------------------------------------------------------------------

    def listing(self, root: Root, action: Action, *, agent: str = "") -> EntryFilter:
        """The question that a walk asks for every entry: may it be seen?

        A walk asks for each folder on its way down, so only the last part of a name is new.
        """
        narrowed = tuple(inside for id_, inside in self.narrowed if id_ == root.path)
        return RuleFilter(
            self.policy,
            AccessRequest(root.path, ".", action, agent),
            narrowed if self.narrowed else None,
        )

    # -- narrowing ------------------------------------------------------------------------

    def narrow(self, folders: Sequence[str], *, moves: bool = True) -> str:
        """Use only these folders from now on, as far as they lie in the roots.

        Folders outside are left out; when none lies inside, the roots stay as they are, because
        a client's own working folder is not a wish to refuse everything.

        Args:
            folders: Absolute; of another it cannot be said where it lies.
            moves: Whether relative names start at the first of them from now on.

        Returns:
            One sentence about what is in force.

        Raises:
            PathBlockedError: None lies inside, and of one it cannot be said where it lies.
        """
        inside: list[tuple[RootId, str]] = []
        shared: list[str] = []
        whole = [*filter(os.path.isabs, folders)]
        unclear = next((one for one in folders if one not in whole), "")
        for folder in map(os.path.normpath, whole):
            true = look_at(folder).path
            here = [(root.path, ".") for root in self.roots if is_beneath(root.path, true)]
            if (found := self.inside(true)) is not None:
                with suppress(FilepactError):
                    place = found[0].place(found[1])
                    here += [(found[0].path, place.path)] if place.kind == "directory" else []
                unclear = unclear if here else folder
            inside += here
            shared += [folder] if here else []
        if not inside and unclear:
            raise PathBlockedError(
                f"{unclear}: your client shares it, and it is no folder that can be used",
                hint="Ask the person to share a folder that is there, by its whole path.",
                path=unclear,
            )
        if not inside:
            return "the client's folders lie outside the roots; the roots stay as they are"
        self.narrowed = tuple(dict.fromkeys(inside))
        self._shared = tuple(dict.fromkeys(shared))
        # Where whole roots are shared, names start in the first of ours as before.
        moves = moves and any(folder != "." for _, folder in inside)
        first, folder = inside[0] if moves else (self.roots[0].path, ".")
        self._start = (self.root_of(first), folder)
        # Another one, and after the others: a call that has begun keeps what it finds in the one before.
        self._plain = {}
        return f"narrowed to {', '.join(_absolute(*one) for one in self.narrowed)}"

    def _check_narrowed(self, root: Root, path: str, asked: str) -> None:
        if not any(root.path == id_ and is_beneath(path, inside) for id_, inside in self.narrowed):
            raise PathBlockedError(
                f"{asked}: outside the folders that your client shares",
                hint=f"Use a path inside {', '.join(self._shared)}; relative paths start at "
                f"{self.start}.",
                path=asked,
            )

    # -- form -----------------------------------------------------------------------------

    def _split(self, path: str) -> tuple[Root, str]:
        if not path.startswith("/"):
            root, folder = self._start
            return root, _joined(folder, path or ".")
        if (found := self.inside(path)) is not None:
            return found
        allowed = ", ".join(self._shared or (root.path for root in self.roots))
        raise PathBlockedError(
            f"{path}: outside the folders that may be used",
            hint=f"Use a path inside {allowed}.",
            path=path,
        )

    def _decide(self, request: AccessRequest, asked: str, *, back: bool = False) -> Decision:
        decision = self.policy.decide(request)
        rule = decision.rule
        if decision.verdict == "allow" or (back and (rule.layer, rule.name) in _PUT_BACK):
            return decision
        said = f"{asked}: protected by the rule \u201c{rule.name}\u201d ({rule.why})"
        if decision.verdict == "deny":
            raise PathBlockedError(
                said,
                hint="Work without this file, or ask the person to do this step.",
                path=asked,
                rule=rule.name,
            )
        if request.action in ("read", "list"):
            # A change can wait as a proposal; an answer cannot.
            raise ApprovalRequiredError(
                said,
                hint="Work without it, or ask the person for an [[allow]] rule in filepact.toml.",
                path=asked,
                rule=rule.name,
            )
        return decision


def _absolute(root: RootId, path: str) -> str:
    return root if path == "." else f"{root.rstrip('/')}/{path}"


def _joined(folder: str, path: str) -> str:
    """A path that is sent from a folder of a root, from that root."""
    if folder == ".":
        return path
    return folder if path == "." else f"{folder}/{path}"
