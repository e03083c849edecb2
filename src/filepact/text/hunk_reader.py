"""Reading one hunk of a patch: its header, its lines, and counts that may be wrong.

Models count badly.  The counts decide while the body agrees with them; otherwise the body ends
at the next header, which is certain because no line of a body can look like one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from filepact.errors import PatchMalformedError
from filepact.text.hunks import Hunk

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["malformed", "read_hunk", "shown", "sign_of", "signed_lines"]

_NUMBERED = re.compile(
    r"@@\s*-(\d{1,9})(?:,(\d{1,9}))?\s+\+(\d{1,9})(?:,(\d{1,9}))?\s*(?:@@.*)?", re.DOTALL
)
_UNNUMBERED = re.compile(r"@@(?:\s*@@.*|\s*(?:\.\.\.|…)\s*@@.*|\s*)", re.DOTALL)
_AFTER_HUNK = re.compile(
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
    """Where the counts say that the body ends; None when the body contradicts them."""
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
    while at < len(lines) and not _ends_body(lines, at):
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
        line.startswith("--- ")
        and at + 2 < len(lines)
        and lines[at + 1].startswith("+++ ")
        and lines[at + 2].startswith("@@")
    )


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
