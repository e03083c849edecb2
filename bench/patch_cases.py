"""Faulty patches of real files, nineteen kinds that can be applied and four that must not be.

Two versions of a real source file are made by changing, adding and removing lines of it; the
patch between them is what ``diff -u`` prints.  Then the patch or the file is damaged in one way.
"""

from __future__ import annotations

import random
import re
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FITTING", "KINDS", "REFUSED", "Case", "cases", "sources"]

HEADER = "--- a/f\n+++ b/f\n"
NUMBERS = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One patch for one file.

    Attributes:
        text: What the file holds; None when there is no file.
        patch: As it is sent.
        right: What the file has to hold then, empty when it is deleted; None when only a refusal
            is right.
        reverse: The patch is to be taken back.
    """

    kind: str
    text: str | None
    patch: str
    right: str | None
    reverse: bool = False


def sources(limit: int = 120) -> list[list[str]]:
    """Lines of real files of two languages, which every machine with Python has."""
    paths = sysconfig.get_paths()
    found: list[list[str]] = []
    for root, patterns in (
        (Path(paths["stdlib"]), ("*.py", "email/*.py", "asyncio/*.py", "json/*.py")),
        (Path(paths["include"]), ("*.h", "cpython/*.h", "internal/*.h")),
    ):
        files = sorted({path for pattern in patterns for path in root.glob(pattern)})
        random.Random(1).shuffle(files)
        some = [lines for path in files if (lines := _lines(path))]
        found += some[:limit]
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return []
    plain = not re.search("[\r\f\x85\u2028]", text) and text.endswith("\n")
    lines = text.split("\n")[:-1]
    return lines if plain and 80 < len(lines) < 2_500 else []


def diff(old: str, new: str) -> str:
    """The hunks that ``diff -u`` prints, without a file header."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("old", old), ("new", new)):
            Path(folder, name).write_bytes(text.encode())
        done = subprocess.run(
            ["diff", "-u", "old", "new"], cwd=folder, capture_output=True, check=False
        )
    return done.stdout.decode().split("\n", 2)[2]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions of one file and the patch between them, without a file header."""

    old: str
    new: str
    patch: str

    def hunks(self) -> list[str]:
        return re.split(r"^(?=@@ -\d)", self.patch, flags=re.MULTILINE)[1:]


def changed(rng: random.Random, lines: list[str], count: int) -> list[str]:
    """The lines with ``count`` places changed, far enough apart for hunks of their own."""
    new = list(lines)
    room = len(lines) // count
    for number in reversed(range(count)):
        at = number * room + rng.randrange(8, room - 8)
        kind = rng.randrange(4)
        if kind == 0:
            new[at:at] = [
                f"{_indent(lines[at])}added_{at} = {n}" for n in range(rng.randrange(1, 4))
            ]
        elif kind == 1:
            del new[at : at + rng.randrange(1, 4)]
        else:
            new[at : at + 1] = [f"{_indent(lines[at])}changed_{at}({lines[at].strip()!r})"]
    return new


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def pair(rng: random.Random, lines: list[str], count: int | None = None) -> Pair:
    count = rng.choice((1, 1, 2, 3)) if count is None else count
    old = "".join(f"{line}\n" for line in lines)
    new = "".join(f"{line}\n" for line in changed(rng, lines, count))
    return Pair(old, new, diff(old, new))


# -- what can be applied ------------------------------------------------------------------


def clean(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.old, HEADER + one.patch, one.new)


def without_header(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.old, one.patch, one.new)


def shifted(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    above = "".join(f"# line {n} above\n" for n in range(rng.randrange(1, 60)))
    return Case("", above + one.old, HEADER + one.patch, above + one.new)


def backwards(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.new, HEADER + one.patch, one.old, reverse=True)


def crlf_file(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    old, new = (text.replace("\n", "\r\n") for text in (one.old, one.new))
    return Case("", old, HEADER + one.patch, new)


def crlf_patch(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.old, (HEADER + one.patch).replace("\n", "\r\n"), one.new)


def wrong_counts(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)

    def miscounted(header: re.Match[str]) -> str:
        found = re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", header[0])
        if found is None:
            return header[0]
        old, new = (max(int(found[i] or 1) + rng.choice((-2, -1, 1, 3)), 1) for i in (2, 4))
        return f"@@ -{found[1]},{old} +{found[3]},{new} @@{found[5]}"

    return Case("", one.old, HEADER + NUMBERS.sub(miscounted, one.patch), one.new)


def all_ones(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    patch = re.sub(
        r"^@@ -\d+(,\d+)? \+\d+(,\d+)? @@", r"@@ -1\1 +1\2 @@", one.patch, flags=re.MULTILINE
    )
    return Case("", one.old, HEADER + patch, one.new)


def no_numbers(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.old, HEADER + NUMBERS.sub("@@ ... @@", one.patch), one.new)


def lost_blank(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    patch = re.sub(r"^ $", "", one.patch, flags=re.MULTILINE)
    return Case("", one.old, HEADER + patch, one.new) if patch != one.patch else None


def edge_differs(rng: random.Random, lines: list[str]) -> Case | None:
    """The first or last context line of a hunk is not what the file has."""
    one = pair(rng, lines)
    hunks = one.hunks()
    which = rng.randrange(len(hunks))
    body = hunks[which].split("\n")
    at = rng.choice((1, len(body) - 2))
    if not body[at].startswith(" "):
        return None
    body[at] += "  # remembered otherwise"
    hunks[which] = "\n".join(body)
    return Case("", one.old, HEADER + "".join(hunks), one.new)


def no_newline(rng: random.Random, lines: list[str]) -> Case | None:
    some = lines[: rng.randrange(40, 80)]
    last = some[-1]
    some[-1] = "last = 1" if rng.random() < 0.5 else last + " # last"
    old = "\n".join([*some[:-1], last]) + rng.choice(("", "\n"))
    new = "\n".join(some) + ("" if old.endswith("\n") else rng.choice(("", "\n")))
    return Case("", old, HEADER + diff(old, new), new) if last and old != new else None


def odd_break(character: str) -> Callable[[random.Random, list[str]], Case | None]:
    def make(rng: random.Random, lines: list[str]) -> Case | None:
        odd = [
            line[: len(line) // 2] + character + line[len(line) // 2 :]
            if rng.random() < 0.4
            else line
            for line in lines
        ]
        one = pair(rng, odd)
        return Case("", one.old, HEADER + one.patch, one.new) if character in one.patch else None

    return make


def many_hunks(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines, min(rng.randrange(5, 12), len(lines) // 20))
    above = "".join(f"# line {n} above\n" for n in range(rng.randrange(1, 60)))
    return Case("", above + one.old, HEADER + one.patch, above + one.new)


def from_git(rng: random.Random, lines: list[str]) -> Case | None:
    """What ``git format-patch`` and a model's answer have around the hunks."""
    one = pair(rng, lines)
    header = f"diff --git a/f b/f\nindex 1b2f3a4..5c6d7e8 100644\n{HEADER}"
    if rng.random() < 0.5:
        header = f"Subject: [PATCH] Change a line\n\n- one reason\n---\n f | 2 +-\n\n{header}"
        return Case("", one.old, f"{header}{one.patch}-- \n2.39.5\n\n", one.new)
    told = f"Here is the change:\n\n```diff\n{header}{one.patch}```\n\n- It changes a line.\n"
    return Case("", one.old, told, one.new)


