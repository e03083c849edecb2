"""The three ways in: the library, the server for agents, the command.  Each answers in one form."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Approval, ChangeId, Session
from filepact.errors import FilepactError, ProposalChangedError
from filepact.faces.cli import run
from filepact.tools.registry import CallContext, UnknownToolError
from filepact_mcp import serve
from filepact_mcp.clients import ClientFolders
from filepact_mcp.results import RECEIPT_KEY
from tests.faces.line_client import PATIENCE, LineClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from filepact.workspace.workspace import Mode, Workspace
    from tests.hostile.world import World

__all__ = [
    "COMMANDS",
    "NO_TOOL",
    "Answer",
    "Door",
    "Opens",
    "approving",
    "command",
    "go_back",
    "library",
    "protocol",
]

AGENT = Actor("agent", "tester", "7")
PERSON = Actor("person", "anna")
NO_TOOL = "NO_SUCH_TOOL"
"""Stands for the answer that there is no tool for it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whichever way.

    Attributes:
        code: Of a refusal; empty when there was none.
        status: Of a change: applied, pending, unchanged, preview; empty for what only looked.
        change: The id of the proposal or operation.
    """

    text: str
    code: str = ""
    status: str = ""
    change: str = ""


class Door(Protocol):
    """One way in, open for one case."""

    def call(self, tool: str, arguments: Mapping[str, Any], /) -> Answer:
        """Call one tool."""


class Opens(Protocol):
    """How a door is opened for a case."""

    def __call__(self, world: World, mode: Mode, folders: Sequence[str] = (), /) -> Any:
        """A context manager that answers the door; ``folders`` are the client's own, as URIs."""


def _of_receipt(text: str, receipt: Mapping[str, Any] | None, code: str) -> Answer:
    facts = receipt or {}
    return Answer(text, code, str(facts.get("status", "")), str(facts.get("operation") or ""))


# -- the library ----------------------------------------------------------------------------------


class Library:
    def __init__(self, workspace: Workspace, refusal: FilepactError | None = None) -> None:
        self.workspace = workspace
        self._toolbox = open_toolbox(workspace)
        self._call = CallContext(Session("s1", AGENT), refusal=refusal)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            outcome = self._toolbox.call(tool, arguments, self._call)
        except UnknownToolError as error:
            return Answer(str(error), NO_TOOL)
        return _of_receipt(outcome.text, outcome.receipt, outcome.code if outcome.failed else "")


@contextmanager
def library(world: World, mode: Mode, folders: Sequence[str] = ()) -> Iterator[Library]:
    with closing(_workspace(world, mode)) as workspace:
        told = ClientFolders(workspace.guard.narrow)
        if folders:
            told.receive(_shared(folders))
        yield Library(workspace, None if told.settled else told.wait())


def _shared(folders: Sequence[str]) -> dict[str, Any]:
    return {"result": {"roots": [{"uri": uri} for uri in folders]}}


def _workspace(world: World, mode: Mode = "auto") -> Workspace:
    return open_workspace(
        [str(world.root)], state_dir=str(world.state), mode=mode, home=str(world.home)
    )


# -- a person -------------------------------------------------------------------------------------


@contextmanager
def approving(world: World) -> Iterator[Workspace]:
    """The same folder and journal, opened by somebody else."""
    with closing(_workspace(world)) as workspace:
        yield workspace


def approve(workspace: Workspace, change: str) -> Answer:
    """Say yes to a proposal; what has become another change meanwhile waits once more."""
    try:
        receipt = workspace.approve(ChangeId(change), Approval(PERSON))
    except ProposalChangedError as error:
        return Answer(error.report(), "", "pending", str(error.details["proposal"]))
    except FilepactError as error:
        return Answer(error.report(), error.code)
    return Answer(receipt.summary, "", receipt.status, str(receipt.operation or ""))


def go_back(world: World, how: str, name: str = "") -> Answer:
    """Undo, redo, restore to a checkpoint, or make one, with the rules as they are now."""
    session = Session("s2", PERSON)
    try:
        with approving(world) as workspace:
            match how:
                case "checkpoint":
                    workspace.checkpoint(name)
                    return Answer(name)
                case "undo":
                    receipt = workspace.undo(session, dry_run=False)
                case "redo":
                    receipt = workspace.redo(session, dry_run=False)
                case _:
                    receipt = workspace.restore(session, name, dry_run=False)
    except FilepactError as error:
        return Answer(error.report(), error.code)
    return Answer(receipt.summary, "", receipt.status, str(receipt.operation or ""))


# -- the server for agents ------------------------------------------------------------------------


