"""The extension `io.modelcontextprotocol/tasks` (2026-07-28): calls that take long, and are asked for by a name.

A call that is not answered within a few seconds is answered with such a name, if its client has declared the extension, and
goes on; the client asks what became of it.  A task lasts as long as the connection, and an hour after its end.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.values import dataclass, field
from filepact_wire.messages import INVALID_PARAMS, error_response, response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact_mcp.protocol import TaskRequest, ToolRequest
    from filepact_mcp.results import ServerInfo, ToolResponse
    from filepact_wire.messages import Message

__all__ = ["KEPT", "NO_TASK", "Task", "TaskList", "TaskState", "came_of", "described"]

KEPT: Final = 3_600.0  # seconds that a task is kept after its end
NO_TASK: Final = "there is no such task, or it is over for more than an hour"
TaskState = Literal["working", "input_required", "completed", "failed", "cancelled"]
_MOST: Final = 200  # tasks that are over, of one client
_POLL: Final = 1_000  # milliseconds after which asking again makes sense


@dataclass(slots=True, eq=False)
class Task:
    """One call that was answered with a name.

    Attributes:
        request: The call, as it is carried out next.
        cancel: Ends the work; replaced with each part of it.
        status: As the protocol has it.
        since: When it began, and when something last changed, seconds since the epoch.
        outcome: The result, the error, or what the client is asked, as members of an answer.
        sent: To be called once the client has the result; ``lost`` if it never gets it.
        state: What a question that is open goes on with.
    """

    request: ToolRequest
    cancel: Callable[[], None]
    name: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    status: TaskState = "working"
    since: tuple[float, float] = (0.0, 0.0)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    sent: Callable[[], None] | None = None
    lost: Callable[[], None] | None = None
    state: str = ""
    answers: dict[str, object] = field(default_factory=dict)
    asked: int = 0


class TaskList:
    """The tasks of one client; for all threads.

    Args:
        facts: What the server says of itself.
        now: Seconds since the epoch.
    """

    def __init__(self, facts: ServerInfo, now: Callable[[], float] = time.time) -> None:
        self._facts = facts
        self._now = now
        self._lock = Lock()
        self._tasks: dict[str, Task] = {}

    def begin(self, request: ToolRequest, cancel: Callable[[], None]) -> tuple[Task, Message]:
        """Make a task of a call that is under way, and the answer that names it."""
        now = self._now()
        task = Task(request, cancel, since=(now, now))
        with self._lock:
            self._forget(now)
            self._tasks[task.name] = task
        told = self._facts.modern(described(task.name, task.status, task.since)) | {
            "resultType": "task"
        }
        return task, response(request.id, told)

    def end(self, task: Task, answer: ToolResponse, *, cancelled: bool) -> None:
        """Keep what came of a task: its result, a failure, or a question for the person."""
        result: Any = answer.message.get("result")
        with self._lock:
            task.since = task.since[0], self._now()
            task.sent, task.lost = answer.sent, answer.lost
            asks = isinstance(result, dict) and result.get("resultType") == "input_required"
            if asks and not cancelled:
                task.asked += 1  # No key is used again within a task.
                requests = result["inputRequests"].items()
                asked = {f"{task.asked}.{key}": request for key, request in requests}
                task.status, task.outcome = "input_required", {"inputRequests": asked}
                task.state, task.answers = result["requestState"], {}
            else:
                task.status, task.outcome = came_of(answer.message, cancelled=cancelled)

    def answer(
        self, asked: TaskRequest, go_on: Callable[[Task, str, Mapping[str, object]], None]
    ) -> Message:
        """Answer a request about a task; its call is carried on with the state of a question and what the person said."""
        told: dict[str, Any] = {}
        after: Callable[[], object] | None = None
        with self._lock:
            self._forget(self._now())
            task = self._tasks.get(asked.task)
            if task is None:
                return error_response(asked.id, INVALID_PARAMS, NO_TASK)
            if asked.method == "tasks/get":
                told = {**described(task.name, task.status, task.since), **task.outcome}
                if task.status == "completed":
                    after, task.sent = task.sent, None
            elif asked.method == "tasks/cancel":
                if task.status == "input_required":
                    task.status, task.outcome = "cancelled", {}
                after = task.cancel
            elif task.status == "input_required":
                open_keys = task.outcome["inputRequests"]
                said_now = {key: one for key, one in asked.responses.items() if key in open_keys}
                task.answers |= {key.partition(".")[2]: one for key, one in said_now.items()}
                left = {key: one for key, one in open_keys.items() if key not in said_now}
                task.outcome = {"inputRequests": left}
                if not left:
                    task.status, task.outcome = "working", {}
                    state, answers = task.state, dict(task.answers)
                    after = lambda: go_on(task, state, answers)  # noqa: E731 - called without the lock
        if after is not None:
            after()
        return response(asked.id, self._facts.modern(told))

    def close(self) -> None:
        """Give up all results that nobody has asked for."""
        with self._lock:
            self._drop([*self._tasks.values()])

    def _forget(self, now: float) -> None:
        """Drop what has been over for long, and what nobody answered; there are never too many."""
        over = [one for one in self._tasks.values() if one.status != "working"]
        late = [one for one in over if one.since[1] + KEPT < now]
        self._drop({*late, *over[: max(len(over) - _MOST, 0)]})

    def _drop(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            del self._tasks[task.name]
            if task.sent is not None and task.lost is not None:
                task.lost()


def came_of(message: Message, *, cancelled: bool) -> tuple[TaskState, Mapping[str, Any]]:
    """Tell what the answer to a call makes of its task, and what a client is told of that beside it."""
    result = message.get("result")
    if not isinstance(result, dict):
        return "failed", {"error": message["error"]}
    if cancelled and (result.get("isError") or "content" not in result):
        return "cancelled", {}
    return "completed", {"result": result}


def described(name: str, status: str, since: tuple[float, float]) -> dict[str, Any]:
    """A task as the protocol shows it, by when it began and when something last changed."""
    began, changed = (datetime.fromtimestamp(one, UTC).isoformat() for one in since)
    # While it goes on there is no end to be told.
    left = None if status == "working" else int(1_000 * (since[1] - since[0] + KEPT))
    times = {"createdAt": began, "lastUpdatedAt": changed, "ttlMs": left, "pollIntervalMs": _POLL}
    return {"taskId": name, "status": status, **times}
