"""Reads layers as changes: what each entry changes, and from what the program started."""

from __future__ import annotations

from posixpath import dirname
from typing import TYPE_CHECKING, Final

from filepact.domain.attributes import ACCESS_LIST, DEFAULT_LIST
from filepact.domain.change import FileChange
from filepact.domain.document import FOLDER, Revision, WorkspacePath, content_id
from filepact.errors import FilepactError, NotFoundError, PathBlockedError
from filepact.fs.atomic import LARGEST
from filepact.fs.path_form import folders_above
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.values import dataclass, field, replace
from filepact_run.overlay import TOP, folder_in, is_copy, layer_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.fs.watch import Stamp
    from filepact.workspace.external import ExternalChanges
    from filepact.workspace.guard import Guard
    from filepact_run.overlay import LayerEntry, LayerMount

__all__ = ["REPOSITORIES", "LayerChanges", "LayerReader", "LayerRecord", "state_of"]

_OF_LAYERS: Final = ("user.", ACCESS_LIST, DEFAULT_LIST)
"""Attributes that go into a layer with the file, and may be changed there by anybody."""

_NOTHING: Final = content_id(b"")
_IN_THE_WAY: Final = "a device, pipe or socket is not removed"
_REPOSITORY: Final = "hooks and settings in there run code when version control is used"
REPOSITORIES: Final = frozenset({".git", ".hg", ".svn", ".jj"})
"""The insides of version control, wherever they are: nothing in them is committed."""


@dataclass(slots=True)
class LayerRecord:
    """The contents of layers at their last commit while the program ran.

    Attributes:
        content: The bytes of its states, by content id; `NotFoundError` for those that nobody has.
        states: Files, links and new folders that were committed, by path; None for what was removed.
        whole: Folders that hide what lies below them, and of which all that they hid is recorded.
        fresh: Those that are to be marked so, or are, since the last commit.
        waiting: What was not committed.
    """

    content: Callable[[str], bytes]
    states: dict[WorkspacePath, Revision | None] = field(default_factory=dict)
    whole: set[WorkspacePath] = field(default_factory=set)
    fresh: list[WorkspacePath] = field(default_factory=list)
    waiting: set[WorkspacePath] = field(default_factory=set)

    def unchanged(self, path: WorkspacePath, state: Revision | None) -> bool:
        """Whether a file was committed as it is."""
        return path in self.states and self.states[path] == state


def _nothing_kept(_name: str) -> bytes:
    raise NotFoundError("nothing is kept")


@dataclass(slots=True)
class LayerChanges:
    """The changes of all layers.

    Attributes:
        changes: All of them.
        unclear: Those of them of which the base is not known, so that they start from the present.
        contents: The bytes of every state.
        left: See `LayerResult`.
        notes: What a person should know.
        held: What stays in the layers since it lies in something that does.
        own: What an earlier commit of the same layers, which was cut off, started from and made.
        record: What was committed before.
        content: The bytes of states that it has.
        states: What the layers hold by now, by path.
        fresh: Folders that are the layers' alone, without those in them.
        gone: Folders that were there, and that somebody has removed.
        origins: Of what is new under its name and was moved, the change by which it goes elsewhere.
        times: What a program has set the times of what it did not change to; with those that files had.
        written: The content ids of what was done, which the journal has.
    """

    changes: list[FileChange] = field(default_factory=list)
    unclear: set[WorkspacePath] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=lambda: {_NOTHING: b""})
    left: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    held: set[WorkspacePath] = field(default_factory=set)
    own: dict[WorkspacePath, set[Revision | None]] = field(default_factory=dict)
    record: LayerRecord = field(default_factory=lambda: LayerRecord(_nothing_kept))
    content: Callable[[str], bytes] = _nothing_kept
    states: dict[WorkspacePath, Revision | None] = field(default_factory=dict)
    fresh: list[WorkspacePath] = field(default_factory=list)
    gone: set[WorkspacePath] = field(default_factory=set)
    origins: dict[WorkspacePath, FileChange] = field(default_factory=dict)
    times: dict[WorkspacePath, tuple[int | None, int]] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)


