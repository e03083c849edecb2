"""Operations as people think of them: selected by turn, session, agent, time or file, and listed by turn."""

from __future__ import annotations

import re
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from filepact.domain.change import net_changes
from filepact.domain.operation import Actor, Session, moment
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.text.confusables import visible
from filepact.values import late_regex
from filepact.workspace.selection import Selection
from filepact_cli.context import here
from filepact_cli.render import by_whom, count, cut, when
from filepact_cli.screen import CommandAnswer, TerminalText, plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from filepact.domain.document import RootId
    from filepact.domain.operation import Operation
    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Style

__all__ = ["files_shown", "log_turns", "select", "time_named"]

_ID: Final = late_regex(r"c[0-9a-z]{1,10}")
_SPAN: Final = late_regex(r"(\d{1,6})\s*([a-z]+)")
_SECONDS: Final = {
    name: seconds
    for names, seconds in (
        ("s sec secs second seconds", 1),
        ("m min mins minute minutes", 60),
        ("h hour hours", 3_600),
        ("d day days", 86_400),
        ("w week weeks", 604_800),
    )
    for name in names.split()
}
_WIDTH: Final = 80
_FILES: Final = 12  # of a turn that are shown; deletions first


def time_named(text: str, now: float) -> float:
    """A time as people type it, in seconds since the epoch.

    A span before now (``10m``, ``1h30m``, ``2 days ago``), ``today``, ``yesterday`` (both from midnight), a time
    of day (``14:30``: the last one), or ISO 8601, in local time unless it says another.

    Raises:
        InvalidParamsError: It is none of these, or lies ahead.
    """
    said = " ".join(text.split()).lower()
    found = _span_before(said, now)
    if found is None:
        found = _named(said, text.strip(), now)
    if found is None or found > now:
        raise InvalidParamsError(
            f"{text!r} is in the future" if found is not None else f"{text!r} is not a time",
            hint="Say how long ago (10m, 1h30m, 2 days), today, yesterday, 14:30, or a date such as "
            "2026-01-31 or 2026-01-31T14:30.",
        )
    return found


def _span_before(said: str, now: float) -> float | None:
    said = said.removesuffix(" ago")
    spans = _SPAN.findall(said)
    if not spans or re.sub(r"\s", "", said) != "".join(map("".join, spans)):
        return None
    if any(unit not in _SECONDS for _, unit in spans):
        return None
    return now - sum(int(number) * _SECONDS[unit] for number, unit in spans)


def _named(said: str, text: str, now: float) -> float | None:
    today = datetime.fromtimestamp(now).astimezone().replace(tzinfo=None)
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if said in ("today", "yesterday"):
        return (midnight - timedelta(days=said == "yesterday")).timestamp()
    if re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", said):
        with suppress(ValueError):
            at = datetime.fromisoformat(f"{midnight:%Y-%m-%d}T{said:0>5}").timestamp()
            return at if at <= now else at - 86_400
        return None
    # Without a dash it could be a number of seconds, or of years.
    if re.match(r"\d{4}-", text):
        with suppress(ValueError, OverflowError, OSError):
            return datetime.fromisoformat(text).timestamp()
    return None


# -- what is meant ---------------------------------------------------------------------------------


def select(
    workspace: Workspace, arguments: Namespace, paths: Sequence[str] | None = None
) -> Selection:
    """The operations that a command line means, by ids, files, or in other ways.

    Args:
        workspace: Whose.
        arguments: What was said.
        paths: The files and folders where nothing can be an id; None for words that may be either.

    Raises:
        InvalidParamsError: A word is an id and a file, or a time cannot be read.
        NotFoundError: A word is neither, or there is no such session.
    """
    ids: list[str] = []
    places: list[tuple[RootId, str]] = []
    for word in arguments.what if paths is None else paths:
        operation = _operation_named(workspace, word) if paths is None else None
        if operation is not None:
            ids.append(operation)
        else:
            places.append(_place_named(workspace, word))
    said = vars(arguments)
    session, when = said.get("session"), said.get("since")
    return Selection(
        tuple(ids),
        turn=said.get("turn") or "",
        session=None if session is None else _session_named(workspace, session),
        agent=said.get("agent") or "",
        since=None if when is None else time_named(when, time.time()),
        everybody=said.get("all", False),
        places=tuple(places),
    )


