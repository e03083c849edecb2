"""Explains why a text is not found: shows the nearest lines, and in what they differ.

It only explains: what it finds similar is shown to the author, never replaced.  All work is bounded,
so a miss in a huge file or in one huge line is answered as fast as any other.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING

from filepact.text.compare import DiffRange, compare_lines
from filepact.text.confusables import visible
from filepact.text.lines import common_head, line_ends
from filepact.text.tolerant_match import TYPOGRAPHY
from filepact.values import dataclass, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["explain_miss"]

_HINT = "Nothing was changed. Send the text exactly as the file has it; read those lines again."
_PREFIX = late_regex(r"[ \t]*\d+(?:[\u2502\u2192|\t]|: ?| \| )", re.ASCII)
_ESCAPE = late_regex(r"\\([nrt\"'\\/`$])")
_ESCAPED_QUOTE = late_regex(r"\\([\"'`])")
_CODE = late_regex(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}

_MOST_LINES = 2_000
_MOST_SENT = 20_000
_MOST_THERE = 200_000
"""Most lines of both texts where similar ones are looked for."""

_MOST_PLACES = 20
_MOST_CANDIDATES = 6
_OFTEN = 8
"""A word is frequent if it stands more than once in so many lines."""
_LONGEST_COMPARED = 300
_LEAST_LIKENESS = 0.6
_SHOWN_AROUND = 2
_CLOSE_BY = 5

_LONGEST_SHOWN = 160
_SHOWN_BEFORE = 60
_LONGEST_LINE = 2_000
_WORD = late_regex(r"\w{3,}")

_PLAIN = TYPOGRAPHY | {"...": "\u2026", "": "\u00ad\u200b\u200c\u200d\u2060\ufeff"}
_TYPOGRAPHY = str.maketrans({odd: plain for plain, odds in _PLAIN.items() for odd in odds})
_VISIBLE = str.maketrans({" ": "\u00b7", "\t": "\u2192"})
_LOWER = bytes(range(256)).lower()
_INNER_BLANKS = late_regex(r"(?<=[^ \t])[ \t]+(?=[^ \t])")


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """The explanation for the author of a text that is not in the file.

    Attributes:
        message: The nearest lines with their numbers, and what differs.
        hint: What to do.
        line: 1-based number of the first line that differs; None when nothing is similar.
    """

    message: str
    hint: str = _HINT
    line: int | None = None


def explain_miss(text: str, old: str) -> MatchExplanation:
    """Explain why ``old``, which is not empty, is nowhere in the text."""
    if not text:
        return MatchExplanation(
            "The file is empty.", "Nothing was changed. Use write_file to fill it."
        )
    whole, sent = text, old.replace("\r\n", "\n")
    if "\r" in text:
        whole = text.replace("\r\n", "\n")
        if line_ends(text) == "cr":
            whole, sent = text.replace("\r", "\n"), sent.replace("\r", "\n")
    if sent.count("\n") > _MOST_SENT or whole.count("\n") > _MOST_THERE:
        return MatchExplanation(
            "So many lines are not looked through for similar ones.",
            "Nothing was changed. Send less of the text, as the file has it.",
        )
    lines = whole.removesuffix("\n").split("\n")
    tried = [(say, hint, repair(sent), whole) for say, hint, repair in _REPAIRS]
    if "\r" in whole:
        tried.append((_RETURNS_THERE, _SEND_RETURNS, sent, whole.replace("\r", "\n")))
    for say, hint, repaired, there in tried:
        if repaired and (repaired, there) != (sent, whole) and (at := there.find(repaired)) != -1:
            line = whole.count("\n", 0, at) + 1
            shown = _numbered(lines, line - 1, line - 1 + min(repaired.count("\n") + 1, 3))
            return MatchExplanation(
                f"{say} Without that, it stands at line {line}:\n{shown}", hint, line
            )
    unnumbered = _without_numbers(sent)
    note = "" if unnumbered == sent else f"{_NUMBERED} There is more that differs. "
    return _nearest(lines, whole, unnumbered, note)


# -- mistakes that have a name ----------------------------------------------------------------


def _without_numbers(sent: str) -> str:
    """Without a line number before every line, as programs show them, or before some, as read_file does."""
    matches = [(_PREFIX.match(line), line) for line in sent.split("\n")]
    every = all(match or not line.strip() for match, line in matches)
    return "\n".join(
        line[match.end() :] if match and (every or match[0].endswith("\u2502")) else line
        for match, line in matches
    )


def _unescaped(sent: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), sent)


def _characters(sent: str) -> str:
    return _CODE.sub(lambda match: chr(int(match[1] or match[2], 16)), sent)


def _as_codes(sent: str, form: str) -> str:
    return "".join(char if char.isascii() else form.format(ord(char)) for char in sent)


def _as_entities(sent: str, quotes: tuple[str, str]) -> str:
    return html.escape(sent, quote=False).replace('"', quotes[0]).replace("'", quotes[1])


_RETURNS = "It holds carriage returns that the file does not have."
_SEND_FEEDS = "Nothing was changed. Send plain line feeds; the file's own line ends are kept."
_RETURNS_THERE = "The file has a carriage return alone where a line feed was sent."
_SEND_RETURNS = (
    "Nothing was changed. Send it as the file has it, in JSON \\r, also in the new text."
)
_QUOTES = (('"', "'"), ("&quot;", "'"), ("&quot;", "&#39;"), ("&quot;", "&#x27;"))
_CODE_FORMS = (r"\u{:04x}", r"\u{:04X}", r"\x{:02x}", r"\x{:02X}")
_ENTITIES = "It holds HTML entities, such as &lt;, where the file has the characters."
_ENTITIES_THERE = "The file has HTML entities, such as &lt;, where characters were sent."
_CODES = (
    "It holds the code of a character, such as \\u00e9, where the file has the character itself."
)
_CODES_THERE = (
    "The file has the code of a character, such as \\u00e9, where the character was sent."
)
_QUOTES_THERE = "The file has a backslash before a quote where the quote alone was sent."
_NUMBERED = "Lines start with line numbers, which are not part of the file."
_OVERESCAPED = "It holds escapes, a backslash and a letter or quote, that the file does not have."
_LEAVE_OUT = "Nothing was changed. Leave the line numbers out, also of the new text."
_SEND_CHARACTERS = "Nothing was changed. Send the characters themselves, also in the new text."

_SEND_AS_THERE = (
    "Nothing was changed. Send the text as the file has it; in JSON a backslash is written \\\\."
)

_REPAIRS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    (_NUMBERED, _LEAVE_OUT, _without_numbers),
    (_OVERESCAPED, _SEND_CHARACTERS, _unescaped),
    (_OVERESCAPED, _SEND_CHARACTERS, lambda sent: _ESCAPED_QUOTE.sub(r"\1", sent)),
    (_QUOTES_THERE, _SEND_AS_THERE, lambda sent: sent.replace('"', '\\"')),
    (_QUOTES_THERE, _SEND_AS_THERE, lambda sent: sent.replace("'", "\\'")),
    (_ENTITIES, _SEND_CHARACTERS, html.unescape),
    *((_ENTITIES_THERE, _SEND_AS_THERE, partial(_as_entities, quotes=one)) for one in _QUOTES),
    (_CODES, _SEND_CHARACTERS, _characters),
    *((_CODES_THERE, _SEND_AS_THERE, partial(_as_codes, form=form)) for form in _CODE_FORMS),
    (_RETURNS, _SEND_FEEDS, lambda sent: sent.replace("\r", "")),
    (
        "It ends with a line end where the file has none: the line goes on, or is the last.",
        "Nothing was changed. Leave out the line end, also of the new text.",
        lambda sent: sent.removesuffix("\n"),
    ),
    (
        "It has blank lines at its start or end that the file does not have there.",
        "Nothing was changed. Leave them out, or send the lines as the file has them.",
        lambda sent: sent.strip("\n"),
    ),
)


# -- the nearest lines ------------------------------------------------------------------------


def _nearest(lines: list[str], whole: str, sent: str, note: str) -> MatchExplanation:
    wanted = sent.split("\n")
    if len(wanted) > 1 and not wanted[-1]:
        wanted.pop()
    whole_key = _key(whole)
    keys = [_key(line) for line in wanted]
    if len(keys) == 1 and keys[0] and (at := whole_key.find(keys[0])) != -1:
        # A part of a line that is the same but for blanks, letter case and typography.
        number = whole_key.count("\n", 0, at)
        first = at - whole_key.rfind("\n", 0, at) - 1
        contrast = _contrast_part(wanted[0], lines[number], first, first + len(keys[0]))
        return _show(lines, _Difference(number, contrast), note)
    file_keys = whole_key.split("\n")[: len(lines)]
    start = _by_equal_lines(file_keys, keys)
    if start is not None:
        return _show(lines, _first_difference(lines, file_keys, wanted, keys, start), note)
    pair = _by_words(whole_key, file_keys, wanted)
    if pair is not None:
        index, number = pair
        contrast = (_contrast_within if len(wanted) == 1 else _contrast_lines)(
            wanted[index], lines[number]
        )
        return _show(lines, _Difference(number, contrast), note)
    return MatchExplanation(
        f"{note}No line of the file is similar to it.",
        "Nothing was changed. Read the file; the text may have been changed or removed, "
        "or it is in another file.",
    )


def _by_equal_lines(file_keys: list[str], keys: list[str]) -> int | None:
    """The start of the window with most lines in common, 0-based; may be negative."""
    places: dict[str, list[int]] = {key: [] for key in keys if key}
    # Of nearly all lines no more is asked than whether they are among these.
    for number in [number for number, key in enumerate(file_keys) if key in places]:
        found = places[file_keys[number]]
        if len(found) < _MOST_PLACES:
            found.append(number)
    votes: dict[int, int] = {}
    for index, key in enumerate(keys[:_MOST_LINES]):
        found = places.get(key, [])
        # A closing bracket that stands everywhere says little about the place.
        weight = min(len(key), 40) * (4 if len(found) == 1 else 1)
        for number in found:
            votes[number - index] = votes.get(number - index, 0) + weight
    if not votes:
        return None
    return max(votes, key=lambda start: (votes[start], start >= 0, -abs(start)))


def _by_words(whole_key: str, file_keys: list[str], wanted: list[str]) -> tuple[int, int] | None:
    """Of lines of which none is equal, the longest that was sent and the one most like it."""
    index = max(range(len(wanted)), key=lambda i: (len(wanted[i].strip()), -i))
    line = _fold(wanted[index][: 4 * _LONGEST_COMPARED])
    words = _words_of(line)
    target = _squeeze(line)[:_LONGEST_COMPARED]
    scores: Counter[int] = Counter()
    for word in words:
        scores.update(_lines_with(word, whole_key, file_keys))
    ranked = nsmallest(_MOST_CANDIDATES, scores, key=lambda number: (-scores[number], number))
    best, best_likeness = None, _LEAST_LIKENESS
    for number in ranked:
        part = file_keys[number]
        if len(part) > _LONGEST_COMPARED:
            start = _anchor(part, target, words)
            part = part[start : start + len(target)]
        matcher = SequenceMatcher(None, target, part, autojunk=False)
        if matcher.quick_ratio() > best_likeness and (ratio := matcher.ratio()) > best_likeness:
            best, best_likeness = (index, number), ratio
    return best


def _lines_with(word: str, whole_key: str, file_keys: list[str]) -> list[int]:
    """The numbers of the lines that hold a word, 0-based, each once."""
    at = whole_key.find(word)
    if at == -1:
        return []
    if _OFTEN * whole_key.count(word, at) > len(file_keys):
        return [number for number, key in enumerate(file_keys) if word in key]
    # A word that is rare is looked for in all lines at once: most of them are never looked at.
    found: list[int] = []
    number = past = 0
    while at != -1:
        number += whole_key.count("\n", past, at)
        found.append(number)
        past = whole_key.find("\n", at)
        at = -1 if past == -1 else whole_key.find(word, past)
    return found


# -- the first difference -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Difference:
    """The first place where what was sent and the file differ.

    Attributes:
        line: 0-based number of the file's line there.
        contrast: What differs, and both lines; one of them is empty where there is none.
        first: The first line of the file that belongs to what was sent; ``line`` if None.
        last: The last such line.
        equal: How many lines are the same, and of how many; empty for a single line.
    """

    line: int
    contrast: _Contrast
    first: int | None = None
    last: int | None = None
    equal: str = ""


def _first_difference(
    lines: list[str], file_keys: list[str], wanted: list[str], keys: list[str], start: int
) -> _Difference:
    """Align lines that are equal but for blanks and the like, and find the first that differs."""
    low = max(start - _CLOSE_BY, 0)
    near = file_keys[low : max(start, 0) + len(keys) + _CLOSE_BY]
    first_found: tuple[int, _Contrast] | None = None
    aligned: list[tuple[int, int]] = []
    at = other = 0
    for region in [
        *compare_lines(keys, near),
        DiffRange(len(keys), len(keys), len(near), len(near)),
    ]:
        run = [(at + i, low + other + i) for i in range(region.old_start - at)]
        aligned += run
        found = next(((i, j) for i, j in run if wanted[i] != lines[j]), None)
        if first_found is None and found is not None:
            first_found = found[1], _contrast_lines(wanted[found[0]], lines[found[1]])
        if first_found is None:
            first_found = _in_region(lines, wanted, region, low)
        at, other = region.old_end, region.new_end
    equal = sum(wanted[i] == lines[j] for i, j in aligned)
    line, contrast = first_found or (low, _Contrast("nothing that can be seen", "", ""))
    numbers = [line, *(j for _, j in aligned)]
    share = f", {equal} of {len(wanted)} equal" if equal else ""
    return _Difference(line, contrast, min(numbers), max(numbers), share)


def _in_region(
    lines: list[str], wanted: list[str], region: DiffRange, low: int
) -> tuple[int, _Contrast] | None:
    """The difference of lines that could not be aligned; None outside of what was sent."""
    sent, there = wanted[region.old_start : region.old_end], region.new_end - region.new_start
    line = low + region.new_start
    if there and region.old_start == 0:
        line = max(low + region.new_end - len(sent), line)
    if sent:
        moved = _elsewhere(lines, line, sent[0])
        also = "" if moved is None else f"; what was sent stands at line {moved + 1}"
        if there:
            contrast = _contrast_lines(sent[0], lines[line])
            return line, replace(contrast, what=contrast.what + also)
        what = "a blank line" if not sent[0].strip() else "this line"
        said = f"{what} was sent that the file does not have there{also}"
        return line, _Contrast(said, visible(_excerpt(sent[0])), "")
    if 0 < region.old_start < len(wanted):
        what = "a line" if lines[line].strip() else "a blank line"
        said = f"the file has {what} there that was not sent"
        return line, _Contrast(said, "", _excerpt(lines[line]))
    return None


def _elsewhere(lines: list[str], number: int, sent: str) -> int | None:
    """The number of a line close by that equals the one that was sent."""
    close = range(max(number - _CLOSE_BY, 0), min(number + _CLOSE_BY + 1, len(lines)))
    return next((i for i in close if sent.strip() and lines[i] == sent), None)


def _show(lines: list[str], difference: _Difference, note: str) -> MatchExplanation:
    line, contrast = difference.line, difference.contrast
    first = line if difference.first is None else difference.first
    last = line if difference.last is None else difference.last
    if last <= first:
        head = f"Nearest: line {line + 1}, which differs: {contrast.what}."
    else:
        head = f"Nearest: lines {first + 1}-{last + 1}{difference.equal}. "
        head += f"Line {line + 1} differs: {contrast.what}."
    # A line that only the author has stands between two of the file's.
    after = line + 1 if contrast.found or not contrast.sent else line
    shown = [
        note + head,
        _numbered(lines, max(line - _SHOWN_AROUND, first), line),
        f"{line + 1}\u2502{contrast.found}" if after > line else "",
        f"sent: {contrast.sent}" if contrast.sent else "",
        _numbered(lines, after, min(after + _SHOWN_AROUND, last + 1)),
    ]
    return MatchExplanation("\n".join(filter(None, shown)), line=line + 1)


def _numbered(lines: list[str], start: int, end: int) -> str:
    return "\n".join(
        f"{number + 1}\u2502{visible(_excerpt(lines[number]))}"
        for number in range(start, min(end, len(lines)))
    )


# -- two lines in contrast -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Two lines that differ.

    Attributes:
        what: What differs, as a part of a sentence.
        sent: The line that was sent, cut around the difference, blanks visible if they matter.
        found: The file's line, in the same way.
    """

    what: str
    sent: str
    found: str


