"""Command `doctor`: checks programs, settings, state folder, journal and roots; changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
import textwrap
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filepact import VERSION
from filepact.app import check_state as look_into_state
from filepact.app import project_files
from filepact.config.layers import SettingsSource
from filepact.config.person import read_settings, rule_files, settings_file
from filepact.config.rule_files import find_problems
from filepact.errors import FilepactError
from filepact.extension import check_hosts, extensions
from filepact.faces.cli import isolated_command
from filepact.text.gitignore import MACHINE_FOLDERS
from filepact.values import asdict
from filepact.workspace.documents import EDIT_LIMIT, PROJECT_FILE
from filepact.workspace.file_snapshot import unwatched_said
from filepact_cli.audit import check_accounts
from filepact_cli.context import find_context, moved_here, opened
from filepact_cli.render import CheckResult, count
from filepact_cli.screen import DONE, FAILED, CommandAnswer, TerminalText
from filepact_cli.state import move
from filepact_cli.wording import extras, install_line, size

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from filepact.config.settings import GuardSettings, Settings
    from filepact.domain.document import WorkspacePath
    from filepact.workspace.workspace import Workspace
    from filepact_cli.render import Level
    from filepact_cli.screen import Style, Terminal

__all__ = [
    "check_extras",
    "check_folders",
    "check_guard",
    "check_programs",
    "check_room",
    "check_settings",
    "check_state",
    "check_wall",
    "doctor",
    "file_system",
]

_STYLES: dict[str, Style] = {"ok": "good", "none": "dim", "warn": "warn", "fail": "bad"}

_PACKAGES = {
    "apsw": "apsw",
    "google-re2": "re2",
    "pydantic": "pydantic",
    "regex": "regex",
    "tree-sitter": "tree_sitter",
    "tree-sitter-bash": "tree_sitter_bash",
}
_UNREMARKABLE = {("extras", "none"), ("extras", "ok"), ("C#", "none")}
# Where two names cannot be exchanged in one step, or a lock is only a wish.
_WEAK_FILE_SYSTEMS = ("9p", "afs", "ceph", "cifs", "fuse", "nfs", "smb", "vboxsf", "virtiofs")
_REMAINS = ".filepact-"
_MOST_NAMES = 100_000
_NEWEST, _UNSET = 50, ("could not be set", "could not be kept", "its mode is ")
_ROOM, _LEAST_ROOM = 64 * 1024 * 1024, 1024 * 1024


def doctor(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Check everything that can be checked without changing anything."""
    if arguments.moved is not None:
        return move(arguments, screen)
    from filepact.opening import unwatched_files  # noqa: PLC0415 - loads the database

    context = find_context(arguments)
    files = list(check_settings(arguments.config, context.roots))
    found = [*check_programs(), *files, *check_state(context.state), *check_room(context.state)]
    with suppress(FilepactError):  # What nobody can open is told below.
        found += check_journal(context.state, screen.patience())
    named = context.origin in ("--root", "FILEPACT_ROOT")
    start = Path(context.roots[0]) if named else Path.cwd()
    found += check_hosts(start, arguments, context.state)
    with suppress(FilepactError):
        if moved := moved_here(context, arguments.config):
            found.append(CheckResult("history", "warn", f"{moved[0]}.", moved[1]))
    settings: Settings | None = None
    # With a settings file that is wrong nothing opens, and that has been said.
    if all(one.level != "fail" for one in files):
        try:
            settings = read_settings(arguments.config)
            found.append(check_guard(settings.guard))
            found.append(check_extras(settings.audit is not None and bool(settings.audit.heads)))
            found += check_accounts(context.state, settings, screen.patience())
            with opened(arguments, context) as workspace:
                found += check_folders(workspace)
                roots = [root.path for root in workspace.guard.roots]
                unwatched = unwatched_files(context.state, roots)
                if unwatched := unwatched or workspace.external.count_beyond():
                    found.append(CheckResult("files", "warn", unwatched_said(unwatched)))
                found.append(check_wall(workspace, context.state, settings.guard.landlock))
                for extension in extensions():
                    if extension.check is not None:
                        starts, tell = arguments.servers, screen.progress
                        found += extension.check(workspace, settings, context.state, starts, tell)
        except FilepactError as error:
            found.append(CheckResult("workspace", "fail", error.message, error.hint))
    spans: list[TerminalText] = []
    for one in found if arguments.all or arguments.servers else in_short(found):
        spans += [
            TerminalText(f"{one.level:<5}", _STYLES[one.level]),
            TerminalText(f"{_wrapped(f'{one.name}: {one.message}', screen.columns)}\n"),
        ]
        if one.next:
            # A command is not torn: it is there to be copied.
            after = _wrapped(one.next, screen.columns) if one.next.endswith(".") else one.next
            spans.append(TerminalText(f"     {after}\n", "dim"))
    failed = sum(one.level == "fail" for one in found)
    warned = sum(one.level == "warn" for one in found)
    end = f"{failed} failed, {warned} to look at." if failed or warned else "All is well."
    if bare := [one.name.removeprefix("agent ") for one in found if one.facts.get("unguarded")]:
        end = f"{end if failed or warned else ''} Not guarded in this folder: {', '.join(bare)}.".strip()
    if waiting := [one.name.removeprefix("agent ") for one in found if one.facts.get("waits")]:
        end += f" Not seen at work yet: {', '.join(waiting)}."
    spans.append(TerminalText(f"\n{_wrapped(end, screen.columns)}\n"))
    return CommandAnswer(
        tuple(spans),
        {
            "ok": not failed,
            "guard": None if settings is None else asdict(settings.guard),
            "diagnostics": next((one.facts for one in found if one.name == "diagnostics"), None),
            "checks": [
                {"name": one.name, "level": one.level, "said": one.message, "next": one.next}
                | dict(one.facts)
                for one in found
            ],
        },
        FAILED if failed else DONE,
    )


