"""Whether a file has become what it is after a moment, as far as the times of files and folders tell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from filepact.fs.watch import is_later, stamp_at

if TYPE_CHECKING:
    from filepact.fs.root import Root
    from tests.fs.conftest import Grounds

ALWAYS, NEVER = 0, 1 << 62


@pytest.mark.parametrize(
    ("path", "since", "later"),
    [
        ("src/main.py", ALWAYS, True),
        ("src/main.py", NEVER, False),
        # Of one that is gone the nearest folder tells.
        ("src/gone.py", ALWAYS, True),
        ("src/gone.py", NEVER, False),
        ("gone/deep/gone.py", ALWAYS, True),
        ("gone/deep/gone.py", NEVER, False),
    ],
)
def test_the_file_tells_or_the_nearest_folder_that_is_there(
    grounds: Grounds, root: Root, path: str, since: int, *, later: bool
) -> None:
    assert is_later(root, path, stamp_at(root, path), since) is later


def test_of_a_file_that_is_there_its_own_times_count_and_not_those_of_its_folder(
    grounds: Grounds, root: Root
) -> None:
    stamp = stamp_at(root, "src/main.py")
    assert stamp is not None
    since = stamp.changed
    while (grounds.root / "src").stat().st_ctime_ns <= since:
        (grounds.root / "src" / "new.py").write_text("x")
        (grounds.root / "src" / "new.py").unlink()
    assert not is_later(root, "src/main.py", stamp, since)
    assert is_later(root, "src/gone.py", None, since)


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_there_in_the_place_of_a_folder_tells_when_that_had_gone(
    grounds: Grounds, root: Root, kind: str
) -> None:
    place = grounds.root / "was"
    if kind == "link":
        place.symlink_to("nowhere")
    else:
        place.mkdir() if kind == "folder" else place.write_text("file\n")
    since = place.lstat().st_ctime_ns
    while grounds.root.stat().st_ctime_ns <= since:
        (grounds.root / "new").write_text("x")
        (grounds.root / "new").unlink()
    for gone in ("was", "was/gone.py", "was/deep/gone.py"):
        assert not is_later(root, gone, None, since)
        assert is_later(root, gone, None, since - 1)


@pytest.mark.parametrize("since", [ALWAYS, NEVER])
@pytest.mark.parametrize(
    ("moved", "sure", "later"),
    [
        (True, True, True),
        (True, False, True),
        (False, True, True),
        # A name came into the folder last, which may have been this one before.
        (False, False, False),
    ],
)
def test_of_a_file_that_came_with_a_folder_the_folders_above_it_tell(
    grounds: Grounds, root: Root, since: int, *, moved: bool, sure: bool, later: bool
) -> None:
    folder = grounds.root / "src"
    while folder.stat().st_mtime_ns != folder.stat().st_ctime_ns:
        (folder / "new.py").write_text("x")
        (folder / "new.py").unlink()
    while moved and folder.stat().st_mtime_ns == folder.stat().st_ctime_ns:
        folder.rename(grounds.root / "away")
        (grounds.root / "away").rename(folder)
    stamp = stamp_at(root, "src/main.py")
    found = is_later(root, "src/main.py", stamp, since, stood={"."}, sure=sure)
    assert found is (later and since == ALWAYS)
    # A folder that stood there before tells nothing of what came into it.
    assert not is_later(root, "src/main.py", stamp, since, stood={".", "src"}, sure=sure)


def test_the_root_itself_tells_nothing_of_a_file_that_came(grounds: Grounds, root: Root) -> None:
    stamp = stamp_at(root, "README.md")
    assert os.stat(grounds.root).st_ctime_ns > ALWAYS
    assert not is_later(root, "README.md", stamp, ALWAYS, stood={"."})
