"""What agents keep for themselves in the folder that they work in: logs, sessions and caches.

Nothing is here that steers an agent or runs: what does is protected, and stays in sight.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AGENT_LOGS", "is_agent_log"]

AGENT_LOGS: Final[Mapping[str, tuple[str, ...]]] = {
    "aider": (
        ".aider.chat.history.md",
        ".aider.input.history",
        ".aider.llm.history",
        ".aider.tags.cache.v*/",
    ),
    "crush": (".crush/crush.db*", ".crush/logs/"),
    "fast-agent": (".fast-agent/logs/", ".fast-agent/sessions/", "fastagent.jsonl"),
}
"""By agent: paths at the top of a root; a slash at the end means all below, a star any name."""


def _pattern(path: str) -> str:
    return re.escape(path).replace(r"\*", "[^/]*") + ("" if path.endswith("/") else r"\Z")


_KEPT: Final = re.compile("|".join(_pattern(path) for kept in AGENT_LOGS.values() for path in kept))


def is_agent_log(path: str) -> bool:
    """Whether a path beneath a root is one of these."""
    return _KEPT.match(path) is not None
