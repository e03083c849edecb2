"""How many changes, and how many stretches of work, meet a file that waits for a person.

    python bench/waiting_files.py REPOSITORY... [--commits N] [--gap MINUTES] [--bumps] [--write]

Recorded sessions of agents are not to be had.  What can be had are histories.  Of each repository, which is only read,
the newest commits of people are taken; those of one author, each at most so many minutes after the one before, are one
stretch of work.  Every file that a commit changes is judged by the built-in rules as a change of an agent's would be,
with what it holds before and after.  ``--write`` puts the table into bench/README.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from filepact.domain.harmless import is_harmless
from filepact.domain.policy import AccessRequest, Policy
from filepact.domain.protected import BUILT_IN_RULES, SIGN_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by waiting_files.py -->"
END = "<!-- end of what waiting_files.py wrote -->"
POLICY = Policy((*BUILT_IN_RULES, *SIGN_RULES))
ACTIONS: dict[str, Literal["create", "delete", "write"]] = {"A": "create", "D": "delete"}


class Repository:
    """The newest commits of a history.

    Args:
        folder: Where it is.
        most: How many are taken.
        bumps: Whether new versions of what is required already need no yes, as a setting has it.
    """

    def __init__(self, folder: Path, most: int, *, bumps: bool) -> None:
        self._folder, self._most, self._bumps = folder, most, bumps

    def _git(self, *words: str) -> bytes:
        command = ["git", "-C", str(self._folder), *words]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def commits(self) -> Iterator[tuple[str, float, list[tuple[str, str, str, str]]]]:
        """The commits of people, oldest first: author, time, and each file's kind of change, blobs and path."""
        words = ("log", "--no-merges", "--raw", "--no-abbrev", "--no-renames", "--reverse", "-z")
        said = self._git(*words, f"-n{self._most}", "--format=%x01%at%x02%an%x02%ae").decode(
            errors="replace"
        )
        for part in said.split("\x01")[1:]:
            head, *rest = part.split("\0")
            when, *author = head.strip().split("\x02")
            # After the format's end the files follow by twos: their facts, and the path.
            files = [one for one in rest if one]
            if "bot" in " ".join(author).lower().replace("[bot]", " bot").split():
                continue
            found = []
            for facts, path in zip(files[::2], files[1::2], strict=True):
                _, _, old, new, kind = facts.strip().split(" ")
                found.append((kind[0], old, new, path))
            yield author[-1], float(when), found

    def waits(self, kind: str, old: str, new: str, path: str) -> str:
        """The rule for which a change waits or is refused; empty where it is done at once."""
        action = ACTIONS.get(kind, "write")
        found = POLICY.decide(AccessRequest("/root", path, action, "agent"))
        if found.verdict == "allow":
            return ""
        if action == "write" and found.rule.spares is not None:
            before, after = (self._git("cat-file", "blob", one) for one in (old, new))
            if is_harmless(path, before, after, bumps=self._bumps):
                return ""
        return found.rule.name


def judged(repository: Repository, gap: float) -> tuple[list[int], Counter[str]]:
    """Changes, and stretches of work, each with how many of them wait; and for which rules."""
    changes = [0, 0]
    rules: Counter[str] = Counter()
    last: dict[str, float] = {}
    stretches: list[bool] = []
    open_ones: dict[str, int] = {}
    for author, when, files in repository.commits():
        if author not in last or when - last[author] > gap:
            open_ones[author] = len(stretches)
            stretches.append(False)
        last[author] = when
        for file in files:
            changes[0] += 1
            if rule := repository.waits(*file):
                changes[1] += 1
                rules[rule] += 1
                stretches[open_ones[author]] = True
    return [*changes, len(stretches), sum(stretches)], rules


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--commits", type=int, default=1_000)
    parser.add_argument("--gap", type=float, default=60, help="minutes")
    parser.add_argument(
        "--bumps", action="store_true", help="as with dependency_versions in the settings"
    )
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = [
        "| history | changes | of them wait | stretches of work | of them meet a file that waits |",
        "| --- | --- | --- | --- | --- |",
    ]
    sums, rules = [0, 0, 0, 0], Counter[str]()
    for folder in options.repositories:
        repository = Repository(folder, options.commits, bumps=options.bumps)
        found, why = judged(repository, options.gap * 60)
        sums = [before + one for before, one in zip(sums, found, strict=True)]
        rules += why
        name = folder.parent.name if folder.name == "repo" else folder.name
        rows.append(row(name.replace("+", "/"), found))
    rows.append(row("all", sums))
    most = ", ".join(f"{name} {count:,}" for name, count in rules.most_common())
    said = "\n".join([*rows, "", f"The rules: {most}."])
    print(said)
    if options.write:
        page = HERE / "README.md"
        before, _, rest = page.read_text().partition(MARK)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{MARK}\n\n{said}\n\n{END}{after}")


def row(name: str, found: list[int]) -> str:
    """A line of the table."""
    changes, waiting, stretches, meeting = found
    shares = [
        100 * part / (whole or 1) for part, whole in ((waiting, changes), (meeting, stretches))
    ]
    return (
        f"| {name} | {changes:,} | {waiting:,} ({shares[0]:.1f} %) "
        f"| {stretches:,} | {meeting:,} ({shares[1]:.1f} %) |"
    )


if __name__ == "__main__":
    main()
