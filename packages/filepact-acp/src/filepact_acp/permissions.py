"""The permissions that agents ask for: what a question is about, and the rules' own answer to it."""

from __future__ import annotations

import posixpath
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.domain.policy import AccessRequest, decide
from filepact.errors import ApprovalRequiredError, FilepactError, PathBlockedError
from filepact.text.confusables import adds_hidden
from filepact.text.secrets import holds_private_key
from filepact.values import dataclass, replace
from filepact_hooks.call_rules import CallJudge
from filepact_hooks.tool_call import (
    NEW_TEXTS,
    OLD_TEXTS,
    PATHS,
    ToolCall,
    named_commands,
    named_paths,
    opened,
)
from filepact_wire.uris import path_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.domain.policy import Action, Decision
    from filepact.workspace.guard import Guard
    from filepact_wire.messages import Message

__all__ = [
    "READING",
    "PermissionDecision",
    "PermissionRequest",
    "ToolCalls",
    "call_of",
    "choose",
    "own_reading",
    "raw_input",
    "read_call",
    "read_question",
    "rule_on",
]

_CHANGING: Final = frozenset({"edit", "delete", "move"})
_LOOKING: Final = frozenset({"read", "search"})
_TEXTS: Final = NEW_TEXTS | {"patch", "diff"}
"""Under which names agents give what is to be written."""

_PLAIN_KINDS: Final = frozenset({"read", "edit", "delete"})
_CALL: Final = frozenset(
    {"toolCallId", "sessionUpdate", "title", "kind", "status", "content", "locations", "rawInput"}
    | {"_meta"}
)
_DIFF: Final = frozenset({"type", "path", "oldText", "newText", "_meta"})
_HARMLESS: Final = frozenset(
    {"replace_all", "replaceAll", "expected_replacements", "offset", "limit", "line", "lines"}
)
"""What else a plain call of an agent's tool holds: numbers and switches."""

READING: Final = ("read_file", "search_files", "grep", "directory_tree")
"""Our tools that change nothing."""

_OWN_TOOLS: Final[Mapping[str, str]] = {
    "claude-agent-acp": "mcp__filepact__{}",
    "claude-code-acp": "mcp__filepact__{}",
}
"""What agents make of the names of our server and a tool, where their program says so itself."""

MOST: Final = 200  # paths of one question that are looked at; more than a person reads


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A request for permission, as the rules see it.

    Attributes:
        title: As people are shown it.
        action: What would be done with the files.
        paths: Absolute.
        plain: Whether it is a reading, an edit or a deletion with nothing in it that is not
            understood; None where it holds nothing that could tell.
        runs: Whether it is a command, which may do anything with the files that it names.
        commands: The texts of commands.
        start: Where relative names in these start.
        tool: The tool, as the agent's program itself names it; empty where it does not.
    """

    title: str
    action: Action
    paths: tuple[str, ...]
    plain: bool | None = None
    runs: bool = False
    tool: str = ""
    commands: tuple[str, ...] = ()
    start: str = ""


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """The decision of the rules about a request for permission.

    Attributes:
        verdict: ``person`` where they leave it to a person.
        why: One sentence for a denial.
        rule: The name of the rule that decides; ``roots`` where a name leads out of them.
    """

    verdict: Literal["allow", "deny", "person"]
    why: str = ""
    rule: str = ""


def read_question(params: Message, cwd: str) -> PermissionRequest:
    """Read the subject of a ``session/request_permission``.

    Args:
        params: Of either version of the protocol.
        cwd: Where relative paths count from.
    """
    asked = read_call(call_of(params), cwd)
    return asked if asked.title else replace(asked, title=str(params.get("title") or ""))


def read_call(call: Message, cwd: str) -> PermissionRequest:
    """Read what a call of an agent's tool would do, from what the agent shows of it.

    Args:
        call: A tool call, or an update of one.
        cwd: Where relative paths count from.
    """
    call = {**call, "rawInput": raw_input(call)}
    found = list(dict.fromkeys(_paths(call)))[:MOST]
    paths = tuple(posixpath.join(cwd, path) for path in found)
    return PermissionRequest(
        str(call.get("title") or ""),
        _action(call),
        paths,
        _is_plain(call),
        call.get("kind") == "execute",
        _tool(call),
        tuple(named_commands(call.get("rawInput")))[:MOST],
        cwd,
    )


def call_of(params: Message) -> Message:
    """The call that a question is about; empty where there is none."""
    call = params.get("toolCall")
    if not isinstance(call, dict):
        subject = params.get("subject")
        if isinstance(subject, dict) and subject.get("type") == "command":
            raw = {"command": subject.get("command")}
            return {"toolCallId": subject.get("toolCallId"), "kind": "execute", "rawInput": raw}
        call = subject.get("toolCall", subject) if isinstance(subject, dict) else {}
    return call if isinstance(call, dict) else {}


def raw_input(call: Message) -> object:
    """Return the arguments of the agent's tool, as far as the agent shows them; some show them as JSON in a text."""
    return opened(call.get("rawInput"))


