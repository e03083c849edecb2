"""The judge of a call before it is made: by the rules alone, apart from everything that may break.

It opens neither the journal nor any other part of the state, and no daemon.  A file of rules that is wrong
can only have taken something away, so without it the built-in rules hold, and whatever is not plainly a
reading waits for a person's word.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, Literal

from filepact.config.person import home_folder, read_known_settings
from filepact.domain.change import FileChange
from filepact.domain.document import Revision, content_id
from filepact.errors import FilepactError
from filepact.opening import open_guard
from filepact.values import dataclass, field, replace
from filepact.workspace.documents import read_project_file
from filepact.workspace.file_snapshot import some_names
from filepact_hooks.agents import HookAnswer, may_be_before
from filepact_hooks.call_rules import CallJudge, CallVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import ChangeId, Session
    from filepact.workspace.external import ChangeList
    from filepact.workspace.guard import Guard
    from filepact.workspace.workspace import Workspace
    from filepact_hooks.agents import HookAgent, HookEdit, HookEvent, HookMode

__all__ = [
    "ANOTHER",
    "DECIDING",
    "SET_BACK",
    "TELLING",
    "CallMessage",
    "HookJudge",
    "answer_unread",
    "answer_unrecorded",
    "tell",
    "told",
    "unapproved",
    "unchecked",
]


_LARGEST: Final = 1 << 20
_NAMED: Final = 3  # files that a person is told of one call
_WITHOUT: Final = (
    ": your change needed a person's word and nobody was asked, so it was taken back: you, tests and the shell see "
    "the disk without it"
)
_WAITS: Final = (
    "; it waits for a person as proposal {}. Do not make it again; you are told when they decide."
)

SET_BACK: Final = (
    "the clock was set back while that call went on: what it has made may not be recorded, since it is as old as what "
    "was there before, and no undo removes it"
)
ANOTHER: Final = (
    "another folder lies at {} now, the one before was moved or removed: what a call did meanwhile is "
    "not recorded, and what was done before is not taken back here (`filepact status` tells of it)"
)
TELLING: Final = frozenset({"claude", "codex", "gemini", "opencode"})
"""Agents whose programs show a message to the person alone."""
DECIDING: Final = {
    "undo": "`filepact undo {}` takes back what that call did",
    "approve": "`filepact approve {}` shows it and decides",
    "redo": "`filepact redo {}` brings it back",
}


@dataclass(frozen=True, slots=True)
class CallMessage:
    """A message for the person about a call.

    Attributes:
        session: Whose.
        said: What it has changed; empty once they know.
        ids: What they can decide about, with the command for each.
        known: What its model has to know of that; empty for nothing.
    """

    session: Session
    said: str
    ids: Mapping[ChangeId, Literal["undo", "approve", "redo"]] = field(default_factory=dict)
    known: str = ""

    def text(self, agent: str) -> str:
        """Return the message in words; where the model may read it, no command that decides is named."""
        how = DECIDING if agent in TELLING else {}
        return "; ".join(
            (self.said, *(how.get(by, "{}").format(id_) for id_, by in self.ids.items()))
        )


def unapproved(
    workspace: Workspace, session: Session, found: ChangeList, *, propose: bool
) -> list[CallMessage]:
    """Return messages for the person about changes that they should have been asked about.

    Args:
        workspace: Where they are recorded.
        session: Who has made them.
        found: All that was found.
        propose: Whether they are taken back, and wait.
    """
    left, said = [*found.unasked], list[CallMessage]()

    def changed(paths: Iterable[WorkspacePath]) -> str:
        return f"{some_names([*map(workspace.show, paths)], _NAMED)} changed without your approval"

    for whole in filter(None, (found.operation, found.inner)):  # in which order they go back
        rules = {path: found.unasked[path] for path in left if path in whole.changes.paths}
        left = [path for path in left if path not in rules]
        ids: dict[ChangeId, Literal["undo", "approve", "redo"]] = {whole.id: "undo"}
        became = known = ""
        if propose and rules:
            back, stays = workspace.take_back(whole, rules)
            left += stays
            rules = {path: rule for path, rule in rules.items() if path not in stays}
            ids, became = {**back}, ", and was taken back"
            wait = [id_ for id_, by in back.items() if by == "approve"]
            after = _WAITS.format(", ".join(wait)) if wait else "."
            known = f"{some_names([*map(workspace.show, rules)], _NAMED)}{_WITHOUT}{after}"
        if rules:
            said.append(CallMessage(session, changed(rules) + became, ids, known))
    if left:
        said.append(CallMessage(session, f"{changed(left)}, and could not be taken back"))
    return said


class HookJudge:
    """Judges the calls in some folders, by the rules as they are at each of them.

    Args:
        roots: The folders, the working folder first.
        state: The state folder, which agents may not use; it is not opened.
        config: The person's settings file, if it is not the usual one; may be empty.
    """

    def __init__(self, roots: Sequence[str], state: str, config: str = "") -> None:
        self._roots = tuple(roots)
        self._state = state
        self._config = config
        self._guard: Guard | None = None
        self._wrong = ""
        self._known: tuple[Settings, str, tuple[str, ...]] | None = None

    @property
    def settings(self) -> Settings | None:
        """The person's as they were at the last call; None where they are wrong, or none was judged."""
        return self._known[0] if self._known is not None and not self._known[1] else None

    def close(self) -> None:
        """Let go of the folders."""
        for root in self._guard.roots if self._guard is not None else ():
            root.close()
        self._guard = None

    def judge(self, agent: HookAgent, event: HookEvent) -> CallVerdict:
        """The verdict on a call, with what a person has to correct first where that is so; whatever breaks refuses."""
        try:
            said = self._judge(agent, event)
        except Exception as error:  # noqa: BLE001 - a mistake in a guard must not open it
            return CallVerdict("deny", unchecked(error))
        if said.verdict == "ask" and not (event.asks and agent.asks):
            way = "nobody can be asked here: go on without it, or make the change with filepact's own tools, where it waits"
            return CallVerdict("deny", f"{said.reason}; {way}")
        return said

    def _judge(self, agent: HookAgent, event: HookEvent) -> CallVerdict:
        guard = self._current()
        start = posixpath.join(guard.roots[0].path, event.cwd)
        calls = CallJudge(guard, agent.actor, start, home_folder() or "")
        said = calls.judge(event.does)
        if said.verdict == "ask" and event.sent and _is_harmless(guard, calls, agent.actor, event):
            said = CallVerdict("allow")
        named = event.does.reads and not event.does.searches
        if not self._wrong or said.verdict == "deny" or named:
            return said
        why = "until that is corrected, only files that are named are read without your word"
        return CallVerdict("ask", f"{self._wrong} - {why}")

    def _current(self) -> Guard:
        settings, wrong = read_known_settings(self._config or None)
        if self._guard is not None:
            known = (settings, wrong, _projects(self._guard))
            if known == self._known and all(root.alive() for root in self._guard.roots):
                return self._guard
            self.close()
        self._guard, unread = open_guard(self._roots, settings, self._state)
        self._known = (settings, wrong, _projects(self._guard))
        self._wrong = wrong or unread
        return self._guard


