"""The tour: a real server, a real client, real undo, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from filepact.errors import NotAFileError, ReadFailedError
from filepact_setup import tour, tour_tree
from filepact_setup.tour_tree import TourEdit, choose, copy_folder, fingerprint, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_every_step_comes_out_and_nothing_is_left(cli: CommandLine, scratch: Path) -> None:
    known = cli.json("tour")
    assert known["ok"] is True
    assert [step["ok"] for step in known["steps"]] == [True] * 13
    titles = [step["title"] for step in known["steps"]]
    assert titles[3:8] == [
        "Preview an edit",
        "Make the edit",
        "Apply a patch",
        "Reach for a file outside",
        "Reach for a secret inside",
    ]
    assert "made-up-for-the-tour" not in str(known)
    assert list(scratch.iterdir()) == []
    assert not cli.state.exists()


def test_a_folder_is_copied_and_left_alone(cli: CommandLine, scratch: Path) -> None:
    before = fingerprint(cli.root)
    said = cli("tour", str(cli.root), "--keep")
    assert said.code == 0, said.out
    assert "\x1b" not in said.out
    assert "13 of 13 steps came out as they have to.\n" in said.out
    assert "> edit_file " in said.out
    assert "$ filepact undo\n" in said.out
    assert "filepact setup" in said.out
    assert fingerprint(cli.root) == before
    (kept,) = scratch.iterdir()
    assert f"Kept: {kept}\n" in said.out
    assert (kept / "project" / ".env").read_text() == "TOKEN=made-up-for-the-tour\n"


def test_a_folder_without_text_gets_a_project_to_play_with(
    cli: CommandLine, scratch: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "image").write_bytes(b"\xff\x00")
    assert cli.json("tour", str(empty))["ok"] is True
    assert [path.name for path in empty.iterdir()] == ["image"]
    assert list(scratch.iterdir()) == []


def test_a_tour_of_a_file_is_refused(cli: CommandLine, scratch: Path) -> None:
    assert cli.json("tour", "windows.txt", code=1)["error"]["code"] == "NOT_A_FILE"
    assert list(scratch.iterdir()) == []


def test_a_step_that_comes_out_otherwise_ends_the_tour(
    cli: CommandLine, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_project(root: Path) -> tuple[TourEdit, TourEdit]:
        edit, patch = make_project(root)
        return TourEdit(edit.path, "cents that are not there", "x"), patch

    monkeypatch.setattr(tour, "make_project", other_project)
    said = cli("tour")
    assert said.code == 1
    assert "STRING_NOT_FOUND" in said.out
    assert "NOT AS EXPECTED" in said.out
    assert "3 of 4 steps" in said.out
    assert list(scratch.iterdir()) == []


def test_a_server_that_does_not_start_is_told(
    cli: CommandLine, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    false = scratch / "false"
    false.write_text("#!/bin/sh\necho no server today >&2\nexit 3\n")
    false.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(false))
    known = cli.json("tour", code=1)
    assert known["ok"] is False
    assert known["steps"][0]["ok"] is False
    assert "no server today" in known["steps"][0]["answer"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_tour_that_is_ended_leaves_nothing(
    cli: CommandLine, scratch: Path, number: signal.Signals
) -> None:
    paths = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-m", "filepact", "tour"],
        cwd=cli.root,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths, "TMPDIR": str(scratch)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"filepact tour\n"
        process.send_signal(number)
        process.stdout.read()
    assert process.returncode == 130
    assert list(scratch.iterdir()) == []


# -- the project --------------------------------------------------------------------------------


def test_a_copy_leaves_out_links_secrets_and_what_is_ignored(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "node_modules").mkdir(parents=True)
    (source / "node_modules" / "x.js").write_text("x")
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "a.py").write_text("a = 1\n")
    (source / ".env").write_text("KEY=1")
    (source / "id_rsa").write_text("key")
    (source / "link").symlink_to("/etc/passwd")
    target = tmp_path / "target"
    copied = copy_folder(source, target)
    assert [str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()] == [
        "deep/er/a.py"
    ]
    assert (copied.files, copied.size, copied.whole) == (1, 6, True)


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 2), ("MOST_BYTES", 20)])
def test_a_copy_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(tour_tree, limit, value)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(5):
        (source / f"{number}.txt").write_text("ten bytes\n")
    copied = copy_folder(source, tmp_path / "target")
    assert (copied.files, copied.whole) == (2, False)


def test_what_cannot_be_copied_is_an_error_with_a_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotAFileError):
        copy_folder(tmp_path / "file", tmp_path / "target")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_text("a")
    with pytest.raises(ReadFailedError):
        copy_folder(tmp_path / "source", tmp_path / "file")


def test_lines_to_change_are_chosen_from_two_files_if_there_are(tmp_path: Path) -> None:
    assert choose(tmp_path) is None
    (tmp_path / "one.py").write_text("same line\nsame line\nalone = 1\n")
    assert choose(tmp_path) is None
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "two.txt").write_bytes(b"another line\r\nlast line\r\n")
    first, second = choose(tmp_path) or (None, None)
    assert first is not None
    assert second is not None
    assert (first.path, first.old) == ("one.py", "alone = 1")
    assert (second.path, second.old) == ("two.txt", "another line")
    (tmp_path / "one.py").unlink()
    first, second = choose(tmp_path) or (None, None)
    assert first is not None
    assert second is not None
    assert (first.old, second.old) == ("another line", "last line")


def test_a_fingerprint_sees_bytes_names_and_modes(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x")
    file.chmod(0o644)
    seen = {fingerprint(tmp_path)}
    file.chmod(0o755)
    seen.add(fingerprint(tmp_path))
    file.write_bytes(b"y")
    seen.add(fingerprint(tmp_path))
    file.rename(tmp_path / "b")
    seen.add(fingerprint(tmp_path))
    assert len(seen) == 4
