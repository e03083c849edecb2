"""Language servers behind a real server for agents, which confines itself where it can."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.fs import sandbox
from filepact_diagnostics.opening import write_trust
from filepact_diagnostics.settings import ServerTrust
from tests.faces.test_sandbox import base, served
from tests.needs import PROCESSES
from tests.servers.fakes import PROGRAM, wait_for_end

if TYPE_CHECKING:
    from tests.faces.line_client import LineClient

__all__ = ["base"]

WALLS = ["off", *(["required"] if sandbox.landlock_abi() else [])]


def settings(base: Path, said: str, wall: str = "off", **orders: Any) -> tuple[str, str]:
    """A settings file with a server that behaves as it is ordered, as words of a command line."""
    command = [sys.executable, "-I", "-S", PROGRAM, json.dumps(orders)]
    path = base / "mine.toml"
    path.write_text(
        f"{said}\n[guard]\nlandlock = {json.dumps(wall)}\n"
        f'[servers.fake]\nfiles = {{"*.x" = "x"}}\ncommand = {json.dumps(command)}\nfirst = 5\n'
    )
    return "--config", str(path)


def write(client: LineClient, name: str, text: str, **more: Any) -> str:
    said: str = client.text("write_file", path=name, content=text, **more)
    return said


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("wall", WALLS)
def test_the_answer_to_a_change_tells_the_errors_that_it_adds(base: Path, wall: str) -> None:
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 30', wall)
    with served(base, options=words) as (_process, client):
        said = write(client, "a.x", "fine\nwrong\n")
        assert "Diagnostics (fake): 1 new error." in said
        assert "a.x:2:1 error wrong this is wrong" in said
        shown = write(client, "a.x", "fine\n", dry_run=True)
        assert "Diagnostics if it is done (fake): 1 fixed." in shown
    assert (base / "root" / "a.x").read_text() == "fine\nwrong\n"


@PROCESSES  # Elsewhere a server's process group ends, and not what has left it.
@pytest.mark.slow(after=1)
@pytest.mark.parametrize("wall", WALLS)
def test_servers_end_with_the_server_for_agents(base: Path, wall: str) -> None:
    note = base / "child"
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 30', wall, child=str(note))
    with served(base, options=words) as (process, client):
        write(client, "a.x", "wrong\n")
        child = int(note.read_text())
        process.kill()
    assert wait_for_end(child)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("said", "more"),
    [
        ('diagnostics = "off"', ()),
        ('diagnostics = "always"', ("--read-only",)),
    ],
)
def test_no_server_is_started_where_none_is_wanted(
    base: Path, said: str, more: tuple[str, ...]
) -> None:
    log = base / "log"
    with served(base, options=(*settings(base, said, log=str(log)), *more)) as (_process, client):
        sent = {"name": "write_file", "arguments": {"path": "a.x", "content": "wrong\n"}}
        answer = client.ask("tools/call", sent)
        assert "Diagnostics" not in json.dumps(answer)
    assert not log.exists()


def test_a_file_that_no_server_knows_is_changed_without_a_word_about_them(base: Path) -> None:
    log = base / "log"
    words = settings(base, 'diagnostics = "always"', log=str(log))
    with served(base, options=words) as (_process, client):
        assert "Diagnostics" not in write(client, "a.txt", "wrong\n")
    assert not log.exists()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("orders", "wall"),
    [({"first_words": "I am no server"}, wall) for wall in WALLS] + [({"hang": True}, "off")],
)
def test_a_server_that_fails_does_not_stop_a_change(
    base: Path, orders: dict[str, Any], wall: str
) -> None:
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 0.5', wall, **orders)
    with served(base, options=words) as (_process, client):
        assert "Done: " in write(client, "a.x", "wrong\n")
    assert (base / "root" / "a.x").read_text() == "wrong\n"


@PROCESSES
def test_a_server_sees_no_secret_of_its_person(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abc")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    note = base / "child"
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 30', child=str(note))
    with served(base, options=words) as (_process, client):
        write(client, "a.x", "wrong\n")
        place = f"/proc/{int(note.read_text())}/environ"
        with open(place, "rb") as stream:
            seen = stream.read().split(b"\0")
    assert b"LC_ALL=C.UTF-8" in seen
    assert not [one for one in seen if one.startswith(b"SOME_API_KEY=")]


@pytest.mark.skipif("required" not in WALLS, reason="this system has no Landlock")
def test_a_server_that_only_discloses_works_in_a_sandbox_of_its_own(base: Path) -> None:
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 30', "required")
    path = Path(words[1])
    path.write_text(f'{path.read_text()}risk = "discloses"\n')
    with served(base, options=words) as (_process, client):
        assert "Diagnostics (fake): 1 new error." in write(client, "a.x", "fine\nwrong\n")
        # Nothing is said of a text that names what may not be read, be it that it is not there.
        assert "new error" not in write(client, "b.x", 'include ".env"\nwrong\n')
        assert "new error" not in write(client, "b.x", 'take "./.env"\nwrong\n', dry_run=True)
        assert "1 new error" in write(client, "b.x", 'take "./env"\nwrong\n', dry_run=True)


@pytest.mark.parametrize("wall", WALLS)
def test_a_server_with_a_risk_works_once_a_person_trusts_it_here(base: Path, wall: str) -> None:
    words = settings(base, '[diagnostics]\nmode = "always"\nbudget = 30', wall)
    path = Path(words[1])
    path.write_text(f'{path.read_text()}risk = "runs"\n')
    with served(base, options=words) as (_process, client):
        assert "Diagnostics" not in write(client, "a.x", "fine\nwrong\n")
    trust = ServerTrust().with_folder("fake", str(base / "root"))
    write_trust(str(base / "state"), trust)
    with served(base, options=words) as (_process, client):
        assert "Diagnostics (fake): 1 new error." in write(client, "a.x", "wrong\nwrong\n")
