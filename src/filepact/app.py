"""Composition root: the one place that knows every part, to put them together."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from filepact.domain.deadline import DEFAULT_SECONDS
from filepact.domain.document import RootId
from filepact.domain.operation import AuditOptions
from filepact.errors import FilepactError, NoChangeError, StateFailedError
from filepact.fs.locks import keep_out, locked_by
from filepact.fs.root import Root
from filepact.fs.state import (
    NAME,
    ancestors,
    audit_in,
    calls_no_hook,
    forget_host,
    journal_in,
    note_host,
    open_state,
    read_answers,
    read_note,
    who_calls,
    write_answers,
    write_note,
)
from filepact.opening import OpenFolders, journal_there, open_folders, secret_places
from filepact.store.connection import IN_USE
from filepact.values import replace
from filepact.workspace.audit import AuditLog
from filepact.workspace.documents import read_project_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from filepact.config.settings import Settings
    from filepact.domain.audit import AuditCheckResult, JournalSummary
    from filepact.domain.operation import JournalCheckResult, SalvageResult, StoreOptions
    from filepact.fs.locks import ProcessLock
    from filepact.fs.sandbox import SandboxMode, Trial
    from filepact.tools.engine import ChangeJudge
    from filepact.tools.registry import Level, Tier, Toolset
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.workspace import Mode, Workspace


__all__ = [
    "OpenFolders",
    "accept_differences",
    "ancestors",
    "calls_no_hook",
    "check_audit",
    "check_state",
    "forget_host",
    "guarding",
    "journal_roots",
    "keep_before_setup",
    "note_host",
    "open_audit",
    "open_folders",
    "open_observed",
    "open_toolbox",
    "open_workspace",
    "project_files",
    "read_answers",
    "repair_state",
    "replace_outside",
    "secret_places",
    "state_user",
    "try_sandbox",
    "who_calls",
    "write_answers",
]

_MEBIBYTE = 1_048_576


def open_toolbox(
    workspace: Workspace,
    *,
    semantics: ChangeJudge | Callable[[], ChangeJudge | None] | None = None,
    tier: Tier = "full",
    max_level: Level = "dangerous",
    read_only: bool = False,
    own: bool = False,
    seconds: float = DEFAULT_SECONDS,
) -> Toolset:
    """The seven tools over a workspace, as many of them as are to be shown.

    Args:
        workspace: The files.
        semantics: What language servers make of changes, or what opens it; None for none.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
        read_only: Only tools that look.
        own: With the tools that only a server has: for an agent's own changes.
        seconds: How long one call may take.
    """
    # Not at the top: commands that look back need no tools and should not wait for them.
    from filepact.tools.engine import SERVER_TOOLS, TOOLS, WorkspaceEngine  # noqa: PLC0415
    from filepact.tools.registry import Toolset  # noqa: PLC0415

    return Toolset(
        SERVER_TOOLS if own else TOOLS,
        WorkspaceEngine(workspace, semantics),
        tier=tier,
        max_level=max_level,
        read_only=read_only,
        seconds=seconds,
    )


def journal_roots(state_dir: str, store: StoreOptions | None = None) -> tuple[str, ...]:
    """The folders that a journal tells of: agents may change what lies in them.

    Args:
        state_dir: The state folder; nothing is made in it.
        store: Where the journal is when it is not there.
    """
    with journal_there(state_dir, store) as journal:
        return () if journal is None else journal.roots()


def open_workspace(
    roots: str | Sequence[str],
    *,
    state_dir: str | None = None,
    mode: Mode = "auto",
    settings: Settings | None = None,
    home: str | None = None,
    resolver: Literal["auto", "openat2", "walk"] = "auto",
    landlock: SandboxMode = "off",
    buffers: Buffers | None = None,
) -> Workspace:
    """Open folders with their journal, and settle what a crash may have left.

    The rules, the journal and the home folder are those of the person who runs this; to leave them out, others are named.

    Args:
        roots: Folders that may be used, the working folder first; absolute or relative to the present one.
        state_dir: The state folder, made when missing, never inside a root; None takes the person's.
        mode: Whether changes that the rules allow are done or wait for a person.
        settings: The rules of people, the encodings of files, and how far the guard goes.  None
            reads the person's and the administrator's files; ``Settings()`` has nothing in it.
            The built-in rules and those of each root's own ``.filepact.toml`` count either way.
        home: The person's home folder: hard links to the secrets in it are known as such.  None for whoever runs this.
        resolver: How names are resolved beneath a root; for tests.
        landlock: Whether this process gives up, for good, all files but these folders and what
            Python needs: ``auto`` where the system can do that and no other thread runs yet,
            ``required`` or else not at all.
        buffers: Of editors that other workspaces serve too; None makes new ones.

    Raises:
        InvalidParamsError: No root was named, the system lacks what is required, or a settings
            file or a root's own file of rules is wrong.
        StateFailedError: The state folder, or the file for signed heads, cannot be used.
    """
    folders = open_folders(
        roots,
        state_dir=state_dir,
        mode=mode,
        settings=settings,
        home=home,
        resolver=resolver,
        landlock=landlock,
        buffers=buffers,
    )
    return folders.workspace()


def open_observed(
    roots: Sequence[str],
    *,
    state_dir: str,
    settings: Settings,
    guards: bool = False,
) -> Workspace:
    """Open folders as `open_workspace`, with a snapshot that outlasts the process.

    Only one process at a time may do so with the same folders; a guard has a snapshot of its own.
    """
    from filepact.store.snapshots import SqliteSnapshots  # noqa: PLC0415 - servers have none
    from filepact.workspace.file_states import KnownFileLimits  # noqa: PLC0415 - the same

    workspace = open_workspace(roots, state_dir=state_dir, settings=settings)
    state = open_state(state_dir)
    folders = [root.path for root in workspace.guard.roots]
    limits = None
    if guards:
        folders.append(RootId("guard"))
        recording = settings.recording
        room = recording.megabytes * _MEBIBYTE
        limits = KnownFileLimits(memory=room, files=recording.files)
    workspace.external.keep(SqliteSnapshots(state.snapshot(folders)), limits)
    return workspace


def guarding(state_dir: str, root: str) -> ProcessLock:
    """The lock of the one process that guards a folder, and what it tells of itself."""
    with Root.open(root) as opened:
        return open_state(state_dir, [opened.path]).guarding(opened.path)


def check_state(state_dir: str, *, tell: Callable[[str], None]) -> JournalCheckResult | None:
    """Whether everything in the journal of a state folder can be read; None for no journal.

    Args:
        state_dir: The folder.
        tell: Is told how far this is.

    Raises:
        StateFailedError: The journal is another program's, or of a newer filepact.
    """
    from filepact.store.integrity import check_journal  # noqa: PLC0415 - rarely needed

    path = journal_in(state_dir)
    return None if path is None else check_journal(path, tell)


def check_audit(
    state_dir: str,
    settings: Settings,
    tell: Callable[[str], None],
    *,
    heads: Sequence[str] = (),
    keys: Sequence[str] = (),
) -> AuditCheckResult:
    """Compare the audit log with itself, with the journal and with heads that are kept elsewhere.

    Args:
        state_dir: The state folder.
        settings: They say where heads are kept, and the journal.
        tell: Is told how far this is.
        heads: Signed heads from elsewhere; those that are kept outside are added.
        keys: As of `AuditCheck`.
    """
    from filepact.domain.audit import AuditCheck, AuditProblem  # noqa: PLC0415 - rarely needed
    from filepact.text.signed_note import can_sign, split_notes  # noqa: PLC0415 - the same

    options, (unread, said, place) = settings.audit or AuditOptions(), ("", "", "")
    if options.enabled and options.heads and can_sign():
        from filepact.fs.audit_pipes import HeadPlace  # noqa: PLC0415 - few have one

        try:
            outside = HeadPlace(options.heads, journal_roots(state_dir, settings.store))
            heads, place = [*heads, *split_notes(outside.kept())], outside.name
        except (FilepactError, OSError) as error:
            why = getattr(error, "message", "") or getattr(error, "strerror", "") or error
            unread = f"the heads that are kept outside cannot be read: {why}"

    def journal() -> JournalSummary | None:
        nonlocal said
        try:
            return _journal_account(state_dir, settings)
        except FilepactError as error:
            said = f"not compared with the journal: {error.message}"
            return None

    log = AuditLog(audit_in(state_dir), AuditOptions(), dict)
    check = AuditCheck(keys, heads, place)
    with closing(log):
        found = check.end(log.file.check(check, tell, journal))
    after = "Make that place readable, or correct heads in [audit]."
    wrong = (AuditProblem("", 0, unread, after),) if unread else ()
    notes = (*found.notes, said) if said else found.notes
    return replace(found, problems=found.problems + wrong, notes=notes)


def _journal_account(state_dir: str, settings: Settings) -> JournalSummary | None:
    """The journal's account of its operations; of a missing file, an empty one."""
    if settings.store is not None:
        from filepact.extension import open_database  # noqa: PLC0415 - few have one

        name = read_note(state_dir, NAME).decode("ascii", "replace")
        if not name:
            return None
        with closing(open_database(settings.store, name)) as store:
            return store.account()
    from filepact.store.integrity import read_account  # noqa: PLC0415 - rarely needed

    return read_account(journal_in(state_dir))


