"""Checks rules before any file is asked about: patterns and rules that do nothing.

A rule that never decides is a mistake of whoever wrote it, who believes that it protects or frees
something.  So it is said, with its reason, and nothing starts until it is mended.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from filepact.domain.policy import ACTIONS, AccessRequest, Policy, Rule, decide
from filepact.text.glob import GlobError, literal_length, translate
from filepact.text.pattern_set import split_pattern
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from filepact.domain.policy import Action, Verdict

__all__ = [
    "RuleCheck",
    "covers",
    "idle_lifts",
    "settled",
    "shared",
    "unmet",
    "useless",
    "witnesses",
    "wrong_list",
    "wrong_pattern",
]

_WEAKER: Final[dict[Verdict, frozenset[Verdict]]] = {
    "deny": frozenset(),
    "ask": frozenset({"deny"}),
    "allow": frozenset({"deny", "ask"}),
}
_SAID: Final[dict[Verdict, str]] = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
_DRIVE = late_regex(r"[A-Za-z]:[\\/]")
_ESCAPED_NAME = late_regex(r"\\(?:[\w.]|$)")
_CHOICE = late_regex(r"(?<!\\)\{[^{}]*,[^{}]*\}")
_OTHER_HOME = late_regex(r"~[A-Za-z_][\w-]*/")
_ALLOWED_ANYWAY = (
    "allows what is allowed anyway ({}), since no [default] says otherwise; only beside [default] "
    'with "ask" or "deny", or with lifts, does it do something'
)
_ANYWHERE = "/"


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """An expectation of a settings file about its own rules.

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
    """The fault of one pattern, in words; empty when there is none."""
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
    except GlobError as error:
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
    """A pattern with ``!`` as it is compared: with ``/**`` at its end it covers the folder too."""
    folder = pattern.removesuffix("/**")
    return (pattern,) if folder == pattern else (folder, f"{folder}/**/*")


