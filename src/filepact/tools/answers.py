"""Calls of tools and their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.operation import moment
from filepact.errors import FilepactError
from filepact.text.diff_lines import cut_diff
from filepact.text.page import PAGE, cut_to, size_of
from filepact.text.raw_bytes import with_escapes
from filepact.values import dataclass, field, replace

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.receipt import Receipt

__all__ = [
    "CallContext",
    "CallResult",
    "ResultFormat",
    "TextFormat",
    "as_json",
    "failure",
    "fitted",
    "printable",
    "receipt_facts",
    "render_receipt",
    "repeated",
    "shortened",
]

_REFUSAL: Final = 1_200
"""The most characters of a refusal: what the next call needs, and no more."""
_FAILURE: Final = 10_000
"""The same with news at its end: Claude Code cuts what is over 11,000 characters."""

_DIFF: Final = 8_000
"""The most characters of a diff in an answer; people see the whole with `filepact diff`."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The caller of a tool, with its limits and ways to report progress to it.

    Attributes:
        cancelled: Whether the caller has lost interest; asked often by long work, from any thread.
        progress: Told how far the work is: a count that grows, and a short text.
        page: What one answer may take to reach the reader uncut, in bytes as UTF-8.
        deadline: When the work has to be over, set by the toolbox; ``cancelled`` counts in it.
        refusal: Why it may call nothing just now; None where it may.
    """

    session: Session
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, str], None] = lambda _done, _what: None
    page: int = PAGE
    deadline: Deadline = FOREVER
    refusal: FilepactError | None = None


def _nothing() -> None:
    """Nothing was told besides, and nothing done."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The answer to one call.

    Attributes:
        text: For the reader; base64 where the answer is bytes.  It can always be encoded.
        failed: Whether the tool refused or broke; ``text`` then begins with the code, unless the
            toolset's form has another place for it.
        receipt: The same as an object for programs, where there is one: for a change of the seven
            tools ``operation``, ``status`` and ``files``.
        whole: Whether the receipt is the whole answer, and ``text`` the same as JSON.
        events: What it tells the caller besides.
        on_sent: To be called when the answer is on its way to the caller: what it tells besides is
            not told again then.
        on_lost: To be called instead when the caller gave up and is not answered: it hears with a
            later answer what was done by then.
        data: The bytes, where the answer is not text.
        mime: What they are, where a reader can look at them; ``image/png`` and the like.
        note: What is said about them beside them.
    """

    text: str
    failed: bool = False
    code: str = ""
    receipt: dict[str, Any] | None = None
    whole: bool = False
    data: bytes | None = None
    events: tuple[SessionEvent, ...] = ()
    on_sent: Callable[[], None] = field(default=_nothing, compare=False)
    on_lost: Callable[[], None] = field(default=_nothing, compare=False)
    mime: str = ""
    note: str = ""


class ResultFormat(Protocol):
    """The form of a toolset's answers; it raises nothing."""

    def limit(self, call: CallContext, news: Sequence[SessionEvent], /) -> CallContext:
        """The call as the tool is given it: with as much room, or time, as the form leaves it."""

    def answer(
        self, call: CallContext, result: CallResult | FilepactError, news: Sequence[SessionEvent], /
    ) -> CallResult:
        """The answer to a call, whatever came of it.

        Args:
            call: The call, before it was limited.
            result: What came of it.
            news: What the caller should hear besides.
        """


