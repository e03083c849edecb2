"""Declares the commands `workspace ...` and `store ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filepact_cli.parser import CommandGroup

__all__ = ["add_commands"]

_URL = "the place: s3://bucket/prefix"


def add_commands(group: CommandGroup) -> None:
    """Add them, in the order in which the help shows them."""
    _add_sharing(group)
    _add_store(group)


def _add_sharing(group: CommandGroup) -> None:
    below = group.nested(
        "workspace",
        "share files between machines, on object storage",
        "Many machines work with the same files. Each has a checkout, which is an ordinary folder. Set the server, region and account "
        "with AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    )
    add = below.add(
        "create",
        "filepact_fleet.workspace_command:create",
        "create an empty shared workspace",
        "filepact workspace create s3://team/project",
        "Tests the server first, and refuses one that does not support conditional writes.",
        answers="url",
    )
    add("url", metavar="URL", help=_URL)
    add = below.add(
        "import",
        "filepact_fleet.workspace_command:import_",
        "copy a folder or a Git commit into a shared workspace, as one change",
        "filepact workspace import s3://team/project ~/project",
        "From a folder: skips ignored files, links and the .git folder. From a commit: takes all files except links and submodules, does "
        "not read the work tree, and runs no hook.",
        answers="number, files, left_out, commit",
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
        "filepact_fleet.workspace_command:checkout",
        "make an empty folder a checkout of a shared workspace",
        "filepact workspace checkout s3://team/project ~/project",
        "Then serve the folder with `filepact mcp`, like any other. Each change by an agent is saved in the shared workspace before the "
        "agent gets its answer. If the checkout is interrupted, run it again.",
        answers="url, number, files",
    )
    add("url", metavar="URL", help=_URL)
    add("directory", metavar="DIR", help="an existing, empty folder")
    add = below.add(
        "sync",
        "filepact_fleet.workspace_command:sync",
        "get the changes of others, and send those of any program in this checkout",
        "filepact workspace sync",
        "Sends everything as one change, and merges files that both sides changed. If both changed the same lines, your file stays as it is "
        "and the exit code is 1: then choose with --ours or --theirs.",
        answers="number, brought, sent, conflicts, left_out",
    )
    add("--ours", action="store_true", help="on a conflict, keep the file of this checkout")
    add(
        "--theirs",
        action="store_true",
        help="on a conflict, take the file of the shared workspace; you can undo this",
    )
    below.add(
        "status",
        "filepact_fleet.workspace_command:status",
        "show the differences between this checkout and its shared workspace",
        "filepact workspace status",
        "First gets the changes of others that do not conflict, as every command does. Apart from that it changes nothing.",
        answers="url, number, newest, ours, theirs, left_out",
    )
    add = below.add(
        "export",
        "filepact_fleet.workspace_command:export",
        "write the newest version to an empty folder, or as a commit to a Git repository",
        "filepact workspace export s3://team/project /srv/project",
        "The folder does not become a checkout. A commit is added to the branch; no work tree is changed.",
        answers="number, files; as a commit also: commit, made",
    )
    add("url", metavar="URL", help=_URL)
    add("directory", metavar="DIR", help="an existing, empty folder, or a repository")
    add("--branch", metavar="NAME", help="commit to this branch of the repository")
    add = below.add(
        "check",
        "filepact_fleet.workspace_command:check",
        "read all files of the newest version, and list the unreadable ones",
        "filepact workspace check s3://team/project",
        "The exit code is 1 if there are any.",
        answers="number, files, size, named, objects, stored, damaged",
    )
    add("url", metavar="URL", help=_URL)
    add = below.add(
        "gc",
        "filepact_fleet.workspace_command:gc",
        "delete stored data that no version in use needs any more",
        "filepact workspace gc s3://team/project",
        "Run one at a time. Marks unneeded data; a later run deletes it after the time in --grace, unless a checkout is at a version that "
        "may need it. Also combines small packs into large ones.",
        answers="removed, freed, marked, held, packed",
    )
    add("url", metavar="URL", help=_URL)
    add(
        "--grace",
        metavar="HOURS",
        type=float,
        default=24.0,
        help="keep unneeded data for at least this long (default: 24)",
    )


def _add_store(group: CommandGroup) -> None:
    below = group.nested(
        "store",
        "keep the journal in a PostgreSQL database",
        "Set the database's address in FILEPACT_STORE, or as url in [store] of your settings.",
    )
    below.add(
        "status",
        "filepact_fleet.store_command:status",
        "show the database, the version of its tables, and this journal",
        "filepact store status",
        "The exit code is 1 if the tables are missing or have another version.",
        answers="server, tables, newest, standby, workspace, workspaces, operations, partitions, bytes",
    )
    add = below.add(
        "migrate",
        "filepact_fleet.store_command:migrate",
        "create the tables, or update them to the newest version",
        "filepact store migrate",
        "Older versions of filepact may keep running meanwhile. They are refused as too old when they next open the "
        "journal. The exit code is 3 if there is nothing to do.",
        answers="done",
    )
    add(
        "--partitions",
        choices=["day", "month"],
        default="month",
        help="the time that one partition covers; fixed when the tables are created (default: month)",
    )
    add = below.add(
        "copy",
        "filepact_fleet.store_command:copy",
        "copy the journal from the state folder into the database",
        "filepact store copy",
        "Stop all filepact servers first. If the copy is interrupted, run it again: it adds only what is missing. At the "
        "end it compares all operations, and every text by its hash. The journal in the state folder is not changed.",
        answers="operations, proposals, contents, copied",
    )
    add("--back", action="store_true", help="copy from the database into the state folder instead")
    add = below.add(
        "prune",
        "filepact_fleet.store_command:prune",
        "delete the partitions that are older than some days",
        "filepact store prune --days 90",
        "This affects all journals in the database: deleted operations are no longer in the log and cannot be undone. "
        "Also creates the next partitions. The exit code is 3 if nothing is that old.",
        answers="dropped",
    )
    add("--days", type=float, required=True, metavar="DAYS", help="keep this many days")
