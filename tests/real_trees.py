"""Sources of other people's projects, fetched as packages, for deep checks and benchmarks.

They are pinned and kept in ``.trees`` beside the project file.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.fetching import PIP, fetch, unpack
from tests.node_programs import install

__all__ = ["django", "zod"]

_FOLDER = Path(__file__).resolve().parent.parent / ".trees"
_DJANGO = (
    "Django==5.2 --hash=sha256:1a47f7a7a3d43ce64570d350e008d2949abe8c7e21737b351b6a1611277c6d89"
)
_ZOD_SETTINGS = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext", '
    '"target": "es2022", "noEmit": true}, "include": ["src"]}\n',
    "package.json": '{"name": "tree", "type": "module"}\n',
}


def django() -> Path:
    """The folder of Django's source distribution: 2,800 files of Python, its tests among them.

    Raises:
        FetchError: It cannot be had.
    """
    place = _FOLDER / "django"
    if not place.exists():
        _FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
            wanted = Path(folder) / "wanted.txt"
            wanted.write_text(f"{_DJANGO}\n")
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                *PIP,
                "--no-deps",
                "--require-hashes",
            ]
            command += ["--no-binary", ":all:", "--dest", folder, "-r", str(wanted)]
            fetch(command)
            (archive,) = Path(folder).glob("*.tar.gz")
            unpack(archive, Path(folder))
            (tree,) = (one for one in Path(folder).iterdir() if one.is_dir())
            tree.rename(place)
    return place


def zod(folder: Path) -> None:
    """Put zod's sources, without their tests, into an empty folder: 330 files of TypeScript.

    Raises:
        NodeError: They cannot be had.
    """
    source = install().modules / "zod" / "src"
    hidden = shutil.ignore_patterns("tests", "benchmarks")
    shutil.copytree(source, folder / "src", ignore=hidden)
    for name, text in _ZOD_SETTINGS.items():
        (folder / name).write_text(text)
