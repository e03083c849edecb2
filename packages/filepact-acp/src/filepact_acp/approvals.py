"""Approvals: a change that waits, put to a person in the protocol's dialog until they have decided.

Nothing is sent here.  Each side of the protocol sends the question in its own way and hands in the
answer.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import PREVIEW_MODE, Actor, Approval, Session, moment
from filepact.errors import FilepactError, NotFoundError, StaleFileError, UserDeniedError
from filepact.text.confusables import readable, visible
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.lines import middle_of
from filepact.values import dataclass, replace
from filepact.workspace.receipt import ENCODING, Receipt
from filepact.workspace.session_approvals import pattern_of
from filepact_cli.review import Review, author_of, fenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import ChangeId, Proposal
    from filepact.workspace.receipt import FileTexts
    from filepact.workspace.workspace import Workspace
    from filepact_cli.review import ReviewItem

__all__ = [
    "LATER",
    "ApprovalQuestion",
    "ApprovalRequest",
    "ProposalSummary",
    "exhibit",
]

_ROUNDS: Final = 3  # how often a person is asked about one change whose files move each time
_TRIES: Final = 5  # to do what they have said, while somebody types beside what they were shown

_PLACE: Final = r"(?m)^@@ -\S+ \+\S+ @@$"

_ALLOW: Final = "filepact-allow"
_FILE: Final = "filepact-allow-file"
_SESSION: Final = "filepact-allow-session"
_REJECT: Final = "filepact-reject"
_ONLY: Final = "filepact-only-"
_MOST_ONLY: Final = 5  # files of a change of which each can be allowed alone

LATER: Final = "filepact-later"
"""The option with which a person leaves a change waiting."""

_LONGEST: Final = 60_000  # characters of a diff in a dialog
_TEXTS: Final = 400_000  # characters of all texts before and after
_NAMED: Final = 3  # files that an option names

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProposalSummary:
    """The picture of a change that waits, for a person.

    Attributes:
        title: One line.
        text: The diff with everything hidden written out; empty where the contents say it all.
        contents: The protocol's diffs.
        locations: Where the files are, with the first line that changes.
        diff: The change as a diff.
        whole: Whether nothing of it is left out; if something is, it cannot be allowed here.
    """

    title: str
    text: str
    contents: tuple[Message, ...]
    locations: tuple[Message, ...]
    diff: str = ""
    whole: bool = True

    @property
    def blocks(self) -> list[Message]:
        """All that is shown, as contents of a call: what is written out comes first."""
        text = {"type": "content", "content": {"type": "text", "text": self.text}}
        return [*([text] if self.text else []), *self.contents]


def exhibit(
    workspace: Workspace,
    proposal: Proposal,
    name: Callable[[WorkspacePath], str | None],
    *,
    modern: bool = False,
    since: str = "",
) -> ProposalSummary:
    """Render a pending change for the person.

    A diff of the protocol holds the texts as they are.  Where they hold something that is not seen,
    or the protocol has no form for it, the diff stands beside, with all of it written out.

    Args:
        workspace: Has the texts.
        proposal: The change.
        name: How the person's program calls a file; None for one that it cannot name.
        modern: In the form of version 2 of the protocol.
        since: The diff of what has happened to the files since they were asked about an earlier one.

    Raises:
        NoChangeError: It waits no more: its author has added to it, or somebody has decided.
    """
    try:
        texts, diff = workspace.texts(proposal), workspace.diff(proposal)
    except NotFoundError:
        # What stands in its place may have been proposed just now, and its contents go at once.
        workspace.proposal(proposal.id).check_waits()
        raise
    shown = readable(diff)
    size = sum(len(one.before or "") + len(one.after or "") for one in texts)
    named = [(one, path) for one in texts if (path := name(one.path)) is not None]
    whole = size <= _TEXTS and len(named) == len(proposal.changes.changes)
    contents = tuple(_modern(named) if modern else _plain(named)) if whole else ()
    understood = len(contents) == (1 if modern else len(named)) and whole and shown == diff
    if understood and any(one.before is None and one.after == "" for one in texts):
        understood = False  # An empty file shows as nothing.
    if diff.startswith(ENCODING) or f"\n{ENCODING}" in diff:
        understood = False  # The protocol has no word for what decides the bytes.
    said = [] if understood else [_whole(shown, proposal.id)]
    if since:
        moved = _whole(readable(since), proposal.id)
        said.insert(0, f"The files have changed meanwhile, and nothing is done yet:\n{moved}")
    return ProposalSummary(
        title=_title(proposal),
        text="\n".join(said),
        contents=contents,
        locations=tuple({"path": path, "line": _line(one)} for one, path in named),
        diff=diff,
        whole=(understood or len(shown) <= _LONGEST) and len(since) <= _LONGEST,
    )


def _title(proposal: Proposal) -> str:
    """The title of a dialog: the change, the rule by which it waits, its author and its time."""
    wanted = visible(f"{proposal.summary} ({proposal.rule})")
    return f"{wanted}, asked for by {author_of(proposal)} at {moment(proposal.created)}"


def _plain(named: list[tuple[FileTexts, str]]) -> Iterator[Message]:
    """Version 1 has no form for a file that goes."""
    for one, path in named:
        if one.after is not None:
            yield {"type": "diff", "path": path, "oldText": one.before, "newText": one.after}


def _modern(named: list[tuple[FileTexts, str]]) -> Iterator[Message]:
    changes = [
        {"operation": _operation(one), "path": path, "fileType": "text"} for one, path in named
    ]
    patch = "".join(
        unified(one.before, one.after, old_name=one.path.path, new_name=one.path.path, git=True)
        for one, _ in named
    )
    if changes:
        yield {"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": patch}}


def _operation(one: FileTexts) -> str:
    if one.before is None:
        return "add"
    return "delete" if one.after is None else "modify"


def _line(one: FileTexts) -> int:
    """The first line that changes, 1-based."""
    middle = middle_of(one.before or "", one.after or "")
    lines = zip(middle.old.split("\n"), middle.new.split("\n"), strict=False)
    return middle.first + 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], lines))


def _whole(diff: str, change: str) -> str:
    """A diff behind a fence, or its beginning, and where the rest is."""
    shown = fenced(cut_diff(diff, _LONGEST))
    if len(diff) <= _LONGEST:
        return shown
    return (
        f"{shown}\nThis is not all of it, so it cannot be allowed here: `filepact diff {change}` "
        "shows the whole, and the commands that `filepact review --list` names decide."
    )


_LEAVE: Final[Message] = {"optionId": LATER, "name": "Leave it waiting", "kind": "reject_once"}
_REFUSE: Final[Message] = {"optionId": _REJECT, "name": "Refuse it", "kind": "reject_once"}


def _answered(diff: str, rule: str) -> tuple[str, ...]:
    """Return the subject of an answer: the rule by which the change waits, and its lines, wherever in the file they stand."""
    return rule, *re.split(_PLACE, diff)


def _old_lines(diff: str) -> Iterator[str]:
    """Yield the old lines of each hunk of a diff, between the line breaks before and after them."""
    for hunk in re.split(_PLACE, diff)[1:]:
        body = hunk.lstrip("\n").split("\n")
        yield "\n".join(
            ["", *(one[1:] for one in takewhile(_is_of_hunk, body) if one[0] in " -"), ""]
        )


def _is_of_hunk(line: str) -> bool:
    return line.startswith((" ", "-", "+", "\\")) and not line.startswith(("--- ", "+++ "))


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """The question to a person about a change that waits.

    Attributes:
        call: The change as a tool call of the protocol.
        options: What the person may choose.
        text: What is said besides the contents of the call, in version 2 of the protocol.
    """

    call: Message
    options: list[Message]
    text: str = ""


class ApprovalRequest:
    """One change that waits, put to a person until they have decided.

    Where the files change while the person looks, the same lines at their new place are what they
    have answered.  Where anything that they were shown is another, `carry_out` does nothing, and the
    next question is about what fits by then.

    Args:
        workspace: Has the change.
        change: Its id.
        person: In whose name it is decided.
        name: How the person's program calls a file; None for one that it cannot name.
        modern: Whether the dialog is one of version 2 of the protocol.
        prefix: Stands before the title, and before the id of the call.
        approve: Does the change, once it was allowed; None for the workspace.

    Attributes:
        change: The id of what waits; another one once the files have changed.
        receipt: What came of the change; None while it is what was asked about first.
        done: Whether it was carried out.
    """

    def __init__(
        self,
        workspace: Workspace,
        change: str,
        person: Actor,
        *,
        name: Callable[[WorkspacePath], str | None] = lambda _path: None,
        modern: bool = False,
        prefix: str = "",
        approve: Callable[[ChangeId, Approval], Receipt] | None = None,
    ) -> None:
        self._workspace = workspace
        self._review = Review(workspace, Session("dialog", person), approve=approve, to_agent=True)
        self._person = Approval(person)
        self._covering: Approval | None = None
        self._name = name
        self._modern = modern
        self._prefix = prefix
        self._item: ReviewItem | None = None
        self._shown: tuple[str, ...] = ()
        self._rounds = _ROUNDS
        self._options: list[Message] = []
        self._further: dict[str, tuple[tuple[RootId, str], ...]] = {}
        self._also: tuple[tuple[RootId, str], ...] = ()
        self._parts: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._part: tuple[str, tuple[int, ...]] | None = None
        self.change = change
        self.receipt: Receipt | None = None
        self.done = False

    @property
    def is_open(self) -> bool:
        """Whether the person is to be asked, and has not been asked too often."""
        return not self.done and self._rounds > 0

    @property
    def call_id(self) -> str:
        """The id of the call that the person is shown."""
        return f"{self._prefix}-{self.change}" if self._prefix else self.change

    def diff(self) -> str:
        """The whole change as text, with everything hidden written out."""
        proposal = self._look().entry.proposal
        diff = self._workspace.diff(proposal)
        self._shown = _answered(diff, proposal.rule)
        return readable(diff)

    def question(self) -> ApprovalQuestion | None:
        """Make the question for the dialog; None where the person has allowed such changes before.

        Raises:
            NoChangeError: The change waits no more.
        """
        item = self._look()
        proposal = item.entry.proposal
        self._covering = self._workspace.approving.granted.covering(proposal)
        if self._covering is not None:
            return None
        shown = exhibit(
            self._workspace, proposal, self._name, modern=self._modern, since=item.since
        )
        self._shown = _answered(shown.diff, proposal.rule)
        self._options = self._choices(proposal) if shown.whole else [_LEAVE, _REFUSE]
        self._parts = _by_file(item) if shown.whole else {}
        self._options[-1:-1] = [
            {
                "optionId": option,
                "name": f"Allow only {name}; the other files wait",
                "kind": "allow_once",
            }
            for option, (name, _) in self._parts.items()
        ]
        call = {
            "toolCallId": self.call_id,
            "title": f"{self._prefix}: {shown.title}" if self._prefix else shown.title,
            "kind": "edit",
            "status": "pending",
            "content": list(shown.contents) if self._modern else shown.blocks,
            "locations": list(shown.locations),
        }
        return ApprovalQuestion(call, self._options, shown.text if self._modern else "")

    def _look(self) -> ReviewItem:
        self._item, self._part, self._also = self._review.item(self.change), None, ()
        return self._item

    def understand(self, option: object) -> bool | None:
        """Whether a chosen option allows the change; None for none, or for deciding later."""
        self._part = self._parts.get(option) if isinstance(option, str) else None
        if option == LATER or option not in [one["optionId"] for one in self._options]:
            return None
        self._also = self._further.get(str(option), ())
        return option != _REJECT

    def _choices(self, proposal: Proposal) -> list[Message]:
        """The options of a dialog that shows the whole change; sets what those for longer than once stand for."""
        scope, paths = self._workspace.approving.granted.scope(proposal), proposal.changes.paths
        options: list[Message] = [
            {"optionId": _ALLOW, "name": "Allow this change", "kind": "allow_once"}
        ]
        self._further = {}
        if scope != "change":
            names = [visible(posixpath.basename(path.path)) for path in paths]
            files = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            said = f"Allow all changes of {files} in this session"
            options.append({"optionId": _FILE, "name": said, "kind": "allow_always"})
            self._further[_FILE] = tuple((path.root, pattern_of(path)) for path in paths)
        if scope == "session":
            said = "Allow all changes in this session"
            if proposal.rules != (PREVIEW_MODE,):
                said += f" that {visible(proposal.rule)} asks about"
            options.append({"optionId": _SESSION, "name": said, "kind": "allow_always"})
            self._further[_SESSION] = tuple((root, "**") for root in {path.root for path in paths})
        return [*options, _REFUSE]

    def carry_out(self, *, allowed: bool) -> None:
        """Do what the person has decided.

        Args:
            allowed: What they have said.

        Raises:
            UserDeniedError: They refused the change, and it waits no more.
            StaleFileError: Its lines were changed meanwhile; it waits no more, so that the agent reads what the
                file holds and not what it has proposed.
            FilepactError: It cannot be done now; it waits as before.
        """
        item = self._item or self._look()
        if not allowed:
            self._review.decide(item, (), _numbers(item))
            raise UserDeniedError(
                "the person refused this change",
                hint="Ask what they want instead.",
                change=self.change,
            )
        granted = self._workspace.approving.granted
        for root, pattern in self._also:
            granted.give(item.entry.proposal, pattern, self._person, root)
        self._also = ()
        name, chosen = self._part or ("", ())
        for _ in range(_TRIES):
            try:
                result = self._review.decide(item, chosen or _numbers(item), by=self._covering)
            except StaleFileError:
                self.withdraw(self._person.actor, "allowed, and its lines were changed meanwhile")
                raise
            if result.receipt is not None:
                told = f"The person has allowed only {name}; what is left waits as {result.waits}."
                notes = (*result.receipt.notes, *([told] if name else []))
                self.receipt, self.done = replace(result.receipt, notes=notes), True
                return
            self.change = str(result.waits)
            item = self._item = self._review.item(self.change)
            proposal = item.entry.proposal
            self.receipt = Receipt(
                proposal.id, "pending", proposal.summary, diff=result.diff, rule=proposal.rule
            )
            if not self._is_what_was_shown(proposal):
                break
        self._rounds -= 1

    def _is_what_was_shown(self, proposal: Proposal) -> bool:
        """Whether a change is the one that was shown, at the only place where its lines stand."""
        diff = self._workspace.diff(proposal)
        if _answered(diff, proposal.rule) != self._shown:
            return False
        # Of lines that stand there twice, what lies farther off may tell which of them were meant.
        texts = [f"\n{one.before}\n" for one in self._workspace.texts(proposal) if one.before]
        return all(
            text.find(lines, text.find(lines) + 1) < 0
            for lines in _old_lines(diff)
            for text in texts
        )

    def withdraw(self, by: Actor, reason: str) -> None:
        """Refuse the change because nobody waits for the answer any more."""
        with suppress(FilepactError):
            self._workspace.reject(self.change, Approval(by, reason))


def _numbers(item: ReviewItem) -> tuple[int, ...]:
    return tuple(hunk.number for hunk in item.hunks)


def _by_file(item: ReviewItem) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The files that can be allowed alone, by their options, with the numbers of their hunks."""
    if not item.divisible or not 1 < len(item.files) <= _MOST_ONLY:
        return {}
    return {
        f"{_ONLY}{number}": (visible(one.path.path), tuple(hunk.number for hunk in one.hunks))
        for number, one in enumerate(item.files, start=1)
    }
