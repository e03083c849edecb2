"""Names in a call of an agent's tool: files, folders that are searched, commands; one list for every door.

And to which of several calls that are under way a change is put down.

Tools are known by their names, which no two agents use for different things.  Of a tool that nobody knows
every text counts that could be a name, a ``file:`` URI or a command, at whatever depth, and its own
name tells whether it changes something.
"""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from posixpath import join
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from filepact.domain.operation import BY_SEVERAL, Actor, Session
from filepact.errors import FilepactError
from filepact.text.patch_parse import parse
from filepact.values import dataclass, late_regex, replace, words
from filepact_hooks.shell_command import read_command
from filepact_wire.uris import path_named, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from filepact.domain.document import NamedFiles, WorkspacePath
    from filepact.domain.policy import Action
    from filepact.workspace.guard import Guard

__all__ = [
    "NEW_TEXTS",
    "NO_CALL",
    "OLD_TEXTS",
    "PATHS",
    "Deed",
    "FileAccess",
    "FileSearch",
    "HostProcess",
    "OpenCall",
    "ToolCall",
    "named_commands",
    "named_paths",
    "opened",
    "read_tool_call",
    "shares",
]

Deed = Literal["read", "list", "search", "write", "delete", "patch", "run", "nothing", "own"]
"""``list`` tells names, ``search`` what files hold; ``own`` is a tool of ours, which asks the rules itself."""

MOST_NAMES: Final = 1_000


class FileAccess(NamedTuple):
    """A file that a call names.

    Attributes:
        path: As it was sent.
        action: What is done with it.
        missing: What is done instead where nothing is.
    """

    path: str
    action: Action
    missing: Action | None = None


class FileSearch(NamedTuple):
    """Files that a call looks at without naming them.

    Attributes:
        folder: Where; empty for where the agent is.
        globs: Of which a file has to match one; ``!`` leaves out what matches.  Empty for every file.
        deep: Whether folders below are looked at.
        ignores: Whether what ignore files name is left out.
        action: What is done with the files.
    """

    folder: str
    globs: tuple[str, ...] = ()
    deep: bool = True
    ignores: bool = True
    action: Action = "read"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        tool: By the host's name.
        deed: What it does; None where nobody knows.
        uses: The files that it names.
        searches: The folders that it looks through.
        commands: What it gives to a shell.
        folder: Where its commands run; empty where it does not say.
        unreadable: Why what it does cannot be told; empty if it can.
        envelope: Whether its command applies a patch, which was read.
    """

    tool: str
    deed: Deed | None
    uses: tuple[FileAccess, ...] = ()
    searches: tuple[FileSearch, ...] = ()
    commands: tuple[str, ...] = ()
    folder: str = ""
    unreadable: str = ""
    envelope: bool = False

    @property
    def open_ended(self) -> bool:
        """Whether the call may change files that it does not name."""
        if self.deed is None:
            return not _verbs(self.tool) & _LOOKS or bool(_verbs(self.tool) & (_CHANGES | _RUNS))
        return self.deed == "run" or (self.deed == "patch" and not self.uses)

    @property
    def starts_agent(self) -> bool:
        """Whether the call starts another agent."""
        return self.tool.lower() in ("task", "agent", "spawn_agent")

    @property
    def reads(self) -> bool:
        """Whether the call at most reads the files that it names."""
        return self.deed in ("read", "nothing", "own")


NO_CALL: Final = ToolCall("", "nothing")


_NAMES: Final[Mapping[Deed, str]] = {
    "read": "read read_file read_many_files view view_image notebookread read_text_file readfile show_file "
    "lsp lsp_hover lsp_diagnostics",
    "list": "ls list list_directory list_dir listdir glob find_files file_search",
    "search": "grep grep_search grep_files search_file_content rg codesearch search",
    "write": "write write_file create create_file edit edit_file multiedit multi_edit replace str_replace "
    "str_replace_editor insert notebookedit search_replace",
    "delete": "delete delete_file",
    "patch": "apply_patch patch applypatch",
    "run": "bash shell exec_command run_shell_command local_shell powershell write_stdin write_bash "
    "run_terminal_cmd terminal monitor",
    "nothing": "task agent todowrite todoread todo write_todos update_todo update_plan webfetch web_fetch websearch "
    "web_search google_web_search askuserquestion ask_user question exitplanmode exit_plan_mode "
    "enterplanmode enter_plan_mode plan_exit plan_enter skill activate_skill slashcommand toolsearch "
    "bashoutput taskoutput killshell killbash read_bash stop_bash list_bash taskstop taskcreate taskget "
    "tasklist taskupdate sendmessage report_intent invalid think wait_agent spawn_agent send_input close_agent "
    "request_user_input request_permissions askquestion ask_question todo_write switchmode createplan "
    "structuredoutput complete_task codebase_investigator update_topic teamcreate teamdelete wait await sleep "
    "pushnotification sendusermessage schedulewakeup stop_powershell",
}
_TOOLS: Final = {name: deed for deed, names in _NAMES.items() for name in names.split()}
"""What tools of agents' programs do, by their names in small letters."""

