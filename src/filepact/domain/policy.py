"""The policy: decides by rules what may be done to which file, and fails closed.

Of all rules that cover a request one decides: deny goes before ask, ask before allow, whoever
wrote them.  A built-in rule is out of it only where a rule of the person or the administrator
that allows the same request names it in ``lifts``.  Where none of theirs covers, the fallbacks
count as well, and where there is none the answer is allow, for whoever asks is already beneath a
root.

Names are compared by their :func:`~filepact.domain.names.key`, so that a disguise (letter case,
compatibility characters, invisible ones, trailing dots, streams, short names) is the name that it
would reach on some system.  Callers ask for the name as it was sent and for the name with every
link resolved; both must pass.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.names import (
    ShortNames,
    are_plain,
    copied,
    is_plain,
    is_short,
    key,
    looks_copied,
)
from filepact.text.glob import literal_length
from filepact.text.pattern_set import PatternSet
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from filepact.text.pattern_set import NameIndex

__all__ = [
    "ACTIONS",
    "READS",
    "WRITES",
    "AccessRequest",
    "Action",
    "Decision",
    "EntryFilter",
    "Layer",
    "NameFilter",
    "Policy",
    "Rule",
    "Sign",
    "Verdict",
    "decide",
]

Action = Literal["read", "list", "write", "create", "delete"]
Verdict = Literal["allow", "ask", "deny"]
Layer = Literal["administrator", "person", "project", "built-in"]
Sign = Literal[
    "private key", "hidden characters", "look-alike name", "executable", "encoding",
    "repository", "shell name", "harmless",
]  # fmt: skip
"""What was noticed about a file or a change, beyond its name."""

READS: Final[frozenset[Action]] = frozenset({"read"})
WRITES: Final[frozenset[Action]] = frozenset({"write", "create", "delete"})
ACTIONS: Final[frozenset[Action]] = READS | WRITES | {"list"}

_AT_ONCE: Final = 4_096
_REMEMBERED: Final = 2_048
_LONGEST_REMEMBERED: Final = 500
_PRECEDENCE: Final[dict[Verdict, int]] = {"deny": 0, "ask": 1, "allow": 2}


@dataclass(frozen=True, slots=True)
class Rule:
    """Files, and what may be done to them.

    Attributes:
        name: How the rule is called when it decides, such as ``key stores``.
        verdict: What it says.
        paths: Gitignore patterns; a folder is covered with all it holds, ``!`` spares a name.
        why: One sentence for the reader of a refusal.
        actions: What it decides about.
        agents: Globs over the agent's name; letter case does not count.
        signs: It covers also, whatever the path, what shows one of these.
        spares: It does not cover what shows this, whatever the path; None for nothing.
        lifts: Names of built-in rules that do not count for what this rule allows.
        root: The absolute folder that alone it counts below and that anchored patterns start
            at; None for every root.
        copies: It covers also what editors and people call copies of such files.
        apart: Places, of one pattern for each part of a path, of which it judges what lies there as if that lay at the
            top of a root, unless it covers what they lie in; one with a slash at the end is a folder, whatever lies in it.
        files: Names, as they are compared, that it covers at the end of a path unless they are written
            exactly so: in small letters they are everyday folders, and programs look for capitals.
        layer: Who wrote it.
        file: The file that it stands in, empty for a built-in rule.
        line: The line there, 1-based; 0 for a built-in rule.
    """

    name: str
    verdict: Verdict
    paths: tuple[str, ...]
    why: str
    actions: frozenset[Action] = ACTIONS
    agents: tuple[str, ...] = ("*",)
    signs: frozenset[Sign] = frozenset()
    spares: Sign | None = None
    lifts: frozenset[str] = frozenset()
    root: str | None = None
    copies: bool = False
    apart: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    layer: Layer = "built-in"
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """The rule's source, for people: ``filepact.toml:12`` or ``built-in``."""
        return f"{self.file}:{self.line}" if self.file else self.layer


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """An action on one file, by an agent or a person.

    Attributes:
        root: The absolute folder that the path starts at.
        path: Parts joined by ``/``; ``.`` is the root itself.
        action: What is to be done.
        agent: The name that the agent gives itself; empty for a person.
        signs: What was noticed about the file or the change.
    """

    root: str
    path: str
    action: Action
    agent: str = ""
    signs: frozenset[Sign] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the rule that gave it."""

    verdict: Verdict
    rule: Rule

    @property
    def why(self) -> str:
        return self.rule.why


_INSIDE = Decision(
    "allow", Rule("default", "allow", ("**",), "inside a root and protected by no rule")
)


class Policy:
    """Every rule in force, compiled.

    Args:
        rules: In any order; of equally strong ones the first is named.
        fallbacks: Rules that count only where none of a person or an administrator covers.
    """

    def __init__(self, rules: Sequence[Rule], fallbacks: Sequence[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.fallbacks = tuple(fallbacks)
        if any(rule.layer != "built-in" for rule in (*self.rules, *self.fallbacks)):
            _ = self._tables  # What is wrong with a rule of a person's is said now.
        self._decided: dict[AccessRequest, Decision] = {}
        self._suspicious: dict[tuple[Action, str], NameFilter] = {}

    def decide(self, request: AccessRequest) -> Decision:
        """The decision, with the rule that made it; remembered, for one call asks several times."""
        known = self._decided.get(request)
        if known is None:
            known = self._decide(request)
            if len(request.path) <= _LONGEST_REMEMBERED:
                if len(self._decided) >= _REMEMBERED:
                    self._decided.clear()
                self._decided[request] = known
        return known

    @cached_property
    def _tables(self) -> tuple[_Table, _Table]:
        return _Table(self.rules), _Table(self.fallbacks)

    def asking(self, request: AccessRequest) -> frozenset[str]:
        """The names of all rules that ask about a request, though one of them decides.

        A built-in one is among them also where it is lifted.
        """
        main, rest = self._tables
        found = main.covering(request)
        if not any(rule.layer in ("person", "administrator") for rule in found):
            found = [*found, *rest.covering(request)]
        return frozenset(one.name for one in found if one.verdict == "ask")

    def _decide(self, request: AccessRequest) -> Decision:
        main, rest = self._tables
        found = main.covering(request)
        lifted = {name for rule in found if rule.verdict == "allow" for name in rule.lifts}
        if lifted:
            found = [rule for rule in found if rule.layer != "built-in" or rule.name not in lifted]
        if not any(rule.layer in ("person", "administrator") for rule in found):
            # A built-in ask must not take the place of a denial that a person has set as default.
            found = [*found, *rest.covering(request)]
        if not found:
            return _INSIDE
        first = min(found, key=lambda rule: _PRECEDENCE[rule.verdict])
        return Decision(first.verdict, first)

    def suspicion(self, action: Action, root: str = "") -> NameFilter:
        """A quick question about one part of a path: could a path that ends in it be refused?

        Nearly every name in a tree is told to be harmless by it in a fraction of a microsecond;
        only for the others the rules have to be asked.  In a root those about folders elsewhere do not count.
        """
        known = self._suspicious.get((action, root))
        if known is None:
            here = _parts(root)
            known = self._suspicious[action, root] = _suspicion(
                tuple(
                    rule
                    for rule in (*self.rules, *self.fallbacks)
                    if action in rule.actions and rule.verdict != "allow"
                    if not root
                    or all(a == b for a, b in zip(_parts(rule.root or ""), here, strict=False))
                )
            )
        return known


class NameFilter:
    """A quick filter: the parts of paths about which the rules have to be asked.

    Args:
        suspects: The same question about keys.
        copies: Whether some rules cover copies as well.
    """

    def __init__(self, suspects: NameIndex, *, copies: bool = False) -> None:
        self._suspects = suspects
        self._copies = copies

    def __call__(self, part: str) -> bool:
        name = part.lower() if is_plain(part) else key(part)
        if self._suspects(name) or is_short(name):
            return True
        return self._copies and looks_copied(name) and self._suspects(copied(name))

    def clears(self, names: Sequence[str]) -> bool:
        """Whether nothing has to be asked about any of some names, as one look tells.

        Args:
            names: Of one folder; there may be slashes behind them.
        """
        joined = f"//{'//'.join(names)}//".lower()
        if not joined.isascii() or any(sign in joined for sign in ("./", " /", ":", "~")):
            return False
        return not self._suspects.hints(joined.encode())

    def among(self, parts: Sequence[str]) -> list[int]:
        """The indices of these parts among many."""
        return [
            start + at
            for start in range(0, len(parts), _AT_ONCE)
            for at in self._some(parts[start : start + _AT_ONCE])
        ]

    def _some(self, parts: Sequence[str]) -> list[int]:
        joined = "/".join(parts)
        if are_plain(joined) and "~" not in joined:
            joined = joined.lower()
            names = joined.split("/")
            if len(names) == len(parts):
                found = self._suspects.among(names)
                if self._copies and looks_copied(joined):
                    more = [copied(name) if looks_copied(name) else "" for name in names]
                    found = sorted({*found, *self._suspects.among(more)})
                return found
        return [at for at, part in enumerate(parts) if self(part)]


class _Table:
    """Rules by the folder that their patterns start at."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        grouped: dict[str | None, list[Rule]] = {}
        for rule in rules:
            grouped.setdefault(rule.root, []).append(rule)
        self._groups = [
            (
                None if root is None else _parts(root),
                group,
                *_compiled(tuple(group)),
                frozenset(sign for rule in group for sign in rule.signs),
                frozenset(name for rule in group for name in rule.files),
            )
            for root, group in grouped.items()
        ]

    def covering(self, request: AccessRequest) -> list[Rule]:
        if not self._groups:
            return []
        parts = _parts(request.path)
        last = parts[-1] if parts else ""
        found: list[Rule] = []
        for base, rules, patterns, short, signs, files in self._groups:
            names: tuple[str, ...] | None = parts
            if base is not None:
                names = _below(_parts(request.root) + parts, base)
            if names is None:
                continue
            numbers = _matching(patterns, names, rules)
            if looks_copied("/".join(names)):
                possible = patterns.matching(tuple(map(copied, names)))
                numbers |= {number for number in possible if rules[number].copies}
            if any("~" in name for name in names):
                possible = short.covering(names, patterns)
                # What a name only may stand for allows nothing.
                numbers |= {number for number in possible if rules[number].verdict != "allow"}
            if not numbers and signs.isdisjoint(request.signs) and last not in files:
                continue
            found += [
                rule
                for number, rule in enumerate(rules)
                if (
                    number in numbers
                    or not rule.signs.isdisjoint(request.signs)
                    or (last in rule.files and not request.path.endswith(last))
                )
                and request.action in rule.actions
                and rule.spares not in request.signs
                and _speaks_to(rule, request.agent)
            ]
        return found


