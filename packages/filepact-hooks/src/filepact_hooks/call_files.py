"""The files that a call of an agent's own tool may change, as far as its words tell before it runs.

Whatever ignore files say of them: they are read before, so that what the call does to them can be taken back.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final

from filepact.domain.document import NamedFiles, WorkspacePath
from filepact.domain.protected import is_in_git
from filepact.errors import FilepactError
from filepact.fs.path_form import at_home
from filepact.fs.read import look_at
from filepact.fs.walk import TreeReader
from filepact.text.glob import GlobError, literal_length
from filepact.values import replace, words
from filepact.workspace.file_snapshot import CallFiles
from filepact_hooks.shell_command import read_command
from filepact_hooks.shell_programs import expand_word, written_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from filepact.workspace.file_snapshot import Folder
    from filepact.workspace.guard import Guard
    from filepact_hooks.shell_command import ShellWord
    from filepact_hooks.tool_call import ToolCall

__all__ = ["files_of", "left_behind"]

_LITERALLY: Final = str.maketrans({one: f"[{one}]" for one in "*?["})
_MOST_NAMES: Final = 1_000
_MOST_STARTS: Final = 8
_SWEEPING: Final = words(
    "checkout switch restore reset stash clean pull merge rebase cherry-pick revert"
)
"""What Git does to files without naming them."""
_RIGHTS: Final = words("chmod chown chgrp setfacl setfattr")
"""Programs that change what files are besides their bytes."""


def files_of(
    call: ToolCall,
    guard: Guard,
    start: str,
    home: str = "",
    done: Container[WorkspacePath] = (),
    *,
    over: bool = False,
) -> CallFiles:
    """Tell what a call may change, and what of that its words name.

    Args:
        call: The call.
        guard: The roots.
        start: Where relative names start, absolute.
        home: What ``~`` stands for; empty for nothing.
        done: Files that it does not change any more, nor what they lead to.
        over: Whether it has run, so that what it has removed is not there.
    """
    found = _Finding(guard, home, done, over=over)
    for use in call.uses:
        if use.action not in ("read", "list"):
            found.add(posixpath.join(start, found.at_home(use.path)), use.action)
    if call.deed in ("write", "patch"):  # What comes below such a name is somebody else's.
        found.turned, found.named = found.named, set()
    start = posixpath.join(start, found.at_home(call.folder))
    for command in call.commands:
        found.command(command, start)
    names = NamedFiles(frozenset(found.named), tuple(sorted(found.globs)), frozenset(found.turned))
    files, written = frozenset(found.files), frozenset(found.written)
    return CallFiles(
        files, written, frozenset(found.folders), found.sweeping, call.open_ended, names
    )


def left_behind(call: ToolCall) -> ToolCall | None:
    """A call as far as its commands say that they go on in the background; None for one that does not."""
    read = [read_command(one) for one in call.commands]
    if not any(one.behind for one in read):
        return None
    ways = [f"cd {quote(way)}" for one in read for way in (one.begins, *one.folders) if way]
    commands = ("\n".join([*ways, *(part for one in read for part in one.behind)]),)
    return replace(call, uses=(), commands=commands)


def _link(program: tuple[str, ...]) -> tuple[str, str] | None:
    """The name of a symbolic link that a program would make, and where it would lead; None for any other program."""
    named = [one for one in program[1:] if not one.startswith("-")]
    short = {*"".join(one for one in program if one[:1] == "-" != one[1:2])}
    if program[0] != "ln" or len(named) != 2 or not ("s" in short or "--symbolic" in program):
        return None
    return named[1], posixpath.join(posixpath.dirname(named[1]), named[0])


class _Finding:
    def __init__(
        self, guard: Guard, home: str, done: Container[WorkspacePath], *, over: bool
    ) -> None:
        self._guard, self._done, self._over = guard, done, over
        self.at_home = partial(at_home, home=home)
        self.files: set[WorkspacePath] = set()
        self.written: set[WorkspacePath] = set()
        self.named: set[WorkspacePath] = set()
        self.globs: set[WorkspacePath] = set()
        self.turned: set[WorkspacePath] = set()
        self.folders: set[Folder] = set()
        self.sweeping = False

    def add(self, path: str, action: str, only: tuple[str, ...] = ()) -> None:
        """Take in an absolute name; of a link, the link and what it leads to, but for a circle; of a folder, some names."""
        with suppress(ValueError):
            above, name = posixpath.split(posixpath.normpath(path))
            true = posixpath.join(look_at(above).path, name)
            inside = self._guard.inside(true)
            if inside and WorkspacePath(inside[0].path, inside[1]) in self._done:
                return
            if action == "write" and true != (leads := look_at(true).path) == look_at(leads).path:
                self.add(leads, action)
            if inside is None or len(self.files) + len(self.folders) >= _MOST_NAMES:
                return
            root, base = inside
            if base != "." and is_in_git(base):
                return
            if look_at(true).kind == "folder" and root.glance(base) != ():
                if action == "delete":
                    self.folders.add((root.path, base))
                    below = "" if base == "." else f"{base.translate(_LITERALLY)}/"
                    names = (f"{below}{deep}{one}" for one in only for deep in ("", "*/"))
                    self.globs.update(WorkspacePath(root.path, one) for one in names)
                    whole = base != "." and not only
                    self.named |= {WorkspacePath(root.path, base)} if whole else set()
                elif action == "rights":
                    self.turned.add(WorkspacePath(root.path, base))
                    self.files.add(WorkspacePath(root.path, base))
            elif base != ".":
                file = WorkspacePath(root.path, base)
                self.files.add(file)
                self.written |= {file} if action == "write" else set()
                # What is not there is not removed: what comes there meanwhile may be a person's.
                there = self._over or root.glance(base) is not None
                removes = action == "delete" and there
                self.named |= {file} if removes or action == "write" else set()

    def command(self, command: str, start: str) -> None:
        """Take in what a shell would do with a text."""
        read = read_command(command)
        start = posixpath.join(start, self.at_home(read.begins))
        folders = map(self.at_home, read.folders[:_MOST_STARTS])
        starts = [start, *(posixpath.join(start, one) for one in folders)]
        uses: dict[str, tuple[str, ...]] = {"write": ("write",), "delete": ("delete",)}
        if rights := [one for one in read.programs if one[0] in _RIGHTS]:
            options = [word for one in rights for word in one if word.startswith("-")]
            # Who changes all that lies in a folder changes as many files as who removes it.
            deep = any("R" in one.partition("--")[0] or one == "--recursive" for one in options)
            changes = "delete" if deep else "rights"
            uses |= {"list": (changes,), "write": ("write", changes)}
        links = dict(filter(None, map(_link, read.programs)))
        for word in read.words:
            names = written_in(word.text) if word.use == "text" else ()
            for one in starts:
                for action in uses.get(word.use, ()):
                    for path in self._named(word, one):
                        self.add(path, action)
                        for link, leads in links.items():
                            if path.startswith(top := posixpath.join(one, link, "")):
                                self.add(posixpath.join(one, leads, path[len(top) :]), action)
                for name in names:
                    self.add(posixpath.join(one, self.at_home(name)), "write")
        for search in read.searches:
            if search.use == "delete":
                for folder in search.folders:
                    for one in starts:
                        self.add(posixpath.join(one, self.at_home(folder)), "delete", search.only)
        self.sweeping |= any(
            program[0] in ("git", "gh") and not _SWEEPING.isdisjoint(program)
            for program in read.programs
        )

    def _named(self, word: ShellWord, start: str) -> Iterator[str]:
        """The paths that a word stands for at this moment."""
        try:
            texts = expand_word(word.text) if word.pattern else [word.text]
        except GlobError:
            return
        for text in texts:
            path = posixpath.join(start, self.at_home(text))
            if word.pattern and literal_length(path) < len(path):
                if inside := self._guard.inside(posixpath.normpath(path)):
                    self.globs.add(WorkspacePath(inside[0].path, inside[1]))
                yield from self._matching(path)
            elif not word.inside or look_at(posixpath.dirname(path)).kind == "folder":
                yield path

    def _matching(self, path: str) -> Iterator[str]:
        """The files that wildcards match in a path of a root."""
        folder = path[: literal_length(path)].rpartition("/")[0]
        inside = self._guard.inside(look_at(folder).path)
        if inside is None:
            return
        (root, base), parts = inside, path[len(folder) + 1 :].split("/")
        skip = 0 if base == "." else len(base) + 1
        walk = TreeReader(
            root,
            base,
            allow=lambda _path, _is_folder: True,
            ignore=False,
            max_depth=len(parts),
            most=_MOST_NAMES * 10,
        )
        with suppress(FilepactError), walk:
            for entry in walk:
                here = entry.path[skip:].split("/")
                if len(here) == len(parts) and all(
                    fnmatchcase(one, part) and (one[:1] != "." or part[:1] == ".")
                    for one, part in zip(here, parts, strict=True)
                ):
                    yield posixpath.join(root.path, entry.path)
