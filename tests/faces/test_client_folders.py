"""A client that works in a folder below the one that a person configured."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faces.line_client import PATIENCE, LineClient, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "pkg" / "inner").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "top.txt").write_text("needle at the top\n")
    (folder / "other" / "o.txt").write_text("needle elsewhere\n")
    (folder / "pkg" / "a.txt").write_text("one\nneedle\n")
    (folder / "pkg" / "inner" / "b.txt").write_text("needle\n")
    return folder


def tell(client: LineClient, *folders: Path | str) -> None:
    """Answer the question for the client's folders."""
    question = client.asked.get(timeout=PATIENCE)
    shared = [{"uri": one if isinstance(one, str) else one.as_uri()} for one in folders]
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": shared}})


@contextmanager
def working_in(root: Path, *folders: Path | str) -> Iterator[LineClient]:
    """A client of a real server, whose own folders are these."""
    words = ("mcp", str(root), "--state", str(root.parent / "state"))
    with serving(*words) as (process, client):
        client.shake_hands(roots={})
        tell(client, *folders)
        yield client
    assert process.returncode == 0


def test_every_tool_works_from_the_clients_folder_without_naming_it(root: Path) -> None:
    with working_in(root, root / "pkg") as client:
        tree = client.text("directory_tree")
        assert tree.startswith(".\n")
        assert "a.txt" in tree
        assert "top.txt" not in tree
        assert client.text("search_files", pattern="*.txt").startswith("a.txt\ninner/b.txt\n[2 ")
        found = client.text("grep", pattern="needle")
        assert re.findall(r"^(.+):\d+:", found, flags=re.MULTILINE) == ["a.txt", "inner/b.txt"]
        assert "needle" in client.text("read_file", path="a.txt")
        edit = {"path": "a.txt", "old_string": "one", "new_string": "1"}
        assert "edit a.txt, line 1" in client.text("edit_file", **edit)
        patch = "--- a/inner/b.txt\n+++ b/inner/b.txt\n@@ -1 +1 @@\n-needle\n+pin\n"
        assert not client.call("patch_apply", patch=patch)["isError"]
        assert not client.call("write_file", path="new.txt", content="new\n")["isError"]
    assert (root / "pkg" / "a.txt").read_text() == "1\nneedle\n"
    assert (root / "pkg" / "inner" / "b.txt").read_text() == "pin\n"
    assert (root / "pkg" / "new.txt").read_text() == "new\n"
    assert not (root / "new.txt").exists()


def test_names_from_the_configured_folder_and_whole_names_are_understood(root: Path) -> None:
    with working_in(root, root / "pkg") as client:
        for path in ("pkg/a.txt", str(root / "pkg" / "a.txt")):
            assert "needle" in client.text("read_file", path=path)
            edit = {"path": path, "old_string": "needle", "new_string": "needle", "dry_run": True}
            assert "NO_CHANGE" in client.text("edit_file", **edit)
        assert "b.txt" in client.text("search_files", pattern="*", directory="pkg/inner")
        patch = "--- a/pkg/inner/b.txt\n+++ b/pkg/inner/b.txt\n@@ -1 +1 @@\n-needle\n+pin\n"
        assert not client.call("patch_apply", patch=patch)["isError"]
        assert (root / "pkg" / "inner" / "b.txt").read_text() == "pin\n"
        # Nothing new is put where only a guess would have it.
        made = client.call("write_file", path="pkg/a.txt", content="x", createDirs=True)
        assert not made["isError"]
    assert (root / "pkg" / "a.txt").read_text() == "one\nneedle\n"
    assert (root / "pkg" / "pkg" / "a.txt").read_text() == "x"


def test_a_refusal_names_the_clients_folders(root: Path) -> None:
    with working_in(root, root / "pkg", root / "other") as client:
        for path in ("../top.txt", str(root / "top.txt"), "/etc/passwd"):
            answer = client.call("read_file", path=path)
            assert answer["isError"], path
            text = answer["content"][0]["text"]
            assert text.startswith("PATH_BLOCKED")
            assert str(root / "pkg") in text
            assert str(root / "other") in text
        # The second folder's files are shown by names that can be sent.
        found = client.text("search_files", pattern="*", directory=str(root / "other"))
        assert "elsewhere" in client.text("read_file", path=found.partition("\n")[0])


def test_folders_outside_the_configured_one_change_nothing(root: Path, tmp_path: Path) -> None:
    with working_in(root, tmp_path / "far") as client:
        assert "needle" in client.text("read_file", path="top.txt")
        assert "pkg" in client.text("directory_tree")


@pytest.mark.parametrize("told", ["file:pkg", "pkg", "file://${workspaceFolder}", "file:///p%00"])
def test_a_folder_that_nobody_can_place_is_named_and_nothing_is_served(
    root: Path, tmp_path: Path, told: str
) -> None:
    with working_in(root, told, tmp_path / "far") as client:
        call = client.begin("tools/call", {"name": "read_file", "arguments": {"path": "top.txt"}})
        tell(client, told, tmp_path / "far")
        answer = client.answer(call)["result"]
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("FOLDERS_UNKNOWN")
        assert told in answer["content"][0]["text"]
