r"""Search queries over one text, in time that a hostile pattern cannot blow up.

The engine is RE2, on UTF-8 bytes: ``\d``, ``\w``, ``\s`` and ``\b`` are about ASCII, ``(?i)`` and
``\p{...}`` about Unicode.  Patterns that RE2 cannot do (lookaround, backreferences) go to the
``regex`` package under a time limit, with the same meaning of the classes; letters beyond ASCII
then keep their case.  ``^`` and ``$`` stand at the ends of lines.

A line ends at LF.  A CR before it belongs to the line end, unless the pattern itself names CR.
Without ``multiline`` a match never leaves its line and each line counts once; with it, ``.``
matches line ends as well and each match counts.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from itertools import accumulate, chain, count, islice
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import BinaryFileError, EncodingUnsafeError, SearchFailedError, TimedOutError
from filepact.text.codec import decode
from filepact.text.detect_encoding import UNIT
from filepact.text.literals import needs_of
from filepact.values import begun, dataclass, late_regex

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.text.codec import NamedEncoding
    from filepact.text.literals import Needs

__all__ = ["MAX_PATTERN", "Query", "QueryMatch", "searchable"]

MAX_PATTERN: Final = 4_000
"""Longest pattern, in characters."""

_MEMORY = 8 << 20
_MOST_INSTRUCTIONS = 20_000
_STEPS = 100_000_000
"""Instructions times bytes between two looks at the clock: about a second at the very worst."""

_MULTILINE_STEPS = 10
"""The same for a text that cannot be searched in pieces: nobody can end it before it is through."""

_JOINED = 1 << 20
"""Bytes of texts that are searched as one."""

_LOOK_EVERY = 1_000
"""Matches of a plain text between two looks at the clock."""

_SIGN = late_regex(r"[\\.^$*+?()\[\]{}|\r\n]")
_WHOLE = late_regex(r"\\[AzCQ]|\(\?(?!:|i?\)|i?:|P?<)")
"""What speaks of the whole text, so that it means something else where several are searched as one."""

_NAMES_CR = late_regex(r"(?<!\\)(?:\\\\)*\\(?:r|x0[dD]|x\{0*[dD]\}|015)")
_NAMES_LF = late_regex(r"(?<!\\)(?:\\\\)*\\n")
_IN_CLASS = late_regex(r"(?<!\\)\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class QueryMatch:
    """One match in the bytes that were searched.

    Attributes:
        line: 1-based number of the line where it begins.
        last_line: Where it ends; the same unless the query is multiline.
        start: Offset of its first byte.
        end: Offset behind its last byte.
        line_start: Offset of the line's first byte.
        line_end: Offset behind the last line's text, without its LF.
    """

    line: int
    last_line: int
    start: int
    end: int
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class Query:
    """A compiled query; make it with :meth:`compile`.

    Attributes:
        needs: The literals without which it matches nowhere, as far as that is known.
        exact: Whether they stand in the text as they are, and not in another case.
        plain: The only text that it matches, if it is one; in lower case unless it is ``exact``.
    """

    pattern: str
    multiline: bool
    keeps_cr: bool
    _re2: Any
    _fallback: Any
    _step: int
    needs: Needs = ()
    exact: bool = False
    plain: bytes = b""

    @classmethod
    def compile(
        cls,
        pattern: str,
        *,
        case_sensitive: bool = False,
        multiline: bool = False,
        literal: bool = False,
    ) -> Query:
        """Check and compile a pattern.

        Args:
            pattern: A regular expression.
            case_sensitive: Tell letter case apart.
            multiline: Let a match span lines.
            literal: Take the pattern as plain text.

        Raises:
            SearchFailedError: It is empty, too long, or not a regular expression.
        """
        import re2  # noqa: PLC0415 (costs start-up time that most calls do not need)

        if not pattern:
            raise SearchFailedError("the pattern is empty", hint="Send what to look for.")
        if len(pattern) > MAX_PATTERN:
            raise SearchFailedError(
                f"the pattern is longer than {MAX_PATTERN:,} characters",
                hint="Search for a part of it.",
            )
        if not multiline and _names(pattern, _NAMES_LF, "\n", literal=literal):
            raise SearchFailedError(
                "the pattern names a line end, but a match stays within one line",
                hint="Send multiline: true, or leave out the line end.",
            )
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        options.never_capture = True
        options.never_nl = not multiline
        options.dot_nl = multiline
        options.case_sensitive = case_sensitive
        keeps_cr = _names(pattern, _NAMES_CR, "\r", literal=literal)
        try:
            source = pattern.encode()
            source = re2.escape(source) if literal else source
            re2.compile(source, options)
            compiled = re2.compile(b"(?m)" + source, options)
        except UnicodeEncodeError as error:
            raise SearchFailedError(
                f"the pattern holds a broken character at {error.start + 1}",
                hint="Send it as valid Unicode.",
            ) from None
        except re2.error as error:
            fallback = _compile_fallback(
                pattern, str(error), case_sensitive=case_sensitive, multiline=multiline
            )
            return cls(pattern, multiline, keeps_cr, None, fallback, 0)
        if compiled.programsize > _MOST_INSTRUCTIONS:
            raise _too_large()
        step = max(_STEPS // max(compiled.programsize, 1), 4_096)
        needs = needs_of(pattern, literal=literal, case_sensitive=case_sensitive)
        plain = b""
        if not multiline and not keeps_cr and (literal or not _SIGN.search(pattern)):
            # A letter beyond ASCII may be a case of one of ASCII (the sign for Kelvin): what is needed leaves it out.
            plain = pattern.encode() if case_sensitive or pattern.isascii() else b""
            plain = plain if case_sensitive else plain.lower()
        return cls(pattern, multiline, keeps_cr, compiled, None, step, needs, case_sensitive, plain)

    @property
    def linear(self) -> bool:
        """Whether the time it takes grows with the text only."""
        return self._re2 is not None

    def prepare(self, data: bytes) -> bytes:
        """The bytes that are searched: CRLF as LF, so that ``$`` matches before both."""
        return data if self.keeps_cr or b"\r" not in data else data.replace(b"\r\n", b"\n")

    def matches(self, text: bytes) -> bool:
        """Whether the query may match in UTF-8 text; where that takes long to tell, it may."""
        if self._is_plain(text):
            return self.plain in (text if self.exact else text.lower())
        if self._re2 is None or len(text) > self._step:
            return True
        return self._re2.search(self.prepare(text)) is not None

    def among(self, texts: Sequence[bytes]) -> list[int]:
        """Which of some UTF-8 texts, by position, it may match in; as `matches` says of each."""
        some: Iterable[int] = range(len(texts))
        if self.plain or self._re2 is None:
            return [at for at in some if self.matches(texts[at])]
        if self.exact:
            for group in self.needs:
                some = [at for at in some if any(one in texts[at] for one in group)]
        if self.multiline or _WHOLE.search(self.pattern):
            return [at for at in some if self.matches(texts[at])]
        pieces: list[list[int]] = []
        most, size = min(self._step, _JOINED), 0
        for at in some:
            if not pieces or size + len(texts[at]) > most:
                pieces.append([])
                size = 0
            pieces[-1].append(at)
            size += len(texts[at]) + 1
        # RE2 lets other threads run, so that a second one takes every other piece.
        found = pieces.copy()

        def every_other(first: int) -> None:
            for number in range(first, len(pieces), 2):
                found[number] = self._among(texts, pieces[number])

        other = threading.Thread(target=every_other, args=(1,), name="search")
        helps = len(pieces) > 1 and begun(other)
        every_other(0)
        if helps:
            other.join()
        else:
            every_other(1)
        return list(chain.from_iterable(found))

    def _among(self, texts: Sequence[bytes], some: list[int]) -> list[int]:
        """As `among`, for texts that are searched as one: no match leaves its line."""
        if len(some) < 2:
            return [at for at in some if self.matches(texts[at])]
        lines = [self.prepare(texts[at]) for at in some]
        ends = list(accumulate(len(line) + 1 for line in lines))
        joined, search = b"\n".join(lines), self._re2.search
        found: list[int] = []
        begin = 0
        while (match := search(joined, begin)) is not None:
            at = min(bisect_right(ends, match.start()), len(some) - 1)
            found.append(some[at])
            begin = ends[at]
            if begin > len(joined):
                break
        return found

    @property
    def by_lines(self) -> bool:
        """Whether the query matches only within single lines that hold its literals."""
        return (
            bool(self.needs)
            and self._re2 is not None
            and not self.multiline
            and not _WHOLE.search(self.pattern)
        )

    def matching(self, lines: Sequence[bytes]) -> dict[int, tuple[int, int]]:
        """The first match in each of some lines in which there is one, by position.

        Lines are as of a text from `prepare`; where it takes long to tell, the match is (-1, -1).
        """
        found: dict[int, tuple[int, int]] = {}
        at = 0
        while at < len(lines):
            first, size, most = at, 0, min(self._step, _JOINED)
            while at < len(lines) and (at == first or size + len(lines[at]) < most):
                size += len(lines[at]) + 1
                at += 1
            if size > self._step:
                found[first] = -1, -1
                continue
            joined, search = b"\n".join(lines[first:at]), self._re2.search
            starts = list(accumulate((len(line) + 1 for line in lines[first:at]), initial=0))
            begin = 0
            while begin <= len(joined) and (match := search(joined, begin)) is not None:
                start, end = match.span()
                place = min(bisect_right(starts, start) - 1, at - first - 1)
                found[first + place] = start - starts[place], end - starts[place]
                begin = starts[place + 1]
        return found

    def _is_plain(self, text: bytes) -> bool:
        """Whether looking for the plain text in it says as much as the pattern."""
        if not self.plain:
            return False
        # A letter of ASCII may be another case of one that is not.
        return self.exact or (len(text) <= _JOINED and text.isascii())

    def find(self, data: bytes) -> list[QueryMatch]:
        """Every match in UTF-8 text."""
        return list(self.hits(self.prepare(data)))

    def hits(
        self, text: bytes, *, stop: Callable[[], bool] = lambda: False, seconds: float = 2.0
    ) -> Iterator[QueryMatch]:
        """Matches one by one, from the beginning.

        Args:
            text: UTF-8 text from :meth:`prepare`.
            stop: Asked now and then; true ends the search.
            seconds: Most time for one step of a pattern that RE2 cannot do.

        Raises:
            TimedOutError: The pattern is too slow on this text, or ``stop`` said so.
        """
        line, counted, line_start, line_end = 1, 0, 0, -1
        for start, end in self.spans(text, stop=stop, seconds=seconds):
            # Of a line with many matches neither end is looked for again.
            if more := text.count(b"\n", counted, start):
                line, line_start = line + more, text.rfind(b"\n", counted, start) + 1
            counted = start
            tail = end - 1 if end > start and text[end - 1] == 10 else end
            spanned = text.count(b"\n", start, tail) if self.multiline else 0
            if line_end < tail and (line_end := text.find(b"\n", tail)) < 0:
                line_end = len(text)
            yield QueryMatch(line, line + spanned, start, end, line_start, line_end)

    def count(
        self,
        text: bytes,
        most: int | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        seconds: float = 2.0,
    ) -> int:
        """The number of matching lines (multiline: of matches), counted up to ``most``."""
        return sum(1 for _ in islice(self.spans(text, stop=stop, seconds=seconds), most))

    def spans(
        self, text: bytes, *, stop: Callable[[], bool], seconds: float
    ) -> Iterator[tuple[int, int]]:
        """The spans of the matches; see :meth:`hits`."""
        if self._is_plain(text):
            return self._plain_spans(text, stop)
        if self._re2 is None:
            return self._slow_spans(text, stop, seconds)
        return self._multiline_spans(text, stop) if self.multiline else self._spans(text, stop)

    def _plain_spans(self, text: bytes, stop: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """The first match of each line, found by looking for the plain text."""
        if stop():
            raise _stopped()
        plain, size = self.plain, len(self.plain)
        find = (text if self.exact else text.lower()).find
        at = 0
        for number in count(1):
            start = find(plain, at)
            if start < 0:
                return
            yield start, start + size
            at = text.find(b"\n", start + size) + 1
            if not at:
                return
            if not number % _LOOK_EVERY and stop():
                raise _stopped()

    def _spans(self, text: bytes, stop: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """The first match of each line.

        The text is searched in pieces, so that the clock is looked at between them.  Pieces end
        at line ends; only a line that is longer than a piece (at least 4 kB for the largest
        programs, megabytes for ordinary ones) is cut within.
        """
        search = self._re2.search
        size = len(text)
        at = 0
        while at < size:
            limit = size
            if size - at > self._step:
                limit = text.rfind(b"\n", at, at + self._step) + 1 or at + self._step
            if stop():
                raise _stopped()
            while at < limit:
                found = search(text, at, limit)
                if found is None:
                    at = limit
                    break
                start, end = found.span()
                if start >= limit and (limit < size or _ends_with_newline(text)):
                    # An empty match here belongs to the next piece, or to no line at all.
                    at = limit
                    break
                yield start, end
                at = text.find(b"\n", end) + 1 or size

    def _multiline_spans(self, text: bytes, stop: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        if len(text) > self._step * _MULTILINE_STEPS:
            raise TimedOutError(
                "the pattern is too large for a file of this size",
                hint="Search without multiline, or with a shorter pattern.",
            )
        size = len(text)
        at = 0
        while at < size:
            if stop():
                raise _stopped()
            found = self._re2.search(text, at)
            if found is None or (found.start() >= size and _ends_with_newline(text)):
                return
            start, end = found.span()
            yield start, end
            at = end if end > start else end + 1

    def _slow_spans(
        self, text: bytes, stop: Callable[[], bool], seconds: float
    ) -> Iterator[tuple[int, int]]:
        # Broken bytes become one character each, so that offsets can be counted back.
        letters = text.decode("utf-8", errors="surrogateescape")
        plain = letters.isascii()
        done, offset = 0, 0
        at, size = 0, len(letters)
        while at < size:
            if stop():
                raise _stopped()
            found = self._slow_search(letters, at, size, seconds)
            if found is None or (found.start() >= size and _ends_with_newline(text)):
                return
            if not self.multiline:
                line_end = letters.find("\n", found.start())
                line_end = size if line_end < 0 else line_end
                if found.end() > line_end:
                    found = self._slow_search(letters, found.start(), line_end, seconds)
                if found is None:
                    at = line_end + 1
                    continue
            start, end = found.span()
            if plain:
                yield start, end
            else:
                offset += _width(letters[done:start])
                done = start
                yield offset, offset + _width(letters[start:end])
            if self.multiline:
                at = end if end > start else end + 1
            else:
                at = letters.find("\n", end) + 1 or size

    def _slow_search(self, letters: str, at: int, end: int, seconds: float) -> Any:
        try:
            return self._fallback.search(letters, at, end, timeout=seconds, concurrent=True)
        except TimeoutError:
            raise TimedOutError(
                f"the pattern took more than {seconds:g} seconds on one text",
                hint="Patterns without lookaround and backreferences have no such limit.",
            ) from None


def _names(pattern: str, escape: re.Pattern[str], char: str, *, literal: bool) -> bool:
    """Whether a pattern asks for a character, outside of a class."""
    return char in pattern or (not literal and bool(escape.search(_IN_CLASS.sub("", pattern))))


def _ends_with_newline(text: bytes) -> bool:
    return text.endswith(b"\n")


def _width(letters: str) -> int:
    return len(letters.encode("utf-8", errors="surrogateescape"))


def _compile_fallback(
    pattern: str, complaint: str, *, case_sensitive: bool, multiline: bool
) -> Any:
    """The pattern for the ``regex`` package, or the error that a reader can act on."""
    import regex  # noqa: PLC0415 (only few patterns need it)

    if "too large" in complaint:
        raise _too_large()
    flags = regex.VERSION0 | regex.ASCII | regex.MULTILINE
    flags |= regex.DOTALL if multiline else 0
    flags |= 0 if case_sensitive else regex.IGNORECASE
    try:
        return regex.compile(pattern, flags, cache_pattern=False)
    except regex.error as error:
        at = getattr(error, "pos", None)
        where = "" if at is None else f" at character {at + 1}"
        raise SearchFailedError(
            f"the pattern is not a regular expression: {error.msg}{where}",
            hint="Put a backslash before characters that are meant literally, such as ( [ { * + ? .",
            position=at,
        ) from None
    except (RecursionError, OverflowError):
        raise _too_large() from None


def _too_large() -> SearchFailedError:
    return SearchFailedError(
        "the pattern is too large: its repetitions stand for too many states",
        hint="Use smaller counts in {...}, or fewer alternatives.",
    )


def _stopped() -> TimedOutError:
    return TimedOutError("the search was stopped", hint="Search a smaller folder.")


def searchable(
    data: bytes, *, name: str, given: Callable[[], NamedEncoding | None] = lambda: None
) -> bytes | None:
    """The bytes of a file as UTF-8 text without a byte-order mark, or None when it is no text.

    Bytes that are not UTF-8 in a file that is UTF-8 but for them are left as they are.

    Args:
        data: All bytes of the file.
        name: The file's name; it tells what kinds of declarations the file can have.
        given: What is said about its encoding outside the file; asked where it can matter.
    """
    said = None
    # An escape begins other letters in some encodings of seven bits.
    if b"\0" not in data and b"\x1b" not in data:
        if data.isascii():
            return data
        said = given()
        if said is None:
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                pass
            else:
                return data.removeprefix(_BOM)
    try:
        source = decode(data, name=name, given=said or given())
        if not source.encoding.damaged or source.encoding.name in UNIT:
            return source.text.encode("utf-8", errors="replace")
        # Raw bytes are raw bytes again.
        return source.text.encode("utf-8", "surrogateescape")
    except (BinaryFileError, EncodingUnsafeError):
        return None
