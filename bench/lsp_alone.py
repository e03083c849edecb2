"""A bare client of a language server: sends a change, asks, waits; nothing that blurs a timing."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Self

from filepact_diagnostics.lsp.capabilities import ServerCapabilities, initialize_params
from filepact_diagnostics.lsp.failures import RequestFailedError
from filepact_wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["Alone"]


class Alone:
    """A server process and the pipe to it.

    Args:
        server: Whose settings and options count.
        command: What is started.
        root: The folder that it serves.
        environment: All variables that it sees.
    """

    def __init__(
        self, server: ServerSpec, command: Sequence[str], root: Path, environment: Mapping[str, str]
    ) -> None:
        self._server, self._root = server, root
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd=root,
        )
        self._capabilities = ServerCapabilities(str(root), server.settings)
        self._names: list[str | None] = []
        self._published: dict[str, tuple[int, list[Any]]] = {}
        self._lines: dict[str, int] = {}
        self._number = 0
        pull = server.asking == "pull"
        params = initialize_params(str(root), os.getpid(), server.options, pull=pull)
        offered = self._ask("initialize", params)["capabilities"].get("diagnosticProvider")
        if pull and offered:
            self._names.append(offered.get("identifier"))
        self._tell("initialized", {})
        if server.settings:
            self._tell("workspace/didChangeConfiguration", {"settings": dict(server.settings)})

    def diagnostics(self, name: str, version: int, text: str, *, whole: bool = False) -> list[Any]:
        """Send a file's text, of one that was sent before its last line or all of it; what is found."""
        uri = uri_of(str(self._root / name))
        *before, last = text.splitlines(keepends=True)
        if name not in self._lines:
            language = self._server.language(name)
            document = {"uri": uri, "languageId": language, "version": version, "text": text}
            self._tell("textDocument/didOpen", {"textDocument": document})
        else:
            place = {"line": self._lines[name] - 1, "character": 0}
            end = {"line": self._lines[name], "character": 0}
            change: dict[str, Any] = {"range": {"start": place, "end": end}, "text": last}
            change = {"text": text} if whole else change
            document = {"uri": uri, "version": version}
            params = {"textDocument": document, "contentChanges": [change]}
            self._tell("textDocument/didChange", params)
        self._lines[name] = len(before) + 1
        if self._server.asking == "push":
            while self._published.get(uri, (-1, []))[0] != version:
                self._hear()
            return self._published[uri][1]
        while not self._names:
            self._hear()
        found = []
        for one in self._names:
            params = {"textDocument": {"uri": uri}}
            if one is not None:
                params["identifier"] = one
            found += self._ask("textDocument/diagnostic", params)["items"]
        return found

    def look(self, names: Iterable[str]) -> None:
        """Have files open, ask about all at once, and wait for the answers."""
        asked: set[int] = set()
        for name in names:
            uri = uri_of(str(self._root / name))
            if name not in self._lines:
                text = (self._root / name).read_text(encoding="utf-8")
                self._lines[name] = text.count("\n")
                language = self._server.language(name)
                document = {"uri": uri, "languageId": language, "version": 0, "text": text}
                self._tell("textDocument/didOpen", {"textDocument": document})
            for one in self._names:
                named = {} if one is None else {"identifier": one}
                params = {"textDocument": {"uri": uri}, **named}
                self._number += 1
                asked.add(self._number)
                method = "textDocument/diagnostic"
                self._send({"id": self._number, "method": method, "params": params})
        while asked:
            said = self._hear()
            if "method" not in said:
                asked.discard(said["id"])

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        while True:
            self._number += 1
            self._send({"id": self._number, "method": method, "params": params})
            while (said := self._hear()).get("id") != self._number or "method" in said:
                pass
            if "error" not in said:
                return said["result"]
            # Not an answer yet: the server was busy with a change, and wants to be asked again.
            if not (said["error"].get("data") or {}).get("retriggerRequest"):
                raise SystemExit(f"{self._server.name}: {said['error']}")

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None  # noqa: S101 - opened above
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        """The next message; requests are answered, publications and new names are kept."""
        assert self._process.stdout is not None  # noqa: S101 - opened above
        length = 0
        while (line := self._process.stdout.readline()) != b"\r\n":
            if not line:
                raise SystemExit(f"{self._server.name} has ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        said: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if said.get("method") == "textDocument/publishDiagnostics":
            params = said["params"]
            self._published[params["uri"]] = (params.get("version", -1), params["diagnostics"])
        elif "method" in said and "id" in said:
            for one in (said.get("params") or {}).get("registrations", ()):
                if one["method"] == "textDocument/diagnostic":
                    self._names.append((one.get("registerOptions") or {}).get("identifier"))
            try:
                result = self._capabilities.answer(said["method"], said.get("params"))
                self._send({"id": said["id"], "result": result})
            except RequestFailedError as error:
                self._send({"id": said["id"], "error": {"code": error.code, "message": str(error)}})
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