_OWN: Final = late_regex(
    r"(?:mcp_+)?filepact(?:_+|[-.])(?:read_file|write_file|edit_file|search_files|grep|directory_tree|patch_apply"
    r"|manage_files|history|diagnostics|show_images?|reload_workspace)"
)
"""Tools of our own server, by the names that hosts make of both."""

PATHS: Final = words(
    "path file_path filePath filepath absolute_path absolutePath abs_path file filename file_name fileName "
    "target_file targetFile notebook_path notebookPath old_path oldPath new_path newPath from_path to_path "
    "fromPath toPath relative_path relativePath source destination src dst dest from to paths file_paths "
    "filePaths files dir_path dirPath directory folder dir target uri image_path output output_path"
)
"""Under which names tools are given files and folders."""

_GLOBS: Final = words(
    "glob include includes include_pattern includePattern file_pattern filePattern exclude_glob"
)
_FOLDERS: Final = words("path paths dir_path dirPath directory folder dir target_directory")
_COMMANDS: Final = words(
    "command cmd commands script shell shell_command shellCommand code bash chars argv"
)
_PROGRAMS: Final = ("program", "executable", "cmd", "command")
_STARTS: Final = tuple("workdir cwd working_directory workingDirectory directory dir_path".split())  # noqa: SIM905 - read as `words`
"""In this order."""

OLD_TEXTS: Final = words("old_string oldString old_str oldText old_text")
NEW_TEXTS: Final = words(
    "content new_string newString new_str newText new_text replacement file_text"
)
_WORDS: Final = (
    OLD_TEXTS
    | NEW_TEXTS
    | words(
        "patch diff text body message description prompt query question thought title comment note summary "
        "instructions instruction reason justification url pattern regex contents data todos explanation sql"
    )
)
"""Under which names they are given what is no name of a file: texts, patterns and what people say."""

_PATCHES: Final = ("command", "cmd", "input", "patch", "patchText", "patch_text", "diff")
_CHANGES: Final = words(
    "write edit create move rename delete remove patch replace insert append save update put copy mkdir "
    "modify overwrite upload unlink touch set add rm mv cp"
)
_DELETES: Final = frozenset({"delete", "remove", "unlink", "rm"})
_CARRIES: Final = frozenset({"move", "rename", "copy", "upload", "mv", "cp"})
_LOOKS: Final = words("get list read search find fetch query view show lookup describe browse")
_RUNS: Final = words("run exec execute shell bash terminal command script eval spawn")
_VERB: Final = late_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_JOINTS: Final = late_regex(r"[=:,@]")
_DEEPEST: Final = 40
_MOST_BASES: Final = 4  # folders that a command may apply a patch in


def read_tool_call(tool: str, arguments: object) -> ToolCall:
    """Read what a call does from the tool's name and what it is given.

    Args:
        tool: By the host's name.
        arguments: Mostly an object of JSON; a text is a patch or a command.
    """
    deed: Deed | None = _TOOLS.get(tool.lower())
    if deed is None and _OWN.fullmatch(tool):
        return ToolCall(tool, "own")
    if isinstance(arguments, str) and deed in (None, "patch", "run"):
        arguments = {"input": arguments}
    forms = (dict,) if deed not in (None, "patch", "run") else (dict, list)
    if not isinstance(arguments, forms):
        why = "" if deed == "nothing" else "does not say what it is given"
        return ToolCall(tool, deed, unreadable=why)
    try:
        return _read(tool, deed, arguments if isinstance(arguments, dict) else {"": arguments})
    except RecursionError:
        return ToolCall(tool, deed, unreadable="is given more within each other than can be read")