def _fold(text: str) -> str:
    """A text without letter case and typography: quotes, dashes and blanks as on a keyboard.

    It has as many lines as before, but a line may have more or fewer characters.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text.translate(_TYPOGRAPHY)).casefold()


def _squeeze(text: str) -> str:
    """A text without the blanks and tabs in its lines."""
    return text.replace(" ", "").replace("\t", "")


def _key(text: str) -> str:
    """`_squeeze` of `_fold`: by one pass over plain ASCII."""
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, b" \t").decode("ascii")
    return _squeeze(_fold(text))


def _excerpt(line: str, at: int = 0) -> str:
    """A line for display: all of it, or of a long one the part around an offset."""
    if len(line) <= _LONGEST_SHOWN:
        return line
    start = max(min(at - _SHOWN_BEFORE, len(line) - _LONGEST_SHOWN), 0)
    end = start + _LONGEST_SHOWN
    return ("\u2026" if start else "") + line[start:end] + ("\u2026" if end < len(line) else "")


def _contrast_within(sent: str, line: str) -> _Contrast:
    """Contrast what was sent with the part of a line that is most like it."""
    if max(len(sent), len(line)) > _LONGEST_LINE:
        return _contrast_lines(sent, line)
    longest = SequenceMatcher(None, sent, line, autojunk=False).find_longest_match()
    start = max(longest.b - longest.a, 0)
    there = line[start : start + len(sent)]
    return _contrast_lines(sent, there if sent[-1:].isspace() else there.rstrip(), column=start + 1)


def _contrast_part(sent: str, line: str, first: int, last: int) -> _Contrast:
    """Contrast what was sent with a part of a line, given in folded characters but blanks."""
    start = _offset(line, first)
    end = start + _offset(line[start:], last - first)
    # Blanks around it belong to the comparison as far as some were sent.
    if sent[:1].isspace():
        start = len(line[:start].rstrip())
    if not sent[-1:].isspace():
        end = start + len(line[start:end].rstrip())
    while unicodedata.combining(line[end : end + 1] or " "):
        end += 1
    return _contrast_lines(sent, line[start:end], column=start + 1)


def _contrast_lines(sent: str, there: str, *, column: int = 1) -> _Contrast:
    """Contrast a line that was sent with the file's, of a long one only what matters.

    Args:
        sent: The line that was sent, without its end.
        there: The file's line or the part of it that is compared.
        column: 1-based column of the file at which ``there`` starts.
    """
    if len(there) > max(_LONGEST_LINE, 2 * len(sent)):
        folded = _fold(sent[:_LONGEST_LINE])
        start = _anchor(_fold(there), folded, _words_of(folded))
        there = there[start : start + len(sent)]
        column += start
    if max(len(sent), len(there)) > _LONGEST_LINE:
        start = max(common_head(sent, there) - _SHOWN_BEFORE, 0)
        sent, there = sent[start : start + _LONGEST_LINE], there[start : start + _LONGEST_LINE]
        column += start
    return _contrast(sent, there, column)


def _words_of(line: str) -> list[str]:
    """Its longest words, at most ten."""
    return sorted(set(_WORD.findall(line)), key=lambda word: (-len(word), word))[:10]


def _anchor(line: str, target: str, words: list[str]) -> int:
    """The likely start of something like the target in a long line: where a piece of it is found."""
    for size in (96, 48, 24, 12):
        for at in range(0, max(len(target) - size, 0) + 1, max(len(target) // 6, 1)):
            found = line.find(target[at : at + size])
            if found != -1:
                return max(found - at, 0)
    word = next((word for word in words if word in line), "")
    return max(line.find(word) - target.find(word), 0)


def _offset(line: str, count: int) -> int:
    """The last offset before which there are so many folded characters that are not blank."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        size = len(_squeeze(_fold(line[low:middle])))
        if size <= count:
            low = middle
            count -= size
        else:
            high = middle - 1
    return low


