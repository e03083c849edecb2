"""What filepact and the reference server for files are both asked to do, and how their answers are compared.

What the two do is not the same.  The reference server replaces a file without waiting for the disk and
keeps nothing; filepact writes an intention with both images to its journal, replaces the file durably, and can
take it back.  The reference server sends all of a file, twice; filepact as much as fits one answer.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TOGETHER", "Call", "Operation", "operations"]

Call = tuple[str, dict[str, Any]]

TOGETHER = 64
_PAGE = 35_000  # an answer of ours holds at least so many characters of a text


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of work.

    Attributes:
        name: As it is said in the record.
        ours: The call to filepact, by round.
        theirs: The call to the reference server.
        alike: Whether two answers say the same.
        goal: The ratio that is wanted, by the clock.
        fails: The call has to be refused.
        heavy: It takes so long that a tenth of the rounds is enough.
        together: How many calls are sent at once.
    """

    name: str
    ours: Callable[[int], Call]
    theirs: Callable[[int], Call]
    alike: Callable[[str, str], bool]
    goal: float | None = None
    fails: bool = False
    heavy: bool = False
    together: int = 1


def operations(tree: Path, *, big: int = 100_000_000) -> list[Operation]:
    """Prepare the files that the operations are about, in a tree that is there."""
    here = tree / "measured"
    here.mkdir(exist_ok=True)
    made = [
        *_reads(here, tree),
        *_windows(here, big),
        *_changes(here),
        *_lists(tree),
    ]
    small = [_text(here / f"small_{n}.py", 4_000) for n in range(TOGETHER)]
    made.append(
        Operation(
            f"read of 4 kB, {TOGETHER} at once",
            lambda n: ("read_file", {"path": str(small[n % TOGETHER])}),
            lambda n: ("read_text_file", {"path": str(small[n % TOGETHER])}),
            _same_text,
            goal=1.0,
            together=TOGETHER,
        )
    )
    made.append(_edits_together(here))
    return made


def _edits_together(here: Path) -> Operation:
    """Edits of as many files, each of which takes back what the one before has done to its file."""
    files = {
        who: [here / f"edit_{n}_of_many_{who}.py" for n in range(TOGETHER)]
        for who in ("ours", "theirs")
    }
    for path in (path for some in files.values() for path in some):
        _text(path, 4_000, first="row = old\n")
    done: Counter[Path] = Counter()

    def texts(path: Path) -> tuple[str, str]:
        old, new = (("old", "new"), ("new", "old"))[done[path] % 2]
        done[path] += 1
        return f"row = {old}\n", f"row = {new}\n"

    def ours(number: int) -> Call:
        path = files["ours"][number % TOGETHER]
        old, new = texts(path)
        return "edit_file", {"path": str(path), "old_string": old, "new_string": new}

    def theirs(number: int) -> Call:
        path = files["theirs"][number % TOGETHER]
        old, new = texts(path)
        return "edit_file", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}

    def alike(_ours: str, _theirs: str) -> bool:
        return all(
            path.read_text() == f"row = {('old', 'new')[done[path] % 2]}\n{_lines(4_000 - 10)}"
            for some in files.values()
            for path in some
        )

    name = f"edit of 4 kB, {TOGETHER} files at once"
    return Operation(name, ours, theirs, alike, together=TOGETHER)


def _reads(here: Path, tree: Path) -> list[Operation]:
    kinds = {"4 kB": (4_000, 1.8), "60 kB": (60_000, 1.3)}
    found = []
    for size, (length, goal) in kinds.items():
        files = [str(_text(here / f"read_{length}_{n}.py", length)) for n in range(50)]
        found.append(
            Operation(
                f"read {size}",
                lambda n, files=files: ("read_file", {"path": files[n % 50]}),  # type: ignore[misc]
                lambda n, files=files: ("read_text_file", {"path": files[n % 50]}),  # type: ignore[misc]
                _same_text,
                goal=goal,
            )
        )
    some = sorted(tree.rglob("*.py"))[:500]
    found.append(
        Operation(
            "read any source",
            lambda n: ("read_file", {"path": str(some[n % len(some)])}),
            lambda n: ("read_text_file", {"path": str(some[n % len(some)])}),
            _same_text,
        )
    )
    return found


def _windows(here: Path, big: int) -> list[Operation]:
    """The first and the last lines of files; the reference server has no others."""
    found = []
    sizes = {"60 kB": 60_000, "1 MB": 1_000_000, "9.5 MB": 9_500_000, "100 MB": 100_000_000}
    for size, length in sizes.items():
        if length > big:
            continue
        path = str(_text(here / f"window_{length}.txt", length))
        for end, key, offset in (("first", "head", 0), ("last", "tail", -50)):
            found.append(
                Operation(
                    f"{end} 50 lines of {size}",
                    lambda _, path=path, offset=offset: (  # type: ignore[misc]
                        "read_file",
                        {"path": path, "lines": 50, "offset": offset},
                    ),
                    lambda _, path=path, key=key: ("read_text_file", {"path": path, key: 50}),  # type: ignore[misc]
                    _same_text if offset == 0 else _same_end,
                    goal=2.0,
                )
            )
    return found


