"""The server for C# as a process, and a client of it that says exactly what a test wants to say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact_wire.framing import FrameReader, frame
from filepact_wire.uris import uri_of
from tests.servers.csharp_toolchain import toolchain_or_skip

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHOP", "AnswerError", "Talk", "copy_shop"]

SHOP = Path(__file__).parent / "shop"
"""A solution of three projects and 39 files, in which nothing is wrong."""


class AnswerError(Exception):
    """The server answers with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


def copy_shop(to: Path) -> Path:
    """A copy of the solution, in a folder that does not exist yet."""
    shutil.copytree(SHOP, to)
    return to.resolve()


class Talk:
    """One server and the conversation with it.

    Args:
        root: The folder that it serves.
        solution: What it is to read; empty for what lies in the root.
        encodings: The position encodings that the client offers.
        roslyn: The folder of the compiler, if not the right one.
    """

    def __init__(
        self,
        root: Path,
        solution: str = "",
        encodings: tuple[str, ...] = (),
        roslyn: str = "",
    ) -> None:
        found = toolchain_or_skip()
        self.root = root
        more = ["--solution", solution] if solution else []
        self.process = subprocess.Popen(
            [
                *(
                    str(Path(sys.executable).with_name("filepact-csharp")),
                    "serve",
                    "--root",
                    str(root),
                ),
                *("--roslyn", roslyn or found.roslyn, "--dotnet", found.dotnet, *more),
            ],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reader = FrameReader()
        self._answers: dict[Any, dict[str, Any]] = {}
        self.heard: list[dict[str, Any]] = []
        """What the server said without being asked."""
        self._last = 0
        able: dict[str, Any] = {
            "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}},
        }
        if encodings:
            able["general"] = {"positionEncodings": list(encodings)}
        params = {"processId": None, "rootUri": uri_of(str(root)), "capabilities": able}
        try:
            self.welcome = self.ask("initialize", params)
        except AnswerError:
            self.kill()
            raise
        self.tell("initialized", {})

    # -- messages -------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def tell(self, method: str, params: Any) -> None:
        self.send(frame({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method: str, params: Any) -> int:
        """Send a request; its number."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.send(frame(message))
        return self._last

    def end(self, number: Any) -> Any:
        """The answer to a request.

        Raises:
            AnswerError: It is an error.
        """
        while number not in self._answers:
            self.listen()
        answer = self._answers.pop(number)
        if "error" in answer:
            raise AnswerError(answer["error"])
        return answer["result"]

    def ask(self, method: str, params: Any) -> Any:
        return self.end(self.begin(method, params))

    def listen(self) -> None:
        """Read some of what the server says."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        assert data, f"the server ended with {self.process.wait()}"
        for message in self._reader.feed(data):
            assert isinstance(message, dict)
            if "method" in message:
                self.heard.append(message)
                if "id" in message:
                    self.send(frame({"jsonrpc": "2.0", "id": message["id"], "result": None}))
            else:
                self._answers[message["id"]] = message

    # -- documents ------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return uri_of(str(self.root / name))

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def open(self, name: str, text: str) -> None:
        item = {"uri": self.uri(name), "languageId": "csharp", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})

    def change(self, name: str, *changes: dict[str, Any]) -> None:
        document = {"uri": self.uri(name), "version": 2}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.tell("textDocument/didChange", params)

    def close(self, name: str) -> None:
        self.tell("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def happened(self, **kinds: str) -> None:
        """Tell of files on the disk: `created`, `changed` or `deleted`, each with one name."""
        numbers = {"created": 1, "changed": 2, "deleted": 3}
        events = [{"uri": self.uri(name), "type": numbers[kind]} for kind, name in kinds.items()]
        self.tell("workspace/didChangeWatchedFiles", {"changes": events})

    def write(self, name: str, text: str) -> None:
        """Write a file and tell of it."""
        place = self.root / name
        kind = "changed" if place.exists() else "created"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        self.happened(**{kind: name})

    def remove(self, name: str) -> None:
        """Remove a file and tell of it."""
        (self.root / name).unlink()
        self.happened(deleted=name)

    # -- questions ------------------------------------------------------------------------

    def items(self, name: str) -> list[dict[str, Any]]:
        answer = self.ask("textDocument/diagnostic", {"textDocument": {"uri": self.uri(name)}})
        assert answer["kind"] == "full"
        return answer["items"]

    def codes(self, name: str) -> list[str]:
        """The codes of what is wrong with a file, in order of their places."""
        return [one["code"] for one in self.items(name)]

    def survey(self) -> dict[str, list[str]]:
        """The codes of what is wrong, by file."""
        items = self.ask("workspace/diagnostic", {"previousResultIds": []})["items"]
        start = len(uri_of(str(self.root))) + 1
        return {one["uri"][start:]: [it["code"] for it in one["items"]] for one in items}

    def projects(self, name: str) -> dict[str, Any]:
        arguments = [{"uri": self.uri(name)}]
        params = {"command": "filepact.projects", "arguments": arguments}
        told = self.ask("workspace/executeCommand", params)
        return {**told, "messages": [one["text"] for one in told["messages"]]}

    # -- the end --------------------------------------------------------------------------

    def leave(self) -> int:
        """End the conversation as it is to be ended; the process's status."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
