"""The folders that a client of the handshake era works in, which narrow what was configured."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from filepact.wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.faces.wire.lines import Message

__all__ = ["Folders"]

_log = logging.getLogger(__name__)

_WAIT = 1.0  # seconds that calls wait for the client's folders


class Folders:
    """What a client tells of its folders, and the calls that wait for it.

    Args:
        narrow: Told the folders; answers what a person should know of it, if anything.
    """

    def __init__(self, narrow: Callable[[Sequence[str]], str | None]) -> None:
        self._narrow = narrow
        self._settled = threading.Event()
        self._settled.set()

    def asked(self) -> None:
        """The client is being asked: let calls wait from now on."""
        self._settled.clear()

    def wait(self) -> None:
        """Wait until the client has told, or does not seem to; then nobody waits any more."""
        if not self._settled.wait(_WAIT):
            self._settled.set()

    def told(self, answer: Message) -> None:
        """Use the client's answer to ``roots/list``; one that makes no sense changes nothing."""
        try:
            uris = [root["uri"] for root in answer["result"]["roots"]]
            folders = [folder for uri in uris if (folder := path_of(uri)) is not None]
            if folders and (note := self._narrow(folders)):
                _log.warning("%s", note)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            _log.warning("the client did not tell its folders: %s", type(error).__name__)
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            _log.exception("the client's folders could not be used")
        finally:
            self._settled.set()
