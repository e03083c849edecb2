"""Reads whole files of rules: an administrator's, a person's, a project's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.config.layers import RuleSet, SettingsSource
from filepact.config.problems import ProblemList, SettingsProblem, key_text, no_toml, refuse
from filepact.config.rules import RULE_KEYS, read_rules
from filepact.config.settings import OTHER_KEYS, other_keys, read_others
from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.config.problems import Key

__all__ = ["find_problems", "read_expecting", "read_project", "read_source"]

_MOST: Final = 200
"""Problems of one file that are looked for, but for those of its rules."""


def read_source(text: str, source: SettingsSource) -> RuleSet:
    """The rules of one file.

    Raises:
        InvalidParamsError: Anything is wrong with it.
    """
    rules, problems = _read(text, source)
    refuse(problems)
    return rules


def read_project(text: str, root: str, name: str) -> RuleSet:
    """The rules of a project's own file, which count below its root and only narrow.

    Args:
        text: What the file holds.
        root: The absolute folder that it stands in.
        name: How the file is called in messages.

    Raises:
        InvalidParamsError: Anything is wrong with it.
    """
    return read_source(text, SettingsSource("project", name, root))


def read_expecting(text: str, source: SettingsSource) -> RuleSet:
    """The rules of one file, whether or not its expectations are met.

    Raises:
        InvalidParamsError: Anything else is wrong with it.
    """
    rules, problems = _read(text, source)
    refuse([problem for problem in problems if not problem.unmet])
    return rules


def find_problems(text: str, source: SettingsSource) -> tuple[SettingsProblem, ...]:
    """All that is wrong with one file, by line."""
    _rules, problems = _read(text, source)
    return tuple(sorted(problems, key=lambda problem: problem.line))


def _read(text: str, source: SettingsSource) -> tuple[RuleSet, list[SettingsProblem]]:
    import tomllib  # noqa: PLC0415 - not before there is a file

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return RuleSet(), [no_toml(text, source.name, error)]
    problems = ProblemList(text, source.name)
    _check_keys(tables, source, problems)
    rules = read_rules(tables, source, problems)
    if OTHER_KEYS[source.layer]:
        problems.found += _other_problems(text, tables, source)
    return rules, problems.found


def _check_keys(tables: Iterable[str], source: SettingsSource, problems: ProblemList) -> None:
    known: tuple[str, ...] = (*RULE_KEYS[source.layer], *OTHER_KEYS[source.layer])
    strange = [key for key in tables if key not in known]
    if not strange:
        return
    from filepact.extension import reason_against  # noqa: PLC0415 - most files have nothing of theirs

    known = (*RULE_KEYS[source.layer], *other_keys(source.layer))
    anywhere = {*RULE_KEYS["administrator"], *other_keys("person")}
    for key in strange:
        if key in known:
            continue
        said = f"is not known here; known are {', '.join(known)}"
        if source.layer == "project" and key in anywhere:
            why = reason_against(key) or f", which can only narrow with {', '.join(known)}"
            said = f"has no place in a project's file{why}"
        elif key in RULE_KEYS["administrator"]:
            said = "has a place only in the administrator's file"
        problems.add((key,), said)


def _other_problems(
    text: str, tables: dict[str, Any], source: SettingsSource
) -> list[SettingsProblem]:
    """All that is wrong with the settings that are no rules.

    Reading them ends at the first problem.  So what is wrong is taken out, and the rest is read again.
    """
    from copy import deepcopy  # noqa: PLC0415 - only where there is a file

    others = deepcopy({key: tables[key] for key in other_keys(source.layer) if key in tables})
    found: list[SettingsProblem] = []
    removed: list[Key] = []
    for _ in range(_MOST):
        try:
            read_others(others, text, source.name, source.layer)
        except InvalidParamsError as error:
            line, key = int(str(error.details["line"])), str(error.details["key"])
            known = {key_text(one): one for one in (*_keys(others), *removed)}
            # A key that is missing is no key: the table that lacks it is taken out.
            above = (key[:at] for at in range(len(key), 0, -1))
            wrong = next((known[one] for one in above if one in known), ())
            # That a table lacks what was taken out of it is no problem of the file.
            if not any(one[: len(wrong)] == wrong for one in removed):
                said = error.message.removeprefix(f"{source.name}, line {line}, {key}: ")
                found.append(SettingsProblem(source.name, line, key, said))
            while wrong and wrong in removed:
                wrong = wrong[:-1]
            if not wrong:
                break
            removed.append(wrong)
            _take_out(others, wrong)
        else:
            break
    return found


def _keys(table: object, above: Key = ()) -> Iterator[Key]:
    """Every key of a table, and of the tables in it."""
    parts: Iterable[tuple[str | int, object]] = ()
    if isinstance(table, dict):
        parts = table.items()
    elif isinstance(table, list):
        parts = enumerate(table)
    for part, value in parts:
        yield (*above, part)
        yield from _keys(value, (*above, part))


def _take_out(table: Any, key: Key) -> None:
    *above, last = key
    for part in above:
        table = table[part]
    if isinstance(last, int):
        table[last] = {}  # so that the numbers of those behind it stay
    else:
        del table[last]
