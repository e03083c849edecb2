"""Compiles the sources in C beside it into the package while a wheel is built.

Without a compiler the wheel is built all the same; searches then open every file.  `CC` names another
compiler, such as one for another system; `FILEPACT_WHEEL_TAG` the system that the wheel is then for.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "src/filepact/libtrigram.so.1"
FLAGS = ("-O2", "-std=c11", "-shared", "-fPIC", "-fvisibility=default", "-s")


class CustomBuildHook(BuildHookInterface):
    """Called by the build backend."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library, and have it put into the wheel.

        Args:
            version: The kind of the build.
            build_data: What the build backend is told.
        """
        del version
        compiler = shlex.split(os.environ.get("CC", "cc"))
        if not compiler or shutil.which(compiler[0]) is None:
            self.app.display_warning("no C compiler: built without the index of trigrams")
            return
        folder = Path(self.root)
        library, made = folder / LIBRARY, folder / f"{LIBRARY}.{os.getpid()}"
        sources = map(str, sorted((folder / "native").glob("*.c")))
        done = subprocess.run([*compiler, *FLAGS, "-o", str(made), *sources], check=False)
        if done.returncode:
            made.unlink(missing_ok=True)
            self.app.display_warning("built without the index of trigrams")
            return
        # Servers that run have the old one mapped, so that it is replaced and not written to.
        made.replace(library)
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(LIBRARY)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FILEPACT_WHEEL_TAG', here)}"
