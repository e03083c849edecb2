"""What an agent shows of a call of its own tools: the files of its diffs, and lines counted."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.asked import Named
from filepact.errors import FilepactError
from filepact.text.compare import compare_lines
from filepact.text.lines import split_lines
from filepact.text.patch_reader import parse
from filepact.wire.uris import path_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.faces.wire.lines import Message
    from filepact.text.hunks import FilePatch

__all__ = ["Report", "Shown", "count_lines", "read_report"]

_MOST: Final = 200  # files of one call that are looked at
_LONGEST_ID: Final = 1_000  # characters; longer ones name nothing that is remembered


@dataclass(frozen=True, slots=True)
class Shown:
    """The diff of one file.

    Attributes:
        path: Absolute.
        old: The text before; empty for a new file.
        new: The text after; None where none was shown.
        patch: A Git patch that tells of this file among others, where there is one.
    """

    path: str
    old: str = ""
    new: str | None = None
    patch: str = ""

    @property
    def weight(self) -> int:
        """Characters that it holds on to."""
        return len(self.old) + len(self.new or "") + len(self.patch)

    def without_texts(self) -> Shown:
        """The same file, about which nothing can be counted."""
        return replace(self, old="", new=None, patch="")


@dataclass(frozen=True, slots=True)
class Report:
    """What one message says about a call.

    Attributes:
        call: The call's id; empty where it has none that can be remembered.
        title: As people are shown it; empty where the message says nothing new.
        kind: What the agent says that the call does.
        status: Its state, if the message tells.
        shown: The diffs; none where the message shows none.
    """

    call: str
    title: str
    kind: str
    status: str
    shown: tuple[Shown, ...]

    @property
    def weight(self) -> int:
        """Characters of all its texts."""
        return sum(shown.weight for shown in self.shown)


def read_report(call: Message, cwd: str) -> Report:
    """Read a tool call, an update of one, or the call in a question.

    Args:
        call: Of either version of the protocol.
        cwd: Where relative paths count from.
    """
    name = call.get("toolCallId")
    shown = tuple(
        replace(one, path=posixpath.join(cwd, one.path))
        for one, _ in zip(_diffs(call.get("content")), range(_MOST), strict=False)
    )
    return Report(
        name if isinstance(name, str) and len(name) <= _LONGEST_ID else "",
        _text(call.get("title")),
        _text(call.get("kind")),
        _text(call.get("status")),
        shown,
    )


def count_lines(shown: Shown) -> Named:
    """The file with the lines that its diff adds and removes, where that can be told."""
    if shown.new is not None:
        old, new = split_lines(shown.old), split_lines(shown.new)
        regions = compare_lines(old, new)
        return Named(
            shown.path,
            sum(region.new_end - region.new_start for region in regions),
            sum(region.old_end - region.old_start for region in regions),
        )
    if shown.patch:
        try:
            parts = [part for part in parse(shown.patch) if _is_about(part, shown.path)]
        except FilepactError:
            return Named(shown.path)
        signs = [line[0] for part in parts for hunk in part.hunks for line in hunk.lines]
        if parts:
            return Named(shown.path, signs.count("+"), signs.count("-"))
    return Named(shown.path)


def _diffs(content: Any) -> Iterator[Shown]:
    for one in content if isinstance(content, list) else []:
        if not isinstance(one, dict) or one.get("type") != "diff":
            continue
        old, new = _text(one.get("oldText")), one.get("newText")
        for path in _path(one.get("path")):
            yield Shown(path, old, new if isinstance(new, str) else None)
        changes, patch = one.get("changes"), one.get("patch")
        patch = _text(patch.get("text")) if isinstance(patch, dict) else ""
        for change in changes if isinstance(changes, list) else []:
            for path in _path(change.get("path") if isinstance(change, dict) else None):
                yield Shown(path, patch=patch)


def _is_about(part: FilePatch, path: str) -> bool:
    """Whether a part of a patch is a file's; patches often lack the slash at the beginning."""
    names = {name.lstrip("/") for name in (part.old_path, part.new_path) if name}
    return any(path.endswith(f"/{name}") for name in names)


def _path(found: Any) -> tuple[str, ...]:
    """The path that is named, if it can be one."""
    if isinstance(found, str) and found and "\0" not in found:
        return (path_named(found),)
    return ()


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""
