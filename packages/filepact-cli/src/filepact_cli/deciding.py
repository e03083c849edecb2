"""Commands about what waits for a person: list it, watch it, approve it, reject it."""

from __future__ import annotations

from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Final

from filepact.config.person import read_settings
from filepact.domain.operation import Approval, moment, who
from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, ProposalChangedError
from filepact.text.confusables import visible
from filepact.values import replace
from filepact_cli.context import here, opened, person
from filepact_cli.history import agrees, at_terminal, decider, hunks_of, shown_change
from filepact_cli.render import (
    answer_receipt,
    count,
    details,
    facts,
    lines_of,
    listed,
    show_diff,
)
from filepact_cli.review import Review
from filepact_cli.screen import (
    DONE,
    FAILED,
    NOTHING,
    CommandAnswer,
    TerminalText,
    plain,
)
from filepact_cli.wording import how_to_decide

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal
    from filepact.workspace.location import Location
    from filepact.workspace.workspace import Workspace
    from filepact_cli.review import ReviewEntry
    from filepact_cli.screen import Style, Terminal

__all__ = ["approve", "grants", "notify", "pending", "reject", "watch"]

_LOOK_AGAIN: Final = 3_600.0
_NOTIFIED: Final = 5  # names of files in a notice
_NOTIFYING: Final = 5  # seconds that it may take
_EVENTS: Final[dict[str, tuple[str, Style]]] = {
    "new": ("waits", "title"),
    "fresh": ("fresh", "good"),
    "moved": ("moved", "warn"),
    "stale": ("stale", "bad"),
    "gone": ("settled", "dim"),
}


# -- listing -----------------------------------------------------------------------------------------


