"""An agent that a test plays: everything it hears goes to a socket, and comes from there."""

import os
import socket
import sys
import threading


def main() -> None:
    far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    far.connect(sys.argv[1])

    def listen() -> None:
        while data := os.read(0, 1 << 16):
            far.sendall(data)
        os._exit(7)

    threading.Thread(target=listen, daemon=True).start()
    while data := far.recv(1 << 16):
        while data:
            data = data[os.write(1, data) :]
    os._exit(7)


main()
