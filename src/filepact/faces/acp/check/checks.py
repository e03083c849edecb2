"""The table of all checks, in the order in which they run.

What could end a connection or block a client stands last, so that it spoils no other check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.faces.acp.check.groups import (
    boundaries,
    cancellation,
    capabilities,
    encodings,
    errors,
    hostile,
    ids,
    meta,
    permissions,
    reads,
    robustness,
    sessions,
    windows,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.acp.check.group import Check, Group

__all__ = ["CHECKS", "GROUPS", "choose"]

GROUPS: tuple[Group, ...] = (
    capabilities.GROUP,
    sessions.GROUP,
    reads.GROUP,
    windows.GROUP,
    writes.GROUP,
    encodings.GROUP,
    boundaries.GROUP,
    errors.GROUP,
    meta.GROUP,
    permissions.GROUP,
    cancellation.GROUP,
    robustness.GROUP,
    ids.GROUP,
    hostile.GROUP,
)

CHECKS: tuple[Check, ...] = tuple(check for group in GROUPS for check in group.checks)


def choose(only: Sequence[str]) -> tuple[Check, ...]:
    """The checks with some ids, or of groups with such names; all if nothing is named.

    Raises:
        InvalidParamsError: A name is no check's and no group's.
    """
    known = {check.id for check in CHECKS} | {group.name for group in GROUPS}
    for name in only:
        if name not in known:
            raise InvalidParamsError(
                f"there is no check {name!r}", hint="`filepact acp-check --list` has them all."
            )
    wanted = set(only)
    return tuple(
        check
        for check in CHECKS
        if not wanted or check.id in wanted or check.id.partition(".")[0] in wanted
    )
