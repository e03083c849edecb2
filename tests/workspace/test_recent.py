"""A larger file is read once for several windows, and never shown as it was before."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from mmap import mmap
from typing import TYPE_CHECKING

import pytest

from filepact.fs.watch import moment
from filepact.text.lines import line_ends, line_window
from filepact.workspace import documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.document import Document
    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

TEXT = "".join(f"line {number} = old\n" for number in range(6_000))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is held open elsewhere")


@pytest.fixture
def seen(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Document | None]:
    """Look at a file as a window does; stamps count once the clock has gone on."""
    monkeypatch.setattr(documents, "_RACY", 0)

    def look(name: str) -> Document | None:
        moment()
        with ExitStack() as keep:
            location = workspace.guard.find_file(name, "read", keep=keep)
            return workspace._documents.seen(location)

    return look


def test_a_file_that_stays_as_it_is_is_read_once(
    seen: Callable[[str], Document | None], root: Path
) -> None:
    (root / "a.txt").write_text(TEXT)
    assert seen("a.txt") is seen("a.txt")


def test_a_small_file_is_read_each_time_and_taken_apart_once(
    seen: Callable[[str], Document | None], root: Path
) -> None:
    file = root / "small.txt"
    file.write_text("one\n")
    first = seen("small.txt")
    assert first is seen("small.txt")
    # What is written through a map need not have given the file another time yet.
    with file.open("r+b") as stream, mmap(stream.fileno(), 4) as mapped:
        mapped[:3] = b"two"
        seen("small.txt")
        mapped[:3] = b"six"
        now = seen("small.txt")
    assert now is not None
    assert now.text == "six\n"
    file.chmod(0o600)
    moded = seen("small.txt")
    assert moded is not None
    assert moded.revision.mode == 0o600
    (root / ".editorconfig").write_text("[*]\ncharset = latin1\n")
    named = seen("small.txt")
    assert named is not None
    assert named.source.encoding.name == "iso8859-1"


def test_whatever_changes_it_is_seen(seen: Callable[[str], Document | None], root: Path) -> None:
    file = root / "a.txt"
    file.write_text(TEXT)
    times = file.stat()

    def in_place() -> None:
        with file.open("r+") as stream:
            stream.write("LINE")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def another() -> None:
        other = root / "b.txt"
        other.write_text(TEXT.replace("old", "new"))
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.replace(file)

    def declared() -> None:
        (root / ".editorconfig").write_text("[*]\ncharset = latin1\n")

    for change in (
        in_place,
        another,
        declared,
        lambda: file.chmod(0o600),
        lambda: os.truncate(file, 40_000),
    ):
        before = seen("a.txt")
        assert before is seen("a.txt")
        change()
        now = seen("a.txt")
        assert now is not None
        assert now is not before
        assert now.data == file.read_bytes()


def test_a_young_file_is_read_each_time(workspace: Workspace, session: Session, root: Path) -> None:
    file = root / "a.txt"
    for word in ("old", "new", "odd"):
        file.write_text(TEXT.replace("old", word))
        window = workspace.reader(session).window("a.txt", first=0, count=1)
        assert window.lines == (f"line 0 = {word}",)


def test_room_is_bounded(
    seen: Callable[[str], Document | None], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_RECENT", 3 * len(TEXT))
    for name in "abcd":
        (root / name).write_text(TEXT)
    first = seen("a")
    for name in "bcd":
        assert seen(name) is seen(name)
    assert seen("a") == first


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_lines_are_found_without_counting_from_the_top(
    seen: Callable[[str], Document | None], root: Path, end: str
) -> None:
    text = TEXT.replace("\n", end)
    (root / "a.txt").write_text(text, newline="")
    document = seen("a.txt")
    assert document is not None
    marks = document.marks
    assert marks.ends == line_ends(text)
    for first in (0, 1, 2_999, 5_999, 6_000, 9_999):
        assert line_window(text, first, 3, marks) == line_window(text, first, 3)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    every = range(0, len(starts), 7)
    assert [marks.start(text, line) for line in every] == [starts[line] for line in every]


def test_of_more_than_is_kept_the_oldest_goes(
    seen: Callable[[str], Document | None],
    root: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text(TEXT)
    monkeypatch.setattr(workspace._documents._recent, "_room", 2 * len(TEXT))
    first = seen("a.txt")
    assert seen("b.txt") is not None
    assert seen("a.txt") is first
    assert seen("c.txt") is not None
    assert seen("a.txt") is not first
