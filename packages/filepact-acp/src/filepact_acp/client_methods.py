"""Requests of an agent to its client: the two methods on files, and never one that is not offered."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from acp import RequestError
from acp.helpers import update_tool_call
from acp.schema import PermissionOption, ToolCallUpdate
from pydantic import ValidationError

from filepact.errors import (
    NotFoundError,
    ReadFailedError,
    TimedOutError,
    TooLargeError,
    WriteFailedError,
)
from filepact.values import dataclass
from filepact_acp.client_buffers import PATIENCE
from filepact_acp.errors import MISSING, ClientResponseError, error_of_kind, is_for_the_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.document import Document
    from filepact.errors import FilepactError
    from filepact_wire.messages import Message

__all__ = ["TEXT_LIMIT", "ClientMethods", "FileCapabilities"]

TEXT_LIMIT = 24 * 1_048_576
"""Bytes of the longest text that is taken from a client or handed to it."""


@dataclass(frozen=True, slots=True)
class FileCapabilities:
    """Which methods a client has announced.

    Attributes:
        read: ``fs/read_text_file``.
        write: ``fs/write_text_file``.
    """

    read: bool = False
    write: bool = False

    @classmethod
    def of(cls, capabilities: object) -> FileCapabilities:
        """From ``clientCapabilities`` as they were sent; only a true ``true`` is an offer."""
        fs = capabilities.get("fs") if isinstance(capabilities, dict) else None
        if not isinstance(fs, dict):
            return cls()
        return cls(fs.get("readTextFile") is True, fs.get("writeTextFile") is True)


class ClientMethods:
    """A client's methods for one session.

    Args:
        connection: The protocol package's side of an agent, or anything with its methods.
        session_id: The session that the requests are for.
        offers: What the client has announced.
        patience: Seconds in which it has to say what it shows of a file.
    """

    def __init__(
        self,
        connection: Any,
        session_id: str,
        offers: FileCapabilities,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._connection = connection
        self._session_id = session_id
        self._patience = patience
        self.offers = offers

    async def read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """Ask the client for a file's text, unsaved text included.

        Args:
            path: Absolute.
            line: 1-based; None and 0 begin at the first.
            limit: Most lines; None goes to the end.

        Raises:
            ReadFailedError: The client does not offer it, sends no text, or cannot.
            FilepactError: The client's refusal, by its kind.
        """
        try:
            return await self._read(path, line, limit)
        except RequestError as error:
            raise _refusal(error, path, ReadFailedError) from None

    async def text(self, path: str, disk: Callable[[], Document | None]) -> str | None:
        """Ask the client for the whole text of a file; None where the disk decides.

        Args:
            path: Absolute.
            disk: Tells what the disk has.

        Raises:
            FilepactError: As `read`.
        """
        try:
            return await self._read(path, None, None)
        except RequestError as error:
            if is_for_the_disk(_said(error), await asyncio.to_thread(disk)):
                return None
            raise _refusal(error, path, ReadFailedError) from None

    async def _read(self, path: str, line: int | None, limit: int | None) -> str:
        if not self.offers.read:
            raise ReadFailedError("the client does not offer fs/read_text_file", path=path)
        _check_name(path, ReadFailedError)
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._connection.read_text_file(
                    session_id=self._session_id, path=path, line=line, limit=limit
                )
        except TimeoutError:
            raise TimedOutError(
                f"{path}: the client did not say within {self._patience:g} s what text it shows",
                hint="Nothing was changed; try again, or ask the person to look at the editor.",
                path=path,
            ) from None
        except ConnectionError:
            raise _gone(path, ReadFailedError) from None
        except ValidationError:
            answer = None
        return _text(getattr(answer, "content", None), path)

    async def write(self, path: str, text: str) -> None:
        """Hand a file's new text to the client; it has answered when this returns.

        Args:
            path: Absolute.
            text: The whole text, as the client is to have it.

        Raises:
            WriteFailedError: The client does not offer it, or cannot.
            TooLargeError: The text is over the limit; nothing was sent.
            FilepactError: The client's refusal, by its kind.
        """
        if not self.offers.write:
            raise WriteFailedError("the client does not offer fs/write_text_file", path=path)
        _check_name(path, WriteFailedError)
        if _bytes(text) > TEXT_LIMIT:
            raise TooLargeError(
                f"{path}: the text has more than {TEXT_LIMIT:,} bytes, too many for a client",
                hint="Write it in several smaller files.",
                path=path,
            )
        try:
            await self._connection.write_text_file(
                session_id=self._session_id, path=path, content=text
            )
        except RequestError as error:
            raise _refusal(error, path, WriteFailedError) from None
        except ConnectionError:
            raise _gone(path, WriteFailedError) from None
        except ValidationError:
            # An answer is an answer: the method has none to give.
            return

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have the next two messages arrive at once, where what the package keeps to itself is as it was."""
        wire = getattr(self._connection, "_conn", None)
        sender = getattr(getattr(wire, "_transport", wire), "_sender", None)
        writer = getattr(sender, "_writer", None)
        if writer is None or isinstance(writer, _Pair):
            yield
            return
        pair = _Pair(sender, writer)
        try:
            yield
        finally:
            pair.end()

    async def choose(self, call: Message, options: list[Message]) -> str:
        """Show the person a dialog; returns the id of the chosen option, empty for no answer."""
        shown = ToolCallUpdate.model_validate(call)
        offered = [PermissionOption.model_validate(option) for option in options]
        try:
            answer = await self._connection.request_permission(
                session_id=self._session_id, tool_call=shown, options=offered
            )
        except (RequestError, ConnectionError, ValidationError):
            return ""
        return str(getattr(answer.outcome, "option_id", ""))

    async def close(self, call: str, *, done: bool) -> None:
        """Tell the client what became of a call that a person was asked about."""
        update = update_tool_call(call, status="completed" if done else "failed")
        with suppress(RequestError, ConnectionError):
            await self._connection.session_update(session_id=self._session_id, update=update)


