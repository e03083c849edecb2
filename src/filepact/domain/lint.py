"""What is wrong with rules before any file is asked about: patterns and rules that do nothing.

A rule that never decides is a mistake of whoever wrote it, who believes that it protects or frees
something.  So it is said, with its reason, and nothing starts until it is mended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from filepact.domain.policy import ACTIONS, Policy, Request, Rule, decide
from filepact.domain.witnesses import FRESH, left_out, shared, witnesses
from filepact.text.patterns import split_pattern
from filepact.text.wildcard import WildcardError, literal_length, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.policy import Action, Verdict

__all__ = [
    "Expectation",
    "covers",
    "idle_lifts",
    "settled",
    "unmet",
    "useless",
    "wrong_list",
    "wrong_pattern",
]

_WEAKER: Final[dict[Verdict, frozenset[Verdict]]] = {
    "deny": frozenset(),
    "ask": frozenset({"deny"}),
    "allow": frozenset({"deny", "ask"}),
}
_SAID: Final[dict[Verdict, str]] = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_ESCAPED_NAME = re.compile(r"\\(?:[\w.]|$)")
_CHOICE = re.compile(r"(?<!\\)\{[^{}]*,[^{}]*\}")
_OTHER_HOME = re.compile(r"~[A-Za-z_][\w-]*/")
_ALLOWED_ANYWAY = (
    "allows what is allowed anyway ({}), since no [default] says otherwise; only beside [default] "
    'with "ask" or "deny", or with lifts, does it do something'
)
_ANYWHERE = "/"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What somebody who writes rules expects of them.

    Attributes:
        paths: Names of files, from a root or absolute; no patterns.
        actions: What is asked for, each of them.
        verdict: What the answer has to be.
        agent: The name of the agent that asks.
        rule: The rule that has to decide; empty for any.
        file: The file that it stands in.
        line: The line there, 1-based.
    """

    paths: tuple[str, ...]
    actions: tuple[Action, ...]
    verdict: Verdict
    agent: str = ""
    rule: str = ""
    file: str = ""
    line: int = 0


# -- patterns -------------------------------------------------------------------------------


def wrong_pattern(pattern: str) -> str:
    """What is wrong with one pattern, in words; empty when nothing is."""
    body = pattern.removeprefix("!")
    if not body.strip():
        return "is empty"
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in pattern):
        return "has a control character, which stands in no name that is compared"
    if body != body.strip():
        return "begins or ends with a blank, which no name that is compared does"
    if _DRIVE.match(body):
        return "is a path of Windows; start at the top of the file system with //, and use /"
    if _ESCAPED_NAME.search(re.sub(r"\\\\", "", body)):
        return "has a backslash before a letter; use / between folders"
    if ".." in body.split("/"):
        return "has a .. in it, and is compared with names in which there is none"
    if _CHOICE.search(body):
        return "has alternatives in braces; write one pattern for each, or \\{ for the character"
    if _OTHER_HOME.match(body):
        return "starts at somebody else's home; write it from the top of the file system, with //"
    try:
        translate(body)
    except WildcardError as error:
        return f"cannot be understood: {error}"
    if not split_pattern(body)[1]:
        return "names nothing; ** is everything"
    if not any(covers((body,), path) for path in witnesses(body)):
        return (
            "can never match: names are compared in lower case, without blanks and dots at the end"
        )
    return ""


