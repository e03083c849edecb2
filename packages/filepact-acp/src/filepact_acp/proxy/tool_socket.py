"""The socket at which agents' servers of file tools come in: only this person can reach it."""

from __future__ import annotations

import logging
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact_acp.proxy import stdio_bridge
from filepact_acp.proxy.protocol import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_wire.messages import Message

__all__ = ["ToolSocket"]

_log = logging.getLogger(__name__)

_PREFIX: Final = "filepact-tools-"
_LEFT: Final = 60.0  # seconds after which a folder belongs to nobody who is still starting
_TOKEN_LIMIT: Final = 256
_WAKING: Final = 1.0
_PATIENCE: Final = 10.0  # seconds for a connection to say for which session it is


class ToolSocket:
    """A Unix socket in a folder of its own.

    Args:
        serve: Serves one connection, in a thread of its own: the session's token, and the
            descriptor.
    """

    def __init__(self, serve: Callable[[str, int], None]) -> None:
        self._serve = serve
        _clear_up()
        self._folder = tempfile.mkdtemp(prefix=_PREFIX)
        self._address = str(Path(self._folder, "tools"))
        self._secrets: dict[str, str] = {}
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self._address)
        self._socket.listen()
        self._accepting = threading.Thread(target=self._accept, name="tools-door", daemon=True)
        self._accepting.start()

    def entry(self, token: str) -> Message:
        """The server as a session's request names it."""
        secret = secrets.token_urlsafe(24)
        self._secrets[secret] = token
        return {
            "name": SERVER,
            "command": sys.executable,
            "args": ["-I", "-S", stdio_bridge.__file__, self._address, secret],
            "env": [],
        }

    def forget(self, token: str) -> None:
        """Let nobody in any more for a session."""
        self._secrets = {key: one for key, one in self._secrets.items() if one != token}

    def close(self) -> None:
        """Close the door and end who came in."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        # It lists its last connection before it ends.  Where `shutdown` does not wake `accept`
        # (macOS), nobody is let in any more once the socket is closed.
        self._accepting.join(_WAKING)
        self._socket.close()
        for one in tuple(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(
                target=self._let_in, args=(connection,), name="tools", daemon=True
            )
            self._open.add(connection)
            thread.start()  # before it is listed: `close` joins what the list holds
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    def _let_in(self, connection: socket.socket) -> None:
        with connection:
            try:
                token = self._secrets.get(_first_line(connection))
                if token is not None:
                    self._serve(token, connection.fileno())
            except Exception:  # noqa: BLE001 - one agent's trouble is not the next one's
                _log.exception("the file tools of a session failed")
            finally:
                self._open.discard(connection)


def _first_line(connection: socket.socket) -> str:
    """Read the first line of a connection, and no byte further."""
    connection.settimeout(_PATIENCE)
    said = b""
    with suppress(OSError):
        while len(said) < _TOKEN_LIMIT and not said.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                break
            said += byte
    connection.settimeout(None)
    return said.rstrip(b"\n").decode("ascii", "replace")


def _clear_up() -> None:
    """Remove the folders of proxies that were killed: those whose socket nobody listens at."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            old = time.time() - folder.lstat().st_mtime > _LEFT
            if old and [one.name for one in folder.iterdir()] == ["tools"] and _is_dead(folder):
                shutil.rmtree(folder)


def _is_dead(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.setblocking(False)
        try:
            knock.connect(str(folder / "tools"))
        except ConnectionRefusedError:
            return True
        return False
