"""The file names in a patch's headers: quoting, prefixes, dates.

Names are data.  Nothing here decides whether a name may be opened.
"""

from __future__ import annotations

import re

from filepact.text.hunk_reader import malformed

__all__ = ["header_name", "names_of_git_line", "strip_prefixes", "unquote"]

_DATE = re.compile(
    r"[ \t]+(\d{4}-\d\d-\d\d)[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:[+-]\d\d:?\d\d|Z|UTC))?\s*$"
)
_LONGEST_DATE = 60
_EPOCH = ("1970-01-01", "1969-12-31")
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)
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
