"""The command, with a record of the functions and system calls that a part of its work takes.

    python bench/traced.py SOCKET ARGUMENTS...

It connects to the socket, runs ``filepact ARGUMENTS``, and answers there: ``on`` begins a record,
``off`` ends it and sends it as one line of JSON.  See `call_path.py`.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filepact

if TYPE_CHECKING:
    from types import CodeType, FrameType

_OURS = str(Path(filepact.__file__).parent)
_INLINE = ("comp>", "genexpr>")
_SYSTEM = frozenset({"posix", "fcntl", "_hashlib"})


class Recorder:
    """A profile function for all threads; it costs little while nothing is recorded."""

    def __init__(self) -> None:
        self._on = False
        # Appending is atomic, counting is not.
        self._calls: list[tuple[CodeType, CodeType | None]] = []
        self._system: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._on:
            return
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            above = frame.f_back
            while above is not None and not above.f_code.co_filename.startswith(_OURS):
                above = above.f_back
            self._calls.append((frame.f_code, None if above is None else above.f_code))
        elif event == "c_call" and argument.__module__ in _SYSTEM:
            self._system.append(argument.__name__)

    def begin(self) -> None:
        self._calls, self._system = [], []
        self._on = True

    def end(self) -> dict[str, Any]:
        self._on = False
        made = [one for one in self._calls if not one[0].co_name.endswith(_INLINE)]
        calls = Counter(f"{_module(code)}:{code.co_qualname}" for code, _ in made)
        pairs = [(code, above) for code, above in made if above is not None]
        changes = sum(code.co_filename != above.co_filename for code, above in pairs)
        return {"calls": calls, "system": Counter(self._system), "changes": changes}


def _module(code: CodeType) -> str:
    name = code.co_filename.removeprefix(f"{_OURS}/").removesuffix(".py")
    return name.replace("/", ".")


def _serve(line: socket.socket, recorder: Recorder) -> None:
    with line, line.makefile("rw", encoding="utf-8") as stream:
        for order in stream:
            if order.strip() == "on":
                recorder.begin()
                stream.write("{}\n")
            else:
                stream.write(json.dumps(recorder.end()) + "\n")
            stream.flush()


def main() -> int:
    line = socket.socket(socket.AF_UNIX)
    line.connect(sys.argv.pop(1))
    recorder = Recorder()
    threading.Thread(target=_serve, args=(line, recorder), daemon=True).start()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    from filepact.faces.cli import run  # noqa: PLC0415 - only now is it traced

    return run()


if __name__ == "__main__":
    sys.exit(main())
