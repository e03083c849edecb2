"""Reading for one call: windows of small and huge files, and searches over two roots."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from filepact.app import open_workspace
from filepact.domain.deadline import Deadline
from filepact.errors import FilepactError, PathBlockedError
from filepact.text.query import Query
from filepact.tools.read import render_found, render_grepped
from filepact.workspace import reader as reading
from filepact.workspace.documents import EDIT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.reader import Reader
    from filepact.workspace.workspace import Workspace


@pytest.fixture
def reader(workspace: Workspace, session: Session) -> Reader:
    return workspace.reader(session)


def huge(path: Path, line: bytes, *, head: bytes = b"", ends: bytes = b"\n") -> int:
    """A file over the limit for whole reads; how many lines it has."""
    count = EDIT_LIMIT // (len(line) + len(ends)) + 10
    with path.open("wb") as stream:
        stream.write(head)
        stream.writelines(line + ends for _ in range(count))
    return count


def test_a_window_of_a_small_file_knows_everything(reader: Reader, root: Path) -> None:
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    window = reader.window("a.txt", first=1, count=1)
    assert window.lines == ("two",)
    assert (window.first, window.total, window.more) == (1, 3, True)
    assert window.ends == "crlf"
    assert not window.ends_with_newline
    assert window.revision == reader.document("a.txt").revision.short
    assert reader.window("a.txt", first=9, count=5).lines == ()


def test_a_window_of_an_empty_file(reader: Reader, root: Path) -> None:
    (root / "empty").write_bytes(b"")
    window = reader.window("empty", first=0, count=10)
    assert (window.lines, window.total, window.more) == ((), 0, False)


def test_a_huge_file_is_streamed(reader: Reader, root: Path) -> None:
    count = huge(root / "a.log", b"caf\xc3\xa9 and more of it")
    window = reader.window("a.log", first=3, count=2)
    assert window.lines == ("caf\u00e9 and more of it",) * 2
    assert (window.total, window.revision, window.more) == (None, None, True)
    last = reader.window("a.log", first=count - 1, count=5)
    assert (len(last.lines), last.total, last.more) == (1, count, False)


@pytest.mark.parametrize(
    ("encoding", "head"),
    [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("utf-32-le", b"\xff\xfe\0\0")],
)
def test_a_huge_wide_file_is_cut_at_whole_units(
    reader: Reader, root: Path, encoding: str, head: bytes
) -> None:
    # U+0A0A and U+010A hold the byte of a line feed where none is.
    line = "\u0a0a \u010a wide".encode(encoding)
    huge(root / "a.log", line, head=head, ends="\n".encode(encoding))
    window = reader.window("a.log", first=1, count=2)
    assert window.lines == ("\u0a0a \u010a wide",) * 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_huge_line_is_one_line_and_is_read_from_any_column(
    reader: Reader, root: Path, encoding: str
) -> None:
    long = "".join(f"{number:07} \u00e4" for number in range(EDIT_LIMIT // 9))
    (root / "a.log").write_bytes(f"first\r\n{long}\nend\n".encode(encoding))
    window = reader.window("a.log", first=1, count=2)
    assert window.lines == (long[: reader.page + 1],)
    assert (window.goes_on, window.more, window.total) == (True, True, None)
    for column in (1, 70_000, len(long) - 5, len(long), len(long) + 9):
        window = reader.window("a.log", first=1, count=2, column=column)
        assert window.lines[0] == long[column : column + reader.page + 1]
    assert (window.lines, window.total) == (("", "end"), 3)
    assert reader.window("a.log", first=0, count=1).lines == ("first",)
    assert reader.window("a.log", first=2, count=9).lines == ("end",)
    window = reader.window("a.log", first=3, count=9)
    assert (window.lines, window.total, window.more) == ((), 3, False)
    assert reader.window("a.log", first=7, count=9).total == 3


STATED = {"ends": "\n", "no end": "", "blank lines": "\n\n\n"}


@pytest.mark.parametrize("end", STATED.values(), ids=STATED)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_the_last_lines_of_a_huge_file_are_those_of_a_small_one(
    reader: Reader, root: Path, encoding: str, end: str
) -> None:
    # U+0A0A and U+010A hold the byte of a line feed where none is.
    text = "\n".join(f"{number} \u0a0a\u010a " + "x" * 300 for number in range(4_000)) + end
    data = text.encode(encoding)
    more = -(-(EDIT_LIMIT + 1) // len(data))
    (root / "small.log").write_bytes(data)
    mark = {"utf-8": 0, "utf-16": 2, "utf-32": 4}[encoding]
    body, between = data[mark:], "\n".encode(encoding)[mark:]
    (root / "huge.log").write_bytes(data[:mark] + (body + between) * more + body)
    for first in (-1, -2, -5, -60):
        small = reader.window("small.log", first=first, count=3)
        huge = reader.window("huge.log", first=first, count=3)
        assert huge.lines == small.lines
        assert small.first >= 0
        assert huge.first == first
        assert huge.more is small.more


def test_a_huge_binary_file_is_refused(reader: Reader, root: Path) -> None:
    with (root / "a.bin").open("wb") as stream:
        stream.write(b"\x7fELF\x02\x01\x01\0")
        stream.truncate(EDIT_LIMIT + 1)
    with pytest.raises(FilepactError) as caught:
        reader.window("a.bin", first=0, count=1)
    assert caught.value.code == "BINARY_FILE"
    with pytest.raises(FilepactError) as caught:
        reader.document("a.bin")
    assert caught.value.code == "FILE_TOO_LARGE"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Workspace]:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "a.py").write_text(f"word in {name}\n")
        (tmp_path / name / "sub" / ".env").write_text("word SECRET\n")
    workspace = open_workspace(
        [str(tmp_path / "one"), str(tmp_path / "two")], state_dir=str(tmp_path / "state")
    )
    yield workspace
    workspace.close()


def test_hits_in_the_second_root_are_shown_with_their_whole_name(
    two: Workspace, session: Session, tmp_path: Path
) -> None:
    reader = two.reader(session)
    second = str(tmp_path / "two")
    query = Query.compile("word")
    for base, shown in ((".", "sub/a.py"), (second, f"{second}/sub/a.py")):
        naming = reader.naming(base)
        found = reader.find(base, "**/*", limit=10)
        assert render_found(found, show=naming).splitlines()[0] == shown
        grepped = reader.grep(
            base, query, glob="**/*", limit=10, offset=0, context=0, mode="content"
        )
        text = render_grepped(grepped, show=naming)
        assert text.startswith(f"{shown}:1: word in")
        assert "SECRET" not in text
        drawn = reader.tree(base, depth=3, include_files=True, pattern=None, budget=100)
        assert "a.py" in drawn.text
        assert ".env" not in drawn.text


def test_a_search_in_nothing_or_in_a_file_is_refused_by_code(reader: Reader, root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    with pytest.raises(FilepactError) as caught:
        reader.find("missing", "*", limit=1)
    assert caught.value.code == "NOT_FOUND"
    with pytest.raises(FilepactError) as caught:
        reader.tree("a.txt", depth=1, include_files=True, pattern=None, budget=1)
    assert caught.value.code == "NOT_A_FILE"


def test_searches_tell_how_far_they_are_and_stop_when_asked(
    workspace: Workspace, session: Session, root: Path
) -> None:
    for name in "abcdef":
        (root / name).mkdir()
        (root / name / "x.txt").write_text("word\n")
    told: list[str] = []
    reader = workspace.reader(session, progress=lambda _seen, where: told.append(where))
    reader.find(".", "*.txt", limit=10)
    assert told == list("abcdef")
    reader.tree(".", depth=3, include_files=True, pattern=None, budget=10)
    assert told == list("abcdef") * 2
    stopped = workspace.reader(session, deadline=Deadline(cancelled=lambda: True))
    found = stopped.find(".", "*.txt", limit=10)
    assert found.stopped == "cancelled"
    assert found.total_is_floor
    drawn = stopped.tree(".", depth=3, include_files=True, pattern=None, budget=10)
    assert "at least" in drawn.text


def test_a_pipe_that_is_named_is_refused_alike_by_every_search(
    workspace: Workspace, session: Session, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    reader = workspace.reader(session)
    for search in (
        lambda: reader.find("pipe", "*", limit=1),
        lambda: reader.tree("pipe", depth=1, include_files=True, pattern=None, budget=9),
        lambda: reader.document("pipe"),
        lambda: reader.naming("pipe"),
    ):
        with pytest.raises(PathBlockedError):
            search()


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.text(alphabet="ab\u00e4\u0a0a\n\n\r", max_size=60),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    first=st.integers(-8, 12),
    count=st.integers(0, 6),
    column=st.integers(0, 5),
)
def test_a_stream_is_read_as_a_loaded_file_is(
    reader: Reader,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    encoding: str,
    first: int,
    count: int,
    column: int,
) -> None:
    assume("\n" in text or "\r" not in text)  # only in a whole file CR is known to end lines
    (root / "a.txt").write_bytes(text.encode(encoding))
    with monkeypatch.context() as patched:
        loaded = reader.window("a.txt", first=first, count=count, column=column)
        patched.setattr(reading, "EDIT_LIMIT", -1)
        streamed = reader.window("a.txt", first=first, count=count, column=column)
    assert streamed.lines == loaded.lines
    assert streamed.more is loaded.more
    if streamed.total is not None:
        assert streamed.total == loaded.total
    if streamed.first >= 0:
        assert streamed.first == loaded.first
    else:
        assert loaded.total + streamed.first == loaded.first


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_end_of_a_stream_whose_bytes_mean_what_was_said_before_them_is_read_as_that_of_a_file(
    opened: Callable[..., Workspace],
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    text = "\n".join(f"\u65e5\u672c\u8a9e {number}" for number in range(5)) + end
    (root / "a.txt").write_bytes(text.encode("iso2022_jp"))
    one = opened(("*.txt", "iso2022_jp")).reader(session)
    for first in range(-7, 0):
        loaded = one.window("a.txt", first=first, count=2)
        with monkeypatch.context() as patched:
            patched.setattr(reading, "EDIT_LIMIT", -1)
            streamed = one.window("a.txt", first=first, count=2)
        assert (streamed.lines, streamed.first) == (loaded.lines, loaded.first)


def test_of_a_window_no_more_is_cut_into_lines_than_a_page_holds(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("0123456789\n" * 5_000)
    reader = workspace.reader(session, page=1_000)
    window = reader.window("a.txt", first=10, count=2_000)
    assert 1_000 <= sum(len(line) + 1 for line in window.lines) < 1_100
    assert (window.more, window.total) == (True, 5_000)
    window = reader.window("a.txt", first=4_990, count=2_000)
    assert (len(window.lines), window.more) == (10, False)
    (root / "b.txt").write_text("x" * 5_000 + "\nend")
    window = reader.window("b.txt", first=0, count=9, column=4_990)
    assert (window.lines, window.more) == (("x" * 10, "end"), False)
