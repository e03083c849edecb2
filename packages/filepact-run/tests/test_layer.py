"""Layers become change sets: what each started from, what others did meanwhile, and what may be done."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Approval, Session
from filepact_run.layer import LayerCommitter
from filepact_run.layer_reader import LayerRecord
from filepact_run.overlay import layer_entries
from filepact_run.run_folder import RunFolder
from tests.domain.steering import PACKAGE
from tests.kinds import tree
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.workspace.workspace import Workspace
    from filepact_run.layer import LayerResult, RunMode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers are those of overlays")

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
SESSION = Session("run-1", Actor("agent", "sh"))
PERSON = Session("cli-1", Actor("person", "ann"))


class Layered:
    """A root with a layer that a test fills by hand, as an overlay would."""

    def __init__(self, base: Path) -> None:
        self.root, self.state = base / "root", base / "state"
        self.root.mkdir()
        self.workspace: Workspace | None = None
        self.run: RunFolder | None = None
        self.record: LayerRecord | None = None

    def begin(self, *, snapshot: bool = True) -> None:
        settings = Settings()
        self.workspace = open_workspace(
            str(self.root), state_dir=str(self.state), settings=settings, home=str(self.state)
        )
        self.run = RunFolder.make(
            str(self.state),
            command=("sh",),
            agent="sh",
            mode="auto",
            roots=(str(self.root),),
            folder=str(self.root),
        )
        if snapshot:
            self.workspace.external.snapshot()

    def put(self, name: str, text: str) -> None:
        assert self.run is not None
        path = self.run.layers()[0].upper + "/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def remove(self, name: str) -> None:
        assert self.run is not None
        os.mknod(self.run.layers()[0].upper + "/" + name, 0o020000, 0)

    def commit(self, mode: RunMode = "auto") -> LayerResult:
        assert self.workspace is not None
        assert self.run is not None
        began = self.run.record.began
        layers = LayerCommitter(self.workspace)
        return layers.commit(SESSION, self.run.layers(), began=began, mode=mode, tool="sh")

    def commit_going_on(self) -> LayerResult:
        """Commit while the program goes on, as whoever holds its run does."""
        assert self.workspace is not None
        assert self.run is not None
        if self.record is None:
            self.record = LayerRecord(self.run.kept)
        return LayerCommitter(self.workspace).commit(
            *(SESSION, self.run.layers()),
            began=self.run.record.began,
            mode="auto",
            tool="sh",
            record=self.record,
            keep=self.run.keep,
        )


@pytest.fixture
def layered(tmp_path: Path) -> Iterator[Layered]:
    one = Layered(tmp_path)
    yield one
    if one.workspace is not None:
        one.workspace.close()


TWO, SIX = TEXT.replace("two", "2"), TEXT.replace("six", "6")


@pytest.mark.parametrize(
    ("before", "programs", "persons", "statuses", "after"),
    [
        pytest.param(TEXT, TWO, SIX, ["applied"], SIX.replace("two", "2"), id="other lines"),
        pytest.param(TEXT, TEXT, "mine\n", [], "mine\n", id="only touched by the program"),
        pytest.param(None, "program\n", "mine\n", ["pending"], "mine\n", id="made by both"),
        pytest.param(TEXT, TWO, None, ["pending"], None, id="removed by the person"),
    ],
)
def test_what_both_changed_is_merged_or_stays_the_persons(
    layered: Layered,
    before: str | None,
    programs: str,
    persons: str | None,
    statuses: list[str],
    after: str | None,
) -> None:
    path = layered.root / "a.txt"
    if before is not None:
        path.write_text(before)
    layered.begin()
    layered.put("a.txt", programs)
    if persons is None:
        path.unlink()
    else:
        path.write_text(persons)
    assert [one.status for one in layered.commit().receipts] == statuses
    assert (path.read_text() if path.exists() else None) == after


def test_the_same_lines_are_shown_against_what_the_person_wrote(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "program"))
    path.write_text(TEXT.replace("two", "person"))
    (receipt,) = layered.commit().receipts
    assert (receipt.status, receipt.rule) == ("pending", "changed meanwhile")
    assert "-person" in receipt.diff
    assert "+program" in receipt.diff
    assert path.read_text() == TEXT.replace("two", "person")


def test_where_nobody_knows_what_a_file_was_nothing_is_merged(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin(snapshot=False)
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.write_text(TEXT.replace("six", "6"))
    (receipt,) = layered.commit().receipts
    assert (receipt.status, receipt.rule) == ("pending", "changed meanwhile")
    assert path.read_text() == TEXT.replace("six", "6")


@pytest.mark.skipif(os.geteuid() != 0, reason="only a namespace's administrator makes whiteouts")
def test_a_removal_of_what_a_person_changed_waits(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    (layered.root / "b.txt").write_text(TEXT)
    layered.begin()
    layered.remove("a.txt")
    layered.remove("b.txt")
    path.write_text(TEXT.replace("six", "6"))
    done, waits = layered.commit().receipts
    assert (done.status, waits.status) == ("applied", "pending")
    assert path.read_text() == TEXT.replace("six", "6")
    assert not (layered.root / "b.txt").exists()


def test_a_folder_that_became_a_link_meanwhile_is_not_written_through(
    layered: Layered, tmp_path: Path
) -> None:
    (layered.root / "d").mkdir()
    (layered.root / "other").mkdir()
    layered.begin()
    layered.put("d/a.txt", "x\n")
    (layered.root / "d").rmdir()
    (layered.root / "d").symlink_to("other")
    result = layered.commit()
    assert result.receipts == ()
    assert [*result.left] == ["d", "d/a.txt"]
    assert [*(layered.root / "other").iterdir()] == []


def test_a_layer_is_read_without_following_a_link(layered: Layered, tmp_path: Path) -> None:
    layered.begin()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    assert layered.run is not None
    upper = layered.run.layers()[0].upper
    os.symlink(tmp_path / "outside", f"{upper}/way")
    assert [(one.path, one.kind) for one in layer_entries(upper)] == [("way", "link")]


administrator = pytest.mark.skipif(
    os.geteuid() != 0, reason="only a namespace's administrator makes whiteouts"
)


def upper(layered: Layered, name: str = "") -> str:
    assert layered.run is not None
    return os.path.join(layered.run.layers()[0].upper, name)


def test_in_review_everything_waits_and_nothing_is_done(layered: Layered) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    (layered.root / "kind").write_text("a file\n")
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    layered.put("new/b.txt", "b\n")
    layered.put("kind/inside.txt", "a folder now\n")
    os.setxattr(upper(layered, "kind"), "user.overlay.opaque", b"y")
    result = layered.commit("review")
    assert [one.status for one in result.receipts] == ["pending"]
    assert result.receipts[0].rule == "review mode"
    assert result.left == {}
    assert (layered.root / "a.txt").read_text() == TEXT
    assert (layered.root / "kind").read_text() == "a file\n"
    assert not (layered.root / "new").exists()


def test_a_file_makes_way_for_a_folder(layered: Layered) -> None:
    (layered.root / "kind").write_text("a file\n")
    layered.begin()
    layered.put("kind/inside.txt", "a folder now\n")
    os.setxattr(upper(layered, "kind"), "user.overlay.opaque", b"y")
    result = layered.commit()
    assert {one.status for one in result.receipts} == {"applied"}
    assert (layered.root / "kind" / "inside.txt").read_text() == "a folder now\n"


def test_a_folder_makes_way_for_a_file_and_what_a_person_put_into_it_stays(
    layered: Layered,
) -> None:
    for name in ("first", "second"):
        (layered.root / name / "deep").mkdir(parents=True)
        (layered.root / name / "deep" / "a.txt").write_text("a\n")
    layered.begin()
    layered.put("first", "a file now\n")
    layered.put("second", "a file now\n")
    (layered.root / "second" / "mine.txt").write_text("mine\n")
    layered.commit()
    assert (layered.root / "first").read_text() == "a file now\n"
    assert (layered.root / "second" / "mine.txt").read_text() == "mine\n"


@administrator
def test_a_folder_that_is_gone_takes_its_files_with_it_but_not_a_persons(layered: Layered) -> None:
    (layered.root / "d" / "deep").mkdir(parents=True)
    (layered.root / "d" / "deep" / "a.txt").write_text("a\n")
    (layered.root / "d" / "link").symlink_to("deep")
    layered.begin()
    layered.remove("d")
    (layered.root / "d" / "mine.txt").write_text("mine\n")
    layered.commit()
    assert [one.name for one in (layered.root / "d").iterdir()] == ["mine.txt"]


def test_a_folder_that_was_made_anew_has_only_what_the_layer_has(layered: Layered) -> None:
    (layered.root / "d" / "deep").mkdir(parents=True)
    for name in ("d/a.txt", "d/b.txt", "d/deep/c.txt"):
        (layered.root / name).write_text("old\n")
    layered.begin()
    layered.put("d/b.txt", "new\n")
    os.setxattr(upper(layered, "d"), "user.overlay.opaque", b"y")
    (receipt,) = layered.commit().receipts
    assert receipt.status == "applied"
    assert [one.name for one in (layered.root / "d").iterdir()] == ["b.txt"]
    assert (layered.root / "d" / "b.txt").read_text() == "new\n"


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_in_a_folder_that_was_made_anew_another_may_be_replaced_as_well(
    layered: Layered, kind: str
) -> None:
    (layered.root / "d/deep/er").mkdir(parents=True)
    for name in ("d/a.txt", "d/deep/b.txt", "d/deep/er/c.txt"):
        (layered.root / name).write_text("old\n")
    was = tree(layered.root)
    layered.begin()
    layered.put(
        "d/deep/new" if kind == "folder" else "d/deep" if kind == "file" else "d/x", "new\n"
    )
    if kind == "link":
        os.symlink("x", upper(layered, "d/deep"))
    for name in ("d", "d/deep") if kind == "folder" else ("d",):
        os.setxattr(upper(layered, name), "user.overlay.opaque", b"y")
    (receipt,) = layered.commit().receipts
    assert receipt.status == "applied"
    names = sorted(
        path.relative_to(layered.root / "d").as_posix() for path in layered.root.glob("d/**/*")
    )
    assert names == {"file": ["deep"], "link": ["deep", "x"], "folder": ["deep", "deep/new"]}[kind]
    assert layered.workspace is not None
    layered.workspace.undo(PERSON)
    assert tree(layered.root) == was


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has attributes that a layer does not show")
@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_a_program_puts_something_into_keeps_what_a_layer_does_not_show(
    layered: Layered, again: bool
) -> None:
    place = layered.root / "d"
    place.mkdir()
    os.setxattr(place, "trusted.tag", b"root's")
    os.setxattr(place, "user.gone", b"1")
    layered.begin()
    layered.put("d/new.txt", "new\n")
    os.setxattr(upper(layered, "d"), "user.tag", b"the program's")
    if again:
        layered.commit_going_on()
        layered.put("d/other.txt", "new\n")
    layered.commit_going_on()
    assert {*os.listxattr(place)} == {"trusted.tag", "user.tag"}
    assert os.getxattr(place, "trusted.tag") == b"root's"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has attributes that a layer does not show")
def test_what_a_layer_does_not_show_of_a_file_that_gets_another_name_is_told(
    layered: Layered,
) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    os.setxattr(layered.root / "a.txt", "trusted.tag", b"root's")
    layered.begin()
    layered.put("b.txt", TEXT)
    layered.remove("a.txt")
    (receipt,) = layered.commit().receipts
    assert "trusted.tag" in str(receipt.notes)
    assert not (layered.root / "a.txt").exists()


def test_what_is_no_file_stays_in_the_layer(layered: Layered) -> None:
    os.mkfifo(layered.root / "pipe")
    layered.begin()
    os.mkfifo(upper(layered, "mine"))
    layered.put("pipe", "over a pipe\n")
    layered.put("good.txt", "good\n")
    result = layered.commit()
    assert {*result.left} == {"mine", "pipe"}
    assert (layered.root / "good.txt").read_text() == "good\n"
    assert not (layered.root / "mine").exists()


def test_what_rules_deny_stays_in_the_layer_and_what_they_ask_about_waits(
    layered: Layered,
) -> None:
    layered.begin()
    layered.put(".env", "TOKEN=1\n")
    layered.put("sub/.git/hooks/pre-commit", "#!/bin/sh\n")
    layered.put("sub/.git/config", "[core]\n")
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    layered.put("notes.txt", f"{key}-----END PRIVATE KEY-----\n")
    layered.put(".github/workflows/ci.yml", "on: push\n")
    layered.put("plain.txt", "plain\n")
    result = layered.commit()
    assert {*result.left} == {"sub/.git", "notes.txt"}
    assert [one.status for one in result.receipts] == ["applied", "pending"]
    assert {one.path for one in result.receipts[1].files} == {".env", ".github/workflows/ci.yml"}
    assert [one.name for one in layered.root.iterdir()] == ["plain.txt"]


def test_a_link_out_of_the_root_waits_and_another_is_made(layered: Layered) -> None:
    (layered.root / "a.txt").write_text("a\n")
    layered.begin()
    os.symlink("/etc/passwd", upper(layered, "out"))
    os.symlink("../../x", upper(layered, "above"))
    os.symlink("a.txt", upper(layered, "within"))
    result = layered.commit()
    assert [(one.status, one.rule) for one in result.receipts] == [
        ("applied", ""),
        ("pending", "links out"),
    ]
    assert os.readlink(layered.root / "within") == "a.txt"
    assert not os.path.lexists(layered.root / "out")
    assert not os.path.lexists(layered.root / "above")


def test_a_link_over_a_file_and_a_file_over_a_link(layered: Layered) -> None:
    (layered.root / "a.txt").write_text("a\n")
    (layered.root / "b.txt").write_text("b\n")
    (layered.root / "link").symlink_to("b.txt")
    layered.begin()
    os.symlink("b.txt", upper(layered, "a.txt"))
    layered.put("link", "a file now\n")
    layered.commit()
    assert os.readlink(layered.root / "a.txt") == "b.txt"
    assert (layered.root / "link").read_text() == "a file now\n"
    assert (layered.root / "b.txt").read_text() == "b\n"


def test_an_empty_folder_is_made(layered: Layered) -> None:
    layered.begin()
    os.mkdir(upper(layered, "empty"))
    (receipt,) = layered.commit().receipts
    assert receipt.status == "applied"
    assert (layered.root / "empty").is_dir()


def test_a_file_that_came_where_the_program_has_a_folder_stays(layered: Layered) -> None:
    (layered.root / "d").mkdir()
    layered.begin()
    layered.put("d/a.txt", "program\n")
    (layered.root / "d").rmdir()
    (layered.root / "d").write_text("person\n")
    result = layered.commit()
    assert result.receipts == ()
    assert "d" in result.left
    assert (layered.root / "d").read_text() == "person\n"


def test_a_link_that_came_where_the_program_has_a_file_stays(layered: Layered) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    (layered.root / "a.txt").unlink()
    (layered.root / "a.txt").symlink_to("elsewhere")
    layered.commit()
    assert os.readlink(layered.root / "a.txt") == "elsewhere"


def test_a_second_commit_of_the_same_layer_does_nothing(layered: Layered) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    layered.put("b.txt", "b\n")
    assert len(layered.commit().receipts) == 1
    (layered.root / "a.txt").write_text(TEXT.replace("two", "2").replace("six", "6"))
    again = layered.commit()
    assert all(one.status == "pending" for one in again.receipts)
    assert (layered.root / "a.txt").read_text() == TEXT.replace("two", "2").replace("six", "6")
    assert (layered.root / "b.txt").read_text() == "b\n"


def test_a_bare_repository_is_not_made_file_by_file(layered: Layered) -> None:
    layered.begin()
    for name in ("HEAD", "config", "objects/info/x", "refs/heads/main"):
        layered.put(f"bare/{name}", "ref: refs/heads/main\n")
    result = layered.commit()
    assert result.receipts == ()
    assert result.left
    assert not (layered.root / "bare").exists()


def test_a_file_in_a_folder_that_is_there_changes_nothing_else_in_it(layered: Layered) -> None:
    (layered.root / "d").mkdir()
    (layered.root / "d" / "a.txt").write_text("a\n")
    layered.begin()
    layered.put("d/b.txt", "b\n")
    (receipt,) = layered.commit().receipts
    assert [one.path for one in receipt.files] == ["d/b.txt"]
    assert (layered.root / "d" / "a.txt").read_text() == "a\n"


@administrator
def test_what_a_program_removed_and_a_person_removed_too_is_no_change(layered: Layered) -> None:
    for name in ("a.txt", "b.txt"):
        (layered.root / name).write_text("a\n")
    layered.begin()
    layered.remove("a.txt")
    layered.remove("b.txt")
    (layered.root / "a.txt").unlink()
    (receipt,) = layered.commit().receipts
    assert [one.path for one in receipt.files] == ["b.txt"]
    assert [*layered.root.iterdir()] == []


@administrator
def test_a_pipe_that_is_to_be_removed_stays(layered: Layered) -> None:
    os.mkfifo(layered.root / "pipe")
    (layered.root / "d").mkdir()
    os.mkfifo(layered.root / "d" / "pipe")
    layered.begin()
    layered.remove("pipe")
    layered.remove("d")
    layered.commit()
    assert (layered.root / "pipe").exists()
    assert (layered.root / "d" / "pipe").exists()


def test_what_a_person_removed_since_and_nobody_kept_does_not_come_back_unasked(
    layered: Layered,
) -> None:
    path = layered.root / "large"
    path.write_text("x" * 1_100_000)
    layered.begin()
    layered.put("large", "y\n")
    path.unlink()
    (receipt,) = layered.commit().receipts
    assert receipt.status == "pending"
    assert not path.exists()


def test_what_both_made_the_same_is_no_overlap(layered: Layered) -> None:
    (layered.root / "link").symlink_to("first")
    layered.begin()
    os.symlink("second", upper(layered, "link"))
    (layered.root / "link").unlink()
    (layered.root / "link").symlink_to("second")
    result = layered.commit()
    assert (result.receipts, result.left) == ((), {})
    assert os.readlink(layered.root / "link") == "second"


def test_in_review_what_overlaps_waits_with_the_rest_and_says_so(layered: Layered) -> None:
    for name in ("a.txt", "b.txt"):
        (layered.root / name).write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "program"))
    layered.put("b.txt", TEXT.replace("two", "2"))
    (layered.root / "a.txt").write_text(TEXT.replace("two", "person"))
    (receipt,) = layered.commit("review").receipts
    assert {one.path for one in receipt.files} == {"a.txt", "b.txt"}
    assert receipt.rule == "review mode, changed meanwhile"


@pytest.mark.parametrize(
    ("mode", "new"), [("review", "file/in.txt"), ("auto", "file/AGENTS.md"), ("auto", "folder")]
)
def test_what_is_replaced_by_another_kind_waits_as_a_whole_and_goes_back_as_one(
    layered: Layered, mode: RunMode, new: str
) -> None:
    (layered.root / "file").write_text("of the person\n")
    (layered.root / "folder").mkdir()
    (layered.root / "folder/CLAUDE.md").write_text("of the person\n")
    layered.begin()
    layered.put(new, "new\n")
    layered.put("other.txt", "new\n")
    if new != "folder":
        os.setxattr(upper(layered, "file"), "user.overlay.opaque", b"y")
    before = sorted(layered.root.rglob("*"))
    result = layered.commit(mode)
    assert result.left == {}
    waits = result.receipts[-1]
    assert waits.status == "pending"
    assert sorted(path for path in layered.root.rglob("*") if path.name != "other.txt") == before
    workspace = layered.workspace
    assert workspace is not None
    workspace.approve(waits.operation, Approval(PERSON.actor))
    assert (layered.root / new).read_text() == "new\n"
    workspace.undo(PERSON, waits.operation)
    assert sorted(path for path in layered.root.rglob("*") if path.name != "other.txt") == before


def test_a_file_that_cannot_be_read_stays_and_the_others_are_committed(layered: Layered) -> None:
    layered.begin()
    os.symlink("x" * 3000, upper(layered, "long"))
    layered.put("good.txt", "good\n")
    with open(upper(layered, "large"), "wb") as stream:
        os.truncate(stream.fileno(), 1 << 40)
    result = layered.commit()
    assert "large" in result.left
    assert (layered.root / "good.txt").read_text() == "good\n"


def test_what_a_snapshot_saw_after_a_change_is_not_what_the_program_started_from(
    layered: Layered,
) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin(snapshot=False)
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.write_text(TEXT.replace("six", "6"))
    assert layered.workspace is not None
    layered.workspace.external.snapshot()
    (receipt,) = layered.commit().receipts
    assert (receipt.status, receipt.rule) == ("pending", "changed meanwhile")
    assert path.read_text() == TEXT.replace("six", "6")


@administrator
def test_a_file_that_is_too_large_to_come_back_is_not_removed_with_its_folder(
    layered: Layered,
) -> None:
    (layered.root / "d").mkdir()
    with (layered.root / "d" / "large").open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 40)
    layered.begin()
    layered.remove("d")
    committed = layered.commit()
    assert "d/large" in str((committed.left, committed.notes))
    assert (layered.root / "d" / "large").exists()


# -- while the program goes on -----------------------------------------------------------------


def test_what_was_committed_is_not_committed_again_while_a_program_goes_on(
    layered: Layered,
) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    os.mkdir(upper(layered, "empty"))
    assert len(layered.commit_going_on().receipts) == 1
    assert layered.commit_going_on().receipts == ()


def test_the_next_change_starts_from_what_was_committed_last(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    layered.commit_going_on()
    path.write_text(path.read_text().replace("six", "6"))
    layered.put("a.txt", TEXT.replace("two", "zwei"))
    (receipt,) = layered.commit_going_on().receipts
    assert receipt.status == "applied"
    assert path.read_text() == TEXT.replace("two", "zwei").replace("six", "6")


def test_what_is_asked_about_waits_in_the_layer_until_the_program_has_ended(
    layered: Layered,
) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    layered.begin()
    layered.put(".env", "TOKEN=1\n")
    layered.put("a.txt", TEXT.replace("two", "program"))
    (layered.root / "a.txt").write_text(TEXT.replace("two", "person"))
    assert layered.commit_going_on().receipts == ()
    assert layered.record is not None
    assert {one.path for one in layered.record.waiting} == {".env", "a.txt"}
    assert not layered.record.states
    assert {one.status for one in layered.commit().receipts} == {"pending"}


def test_what_a_merge_did_not_leave_to_the_journal_is_kept_with_the_run(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.write_text(TEXT.replace("six", "6"))
    layered.commit_going_on()
    # What the layer holds was never a state of the root, so that no journal has it.
    layered.put("a.txt", TEXT.replace("two", "2").replace("four", "4"))
    (receipt,) = layered.commit_going_on().receipts
    assert receipt.status == "applied"
    assert path.read_text() == TEXT.replace("two", "2").replace("six", "6").replace("four", "4")


def test_where_nobody_has_what_was_committed_any_more_the_next_change_waits(
    layered: Layered,
) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.write_text(TEXT.replace("six", "6"))
    layered.commit_going_on()
    assert layered.run is not None
    for kept in Path(layered.run.path, "kept").iterdir():
        kept.unlink()
    layered.put("a.txt", TEXT.replace("two", "2").replace("four", "4"))
    assert layered.commit_going_on().receipts == ()
    assert path.read_text() == TEXT.replace("two", "2").replace("six", "6")
    assert layered.record is not None
    assert {one.path for one in layered.record.waiting} == {"a.txt"}


@administrator
def test_what_a_person_makes_where_a_program_removed_something_stays(layered: Layered) -> None:
    (layered.root / "a.txt").write_text("a\n")
    (layered.root / "d").mkdir()
    (layered.root / "d" / "b.txt").write_text("b\n")
    layered.begin()
    layered.remove("a.txt")
    layered.remove("d")
    layered.commit_going_on()
    assert [*layered.root.iterdir()] == []
    (layered.root / "a.txt").write_text("mine\n")
    (layered.root / "d").mkdir()
    (layered.root / "d" / "b.txt").write_text("mine\n")
    assert layered.commit_going_on().receipts == ()
    assert (layered.root / "a.txt").read_text() == "mine\n"
    assert (layered.root / "d" / "b.txt").read_text() == "mine\n"


@pytest.mark.parametrize("new", [False, True])
def test_a_folder_that_a_person_removed_comes_back_only_with_what_comes_into_it(
    layered: Layered, *, new: bool
) -> None:
    folder = layered.root / "d"
    folder.mkdir(mode=0o700)
    (folder / "f").write_text(TEXT)
    layered.begin()
    layered.put("d/f", TWO)
    if new:
        layered.put("d/new", "new\n")
    os.chmod(upper(layered, "d"), 0o700)
    os.setxattr(upper(layered, "d"), "user.overlay.origin", b"")
    shutil.rmtree(folder)
    *done, waits = layered.commit().receipts
    assert (len(done), waits.status) == (new, "pending")
    assert {*layered.root.rglob("*")} == ({folder, folder / "new"} if new else set())
    assert layered.workspace is not None
    layered.workspace.approve(waits.operation, Approval(PERSON.actor))
    assert (folder / "f").read_text() == TWO
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_a_person_removed_is_not_made_once_more(layered: Layered) -> None:
    layered.begin()
    os.mkdir(upper(layered, "empty"))
    layered.commit_going_on()
    (layered.root / "empty").rmdir()
    assert layered.commit_going_on().receipts == ()
    assert not (layered.root / "empty").exists()


def test_what_a_person_puts_into_a_folder_that_a_program_made_anew_stays(
    layered: Layered,
) -> None:
    (layered.root / "d" / "deep").mkdir(parents=True)
    (layered.root / "d" / "old.txt").write_text("old\n")
    layered.begin()
    layered.put("d/new.txt", "new\n")
    os.setxattr(upper(layered, "d"), "user.overlay.opaque", b"y")
    layered.commit_going_on()
    assert [one.name for one in (layered.root / "d").iterdir()] == ["new.txt"]
    (layered.root / "d" / "mine.txt").write_text("mine\n")
    layered.put("d/more.txt", "more\n")
    layered.commit_going_on()
    assert {one.name for one in (layered.root / "d").iterdir()} == {
        *("mine.txt", "more.txt", "new.txt")
    }
    assert layered.record is not None
    assert [one.path for one in layered.record.whole] == ["d"]


@administrator
def test_a_link_that_came_where_a_program_removed_a_file_and_made_another_stays(
    layered: Layered,
) -> None:
    (layered.root / "a.txt").write_text("a\n")
    layered.begin()
    layered.remove("a.txt")
    layered.commit_going_on()
    (layered.root / "a.txt").symlink_to("elsewhere")
    os.unlink(upper(layered, "a.txt"))
    layered.put("a.txt", "program\n")
    assert layered.commit_going_on().receipts == ()
    assert os.readlink(layered.root / "a.txt") == "elsewhere"


def test_permissions_of_folders_are_committed_and_taken_back(layered: Layered) -> None:
    (layered.root / "there").mkdir(mode=0o755)
    layered.begin()
    assert layered.run is not None
    assert layered.workspace is not None
    upper = Path(layered.run.layers()[0].upper)
    layered.put("keys/deep/id", "k\n")
    layered.put("there/f", "f\n")
    for name, mode in (("keys", 0o700), ("keys/deep", 0o750), ("there", 0o700)):
        (upper / name).chmod(mode)
    result = layered.commit()
    assert (result.left, result.notes) == ({}, ())
    modes = {
        name: (layered.root / name).stat().st_mode & 0o777
        for name in ("keys", "keys/deep", "there")
    }
    assert modes == {"keys": 0o700, "keys/deep": 0o750, "there": 0o700}
    layered.workspace.undo(PERSON)
    assert [*layered.root.iterdir()] == [layered.root / "there"]
    assert (layered.root / "there").stat().st_mode & 0o777 == 0o755


def test_empty_folders_that_go_are_not_all_taken_for_the_one_that_comes(layered: Layered) -> None:
    for name in ("one", "two"):
        (layered.root / name).mkdir()
    layered.begin()
    assert layered.workspace is not None
    os.makedirs(upper(layered, "new/deep"))
    for name in ("one", "two"):
        layered.remove(name)
    assert layered.commit().left == {}
    assert [*layered.root.rglob("*")] == [layered.root / "new", layered.root / "new/deep"]
    layered.workspace.undo(PERSON)
    assert sorted(one.name for one in layered.root.rglob("*")) == ["one", "two"]


def test_a_folder_that_its_maker_may_not_open_stays_closed(layered: Layered) -> None:
    layered.begin()
    Path(upper(layered, "closed")).mkdir(mode=0)
    result = unprivileged(layered.commit)
    assert result.left == {}
    assert (layered.root / "closed").stat().st_mode & 0o7777 == 0


@pytest.mark.parametrize("snapshot", ["before", "none", "late"])
def test_permissions_that_somebody_changed_since_stay(layered: Layered, *, snapshot: str) -> None:
    """With a snapshot it is known what the program has changed, else it may not even be the program."""
    (layered.root / "there").mkdir(mode=0o755)
    layered.begin(snapshot=snapshot == "before")
    assert layered.run is not None
    assert layered.workspace is not None
    layered.put("there/f", "f\n")
    copied = os.stat(upper(layered, "there")).st_ctime_ns
    while (layered.root / "there").stat().st_ctime_ns <= copied:  # by the clock of the disk
        (layered.root / "there").chmod(0o750)
    if snapshot == "late":
        layered.workspace.external.snapshot()
    Path(upper(layered, "there")).chmod(0o700 if snapshot == "none" else 0o755)
    result = layered.commit()
    assert result.left == {}
    assert len(result.notes) == (snapshot != "before")
    assert (layered.root / "there").stat().st_mode & 0o777 == 0o750


def test_permissions_of_a_folder_are_committed_again_and_again(layered: Layered) -> None:
    (layered.root / "there").mkdir(mode=0o755)
    layered.begin(snapshot=False)
    layered.put("there/f", "f\n")
    for mode in (0o755, 0o750, 0o700, 0o711):
        Path(upper(layered, "there")).chmod(mode)
        assert layered.commit_going_on().notes == ()
        assert (layered.root / "there").stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_a_program_gave_away_is_given_away(layered: Layered) -> None:
    for name in ("there", "again"):
        (layered.root / name).write_text("old\n")
    (layered.root / "folder").mkdir()
    layered.begin()
    assert layered.workspace is not None
    for name in ("there", "again"):
        layered.put(name, "new\n")
    Path(upper(layered, "folder")).mkdir()
    os.setxattr(upper(layered, "there"), "user.overlay.origin", b"")  # as a copied file has it
    for name in ("there", "again", "folder"):
        os.chown(upper(layered, name), 4321, 4321)
    assert [one.partition(":")[0] for one in layered.commit().notes] == ["again"]
    owners = [(layered.root / name).stat().st_uid for name in ("there", "again", "folder")]
    assert owners == [4321, 0, 4321]
    layered.workspace.undo(PERSON)
    assert [(layered.root / name).stat().st_uid for name in ("there", "folder")] == [0, 0]


def test_times_that_a_program_gives_are_committed(layered: Layered) -> None:
    for name in ("touched", "edited", "saved"):
        (layered.root / name).write_text(TEXT)
    layered.begin()
    assert layered.workspace is not None
    (layered.root / "saved").write_text(TEXT.replace("six", "6"))
    layered.put("touched", TEXT)
    for name in ("edited", "saved", "made/new"):
        layered.put(name, TEXT.replace("two", "2"))
    for name in ("touched", "edited", "saved", "made/new", "made"):
        os.utime(upper(layered, name), ns=(10**18, 10**18))
    result = layered.commit()
    assert (result.left, [len(one.files) for one in result.receipts]) == ({}, [4])
    times = {
        str(one.relative_to(layered.root)): one.stat().st_mtime_ns
        for one in layered.root.rglob("*")
    }
    now = times.pop("saved")  # where lines of the person are among them
    assert now > 10**18
    assert times == dict.fromkeys(("touched", "edited", "made", "made/new"), 10**18)
    layered.workspace.undo(PERSON)
    # Programs that go by times see that it has changed again.
    assert (layered.root / "edited").stat().st_mtime_ns >= now


def moved(layered: Layered, old: str, new: str) -> None:
    """Move a file in the layer, as an overlay would."""
    target = Path(upper(layered, new))
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(layered.root / old, target)
    layered.remove(old)


def test_an_executable_file_that_is_moved_is_moved_at_once(layered: Layered) -> None:
    (layered.root / "tool").write_text("#!/bin/sh\n")
    (layered.root / "tool").chmod(0o4755)
    inode = (layered.root / "tool").stat().st_ino
    layered.begin()
    moved(layered, "tool", "bin/run")
    result = layered.commit()
    assert (result.left, [one.status for one in result.receipts]) == ({}, ["applied"])
    assert not (layered.root / "tool").exists()
    status = (layered.root / "bin/run").stat()
    assert (status.st_ino, status.st_mode & 0o7777) == (inode, 0o4755)


def test_a_folder_that_is_moved_stays_while_what_lies_in_it_waits(layered: Layered) -> None:
    (layered.root / "old").mkdir()
    (layered.root / "old/h").write_text("deep\n")
    layered.begin()
    layered.put("new/h", "deep\n")
    Path(upper(layered, "new/h")).chmod(0o744)
    shutil.copystat(layered.root / "old", upper(layered, "new"))
    layered.remove("old")
    result = layered.commit()
    assert [one.status for one in result.receipts] == ["applied", "pending"]
    assert (layered.root / "old/h").read_text() == "deep\n"
    assert [*(layered.root / "new").iterdir()] == []


def test_of_a_manifest_what_steers_waits_and_what_does_not_is_done(layered: Layered) -> None:
    said, runs = ('"A shop"', '"Small"'), ('"build": "tsc"', '"build": "x"')
    for name in ("a", "b"):
        (layered.root / name).mkdir()
        (layered.root / name / "package.json").write_text(PACKAGE)
    layered.begin()
    layered.put("a/package.json", PACKAGE.replace(*said))
    layered.put("b/package.json", PACKAGE.replace(*runs))
    done, waits = layered.commit().receipts
    assert [done.status, waits.status] == ["applied", "pending"]
    assert [one.path for one in done.files] == ["a/package.json"]


def test_what_was_merged_into_a_manifest_is_judged_as_it_is_written(layered: Layered) -> None:
    before = '{\n"description": "one",\n"a": 1,\n"b": 2,\n"c": 3\n}\n'
    there = before.replace("{\n", '{"scripts": {\n').replace("3\n}", "3\n}}")
    (layered.root / "package.json").write_text(before)
    layered.begin()
    layered.put("package.json", before.replace('"one"', '"two"'))
    # A person has made a script of what was a description.
    (layered.root / "package.json").write_text(there)
    (receipt,) = layered.commit().receipts
    assert receipt.status == "pending"
    assert (layered.root / "package.json").read_text() == there


@pytest.mark.parametrize("text", ["{}\n", '{"one": 1,\n"two": 2}\n'])
def test_both_ends_of_a_move_wait_or_none(layered: Layered, text: str) -> None:
    was = '{"one": 1,\n"two": 3}\n' if "one" in text else text
    (layered.root / "data.json").write_text(was)
    layered.begin()
    assert layered.workspace is not None
    moved(layered, "data.json", "package.json")
    Path(upper(layered, "package.json")).write_text(text)
    (receipt,) = layered.commit().receipts
    assert (receipt.status, len(receipt.files)) == ("pending", 2)
    assert [one.name for one in layered.root.iterdir()] == ["data.json"]
    layered.workspace.approve(receipt.operation, Approval(PERSON.actor))
    assert [one.name for one in layered.root.iterdir()] == ["package.json"]
    assert (layered.root / "package.json").read_text() == text


def test_what_is_moved_to_a_name_that_is_denied_stays_under_both(layered: Layered) -> None:
    (layered.root / "data").write_text("A=1\n")
    layered.begin()
    moved(layered, "data", "zero\u200dwidth")
    layered.put("other", "other\n")
    result = layered.commit()
    assert sorted(result.left) == ["data", "zero\u200dwidth"]
    assert sorted(one.name for one in layered.root.iterdir()) == ["data", "other"]


def test_names_that_are_no_utf_8_are_committed_and_taken_back(layered: Layered) -> None:
    (layered.root / "old").mkdir()
    (layered.root / "old/d\udcff").write_text("d\n")
    layered.begin()
    assert layered.workspace is not None
    layered.put("new\udcfe/e\udcfd", "e\n")
    layered.put("zero\u200dwidth", "nothing tells it from another\n")
    shutil.copytree(layered.root / "old", upper(layered, "away"))
    layered.remove("old")
    result = layered.commit()
    assert [*result.left] == ["zero\u200dwidth"]
    assert (layered.root / "new\udcfe/e\udcfd").read_text() == "e\n"
    assert (layered.root / "away/d\udcff").read_text() == "d\n"
    layered.workspace.undo(PERSON)
    assert [str(one.relative_to(layered.root)) for one in sorted(layered.root.rglob("*"))] == [
        "old",
        "old/d\udcff",
    ]


@pytest.mark.parametrize(
    ("was", "made", "waits"),
    [
        (0o4755, 0o600, False),  # closed, with its own set-user-id bit gone
        (0o4755, 0o4700, False),
        (0o644, 0o1644, False),
        (0o755, 0o4755, True),
        (0o2755, 0o6755, True),
    ],
)
def test_a_set_id_bit_that_a_program_adds_waits_for_a_person(
    layered: Layered, was: int, made: int, *, waits: bool
) -> None:
    there = layered.root / "there"
    there.write_text("old\n")
    there.chmod(was)
    layered.begin()
    assert layered.run is not None
    assert layered.workspace is not None
    layered.put("there", "old\n")
    (Path(layered.run.layers()[0].upper) / "there").chmod(made)
    result = layered.commit()
    assert (result.left, result.notes) == ({}, ())
    assert there.stat().st_mode & 0o7777 == (was if waits else made)
    (receipt,) = result.receipts
    assert (receipt.status == "pending") == waits
    if waits:
        layered.workspace.approve(receipt.operation, Approval(PERSON.actor))
        assert there.stat().st_mode & 0o7777 == made
    layered.workspace.undo(PERSON)
    assert there.stat().st_mode & 0o7777 == was


def test_a_file_that_cannot_be_written_keeps_no_other_from_being_committed(
    layered: Layered,
) -> None:
    (layered.root / "locked").write_text("old\n")
    (layered.root / "locked").chmod(0o444)
    layered.begin()
    assert layered.run is not None
    for name in ("locked", "one", "two"):
        layered.put(name, "new\n")
    (Path(layered.run.layers()[0].upper) / "locked").chmod(0o444)
    result = layered.commit()
    assert list(result.left) == ["locked"]
    assert (layered.root / "locked").read_text() == "old\n"
    assert [(layered.root / name).read_text() for name in ("one", "two")] == ["new\n"] * 2


def test_another_name_of_a_file_keeps_what_it_held_as_the_program_saw_it(layered: Layered) -> None:
    (layered.root / "a.txt").write_text(TEXT)
    (layered.root / "mine.txt").hardlink_to(layered.root / "a.txt")
    layered.begin()
    layered.put("a.txt", "other\n")
    assert layered.commit().receipts
    assert (layered.root / "a.txt").read_text() == "other\n"
    assert (layered.root / "mine.txt").read_text() == TEXT


def test_a_link_that_leads_elsewhere_is_committed_and_taken_back(layered: Layered) -> None:
    (layered.root / "current").symlink_to("r1")
    layered.begin()
    assert layered.run is not None
    assert layered.workspace is not None
    os.symlink("r2", Path(layered.run.layers()[0].upper) / "current")
    layered.put("after", "after\n")
    result = layered.commit()
    assert result.left == {}
    assert os.readlink(layered.root / "current") == "r2"
    assert len(result.receipts) == 1
    layered.workspace.undo(Session("p", Actor("person", "p")))
    assert os.readlink(layered.root / "current") == "r1"
    assert not (layered.root / "after").exists()


def test_a_folder_that_is_to_be_a_file_waits_whole_while_somebody_keeps_something_in_it(
    layered: Layered,
) -> None:
    (layered.root / "d").mkdir()
    (layered.root / "d/k").write_text("k\n")
    layered.begin()
    layered.put("d", "a file now\n")
    layered.put("other", "other\n")
    (layered.root / "d/k").write_text("mine\n")
    result = layered.commit()
    assert list(result.left) == ["d"]
    assert (layered.root / "d/k").read_text() == "mine\n"
    assert (layered.root / "other").read_text() == "other\n"
