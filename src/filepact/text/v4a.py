"""Reading the other patch format that models write: ``*** Begin Patch`` to ``*** End Patch``.

Its hunks have no line numbers.  They are found by their lines, and by anchors: ``@@ class A`` says
that the hunk stands below that line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from filepact.text.hunk_reader import malformed, shown, sign_of, signed_lines
from filepact.text.hunks import FilePatch, Hunk

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["begin_of_envelope", "read_envelope"]

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE = "*** Move to:"
# A marker inside a hunk of another format is a line of that hunk.
_OTHER_FORMAT = re.compile(r"@@|diff --git |--- |\+\+\+ ")
_MOST_ANCHORS = 8
_NUMBERS = re.compile(r"-\d+(?:,\d+)?\s+\+\d+(?:,\d+)?\s*(?:@@.*)?|\.\.\.|…")


def begin_of_envelope(lines: Sequence[str]) -> int | None:
    """The 0-based line of ``*** Begin Patch``; None when this is another kind of patch.

    Whatever wraps the envelope, such as a code fence or a shell's heredoc, is passed over.
    """
    for at, line in enumerate(lines):
        if line.strip() == _BEGIN:
            return at
        if _OTHER_FORMAT.match(line):
            return None
    return None


def read_envelope(lines: Sequence[str], begin: int) -> tuple[FilePatch, ...]:
    """The parts of the patch whose first line is ``lines[begin]``, one for each file.

    Args:
        lines: The lines of the patch without their LF.
        begin: As :func:`begin_of_envelope` found it.

    Raises:
        PatchMalformedError: Something cannot be understood; the message names the line.
    """
    return _Envelope(lines, begin).files()


class _Envelope:
    def __init__(self, lines: Sequence[str], begin: int) -> None:
        self._lines = lines
        self._at = begin + 1
        ends = [at for at in range(begin, len(lines)) if lines[at].strip() == _END]
        if not ends:
            malformed(
                len(lines),
                f"no {_END!r}",
                "Send the patch up to its last line; a part of it is not applied.",
            )
        # Padded, the marker is told from a line of context by being the last of its kind.
        self._end = next((at for at in ends if lines[at].startswith(_END)), ends[-1])
        for at in range(self._end + 1, len(lines)):
            if lines[at].startswith("*** ") or lines[at].strip() == _BEGIN:
                malformed(at + 1, f"text after {_END!r}", "Put all files into one envelope.")

    def files(self) -> tuple[FilePatch, ...]:
        files: list[FilePatch] = []
        while self._at < self._end:
            if not self._lines[self._at].strip():
                self._at += 1
                continue
            files.append(self._file())
        if not files:
            malformed(self._end + 1, "no file in the patch", "Put *** Update File: NAME into it.")
        return tuple(files)

    def _file(self) -> FilePatch:
        at = self._at
        header = self._lines[at].strip()
        self._at += 1
        if header.startswith(_ADD):
            name = self._name(at, _ADD)
            return FilePatch(None, name, self._added(), creates=True, line=at + 1, whole=True)
        if header.startswith(_DELETE):
            name = self._name(at, _DELETE)
            return FilePatch(name, None, (), deletes=True, line=at + 1, whole=True)
        if header.startswith(_UPDATE):
            return self._update(at)
        return malformed(
            at + 1,
            f"{shown(self._lines[at])} is not a file header",
            f"Write {_ADD} NAME, {_DELETE} NAME or {_UPDATE} NAME.",
        )

    def _name(self, at: int, prefix: str) -> str:
        name = self._lines[at].strip().removeprefix(prefix).strip()
        if not name:
            malformed(at + 1, "no file name", f"Write it after {prefix}")
        return name

    def _body_end(self, *, also: str = "") -> int:
        """The next line at or after the current one that is no line of a body."""
        at = self._at
        while at < self._end and not self._lines[at].startswith("*** "):
            if also and self._lines[at].startswith(also):
                break
            at += 1
        return at

    def _added(self) -> tuple[Hunk, ...]:
        first, end = self._at, self._body_end()
        # A header may be padded here, where no line of a file can begin with a blank.
        padded = (at for at in range(first, end) if self._lines[at].strip().startswith("*** "))
        end = next((at for at in padded if not self._lines[at].startswith("+")), end)
        self._at = end
        end = self._without_empty(first, end)
        for at in range(first, end):
            if not self._lines[at].startswith("+"):
                malformed(
                    at + 1,
                    f"{shown(self._lines[at])} in a new file does not start with +",
                    "Put + before every line of a new file, also before an empty one.",
                )
        body = signed_lines(self._lines, first - 1, end)
        return (Hunk(first, 0, 1, tuple(body)),) if body else ()

    def _update(self, header: int) -> FilePatch:
        name = new_name = self._name(header, _UPDATE)
        if self._at < self._end and self._lines[self._at].strip().startswith(_MOVE):
            new_name = self._name(self._at, _MOVE)
            self._at += 1
        hunks: list[Hunk] = []
        while (end := self._body_end()) > self._at:
            if self._without_empty(self._at, end) == self._at:
                self._at = end
                break
            hunks.append(self._hunk(first=not hunks))
        if not hunks and new_name == name:
            malformed(header + 1, "an update without hunks", "Put @@ and changed lines after it.")
        return FilePatch(
            name,
            new_name,
            tuple(hunks),
            renames=new_name != name,
            line=header + 1,
            whole=new_name != name,
        )

    def _hunk(self, *, first: bool) -> Hunk:
        """One hunk: its ``@@`` lines, which only the first may lack, and its body."""
        header = self._at
        anchors: list[str] = []
        while self._at < self._end and self._lines[self._at].startswith("@@"):
            anchor = self._lines[self._at][2:].strip().removesuffix("@@").strip()
            # Line numbers are of the other format; in this one nobody has counted.
            if anchor and not _NUMBERS.fullmatch(anchor):
                anchors.append(anchor)
            self._at += 1
        if len(anchors) > _MOST_ANCHORS:
            malformed(header + 1, f"more than {_MOST_ANCHORS} anchors", "Name the innermost ones.")
        if self._at == header and not first:
            malformed(header + 1, "lines after the end of the file", "Begin a hunk with @@.")
        start, end = self._at, self._body_end(also="@@")
        self._at = end
        at_end = end < self._end and self._lines[end].strip() == _END_OF_FILE
        self._at += at_end
        end = self._without_empty(start, end)
        for at in range(start, end):
            if sign_of(self._lines[at]) == "":
                malformed(
                    at + 1,
                    f"{shown(self._lines[at])} is inside a hunk but starts with neither a blank, "
                    "+ nor -",
                    "Put a blank before context lines.",
                )
        body = signed_lines(self._lines, start - 1, end)
        if not body:
            malformed(header + 1, "a hunk without lines", "Put the hunk's lines after @@.")
        # What is only added, and stands below nothing, goes to the end of the file.
        bare = not anchors and all(line[0] == "+" for line in body)
        return Hunk(start, None, None, tuple(body), anchors=tuple(anchors), at_end=at_end or bare)

    def _without_empty(self, first: int, end: int) -> int:
        """The end of a body without the empty lines that separate it from what follows."""
        while end > first and not self._lines[end - 1].rstrip("\r"):
            end -= 1
        return end
