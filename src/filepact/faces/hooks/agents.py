"""Agents that have hooks: how each writes its events, and the form in which it wants answers.

An event says which tool is about to be used, or was.  Tools are known by their names, which no two
agents use for different things; of a tool that nobody knows, only the files that it names are asked
about, and anything may have changed after it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from filepact.errors import FilepactError, InvalidParamsError
from filepact.text.patch_parse import is_envelope, parse
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.domain.policy import Action, Verdict

__all__ = ["AGENTS", "FileAccess", "HookAgent", "HookAnswer", "HookEvent", "Moment", "read_event"]

Moment = Literal["start", "prompt", "before", "after", "stop", "end", "other"]
"""``prompt``: a person says something, so a turn begins.  ``stop``: the turn is over."""

_LONGEST_NAME: Final = 200
_MOST_FILES: Final = 1_000
_MOST_WORDS: Final = 5_000


class FileAccess(NamedTuple):
    """A file that a tool names.

    Attributes:
        path: As it was sent.
        action: What is done with it.
        missing: What is done instead where nothing is.
    """

    path: str
    action: Action
    missing: Action | None = None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event, whichever agent it came from.

    Attributes:
        moment: When it happens.
        session: The host's name for the session.
        turn: The host's name for the turn; empty where it has none.
        cwd: Where relative paths begin; empty where the host does not say.
        tool: The tool, by the host's name.
        call: Names the call, before and after it alike.
        uses: The files that the call names.
        words: The words of a command, which may be names of files.
        open_ended: Whether it may change files that it does not name.
        lone: Whether the host says nothing when the call is over.
        asks: Whether the host puts a question of ours to a person here.
    """

    moment: Moment
    session: str
    turn: str = ""
    cwd: str = ""
    tool: str = ""
    call: str = ""
    uses: tuple[FileAccess, ...] = ()
    words: tuple[str, ...] = ()
    open_ended: bool = False
    lone: bool = False
    asks: bool = True


class HookAnswer(NamedTuple):
    """What a hook's process prints; it ends with 0, whatever happened."""

    out: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class HookAgent:
    """An agent's program.

    Attributes:
        name: On our command line.
        actor: In the journal, and for rules.
        events: Its events, by name.
        decide: Its form of an answer before a tool, by our verdict and the reason.
        remark: Its form of a message to the person; None where standard error is all there is.
        project: The variable in which it says where its project is.
        session: Where it names the session, the turn and the call, by preference.
        turn: The same.
        call: The same.
        lone: Whether it tells nothing after a patch that a command applies.
        asking: The events at which it takes a question for a person; None for every one.
    """

    name: str
    actor: str
    events: Mapping[str, Moment]
    decide: Callable[[Verdict, str], dict[str, object] | None]
    remark: Callable[[str], dict[str, object]] | None = None
    project: str = ""
    session: tuple[str, ...] = ("session_id",)
    turn: tuple[str, ...] = ()
    call: tuple[str, ...] = ("tool_use_id",)
    lone: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)
    asking: frozenset[str] | None = None

    def verdict(self, verdict: Verdict, reason: str) -> HookAnswer:
        """The answer before a tool; empty where the agent goes on by its own rules."""
        said = self.decide(verdict, reason)
        return HookAnswer(json.dumps(said) if said else "")

    def message(self, text: str) -> HookAnswer:
        """An answer that lets everything go on and tells the person something."""
        if self.remark is None:
            return HookAnswer("", f"{text}\n")
        return HookAnswer(json.dumps(self.remark(text)))


def _claude(verdict: Verdict, reason: str) -> dict[str, object]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": verdict,
            "permissionDecisionReason": reason,
        }
    }


def _codex(verdict: Verdict, reason: str) -> dict[str, object] | None:
    # It knows neither of the other two, and goes on as if nothing had been said.
    return None if verdict == "allow" else _claude("deny", reason)


def _gemini(verdict: Verdict, reason: str) -> dict[str, object] | None:
    if verdict == "allow":
        return None  # it would say no more than that the hook has nothing against it
    # It knows "ask", and waits for ever for an answer where nobody is there to give one.
    return {"decision": "deny", "reason": reason}


def _opencode(verdict: Verdict, reason: str) -> dict[str, object] | None:
    return None if verdict == "allow" else {"decision": "deny", "reason": reason}


def _copilot(verdict: Verdict, reason: str) -> dict[str, object]:
    return {"permissionDecision": verdict, "permissionDecisionReason": reason}


def _cursor(verdict: Verdict, reason: str) -> dict[str, object]:
    return {"permission": verdict, "user_message": reason, "agent_message": reason}


def _system_message(text: str) -> dict[str, object]:
    return {"systemMessage": text}


