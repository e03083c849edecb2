"""Reads rules of people: from the tables of a settings file to values, with everything that is wrong.

A person's file and an administrator's say what they like; a project's may only narrow, so it holds
neither ``allow`` nor anything that sets a built-in rule aside.  A rule that cannot be understood,
or that could never decide, is a problem and not left out: who wrote it relies on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from filepact.config.layers import (
    BUILT_IN,
    NEVER_LIFTED,
    RuleSet,
    SettingsSource,
    check_together,
    grouped,
    named_path,
)
from filepact.config.policy_lint import RuleCheck, idle_lifts, useless
from filepact.domain.policy import ACTIONS, WRITES, Action, Layer, Rule, Verdict
from filepact.values import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.config.problems import Key, ProblemList

__all__ = ["RULE_KEYS", "read_rules"]

RULE_KEYS: Final[dict[Layer, tuple[str, ...]]] = {
    "administrator": ("deny", "ask", "allow", "default", "expect", "keep"),
    "person": ("deny", "ask", "allow", "default", "expect"),
    "project": ("deny", "ask", "default", "expect"),
}
"""The keys about rules that a file of each layer may hold."""

_VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
_GROUPS: Final[dict[str, frozenset[Action]]] = {
    **{action: frozenset({action}) for action in get_args(Action)},
    "change": WRITES,
}
_FIELDS: Final = ("paths", "actions", "agents", "why", "name", "lifts")
_EXPECTED_FIELDS: Final = ("paths", "action", "agent", "verdict", "rule")
_MOST_RULES = 500
_ENDING: Final = str.maketrans(dict.fromkeys('\u201c\u201d\u201e\u201f"', "'"))
_OWNERS: Final[dict[Layer, str]] = {
    "administrator": "the administrator's settings say so",
    "person": "the person's settings say so",
    "project": "the project's settings say so",
}


def read_rules(tables: Mapping[str, Any], source: SettingsSource, problems: ProblemList) -> RuleSet:
    """Read the keys about rules; what is wrong is added to the problems.

    Args:
        tables: All of a file, as the TOML reader gives it; other keys are left to others.
        source: Whose it is.
        problems: Of that file.
    """
    reading = _Reading(source, problems)
    known = {key: value for key, value in tables.items() if key in RULE_KEYS[source.layer]}
    keep = reading.keep(known["keep"]) if "keep" in known else ()
    above = replace(source.above, keep=source.above.keep + keep)
    rules: list[Rule] = []
    for verdict in _VERDICTS:
        rules += reading.rules(verdict, known.get(verdict, []), dict(above.keep))
    found = RuleSet(
        tuple(sorted(rules, key=lambda rule: rule.line)),
        reading.fallbacks(known.get("default", {})),
        reading.expectations(known.get("expect", [])),
        keep,
    )
    if not problems.found:
        reading.check_use(found)
    return found


class _Reading:
    """One file on its way to rules."""

    def __init__(self, source: SettingsSource, problems: ProblemList) -> None:
        self._source = source
        self._problems = problems
        self._fields = _Fields(problems)
        self._parts: dict[Key, list[Rule]] = {}
        self._named: dict[str, str] = {}
        self._built_in = {rule.name for rule in BUILT_IN}

    # -- rules ----------------------------------------------------------------------------

    def rules(self, verdict: Verdict, tables: object, kept: Mapping[str, str]) -> list[Rule]:
        found: list[Rule] = []
        for number, table in enumerate(self._tables(verdict, tables)):
            key = (verdict, number)
            self._fields.check_keys(key, table, _FIELDS)
            paths = self._fields.texts(key, table, "paths", needed=True)
            groups = grouped(paths, (*key, "paths"), self._source.folders, self._problems)
            if self._source.layer == "project" and any(base for base, _patterns in groups):
                # Such a rule could say nothing about any other folder anyway.
                self._problems.add(
                    (*key, "paths"),
                    "a project's rules count from its own folder; leave out ~ and //",
                )
            line = self._problems.line(key)
            rule = Rule(
                name=self._name(key, table, line),
                verdict=verdict,
                paths=(),
                why=self._why(key, table),
                actions=self._actions(key, table),
                agents=self._fields.texts(key, table, "agents", default=("*",)),
                lifts=self._lifts(key, table, kept),
                layer=self._source.layer,
                file=self._source.name,
                line=line,
            )
            self._parts[key] = [
                replace(rule, paths=patterns, root=base or self._source.root)
                for base, patterns in groups
            ]
            found += self._parts[key]
        return found

    def _tables(self, name: str, tables: object) -> list[dict[str, Any]]:
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self._problems.add((name,), f"has to be tables that begin with [[{name}]]")
            return []
        if len(tables) > _MOST_RULES:
            self._problems.add((name,), f"are more than {_MOST_RULES} tables")
            return []
        return tables

    def _name(self, key: Key, table: Mapping[str, Any], line: int) -> str:
        default = f"{self._source.name.rpartition('/')[2]}:{line}"
        name = self._fields.text(key, table, "name", default, most=60)
        if name in self._built_in or name == "default":
            self._problems.add((*key, "name"), f"{name!r} is the name of a built-in rule")
        if self._source.layer == "project" and name != default:
            # Names stand in lists and brackets, which these can neither end nor leave.
            held = "".join(one if one.isalnum() or one in " -_./'" else "_" for one in name)
            self._named[name] = name = f"project: {held}"
        return name

    def _why(self, key: Key, table: Mapping[str, Any]) -> str:
        """The reason; a project's own words, which agents and people read, are told as nobody else's."""
        said = self._fields.text(key, table, "why")
        if self._source.layer == "project" and said:
            shown = "".join(one if one.isprintable() else "\ufffd" for one in said)
            return f"the project's file says: \u201c{shown.translate(_ENDING)}\u201d"
        return said or _OWNERS[self._source.layer]

    def _actions(self, key: Key, table: Mapping[str, Any]) -> frozenset[Action]:
        chosen: frozenset[Action] = frozenset()
        words = self._fields.texts(key, table, "actions", default=tuple(sorted(ACTIONS)))
        for number, word in enumerate(words):
            chosen |= self._action((*key, "actions", number), word)
        return chosen

    def _action(self, key: Key, word: str) -> frozenset[Action]:
        if word not in _GROUPS:
            self._problems.add(key, f"{word!r} is not an action; there are {', '.join(_GROUPS)}")
        return _GROUPS.get(word, frozenset())

    def _lifts(self, key: Key, table: Mapping[str, Any], kept: Mapping[str, str]) -> frozenset[str]:
        if "lifts" not in table:
            return frozenset()
        if key[0] != "allow":
            self._problems.add((*key, "lifts"), "only [[allow]] can set built-in rules aside")
            return frozenset()
        names = self._fields.texts(key, table, "lifts")
        for number, name in enumerate(names):
            here = (*key, "lifts", number)
            if self._is_built_in(here, name) and name in kept:
                self._problems.add(here, f"{name!r} may not be set aside, says {kept[name]}")
        return frozenset(names)

    def _is_built_in(self, key: Key, name: str) -> bool:
        """Whether a name is that of a built-in rule that can be set aside at all."""
        if name in NEVER_LIFTED:
            self._problems.add(key, f"{name!r} can be set aside by nobody")
        elif name not in self._built_in:
            known = ", ".join(sorted(self._built_in - NEVER_LIFTED))
            self._problems.add(key, f"there is no built-in rule {name!r}; there are: {known}")
        else:
            return True
        return False

    # -- the rest -------------------------------------------------------------------------

    def keep(self, names: object) -> tuple[tuple[str, str], ...]:
        chosen = self._fields.texts((), {"keep": names}, "keep")
        for number, name in enumerate(chosen):
            self._is_built_in(("keep", number), name)
        return tuple((name, self._source.name) for name in chosen)

    def fallbacks(self, table: object) -> tuple[Rule, ...]:
        if not isinstance(table, dict):
            self._problems.add(
                ("default",), 'has to be a table, such as [default] with write = "ask"'
            )
            return ()
        chosen: dict[Action, Rule] = {}
        # A word for one action goes before the word for several.
        for word in sorted(table, key=lambda each: each != "change"):
            key = ("default", word)
            actions = self._action(key, word)
            verdict = self._verdict(key, table[word])
            if verdict is None:
                continue
            if verdict == "allow" and self._source.layer == "project":
                self._problems.add(key, 'a project can only narrow: "ask" or "deny"')
                continue
            rule = Rule(
                "default",
                verdict,
                ("**",),
                f"where no rule covers, {_OWNERS[self._source.layer]}",
                root=self._source.root,
                layer=self._source.layer,
                file=self._source.name,
                line=self._problems.line(key),
            )
            chosen |= {each: replace(rule, actions=frozenset({each})) for each in actions}
        return tuple(chosen[action] for action in sorted(chosen))

    def expectations(self, tables: object) -> tuple[RuleCheck, ...]:
        found: list[RuleCheck] = []
        for number, table in enumerate(self._tables("expect", tables)):
            key = ("expect", number)
            self._fields.check_keys(key, table, _EXPECTED_FIELDS)
            paths = self._fields.texts(key, table, "paths", needed=True)
            action = self._fields.text(key, table, "action", needed=True)
            verdict = self._verdict((*key, "verdict"), table.get("verdict"))
            actions = self._action((*key, "action"), action) if action else frozenset()
            if verdict is None:
                continue
            found.append(
                RuleCheck(
                    tuple(
                        named_path(path, (*key, "paths", at), self._source.folders, self._problems)
                        for at, path in enumerate(paths)
                    ),
                    tuple(sorted(actions)),
                    verdict,
                    self._fields.text(key, table, "agent"),
                    self._named.get(rule := self._fields.text(key, table, "rule"), rule),
                    self._source.name,
                    self._problems.line(key),
                )
            )
        return tuple(found)

    def _verdict(self, key: Key, value: object) -> Verdict | None:
        for verdict in _VERDICTS:
            if value == verdict:
                return verdict
        self._problems.add(key, 'has to be "allow", "ask" or "deny"')
        return None

    # -- use ------------------------------------------------------------------------------

    def check_use(self, found: RuleSet) -> None:
        """Take down rules that never make a difference and expectations that are not met."""
        source = self._source
        # A project's file is the same for everybody, so what others set aside does not count.
        standing = () if source.layer == "project" else BUILT_IN
        strict = frozenset(
            action
            for rule in (*source.above.fallbacks, *found.fallbacks)
            for action in rule.actions
        )
        idle = dict(useless(found.rules, standing, strict=strict))
        for key, parts in self._parts.items():
            if all(rule in idle for rule in parts):
                self._problems.add((*key, "paths"), idle[parts[0]])
            about = [dict(idle_lifts(rule, BUILT_IN)) for rule in parts]
            for name in sorted(parts[0].lifts):
                if all(name in each for each in about):
                    self._problems.add((*key, "lifts"), about[0][name])
        for expectation, said in check_together(found, source):
            key = ("expect", found.expectations.index(expectation))
            self._problems.add(key, f"is not met: {said}", unmet=True)


# -- values in tables ------------------------------------------------------------------------------


_MOST_CHARACTERS = 500
_MOST_TEXTS = 200
_MOST_IN_ALL = 10_000


class _Fields:
    """The fields of a file's tables.

    Args:
        problems: Takes what is wrong with them.
    """

    def __init__(self, problems: ProblemList) -> None:
        self._problems = problems

    def check_keys(self, key: Key, table: Mapping[str, Any], names: Sequence[str]) -> None:
        """Take down what a table holds besides these."""
        for name in table:
            if name not in names:
                self._problems.add((*key, name), f"is not known; known are {', '.join(names)}")

    def text(
        self,
        key: Key,
        table: Mapping[str, Any],
        name: str,
        default: str = "",
        *,
        needed: bool = False,
        most: int = _MOST_CHARACTERS,
    ) -> str:
        """A text of one line, or the default."""
        if name not in table:
            if needed:
                self._problems.add(key, f"has no {name}")
            return default
        return self._one((*key, name), table[name], most) or default

    def texts(
        self,
        key: Key,
        table: Mapping[str, Any],
        name: str,
        default: tuple[str, ...] = (),
        *,
        needed: bool = False,
    ) -> tuple[str, ...]:
        """Texts of one line each, at least one, or the default."""
        here = (*key, name)
        if name not in table:
            if needed:
                self._problems.add(key, f"has no {name}")
            return default
        values = table[name]
        if not isinstance(values, list) or not values:
            self._problems.add(here, 'has to be a list of texts, such as ["..."]')
            return default
        if len(values) > _MOST_TEXTS:
            self._problems.add(here, f"has more than {_MOST_TEXTS} elements; make two tables of it")
            return default
        if sum(len(value) for value in values if isinstance(value, str)) > _MOST_IN_ALL:
            # Comparing patterns with each other takes a time that grows with their square.
            self._problems.add(here, f"is longer than {_MOST_IN_ALL:,} characters in all")
            return default
        return tuple(
            self._one((*here, number), value, _MOST_CHARACTERS)
            for number, value in enumerate(values)
        )

    def _one(self, key: Key, value: object, most: int) -> str:
        if not isinstance(value, str):
            self._problems.add(key, "has to be a text in quotes")
        elif not value.strip():
            self._problems.add(key, "is empty")
        elif len(value) > most:
            self._problems.add(key, f"is longer than {most} characters")
        elif any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in value):
            self._problems.add(key, "has a control character in it")
        else:
            return value
        return ""