def _operation_named(workspace: Workspace, word: str) -> str | None:
    """The id that a word stands for; None where it can only be a file."""
    if not _ID.fullmatch(word):
        return None
    is_file = False
    with suppress(FilepactError):
        is_file = workspace.guard.find(here(workspace, word), "list").place.kind != "missing"
    try:
        found = workspace.operation(word).id
    except FilepactError:
        if is_file:
            return None
        raise
    if is_file:
        raise InvalidParamsError(
            f"{word!r} is both an operation and a file",
            hint=f"Say ./{word} for the file, or {found} for the operation.",
        )
    return found


def _place_named(workspace: Workspace, word: str) -> tuple[RootId, str]:
    path = here(workspace, word)
    there = workspace.guard.find(path, "list", follow=False).place.kind != "missing"
    if not there and not workspace.log(path=path, limit=1):
        raise NotFoundError(
            f"there is no operation or file {word!r}",
            hint="`filepact log` shows operations, `filepact review --list` what waits.",
        )
    return workspace.named(path)


def _session_named(workspace: Workspace, word: str) -> Session:
    found = workspace.sessions_named(word) if word else ()
    if word not in found and len(found) != 1:
        if not found:
            raise NotFoundError(
                f"there is no session {word!r}", hint="`filepact log --turns` shows sessions."
            )
        raise InvalidParamsError(
            f"several begin with {word!r}: {', '.join(found[:5])}", hint="Give more of the id."
        )
    # Only its id counts where nothing is known of its conversation.
    return Session(word if word in found else found[0], Actor("program", ""))


# -- what there is ---------------------------------------------------------------------------------


def log_turns(workspace: Workspace, limit: int | None, since: float | None = None) -> CommandAnswer:
    """Return the log by turn, and by session where no turn is known; newest first.

    Args:
        workspace: Whose.
        limit: At most so many; None for all.
        since: Only those that were not over by then, seconds since the epoch; None for all.
    """
    now, requests = time.time(), workspace.asked.requests()
    spans: list[TerminalText] = []
    told: list[dict[str, object]] = []
    for number, operations in workspace.turns(limit, since):
        files, states = _files(workspace, operations)
        request = requests.get(operations[-1].session.turn, "")
        spans += [*_head(number, operations, now, request), *files_shown(files, states)]
        told.append({**_facts(number, operations, files), "request": request})
    nothing = f"Nothing was done here {'yet' if since is None else 'since then'}.\n"
    return CommandAnswer(tuple(spans) or plain(nothing), {"turns": told}, long=True)


_File = tuple[str, str, int | None, int | None]
"""A path, what became of the file, and how many lines were added and removed if that is known."""
_States = tuple[object, object]
"""What tells one state of a file from another, before and after; None where there is no file."""


def _files(
    workspace: Workspace, operations: Sequence[Operation]
) -> tuple[list[_File], dict[str, _States]]:
    """Return the net changes of operations in force by file, deletions first; and each file's states."""
    found: dict[str, _File] = {}
    states: dict[str, _States] = {}
    done = ((one.changes, one.directories) for one in operations if _counts(one))
    for changes in net_changes(done):
        kinds = {workspace.show(one.path): one.kind for one in changes.changes}
        for one in changes.changes:
            path = workspace.show(one.path)
            states[path] = (states.get(path, (one.before,))[0], one.after)
        try:
            reports = {
                one.path.rstrip("/"): (one.added, one.removed)
                for one in workspace.show_changes(changes).files
            }
        except FilepactError:
            reports = {}
        for path, kind in kinds.items():
            added, removed = reports.get(path, (None, None))
            _, before, more, less = found.get(path, (path, kind, 0, 0))
            became = kind if path not in found else _joined(before, kind)
            found[path] = (path, became, _sum(more, added), _sum(less, removed))
    order = {"delete": 0, "create": 1, "modify": 2}
    return sorted(found.values(), key=lambda file: (order[file[1]], file[0])), states


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _joined(first: str, then: str) -> str:
    if then in ("delete", first):
        return then
    return "create" if first == "create" else "modify"


