"""Layers of rules: an administrator's, a person's and a project's, and what is in force when they meet."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from filepact.config.policy_lint import RuleCheck, settled, unmet, wrong_list, wrong_pattern
from filepact.domain.policy import Layer, Policy, Rule
from filepact.domain.protected import BUILT_IN_RULES, SIGN_RULES
from filepact.text.glob import literal_length
from filepact.values import dataclass, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.config.problems import Key, ProblemList

__all__ = [
    "BUILT_IN",
    "NEVER_LIFTED",
    "PatternFolders",
    "RuleSet",
    "SettingsSource",
    "check_together",
    "exactly",
    "grouped",
    "named_path",
]

BUILT_IN: Final = (*BUILT_IN_RULES, *SIGN_RULES)
"""The rules that are in force everywhere."""

NEVER_LIFTED: Final = frozenset({"own files", "temporary files of filepact"})
"""Built-in rules that hold the guard itself together."""

# A folder that no rule names, for expectations about "a root" whichever it is.
_SOME_ROOT = "/\ue000"


@dataclass(frozen=True, slots=True)
class PatternFolders:
    """The folders at which absolute patterns start.

    Attributes:
        home: The home folder, absolute; None where there is none.
        true_path: The path of a folder with every link resolved.
    """

    home: str | None = None
    true_path: Callable[[str], str] = str


NOWHERE: Final = PatternFolders()
"""No home, and no link looked at."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one or several settings files.

    Attributes:
        rules: The rules, in the order of the file.
        fallbacks: What is said where no rule covers.
        expectations: What the files expect of them.
        keep: Built-in rules that no file may set aside, each with the file that says so.
    """

    rules: tuple[Rule, ...] = ()
    fallbacks: tuple[Rule, ...] = ()
    expectations: tuple[RuleCheck, ...] = ()
    keep: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(
            self.rules + other.rules,
            self.fallbacks + other.fallbacks,
            self.expectations + other.expectations,
            self.keep + other.keep,
        )

    def narrowed(self, project: RuleSet) -> RuleSet:
        """These with those of a project, which can take away and give nothing.

        A rule takes the place of a default.  Where a default denies, a project that asks would
        give, so there it denies as well.
        """
        denied = frozenset(a for r in self.fallbacks if r.verdict == "deny" for a in r.actions)
        rules: list[Rule] = []
        for rule in project.rules:
            if rule.verdict == "ask" and rule.actions & denied:
                why = f"{rule.why}; what is not allowed here is denied by default"
                rules.append(replace(rule, verdict="deny", actions=rule.actions & denied, why=why))
                rule = replace(rule, actions=rule.actions - denied)  # noqa: PLW2901 - what is left
            if rule.actions:
                rules.append(rule)
        return self + replace(project, rules=tuple(rules))

    def about(self, roots: Sequence[str]) -> RuleSet:
        """These without the rules that can say nothing about any of some folders, but for those about our own."""

        def kept(rule: Rule) -> bool:
            if rule.root is None or rule.name in NEVER_LIFTED:
                return True
            return any(_related(rule.root, root) for root in roots)

        return replace(
            self,
            rules=tuple(filter(kept, self.rules)),
            fallbacks=tuple(filter(kept, self.fallbacks)),
        )

    @property
    def policy(self) -> Policy:
        """These and the built-in rules, in force."""
        return _compiled(self.rules, self.fallbacks)


@lru_cache(maxsize=8)
def _compiled(rules: tuple[Rule, ...], fallbacks: tuple[Rule, ...]) -> Policy:
    # Every session of an editor has the same rules, and compiling them is most of its start.
    return Policy((*rules, *BUILT_IN), fallbacks)


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """A file of rules and its owner: the person, the administrator or a project.

    Attributes:
        layer: Who wrote it.
        name: How the file is called in messages; its last part names rules without a name.
        root: The folder that a project's file stands in.
        folders: What absolute patterns start at.
        above: What goes before: for a person's file the administrator's rules.
    """

    layer: Layer
    name: str
    root: str | None = None
    folders: PatternFolders = NOWHERE
    above: RuleSet = RuleSet()


def check_together(rules: RuleSet, source: SettingsSource) -> list[tuple[RuleCheck, str]]:
    """The expectations of a file that are not met, together with what goes before it."""
    policy = (source.above + rules).policy
    return [
        (expectation, said)
        for expectation in rules.expectations
        for said in unmet(expectation, policy, source.root or _SOME_ROOT)
    ]


def _related(one: str, other: str) -> bool:
    """Whether one of two folders holds the other, letter case aside."""
    shorter, longer = sorted((f"{each.casefold().rstrip('/')}/" for each in (one, other)), key=len)
    return longer.startswith(shorter)


# -- patterns as people write them -----------------------------------------------------------
#
# With ``~`` and ``//``, to lists that each count from one folder.  Absolute patterns are compared with
# true paths, in which no link is left.  So where the folders that such a pattern names lead elsewhere,
# it stands for that place as well.


_WILD = late_regex(r"([*?\[\\])")


def exactly(path: str) -> str:
    """The pattern for one path from the top and nothing else."""
    escaped = _WILD.sub(r"\\\1", path.strip("/"))
    return f"/{escaped}"


def grouped(
    patterns: Sequence[str], key: Key, folders: PatternFolders, problems: ProblemList
) -> list[tuple[str | None, tuple[str, ...]]]:
    """Patterns by the folder that they count from, ready for rules.

    Args:
        patterns: As they were written; an empty one was found wrong before.
        key: Where the list stands.
        folders: What absolute ones start at.
        problems: Takes what is wrong with them.

    Returns:
        ``/`` with what is absolute, and None with what counts from each root, as far as there is
        any.
    """
    lists: dict[str | None, list[tuple[int, str]]] = {None: [], "/": []}
    good = True
    for number, pattern in enumerate(patterns):
        absolute = _from_the_top(pattern, folders)
        said = "" if pattern == "" else wrong_pattern(absolute or pattern)
        if absolute == "":
            said = "starts at the home folder, and there is none"
        if said or not pattern:
            good = False
            if said:
                problems.add((*key, number), f"{pattern!r} {said}")
            continue
        for base in (None, "/") if _is_floating(pattern) else ("/" if absolute else None,):
            lists[base].append((number, absolute or pattern))
    if good and patterns:
        _check_lists(list(lists.values()), patterns, key, problems)
    return [
        (base, settled(_with_true_paths([each for _number, each in numbered], folders, base)))
        for base, numbered in lists.items()
        if any(not each.startswith("!") for _number, each in numbered)
    ]


def named_path(path: str, key: Key, folders: PatternFolders, problems: ProblemList) -> str:
    """The path of one file, from a root or with ``/`` in front from the top of the file system."""
    if path.startswith("~/") and folders.home is None:
        problems.add(key, f"{path!r} starts at the home folder, and there is none")
    if path.startswith("~/"):
        name = f"{(folders.home or '').rstrip('/')}/{path[2:]}"
    else:
        name = path[1:] if path.startswith("//") else path.lstrip("/")
    if ".." in name.split("/"):
        problems.add(key, f"{path!r} has a .. in it; name the file itself")
    return name


def _from_the_top(pattern: str, folders: PatternFolders) -> str | None:
    """An absolute pattern as one from the top; None if it is not absolute, empty without home."""
    negation = "!" if pattern.startswith("!") else ""
    body = pattern[len(negation) :]
    if body.startswith("//"):
        return f"{negation}/{body.lstrip('/')}"
    if body == "~" or body.startswith("~/"):
        if folders.home is None:
            return ""
        return f"{negation}{exactly(folders.home).rstrip('/')}/{body[1:].strip('/') or '**'}"
    return None


def _is_floating(pattern: str) -> bool:
    """Whether a pattern takes names back wherever they lie, so from any list."""
    return pattern.startswith("!") and "/" not in pattern.rstrip("/") and pattern != "!~"


def _check_lists(
    lists: Sequence[Sequence[tuple[int, str]]],
    patterns: Sequence[str],
    key: Key,
    problems: ProblemList,
) -> None:
    if all(pattern.startswith("!") for pattern in patterns):
        problems.add(key, "takes back only, and covers nothing")
        return
    idle: dict[int, str] = {}
    useful: set[int] = set()
    for numbered in lists:
        wrong = dict(wrong_list([each for _number, each in numbered]))
        for at, (number, _pattern) in enumerate(numbered):
            if at in wrong:
                idle[number] = max(idle.get(number, ""), wrong[at], key=len)
            else:
                useful.add(number)
    for number, said in idle.items():
        if number not in useful:
            problems.add((*key, number), f"{patterns[number]!r} {said}")


def _with_true_paths(
    patterns: Sequence[str], folders: PatternFolders, base: str | None
) -> list[str]:
    """Absolute patterns, each followed by the one for where its folders lead by links."""
    if base is None:
        return list(patterns)
    found: list[str] = []
    for pattern in patterns:
        found.append(pattern)
        negation, _slash, inside = pattern.partition("/")
        parts = inside.split("/")
        plain = 0
        while plain < len(parts) - 1 and literal_length(parts[plain]) == len(parts[plain]):
            plain += 1
        named = "/" + "/".join(parts[:plain])
        true = folders.true_path(named) if plain else named
        if true != named and negation in ("", "!"):
            rest = "/".join(parts[plain:])
            found.append(f"{negation}{exactly(true).rstrip('/')}/{rest}")
    return found