def _read(tool: str, deed: Deed | None, given: dict[str, Any]) -> ToolCall:
    if deed == "write" and given.get("command") == "view":
        deed = "read"
    commands = () if deed in ("nothing", "read", "list", "search") else tuple(named_commands(given))
    if deed == "run" or (deed is None and _verbs(tool) & _RUNS):
        more = [
            one
            for key, one in _leaves(given)
            if key == "input"
            or not (
                deed or key in _WORDS or (key in PATHS and len(one.split()) == 1 and "(" not in one)
            )
        ]
        commands = tuple(dict.fromkeys((*commands, *more)))
    start = next((one for key in _STARTS for one in _texts(given.get(key))), "")
    envelopes = [(one, "") for _key, one in _leaves(given)] if deed == "patch" else []
    for one in commands if deed == "run" else ():
        if "*** Begin Patch" in one or "+++ " in one:
            read = read_command(one)
            bases = (read.begins,) if read.begins else ("", *read.folders[:_MOST_BASES])
            envelopes += [(patch, join(start, base)) for patch in read.patches for base in bases]
    searches: tuple[FileSearch, ...] = ()
    uses = [
        one._replace(path=join(base, one.path))
        for text, base in dict.fromkeys(envelopes)
        for one in _patched(text)
    ]
    if deed in ("list", "search"):
        searches = _searches(deed, given)
    elif deed == "read":
        uses += [FileAccess(path, "read") for path in named_paths(given)]
        globs = tuple(one for key in _GLOBS for one in _texts(given.get(key)))
        searches = (FileSearch("", globs, ignores=False),) if globs else ()
    elif deed in ("write", "delete"):
        action: Action = "delete" if deed == "delete" else "write"
        missing: Action | None = "create" if action == "write" else None
        uses += [FileAccess(path, action, missing) for path in named_paths(given)]
    elif deed == "nothing":
        uses += [FileAccess(path, "read") for _key, one in _leaves(given) if (path := path_of(one))]
    elif deed is None or (deed == "patch" and not uses):
        uses += _named(tool, given)
    return ToolCall(
        tool,
        deed,
        tuple(dict.fromkeys(uses))[:MOST_NAMES],
        searches,
        () if deed == "patch" else commands,
        start if deed == "run" else "",
        "names more files than can be asked about" if len(set(uses)) > MOST_NAMES else "",
        deed == "run" and bool(envelopes),
    )