def new_file(rng: random.Random, lines: list[str]) -> Case | None:
    text = "\n".join(lines[: rng.randrange(3, 60)]) + rng.choice(("", "\n"))
    patch = f"--- /dev/null\n+++ b/f\n{diff('', text)}"
    if rng.random() < 0.5:
        patch = f"diff --git a/f b/f\nnew file mode 100644\nindex 0000000..5c6d7e8\n{patch}"
    return Case("", None, patch, text)


def deleted_file(rng: random.Random, lines: list[str]) -> Case | None:
    text = "\n".join(lines[: rng.randrange(3, 60)]) + rng.choice(("", "\n"))
    patch = f"--- a/f\n+++ /dev/null\n{diff(text, '')}"
    if rng.random() < 0.5:
        patch = f"diff --git a/f b/f\ndeleted file mode 100644\nindex 5c6d7e8..0000000\n{patch}"
    return Case("", text, patch, "")


# -- what must be refused -----------------------------------------------------------------


def already_applied(rng: random.Random, lines: list[str]) -> Case | None:
    one = pair(rng, lines)
    return Case("", one.new, HEADER + one.patch, None)


def removed_line_gone(rng: random.Random, lines: list[str]) -> Case | None:
    """Somebody changed a line that the patch removes."""
    one = pair(rng, lines)
    found = [
        (hunk, number)
        for hunk, text in enumerate(one.hunks())
        for number, line in enumerate(text.split("\n"))
        if line.startswith("-")
    ]
    if not found:
        return None
    return Case("", _rewritten(one, *rng.choice(found), 1), HEADER + one.patch, None)


