"""Targets: files opened for a change, what has to be so for it, and the text that is sent for them."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from functools import cached_property
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Final

from filepact.errors import (
    BinaryFileError,
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
    TimedOutError,
    TooLargeError,
)
from filepact.fs.atomic import LARGEST
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.lines import adopt_line_ends, is_open, line_ends, with_line_ends_of
from filepact.text.page import left_in
from filepact.values import dataclass, late_regex
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.location import check_is_file, in_other_letters, not_there

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import ExitStack

    from filepact.domain.deadline import Deadline
    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.workspace.authorizer import ChangePolicy
    from filepact.workspace.documents import Documents
    from filepact.workspace.location import Location, Name
    from filepact.workspace.pending import ProposalFile
    from filepact.workspace.read_tracker import KnownText, KnownTextCache


__all__ = [
    "DIFF_IN_ERROR",
    "DIFF_IN_NOTE",
    "NUL_PUT_IN",
    "FileReader",
    "Target",
    "appended",
    "changed_ends",
    "check_link_moves",
    "check_nothing_left_in",
    "check_overtaken",
    "check_revision",
    "check_still",
    "check_taken_back",
    "check_unshown",
    "escape_notes",
    "existing",
    "fitted_ends",
    "proposed_gone",
    "since",
    "text_of",
]


_FEW: Final = 64
"""Most files of a change that are kept open from when they are read until they are written."""


@dataclass(frozen=True)
class Target:
    """A file that was opened for a change.

    Attributes:
        document: What it holds now; None when there is no such file yet.
        seen: What the session knows of it; None when it was never shown any of it.
        proposal: What the session has proposed for it, which ``document`` is the end of.
        checked: The session has named the revision that the file is at.
        hidden: The session may not see what it holds.
        saved: The text that the disk has, where an editor holds more; empty for no file.
        overtaken: The disk has changed under what the editor holds.
    """

    location: Location
    document: Document | None
    seen: KnownText | None
    proposal: ProposalFile | None = None
    checked: bool = False
    hidden: bool = False
    saved: str | None = None
    overtaken: bool = False

    @property
    def unread(self) -> bool:
        """Whether the file holds text that the session was never shown, and could be."""
        return (
            self.document is not None
            and bool(self.document.data)
            and self.seen is None
            and not (self.checked or self.hidden)
        )

    @cached_property
    def moved(self) -> bool:
        """Whether the file is no longer what the session knows."""
        seen, document = self.seen, self.document
        return seen is not None and document is not None and seen.differs(document)


class FileReader:
    """Finds the files of one change, and reads them once their locks are held."""

    def __init__(
        self,
        authorizer: ChangePolicy,
        documents: Documents,
        seen: KnownTextCache,
        session: Session,
        deadline: Deadline,
    ) -> None:
        self._authorizer = authorizer
        self._documents = documents
        self._seen = seen
        self._session = session
        self._deadline = deadline

    def open_all(
        self,
        paths: Sequence[Name],
        there: Collection[Name],
        itself: Collection[Name],
        known: Mapping[Name, Location],
        held: ExitStack,
        lock: Callable[[Iterable[str]], None],
    ) -> tuple[dict[Name, Target], list[str]]:
        """Find all files of a change, take their locks, and read them; also sentences about what was merged.

        Those that were found before are mostly there still, and are looked for only once.  Arguments as of
        `Draft.open_all`; ``held`` keeps the files open, and what ``lock`` takes.
        """
        recent = {} if known or itself else self._authorizer.recent(paths)
        while True:
            targets: dict[Name, Target] = {}
            notes: list[str] = []
            try:
                at = {
                    one: (recent or known).get(one)
                    or self.find(one, there=one in there, follow=one not in itself)
                    for one in paths
                }
                true = {at[one].path for one in there} if len(at) > 1 else ()
                for one in at.keys() - {*there} if true else ():
                    if at[one].path in true and (new := in_other_letters(at[one], one)):
                        at[one] = self.find(new, there=False, follow=False)
                lock(location.lock_key for location in at.values())
                if self._documents.proposed is not None:
                    self._documents.proposed.look_again()
                keep = held if len(paths) <= _FEW else None
                for one, location in at.items():
                    targets[one], note = self._read(one, location, itself=one in itself, keep=keep)
                    notes += [note] * bool(note and not targets[one].hidden)
                if all(targets[one].location.is_at(was) for one, was in recent.items()):
                    return targets, notes
            except FilepactError as error:
                if not recent or isinstance(error, TimedOutError):
                    raise
            # One leads elsewhere by now, perhaps to what has another lock.
            held.close()
            recent = {}

    def find(self, path: Name, *, there: bool, follow: bool) -> Location:
        """Find one file, which may have to be there, by the path that was sent, or by its true name."""
        self._deadline.check()
        if there:
            held = self._documents.has_newer
            location = self._authorizer.find_file(path, held, follow=follow)
        else:
            location = self._authorizer.find(path, follow=follow)
        if location.place.kind != "file":
            self._check_kind(location, path)
        return location

    def _read(
        self, path: Name, location: Location, *, itself: bool, keep: ExitStack | None
    ) -> tuple[Target, str]:
        """Find a file again, whose lock is held by now, and read it; what was missing may have been made meanwhile.

        What only goes away or gets another name may be large, for it is never looked into line by line.
        """
        self._deadline.check()
        location = self._authorizer.find_again(location, keep)
        if location.place.kind != "file":
            self._check_kind(location, path)
        hidden = self._authorizer.hides(location)
        limit = LARGEST if itself else EDIT_LIMIT
        layer = self._documents.layer(location.path)
        # Whether a text is the file's again must not be told where that may not be seen.
        with self._authorizer.conceal_errors(location) if hidden else nullcontext():
            try:
                merged = self._documents.merged(
                    location, limit=limit, layer=None if hidden else layer
                )
            except TooLargeError as error:
                raise TooLargeError(error.message, hint=_TOO_LARGE, **error.details) from None
        if merged.shown is not None:
            self._authorizer.check_held(location, merged.shown)
        target = Target(
            location,
            merged.shown,
            None if hidden else self._seen.last(self._session, location.path),
            layer,
            hidden=hidden,
            saved=merged.saved if layer is None else None,
            overtaken=bool(merged.note),
        )
        return target, merged.note

    def _check_kind(self, location: Location, sent: Name) -> None:
        """Refuse what is no file, and what is named as a folder."""
        path = location.as_sent(sent)
        if location.place.kind != "missing":
            check_is_file(location, path)
        elif self._documents.has_newer(location.path) and not self._documents.holds_file(
            location.path
        ):
            raise NotAFileError(f"{path}: is a folder, as you proposed", path=path)
        elif path.endswith("/"):
            hint = "Leave out the slash to write a file; create_dir of manage_files makes a folder."
            raise NotAFileError(f"{path}: is the name of a folder", hint=hint, path=path)


_TOO_LARGE: Final = (
    "No tool changes a file of this size. manage_files moves or deletes it, and write_file can make it "
    "anew then; for a change within it ask the person, or use a program where you may run one."
)


def proposed_gone(shown: str, layer: ProposalFile) -> NotFoundError:
    """The refusal of a file that the session itself wants to be gone."""
    proposal = layer.proposal.id
    return NotFoundError(
        f"{shown}: you have proposed to remove it ({proposal}, which waits for a person)",
        hint="Go on without it, or write it again.",
        path=shown,
        proposal=proposal,
    )


def existing(target: Target) -> Document:
    """The document of a target.

    Raises:
        NotFoundError: There is no such file.
    """
    if target.document is None and target.proposal is not None:
        raise proposed_gone(target.location.shown, target.proposal)
    if target.document is None:
        shown = target.location.shown
        advice = "Look for the name with search_files."
        raise not_there(target.location, f"{shown}: no such file", advice, path=shown)
    return target.document


def check_link_moves(source: Target, target: Target, *, edited: bool) -> None:
    """Refuse to give a link another name where that is not all, or where it would lead outside."""
    if edited:
        raise InvalidParamsError(
            f"{source.location.shown}: is a link, which has no lines of its own to be changed",
            hint="Rename it without hunks, and change the file that it leads to by that one's name.",
            path=source.location.shown,
        )
    root, old, new = (
        source.location.path.root,
        source.location.place.path,
        target.location.place.path,
    )
    if root == target.location.path.root and dirname(old) == dirname(new):
        return
    leads = existing(source).data.decode("utf-8", "replace")
    if leads_out(root, new, leads):
        raise PathBlockedError(
            f"{target.location.shown}: the link would lead out of the root from there, to {leads}",
            hint="Leave the link in its folder.",
            path=target.location.shown,
        )


def leads_out(root: str, path: str, leads: str) -> bool:
    """Whether a link of this name would lead out of the root by the folder that it is in."""
    above = dirname(f"{root}/{path}")
    return not leads.startswith("/") and not f"{normpath(f'{above}/{leads}')}/".startswith(
        f"{root}/"
    )


DIFF_IN_ERROR: Final = 700
"""Characters of a difference in a refusal, which has 1,200 in all."""

DIFF_IN_NOTE: Final = 2_000
"""Characters of a difference that an answer shows for the first time."""


def check_revision(target: Target, expected: str) -> None:
    """Refuse a file that is at another revision.

    Raises:
        StaleFileError: It is, or at which it is may not be known.
    """
    if target.hidden:
        raise StaleFileError(
            f"{target.location.shown}: its revision may not be shown",
            hint="Leave out expected_revision; a person sees what would change.",
            path=target.location.shown,
        )
    now = target.document.revision.short if target.document is not None else "none"
    if len(expected) >= 8 and now.startswith(expected.lower()):
        return
    known = target.seen
    difference = ""
    if known is not None and known.revision.short.startswith(expected.lower()):
        difference = since(target)
        if target.document and target.document.revision.content == known.revision.content:
            difference = _other_rights(known.revision, target.document.revision)
        difference = "\n" + difference
    raise StaleFileError(
        f"{target.location.shown}: is at revision {now}, not {expected}{difference}",
        hint="Read the file again and make the change for what it holds now.",
        path=target.location.shown,
        revision=now,
    )


def readable(target: Target, to_be: str = "") -> Document:
    """The document of a target, for a change that depends on its content.

    Args:
        target: An existing file.
        to_be: What happens to all of it; empty where it is edited.

    Raises:
        PathBlockedError: It may not be seen: whether an edit fits would tell it, piece by piece.
    """
    if target.hidden:
        way = "Give it a whole new text with write_file; a person is asked first."
        raise PathBlockedError(
            f"{target.location.shown}: its content may not be seen, so it cannot be {to_be or 'edited in part'}",
            hint="Ask the person to do this step." if to_be else way,
            path=target.location.shown,
        )
    return existing(target)


def _other_rights(before: Revision, after: Revision) -> str:
    """The differences of two states of the same bytes."""
    told = [f"mode {before.mode:04o} -> {after.mode:04o}"] if before.mode != after.mode else []
    if before.attributes and after.attributes:
        told += before.attributes.differences(after.attributes)
    return f"(its bytes are the same; {', '.join(told)})"


def check_unshown(target: Target, seen: KnownText, text: str) -> None:
    """Refuse a whole text that lacks lines that its author was never shown.

    Raises:
        StaleFileError: It does.
    """
    lost = seen.lost_unshown(text)
    if not lost:
        return
    name = target.location.shown
    count = sum(last - first + 1 for first, last in lost)
    some = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in lost[:5])
    raise StaleFileError(
        f"{name}: the new text lacks {count} {'line' if count == 1 else 'lines'} of the "
        f"file that you have not been shown (lines {some}{', ...' if len(lost) > 5 else ''})",
        hint="Read the rest of the file first, or change single places with edit_file. To "
        "overwrite all of it, send expected_revision as read_file shows it.",
        path=name,
        revision=existing(target).revision.short,
    )


def check_overtaken(target: Target, seen: KnownText, text: str) -> None:
    """Refuse a whole text that is what the session knew, of a file that holds something else by now.

    A merge would have nothing to bring over, and nothing would be written.

    Raises:
        StaleFileError: It is.
    """
    now = existing(target)
    if text != seen.text or text == now.text:
        return
    name, revision = target.location.shown, now.revision.short
    raise StaleFileError(
        f"{name}: what you send is what you knew of the file, and somebody has changed it since:\n{since(target)}",
        hint="Read the file again and make the change for what it holds now. To overwrite all of "
        f"it, send expected_revision {revision}.",
        path=name,
        revision=revision,
    )


def check_taken_back(target: Target, seen: KnownText, text: str) -> list[str]:
    """Refuse a whole text that was made from an earlier one, and would undo what came since.

    Returns:
        A note where it does so after its author was shown all of it, or has changed it alone.

    Raises:
        StaleFileError: It was.
    """
    found = seen.taken_back(text)
    if found is None:
        return []
    earlier, changed_by = found
    name, revision = target.location.shown, existing(target).revision.short
    told = changed_by in ("read", "alone")
    diff = unified(earlier, seen.text, old_name=name, new_name=name)
    diff = cut_diff(diff, DIFF_IN_NOTE if told else DIFF_IN_ERROR)
    if told:
        what = "somebody changed before you read" if changed_by == "read" else "you changed in"
        return [f"This takes back what {what} {name}:\n{diff}"]
    by = "you or another agent of your session changed" if changed_by == "own" else "was changed"
    raise StaleFileError(
        f"{name}: the new text was made from what the file held before, and would take "
        f"back what {by} here since:\n{diff}",
        hint="Read the file again and make the change for what it holds now. If all of "
        f"this is to go, send expected_revision {revision}.",
        path=name,
        revision=revision,
    )


def check_still(target: Target) -> None:
    """Refuse to lose what somebody wrote since the session read a file.

    Raises:
        StaleFileError: Somebody did.
    """
    if not target.moved or target.document is None:
        return
    difference = ""
    with suppress(BinaryFileError):
        difference = ":\n" + since(target)
    raise StaleFileError(
        f"{target.location.shown}: somebody changed it since you read it{difference}",
        hint="Read the file again before you remove what it holds.",
        path=target.location.shown,
        revision=target.document.revision.short,
    )


def since(target: Target, limit: int = DIFF_IN_ERROR) -> str:
    """The diff of a file since the session read it."""
    if target.seen is None or target.document is None:
        return ""
    name, now = target.location.shown, target.document.text
    known = with_line_ends_of(now, target.seen.text)
    ends = (
        f"(its line ends were {line_ends(target.seen.text)} and are {line_ends(now)})\n"
        if known != target.seen.text
        else ""
    )
    # Who has read the file needs few of the lines that stayed.
    return ends + cut_diff(unified(known, now, old_name=name, new_name=name, context=1), limit)


# -- the text that is sent -------------------------------------------------------------------------

_KINDS: Final = {"lf": "LF", "cr": "CR"}


def fitted_ends(
    target: Target, text: str, like: str, wanted: Callable[[WorkspacePath], str]
) -> tuple[str, list[str]]:
    """A text with the line ends that it takes in a file, and notes where they are not those that were sent.

    Args:
        target: The file.
        text: The text as it was sent.
        like: What the file holds, or held; empty for a new one.
        wanted: The end that each line is to have in a file without any; empty for what was sent.
    """
    kind = line_ends(like)
    model = wanted(target.location.path) if kind == "none" else like
    fitted = adopt_line_ends(text, model)
    if kind != "none":
        return fitted, changed_ends(target, text)
    told = fitted != text and not target.hidden
    return fitted, [
        f"Its lines end in {_KINDS.get(line_ends(model), 'CRLF')}, as .editorconfig says."
    ] * told


def changed_ends(target: Target, text: str) -> list[str]:
    """A note where lines of a text were sent with CRLF, and end otherwise in the file."""
    # The one character is found far sooner than both.
    if "\r" not in text or "\r\n" not in text:
        return []
    held = None if target.document is None or target.hidden else text_of(target.document)
    kind = "" if held is None else line_ends(held)
    if kind not in _KINDS:
        return []
    return [f"CRLF was sent; the lines end in {_KINDS[kind]}, as the file has it."]


def appended(
    target: Target, text: str, wanted: Callable[[WorkspacePath], str]
) -> tuple[str, list[str]]:
    """The text to append to an existing file: it begins a new line, where the last one has no end.

    Args:
        target: The file.
        text: The text as it was sent.
        wanted: As of `fitted_ends`.
    """
    there = existing(target).text
    if not text or not is_open(there) or text.startswith(("\n", "\r\n")):
        return fitted_ends(target, text, there, wanted)
    crlf = line_ends(there) == "none" and line_ends(text) == "crlf"
    more, notes = fitted_ends(target, ("\r\n" if crlf else "\n") + text, there, wanted)
    if target.hidden:
        return more, []
    said = "The last line had no end; what was appended begins a line of its own."
    return more, [said, *notes]


NUL_PUT_IN: Final = (
    "The new text holds a NUL character (U+0000), which most programs do not expect. If its escape was "
    "meant, send that, such as `\\0` or `\\x00` (in JSON: `\\\\0`)."
)


_TAB_SPELT = late_regex(r"^[ \t]*\\t", re.MULTILINE)
_TAB_PUT_IN: Final = (
    "A new line begins with the two characters `\\t`, where the file's lines begin with a tab. If a tab was "
    "meant, send that (in JSON: `\\t`, with one backslash)."
)


def escape_notes(before: Document | None, written: Document) -> list[str]:
    """Notes on a text that has NUL characters, or escapes where its lines begin with tabs, and had none before.

    Args:
        before: What the file held; None for a new one, and for one that may not be seen.
        written: What it is to hold.
    """
    data = written.data
    if b"\0" not in data and (b"\\" not in data or b"\\t" not in data):
        return []
    text, had = text_of(written) or "", "" if before is None else text_of(before)
    notes = [NUL_PUT_IN] * ("\0" in text and had is not None and "\0" not in had)
    tabbed = "\n\t" in f"\n{had or ''}" and not _TAB_SPELT.search(had or "")
    return [*notes, *[_TAB_PUT_IN] * bool(tabbed and _TAB_SPELT.search(text))]


def text_of(document: Document) -> str | None:
    """The text of a file; None for one that holds no text."""
    try:
        return document.text
    except BinaryFileError:
        return None


def check_nothing_left_in(shown: str, text: str, there: str | None) -> None:
    """Refuse a new text with what a reader adds to lines.

    Args:
        shown: The file.
        text: What it is to hold.
        there: What it holds.
    """
    if left := left_in(text, there or ""):
        raise InvalidParamsError(
            f"{shown}: the new text holds {left}",
            hint="Send the text exactly as it should be in the file; leave out what read_file "
            "adds to the lines. edit_file changes single places, and puts in any text that is meant.",
            path=shown,
        )
