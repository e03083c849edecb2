"""Declares the commands over the journal: looking, going back, deciding, keeping it sound, and sharing folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.faces.cli.parser import add_dry_run, add_unattended, count, numbers, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.cli.parser import CommandGroup

__all__ = ["add_journal_commands"]


_URL = "the place: s3://bucket/prefix"


def add_journal_commands(group: CommandGroup) -> None:
    """Add them, in the order in which the help shows them."""
    _add_looking_back(group)
    _add_going_back(group)
    _add_guard(group)
    _add_reviewing(group)
    _add_state(group)
    _add_store(group)
    _add_audit(group)
    _add_sharing(group)


def _add_looking_back(group: CommandGroup) -> None:
    add = group.add(
        "log",
        "history:log",
        "list what was done, newest first",
        "filepact log src/app.py -n 5",
        "With --asked: the questions that agents and filepact asked you, each answer and who gave it, what the rules "
        "refused, and the changes that agents reported from their own tools. With --reads: the files that agents "
        "read, once per turn.",
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
    )
    add("operation", metavar="OP", help="its id, or the first characters of it")
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
        help="its id, or the first characters of it (default: the newest operation)",
    )
    group.add(
        "status",
        "state:status",
        "show the folders and the journal in use, and what happened last",
        "filepact status",
    )


def _add_guard(group: CommandGroup) -> None:
    add = group.add(
        "guard",
        "guard:guard",
        "record every change to a folder's files, so that you can undo it",
        "filepact guard ~/project --detach",
        "Works with agents, scripts, formatters and Git, without their help. Changes with less than a second between them "
        "become one operation. The log names the program if the system tells it. What filepact does itself is not "
        "recorded twice. A folder has one guard; `[recording]` in the settings limits what it keeps.",
    )
    add("directory", metavar="DIR", nargs="?", help="the folder (default: see --root)")
    add("--detach", action="store_true", help="run in the background")
    add("--stop", action="store_true", help="stop the guard of this folder")
    add("--status", action="store_true", help="say whether one runs; the exit code is 3 if not")


def _add_going_back(group: CommandGroup) -> None:
    _add_undo(group)
    add = group.add(
        "redo",
        "history:redo",
        "bring back what was undone",
        "filepact redo",
        "Of some paths only, or with --partly, what comes back is a new operation, and the rest can still be brought back "
        "by the id of the undo.",
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
        "Without arguments: undoes the newest operation that is still in force. It skips what you typed in an editor. "
        "A change that only a guard has seen may be your own, so name its id. If the operation is your own, or not of the "
        "session that worked last, it shows what it would undo and asks; without a terminal, name it. --since undoes what "
        "agents did; add --all for everybody's changes. Several operations are undone as one, "
        "which `filepact redo` brings back. If the same lines were changed since, nothing is done, and all such files "
        "are shown. Options and paths combine: `--session S src` means what that session did below src. Paths alone "
        "mean the last operation on each of them. The exit code is 1 if something of it cannot be brought back.",
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


def _add_places(group: CommandGroup) -> None:
    add = group.add(
        "checkpoint",
        "history:checkpoint",
        "name the current state, to restore it later",
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
        "undo what agents did since a checkpoint, as one new operation",
        "filepact restore before-refactoring --dry-run",
        "What you changed yourself in between stays, and what nobody is known to have changed: the answer names it. "
        "If several sessions of agents worked since then, it shows what each of them did and asks; without a terminal, "
        "say whose with --session or --agent. `filepact redo` goes forward again. The exit code is 1 if something cannot be "
        "brought back.",
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
        "pending",
        "deciding:pending",
        "list the changes that wait for your decision",
        "filepact pending --watch",
        "With --watch: prints a line for each change that waits. Then it prints a line for each new proposal, for each "
        "decision, and for each proposal whose files have changed, until you press Ctrl-C. The terminal bell rings for new "
        "ones; the setting `notify` adds desktop notifications. With --json each line is an object.",
    )
    add("--watch", action="store_true", help="keep running, and print each change as it comes")
    add = group.add(
        "review",
        "review:review",
        "review what waits, hunk by hunk, and decide",
        "filepact review",
        "Uses the whole screen if `filepact[review]` is installed, else asks line by line. New proposals appear by "
        "themselves. Proposals whose files have changed are marked. Press ? for the keys. "
        "With --web: prints a link that works once, for one browser on this computer. Ctrl-C ends it.",
        extra="web",
    )
    add(
        "--plain",
        action="store_true",
        help="questions and answers, line by line: for any terminal, and for screen readers",
    )
    add("--web", action="store_true", help="in a page of your own browser")
    add(
        "--port",
        metavar="N",
        type=whole,
        default=0,
        help="with --web: the port of the page (default: any that is free)",
    )
    add_unattended(add)
    add = group.add(
        "approve",
        "deciding:approve",
        "approve changes that wait for your decision, and make them",
        "filepact approve c4k2m",
        "Shows the whole change first, and asks. If a file has changed since the proposal, nothing is done. The change is "
        "then adapted to the file, shown, and waits under a new id. Several changes are made one by one; the exit code "
        "is 1 if one of them could not be made.",
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
        "rules ask; see `filepact grants`",
    )
    add_unattended(add)
    add = group.add(
        "grants",
        "deciding:grants",
        "list what was approved in advance, or revoke it",
        "filepact grants --revoke g4k2m",
        "You approve in advance with `filepact approve ID --also GLOB`. This holds for one session of one agent, for the "
        "rules that asked, and for a day at most. It never holds for rules that look at the text of a change.",
    )
    add(
        "--revoke",
        metavar="ID",
        action="append",
        default=[],
        help="from now on you are asked again",
    )
    add("--all", action="store_true", help="include expired and revoked ones")
    add_unattended(add)
    add = group.add(
        "reject",
        "deciding:reject",
        "reject changes that wait for your decision",
        'filepact reject c4k2m --reason "keep the old name"',
        "Rejects several changes together, or none if somebody decides about one of them at the same moment. "
        "A rejected change cannot be approved later, and its text is deleted.",
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


def _add_state(group: CommandGroup) -> None:
    below = group.nested(
        "state",
        "check the journal, or repair it",
        "The state folder holds the journal of all your projects: see `filepact status`.",
    )
    below.add(
        "check",
        "state:check",
        "check the whole journal, and list damaged parts that cannot be undone",
        "filepact state check",
        "Every text is rebuilt and compared with its id. Also lists what the state folder takes, who "
        "has the journal open, and files there that do not belong to it. Nothing is changed; servers "
        "may be running. The exit code is 1 if anything is damaged.",
    )
    below.add(
        "repair",
        "state:repair",
        "rebuild a damaged journal from what can still be read",
        "filepact state repair",
        "Keeps the damaged one in the state folder, and lists what is lost. No server may be running. "
        "Of a sound journal that differs from the audit log, it records in the log that they differ: "
        "`filepact audit verify` then compares only what comes later. "
        "The exit code is 3 if there is nothing to repair.",
    )
    add = below.add(
        "move",
        "state:move",
        "keep the history of a folder that you have moved or renamed",
        "filepact state move ~/old/project",
        "Call it in the folder, where it lies now. `filepact status`, `log` and `doctor` say when it is needed.",
    )
    add("old", metavar="FOLDER", help="where the folder lay before")


def _add_store(group: CommandGroup) -> None:
    below = group.nested(
        "store",
        "keep the journal in a PostgreSQL database",
        "Set the database's address in FILEPACT_STORE, or as url in [store] of your settings.",
    )
    below.add(
        "status",
        "store:status",
        "show the database, the version of its tables, and this journal",
        "filepact store status",
        "The exit code is 1 if the tables are missing or have another version.",
    )
    add = below.add(
        "migrate",
        "store:migrate",
        "create the tables, or update them to the newest version",
        "filepact store migrate",
        "Older versions of filepact may keep running meanwhile. They are refused as too old when they next open the "
        "journal. The exit code is 3 if there is nothing to do.",
    )
    add(
        "--partitions",
        choices=["day", "month"],
        default="month",
        help="the time that one partition covers; fixed when the tables are created (default: month)",
    )
    add = below.add(
        "copy",
        "store:copy",
        "copy the journal from the state folder into the database",
        "filepact store copy",
        "Stop all filepact servers first. If the copy is interrupted, run it again: it adds only what is missing. At the "
        "end it compares all operations, and every text by its hash. The journal in the state folder is not changed.",
    )
    add("--back", action="store_true", help="copy from the database into the state folder instead")
    add = below.add(
        "prune",
        "store:prune",
        "delete the partitions that are older than some days",
        "filepact store prune --days 90",
        "This affects all journals in the database: deleted operations are no longer in the log and cannot be undone. "
        "Also creates the next partitions. The exit code is 3 if nothing is that old.",
    )
    add("--days", type=float, required=True, metavar="DAYS", help="keep this many days")


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
    )
    add = below.add(
        "export",
        "audit:export",
        "print the audit log, one JSON object per line",
        "filepact audit export --format ocsf --since today",
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
    )
    _add_records(add)


def _add_records(add: Callable[..., Any]) -> None:
    add("--since", metavar="TIME", help="only since then, with times as for `filepact undo`")
    add("--agent", metavar="NAME", help="only what this agent did")
    add("--session", metavar="S", help="only one session: its id, or the first characters of it")


def _add_sharing(group: CommandGroup) -> None:
    below = group.nested(
        "workspace",
        "share files between machines, on object storage",
        "Many machines work with the same files. Each has a checkout, which is an ordinary folder. Set the server, region and account "
        "with AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    )
    add = below.add(
        "create",
        "sharing:create",
        "create an empty shared workspace",
        "filepact workspace create s3://team/project",
        "Tests the server first, and refuses one that does not support conditional writes.",
    )
    add("url", metavar="URL", help=_URL)
    add = below.add(
        "import",
        "sharing:import_",
        "copy a folder or a Git commit into a shared workspace, as one change",
        "filepact workspace import s3://team/project ~/project",
        "From a folder: skips ignored files, links and the .git folder. From a commit: takes all files except links and submodules, does "
        "not read the work tree, and runs no hook.",
    )
    add("url", metavar="URL", help=_URL)
    add("directory", metavar="DIR", help="the folder, or the repository")
    add("--revision", metavar="REV", help="copy this branch, tag or commit of the repository")
    add(
        "--replace",
        action="store_true",
        help="overwrite files that exist there with other contents",
    )
    add = below.add(
        "checkout",
        "sharing:checkout",
        "make an empty folder a checkout of a shared workspace",
        "filepact workspace checkout s3://team/project ~/project",
        "Then serve the folder with `filepact mcp`, like any other. Each change by an agent is saved in the shared workspace before the "
        "agent gets its answer. If the checkout is interrupted, run it again.",
    )
    add("url", metavar="URL", help=_URL)
    add("directory", metavar="DIR", help="an existing, empty folder")
    add = below.add(
        "sync",
        "sharing:sync",
        "get the changes of others, and send those of any program in this checkout",
        "filepact workspace sync",
        "Sends everything as one change, and merges files that both sides changed. If both changed the same lines, your file stays as it is "
        "and the exit code is 1: then choose with --ours or --theirs.",
    )
    add("--ours", action="store_true", help="on a conflict, keep the file of this checkout")
    add(
        "--theirs",
        action="store_true",
        help="on a conflict, take the file of the shared workspace; you can undo this",
    )
    below.add(
        "status",
        "sharing:status",
        "show the differences between this checkout and its shared workspace",
        "filepact workspace status",
        "First gets the changes of others that do not conflict, as every command does. Apart from that it changes nothing.",
    )
    add = below.add(
        "export",
        "sharing:export",
        "write the newest version to an empty folder, or as a commit to a Git repository",
        "filepact workspace export s3://team/project /srv/project",
        "The folder does not become a checkout. A commit is added to the branch; no work tree is changed.",
    )
    add("url", metavar="URL", help=_URL)
    add("directory", metavar="DIR", help="an existing, empty folder, or a repository")
    add("--branch", metavar="NAME", help="commit to this branch of the repository")
    add = below.add(
        "check",
        "sharing:check",
        "read all files of the newest version, and list the unreadable ones",
        "filepact workspace check s3://team/project",
        "The exit code is 1 if there are any.",
    )
    add("url", metavar="URL", help=_URL)
    add = below.add(
        "gc",
        "sharing:gc",
        "delete stored data that no version in use needs any more",
        "filepact workspace gc s3://team/project",
        "Run one at a time. Marks unneeded data; a later run deletes it after the time in --grace, unless a checkout is at a version that "
        "may need it. Also combines small packs into large ones.",
    )
    add("url", metavar="URL", help=_URL)
    add(
        "--grace",
        metavar="HOURS",
        type=float,
        default=24.0,
        help="keep unneeded data for at least this long (default: 24)",
    )
