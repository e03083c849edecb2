"""The program that an agent starts as its server of file tools: it joins two pipes and a socket.

It is run by its path, without the rest of the package and without anything from the folder that
the agent works in, so that it starts at once and nothing there can take its place.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_CHUNK = 1 << 16


def main(arguments: list[str]) -> int:
    """Join standard input and output to the socket; 0 when either end was closed."""
    address, token = arguments
    joined = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        joined.connect(address)
    except OSError as error:
        sys.stderr.write(f"filepact: its program has ended ({error.strerror})\n")
        return 1
    joined.sendall(token.encode() + b"\n")

    def send() -> None:
        try:
            while data := os.read(0, _CHUNK):
                joined.sendall(data)
            joined.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=send, daemon=True).start()
    while data := joined.recv(_CHUNK):
        while data:
            data = data[os.write(1, data) :]
    return 0


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except OSError:
        status = 0  # who asked has gone
    os._exit(status)  # the other thread may wait for input for ever
