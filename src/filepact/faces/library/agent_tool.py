"""A tool for an agent of any framework: a name, a description, a JSON schema, and a call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from filepact.tools.answers import CallContext
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Session
    from filepact.tools.answers import CallResult
    from filepact.tools.registry import Toolset

__all__ = ["AgentTool"]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One of the tools, to be handed to a framework; calling it makes a call.

    Attributes:
        name: As the model sees it.
        description: The same.
        parameters: The JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    _toolset: Toolset = field(repr=False)
    _session: Callable[[], Session] = field(repr=False)

    def __call__(self, **arguments: object) -> str:
        """The answer as text for the model; a refusal is an answer too, and begins with its code."""
        return self.run(arguments).text

    async def call_async(self, **arguments: object) -> str:
        """Make the call in a thread, and return its text."""
        return (await asyncio.to_thread(self.run, arguments)).text

    def run(self, arguments: Mapping[str, object]) -> CallResult:
        """The whole answer: its text, whether it ``failed``, its ``code``, and the bytes of a picture."""
        outcome = self._toolset.call(self.name, arguments, CallContext(self._session()))
        outcome.on_sent()
        return outcome