def _wrapped(text: str, columns: int | None) -> str:
    """Text that begins in the sixth column, and goes on there where a line ends: programs have JSON."""
    lines = textwrap.wrap(
        text, max(20, (columns or 80) - 5), break_long_words=False, break_on_hyphens=False
    )
    return "\n     ".join(lines)


def in_short(found: Sequence[CheckResult]) -> Iterator[CheckResult]:
    """Yield the checks for a person: packages on one line, servers only for files that are in this folder."""
    packages = [one for one in found if one.name in _PACKAGES and one.level == "ok"]
    absent = [one for one in found if one.facts.get("missing") and not one.facts.get("here")]
    for one in found:
        if one in packages:
            if one is packages[0]:
                said = ", ".join(f"{each.name} {each.message}" for each in packages)
                yield CheckResult("packages", "ok", said)
        elif one not in absent and not _unremarkable(one):
            yield one
    if absent:
        said = f"{len(absent)} more known, for languages without a file here"
        yield CheckResult("servers", "none", said, "`filepact doctor --all` lists them.")


def _unremarkable(one: CheckResult) -> bool:
    return (one.name, one.level) in _UNREMARKABLE and not one.facts.get("here")


def check_programs() -> Iterator[CheckResult]:
    """Python, this program, and the packages it stands on."""
    yield CheckResult("filepact", "ok", f"{VERSION}, started by {' '.join(isolated_command())}")
    yield CheckResult("python", "ok", f"{platform.python_version()} on {platform.system()}")
    if sys.platform != "linux":
        yield CheckResult(
            "system",
            "ok",
            "names are resolved step by step here, because the system has no openat2",
            "Nothing to do; on Linux the kernel itself keeps paths inside the root.",
        )
    for package, module in _PACKAGES.items():
        try:
            import_module(module)
            yield CheckResult(package, "ok", version(package))
        except (ImportError, PackageNotFoundError) as error:
            yield CheckResult(
                package, "fail", f"cannot be used ({error})", "Install filepact again."
            )


