"""Command `status`, and of `doctor` what is about the journal alone: what is in use, whether it is sound, its repair."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.config.person import read_settings, state_folder
from filepact.errors import NoChangeError
from filepact.values import asdict
from filepact.workspace.file_snapshot import unwatched_said
from filepact_cli.context import find_context, moved_here, opened
from filepact_cli.render import age, count, cut, listed
from filepact_cli.screen import DONE, FAILED, CommandAnswer, TerminalText
from filepact_cli.wording import size

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import JournalCheckResult
    from filepact_cli.context import Origin
    from filepact_cli.screen import Style, Terminal

__all__ = ["check", "move", "repair", "status"]

_SHOWN: Final = 20
_OURS: Final = {
    "journal.db": "journal",
    "journal.db-wal": "its log",
    "journal.db-shm": "its shared memory",
    "audit": "audit log",
    "known.db": "what sessions know",
    "known.db-wal": "its log",
    "known.db-shm": "its shared memory",
    "locks": "locks",
    "guards": "locks of guards",
    "hooks": "sockets of hooks",
    "snapshots": "snapshots of roots",
    "contents": "large contents",
    "indexes": "search indexes",
    "kept": "large files for an undo",
    "removed": "removed files",
    "rescued": "rescued texts",
    "room": "room kept free",
}

_ORIGINS: Final[dict[Origin, str]] = {
    "--root": "named with --root",
    "FILEPACT_ROOT": "named by FILEPACT_ROOT",
    "journal": "known from earlier use",
    "git": "the top of the Git repository",
    "this folder": "this folder",
}


def status(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Show the roots, the state folder and the journal in use, and the newest operation."""
    from filepact.opening import unwatched_files  # noqa: PLC0415 - loads the database

    context = find_context(arguments)
    with opened(arguments, context) as workspace:
        figures = workspace.statistics()
        waiting = workspace.pending()
        newest = workspace.log(limit=1)
        now = time.time()
        why = _ORIGINS[context.origin]
        rows = [("folder", str(root.path)) for root in workspace.guard.roots]
        rows[0] = ("folder", f"{rows[0][1]} ({why})")
        kept = f", undo reaches back {age(figures.oldest, now)}" if figures.oldest else ""
        rows += [
            ("state", context.state),
            (
                "journal",
                f"{size(figures.bytes_on_disk)}, {count(figures.operations, 'operation')}{kept}",
            ),
            ("pending", f"{len(waiting)} here, {figures.proposals} in all folders"),
        ]
        roots = [root.path for root in workspace.guard.roots]
        if unwatched := unwatched_files(context.state, roots):
            rows.append(("files", unwatched_said(unwatched)))
        spans = [span for row in rows for span in _fact(*row, screen.columns)]
        moved = moved_here(context, arguments.config)
        if moved is not None:
            spans.append(TerminalText(f"moved    {moved[0]}.\n         {moved[1]}\n", "warn"))
        spans.append(TerminalText("last     ", "dim"))
        last, known_last = listed(workspace, newest, screen, indent=9)
        spans += last or [TerminalText("nothing yet\n")]
        known = {
            "roots": [
                {"path": root.path, "resolver": root.resolver} for root in workspace.guard.roots
            ],
            "origin": context.origin,
            "state": context.state,
            "mode": workspace.mode,
            "operations": figures.operations,
            "pending": len(waiting),
            "pending_in_all": figures.proposals,
            "journal_bytes": figures.bytes_on_disk,
            "moved": None if moved is None else " ".join(moved),
            "unwatched": unwatched or 0,
            "last": known_last[0] if known_last else None,
        }
    return CommandAnswer(tuple(spans), known)


def _fact(name: str, value: str, columns: int | None) -> tuple[TerminalText, ...]:
    said = value if columns is None else cut(value, columns - 9)
    return TerminalText(f"{name:<9}", "dim"), TerminalText(f"{said}\n")


