"""What is said about a file's encoding outside the file: by the person, or in ``.editorconfig``.

The person's settings go first.  Then the nearest ``.editorconfig`` that names a charset counts, from
the file's folder up to its root.  It is read as any other file: the guard is asked, and one that
may not be read says nothing.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.text.editorconfig import EditorConfig, parse_editorconfig
from filepact.text.evidence import Given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.document import RootId
    from filepact.text.glob import Glob
    from filepact.workspace.guard import Guard

__all__ = ["Encodings"]

_NAME = ".editorconfig"
_LARGEST = 65_536
_MOST_KEPT = 1_000


class Encodings:
    """What the settings and ``.editorconfig`` files say, the latter kept while they do not change.

    Args:
        guard: The roots, and the rules about what may be read.
        chosen: Globs with the encoding of the files that match, by Python's name.  A glob counts
            from each root, or from the top of the file system if it starts with ``/``; of several
            that match, the last one counts.
    """

    def __init__(self, guard: Guard, chosen: Sequence[tuple[Glob, str]] = ()) -> None:
        self._guard = guard
        self._chosen = tuple(reversed(chosen))
        self._kept: dict[WorkspacePath, tuple[tuple[int, ...], EditorConfig]] = {}
        self._lock = threading.Lock()

    def given(self, path: WorkspacePath) -> Given | None:
        """What is said about one file, which need not exist; None when nothing is."""
        absolute = path.absolute.lstrip("/")
        for glob, codec in self._chosen:
            if glob.matches(absolute if glob.pattern.startswith("/") else path.path):
                return Given(codec, "settings")
        if path.path.rpartition("/")[2] == _NAME:
            return None
        for folder, config in self._configs(path):
            inside = path.path if folder == "." else path.path[len(folder) + 1 :]
            charset = config.charset(inside)
            if charset is not None:
                return Given(charset, ".editorconfig") if charset else None
            if config.root:
                break
        return None

    def _configs(self, path: WorkspacePath) -> Iterator[tuple[str, EditorConfig]]:
        """The files in the folders above, the nearest first."""
        folder = path.path
        while folder != ".":
            folder = folder.rpartition("/")[0] or "."
            name = _NAME if folder == "." else f"{folder}/{_NAME}"
            config = None
            # One that may not be read says nothing, and neither does one of a root that the
            # journal knows but that is not in use.
            with suppress(FilepactError):
                config = self._read(path.root, name)
            if config is not None:
                yield folder, config

    def _read(self, root_id: RootId, name: str) -> EditorConfig | None:
        root = self._guard.root_of(root_id)
        stamp = root.glance(name)
        if stamp is None:
            return None
        asked = WorkspacePath(root_id, name)
        self._guard.permit(asked, "read")
        with self._lock:
            kept = self._kept.get(asked)
        if kept is not None and stamp and kept[0] == stamp:
            return kept[1]
        place = root.place(name)
        if place.kind != "file":
            return None
        self._guard.permit(WorkspacePath(root_id, place.path), "read")
        data = root.read(place.path, limit=_LARGEST).data
        config = parse_editorconfig(data.decode("utf-8", errors="replace"))
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[asked] = (stamp, config)
        return config
