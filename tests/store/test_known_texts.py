"""What sessions know of files is kept within limits, and a failure only means to know nothing."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import KnownTextRecord, Revision, RootId, WorkspacePath
from filepact.store.known_texts import SqliteKnownTexts

if TYPE_CHECKING:
    from pathlib import Path


def path(name: str) -> WorkspacePath:
    return WorkspacePath(RootId("/r"), name)


def known(text: str, shown: tuple[tuple[int, int], ...] | None = None) -> KnownTextRecord:
    return KnownTextRecord(text, Revision.of(b"any", 0o644), shown, read=shown is not None)


@pytest.mark.parametrize("name", ["a.txt", "stray\udcff.txt", "d/e.txt"])
@pytest.mark.parametrize("one", [known("text\n"), known("a\udcffb", ((0, 1),)), known("")])
def test_what_was_kept_is_found_by_its_conversation_alone(
    tmp_path: Path, name: str, one: KnownTextRecord
):
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        assert file.get("c", path(name)) is None
        assert not file.paths("c", RootId("/r"))
        file.put({("c", path(name)): one})
        assert (tmp_path / "known.db").stat().st_mode & 0o777 == 0o600
        assert file.get("other", path(name)) is None
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        assert file.get("c", path(name)) == one
        assert file.paths("c", RootId("/r")) == {path(name)}
        assert not file.paths("c", RootId("/other"))
        assert not file.paths("other", RootId("/r"))
        file.put({("c", path(name)): None})
        assert file.get("c", path(name)) is None


def test_what_is_older_than_it_may_be_is_not_found(tmp_path: Path):
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        file.put({("c", path("a")): known("a")})
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"), kept=0)) as file:
        assert file.get("c", path("a")) is None
        assert not file.paths("c", RootId("/r"))


def test_the_oldest_makes_room(tmp_path: Path):
    texts = ["".join(random.Random(n).choices("abcdefgh", k=4_000)) for n in range(4)]
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"), limit=4_000)) as file:
        for number, text in enumerate(texts):
            file.put({("c", path(str(number))): known(text)})
        assert file.get("c", path("0")) is None
        assert file.get("c", path("3")) == known(texts[3])


def test_what_another_process_keeps_of_a_file_is_found_at_once(tmp_path: Path):
    place = str(tmp_path / "known.db")
    with closing(SqliteKnownTexts(place)) as file, closing(SqliteKnownTexts(place)) as other:
        for one in (known("a"), known("b"), known("b", ((0, 1),)), known("a"), known("x" * 20_000)):
            other.put({("c", path("a")): one})
            assert [file.get("c", path("a")) for _ in range(2)] == [one, one]
        other.put({("c", path("a")): None})
        assert file.get("c", path("a")) is None


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_or_replaced_meanwhile_is_made_anew(
    tmp_path: Path, *, replaced: bool
):
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        file.put({("c", path("a")): known("a")})
        assert file.get("c", path("a")) == known("a")
        for one in tmp_path.glob("known.db*"):
            one.unlink()
        if replaced:
            with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as other:
                other.put({("c", path("o")): known("o")})
        assert file.get("c", path("a")) is None
        file.put({("c", path("b")): known("b")})
        assert file.get("c", path("b")) == known("b")
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        assert file.get("c", path("b")) == known("b")
        assert file.get("c", path("o")) == (known("o") if replaced else None)


def test_where_nothing_can_be_kept_nothing_is_known(tmp_path: Path):
    with closing(SqliteKnownTexts(str(tmp_path / "missing" / "known.db"))) as file:
        file.put({("c", path("a")): known("a")})
        assert file.get("c", path("a")) is None


def test_a_file_that_is_no_database_is_begun_anew(tmp_path: Path):
    (tmp_path / "known.db").write_bytes(b"no database " * 500)
    with closing(SqliteKnownTexts(str(tmp_path / "known.db"))) as file:
        assert file.get("c", path("a")) is None
        file.put({("c", path("a")): known("a")})
        file.put({("c", path("a")): known("a")})
        assert file.get("c", path("a")) == known("a")
