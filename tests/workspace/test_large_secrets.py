"""A part of a file that is too large to be loaded is refused where it may be the inside of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.errors import PathBlockedError
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.excerpt import ExcerptOptions

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

LINE = "0123456789 abcdefghijklmnopqrstuvwxyz\n"
BODY = "MIIEpAIBAAKCAQEA7bq0vPz3kQ2xYt0m8Jr5s1d4LhWfC6uT9oNgZpVeXiRaBySk\n" * 25
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}-----END RSA PRIVATE KEY-----\n"
COUNT = EDIT_LIMIT // len(LINE) + 1


@pytest.fixture(params=["utf-8", "utf-16"])
def large(request: pytest.FixtureRequest, root: Path) -> str:
    (root / "large.log").write_bytes((LINE * COUNT + KEY + LINE * COUNT).encode(request.param))
    return "large.log"


@pytest.mark.parametrize("below", [0, 1, 4, 20])
def test_lines_of_a_key_are_refused_wherever_the_part_begins(
    workspace: Workspace, session: Session, large: str, below: int
) -> None:
    reader = workspace.reader(session)
    with pytest.raises(PathBlockedError):
        reader.window(large, first=COUNT + below, count=5)
    with pytest.raises(PathBlockedError):
        reader.window(large, first=below - 27 - COUNT, count=5)
    with pytest.raises(PathBlockedError):
        reader.excerpt(large, ExcerptOptions(COUNT + below, 5))


def test_so_are_their_bytes(workspace: Workspace, session: Session, root: Path, large: str) -> None:
    data = (root / large).read_bytes()
    wide = 2 if data.startswith(b"\xff\xfe") else 1
    with pytest.raises(PathBlockedError):
        workspace.reader(session).piece(large, first=(len(LINE) * COUNT + 200) * wide, most=100)


def test_other_parts_are_read(workspace: Workspace, session: Session, large: str) -> None:
    reader = workspace.reader(session)
    for first in (0, COUNT // 2, 2 * COUNT, -20):
        lines = reader.window(large, first=first, count=5).lines
        assert lines == (LINE.rstrip("\n"),) * 5
    assert reader.excerpt(large, ExcerptOptions(5, 2)).text == LINE * 2
    assert len(reader.piece(large, first=1_000, most=100).data) == 100


def test_a_part_of_one_long_line_is_judged_by_what_stands_before_it(
    workspace: Workspace, session: Session, root: Path
) -> None:
    before = "x" * EDIT_LIMIT
    (root / "one.log").write_text(before + KEY.replace("\n", "\\n"))
    reader = workspace.reader(session)
    with pytest.raises(PathBlockedError):
        reader.window("one.log", first=0, count=1, column=len(before) + 200)
    assert reader.window("one.log", first=0, count=1, column=100).lines[0].startswith("xxx")