def wrong_list(patterns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The places in a list of patterns of a ``!`` that does nothing, each with the reason.

    Args:
        patterns: Patterns with which nothing is wrong by themselves, as they were written.
    """
    for number, pattern in enumerate(patterns):
        if not pattern.startswith("!"):
            continue
        before = [each for each in patterns[:number] if not each.startswith("!")]
        if not before:
            yield number, "takes back what a pattern before it covers, and there is none"
            continue
        less, more = settled(patterns[:number]), settled(patterns[: number + 1])
        forms = _sparing(pattern)
        covering = [each for each in (*less, *more) if not each.startswith("!")]
        meant = [shared(form, each) for form in forms for each in covering]
        paths = [*filter(None, meant), *(path for form in forms for path in witnesses(form))]
        without = settled(patterns[:number], until=number + 1)
        if any(covers(without, path) and not covers(more, path) for path in paths):
            continue
        said = "takes nothing back: no pattern before it covers anything of that name"
        if any(covers(less, path) for path in paths):
            said = (
                "takes nothing back, because a folder above it is covered as a whole; cover what "
                "is in that folder instead, with /* at the end"
            )
        elif forms == (pattern,) and not any(wrong_list([*before, f"{pattern}/**"])):
            said += "; to spare what is in a folder, end with /**"
        yield number, said


def settled(patterns: Sequence[str], *, until: int | None = None) -> tuple[str, ...]:
    """Patterns so that a ``!`` reaches into a folder that ``x/**`` covers, and ``!x/**`` too.

    ``x/**`` covers the folder itself, from which nothing can be taken back.  Where a ``!``
    follows, what is in the folder is covered instead, and so on for each folder on the way down
    to what is spared that is named without wildcards.

    Args:
        patterns: As they were written.
        until: The number of patterns of which the last ``!`` counts as following; the number of
            all when None.
    """
    last = max((n for n, each in enumerate(patterns) if each[:1] == "!"), default=-1)
    last = last if until is None else until
    done: list[str] = []
    opened: list[tuple[str, ...]] = []
    for number, pattern in enumerate(patterns):
        if not pattern.startswith("!"):
            folder = "" if pattern in ("*", "**") else pattern.removesuffix("/**")
            if number < last and folder != pattern:
                done.append(f"{folder}/*")
                if literal_length(folder) == len(folder):
                    opened.append(split_pattern(f"{folder}/*")[1][:-1])
            else:
                done.append(pattern)
            continue
        _negated, parts = split_pattern(pattern)
        above = max((each for each in opened if parts[: len(each)] == each), key=len, default=parts)
        for length in range(len(above) + 1, len(parts)):
            if literal_length(parts[length - 1]) != len(parts[length - 1]):
                break
            folder = "/".join(parts[:length])
            done += [f"!/{folder}", f"/{folder}/*"]
            opened.append(parts[:length])
        done += _sparing(pattern)
    return tuple(done)


def _sparing(pattern: str) -> tuple[str, ...]:
    """A pattern with ``!`` as it is compared: one that ends in ``/**`` is about all below it."""
    folder = pattern.removesuffix("/**")
    return (pattern,) if folder == pattern else (folder, f"{folder}/**/*")


def covers(patterns: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a list of patterns covers a path, given as its names from the top."""
    request = Request(_ANYWHERE, "/".join(path) or ".", "read")
    return decide(request, _denying(tuple(patterns))).verdict == "deny"


@lru_cache(maxsize=64)
def _denying(patterns: tuple[str, ...]) -> Policy:
    return Policy((Rule("", "deny", patterns, ""),))


# -- rules ----------------------------------------------------------------------------------


def useless(
    rules: Sequence[Rule], standing: Sequence[Rule] = (), *, strict: frozenset[Action]
) -> Iterator[tuple[Rule, str]]:
    """Rules that never make a difference, each with the reason.

    Args:
        rules: Those to look at; stronger ones among them count as well.
        standing: Further rules in force with them.
        strict: Actions that something else than allow is said about where no rule covers.
    """
    if all(rule.verdict == "deny" for rule in rules):
        return
    everything = (*standing, *rules)
    stronger = {
        verdict: Policy([r for r in everything if r.verdict in _WEAKER[verdict] or r.lifts])
        for verdict in ("ask", "allow")
    }
    also = left_out(pattern for rule in everything for pattern in rule.paths)
    for rule in rules:
        if rule.verdict == "deny":
            continue
        deciding: dict[Rule, None] = {}
        idle: set[Action] = set()
        for action in sorted(rule.actions):
            beaten = _beaten(rule, action, stronger[rule.verdict], also)
            if beaten is not None:
                deciding |= dict.fromkeys(beaten)
            elif rule.verdict == "allow" and not rule.lifts and action not in strict:
                idle.add(action)
            else:
                break
        else:
            if deciding:
                yield rule, _never_decides(rule, tuple(deciding))
            else:
                said = "every action" if idle == ACTIONS else ", ".join(sorted(idle))
                yield rule, _ALLOWED_ANYWAY.format(said)


def idle_lifts(rule: Rule, standing: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    """Names of built-in rules that a rule sets aside where they say nothing, with the reason."""
    own = [pattern for pattern in rule.paths if not pattern.startswith("!")]
    for name in sorted(rule.lifts):
        named = [each for each in standing if each.name == name and not each.signs]
        theirs = [(e, p) for e in named for p in e.paths if not p.startswith("!")]
        anchored = rule.root is None
        if named and not any(
            each.actions & rule.actions and _overlap(mine, pattern, anchored=anchored)
            for each, pattern in theirs
            for mine in own
        ):
            yield name, f"\u201c{name}\u201d says nothing about these paths and actions"


def _beaten(rule: Rule, action: Action, stronger: Policy, also: str) -> tuple[Rule, ...] | None:
    """The stronger rules that decide wherever a rule covers; None when it may decide itself."""
    own = Policy((rule,))
    found: dict[Rule, None] = {}
    agents = [form for glob in rule.agents for form in _agents(glob)]
    for pattern in rule.paths:
        if pattern.startswith("!"):
            continue
        for path in witnesses(pattern, also):
            for agent in agents:
                base = rule.root or _ANYWHERE
                request = Request(base, "/".join(path) or ".", action, agent)
                if decide(request, own).rule is not rule:
                    continue
                # Rules of every root count from its top, which may lie anywhere below this one.
                top = (FRESH, *path) if rule.root and rule.layer != "project" else path
                asked = Request(base, "/".join(top) or ".", action, agent)
                decided = decide(asked, stronger)
                if decided.verdict not in _WEAKER[rule.verdict]:
                    return None
                found[decided.rule] = None
    return tuple(found) or None


def _never_decides(rule: Rule, deciding: Sequence[Rule]) -> str:
    named = ", ".join(
        f"\u201c{each.name}\u201d ({each.verdict}, {each.place})" for each in deciding[:3]
    )
    said = f"never decides: {named} goes before it wherever it covers"
    built_in = [each.name for each in deciding if each.layer == "built-in"]
    if rule.verdict == "allow" and built_in:
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(built_in))
        said += f"; to set that aside add lifts = [{names}]"
    return said


def _overlap(mine: str, theirs: str, *, anchored: bool) -> bool:
    """Whether two patterns have a file in common, if only below a folder that one names."""
    one, other = (list(split_pattern(pattern)[1]) for pattern in (mine, theirs))
    if not anchored:
        # They count from different folders, of which either may lie in the other.
        one, other = ["**", *one], ["**", *other]
    pairs = ((one, other), ([*one, "**", "*"], other), (one, [*other, "**", "*"]))
    return any(shared("/" + "/".join(a), "/" + "/".join(b)) is not None for a, b in pairs)


def _agents(glob: str) -> tuple[str, ...]:
    if glob == "*":
        return "", FRESH
    return tuple(glob.replace("*", form).replace("?", FRESH) for form in ("", FRESH, FRESH * 2))


# -- expectations ---------------------------------------------------------------------------


def unmet(expectation: Expectation, policy: Policy, root: str) -> Iterator[str]:
    """What comes out differently from what is expected, one sentence each.

    Args:
        expectation: What is expected.
        policy: The rules to ask.
        root: The folder that relative paths count from.
    """
    for path in expectation.paths:
        base, inside = ("/", path) if path.startswith("/") else (root, path)
        for action in expectation.actions:
            found = decide(Request(base, inside, action, expectation.agent), policy)
            right = found.verdict == expectation.verdict
            if right and expectation.rule in ("", found.rule.name):
                continue
            wanted = _SAID[expectation.verdict]
            if expectation.rule:
                wanted += f" by \u201c{expectation.rule}\u201d"
            yield (
                f"{path}: to {action} it is {_SAID[found.verdict]} by \u201c{found.rule.name}\u201d "
                f"({found.rule.place}), and should be {wanted}"
            )
