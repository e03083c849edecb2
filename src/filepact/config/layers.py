"""Rules of one or several settings files as values, and what is in force when they meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from filepact.config.patterns import NOWHERE, Folders
from filepact.domain.lint import Expectation, unmet
from filepact.domain.policy import Layer, Policy, Rule
from filepact.domain.protected import BUILT_IN_RULES
from filepact.domain.signs import SIGN_RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BUILT_IN", "NEVER_LIFTED", "Rules", "Source", "check_together"]

BUILT_IN: Final = (*BUILT_IN_RULES, *SIGN_RULES)
"""The rules that are in force everywhere."""

NEVER_LIFTED: Final = frozenset({"own files", "temporary files of filepact"})
"""Built-in rules that hold the guard itself together."""

# A folder that no rule names, for expectations about "a root" whichever it is.
_SOME_ROOT = "/\ue000"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one or several settings files say.

    Attributes:
        rules: The rules, in the order of the file.
        fallbacks: What is said where no rule covers.
        expectations: What the files expect of them.
        keep: Built-in rules that no file may set aside, each with the file that says so.
    """

    rules: tuple[Rule, ...] = ()
    fallbacks: tuple[Rule, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    keep: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Rules) -> Rules:
        return Rules(
            self.rules + other.rules,
            self.fallbacks + other.fallbacks,
            self.expectations + other.expectations,
            self.keep + other.keep,
        )

    def narrowed(self, project: Rules) -> Rules:
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

    def about(self, roots: Sequence[str]) -> Rules:
        """These without the rules that can say nothing about any of some folders."""

        def kept(rule: Rule) -> bool:
            return rule.root is None or any(_related(rule.root, root) for root in roots)

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
class Source:
    """Whose file it is.

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
    folders: Folders = NOWHERE
    above: Rules = Rules()


def check_together(rules: Rules, source: Source) -> list[tuple[Expectation, str]]:
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
