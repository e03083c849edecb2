"""Patches as values: for each file its names, modes and hunks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from filepact.errors import PatchMalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FilePatch", "Hunk", "created_text", "reverse"]

_FLIP = {" ": " ", "-": "+", "+": "-"}


@dataclass(frozen=True, slots=True)
class Hunk:
    """One stretch of lines of a patch.

    Attributes:
        line: 1-based line of the patch where the hunk's header stands.
        old_start: Line number in the header for the file before, as written there; None when
            the header has no numbers.
        new_start: The same for the file after.
        lines: Each a sign (blank, ``-``, ``+``) and the exact text with its line end; without
            one where the patch says that the file has none.
        repaired: The counts in the header were wrong.
        anchors: Lines of the file that the hunk stands below, the outermost first; each opens
            the part of the file in which the next one is looked for.
        at_end: The hunk's last line is the file's last.
        old: The lines that have to be there before.
        new: The lines that are there afterwards.
    """

    line: int
    old_start: int | None
    new_start: int | None
    lines: tuple[str, ...]
    repaired: bool = False
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    old: tuple[str, ...] = field(init=False, compare=False, repr=False)
    new: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Asked for at every place where the hunk might go.
        for name, other in (("old", "+"), ("new", "-")):
            side = tuple(line[1:] for line in self.lines if line[0] != other)
            object.__setattr__(self, name, side)


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The part of a patch about one file.

    Attributes:
        old_path: Name before; None when there is no header or the file is created.
        new_path: Name after; None when there is no header or the file is deleted.
        hunks: In the order of the patch; may be empty for a change of name or mode.
        old_mode: Git mode before (``0o100644`` or ``0o100755``, ``0o120000`` for a link that is
            deleted) where the patch gives one.
        new_mode: Git mode after where the patch gives one that differs.
        creates: The header says that there is no file before.
        deletes: The header says that there is no file afterwards.
        renames: The header says that the file gets another name.
        whole: The patch replaces what is there whatever it holds: it deletes a file without
            listing its lines, or creates or renames one over another.
        line: 1-based line of the patch where this part begins.
    """

    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...]
    old_mode: int | None = None
    new_mode: int | None = None
    creates: bool = False
    deletes: bool = False
    renames: bool = False
    line: int = 1
    whole: bool = False

    @property
    def named(self) -> bool:
        """Whether the patch has a header that names the file."""
        return self.old_path is not None or self.new_path is not None


def reverse(patch: FilePatch) -> FilePatch:
    """The patch that takes this one back.

    Raises:
        PatchMalformedError: The patch does not say what it takes away.
    """
    if patch.deletes and patch.whole:
        raise PatchMalformedError(
            f"line {patch.line} of the patch deletes a file without its lines, which cannot be "
            "taken back",
            hint="Use undo, which knows what the file held.",
            line=patch.line,
        )
    return replace(
        patch,
        old_path=patch.new_path,
        new_path=patch.old_path,
        hunks=tuple(map(_reversed, patch.hunks)),
        old_mode=patch.new_mode,
        new_mode=patch.old_mode,
        creates=patch.deletes,
        deletes=patch.creates,
        whole=False,
    )


def created_text(patch: FilePatch) -> str:
    """The whole text of a file that a patch creates.

    Raises:
        PatchMalformedError: The patch wants lines that an absent file cannot have.
    """
    parts = []
    for hunk in patch.hunks:
        for number, line in enumerate(hunk.lines, hunk.line + 1):
            if line[0] != "+":
                raise PatchMalformedError(
                    f"the patch creates a file, but line {number} of the patch is not an added "
                    "line",
                    hint="Put + before every line, or name the file that exists after ---.",
                    line=number,
                )
            parts.append(line[1:])
    return "".join(parts)


def _reversed(hunk: Hunk) -> Hunk:
    return replace(
        hunk,
        old_start=hunk.new_start,
        new_start=hunk.old_start,
        lines=tuple(_flipped(hunk.lines)),
    )


def _flipped(lines: tuple[str, ...]) -> Iterator[str]:
    """The lines with their signs changed; in each change, what is removed stands first."""
    added: list[str] = []
    for line in lines:
        flipped = _FLIP[line[0]] + line[1:]
        if line[0] == "-":
            added.append(flipped)
            continue
        if line[0] == " ":
            yield from added
            added = []
        yield flipped
    yield from added
