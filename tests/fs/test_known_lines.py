"""Lines of large files: found at once where it is known how many stand before, and never by what is stale."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest

from filepact.errors import TimedOutError
from filepact.fs import known_lines
from filepact.fs.known_lines import KnownLines
from filepact.fs.root import Root
from filepact.text.detect_encoding import Encoding, NamedEncoding
from tests.needs import HELD_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.fs.read_only_root import OpenFile

_OLD = 10 * 10**9
_MARKED = Encoding("utf-8", b"\xef\xbb\xbf")
_NAMED = NamedEncoding("utf-16-le", "given")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a few bytes, and a clock by which no file is young."""
    monkeypatch.setattr(known_lines, "_STEP", 8)
    monkeypatch.setattr(known_lines, "_READ", 3)
    late = time.time_ns() + _OLD
    monkeypatch.setattr(known_lines.time, "time_ns", lambda: late)


def _line(offsets: KnownLines, file: Path, lines: int) -> tuple[int, int, int]:
    """Where a line begins, how many are missing, and how many bytes were read to find it."""
    with file.open("rb", buffering=0) as stream:
        read = 0

        class Counted:
            fileno, seek = stream.fileno, stream.seek

            @staticmethod
            def read(size: int) -> bytes:
                nonlocal read
                block = stream.read(size) or b""
                read += len(block)
                return block

        missing = offsets.skip(Counted(), lines, lambda: None)  # type: ignore[arg-type]
        return stream.tell(), missing, read


def _truth(data: bytes, lines: int) -> tuple[int, int]:
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    if lines > len(ends):
        return len(data), lines - len(ends)
    return (ends[lines - 1] if lines else 0), 0


@pytest.mark.parametrize("seed", range(20))
def test_any_line_is_found_where_it_is(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    data = bytes(dice.choice(b"ab\n" + b"\n" * (seed % 3)) for _ in range(dice.randrange(400)))
    (file := tmp_path / "a.log").write_bytes(data)
    offsets = KnownLines()
    for _ in range(30):
        wanted = dice.randrange(data.count(b"\n") + 3)
        assert _line(offsets, file, wanted)[:2] == _truth(data, wanted)


def test_a_line_that_was_passed_is_found_by_one_read(tmp_path: Path) -> None:
    (file := tmp_path / "a.log").write_bytes(b"one\ntwo\nthree\n" * 100)
    offsets = KnownLines()
    place, _, read = _line(offsets, file, 250)
    assert read >= place
    assert _line(offsets, file, 250) == (place, 0, 8)
    assert _line(offsets, file, 249)[2] == 8


def test_what_comes_after_a_known_line_is_counted_from_there(tmp_path: Path) -> None:
    (file := tmp_path / "a.log").write_bytes(b"1234567\n" * 100)
    offsets = KnownLines()
    _line(offsets, file, 50)
    place, _, read = _line(offsets, file, 60)
    assert (place, read < 200) == (480, True)
    assert _line(offsets, file, 200)[:2] == (800, 100)


def test_a_file_that_has_changed_is_counted_anew(tmp_path: Path) -> None:
    (file := tmp_path / "a.log").write_bytes(b"1234567\n" * 100)
    offsets = KnownLines()
    _line(offsets, file, 90)
    status = file.stat()
    file.write_bytes(b"123\n567\n" * 100)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert _line(offsets, file, 90)[:2] == (360, 0)


def test_of_a_file_that_has_changed_just_now_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "a.log").write_bytes(b"1234567\n" * 100)
    now = file.stat().st_ctime_ns
    monkeypatch.setattr(known_lines.time, "time_ns", lambda: now)
    offsets = KnownLines()
    assert _line(offsets, file, 90)[2] >= 720
    assert _line(offsets, file, 90)[2] >= 720


def test_what_is_kept_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_lines, "_MOST", 100)
    files = [tmp_path / f"{number}.log" for number in range(3)]
    for file in files:
        file.write_bytes(b"1234567\n" * 61)
    offsets = KnownLines()
    for file in files:
        _line(offsets, file, 60)
    assert [_line(offsets, file, 60)[2] > 8 for file in reversed(files)] == [False, True, True]
    (large := tmp_path / "large.log").write_bytes(b"1234567\n" * 201)
    _line(offsets, large, 200)
    assert _line(offsets, large, 200)[2] > 1_000


def test_a_search_for_a_line_can_be_ended(tmp_path: Path) -> None:
    (file := tmp_path / "a.log").write_bytes(b"1234567\n" * 100)

    def ended() -> None:
        raise TimedOutError("too long")

    with file.open("rb") as stream, pytest.raises(TimedOutError):
        KnownLines().skip(stream, 90, ended)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[OpenFile]:
    """A file of 4,000 lines with a private key in the middle, kept open."""
    lines = [b"%d %s\n" % (number, b"x" * (number % 37)) for number in range(4_000)]
    lines[2_000] = b"-----BEGIN RSA PRIVATE KEY-----\n"
    (tmp_path / "a.log").write_bytes(b"\xef\xbb\xbf" + b"".join(lines)[:-1])
    with Root.open(tmp_path) as root:
        opened = root.hold("a.log")
        yield opened
        opened.close()


def _learned(opened: OpenFile, *, to: int = 0) -> KnownLines:
    known = KnownLines()
    with opened.stream() as (stream, _):
        known.skip(stream, to, lambda: None)
    known.learn(opened, time.time_ns() + _OLD, _MARKED, None)
    return known


@HELD_FILES
@pytest.mark.parametrize("seed", range(10))
def test_known_lines_are_read_at_once_as_they_stand_or_not_at_all(
    held: OpenFile, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(known_lines, "_STEP", dice.choice((8, 16_384)))
    monkeypatch.setattr(known_lines, "_LINE", dice.choice((8, 512)))
    data = held.read(limit=1 << 20).data[3:]
    lines = data.splitlines(keepends=True)
    known = _learned(held, to=dice.choice((0, 1_000, 4_000)))
    found = 0
    for _ in range(60):
        first, count = dice.randrange(-80, 4_100), dice.choice((1, 2, 20, 90))
        part = known.part(held, None, first, count, dice.choice((300, 100_000)))
        if part is not None:
            found += 1
            start = first if first >= 0 else len(lines) + first
            wanted = b"".join(lines[start : start + count])
            assert (part.data, part.more) == (wanted, start + count < len(lines))
            assert part.start == 3 + len(b"".join(lines[:start]))
            assert b"PRIVATE" not in part.data
    assert found


@HELD_FILES
def test_lines_are_not_read_at_once_where_something_is_not_known(
    held: OpenFile, tmp_path: Path
) -> None:
    known = _learned(held)
    assert known.part(held, None, 0, 5, 10_000) is not None
    assert known.part(held, None, 0, 0, 10_000) is None
    assert known.part(held, _NAMED, 0, 5, 10_000) is None
    assert known.part(held, None, 5_000, 1, 10_000) is None
    assert known.part(held, None, 0, 5, 4) is None  # they are longer
    assert KnownLines().part(held, None, 0, 5, 10_000) is None
    with (tmp_path / "a.log").open("ab") as stream:
        stream.write(b"more")
    young, changed = KnownLines(), KnownLines()
    young.learn(held, held.status.st_ctime_ns, _MARKED, None)  # type: ignore[union-attr]
    changed.learn(held, time.time_ns() + _OLD, _MARKED, None)
    assert young.part(held, None, 0, 5, 10_000) is None
    assert changed.part(held, None, 0, 5, 10_000) is None
    assert known.part(held, None, 0, 5, 10_000) is None