class LayerReader:
    """Reads one layer as changes.

    Args:
        guard: See `LayerCommitter`.
        external: See there.
        found: What is found is added to it.
        began: See `LayerCommitter.commit`.
        layer: The layer.
        skip: See there.
    """

    def __init__(
        self,
        guard: Guard,
        external: ExternalChanges,
        found: LayerChanges,
        began: int,
        layer: LayerMount,
        skip: frozenset[str],
    ) -> None:
        self._guard = guard
        self._external = external
        self._found = found
        self._began = began
        self._layer = layer
        self._root = next(root for root in guard.roots if root.path == layer.root)
        prefix = f"{layer.root.rstrip('/')}/"
        self._skip = frozenset(one[len(prefix) :] for one in skip if one.startswith(prefix))
        self._entries: dict[str, LayerEntry] = {}
        self._full: set[str] = set()
        self._replaced: set[str] = set()
        self._missing: set[str] = set()
        self._emptied: set[str] = set()

    def read(self) -> None:
        for entry in layer_entries(self._layer.upper, self._skip):
            self._full.add(dirname(entry.path))
            inside = _repository(entry.path)
            if inside is None:
                self._entries[entry.path] = entry
            else:
                # Thousands of files, of which each would be denied by itself.
                self._found.left.setdefault(self._show(inside), _REPOSITORY)
        with Root.open(self._layer.upper) as upper:
            for entry in self._entries.values():
                try:
                    self._one(entry, upper)
                except FilepactError as error:
                    self._found.left[self._show(entry.path)] = error.message
        self._top()

    def _top(self) -> None:
        """Note what a program has made of the rights and attributes of the root itself.

        The layer's top has what this user could give it of them, so only what the program changed is.
        """
        path, after = self._at("."), folder_in(self._layer.upper, ".")
        was = self._found.record.states.get(path) or folder_in(dirname(self._layer.upper), TOP)
        now = self._folder_state(".")
        if was == after or not (was.attributes and after.attributes and now.attributes):
            return
        self._found.states[path] = after
        mode = now.mode if was.mode == after.mode else after.mode
        changed = now.attributes.changed(was.attributes, after.attributes)
        if now != (wanted := Revision.folder(mode, changed)):
            self._found.changes.append(FileChange(path, now, wanted))

    def _show(self, path: str) -> str:
        return self._guard.show(self._root.path, path)

    def _at(self, path: str) -> WorkspacePath:
        return WorkspacePath(self._root.path, path)

    def _one(self, entry: LayerEntry, upper: Root) -> None:
        """Note what one entry changes."""
        lower = "missing"
        if dirname(entry.path) in self._replaced:
            self._replaced.add(entry.path)  # What lies below is new as well.
        elif dirname(entry.path) in self._missing:
            self._missing.add(entry.path)  # So is nothing below a folder that the root has not.
        else:
            lower = self._root.place(entry.path, follow=False, known=True).kind
            if lower == "missing":
                self._missing.add(entry.path)
        if entry.kind == "other":
            self._found.left[self._show(entry.path)] = "it is not a regular file, folder or link"
        elif entry.kind == "whiteout":
            if not self._found.record.unchanged(self._at(entry.path), None):
                self._remove(entry.path, lower)
            self._found.states[self._at(entry.path)] = None
        elif entry.kind in ("folder", "opaque"):
            self._folder(entry, lower)
        elif lower == "other":
            self._found.left[self._show(entry.path)] = _IN_THE_WAY
        else:
            self._file(entry, lower, upper)

    def _folder(self, entry: LayerEntry, lower: str) -> None:
        path, record = self._at(entry.path), self._found.record
        known = record.states.get(path)
        mine = path in record.whole or (known is not None and known.is_folder)
        if entry.kind == "opaque" or lower != "directory":
            self._note_whole(path)
        after = folder_in(self._layer.upper, entry.path)
        if lower == "directory":
            if entry.kind == "opaque":
                self._remove_inside(entry.path)
            self._rights(path, known, after)
            return
        before: Revision | None = None
        if lower != "missing":
            if entry.kind == "folder" or mine:
                # The program found no such thing there: then this folder would hide what was below.
                self._found.left[self._show(entry.path)] = "somebody put something else there"
                return
            before = self._base(path)
            self._replaced.add(entry.path)
        if lower == "missing" and mine:
            return  # Somebody removed it.
        self._found.states[path] = after
        usual = self._root.makes(path.path, after) and not self._is_old(after)
        if before is not None or not usual or entry.path not in self._full:
            self._found.changes.append(FileChange(path, before, after))
            if before is None and is_copy(self._layer.upper, entry.path):
                self._found.gone.add(path)

    def _rights(self, path: WorkspacePath, known: Revision | None, after: Revision) -> None:
        """Note what a program has made of the rights, the attributes and the time of a folder that stays."""
        self._found.states[path] = after
        now = self._folder_state(path.path)
        before = known or self._external.known_folder(path)
        if before is None or known is None:
            stamp = stamp_at(self._root, path.path, folder=True)
            before = now if stamp is not None and stamp.changed <= self._began else before
            # Somebody may have set its rights since the layer has it, and before anybody else looked.
            if stamp and known is None and before == now and stamp.changed > self._began:
                with Root.open(self._layer.upper) as upper:
                    copied = upper.born(path.path) or 0
                before = None if stamp.changed > max(copied, stamp.modified) else before
        if before is None:
            # Where they differ, nobody can tell whether the program has changed it, or somebody else.
            if after != now:
                said = f"stay {now.mode & 0o7777:o}, and are not changed to {after.mode & 0o7777:o}"
                shown = self._show(path.path)
                self._found.notes.append(f"{shown}/: the permissions of this folder {said}")
        elif before != (after := _with_attributes(after, before, owner=True)):
            self._found.changes.append(FileChange(path, before, after))
        elif self._is_old(after):
            self._note_time(path, before, after)

    def _is_old(self, state: Revision) -> bool:
        """Whether a program has given it a time from before it began, or kept one."""
        modified = _modified(state)
        return modified is not None and modified < self._began

    def _note_time(self, path: WorkspacePath, before: Revision, after: Revision) -> None:
        was, is_ = _modified(before), _modified(after)
        if was is not None and is_ is not None and was != is_:
            self._found.times[path] = None if after.is_folder else was, is_

    def _note_whole(self, path: WorkspacePath) -> None:
        """Note a folder of which the root's has nothing to do with what the program sees."""
        last = self._found.fresh[-1] if self._found.fresh else None
        if last is None or last.root != path.root or not path.path.startswith(f"{last.path}/"):
            self._found.fresh.append(path)

    def _file(self, entry: LayerEntry, lower: str, upper: Root) -> None:
        path = self._at(entry.path)
        after, data = _load(upper, entry.path, link=entry.kind == "link")
        record = self._found.record
        self._found.states[path] = after
        known = record.states.get(path)
        if known is not None and record.unchanged(path, after):
            self._note_time(path, known, after)
            return
        if lower == "directory":
            self._remove_inside(entry.path)
            before: Revision | None = self._folder_state(entry.path)
        else:
            before = self._base(path, there=lower != "missing")
        self._found.contents[after.content] = data
        given = after.attributes
        # A program that replaces a file does not mean to give it away.
        own = before is None or is_copy(self._layer.upper, entry.path)
        after = _with_attributes(after, before, owner=own)
        kept = after.attributes
        if given and kept and (given.owner, given.group) != (kept.owner, kept.group):
            who = f"{kept.owner}:{kept.group}"
            self._found.notes.append(f"{self._show(entry.path)}: its owner stays {who}")
        if before != after:
            self._found.changes.append(FileChange(path, before, after))
        else:
            self._found.unclear.discard(path)
        if before is not None and before.content == after.content:
            self._note_time(path, before, after)

    # -- removals -------------------------------------------------------------------------

    def _folder_state(self, path: str) -> Revision:
        return self._root.folder_state(path) or FOLDER

    def _remove(self, path: str, lower: str) -> None:
        if lower == "directory":
            self._remove_inside(path)
            self._found.changes.append(FileChange(self._at(path), self._folder_state(path), None))
            self._found.states[self._at(path)] = None
        elif lower == "other":
            raise PathBlockedError(_IN_THE_WAY)
        elif lower != "missing":
            self._remove_file(path)

    def _remove_file(self, path: str) -> None:
        where = self._at(path)
        before = self._base(where)
        self._found.states[where] = None
        if before is not None:
            self._found.changes.append(FileChange(where, before, None))

    def _remove_inside(self, path: str) -> None:
        """Everything below a folder of the root that the layer does not have, unless one above it told of that."""
        if not self._emptied.isdisjoint(folders_above(path)):
            return
        self._emptied.add(path)
        folders: list[str] = []
        record = self._found.record
        # Of what was removed before, all that is there now is somebody else's.
        whole = self._at(path) in record.whole or record.unchanged(self._at(path), None)
        with TreeReader(self._root, path, allow=_every, ignore=False) as entries:
            for entry in entries:
                mine = self._entries.get(entry.path)
                if entry.path in self._skip or (mine is not None and mine.kind != "whiteout"):
                    continue
                where = self._at(entry.path)
                if whole and record.states.get(where) is None and where not in record.waiting:
                    continue  # Somebody made it since; the program has never seen it.
                if entry.kind == "folder":
                    folders.append(entry.path)
                    continue
                try:
                    self._remove(entry.path, entry.kind)
                except FilepactError as error:
                    # The layer has no entry of it that could be kept.
                    why = error.message.removeprefix(f"{entry.path}: ")
                    self._found.notes.append(f"{self._show(entry.path)} stays: {why}")
        for one in reversed(folders):
            self._found.changes.append(FileChange(self._at(one), self._folder_state(one), None))
            self._found.states[self._at(one)] = None

    # -- what the program started from ------------------------------------------------------

    def _base(self, path: WorkspacePath, *, there: bool = True) -> Revision | None:
        """The state that the program's file started from; its bytes are added to the contents."""
        record = self._found.record
        if path in record.states:
            return self._recorded(path, record)
        stamp = stamp_at(self._root, path.path) if there else None
        known = self._external.known(path)
        if stamp is not None and stamp.changed <= self._began:
            return state_of(self._root, path, self._found.contents)
        if known is not None and self._add(known):
            return known[1]
        if stamp is None:
            if known is not None and known[0].changed <= self._began:
                # Somebody removed it since, and nobody kept what it was.
                self._found.unclear.add(path)
            return None
        present = state_of(self._root, path, self._found.contents)
        if present not in self._found.own.get(path, ()):
            # Somebody made or changed it since, and nobody kept what it was.
            self._found.unclear.add(path)
        return present

    def _recorded(self, path: WorkspacePath, record: LayerRecord) -> Revision | None:
        """The state that was committed last."""
        state = record.states[path]
        if state is not None:
            try:
                self._found.contents[state.content] = self._found.content(state.content)
            except NotFoundError:
                self._found.unclear.add(path)
                return state_of(self._root, path, self._found.contents)
        return state

    def _add(self, known: tuple[Stamp, Revision | None, bytes | None]) -> bool:
        stamp, revision, data = known
        if stamp.changed > self._began or revision is None or data is None:
            return False
        self._found.contents[revision.content] = data
        return True


