"""What waits for a person, made for tests of the review's windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.domain.operation import Actor, ChangeId, Session
from filepact_cli.review import Review
from tests.workspace.acting import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

__all__ = ["AGENT", "NEW", "OLD", "OTHER", "propose", "reviewing"]

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = (
    OLD.replace("line 3\n", "third\n").replace("line 20\n", "").replace("line 38\n", "line 38\nx\n")
)
AGENT = Session("s1", Actor("agent", "tester", "1.0"), turn="t1")
OTHER = Session("s2", Actor("agent", "another"))


def reviewing(open_here: Callable[..., Workspace], root: Path) -> Review:
    """The review of a folder with two files of forty lines, in which every change waits."""
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(OLD)
    return Review(open_here("preview"), Session("cli", Actor("person", "ann")))


def propose(
    review: Review, path: str = "a.txt", text: str = NEW, session: Session = AGENT
) -> ChangeId:
    return ChangeId(str(write(review.workspace, session, path, text).operation))
