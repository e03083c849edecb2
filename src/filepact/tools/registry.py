"""The registry of tools: tools as values, and the toolbox that carries out an agent's call.

A tool is a plain function.  Its first parameter is its port: ``files`` for a tool that looks at
files, ``solution`` for one that looks at what servers make of them, ``draft`` for a tool that changes,
``past`` for one that looks at what its caller has changed and takes it back.  The others are what an agent may send.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from filepact.domain.deadline import Deadline
from filepact.domain.operation import following
from filepact.errors import (
    FilepactError,
    NoChangeError,
    ProposalExpiredError,
    SharedConflictError,
    without_threads,
)
from filepact.tools.answers import (
    CallContext,
    CallResult,
    ResultFormat,
    TextFormat,
    as_json,
    printable,
)
from filepact.tools.parameters import ParameterName, ToolParameters, signature
from filepact.values import dataclass, late_logger, replace
from filepact.workspace.pending import SessionEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from filepact.workspace.pending import SessionEvent

__all__ = [
    "TRIES",
    "CallContext",
    "CallResult",
    "ContentAnswer",
    "Kind",
    "Level",
    "ParameterName",
    "TakenBack",
    "Tier",
    "Tool",
    "ToolEngine",
    "Toolset",
    "UnknownToolError",
    "tool",
]

_log = late_logger(__name__)

Kind = Literal["reads", "writes"]
Level = Literal["safe", "moderate", "dangerous"]
Tier = Literal["essential", "standard", "full"]
TakenBack = Literal["taken back"]

_PORTS: dict[str, Kind] = {
    "files": "reads",
    "solution": "reads",
    "draft": "writes",
    "past": "writes",
}
TRIES: Final = 17
"""Times that a call is made where somebody else changed its file of a shared workspace first."""
_NAMING: Final = ("path", "filePath", "directory")
_LEVELS: tuple[Level, ...] = get_args(Level)
_TIERS: tuple[Tier, ...] = get_args(Tier)


@dataclass(frozen=True, slots=True)
class ContentAnswer:
    """The answer of a reading tool that is not text.

    Attributes:
        mime: What it is, if a reader can look at it.
        note: What is said about it; of what nobody can look at, only if it is not all.
    """

    data: bytes
    mime: str = ""
    note: str = ""


class ToolEngine(Protocol):
    """The engine that carries out what tools describe."""

    def port(self, call: CallContext, name: str, /) -> Any:
        """A port of this name for one call, which holds nothing; of every name but ``draft``."""

    def draft(self, call: CallContext, tool: str, /) -> AbstractContextManager[Any]:
        """The port of a tool that changes files; it holds the locks of those that are opened."""

    def submit(self, call: CallContext, draft: Any, summary: str, /) -> Any:
        """Do, store or only show what stands in a draft that is still open.

        Args:
            call: Who wants it.
            draft: What a tool has worked on.
            summary: One line that says what the change is.
        """

    def answer(self, call: CallContext, draft: Any, submitted: Any, /) -> CallResult:
        """The answer to a change, once its draft is closed: nobody waits for its locks any more."""

    def events(self, call: CallContext, /) -> Sequence[SessionEvent]:
        """The notices for the caller besides the answer, each until it is acknowledged."""

    def acknowledge(self, call: CallContext, news: Sequence[SessionEvent], /) -> None:
        """An answer that told these was sent."""

    def done_before(
        self, call: CallContext, change: str, /, *, settle: bool
    ) -> CallResult | TakenBack | None:
        """The answer to what was done under the id of a change, which a request makes again.

        Args:
            call: The request; its session names what the change is made for.
            change: The id.
            settle: Whether what another machine that is gone has begun for it is not to be done any more.

        Returns:
            None where nothing was begun under it.

        Raises:
            TimedOutError: It is still being done, by another process.
        """

    def record(
        self, call: CallContext, tool: str, asked: str, code: str, seconds: float, /
    ) -> None:
        """Put a call into the audit log, now that it is over.

        Args:
            call: Whose it was.
            tool: What was called.
            asked: The path that it named; empty for none.
            code: The error's code, or ``OK``.
            seconds: How long it took.
        """

    def gather_records(self) -> Callable[[], None]:
        """As of `Toolset`."""


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
        port: The name of its first parameter.
        level: How much harm it could do.
        tier: The smallest set of tools that it belongs to.
        idempotent: Whether a second call with the same arguments changes nothing more.
        destructive: Whether it can replace what was there.
        output: The JSON schema of what it answers, where its toolset has one for each tool.
    """

    name: str
    title: str
    description: str
    port: str
    kind: Kind
    level: Level
    tier: Tier
    idempotent: bool
    destructive: bool
    parameters: ToolParameters
    function: Callable[..., Any]
    output: Mapping[str, Any] | None = None

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
    output: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function.

    A reading tool (first parameter ``files`` or ``solution``) returns a text, a `ContentAnswer`, or an object
    for programs; a writing tool (first parameter ``draft``) returns one line that says what it
    changes; one with the first parameter ``past`` a text, or an `CallResult`.  Every other parameter is ``Annotated[..., about(description=...)]``, with an `ParameterName`
    where its documented name is not Python's.

    Raises:
        TypeError: The function does not have that shape.
    """

    def make(function: Callable[..., Any]) -> Tool:
        port = next(iter(signature(function)), "")
        if port not in _PORTS:
            raise TypeError(
                f"{function.__name__}: the first parameter must be {' or '.join(_PORTS)}"
            )
        kind = _PORTS[port]
        description = _description(function)
        if not description:
            raise TypeError(f"{function.__name__}: has no docstring")
        return Tool(
            name=function.__name__,
            title=title,
            description=description,
            port=port,
            kind=kind,
            level=level,
            tier=tier,
            idempotent=idempotent or kind == "reads",
            destructive=destructive and kind == "writes",
            parameters=ToolParameters(function),
            function=function,
            output=output,
        )

    return make


def _description(function: Callable[..., Any]) -> str:
    """The docstring up to its first section, each paragraph on one line."""
    kept: list[str] = []
    for paragraph in (function.__doc__ or "").split("\n\n"):
        if paragraph.strip().partition("\n")[0] in ("Args:", "Returns:", "Raises:"):
            break
        kept.append(" ".join(paragraph.split()))
    return "\n".join(kept)


class Toolset:
    """The tools that are shown, in a fixed order, and the engine behind them.

    Args:
        tools: Every tool, in the order in which it is shown.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
        read_only: Only tools that look.
        form: How answers are worded.
        seconds: How long one call may take.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        engine: ToolEngine,
        *,
        tier: Tier = "full",
        max_level: Level = "dangerous",
        read_only: bool = False,
        form: ResultFormat = TextFormat(),  # noqa: B008 - it has no state
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._form = form
        self._seconds = seconds
        self._clock = clock
        self._own_events = SessionEvents()
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

    def call(self, name: str, arguments: Mapping[str, object], call: CallContext) -> CallResult:
        """Call a tool; whatever goes wrong within it is an answer, not an exception.

        Raises:
            UnknownToolError: No tool of that name is shown.
        """
        called = self._by_name.get(name)
        if called is None:
            raise UnknownToolError(name, tuple(self._by_name))
        deadline = Deadline(self._seconds, call.cancelled, self._clock)
        timed = CallContext(
            call.session, call.cancelled, call.progress, call.page, deadline, call.refusal
        )
        news = self._events(called, call)
        result: CallResult | FilepactError
        done, code, begun = "", "OK", time.perf_counter()
        try:
            result = self._carry_out(called, arguments, self._form.limit(timed, news))
            done = _done(result)
            code = result.code or code
        except FilepactError as error:
            result, code = error, error.code
        except Exception as error:  # noqa: BLE001 - the last line of defence, and it is logged
            # The text of a foreign exception may name host paths or hold contents: log only.
            _log.exception("%s failed", called.name)
            result = without_threads(error) or FilepactError(
                f"{called.name} failed unexpectedly",
                hint="The server's log has the details; read the file again before you go on.",
            )
            code = result.code
        self._engine.record(call, name, _path_in(arguments), code, time.perf_counter() - begun)
        outcome = self._form.answer(timed, result, news)
        if outcome.events:
            outcome = replace(outcome, on_sent=partial(self._acknowledge, call, outcome.events))
        if done:
            said = f"A call of {called.name} that you gave up had been carried out by then: {done}"
            outcome = replace(outcome, on_lost=partial(self._own_events.add, call.session.id, said))
        return outcome

    def gather_records(self) -> Callable[[], None]:
        """From now on the audit log has calls when what this returns is called, which has to be before an answer is sent."""
        return self._engine.gather_records()

    def done_before(
        self, call: CallContext, change: str, *, settle: bool = False
    ) -> CallResult | TakenBack | None:
        """As of `ToolEngine`."""
        try:
            found = self._engine.done_before(call, change, settle=settle)
        except (NoChangeError, ProposalExpiredError) as error:
            # It was done, or waited, and does not stand any more.
            return self._form.answer(call, error, ())
        return _printable(found) if isinstance(found, CallResult) else found

    def _events(self, called: Tool, call: CallContext) -> tuple[SessionEvent, ...]:
        """The events for the caller to hear besides; none where they cannot be read.

        What was done must not be hidden by that.
        """
        try:
            return (*self._own_events.of(call.session.id), *self._engine.events(call))
        except Exception:  # noqa: BLE001 - as said, and it is logged
            _log.exception("the news for %s are not known", called.name)
            return ()

    def _acknowledge(self, call: CallContext, news: Sequence[SessionEvent]) -> None:
        self._own_events.acknowledge(call.session.id, news)
        self._engine.acknowledge(call, news)

    def _carry_out(
        self, called: Tool, arguments: Mapping[str, object], call: CallContext
    ) -> CallResult:
        """Check the arguments, and have the tool work on its port; anew where others were faster."""
        if call.refusal is not None:
            raise call.refusal
        values = called.parameters.check(arguments)
        for _ in range(TRIES - 1):
            try:
                return self._try_out(called, values, call)
            except SharedConflictError:
                # What was refused had changed nothing, and each time begins with what the others made.
                call.deadline.check()
            if call.session.change:
                # The journal takes an id once, and has this one as taken back.
                another = following(call.session.change)
                call = replace(call, session=replace(call.session, change=another))
        return self._try_out(called, values, call)

    def _try_out(self, called: Tool, values: Mapping[str, Any], call: CallContext) -> CallResult:
        engine = self._engine
        if called.port == "draft":
            with engine.draft(call, called.name) as draft:
                summary = str(called.function(draft, **values))
                submitted = engine.submit(call, draft, summary)
            return _printable(engine.answer(call, draft, submitted))
        answer = called.function(engine.port(call, called.port), **values)
        if isinstance(answer, str):
            return CallResult(printable(answer))
        if isinstance(answer, CallResult):
            return _printable(answer)
        if isinstance(answer, ContentAnswer):
            from base64 import b64encode  # noqa: PLC0415 - few answers are pictures

            text = b64encode(answer.data).decode("ascii")
            return CallResult(text, data=answer.data, mime=answer.mime, note=printable(answer.note))
        facts = printable(answer)
        return CallResult(as_json(facts), receipt=facts)


def _path_in(arguments: Mapping[str, object]) -> str:
    """The path that a call names; empty for none."""
    for key in _NAMING:
        asked = arguments.get(key)
        if isinstance(asked, str):
            return asked
    return ""


def _printable(outcome: CallResult) -> CallResult:
    """An answer that can be sent; see `printable`."""
    text, receipt = outcome.text, outcome.receipt
    shown = printable(text)
    if receipt is None and shown is text:
        return outcome
    return replace(outcome, text=shown, receipt=None if receipt is None else printable(receipt))


def _done(outcome: CallResult) -> str:
    """One line about what a call has changed; empty for nothing."""
    receipt = outcome.receipt or {}
    if receipt.get("applied") is True:
        return f"{receipt.get('filePath')}: operation {receipt.get('operation')}"
    return outcome.text.partition("\n")[0] if receipt.get("status") == "applied" else ""
