"""Names of the files of installed packages, and which of them the built-in rules stand against.

``python -m tests.hostile.benign [FOLDER...]`` lists every hit, one by one.

A hit of a secret rule is right when the file holds what the rule says: a private key, or a store
for keys.  A hit of a control rule is right when it is such a file: caught by a whole name, by a
folder that belongs to an editor or an agent, or by an ending that only such files have.  What an
open wildcard caught, or a whole name that means something else here, is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import sysconfig
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.domain.names import copied
from filepact.domain.policy import AccessRequest, Policy, decide
from filepact.domain.protected import BUILT_IN_RULES
from filepact.text.pattern_set import PatternSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENOUGH = 50_000
SECRETS = ("key stores", "project secrets")
CONTROL = ("control files",)
MANIFESTS = ("manifests",)
MOST = {SECRETS: 0.05, CONTROL: 0.2}
"""Most per cent of ordinary files that rules may wrongly stand against."""

_PROJECT = Path(__file__).parents[2]
_PRIVATE = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_STORES = (".jks", ".keystore", ".p12", ".pfx", ".kdbx")
_TOO_OPEN = (
    "*.pri",
    "*.pro",
    "*.spec",
    "*.wrap",
    "build.yaml",
    "docker-compose-*",
    "dockerfile.*",
    "requirements[-_]*.txt",
)
_NAMESAKES = {"agent.md"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A file that a rule stands against."""

    rule: str
    pattern: str
    path: str
    wrong: bool


def folders() -> list[str]:
    """Where installed packages lie: this environment, its interpreter, Node's, the system's."""
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], str(_PROJECT / ".node"), paths["stdlib"]]
    found += [path for path in sys.path if Path(path).name.endswith("-packages")]
    system = ("/usr/lib/node_modules", "/usr/lib/python3", "/usr/include", "/usr/share", "/usr/lib")
    return [path for path in dict.fromkeys([*found, *system]) if Path(path).is_dir()]


def files(roots: Iterable[str], enough: int | None = None) -> Iterator[tuple[str, str]]:
    """Each file below some folders once, as its folder of those and its path below that.

    Args:
        roots: The folders; a later one is left out where the earlier ones hold enough.
        enough: How many files are enough; None for all.
    """
    known: set[str] = set()
    for root in roots:
        if enough is not None and len(known) >= enough:
            return
        for folder, below, names in os.walk(root):
            below.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if path not in known:
                    known.add(path)
                    yield root, os.path.relpath(path, root)


def examine(found: Iterable[tuple[str, str]]) -> tuple[int, list[Hit]]:
    """How many files there were, and what the rules stand against."""
    policy = Policy(BUILT_IN_RULES)
    patterns = {
        rule.name: (
            [p for p in rule.paths if p[0] != "!"],
            PatternSet([[p] for p in rule.paths if p[0] != "!"]),
        )
        for rule in BUILT_IN_RULES
    }
    count, hits = 0, []
    for root, path in found:
        count += 1
        decision = decide(AccessRequest(root, path, "write"), policy)
        rule = decision.rule.name
        if decision.verdict == "allow":
            continue
        names, each = patterns[rule]
        parts = path.casefold().split("/")
        fitting = each.matching(parts) or each.matching([*map(copied, parts)])
        pattern = names[min(fitting)] if fitting else parts[-1]
        hits.append(Hit(rule, pattern, f"{root}/{path}", _wrong(rule, pattern, root, path)))
    return count, hits


def _wrong(rule: str, pattern: str, root: str, path: str) -> bool:
    if rule in SECRETS:
        if path.endswith(_STORES):
            return False
        try:
            return _PRIVATE.search(Path(root, path).read_bytes()) is None
        except OSError:
            return True
    return pattern in _TOO_OPEN or path.rpartition("/")[2].casefold() in _NAMESAKES


def share(count: int, hits: Iterable[Hit], rules: tuple[str, ...], *, wrong: bool) -> float:
    """Per cent of the files that some rules stand against, or only wrongly so."""
    caught = [hit for hit in hits if hit.rule in rules and (hit.wrong or not wrong)]
    return 100 * len(caught) / count


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Which files the built-in rules stand against.")
    parser.add_argument("folder", nargs="*")
    given = parser.parse_args(arguments).folder
    count, hits = examine(files(given) if given else files(folders(), ENOUGH))
    print(f"{count} files")
    for rules in (SECRETS, CONTROL, MANIFESTS):
        caught, wrong = (share(count, hits, rules, wrong=flag) for flag in (False, True))
        print(f"{' and '.join(rules)}: {caught:.4f} % caught, {wrong:.4f} % wrongly")
    for (rule, pattern), many in sorted(Counter((hit.rule, hit.pattern) for hit in hits).items()):
        print(f"{rule}: {pattern}: {many}")
    for hit in sorted(hits, key=lambda hit: (hit.rule, not hit.wrong, hit.path)):
        print(f"{hit.rule}: {'WRONG ' if hit.wrong else ''}{hit.path} ({hit.pattern})")
    shares = {rules: share(count, hits, rules, wrong=True) for rules in MOST}
    return 1 if any(found > MOST[rules] for rules, found in shares.items()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