_CLAUDE_EVENTS: Final[Mapping[str, Moment]] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before",
    "PostToolUse": "after",
    "PostToolUseFailure": "after",
    "Stop": "stop",
    "SessionEnd": "end",
}

AGENTS: Final[Mapping[str, HookAgent]] = {
    one.name: one
    for one in (
        HookAgent(
            *("claude", "claude-code", _CLAUDE_EVENTS, _claude, _system_message),
            project="CLAUDE_PROJECT_DIR",
            turn=("prompt_id",),
        ),
        HookAgent(
            *("codex", "codex", _CLAUDE_EVENTS, _codex, _system_message),
            turn=("turn_id",),
            lone=True,
        ),
        HookAgent(
            "gemini",
            "gemini-cli",
            {
                "SessionStart": "start",
                "BeforeAgent": "prompt",
                "BeforeTool": "before",
                "AfterTool": "after",
                "AfterAgent": "stop",
                "SessionEnd": "end",
            },
            *(_gemini, _system_message),
            project="GEMINI_PROJECT_DIR",
        ),
        HookAgent(
            "opencode",
            "opencode",
            {
                "session.created": "start",
                "chat.message": "prompt",
                "tool.execute.before": "before",
                "tool.execute.after": "after",
                "session.idle": "stop",
            },
            *(_opencode, lambda text: {"message": text}),
            turn=("turn_id",),
        ),
        HookAgent(
            "copilot",
            "copilot",
            {
                "sessionStart": "start",
                "userPromptSubmitted": "prompt",
                "preToolUse": "before",
                "postToolUse": "after",
                "postToolUseFailure": "after",
                "agentStop": "stop",
                "sessionEnd": "end",
            },
            _copilot,
            session=("sessionId", "session_id"),
            call=("toolCallId", "tool_use_id"),
        ),
        HookAgent(
            "cursor",
            "cursor",
            {
                "sessionStart": "start",
                "beforeSubmitPrompt": "prompt",
                "preToolUse": "before",
                "postToolUse": "after",
                "postToolUseFailure": "after",
                "beforeReadFile": "before",
                "beforeShellExecution": "before",
                "afterShellExecution": "after",
                "beforeMCPExecution": "before",
                "afterMCPExecution": "after",
                "afterFileEdit": "after",
                "stop": "stop",
                "sessionEnd": "end",
            },
            *(_cursor, lambda text: {"user_message": text}),
            project="CURSOR_PROJECT_DIR",
            session=("conversation_id", "session_id"),
            turn=("generation_id",),
            tools={
                "beforeReadFile": "read",
                "beforeShellExecution": "shell",
                "afterShellExecution": "shell",
                "beforeMCPExecution": "mcp",
                "afterMCPExecution": "mcp",
                "afterFileEdit": "edit",
            },
            # At others its answers are yes and no, and a third one may pass for a yes.
            asking=frozenset({"beforeShellExecution", "beforeMCPExecution"}),
        ),
    )
}

_Deed = Literal["read", "write", "patch", "run"]

_TOOLS: Final[Mapping[str, _Deed]] = {
    **dict.fromkeys(
        (
            *("read", "read_file", "read_many_files", "view", "view_image", "notebookread"),
            *("ls", "list", "list_directory", "glob", "grep", "search_file_content", "rg"),
            *("grep_search", "codesearch", "read_text_file"),
        ),
        "read",
    ),
    **dict.fromkeys(
        (
            *("write", "write_file", "create", "create_file", "edit", "edit_file", "multiedit"),
            *("multi_edit", "replace", "str_replace", "str_replace_editor", "insert"),
            *("notebookedit", "delete", "delete_file"),
        ),
        "write",
    ),
    **dict.fromkeys(("apply_patch", "patch", "applypatch"), "patch"),
    **dict.fromkeys(
        ("bash", "shell", "exec_command", "run_shell_command", "local_shell", "powershell"), "run"
    ),
}
"""What tools do, by their names in small letters."""

_PATHS: Final = (
    *("file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path", "target_file"),
    *("paths", "file_paths", "include", "glob"),
)
"""Where tools name files."""
_GLOBS: Final = ("include", "glob")
_TEXTS: Final = ("command", "cmd", "input", "patch", "patchText", "patch_text")
_NEVER_ASK: Final = ("dontAsk", "bypassPermissions")
"""Claude Code's modes in which its person is not to be asked, and so is told no."""

_NAMES_OF_EVENT: Final = ("hook_event_name", "hookEventName", "event")


