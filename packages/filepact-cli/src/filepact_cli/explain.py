"""Explains what the rules in force say about one request, with every rule that covers it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.names import key
from filepact.domain.policy import AccessRequest, Policy, Rule, decide
from filepact.errors import ApprovalRequiredError, FilepactError, PathBlockedError
from filepact.values import dataclass, replace
from filepact.workspace.location import not_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.policy import Action, Sign, Verdict
    from filepact.workspace.guard import Guard

__all__ = ["DecisionExplanation", "RuleMatch", "explain"]

_LARGEST: Final = 1 << 26
"""Most bytes of a file in which a private key is looked for here."""

_ORDER: Final[dict[Verdict, int]] = {"deny": 0, "ask": 1, "allow": 2}


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A rule that covers the request besides the one that decides.

    Attributes:
        rule: The rule.
        lifted_by: The rule that sets it aside, if one does.
    """

    rule: Rule
    lifted_by: Rule | None = None


@dataclass(frozen=True, slots=True)
class DecisionExplanation:
    """A verdict with its reasons.

    Attributes:
        path: The name as it was sent, from its root.
        action: What is to be done.
        agent: Who asks; empty for a person.
        verdict: What becomes of it.
        rule: The rule that decides; None where the guard refuses before any rule.
        refusal: What the guard says then; else empty.
        root: The folder that the name counts from; empty where there is none.
        resolved: Where the name leads by links; empty where that is the name itself.
        compared: The name as rules compare it; empty where that is the name in lower case.
        missing: Whether nothing is there yet.
        alike: The name of the only file that is the same but for letter case, blanks and Unicode form,
            where nothing has this one; it is what is read.
        others: The other rules that cover it, the strictest first.
    """

    path: str
    action: Action
    agent: str
    verdict: Verdict
    rule: Rule | None = None
    refusal: str = ""
    root: str = ""
    resolved: str = ""
    compared: str = ""
    missing: bool = False
    alike: str = ""
    others: tuple[RuleMatch, ...] = ()


def explain(guard: Guard, path: str, action: Action, *, agent: str = "") -> DecisionExplanation:
    """Why a path may be used for an action, or may not.

    Args:
        guard: The roots and rules.
        path: As tools take it: relative to the first root, or absolute.
        action: What is to be done.
        agent: The name that an agent gives itself.
    """
    location = None
    try:
        location = guard.find(path, action, agent=agent)
    except ApprovalRequiredError:
        pass
    except PathBlockedError as error:
        if "rule" not in error.details:
            return DecisionExplanation(path, action, agent, "deny", refusal=error.message)
    # The one place that knows how roots may be spelt; the form of the path was checked above.
    root, relative = guard._split(path)  # noqa: SLF001
    alike = ""
    if location is not None:
        relative = location.lookup.relative
        if location.place.kind == "missing":
            alike = str(not_there(location, "", "", path=path).details["alike"])
    if alike and action == "read":
        found = explain(guard, alike, action, agent=agent)
        return replace(found, path=relative, missing=True, alike=alike)
    leads, missing, place = relative, False, None
    # Where the name itself is denied, nobody has looked yet where it leads, which may be outside.
    with suppress(PathBlockedError):
        place = root.place(relative)
        leads, missing = place.path, place.kind == "missing"
    signs: frozenset[Sign] = frozenset()
    with suppress(FilepactError, OSError):
        if place is not None and place.kind == "file":
            held = root.read(leads, limit=_LARGEST).data
            signs = frozenset({"private key"} if guard.holds_key(held) else ())
    requests = [
        AccessRequest(root.path, name, action, agent, signs)
        for name in dict.fromkeys((relative, leads))
    ]
    decisions = [decide(request, guard.policy) for request in requests]
    decided = min(decisions, key=lambda decision: _ORDER[decision.verdict])
    compared = "/".join(key(part) for part in relative.split("/"))
    return DecisionExplanation(
        relative,
        action,
        agent,
        decided.verdict,
        decided.rule,
        root=root.path,
        resolved=leads if leads != relative else "",
        compared=compared if compared != relative.lower() else "",
        missing=missing,
        alike=alike,
        others=tuple(_voices(guard.policy, requests, decided.rule)),
    )


def _voices(
    policy: Policy, requests: Sequence[AccessRequest], deciding: Rule
) -> Iterator[RuleMatch]:
    covering = [rule for rule in policy.rules if _covers(rule, requests)]
    if not covering:
        covering = [rule for rule in policy.fallbacks if _covers(rule, requests)]
    lifting = [rule for rule in covering if rule.verdict == "allow" and rule.lifts]
    for rule in sorted(covering, key=lambda rule: _ORDER[rule.verdict]):
        if rule != deciding:
            by = [each for each in lifting if rule.name in each.lifts]
            yield RuleMatch(rule, by[0] if by and rule.layer == "built-in" else None)


def _covers(rule: Rule, requests: Sequence[AccessRequest]) -> bool:
    alone = Policy((rule,))
    return any(decide(request, alone).rule is rule for request in requests)
