"""Twelve proposals with forty hunks, as three agents leave them in six turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.operation import Actor, Session
from tests.workspace.acting import write

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

__all__ = ["FILES", "SESSIONS", "new", "old", "propose_all", "set_up"]

FILES: Final = (
    *("src/orders/model.py", "src/orders/prices.py", "src/orders/views.py", "src/orders/mail.py"),
    *("src/shop/basket.py", "src/shop/search.py", "src/shop/urls.py", "tests/test_prices.py"),
    *("tests/test_basket.py", "docs/prices.md", "docs/setup.md", "README.md"),
)
_HUNKS: Final = (4, 3, 3, 4, 3, 3, 4, 3, 3, 4, 3, 3)
SESSIONS: Final = (
    Session("s-4f21", Actor("agent", "claude-code", "2.1.329"), turn="prices in cents"),
    Session("s-4f21", Actor("agent", "claude-code", "2.1.329"), turn="a basket that lasts"),
    Session("s-90aa", Actor("agent", "codex", "0.169.0"), turn="mail in two languages"),
    Session("s-c3d7", Actor("agent", "opencode", "1.18.33"), turn="read me first"),
)
_EVERY: Final = 20


def old(number: int) -> str:
    """What a file holds before."""
    name = FILES[number].rpartition("/")[2].partition(".")[0]
    parts = (
        f"def {name}_{part}(order, customer=None):\n"
        f'    """Step {part} of {name}."""\n'
        f"    total = order.total({part}.5)\n"
        "    if customer is not None:\n"
        "        total -= customer.discount(total)\n"
        "    return round(total, 2)\n\n\n"
        for part in range(_HUNKS[number] * 2)
    )
    return "".join(parts)


def new(number: int, hunks: frozenset[int] | None = None) -> str:
    """The same with the hunks that are wanted, by their numbers from 1; None for all."""
    text = old(number)
    for hunk in range(1, _HUNKS[number] + 1):
        if hunks is None or hunk in hunks:
            part = hunk * 2 - 1
            text = text.replace(
                f"order.total({part}.5)\n", f"order.total_in_cents({part}, rounding=HALF_EVEN)\n"
            )
    return text


def count(number: int) -> int:
    """How many hunks the proposal of a file has."""
    return _HUNKS[number]


def set_up(root: Path) -> None:
    """Write the files as they are before."""
    for number, name in enumerate(FILES):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(old(number))


def propose_all(workspace: Workspace) -> list[str]:
    """Have every file's change wait; the ids in the order of the files."""
    ids: list[str] = []
    for number, name in enumerate(FILES):
        session = SESSIONS[number // 3]
        ids.append(str(write(workspace, session, name, new(number)).operation))
    return ids
