"""A server with a few small tools over files in memory; run as a program or used in a thread."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import Annotated

from filepact.domain.operation import Session
from filepact.errors import NotFoundError
from filepact.tools.parameters import about
from filepact.tools.registry import CallResult, ContentAnswer, ParameterName, Toolset, tool
from filepact.workspace.pending import SessionEvent, SessionEvents
from filepact_mcp import serve

Path = Annotated[str, about(min_length=1, description="File.")]

LARGE = 3_000_000


@tool(title="Read", level="safe", tier="essential")
def read(
    files,
    path: Path,
    raw: Annotated[bool, about(description="Bytes.")] = False,
    mime: Annotated[str, about(description="What they are.")] = "",
    note: Annotated[str, about(description="Said of them.")] = "",
) -> str | ContentAnswer:
    """Read a file."""
    text = files.text(path)
    return ContentAnswer(text.encode(), mime, note) if raw else text


@tool(title="Write", level="moderate", tier="essential", idempotent=True)
def write(
    draft,
    path: Path,
    content: Annotated[str, about(description="Text.")],
    create_dirs: Annotated[
        bool, about(description="Folders."), ParameterName("createDirs")
    ] = False,
) -> str:
    """Write a file."""
    draft[path] = content
    return f"write {path}"


@tool(title="Break", level="dangerous", tier="full")
def fail(files) -> str:
    """Break in a way that nobody foresaw."""
    raise RuntimeError("the secret is in /home/somebody/.ssh")


@tool(title="Wait", level="safe", tier="standard")
def wait(files, steps: Annotated[int, about(ge=1, description="Steps of 10 ms.")] = 1_000) -> str:
    """Wait until cancelled, and tell how far it is."""
    files.engine.waiting.set()
    for step in range(steps):
        files.call.progress(step, f"step {step}")
        if files.call.cancelled():
            files.engine.cancelled.set()
            return "cancelled"
        threading.Event().wait(0.01)
    return "done"


@tool(title="Meet", level="safe", tier="standard")
def meet(files) -> str:
    """Answer when three calls have come together."""
    files.engine.begun.release()
    files.engine.meeting.wait(10)
    return "met"


@tool(title="Print", level="safe", tier="standard")
def chatter(files) -> str:
    """Print to standard output in every way there is."""
    print("print")
    sys.__stdout__.flush()
    os.write(1, b"descriptor\n")
    subprocess.run(["sh", "-c", "echo child; cat"], check=True)
    return f"read {sys.stdin.read()!r} and {os.read(0, 10)!r}"


@tool(title="Size", level="safe", tier="standard")
def size(files) -> str:
    """Tell what an answer may take."""
    return str(files.call.page)


@tool(title="Slow", level="moderate", tier="standard")
def slow(draft) -> str:
    """Write a file, and go on until cancelled."""
    draft["slow"] = "done"
    return "wait for it"


@tool(title="Who", level="safe", tier="standard")
def who(files) -> str:
    """Tell who calls."""
    return f"{files.call.session.id} {files.call.session.actor}"


def wait_for(question) -> bool:
    """Ask until the answer is yes, for a while."""
    return any(question() or threading.Event().wait(0.01) for _ in range(9_000))


class Files:
    def __init__(self, engine, call) -> None:
        self.engine = engine
        self.call = call

    def text(self, path: str) -> str:
        if path == "large":
            return "x" * LARGE
        if path not in self.engine.files:
            raise NotFoundError(f"{path}: no such file", hint="Look again.", path=path)
        return self.engine.files[path]


class SmallEngine:
    def __init__(self) -> None:
        self.files = {"a": "one\ntwo\n", "odd": "name \udcff end"}
        self.cancelled = threading.Event()
        self.waiting = threading.Event()
        self.begun = threading.Semaphore(0)
        self.meeting = threading.Barrier(3)
        self.unheard = SessionEvents()
        self.done: CallResult | None = None

    def done_before(self, _call, _change, **_more) -> CallResult | None:
        return self.done

    def port(self, call, _name):
        return Files(self, call)

    @contextmanager
    def draft(self, _call, tool):
        yield {"tool": tool}

    def submit(self, call, draft, summary):
        tool = draft.pop("tool")
        self.files |= draft
        if tool == "slow":
            call.progress(1, "done")
            assert wait_for(call.cancelled)
            self.cancelled.set()
        return summary

    def answer(self, _call, draft, summary) -> CallResult:
        files = [
            {"path": path, "before": None, "after": "0" * 12, "added": 1, "removed": 0}
            for path in draft
        ]
        receipt = {"operation": "c0123456789", "status": "applied", "files": files}
        return CallResult(f"Done: {summary}.", receipt=receipt)

    def events(self, _call) -> tuple[SessionEvent, ...]:
        return self.unheard.of("")

    def acknowledge(self, _call, news) -> None:
        self.unheard.acknowledge("", news)

    def record(self, _call, _tool, _asked, _code, _seconds) -> None:
        """There is no audit log."""

    def gather_records(self):
        return lambda: None


TOOLS = (read, write, fail, wait, meet, chatter, who, size, slow)


def counted_sessions():
    names = itertools.count()
    return lambda actor: Session(f"s{next(names)}", actor)


def start(
    engine,
    *,
    pipes=None,
    narrow=lambda _folders: None,
    patience=90.0,
    session_factory=None,
    page=None,
) -> None:
    serve(
        lambda: Toolset(TOOLS, engine),
        name="small",
        version="1.2",
        instructions="Be gentle.",
        session_factory=session_factory or counted_sessions(),
        narrow=narrow,
        patience=patience,
        page=page,
        pipes=pipes,
    )


if __name__ == "__main__":
    start(SmallEngine())