def check_extras(heads: bool) -> CheckResult:
    """The packages that only some people need, by the name of the extra that brings them.

    Args:
        heads: Whether signed heads of the audit log are to be kept elsewhere as well.
    """
    known = extras()
    absent = [name for name, (module, _) in known.items() if find_spec(module) is None]
    facts = {"extras": absent}
    if "sign" in absent and heads:
        said = "signed heads of the audit log are wanted, and the extra sign is not installed"
        return CheckResult("extras", "warn", said, install_line("sign"), facts)
    if not absent:
        return CheckResult("extras", "ok", ", ".join(known), "", facts)
    said = "not installed: " + ", ".join(f"{name} ({known[name][1]})" for name in absent)
    return CheckResult("extras", "none", said, install_line(absent[0]), facts)


def check_settings(named: str, roots: Sequence[str]) -> Iterator[CheckResult]:
    """The settings files that are read, and everything that is wrong in them.

    Args:
        named: The person's file, if it is not the usual one.
        roots: The folders whose own files of rules count.
    """
    mine = str(settings_file(named))
    read: set[str] = set()
    try:
        for source, text in rule_files(named):
            read.add(source.name)
            yield from _check_file(text, source)
    except FilepactError as error:
        yield CheckResult("settings", "fail", error.message, error.hint)
        return
    if mine not in read:
        yield CheckResult("settings", "ok", f"none of your own; {mine} would be read")
    for folder in roots:
        # A folder or file that cannot be opened at all is told by what opens the folders.
        with suppress(FilepactError):
            for root, text in project_files((folder,)):
                name = f"{root.rstrip('/')}/{PROJECT_FILE}"
                if name not in read:
                    read.add(name)
                    yield from _check_file(text, SettingsSource("project", name, root))


def _check_file(text: str, source: SettingsSource) -> Iterator[CheckResult]:
    wrong = find_problems(text, source)
    if not wrong:
        yield CheckResult("settings", "ok", f"{source.name} is read, nothing is wrong in it")
    for problem in wrong:
        yield CheckResult(
            "settings", "fail", str(problem), "Correct it; nothing starts until then."
        )


def check_guard(guard: GuardSettings) -> CheckResult:
    """Report the settings of the guard."""
    mounts, content = (str(each).lower() for each in (guard.mounts, guard.content))
    said = f'mounts = {mounts}, content = {content}, landlock = "{guard.landlock}"'
    said += f', hard_links = "{guard.hard_links}"'
    return CheckResult("guard", "ok", said)


def check_state(state: str) -> Iterator[CheckResult]:
    """The state folder as it is before anything opens it."""
    name, elsewhere = "state folder", "Choose another with --state or FILEPACT_STATE_DIR."
    try:
        found = Path(state).stat()
    except FileNotFoundError:
        yield CheckResult(name, "ok", f"{state} is not there yet, and made when needed")
        return
    except OSError as error:
        yield CheckResult(name, "fail", f"{state}: {error.strerror}", elsewhere)
        return
    mode = stat.S_IMODE(found.st_mode)
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        yield CheckResult(name, "fail", f"{state} belongs to another user", elsewhere)
    elif mode & 0o077:
        said = f"{state} is open to other users (mode {mode:o})"
        yield CheckResult(name, "fail" if mode & 0o022 else "warn", said, f"chmod 700 {state}")
    else:
        yield CheckResult(name, "ok", f"{state}, yours alone")
    rescued = Path(state, "rescued")
    kept = len(list(rescued.iterdir())) if rescued.is_dir() else 0
    if kept:
        said = f"{kept} in {rescued}: written by other programs while a file was replaced"
        after = "Look whether something in them is missed, then remove them."
        yield CheckResult("rescued texts", "warn", said, after)