class _Pair:
    """A writer in the place of a sender's own, until it has two messages and writes both at once."""

    def __init__(self, sender: Any, writer: Any) -> None:
        self._sender = sender
        self._writer = writer
        self._messages: list[bytes] = []
        sender._writer = self  # noqa: SLF001 - see `together`

    def write(self, data: bytes) -> None:
        self._messages.append(data)
        if len(self._messages) > 1:
            self.end()

    async def drain(self) -> None:
        await self._writer.drain()

    def end(self) -> None:
        """Write what there is, and leave."""
        if self._sender._writer is self:  # noqa: SLF001 - see `together`
            self._sender._writer = self._writer  # noqa: SLF001 - see `together`
            self._writer.write(b"".join(self._messages))


def _check_name(path: str, kind: type[FilepactError]) -> None:
    """Refuse a name whose bytes are no UTF-8: no message can carry it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = path.encode("utf-8", "backslashreplace").decode()
        raise kind(f"{shown}: the client cannot be asked for a file of this name") from None


def _text(content: object, path: str) -> str:
    """Check that a client has sent a text within the limits."""
    if not isinstance(content, str):
        raise ReadFailedError(f"{path}: the client sent no text", path=path)
    try:
        size = _bytes(content)
    except UnicodeEncodeError:
        raise ReadFailedError(
            f"{path}: the client sent a text with half a character", path=path
        ) from None
    if size > TEXT_LIMIT:
        raise ReadFailedError(
            f"{path}: the client sent {size:,} bytes, the limit is {TEXT_LIMIT:,}",
            hint="Read fewer lines at a time, with line and limit.",
            path=path,
        )
    return content


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _refusal(error: RequestError, path: str, other: type[FilepactError]) -> FilepactError:
    """A client's error as ours: by its kind, else by its number."""
    said = _said(error)
    kind = NotFoundError if said.code == MISSING else error_of_kind(said.kind, other)
    return kind(f"{path}: the client refused: {said.reason}", path=path)


def _said(error: RequestError) -> ClientResponseError:
    return ClientResponseError(error.code, str(error), error.data)


def _gone(path: str, kind: type[FilepactError]) -> FilepactError:
    return kind(f"{path}: the connection to the client is closed", path=path)
