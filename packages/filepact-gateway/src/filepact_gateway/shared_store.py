"""What gateways on several machines have in common, in the database of their journals."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact_fleet.postgres_connection import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.store.transaction import Transaction
    from filepact_gateway.store import SqliteGatewayStore

__all__ = ["PostgresGatewayStore"]

_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
_OFTEN: Final = 100  # requests after which answers are given up that are too old
_OLD: Final = "DELETE FROM gateway_answer WHERE at < now() - make_interval(secs => ?)"
_CLAIM: Final = (
    "INSERT INTO gateway_answer (request, asked) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1"
)
_FOUND: Final = "SELECT asked, result FROM gateway_answer WHERE request = ?"
_KEEP: Final = "UPDATE gateway_answer SET result = ? WHERE request = ?"
_RELEASE: Final = "DELETE FROM gateway_answer WHERE request = ? AND asked = ? AND result IS NULL"
_FIRST: Final = "INSERT INTO gateway_secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
_TOLD: Final = "SELECT value FROM gateway_secret WHERE name = ?"
_END: Final = (
    "INSERT INTO gateway_ended (session, until) VALUES (?, to_timestamp(?)) ON CONFLICT DO NOTHING"
)
_OVER: Final = "DELETE FROM gateway_ended WHERE until < now()"
_ENDED: Final = "SELECT session FROM gateway_ended WHERE at > to_timestamp(?)"
_HEARD: Final = 0.25  # seconds for which what was heard of ended sessions counts
_LATE: Final = 120.0  # seconds for which a transaction may be under way, and not be seen
_WHOLE: Final = 3_600.0  # seconds after which ended sessions are read anew, and the old forgotten


class PostgresGatewayStore:
    """What gateways have in common that serve the same shared workspaces; from any thread.

    Secrets, sessions that ended, and answers to repeats, as a workspace of its own.  How old a session is, all of them tell by
    the clock of the server.

    Args:
        local: What the processes of this one have in common besides.
        url: Where the database is.
        scope: What they serve, in a word that is the same for all of them.
        holder: The state folder of this one.
        schema: The schema with the tables.
        kept: Seconds for which answers are kept.

    Raises:
        StoreUnreachableError: The server does not answer.
        StoreSchemaError: The tables are missing, or of another version.
    """

    def __init__(
        self,
        local: SqliteGatewayStore,
        url: str,
        *,
        scope: str,
        holder: str,
        schema: str = "filepact",
        kept: float = 86_400.0,
    ) -> None:
        self._kept = kept
        self._claims = 0
        self._database = PostgresDatabase(
            url, workspace=f"gateways {scope}", holder=holder, schema=schema
        )
        self._ended: set[str] = set()
        self._ahead = self._heard = self._whole = self._told = 0.0
        self.ready = local.ready
        self._local = local
        self._hear()

    def now(self) -> float:
        """As of `SqliteGatewayStore`."""
        return time.monotonic() + self._ahead

    def end(self, session: str, until: float) -> float:
        """As of `SqliteGatewayStore`."""

        def work(tx: Transaction) -> None:
            tx.run(_OVER)
            tx.run(_END, (session, until))

        self._database.write(work, durable=True)
        self._heard = 0.0
        return _HEARD

    def has_ended(self, session: str) -> bool:
        """As of `SqliteGatewayStore`: by what was heard last."""
        return session in self._ended

    def up_to_date(self) -> bool:
        """As of `SqliteGatewayStore`."""
        return time.monotonic() < self._heard + _HEARD

    def hear(self) -> None:
        """As of `SqliteGatewayStore`; while the database does not answer, what was heard before counts."""
        try:
            self._hear()
        except FilepactError:
            self._heard = time.monotonic()

    def _hear(self) -> None:
        begun = time.monotonic()
        lately = self._whole and begun < self._whole + _WHOLE
        since = self._told - _LATE if lately else 0.0
        now, rows = self._database.read(lambda tx: (tx.value(_NOW), tx.all(_ENDED, (since,))))
        ended = {str(session) for (session,) in rows}
        if since:
            self._ended |= ended
        else:
            self._ended, self._whole = ended, begun
        # Each time anew, so that a machine that was suspended is no further behind than until now.
        self._ahead, self._told, self._heard = float(now) - begun, float(now), begun

    def secret(self, name: str, made: bytes) -> bytes:
        """The secret of this name: what was put there first, by whatever gateway."""

        def work(tx: Transaction) -> bytes:
            tx.run(_FIRST, (name, made))
            return bytes(tx.value(_TOLD, (name,)))

        return self._database.write(work, durable=True)

    def claim(self, request: str, asked: str) -> tuple[str, Mapping[str, Any] | None] | None:
        """As of `SqliteGatewayStore`."""
        self._claims += 1
        tidies = self._claims % _OFTEN == 1

        def work(tx: Transaction) -> tuple[Any, ...] | None:
            if tidies:
                tx.run(_OLD, (self._kept,))
            return None if tx.all(_CLAIM, (request, asked)) else tx.one(_FOUND, (request,))

        return _known(self._database.write(work, durable=True))

    def find(self, request: str) -> tuple[str, Any] | None:
        """As of `SqliteGatewayStore`."""
        return _known(self._database.read(lambda tx: tx.one(_FOUND, (request,))))

    def keep(self, request: str, result: Mapping[str, Any]) -> None:
        """Keep the answer to a request that was claimed."""
        text = json.dumps(result, separators=(",", ":"))
        self._database.write(lambda tx: tx.run(_KEEP, (text, request)), durable=False)

    def release(self, request: str, asked: str) -> None:
        """Have a request be as if it had never come, if no answer to it is kept."""
        self._database.write(lambda tx: tx.run(_RELEASE, (request, asked)), durable=False)

    def close(self) -> None:
        """Let go of the database and of what is local."""
        self._database.close()
        self._local.close()


def _known(found: tuple[Any, ...] | None) -> tuple[str, Any] | None:
    return found and (str(found[0]), found[1] and json.loads(found[1]))