def state_of(root: Root, path: WorkspacePath, contents: dict[str, bytes]) -> Revision | None:
    """The present state of a file or link; its bytes are added to the contents."""
    kind = root.place(path.path, follow=False, known=True).kind
    if kind == "missing":
        return None
    if kind == "directory":
        return root.folder_state(path.path) or FOLDER
    revision, data = _load(root, path.path, link=kind == "link")
    contents[revision.content] = data
    return revision


def _load(root: Root, path: str, *, link: bool) -> tuple[Revision, bytes]:
    found = root.read_link(path) if link else root.read(path, limit=LARGEST, follow=False)
    return found.revision, found.data


def _modified(state: Revision) -> int | None:
    return None if state.attributes is None else state.attributes.modified


def _with_attributes(after: Revision, before: Revision | None, *, owner: bool) -> Revision:
    """The state of a file or folder with what a program has given it; what a layer does not show of it stays as it was."""
    held = after.attributes
    if held is None:
        return after
    held = replace(held.of_other_bytes, modified=held.modified)
    was = None if before is None else before.attributes
    if was is not None:
        own = [one for one in held.extended if one[0].startswith(_OF_LAYERS)]
        rest = [one for one in was.of_other_bytes.extended if not one[0].startswith(_OF_LAYERS)]
        whose = held if owner else was
        held = replace(
            held,
            owner=whose.owner,
            group=whose.group,
            extended=tuple(sorted([*own, *rest])),
            omitted=was.omitted,
        )
    return replace(after, attributes=held)


def _repository(path: str) -> str | None:
    """The inside of version control that a path is, or lies in."""
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts) if part.lower() in REPOSITORIES), None)
    return None if at is None else "/".join(parts[: at + 1])


def _every(_path: str, _is_folder: bool) -> bool:
    return True