class TextFormat:
    """Text for a reader; a refusal begins with its code, and news stand at the end."""

    def limit(self, call: CallContext, news: Sequence[SessionEvent]) -> CallContext:
        if not news:
            return call
        return replace(call, page=call.page - min(_size_of(news), call.page // 2))

    def answer(
        self, call: CallContext, result: CallResult | FilepactError, news: Sequence[SessionEvent]
    ) -> CallResult:
        page = call.page
        if isinstance(result, FilepactError):
            page = min(page, _FAILURE)
            result = failure(result, page - min(_size_of(news), page // 2))
        if result.data is not None:  # bytes are not added to
            return result
        text = result.text
        told: list[SessionEvent] = []
        for one in news:
            # As much as there is room for; the rest is told later.
            between = "\n" if told else "\n\n"
            longer = f"{text}{between}{cut_to(printable(one.text), page // 4)}"
            if size_of(longer) <= page:
                text = longer
                told.append(one)
        return replace(result, text=text, events=tuple(told)) if told else result


def failure(error: FilepactError, room: int = _FAILURE) -> CallResult:
    """The answer to a call that an error ended, in so much room."""
    said, hint = shortened(f"{error.code}: {error.message}", error.hint, room)
    return CallResult("\n".join(filter(None, (said, hint))), failed=True, code=error.code)


def shortened(said: str, hint: str, room: int = _FAILURE) -> tuple[str, str]:
    """A refusal's message and its next step, within a number of characters; the next step is cut last."""
    said, hint = printable(said), printable(hint)
    if len(said) + len(hint) < _REFUSAL and size_of(said) + size_of(hint) < room:
        return said, hint
    room = min(room, _REFUSAL)
    hint = cut_to(hint, room // 2)
    return cut_to(said, room - size_of(hint) - 1), hint


def _size_of(news: Sequence[SessionEvent]) -> int:
    return sum(size_of(printable(one.text)) + 2 for one in news)


def repeated(when: float | None, text: str) -> str:
    """An answer that is given again, and says so first: it tells what was done then, and nothing is done now."""
    of = "" if when is None else f" of {moment(when)}"
    return f"Repeated answer{of}: this request came before, and nothing is done now.\n{text}"


_KEPT: Final = frozenset({int, float, bool, type(None)})


def printable(value: Any) -> Any:
    """The value with raw bytes written in escapes, so that it can be sent."""
    if isinstance(value, str):
        return with_escapes(value)
    if isinstance(value, Mapping):
        return {
            name if name.isascii() else with_escapes(name): item
            if type(item) in _KEPT or (type(item) is str and item.isascii() and "\0" not in item)
            else printable(item)
            for name, item in value.items()
        }
    return [printable(item) for item in value] if isinstance(value, list | tuple) else value


def as_json(value: Mapping[str, Any]) -> str:
    """A printable object as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- receipts --------------------------------------------------------------------------------------


def render_receipt(receipt: Receipt, *, page: int = PAGE, diagnostics: str = "") -> str:
    """The answer for a reader: one line that says what happened, notes, and the diff where it tells something new.

    Args:
        receipt: What came of it.
        page: What it may take.
        diagnostics: What language servers say of it; empty where they say nothing.
    """
    said = "\n".join(filter(None, [_headline(receipt), *receipt.notes, diagnostics]))
    said = cut_to(said, page * 3 // 4)
    if receipt.as_sent:
        return said
    diff = fitted(receipt.step or receipt.diff, page - size_of(said) - 1)
    return f"{said}\n{diff}" if diff else said


def fitted(diff: str, room: int) -> str:
    """The beginning of a diff that fits, with a line about the rest."""
    limit = min(_DIFF, room)
    shown = cut_diff(diff, limit)
    while (taken := size_of(shown)) > room:
        limit = min(limit * room // taken, limit - 1)
        shown = cut_diff(diff, limit)
    return shown


def _headline(receipt: Receipt) -> str:
    done = receipt.summary[:1].upper() + receipt.summary[1:]
    if receipt.status == "applied":
        said = "Done" if receipt.confirmed else "Done, but not confirmed"
        undo = "" if receipt.as_sent else f"; undo with `filepact undo {receipt.operation}`"
        return f"{said}: {receipt.summary}{_counts(receipt)}. Operation {receipt.operation}{undo}."
    if receipt.status == "preview":
        return f"Preview, nothing changed: {receipt.summary}."
    if receipt.status == "pending":
        return (
            f"Waiting for a person ({receipt.rule}), nothing changed yet: {receipt.summary}. "
            f"Proposal {receipt.operation}; the person decides with `filepact review --list`. These tools show "
            "you the files as if it were done: go on from there, do not send it again. Tests and the "
            "shell do not see it yet; a later answer, or `history` (status), tells you when they do."
        )
    if receipt.status == "withdrawn":
        return f"{done}: nothing waits of it any more, and nothing was changed."
    return f"{done}: nothing to change, the file already holds that."


def _counts(receipt: Receipt) -> str:
    """The numbers of lines that came and went, where one file was changed just as it was sent."""
    if not receipt.as_sent or len(receipt.files) != 1:
        return ""
    (file,) = receipt.files
    if file.before is None or file.after is None or not file.added + file.removed:
        return ""
    return f" (+{file.added} -{file.removed})"


def receipt_facts(receipt: Receipt) -> dict[str, object]:
    """The receipt as a small object for programs; with the diff where the text leaves it out."""
    facts: dict[str, object] = {
        "operation": receipt.operation,
        "status": receipt.status,
        "confirmed": receipt.confirmed,
        "files": [
            {
                "path": file.path,
                "before": file.before,
                "after": file.after,
                "added": file.added,
                "removed": file.removed,
            }
            for file in receipt.files
        ],
    }
    if receipt.as_sent:
        facts["diff"] = cut_diff(receipt.diff, _DIFF)
    return facts
