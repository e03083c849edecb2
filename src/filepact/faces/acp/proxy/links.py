"""What a part of the proxy needs to reach both sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from filepact.faces.acp.proxy.doors import Doors

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.acp.proxy.questions import Questions
    from filepact.faces.acp.proxy.traffic import Facts

__all__ = ["Links"]


@dataclass(frozen=True, slots=True)
class Links:
    """The ways from the service back to both sides.

    Attributes:
        to_editor: Takes a line for the editor.
        to_agent: Takes a line for the agent.
        questions: Asks the editor.
        facts: What both sides have said about themselves.
        doors: Counts what comes through.
    """

    to_editor: Callable[[bytes], None]
    to_agent: Callable[[bytes], None]
    questions: Questions
    facts: Facts
    doors: Doors = field(default_factory=Doors)
