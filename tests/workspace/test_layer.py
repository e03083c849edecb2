"""Layers become change sets: what each started from, what others did meanwhile, and what may be done."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact.fs.overlay import RunFolder, layer_entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.workspace.layer import LayerResult, RunMode
    from filepact.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers are those of overlays")

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
SESSION = Session("run-1", Actor("agent", "sh"))


class Layered:
    """A root with a layer that a test fills by hand, as an overlay would."""

    def __init__(self, base: Path) -> None:
        self.root, self.state = base / "root", base / "state"
        self.root.mkdir()
        self.workspace: Workspace | None = None
        self.run: RunFolder | None = None

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
        layers = self.workspace.layers()
        return layers.commit(SESSION, self.run.layers(), began=began, mode=mode, tool="sh")


@pytest.fixture
def layered(tmp_path: Path) -> Iterator[Layered]:
    one = Layered(tmp_path)
    yield one
    if one.workspace is not None:
        one.workspace.close()


def test_what_a_person_changed_since_is_merged(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.write_text(TEXT.replace("six", "6"))
    (receipt,) = layered.commit().receipts
    assert receipt.status == "applied"
    assert path.read_text() == TEXT.replace("two", "2").replace("six", "6")


def test_a_file_that_the_program_only_touched_keeps_what_a_person_wrote(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT)
    path.write_text("mine\n")
    assert layered.commit().receipts == ()
    assert path.read_text() == "mine\n"


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


def test_a_file_that_a_person_made_meanwhile_is_not_replaced(layered: Layered) -> None:
    layered.begin()
    layered.put("a.txt", "program\n")
    (layered.root / "a.txt").write_text("person\n")
    (receipt,) = layered.commit().receipts
    assert receipt.status == "pending"
    assert (layered.root / "a.txt").read_text() == "person\n"


def test_a_file_that_a_person_removed_is_brought_back_only_by_a_person(layered: Layered) -> None:
    path = layered.root / "a.txt"
    path.write_text(TEXT)
    layered.begin()
    layered.put("a.txt", TEXT.replace("two", "2"))
    path.unlink()
    (receipt,) = layered.commit().receipts
    assert receipt.status == "pending"
    assert not path.exists()


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
