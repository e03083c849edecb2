"""Commands about rules: lists those in force, finds mistakes in files, explains a refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.app import project_files
from filepact.config.layers import BUILT_IN, NEVER_LIFTED, SettingsSource, check_together, exactly
from filepact.config.person import named_file, read_settings, rule_files, settings_file
from filepact.config.rule_files import find_problems, read_expecting
from filepact.domain.harmless import harmless_places
from filepact.domain.policy import ACTIONS, WRITES
from filepact.text.confusables import name_in_escapes
from filepact.workspace.documents import PROJECT_FILE
from filepact_cli.context import find_context, here, opened
from filepact_cli.explain import explain as explain_request
from filepact_cli.render import count
from filepact_cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText
from filepact_cli.wording import fitted

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from filepact.config.problems import SettingsProblem
    from filepact.domain.policy import Action, Rule, Verdict
    from filepact_cli.explain import DecisionExplanation
    from filepact_cli.screen import Style, Terminal

__all__ = ["QUESTIONS", "answers", "explain", "lint", "show", "test"]

_STYLES: dict[Verdict, Style] = {"deny": "bad", "ask": "warn", "allow": "good"}
_SAID: dict[Verdict, str] = {
    "deny": "denied",
    "ask": "allowed once you have approved it",
    "allow": "allowed",
}
_DOING: dict[Action, str] = {
    "read": "reading it",
    "list": "listing it",
    "write": "writing it",
    "create": "creating it",
    "delete": "deleting it",
}
QUESTIONS: dict[str, tuple[frozenset[Action], bool]] = {
    "read": (frozenset({"read"}), True),
    "edit": (frozenset({"write"}), True),
    "new": (frozenset({"write", "create"}), True),
    "delete": (frozenset({"delete"}), True),
    "move": (frozenset({"write", "create"}), False),
    "command": (frozenset({"read"}), False),
    "fetch": (frozenset({"read"}), False),
    "other": (frozenset({"read"}), False),
    "mode": (frozenset({"read"}), False),
}
"""What agents ask a person to permit: which actions it stands for, and whether a rule may allow it.

`filepact_acp/permissions.py` answers so; a test holds both to each other.
"""

_ANSWERS: dict[str, tuple[str, Style]] = {
    "allow": ("yes", "good"),
    "deny": ("no", "bad"),
    "person": ("you", "warn"),
}
_NAME_WIDTH = 20
_LEGEND = """
So a rule answers, behind filepact acp, when an agent asks leave to use a tool
of its own on a file that the rule covers (new: to write one that is not there).
yes: allowed once, if all files of the call are allowed and nothing is unknown.
no: refused.  you: you are asked.  A call that brings a text counts as an edit.
"""
_ORDER: tuple[Action, ...] = ("read", "list", "write", "create", "delete")


# -- show -----------------------------------------------------------------------------------


def show(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Every rule in force here."""
    read = [(source, read_expecting(text, source)) for source, text in _files(arguments)]
    shown = [(source.layer, source.name, (*r.rules, *r.fallbacks)) for source, r in read]
    if arguments.built_in:
        shown.append(("built-in", "in force everywhere", BUILT_IN))
    spans: list[TerminalText] = []
    for layer, name, rules in shown:
        spans += [TerminalText(f"{layer}", "title"), TerminalText(f"  {name}\n", "dim")]
        spans += _table(rules)
        spans.append(TerminalText("\n"))
    for source, found in read:
        for name, _by in found.keep:
            spans.append(TerminalText(f"{source.name} keeps \u201c{name}\u201d for everybody.\n"))
    if not read:
        spans.append(TerminalText("No rule files found; only the built-in rules apply.\n"))
        spans.append(TerminalText(f"Yours would be {settings_file(arguments.config)}\n", "dim"))
    if not arguments.built_in:
        spans.append(
            TerminalText(f"{len(BUILT_IN)} built-in rules apply: --built-in lists them.\n", "dim")
        )
    return CommandAnswer(
        tuple(spans),
        {
            "files": [{"layer": source.layer, "file": source.name} for source, _rules in read],
            "rules": [rule_facts(rule) for _layer, _name, rules in shown for rule in rules],
            "keep": [name for _source, found in read for name, _by in found.keep],
        },
    )