def named_paths(given: object, *, depth: int = 0) -> Iterator[str]:
    """The files that stand under a name for them or in a patch, at any depth, each as a path."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(given, list):
        for one in given:
            yield from named_paths(one, depth=depth + 1)
    elif isinstance(given, dict):
        for key, value in given.items():
            if key in PATHS:
                yield from map(path_named, _texts(value))
            if key in _PATCHES:
                yield from (one.path for text in _texts(value) for one in _patched(text))
            yield from named_paths(opened(value, key), depth=depth + 1)


def opened(value: object, key: str = "") -> object:
    """An argument, or what it holds where it is JSON in a text; what is for files and people to read stays a text."""
    if isinstance(value, str) and key not in _WORDS and value.lstrip()[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def named_commands(given: object) -> Iterator[str]:
    """The commands in arguments, at any depth, each as a shell would be given it."""
    if isinstance(given, dict):
        begins = next((given[key] for key in _PROGRAMS if isinstance(given.get(key), str)), "")
        for key, sent in given.items():
            value = opened(sent, key)
            words = value if isinstance(value, list) else [value]
            plain = bool(words) and all(isinstance(one, str | int | float) for one in words)
            follows = key in ("args", "arguments", "argv") and (bool(begins) or words is value)
            if plain and (follows or key in _COMMANDS):
                line = value if isinstance(value, str) else shlex.join(map(str, words))
                yield f"{begins} {line}".strip() if follows else line
                yield from map(str, words if key == "commands" else ())
            else:
                yield from named_commands(value)
    elif isinstance(given, list):
        for one in given:
            yield from named_commands(one)


def _searches(deed: Deed, given: dict[str, Any]) -> tuple[FileSearch, ...]:
    folders = [path_named(one) for key in _FOLDERS for one in _texts(given.get(key))]
    globs = [one for key in _GLOBS for one in _texts(given.get(key))]
    if deed == "list":
        globs += _texts(given.get("pattern"))
    leaves = [f"!{one}" for key in ("ignore", "exclude") for one in _texts(given.get(key))]
    deep = deed == "search" or bool(globs)
    # What is looked for by a glob is found though an ignore file names it.
    wanted = any(not one.startswith("!") for one in globs)
    action: Action = "list" if deed == "list" else "read"
    rest = ((*globs, *leaves), deep, not wanted, action)
    return tuple(FileSearch(one, *rest) for one in folders[:MOST_NAMES] or ("",))


def _verbs(tool: str) -> set[str]:
    return {one.lower() for one in _VERB.findall(tool.rpartition("__")[2])}


def _named(tool: str, given: dict[str, Any]) -> Iterator[FileAccess]:
    """The files that a tool names which nobody knows."""
    verbs = _verbs(tool)
    changes, carries = bool(verbs & _CHANGES), bool(verbs & _CARRIES)
    for key, text in _leaves(given):
        uri = path_of(text)
        if uri is None and (key in _WORDS or key in _COMMANDS or not _may_name(key, text)):
            continue
        parts = [] if uri or " " in text else _JOINTS.split(text)[1:]
        for name in filter(None, (uri or text, *parts)):
            if verbs & _DELETES:
                yield FileAccess(name, "delete")
            elif changes:
                yield FileAccess(name, "write", "create")
            if carries or not changes:
                # What stands under a name that says nothing may be a word: then it names what is there.
                yield FileAccess(name, "read", None if key in PATHS else "list")


def _may_name(key: str, text: str) -> bool:
    return bool(text) and (
        key in PATHS
        or len(text.split()) == 1
        or (text.startswith(("/", "~/", "./", "../")) and "\n" not in text)
    )


def _leaves(given: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text at any depth, with the name that it stands under."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(given, str):
        yield key, given
    elif isinstance(given, list):
        for one in given:
            yield from _leaves(one, key, depth + 1)
    elif isinstance(given, dict):
        for name, one in given.items():
            yield from _leaves(opened(one, name), name, depth + 1)


def _texts(value: object) -> list[str]:
    """The texts in one value or a list of them."""
    some = value if isinstance(value, list) else (value,)
    return [one for one in some if isinstance(one, str) and one]


def _patched(text: str) -> Iterator[FileAccess]:
    """The files of a patch; of one that nobody can read, those that its lines name."""
    try:
        parts = parse(text)
    except FilepactError:
        for line in text.splitlines():
            head, _, path = line.strip().partition(":")
            if head in _MARKS and path.strip():
                yield FileAccess(path.strip(), *_MARKS[head])
        return
    for part in parts:
        if part.old_path is not None and (part.deletes or part.renames):
            yield FileAccess(part.old_path, "delete")
        written = part.new_path or (None if part.deletes else part.old_path)
        if written is not None:
            yield FileAccess(written, "write", "create")


_MARKS: Final[Mapping[str, tuple[Action, Action | None]]] = {
    "*** Add File": ("write", "create"),
    "*** Update File": ("write", "create"),
    "*** Move to": ("write", "create"),
    "*** Delete File": ("delete", None),
}


HostProcess = tuple[int, str]
"""A process by its number, and when it began in the system's own count: numbers come again."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is under way.

    Attributes:
        session: Whose.
        tool: What it uses.
        names: The files that it names.
        open_ended: Whether it may change others.
        sweeping: Whether these are any that Git knows of.
        lone: Whether nothing is heard when it is over.
        begun: By a steady clock, in seconds.
        heard: When it was told of, in nanoseconds since the epoch; 0 for never.
        host: The process with whose end it is over, if that is known.
        above: The processes above the one that told of it.
        approved: Whether its host has asked a person about it, since we wanted so.
        given: Stands for the tool and what it was given.
        asked: Whether its host asks a person about it, and nothing was heard since: nobody knows if it runs.
        late: What it has started and goes on without it; it is over with the last of them.
        done: The files that it has changed before that.
        starts: Whether it starts an agent, whose calls are those of the same turn.
        own: Whether it is one of a tool of ours.
        command: Whether it is a command, which is a process of its own.
        asked_at: When it or the question began, in the count of the system; what its host had started by then is not it.
        since: When it was known last that it does not run, since they were asked; 0 where nobody can tell.
        seen: When something new of its host's was seen to run, since then; 0 for never.
        untimed: Whether the clock was set meanwhile, so that the times of files tell nothing.
        gone: Until when what changes may be its own, if its host does not tell that it is over: nothing of it ran then;
            0 where that is not known.
    """

    session: Session
    tool: str
    names: NamedFiles
    open_ended: bool
    lone: bool
    begun: float
    heard: int = 0
    host: HostProcess | None = None
    above: tuple[HostProcess, ...] = ()
    approved: bool = False
    given: str = ""
    sweeping: bool = False
    asked: bool = False
    late: frozenset[HostProcess] = frozenset()
    done: frozenset[WorkspacePath] = frozenset()
    starts: bool = False
    own: bool = False
    command: bool = False
    asked_at: int = 0
    since: int = 0
    seen: int = 0
    untimed: bool = False
    gone: int = 0

    @property
    def watched(self) -> bool:
        """Whether the call is a command whose process can be seen."""
        known = self.since if self.asked else self.asked_at
        going = self.command and self.host is not None and not self.late
        return going and known > 0 and not self.untimed

    def looked_at(self, now: int, slack: int, *, runs: bool) -> OpenCall:
        """The call after a look at its processes: before the answer to a question none runs yet, later none runs any more."""
        if runs:
            return replace(self, seen=now, gone=0)
        if not self.asked:
            return replace(self, gone=self.gone or now + slack)
        return replace(self, since=now) if now - self.seen > slack else self

    @property
    def runs(self) -> bool:
        """Whether the call may be the cause of a change that no call names."""
        return self.open_ended and not self.late and (not self.asked or bool(self.seen))

    @property
    def waits(self) -> bool:
        """Whether a person is asked about it, and it takes no time itself: it only writes what it names."""
        return self.asked and not self.open_ended and bool(self.names)

    @property
    def may_link(self) -> bool:
        """Whether it may put a link in a file's place: an agent's own tool that writes a file does not."""
        return self.runs or "__" in self.tool

    def over(self, heard: int, seconds: float | None, slack: int) -> tuple[OpenCall, int]:
        """The call at its end, and the time since when changes may be its own; a known time means that it ran.

        Args:
            heard: When that was told, in nanoseconds since the epoch.
            seconds: How long it ran; None where its host does not say.
            slack: Nanoseconds by which that may be wrong.
        """
        if self.untimed or (seconds is None and not (self.asked and self.since)):
            return self, 0
        began = self.since if seconds is None else heard - int(seconds * 10**9)
        return replace(self, asked=False), began - slack

    def named(self, path: WorkspacePath) -> bool:
        """Whether it is what changes a file, if anybody is; not what a name stands for that it is done with."""
        name = self.names.over(path)
        if self.late and name != path.path:
            return False  # In a folder that it names a person may save as well, for as long as it goes on.
        return bool(name) and not any(
            one.root == path.root and f"{one.path}/".startswith(f"{name}/") for one in self.done
        )


def shares(
    call: OpenCall, others: Sequence[OpenCall], guard: Guard
) -> Iterator[tuple[Session, str, Callable[[WorkspacePath], bool]]]:
    """Whose the files are that changed while a call was under way.

    Args:
        call: It; what nobody names is its own, if it runs and no call for another request does.
        others: The others that are under way.
        guard: The roots.

    Returns:
        By session and tool, the call's own first: whether a file is theirs.
    """
    of_others = [one for one in others if one.session.turn != call.session.turn]
    rivals = [one for one in of_others if one.runs]
    # What does not run yet, or is only left over, does not write what another call names as well.
    at_work = [one for one in of_others if not one.late and (one.seen or not one.asked)]

    def unnamed(path: WorkspacePath) -> bool:
        return not any(one.named(path) for one in others)

    def own(path: WorkspacePath) -> bool:
        # In doubt a change is the person's: a call that says what it changes has that alone.
        if call.late and any(one.named(path) for one in others if not one.late):
            return False  # It runs, and what is in the background may.
        if call.named(path):
            if not call.may_link and guard.root_of(path.root).glance(path.path) == ():
                return False
            return not any(one.named(path) for one in at_work)
        # Git writes over whatever it knows, and what goes on in the background only now and then.
        free = not any(one.named(path) for one in others if not (call.sweeping and one.late))
        return call.runs and not rivals and free

    yield call.session, call.tool, own
    if at_work:
        names = sorted({one.session.actor.name for one in (call, *at_work)})
        either = " or ".join(names) if len(names) > 1 else f"one of several {names[0]}"

        def shared(path: WorkspacePath) -> bool:
            if call.named(path):
                return not call.late and not own(path)
            return call.runs and bool(rivals) and unnamed(path)

        yield Session("several", Actor("agent", either)), BY_SEVERAL, shared
