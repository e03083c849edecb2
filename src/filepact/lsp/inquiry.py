"""Questions to the servers of a root that nobody has to wait for.

Each server is asked about its own part of the files, and only one that looks from one file at
another about files that did not change themselves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from filepact.lsp.diagnostics import Report
from filepact.lsp.outcome import Preview, Update, UpdateKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future

    from filepact.lsp.pool import Pool
    from filepact.lsp.service import Service

__all__ = ["Inquiry"]

_STARTING = "the server is starting"


class Inquiry:
    """Asks the servers of a pool.

    Args:
        pool: Whose servers.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def ask(
        self,
        root: str,
        files: Mapping[str, str],
        also: Mapping[str, str],
        seconds: float,
        *,
        patient: bool,
    ) -> Future[tuple[Update, ...]]:
        """What all servers find in files, by server.

        Args:
            root: Absolute.
            files: Their texts as they are on the disk, by absolute path.
            also: The same of files that may be found fault with because of those.
            seconds: How long the servers have.
            patient: Whether servers that are starting are waited for; if not, they are started
                all the same.
        """
        parts = self._parts(root, files, also)

        async def one(service: Service, some: Mapping[str, str]) -> Update:
            missing = _missing(service, patient=patient)
            if missing is None:
                return await service.update((), some, seconds)
            told, reports = service.told, _unknown(service, some, missing)
            kind: UpdateKind = "pending" if missing == _STARTING else "failed"
            name = service.server.name
            return Update(name, kind, "none", told, told, reports, None, 0.0, missing)

        async def every() -> tuple[Update, ...]:
            return tuple(await asyncio.gather(*(one(*part) for part in parts)))

        return self._pool.submit(every())

    def propose(
        self,
        root: str,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        seconds: float,
        *,
        patient: bool,
    ) -> Future[tuple[Preview, ...]]:
        """What all servers would find if some files held other texts; nothing of it stays.

        Args:
            root: Absolute.
            proposed: The other texts, by absolute path.
            files: Texts as they are on the disk, of the proposed files that exist and of others
                to ask about.
            seconds: How long the servers have.
            patient: Whether servers that are starting are waited for; if not, they are started
                all the same.
        """
        present = {path: text for path, text in files.items() if path in proposed}
        others = {path: text for path, text in files.items() if path not in proposed}
        known = dict(self._parts(root, present, others))
        parts = [
            (service, some, known.get(service, {}))
            for service, some in self._pool.shares(root, proposed)
        ]

        async def one(service: Service, some: Mapping[str, str], now: Mapping[str, str]) -> Preview:
            missing = _missing(service, patient=patient)
            if missing is None:
                return await service.preview(some, now, seconds)
            reports = _unknown(service, {**now, **some}, missing)
            name = service.server.name
            return Preview(name, reports, reports, None, True, False, 0.0, missing)

        async def every() -> tuple[Preview, ...]:
            return tuple(await asyncio.gather(*(one(*part) for part in parts)))

        return self._pool.submit(every())

    def _parts(
        self, root: str, files: Mapping[str, str], also: Mapping[str, str]
    ) -> list[tuple[Service, dict[str, str]]]:
        """Each server's part of both; the files themselves come first."""
        parts = dict(self._pool.shares(root, files))
        for service, some in self._pool.shares(root, also):
            if service.server.sync.unsaved != "alone":
                parts[service] = {**parts.get(service, {}), **some}
        return list(parts.items())


def _missing(service: Service, *, patient: bool) -> str | None:
    """Why a server is not asked, which is started if it does not run; None if it is asked."""
    state = service.wake()
    if state == "ready" or (state == "starting" and patient):
        return None
    return _STARTING if state == "starting" else service.status.message


def _unknown(service: Service, files: Iterable[str], reason: str) -> tuple[Report, ...]:
    return tuple(Report(service.server.name, path, reason=reason) for path in files)
