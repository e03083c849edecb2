"""The toolset of a solution over a real server process, in both eras, and through the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any, Literal

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact_diagnostics.opening import open_solution, solution_instructions
from filepact_mcp import INSTRUCTIONS_LIMIT, serve
from tests.faces.envelopes import modern
from tests.faces.line_client import PATIENCE, LineClient
from tests.faces.sdk_server import start as start_package
from tests.servers.fakes import PROGRAM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from mcp.types import CallToolResult

ERAS = ["legacy", "auto"]

OLD = "namespace MyProject;\n\npublic class Program\n{\n}\n"
NEW = "namespace MyProject;\n\npublic class Program { }"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "MyProject"
    folder.mkdir()
    (folder / "MyProject.sln").write_text("Microsoft Visual Studio Solution File\n")
    (folder / "Program.cs").write_text(OLD)
    (folder / "a.py").write_text("x = 1\n")
    return folder


def command(root: Path, *options: str, path: str = "") -> list[str]:
    return [
        *("-m", "filepact", "mcp", "--toolset", "solution"),
        *("--state", str(root.parent / "state"), str(root / path), *options),
    ]


def environment(root: Path, table: str = 'diagnostics = "off"') -> dict[str, str]:
    """That of a person who has no settings of their own but these."""
    settings = root.parent / "settings.toml"
    settings.write_text(f"{table}\n")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "FILEPACT_CONFIG": str(settings),
        "XDG_CONFIG_DIRS": str(root.parent),
    }


@asynccontextmanager
async def connected(root: Path, era: str, *options: str, path: str = "") -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable, args=command(root, *options, path=path), env=environment(root)
    )
    async with Client(
        server, mode=era, client_info=Implementation(name="acceptance", version="7")
    ) as client:
        yield client


def drive(
    root: Path,
    era: str,
    steps: Callable[[Client], Awaitable[None]],
    *options: str,
    path: str = "",
) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with connected(root, era, *options, path=path) as client:
                await steps(client)

    anyio.run(main)


def envelope(result: CallToolResult) -> dict[str, Any]:
    (block,) = result.content
    answer = result.structured_content
    assert answer is not None
    assert json.loads(block.text) == answer
    assert answer.keys() == {"success", "data", "meta", "error"}
    assert bool(result.is_error) is not answer["success"]
    return answer


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("path", ["", "MyProject.sln"])
@pytest.mark.parametrize("era", ERAS)
def test_the_requests_of_the_document_are_answered(root: Path, era: str, path: str) -> None:
    program = str(root / "Program.cs")
    diff = f"--- {program}\n+++ {program}\n@@ -1,5 +1,3 @@\n namespace MyProject;\n \n"

    async def steps(client: Client) -> None:
        async def ask(**arguments: Any) -> dict[str, Any]:
            return envelope(await client.call_tool("write_file", arguments))

        answer = await ask(filePath=program, content=NEW)
        data = answer["data"]
        assert data["unifiedDiff"].startswith(diff)
        update = data.pop("workspaceUpdate")
        changed = [{"filePath": program, "changeCount": 1, "diff": data["unifiedDiff"]}]
        assert data == {
            "filePath": program,
            "changed": True,
            "applied": False,
            "created": False,
            "filesChanged": 1,
            "unifiedDiff": data["unifiedDiff"],
            "changedFiles": changed,
            "operation": None,
            "pending": None,
            "notes": [],
            "hints": data["hints"],
        }
        assert (update["kind"], update["updated"]) == ("preview", False)
        assert answer["meta"] == {
            "durationMs": answer["meta"]["durationMs"],
            "cancelled": False,
            "timedOut": False,
            "timeoutMs": 1_200_000,
        }
        assert (root / "Program.cs").read_text() == OLD

        answer = await ask(filePath=program, content=NEW, applyChanges=True)
        assert (answer["data"]["applied"], answer["data"]["changed"]) == (True, True)
        assert (root / "Program.cs").read_text() == NEW

        answer = await ask(
            filePath="src/NewType.cs",
            content="namespace MyProject;\n\npublic class NewType { }",
            applyChanges=True,
            createIfMissing=True,
            pathStyle="relative",
        )
        assert (answer["data"]["applied"], answer["data"]["created"]) == (True, True)
        assert answer["data"]["filePath"] == "src/NewType.cs"
        assert answer["data"]["unifiedDiff"].startswith("--- /dev/null\n+++ src/NewType.cs\n")
        assert (root / "src" / "NewType.cs").exists()

        answer = await ask(filePath="None.cs", content="x", applyChanges=True)
        assert (answer["success"], answer["data"]) == (False, None)
        assert answer["error"]["code"] == "NOT_FOUND"

    drive(root, era, steps, path=path)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("era", ERAS)
def test_tools_are_listed_with_their_level_and_the_schema_of_their_answers(
    root: Path, era: str
) -> None:
    async def steps(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool in listed.values():
            schema = tool.output_schema
            assert schema is not None
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["required"] == ["success", "data", "meta", "error"]
        hints = listed["write_file"].annotations
        assert hints is not None
        # What is not said is as the protocol says: a tool writes, and may destroy.
        assert (hints.read_only_hint, hints.destructive_hint) == (None, None)
        writers = {"write_file", "rename_symbol", "code_action"}
        others = [tool.annotations for name, tool in listed.items() if name not in writers]
        assert all(one is not None and one.read_only_hint for one in others)

    drive(root, era, steps)


def test_nothing_that_writes_is_shown_where_only_looking_is_allowed(root: Path) -> None:
    async def steps(client: Client) -> None:
        assert "write_file" not in {tool.name for tool in (await client.list_tools()).tools}

    drive(root, "auto", steps, "--read-only")


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("path", ["MyProject.sln", ""])
def test_the_instructions_say_where_paths_start_and_how_to_write(root: Path, path: str) -> None:
    def first(*options: str) -> str:
        with LineServer(root, *options, path=path) as client:
            return str(client.shake_hands()["instructions"])

    said = first()
    assert str(root) in said
    assert "applyChanges" in said
    assert len(said) <= INSTRUCTIONS_LIMIT
    assert "applyChanges" not in first("--read-only")
    assert "wait for the person" in first("--mode", "preview")


@pytest.mark.parametrize("mode", ["auto", "preview"])
@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize("name", ["", "Name" * 50 + ".sln"])
def test_instructions_stay_short_however_long_the_names_are(
    tmp_path: Path, name: str, changes: bool, mode: Literal["auto", "preview"]
) -> None:
    folders = [tmp_path / f"{'deep' * 40}-{number}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
    workspace = open_workspace(
        [str(folder) for folder in folders], state_dir=str(tmp_path / "state"), mode=mode
    )
    with closing(workspace):
        said = solution_instructions(workspace, name, changes=changes)
    assert len(said) <= INSTRUCTIONS_LIMIT
    assert f"{'deep' * 10}-0;" in said
    assert ("applyChanges" in said) == changes


class LineServer:
    """A server process and a client of it."""

    def __init__(
        self,
        root: Path,
        *options: str,
        path: str = "",
        settings: str = 'diagnostics = "off"',
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command(root, *options, path=path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(root, settings),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.client = LineClient(
            os.dup(self.process.stdin.fileno()), os.dup(self.process.stdout.fileno())
        )
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self) -> LineClient:
        return self.client

    def __exit__(self, *_exception: object) -> None:
        self.client.hang_up()
        self.process.wait(PATIENCE)


BAD_PATHS = [
    (["gone.sln"], "NOT_FOUND"),
    (["gone"], "NOT_FOUND"),
    (["Program.cs"], "NOT_A_FILE"),
    (["MyProject.sln", "Other.sln"], "INVALID_PARAMS"),
]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("paths", "code"), BAD_PATHS)
def test_a_solution_that_is_not_there_is_said_before_anything_is_served(
    root: Path, paths: list[str], code: str
) -> None:
    first, *others = (str(root / path) for path in paths)
    done = subprocess.run(
        [sys.executable, *command(root, *others, path=first)],
        env=environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (2 if code == "INVALID_PARAMS" else 1)
    assert f"[{code}]" in done.stderr
    assert done.stdout == ""


# -- calls that nobody waits for ------------------------------------------------------------

SLOW = """\
[servers.slow]
command = [{program}]
files = {{"*.x" = "x"}}
"""


@pytest.fixture
def slow(root: Path) -> Iterator[LineClient]:
    """A client of a server process whose language server never answers."""
    (root / "a.x").write_text("one\n")
    words = [sys.executable, "-I", "-S", PROGRAM, '{"hang": true}']
    table = f"[diagnostics]\nbudget = 60.0\n{SLOW}".format(program=", ".join(map(repr, words)))
    with LineServer(root, settings=table) as client:
        client.shake_hands()
        yield client


def begin_writing(client: LineClient, root: Path) -> int:
    """Begin a call that has written its file, and waits for the language server."""
    arguments = {"filePath": "a.x", "content": "two\n", "applyChanges": True}
    begun = client.begin("tools/call", {"name": "write_file", "arguments": arguments})
    wait_until(lambda: (root / "a.x").read_text() == "two\n")
    return begun


def test_what_a_cancelled_call_had_written_is_said_later(slow: LineClient, root: Path) -> None:
    begun = begin_writing(slow, root)
    slow.notify("notifications/cancelled", requestId=begun)
    told: list[str] = []

    def heard() -> bool:
        answer = slow.call("write_file", filePath="gone.x", content="")["structuredContent"]
        assert answer["error"]["code"] == "NOT_FOUND"
        told.extend(answer["meta"].get("news", []))
        return bool(told)

    wait_until(heard)
    (news,) = told
    assert "a.x" in news
    assert (root / "a.x").read_text() == "two\n"


def test_a_client_that_hangs_up_is_told_that_its_call_was_given_up(
    slow: LineClient, root: Path
) -> None:
    begun = begin_writing(slow, root)
    slow.hang_up()
    rest = {message["id"]: message["result"] for message in slow.wait_for_the_end()}
    answer = rest[begun]["structuredContent"]
    assert (answer["success"], answer["data"]["applied"]) == (True, True)
    assert (answer["meta"]["cancelled"], answer["meta"]["timedOut"]) == (True, False)
    update = answer["data"]["workspaceUpdate"]
    assert (update["kind"], update["updated"]) == ("pending", False)
    assert answer["data"]["operation"]


def wait_until(done: Callable[[], bool]) -> None:
    """Look until something has happened elsewhere."""
    for _ in range(PATIENCE * 50):
        if done():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it does not happen")


# -- both ways to an answer -----------------------------------------------------------------

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"filePath": "Program.cs", "content": NEW}),
    ("write_file", {"filePath": "Program.cs", "content": NEW, "applyChanges": True}),
    ("write_file", {"filePath": "n/ü.cs", "content": "\u2028\x00", "createIfMissing": True}),
    ("write_file", {"filePath": "gone.cs", "content": ""}),
    ("write_file", {"filePath": "/etc/x", "content": ""}),
    ("write_file", {"filePath": ".", "content": ""}),
    ("write_file", {"content": "x"}),
    ("write_file", {"filePath": "Program.cs", "content": NEW, "pathStyle": "no"}),
    ("write_file", {"filePath": "Program.cs", "content": NEW, "maxDiffChars": -1}),
]


@pytest.fixture
def pair(in_thread, root: Path) -> Iterator[tuple[LineClient, LineClient]]:
    """A client of ours, and one of the official package."""

    def start(*, ours: bool) -> LineClient:
        def work(pipes: tuple[int, int]) -> None:
            workspace = open_workspace([str(root)], state_dir=str(root.parent / f"state-{ours}"))

            def session(actor: Actor) -> Session:
                return Session("s", actor)

            try:
                if not ours:
                    start_package(open_solution(workspace), pipes=pipes, session_factory=session)
                    return
                serve(
                    lambda: open_solution(workspace),
                    name="small",
                    version="1.2",
                    instructions="Be gentle.",
                    session_factory=session,
                    narrow=workspace.guard.narrow,
                    pipes=pipes,
                )
            finally:
                workspace.close()

        return in_thread(work)

    return start(ours=True), start(ours=False)


def steady(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs from call to call."""
    for block in answer.get("result", {}).get("content", ()):
        told = json.loads(block["text"])
        assert told == answer["result"]["structuredContent"]
        block["text"] = ""
    answer.get("result", {}).pop("ttlMs", None)
    told = answer.get("result", {}).get("structuredContent")
    if told is not None:
        told["meta"]["durationMs"] = 0
        if told["data"] is not None and told["data"].get("operation"):
            told["data"]["operation"] = "c"
    return answer


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_calls_are_answered_as_the_package_does(
    pair: tuple[LineClient, LineClient], root: Path, era: str
) -> None:
    said = []
    for client in pair:
        (root / "Program.cs").write_text(OLD)
        if era == "handshake":
            client.shake_hands()
        answers = [client.ask("tools/list", modern() if era == "modern" else None)]
        for name, arguments in CALLS:
            params: dict[str, Any] = {"name": name, "arguments": arguments}
            params = modern(**params) if era == "modern" else params
            answers.append(client.ask("tools/call", params))
        said.append([steady(one) | {"id": 0} for one in answers])
    assert said[0] == said[1]