def _contrast(sent: str, there: str, column: int) -> _Contrast:
    differing = [
        describe(sent, there)
        for kind, (_, describe) in _KINDS.items()
        if _plain(sent, without=kind) != _plain(there, without=kind)
    ]
    blanks = sent.translate(_TYPOGRAPHY) != there.translate(_TYPOGRAPHY)
    if sent.strip() == there.strip() == "":
        differing = ["blanks on a line that is otherwise empty"]
    elif not sent.strip():
        differing = ["a blank line was sent that the file does not have there"]
    elif not there.strip():
        differing = ["the file has a blank line there that was not sent"]
    elif _plain(sent) != _plain(there):
        if _squeeze(_fold(sent)) == _squeeze(_fold(there)):
            differing = ["blanks between words or signs"]
        else:
            blanks = _indentation(sent) != _indentation(there)
            first = common_head(sent.lstrip(), there.lstrip()) + len(_indentation(there))
            differing = [f"the text from column {column + first} on"]
            differing += [_say_indentation(sent, there)] if blanks else []
    at = common_head(sent, there)
    sent, there = visible(_excerpt(sent, at)), visible(_excerpt(there, at))
    if blanks:
        sent, there = sent.translate(_VISIBLE), there.translate(_VISIBLE)
    return _Contrast("; ".join(differing) or "nothing that can be seen", sent, there)


