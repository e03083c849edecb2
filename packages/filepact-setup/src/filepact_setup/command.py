"""Command `setup`: connects agents and editors to filepact, in their own settings files.

What a file is to hold is put in with as few edits as can be, and kept in a record in the state folder
with what the file held before; so a second time nothing happens, and `--remove` brings the old bytes
back, or takes out what is ours where others have edited the file since.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, cast

from filepact.config.folders import project_folder, read_set_up
from filepact.errors import FilepactError, InvalidParamsError, StaleFileError, StateFailedError
from filepact.faces.cli import isolated_command
from filepact.values import dataclass, late_regex, replace
from filepact_cli.context import find_context
from filepact_cli.parser import meant
from filepact_cli.screen import DONE, NOTHING, CommandAnswer, TerminalText
from filepact_cli.wording import fitted, source
from filepact_setup.connections import check_state, connections, overview
from filepact_setup.hook_command import (
    NAMED,
    check_lasting,
    entry_options,
    filled,
    hook_lines,
    with_paths_emptied,
)
from filepact_setup.host_files import (
    SettingsRecord,
    digest,
    find_file,
    plan_file,
    read_file,
    read_record,
    setup_notes,
)
from filepact_setup.hosts import (
    HOSTS,
    Guarding,
    Host,
    HostFile,
    command_in,
    hook_wants,
    hook_words,
)
from filepact_setup.settings_edit import OWN, read_settings_text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from filepact.domain.operation import Session
    from filepact_cli.screen import Style, Terminal
    from filepact_setup.host_files import SettingsFile

__all__ = ["setup"]

_ALL_FOLDERS: Final = late_regex(
    r"""filepact\S* (?:\S+ )*?hook \w+\b(?! --where)|"hook", "\w+"\]"""
)
_EVENT: Final = late_regex(r"--event \S+")
_PAGE: Final = "docs/reference/what-is-guarded.md"


@dataclass(frozen=True, slots=True)
class _Entry:
    """How to start filepact from a host's files.

    Attributes:
        command: The program and what always follows, by its path.
        options: Of every command: which state and which settings.
        project: The folder.
        state: The state folder.
    """

    command: tuple[str, ...]
    options: tuple[str, ...]
    project: Path
    state: str

    def filled(self, host: Host, file: HostFile, guard: Guarding, folders: Sequence[str]) -> Any:
        """Return the settings of a file, with this command in them."""
        program, *rest = command = command_in(host, file)
        if command == NAMED:
            folders = ["."]
        hook = self.hook(host, file.path, guard)
        wants = hook_wants(host.hooks, file, hook) if host.hooks else file.wants
        words = [*rest, "mcp", *folders, *self.options]
        return with_paths_emptied(filled(wants, {"{program}": program}, words))

    def hook(self, host: Host, path: str, guard: Guarding) -> list[str]:
        """Return the command line of a hook in a file."""
        shared = "" if path.startswith("~") else path
        return hook_words(host, self.project, self.options, guard, path=shared)


# -- the command -------------------------------------------------------------------------------------


def setup(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Show or make the changes of settings files that connect some hosts."""
    arguments.hosts = names = list(dict.fromkeys(map(_known_as, arguments.hosts)))
    if "csharp" in names:
        raise InvalidParamsError(
            "`setup csharp` is `install csharp` now", hint="Run: filepact install csharp"
        )
    if names == ["acp"]:
        from filepact_setup.editor_lines import lines_for_editors  # noqa: PLC0415 - few ask

        return lines_for_editors(arguments)
    known = {host.name: host for host in HOSTS}
    for name in names:
        if name not in known:
            raise InvalidParamsError(
                f"no agent or editor is known as {name!r}",
                hint=meant(name, known, "`filepact setup {}`")
                or f"Known are: {', '.join(known)}; and acp, for editors that start agents.",
            )
    if arguments.write and arguments.dry_run:
        raise InvalidParamsError("--write and --dry-run contradict each other")
    if arguments.remove and (arguments.guard or arguments.team):
        raise InvalidParamsError(
            "--remove takes away all that was put in, whichever --guard or --team it was",
            hint="Leave these out.",
        )
    _name_root(arguments)
    context = find_context(arguments)
    project = Path(os.path.normpath(Path(context.roots[0]).expanduser().absolute()))
    if not names:
        if arguments.write or arguments.remove:
            raise InvalidParamsError(
                "name the agent or editor whose settings are meant",
                hint="`filepact setup` lists them.",
            )
        return overview(project, context.state)
    if project in Path(context.state).parents and not arguments.remove:
        raise StateFailedError(
            f"{project} holds the state folder {context.state}, so no agent can be given all of it",
            hint="Go into the folder of a project, or name one with --root.",
        )
    entry = _Entry(
        isolated_command(), entry_options(arguments, context.state), project, context.state
    )
    check_lasting(entry.command)
    record = read_record(context.state)
    chosen = [known[name] for name in names]
    guards = {host.name: _guard_of(host, arguments.guard) for host in chosen}
    folder = project_folder(os.path.realpath(project))
    before = sorted(read_set_up(context.state))
    others = [one for one in before if one[2] != folder or one[0] not in guards]
    mine = [
        (host.name, guard, folder) for host in chosen if host.hooks and (guard := guards[host.name])
    ]
    set_up = sorted([*others, *([] if arguments.remove else mine)])
    files: list[SettingsFile] = []
    for host in chosen:
        guard = None if arguments.remove else guards[host.name]
        ways = [cast("Guarding", way) for agent, way, _ in others if agent == host.name]
        files += _planned(host, guard, ways, entry, record, arguments, files)
    asked = arguments.write or (arguments.remove and not arguments.dry_run)
    changing = [one for one in files if one.changes]
    changes = bool(changing) or set_up != before
    if asked and changes:
        _write(changing, files, arguments, screen, record, (before, set_up))
    return _answer(chosen, guards, files, arguments, entry, screen, asked=asked, changes=changes)


