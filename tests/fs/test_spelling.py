"""On volumes where letter case and the form of a letter make no other name, a file has one name all the same.

No such volume can be had everywhere: here the calls of the walk take a name as macOS does.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import PathBlockedError
from filepact.fs import resolve
from filepact.fs.root import Root

if TYPE_CHECKING:
    from pathlib import Path

DECOMPOSED = unicodedata.normalize("NFD", "caf\u00e9")
COMPOSED = unicodedata.normalize("NFC", DECOMPOSED)


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def there(folder: int, name: str) -> str:
    """The name as the disk has it; the same where there is none."""
    return next((one for one in os.listdir(folder) if folded(one) == folded(name)), name)


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root whose names are found in any letter case and form."""

    def folding(call: Any) -> Any:
        def taken(path: Any, *arguments: Any, dir_fd: int | None = None, **options: Any) -> Any:
            if dir_fd is not None and isinstance(path, str) and path not in ("", ".", ".."):
                path = there(dir_fd, path)
            return call(path, *arguments, dir_fd=dir_fd, **options)

        return taken

    for name in ("stat", "open", "readlink"):
        monkeypatch.setattr(os, name, folding(getattr(os, name)))
    monkeypatch.setattr(resolve, "HOLD", 0)
    monkeypatch.setattr(resolve, "FOLDER", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    monkeypatch.setattr(resolve, "spelling", there)
    monkeypatch.setattr(resolve, "FORMS_FOLD", True)
    root = tmp_path / "root"
    (root / "Src").mkdir(parents=True)
    (root / "Src" / "Main.py").write_text("main")
    (root / DECOMPOSED).write_text("coffee")
    (root / "Link").symlink_to("Src/Main.py")
    (root / "Away").symlink_to("/etc")
    return root


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("src/main.py", "Src/Main.py"),
        ("SRC/MAIN.PY", "Src/Main.py"),
        ("Src/Main.py", "Src/Main.py"),
        ("src", "Src"),
        ("LINK", "Src/Main.py"),
        (COMPOSED, DECOMPOSED),
        (COMPOSED.upper(), DECOMPOSED),
    ],
)
def test_a_file_has_the_name_that_its_folder_has_for_it(
    volume: Path, asked: str, name: str
) -> None:
    with Root.open(volume, resolver="walk") as root:
        assert root.place(asked).path == name


def test_a_link_has_the_name_that_its_folder_has_for_it(volume: Path) -> None:
    with Root.open(volume, resolver="walk") as root:
        assert root.place("link", follow=False).path == "Link"


def test_what_is_not_there_keeps_the_name_that_was_asked_for(volume: Path) -> None:
    with Root.open(volume, resolver="walk") as root:
        assert root.place("SRC/new.py").path == "Src/new.py"


def test_a_link_that_leads_out_is_refused_in_any_letters(volume: Path) -> None:
    with Root.open(volume, resolver="walk") as root, pytest.raises(PathBlockedError):
        root.place("AWAY/passwd")