def _table(rules: Sequence[Rule]) -> Iterator[TerminalText]:
    """Rules one a line, in columns."""
    width = max((len(rule.name) for rule in rules), default=0)
    rows = [(rule, _actions(rule.actions)) for rule in rules]
    actions = max((len(words) for _rule, words in rows), default=0)
    for rule, words in rows:
        yield TerminalText(f"  {rule.verdict:<6}", _STYLES[rule.verdict])
        yield TerminalText(f"{rule.name:<{width}}  {words:<{actions}}  ")
        yield TerminalText(_paths(rule))
        for word, values in (("agents", rule.agents), ("lifts", sorted(rule.lifts))):
            if values and values != ("*",):
                yield TerminalText(f"  {word}: {', '.join(values)}")
        if rule.line:
            yield TerminalText(f"  line {rule.line}", "dim")
        yield TerminalText("\n")


def _paths(rule: Rule, most: int = 6) -> str:
    if rule.signs:
        return f"(whatever shows: {', '.join(sorted(rule.signs))})"
    shown = ", ".join(rule.paths[:most])
    more = len(rule.paths) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _actions(actions: frozenset[Action]) -> str:
    if actions == ACTIONS:
        return "all"
    words: list[str] = [action for action in _ORDER if action in actions]
    if actions >= WRITES:
        words = [*(word for word in words if word not in WRITES), "change"]
    return ", ".join(words)


def rule_facts(rule: Rule) -> dict[str, object]:
    """A rule for programs."""
    return {
        "layer": rule.layer,
        "name": rule.name,
        "verdict": rule.verdict,
        "paths": list(rule.paths),
        "root": rule.root,
        "actions": [action for action in _ORDER if action in rule.actions],
        "agents": list(rule.agents),
        "signs": sorted(rule.signs),
        "lifts": sorted(rule.lifts),
        "why": rule.why,
        "file": rule.file or None,
        "line": rule.line or None,
    }


# -- lint and test --------------------------------------------------------------------------