def _is_harmless(guard: Guard, calls: CallJudge, agent: str, event: HookEvent) -> bool:
    """Whether the rules ask about the file of a call, and not about what the call makes of it."""
    inside = calls.inside(event.does.uses[0].path)
    if inside is None:
        return False
    found = guard.find(inside, "write", agent=agent, missing="create")
    if found.place.kind != "file" or found.place.path != found.lookup.relative:
        return False
    try:
        before = found.root.read(found.place.path, limit=_LARGEST, follow=False).data
    except FilepactError:
        return False
    after = _made_of(before, event.sent)
    if after is None or after == before:
        return False
    contents = {content_id(one): one for one in (before, after)}
    change = FileChange(found.path, *(Revision(name, 0o644) for name in contents))
    signs = guard.signs_of(change, contents.__getitem__, agent=agent)
    return bool(signs) and (
        guard.permit(found.path, "write", agent=agent, signs=signs).verdict == "allow"
    )


def _made_of(before: bytes, edits: Sequence[HookEdit]) -> bytes | None:
    """Return a file's bytes after exact edits; None where a tool might make something else of one."""
    try:
        text = read = before.decode()
    except UnicodeDecodeError:
        return None
    for old, new, everywhere in edits:
        # Gemini CLI takes escapes out; Claude Code a break with a text that goes, and so makes the next line a remark.
        if "\\" in new or (old and not new and old[-1] != "\n" and f"{old}\n" in text):
            return None
        if old is None:
            text = new
        elif not old or text.count(old) < 1 or (text.count(old) > 1 and not everywhere):
            return None
        elif text.count(old) != read.count(old):
            return None  # Of edits that build on each other a tool may make the first ones only.
        else:
            text = text.replace(old, new)
    return text.encode("utf-8", "surrogatepass")


