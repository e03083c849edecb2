"""Agents that have none but their own tools, behind `filepact run`: their changes are judged, merged, taken back."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from run_shell import Shell
from tests.agents.hooked import HOOKED, Hooked, drive, named, settle
from tests.agents.installed import or_skip, skip_slow_starter
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
]

LINES = ["one", "two", "three", "four", "five", "six", "seven"]
AGENTS = [
    one
    for one in HOOKED
    if one.name != "copilot" and (one.name in ("codex", "gemini") or often(0, 1))
]
"""Copilot asks its own service who somebody is, and writes where it likes: it is tried through hooks."""


@pytest.fixture(params=AGENTS, ids=[one.name for one in AGENTS])
def agent(request: pytest.FixtureRequest) -> Hooked:
    chosen: Hooked = request.param
    skip_slow_starter(chosen.name)
    with or_skip():
        chosen.command()
    return chosen


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that is no temporary one: those are the program's own."""
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    above = next(one for one in (Path("/srv"), home) if os.access(one, os.W_OK))
    with tempfile.TemporaryDirectory(prefix="filepact-", dir=above) as folder:
        yield Path(folder)


def test_what_an_agent_does_with_its_own_tools_is_judged_merged_and_undone(
    agent: Hooked, base: Path
) -> None:
    root, home = base / "root", base / "home"
    root.mkdir()
    file, gone, secret = root / "a.txt", root / "gone.bin", root / ".env"
    file.write_text("".join(f"{line}\n" for line in LINES))
    gone.write_bytes(b"\0\1\2")
    secret.write_text("TOKEN=SECRETSECRET\n")

    def by_hand() -> None:
        file.write_text(file.read_text().replace("seven", "seven by hand"))

    def command(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "filepact", "--root", str(root), *words, "--json"],
            env={**os.environ, "FILEPACT_STATE_DIR": str(home / "state"), "HOME": str(home)},
            check=False,
            capture_output=True,
            text=True,
        )
        return json.loads(done.stdout)

    script = [
        agent.write(str(root / ".env.production"), "X=1"),
        agent.read(str(secret)),
        agent.read(str(file)),
        agent.edit(str(file), "two", "TWO"),
        agent.run("sed -i s/four/FOUR/ a.txt; printf new > made.txt; rm gone.bin"),
    ]
    # In temporary folders, which are the program's own, they would not be seen.
    hidden = [one for one in agent.command() if one.startswith(("/tmp/", "/var/tmp/"))]
    seen = [word for one in hidden for word in ("--writable", str(Path(one).parent))]
    run = [sys.executable, "-m", "filepact", "run", "--layers", "required", *seen, "--"]
    shown = drive(agent, root, home, script, meanwhile={4: by_hand}, behind=run)
    assert "SECRETSECRET" not in "".join(shown)
    changed = ["one", "TWO", "three", "FOUR", "five", "six", "seven by hand"]
    assert file.read_text().split("\n")[:-1] == changed
    assert (root / "made.txt").read_text() == "new"
    assert sorted(os.listdir(root)) == [".env", "a.txt", "made.txt"]
    (waiting,) = command("pending")["pending"]
    assert [one["path"] for one in waiting["files"]] == [".env.production"]
    assert command("runs") == {"runs": []}
    assert not any((home / name).is_dir() for name in (".claude/skills", ".codex/skills"))
    done = command("log")["operations"]
    assert {one["actor"]["name"] for one in done} == {agent.name}
    command("undo", "--unattended", "--session", done[0]["session"])
    assert file.read_text().split("\n")[:-1] == [*LINES[:-1], "seven by hand"]
    assert gone.read_bytes() == b"\0\1\2"
    assert sorted(os.listdir(root)) == [".env", "a.txt", "gone.bin"]


READY = {"claude": ("\u276f", ""), "codex": ("confirm", "\r")}
"""What an agent shows when it can be typed to, and the answer to that."""

ANSWERS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""What a terminal says of itself when it is asked."""


@pytest.mark.parametrize("name", [*READY][often(1, 0) :])
def test_an_agent_on_a_terminal_is_stopped_gone_on_with_resized_and_ended(
    name: str, base: Path
) -> None:
    one = next(each for each in HOOKED if each.name == name)
    skip_slow_starter(name)
    with or_skip():
        one.command()
    root, home = base / "root", base / "home"
    root.mkdir()
    variables = settle(one, home, "http://127.0.0.1:9")
    if name == "claude":
        trust = {str(root): {"hasTrustDialogAccepted": True}}
        known = {"hasCompletedOnboarding": True, "projects": trust}
        (home / ".claude/.claude.json").write_text(json.dumps(known))
    variables |= {"FILEPACT_STATE_DIR": str(home / "state"), "TERM": "xterm-256color"}
    command = shlex.join([sys.executable, "-m", "filepact", "run", "--", *named(one, home)])
    with closing(Shell(root, variables, ANSWERS)) as shell:
        ready, answer = READY[name]
        shell.resize(30, 100)
        shell.type(f"{command}\n")
        shell.until(ready)
        shell.quiet()
        shell.type(answer)
        shell.quiet()
        shell.type("\x1a")
        assert "Stopped" in shell.until("outer> ")
        shell.line("echo of the shell", "of the shell\r\n")
        shell.type("fg\n")
        assert one.name in shell.until(one.name)
        shell.quiet()
        shell.resize(40, 132)
        assert shell.quiet()  # it draws its window anew
        shown = ""
        while "outer> " not in shown:
            # Where it asks to be told twice, that is for a moment only.
            shell.type("\x03")
            shown = shell.until("\x1b")
            shell.type("\x03")
            shown += shell.quiet()
        shell.line("jobs; echo $((6 * 7))", "42\r\n")
