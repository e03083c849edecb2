"""Edits of a text as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.text.compare import compare_lines
from filepact.text.lines import common_head, common_tail, line_starts, middle_of, split_lines

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
        before, after = split_lines(middle.old), split_lines(middle.new)
        old_at, new_at = line_starts(before), line_starts(after)
        return cls(
            tuple(
                Edit(
                    middle.start + old_at[region.old_start],
                    middle.start + old_at[region.old_end],
                    middle.new[new_at[region.new_start] : new_at[region.new_end]],
                )
                for region in compare_lines(before, after)
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