def covers(patterns: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a list of patterns covers a path, given as its names from the top."""
    request = AccessRequest(_ANYWHERE, "/".join(path) or ".", "read")
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
    also = _left_out(pattern for rule in everything for pattern in rule.paths)
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
                request = AccessRequest(base, "/".join(path) or ".", action, agent)
                if decide(request, own).rule is not rule:
                    continue
                # Rules of every root count from its top, which may lie anywhere below this one.
                top = (_FRESH, *path) if rule.root and rule.layer != "project" else path
                asked = AccessRequest(base, "/".join(top) or ".", action, agent)
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
        return "", _FRESH
    return tuple(glob.replace("*", form).replace("?", _FRESH) for form in ("", _FRESH, _FRESH * 2))


# -- expectations ---------------------------------------------------------------------------


def unmet(expectation: RuleCheck, policy: Policy, root: str) -> Iterator[str]:
    """The differences between decisions and an expectation, one sentence each.

    Args:
        expectation: What is expected.
        policy: The rules to ask.
        root: The folder that relative paths count from.
    """
    for path in expectation.paths:
        base, inside = ("/", path) if path.startswith("/") else (root, path)
        for action in expectation.actions:
            found = decide(AccessRequest(base, inside, action, expectation.agent), policy)
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


# -- examples of names that patterns stand for ---------------------------------------------------
#
# They are how rules are compared with each other before any file is asked about.  A wildcard is
# tried as nothing, as one and as two characters that stand in no pattern, so that only another
# wildcard covers what it stands for.


_FRESH: Final = "\ue000"
"""A character of no meaning, which nobody writes into a pattern."""

_OTHER: Final = "\ue001"
_CANDIDATES: Final = "".join(map(chr, range(0x21, 0x7F))) + _FRESH + _OTHER
_FEW: Final = 3
_BASES: Final = 5
_MOST_LEFT_OUT: Final = 12
_LEFT_OUT: Final = late_regex(r"\[[!^]([^\]]+)")
# Longer than what anybody writes ? for.
_LONG: Final = _FRESH * 9
_FOLDERS: Final = ((), (_FRESH,), (_LONG,), (_LONG, _OTHER + _LONG))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern for a name: one character, or any number of them.

    Attributes:
        chars: Characters that it stands for, some of them only; empty for ``*``.
        fits: Compares one character; None for ``*``.
    """

    chars: str
    fits: re.Pattern[str] | None

    def examples(self, also: str) -> str:
        """Sample characters: the first few of this class, and every extra candidate that it matches."""
        fits = self.fits
        return self.chars[:_FEW] + "".join(c for c in also if fits is not None and fits.match(c))


_STAR = _Piece("", None)


def witnesses(pattern: str, also: str = "") -> tuple[tuple[str, ...], ...]:
    """Example paths of a pattern, ``!`` or not, in lower case; none if it matches nothing.

    Args:
        pattern: As `PatternSet` takes it.
        also: Characters to try besides for wildcards, because other patterns leave them out.
    """
    _negated, parts = split_pattern(pattern.casefold())
    if parts == ("**",):
        return ((), *_FOLDERS[1:])
    # Each wildcard alone in all its forms while the others stand at one form, for each form.
    forms = [_forms(part, also) for part in parts]
    found: dict[tuple[str, ...], None] = {}
    for base in range(_BASES):
        chosen = [each[min(base, len(each) - 1)] for each in forms]
        for number, each in enumerate(forms):
            for form in each:
                names = [*chosen[:number], form, *chosen[number + 1 :]]
                path = tuple(name for group in names for name in group)
                if all(name not in ("", ".", "..") for name in path):
                    found[path] = None
    return tuple(found)


def _left_out(patterns: Iterable[str]) -> str:
    """The characters that classes with ``!`` leave out, ends of ranges among them, in lower case."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for members in _LEFT_OUT.findall(pattern.casefold()):
            found |= dict.fromkeys(members.replace("-", "").replace("\\", ""))
    return "".join(found)[:_MOST_LEFT_OUT]


def shared(one: str, other: str) -> tuple[str, ...] | None:
    """A path that two patterns both match, ``!`` or not; None when there is none.

    It is about the very name, not about what lies in a folder that one of them names.
    """
    return _shared_path(split_pattern(one.casefold())[1], split_pattern(other.casefold())[1])


def _forms(part: str, also: str) -> tuple[tuple[str, ...], ...]:
    """Example names of a part of a pattern; several, one below the other, for ``**``."""
    if part == "**":
        return _FOLDERS
    runs = ("", _FRESH, _FRESH + _OTHER, _LONG, *also)
    pieces = _pieces(part)
    found: dict[str, None] = {}
    for base in runs:
        plain = [base if piece.fits is None else piece.chars[:1] for piece in pieces]
        found["".join(plain)] = None
        for number, piece in enumerate(pieces):
            for form in runs if piece.fits is None else piece.examples(also):
                found["".join([*plain[:number], form, *plain[number + 1 :]])] = None
    return tuple((name,) for name in found if name) or ((_FRESH,),)


def _shared_path(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...] | None:
    # From the ends of both to their beginnings, because patterns may be as long as one likes.
    ends: dict[tuple[int, int], tuple[str, ...]] = {(len(one), len(other)): ()}
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            a = one[i] if i < len(one) else None
            b = other[j] if j < len(other) else None
            found = ends.get((i, j))
            # A ** stands for no folder, or for one more of those that the other goes through.
            for folders, part, skip, take in (
                (a, b, (i + 1, j), (i, j + 1)),
                (b, a, (i, j + 1), (i + 1, j)),
            ):
                if found is None and folders == "**":
                    found = ends.get(skip)
                    if found is None and part is not None and part != "**" and take in ends:
                        name = _shared_name((_STAR,), _pieces(part))
                        found = None if name is None else (name, *ends[take])
            if a is not None and b is not None and "**" not in (a, b) and (i + 1, j + 1) in ends:
                name = _shared_name(_pieces(a), _pieces(b))
                found = None if name is None else (name, *ends[i + 1, j + 1])
            if found is not None:
                ends[i, j] = found
    return ends.get((0, 0))


def _shared_name(one: tuple[_Piece, ...], other: tuple[_Piece, ...]) -> str | None:
    """A name that both match."""
    ends: dict[tuple[int, int], str] = {(len(one), len(other)): ""}
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            a = one[i] if i < len(one) else None
            b = other[j] if j < len(other) else None
            found = ends.get((i, j))
            for star, piece, skip, take in (
                (a, b, (i + 1, j), (i, j + 1)),
                (b, a, (i, j + 1), (i + 1, j)),
            ):
                if found is None and star is not None and star.fits is None:
                    found = ends.get(skip)
                    if found is None and piece is not None and piece.chars and take in ends:
                        found = piece.chars[0] + ends[take]
            if a is not None and b is not None and (i + 1, j + 1) in ends:
                char = _shared_char(a, b)
                found = found if char is None else char + ends[i + 1, j + 1]
            if found is not None:
                ends[i, j] = found
    found = ends.get((0, 0))
    if found == "":
        return _FRESH if _STAR in one and _STAR in other else None
    return found


def _shared_char(one: _Piece, other: _Piece) -> str | None:
    """A character that both match; None for a ``*``."""
    if one.fits is None or other.fits is None:
        return None
    for char in one.chars + other.chars:
        if one.fits.match(char) and other.fits.match(char):
            return char
    return None


@lru_cache(maxsize=1_000)
def _pieces(part: str) -> tuple[_Piece, ...]:
    return tuple(_read_pieces(part))


def _read_pieces(part: str) -> Iterator[_Piece]:
    at = 0
    while at < len(part):
        char = part[at]
        if char == "*":
            yield _STAR
            at += 1
            continue
        end = at + 1
        if char == "\\":
            end += 1
        elif char == "[":
            end = _class_end(part, at)
        fits = re.compile(translate(part[at:end]), re.DOTALL)
        candidates = part[at:end] + _CANDIDATES if char in "[?\\" else char
        chars = dict.fromkeys(c for c in candidates if c != "/" and fits.fullmatch(c))
        if char == "?":
            chars = dict.fromkeys((_FRESH, _OTHER))
        elif char == "[" and _FRESH in chars:
            # Nearly everything fits: what stands in no pattern tells the most.
            chars = dict.fromkeys((_FRESH, *chars))
        yield _Piece("".join(chars), fits)
        at = end


def _class_end(part: str, at: int) -> int:
    """The place behind a class, which is the first at which it can be understood."""
    for end in range(at + 2, len(part) + 1):
        if part[end - 1] == "]":
            try:
                translate(part[at:end])
            except GlobError:
                continue
            return end
    raise GlobError("the class [ is not closed", at)