def _changes(here: Path) -> list[Operation]:
    def edit(number: int, ours: bool, path: Path) -> Call:
        # The n-th edit takes back what the one before has done to the line, twice round.
        row, (old, new) = number // 2 % 100, (("old", "new"), ("new", "old"))[number % 2]
        old, new = f"row {row} = {old}\n", f"row {row} = {new}\n"
        if ours:
            return "edit_file", {"path": str(path), "old_string": old, "new_string": new}
        return "edit_file", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}

    found = []
    for size, length in {"4 kB": 4_000, "60 kB": 60_000}.items():
        both = [here / f"edit_{length}_{who}.py" for who in ("ours", "theirs")]
        for path in both:
            _text(path, length, first="".join(f"row {n} = old\n" for n in range(100)))
        found.append(
            Operation(
                f"edit of {size}",
                lambda n, path=both[0]: edit(n, ours=True, path=path),  # type: ignore[misc]
                lambda n, path=both[1]: edit(n, ours=False, path=path),  # type: ignore[misc]
                lambda _, __, both=both: both[0].read_bytes() == both[1].read_bytes(),  # type: ignore[misc]
                goal=1.3,
            )
        )
    written = [here / f"written_{who}.py" for who in ("ours", "theirs")]
    text = _lines(4_000)
    found.append(
        Operation(
            "write 4 kB",
            lambda n: ("write_file", {"path": str(written[0]), "content": f"# {n}\n{text}"}),
            lambda n: ("write_file", {"path": str(written[1]), "content": f"# {n}\n{text}"}),
            lambda _, __: written[0].read_bytes() == written[1].read_bytes(),
            goal=0.75,
        )
    )
    missed = _text(here / "missed.py", 60_000)
    absent = {"old": "row that is nowhere = here\n", "new": "x\n"}
    found.append(
        Operation(
            "edit that misses",
            lambda _: (
                "edit_file",
                {
                    "path": str(missed),
                    "old_string": absent["old"],
                    "new_string": absent["new"],
                },
            ),
            lambda _: (
                "edit_file",
                {
                    "path": str(missed),
                    "edits": [{"oldText": absent["old"], "newText": absent["new"]}],
                },
            ),
            lambda _, __: True,
            fails=True,
        )
    )
    return found


def _lists(tree: Path) -> list[Operation]:
    return [
        Operation(
            "find **/*.py",
            lambda _: ("search_files", {"pattern": "**/*.py", "maxResults": 10_000}),
            lambda _: ("search_files", {"path": str(tree), "pattern": "**/*.py"}),
            lambda ours, theirs: _begins(_names(ours), _names(theirs, tree)),
            heavy=True,
        ),
        Operation(
            "whole tree",
            lambda _: ("directory_tree", {"depth": 10}),
            lambda _: ("directory_tree", {"path": str(tree)}),
            lambda ours, theirs: _counted(json.loads(theirs)) in _numbers(ours),
            goal=40.0,
            heavy=True,
        ),
    ]


# -- texts --------------------------------------------------------------------------------


def _lines(length: int) -> str:
    made: list[str] = []
    size = 0
    while size < length:
        line = f"    value_{len(made)} = compute(node, {len(made)})  # of the {len(made) % 7}th\n"
        made.append(line)
        size += len(line)
    return "".join(made)


def _text(path: Path, length: int, first: str = "") -> Path:
    if not path.exists() or first:
        path.write_text(first + _lines(length - len(first)))
    return path


# -- answers ------------------------------------------------------------------------------


def _same_text(ours: str, theirs: str) -> bool:
    """Whether the lines of ours are the first of theirs, and are so many as fit an answer."""
    shown = [line.partition("│")[2] for line in ours.splitlines() if "│" in line[:12]]
    wanted = theirs.splitlines()
    whole = len(shown) >= len(wanted) or len(ours) >= _PAGE
    return bool(shown) and whole and shown[: len(wanted)] == wanted[: len(shown)]


def _same_end(ours: str, theirs: str) -> bool:
    """The same of last lines; to the reference server what is behind the last line end is one as well."""
    shown = [line.partition("│")[2] for line in ours.splitlines() if "│" in line[:12]]
    wanted = [line for line in theirs.splitlines() if line]
    return len(wanted) >= 49 and shown[-len(wanted) :] == wanted


def _names(text: str, tree: Path | None = None) -> set[str]:
    lines = (line.strip() for line in text.splitlines() if line and not line.startswith("["))
    return {line.removeprefix(f"{tree}/") for line in lines}


def _begins(ours: set[str], theirs: set[str]) -> bool:
    """Whether all that fits one answer of ours is right, and nothing is missing where all fits."""
    return bool(ours) and ours <= theirs and (len(ours) == len(theirs) or len(ours) > 200)


def _counted(entries: list[dict[str, Any]]) -> int:
    return sum(1 if one["type"] == "file" else _counted(one.get("children", [])) for one in entries)


def _numbers(text: str) -> set[int]:
    words = text.splitlines()[-1].replace(",", "").replace("|", " ").replace("[", " ").split()
    return {int(word) for word in words if word.isdigit()}
