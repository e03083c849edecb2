"""Commands `workspace`: shared workspaces on object storage, and the folders that are their checkouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.config.folders import state_folder
from filepact.values import asdict
from filepact_cli.context import login_name, opened
from filepact_cli.render import count
from filepact_cli.screen import DONE, FAILED, CommandAnswer, TerminalText
from filepact_cli.wording import size

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from filepact_cli.screen import Terminal

__all__ = [
    "check",
    "checkout",
    "create",
    "export",
    "gc",
    "import_",
    "status",
    "sync",
]

_SHOWN = 20


def create(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Make a shared workspace."""
    from filepact_fleet.sharing import SharedPlace  # noqa: PLC0415 - loads an object store's client

    SharedPlace(arguments.url).create(login_name())
    return _said(f"Made an empty shared workspace at {arguments.url}.", {"url": arguments.url})


def import_(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Take a folder or a commit in."""
    from filepact_fleet.sharing import SharedPlace  # noqa: PLC0415 - as above

    place, by, replace = SharedPlace(arguments.url), login_name(), arguments.replace
    if arguments.revision is None:
        done = place.take_in(arguments.directory, by, replace=replace)
    else:
        done = place.take_revision(arguments.directory, arguments.revision, by, replace=replace)
    source = f"commit {done.commit[:12]}" if done.commit else "the folder"
    text = f"Version {done.number} has {count(done.files, 'file')} of {source}."
    return _said(text, asdict(done), left_out=done.left_out)


def checkout(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Make a folder a checkout."""
    from filepact_fleet.sharing import begin_checkout  # noqa: PLC0415 - as above

    folder = arguments.directory
    number, files = begin_checkout(arguments.url, folder, state_folder(arguments.state))
    text = f"Checked out version {number}, {count(files, 'file')}. Serve it: filepact mcp {folder}"
    return _said(text, {"url": arguments.url, "number": number, "files": files})


def sync(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Bring and send."""
    from filepact_fleet.sharing import sync_checkout  # noqa: PLC0415 - as above

    with opened(arguments) as workspace:
        done = sync_checkout(workspace, login_name(), ours=arguments.ours, theirs=arguments.theirs)
    text = f"Version {done.number}: {count(len(done.brought), 'file')} brought, {len(done.sent):,} sent."
    lines = [
        *_listed("changed here and there, left as it is here", done.conflicts),
        *_listed("left out", done.left_out),
    ]
    if done.conflicts:
        lines.append("`--ours` or `--theirs` says which one counts.")
    code = FAILED if done.conflicts else DONE
    return CommandAnswer((TerminalText("\n".join([text, *lines]) + "\n"),), asdict(done), code)


def status(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """How a checkout differs."""
    from filepact_fleet.sharing import shared_status  # noqa: PLC0415 - as above

    with opened(arguments) as workspace:
        found = shared_status(workspace)
    lines = [
        f"{found.url}: version {found.newest}, this folder is at {found.number}",
        *_listed("changed here", found.ours),
        *_listed("changed there", found.theirs),
        *_listed("left out", found.left_out),
    ]
    return _said("\n".join(lines), asdict(found))


def export(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Write the newest version into a folder, or as a commit."""
    from filepact_fleet.sharing import SharedPlace  # noqa: PLC0415 - as above

    if arguments.branch is not None:
        done = SharedPlace(arguments.url).commit(arguments.directory, arguments.branch)
        what = f"commit {done.commit[:12]} of {arguments.branch}"
        if done.made:
            text = f"Wrote version {done.number}, {count(done.files, 'file')}, as {what}."
        else:
            text = f"Nothing to write: {what} holds version {done.number} already."
        return _said(text, asdict(done))
    head, files = SharedPlace(arguments.url).write_out(arguments.directory)
    text = f"Wrote version {head.number}, {count(len(files), 'file')}."
    return _said(text, {"number": head.number, "files": len(files)})


def check(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Read everything, and say what it takes."""
    from filepact_fleet.sharing import SharedPlace  # noqa: PLC0415 - as above

    place = SharedPlace(arguments.url)
    head, figures = place.figures()
    damaged = list(place.check())
    says = (
        f"Version {head.number}: {count(figures.files, 'file')}, {size(figures.size)}, stored as {size(figures.named)}; "
        f"{count(figures.objects, 'object')} in all, {size(figures.stored)}."
    )
    lines = [
        says,
        *_listed("cannot be read", [f"{path}: {error.message}" for path, error in damaged]),
    ]
    if not damaged:
        lines.append("All of it can be read and is as it was written.")
    facts = {
        "number": head.number,
        **asdict(figures),
        "damaged": [[path, error.code] for path, error in damaged],
    }
    answer = _said("\n".join(lines), facts)
    return CommandAnswer(answer.spans, facts, FAILED if damaged else DONE)


def gc(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """One round of upkeep."""
    from filepact_fleet.sharing import SharedPlace  # noqa: PLC0415 - as above

    done = SharedPlace(arguments.url).collect(login_name(), arguments.grace * 3_600)
    text = (
        f"Removed {count(done.removed, 'object')} ({size(done.freed)}). {done.marked:,} more are named by nothing now, "
        f"{done.held:,} of them kept for checkouts. {count(done.packed, 'small pack')} made into large ones."
    )
    return _said(text, asdict(done))


def _said(text: str, facts: dict[str, object], left_out: Iterable[str] = ()) -> CommandAnswer:
    lines = [text, *_listed("left out", left_out)]
    return CommandAnswer((TerminalText("\n".join(lines) + "\n"),), facts)


def _listed(what: str, names: Iterable[str]) -> list[str]:
    all_names = list(names)
    shown = [f"  {what}: {name}" for name in all_names[:_SHOWN]]
    more = len(all_names) - len(shown)
    return [*shown, f"  and {more:,} more"] if more > 0 else shown