def accept_differences(
    state_dir: str, settings: Settings, tell: Callable[[str], None]
) -> AuditCheckResult | None:
    """Write down that audit log and journal differ, so that they are compared anew from there on; None if they do not."""
    found = check_audit(state_dir, settings, tell)
    account = _journal_account(state_dir, settings)
    if account is None or not found.apart or not (settings.audit or AuditOptions()).enabled:
        return None
    place = max((at for at, _, _ in account.operations.values()), default=0)
    with closing(AuditLog(audit_in(state_dir), AuditOptions(), dict)) as log:
        log.record("repaired", {"journal": account.name, "place": place}, needed=True)
    return found


def repair_state(state_dir: str, *, tell: Callable[[str], None]) -> SalvageResult:
    """Make a sound journal of what can be read of a damaged one, which is kept aside.

    Raises:
        NoChangeError: It is sound, or there is none.
        StateFailedError: It is another program's or of a newer filepact, or in use, or the folder
            cannot be written.
    """
    from filepact.store.integrity import salvage  # noqa: PLC0415 - rarely needed

    found = check_state(state_dir, tell=tell)
    path = journal_in(state_dir)
    if found is None or path is None or found.sound:
        raise NoChangeError("there is nothing to repair in the journal")
    try:
        with keep_out(path, *IN_USE) as alone:
            if not alone:
                raise StateFailedError(
                    f"the journal is in use by {locked_by(path, *IN_USE) or 'another process'}",
                    hint="Nothing was changed. End all filepact servers and the programs that "
                    "started them, then try again.",
                )
            return salvage(path, tell)
    except OSError as error:
        raise StateFailedError(
            f"the state folder cannot be written ({error.strerror})",
            hint="Make it writable or free space on its disk, then try again.",
        ) from error


