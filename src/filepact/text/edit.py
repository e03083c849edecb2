"""Edits of a text as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.text.compare import compare_lines
from filepact.text.ends import common_head, common_tail, middle_of
from filepact.text.lines import LineIndex

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Edit", "EditList"]


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters ``[start, end)`` of the text before give way to ``text``; code points."""

    start: int
    end: int
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a range of a text: {self.start}..{self.end}")


@dataclass(frozen=True, slots=True)
class EditList:
    """Edits that happen at once, in ascending order; all places are those of the text before.

    Several insertions at one place stay in the order in which they are given.
    """

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        for before, after in zip(self.edits, self.edits[1:], strict=False):
            if before.end > after.start:
                raise ValueError(f"edits overlap or are out of order: {before}, {after}")

    def __bool__(self) -> bool:
        return bool(self.edits)

    @classmethod
    def between(cls, old: str, new: str) -> Self:
        """The edits, line by line, that make one text of another."""
        if old == new:
            return cls(())
        middle = middle_of(old, new)
        before, after = LineIndex(middle.old), LineIndex(middle.new)
        return cls(
            tuple(
                Edit(
                    middle.start + before.start(region.old_start),
                    middle.start + before.start(region.old_end),
                    middle.new[after.start(region.new_start) : after.start(region.new_end)],
                )
                for region in compare_lines(before.lines, after.lines)
            )
        )

    def apply(self, text: str) -> str:
        """The text after the edits.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        parts: list[str] = []
        at = 0
        for edit in self.edits:
            parts += (text[at : edit.start], edit.text)
            at = edit.end
        parts.append(text[at:])
        return "".join(parts)

    def invert(self, text: str) -> EditList:
        """The edits that take these back, for the text after them.

        Args:
            text: The text before.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        back = []
        shift = 0
        for edit in self.edits:
            start = edit.start + shift
            back.append(Edit(start, start + len(edit.text), text[edit.start : edit.end]))
            shift += len(edit.text) - (edit.end - edit.start)
        return EditList(tuple(back))

    def trim(self, text: str) -> EditList:
        """The same change without what each edit leaves as it is.

        Args:
            text: The text before.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        trimmed = []
        for edit in self.edits:
            old, new = text[edit.start : edit.end], edit.text
            if old == new:
                continue
            head = common_head(old, new)
            tail = common_tail(old[head:], new[head:])
            trimmed.append(Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail]))
        return EditList(tuple(trimmed))

    def _check_within(self, text: str) -> None:
        if self.edits and self.edits[-1].end > len(text):
            raise ValueError(f"{self.edits[-1]} reaches beyond a text of {len(text)} characters")
