"""Patches as values: for each file its names, modes and hunks; and the errors where they do not fit.

An error says what stands where, and how to mend the patch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import (
    PatchAlreadyAppliedError,
    PatchAmbiguousError,
    PatchContextMismatchError,
    PatchMalformedError,
)
from filepact.text.lines import chomp
from filepact.values import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "MOST_SHOWN",
    "FilePatch",
    "Hunk",
    "HunkErrors",
    "already_applied",
    "already_there",
    "created_text",
    "holds_more",
    "reverse",
]

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

    @property
    def removes(self) -> bool:
        """Whether the hunk removes lines."""
        return any(line[0] == "-" for line in self.lines)

    @property
    def changes(self) -> bool:
        """Whether the hunk changes anything."""
        return any(line[0] != " " for line in self.lines)


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
        written: The name before as the envelope has it, perhaps in quotes, which are taken off it.
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
    written: str = ""


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
        hunk, old_start=hunk.new_start, new_start=hunk.old_start, lines=tuple(_flipped(hunk.lines))
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


MOST_SHOWN = 6
_NEARBY = 30
_LONGEST = 120


def already_applied(name: str) -> PatchAlreadyAppliedError:
    """The file has the patch already; ``name`` may be empty."""
    return PatchAlreadyAppliedError(
        f"{_prefix(name)}already holds what the patch would make of it",
        hint="Nothing has to be done.",
    )


def already_there(name: str) -> PatchContextMismatchError:
    """The file that the patch creates exists."""
    return PatchContextMismatchError(
        f"{_prefix(name)}the patch creates this file, but it exists",
        hint="Send a patch against what the file holds.",
    )


def holds_more(name: str) -> PatchContextMismatchError:
    """The file that the patch deletes has lines that the patch does not list."""
    return PatchContextMismatchError(
        f"{_prefix(name)}the patch deletes the file, but the file holds more than the patch says",
        hint="Read the file; send a patch that removes all of its lines.",
    )


class HunkErrors:
    """The errors about hunks of a patch for one file.

    Args:
        keys: The lines of the file as they are compared.
        places: Where each of them stands; may be filled later, and be empty.
        name: How the file is called.
    """

    def __init__(self, keys: Sequence[str], places: Mapping[str, list[int]], name: str) -> None:
        self._keys = keys
        self._places = places
        self._name = name

    def ambiguous(self, hunk: Hunk, number: int, found: list[int]) -> PatchAmbiguousError:
        """The hunk fits at each of the 0-based lines ``found``."""
        shown = ", ".join(str(at + 1) for at in found)
        more = " and more" if len(found) == MOST_SHOWN else ""
        return PatchAmbiguousError(
            f"{self._title(hunk, number)} fits in several places: lines {shown}{more}",
            hint=(
                "Give it more of the lines around the place that is meant, or write the line that "
                "begins the part of the file after its @@."
                if hunk.old_start is None
                else "Correct the line numbers in the hunk's header, or give it more context lines."
            ),
            hunk=number + 1,
            patch_line=hunk.line,
            lines=tuple(at + 1 for at in found),
            stated=hunk.old_start is not None,
        )

    def no_anchor(self, hunk: Hunk, number: int, anchor: str) -> PatchContextMismatchError:
        """One of its anchors is missing."""
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} stands below an anchor that the file does not have: "
            f"{_shown(anchor)}",
            hint="Copy the anchor after @@ from the file, or leave it out.",
            hunk=number + 1,
            patch_line=hunk.line,
        )

    def no_context(self, hunk: Hunk, number: int) -> PatchContextMismatchError:
        """The error for a hunk without a line to compare whose header does not help."""
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} only adds lines, and nothing shows where",
            hint="Give the hunk a line of the file above or below what it adds, as context.",
            hunk=number + 1,
            patch_line=hunk.line,
        )

    def mismatch(
        self, hunk: Hunk, number: int, wanted: list[str], expected: int | None, *, stands: bool
    ) -> PatchContextMismatchError:
        """The hunk's lines stand nowhere.

        Args:
            hunk: The hunk.
            number: Its number, from 0.
            wanted: Its old lines, as they are compared.
            expected: The 0-based line where its header says that it belongs.
            stands: What it would make is there already.
        """
        at = self._nearest(wanted, expected)
        there = self._keys[at : at + len(wanted)]
        index = next((i for i, (a, b) in enumerate(zip(wanted, there, strict=False)) if a != b), -1)
        if index < 0:
            index = len(there)
        line = at + index + 1
        hint = f"Read the file around line {line} and make the patch for what it holds now."
        if stands:
            why = "What it would make stands there already."
            hint = "Leave this hunk out, or read the file and make a new patch."
        elif index >= len(wanted) and hunk.at_end and at + index < len(self._keys):
            why = f"Its lines stand at line {at + 1}, but the file does not end there."
        elif index >= len(wanted):
            why = "The patch and the file differ in whether a line end closes the file."
        elif index >= len(there):
            why = f"The file ends after {len(self._keys)} lines; the patch expects there"
            why += f"\n  {_shown(wanted[index])}"
        else:
            why = (
                f"Line {line} of the file is\n  {_shown(there[index])}\n"
                f"but line {_patch_line(hunk, index)} of the patch has\n  {_shown(wanted[index])}"
            )
            if wanted[index].split() == there[index].split():
                why += "\nThey differ in blanks only."
        body = "\n".join(f"  {_shown(text)}" for text in map(chomp, hunk.lines[:12]))
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} does not fit. {why}\nThe hunk begins\n{body}",
            hint=hint,
            hunk=number + 1,
            patch_line=hunk.line,
            line=line,
        )

    def twin(
        self, hunk: Hunk, number: int, wanted: list[str], at: int, twin: int
    ) -> PatchContextMismatchError:
        """The hunk's lines were changed at ``at``, and stand unchanged only at ``twin``."""
        there = self._keys[at : at + len(wanted)]
        pairs = enumerate(zip(wanted, there, strict=False))
        index = next((i for i, (a, b) in pairs if a != b), min(len(there), len(wanted) - 1))
        line = at + index + 1
        now = _shown(there[index]) if index < len(there) else "(the file ends before it)"
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} does not fit where it belongs: line {line} of the file is\n"
            f"  {now}\nbut line {_patch_line(hunk, index)} of the "
            f"patch has\n  {_shown(wanted[index])}\nSo the place was changed. The same lines stand "
            f"at line {twin + 1}, and were not taken.",
            hint=f"Read the file around line {line} and make the patch for what it holds now; if line "
            f"{twin + 1} is meant, say so in the hunk's header.",
            hunk=number + 1,
            patch_line=hunk.line,
            line=line,
            twin=twin + 1,
        )

    def elsewhere(
        self, hunk: Hunk, number: int, found: list[int], where: str
    ) -> PatchContextMismatchError:
        """The hunk fits at each of the 0-based lines ``found``, but not where it may go."""
        lines = ", ".join(str(at + 1) for at in found)
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} does not fit. Its lines stand at "
            f"{'line' if len(found) == 1 else 'lines'} {lines}, which is {where}.",
            hint="Put the hunks in the order of the file, with the anchors that the file has.",
            hunk=number + 1,
            patch_line=hunk.line,
            line=found[0] + 1,
        )

    def _nearest(self, wanted: list[str], expected: int | None) -> int:
        """The place that has most of the wanted lines; near the stated one among equals."""
        stated = min(max(expected or 0, 0), len(self._keys))
        head = wanted[:200]
        tried = {stated}
        for index, key in enumerate(head[:50]):
            if len(tried) < _NEARBY:
                # A line that stands everywhere shows nothing.
                places = self._places.get(key, [])
                tried.update(at - index for at in places[:4] if at >= index)

        def likeness(at: int) -> tuple[int, int]:
            there = self._keys[at : at + len(head)]
            same = sum(a == b for a, b in zip(head, there, strict=False))
            return same, -abs(at - stated)

        return max(tried, key=likeness)

    def _title(self, hunk: Hunk, number: int) -> str:
        return f"{_prefix(self._name)}hunk {number + 1} (line {hunk.line} of the patch)"


def _prefix(name: str) -> str:
    return f"{name}: " if name else ""


def _patch_line(hunk: Hunk, index: int) -> int:
    """The 1-based line of the patch that holds the hunk's old line ``index``."""
    line = hunk.line
    for text in hunk.lines:
        line += 1
        if text[0] != "+":
            index -= 1
        if index < 0:
            break
        line += not text.endswith("\n")
    return line


def _shown(line: str) -> str:
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
