"""What agents asked and told, as a workspace's folders have it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.asked import Named, Question
from filepact.domain.document import RootId
from filepact.domain.operation import Actor, Session

if TYPE_CHECKING:
    from pathlib import Path


def question(when: float, root: str, *paths: str, session: str = "s1") -> Question:
    return Question(
        when=when,
        session=Session(session, Actor("agent", "robot", "9")),
        root=RootId(root),
        title=f"{when}",
        action="write",
        files=tuple(map(Named, paths)),
        verdict="allowed",
        by="person",
        how="allow_once",
    )


def test_a_workspace_lists_what_was_asked_in_all_its_folders(tmp_path: Path) -> None:
    one, two, state = (tmp_path / name for name in ("one", "two", "state"))
    for folder in (one, two):
        folder.mkdir()
    with closing(open_workspace([str(one), str(two)], state_dir=str(state))) as both:
        both.asked.note(question(1.0, str(one), "src/a.py"))
        both.asked.note(question(2.0, str(two), "b.py", str(one / "src" / "b.py"), session="s2"))
        both.asked.note(question(3.0, str(one), "/etc/passwd"))
        both.asked.note(question(4.0, str(tmp_path / "three"), "c.py"))

        def found(**narrowed: object) -> list[float]:
            return [known.when for known in both.asked.questions(**narrowed)]  # type: ignore[arg-type]

        assert found() == [3.0, 2.0, 1.0]
        assert found(limit=2) == [3.0, 2.0]
        assert found(session="s2") == [2.0]
        assert found(path="src") == [2.0, 1.0]
        assert found(path="src", limit=1) == [2.0]
        assert found(path=str(two / "b.py")) == [2.0]
        assert found(path="nowhere") == []
    with closing(open_workspace([str(two)], state_dir=str(state))) as other:
        assert [known.when for known in other.asked.questions()] == [2.0]
