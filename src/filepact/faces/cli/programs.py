"""Programs that may be started as language servers, and the environment variables that they get.

Nothing is ever started that lies in a folder which agents may change, whatever the search path says:
it could be theirs.  What a server sees is chosen by name, and nothing that looks like a secret passes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.errors import NotFoundError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from filepact.faces.cli.screen import Terminal
    from filepact.lsp.spec import ServerSpec

__all__ = ["CHANGEABLE", "Programs", "install"]

CHANGEABLE: Final = "FILEPACT_CHANGEABLE"
"""The variable that names the folders that agents may change, for servers that look for programs."""

_OURS: Final = "filepact-"
_PATIENCE: Final = 20.0

_PASSED: Final = frozenset(
    {
        # Who and where; how numbers and messages are written.
        *("HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "LANG", "LANGUAGE", "TZ"),
        *("TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME"),
        *("XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_STATE_HOME"),
        # Where languages keep what they have installed.
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "JAVA_HOME", "GOROOT", "GOPATH"),
        *("GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"),
        *("DOTNET_ROOT", "DOTNET_CLI_HOME", "DOTNET_CLI_TELEMETRY_OPTOUT", "NUGET_PACKAGES"),
        *("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "SDKROOT", "NVM_DIR"),
        # Without these no program starts on Windows.
        *("APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "WINDIR"),
    }
)
_FOLDERS: Final = frozenset(
    {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"}
)
"""Lists of folders; those that agents may change are taken out."""

_SECRET: Final = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET)S?$|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL")


class Programs:
    """Programs by their names, as far as they may be started for some folders.

    Args:
        roots: The folders that agents may change.
        environment: All variables; None takes those of this process.
    """

    def __init__(self, roots: Iterable[str], environment: Mapping[str, str] | None = None) -> None:
        self._roots = tuple(Path(os.path.realpath(root)) for root in roots)
        self._all = dict(os.environ if environment is None else environment)
        self._found: dict[str, str | None] = {}
        self._said: dict[str, Mapping[str, object]] = {}
        changeable = os.pathsep.join(map(str, self._roots))
        self.environment = {**dict(self._chosen()), CHANGEABLE: changeable}
        """The variables that servers see."""
        self.refused: dict[str, str] = {}
        """Programs that are there and are not started, because of the folder that they lie in."""

    def __call__(self, name: str) -> str | None:
        """The absolute path of a program, or None where there is none that may be started.

        Args:
            name: As on a command line, or absolute.  A program with arguments is run, and counts
                as there if it ends well: see `filepact.lsp.spec.ServerSpec.needs`.
        """
        if name not in self._found:
            program, *words = [name] if Path(name).is_absolute() else name.split(" ")
            found = self._search(program)
            if found is not None and words and not self._answers(name, found, words):
                found = None
            self._found[name] = found
        return self._found[name]

    def place(self, server: ServerSpec) -> str | None:
        """The absolute path of a server's program; None if anything that it needs is missing."""
        places = [self(name) for name in (server.command[0], *server.needs)]
        return None if None in places else places[0]

    def waiting(
        self, servers: Iterable[ServerSpec], chosen: Iterable[ServerSpec], folder: str
    ) -> list[ServerSpec]:
        """The installed servers that work for agents in a folder only once a person trusts them.

        Args:
            servers: All that are known.
            chosen: Those that may work for agents, each where it may.
            folder: Absolute.
        """
        allowed = {one.name for one in chosen if one.allowed_in(folder)}
        return [one for one in servers if one.name not in allowed and self.place(one) is not None]

    def facts(self, names: Iterable[str]) -> Mapping[str, object]:
        """The output, as JSON, of the programs that were run because a server needs them.

        Args:
            names: As for a call of this object.
        """
        return {key: value for name in names for key, value in self._said.get(name, {}).items()}

    def _answers(self, name: str, program: str, words: Sequence[str]) -> bool:
        """Whether a program ends well; what it prints is kept."""
        try:
            done = subprocess.run(  # noqa: S603 - a program that may be started, as a server needs it
                [program, *words],
                cwd=Path(program).parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        try:
            facts = json.loads(done.stdout)
        except ValueError:
            facts = None
        self._said[name] = facts if isinstance(facts, dict) else {}
        return done.returncode == 0

    def _search(self, name: str) -> str | None:
        if os.sep in name and not Path(name).is_absolute():
            return None
        paths = [self.environment.get("PATH", ""), self._all.get("PATH", "")]
        if name.startswith(_OURS):
            # What an extra has installed beside us, whether or not that folder is on the path.
            paths.insert(0, str(Path(sys.executable).parent))
        for path in paths:
            found = shutil.which(name, path=path)
            if found is None or not Path(found).is_absolute():
                continue
            if not self._changeable(found):
                return found
            self.refused[name] = found
        return None

    def _chosen(self) -> Iterable[tuple[str, str]]:
        for name, value in self._all.items():
            upper = name.upper()
            if _SECRET.search(upper):
                continue
            if upper in _FOLDERS:
                kept = [one for one in value.split(os.pathsep) if self._steady(one)]
                if kept:
                    yield name, os.pathsep.join(kept)
            elif upper in _PASSED or upper.startswith("LC_"):
                yield name, value

    def _steady(self, folder: str) -> bool:
        """Whether a folder is the same wherever one stands, and no agent's."""
        return Path(folder).is_absolute() and not self._changeable(folder)

    def _changeable(self, path: str) -> bool:
        """Whether a place lies in a root, or leads into one."""
        places = {Path(os.path.normpath(path)), Path(os.path.realpath(path))}
        return any(place.is_relative_to(root) for place in places for root in self._roots)


def install(_arguments: Namespace, screen: Terminal) -> None:
    """Run the set-up of the C# language server, and end with its status.

    Raises:
        NotFoundError: Its program is not installed.
    """
    program = Programs(())("filepact-csharp")
    if program is None:
        raise NotFoundError(
            "the program filepact-csharp is not installed",
            hint="Run: pip install 'filepact[csharp]'",
        )
    command = [program, "setup", *(["--json"] if screen.json else [])]
    raise SystemExit(subprocess.run(command, check=False).returncode)  # noqa: S603 - what the extra installs
