"""Every protected name in every disguise: other spellings that some system takes for the same name.

``python -m tests.hostile.disguises`` says how many there are and what passed.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.domain.policy import AccessRequest, Action, Policy, Rule, Verdict, decide
from filepact.domain.protected import BUILT_IN_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ACTIONS: tuple[Action, ...] = ("read", "write", "delete")
STRICT: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Protected:
    """A pattern of a built-in rule, and a path that it covers."""

    rule: Rule
    pattern: str
    path: str


def example(pattern: str) -> str:
    """A path that a pattern covers, as short as it goes."""
    text = re.sub(r"\[([^]])[^]]*\]", r"\1", pattern.removeprefix("/"))
    text = text.replace("**/", "").replace("/**", "").replace("?", "q")
    return text.replace("*", "w")


def protected() -> Iterator[Protected]:
    """An example for each pattern of the built-in rules."""
    known: set[tuple[str, str]] = set()
    for rule in BUILT_IN_RULES:
        for pattern in rule.paths:
            if not pattern.startswith("!") and (rule.name, pattern) not in known:
                known.add((rule.name, pattern))
                yield Protected(rule, pattern, example(pattern))


def _each_part(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda path: "/".join(change(part) for part in path.split("/"))


def _mixed(name: str) -> str:
    return "".join(c.upper() if at % 2 else c for at, c in enumerate(name))


def _fullwidth(name: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name)


def _mathematical(name: str) -> str:
    return "".join(chr(ord(c) - ord("a") + 0x1D41A) if "a" <= c <= "z" else c for c in name)


def _inside(char: str) -> Callable[[str], str]:
    return lambda name: f"{name[:1]}{char}{name[1:]}{char}"


def _several(name: str) -> str:
    return f"{_inside(chr(0x200D))(_mixed(name)).replace('E', chr(0xFF25))}. .:stream:$DATA"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "mixed case": _each_part(_mixed),
    "fullwidth letters": _each_part(_fullwidth),
    "mathematical letters": _mathematical,
    "long s and Kelvin sign": lambda path: path.replace("s", "\u017f").replace("k", "\u212a"),
    "zero-width space": _each_part(_inside("\u200b")),
    "byte order mark": _each_part(_inside("\ufeff")),
    "soft hyphen": _each_part(_inside("\u00ad")),
    "combining joiner, decomposed": lambda path: unicodedata.normalize(
        "NFD", _each_part(_inside("\u034f"))(path)
    ),
    "Hangul filler": _each_part(_inside("\u3164")),
    "variation selector": _each_part(_inside("\ufe0f")),
    "supplementary variation selector": _each_part(_inside("\U000e0100")),
    "language tag": _each_part(_inside("\U000e0061")),
    "text direction": _each_part(_inside("\u202e")),
    "trailing dots": _each_part(lambda name: f"{name}.."),
    "trailing blanks": _each_part(lambda name: f"{name}  "),
    "trailing wide blank": _each_part(lambda name: f"{name}\u3000"),
    "stream": _each_part(lambda name: f"{name}:stream"),
    "default stream": _each_part(lambda name: f"{name}::$DATA"),
    "folder stream": _each_part(lambda name: f"{name}::$INDEX_ALLOCATION"),
    "several at once": _each_part(_several),
}
"""Spellings of a path that must be decided exactly as the path is."""


def short(path: str, number: str = "1", digest: str = "") -> str:
    """A path with each long name in it replaced by a short one."""
    return "/".join(_short(part, number, digest) for part in path.split("/"))


def _short(name: str, number: str, digest: str) -> str:
    bare = name.lstrip(".")
    base, dot, ending = bare.rpartition(".")
    if not dot:
        base, ending = bare, ""
    if name == bare and len(base) <= 8 and len(ending) <= 3 and not set(base) & set(". ~+,;=[]"):
        return name
    base = re.sub(r"[+,;=\[\]]", "_", re.sub(r"[. ]", "", base))
    stem = base[:2] + digest if digest else base[: min(6, 7 - len(number))]
    return f"{stem}~{number}" + (f".{ending[:3]}" if ending else "")


SHORT_NAMES: dict[str, Callable[[str], str]] = {
    "short name": short,
    "short name in capitals": lambda path: short(path).upper(),
    "tenth short name": lambda path: short(path, "10"),
    "short name with a digest": lambda path: short(path, digest="a3f9"),
}
"""Names of eight and three characters; what they stand for can be told from a beginning only."""


def tells_its_beginning(pattern: str) -> bool:
    """Whether the short name of what a pattern covers shows that the pattern covers it.

    It does for whole names, for beginnings and for a single ending; not for what has a wildcard
    in front of more than an ending.
    """
    return all(
        part == "**"
        or not re.search(r"[*?\[]", part)
        or re.fullmatch(r"[^*?\[]+\*", part)
        or re.fullmatch(r"\*\.[^*?\[.]+", part)
        for part in pattern.removeprefix("/").split("/")
    )


@dataclass(frozen=True, slots=True)
class Passed:
    """A disguise under which a protected name was decided otherwise."""

    name: Protected
    disguise: str
    path: str
    action: str
    plain: Verdict
    got: Verdict


def passed(
    policy: Policy, disguise: str, change: Callable[[str], str], part: slice = slice(None)
) -> Iterator[Passed]:
    """What is decided otherwise in a disguise, of some names; a short name may also be decided more strictly."""
    by_beginning = disguise in SHORT_NAMES
    for name in [*protected()][part]:
        if by_beginning and not tells_its_beginning(name.pattern):
            continue
        path = change(name.path)
        for action in ACTIONS:
            plain = decide(AccessRequest("/project", name.path, action), policy).verdict
            got = decide(AccessRequest("/project", path, action), policy).verdict
            if STRICT[got] < STRICT[plain] or (got != plain and not by_beginning):
                yield Passed(name, disguise, path, action, plain, got)


def main() -> int:
    policy = Policy(BUILT_IN_RULES)
    names = list(protected())
    told = sum(tells_its_beginning(name.pattern) for name in names)
    print(f"{len(names)} names, {told} of them told by a short name")
    all_wrong = 0
    for disguise, change in (SPELLINGS | SHORT_NAMES).items():
        wrong = list(passed(policy, disguise, change))
        all_wrong += len(wrong)
        print(f"{disguise}: {len(wrong)} passed")
        for each in wrong:
            print(f"  {each.name.pattern} as {each.path!a}: {each.action} {each.got}")
    return 1 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
