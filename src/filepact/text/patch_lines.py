"""Reads the parts of a patch: one hunk with its header and lines, and the file names of headers.

Models count badly.  A hunk's counts decide while its body agrees with them; otherwise the body ends
at the next header, which is certain because no line of a body can look like one.  Names are data:
nothing here decides whether one may be opened.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from filepact.errors import PatchMalformedError
from filepact.text.patch_model import Hunk
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "header_name",
    "malformed",
    "names_of_git_line",
    "read_hunk",
    "shown",
    "sign_of",
    "signed_lines",
    "strip_prefixes",
    "unquote",
]

_NUMBERED = late_regex(
    r"@@\s*-(\d{1,9})(?:,(\d{1,9}))?\s+\+(\d{1,9})(?:,(\d{1,9}))?\s*(?:@@.*)?", re.DOTALL
)
_UNNUMBERED = late_regex(r"@@(?:\s*@@.*|\s*(?:\.\.\.|…)\s*@@.*|\s*)", re.DOTALL)
_AFTER_HUNK = late_regex(
    r"@@|diff |Index: |Only in |Binary file|GIT binary patch|Files .* differ|```"
    r"|From [0-9a-f]{40} "
)
_SHOWN = 80


def malformed(line: int, what: str, hint: str) -> NoReturn:
    """Refuse a patch for what its 1-based ``line`` holds."""
    raise PatchMalformedError(f"line {line} of the patch: {what}", hint=hint, line=line)


def read_hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header is ``lines[at]``, and the index of what follows it.

    Args:
        lines: The lines of the patch without their LF.
        at: 0-based.

    Raises:
        PatchMalformedError: The header or a line of the body cannot be understood.
    """
    header = _NUMBERED.fullmatch(lines[at])
    if header is None and not _UNNUMBERED.fullmatch(lines[at]):
        malformed(
            at + 1,
            f"{shown(lines[at])} is not a hunk header",
            "Write hunk headers as @@ -START,COUNT +START,COUNT @@.",
        )
    old_start = new_start = None
    end: int | None = None
    repaired = False
    if header is not None:
        old_start, new_start = int(header[1]), int(header[3])
        counts = [1 if header[i] is None else int(header[i]) for i in (2, 4)]
        end = _end_by_counts(lines, at + 1, counts[0], counts[1])
        repaired = end is None
    if end is None:
        end = _end_by_body(lines, at + 1)
    body = signed_lines(lines, at, end)
    if not body:
        malformed(at + 1, "a hunk without lines", "Put the hunk's lines after its header.")
    if repaired and all(line[0] == "+" for line in body):
        # With a wrong count nobody knows whether the lines go before or after the stated one.
        old_start = None
    if repaired and all(line[0] == "-" for line in body):
        new_start = None
    return Hunk(at + 1, old_start, new_start, tuple(body), repaired), end


