"""The server with a guard that is broken on purpose: its resolver follows links anywhere.

Arguments: ``on`` or ``off`` for the sandbox, then those of the command.
"""

from __future__ import annotations

import os
import sys

from filepact.faces.cli import run
from filepact.fs import read_only_root, sandbox
from filepact.fs.resolve import Resolution

HANDLE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Anywhere:
    """What a resolver must not be: names are joined to strings, and strings are opened."""

    name = "openat2"

    def __init__(self, top: str) -> None:
        self.top = top

    def find(self, _folder: int, path: str) -> Resolution:
        full = os.path.realpath(os.path.join(self.top, path))
        above, name = os.path.split(full)
        rest = []
        while not os.path.isdir(above):
            above, missing = os.path.split(above)
            rest.insert(0, missing)
        if not os.path.exists(full):
            return Resolution(os.open(above, HANDLE), tuple(rest), name, path, None)
        held = os.open(full, os.O_PATH | os.O_CLOEXEC)
        return Resolution(os.open(above, HANDLE), (), name, path, os.fstat(held), held)

    def open_folder(self, _folder: int, path: str) -> int:
        return os.open(os.path.join(self.top, path), HANDLE)


if __name__ == "__main__":
    read_only_root.choose_resolver = lambda top, *_: Anywhere(top)
    read_only_root.find_exactly = lambda resolver, _border, folder, path: resolver.find(
        folder, path
    )
    if sys.argv.pop(1) == "off":
        sandbox.confine = lambda *_, **__: None
    sys.exit(run())
