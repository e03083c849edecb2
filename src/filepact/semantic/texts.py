"""What a change makes of files, as texts: what servers can be told and shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Revision, WorkspacePath

__all__ = ["Step", "StepKind", "steps_of"]

StepKind = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one file.

    Attributes:
        path: The file; of a renamed one its new name.
        kind: What becomes of it.
        before: What it held; None for no file, and where that was no text.
        after: What it is to hold; the same.
        old: Where a renamed file was.
    """

    path: WorkspacePath
    kind: StepKind
    before: str | None = None
    after: str | None = None
    old: WorkspacePath | None = None

    @property
    def absolute(self) -> str:
        """The path on the host."""
        return self.path.absolute

    @property
    def stands(self) -> bool:
        """Whether there is a file afterwards."""
        return self.kind != "deleted"


def steps_of(
    changes: ChangeSet,
    contents: Mapping[str, bytes],
    text: Callable[[WorkspacePath, bytes], str | None],
) -> tuple[Step, ...]:
    """The steps of a change set; a file that goes while one of the same bytes comes is renamed.

    What changes only permission bits is left out, and so are folders and links, which are no texts.

    Args:
        changes: The change set.
        contents: The bytes that it names, by content id; what is missing counts as no text.
        text: The text that bytes stand for in a file; None where it is none.
    """
    files = [
        one
        for one in changes.changes
        if not any(side and (side.is_folder or side.is_link) for side in (one.before, one.after))
    ]
    gone = {one.before.content: one for one in files if one.before and not one.after}
    steps: list[Step] = []
    moved: set[WorkspacePath] = set()

    def text_of(path: WorkspacePath, side: Revision | None) -> str | None:
        data = None if side is None else contents.get(side.content)
        return None if data is None else text(path, data)

    def step(change: FileChange) -> Step:
        path, kind = change.path, _KINDS[change.kind]
        after = text_of(path, change.after)
        source = gone.get(change.after.content) if change.after and kind == "created" else None
        if source is not None and source.path not in moved and source.path.root == path.root:
            moved.add(source.path)
            return Step(path, "renamed", text_of(source.path, source.before), after, source.path)
        return Step(path, kind, text_of(path, change.before), after)

    for change in files:
        if change.before and change.after and change.before.content == change.after.content:
            continue
        steps.append(step(change))
    return tuple(one for one in steps if one.kind != "deleted" or one.path not in moved)


_KINDS: dict[str, StepKind] = {"create": "created", "modify": "changed", "delete": "deleted"}
