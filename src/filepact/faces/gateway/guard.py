"""Who may ask, and for what, at a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.gateway.handler import UserContext
from filepact.faces.gateway.realms import realm_at

if TYPE_CHECKING:
    from filepact.config.serving import RealmAccess
    from filepact.faces.gateway.realms import Realms
    from filepact.faces.gateway.requests import HttpAnswer, HttpRequest

__all__ = ["OpenGatewayGuard"]


class OpenGatewayGuard:
    """Lets everybody in who can reach the address, which is a loopback one.

    Args:
        realms: The workspaces.
        access: How they may be used.
    """

    def __init__(self, realms: Realms, access: RealmAccess) -> None:
        self._realms = realms
        self._access = access

    def realm(self, path: str) -> str | None:
        """The workspace at a path; None where there is none."""
        found = realm_at(path)
        return found if found in self._realms else None

    async def caller(self, _request: HttpRequest, realm: str) -> UserContext | HttpAnswer:
        """Somebody on this computer."""
        return UserContext("", realm, self._realms.served(realm, self._access))

    def page(self, _request: HttpRequest) -> HttpAnswer | None:
        """There is nothing that everybody may read."""
        return None
