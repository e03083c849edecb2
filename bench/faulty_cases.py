"""Faulty edits of real files: seventeen kinds of slips that models make, and how they are judged.

Each case is a block of four to nine lines of a real source file, a model's copy of it that is
damaged in one way, and the copy with one line changed.  The right answer is the true file with
that line changed.  Four kinds have no right answer and must be refused.
"""

from __future__ import annotations

import random
import re
import sysconfig
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).resolve().parent

OUTCOMES = ("right", "blanks differ", "text differs", "elsewhere", "refused", "WRONG")
"""Blanks differ: the right lines, in wrong blanks.  Elsewhere: blanks beside the block changed."""


@dataclass(frozen=True, slots=True)
class Source:
    """One real file: its name for messages and its lines without ends."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One faulty edit.

    Attributes:
        text: What the file holds.
        old: The model's copy of a block.
        new: The copy with its change.
        right: What the file should hold; None when the edit must be refused.
        head: What stands before the block, in what the file should hold.
        tail: What stands after it.
    """

    text: str
    old: str
    new: str
    right: str | None
    head: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a file with one line changed, before anything is damaged."""

    before: list[str]
    old: list[str]
    new: list[str]
    after: list[str]
    changed: int

    def case(
        self,
        old: list[str],
        new: list[str],
        *,
        there: list[str] | None = None,
        right: list[str] | None = None,
        end: str = "\n",
        before: list[str] | None = None,
        after: list[str] | None = None,
    ) -> Case:
        """The case in which the model sends these; ``there`` is the block as the file has it."""
        before = self.before if before is None else before
        after = self.after if after is None else after
        head, tail = text_of(before, end), text_of(after, end)
        middle = text_of(self.old if there is None else there, end)
        wanted = text_of(self.new if right is None else right, end)
        return Case(
            text=head + middle + tail,
            old=text_of(old),
            new=text_of(new),
            right=head + wanted + tail,
            head=head,
            tail=tail,
        )

    def refusal(self, old: list[str], new: list[str], lines: list[str]) -> Case:
        """A case that must be refused: the file has these lines."""
        return Case(text_of(lines), text_of(old), text_of(new), None)


def text_of(lines: list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


_NAME = re.compile(r"[A-Za-z_]{4,}")


def blocks(sources: Sequence[Source], chance: random.Random) -> Iterator[Block]:
    """Blocks at random places of random files, for ever."""
    while True:
        lines = list(chance.choice(sources).lines)
        size = chance.randint(4, 9)
        start = chance.randrange(len(lines) - size)
        old = lines[start : start + size]
        if not old[0].strip() or not old[-1].strip():
            continue
        changeable = [i for i, line in enumerate(old) if _NAME.search(line)]
        if not changeable or text_of(lines).count(text_of(old)) != 1:
            continue
        changed = chance.choice(changeable)
        new = list(old)
        new[changed] = _changed(old[changed], chance)
        yield Block(lines[:start], old, new, lines[start + size :], changed)


def _changed(line: str, chance: random.Random) -> str:
    """The line with one of its words replaced."""
    word = chance.choice(list(_NAME.finditer(line)))
    fresh = word[0] + chance.choice(["_next", "_all", "2", "_or_none"])
    return line[: word.start()] + fresh + line[word.end() :]


# -- kinds that have a right answer -------------------------------------------------------


def exact(block: Block, _chance: random.Random) -> Case | None:
    return block.case(block.old, block.new)


def crlf_file(block: Block, _chance: random.Random) -> Case | None:
    return block.case(block.old, block.new, end="\r\n")


def trailing_in_copy(block: Block, chance: random.Random) -> Case | None:
    trails = [chance.choice(["", " ", "  ", "\t"]) for _ in block.old]
    trails[chance.randrange(len(trails))] = "  "
    return block.case(_each(block.old, trails), _each(block.new, trails))


def trailing_in_file(block: Block, chance: random.Random) -> Case | None:
    trails = [chance.choice(["", " ", "    "]) for _ in block.old]
    trails[block.changed - 1] = "  "
    return block.case(
        block.old,
        block.new,
        there=_each(block.old, trails),
        right=_each(block.new, trails),
    )


def dedented(block: Block, _chance: random.Random) -> Case | None:
    old = textwrap.dedent(text_of(block.old)).splitlines()
    new = textwrap.dedent(text_of(block.new)).splitlines()
    return None if old == block.old else block.case(old, new)


def two_for_four(block: Block, _chance: random.Random) -> Case | None:
    depths = [_depth(line) for line in block.old if line.strip()]
    if not any(depths) or any(depth % 4 for depth in depths):
        return None
    return block.case([_halved(line) for line in block.old], [_halved(line) for line in block.new])


def blanks_for_tabs(block: Block, _chance: random.Random) -> Case | None:
    whole = [*block.before, *block.old, *block.after]
    if not any(_depth(line) >= 4 for line in block.old) or any("\t" in line for line in whole):
        return None
    return block.case(
        block.old,
        block.new,
        there=[_tabbed(line) for line in block.old],
        right=[_tabbed(line) for line in block.new],
        before=[_tabbed(line) for line in block.before],
        after=[_tabbed(line) for line in block.after],
    )


def typography(block: Block, _chance: random.Random) -> Case | None:
    there = [_typeset(line) for line in block.old]
    if there == block.old:
        return None
    return block.case(
        block.old, block.new, there=there, right=[_typeset(line) for line in block.new]
    )


def blank_line_lost(block: Block, chance: random.Random) -> Case | None:
    blank = [i for i, line in enumerate(block.old) if not line.strip()]
    if not blank:
        return None
    lost = chance.choice(blank)
    return block.case(_without(block.old, lost), _without(block.new, lost))


def blank_lines_around(block: Block, _chance: random.Random) -> Case | None:
    return block.case(["", *block.old, ""], ["", *block.new, ""])


def line_numbers(block: Block, chance: random.Random) -> Case | None:
    form = chance.choice(["{:>6}\t{}", "{:>5}\u2502{}", "{}\u2192{}", "{:>4}|{}"])
    first = len(block.before) + 1

    def numbered(lines: list[str]) -> list[str]:
        return [form.format(first + i, line) for i, line in enumerate(lines)]

    return block.case(numbered(block.old), numbered(block.new))


def typo(block: Block, chance: random.Random) -> Case | None:
    others = [i for i, line in enumerate(block.old) if i != block.changed and _NAME.search(line)]
    if not others:
        return None
    index = chance.choice(others)
    word = chance.choice(list(_NAME.finditer(block.old[index])))
    at = chance.randrange(word.start(), word.end() - 1)
    line = block.old[index]
    wrong = line[:at] + line[at + 1] + line[at] + line[at + 2 :]
    if wrong == line:
        wrong = line[:at] + line[at + 1 :]
    return block.case(_with(block.old, index, wrong), _with(block.new, index, wrong))


def escaped_quotes(block: Block, _chance: random.Random) -> Case | None:
    def escaped(lines: list[str]) -> list[str]:
        return [re.sub(r"(['\"])", r"\\\1", line) for line in lines]

    old = escaped(block.old)
    return None if old == block.old else block.case(old, escaped(block.new))


# -- kinds that must be refused -----------------------------------------------------------


def two_equal(block: Block, _chance: random.Random) -> Case | None:
    return block.refusal(
        block.old, block.new, [*block.before, *block.old, *block.after, *block.old]
    )


def two_but_for_indentation(block: Block, chance: random.Random) -> Case | None:
    """The copy has a third indentation, which neither place has."""
    deeper = ["    " + line if line else "" for line in block.old]
    between = chance.randrange(len(block.after) + 1)
    lines = [*block.before, *block.old, *block.after[:between], *deeper, *block.after[between:]]
    shift = "  " if chance.random() < 0.5 else "        "

    def shifted(lines: list[str]) -> list[str]:
        return [shift + line if line else "" for line in lines]

    old = shifted(block.old)
    return None if text_of(old) in text_of(lines) else block.refusal(old, shifted(block.new), lines)


def rewritten(block: Block, chance: random.Random) -> Case | None:
    """Some lines of the block, not at its edges, have been changed since."""
    inner = [i for i in range(1, len(block.old) - 1) if _NAME.search(block.old[i])]
    if not inner:
        return None
    there = list(block.old)
    for index in chance.sample(inner, chance.randint(1, len(inner))):
        there[index] = _changed(there[index], chance)
    return block.refusal(block.old, block.new, [*block.before, *there, *block.after])


def gone_with_twin(block: Block, chance: random.Random) -> Case | None:
    """The block was taken away, and one that differs in one line stands elsewhere."""
    others = [i for i, line in enumerate(block.old) if _NAME.search(line)]
    index = chance.choice(others)
    twin = _with(block.old, index, _changed(block.old[index], chance))
    at = chance.randrange(len(block.after) + 1)
    lines = [*block.before, *block.after[:at], *twin, *block.after[at:]]
    return block.refusal(block.old, block.new, lines)


KINDS: dict[str, Callable[[Block, random.Random], Case | None]] = {
    "exact": exact,
    "CRLF file, LF copy": crlf_file,
    "trailing blanks in the copy": trailing_in_copy,
    "trailing blanks in the file": trailing_in_file,
    "block dedented": dedented,
    "two blanks for four": two_for_four,
    "blanks for tabs": blanks_for_tabs,
    "typographic signs in the file": typography,
    "one blank line lost": blank_line_lost,
    "blank lines around": blank_lines_around,
    "line numbers left in": line_numbers,
    "one typo": typo,
    "escaped quotes": escaped_quotes,
    "two equal places": two_equal,
    "two places but for indentation": two_but_for_indentation,
    "rewritten since": rewritten,
    "gone, a near twin elsewhere": gone_with_twin,
}


def cases(sources: Sequence[Source], count: int, seed: int) -> Iterator[tuple[str, list[Case]]]:
    """For each kind so many cases, the same ones for the same seed and sources."""
    for number, (kind, damage) in enumerate(KINDS.items()):
        chance = random.Random(seed * 1_000 + number)
        found: list[Case] = []
        for block in blocks(sources, chance):
            case = damage(block, chance)
            if case is not None and case.old != case.new:
                found.append(case)
            if len(found) == count:
                break
        yield kind, found


def _each(lines: list[str], trails: list[str]) -> list[str]:
    return [line + trail for line, trail in zip(lines, trails, strict=True)]


def _with(lines: list[str], index: int, line: str) -> list[str]:
    return [*lines[:index], line, *lines[index + 1 :]]


def _without(lines: list[str], index: int) -> list[str]:
    return lines[:index] + lines[index + 1 :]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _halved(line: str) -> str:
    return line[_depth(line) // 2 :]


def _tabbed(line: str) -> str:
    tabs, blanks = divmod(_depth(line), 4)
    return "\t" * tabs + " " * blanks + line.lstrip(" ")


def _typeset(line: str) -> str:
    line = re.sub(r'"([^"]*)"', "\u201c\\1\u201d", line)
    return re.sub(r"(?<=\w)'", "\u2019", line).replace(" - ", " \u2013 ")


# -- sources ------------------------------------------------------------------------------


def sources(limit: int = 150) -> list[Source]:
    """Real files of up to three languages that every machine with the project has."""
    paths = sysconfig.get_paths()
    node = HERE.parent / ".node" / "node_modules"
    found: list[Source] = []
    for root, patterns in (
        (Path(paths["stdlib"]), ("*.py", "email/*.py", "asyncio/*.py", "importlib/*.py")),
        (Path(paths["include"]), ("*.h", "cpython/*.h")),
        (node, ("**/*.js", "**/*.ts")),
    ):
        files = sorted({path for pattern in patterns for path in root.glob(pattern)})
        random.Random(1).shuffle(files)
        some = [source for path in files[: 4 * limit] if (source := _source(path)) is not None]
        found += some[:limit]
    return found


def _source(path: Path) -> Source | None:
    try:
        if not 3_000 < path.stat().st_size < 100_000:
            return None
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    if "\r" in text or "\f" in text or not text.endswith("\n"):
        return None
    lines = text.removesuffix("\n").split("\n")
    return Source(path.name, tuple(lines)) if len(lines) > 60 else None


def judge(case: Case, result: str | None) -> str:
    """What became of a case, one of OUTCOMES."""
    if result is None:
        return "refused"
    if case.right is None:
        return "WRONG"
    if result == case.right:
        return "right"
    if _inked(result) == _inked(case.right):
        inside = result.startswith(case.head) and result.endswith(case.tail)
        return "blanks differ" if inside else "elsewhere"
    if result.startswith(case.head) and result.endswith(case.tail):
        return "text differs"
    return "WRONG"


def _inked(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