def told(error: Exception) -> str:
    """Return an error's message, for people and models."""
    if isinstance(error, FilepactError):
        return f"{error.message}. {error.hint}".strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}, which should not happen; please report it"


def unchecked(error: Exception) -> str:
    """Why a call is refused that could not be judged."""
    return f"filepact could not check this call: {told(error)}"


def tell(
    agent: HookAgent,
    event: HookEvent,
    messages: Sequence[CallMessage],
    besides: str,
    decided: Sequence[str],
) -> tuple[HookAnswer, list[CallMessage]]:
    """An answer with what the person and the model were not told yet; mostly there is nothing.

    Args:
        agent: Whose event it is.
        event: The event.
        messages: About calls of its session.
        besides: What the person is told besides.
        decided: What a person has decided about changes of its session, for the model.

    Returns:
        The answer, and the messages of which the model has yet to hear.
    """
    later = [replace(one, said="") for one in messages if one.known and agent.hears]
    said = ". ".join(one.text(agent.name) for one in messages if one.said)
    told = "\n".join(filter(None, (besides, said and f"filepact: {said}.")))
    news = [*(one.known for one in later), *decided] if event.heard else []
    known = "\n".join(f"filepact: {one}" for one in news)
    answer = agent.message(told, known, event.name) if told or known else HookAnswer()
    return answer, [] if event.heard else later


def answer_unread(
    agent: HookAgent, data: bytes, name: str, mode: HookMode, said: str
) -> HookAnswer:
    """The answer to an event that cannot be read; one that may come before a tool is refused.

    Args:
        agent: Whose it should be.
        data: What came.
        name: The event's name, where the command line has it.
        mode: How far the hook goes.
        said: What is wrong.
    """
    if mode != "record" and may_be_before(agent, data, name):
        return agent.answer(CallVerdict("deny", f"filepact could not check this call: {said}"))
    return agent.message(f"filepact has not recorded this: {said}")


def answer_unrecorded(
    agent: HookAgent, event: HookEvent, said: CallVerdict, mode: HookMode, why: str
) -> HookAnswer:
    """The answer where the rules have spoken and nothing can be recorded.

    Args:
        agent: Whose the event is.
        event: It.
        said: The verdict, if it is about a call to come.
        mode: How far the hook goes.
        why: What a person has to be told; empty for nothing.
    """
    if event.moment == "before" and mode == "strict" and said.verdict != "deny":
        said = CallVerdict("deny", f"filepact could not record this call: {why}")
    remark = f"filepact records nothing, so nothing can be taken back: {why}" if why else ""
    return agent.answer(said, remark) if event.moment != "other" else HookAnswer()


def _projects(guard: Guard) -> tuple[str, ...]:
    """Return the texts of the projects' own rule files, or why one cannot be read."""
    found: list[str] = []
    for root in guard.roots:
        try:
            found.append(f"={read_project_file(root)}")
        except FilepactError as error:
            found.append(error.message)
    return tuple(found)
