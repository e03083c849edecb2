"""Declares the commands over the journal: looking, going back, deciding, and its audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact_cli.parser import CHANGE, RECEIPT, add_dry_run, add_unattended, count, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_cli.parser import CommandGroup

__all__ = ["add_journal_commands"]


def add_journal_commands(group: CommandGroup) -> None:
    """Add them, in the order in which the help shows them."""
    _add_looking_back(group)
    _add_going_back(group)
    _add_reviewing(group)
    _add_audit(group)


def _add_looking_back(group: CommandGroup) -> None:
    add = group.add(
        "log",
        "history:log",
        "list what was done, newest first",
        "filepact log src/app.py -n 5",
        "With --asked: the questions that agents and filepact asked you, each answer and who gave it, what the rules "
        "refused, and the changes that agents reported from their own tools. With --reads: the files that agents "
        "read, once per turn.",
        answers="operations; with --turns: turns; with --asked: asked; with --reads: reads",
    )
    add(
        "path",
        metavar="PATH",
        nargs="?",
        help="only operations on this file or beneath this folder",
    )
    add("-n", "--limit", metavar="N", type=count, help="at most N (default: 20; with --since all)")
    add("--all", action="store_true", help="without a limit")
    add(
        "--since",
        metavar="TIME",
        help="only from then on: 10m, 1h30m, '2 days', today, yesterday, 14:30 or 2026-01-31T14:30",
    )
    add(
        "--turns",
        action="store_true",
        help="group by turn, or session, with what became of each file",
    )
    add("--asked", action="store_true", help="list questions, answers and refusals instead")
    add("--reads", action="store_true", help="list what agents read instead")
    add = group.add(
        "show",
        "history:show",
        "show all details of one operation or proposal",
        "filepact show c4k2m",
        answers=f"diff, {CHANGE}, and hunks where there are several",
    )
    add("operation", metavar="OP", help="its id, or the first characters of it")
    add = group.add(
        "diff",
        "history:diff",
        "print what an operation changed, or a proposal would change, as a patch",
        "filepact diff c4k2m | git apply -R",
        answers="id, diff",
    )
    add(
        "operation",
        metavar="OP",
        nargs="?",
        help="its id, or the first characters of it (default: the newest operation)",
    )
    group.add(
        "status",
        "state:status",
        "show the folders and the journal in use, and what happened last",
        "filepact status",
        answers="roots, origin, state, mode, operations, pending, pending_in_all, journal_bytes, moved, unwatched, last",
    )


def _add_going_back(group: CommandGroup) -> None:
    _add_undo(group)
    add = group.add(
        "redo",
        "history:redo",
        "bring back what was undone",
        "filepact redo",
        "Of some paths only, or with --partly, what comes back is a new operation, and the rest can still be brought back "
        "by the id of the undo.",
        answers=RECEIPT,
    )
    add(
        "what",
        metavar="OP|PATH",
        nargs="*",
        help="an id, or its first characters (default: the one undone last); files and folders: only these of it",
    )
    _add_partly(add, "bring back")
    add_dry_run(add)
    add_unattended(add)
    _add_places(group)


def _add_undo(group: CommandGroup) -> None:
    add = group.add(
        "undo",
        "history:undo",
        "undo operations, and keep later changes",
        "filepact undo --turn --dry-run",
        "Without arguments: undoes the newest operation that is still in force. What you typed in an editor stays. "
        "A change that only a guard has seen may be your own, so name its id. If the operation is your own, or not of the "
        "session that worked last, it shows what it would undo and asks; without a terminal, name it. --since undoes what "
        "agents did; add --all for everybody's changes. Several operations are undone as one, "
        "which `filepact redo` brings back. If the same lines were changed since, nothing is done, and all such files "
        "are shown. Options and paths combine: `--session S src` means what that session did below src. Paths alone "
        "mean the last operation on each of them. The exit code is 1 if something of it cannot be brought back.",
        answers=RECEIPT,
    )
    add(
        "what",
        metavar="OP|PATH",
        nargs="*",
        help="ids of operations, or their first characters; or files and folders",
    )
    add(
        "--turn",
        metavar="N",
        nargs="?",
        const="newest",
        help="a turn of an agent, by its number or name in `filepact log --turns` (default: the newest "
        "that is not undone)",
    )
    add(
        "--session",
        metavar="S",
        help="everything that a session did, by its id or the first characters of it",
    )
    add("--agent", metavar="NAME", help="everything that an agent did")
    add(
        "--since",
        metavar="TIME",
        help="everything that agents did since then: 10m, 1h30m, '2 days', today, yesterday, 14:30 or "
        "2026-01-31T14:30",
    )
    _add_everybody(add, "with --since: ")
    _add_partly(add, "undo")
    add_dry_run(add)
    add_unattended(add)


def _add_everybody(add: Callable[..., Any], when: str = "") -> None:
    add(
        "--all",
        action="store_true",
        help=f"{when}also what you did yourself, and what nobody is known to have done",
    )


def _add_partly(add: Callable[..., Any], verb: str) -> None:
    add(
        "--partly",
        action="store_true",
        help=f"{verb} what is possible, and leave the other files as they are",
    )
    add("--diff", action="store_true", help="also show every line that changes")


def _add_places(group: CommandGroup) -> None:
    add = group.add(
        "checkpoint",
        "history:checkpoint",
        "name the current state, to restore it later",
        "filepact checkpoint before-refactoring",
        "Without NAME: lists the checkpoints of this folder.",
        answers="name, root, seq, created; without a name: checkpoints",
    )
    add("name", metavar="NAME", nargs="?", help="up to 100 characters without a slash")
    add = group.add(
        "restore",
        "history:restore",
        "undo what agents did since a checkpoint, as one new operation",
        "filepact restore before-refactoring --dry-run",
        "What you changed yourself in between stays, and what nobody is known to have changed: the answer names it. "
        "If several sessions of agents worked since then, it shows what each of them did and asks; without a terminal, "
        "say whose with --session or --agent. `filepact redo` goes forward again. The exit code is 1 if something cannot be "
        "brought back.",
        answers=RECEIPT,
    )
    add("name", metavar="NAME", nargs="?", help="the checkpoint")
    add("paths", metavar="PATH", nargs="*", help="only these files and folders")
    add("--before", metavar="OP", help="instead of NAME: the state before this operation")
    add("--session", metavar="S", help="only what a session did, by its id or the first characters")
    add("--agent", metavar="NAME", help="only what an agent did")
    _add_everybody(add)
    _add_partly(add, "undo")
    add_dry_run(add)
    add_unattended(add)


def _add_reviewing(group: CommandGroup) -> None:
    add = group.add(
        "approve",
        "deciding:approve",
        "approve changes that wait for your decision, and make them",
        "filepact approve c4k2m",
        "Shows the whole change first, and asks. If a file has changed since the proposal, nothing is done. The change is "
        "then adapted to the file, shown, and waits under a new id. Several changes are made one by one; the exit code "
        "is 1 if one of them could not be made.",
        answers=f"of one change: {RECEIPT}, grant; of several: approved, failed",
    )
    _add_selection(add, "approve")
    add(
        "--hunks",
        metavar="N",
        type=numbers,
        help="only these hunks, such as 1,3-5, by their numbers in `filepact show ID`; the others wait "
        "under a new id",
    )
    add("--reject-others", action="store_true", help="with --hunks: the other hunks are rejected")
    add("--reason", metavar="TEXT", default="", help="why, for the agent to read")
    add(
        "--also",
        metavar="GLOB",
        default="",
        help="also approve later changes by this session to files like these, such as 'docs/**', if the same "
        "rules ask; see `filepact policy grants`",
    )
    add_unattended(add)
    add = group.add(
        "reject",
        "deciding:reject",
        "reject changes that wait for your decision",
        'filepact reject c4k2m --reason "keep the old name"',
        "Rejects several changes together, or none if somebody decides about one of them at the same moment. "
        "A rejected change cannot be approved later, and its text is deleted.",
        answers=f"of one change: {CHANGE}; of several: rejected",
    )
    _add_selection(add, "reject")
    add(
        "--hunks",
        metavar="N",
        type=numbers,
        help="only these hunks; the others wait, under a new id",
    )
    add("--reason", metavar="TEXT", default="", help="why, for the agent to read")
    add_unattended(add)


def _add_selection(add: Callable[..., Any], verb: str) -> None:
    """Add what says which proposals are meant."""
    add(
        "operation",
        metavar="ID",
        nargs="*",
        help="proposals, each by its id, or at least the first four characters of it",
    )
    add(
        "--all",
        action="store_true",
        help=f"{verb} every change that waits; --agent, --path and --session narrow it",
    )
    add("--session", metavar="S", help="every change of a session: its id, or the start of it")
    add("--agent", metavar="NAME", default="", help="with --all: only what this agent proposed")
    add("--path", metavar="PATH", help="with --all: only what changes this file or folder")


def _add_audit(group: CommandGroup) -> None:
    below = group.nested(
        "audit",
        "verify, sign, export or count the audit log",
        "The audit log records every call, read, refusal, proposal, decision and change in all your projects, "
        "but never the contents of files.",
    )
    add = below.add(
        "verify",
        "audit:verify",
        "check that no record of the audit log was changed, added or removed",
        "filepact audit verify --heads /mnt/backup/heads.txt",
        "Compares it with the journal too, and with signed heads kept where `heads` in [audit] of your settings says. "
        "The exit code is 1 if anything was changed or the two differ, 3 if nothing was recorded yet, and 4 if the log "
        "is whole but could not be compared with anything. Anybody who can write to the state folder can rewrite log and "
        "journal together. Only signed heads that you keep elsewhere reveal this: see --heads.",
        answers="sound, compared, records, first, last, signed, heads, taken, operations, unlogged, keys, problems, notes",
    )
    add(
        "--heads",
        metavar="FILE",
        help="signed heads that you kept elsewhere; without any usable head in it, the exit code is 4",
    )
    add(
        "--key",
        metavar="KEY",
        action="append",
        help="the verifier key of their signatures (default: the keys that the log names)",
    )
    below.add(
        "sign",
        "audit:sign",
        "sign the audit log as it is now, and print the signed head",
        "filepact audit sign >> /mnt/backup/heads.txt",
        "Keep signed heads where agents cannot write. Or set heads in [audit] of your settings, and filepact does it. "
        "It also signs a head after every thousand records.",
        answers="head",
    )
    add = below.add(
        "export",
        "audit:export",
        "print the audit log, one JSON object per line",
        "filepact audit export --format ocsf --since today",
        answers="records",
    )
    add(
        "--format",
        choices=("jsonl", "ocsf"),
        default="jsonl",
        help="jsonl: the records as they are; ocsf: as OCSF 1.6 events, File System Activity (default: jsonl)",
    )
    _add_records(add)
    add = below.add(
        "stats",
        "audit:stats",
        "count the records of the audit log by agent, tool and error code",
        "filepact audit stats --since '7 days'",
        answers="records, days, files, bytes, events, agents, codes, tools",
    )
    _add_records(add)


def _add_records(add: Callable[..., Any]) -> None:
    add("--since", metavar="TIME", help="only since then, with times as for `filepact undo`")
    add("--agent", metavar="NAME", help="only what this agent did")
    add("--session", metavar="S", help="only one session: its id, or the first characters of it")
