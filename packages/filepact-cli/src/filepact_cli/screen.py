"""Writes the answer of a command to a terminal, a pager or a pipe.

In a pipe every character is kept, so that a diff stays a patch.  On a terminal everything that
could move the cursor, reorder text or hide is shown as an escape.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "NOTHING",
    "UNCOMPARED",
    "USAGE",
    "CommandAnswer",
    "CommandError",
    "Terminal",
    "TerminalText",
    "find_pager",
    "plain",
    "remark",
]


DONE, FAILED, USAGE, NOTHING, UNCOMPARED, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes; part of the contract."""


class CommandError(Exception):
    """The command line cannot be understood.

    Args:
        message: What is wrong with it.
        hint: What to type instead.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


Style = Literal[
    "plain", "dim", "strong", "title", "good", "warn", "bad", "add", "remove", "added word",
    "removed word", "place", "line end",
]  # fmt: skip

_CODES: dict[Style, str] = {
    "dim": "2",
    "strong": "1",
    "title": "1;36",
    "good": "32",
    "warn": "33",
    "bad": "1;31",
    "add": "32",
    "remove": "31",
    "added word": "7;32",
    "removed word": "7;31",
    "place": "36",
}


_QUIET: Final = 1.0  # seconds
_AT_ONCE: Final = 65_536


@dataclass(frozen=True, slots=True)
class TerminalText:
    """Text in one style, as it is: never with control sequences of ours in it."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The answer of a command: text for people, facts for programs, and an exit code.

    Attributes:
        spans: For people; may hold line ends.
        facts: The same for programs, as values that JSON knows.
        code: The exit code.
        long: Whether it may be more than a screen holds, and is for reading.
    """

    spans: tuple[TerminalText, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    code: int = DONE
    long: bool = False


def plain(text: str) -> tuple[TerminalText, ...]:
    """Text without any style."""
    return (TerminalText(text),)


def remark(text: str) -> None:
    """Write to standard error, where a terminal is protected like standard output's."""
    screen = Terminal(sys.stderr.buffer, terminal=sys.stderr.isatty(), colour=False, json=False)
    if screen.columns is not None:
        from filepact_cli.wording import fitted  # noqa: PLC0415 - a pipe needs no width

        text = fitted(text, screen.columns)
    screen.write(plain(text))


class Terminal:
    """The output of a command: a terminal, a pager or a pipe.

    Args:
        stream: Takes bytes.
        terminal: A person's terminal reads it, not a program.
        colour: Styles are shown, if it is a terminal.
        json: Programs' form is wanted: exactly one object.
        pager: What shows long answers on a terminal, with its arguments; empty for nothing.
    """

    def __init__(
        self,
        stream: BinaryIO,
        *,
        terminal: bool,
        colour: bool,
        json: bool,
        pager: Sequence[str] = (),
    ) -> None:
        self._stream = stream
        self._pager = list(pager)
        self.terminal = terminal
        self.colour = colour
        self.json = json

    @property
    def columns(self) -> int | None:
        """How wide a terminal is; None where none is there, and lines may be of any length."""
        if not self.terminal:
            return None
        import shutil  # noqa: PLC0415 - a pipe needs no width

        return shutil.get_terminal_size().columns

    def answer(self, answer: CommandAnswer) -> None:
        """Write an answer in the form that was asked for."""
        if self.json:
            self.object(answer.facts)
        elif answer.long:
            self.page(answer.spans)
        else:
            self.write(answer.spans)

    def write(self, spans: Iterable[TerminalText]) -> None:
        """Write for people, now."""
        for part in self._parts(spans):
            self._stream.write(part)
        self._stream.flush()

    def page(self, spans: Sequence[TerminalText]) -> None:
        """Write for people what may be long: where there is a pager and it does not fit, with that."""
        paged = self.terminal and self._pager and not _fits(spans)
        if not paged or not _show_paged(self._pager, self._parts(spans)):
            self.write(spans)

    def _parts(self, spans: Iterable[TerminalText]) -> Iterator[bytes]:
        """The bytes, some at a time, so that the first are shown while the last are made."""
        held: list[str] = []
        size = 0
        for span in spans:
            held.append(self._render(span))
            size += len(held[-1])
            if size >= _AT_ONCE:
                yield _bytes_of(held)
                held, size = [], 0
        yield _bytes_of(held)

    def ask(self, question: str) -> None:
        """Write a question, to be answered in the same line."""
        self.write((TerminalText(question, "strong"),))

    def progress(self, text: str) -> None:
        """Say on standard error what takes its time; programs get the answer and nothing else."""
        if not self.json:
            remark(f"filepact: {text}\n")

    def patience(self) -> Callable[[str], None]:
        """As `progress`, for what mostly takes a moment: quiet until it takes longer."""
        begun = time.monotonic()

        def tell(text: str) -> None:
            if time.monotonic() - begun > _QUIET:
                self.progress(text)

        return tell

    def bell(self) -> None:
        """Ring, where a person's terminal is."""
        if self.terminal and not self.json:
            self._stream.write(b"\a")
            self._stream.flush()

    def json_line(self, facts: Mapping[str, object]) -> None:
        """Write one of several JSON objects, in a line of its own."""
        text = json.dumps(facts).replace("\x7f", "\\u007f")
        self._stream.write(f"{text}\n".encode("ascii"))
        self._stream.flush()

    def object(self, facts: Mapping[str, object]) -> None:
        """Write one JSON object; pure ASCII, so no terminal and no encoding can spoil it."""
        text = json.dumps(facts, indent=2 if self.terminal else None)
        # The one control character that JSON takes as it is.
        text = text.replace("\x7f", "\\u007f")
        self._stream.write(f"{text}\n".encode("ascii"))
        self._stream.flush()

    def _render(self, span: TerminalText) -> str:
        if not self.terminal:
            return span.text
        if span.style == "line end":
            # The carriage return of a file that has them on every line is noise to a reader.
            return ""
        from filepact.text.confusables import visible  # noqa: PLC0415 - not every command has an answer

        shown = visible(span.text)
        code = _CODES.get(span.style) if self.colour else None
        if code is None:
            return shown
        # Styled line by line: some terminals and pagers forget the style at a line's end.
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else "" for line in shown.split("\n"))