def _known_as(word: str) -> str:
    """The name of a host by any name that people have for it; else the word itself."""
    plain = "-".join(word.lower().replace("_", " ").split())
    for host in HOSTS:
        title = "-".join(host.title.lower().split())
        if plain in (host.name, title, f"{host.name}-cli", *host.programs):
            return host.name
    return word


def _name_root(arguments: Namespace) -> None:
    """Take the repository that we are in as the root, which an agent's program does too.

    Only where there is none is the journal asked: to open it takes longer than all the rest.
    """
    if not arguments.root and not os.environ.get("FILEPACT_ROOT"):
        folder = Path.cwd()
        top = (str(one) for one in (folder, *folder.parents) if os.path.lexists(one / ".git"))
        arguments.root = list(top)[:1]


def _guard_of(host: Host, wanted: Guarding | None) -> Guarding | None:
    """How far a host's own tools are guarded; None where there is no way.

    Raises:
        InvalidParamsError: What is wanted cannot be had of that host.
    """
    if wanted is None:
        return "own-tools" if host.hooks else None
    if wanted == "only-filepact" and not host.only:
        hint = host.by_hand
        if not host.tools:
            hint = "It has no tools of its own that write files. Leave --guard out."
        raise InvalidParamsError(
            f"no settings file can switch off {host.title}'s own tools", hint=hint
        )
    if wanted != "only-filepact" and host.hooks is None:
        raise InvalidParamsError(
            f"{host.title} has no hooks that filepact knows",
            hint="Leave --guard out to connect it; its own tools stay as they are.",
        )
    return wanted


# -- what is going to change -------------------------------------------------------------------------


def _planned(
    host: Host,
    guard: Guarding | None,
    ways: Sequence[Guarding],
    entry: _Entry,
    record: Mapping[str, SettingsRecord],
    arguments: Namespace,
    before: Sequence[SettingsFile],
) -> list[SettingsFile]:
    """Every file of a host as it is and is going to be; those that need nothing as well.

    ``ways`` is how far it is guarded in other folders, for whose sake the person's own files stay so.
    """
    wanted = [] if arguments.remove else [*host.files(guard, team=arguments.team)]
    for way in ways:
        wanted += [one for one in host.files(way) if one.path.startswith("~")]
    if wanted and host.name == "zed" and arguments.agent:
        wanted.append(replace(host.server, wants=_zed_agent(arguments)))
    every = host.every_file()
    teams = host.hooks.wanted(host.hooks.team) if host.hooks and host.hooks.team else ()
    by_path: dict[Path, list[HostFile]] = {}
    for one in (*every, *wanted):
        by_path.setdefault(find_file(one, entry.project), [])
    for one in wanted:
        by_path[find_file(one, entry.project)].append(one)
    found: list[SettingsFile] = []
    for path, parts in by_path.items():
        known = record.get(os.path.realpath(path))
        ours = [one for one in every if find_file(one, entry.project) == path]
        if known is None and not arguments.remove:
            # Hooks that somebody else of the team has put there are the team's.
            ours = [one for one in ours if one not in teams or one in parts]
        if not ours:
            continue
        file = read_file(path, entry.project)
        if any(one.path == file.path for one in before):
            raise InvalidParamsError(f"{file.shown}: two of these hosts have the same file")
        if host.hooks is not None and host.hooks.wanted()[0] in ours:
            check_state(host, file, entry.options)
        folders = _folders(host, file, entry.project)
        filled = [entry.filled(host, one, guard or "own-tools", folders) for one in parts]
        everything = [entry.filled(host, one, "own-tools", folders) for one in ours]
        found.append(plan_file(file, ours[0].kind, filled, everything, known))
    return found


