"""Diagnostics of an open document, with a proof that they are about its present text."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.diagnostics import Confirmation, Report, read_diagnostics
from filepact.lsp.failures import (
    CONTENT_MODIFIED,
    METHOD_NOT_FOUND,
    AnswerError,
    LateError,
    ServerError,
)

if TYPE_CHECKING:
    from filepact.lsp.client import Client
    from filepact.lsp.documents import Document, Documents
    from filepact.lsp.servers import Server

__all__ = ["Asker"]

_AGAIN_AFTER: Final = 0.02
_AGAIN_AT_MOST: Final = 0.5
_NO_PULL_AFTER: Final = 5.0
_QUIET_WITHOUT_PROBE: Final = 1.0

_Answer = tuple[Any, Confirmation]


class Asker:
    """Asks one running server about its open documents.

    Args:
        server: Its policy.
        client: The conversation with it.
        documents: What it holds open.
    """

    def __init__(self, server: Server, client: Client, documents: Documents) -> None:
        self._server = server
        self._client = client
        self._documents = documents
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._results: dict[tuple[str, str | None], tuple[str, Any]] = {}
        self._settled: dict[str, tuple[int, int]] = {}
        self._probing = bool(server.probe)
        self._mark = 0
        self.stamp = 0
        """Rises with everything that may change what the server finds."""

    @property
    def heard(self) -> int:
        """How many messages have come from the server."""
        return self._client.peer.heard

    def stir(self) -> None:
        """Something was sent that may change what the server finds."""
        self.stamp += 1
        self._mark = self._client.publications

    async def ask(self, path: str, deadline: float) -> Report:
        """What the server says about an open document, not fresh if it cannot be proven in time.

        Args:
            path: Absolute; the document is open.
            deadline: The loop's time until which to wait.
        """
        document = self._documents.get(path)
        began = self._loop.time()
        if document is None:
            return Report(self._server.name, path, reason="the document is not open")
        stamp = self.stamp
        try:
            items, confirmed_by = await self._answer(document, deadline)
        except ServerError as error:
            return Report(
                self._server.name, path, reason=str(error), seconds=self._loop.time() - began
            )
        seconds = self._loop.time() - began
        if stamp != self.stamp or self._documents.get(path) != document:
            reason = "the text changed while the server was asked"
            return Report(self._server.name, path, reason=reason, seconds=seconds)
        found, whole = read_diagnostics(
            path,
            document.text,
            items,
            self._documents.unit,
            self._server.name,
            self._server.endings,
        )
        return Report(self._server.name, path, found, confirmed_by, "", whole, seconds)

    async def _answer(self, document: Document, deadline: float) -> _Answer:
        if self._server.asking == "pull":
            while not self._client.pull_identifiers and not self._client.over:
                # Some servers offer it only seconds after their start.
                rest = min(deadline, self._began + _NO_PULL_AFTER) - self._loop.time()
                if rest <= 0:
                    break
                await self._client.stirring(rest)
            if self._client.pull_identifiers:
                return await self._pull(document, deadline)
        if self._probing:
            answer = await self._probe(document, deadline)
            if answer is not None:
                return answer
        return await self._listen(document, deadline)

    async def _pull(self, document: Document, deadline: float) -> _Answer:
        """Ask, under every name that the server takes questions by."""
        items: list[Any] = []
        for identifier in self._client.pull_identifiers:
            found = await self._pull_one(document, identifier, deadline)
            if not isinstance(found, list):
                raise ServerError("the server's answer is no list of diagnostics")
            items += found
        return items, "pull"

    async def _pull_one(self, document: Document, identifier: str | None, deadline: float) -> Any:
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        if identifier is not None:
            params["identifier"] = identifier
        key = (document.path, identifier)
        pause = _AGAIN_AFTER
        while True:
            before = self._results.get(key)
            if before is not None:
                params["previousResultId"] = before[0]
            try:
                answer = await self._request("textDocument/diagnostic", params, deadline)
            except AnswerError as error:
                if not error.retry and error.code != CONTENT_MODIFIED:
                    raise
                if self._loop.time() + pause >= deadline:
                    raise LateError("the server puts the question off") from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, _AGAIN_AT_MOST)
                continue
            kind = answer.get("kind") if isinstance(answer, dict) else None
            if kind == "unchanged" and before is not None:
                return before[1]
            if kind != "full":
                raise ServerError("the server's answer about diagnostics is none")
            number = answer.get("resultId")
            self._results.pop(key, None)
            params.pop("previousResultId", None)
            if isinstance(number, str):
                self._results[key] = (number, answer.get("items"))
            return answer.get("items")

    async def _probe(self, document: Document, deadline: float) -> _Answer | None:
        """Wait until everything is worked up; None if the server does not know the request."""
        try:
            await self._request(self._server.probe, None, deadline)
        except AnswerError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            self._probing = False
            return None
        last = self._client.published(document.path)
        if last is None:
            raise ServerError("the server has published nothing about the file")
        return last.items, "version" if last.version == document.version else "probe"

    async def _listen(self, document: Document, deadline: float) -> _Answer:
        """Wait for a publication about this version, or for silence after one."""
        quiet = self._server.quiet or (_QUIET_WITHOUT_PROBE if self._server.probe else 0.0)
        heard_from = self._began
        if quiet and self._settled.get(document.path) != (document.version, self.stamp):
            heard_from = await self._round_trip(document, deadline)
        while True:
            if self._client.over:
                raise ServerError(self._client.over)
            last = self._client.published(document.path)
            now = self._loop.time()
            wait = deadline - now
            if last is not None and last.version in (None, document.version):
                proven = self._settled.get(document.path) == (document.version, self.stamp)
                if proven or (last.version is not None and not quiet and last.number > self._mark):
                    self._settled[document.path] = (document.version, self.stamp)
                    return last.items, "quiet window" if quiet else "version"
                rest = max(last.at, heard_from) + quiet - now
                if quiet and rest <= 0:
                    self._settled[document.path] = (document.version, self.stamp)
                    return last.items, "quiet window"
                if quiet:
                    wait = min(wait, rest)
            if now >= deadline:
                raise LateError("nothing that is surely about the present text was published")
            await self._client.stirring(max(wait, 0.001))

    async def _round_trip(self, document: Document, deadline: float) -> float:
        """The time when the server has certainly read all that was sent."""
        if self._client.capabilities.get("documentSymbolProvider"):
            params = {"textDocument": {"uri": document.uri}}
            with contextlib.suppress(AnswerError):  # a refusal is an answer all the same
                await self._request("textDocument/documentSymbol", params, deadline)
        return self._loop.time()

    async def _request(self, method: str, params: Any, deadline: float) -> Any:
        rest = deadline - self._loop.time()
        if rest <= 0:
            raise LateError(f"no time left for {method}")
        return await self._client.peer.request(method, params, rest)
