"""Parts of files exactly as they stand: the same from a stream as from the whole text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from filepact.domain.deadline import Deadline
from filepact.errors import (
    BinaryFileError,
    CallCancelledError,
    FilepactError,
    NotFoundError,
    PathBlockedError,
    TooLargeError,
)
from filepact.workspace import excerpt, reader
from filepact.workspace.excerpt import ExcerptOptions, cut

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

TEXT = "one\r\ntwo\u2028 \x0b\x0c\x85 still\nlone\rcr\n\n" + "wide \U0001f600 \xe9\n" * 5 + "last"


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are too large to be loaded, and are read a few bytes at a time."""
    monkeypatch.setattr(reader, "EDIT_LIMIT", -1)
    monkeypatch.setattr(excerpt, "_HEAD", 7)
    monkeypatch.setattr(excerpt, "_BLOCK", 5)


def read(workspace: Workspace, session: Session, first: int, count: int | None, most: int = 10**9):
    return workspace.reader(session).excerpt("a.txt", ExcerptOptions(first, count, most))


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [
        (0, None, "a\r\nb\u2028c\nd"),
        (0, 1, "a\r\n"),
        (1, 1, "b\u2028c\n"),
        (2, 9, "d"),
        (3, None, ""),
        (0, 0, ""),
    ],
)
def test_a_part_is_a_substring_with_its_line_ends(
    first: int, count: int | None, expected: str
) -> None:
    assert cut("a\r\nb\u2028c\nd", first, count) == expected


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_stream_gives_what_the_whole_text_gives(
    workspace: Workspace, session: Session, root: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sign of an encoding is in the first bytes, which have to be looked at together.
    monkeypatch.setattr(excerpt, "_HEAD", 64)
    (root / "a.txt").write_bytes(TEXT.encode(codec))
    for first in range(11):
        for count in (None, 0, 1, 2, 7, 100):
            part = read(workspace, session, first, count)
            assert part.text == cut(TEXT, first, count), (first, count)
            assert part.total in (None, TEXT.count("\n") + 1)
    assert read(workspace, session, 0, None).total == TEXT.count("\n") + 1
    assert read(workspace, session, 99, None).total == TEXT.count("\n") + 1


@pytest.mark.usefixtures("streamed")
def test_what_lines_before_said_about_the_encoding_counts(
    workspace: Workspace, session: Session, root: Path
) -> None:
    text = "\u65e5\u672c\n\u8a9e\nlast\n"
    (root / ".editorconfig").write_text("[*]\ncharset = iso-2022-jp\n")
    (root / "a.txt").write_bytes(text.encode("iso2022_jp"))
    assert read(workspace, session, 1, 1).text == "\u8a9e\n"
    (root / "a.txt").write_bytes(text.encode("iso2022_jp") + b"\x1b$B\xff\xff")
    assert read(workspace, session, 1, 1).text == "\u8a9e\n"
    with pytest.raises(FilepactError):
        read(workspace, session, 1, None)


@pytest.mark.usefixtures("streamed")
def test_bytes_that_are_no_text_are_shown_where_they_are_asked_for(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes("one\ntwo \xe9\n".encode() + b"bad \xff\nend\n")
    assert read(workspace, session, 0, 2).text == "one\ntwo \xe9\n"
    assert read(workspace, session, 3, 1).text == "end\n"
    assert read(workspace, session, 0, 3).text == "one\ntwo \xe9\nbad \\xff\n"
    (root / "a.txt").write_bytes(b"\0\1\2\3" * 9)
    with pytest.raises(BinaryFileError):
        read(workspace, session, 0, 1)


@pytest.mark.parametrize("limit", [10_000_000, -1])
def test_too_long_a_part_is_refused(
    workspace: Workspace,
    session: Session,
    root: Path,
    limit: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "EDIT_LIMIT", limit)
    (root / "a.txt").write_text("12345\n" * 10)
    assert len(read(workspace, session, 0, 2, 12).text) == 12
    with pytest.raises(TooLargeError):
        read(workspace, session, 0, 3, 12)
    with pytest.raises(TooLargeError):
        read(workspace, session, 1, None, 12)


def test_lines_of_a_huge_file_are_found_without_reading_the_rest(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{number:063d}\n" for number in range(1 << 10)]
    with (root / "a.txt").open("w") as stream:
        for _ in range(250):
            stream.writelines(lines)
    read_bytes = 0
    whole = io.BufferedReader.read

    class Counting:
        def __init__(self, stream: io.BufferedReader) -> None:
            self._stream = stream

        def read(self, size: int) -> bytes:
            nonlocal read_bytes
            data = whole(self._stream, size)
            read_bytes += len(data)
            return data

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

    decoded = excerpt._decoded
    monkeypatch.setattr(excerpt, "_decoded", lambda s, *rest: decoded(Counting(s), *rest))
    part = read(workspace, session, 9, 51)
    assert part.text == "".join(lines[9:60])
    assert read_bytes <= 1 << 17
    assert read(workspace, session, 250 * 1024 - 1, 5).text == lines[-1]


@pytest.mark.usefixtures("streamed")
def test_the_rules_hold_for_parts_too(workspace: Workspace, session: Session, root: Path) -> None:
    (root / ".env").write_text("K=1\n")
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 64 + "\n-----END RSA PRIVATE KEY-----\n"
    (root / "a.txt").write_text("x\n" * 5 + key)
    with pytest.raises(PathBlockedError):
        workspace.reader(session).excerpt(".env", ExcerptOptions())
    with pytest.raises(PathBlockedError):
        read(workspace, session, 0, None)
    with pytest.raises(NotFoundError):
        workspace.reader(session).excerpt("none", ExcerptOptions())


@pytest.mark.usefixtures("streamed")
def test_unsaved_text_goes_before_a_large_file(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("saved\n")
    workspace.editors.open("a.txt", "typed\r\nmore\n", client="e", version=1)
    assert read(workspace, session, 0, 1).text == "typed\r\n"


@pytest.mark.usefixtures("streamed")
def test_a_reader_that_nobody_waits_for_stops(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("x\n" * 100)
    stopping = workspace.reader(session, deadline=Deadline(cancelled=lambda: True))
    for first in (0, 50):
        with pytest.raises(CallCancelledError):
            stopping.excerpt("a.txt", ExcerptOptions(first, None, 1000))