def _zed_agent(arguments: Namespace) -> dict[str, Any]:
    from filepact_setup.editor_lines import agent_command  # noqa: PLC0415 - few ask

    started = agent_command(arguments.agent)
    title = f"{Path(started[0]).name}, guarded"
    words = [*isolated_command()[1:], "acp", "--", *started]
    return {
        "agent_servers": {
            title: {"type": "custom", "command": "{program}", "args": words, "env": {}}
        }
    }


def _folders(host: Host, file: SettingsFile, project: Path) -> list[str]:
    """The folders that a server in this file is for."""
    if not host.user_wide:
        return [str(project)]
    if host.inside:
        return ["."]
    # It starts servers anywhere, once for all projects: so those that it has are kept.
    folders: list[str] = []
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        words = read_settings_text((file.data or b"").decode(), "json")["mcpServers"][OWN]["args"]
        after = words[words.index("mcp") + 1 :]
        folders = [one for one in after if isinstance(one, str) and one.startswith("/")]
        folders = folders[: next((n for n, one in enumerate(after) if one[:1] != "/"), None)]
    return list(dict.fromkeys([*folders, str(project)]))


# -- writing -----------------------------------------------------------------------------------------


def _write(
    changing: Sequence[SettingsFile],
    files: Sequence[SettingsFile],
    arguments: Namespace,
    screen: Terminal,
    record: Mapping[str, SettingsRecord],
    set_up: tuple[Sequence[tuple[str, str, str]], Sequence[tuple[str, str, str]]],
) -> None:
    """Make all changes, or none of them; ``set_up`` are the folders before and then.

    Raises:
        UnattendedError: Nobody is at a terminal, and `--unattended` was not said.
        FilepactError: A file is another by now, or cannot be written.
    """
    from filepact.app import keep_before_setup, replace_outside  # noqa: PLC0415 - loads the database
    from filepact_cli.history import decider  # noqa: PLC0415 - with it

    session = decider(arguments, screen)
    state = find_context(arguments).state
    kept = {path: one for path, one in record.items() if path not in {each.path for each in files}}
    for one in files:
        if one.change is not None and one.wanted is not None:
            kept[one.path] = SettingsRecord(digest(one.wanted), one.origin, one.change)
    held = {one.path: one.data for one in changing if one.data is not None}
    notes = [setup_notes(*one) for one in zip((record, kept), set_up, strict=True)]
    keep_before_setup(state, held, notes[1])
    token = f"setup-{secrets.token_hex(6)}"
    done: list[SettingsFile] = []
    outside = [one for one in changing if not one.inside]
    inside = [one for one in changing if one.inside]
    try:
        for one in outside:
            replace_outside(one.path, one.wanted, expected=one.data, token=token)
            done.append(one)
        if inside:
            _write_inside(inside, arguments, session)
    except FilepactError:
        for one in reversed(done):
            with suppress(FilepactError):
                replace_outside(one.path, one.data, expected=one.wanted, token=token)
        keep_before_setup(state, {}, notes[0])
        raise


def _write_inside(files: Sequence[SettingsFile], arguments: Namespace, session: Session) -> None:
    """Change files of the project, as one operation of the person, who has said so."""
    from filepact.domain.operation import Approval  # noqa: PLC0415 - with the workspace
    from filepact_cli.context import opened  # noqa: PLC0415 - the same

    with opened(arguments) as workspace:
        with workspace.draft(session, "setup") as draft:
            targets = draft.open_all([one.inside for one in files])
            for one, target in zip(files, targets, strict=True):
                held = None if target.document is None else target.document.data
                if held != one.data:
                    raise StaleFileError(
                        f"{one.shown}: has changed meanwhile; nothing was changed",
                        hint="Try again.",
                    )
                if one.wanted is None:
                    draft.delete(target, emptied_by=None)
                else:
                    draft.put(target, one.wanted)
            receipt = workspace.submit(draft, f"set up {', '.join(arguments.hosts)}")
        if receipt.status == "pending" and receipt.operation:
            # It waits for a person's word, and this is one.
            workspace.approve(receipt.operation, Approval(session.actor))


