"""The sandbox around a real server: what still works inside it, and what it keeps in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.fs import sandbox
from filepact_cli.doctor import check_wall
from tests.faces.line_client import LineClient, serving
from tests.forked import Command, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BROKEN = Path(__file__).with_name("open_door.py")

pytestmark = pytest.mark.skipif(not sandbox.landlock_abi(), reason="this system has no Landlock")

# Each leaves the root by a link that a right guard refuses.
WAYS_OUT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_file", {"path": "out/secret.txt"}),
    ("read_file", {"path": "out/secret.txt", "encoding": "base64"}),
    ("grep", {"pattern": "SECRET", "path": "out"}),
    ("grep", {"pattern": "SECRET", "path": "out/secret.txt"}),
    ("search_files", {"pattern": "*", "directory": "out"}),
    ("directory_tree", {"path": "out"}),
    ("write_file", {"path": "out/new.txt", "content": "x"}),
    ("write_file", {"path": "out/deep/new.txt", "content": "x", "createDirs": True}),
    ("write_file", {"path": "out/written.txt", "content": "x"}),
    ("write_file", {"path": "out/added.txt", "content": "x", "append": True}),
    ("edit_file", {"path": "out/edited.txt", "old_string": "SECRET", "new_string": "x"}),
    ("patch_apply", {"path": "out/patched.txt", "patch": "@@ -1 +1 @@\n-SECRET\n+x\n"}),
    ("patch_apply", {"patch": "--- /dev/null\n+++ b/out/made.txt\n@@ -0,0 +1 @@\n+x\n"}),
    ("patch_apply", {"patch": "--- a/out/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-SECRET\n"}),
)


OUTSIDE = ("secret", "written", "added", "edited", "patched", "gone")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for folder in ("root/src", "outside", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root" / "src" / "main.py").write_text("one\n")
    (tmp_path / "root" / "out").symlink_to("../outside")
    for name in OUTSIDE:
        (tmp_path / "outside" / f"{name}.txt").write_text("SECRET\n")
    return tmp_path


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def served(
    base: Path, program: Sequence[str | Path] = (), options: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], LineClient]]:
    words = ("mcp", base / "root", "--state", base / "state", *options)
    command: tuple[str | Path, ...] = words
    start: type[subprocess.Popen[bytes]] = Command
    if program:
        start, command = subprocess.Popen, (sys.executable, *program, *words)
    with serving(*command, start=start, env=environment(), cwd=base / "elsewhere") as (
        process,
        client,
    ):
        client.shake_hands()
        yield process, client


def filepact(base: Path, *arguments: str) -> str:
    where = ("--root", base / "root", "--state", base / "state")
    done = run([*arguments, *where], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def privileges(process: subprocess.Popen[bytes]) -> set[str]:
    """Of all threads: whether they gave up privileges, as whoever is confined had to."""
    return {
        line.split()[1]
        for status in Path(f"/proc/{process.pid}/task").glob("*/status")
        for line in status.read_text().splitlines()
        if line.startswith("NoNewPrivs:")
    }


def outside(base: Path) -> dict[str, str]:
    """Every file outside with its text."""
    top = base / "outside"
    return {str(p.relative_to(top)): p.read_text() for p in top.rglob("*") if p.is_file()}


def test_every_thread_of_a_server_is_confined(base: Path) -> None:
    with served(base) as (process, client):
        client.call("write_file", path="src/main.py", content="two\n")
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) > 2
        assert privileges(process) == {"1"}


def test_a_person_does_not_live_behind_the_wall(base: Path) -> None:
    program = "import sys; from filepact.faces.cli import run; run(); print(open('/etc/passwd'))"
    done = subprocess.run(
        [sys.executable, "-c", program, "status", "--root", base / "root"],
        env=environment() | {"FILEPACT_STATE_DIR": str(base / "state")},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_broken_guard_lets_everything_out_without_the_wall(base: Path) -> None:
    with served(base, (BROKEN, "off")) as (process, client):
        assert privileges(process) == {"0"}
        got = [client.call(tool, **arguments) for tool, arguments in WAYS_OUT]
    assert not [answer for answer in got if answer["isError"]]
    assert all("SECRET" in json.dumps(got[read]) for read in (0, 2, 3))
    assert all("secret.txt" in json.dumps(got[listed]) for listed in (4, 5))
    assert "SECRET\n" not in [text for name, text in outside(base).items() if name != "secret.txt"]
    assert {"new.txt", "deep/new.txt", "made.txt"} < set(outside(base))


def test_a_broken_guard_lets_nothing_out_with_it(base: Path) -> None:
    with served(base, (BROKEN, "on")) as (process, client):
        assert privileges(process) == {"1"}
        for tool, arguments in WAYS_OUT:
            answer = client.call(tool, **arguments)
            # A search goes on without what it may not read, and says so.
            said = answer["content"][0]["text"]
            assert answer["isError"] or said.startswith("[no matches in 0 files"), arguments
        assert client.text("read_file", path="src/main.py").startswith("1\u2502one\n")
        assert not client.call("write_file", path="new.txt", content="x")["isError"]
    assert outside(base) == {f"{name}.txt": "SECRET\n" for name in OUTSIDE}


def test_other_processes_approve_and_undo_while_a_server_runs_behind_it(base: Path) -> None:
    with served(base, options=("--mode", "preview")) as (_process, client):
        asked = client.call("write_file", path="src/main.py", content="two\n")
        operation = asked["_meta"]["filepact/receipt"]["operation"]
        assert operation in filepact(base, "pending")
        filepact(base, "approve", "--unattended", operation)
        assert "two" in client.text("read_file", path="src/main.py")
        filepact(base, "undo", "--unattended")
        assert "one" in client.text("read_file", path="src/main.py")


def test_links_that_a_confined_server_cannot_make_again_the_person_brings_back_as_it_said(
    base: Path,
) -> None:
    folder = base / "root/linked"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / "b").symlink_to("a.txt")
    with served(base) as (_process, client):
        done = client.call("manage_files", action="delete", path="linked")
        operation = done["_meta"]["filepact/receipt"]["operation"]
        refused = client.call("history", action="undo")
        assert refused["isError"]
        said = refused["content"][0]["text"]
        (command,) = re.findall("`filepact (.+?)`", said)
        assert command.split() == ["undo", operation]
        filepact(base, *command.split(), "--unattended")
        assert client.text("read_file", path="linked/b").startswith("1\u2502a\n")
    assert os.readlink(folder / "b") == "a.txt"


def test_the_doctor_has_a_child_prove_the_wall(base: Path) -> None:
    found = {one["name"]: one for one in json.loads(filepact(base, "doctor", "--json"))["checks"]}
    assert found["sandbox"]["level"] == "ok"
    assert f"ABI {sandbox.landlock_abi()}" in found["sandbox"]["said"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("setting", "confined"), [("auto", "1"), ("required", "1"), ("off", "0")])
def test_a_server_does_what_the_settings_say_and_the_doctor_says_so(
    base: Path, monkeypatch: pytest.MonkeyPatch, setting: str, confined: str
) -> None:
    (base / "config" / "filepact").mkdir(parents=True)
    (base / "config" / "filepact" / "filepact.toml").write_text(
        f'[guard]\nlandlock = "{setting}"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(base / "config"))
    with served(base) as (process, _client):
        assert privileges(process) == {confined}
    found = {one["name"]: one for one in json.loads(filepact(base, "doctor", "--json"))["checks"]}
    assert ("up in servers" in found["sandbox"]["said"]) == (setting != "off")


RESTRICT = sandbox.restrict
WALLS: dict[str, dict[str, Any]] = {
    "whole": {},
    "missing": {"landlock_abi": lambda: 0},
    "leaking": {"restrict": lambda _grants, **_: None},
    "too tight": {"restrict": lambda _grants, **_: RESTRICT([])},
}


@pytest.mark.parametrize(
    ("wall", "wanted", "level"),
    [
        ("whole", "auto", "ok"),
        ("whole", "required", "ok"),
        ("whole", "off", "ok"),
        ("missing", "auto", "warn"),
        ("missing", "off", "ok"),
        ("missing", "required", "fail"),
        ("leaking", "auto", "fail"),
        ("too tight", "auto", "fail"),
    ],
)
def test_the_doctor_tells_what_a_trial_came_to(
    base: Path, monkeypatch: pytest.MonkeyPatch, wall: str, wanted: Any, level: str
) -> None:
    for part, instead in WALLS[wall].items():
        monkeypatch.setattr(sandbox, part, instead)
    with closing(open_workspace([str(base / "root")], state_dir=str(base / "state"))) as workspace:
        found = check_wall(workspace, str(base / "state"), wanted)
    assert found.level == level
    assert bool(found.next) == (level != "ok")
