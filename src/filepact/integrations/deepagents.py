"""The backend for Deep Agents: their own file tools, over files that are guarded, recorded and undoable."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Literal

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from filepact.errors import (
    ApprovalRequiredError,
    BinaryFileError,
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
)
from filepact.tools.answers import failure

if TYPE_CHECKING:
    from filepact.faces.library.files import Files
    from filepact.workspace.receipt import Receipt

__all__ = ["FilepactBackend"]

_MOST_LISTED = 10_000


class FilepactBackend(BackendProtocol):
    """The files of one folder, which is ``/`` to the agent: ``create_deep_agent(backend=FilepactBackend(files))``.

    Args:
        files: What the agent may read and change.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def ls(self, path: str) -> LsResult:
        try:
            names = self._files.names(_inside(path), limit=_MOST_LISTED)
        except FilepactError as error:
            return LsResult(error=failure(error).text)
        return LsResult(entries=[{"path": f"/{one}", "is_dir": one.endswith("/")} for one in names])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        if limit <= 0:
            return ReadResult(
                file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True
            )
        first = max(offset, 0)
        try:
            text = self._files.read(_inside(file_path), first=first + 1, lines=limit)
        except BinaryFileError:
            return self._read_bytes(file_path)
        except FilepactError as error:
            return ReadResult(error=failure(error).text)
        count = text.count("\n") + (not text.endswith("\n") and bool(text))
        data: FileData = {"content": text, "encoding": "utf-8"}
        if not count:
            return ReadResult(file_data=data)
        end = first + count
        full = count == limit and self._files.read(_inside(file_path), first=end + 1, lines=1)
        return ReadResult(
            file_data=data, start_line=first + 1, end_line=end, next_offset=end if full else None
        )

    def _read_bytes(self, file_path: str) -> ReadResult:
        try:
            data = self._files.read_bytes(_inside(file_path))
        except FilepactError as error:
            return ReadResult(error=failure(error).text)
        content = base64.b64encode(data).decode("ascii")
        return ReadResult(file_data={"content": content, "encoding": "base64"})

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        wanted = _MOST_LISTED if max_count is None else max_count + 1
        try:
            found = self._files.grep(
                pattern,
                _inside(path or "/"),
                glob=_anywhere(glob) if glob else "**/*",
                literal=True,
                case_sensitive=True,
                limit=max(wanted, 1),
            )
        except FilepactError as error:
            return GrepResult(error=failure(error).text)
        matches: list[GrepMatch] = [
            {"path": f"/{one.path}", "line": one.line, "text": one.text} for one in found
        ]
        shown = matches if max_count is None else matches[:max_count]
        return GrepResult(matches=shown, truncated=len(matches) >= wanted)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        try:
            found = self._files.find(_anywhere(pattern), _inside(path or "/"), limit=_MOST_LISTED)
        except FilepactError as error:
            return GlobResult(error=failure(error).text)
        matches: list[FileInfo] = [
            {"path": f"/{one}", "is_dir": False} for one in found if not one.endswith("/")
        ]
        cut = len(found) == _MOST_LISTED
        why: Literal["budget"] | None = "budget" if cut else None
        return GlobResult(matches=matches, truncated=cut, truncation_reason=why)

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            _done(self._files.write(_inside(file_path), content, create_dirs=True))
        except FilepactError as error:
            return WriteResult(error=failure(error).text)
        return WriteResult(path=file_path)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        name = _inside(file_path)
        try:
            before = self._files.read(name)
            _done(self._files.edit(name, old_string, new_string, replace_all=replace_all))
        except FilepactError as error:
            return EditResult(error=failure(error).text)
        count = before.count(old_string) if replace_all else 1
        return EditResult(path=file_path, occurrences=max(count, 1))

    def delete(self, file_path: str) -> DeleteResult:
        try:
            _done(self._files.delete(_inside(file_path)))
        except FilepactError as error:
            return DeleteResult(error=failure(error).text)
        return DeleteResult(path=file_path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path, self._upload(path, data)) for path, data in files]

    def _upload(self, path: str, data: bytes) -> str | None:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return "BINARY_FILE: only text in UTF-8 can be uploaded"
        try:
            _done(self._files.write(_inside(path), text, create_dirs=True))
        except FilepactError as error:
            return _code(error)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, self._files.read_bytes(_inside(path)))
        except FilepactError as error:
            return FileDownloadResponse(path, error=_code(error))


def _inside(path: str) -> str:
    """A path of the agent's, whose ``/`` is the folder, as one beneath that."""
    return path.lstrip("/") or "."


def _anywhere(pattern: str) -> str:
    """A glob as the protocol means it: without a slash, a name at any depth."""
    return pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"


def _done(receipt: Receipt) -> None:
    """Refuse where a change waits: the agent must not take it for done.

    Raises:
        ApprovalRequiredError: It waits for a person.
    """
    if receipt.status == "pending":
        raise ApprovalRequiredError(
            f"{receipt.summary}: waits for a person ({receipt.rule})",
            hint=f"Nothing has changed yet; it waits for a person's word, as {receipt.operation}.",
        )


def _code(error: FilepactError) -> str:
    """An error in the protocol's own words, where it has one."""
    if isinstance(error, NotFoundError):
        return "file_not_found"
    if isinstance(error, NotAFileError):
        return "is_directory"
    if isinstance(error, InvalidParamsError):
        return "invalid_path"
    return "permission_denied" if error.code == "PATH_BLOCKED" else failure(error).text