# -- what people see ---------------------------------------------------------------------------------


def _answer(
    chosen: Sequence[Host],
    guards: Mapping[str, Guarding | None],
    files: Sequence[SettingsFile],
    arguments: Namespace,
    entry: _Entry,
    screen: Terminal,
    *,
    asked: bool,
    changes: bool,
) -> CommandAnswer:
    from filepact.text.diff import unified  # noqa: PLC0415 - not for the overview

    changing = [one for one in files if one.changes]
    diffs = {
        one.path: unified(
            None if one.data is None else one.data.decode("utf-8", "replace"),
            None if one.wanted is None else one.wanted.decode("utf-8", "replace"),
            old_name=one.shown,
            new_name=one.shown,
        )
        for one in changing
    }
    spans = _shown(chosen, guards, changing, diffs, entry, screen)
    notes = _notes(chosen, guards, entry, arguments)
    written = asked and changes
    notes += [
        (
            f"The hooks in {one.shown} were for all folders; now they are for those that are set up.",
            "warn",
        )
        for one in changing
        if not one.inside and b"--where-set-up" in (one.wanted or b"")
        if _ALL_FOLDERS.search((one.data or b"").decode("utf-8", "replace"))
    ]
    for one in connections(entry.project, entry.state) if written and not arguments.remove else ():
        if one.host in chosen and (one.problem or one.off):
            said = one.problem or f"{one.host.title} calls no hooks: {one.off}."
            notes.append((f"Not guarded: {said}", "bad"))
    if not changes:
        what = "nothing of filepact is in" if arguments.remove else "already as wanted:"
        spans.append(TerminalText(f"Nothing to do, {what} {_titles(chosen)}.\n"))
    elif written:
        verb = "Removed from" if arguments.remove else "Connected:"
        spans.append(TerminalText(f"{verb} {_titles(chosen)}.\n", "good"))
    else:
        spans.append(TerminalText("Nothing is written yet. To do it:\n"))
        spans.append(TerminalText(f"  {_again(arguments)}\n", "strong"))
    if not arguments.remove:
        spans += [
            TerminalText(f"{fill(text, 80, break_on_hyphens=False)}\n", style)
            for text, style in notes
        ]
    waiting = _waiting(arguments, entry) if asked and not arguments.remove else []
    if waiting:
        spans.append(
            TerminalText(
                "These language servers are installed, and work for agents once you trust them\n"
                f"here: {', '.join(waiting)}. `filepact trust` tells what that means.\n",
                "dim",
            )
        )
    if written and not arguments.remove:
        spans.append(TerminalText(fitted(_next_steps(chosen, guards), screen.columns), "plain"))
    return CommandAnswer(
        tuple(spans),
        {
            "written": written,
            "command": [*entry.command],
            "hosts": [
                {"host": host.name, "title": host.title, "guard": guards[host.name]}
                for host in chosen
            ],
            "files": [
                {
                    "file": one.shown,
                    "path": one.path,
                    "changes": one.changes,
                    "diff": diffs.get(one.path, ""),
                }
                for one in files
            ],
            "notes": [text for text, _ in notes],
            "waiting_for_trust": waiting,
        },
        NOTHING if arguments.remove and not changes else DONE,
    )


def _shown(
    chosen: Sequence[Host],
    guards: Mapping[str, Guarding | None],
    changing: Sequence[SettingsFile],
    diffs: Mapping[str, str],
    entry: _Entry,
    screen: Terminal,
) -> list[TerminalText]:
    """The changes, and each command that will run once and whole; in the changes there is a word for it."""
    from filepact_cli.render import show_diff  # noqa: PLC0415 - not for the overview
    from filepact_cli.wording import cut_in_middle  # noqa: PLC0415 - the same

    runs: dict[str, str] = {}
    spans: list[TerminalText] = []
    for one in changing:
        diff, name = diffs[one.path], "a command"
        for line, written in _hooks_of(chosen, guards, entry):
            if written in diff:
                name = runs.setdefault(line, f"HOOK{len(runs) + 1}" if runs else "HOOK")
                diff = diff.replace(written, name)
        if one.path.endswith(".js"):
            lines = len((one.wanted or one.data or b"").splitlines())
            what = "goes" if one.wanted is None else "is written anew" if one.data else "is made"
            said = (
                f"{one.shown} {what}: a plugin of {lines} lines that runs {name} at each event.\n\n"
            )
            spans.append(TerminalText(said))
            continue
        # To be looked at, and not to be applied: a pipe has the lines as they are.
        spans += [*show_diff(cut_in_middle(diff, screen.columns), screen), TerminalText("\n")]
    for line, name in runs.items():
        spans.append(TerminalText(f"{name} is this command:\n"))
        spans.append(TerminalText(f"  {line}\n\n", "strong"))
    return spans


