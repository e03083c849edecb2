"""A process that starts wardens for one that cannot: that is confined, and all it starts with it.

It was started before, and is not confined.  First it is told what it may start; from then on it
starts nothing else, whoever asks.  It ends when the line to whoever started it breaks.  It runs by
itself and imports nothing of the project: started with ``python -I -S matron.py LINE``.

What comes over the line are pieces with their length, four bytes, before them.  The first is what
was agreed upon, in JSON: ``wardens`` and ``commands`` are lists of words, one of each for a
server; ``roots`` are the folders that may be worked in, and ``environment`` is what servers see.
In a warden's words ``{line}`` stands for the number of its line, in a command ``{root}`` for the
folder.  Each later piece is the number of a server, four bytes, and the name of a folder, and
comes with the warden's ends of the server's input, output and complaints and of its line.  What
goes wrong is said on that line, as a warden says it.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

_ENDS = 4
_LONGEST_AGREEMENT = 16 * 1024 * 1024
_LONGEST_REQUEST = 16 * 1024
_NOT_AGREED = 1  # EPERM


def main(number: int) -> NoReturn:
    """Start what was agreed upon, until the line breaks."""
    # Wardens that have ended need nobody to ask how.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=number) as line, contextlib.suppress(ConnectionError, ValueError):
        agreed = json.loads(_receive(line, _LONGEST_AGREEMENT)[0])
        while True:
            piece, ends = _receive(line, _LONGEST_REQUEST)
            if len(ends) == _ENDS:
                _begin(agreed, int.from_bytes(piece[:4]), piece[4:], ends)
            for end in ends:
                os.close(end)
    os._exit(0)


def _receive(line: socket.socket, longest: int) -> tuple[bytes, list[int]]:
    """The next piece and what came with it; ConnectionError when there is none any more."""
    ends = array.array("i")
    room = socket.CMSG_SPACE(_ENDS * ends.itemsize)
    head, extras, _flags, _sender = line.recvmsg(4, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            ends.frombytes(data[: len(data) - len(data) % ends.itemsize])
    head += _exactly(line, 4 - len(head)) if head else b""
    size = int.from_bytes(head)
    if not head or size > longest:
        raise ConnectionError
    return _exactly(line, size), list(ends)


def _exactly(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return bytes(data)


def _begin(agreed: dict[str, Any], number: int, folder: bytes, ends: list[int]) -> None:
    """Have a child of ours become a warden."""
    place, roots = os.fsdecode(folder), agreed["roots"]
    within = any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)
    if number >= len(agreed["commands"]) or not within or ".." in place.split("/"):
        _say_failed(ends[3], _NOT_AGREED)
        return
    if os.fork():
        return
    try:
        os.setsid()
        os.chdir(folder)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, end in enumerate(ends[:3]):
            os.dup2(end, target)
        os.set_inheritable(ends[3], True)
        warden = [word.replace("{line}", str(ends[3])) for word in agreed["wardens"][number]]
        program, *others = agreed["commands"][number]
        words = [*warden, program, *(word.replace("{root}", place) for word in others)]
        os.execve(words[0], words, agreed["environment"])  # noqa: S606 - what was agreed upon
    except OSError as error:
        _say_failed(ends[3], error.errno or _NOT_AGREED)
    finally:
        os._exit(1)


def _say_failed(line: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.write(line, b"failed %d\n" % number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
