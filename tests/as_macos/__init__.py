"""Linux without what macOS does not have: a stand-in, for finding what would break there.

``python -m tests.as_macos WORDS...`` runs Python with these words, and all that it starts, where

- calls that Linux alone has answer that there are none, by a filter of the kernel (seccomp),
- names that Python lacks on macOS are gone, ``sys.platform`` is ``darwin``, and ``/proc`` is empty,
- the C library has `renameatx_np`, `getattrlistat` and the like: `macos.c`, which maps them to Linux's.

It is no proof that something works on macOS: the file system, the kernel and the C library are others there.
"""

from __future__ import annotations

import platform
import shutil
import site
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COVER = 'mkdir "$0"; mount --bind /proc "$0"; mount -t tmpfs none /proc; exec "$@"'


def missing() -> str:
    """What is missing here for the stand-in; empty where it can be had."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        return "the stand-in is made of Linux"
    return "" if shutil.which("cc") else "no C compiler here"


def build(folder: Path) -> Path:
    """Compile the C library's part, into a folder."""
    made = folder / "macos.so"
    # Its functions call each other, and not those of the same name that Linux has.
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wl,-Bsymbolic"]
    command += ["-o", str(made), str(HERE / "macos.c")]
    subprocess.run(command, check=True, capture_output=True)
    return made


def python(folder: Path) -> list[str]:
    """The words that start a Python in the stand-in, made in a folder; ``/proc`` is covered where this user may.

    An environment of its own, since an isolated Python is led there by nothing else.
    """
    build(folder)
    packages = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    (folder / "bin" / "python").symlink_to(base)
    for one in Path(sys.executable).parent.iterdir():
        if not one.name.startswith("python"):
            (folder / "bin" / one.name).symlink_to(one)
    (folder / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    for name in ("sitecustomize.py", "macos_fcntl.py", "_scproxy.py"):
        (packages / name).symlink_to(HERE / name)
    places = site.getsitepackages()
    (packages / "those.pth").write_text(f"import site; [*map(site.addsitedir, {places!r})]\n")
    words = [str(folder / "bin" / "python")]
    apart = ["unshare", "--mount", "sh", "-euc"]
    if shutil.which(apart[0]) is None:
        return words
    tried = subprocess.run([*apart, "mount -t tmpfs none /proc"], check=False, capture_output=True)
    return words if tried.returncode else [*apart, COVER, str(folder / "proc"), *words]
