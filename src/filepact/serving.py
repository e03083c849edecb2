"""Composition root of the gateway: what its processes have in common, in the state folder."""

from __future__ import annotations

from filepact.fs.state import open_state
from filepact.store.gateway import SqliteGatewayStore

__all__ = ["open_gateway_store"]


def open_gateway_store(state_dir: str) -> SqliteGatewayStore:
    """The common facts of a gateway's processes; made where there are none yet.

    Raises:
        StateFailedError: The state folder cannot be used.
    """
    return SqliteGatewayStore(open_state(state_dir, []).gateway)