def lint(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Everything that is wrong in the files."""
    files = [named_file(arguments.file)] if arguments.file else list(_files(arguments))
    problems: list[SettingsProblem] = [
        problem for source, text in files for problem in find_problems(text, source)
    ]
    spans: list[TerminalText] = []
    for one in problems:
        where = f"{one.file}:{one.line}:"
        said = fitted(f"{one.key}: {one.message}" if one.key else one.message, screen.columns)
        # A line is broken behind the place, and never in it.
        gap = (
            "\n" if screen.columns is not None and len(f"{where} {said}") > screen.columns else " "
        )
        spans += [TerminalText(f"{where}{gap}", "title"), TerminalText(f"{said}\n")]
    checked = count(len(files), "file")
    groups: list[tuple[Rule, ...]] = []
    if problems:
        spans.append(TerminalText(f"\n{count(len(problems), 'problem')} in {checked}.\n", "bad"))
    else:
        for source, text in files:
            found = read_expecting(text, source)
            own: list[tuple[Rule, ...]] = [(rule,) for rule in found.rules]
            own += [found.fallbacks] if found.fallbacks else []
            spans += [TerminalText(f"{source.name}\n"), *_answer_table(own)]
            groups += own
        spans += [TerminalText(f"{_LEGEND}\n", "dim")] if groups else []
        spans.append(TerminalText(f"{checked}, nothing wrong.\n", "good"))
    return CommandAnswer(
        tuple(spans),
        {
            "files": [source.name for source, _text in files],
            "problems": [
                {"file": one.file, "line": one.line, "key": one.key, "said": one.message}
                for one in problems
            ],
            "answers": [
                {"rule": first.name, "file": first.file, "line": first.line}
                | answers((first, *rest))
                for first, *rest in groups
            ],
        },
        FAILED if problems else DONE,
    )


def answers(rules: Sequence[Rule]) -> dict[str, str]:
    """The verdict of a rule, or of a file's defaults, on each action of an agent.

    Returns:
        For each of `QUESTIONS` ``allow`` (once), ``deny``, or ``person``, who is asked.
    """
    denied, allowed = (
        frozenset(action for rule in rules if rule.verdict == verdict for action in rule.actions)
        for verdict in ("deny", "allow")
    )
    return {
        name: "deny"
        if actions & denied
        else "allow"
        if may_allow and actions <= allowed
        else "person"
        for name, (actions, may_allow) in QUESTIONS.items()
    }


def _answer_table(groups: Sequence[Sequence[Rule]]) -> Iterator[TerminalText]:
    if not groups:
        return
    yield TerminalText(f"{'':<{_NAME_WIDTH}} {'  '.join(QUESTIONS)}\n", "dim")
    for rules in groups:
        name = rules[0].name
        name = name if len(name) < _NAME_WIDTH else f"{name[: _NAME_WIDTH - 2]}\u2026"
        yield TerminalText(f"{name:<{_NAME_WIDTH}}")
        for question, answer in answers(rules).items():
            word, style = _ANSWERS[answer]
            yield TerminalText(" " if question == "read" else "  ")
            yield TerminalText(word if question == "mode" else f"{word:<{len(question)}}", style)
        yield TerminalText("\n")


def test(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Check the expectations that settings files state about their own rules."""
    spans: list[TerminalText] = []
    known: list[dict[str, object]] = []
    for source, text in _files(arguments):
        rules = read_expecting(text, source)
        wrong = check_together(rules, source)
        for expectation in rules.expectations:
            said = [each for about, each in wrong if about == expectation]
            asked = f"{', '.join(expectation.paths)}: {_listed(expectation.actions)}"
            asked += f" by {expectation.agent}" if expectation.agent else ""
            spans.append(TerminalText("FAIL  " if said else "ok    ", "bad" if said else "good"))
            spans.append(TerminalText(f"{asked}: {expectation.verdict}"))
            spans.append(TerminalText(f"  {source.name}:{expectation.line}\n", "dim"))
            spans += [TerminalText(f"      {each}\n") for each in said]
            known.append(
                {
                    "file": source.name,
                    "line": expectation.line,
                    "paths": list(expectation.paths),
                    "actions": list(expectation.actions),
                    "agent": expectation.agent,
                    "verdict": expectation.verdict,
                    "rule": expectation.rule or None,
                    "met": not said,
                    "said": said,
                }
            )
    failed = sum(not one["met"] for one in known)
    if not known:
        spans.append(TerminalText("No file here holds an [[expect]].\n"))
    else:
        spans.append(TerminalText(f"\n{count(len(known), 'expectation')}, {failed} not met.\n"))
    code = FAILED if failed else DONE if known else NOTHING
    return CommandAnswer(tuple(spans), {"expectations": known}, code)


def _files(arguments: Namespace) -> Iterator[tuple[SettingsSource, str]]:
    """Every file of rules that is in force here, with its text, right or wrong."""
    yield from rule_files(arguments.config)
    for root, text in project_files(find_context(arguments).roots):
        yield SettingsSource("project", f"{root.rstrip('/')}/{PROJECT_FILE}", root), text


def _listed(words: Iterable[str]) -> str:
    return ", ".join(word for word in _ORDER if word in tuple(words))


# -- explain --------------------------------------------------------------------------------


def explain(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Name the rules that decide about a file, and how to change the decision."""
    asked: tuple[Action, ...] = (arguments.action,) if arguments.action else ("read", "write")
    with opened(arguments) as workspace:
        path = here(workspace, arguments.path)
        found = [
            explain_request(workspace.guard, path, action, agent=arguments.agent)
            for action in asked
        ]
    # Where one rule says the same of both, it is told once.
    told = {(one.verdict, one.rule, one.refusal, one.others): one for one in found}
    spans: list[TerminalText] = []
    for one in told.values():
        actions = asked if len(told) < len(found) else (one.action,)
        doing = " and ".join(_DOING[action].removesuffix(" it") for action in actions)
        who = f" by {one.agent}" if one.agent else ""
        between = "\n" if spans else ""
        spans.append(TerminalText(f"{between}{one.path}: {doing} it{who} is "))
        spans.append(TerminalText(f"{_SAID[one.verdict]}\n", _STYLES[one.verdict]))
        for name, value in _reasons(one):
            spans += [TerminalText(f"  {name:<12}", "dim"), TerminalText(f"{value}\n")]
        advice = _advice(one, arguments.config, actions)
        spans += [TerminalText(f"\n{advice}\n", "dim")] if advice else []
    facts = [_facts(one, _advice(one, arguments.config, (one.action,))) for one in found]
    return CommandAnswer(
        tuple(spans), facts[-1] | ({} if arguments.action else {"reading": facts[0]})
    )


def _facts(found: DecisionExplanation, advice: str) -> dict[str, object]:
    return {
        "path": found.path,
        "root": found.root or None,
        "action": found.action,
        "agent": found.agent,
        "verdict": found.verdict,
        "rule": None if found.rule is None else rule_facts(found.rule),
        "harmless": [*harmless_places(found.path)] if found.rule and found.rule.spares else [],
        "refusal": found.refusal or None,
        "resolved": found.resolved or None,
        "compared": found.compared or None,
        "missing": found.missing,
        "alike": found.alike or None,
        "others": [
            rule_facts(voice.rule)
            | {"lifted_by": voice.lifted_by.name if voice.lifted_by else None}
            for voice in found.others
        ],
        "advice": advice,
    }


def _reasons(found: DecisionExplanation) -> Iterator[tuple[str, str]]:
    if found.rule is None:
        yield "because", found.refusal
        return
    yield "rule", f"\u201c{found.rule.name}\u201d ({found.rule.layer})"
    yield "why", found.rule.why
    places = harmless_places(found.path) if found.rule.spares else ()
    if places and found.action == "write" and not found.missing:
        yield (
            "but",
            f"what steers nothing is written at once: layout, comments, and {', '.join(places)}",
        )
    if found.rule.file:
        yield "stands in", found.rule.place
    if found.compared:
        yield "read as", found.compared
    if found.resolved:
        yield "leads to", found.resolved
    if found.alike:
        yield (
            "note",
            (
                f"nothing has this name; {name_in_escapes(found.alike, found.path)} is the same but for blanks, "
                "letter case or Unicode form, and is what is read; a change needs its own name"
            ),
        )
    elif found.missing and found.action in ("read", "write", "delete"):
        yield "note", "there is no such file yet; making it is the action create"
    for voice in found.others:
        said = f"{voice.rule.verdict} \u201c{voice.rule.name}\u201d ({voice.rule.place})"
        if voice.lifted_by is not None:
            said += f", set aside by \u201c{voice.lifted_by.name}\u201d ({voice.lifted_by.place})"
        yield "covers too", said


def _advice(found: DecisionExplanation, named: str, actions: Sequence[Action]) -> str:
    """Advice on how a person can change the verdict."""
    rule = found.rule
    if rule is None:
        return "This is no matter of rules: only what is inside the roots can be used."
    mine = settings_file(named)
    pattern = exactly(found.resolved or found.path)
    if rule.name == "default" and rule.layer == "built-in":
        return f"To change that, add to {mine}:\n{_snippet('deny', pattern, actions)}"
    if rule.name == "default" or rule.layer == "built-in":
        return _freeing(found, rule, pattern, named, actions)
    if rule.layer == "administrator":
        return f"Only who may change {rule.file} can change that."
    if rule.verdict == "allow":
        return f"To change that, change the rule in {rule.place}."
    return (
        f"To free it, change the rule in {rule.place}, "
        f'or spare this file there: add "!{_quoted(pattern)[1:]} to its paths.'
    )


def _freeing(
    found: DecisionExplanation, rule: Rule, pattern: str, named: str, actions: Sequence[Action]
) -> str:
    """The rule that overrides a default or built-in rule, with all that it has to override."""
    # An allow that leaves a built-in rule standing could never decide, and would be refused.
    voices = [voice.rule for voice in found.others if voice.lifted_by is None]
    standing = [each for each in (rule, *voices) if each.layer == "built-in"]
    lifts = sorted({each.name for each in standing})
    kept = dict(read_settings(named).rules.keep)
    for name in lifts:
        if name in kept:
            return f"Only who may change {kept[name]} can free it, which keeps that rule."
    if NEVER_LIFTED.intersection(lifts):
        return "Nobody can free this for agents; change the file yourself, in an editor."
    said = f"To free it, add to {settings_file(named)}:\n{_snippet('allow', pattern, actions)}"
    return f"{said}\nlifts = [{', '.join(map(_quoted, lifts))}]" if lifts else said


def _snippet(verdict: Verdict, pattern: str, actions: Sequence[Action]) -> str:
    said = ", ".join(map(_quoted, actions))
    return f"\n[[{verdict}]]\npaths = [{_quoted(pattern)}]\nactions = [{said}]"


def _quoted(text: str) -> str:
    """A text as TOML has it, which for texts of one line is as JSON has it."""
    return json.dumps(text, ensure_ascii=False)