def _plain(line: str, *, without: str = "") -> str:
    """A line with every kind of difference taken out but one."""
    for kind, (take_out, _) in _KINDS.items():
        if kind != without:
            line = take_out(line)
    return line


def _say_typography(sent: str, there: str) -> str:
    for ours, theirs in zip(sent, there, strict=False):
        if ours != theirs and (not ours.isascii() or not theirs.isascii()):
            return f"the file has {_named(theirs)} where {_named(ours)} was sent"
    return "typographic or invisible characters"


def _say_indentation(sent: str, there: str) -> str:
    ours, theirs = _indentation(sent), _indentation(there)
    if "\t" in theirs and "\t" not in ours:
        return "the file is indented with tabs, blanks were sent"
    if "\t" in ours and "\t" not in theirs:
        return "the file is indented with blanks, tabs were sent"
    unit = "tab" if "\t" in theirs else "blank"
    plural = "" if len(theirs) == 1 else "s"
    return f"the file is indented by {len(theirs)} {unit}{plural}, not by {len(ours)}"


def _say_inner(sent: str, there: str) -> str:
    ours, theirs = "\t" in sent.strip(), "\t" in there.strip()
    if ours == theirs:
        return "the number of blanks within the line"
    kinds = ("tabs", "blanks") if theirs else ("blanks", "tabs")
    return f"the file has {kinds[0]} within the line where {kinds[1]} were sent"


def _say_trailing(sent: str, there: str) -> str:
    if len(there) - len(there.rstrip()) > len(sent) - len(sent.rstrip()):
        return "the file has blanks at the end of the line"
    return "blanks at the end of the line were sent that the file does not have"


_KINDS: dict[str, tuple[Callable[[str], str], Callable[[str, str], str]]] = {
    "typography": (lambda line: line.translate(_TYPOGRAPHY), _say_typography),
    "form": (
        lambda line: unicodedata.normalize("NFC", line),
        lambda _sent, _there: "accents are composed differently (Unicode normal form)",
    ),
    "case": (str.casefold, lambda _sent, _there: "letter case"),
    "indentation": (lambda line: line.lstrip(" \t"), _say_indentation),
    "inner": (lambda line: _INNER_BLANKS.sub(" ", line), _say_inner),
    "trailing": (lambda line: line.rstrip(" \t"), _say_trailing),
}


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _named(char: str) -> str:
    shown = f"{char} " if char.isprintable() and not char.isspace() else ""
    return f"{shown}U+{ord(char):04X} {unicodedata.name(char, 'UNNAMED CHARACTER')}"
