"""Files for programs with an event loop: every call runs in one thread of their own, in order."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from filepact.errors import InvalidParamsError
from filepact.faces.library.files import Files, Turn, open_files
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from filepact.domain.operation import Operation
    from filepact.faces.library.files import Match, Path
    from filepact.workspace.receipt import Receipt

__all__ = ["AsyncFiles", "AsyncTurn"]

_T = TypeVar("_T")


class AsyncFiles:
    """`Files` whose methods are awaited: an asynchronous context manager, which opens and closes them.

    A call that is cancelled goes on to its end in the thread; the calls behind it wait for that.

    Args:
        root: As of ``filepact.open``.
        options: The same.
    """

    def __init__(self, root: Path | Sequence[Path] = ".", **options: Any) -> None:
        self._open = partial(open_files, root, **options)
        self._thread = ThreadPoolExecutor(1, "filepact")
        self._files: Files | None = None

    async def __aenter__(self) -> Self:
        try:
            self._files = await self._run(self._open)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the folders and the journal, after what was begun."""
        if self._files is not None:
            closing, self._files = self._files, None
            await self._run(closing.close)
        self._thread.shutdown(wait=False)

    @property
    def files(self) -> Files:
        """The files themselves, which wait for nobody; for looking at ``workspace`` and ``session``.

        Raises:
            InvalidParamsError: They are not open.
        """
        if self._files is None:
            raise InvalidParamsError(
                "the files are not open", hint="Use them in `async with filepact.AsyncFiles(...)`."
            )
        return self._files

    async def read(self, path: Path, *, first: int = 1, lines: int | None = None) -> str:
        return await self._run(self.files.read, path, first=first, lines=lines)

    async def read_bytes(self, path: Path) -> bytes:
        return await self._run(self.files.read_bytes, path)

    async def grep(self, pattern: str, path: Path = ".", **options: Any) -> list[Match]:
        return await self._run(self.files.grep, pattern, path, **options)

    async def find(self, pattern: str, path: Path = ".", **options: Any) -> list[str]:
        return await self._run(self.files.find, pattern, path, **options)

    async def tree(self, path: Path = ".", **options: Any) -> str:
        return await self._run(self.files.tree, path, **options)

    async def write(self, path: Path, content: str, **options: Any) -> Receipt:
        return await self._run(self.files.write, path, content, **options)

    async def edit(
        self,
        path: Path,
        old_string: str | Sequence[tuple[str, str]],
        new_string: str | None = None,
        **options: Any,
    ) -> Receipt:
        return await self._run(self.files.edit, path, old_string, new_string, **options)

    async def patch(
        self, patch: str, path: Path | None = None, *, reverse: bool = False
    ) -> Receipt:
        return await self._run(self.files.patch, patch, path, reverse=reverse)

    async def move(self, path: Path, to: Path) -> Receipt:
        return await self._run(self.files.move, path, to)

    async def delete(self, path: Path) -> Receipt:
        return await self._run(self.files.delete, path)

    async def make_dir(self, path: Path) -> Receipt:
        return await self._run(self.files.make_dir, path)

    async def undo(self, operation: str | None = None, *, partly: bool = False) -> Receipt:
        return await self._run(self.files.undo, operation, partly=partly)

    async def redo(self, operation: str | None = None, *, partly: bool = False) -> Receipt:
        return await self._run(self.files.redo, operation, partly=partly)

    async def log(
        self, *, path: Path | None = None, limit: int | None = 20
    ) -> tuple[Operation, ...]:
        return await self._run(self.files.log, path=path, limit=limit)

    @asynccontextmanager
    async def turn(
        self, name: str = "", *, undo_on_error: bool = False
    ) -> AsyncIterator[AsyncTurn]:
        """As `Files.turn`."""
        turn = await self._run(self.files.begin_turn, name)
        try:
            yield AsyncTurn(self, turn)
        except BaseException:
            if undo_on_error:
                await self._run(turn.undo)
            raise
        finally:
            await self._run(self.files.end_turn)

    async def _run(self, call: Callable[..., _T], *given: Any, **named: Any) -> _T:
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, partial(call, *given, **named)
        )
        return await asyncio.shield(work)


@dataclass(frozen=True, slots=True)
class AsyncTurn:
    """Changes that belong together."""

    files: AsyncFiles
    turn: Turn

    async def undo(self, *, partly: bool = False) -> Receipt | None:
        """As `Turn.undo`."""
        return await self.files._run(self.turn.undo, partly=partly)  # noqa: SLF001 - its other half
