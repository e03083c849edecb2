"""Questions and reports as values: bounded, and named from their folder."""

from __future__ import annotations

import pytest

from filepact.domain.document import RootId
from filepact.domain.operation import Actor, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord, name_files, shorten

ROOT = RootId("/home/ada/project")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/home/ada/project/src/a.py", "src/a.py"),
        ("/home/ada/project/src/../b.py", "b.py"),
        ("/home/ada/project", "."),
        ("/home/ada/project2/a", "/home/ada/project2/a"),
        ("/home/ada/project/../other/a", "/home/ada/other/a"),
        ("/link/a.py", "a.py"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_file_is_named_from_the_root_where_it_lies_inside(path: str, named: str) -> None:
    assert name_files([LoggedFile(path, 1, 2)], (ROOT, "/link")) == ((LoggedFile(named, 1, 2),), 0)


def test_the_whole_disk_can_be_the_root() -> None:
    assert name_files([LoggedFile("/etc/passwd")], ("/",)) == ((LoggedFile("etc/passwd"),), 0)


def test_files_are_few_and_each_once_and_the_rest_is_counted() -> None:
    many = [LoggedFile(f"/{number // 2}") for number in range(140)]
    files, more = name_files(many, (ROOT,))
    assert len(files) == 50
    assert more == 20
    long = [LoggedFile("/" + "x" * 8_000), LoggedFile("/" + "y" * 8_000), LoggedFile("/z")]
    files, more = name_files(long, (ROOT,))
    assert [file.path for file in files] == [long[0].path, "/z"]
    assert more == 1


def test_a_title_is_cut_and_shows_that_it_was() -> None:
    assert shorten("x" * 300) == "x" * 300
    cut = shorten("x" * 301)
    assert len(cut) == 300
    assert cut.endswith("x\u2026")


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("src", True),
        ("src/a.py", True),
        ("src/a", False),
        (".", True),
        ("", True),
        ("/etc", True),
        ("other", False),
    ],
)
def test_it_concerns_files_and_the_folders_above_them(path: str, concerned: bool) -> None:
    question = PermissionRecord(
        1.0,
        Session("s", Actor("agent", "a")),
        ROOT,
        "",
        "write",
        (LoggedFile("src/a.py"), LoggedFile("/etc/passwd")),
        "told",
    )
    assert question.paths == ("src/a.py", "/etc/passwd")
    assert question.concerns(path) is concerned
