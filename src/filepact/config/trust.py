"""The person's trust: which language servers may work for agents, in which folders.

It is kept in the state folder, where no agent can write.  A file that cannot be understood trusts
nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.errors import StateFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ServerTrust", "read_trust", "write_trust"]

_FILE: Final = "trust.json"
_LARGEST: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """What a person has said with `filepact trust`.

    Attributes:
        folders: By a server's name, the folders in which and beneath which it is trusted, absolute.
    """

    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, server: str) -> tuple[str, ...]:
        """The folders in which a server is trusted."""
        return self.folders.get(server, ())

    def given(self, server: str, folder: str) -> ServerTrust:
        """The same, with a server trusted in a folder."""
        return self._with(server, (*self._others(server, folder), folder))

    def withdrawn(self, server: str, folder: str) -> ServerTrust:
        """The same, without a server's trust in a folder."""
        return self._with(server, self._others(server, folder))

    def _others(self, server: str, folder: str) -> tuple[str, ...]:
        return tuple(one for one in self.of(server) if one != folder)

    def _with(self, server: str, folders: tuple[str, ...]) -> ServerTrust:
        changed = {**self.folders, server: folders}
        return ServerTrust({name: some for name, some in changed.items() if some})


def read_trust(state: str) -> ServerTrust:
    """Read what a person trusts.

    Args:
        state: The state folder, which need not be there.
    """
    try:
        with Path(state, _FILE).open("rb") as stream:
            told = json.loads(stream.read(_LARGEST))
        return ServerTrust({str(name): _absolute(some) for name, some in told["servers"].items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ServerTrust()


def _absolute(folders: object) -> tuple[str, ...]:
    if isinstance(folders, list) and all(isinstance(one, str) for one in folders):
        found = tuple(folders)
        if all(one.startswith("/") for one in found):
            return found
    raise ValueError(folders)


def write_trust(state: str, trust: ServerTrust) -> None:
    """Keep what a person trusts; servers that run already learn of it at their next start.

    Args:
        state: The state folder, which is there.
        trust: All of it.

    Raises:
        StateFailedError: It cannot be written; what was there stays.
    """
    told = {"servers": {name: list(some) for name, some in sorted(trust.folders.items())}}
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{_FILE}.", dir=state)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(told, indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(Path(state, _FILE))
    except OSError as error:
        if temporary:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
        raise StateFailedError(
            f"the state folder cannot be written ({error.strerror})",
            hint="Make it writable, or room on its disk, and try again.",
        ) from None
