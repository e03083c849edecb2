"""Approvals: a change that waits, put to a person in the protocol's dialog until they have decided.

Nothing is sent here.  Each side of the protocol sends the question in its own way and hands in the
answer.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.domain.operation import Actor, Approval, moment, who
from filepact.domain.permission_log import shorten
from filepact.errors import FilepactError, NotFoundError, ProposalChangedError, UserDeniedError
from filepact.text.confusables import readable, visible
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.lines import middle_of
from filepact.values import dataclass, replace
from filepact.workspace.receipt import ENCODING, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal
    from filepact.domain.policy import Policy
    from filepact.workspace.receipt import FileTexts
    from filepact.workspace.workspace import Workspace

__all__ = [
    "LATER",
    "ApprovalQuestion",
    "ApprovalRequest",
    "ProposalSummary",
    "SessionPermissions",
    "exhibit",
]

_ROUNDS: Final = 5  # how often a person is asked about one change whose files move each time

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
_AUTHOR: Final = 80  # characters of an agent's name, which is of its own choice

Message = dict[str, Any]
Scope = Literal["once", "file", "session"]
_SCOPES: Final[tuple[Scope, ...]] = ("once", "file", "session")


@dataclass(frozen=True, slots=True)
class ProposalSummary:
    """What a person is shown of a change that waits.

    Attributes:
        title: One line.
        text: The diff with everything hidden written out; empty where the contents say it all.
        contents: The protocol's diffs.
        locations: Where the files are, with the first line that changes.
        whole: Whether nothing of it is left out; if something is, it cannot be allowed here.
    """

    title: str
    text: str
    contents: tuple[Message, ...]
    locations: tuple[Message, ...]
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
    said = [] if understood else [_fenced(shown, proposal.id)]
    if since:
        moved = _fenced(readable(since), proposal.id)
        said.insert(0, f"The files have changed meanwhile, and nothing is done yet:\n{moved}")
    return ProposalSummary(
        title=_title(proposal),
        text="\n".join(said),
        contents=contents,
        locations=tuple({"path": path, "line": _line(one)} for one, path in named),
        whole=(understood or len(shown) <= _LONGEST) and len(since) <= _LONGEST,
    )


def _title(proposal: Proposal) -> str:
    """The title of a dialog: the change, the rule by which it waits, its author and its time."""
    wanted = visible(f"{proposal.summary} ({proposal.rule})")
    author = shorten(who(proposal.session.actor), _AUTHOR)
    return f"{wanted}, asked for by {author} at {moment(proposal.created)}"


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
        unified(
            *(one.before, one.after),
            old_name=one.path.path,
            new_name=one.path.path,
            git=True,
        )
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


def _fenced(diff: str, change: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", diff)), default=0))
    shown = f"{fence}diff\n{cut_diff(diff, _LONGEST)}\n{fence}"
    if len(diff) <= _LONGEST:
        return shown
    return (
        f"{shown}\nThis is not all of it, so it cannot be allowed here: `filepact diff {change}` "
        "shows the whole, and the commands that `filepact pending` names decide."
    )


_REFUSE: Final[Message] = {"optionId": _REJECT, "name": "Refuse it", "kind": "reject_once"}


class SessionPermissions:
    """What a person has allowed for longer than once, by session.

    Nothing of it outlives the process, and what a rule denies is denied before anybody is asked.
    """

    def __init__(self) -> None:
        self._given: set[tuple[str, str, str]] = set()

    def cover(self, proposal: Proposal) -> bool:
        """Whether a person has said yes to a change like this before it was made."""
        session, rules = proposal.session.id, _rules(proposal)
        return bool(rules) and all(
            (session, rule, "") in self._given or (session, rule, path.absolute) in self._given
            for rule in rules
            for path in proposal.changes.paths
        )

    def options(self, proposal: Proposal, policy: Policy, *, whole: bool = True) -> list[Message]:
        """The options of a dialog; allowing is one only where the change is shown whole."""
        if not whole:
            later = {"optionId": LATER, "name": "Leave it waiting", "kind": "reject_once"}
            return [later, _REFUSE]
        scope = min(
            (_scope(rule, policy) for rule in _rules(proposal)), key=_SCOPES.index, default="once"
        )
        options = [{"optionId": _ALLOW, "name": "Allow this change", "kind": "allow_once"}]
        names = [visible(posixpath.basename(path.path)) for path in proposal.changes.paths]
        files = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
        if scope != "once":
            said = f"Allow all changes of {files} in this session"
            options.append({"optionId": _FILE, "name": said, "kind": "allow_always"})
        if scope == "session":
            said = "Allow all changes in this session"
            if _rules(proposal) != {"preview mode"}:
                said += f" that {visible(proposal.rule)} asks about"
            options.append({"optionId": _SESSION, "name": said, "kind": "allow_always"})
        return [*options, _REFUSE]

    def receive(self, proposal: Proposal, option: object, offered: list[Message]) -> bool | None:
        """Take the chosen option, and remember what it allows for longer than once.

        Returns:
            Whether the change is allowed; None for no option, or for leaving it waiting.
        """
        if option == LATER or option not in [one["optionId"] for one in offered]:
            return None
        for rule in _rules(proposal):
            if option == _SESSION:
                self._given.add((proposal.session.id, rule, ""))
            elif option == _FILE:
                self._given |= {
                    (proposal.session.id, rule, path.absolute) for path in proposal.changes.paths
                }
        return option != _REJECT


def _rules(proposal: Proposal) -> set[str]:
    return set(filter(None, proposal.rule.split(", ")))


def _scope(name: str, policy: Policy) -> Scope:
    """For how long a yes to what a rule asks may count.

    What shows on a change, such as hidden characters, may be another thing in the next; what is
    protected from the start is allowed for a file at most.
    """
    if name == "preview mode":
        return "session"
    rules = [rule for rule in (*policy.rules, *policy.fallbacks) if rule.name == name]
    if not rules or any(rule.signs for rule in rules):
        return "once"
    return "file" if any(rule.layer == "built-in" for rule in rules) else "session"


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """What a person is asked about a change that waits.

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

    Where the files change while the person looks, `carry_out` does nothing, and the next question
    is about what fits by then.

    Args:
        workspace: Has the change.
        change: Its id.
        person: In whose name it is decided.
        grants: What the person has allowed for longer than once.
        name: How the person's program calls a file; None for one that it cannot name.
        modern: Whether the dialog is one of version 2 of the protocol.
        prefix: Stands before the title, and before the id of the call.

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
        grants: SessionPermissions,
        *,
        name: Callable[[WorkspacePath], str | None] = lambda _path: None,
        modern: bool = False,
        prefix: str = "",
    ) -> None:
        self._workspace = workspace
        self._person = Approval(person)
        self._grants = grants
        self._name = name
        self._modern = modern
        self._prefix = prefix
        self._since = ""
        self._rounds = _ROUNDS
        self._proposal: Proposal | None = None
        self._options: list[Message] = []
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
        return readable(self._workspace.diff(self._workspace.proposal(self.change)))

    def question(self) -> ApprovalQuestion | None:
        """Make the question for the dialog; None where the person has allowed such changes before.

        Raises:
            NoChangeError: The change waits no more.
        """
        self._proposal = proposal = self._workspace.proposal(self.change)
        self._part = None
        if self._grants.cover(proposal):
            return None
        shown = exhibit(
            self._workspace, proposal, self._name, modern=self._modern, since=self._since
        )
        policy = self._workspace.guard.policy
        self._options = self._grants.options(proposal, policy, whole=shown.whole)
        self._parts = self._by_file(proposal) if shown.whole else {}
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

    def understand(self, option: object) -> bool | None:
        """Whether a chosen option allows the change; None for none, or for deciding later."""
        self._part = self._parts.get(option) if isinstance(option, str) else None
        return self._proposal is not None and self._grants.receive(
            self._proposal, option, self._options
        )

    def _by_file(self, proposal: Proposal) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The files that can be allowed alone, by their options, with the numbers of their hunks."""
        files: dict[WorkspacePath, list[int]] = {}
        for hunk in self._workspace.approving.hunks(proposal):
            files.setdefault(hunk.path, []).append(hunk.number)
        if not 1 < len(files) <= _MOST_ONLY:
            return {}
        return {
            f"{_ONLY}{number}": (visible(path.path), tuple(hunks))
            for number, (path, hunks) in enumerate(files.items(), start=1)
        }

    def carry_out(
        self, *, allowed: bool, approve: Callable[[str, Approval], Receipt] | None = None
    ) -> None:
        """Do what the person has decided.

        Args:
            allowed: What they have said.
            approve: Does the change; None for the workspace.

        Raises:
            UserDeniedError: They refused the change, and it waits no more.
            FilepactError: It cannot be done any more; it waits as before.
        """
        if not allowed:
            self._workspace.reject(self.change, self._person)
            raise UserDeniedError(
                "the person refused this change",
                hint="Ask what they want instead.",
                change=self.change,
            )
        try:
            if approve is None:
                approve = partial(self._workspace.approve, to_agent=True)
            note = self._divide()
            self.receipt = approve(self.change, self._person)
            self.receipt = replace(self.receipt, notes=(*self.receipt.notes, *note))
            self.done = True
        except ProposalChangedError as changed:
            proposal = self._workspace.proposal(str(changed.details["proposal"]))
            diff, self._since = str(changed.details["diff"]), str(changed.details["since"])
            self.receipt = Receipt(
                proposal.id, "pending", proposal.summary, diff=diff, rule=proposal.rule
            )
            self.change = proposal.id
            self._rounds -= 1

    def _divide(self) -> tuple[str, ...]:
        """Have what was allowed alone stand for itself, and the rest wait; what the agent is told of it."""
        if self._part is None:
            return ()
        approving, (name, numbers) = self._workspace.approving, self._part
        approving.check_unmoved(self.change)
        self._part = None
        done, rest = approving.divide(self.change, self._person, accept=numbers)
        if done is not None:
            self.change = done
        return (f"The person has allowed only {name}; what is left waits as {rest}.",)

    def withdraw(self, by: Actor, reason: str) -> None:
        """Refuse the change because nobody waits for the answer any more."""
        with suppress(FilepactError):
            self._workspace.reject(self.change, Approval(by, reason))
