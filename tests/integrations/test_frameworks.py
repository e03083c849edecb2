"""Agents of real frameworks, driven by a scripted model: they read, are refused, and change a file that goes back."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from filepact import Files

# Each framework is imported by its own tests: all of them together take many seconds, in each process.
pytestmark = pytest.mark.filterwarnings("default")  # what they warn of is theirs

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "src/cart.py"}),
    ("read_file", {"path": ".env"}),
    ("edit_file", {"path": "src/cart.py", "old_string": "count = 1", "new_string": "count = 2"}),
]
"""What each scripted model has its agent do, one call after the other."""


def check(files: Files, root: Path, answers: list[str]) -> None:
    """The answers that the model saw, and the disk; what was done can be taken back."""
    read, refused, changed = answers
    assert "total = 0" in read
    assert refused.startswith("PATH_BLOCKED")
    assert "tok-1234" not in "".join(answers)
    (operation,) = files.log()
    assert operation.id in changed
    assert operation.session.agent == "helper"
    assert (root / "src" / "cart.py").read_bytes() == b"total = 0\r\ncount = 2\r\n"
    files.undo()
    assert (root / "src" / "cart.py").read_bytes() == b"total = 0\r\ncount = 1\r\n"


def test_pydantic_ai(files: Files, root: Path) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from filepact.integrations.pydantic_ai import tools

    left = list(CALLS)

    def model(_: Any, info: Any) -> ModelResponse:
        assert {one.name for one in info.function_tools} >= {"read_file", "edit_file"}
        if not left:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = left.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    agent = Agent(FunctionModel(model), tools=tools(files))
    done = asyncio.run(agent.run("count to two"))
    assert done.output == "done"
    parts = [part for message in done.all_messages() for part in message.parts]
    check(files, root, [str(one.content) for one in parts if isinstance(one, ToolReturnPart)])


def test_openai_agents(files: Files, root: Path) -> None:
    from agents import Agent, Runner, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message, function_call

    from filepact.integrations.openai_agents import tools

    set_tracing_disabled(True)
    steps = [
        [function_call(name, sent, call_id=f"call_{at}")] for at, (name, sent) in enumerate(CALLS)
    ]
    model = ScriptedModel([*steps, [assistant_message("done")]])
    agent = Agent(name="helper", model=model, tools=list(tools(files)))
    done = asyncio.run(Runner.run(agent, "count to two"))
    assert done.final_output == "done"
    outputs = [one for one in done.new_items if one.type == "tool_call_output_item"]
    check(files, root, [str(one.output) for one in outputs])


def test_openai_agents_with_their_own_apply_patch(files: Files, root: Path) -> None:
    from agents import Agent, ApplyPatchTool, Runner, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message
    from openai.types.responses import ResponseApplyPatchToolCall

    from filepact.integrations.openai_agents import Editor

    set_tracing_disabled(True)
    calls = [
        {"type": "update_file", "path": "src/cart.py", "diff": "@@\n-count = 1\n+count = 2\n"},
        {"type": "create_file", "path": "new.txt", "diff": "+made\n"},
        {"type": "delete_file", "path": "new.txt"},
        {"type": "update_file", "path": "../out.txt", "diff": "@@\n-a\n+b\n"},
    ]
    steps = [
        [
            ResponseApplyPatchToolCall.model_validate(
                {
                    "id": f"ap_{at}",
                    "call_id": f"call_{at}",
                    "status": "completed",
                    "type": "apply_patch_call",
                    "operation": call,
                }
            )
        ]
        for at, call in enumerate(calls)
    ]
    model = ScriptedModel([*steps, [assistant_message("done")]])
    agent = Agent(name="helper", model=model, tools=[ApplyPatchTool(editor=Editor(files))])
    done = asyncio.run(Runner.run(agent, "count to two"))
    outputs = [str(one.output) for one in done.new_items if one.type == "tool_call_output_item"]
    assert [one.kind for one in files.log()] == ["change"] * 3
    assert "PATH_BLOCKED" in outputs[3]
    assert (root / "src" / "cart.py").read_bytes() == b"total = 0\r\ncount = 2\r\n"
    assert not (root / "new.txt").exists()


def test_langchain(files: Files, root: Path) -> None:
    from langchain_core.messages import AIMessage, ToolMessage

    from filepact.integrations import langchain

    tools = {one.name: one for one in langchain.tools(files)}
    calls = [{"name": name, "args": sent, "id": str(at)} for at, (name, sent) in enumerate(CALLS)]
    asked = AIMessage("", tool_calls=calls)
    answers = [
        tools[call["name"]].invoke({**call, "type": "tool_call"}) for call in asked.tool_calls
    ]
    assert all(isinstance(one, ToolMessage) for one in answers)
    check(files, root, [str(one.content) for one in answers])
    again = asyncio.run(tools["read_file"].ainvoke({"path": "src/cart.py"}))
    assert "count = 1" in again


def test_deep_agents_with_their_own_tools(files: Files, root: Path) -> None:
    from deepagents import create_deep_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    from filepact.integrations.deepagents import FilepactBackend

    class Model(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    calls = [
        ("ls", {"path": "/"}),
        ("read_file", {"file_path": "/src/cart.py"}),
        ("read_file", {"file_path": "/.env"}),
        ("grep", {"pattern": "count", "output_mode": "content"}),
        ("glob", {"pattern": "*.py"}),
        (
            "edit_file",
            {"file_path": "/src/cart.py", "old_string": "count = 1", "new_string": "count = 2"},
        ),
        ("write_file", {"file_path": "/new/made.txt", "content": "made\n"}),
    ]
    messages = [
        AIMessage("", tool_calls=[{"name": name, "args": sent, "id": str(at)}])
        for at, (name, sent) in enumerate(calls)
    ]
    agent = create_deep_agent(
        model=Model(messages=iter([*messages, AIMessage("done")])),
        backend=FilepactBackend(files),
    )
    done = agent.invoke({"messages": [{"role": "user", "content": "count to two"}]})
    said = {
        one.tool_call_id: str(one.content)
        for one in done["messages"]
        if isinstance(one, ToolMessage)
    }
    assert "/src/" in said["0"]
    assert "total = 0" in said["1"]
    assert "PATH_BLOCKED" in said["2"]
    assert "tok-1234" not in json.dumps(said)
    assert "/src/cart.py" in said["3"]
    assert "/src/cart.py" in said["4"]
    assert (root / "src" / "cart.py").read_bytes() == b"total = 0\r\ncount = 2\r\n"
    assert (root / "new" / "made.txt").read_text() == "made\n"
    assert [one.session.agent for one in files.log()] == ["helper", "helper"]


def test_the_backend_keeps_the_protocols_word(files: Files, root: Path) -> None:
    from filepact.integrations.deepagents import FilepactBackend

    backend = FilepactBackend(files)
    (root / "blob.bin").write_bytes(bytes(range(256)))
    (root / "long.txt").write_text("".join(f"{n}\n" for n in range(10)))

    part = backend.read("/long.txt", offset=2, limit=3)
    assert part.file_data == {"content": "2\n3\n4\n", "encoding": "utf-8"}
    assert (part.start_line, part.end_line, part.next_offset) == (3, 5, 5)
    assert backend.read("/long.txt", offset=8, limit=2).next_offset is None
    assert backend.read("/long.txt", limit=0).no_lines_requested
    assert backend.read("/long.txt", offset=99).start_line is None
    blob = backend.read("/blob.bin").file_data
    assert blob is not None
    assert blob["encoding"] == "base64"
    assert backend.read("/nowhere").error

    assert len(backend.grep(".", "/long.txt").matches or []) == 0  # plain text, no pattern
    cut = backend.grep("0", max_count=1)
    assert cut.truncated
    assert len(cut.matches or []) == 1
    assert backend.grep("0", "/nowhere").error
    assert backend.glob("/*.txt").matches == [{"path": "/long.txt", "is_dir": False}]
    assert backend.glob("*.txt", "/nowhere").error
    assert backend.ls("/nowhere").error

    assert backend.edit("/long.txt", "1\n", "one\n").occurrences == 1
    assert backend.edit("/long.txt", "nowhere", "x").error
    (root / "wide.txt").write_text("".join(f"{n}{' word' * 60}\n" for n in range(60)))
    near = (root / "wide.txt").read_text().replace("7 word", "seven word")
    assert len(backend.edit("/wide.txt", near, "x").error or "") <= 1_200
    assert backend.write("/.git/config", "x").error
    assert backend.delete("/long.txt").path == "/long.txt"
    assert backend.delete("/long.txt").error
    sent = backend.upload_files([("/up.txt", b"up\n"), ("/bad.bin", b"\xff"), ("/.env", b"x")])
    assert [one.error is None for one in sent] == [True, False, False]
    got = backend.download_files(["/up.txt", "/nowhere", "/src", "/.env"])
    assert got[0].content == b"up\n"
    assert [one.error for one in got[1:]] == ["file_not_found", "is_directory", "permission_denied"]


PROJECT = """
def test_changes(filepact_files):
    filepact_files.write("made.txt", "made")
    filepact_files.edit("kept.txt", "old", "new")
    assert filepact_files.read("kept.txt") == "new"
"""


def test_pytest_has_a_fixture_that_takes_a_tests_changes_back(pytester: Any) -> None:
    pytester.makepyfile(PROJECT)
    kept = pytester.path / "kept.txt"
    kept.write_text("old")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert kept.read_text() == "old"
    assert not (pytester.path / "made.txt").exists()


def test_and_says_so_where_somebody_else_has_written_on_the_same_lines(pytester: Any) -> None:
    more = (
        '    open(filepact_files.workspace.guard.roots[0].path + "/kept.txt", "w").write("mine")\n'
    )
    pytester.makepyfile(PROJECT + more)
    (pytester.path / "kept.txt").write_text("old")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*StaleFileError*"])
    assert (pytester.path / "kept.txt").read_text() == "mine"
