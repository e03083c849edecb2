"""How a check ends, and what is put together of all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Failed",
    "Level",
    "Outcome",
    "Report",
    "Skipped",
    "Verdict",
    "an_object",
    "expect",
    "shown",
]

Level = Literal["must", "should"]
"""``must`` is what the protocol's documents and its schema demand; ``should`` is advice."""

Outcome = Literal["passed", "failed", "skipped"]


class Failed(Exception):  # noqa: N818 - it is a finding
    """The client does something else than it has to; the text says what."""


class Skipped(Exception):  # noqa: N818 - it is a finding
    """The check does not apply, or the client gave no occasion for it; the text says why."""


def expect(condition: object, why: str) -> None:
    """Go on only if something holds.

    Raises:
        Failed: It does not hold; ``why`` says what was seen instead.
    """
    if not condition:
        raise Failed(why)


def an_object(value: object, what: str) -> dict[str, Any]:
    """A value that has to be a JSON object.

    Raises:
        Failed: It is something else.
    """
    if not isinstance(value, dict):
        raise Failed(f"{what} is {shown(value)} and no object")
    return value


def shown(value: object) -> str:
    """A value as a reason shows it: short, and on one line."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]}... ({len(text):,} characters)"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check found.

    Attributes:
        id: The check's, as ``group.name``.
        says: What a client has to do.
        source: Where that stands.
        why: What was seen instead, or why the check was skipped; empty if it passed.
    """

    id: str
    level: Level
    source: str
    says: str
    outcome: Outcome
    why: str = ""

    @property
    def group(self) -> str:
        """The first half of the id."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Report:
    """What all checks found about one client.

    Attributes:
        client: What it said of itself: ``clientInfo`` and ``clientCapabilities``.
        verdicts: One for each check, in the order in which they ran.
        trouble: Why the checks did not come to their end; empty if they did.
    """

    client: Mapping[str, Any] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    trouble: str = ""

    def failed(self, level: Level | None = None) -> tuple[Verdict, ...]:
        """The checks that failed; with a level only those of it."""
        return tuple(
            one
            for one in self.verdicts
            if one.outcome == "failed" and (level is None or one.level == level)
        )

    def count(self, outcome: Outcome) -> int:
        """How many checks ended in a way."""
        return sum(one.outcome == outcome for one in self.verdicts)

    @property
    def conforms(self) -> bool:
        """Nothing that the documents demand failed, or was not tried; advice may have."""
        return bool(self.verdicts) and not self.trouble and not self.failed("must")

    def facts(self) -> dict[str, object]:
        """The report as values that JSON knows."""
        return {
            "conforms": self.conforms,
            "client": dict(self.client),
            "trouble": self.trouble,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "checks": [asdict(one) for one in self.verdicts],
        }