class Server:
    def __init__(self, client: LineClient) -> None:
        self.client = client

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        message = {"name": tool, "arguments": dict(arguments)}
        return understood(self.client.ask("tools/call", message))

    def raw(self, line: str) -> Answer:
        """Send a line of a case's own; what is no request is answered without an id."""
        self.client.send(line.encode("utf-8", "surrogatepass") + b"\n")
        return understood(self.client._answers.get(timeout=PATIENCE))


def understood(message: Mapping[str, Any]) -> Answer:
    """An answer of the server, in the form of all doors."""
    if "error" in message:
        said = str(message["error"]["message"])
        return Answer(said, NO_TOOL if "unknown tool" in said else "INVALID_PARAMS")
    result = message["result"]
    text = "\n".join(block.get("text", "") for block in result["content"])
    code = text.partition(":")[0] if result.get("isError") else ""
    return _of_receipt(text, result.get("_meta", {}).get(RECEIPT_KEY), code)


@contextmanager
def protocol(world: World, mode: Mode, folders: Sequence[str] = ()) -> Iterator[Server]:
    """The real server over real pipes; it runs in a thread, so that hundreds can be started."""
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()

    def work() -> None:
        try:
            with closing(_workspace(world, mode)) as workspace:
                serve(
                    lambda: open_toolbox(workspace),
                    name="filepact",
                    version="0",
                    instructions="",
                    session_factory=lambda actor: Session("s1", actor),
                    narrow=workspace.guard.narrow,
                    pipes=(server_in, server_out),
                )
        finally:
            os.close(server_in)
            os.close(server_out)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    client = LineClient(to_server, from_server)

    def tell() -> None:
        # What cannot be used is asked about again.
        while question := client.asked.get():
            with suppress(OSError):
                client.send({"jsonrpc": "2.0", "id": question["id"], **_shared(folders)})

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        if folders:
            client.shake_hands(roots={})
        else:
            client.shake_hands()
        yield Server(client)
    finally:
        client.asked.put({})
        client.hang_up()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server does not end"


# -- the command ----------------------------------------------------------------------------------

COMMANDS = frozenset(
    {"read_file", "write_file", "search_files", "grep", "directory_tree", "patch_apply"}
)
"""Tools that the command has as well."""


class Command:
    def __init__(self, world: World, mode: Mode) -> None:
        self._world = world
        self._mode = mode

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        given = {name: str(value) for name, value in arguments.items()}
        words, sent = _words(tool, given)
        code, out, err = _run(
            ["--root", str(self._world.root), "--state", str(self._world.state), *words], sent
        )
        try:
            facts = json.loads(out)
        except ValueError:
            return Answer(out + err, "INVALID_PARAMS")
        error = facts.get("error")
        if error:
            return Answer(out + err, str(error["code"]))
        assert code in (0, 3), (code, out, err)
        text = f"{facts.get('text', '')}{facts.get('diff', '')}{err}"
        return _of_receipt(text, facts, "")


def _words(tool: str, given: dict[str, str]) -> tuple[list[str], str]:
    """The words of a command line, and what it reads from standard input."""
    match tool:
        case "read_file":
            words = ["read", "--json"]
            words += [f"--{name}={given[name]}" for name in ("offset", "column") if name in given]
            return [*words, "--", given["path"]], ""
        case "directory_tree":
            return ["tree", "--json", "--", given["path"]], ""
        case "search_files":
            return ["find", "--json", "--", given["pattern"], given.get("directory", ".")], ""
        case "grep":
            return ["grep", "--json", "--", given["pattern"], given.get("path", ".")], ""
        case "write_file":
            options = ["--create-dirs"] if "createDirs" in given else []
            options += ["--dry-run"] if "dry_run" in given else []
            return ["write", "--json", *options, "--", given["path"]], given["content"]
        case "patch_apply":
            path = [given["path"]] if "path" in given else []
            return ["patch", "--json", "--", *path], given["patch"]
    raise AssertionError(tool)


def _run(words: list[str], sent: str) -> tuple[int, str, str]:
    """Run the command in this process, with streams of its own."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(sent.encode("utf-8", "surrogatepass")))
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="surrogateescape")
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")
    try:
        code = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        said = out.getvalue().decode("utf-8", "replace"), err.getvalue().decode("utf-8", "replace")
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before
    return code, *said


@contextmanager
def command(world: World, mode: Mode, folders: Sequence[str] = ()) -> Iterator[Command]:
    """The command as a person types it in the root, with the world's home folder."""
    assert not folders
    before = os.environ.get("HOME")
    folder = os.getcwd()
    os.environ["HOME"] = str(world.home)
    os.chdir(world.root)
    try:
        yield Command(world, mode)
    finally:
        os.chdir(folder)
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before
