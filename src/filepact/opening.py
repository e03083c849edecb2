"""Composition root of what is there before anybody is answered: roots, rules, journal, and a process that is confined.

What works in the folders takes as long to load as all of this, so it is made when it is asked for.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import islice
from threading import Lock
from time import strftime
from typing import TYPE_CHECKING, Final

from filepact.config.layers import RuleSet
from filepact.config.person import home_folder, own_places, read_settings, state_folder
from filepact.config.rule_files import read_project
from filepact.domain.document import RootId
from filepact.domain.operation import AuditOptions
from filepact.domain.policy import AccessRequest, decide
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.fs.home_secrets import SecretIndex
from filepact.fs.kernel import (
    FileSync,
    most_watches,
    place_of,
    same_places,
    stamps_in,
    use_few_arenas,
)
from filepact.fs.locks import locked_by
from filepact.fs.root import Root
from filepact.fs.state import (
    NAME,
    descendants,
    journal_in,
    note_turns,
    open_state,
    read_note,
    ticks_now,
    turn_noted,
    whoami,
    write_note,
)
from filepact.store.sqlite import SqliteStore
from filepact.workspace.audit import audit_log
from filepact.workspace.documents import PROJECT_FILE, EncodingSettings, read_project_file
from filepact.workspace.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from filepact.config.settings import Settings
    from filepact.domain.document import SnapshotRecord
    from filepact.domain.operation import StoreOptions
    from filepact.domain.policy import Policy
    from filepact.fs.audit_pipes import AuditPipes
    from filepact.fs.sandbox import SandboxMode
    from filepact.fs.state import StateFolder
    from filepact.workspace.audit import AuditLog
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.journal import JournalDatabase
    from filepact.workspace.workspace import Mode, Workspace
    from filepact.workspace.writer import ChangePublisher

__all__ = [
    "OpenFolders",
    "descendants",
    "journal_there",
    "move_history",
    "moved_from",
    "note_turns",
    "open_folders",
    "open_guard",
    "secret_places",
    "ticks_now",
    "turn_noted",
    "use_few_arenas",
]

_UNTIL: Final = " (until "
"""Stands between the name of a folder in whose place another one lies, and the time of that, in the name of its history."""
_LAST: Final = 50  # operations of which a folder that was moved is known by


class OpenFolders:
    """Folders with their rules and their journal; for all threads.

    Args:
        guard: The roots and the rules over them.
        store: The journal.
        audit: The audit log, if there is one.
        mode: As of `Workspace`.
        make: Makes the workspace in them.
    """

    def __init__(
        self,
        guard: Guard,
        store: SqliteStore | JournalDatabase,
        audit: AuditLog | None,
        mode: Mode,
        make: Callable[[], Workspace],
    ) -> None:
        self.guard = guard
        self.mode = mode
        self._store = store
        self._audit = audit
        self._make = make
        self._making = Lock()
        self._made: Workspace | None = None

    def workspace(self) -> Workspace:
        """The workspace in them, made with the first call.

        Raises:
            StateFailedError: The journal cannot be used.
        """
        with self._making:
            self._made = self._made or self._make()
            return self._made

    def close(self) -> None:
        """Close the workspace, or what there is without one."""
        if self._made is not None:
            self._made.close()
            return
        self._store.close()
        if self._audit is not None:
            self._audit.close()
        for root in self.guard.roots:
            root.close()


def open_folders(
    roots: str | Sequence[str],
    *,
    state_dir: str | None = None,
    mode: Mode = "auto",
    settings: Settings | None = None,
    home: str | None = None,
    resolver: Literal["auto", "openat2", "walk"] = "auto",
    landlock: SandboxMode = "off",
    buffers: Buffers | None = None,
) -> OpenFolders:
    """Open folders with their journal; arguments and errors are those of `filepact.app.open_workspace`.

    What a crash has left is settled when this returns: where there is something of that kind, the workspace is made.
    """
    if isinstance(roots, str):
        roots = (roots,) if roots else ()
    if not roots:
        # "No root" must never come to mean "everything".
        raise InvalidParamsError("no folder was named", hint="Name at least one folder.")
    settings = read_settings() if settings is None else settings
    home = home or home_folder()
    opened: list[Root] = []
    store: SqliteStore | JournalDatabase | None = None
    secrets = None if home is None else _secrets_in(home)
    try:
        for path in roots:
            root = Root.open(path, resolver=resolver, secrets=secrets, mounts=settings.guard.mounts)
            if any(root.path == other.path for other in opened):
                root.close()
                continue
            root.keeps_links = settings.guard.hard_links == "keep"
            opened.append(root)
        paths = [root.path for root in opened]
        state = open_state(state_dir or state_folder(), paths)
        auditing = settings.audit or AuditOptions()
        # What is outside is not within reach once this process has confined itself.
        user, outside = whoami(), _audit_pipes(auditing, paths, confined=landlock != "off")
        if settings.store is not None:
            from filepact.extension import open_database  # noqa: PLC0415 - few have one

            store = open_database(settings.store, state.name)
        publisher: ChangePublisher | None = None
        if checkouts := [root for root in opened if state.is_checkout(root.path)]:
            from filepact.extension import open_publisher  # noqa: PLC0415 - few folders are

            publisher = open_publisher(state, checkouts)
        if landlock != "off":  # before the journal and the roots are looked into
            if secrets is not None:
                secrets.learn()
            from filepact.fs.sandbox import confine  # noqa: PLC0415 - only servers need it

            most_watches()  # what the system says of it is not within reach later
            confine(landlock, opened, state.path, network=store is None and publisher is None)
        in_force = own_places(state.path) + settings.rules
        for root in opened:
            in_force = in_force.narrowed(_project_rules(root))
        policy = in_force.about(paths).policy
        guard = Guard(
            opened,
            policy=policy,
            net=settings.guard.content,
            bumps=settings.guard.dependency_versions,
        )
        encodings = EncodingSettings(guard, settings.encodings)
        store = journal = store or SqliteStore(state.database, locked_by=locked_by, disk=FileSync())
        audit = audit_log(auditing, state.audit, policy, user, outside, journal)
        _part(journal, state, paths, audit)
        _note_places(journal, state, paths, audit)
        _follow(journal, state, paths[0], audit)

        def make() -> Workspace:
            from filepact.store.known_texts import SqliteKnownTexts  # noqa: PLC0415 - with the next
            from filepact.workspace.read_tracker import KnownTextWriter  # noqa: PLC0415 - the same
            from filepact.workspace.workspace import Workspace  # noqa: PLC0415 - takes its time

            return Workspace(
                guard,
                journal,
                state,
                mode=mode,
                encodings=encodings,
                buffers=buffers,
                lasting=KnownTextWriter(SqliteKnownTexts(state.known), state.locks),
                limits=settings.limits,
                audit=audit,
                publisher=publisher,
            )

        folders = OpenFolders(guard, journal, audit, mode, make)
        if publisher is not None or journal.unfinished():
            folders.workspace()
    except BaseException:
        for root in opened:
            root.close()
        if store is not None:
            store.close()
        raise
    return folders


def open_guard(roots: Sequence[str], settings: Settings, state: str) -> tuple[Guard, str]:
    """The guard of folders alone, with the rules about every other folder as well; its roots are the caller's to close.

    Args:
        roots: The folders; where one cannot be opened, all folders that there are stand for it.
        settings: With the rules of people.
        state: The state folder, out of which agents are kept; it need not be there.

    Returns:
        The guard, and what is wrong with a folder or its own file of rules, so that nobody knows what it forbids.
    """
    home = home_folder()
    secrets = None if home is None else _secrets_in(home)
    opened: list[Root] = []
    rules, wrong = own_places(state) + settings.rules, ""
    for path in roots:
        try:
            root = Root.open(path, secrets=secrets, mounts=settings.guard.mounts)
        except (FilepactError, ValueError) as error:
            wrong = wrong or str(error)
            root = Root.open("/", secrets=secrets, mounts=True)
        opened.append(root)
        try:
            rules = rules.narrowed(_project_rules(root))
        except FilepactError as error:
            wrong = wrong or error.report()
    guard = Guard(
        opened,
        policy=rules.policy,
        net=settings.guard.content,
        bumps=settings.guard.dependency_versions,
    )
    return guard, wrong


def _audit_pipes(
    options: AuditOptions, roots: Sequence[str], *, confined: bool
) -> AuditPipes | None:
    if not options.enabled or not (options.heads or options.syslog or options.telemetry):
        return None
    from filepact.fs.audit_pipes import open_audit_pipes  # noqa: PLC0415 - few want it

    return open_audit_pipes(options, roots, confined=confined)


def _project_rules(root: Root) -> RuleSet:
    text = read_project_file(root)
    if text is None:
        return RuleSet()
    return read_project(text, root.path, f"{root.path.rstrip('/')}/{PROJECT_FILE}")


def secret_places(home: str) -> tuple[str, ...]:
    """The secrets of a home folder by their absolute paths; a folder stands for all in it."""
    return _secrets_in(home).places()


def _secrets_in(home: str) -> SecretIndex:
    @cache
    def policy() -> Policy:
        # Made when the first hard link is met; most folders have none.
        return RuleSet().policy

    def is_secret(path: str) -> bool:
        # Most names are told to be harmless by their parts.
        if not any(map(policy().suspicion("read"), path.split("/"))):
            return False
        return decide(AccessRequest(home, path, "read"), policy()).verdict == "deny"

    return SecretIndex(home, is_secret)


@contextmanager
def journal_there(
    state_dir: str, store: StoreOptions | None
) -> Iterator[SqliteStore | JournalDatabase | None]:
    """The journal itself, without a workspace; None if there is none yet, and nothing is made."""
    path = journal_in(state_dir)
    if store is not None and read_note(state_dir, NAME):
        from filepact.extension import open_database  # noqa: PLC0415 - few have one

        opened: SqliteStore | JournalDatabase = open_database(store, open_state(state_dir).name)
    elif store is not None or path is None:
        yield None
        return
    else:
        opened = SqliteStore(path)
    with closing(opened):
        yield opened


def moved_from(state_dir: str, store: StoreOptions | None, folder: str) -> tuple[str, int] | None:
    """A folder with a history that is gone, and whose files lie in this one now by name; and how many operations it has.

    Args:
        state_dir: The state folder; nothing is made in it.
        store: Where the journal is when it is not there.
        folder: Absolute; where it has a history itself, nothing is looked for.
    """
    with journal_there(state_dir, store) as journal:
        if journal is None:
            return None
        for root in _gone(journal, folder):
            if _UNTIL in root or _lies_in(journal, root, folder):
                return root, len(journal.operations(root=root, limit=None))
    return None


def _lies_in(journal: SqliteStore | JournalDatabase, root: RootId, folder: str) -> bool:
    """Whether most files of the last operations of a history lie in a folder, by their names."""
    last: dict[str, bool] = {}
    for operation in journal.operations(root=root, limit=_LAST):
        for change in operation.changes.changes:
            if change.path.root == root:
                last.setdefault(change.path.path, change.after is not None)
    left = [path for path, there in last.items() if there]
    return bool(left) and 2 * len(stamps_in(folder, left)) > len(left)


def _gone(journal: SqliteStore | JournalDatabase, folder: str) -> list[RootId]:
    """Folders with a history that are not there any more, the newest first.

    If this one has a history, only those that lay here before it.
    """
    roots = journal.roots()
    own, before = folder in roots, f"{folder}{_UNTIL}"
    some = (one for one in roots[::-1] if not own or one.startswith(before))
    return [one for one in some if not stamps_in(one, ["."])]


def _part(
    journal: SqliteStore | JournalDatabase,
    state: StateFolder,
    roots: Sequence[RootId],
    audit: AuditLog | None,
) -> None:
    """Have what was done in a folder no longer belong to the one that lies in its place by now.

    It was moved, or removed, and another one was made: what is undone there would be written into a wrong folder.
    """
    for besides in ((), (RootId("guard"),)):
        if not state.has_snapshot([*roots, *besides]):
            continue
        from filepact.store.snapshots import SqliteSnapshots  # noqa: PLC0415 - few folders have one

        with closing(SqliteSnapshots(state.snapshot([*roots, *besides]))) as snapshots:
            inodes = snapshots.inodes()
            known_here = ((one, inodes.get(one, 0)) for one in roots)
            others = [
                one
                for one, was in known_here
                if was and not same_places({one: was}, {one: place_of(one)})
            ]
            known = snapshots.load() if others else None
            left = [one for one in others if known and not _holds_same(one, known)]
            if not left:
                continue
            places = [_set_apart(journal, root, audit) for root in left]
            # By this it is known again where it lies now.
            if len(roots) > 1 or not snapshots.rename(state.snapshot([*places, *besides])):
                snapshots.clear()


def _set_apart(
    journal: SqliteStore | JournalDatabase, root: RootId, audit: AuditLog | None
) -> RootId:
    """The name that the history of a folder has from now on, which is not the one that lies there."""
    place = RootId(f"{root}{_UNTIL}{strftime('%Y-%m-%d %H:%M:%S')})")
    with suppress(FilepactError):  # Nothing was done there, or it is said by whatever writes next.
        _move(journal, root, place, audit)
    return place


def _note_places(
    journal: SqliteStore | JournalDatabase,
    state: StateFolder,
    roots: Sequence[RootId],
    audit: AuditLog | None,
) -> None:
    """As `_part`, of folders that nobody has a snapshot of: by what they were when they were opened last.

    One in which most of the files lie that were known is the same project, restored or cloned once more.
    """
    for root in roots:
        # Others whose paths end so have the same note; what it says of them is lost, and nothing is made of that.
        name, now = f"place-{root[-60:].replace('/', '_')}", place_of(root)
        note = f"{now} {root}".encode("utf-8", "surrogateescape")
        told, _, of = read_note(state.path, name).partition(b" ")
        was = int(told) if note.endswith(b" " + of) and told.isdigit() else now
        if b" ".join((told, of)) == note or state.is_checkout(root):
            continue
        other = not same_places({root: was}, {root: now}) and root in journal.roots()
        if other and not _lies_in(journal, root, root):
            _set_apart(journal, root, audit)
        with suppress(FilepactError):  # The next time will do.
            write_note(state.path, name, note)


def _holds_same(root: RootId, known: SnapshotRecord) -> bool:
    """Whether a folder holds the files that were known, though their inodes are others, as after a mount."""
    some = ((path.path, file.stamp) for path, file in known.files if path.root == root)
    stamps = {path: stamp[1:4] for path, stamp in islice(some, _LAST) if stamp}
    now = stamps_in(root, stamps)
    return 2 * sum(now.get(path, ())[1:4] == was for path, was in stamps.items()) >= len(stamps)


def _follow(
    journal: SqliteStore | JournalDatabase,
    state: StateFolder,
    folder: RootId,
    audit: AuditLog | None,
) -> None:
    """Have a history belong to this folder if it is certain that the one it was of was moved here.

    That is so if it is the same inode, and so are its files, of which none has changed since, by times that
    nobody can forge without the clock.
    """
    for root in [] if state.is_checkout(folder) else _gone(journal, folder):
        from filepact.store.snapshots import SqliteSnapshots  # noqa: PLC0415 - few folders are gone

        for names in ([root], [root, RootId("guard")]):
            with closing(SqliteSnapshots(state.snapshot(names))) as snapshots:
                known = snapshots.load()
            here = {"": place_of(folder)}
            if known is None or not any(
                one and same_places({"": one}, here) for one in known.inodes.values()
            ):
                continue
            stamps = {
                path.path: file.stamp for path, file in islice(known.files, _LAST) if file.stamp
            }
            now = stamps_in(folder, stamps)
            if stamps and 2 * sum(now.get(path) == was for path, was in stamps.items()) > len(
                stamps
            ):
                with suppress(FilepactError):  # What cannot be written now is said by `log`.
                    _move(journal, root, folder, audit)
                return


def _move(
    journal: SqliteStore | JournalDatabase, old: RootId, new: RootId, audit: AuditLog | None
) -> int:
    facts = {"from": old, "to": new}
    if audit is not None:
        audit.record("moved", facts, needed=True)
    try:
        return journal.move_root(old, new)
    except FilepactError as error:
        if audit is not None:
            audit.record("moved", {**facts, "code": error.code})
        raise


def move_history(
    state_dir: str, store: StoreOptions | None, old: str, new: str, audit: AuditLog | None = None
) -> int:
    """Have the history of a folder that was moved belong to where it lies now; how many operations it has.

    Args:
        state_dir: The state folder.
        store: Where the journal is when it is not there.
        old: Where the folder lay.
        new: Where it lies.
        audit: The audit log, if there is one; without a record of it nothing is done.

    Raises:
        InvalidParamsError: It is still there, or both have a checkpoint of one name.
        NotFoundError: It has no history.
    """
    if stamps_in(old, ["."]):
        raise InvalidParamsError(
            f"{old} is still there, so its history stays with it",
            hint="Name the folder as it was called before it was moved.",
        )
    with journal_there(state_dir, store) as journal:
        if journal is None:
            raise NotFoundError("there is no journal yet")
        return _move(journal, RootId(old), RootId(new), audit)


def unwatched_files(state_dir: str, roots: Sequence[str]) -> int | None:
    """How many files of some roots hooks, or a guard, do not look at, when they last counted; None where none were."""
    state, names = open_state(state_dir), [RootId(one) for one in roots]
    most = None
    for watched in (names, [*names, RootId("guard")]):
        if state.has_snapshot(watched):
            from filepact.store.snapshots import SqliteSnapshots  # noqa: PLC0415 - servers have none

            with closing(SqliteSnapshots(state.snapshot(watched))) as found:
                most = max(most or 0, found.unwatched())
    return most
