"""Checks as values, and how they are declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from filepact.faces.acp.check.outcome import Failed, Skipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.acp.check.outcome import Level
    from filepact.faces.acp.check.scene import Scene

__all__ = [
    "ADVICE",
    "CANCELLING",
    "EXTENDING",
    "JSON_RPC",
    "PAGE",
    "PERMISSIONS",
    "PRACTICE",
    "SCHEMA",
    "SETUP",
    "START",
    "TRANSPORT",
    "Check",
    "Group",
    "builds_on",
]

PAGE = "file system page"
ADVICE = "file system page, best practices"
SCHEMA = "schema"
SETUP = "session setup page"
START = "initialization page"
CANCELLING = "cancellation page"
EXTENDING = "extensibility page"
PERMISSIONS = "tool calls page"
TRANSPORT = "transports page"
JSON_RPC = "JSON-RPC 2.0"
PRACTICE = "practice"
"""Where a demand stands; ``practice`` is what real agents rely on though no document says it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a client has to do.

    Attributes:
        id: As ``group.name``; stable.
        source: Where it stands.
        says: What the client has to do, in one sentence.
        run: Raises `Failed` or `Skipped`.
    """

    id: str
    level: Level
    source: str
    says: str
    run: Callable[[Scene], None]


class Baseless(Skipped):
    """What the check builds on is not there."""


def builds_on(scene: Scene, *checks: Check) -> None:
    """Go on unless another check fails, without which the present one could tell nothing.

    Raises:
        Baseless: One of them does, or builds itself on one that does.
    """
    for check in checks:
        try:
            check.run(scene)
        except Baseless:
            raise
        except Skipped:
            continue
        except Failed:
            raise Baseless(f"{check.id} fails, and this builds on it") from None


@dataclass(frozen=True, slots=True)
class Group:
    """Checks about one matter.

    Attributes:
        name: The first half of their ids.
        title: For people.
    """

    name: str
    title: str
    checks: list[Check] = field(default_factory=list)

    def must(self, source: str, says: str) -> Callable[[Callable[[Scene], None]], Check]:
        """Declare a function as a check that the documents demand."""
        return self._declare("must", source, says)

    def should(self, source: str, says: str) -> Callable[[Callable[[Scene], None]], Check]:
        """Declare a function as a check of what is advised."""
        return self._declare("should", source, says)

    def _declare(
        self, level: Level, source: str, says: str
    ) -> Callable[[Callable[[Scene], None]], Check]:
        def take(run: Callable[[Scene], None]) -> Check:
            name = run.__name__.strip("_").replace("_", "-")
            check = Check(f"{self.name}.{name}", level, source, says, run)
            self.checks.append(check)
            return check

        return take