def open_audit(state_dir: str) -> AuditLog | None:
    """The audit log of a state folder, to be read; None where nothing was recorded yet."""
    found = AuditLog(audit_in(state_dir), AuditOptions(), dict)
    return found if found.file.begun else None


def state_user(state_dir: str) -> str:
    """A process that has the journal of a state folder open, in words; empty for none."""
    path = journal_in(state_dir)
    return "" if path is None else locked_by(path, *IN_USE)


def replace_outside(path: str, data: bytes | None, *, expected: bytes | None, token: str) -> None:
    """Replace one file that lies in no root; see there."""
    from filepact.fs import outside  # noqa: PLC0415 - few commands write settings

    outside.replace_outside(path, data, expected=expected, token=token)


def keep_before_setup(
    state_dir: str, files: Mapping[str, bytes], notes: Mapping[str, bytes]
) -> Mapping[str, str]:
    """Keep what some settings files hold before `filepact setup` changes them.

    Args:
        state_dir: The state folder, made when missing.
        files: By path what each holds.
        notes: By name, what is known of them then, to be kept beside it.

    Returns:
        By path, where it was kept.

    Raises:
        StateFailedError: It cannot be written; what was there stays.
    """
    state = open_state(state_dir)
    kept = {
        path: state.rescue(path.rpartition("/")[2], data, "backups") for path, data in files.items()
    }
    for name, data in notes.items():
        write_note(state.path, name, data)
    return kept


def project_files(roots: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The roots that have a file of rules of their own, each with its text, right or wrong."""
    found: list[tuple[str, str]] = []
    for path in roots:
        with Root.open(path) as root:
            text = read_project_file(root)
            if text is not None:
                found.append((root.path, text))
    return tuple(dict(found).items())


def try_sandbox(workspace: Workspace, *, state_dir: str) -> tuple[int, Trial]:
    """The abilities of Landlock here, and whether a confined child process really stays inside."""
    from filepact.fs import sandbox  # noqa: PLC0415 - only the doctor needs it

    return sandbox.landlock_abi(), sandbox.try_sandbox(workspace.guard.roots, state_dir)
