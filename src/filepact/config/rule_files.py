"""Reads whole files of rules: an administrator's, a person's, a project's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.config.language_servers import KEYS as DIAGNOSING_KEYS
from filepact.config.layers import RuleSet, SettingsSource
from filepact.config.problems import ProblemList, SettingsProblem, no_toml, refuse
from filepact.config.rules import RULE_KEYS, read_rules
from filepact.config.settings import OTHER_KEYS, read_others
from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["find_problems", "read_expecting", "read_project", "read_source"]


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
    known = (*RULE_KEYS[source.layer], *OTHER_KEYS[source.layer])
    anywhere = {*RULE_KEYS["administrator"], *OTHER_KEYS["person"]}
    for key in tables:
        if key in known:
            continue
        said = f"is not known here; known are {', '.join(known)}"
        if source.layer == "project" and key in DIAGNOSING_KEYS:
            said = (
                "has no place in a project's file: language servers are programs, and a folder "
                "that somebody else wrote must not start any"
            )
        elif source.layer == "project" and key in anywhere:
            said = (
                f"has no place in a project's file, which can only narrow with {', '.join(known)}"
            )
        elif key in RULE_KEYS["administrator"]:
            said = "has a place only in the administrator's file"
        problems.add((key,), said)


def _other_problems(
    text: str, tables: dict[str, Any], source: SettingsSource
) -> list[SettingsProblem]:
    """The first problem of the settings that are no rules."""
    others = {key: tables[key] for key in OTHER_KEYS[source.layer] if key in tables}
    try:
        read_others(others, text, source.name, source.layer)
    except InvalidParamsError as error:
        line, key = int(str(error.details["line"])), str(error.details["key"])
        said = error.message.removeprefix(f"{source.name}, line {line}, {key}: ")
        return [SettingsProblem(source.name, line, key, said)]
    return []
