"""Names of changes."""

from __future__ import annotations

import secrets

from filepact.domain.operation import ChangeId

__all__ = ["new_id"]


def new_id() -> ChangeId:
    """``c`` and ten characters without look-alikes: fifty bits, not to be guessed."""
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    return ChangeId("c" + "".join(secrets.choice(alphabet) for _ in range(10)))
