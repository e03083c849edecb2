"""A gateway that takes an issuer's tokens, and a person who opens the page that a program names to log them in."""

from __future__ import annotations

import json
import os
import pty
import re
import secrets
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, Self

from gateway_issuer import Issuer
from gateway_running import RunningGateway
from tests.forked import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PATIENCE", "GuardedGateway", "commands", "follow", "settings"]

PATIENCE: Final = 120
ADDRESS: Final = "https://files.example.com/mcp"
"""The gateway's address in the documents."""

_BROWSER: Final = """#!{python} -IS
import sys, urllib.request
urllib.request.urlopen(sys.argv[-1], timeout=60).read()
"""
_HOW_TO: Final = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "connect.md"


class GuardedGateway:
    """A gateway over one folder, and the issuer that it believes, whose pages may use it.

    Attributes:
        token: One of the gateway's own, of `ci`.

    Args:
        base: For the folder, the state and homes.
        more: Settings besides who is believed.
    """

    def __init__(self, base: Path, more: str = "") -> None:
        self.base, self.root = base, base / "root"
        self.root.mkdir()
        self.issuer = Issuer()
        self.token = "fpt_" + secrets.token_urlsafe(32)
        (base / "tokens").write_text(f"ci {sha256(self.token.encode()).hexdigest()}\n")
        serve = f'[serve]\nissuer = "{self.issuer.url}"\nscopes = ["files"]\n'
        serve += f'tokens = "{base / "tokens"}"\norigins = ["{self.issuer.url}"]\n'
        self.gateway = RunningGateway(base, [str(self.root)], settings=serve + more)
        self.url = f"http://{self.gateway.address}/mcp"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        ended = self.gateway.end()
        self.issuer.end()
        assert ended == 0

    def says(self, *words: str) -> str:
        """What a person is told by the command."""
        state = ["--state", str(self.base / "state"), "--root", str(self.root)]
        return run([*state, *words], capture_output=True).stdout.decode()


def follow(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a program on a terminal, with a person who says yes, and a browser that logs them in; what it said."""
    browser = Path(environment["HOME"], "bin", "xdg-open")
    browser.parent.mkdir(exist_ok=True)
    browser.write_text(_BROWSER.format(python=sys.executable))
    browser.chmod(0o700)
    here, there = pty.openpty()
    process = subprocess.Popen(
        words,
        cwd=folder,
        # Some ask the variable where the browser is, the others look for the usual program.
        env={
            **environment,
            "BROWSER": str(browser),
            "PATH": f"{browser.parent}:{environment['PATH']}",
            "TERM": "xterm-256color",
            "COLUMNS": "4000",
        },
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
    )
    os.close(there)
    late = Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
    late.start()
    said = b""
    with suppress(OSError):  # That is how a terminal tells that nobody is there any more.
        while part := os.read(here, 65_536):
            said += part
            if b"[Y/n]" in part or b"[y/N]" in part:
                os.write(here, b"y\n")
    process.wait()
    late.cancel()
    os.close(here)
    told = said.decode(errors="replace")
    assert process.returncode == 0, told
    return told


def commands(title: str, program: Sequence[str], url: str, token: str = "") -> list[list[str]]:
    """The commands below a title of the how-to, as they are run here.

    Args:
        title: Of the section.
        program: What stands for the program's name.
        url: What stands for the address of the gateway.
        token: What stands for a token of the gateway's own.
    """
    found = []
    blocks = re.findall(r"^```sh\n(.+?)^```", _section(title), re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        words = shlex.split(line.replace(ADDRESS, url).replace("fpt_...", token))
        named = 2 if words[0] == "npx" else 1
        found.append([*program, *words[named:]])
    return found


def settings(title: str, url: str) -> dict[str, Any]:
    """The settings in JSON below a title of the how-to."""
    (block,) = re.findall(r"^```json\n(.+?)^```", _section(title), re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = json.loads(block.replace(ADDRESS, url))
    return found


def _section(title: str) -> str:
    found = re.split(r"^##+ (.+)$", _HOW_TO.read_text(), flags=re.MULTILINE)
    return found[found.index(title) + 1]
