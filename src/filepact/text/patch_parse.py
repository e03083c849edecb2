"""Parses patches, strictly: ``diff -u``, ``git diff``, and the envelope ``*** Begin Patch``.

Whatever is not understood is refused, because a part that is skipped is a file that is left out.
Only free text before a file's header is passed over, as in mailed patches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.errors import InvalidParamsError, PatchMalformedError
from filepact.text.patch_lines import (
    header_name,
    malformed,
    names_of_git_line,
    read_hunk,
    shown,
    sign_of,
    signed_lines,
    strip_prefixes,
    unquote,
)
from filepact.text.patch_model import FilePatch, Hunk
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["MOST_LINES", "is_envelope", "parse"]

MOST_LINES: Final = 500_000
"""Most lines of a patch."""

_IGNORED = ("similarity index ", "dissimilarity index ")
_MODES = {
    "old mode ": "old_mode",
    "new mode ": "new_mode",
    "new file mode ": "created_mode",
    "deleted file mode ": "deleted_mode",
}
_RENAMES = {
    "rename from ": "rename_from",
    "rename to ": "rename_to",
    "rename old ": "rename_from",
    "rename new ": "rename_to",
}
_REFUSED = (
    (
        re.compile(
            r"GIT binary patch|Binary files? .* (differ|changed|created|deleted)|Files .* differ"
        ),
        "contents that are not text",
        "Leave this file out of the patch, and ask the person to put it there.",
    ),
    (
        re.compile(r"copy (from|to) "),
        "a copy of a file",
        "Make the diff without copies (git diff --no-renames), or write the new file.",
    ),
    (
        re.compile(r"\*\*\* (Begin Patch|Update File|Add File|Delete File)"),
        "a header of a patch from *** Begin Patch to *** End Patch, outside of one",
        "Send a unified diff, or a patch from *** Begin Patch to *** End Patch.",
    ),
    (
        re.compile(r"\*{15}"),
        "a context diff",
        "Send a unified diff, as diff -u and git diff print it.",
    ),
    (re.compile(r"@@@"), "a combined diff of a merge", "Send the diff against one parent."),
)
_KINDS = {"120": "a symbolic link", "160": "a submodule", "040": "a folder"}


@dataclass(slots=True)
class _GitHeader:
    """The header lines between ``diff --git`` and the hunks."""

    line: int
    names: tuple[str, str] | None
    old_mode: int | None = None
    new_mode: int | None = None
    created_mode: int | None = None
    deleted_mode: int | None = None
    rename_from: str | None = None
    rename_to: str | None = None


def parse(patch: str) -> tuple[FilePatch, ...]:
    """The parts of a patch, one for each file, in order.

    Raises:
        InvalidParamsError: It has more than `MOST_LINES` lines.
        PatchMalformedError: Some part of it cannot be understood or is not allowed; the message
            names the 1-based line.
    """
    count = patch.count("\n")
    if count > MOST_LINES:
        raise InvalidParamsError(
            f"the patch has {count:,} lines, the limit is {MOST_LINES:,}", hint="Send it in parts."
        )
    files = _Reader(patch).files()
    if not files:
        raise PatchMalformedError(
            "no hunk and no file header in the patch",
            hint="Send a unified diff: --- and +++ lines, then @@ hunks; or a patch from *** Begin "
            "Patch to *** End Patch. Text to search and replace goes to edit_file.",
        )
    return files


def is_envelope(patch: str) -> bool:
    """Whether a patch is of the format ``*** Begin Patch``, which always names its files."""
    return _begin_of_envelope(patch.split("\n")) is not None


class _Reader:
    def __init__(self, patch: str) -> None:
        self._lines = patch.split("\n")
        if not self._lines[-1]:
            self._lines.pop()
        self._at = 0

    def files(self) -> tuple[FilePatch, ...]:
        begin = _begin_of_envelope(self._lines)
        if begin is not None:
            indent = self._lines[begin][: -len(self._lines[begin].lstrip(" \t"))]
            if indent and all(line.startswith(indent) for line in self._lines if line.strip()):
                # All of it was set in, as in a quotation.
                self._lines = [line[len(indent) :] for line in self._lines]
            return _read_envelope(self._lines, begin)
        files: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._line()
            if line.startswith("diff --git "):
                files.append(self._git_file())
            elif line.startswith("--- ") and self._line(1).startswith("+++ "):
                files.append(self._plain_file())
            elif line.startswith("@@") and not line.startswith("@@@"):
                if files:
                    malformed(
                        self._at + 1,
                        "a hunk that belongs to no file",
                        "Put --- and +++ lines before each file's hunks, and nothing between "
                        "hunks.",
                    )
                start = self._at + 1
                files.append(FilePatch(None, None, self._hunks(), line=start))
            elif line:
                self._pass_over(line)
            else:
                self._at += 1
        return tuple(files)

    def _line(self, ahead: int = 0) -> str:
        """A line without the CR of a patch sent with CRLF; empty after the end."""
        at = self._at + ahead
        return self._lines[at].removesuffix("\r") if at < len(self._lines) else ""

    def _pass_over(self, line: str) -> None:
        self._refuse(line)
        if line.startswith(("--- ", "+++ ")) and self._line(1).startswith("@@"):
            malformed(
                self._at + 1,
                f"{line[:3]} without its partner",
                "Name the file before in a --- line and the file after in a +++ line.",
            )
        self._at += 1

    def _refuse(self, line: str) -> None:
        for pattern, what, hint in _REFUSED:
            if pattern.match(line):
                malformed(self._at + 1, what, hint)

    def _hunks(self) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while True:
            at = self._at
            while at < len(self._lines) and self._lines[at] in ("", "\r"):
                at += 1
            if at == len(self._lines) or not self._lines[at].startswith("@@"):
                break
            self._at = at
            self._refuse(self._line())
            hunk, self._at = read_hunk(self._lines, at)
            hunks.append(hunk)
        return tuple(hunks)

    def _plain_file(self) -> FilePatch:
        start = self._at + 1
        old, old_missing = header_name(self._line()[4:], start)
        new, new_missing = header_name(self._line(1)[4:], start + 1)
        self._at += 2
        hunks = self._hunks()
        if not hunks:
            malformed(
                start, "a file header without hunks", "Put @@ hunks after the --- and +++ lines."
            )
        # diff -N names an absent file and dates it 1970; its hunk then has no lines there.
        first = hunks[0]
        if old_missing and not any(hunk.old for hunk in hunks) and first.old_start == 0:
            old = None
        elif new_missing and not any(hunk.new for hunk in hunks) and first.new_start == 0:
            new = None
        if old is None and new is None:
            malformed(start, "both sides are /dev/null", "Name the file in one of the two lines.")
        creates, deletes = old is None, new is None
        old, new = strip_prefixes(old, new, git=False)
        return FilePatch(old, new, hunks, creates=creates, deletes=deletes, line=start)

    def _git_file(self) -> FilePatch:
        header = self._git_header()
        creates, deletes = header.created_mode is not None, header.deleted_mode is not None
        if (header.rename_from is None) != (header.rename_to is None) or (creates and deletes):
            malformed(header.line, "half a header", "Send the diff as git printed it.")
        old, new = header.names or (None, None)
        if header.rename_from is not None:
            old, new = header.rename_from, header.rename_to
        if self._line().startswith("--- ") and self._line(1).startswith("+++ "):
            old, new = self._checked_names(header, old, new)
            creates, deletes = creates or old is None, deletes or new is None
            self._at += 2
        hunks = self._hunks()
        if old is None and new is None:
            malformed(
                header.line,
                "the names cannot be told apart",
                "Add --- and +++ lines, or rename from and rename to.",
            )
        old_mode = header.deleted_mode if deletes else header.old_mode
        new_mode = header.created_mode if creates else header.new_mode
        if old_mode == new_mode:
            old_mode = new_mode = None
        renames = header.rename_from is not None and old != new
        if not (hunks or creates or deletes or renames or new_mode or header.old_mode):
            malformed(header.line, "a file header without hunks", "Put @@ hunks after it.")
        return FilePatch(
            None if creates else old,
            None if deletes else new,
            hunks,
            old_mode,
            new_mode,
            creates,
            deletes,
            renames,
            header.line,
        )

    def _checked_names(
        self, header: _GitHeader, old: str | None, new: str | None
    ) -> tuple[str | None, str | None]:
        """The names of the ``---`` and ``+++`` lines, which must agree with the header."""
        line = self._at + 1
        stated = [header_name(self._line(i)[4:], line + i)[0] for i in (0, 1)]
        if header.names is not None and stated[0] in (None, old) and stated[1] in (None, new):
            named_old, named_new = stated  # a diff made without prefixes
        else:
            named_old, named_new = strip_prefixes(stated[0], stated[1], git=True)
        for known, named, gone in (
            (old, named_old, header.created_mode is not None),
            (new, named_new, header.deleted_mode is not None),
        ):
            if gone != (named is None) and (gone or known is None):
                malformed(line, "/dev/null contradicts the header", "Send the diff as it was made.")
            if named is not None and known is not None and named != known:
                malformed(
                    line,
                    f"the name {named!r} differs from {known!r} in the header above",
                    "Name one file in all lines of a file's header.",
                )
        if named_old is None and named_new is None:
            malformed(line, "both sides are /dev/null", "Name the file in one of the two lines.")
        return named_old, named_new

    def _git_header(self) -> _GitHeader:
        start = self._at + 1
        header = _GitHeader(start, names_of_git_line(self._line()[len("diff --git ") :], start))
        self._at += 1
        while self._at < len(self._lines):
            line = self._line()
            self._refuse(line)
            if not self._take_extended(header, line):
                break
            self._at += 1
        return header

    def _take_extended(self, header: _GitHeader, line: str) -> bool:
        for prefix, field in _MODES.items():
            if line.startswith(prefix):
                gone = field == "deleted_mode"
                setattr(header, field, self._mode(line[len(prefix) :], gone=gone))
                return True
        for prefix, field in _RENAMES.items():
            if line.startswith(prefix):
                setattr(header, field, unquote(line[len(prefix) :], self._at + 1))
                return True
        if line.startswith("index "):
            mode = re.fullmatch(r"index \S+ (\d+)", line)
            if mode:
                self._mode(mode[1])
            return True
        return line.startswith(_IGNORED)

    def _mode(self, digits: str, *, gone: bool = False) -> int:
        """A Git mode; only the two of regular files pass, and of a link that is removed."""
        digits = digits.strip()
        if gone and digits == "120000":
            return 0o120000
        if re.fullmatch(r"100[0-7]{3}", digits):
            return 0o100755 if int(digits, 8) & 0o100 else 0o100644
        kind = _KINDS.get(digits[:3], "not the mode of a regular file")
        return malformed(
            self._at + 1, f"mode {digits[:20]} is {kind}", "Leave this file out of the patch."
        )


# -- the envelope -----------------------------------------------------------------------------
#
# The other format that models write.  Its hunks have no line numbers: they are found by their lines,
# and by anchors; ``@@ class A`` says that the hunk stands below that line.


_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE = "*** Move to:"
# A marker inside a hunk of another format is a line of that hunk.
_OTHER_FORMAT = late_regex(r"@@|diff --git |--- |\+\+\+ ")
_GIT_LINES = late_regex(
    r"diff --git |index [0-9a-f]+\.\.[0-9a-f]+|(?:new|deleted) file mode \d|(?:old|new) mode \d"
    r"|similarity index |rename (?:from|to) "
)
_MOST_ANCHORS = 8
_COUNTS = late_regex(r"-\d+(?:,\d+)?\s+\+\d+(?:,\d+)?\s*(?:@@.*)?|\.\.\.|…")


def _begin_of_envelope(lines: Sequence[str]) -> int | None:
    """The 0-based line of ``*** Begin Patch``; None when this is another kind of patch.

    Whatever wraps the envelope, such as a code fence or a shell's heredoc, is passed over.
    """
    for at, line in enumerate(lines):
        if line.strip() == _BEGIN:
            return at
        if _OTHER_FORMAT.match(line):
            return None
    return None


def _read_envelope(lines: Sequence[str], begin: int) -> tuple[FilePatch, ...]:
    """The parts of the patch whose first line is ``lines[begin]``, one for each file.

    Args:
        lines: The lines of the patch without their LF.
        begin: As :func:`_begin_of_envelope` found it.

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
            self._pass_headers(name)
            if self._at < self._end and self._lines[self._at].startswith("@@ -0,0 +1"):
                self._at += 1
            return FilePatch(None, name, self._added(), creates=True, line=at + 1, whole=True)
        if header.startswith(_DELETE):
            name, written = self._name(at, _DELETE), self._written(at, _DELETE)
            return FilePatch(name, None, (), deletes=True, line=at + 1, whole=True, written=written)
        if header.startswith(_UPDATE):
            return self._update(at)
        return malformed(
            at + 1,
            f"{shown(self._lines[at])} is not a file header",
            f"Write {_ADD} NAME, {_DELETE} NAME or {_UPDATE} NAME.",
        )

    def _written(self, at: int, prefix: str) -> str:
        return self._lines[at].strip().removeprefix(prefix).strip()

    def _name(self, at: int, prefix: str) -> str:
        name = self._written(at, prefix)
        if len(name) > 2 and name[0] == name[-1] and name[0] in "\"'`":
            name = unquote(name, at + 1) if name[0] == '"' else name[1:-1]
        if not name:
            malformed(at + 1, "no file name", f"Write it after {prefix}")
        return name

    def _pass_headers(self, *names: str) -> None:
        """Pass over header lines of the other format, which say of the file what is known already."""
        while self._at < self._end:
            here = self._lines[self._at : self._at + 2]
            if _GIT_LINES.match(here[0]):
                self._at += 1
            elif len(here) == 2 and here[0].startswith("--- ") and here[1].startswith("+++ "):
                stated = [header_name(line[4:].rstrip("\r"), self._at + 1)[0] for line in here]
                if not {None, *names} >= {*strip_prefixes(stated[0], stated[1], git=True)}:
                    return
                self._at += 2
            else:
                return

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
        self._pass_headers(name, new_name)
        hunks: list[Hunk] = []
        end = self._body_end()
        while end > self._at:
            if self._without_empty(self._at, end) == self._at:
                self._at = end
                break
            hunks.append(self._hunk(first=not hunks))
            end = end if self._at < end else self._body_end()
        if not hunks and new_name == name:
            malformed(header + 1, "an update without hunks", "Put @@ and changed lines after it.")
        return FilePatch(
            name,
            new_name,
            tuple(hunks),
            renames=new_name != name,
            line=header + 1,
            whole=new_name != name,
            written=self._written(header, _UPDATE),
        )

    def _hunk(self, *, first: bool) -> Hunk:
        """One hunk: its ``@@`` lines, which only the first may lack, and its body."""
        header = self._at
        anchors: list[str] = []
        while self._at < self._end and self._lines[self._at].startswith("@@"):
            anchor = self._lines[self._at][2:].strip().removesuffix("@@").strip()
            # Line numbers are of the other format; in this one nobody has counted.
            if anchor and not _COUNTS.fullmatch(anchor):
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