def check_room(state: str) -> Iterator[CheckResult]:
    """Whether the state folder takes what is going to be written to it."""
    if not Path(state).is_dir():
        return
    free = shutil.disk_usage(state).free
    if free < _ROOM:
        level: Level = "fail" if free < _LEAST_ROOM else "warn"
        said = f"{size(free)} are free on the disk with {state}"
        after = "Make room there: without it no change is made."
        yield CheckResult("state disk", level, said, after)
    if not os.access(state, os.W_OK):
        after = "Nothing can be changed or taken back until it can be written."
        yield CheckResult("state disk", "warn", f"{state} can only be read", after)


def check_journal(state: str, tell: Callable[[str], None]) -> Iterator[CheckResult]:
    """Whether everything in the journal can be read."""
    found = look_into_state(state, tell=tell)
    if found is None:
        return
    if found.sound:
        yield CheckResult(
            "journal", "ok", f"{count(found.contents, 'content')}, all as they were kept"
        )
        return
    said = f"damaged: {'; '.join(found.problems[:3]) or count(len(found.damaged), 'content')}"
    if found.unusable:
        said += f", and what operations did to {count(len(found.unusable), 'file')} cannot be taken back"
    after = "`filepact doctor --journal` says what, `filepact doctor --repair` keeps the rest."
    yield CheckResult("journal", "fail", said, after)


def check_folders(workspace: Workspace) -> Iterator[CheckResult]:
    """The journal as it answers, and each root."""
    figures = workspace.statistics()
    yield CheckResult(
        "journal",
        "ok",
        f"opens and answers: {count(figures.operations, 'operation')}, {figures.bytes_on_disk:,} bytes",
    )
    for settled in workspace.recovered:
        yield CheckResult(
            "recovery",
            "fail" if settled.state == "interrupted" else "warn",
            f"{settled.id} was cut off and is now {settled.state.replace('_', ' ')}",
            f"filepact show {settled.id}",
        )
    for root in workspace.guard.roots:
        weak = sys.platform == "linux" and root.resolver != "openat2"
        yield CheckResult(
            "root",
            "warn" if weak else "ok",
            f"{root.path}, resolver {root.resolver}",
            "The kernel or a container's filter does not offer openat2; paths are checked step "
            "by step instead."
            if weak
            else "",
        )
        yield from _check_file_system(root.path)
        yield _check_attributes(root.path, root.not_kept())
        if root.trees.begin_above:
            yield CheckResult(
                "ignore rules",
                "ok",
                f"{root.path} lies within a repository; the ignore files above it are not read",
                "What they name is searched too. To leave it out, share the top of the repository.",
            )
        yield from _check_remains(root.path)
    yield from _check_unset(workspace)


def _check_unset(workspace: Workspace) -> Iterator[CheckResult]:
    """Tell what the newest changes could not set of owners, rights and attributes, if it is not set by now."""
    later: set[WorkspacePath] = set()
    for done in workspace.log(limit=_NEWEST):
        told = [part for part in done.note.split("; ") if any(one in part for one in _UNSET)]
        changes = [one for one in done.changes.changes if one.after and one.path not in later]
        later.update(done.changes.paths)
        for one in changes if told else ():
            name = workspace.show(one.path)
            begins = f"{name}: " if len(done.changes.changes) > 1 else ""
            said = "; ".join(x.removeprefix(begins) for x in told if x.startswith(begins))
            with suppress(FilepactError):  # One of another root is not looked at here.
                root = workspace.guard.root_of(one.path.root)
                now = root.folder_state(one.path.path)
                now = now or root.read(one.path.path, limit=EDIT_LIMIT, follow=False).revision
                states = [(x.mode, x.attributes) for x in (now, one.after) if x]
                if said and states[0] != states[1]:
                    yield CheckResult(
                        "attributes",
                        "ok",
                        f"{done.id}, {name}: {said}",
                        "Set it by hand, as root where it takes root.",
                    )