def _bytes_of(texts: Sequence[str]) -> bytes:
    text = "".join(texts)
    try:
        # A name that is no UTF-8 reaches us with stand-ins for its bytes; they become bytes again.
        return text.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:  # UTF-16 may have half of a character, which UTF-8 has not.
        from filepact.text.raw_bytes import with_escapes  # noqa: PLC0415 - hardly ever needed

        return with_escapes(text).encode()


def _fits(spans: Sequence[TerminalText]) -> bool:
    """Whether it is certain that the whole is seen at once."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    rows, columns = size.lines or 24, size.columns or 80  # some terminals do not say
    text = "".join(span.text for span in islice(spans, rows * columns))
    taken = sum(1 + len(line) // columns for line in text.split("\n"))
    return len(spans) < rows * columns and taken < rows


# As Git has it: end at once where all fits, let colours through, leave the screen as it is.
_OPTIONS: Final = {"LESS": "FRX", "LV": "-c"}


def find_pager() -> list[str]:
    """Find the pager and its arguments; empty for none.

    FILEPACT_PAGER goes before PAGER.  Never one that lies in the present folder or beneath, where
    agents write.
    """
    import shlex  # noqa: PLC0415 - a pipe needs no pager
    import shutil  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    wanted = os.environ.get("FILEPACT_PAGER", os.environ.get("PAGER", "less"))
    try:
        words = shlex.split(wanted)
    except ValueError:
        return []
    found = shutil.which(words[0]) if words and words != ["cat"] else None
    if found is None or not Path(found).is_absolute():
        return []
    if Path(found).resolve().is_relative_to(Path.cwd().resolve()):
        return []
    return [found, *words[1:]]


def _show_paged(pager: list[str], parts: Iterable[bytes]) -> bool:
    """Hand an answer to a pager, part by part, until it is read or left.

    Returns:
        Whether the pager could be started; if not, nothing is shown yet.
    """
    import subprocess  # noqa: PLC0415 - short answers need no pager
    from contextlib import suppress  # noqa: PLC0415

    try:
        process = subprocess.Popen(  # noqa: S603 - what the person has chosen
            pager, stdin=subprocess.PIPE, env={**_OPTIONS, **os.environ}
        )
    except OSError:
        return False
    with process:
        # Whoever leaves has seen enough; an interrupt is for the pager, which goes on.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            for part in parts:
                process.stdin.write(part)  # type: ignore[union-attr]  # it is a pipe
        with suppress(BrokenPipeError):
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        while True:
            with suppress(KeyboardInterrupt):
                process.wait()
                return True
