"""What a program behind layers is to see: its own folder at home, and none of the person's secrets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from filepact.errors import TooLargeError
from filepact.fs import walk
from filepact_run.run_context import RunContext
from filepact_run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers are those of overlays")


class Person:
    """A person with a home folder, who runs programs in a root."""

    def __init__(self, base: Path, workspace: Workspace) -> None:
        self.root, self.home, self.state = base / "root", base / "home", base / "state"
        self.workspace = workspace
        self.home.mkdir()

    def context(self, *, at_home: bool = True, **more: list[str]) -> RunContext:
        return RunContext(
            self.workspace.guard,
            str(self.state),
            home=str(self.home) if at_home else None,
            secrets=more.get("secrets", []),
            writable=more.get("writable", []),
        )

    def run(self, agent: str = "sh") -> RunFolder:
        return RunFolder.make(
            str(self.state),
            command=(agent,),
            agent=agent,
            mode="auto",
            roots=(str(self.root),),
            folder=str(self.root),
        )


@pytest.fixture
def person(tmp_path: Path, open_here: Callable[..., Workspace]) -> Person:
    return Person(tmp_path, open_here())


def test_an_agent_has_its_own_folder_and_what_steers_it_stays_as_it_is(person: Person) -> None:
    (person.home / ".claude").mkdir()
    (person.home / ".claude" / "settings.json").write_text("{}")
    context = person.context()
    with person.run("claude") as folder:
        found = context.settings(folder)
    claude = str(person.home / ".claude")
    assert claude in found.writable
    assert f"{claude}/settings.json" in found.fixed
    # Folders that would steer it the next time are made, to have the program's own over them.
    assert f"{claude}/hooks" in context.made
    assert f"{claude}/hooks" in found.temporary
    assert f"{claude}/CLAUDE.md" in context.missing


def test_any_other_program_has_nothing_at_home(person: Person) -> None:
    (person.home / ".claude").mkdir()
    with person.run() as folder:
        found = person.context().settings(folder)
        nobody = person.context(at_home=False).settings(folder)
    assert found.writable == nobody.writable == ()
    assert str(person.state) in found.hidden


def test_secrets_are_hidden_in_the_root_and_at_home_but_not_in_what_the_person_gave(
    person: Person,
) -> None:
    for name in ("src/.env", "node_modules/a/.env", "src/main.py", ".git/config"):
        (person.root / name).parent.mkdir(parents=True, exist_ok=True)
        (person.root / name).write_text("x")
    for name in ("keys/id_rsa", "given/id_rsa"):
        (person.home / name).parent.mkdir(parents=True)
        (person.home / name).write_text("x")
    secrets = [str(person.home / name) for name in ("keys", "keys/id_rsa", "given/id_rsa")]
    given = str(person.home / "given")
    with person.run() as folder:
        found = person.context(secrets=secrets, writable=[given]).settings(folder)
    assert str(person.root / "src" / ".env") in found.hidden
    assert str(person.root / "node_modules" / "a" / ".env") not in found.hidden
    assert str(person.root / "src" / "main.py") not in found.hidden
    assert str(person.root / ".git") in found.fixed
    assert str(person.home / "keys") in found.hidden
    assert str(person.home / "keys" / "id_rsa") not in found.hidden
    assert str(person.home / "given" / "id_rsa") not in found.hidden
    assert given in found.writable


def test_where_not_all_secrets_can_be_found_nothing_is_run(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    (person.root / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.setattr(walk, "MAX_DEPTH", 1)
    with person.run() as folder, pytest.raises(TooLargeError):
        person.context().settings(folder)