def read_event(agent: HookAgent, data: bytes, name: str = "") -> HookEvent:
    """Read one event.

    Args:
        agent: Whose it is.
        data: One JSON object, as the host wrote it.
        name: The event's name, where the host does not write it into the object.

    Raises:
        InvalidParamsError: It is not an object of JSON, does not say what has happened, or comes from
            the program of another agent.
    """
    try:
        found = json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise _unreadable("is not JSON") from None
    if not isinstance(found, dict):
        raise _unreadable("is not a JSON object")
    name = name or _first(found, _NAMES_OF_EVENT)
    if not name:
        raise _unreadable("does not name its event")
    others = [] if name in agent.events else [one for one in AGENTS.values() if name in one.events]
    if others:
        # Its own program would be passed as if it had asked about nothing.
        raise _unreadable(f"is an event of {' or '.join(one.actor for one in others)}")
    event = HookEvent(
        agent.events.get(name, "other"),
        _first(found, agent.session)[:_LONGEST_NAME],
        _first(found, agent.turn)[:_LONGEST_NAME],
        _first(found, ("cwd", "directory")),
    )
    if event.moment not in ("before", "after"):
        return event
    return _call(agent, name, found, event)


def _call(agent: HookAgent, name: str, found: dict[str, Any], event: HookEvent) -> HookEvent:
    """The event with what its call does."""
    tool = _first(found, ("tool_name", "toolName", "tool")) or agent.tools.get(name, "")
    given = _arguments(found)
    if name in agent.tools:
        given = {**found, **given}
    deed: _Deed | None = _TOOLS.get(tool.lower())
    text = next((given[key] for key in _TEXTS if isinstance(given.get(key), str)), "")
    envelope = deed in ("patch", "run") and is_envelope(text)
    uses: list[FileAccess] = []
    if deed == "patch" or envelope:
        uses += _patched(text)
    if deed != "patch":
        looks = deed in (None, "read") or given.get("command") == "view"
        for path in _paths(given):
            uses.append(FileAccess(path, "read") if looks else FileAccess(path, "write", "create"))
    named = json.dumps([tool, given], sort_keys=True, default=str).encode("utf-8", "replace")
    return HookEvent(
        *(event.moment, event.session, event.turn, event.cwd),
        tool=tool[:_LONGEST_NAME] or "tool",
        call=_first(found, agent.call) or hashlib.sha256(named).hexdigest()[:16],
        uses=tuple(uses[:_MOST_FILES]),
        words=tuple(_words(text)) if deed == "run" and not envelope else (),
        open_ended=deed in (None, "run") or (deed == "patch" and not uses),
        lone=agent.lone and deed == "run" and envelope,
        asks=(agent.asking is None or name in agent.asking)
        and _first(found, ("permission_mode", "permissionMode")) not in _NEVER_ASK,
    )


def _arguments(found: dict[str, Any]) -> dict[str, Any]:
    for key in ("tool_input", "toolArgs", "tool_args", "args", "input"):
        given = found.get(key)
        if isinstance(given, str):
            # Some hosts write the object as text; a patch may stand there by itself.
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return {"input": given}
        if isinstance(given, dict):
            return given
    return {}


def _paths(given: dict[str, Any]) -> Iterator[str]:
    """The files that a tool names, each as it was sent."""
    for key in _PATHS:
        value = given.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from _paths(one)
            elif isinstance(one, str) and one and not (key in _GLOBS and _is_pattern(one)):
                yield one
    for value in (given.get("edits"), given.get("files")):
        for one in value if isinstance(value, list) else []:
            if isinstance(one, dict):
                yield from _paths(one)


def _is_pattern(text: str) -> bool:
    """Whether a text is a pattern rather than one name: most are looked for inside files."""
    return any(character in text for character in "*?[]{}()|\\^$+ \n")


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
        if part.new_path is not None:
            yield FileAccess(part.new_path, "write", "create")
        elif part.old_path is not None and not part.deletes:
            yield FileAccess(part.old_path, "write", "create")


_MARKS: Final[Mapping[str, tuple[Action, Action | None]]] = {
    "*** Add File": ("write", "create"),
    "*** Update File": ("write", "create"),
    "*** Move to": ("write", "create"),
    "*** Delete File": ("delete", None),
}


def _words(command: str) -> Iterator[str]:
    """The words of a command that could be names of files, without what redirects to them."""
    try:
        words = shlex.split(command, comments=False)
    except ValueError:
        words = command.split()
    for word in words[:_MOST_WORDS]:
        for part in (word, word.partition("=")[2]):
            name = part.lstrip("<>&|;(").rstrip("&|;)")
            if name and "\0" not in name and name[0] != "-" and len(name.split()) == 1:
                yield name


def _first(found: dict[str, Any], keys: tuple[str, ...]) -> str:
    """The first of some values that is a text, or else empty."""
    return next((found[key] for key in keys if found.get(key) and isinstance(found[key], str)), "")


def _unreadable(why: str) -> InvalidParamsError:
    return InvalidParamsError(
        f"what the agent's program sent to the hook {why}",
        hint="Look whether the hook is set up for this agent: `filepact hook --help`.",
    )