def _matching(
    patterns: PatternSet, names: tuple[str, ...], rules: Sequence[Rule]
) -> frozenset[int]:
    """The numbers of the rules that cover a path by its names, what lies apart by those that it has there."""
    found = patterns.matching(names)
    for number in found:
        for place in rules[number].apart:
            at, top = _place(names, place)
            if top and number not in patterns.matching(names[:at]):
                # Of all others what it would be there counts as well.
                return (found - {number}) | _matching(patterns, names[top:], rules)
    return found


def _place(names: tuple[str, ...], place: str) -> tuple[int, int]:
    """Where the first such place in a path begins, and where what lies in it does; 0 for the latter if there is none."""
    parts = place.rstrip("/").split("/")
    for at in range(len(names) - len(parts) + 1):
        end = at + len(parts)
        if all(map(fnmatchcase, names[at:end], parts)):
            if place[-1] == "/" and len(names) > end:
                return at, end
            if place[-1] != "/" and len(names) == end:
                return at, end - 1
    return 0, 0


# Workspaces of one process differ in rules about their own folders; most of the others they share.
@lru_cache(maxsize=8)
def _compiled(rules: tuple[Rule, ...]) -> tuple[PatternSet, ShortNames]:
    keyed = [_keyed(rule.paths) for rule in rules]
    return PatternSet(keyed), ShortNames(keyed)