def context_gone(rng: random.Random, lines: list[str]) -> Case | None:
    """Somebody rewrote everything around one change, but not what it removes."""
    one = pair(rng, lines)
    hunks = one.hunks()
    which = rng.randrange(len(hunks))
    text = one.old
    for number, line in enumerate(hunks[which].split("\n")):
        if line.startswith(" "):
            text = _rewritten(one, which, number, 1, text)
    return Case("", text, HEADER + one.patch, None)


def half_fits(rng: random.Random, lines: list[str]) -> Case | None:
    """One hunk of several belongs to lines that have been rewritten."""
    one = pair(rng, lines, rng.choice((2, 3, 4)))
    which = rng.randrange(len(one.hunks()))
    return Case("", _rewritten(one, which, 1, 99), HEADER + one.patch, None)


def _rewritten(one: Pair, hunk: int, number: int, most: int, text: str | None = None) -> str:
    """The old text with up to ``most`` lines of a hunk, from its line ``number`` on, rewritten."""
    body = one.hunks()[hunk].split("\n")
    start = int(body[0].split("-")[1].split(",")[0].split(" ")[0]) - 1
    lines = (one.old if text is None else text).split("\n")
    before = sum(line[:1] in ("-", " ") for line in body[1:number])
    olds = [line for line in body[number:] if line[:1] in ("-", " ")][:most]
    for at in range(start + before, start + before + len(olds)):
        lines[at] = f"rewritten_{at}()"
    return "\n".join(lines)


FITTING: dict[str, Callable[[random.Random, list[str]], Case | None]] = {
    "clean": clean,
    "without file header": without_header,
    "shifted by lines above": shifted,
    "reverse": backwards,
    "CRLF file, LF patch": crlf_file,
    "LF file, CRLF patch": crlf_patch,
    "wrong hunk counts": wrong_counts,
    "all line numbers 1": all_ones,
    "`@@ ... @@` without numbers": no_numbers,
    "empty context line lost its blank": lost_blank,
    "edge of the context differs": edge_differs,
    "no newline at end": no_newline,
    "form feed in lines": odd_break("\f"),
    "U+2028 in lines": odd_break("\u2028"),
    "U+0085 in lines": odd_break("\x85"),
    "many hunks, shifted": many_hunks,
    "git headers, prose around": from_git,
    "new file": new_file,
    "deletion": deleted_file,
}
REFUSED: dict[str, Callable[[random.Random, list[str]], Case | None]] = {
    "already applied": already_applied,
    "removed line gone": removed_line_gone,
    "context gone": context_gone,
    "half fits": half_fits,
}
KINDS = FITTING | REFUSED


def cases(count: int, seed: int) -> list[Case]:
    """``count`` cases of each kind."""
    files = sources()
    found: list[Case] = []
    for kind, make in KINDS.items():
        rng = random.Random(f"{seed} {kind}")
        some: list[Case] = []
        while len(some) < count:
            case = make(rng, list(rng.choice(files)))
            if case is not None:
                some.append(Case(kind, case.text, case.patch, case.right, case.reverse))
        found += some
    return found