def _end_by_counts(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """The end of the body by the counts; None when the body contradicts them."""
    while old > 0 or new > 0:
        sign = sign_of(lines[at]) if at < len(lines) else ""
        if sign == "":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    if old < 0 or new < 0:
        return None
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    after = at
    while after < len(lines) and _is_empty(lines[after]):
        after += 1
    ended = after == len(lines) or _ends_body(lines, after)
    return at if ended or (after > at and _is_prose(lines, after)) else None


def _is_prose(lines: Sequence[str], at: int) -> bool:
    """Whether what follows an empty line changes nothing, up to the next header."""
    if sign_of(lines[at]) != "":
        return False
    while at < len(lines) and not _ends_body(lines, at):
        if lines[at].startswith(("+", "-")):
            return False
        at += 1
    return True


def _end_by_body(lines: Sequence[str], at: int) -> int:
    first = at
    # A hunk has a line at least, so the first one is no header, whatever it looks like.
    while at < len(lines) and not (_ends_body(lines, at) and (at > first or lines[at][:1] != "-")):
        if sign_of(lines[at]) == "":
            malformed(
                at + 1,
                f"{shown(lines[at])} is inside a hunk but starts with neither a blank, + nor -",
                "Put a blank before context lines; put each file's hunks after its --- and +++ "
                "lines.",
            )
        at += 1
    # Empty lines before the next header separate; they are not context that lost its blank.
    while at > first and _is_empty(lines[at - 1]):
        at -= 1
    return at


def _ends_body(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if _AFTER_HUNK.match(line):
        return True
    if line.rstrip() == "--":  # the signature that ends a mailed patch
        return at + 1 < len(lines) and lines[at + 1][:1].isdigit()
    return (
        at + 2 < len(lines)
        and lines[at + 2].startswith("@@")
        and _names_file(line, "--- ")
        and _names_file(lines[at + 1], "+++ ")
    )


def _names_file(line: str, sign: str) -> bool:
    """Whether a line looks like half a header, and not like a comment in words of SQL or Lua that changes."""
    rest = line[len(sign) :].rstrip()
    plain = " " not in rest or "\t" in rest or rest.startswith(("a/", "b/", "/dev/null", '"'))
    return line.startswith(sign) and (plain or bool(_DATE.search(rest)))


def _is_empty(line: str) -> bool:
    return line in ("", "\r")


def sign_of(line: str) -> str:
    """``" "``, ``-``, ``+`` or a backslash; empty for a line that no hunk can hold."""
    if _is_empty(line):
        return " "
    return line[0] if line[0] in " -+\\" else ""


def signed_lines(lines: Sequence[str], header: int, end: int) -> list[str]:
    """The lines of a body, each a sign and the text with its line end.

    Args:
        lines: The lines of the patch without their LF.
        header: 0-based; the line before the body.
        end: The line after it.
    """
    body: list[str] = []
    # A patch sent with CRLF throughout has a CR after each line, also where the file has none.
    carried = lines[header].endswith("\r")
    finished: dict[str, int] = {}
    for at in range(header + 1, end):
        line = lines[at]
        sign = sign_of(line)
        if sign == "\\":
            if not body or not body[-1].endswith("\n"):
                malformed(at + 1, "no line before it to end", "Remove this line.")
            text = body[-1][:-1]
            body[-1] = text[:-1] if carried and text.endswith("\r") else text
            for side in "-+" if body[-1][0] == " " else body[-1][0]:
                finished[side] = at + 1
            continue
        for side in "-+" if sign == " " else sign:
            if side in finished:
                malformed(
                    at + 1,
                    f"a line after the end of the file that line {finished[side]} states",
                    "Put \\ No newline at end of file after the file's last line only.",
                )
        body.append((line if line[:1] == sign else sign + line) + "\n")
    return body


def shown(line: str) -> str:
    """A line of a patch for a message, in bounded length."""
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")


# -- file names in headers -------------------------------------------------------------------------


_DATE = late_regex(
    r"[ \t]+(\d{4}-\d\d-\d\d)[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:[+-]\d\d:?\d\d|Z|UTC))?\s*$"
)
_LONGEST_DATE = 60
_EPOCH = ("1970-01-01", "1969-12-31")
_QUOTED = late_regex(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = late_regex(r"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_LETTERS = (("a/", "b/"), ("b/", "a/"))
_GIT_LETTERS = (
    *_LETTERS,
    *(
        p
        for a, b in ("iw", "ci", "cw", "ow", "co")
        for p in ((f"{a}/", f"{b}/"), (f"{b}/", f"{a}/"))
    ),
)


def header_name(rest: str, line: int) -> tuple[str | None, bool]:
    """The name after ``--- `` or ``+++ ``; None for ``/dev/null``.

    Returns:
        The name with its prefix, and whether the line's date says that there is no file.
    """
    if rest.startswith('"'):
        return _quoted(rest, line)[0], False
    tail = max(len(rest) - _LONGEST_DATE, 0)
    dated = _DATE.search(rest, tail)
    name = rest[: dated.start()] if dated else rest
    # A tab ends a name for certain, also one that ends with blanks.
    name = rest.split("\t", 1)[0] if "\t" in rest else name.rstrip(" ")
    if name == "/dev/null":
        return None, True
    if not name:
        malformed(line, "no file name", "Name the file, or write /dev/null.")
    return name, dated is not None and dated[1] in _EPOCH


def names_of_git_line(rest: str, line: int) -> tuple[str, str] | None:
    """Both names after ``diff --git``, without prefixes.

    None when names with blanks cannot be told apart, as in a rename; other lines name them then.
    """
    if rest.startswith('"'):
        old, after = _quoted(rest, line)
        new = unquote(after.lstrip(" "), line)
    elif rest.endswith('"') and ' "' in rest:
        cut = rest.index(' "')
        old, new = rest[:cut], unquote(rest[cut + 1 :], line)
    elif rest.count(" ") == 1:
        old, new = rest.split(" ")
    else:
        # Without a rename both halves hold one name.
        middle = len(rest) // 2
        old, new = rest[:middle], rest[middle + 1 :]
        pair = strip_prefixes(old, new, git=True)
        if rest[middle : middle + 1] != " " or pair[0] != pair[1]:
            return None
    stripped = strip_prefixes(old, new, git=True)
    return (stripped[0], stripped[1]) if stripped[0] and stripped[1] else None


def strip_prefixes(old: str | None, new: str | None, *, git: bool) -> tuple[str | None, str | None]:
    """Both names without ``a/`` and ``b/`` (or Git's other pairs), if both have them."""
    for first, second in _GIT_LETTERS if git else _LETTERS:
        fits_old = old is None or old.startswith(first)
        fits_new = new is None or new.startswith(second)
        # Beside /dev/null only the usual letter is a prefix; elsewhere it may be a folder.
        alone = old is None or new is None
        if fits_old and fits_new and (git or not alone or (first, second) == _LETTERS[0]):
            return (
                old.removeprefix(first) if old is not None else None,
                new.removeprefix(second) if new is not None else None,
            )
    return old, new


def unquote(name: str, line: int) -> str:
    """A name that may be in quotes, as Git writes it."""
    return _quoted(name, line)[0] if name.startswith('"') else name


def _quoted(text: str, line: int) -> tuple[str, str]:
    """The name in quotes at the start, and what follows it."""
    found = _QUOTED.match(text)
    if found is None:
        malformed(line, "a quoted name without its end", "Close the quotes.")
    data = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(found[1]):
        data += found[1][at : escape.start()].encode("utf-8", "surrogatepass")
        code = escape[1]
        value = int(code, 8) if len(code) == 3 else _ESCAPES.get(code, 256)
        if value > 255:
            malformed(line, f"the escape \\{code} in a name", "Write names as Git quotes them.")
        data.append(value)
        at = escape.end()
    data += found[1][at:].encode("utf-8", "surrogatepass")
    try:
        return data.decode(), text[found.end() :]
    except UnicodeDecodeError:
        malformed(line, "a name that is not UTF-8", "Rename the file, or leave it out.")