@lru_cache(maxsize=8)
def _suspicion(strict: tuple[Rule, ...]) -> NameFilter:
    # A rule with a root of its own may mean a name by the folders above it only.
    paths = [[*_keyed(rule.paths), *rule.files] for rule in strict]
    return NameFilter(PatternSet(paths).suspecting(), copies=any(rule.copies for rule in strict))


def decide(request: AccessRequest, policy: Policy) -> Decision:
    """Decide about one request: a verdict, and the rule that gave it."""
    return policy.decide(request)


@lru_cache(maxsize=256)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(key(part) for part in path.split("/") if part not in ("", "."))


def _below(parts: tuple[str, ...], base: tuple[str, ...]) -> tuple[str, ...] | None:
    return parts[len(base) :] if parts[: len(base)] == base else None


def _speaks_to(rule: Rule, agent: str) -> bool:
    return rule.agents == ("*",) or any(
        fnmatchcase(agent.casefold(), glob.casefold()) for glob in rule.agents
    )


def _keyed(patterns: Sequence[str]) -> list[str]:
    """Patterns in the form of the names that they are compared with."""
    return [
        # Most are plain, and made at every start.
        pattern.lower() if are_plain(pattern) else "/".join(map(_keyed_part, pattern.split("/")))
        for pattern in patterns
    ]


def _keyed_part(part: str) -> str:
    negation = "!" if part.startswith("!") else ""
    name = part[len(negation) :]
    plain = literal_length(name) == len(name) and name not in ("", ".", "..")
    return negation + (key(name) if plain else name.casefold())


class EntryFilter:
    """Filters the entries of a walk by the guard's rules, before they are shown or entered.

    Args:
        allow: The question about one: a root-relative path, and whether it is a folder.

    Attributes:
        refused: How many names rules have refused so far.
        narrow: Whether only some folders are shared.
    """

    refused = 0
    narrow = False

    def __init__(self, allow: Callable[[str, bool], bool]) -> None:
        self._allow = allow

    @property
    def key(self) -> Hashable:
        """A key that is equal for filters with equal answers; None where that is not known."""
        return None

    def __call__(self, path: str, is_dir: bool) -> bool:
        return self._allow(path, is_dir)

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        """Select the names in one folder that may be seen.

        Args:
            prefix: The folder's path with a slash behind it; empty for the root.
            keys: Names; those of folders with a slash behind them.
        """
        allow = self._allow
        kept = [
            key
            for key in keys
            if (allow(prefix + key[:-1], True) if key[-1] == "/" else allow(prefix + key, False))
        ]
        self.refused += len(keys) - len(kept)
        return kept

    def quietly(self, prefix: str, keys: list[str]) -> list[str]:
        """As `among`, without counting: for names that would not be shown anyway."""
        before = self.refused
        try:
            return self.among(prefix, keys)
        finally:
            self.refused = before