def check_wall(
    workspace: Workspace, state: str, wanted: Literal["auto", "off", "required"]
) -> CheckResult:
    """Whether servers confine themselves here, as a child process finds that tries it."""
    from filepact.app import try_sandbox  # noqa: PLC0415 - only the doctor needs it

    abi, trial = try_sandbox(workspace, state_dir=state)
    has = f"Landlock, ABI {abi}" if abi else "no Landlock"
    name = "sandbox"
    if trial == "holds":
        said = (
            f"could be up, but is switched off ({has})"
            if wanted == "off"
            else f"up in servers ({has}): a process in it read the folders and nothing outside"
        )
        return CheckResult(name, "ok", said)
    if trial == "refused":
        said = f"not up in servers, the system does not offer it ({has})"
        if wanted == "required":
            needed = 'Servers do not start: landlock = "required" is set.'
            return CheckResult(name, "fail", said, needed)
        return CheckResult(
            name,
            "ok" if wanted == "off" or sys.platform != "linux" else "warn",
            said,
            "" if wanted == "off" else "Nothing to do; the guard does not depend on it.",
        )
    fault = "reads what lies outside" if trial == "leaks" else "cannot read the folders"
    return CheckResult(
        name,
        "fail",
        f"does not work ({has}): a process in it {fault}",
        'Set landlock = "off" and tell the developers.',
    )


def _check_attributes(folder: str, missing: Sequence[str]) -> CheckResult:
    """Check which attributes come back with a file besides its bytes."""
    said = f"what a file in {folder} has besides its bytes comes back with it"
    if not missing:
        return CheckResult("attributes", "ok", said)
    why = {
        "extended attributes": "this file system has none",
        "access lists": "they stay with a file, and are in no copy of one that is gone"
        if sys.platform == "darwin"
        else "this file system has none",
        "the owner": "only root may give a file to somebody else",
    }
    but = ", ".join(f"{one} ({why[one]})" for one in missing)
    return CheckResult(
        "attributes",
        "ok",
        f"{said}, but not: {but}",
        "Where a change loses one of these, its answer and the log name the file.",
    )


def _check_file_system(folder: str) -> Iterator[CheckResult]:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    kind = file_system(folder, mounts)
    if kind.startswith(_WEAK_FILE_SYSTEMS):
        yield CheckResult(
            "file system",
            "warn",
            f"{folder} is on {kind}, where two names may not be exchanged in one step",
            "A save by another program at the very same instant could be lost; a local disk is "
            "safer.",
        )
    else:
        yield CheckResult("file system", "ok", f"{folder} is on {kind}")


def file_system(folder: str, mounts: str) -> str:
    """The kind of file system that a folder is on.

    Args:
        folder: Its true absolute path.
        mounts: The mounts as ``/proc/self/mountinfo`` lists them, see proc(5).
    """
    longest, kind = -1, ""
    for mount in mounts.splitlines():
        before, _, after = mount.partition(" - ")
        point = before.split(" ")[4].replace("\\040", " ")
        # The later of two mounts on one folder hides the earlier.
        if len(point) >= longest and Path(folder).is_relative_to(point):
            longest, kind = len(point), after.split(" ")[0]
    return kind


def _check_remains(folder: str) -> Iterator[CheckResult]:
    """Temporary files of ours that a crash left and recovery did not know.

    Tools never show them, so they are looked for here: names only, and not without end.
    """
    found: list[str] = []
    seen, where = 0, f"in {folder}"
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - MACHINE_FOLDERS)
        found += [os.path.join(here, name) for name in names if name.startswith(_REMAINS)]  # noqa: PTH118 - 100,000 of them
        seen += len(names)
        if seen > _MOST_NAMES:
            where = f"among the first {seen:,} names in {folder}"
            break
    if found:
        yield CheckResult(
            "leftovers",
            "warn",
            f"{count(len(found), 'temporary file')} of a change that was cut off: "
            f"{', '.join(found[:5])}",
            "Remove them when `filepact log` shows that nothing is missing.",
        )
    else:
        yield CheckResult("leftovers", "ok", f"none {where}")
