"""Tools as values, and the one place where an agent's call becomes a tool's answer.

A tool is a plain function.  Its first parameter is its port: ``files`` for a tool that looks,
``draft`` for a tool that changes.  The others are what an agent may send.
"""

from __future__ import annotations

import inspect
import logging
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from filepact.errors import FilepactError
from filepact.tools.parameters import Alias, Parameters

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from filepact.domain.operation import Session

__all__ = [
    "Alias",
    "Blob",
    "Call",
    "Engine",
    "Kind",
    "Level",
    "Outcome",
    "Tier",
    "Tool",
    "Toolbox",
    "UnknownToolError",
    "Written",
    "tool",
]

_log = logging.getLogger(__name__)

Kind = Literal["reads", "writes"]
Level = Literal["safe", "moderate", "dangerous"]
Tier = Literal["essential", "standard", "full"]

_PORTS: dict[str, Kind] = {"files": "reads", "draft": "writes"}
_LEVELS: tuple[Level, ...] = get_args(Level)
_TIERS: tuple[Tier, ...] = get_args(Tier)


@dataclass(frozen=True, slots=True)
class Blob:
    """What a reading tool answers when it is not text."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a change: the answer for a reader, and the same facts for a program."""

    text: str
    receipt: dict[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and how to hear from and talk to the caller meanwhile.

    Attributes:
        cancelled: Whether the caller has lost interest; asked often by long work, from any thread.
        progress: Told how far the work is: a count that grows, and a short text.
    """

    session: Session
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, str], None] = lambda _done, _what: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one call.

    Attributes:
        text: For the reader; base64 where the answer is bytes.  It can always be encoded.
        failed: Whether the tool refused or broke; ``text`` then begins with the code.
        receipt: For a change: ``operation``, ``status`` and ``files``.
        data: The bytes, where the answer is not text.
    """

    text: str
    failed: bool = False
    code: str = ""
    receipt: dict[str, Any] | None = None
    data: bytes | None = None


class Engine(Protocol):
    """What carries out the work that tools describe."""

    def reader(self, call: Call, /) -> AbstractContextManager[Any]:
        """The port of a reading tool, for the time of one call."""

    def write(self, call: Call, tool: str, action: Callable[[Any], str], /) -> Written:
        """Make a port, let ``action`` work on it, and do what then stands in it.

        ``action`` answers one line that says what the change is.
        """

    def news(self, call: Call, /) -> str:
        """What the caller should hear besides the answer; empty when there is nothing."""


class UnknownToolError(LookupError):
    """There is no such tool, or it is not shown here.

    Attributes:
        known: The names that there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown tool {name[:60]!r}; known: {', '.join(known) or 'none'}")
        self.known = known


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that agents can call, with what they are told about it.

    Attributes:
        description: The docstring's text.
        level: How much harm it could do.
        tier: The smallest set of tools that it belongs to.
        idempotent: Whether a second call with the same arguments changes nothing more.
        destructive: Whether it can replace what was there.
    """

    name: str
    title: str
    description: str
    kind: Kind
    level: Level
    tier: Tier
    idempotent: bool
    destructive: bool
    parameters: Parameters
    function: Callable[..., Any]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return self.parameters.schema

    def run(self, port: Any, arguments: Mapping[str, object]) -> Any:
        """Check the arguments and call the function.

        Raises:
            InvalidParamsError: The arguments do not fit.
        """
        return self.function(port, **self.parameters.check(arguments))


def tool(
    *,
    title: str,
    level: Level,
    tier: Tier = "standard",
    idempotent: bool = False,
    destructive: bool = True,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function.

    A reading tool (first parameter ``files``) returns a text or a `Blob`; a writing tool (first
    parameter ``draft``) returns one line that says what it changes.  Every other parameter is
    ``Annotated[..., Field(description=...)]``, with an `Alias` where its documented name is not
    Python's.

    Raises:
        TypeError: The function does not have that shape.
    """

    def make(function: Callable[..., Any]) -> Tool:
        port = next(iter(inspect.signature(function).parameters), "")
        if port not in _PORTS:
            raise TypeError(f"{function.__name__}: the first parameter must be files or draft")
        kind = _PORTS[port]
        description = _description(function)
        if not description:
            raise TypeError(f"{function.__name__}: has no docstring")
        return Tool(
            name=function.__name__,
            title=title,
            description=description,
            kind=kind,
            level=level,
            tier=tier,
            idempotent=idempotent or kind == "reads",
            destructive=destructive and kind == "writes",
            parameters=Parameters(function),
            function=function,
        )

    return make


def _description(function: Callable[..., Any]) -> str:
    """The docstring up to its first section, each paragraph on one line."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    kept: list[str] = []
    for paragraph in paragraphs:
        if paragraph.partition("\n")[0] in ("Args:", "Returns:", "Raises:"):
            break
        kept.append(" ".join(paragraph.split()))
    return "\n".join(kept)


class Toolbox:
    """The tools that are shown, in a fixed order, and the engine behind them.

    Args:
        tools: Every tool, in the order in which it is shown.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
        read_only: Only tools that look.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        engine: Engine,
        *,
        tier: Tier = "full",
        max_level: Level = "dangerous",
        read_only: bool = False,
    ) -> None:
        self._engine = engine
        self._tools = tuple(
            one
            for one in tools
            if _TIERS.index(one.tier) <= _TIERS.index(tier)
            and _LEVELS.index(one.level) <= _LEVELS.index(max_level)
            and (one.kind == "reads" or not read_only)
        )
        self._by_name = {one.name: one for one in self._tools}
        if len(self._by_name) != len(self._tools):
            raise ValueError("two tools share a name")

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are shown."""
        return self._tools

    def call(self, name: str, arguments: Mapping[str, object], call: Call) -> Outcome:
        """Call a tool; whatever goes wrong within it is an answer, not an exception.

        Raises:
            UnknownToolError: No tool of that name is shown.
        """
        called = self._by_name.get(name)
        if called is None:
            raise UnknownToolError(name, tuple(self._by_name))
        try:
            return self._with_news(self._carry_out(called, arguments, call), call)
        except FilepactError as error:
            return Outcome(_printable(error.report()), failed=True, code=error.code)
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The text of a foreign exception may name host paths or hold contents: log only.
            _log.exception("%s failed", name)
            return Outcome(
                f"{FilepactError.code}: {name} failed unexpectedly\n"
                "The server's log has the details; read the file again before you go on.",
                failed=True,
                code=FilepactError.code,
            )

    def _with_news(self, outcome: Outcome, call: Call) -> Outcome:
        """The answer and what else the caller should hear; bytes are not added to."""
        news = ""
        if outcome.data is None:
            # What was done is done: a journal that cannot be asked must not hide it.
            with suppress(FilepactError):
                news = self._engine.news(call)
        return replace(outcome, text=f"{outcome.text}\n\n{_printable(news)}") if news else outcome

    def _carry_out(self, called: Tool, arguments: Mapping[str, object], call: Call) -> Outcome:
        values = called.parameters.check(arguments)
        if called.kind == "writes":
            written = self._engine.write(
                call, called.name, lambda draft: str(called.function(draft, **values))
            )
            return Outcome(_printable(written.text), receipt=_printable(written.receipt))
        with self._engine.reader(call) as files:
            answer = called.function(files, **values)
        if isinstance(answer, Blob):
            return Outcome(b64encode(answer.data).decode("ascii"), data=answer.data)
        return Outcome(_printable(str(answer)))


def _printable(value: Any) -> Any:
    """The value with names that are not UTF-8 written in escapes, so that it can be sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {name: _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value