def _hooks_of(
    chosen: Sequence[Host], guards: Mapping[str, Guarding | None], entry: _Entry
) -> list[tuple[str, str]]:
    """Return the command lines of hosts' hooks, each as a person and as a file writes it; the longest written ones first."""
    found: dict[str, str] = {}
    for host in chosen:
        guard = guards[host.name] or "own-tools"
        for part in host.every_file() if host.hooks else ():
            for line in hook_lines(entry.filled(host, part, guard, ())):
                found[json.dumps(line)[1:-1]] = _EVENT.sub("--event EVENT", line)
            words = entry.hook(host, part.path, guard)
            found[json.dumps(words)] = shlex.join(words)
    return [(found[one], one) for one in sorted(found, key=len, reverse=True)]


def _next_steps(chosen: Sequence[Host], guards: Mapping[str, Guarding | None]) -> str:
    """Return the next commands to type, and the limits of the guard, in four lines."""
    guarded = [host for host in chosen if guards[host.name] and host.hooks]
    names = ", ".join(
        host.programs[0] if host.terminal or host.hooks else host.title for host in chosen
    )
    where = "here, in a subfolder or in a worktree" if guarded else "here"
    some = (
        ["names that a command makes up", "ignored and large files"]
        if guarded
        else ["its own tools"]
    )
    return (
        f"Start it {where}: {names}\nAsk it for something.\n"
        "Look, and take back: filepact log, filepact undo --turn\n"
        f"Not covered: {', '.join(some)}; see {_PAGE}\n"
    )


def _titles(chosen: Sequence[Host]) -> str:
    return ", ".join(host.title for host in chosen)


def _again(arguments: Namespace) -> str:
    """The command line that does what this one shows."""
    words = ["filepact", "setup", *arguments.hosts]
    for option in ("guard", "agent"):
        value = getattr(arguments, option)
        words += [f"--{option}", value] if value else []
    words += ["--team"] if arguments.team else []
    return shlex.join([*words, "--remove" if arguments.remove else "--write"])


def _notes(
    chosen: Sequence[Host],
    guards: Mapping[str, Guarding | None],
    entry: _Entry,
    arguments: Namespace,
) -> list[tuple[str, Style]]:
    """Return notes for the person about each host."""
    notes: list[tuple[str, Style]] = []
    within = [one for one in (entry.command[0], __file__) if entry.project in Path(one).parents]
    if within:
        said = f"Agents can change {within[0]}, which is what guards: it lies in the project."
        notes.append((f"{said} Install filepact elsewhere: uv tool install {source()}", "warn"))
    for host in chosen:
        guard = guards[host.name]
        if host.trust:
            notes.append((host.trust, "plain"))
        shared = [one for one in host.files(guard, team=arguments.team) if one.shared]
        if any(entry.options or command_in(host, one) != NAMED for one in shared):
            names = ", ".join(dict.fromkeys(one.path for one in shared))
            said = f"Do not commit {names}: paths of this machine are in it."
            way = "Put filepact on your PATH and run this again for an entry that a team can share."
            if entry.options:
                way = "They come from --state, --config, or the variables for these."
            notes.append((f"{said} {way}" if host.terminal else said, "plain"))
        if guard is None and host.tools:
            said = f"{host.title} keeps tools of its own that write, which are not guarded."
            by_hand = "--guard only-filepact takes them away." if host.only else host.by_hand
            notes.append((f"{said} {by_hand}", "warn"))
        if guard == "only-filepact" and host.user_wide:
            notes.append(
                (f"{host.title} loses its own tools in all projects, not only here.", "warn")
            )
        if guard == "record":
            notes.append((f"{host.title} is recorded; nothing that it does is refused.", "plain"))
    return notes


def _waiting(arguments: Namespace, entry: _Entry) -> list[str]:
    """The installed language servers that work for agents only once they are trusted."""
    from filepact.config.person import read_settings  # noqa: PLC0415 - only what writes is told
    from filepact.extension import open_diagnostics  # noqa: PLC0415 - the same

    with suppress(FilepactError):  # `doctor` says what is wrong with the settings
        found = open_diagnostics(read_settings(arguments.config), find_context(arguments).state)
        waiting: list[str] = found.waiting(os.path.realpath(entry.project))
        return waiting
    return []
