"""What agents asked and told, as the journal keeps it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord
from filepact.errors import FilepactError
from filepact.store.connection import Database
from filepact.store.rows import KEPT, insert_question, select_questions
from tests.store.making import OTHER, ROOT, SESSION

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.journal import JournalStore
    from tests.store.conftest import Reopen

ASKED = PermissionRecord(
    when=1_000.5,
    session=SESSION,
    root=ROOT,
    title="Edit \u202e it",
    action="write",
    files=(LoggedFile("src/a.py"), LoggedFile("/etc/passwd")),
    verdict="refused",
    by="rule key stores",
    how="reject_once",
)
TOLD = replace(
    ASKED,
    when=1_001.5,
    title="",
    files=(LoggedFile("b.txt", 3, 0), LoggedFile("\udcff\udcfe", 0, 0)),
    verdict="told",
    by="",
    how="completed",
    more=7,
)


def test_what_was_noted_comes_back_as_it_was_and_the_newest_first(store: JournalStore) -> None:
    assert store.questions() == ()
    broken = replace(ASKED, title="\udc80", by="rule \udc81", how="\ud800", files=())
    for one in (ASKED, TOLD, broken):
        store.note(one)
    assert store.questions() == (broken, TOLD, ASKED)


def test_they_are_found_by_root_and_session_and_limited(store: JournalStore) -> None:
    elsewhere = replace(ASKED, root=OTHER, when=9.0)
    another = replace(ASKED, session=Session("s2", Actor("agent", "tester", "1.0")))
    for one in (ASKED, elsewhere, another, TOLD):
        store.note(one)
    assert store.questions(root=OTHER) == (elsewhere,)
    assert store.questions(session="s2") == (another,)
    assert store.questions(root=OTHER, session="s2") == ()
    assert store.questions(limit=2) == (TOLD, another)
    assert len(store.questions(limit=None)) == 4


def test_only_the_newest_are_kept_each_with_its_own_files(path: Path) -> None:
    database = Database(str(path))
    with database.writing(durable=False) as view:
        for number in range(9):
            insert_question(view, replace(TOLD, when=float(number)), kept=4)
        found = select_questions(view, None, None, -1, kind="asked")
        assert [one.when for one in found] == [8.0, 7.0, 6.0, 5.0]
        assert all(one.files == TOLD.files for one in found)
        assert view.value("SELECT count(*) FROM question_file") == 8
    database.close()
    assert KEPT == 10_000


def test_a_verdict_that_nobody_knows_is_not_kept(store: JournalStore) -> None:
    with pytest.raises(FilepactError) as caught:
        store.note(replace(ASKED, verdict="perhaps"))  # type: ignore[arg-type]
    assert caught.value.code == "STATE_ERROR"
    assert store.questions() == ()


def test_another_process_sees_them_and_they_outlive_the_first(reopen: Reopen) -> None:
    first, second = reopen(), reopen()
    first.note(ASKED)
    assert second.questions() == (ASKED,)
    first.close()
    second.note(TOLD)
    second.close()
    third = reopen()
    assert third.questions() == (TOLD, ASKED)
    assert third.operations() == ()
    third.close()
