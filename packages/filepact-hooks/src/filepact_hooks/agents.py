"""Agents that have hooks: how each writes its events, and the form in which it wants answers.

An event says which tool is about to be used, or was, and what it is given.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from filepact.errors import InvalidParamsError
from filepact.values import dataclass, field, replace, words
from filepact_hooks.tool_call import (
    NEW_TEXTS,
    NO_CALL,
    OLD_TEXTS,
    PATHS,
    ToolCall,
    opened,
    read_tool_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.policy import Verdict
    from filepact_hooks.call_rules import CallVerdict

__all__ = [
    "AGENTS",
    "HookAgent",
    "HookAnswer",
    "HookEdit",
    "HookEvent",
    "HookMode",
    "Moment",
    "may_be_before",
    "read_event",
]

Moment = Literal["start", "prompt", "before", "asked", "after", "stop", "end", "other"]
"""``prompt``: a person says something, so a turn begins.  ``asked``: the host asks them whether a call may
be made.  ``stop``: the turn is over."""

HookMode = Literal["", "strict", "record"]
"""How far a hook goes: it asks the rules; it also refuses what cannot be recorded; it only records."""

_LONGEST_NAME: Final = 200
_WHOLE: Final = words("write write_file create create_file")
_PARTS: Final = words("edit edit_file multiedit replace str_replace")
_EVERYWHERE: Final = words("replace_all replaceAll allow_multiple")
_SAID: Final = words("instruction description explanation")


class HookEdit(NamedTuple):
    """A text that a host's own tool puts into a file in place of another; of the whole file where that is None."""

    old: str | None
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event, whichever agent it came from.

    Attributes:
        moment: When it happens.
        session: The host's name for the session.
        turn: The host's name for the turn; empty where it has none.
        cwd: Where relative paths begin; empty where the host does not say.
        call: Names the call, before and after it alike.
        does: What the call does.
        lone: Whether the host says nothing when the call is over.
        asks: Whether the host puts a question of ours to a person here.
        given: Stands for the tool and what it is given: a question does not name its call.
        inner: Whether it is of a sub-agent, within a turn that another began.
        sent: What the call makes of its file, where that is plain.
        seconds: How long the call has run, what came before its begin left out; None where the host does not say.
        words: What the person said, where a turn begins.
        name: The host's name for it.
        heard: Whether the model reads what the answer adds.
    """

    moment: Moment
    session: str
    turn: str = ""
    cwd: str = ""
    call: str = ""
    does: ToolCall = NO_CALL
    lone: bool = False
    asks: bool = True
    given: str = ""
    inner: bool = False
    seconds: float | None = None
    sent: tuple[HookEdit, ...] = ()
    words: str = ""
    name: str = ""
    heard: bool = False


class HookAnswer(NamedTuple):
    """The output of a hook's process, which ends with 0, whatever happened."""

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
        hears: Whether its model reads what an answer adds to a prompt, and to what a tool has answered.
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
    hears: bool = False

    @property
    def tells_of_questions(self) -> bool:
        """Whether it says when it asks a person about a call; else one may be asked about every command."""
        return "asked" in self.events.values()

    @property
    def asks(self) -> bool:
        """Whether it knows a question for a person, and not only yes and no."""
        return self.decide("ask", "") != self.decide("deny", "")

    def answer(self, said: CallVerdict, remark: str = "") -> HookAnswer:
        """The answer before a tool; without a reason the agent goes on by its own rules.

        Args:
            said: The verdict, which is one that the host knows, and the reason.
            remark: What a person is told besides.
        """
        decision = self.decide(said.verdict, said.reason) if said.reason else None
        told = self.message(remark) if remark else HookAnswer()
        if decision is None:
            return told
        if self.remark is not None and remark:
            decision = {
                **decision,
                **{k: v for k, v in self.remark(remark).items() if k not in decision},
            }
        return HookAnswer(json.dumps(decision), told.remark)

    def message(self, text: str, known: str = "", event: str = "") -> HookAnswer:
        """An answer that lets everything go on and tells the person something, and at an event its model."""
        if self.remark is None:
            return HookAnswer("", f"{text}\n")
        said = self.remark(text) if text else {}
        if known:
            said["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": known}
        return HookAnswer(json.dumps(said))


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
    "PermissionRequest": "asked",
    "PostToolUse": "after",
    "PostToolUseFailure": "after",
    "Stop": "stop",
    "SessionEnd": "end",
}