def pending(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """List the proposals that wait for a person, oldest first."""
    with opened(arguments) as workspace:
        waiting = workspace.pending()
        spans, known = listed(workspace, waiting, screen)
    if waiting and screen.terminal:
        spans.append(TerminalText(f"\n{how_to_decide(screen.columns)}", "dim"))
    return CommandAnswer(
        tuple(spans) or plain("Nothing waits for you.\n"), {"pending": known}, long=True
    )


def watch(arguments: Namespace, screen: Terminal) -> None:
    """Tell of what waits, and of what becomes of it, a line for each, until it is interrupted."""
    notifies = read_settings(arguments.config).notify
    with opened(arguments) as workspace:
        review, never = Review(workspace, person()), Event()
        known: dict[str, ReviewEntry] = {}
        seen: tuple[ReviewEntry, ...] = ()
        while True:
            found = review.wait(seen, _LOOK_AGAIN, never)
            now = {str(one.id): one for one in found}
            news = [one for key, one in now.items() if key not in known]
            for one in news:
                _tell(workspace, "new", one, screen)
            for key, one in now.items():
                before = known[key].status if key in known else "fresh"
                if before != one.status:
                    _tell(workspace, one.status, one, screen)
            for key, one in known.items():
                if key not in now:
                    _tell(workspace, "gone", one, screen)
            if news:
                screen.bell()
                if notifies:
                    notify([workspace.show(path) for one in news for path in _paths(one)])
            known, seen = now, found


def notify(names: Sequence[str]) -> bool:
    """Tell the person's desktop that something waits: the names of files, and nothing else.

    Returns:
        Whether there is a program that could be asked to.
    """
    import html  # noqa: PLC0415 - few want to be told so
    import shutil  # noqa: PLC0415 - as above
    import subprocess  # noqa: PLC0415 - as above

    found = shutil.which("notify-send")
    if found is None or not found.startswith("/"):
        return False
    # Some desktops take what looks like markup for it.
    shown = [html.escape(" ".join(visible(one).split())[:200]) for one in names[:_NOTIFIED]]
    if len(names) > _NOTIFIED:
        shown.append(f"and {len(names) - _NOTIFIED} more")
    title = f"A change of {count(len(names), 'file')} waits for you"
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(  # noqa: S603 - the desktop's own
            [found, "--app-name=filepact", "--", title, "\n".join(shown)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_NOTIFYING,
        )
    return True


def _paths(entry: ReviewEntry) -> tuple[WorkspacePath, ...]:
    return entry.proposal.changes.paths


def _tell(workspace: Workspace, event: str, entry: ReviewEntry, screen: Terminal) -> None:
    proposal = entry.proposal
    word, style = _EVENTS[event]
    if event == "gone":
        proposal = workspace.proposal(proposal.id)
        word = proposal.state
    if screen.json:
        counted = lines_of(workspace, proposal) if event == "new" else None
        screen.json_line({"event": word, **facts(workspace, proposal, counted)})
        return
    names = [" ".join(visible(workspace.show(one)).split()) for one in _paths(entry)]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    screen.write(
        (
            TerminalText(f"{word:<10}", style),
            TerminalText(f"  {proposal.id}  {who(proposal.session.actor)}  {names[0]}{more}\n"),
        )
    )


# -- deciding ----------------------------------------------------------------------------------------


def approve(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Do what was proposed; a person at a terminal is shown it and asked."""
    word = Approval(decider(arguments, screen).actor, arguments.reason)
    if arguments.reject_others and arguments.hunks is None:
        raise InvalidParamsError("--reject-others goes with --hunks", hint="Leave it out.")
    _check_selection(arguments)
    with opened(arguments) as workspace:
        if len(arguments.operation) == 1:
            proposal = workspace.proposal(arguments.operation[0])
            return _approve_one(workspace, proposal, word, arguments, screen)
        chosen = _selected(workspace, arguments)
        answers: list[CommandAnswer] = []
        failed: list[tuple[Proposal, FilepactError]] = []
        for one in chosen:
            try:
                answers.append(_approve_one(workspace, one, word, arguments, screen))
            except FilepactError as error:
                failed.append((one, error))
    done = sum(one.code == DONE for one in answers)
    spans = [span for one in answers for span in one.spans]
    spans.append(TerminalText(f"Approved {count(done, 'change')}.\n", "good"))
    spans += (TerminalText(f"{one.id}: {error.report()}\n", "bad") for one, error in failed)
    known = {
        "approved": [one.facts for one in answers if one.code == DONE],
        "failed": [
            {"id": one.id, "code": error.code, "message": error.message, "details": error.details}
            for one, error in failed
        ],
    }
    code = FAILED if failed else DONE if done else NOTHING
    return CommandAnswer(tuple(spans), known, code, long=True)


def _approve_one(
    workspace: Workspace,
    proposal: Proposal,
    word: Approval,
    arguments: Namespace,
    screen: Terminal,
) -> CommandAnswer:
    """Approve one proposal, or hunks of it; what files have moved for is shown and asked about again."""
    if arguments.also:
        workspace.approving.granted.check(proposal, arguments.also)
    answer, done = _carried_out(workspace, proposal, word, arguments, screen)
    if not (arguments.also and answer.code == DONE):
        return answer
    given = workspace.approving.granted.give(done, arguments.also, word)
    said = f"Approved in advance for this session: {visible(given.pattern)} ({given.id}).\n"
    return replace(
        answer,
        spans=(*answer.spans, TerminalText(said, "good")),
        facts={**answer.facts, "grant": given.id},
    )


def _carried_out(
    workspace: Workspace,
    proposal: Proposal,
    word: Approval,
    arguments: Namespace,
    screen: Terminal,
) -> tuple[CommandAnswer, Proposal]:
    numbers: Collection[int] | None = arguments.hunks
    asks = at_terminal(screen) and not arguments.unattended
    while True:
        if asks and not _agrees_to_change(workspace, proposal, numbers, screen):
            nothing = plain("Nothing is done; it waits as before.\n")
            return CommandAnswer(nothing, code=NOTHING), proposal
        try:
            every = {one.number for one in hunks_of(workspace, proposal)}
            if numbers is None and not (word.reason and every):
                return answer_receipt(workspace.approve(proposal.id, word), screen), proposal
            accepts = every if numbers is None else {*numbers}
            receipt, _waits = workspace.approving.decide(
                proposal.id,
                word,
                accept=accepts,
                reject=every - accepts if arguments.reject_others else (),
            )
            assert receipt is not None  # noqa: S101 - something was accepted
            return answer_receipt(receipt, screen), proposal
        except ProposalChangedError as changed:
            if not asks:
                raise
            # Numbers of hunks were meant for what they were shown with.
            proposal, numbers = workspace.proposal(str(changed.details["proposal"])), None
            screen.write(plain(f"\nNothing is done: {changed.message}.\n\n"))
            if since := str(changed.details["since"]):
                screen.write(plain("What has happened since:\n\n"))
                screen.write((*show_diff(since, screen), TerminalText("\nWhat it is now:\n\n")))


def grants(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """List what was approved in advance, or revoke some of it."""
    if arguments.revoke:
        decider(arguments, screen)
    with opened(arguments) as workspace:
        granted = workspace.approving.granted
        for one in arguments.revoke:
            granted.revoke(one)
        every = granted.listed() if arguments.all else granted.in_force()
        roots = {root.path for root in workspace.guard.roots}
        found = [one for one in every if one.root in roots]
    rows = [
        TerminalText(
            f"{one.id}  {visible(one.pattern)}  {'revoked' if one.revoked else 'until ' + moment(one.expires)}\n"
            f"    {who(one.session.actor)}, session {visible(one.session.id)}\n"
            f"    rules: {', '.join(one.rules)}\n"
        )
        for one in found
    ]
    known = [
        {
            "id": one.id,
            "pattern": one.pattern,
            "rules": list(one.rules),
            "agent": one.session.actor.name,
            "session": one.session.id,
            "change": one.change,
            "by": one.by,
            "expires": moment(one.expires),
            "revoked": None if one.revoked is None else moment(one.revoked),
        }
        for one in found
    ]
    code = DONE if found or arguments.revoke else NOTHING
    return CommandAnswer(
        tuple(rows) or plain("Nothing is approved in advance.\n"), {"grants": known}, code
    )


def _agrees_to_change(
    workspace: Workspace, proposal: Proposal, numbers: Collection[int] | None, screen: Terminal
) -> bool:
    """Whether a person at the terminal says yes to what they are shown now."""
    proposal.check_waits()
    hunks = hunks_of(workspace, proposal)
    shown = shown_change(workspace, proposal, hunks, screen, numbers)
    screen.page((*details(workspace, proposal), TerminalText("\n"), *shown))
    if numbers is None:
        return agrees(f"\nDo {proposal.id}?", screen)
    some = ", ".join(map(str, sorted(numbers)))
    return agrees(f"\nDo hunks {some} of {len(hunks)} of {proposal.id}?", screen)


def reject(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Refuse what was proposed."""
    _check_selection(arguments)
    approval = Approval(decider(arguments, screen).actor, arguments.reason)
    with opened(arguments) as workspace:
        if arguments.hunks is not None:
            return _reject_hunks(workspace, arguments, approval)
        chosen = _selected(workspace, arguments)
        workspace.reject_all(chosen, approval)
        refused = [workspace.proposal(one.id) for one in chosen]
        known = [facts(workspace, one, None) for one in refused]
    reason = f": {arguments.reason}" if arguments.reason else "."
    if len(arguments.operation) == 1:
        return CommandAnswer(
            (TerminalText(f"Rejected {refused[0].id}{reason}\n", "warn"),), known[0]
        )
    said = f"Rejected {count(len(refused), 'change')}{reason}\n" if refused else "Nothing waits.\n"
    return CommandAnswer(
        (TerminalText(said, "warn"),), {"rejected": known}, DONE if refused else NOTHING
    )


def _reject_hunks(workspace: Workspace, arguments: Namespace, approval: Approval) -> CommandAnswer:
    proposal = workspace.proposal(arguments.operation[0])
    _receipt, waits = workspace.approving.decide(proposal.id, approval, reject=arguments.hunks)
    left = f"; the others wait as {waits}" if waits else ", which were all"
    said = f"Rejected {count(len(arguments.hunks), 'hunk')} of {proposal.id}{left}.\n"
    known = facts(workspace, workspace.proposal(waits or proposal.id), None)
    return CommandAnswer((TerminalText(said, "warn"),), known)


# -- which -------------------------------------------------------------------------------------------


def _check_selection(arguments: Namespace) -> None:
    """Refuse what does not say plainly which proposals are meant."""
    several = arguments.all or arguments.session is not None
    if bool(arguments.operation) == several:
        raise InvalidParamsError(
            f"`filepact {arguments.command}` needs ID, --all or --session S",
            hint="`filepact review --list` lists what waits, with its ids.",
        )
    if arguments.hunks is not None and (several or len(arguments.operation) != 1):
        raise InvalidParamsError("--hunks goes with one ID", hint="Name it, and leave --all out.")
    if (arguments.agent or arguments.path) and not several:
        raise InvalidParamsError("--agent and --path go with --all", hint="Leave them out.")


def _selected(workspace: Workspace, arguments: Namespace) -> tuple[Proposal, ...]:
    """The proposals that the arguments name, or the pending ones that they select."""
    if arguments.operation:
        named = [workspace.proposal(one) for one in arguments.operation]
        for one in named:
            one.check_waits()
        return tuple({one.id: one for one in named}.values())
    sessions: Sequence[str] | None = None
    if arguments.session is not None:
        sessions = workspace.sessions_named(arguments.session)
        if len(sessions) > 1:
            raise InvalidParamsError(
                f"{len(sessions)} sessions begin with {arguments.session!r}",
                hint="Name more of it; `filepact review --list --json` has them.",
            )
        if not sessions:
            raise NoChangeError(f"no session begins with {arguments.session!r}")
    location = None
    if arguments.path is not None:
        location = workspace.guard.find(here(workspace, arguments.path), "list")
    return tuple(
        one
        for one in workspace.pending()
        if (not arguments.agent or one.session.actor.name == arguments.agent)
        and (sessions is None or one.session.id in sessions)
        and (location is None or any(_is_in(location, path) for path in one.changes.paths))
    )


def _is_in(location: Location, path: WorkspacePath) -> bool:
    folder = location.place.path
    inside = folder in (".", path.path) or path.path.startswith(f"{folder}/")
    return path.root == location.root.path and inside
