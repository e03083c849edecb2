"""Composition root of the gateway: what its processes have in common, and with other gateways."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from filepact.fs.root import Root
from filepact.fs.state import open_state
from filepact_fleet.checkout_index import CheckoutIndex
from filepact_gateway.store import SqliteGatewayStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.domain.operation import StoreOptions
    from filepact.fs.state import StateFolder
    from filepact_gateway.shared_store import PostgresGatewayStore

__all__ = ["open_gateway_store"]


def open_gateway_store(
    state_dir: str, realms: Mapping[str, Sequence[str]], store: StoreOptions | None
) -> SqliteGatewayStore | PostgresGatewayStore:
    """The common facts of a gateway's processes; made where there are none yet.

    Where all that it serves are checkouts of shared workspaces, and the journal is in a database, gateways that serve the
    same have them in common.

    Args:
        state_dir: The state folder.
        realms: The folders of each workspace that is served.
        store: The database of the journal; None where that is in the state folder.

    Raises:
        StateFailedError: The state folder cannot be used.
        StoreUnreachableError: The database does not answer.
    """
    state = open_state(state_dir, [])
    local = SqliteGatewayStore(state.gateway)
    scope = None if store is None else _scope(state, realms)
    if store is None or scope is None:
        return local
    from filepact_gateway.shared_store import PostgresGatewayStore  # noqa: PLC0415 - few have one

    try:
        return PostgresGatewayStore(
            local, store.url, scope=scope, holder=state.name, schema=store.schema
        )
    except BaseException:
        local.close()
        raise


def _scope(state: StateFolder, realms: Mapping[str, Sequence[str]]) -> str | None:
    """A word for what is served, that is the same at whatever machine; None where that cannot be the same."""
    served: list[tuple[str, list[str]]] = []
    for realm, folders in sorted(realms.items()):
        places: list[str] = []
        for folder in folders:
            with Root.open(folder) as root:
                if not state.is_checkout(root.path):
                    return None
                index = CheckoutIndex(state.checkout(root.path))
                index.load()
                places.append(index.url)
        served.append((realm, places))
    return sha256(repr(served).encode("utf-8", "surrogatepass")).hexdigest()[:16]