def rule_on(asked: PermissionRequest, guard: Guard, agent: str) -> PermissionDecision:
    """Apply the rules to a request for permission.

    Only a plain reading, edit or deletion that a person has written down as allowed is allowed
    here without asking: a rule about files says nothing of commands, and that no rule stands
    against something is no reason to take a person's question away.
    """
    decisions: list[Decision] = []
    open_question = not asked.plain
    for path in asked.paths:
        actions: tuple[Action, ...] = (asked.action,)
        try:
            location = guard.find(path, asked.action, agent=agent)
            if asked.action == "write" and location.place.kind == "missing":
                actions = ("write", "create")
                location = guard.find(path, "create", agent=agent)
        except ApprovalRequiredError:
            open_question = True
            continue
        except PathBlockedError as error:
            return PermissionDecision(
                "deny", error.message, str(error.details.get("rule", "roots"))
            )
        except FilepactError:
            open_question = True
            continue
        decisions += [
            decide(
                AccessRequest(location.root.path, location.place.path, action, agent), guard.policy
            )
            for action in actions
        ]
    said = CallJudge(guard, agent, asked.start).judge(
        ToolCall(asked.tool, "run", commands=asked.commands)
    )
    if said.verdict == "deny":
        return PermissionDecision("deny", said.reason, "commands")
    spoken = [
        decision.verdict == "allow" and decision.rule.layer in ("person", "administrator")
        for decision in decisions
    ]
    if spoken and all(spoken) and not open_question:
        return PermissionDecision("allow", rule=decisions[0].rule.name)
    return PermissionDecision("person")


def own_reading(asked: PermissionRequest, agent: str) -> bool:
    """Whether a question is about a reading tool of our own server, which asks the rules itself.

    Only where the agent's program says which tool it is, in a form that it is known to make of the
    server's name and the tool's: what a model wrote is no such word.
    """
    known = _OWN_TOOLS.get(agent.rpartition("/")[2].lower())
    return known is not None and asked.tool in {known.format(name) for name in READING}


def _tool(call: Message) -> str:
    """The tool that Claude Code's adapters name beside a call; the model has no hand in it."""
    meta = call.get("_meta")
    said = meta.get("claudeCode") if isinstance(meta, dict) else None
    tool = said.get("toolName") if isinstance(said, dict) else None
    return tool if isinstance(tool, str) else ""


def choose(options: object, verdict: Literal["allow", "deny"]) -> Message:
    """The answer to a question, by the kinds of its options and never by their order."""
    wanted = ("allow_once",) if verdict == "allow" else ("reject_once", "reject_always")
    offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    for kind in wanted:
        for option in offered:
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return {"outcome": {"outcome": "cancelled"}}


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether two parts of what is told of one call are plain together."""
    known = [part for part in (one, other) if part is not None]
    return all(known) if known else None


def _is_plain(call: Message) -> bool | None:
    """Whether all that a call holds is understood, and is no more than a file read or changed."""
    told = {name for name in call if call[name] not in (None, "", [], {})}
    if not told - {"toolCallId", "sessionUpdate", "title", "status", "_meta"}:
        return None
    kind, raw = call.get("kind"), call.get("rawInput")
    shown = call.get("content") or []
    return (
        told <= _CALL
        and isinstance(kind, str)
        and kind in _PLAIN_KINDS
        and len(list(_paths(call))) <= MOST
        and _all(call.get("locations") or [], lambda place: isinstance(place.get("path"), str))
        and _all(shown, lambda one: _is_words(one) or (kind == "edit" and _is_diff(one)))
        and (raw is None or (isinstance(raw, dict) and all(map(_is_known, raw, raw.values()))))
    )


def _all(found: object, fits: Callable[[Message], bool]) -> bool:
    return isinstance(found, list) and all(isinstance(one, dict) and fits(one) for one in found)


def _is_words(shown: Message) -> bool:
    """Whether it is text for the person to read."""
    return shown.get("type") == "content" and shown.keys() <= {"type", "content", "_meta"}


def _is_diff(shown: Message) -> bool:
    """Whether it is a new text of one file, with nothing hidden in it."""
    old, new = shown.get("oldText") or "", shown.get("newText")
    return (
        shown.get("type") == "diff"
        and shown.keys() <= _DIFF
        and isinstance(shown.get("path"), str)
        and isinstance(old, str)
        and isinstance(new, str)
        and _is_harmless(old, new)
    )


def _is_known(name: str, value: object) -> bool:
    """Whether one argument of an agent's tool is a path, a text or a switch that is known."""
    if name in PATHS:
        return bool(list(_texts(value))) and len(list(_texts(value))) == len(
            value if isinstance(value, list) else [value]
        )
    if name in NEW_TEXTS:
        return isinstance(value, str) and _is_harmless("", value)
    if name in OLD_TEXTS:
        return isinstance(value, str)
    return name in _HARMLESS and (value is None or isinstance(value, bool | int))


