"""What agents look for in a tree, drawn from the tree itself by how many of its files hold a word."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TextQuery", "draw"]

_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{4,30}")
_WIDE = re.compile("[^\\W\\d_a-zA-Z]{2,12}")
_CALL = re.compile(rb"([A-Za-z_][A-Za-z0-9_]{4,30})\(")
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class TextQuery:
    """One search, as both sides understand it.

    Attributes:
        kind: What it is an example of.
        pattern: A regular expression that means the same to RE2 and to ripgrep.
    """

    kind: str
    pattern: str
    case_sensitive: bool = True

    def ours(self, limit: int) -> tuple[str, dict[str, Any]]:
        """The call of the tool."""
        return "grep", {
            "pattern": self.pattern,
            "maxResults": limit,
            "case_sensitive": self.case_sensitive,
        }

    def ripgrep(self) -> list[str]:
        """The arguments of ripgrep."""
        case = [] if self.case_sensitive else ["--ignore-case"]
        return ["--line-number", "--color=never", "--sort=none", *case, "-e", self.pattern, "./"]


def draw(tree: Path, *, seed: int = 1, files: int = 20_000) -> list[TextQuery]:
    """Fifty searches: rare and common words, whole words, calls, alternatives, patterns without a word."""
    dice = random.Random(seed)
    counts: Counter[bytes] = Counter()
    calls: Counter[bytes] = Counter()
    wide: Counter[str] = Counter()
    paths = sorted(
        path for path in tree.rglob("*") if path.is_file() and not _hidden(path.relative_to(tree))
    )
    some = sorted(dice.sample(paths, min(files, len(paths))))
    looked = 0
    for path in some:
        data = path.read_bytes()[:_MOST]
        if b"\0" in data:
            continue
        looked += 1
        counts.update(set(_WORD.findall(data)))
        calls.update(set(_CALL.findall(data)))
        if not data.isascii():
            wide.update(set(_WIDE.findall(data.decode("utf-8", "replace"))))
    rare = [word for word, n in sorted(counts.items()) if 1 <= n <= 5]
    medium = [word for word, n in sorted(counts.items()) if looked * 0.003 < n < looked * 0.02]
    common = [word for word, n in sorted(counts.items()) if looked * 0.06 < n < looked * 0.5]
    called = [word for word, n in sorted(calls.items()) if looked * 0.001 < n < looked * 0.02]

    def pick(words: list[bytes], many: int) -> list[str]:
        return [word.decode() for word in dice.sample(words, min(many, len(words)))]

    found = [TextQuery("rare", word) for word in pick(rare, 13)]
    found += [TextQuery("medium", word) for word in pick(medium, 10)]
    found += [TextQuery("common", word) for word in pick(common, 4)]
    found += [TextQuery("whole word", rf"\b{word}\b") for word in pick(medium, 4)]
    found += [TextQuery("call", rf"{word}\s*\(") for word in pick(called, 3)]
    found += [
        TextQuery("either", "|".join([*pick(rare, 1), *pick(medium, 1), *pick(rare, 1)]))
        for _ in range(3)
    ]
    found += [
        TextQuery("any case", word.swapcase(), case_sensitive=False) for word in pick(medium, 3)
    ]
    found += [TextQuery("line start", rf"^\s*{word}") for word in pick(medium, 2)]
    found += [
        TextQuery("gap", f"{word}.*{other}")
        for word, other in zip(pick(medium, 2), pick(common, 2), strict=True)
    ]
    found += [
        TextQuery("no literal", r"[A-Z]{3}\d{4}"),
        TextQuery("no literal", r"\b\d{2}:\d{2}:\d{2}\b"),
    ]
    found += [TextQuery("absent", word) for word in ("zqxj_nowhere_to_be", "Wvqk0NotThere")]
    letters = sorted(word for word, n in wide.items() if n <= 5 and word.isalpha())
    found.append(TextQuery("not ASCII", dice.choice(letters) if letters else "Übergröße"))
    found.append(TextQuery("short", "zQ"))
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
