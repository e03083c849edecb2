"""Declares the commands over the journal: looking, going back, deciding, and keeping it sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.cli.parser import add_dry_run, add_unattended, count

if TYPE_CHECKING:
    from filepact.faces.cli.parser import CommandGroup

__all__ = ["add_journal_commands"]


def add_journal_commands(group: CommandGroup) -> None:
    """Add them, in the order in which the help shows them."""
    _add_looking_back(group)
    _add_going_back(group)
    _add_reviewing(group)
    _add_state(group)


def _add_looking_back(group: CommandGroup) -> None:
    add = group.add(
        "log",
        "history:log",
        "list what was done, newest first",
        "filepact log src/app.py -n 5",
        "With --asked: what agents behind `filepact acp` asked a person to permit, what filepact "
        "itself asked, how that was answered and by whom, what the rules refused, and what agents "
        "told of the changes that they made by themselves. With --reads: which files agents were "
        "shown, each once a turn.",
    )
    add(
        "path",
        metavar="PATH",
        nargs="?",
        help="only operations on this file or beneath this folder",
    )
    add("-n", "--limit", metavar="N", type=count, default=20, help="most operations (default: 20)")
    add("--all", action="store_true", help="all of them")
    add("--turns", action="store_true", help="by turn, or session, with what became of each file")
    add("--asked", action="store_true", help="questions, answers and refusals instead")
    add("--reads", action="store_true", help="what agents read instead")
    add = group.add(
        "show",
        "history:show",
        "show one operation or proposal with everything known about it",
        "filepact show c4k2m",
    )
    add("operation", metavar="OP", help="its id, or the beginning of it")
    add = group.add(
        "diff",
        "history:diff",
        "print what an operation changed, or a proposal would change, as a patch",
        "filepact diff c4k2m | git apply -R",
    )
    add(
        "operation",
        metavar="OP",
        nargs="?",
        help="its id, or the beginning of it (default: the newest operation)",
    )
    group.add(
        "status", "state:status", "say what is used here and what happened last", "filepact status"
    )


def _add_going_back(group: CommandGroup) -> None:
    _add_undo(group)
    add = group.add("redo", "history:redo", "bring back what was undone", "filepact redo")
    add(
        "operation",
        metavar="OP",
        nargs="?",
        help="its id, or the beginning of it (default: the last that was undone)",
    )
    add_dry_run(add)
    add_unattended(add)
    _add_places(group)


def _add_undo(group: CommandGroup) -> None:
    add = group.add(
        "undo",
        "history:undo",
        "take operations back, and keep what was changed since",
        "filepact undo --turn --dry-run",
        "Without arguments: the newest in force, but for what was typed in an editor. What is selected is taken back as "
        "one new operation, which `filepact redo` brings back. Where the same lines were changed since, nothing is done "
        "and all such files are shown. All that is said has to hold: `--session S src` is what the session did "
        "beneath src. Files alone: what was done last to each of them.",
    )
    add(
        "what",
        metavar="OP|PATH",
        nargs="*",
        help="ids of operations, or their beginnings; or files and folders",
    )
    add(
        "--turn",
        metavar="N",
        nargs="?",
        const="newest",
        help="a turn of an agent: its number in `filepact log --turns`, or its name (default: the newest that is in force)",
    )
    add("--session", metavar="S", help="all that a session did; its id, or the beginning of it")
    add("--agent", metavar="NAME", help="all that an agent did")
    add(
        "--since",
        metavar="TIME",
        help="all that was begun since then: 10m, 1h30m, '2 days', today, yesterday, 14:30, 2026-01-31T14:30",
    )
    add("--partly", action="store_true", help="leave files that cannot go back, and do the others")
    add_dry_run(add)
    add_unattended(add)


def _add_places(group: CommandGroup) -> None:
    add = group.add(
        "checkpoint",
        "history:checkpoint",
        "name this moment, to come back to it",
        "filepact checkpoint before-refactoring",
    )
    add("name", metavar="NAME", help="up to 100 characters without a slash")
    group.add(
        "checkpoints",
        "history:checkpoints",
        "list the checkpoints of this folder",
        "filepact checkpoints",
    )
    add = group.add(
        "restore",
        "history:restore",
        "bring every changed file back to a checkpoint, as one new operation",
        "filepact restore before-refactoring --dry-run",
        "What others wrote between the changes that are taken back stays.",
    )
    add("name", metavar="NAME", nargs="?", help="the checkpoint")
    add("--before", metavar="OP", help="instead, to what was before this operation")
    add_dry_run(add)
    add_unattended(add)


_PROPOSAL = "the proposal's id, or the beginning of it, four characters at least"


def _add_reviewing(group: CommandGroup) -> None:
    group.add(
        "pending", "history:pending", "list the changes that wait for a person", "filepact pending"
    )
    add = group.add(
        "approve",
        "history:approve",
        "do a change that waits",
        "filepact approve c4k2m",
        "Shows the change first, whole, and asks. Where a file has moved since it was proposed, nothing is done: what "
        "fits the file now waits under another id, and is shown.",
    )
    add("operation", metavar="ID", help=_PROPOSAL)
    add_unattended(add)
    add = group.add(
        "reject",
        "history:reject",
        "refuse a change that waits",
        'filepact reject c4k2m --reason "keep the old name"',
        "With --all everything that waits is refused, or nothing where somebody decides about one in that moment. What "
        "was refused cannot be approved any more, and what it was to hold is given up.",
    )
    add("operation", metavar="ID", nargs="?", help=_PROPOSAL)
    add("--all", action="store_true", help="everything that waits, or what the next two say of it")
    add("--agent", metavar="NAME", default="", help="with --all: only what this agent proposed")
    add("--path", metavar="PATH", help="with --all: only what changes this file or folder")
    add("--reason", metavar="TEXT", default="", help="why; the agent can read it")
    add_unattended(add)


def _add_state(group: CommandGroup) -> None:
    below = group.nested(
        "state",
        "check the journal, and repair it",
        "The state folder holds the journal of all your projects: see `filepact status`.",
    )
    below.add(
        "check",
        "state:check",
        "read everything in the journal, and say what is damaged and cannot be taken back",
        "filepact state check",
        "Every text is put together and compared with its id. Also what the state folder takes, "
        "who has the journal open, and what else lies there. Nothing is changed, and servers may "
        "run. The exit code is 1 if anything is damaged.",
    )
    below.add(
        "repair",
        "state:repair",
        "make a sound journal of what can be read of a damaged one",
        "filepact state repair",
        "The damaged one is kept in the state folder, and what is lost is listed. No server may "
        "run meanwhile. The exit code is 3 if there is nothing to repair.",
    )