AGENTS: Final[Mapping[str, HookAgent]] = {
    one.name: one
    for one in (
        HookAgent(
            "claude",
            "claude-code",
            _CLAUDE_EVENTS,
            _claude,
            _system_message,
            project="CLAUDE_PROJECT_DIR",
            turn=("prompt_id",),
            hears=True,
        ),
        HookAgent(
            "codex",
            "codex",
            _CLAUDE_EVENTS,
            _codex,
            _system_message,
            turn=("turn_id",),
            lone=True,
            hears=True,
        ),
        HookAgent(
            "gemini",
            "gemini-cli",
            {
                "SessionStart": "start",
                "BeforeAgent": "prompt",
                "BeforeTool": "before",
                "Notification": "asked",
                "AfterTool": "after",
                "AfterAgent": "stop",
                "SessionEnd": "end",
            },
            _gemini,
            _system_message,
            project="GEMINI_PROJECT_DIR",
            hears=True,
        ),
        HookAgent(
            "opencode",
            "opencode",
            {
                "session.created": "start",
                "chat.message": "prompt",
                "tool.execute.before": "before",
                "permission.asked": "asked",
                "tool.execute.after": "after",
                "session.idle": "stop",
            },
            _opencode,
            lambda text: {"message": text},
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
            _cursor,
            lambda text: {"user_message": text},
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
    others = [one for one in AGENTS.values() if one.events.get(name, "asked") != "asked"]
    others = [] if name in agent.events else others
    if others:
        # Its own program would be passed as if it had asked about nothing.
        raise _unreadable(f"is an event of {' or '.join(one.actor for one in others)}")
    later: Moment = "before" if name.lower().startswith(("pre", "before")) else "other"
    event = HookEvent(
        # What a newer host asks beforehand is answered, though its name is not known yet.
        agent.events.get(name, later if _has_tool(found) else "other"),
        _first(found, agent.session)[:_LONGEST_NAME],
        _first(found, agent.turn)[:_LONGEST_NAME],
        _first(found, ("cwd", "directory")),
        inner=bool(_first(found, ("agent_id",))),
        name=name,
    )
    event = replace(event, heard=agent.hears and event.moment in ("prompt", "after"))
    if event.moment == "prompt":
        words = _first(found, ("prompt", "user_prompt"))
        # Claude Code tells its model so that a command in the background has ended; no person said it.
        return replace(event, words="" if words.startswith("<task-notification>") else words)
    if found.get("notification_type") not in (None, "ToolPermission"):
        return replace(event, moment="other")
    # Gemini CLI says that it asks, and not by the tool's name about what.
    if event.moment not in ("before", "after") and not (
        event.moment == "asked" and _has_tool(found)
    ):
        return event
    return _call(agent, name, found, event)


def _call(agent: HookAgent, name: str, found: dict[str, Any], event: HookEvent) -> HookEvent:
    """The event with what its call does."""
    tool = _first(found, ("tool_name", "toolName", "tool")) or agent.tools.get(name, "")
    given = _arguments(found)
    if name in agent.tools:
        given = {**found, **(given if isinstance(given, dict) else {})}
    does = read_tool_call(tool[:_LONGEST_NAME] or "tool", given)
    named = json.dumps([tool, given], sort_keys=True, default=str).encode("utf-8", "replace")
    digest = hashlib.sha256(named).hexdigest()[:16]
    took = found.get("duration_ms")
    return replace(
        event,
        call=_first(found, agent.call) or digest,
        does=does,
        given=digest,
        sent=_sent(tool.lower(), given) if len(does.uses) == 1 and not does.commands else (),
        seconds=took / 1000 if isinstance(took, int | float) and took >= 0 else None,
        lone=agent.lone and does.envelope,
        asks=(agent.asking is None or name in agent.asking)
        and _first(found, ("permission_mode", "permissionMode")) not in _NEVER_ASK,
    )


def _sent(tool: str, given: object) -> tuple[HookEdit, ...]:
    """Return the edits that a call makes to a file's text; none where any of its arguments is not known."""
    if not isinstance(given, dict):
        return ()
    parts = given.get("edits")
    if tool in _PARTS and isinstance(parts, list) and given.keys() - {"edits"} <= PATHS:
        edits = [_sent_edit(one, whole=False) for one in parts]
    elif tool in _PARTS or tool in _WHOLE:
        edits = [_sent_edit(given, whole=tool in _WHOLE)]
    else:
        return ()
    return tuple(one for one in edits if one) if all(edits) else ()


def _sent_edit(given: object, *, whole: bool) -> HookEdit | None:
    if not isinstance(given, dict):
        return None
    old, new = given.keys() & OLD_TEXTS, given.keys() & NEW_TEXTS
    everywhere = {given[key] for key in given.keys() & _EVERYWHERE if given[key] in (True, False)}
    rest = given.keys() - PATHS - OLD_TEXTS - NEW_TEXTS - _EVERYWHERE - _SAID
    if rest or len(new) != 1 or len(old) != (not whole) or (whole and everywhere):
        return None
    texts = [given[key] for key in (*old, *new)]
    if not all(isinstance(one, str) for one in texts):
        return None
    return HookEdit(None if whole else texts[0], texts[-1], True in everywhere)


def _arguments(found: dict[str, Any]) -> object:
    """Return a tool's arguments; some hosts write the object as text, and a patch may stand there by itself."""
    for key in ("tool_input", "toolArgs", "tool_args", "args", "input"):
        if (given := found.get(key)) is not None:
            return opened(given)
    return None


def _has_tool(found: dict[str, Any]) -> bool:
    return any(key in found for key in ("tool_name", "toolName", "tool"))


def may_be_before(agent: HookAgent, data: bytes, name: str) -> bool:
    """Whether something that cannot be read may be an event before a tool, so that it has to be refused.

    Args:
        agent: Whose it should be.
        data: What came.
        name: The event's name, where the command line has it.
    """
    if name:
        return agent.events.get(name, "before") == "before"
    # A quote within a text has a backslash before it, so no argument of a tool looks like this.
    named = re.findall(rb'"(?:hook_event_name|hookEventName|event)"\s*:\s*"([\w.]+)"', data)
    moments = {agent.events.get(one.decode(), "before") for one in named}
    return not moments or "before" in moments


def _first(found: dict[str, Any], keys: tuple[str, ...]) -> str:
    """The first of some values that is a text, or else empty."""
    return next((found[key] for key in keys if found.get(key) and isinstance(found[key], str)), "")


def _unreadable(why: str) -> InvalidParamsError:
    return InvalidParamsError(
        f"what the agent's program sent to the hook {why}",
        hint="Look whether the hook is set up for this agent: `filepact hook --help`.",
    )
