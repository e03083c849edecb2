"""A window of a large file that is known is one read, and says what a look at the whole file says."""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

import pytest

from filepact.errors import PathBlockedError
from filepact.fs import known_lines
from filepact.fs.known_lines import KnownExcerpt, KnownLines
from filepact.fs.watch import moment
from filepact.workspace import reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.excerpt import LineExcerpt
    from filepact.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is held open elsewhere")

KEY = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"MIIEpAIBAAKCAQEA7bq0vPz3kQ2xYt0m8Jr5s1d4\n" * 40


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small steps, and stamps that count once the clock has gone on."""
    monkeypatch.setattr(reader, "EDIT_LIMIT", 0)
    monkeypatch.setattr(known_lines, "_STEP", 64)
    monkeypatch.setattr(known_lines, "_NEAR", 16)
    monkeypatch.setattr(known_lines, "_RACY", 0)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[KnownExcerpt]:
    """What was read at once."""
    found: list[KnownExcerpt] = []
    real = KnownLines.part

    def part(self: KnownLines, *asked: object) -> KnownExcerpt | None:
        one = real(self, *asked)  # type: ignore[arg-type]  # as they come
        if one is not None:
            found.append(one)
        return one

    monkeypatch.setattr(KnownLines, "part", part)
    return found


@pytest.fixture
def both(
    workspace: Workspace, session: Session, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, object]]:
    """A window as it is read, and as it is read by who knows nothing of the file."""

    def told(name: str, first: int, count: int, column: int) -> object:
        try:
            found = workspace.reader(session).window(name, first=first, count=count, column=column)
        except PathBlockedError as error:
            return error.code
        return shown(found)

    def look(name: str, first: int, count: int, column: int = 0) -> tuple[object, object]:
        known = told(name, first, count, column)
        with monkeypatch.context() as anew:
            anew.setattr(workspace._documents, "_recent", type(workspace._documents._recent)())
            return known, told(name, first, count, column)

    return look


def shown(window: LineExcerpt) -> tuple[object, ...]:
    """All that an answer is made of."""
    return (window.lines, window.first, window.total, window.more, window.size, window.encoding,
            window.ends, window.revision, window.column, window.goes_on)  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_windows_are_those_of_a_file_that_nothing_is_known_of(
    root: Path,
    both: Callable[..., tuple[object, object]],
    parts: list[KnownExcerpt],
    codec: str,
    ends: str,
) -> None:
    dice = random.Random(f"{codec}{ends}")
    lines = ["".join(dice.choices("abcde äöü\t", k=dice.randrange(30))) for _ in range(400)]
    (root / "a.log").write_bytes(ends.join([*lines, dice.choice(["", "end"])]).encode(codec))
    moment()
    for _ in range(120):
        first, count = (
            dice.choice([dice.randrange(-420, 420), 400 - dice.randrange(20)]),
            dice.randrange(30),
        )
        known, anew = both("a.log", first, count, dice.choice([0, 0, 0, 3]))
        assert known == anew, (first, count)
    assert (len(parts) > 20) is (codec != "utf-16"), len(parts)


def test_a_key_is_found_wherever_a_window_begins(
    root: Path, both: Callable[..., tuple[object, object]], parts: list[KnownExcerpt]
) -> None:
    dice = random.Random(18)
    (root / "a.log").write_bytes(b"line\n" * 12_000 + KEY + b"line\n" * 12_000)
    moment()
    seen = set()
    for _ in range(150):
        first = dice.choice(
            [dice.randrange(24_000), 12_000 + dice.randrange(-30, 60), -dice.randrange(1, 99)]
        )
        count = dice.randrange(1, 20)
        known, anew = both("a.log", first, count)
        refused = known == "PATH_BLOCKED"
        # Who knows where lines end does not take what stands below them for a part of them.
        assert known == anew or (not refused and 0 <= first <= 12_000 - count), (first, count)
        assert refused or set(known[0]) <= {"line"}
        seen.add(refused)
    assert seen == {True, False}
    assert len(parts) > 20


def test_who_writes_to_a_file_is_seen_at_once(
    root: Path, both: Callable[..., tuple[object, object]], parts: list[KnownExcerpt]
) -> None:
    dice, file = random.Random(5), root / "a.log"
    file.write_bytes(b"one line\n" * 4_000)

    def exchanged() -> None:
        (root / "other").write_bytes(b"another\n" * 4_500)
        (root / "other").replace(file)

    def overwritten() -> None:
        times = file.stat()
        with file.open("r+b") as stream:
            stream.seek(dice.randrange(20_000))
            stream.write(dice.choice([b"\n\n\n", b"abc", KEY]))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def longer() -> None:
        with file.open("ab") as stream:
            stream.write(b"more\n" * dice.randrange(9))

    for _ in range(60):
        moment()
        for _ in range(3):
            first = dice.choice([dice.randrange(4_000), -dice.randrange(1, 60)])
            known, anew = both("a.log", first, 5)
            assert known == anew
            known, anew = both("a.log", first, 5)
            assert known == anew
        dice.choice([exchanged, overwritten, longer])()
    assert len(parts) > 60


def test_a_known_window_is_read_by_one_read_of_a_file_that_is_opened_once(
    root: Path, workspace: Workspace, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.log").write_bytes(b"one line\n" * 4_000)
    moment()
    assert workspace.audit is not None
    workspace.audit.hold()  # as a call does; else each reading is written down at once
    calls: list[str] = []

    def counted(name: str) -> Callable[..., object]:
        real = getattr(os, name)
        return lambda *told, **more: calls.append(name) or real(*told, **more)

    for first in (0, 3_000, 3_950, 3_990, -50):
        for _ in range(3):
            window = workspace.reader(session).window("a.log", first=first, count=50)
        with monkeypatch.context() as watched:
            for name in ("open", "pread", "read"):
                watched.setattr(os, name, counted(name))
            assert workspace.reader(session).window("a.log", first=first, count=50) == window
    assert calls == ["open", "pread"] * 5
