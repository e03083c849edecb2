"""A solution's toolset over a throw-away folder, and its answers checked against their schemas."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext, Toolset
from filepact_diagnostics.envelope import CALL_SECONDS, Envelope
from filepact_diagnostics.judging import ServerJudge
from filepact_diagnostics.opening import open_solution
from filepact_diagnostics.solution import SOLUTION_TOOLS
from filepact_diagnostics.solution_engine import SolutionEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace
    from filepact_diagnostics.lsp.pool import ServerPool

AGENT = Session("s1", Actor("agent", "tester"))
OTHER = Session("s2", Actor("agent", "other"))


class World:
    """A folder, its workspace, and the tools."""

    def __init__(self, root: Path, workspace: Workspace, toolbox: Toolset) -> None:
        self.root = root
        self.workspace = workspace
        self.toolbox = toolbox

    def put(self, name: str, text: str) -> Path:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")
        return place

    def held(self, name: str) -> str | None:
        place = self.root / name
        return place.read_bytes().decode() if place.exists() else None

    def answer(
        self,
        tool: str,
        /,
        *,
        session: Session = AGENT,
        cancelled: Callable[[], bool] = lambda: False,
        **arguments: Any,
    ) -> dict[str, Any]:
        """The whole envelope; its text is the same, and it is as its schema says."""
        outcome = self.toolbox.call(tool, arguments, CallContext(session, cancelled))
        if cancelled():
            outcome.on_lost()
        else:
            outcome.on_sent()
        assert outcome.receipt is not None
        assert json.loads(outcome.text) == outcome.receipt
        schema = next(one.output for one in self.toolbox.tools if one.name == tool)
        _validator(json.dumps(schema)).validate(outcome.receipt)
        answer = outcome.receipt
        assert answer["success"] is not outcome.failed
        assert (answer["error"] is None) is answer["success"]
        assert (answer["data"] is not None) is answer["success"]
        assert answer["meta"].keys() >= {"durationMs", "cancelled", "timedOut", "timeoutMs"}
        return answer

    def data(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = self.answer(tool, **arguments)
        assert answer["error"] is None, answer["error"]
        return answer["data"]

    def code(self, tool: str, /, **arguments: Any) -> str:
        """The code of a refusal that has a reason."""
        error = self.answer(tool, **arguments)["error"]
        assert error is not None
        assert error.keys() == {"code", "message", "hint"}
        assert error["message"]
        assert error["hint"], error
        return error["code"]


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    """Of a schema that is one itself; that takes far longer than to look at an answer."""
    jsonschema.Draft202012Validator.check_schema(read := json.loads(schema))
    return jsonschema.Draft202012Validator(read)


@contextmanager
def world(folder: Path, **options: Any) -> Iterator[World]:
    """A folder without language servers."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    workspace = open_workspace([str(root)], state_dir=str(folder / "state"), **options)
    try:
        yield World(root, workspace, open_solution(workspace))
    finally:
        workspace.close()


@contextmanager
def served(
    folder: Path,
    pool: ServerPool,
    *,
    name: str = "",
    limit: float = CALL_SECONDS,
    kind: type[ServerJudge] = ServerJudge,
    **options: Any,
) -> Iterator[World]:
    """A folder with language servers, which are waited for."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    workspace = open_workspace([str(root)], state_dir=str(folder / "state"))
    options = {"mode": "always", "budget": 30.0} | options
    semantics = kind(workspace, pool, **options)
    only_new = {one.name for one in pool.servers if one.only_new}
    engine = SolutionEngine(workspace, semantics, name, only_new)
    toolbox = Toolset(SOLUTION_TOOLS, engine, form=Envelope(), seconds=limit)
    try:
        yield World(root, workspace, toolbox)
    finally:
        semantics.close()
        workspace.close()