def check(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Read everything in the journal, and look at what else is in the state folder."""
    from filepact.app import check_state, state_user  # noqa: PLC0415 - loads the database

    folder = state_folder(arguments.state)
    found = check_state(folder, tell=screen.patience())
    user = state_user(folder)
    sizes, foreign = _sizes(Path(folder))
    spans = [*_row("state", folder)]
    if found is None:
        spans += _row("journal", "none yet, it is made when it is needed")
    else:
        said = f"{count(found.contents, 'content')}, all read and as they were kept"
        spans += _row("journal", f"sound: {said}" if found.sound else "damaged", found.sound)
        spans += _damage(found)
        if found.unfinished:
            what = count(found.unfinished, "operation")
            spans += _row("begun", f"{what} neither done nor taken back: the next start sees to it")
    spans += [span for name, taken in sizes.items() for span in _row(name, size(taken))]
    if user:
        spans += _row("in use", f"by {user}")
    for name in foreign:
        spans += _row("besides", f"{name}: not of this version of filepact, left alone")
    if found is not None and not found.sound:
        spans.append(TerminalText("\n`filepact doctor --repair` keeps what can be read.\n", "warn"))
    facts = {
        "state": folder,
        "sound": None if found is None else found.sound,
        "journal": None if found is None else asdict(found),
        "bytes": sizes,
        "in_use_by": user,
        "besides": foreign,
    }
    return CommandAnswer(tuple(spans), facts, DONE if found is None or found.sound else FAILED)


def repair(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Make a sound journal of what can be read of a damaged one, and write down how the audit log differs from it."""
    from filepact.app import accept_differences, repair_state  # noqa: PLC0415 - loads the database

    folder, tell = state_folder(arguments.state), screen.patience()
    settings = read_settings(arguments.config)
    try:
        done = repair_state(folder, tell=tell)
    except NoChangeError:
        differed = accept_differences(folder, settings, tell)
        if differed is None:
            raise
        said = [one.said for one in differed.problems]
        spans = [span for one in said for span in _row("written down", one)]
        return CommandAnswer(tuple(spans), {"written_down": said})
    accept_differences(folder, settings, tell)
    spans = [
        *_row("kept", f"{count(done.operations, 'operation')}, {count(done.contents, 'content')}"),
        *[span for one in done.lost for span in _row("lost", one, sound=False)],
        *_row(
            "aside",
            f"{done.damaged_folder} has the damaged journal; remove it when nothing is missed",
        ),
    ]
    return CommandAnswer(tuple(spans), asdict(done))


def move(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Have the history of a folder that was moved belong to where it lies now."""
    from filepact.opening import move_history  # noqa: PLC0415 - loads the database

    context = find_context(arguments)
    with opened(arguments, context) as workspace:
        new = workspace.guard.roots[0].path
        old = os.path.normpath(Path.cwd() / Path(arguments.moved).expanduser())
        store = read_settings(arguments.config).store
        operations = move_history(context.state, store, old, new, workspace.audit)
    said = f"{count(operations, 'operation')} of {old}: known in {new} now.\n"
    return CommandAnswer(
        (TerminalText(said, "good"),), {"from": old, "to": new, "operations": operations}
    )


def _damage(found: JournalCheckResult) -> list[TerminalText]:
    spans = [span for one in found.problems for span in _row("problem", one, sound=False)]
    for content in found.damaged[:_SHOWN]:
        spans += _row("damaged", f"content {content[:12]}", sound=False)
    for one in found.unusable[:_SHOWN]:
        spans += _row(
            "lost", f"{one.id} ({one.summary}) in {one.path}: cannot be taken back", False
        )
    more = max(len(found.damaged), len(found.unusable)) - _SHOWN
    if more > 0:
        spans += _row("", f"and {more:,} more; --json has all of them")
    if found.strays:
        said = f"{count(len(found.strays), 'file')} in contents of which the journal does not tell"
        spans += _row("besides", f"{said}, removed in time")
    return spans


def _row(name: str, said: str, sound: bool | None = None) -> list[TerminalText]:
    style: Style = "plain" if sound is None else "good" if sound else "bad"
    return [
        TerminalText(f"{name:<20}", "dim"),
        TerminalText(f"{' '.join(said.splitlines())}\n", style),
    ]


def _sizes(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Bytes of what is ours in the state folder, and the names of what is not."""
    taken: dict[str, int] = {}
    foreign: list[str] = []
    for one in sorted(folder.iterdir()) if folder.is_dir() else ():
        if one.name not in _OURS and not one.name.startswith(("damaged-", "place-")):
            foreign.append(one.name)
            continue
        files = one.rglob("*") if one.is_dir() else (one,)
        held = sum(file.lstat().st_size for file in files if not file.is_dir())
        what = _OURS.get(
            one.name, "folders that were opened" if one.name.startswith("place-") else "kept aside"
        )
        taken[what] = taken.get(what, 0) + held
    return taken, foreign
