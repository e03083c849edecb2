"""The table of all checks, in the order in which they run.

Checks that could end a connection or block a client come last, so that they spoil no other one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_conformance.checks import boundaries, files, sessions, wire
from acp_conformance.report import SuiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp_conformance.check import Check, CheckGroup

__all__ = ["CHECKS", "GROUPS", "choose"]

GROUPS: tuple[CheckGroup, ...] = (
    sessions.CAPABILITIES,
    sessions.SESSIONS,
    files.READS,
    files.WINDOWS,
    files.WRITES,
    files.ENCODINGS,
    boundaries.BOUNDARIES,
    boundaries.ERRORS,
    wire.META,
    sessions.PERMISSIONS,
    sessions.CANCELLATION,
    wire.ROBUSTNESS,
    wire.IDS,
    wire.HOSTILE,
)

CHECKS: tuple[Check, ...] = tuple(check for group in GROUPS for check in group.checks)


def choose(only: Sequence[str]) -> tuple[Check, ...]:
    """The checks with some ids, or of groups with such names; all if nothing is named.

    Raises:
        SuiteError: `UNKNOWN_CHECK`: a name is no check's and no group's.
    """
    known = {check.id for check in CHECKS} | {group.name for group in GROUPS}
    for name in only:
        if name not in known:
            raise SuiteError(
                "UNKNOWN_CHECK",
                f"there is no check {name!r}",
                hint="`acp-conformance --list` has them all.",
            )
    wanted = set(only)
    return tuple(
        check for check in CHECKS if not wanted or check.id in wanted or check.group in wanted
    )