def _counts(operation: Operation) -> bool:
    in_force = operation.was_done and operation.undone_by is None
    return in_force and operation.kind in ("change", "restore")


def _head(
    number: int | None, operations: Sequence[Operation], now: float, request: str
) -> Iterator[TerminalText]:
    newest = operations[-1]
    session = newest.session
    which = f"turn {session.turn}" if number is not None else f"session {session.id}"
    actor = by_whom(session.actor)
    undone = sum(one.undone_by is not None for one in operations)
    yield TerminalText(f"{'-' if number is None else number:>3}  ", "title")
    yield TerminalText(cut(actor, 22), "strong")
    if not request:
        yield TerminalText(f"  {cut(which, 32)}", "title")
    yield TerminalText(f"  {when(newest.created, now)}", "dim")
    yield TerminalText(f"  {len(operations):,} op{'' if len(operations) == 1 else 's'}", "dim")
    if undone:
        said = "undone" if undone == len(operations) else f"{undone} undone"
        yield TerminalText(f" {said}", "warn")
    if request:
        yield TerminalText(f"\n     {cut(visible(request), _WIDTH - 5, first=True)}", "title")
    yield TerminalText("\n")


_SIGNS: Final[dict[str, tuple[str, Style]]] = {
    "delete": ("deleted ", "remove"),
    "create": ("made    ", "add"),
    "modify": ("        ", "plain"),
    "move": ("moved   ", "plain"),
}


def files_shown(files: Sequence[_File], states: Mapping[str, _States]) -> Iterator[TerminalText]:
    """Yield a line for each changed file, and one with the number of those left out; a file with another name is one."""
    sides = {path: [(one, path.endswith("/.git/")) for one in states[path]] for path, *_ in files}
    gone = {sides[path][0]: path for path, kind, *_ in files if kind == "delete"}
    new = {sides[path][1]: path for path, kind, *_ in files if kind == "create"}
    # Many folders have the same state, which does not tell which of several became which; a repository lies in one.
    folders = Counter(sides[x][y == "create"] for x, y, *_ in files if x[-1:] == "/")
    same = {one for one in new.keys() & gone.keys() if folders[one] in (0, 2)}
    names = {new[state]: f"{gone[state]} -> {new[state]}" for state in same}
    lost = {gone[state] for state in same}
    files = [one for one in files if one[0] not in lost]
    files = [(names[one[0]], "move", 0, 0) if one[0] in names else one for one in files]
    for path, kind, added, removed in files[:_FILES]:
        sign, style = _SIGNS[kind]
        lines = f"+{added} -{removed}" if removed is not None and (added or removed) else ""
        room = _WIDTH - 5 - len(sign) - 1 - len(lines)
        yield TerminalText(f"     {sign}", style)
        yield TerminalText(cut(path, room))
        if lines:
            yield TerminalText(f" +{added}", "add")
            yield TerminalText(f" -{removed}", "remove")
        yield TerminalText("\n")
    if len(files) > _FILES:
        yield TerminalText(f"     and {count(len(files) - _FILES, 'more file')}\n", "dim")


def _facts(
    number: int | None, operations: Sequence[Operation], files: Sequence[_File]
) -> dict[str, object]:
    session = operations[-1].session
    actor = session.actor
    return {
        "number": number,
        "turn": session.turn,
        "session": session.id,
        "actor": {"kind": actor.kind, "name": actor.name, "version": actor.version},
        "began": moment(operations[0].created),
        "ended": moment(operations[-1].created),
        "operations": [one.id for one in operations],
        "undone": [one.id for one in operations if one.undone_by is not None],
        "files": [
            {"path": path, "change": kind, "added": added, "removed": removed}
            for path, kind, added, removed in files
        ],
    }
