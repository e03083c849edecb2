"""Findings of a check, its verdict, the report of all verdicts, and errors of the suite itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CheckFailedError",
    "CheckSkippedError",
    "Code",
    "Level",
    "Outcome",
    "Report",
    "SuiteError",
    "Verdict",
    "as_object",
    "expect",
    "short",
]

Level = Literal["must", "should"]
"""``must`` is what the protocol's documents and its schema demand; ``should`` is advice."""

Outcome = Literal["passed", "failed", "skipped"]

Code = Literal[
    "AGENT_NOT_STARTED",
    "CHECKS_NOT_RUN",
    "CLIENT_NOT_FOUND",
    "NO_CLIENT",
    "TIMED_OUT",
    "UNKNOWN_CHECK",
    "USAGE",
]
"""What programs tell errors apart by; the README says what each means."""


class CheckFailedError(Exception):
    """The client breaks the rule of the check; the text says what it did."""


class CheckSkippedError(Exception):
    """The check does not apply, or the client gave no occasion for it; the text says why."""


def expect(condition: object, why: str) -> None:
    """Fail the check unless a condition is true.

    Raises:
        CheckFailedError: It is false; ``why`` says what was seen instead.
    """
    if not condition:
        raise CheckFailedError(why)


def as_object(value: object, what: str) -> dict[str, Any]:
    """A value that has to be a JSON object.

    Raises:
        CheckFailedError: It is something else.
    """
    if not isinstance(value, dict):
        raise CheckFailedError(f"{what} is {short(value)} and no object")
    return value


def short(value: object) -> str:
    """A value on one line of a reason, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]}... ({len(text):,} characters)"


class SuiteError(Exception):
    """The checks could not be made; the client is not to blame for what they would have found.

    Attributes:
        code: Stable.
        message: What was wrong, for people.
        hint: What to do next; may be empty.
    """

    def __init__(self, code: Code, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.hint = hint

    def facts(self) -> dict[str, object]:
        """The error as values that JSON knows."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check.

    Attributes:
        id: The check's, as ``group.name``.
        says: What a client has to do.
        source: The document that says so.
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
    """The results of all checks of one client.

    Attributes:
        client: Its ``clientInfo`` and ``clientCapabilities``.
        verdicts: One for each check, in the order in which they ran.
        trouble: Why the last checks were not tried; empty if all were.
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
        """The number of checks with an outcome."""
        return sum(one.outcome == outcome for one in self.verdicts)

    @property
    def conforms(self) -> bool:
        """Whether all checks were tried and no ``must`` failed."""
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