def _is_harmless(old: str, new: str) -> bool:
    """Whether a text may be written without a look: no hidden characters, no private key."""
    data = new.encode("utf-8", "replace")
    return not adds_hidden(old, new) and not holds_private_key(data)


def _action(call: Message) -> Action:
    kind = str(call.get("kind"))
    if kind == "delete":
        return "delete"
    if kind in _CHANGING or any(one.get("type") == "diff" for one in _objects(call.get("content"))):
        return "write"
    raw = call.get("rawInput")
    if kind not in _LOOKING and isinstance(raw, dict) and _TEXTS & raw.keys():
        return "write"
    return "read"


def _paths(call: Message) -> Iterator[str]:
    for place in _objects(call.get("locations")):
        yield from _texts(place.get("path"))
    for shown in _objects(call.get("content")):
        if shown.get("type") == "diff":
            yield from _texts(shown.get("path"))
            for change in _objects(shown.get("changes")):
                yield from _texts(change.get("path"))
                yield from _texts(change.get("oldPath"))
            for patch in _objects([shown.get("patch")]):
                yield from named_paths({"patch": patch.get("text")})
    raw = call.get("rawInput")
    if isinstance(raw, dict | list) and call.get("kind") != "execute":
        yield from (path for path in named_paths(raw) if "\0" not in path)


def _texts(found: Any) -> Iterator[str]:
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, str) and one and "\0" not in one:
            yield path_named(one)


def _objects(found: object) -> list[Message]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


_OPEN: Final = 1_000  # calls that are remembered; an agent has a few at once
_LONGEST_ID: Final = 1_000
_KEPT: Final = ("title", "kind", "status", "content", "locations", "rawInput")
_LARGE: Final = ("content", "rawInput")
_MOST_KEPT: Final = 256  # calls of which the reports themselves are kept
_HEAVY: Final = 1_000_000  # characters of the large parts of one, beyond which they are not kept
_HELD: Final = 16 * _HEAVY  # the same of all of them


class ToolCalls:
    """Reports of an agent about the tool calls of one session."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, PermissionRequest] = OrderedDict()
        self._kept: OrderedDict[str, tuple[Message, int]] = OrderedDict()
        self._size = 0

    def learn(self, call: Message, cwd: str) -> None:
        """Take one report of a call, the first or a later one.

        Args:
            call: As it was sent.
            cwd: Where relative paths count from.
        """
        name = call.get("toolCallId")
        if not isinstance(name, str) or len(name) > _LONGEST_ID:
            return
        self._known[name] = self.whole(call, read_call(call, cwd))
        self._known.move_to_end(name)
        if len(self._known) > _OPEN:
            self._known.popitem(last=False)

    def whole(self, call: Message, asked: PermissionRequest) -> PermissionRequest:
        """Join a request for permission with earlier reports of its call."""
        known = self._known.get(str(call.get("toolCallId")))
        if known is None:
            return asked
        paths = tuple(dict.fromkeys((*asked.paths, *known.paths)))[:MOST]
        action = known.action if asked.action == "read" else asked.action
        return replace(
            asked,
            title=asked.title or known.title,
            action=action,
            paths=paths,
            plain=_both(asked.plain, known.plain),
            runs=asked.runs or known.runs,
            commands=tuple(dict.fromkeys((*asked.commands, *known.commands)))[:MOST],
            tool=_same(asked.tool, known.tool),
        )

    def keep(self, call: Message) -> None:
        """Keep a report itself, joined with those before it; of a very large one, only its title."""
        name = call.get("toolCallId")
        if not isinstance(name, str):
            return
        known, size = self._kept.pop(name, ({}, 0))
        self._size -= size
        joined = {**known, **{key: call[key] for key in _KEPT if call.get(key)}}
        size = sum(len(str(joined.get(key, ""))) for key in _LARGE)
        if size > _HEAVY:
            joined, size = {key: joined[key] for key in joined if key not in _LARGE}, 0
        self._kept[name] = (joined, size)
        self._size += size
        while len(self._kept) > _MOST_KEPT or self._size > _HELD:
            self._size -= self._kept.popitem(last=False)[1][1]

    def joined(self, call: Message) -> Message:
        """A call with what `keep` was given of it before."""
        known, _ = self._kept.get(str(call.get("toolCallId")), ({}, 0))
        return {**known, **{name: value for name, value in call.items() if value}}


def _same(one: str, other: str) -> str:
    """The tool that two reports of one call name; empty where they disagree."""
    if one and other and one != other:
        return ""
    return one or other
