"""Programs that may be started as language servers, and the environment variables that they get.

Nothing is ever started that lies in a folder which agents may change, whatever the search path says:
it could be theirs.  What a server sees is chosen by name, and nothing that looks like a secret passes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import NotFoundError
from filepact.values import late_regex

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from filepact_cli.screen import Terminal
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["CHANGEABLE", "Programs", "install"]

CHANGEABLE: Final = "FILEPACT_CHANGEABLE"
"""The variable that names the folders that agents may change, for servers that look for programs."""

_OURS: Final = "filepact-"
_PATIENCE: Final = 20.0
_KEPT_WELL: Final = 86_400.0
_KEPT_ILL: Final = 600.0
"""Seconds for which an answer counts; somebody may mend a bad one at any time."""

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
_MATTERS: Final = frozenset({"HOME", "PATH", "DOTNET_ROOT", "XDG_CACHE_HOME", CHANGEABLE})
"""Variables by which a program may answer otherwise."""

_FOLDERS: Final = frozenset(
    {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"}
)
"""Lists of folders; those that agents may change are taken out."""

_SECRET: Final = late_regex(r"(?:^|_)(?:KEY|TOKEN|SECRET)S?$|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL")


class Programs:
    """Programs by their names, as far as they may be started for some folders.

    Args:
        roots: The folders that agents may change.
        environment: All variables; None takes those of this process.
        kept: What programs that a server needs have answered earlier, as `answers` has it.
    """

    def __init__(
        self,
        roots: Iterable[str],
        environment: Mapping[str, str] | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self._roots = tuple(map(os.path.realpath, roots))
        self._all = dict(os.environ if environment is None else environment)
        self._found: dict[str, str | None] = {}
        self._said: dict[str, Mapping[str, object]] = {}
        changeable = os.pathsep.join(self._roots)
        self.environment = {**dict(self._chosen()), CHANGEABLE: changeable}
        """The variables that servers see."""
        self._kept = dict(kept or {})
        self.answers: dict[str, list[Any]] = {}
        """What programs that were run have answered, to be kept: when, whether well, and facts."""
        self.refused: dict[str, str] = {}
        """Programs that are there and are not started, because of the folder that they lie in."""

    def __call__(self, name: str) -> str | None:
        """The absolute path of a program, or None where there is none that may be started.

        Args:
            name: As on a command line, or absolute.  A program with arguments is run, and counts
                as there if it ends well: see `filepact_diagnostics.lsp.spec.ServerSpec.needs`.
        """
        if name not in self._found:
            program, *words = [name] if os.path.isabs(name) else name.split(" ")
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
        """Whether a program ends well; what it prints is kept.

        One that has answered not long ago, and is the same since, is not run again.
        """
        key = self._mark(program, words)
        when, well, facts = self._kept.get(key, (0.0, False, {}))
        if not 0 <= time.time() - when < (_KEPT_WELL if well else _KEPT_ILL):
            well, facts = self._run(program, words)
            self.answers[key] = [time.time(), well, facts]
        self._said[name] = facts
        return bool(well)

    def _mark(self, program: str, words: Sequence[str]) -> str:
        """Return the key of an answer: the program, its arguments, and the variables by which others are found."""
        try:
            status = os.stat(program)
        except OSError:
            return ""
        seen = [value for name, value in sorted(self.environment.items()) if name in _MATTERS]
        return json.dumps([program, *words, status.st_mtime_ns, status.st_size, *seen])

    def _run(self, program: str, words: Sequence[str]) -> tuple[bool, dict[str, object]]:
        """Whether a program ends well, and the facts that it prints."""
        import subprocess  # noqa: PLC0415 - mostly nothing is run

        try:
            done = subprocess.run(  # noqa: S603 - a program that may be started, as a server needs it
                [program, *words],
                cwd=os.path.dirname(program),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False, {}
        try:
            facts = json.loads(done.stdout)
        except ValueError:
            facts = None
        return done.returncode == 0, facts if isinstance(facts, dict) else {}

    def _search(self, name: str) -> str | None:
        if os.sep in name and not os.path.isabs(name):
            return None
        paths = [self.environment.get("PATH", ""), self._all.get("PATH", "")]
        if name.startswith(_OURS):
            # What an extra has installed beside us, whether or not that folder is on the path.
            paths.insert(0, os.path.dirname(sys.executable))
        for path in paths:
            found = _which(name, path)
            if found is None:
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
        return os.path.isabs(folder) and not self._changeable(folder)

    def _changeable(self, path: str) -> bool:
        """Whether a place lies in a root, or leads into one."""
        places = {os.path.normpath(path), os.path.realpath(path)}
        return any(
            f"{place}/".startswith(f"{root.rstrip('/')}/")
            for place in places
            for root in self._roots
        )


def _which(name: str, path: str) -> str | None:
    """The absolute path of a program on a search path, as `shutil.which` finds it there."""
    for folder in path.split(os.pathsep):
        found = os.path.join(folder, name)
        if os.path.isabs(found) and os.access(found, os.X_OK) and os.path.isfile(found):
            return found
    return None


def install(arguments: Namespace, screen: Terminal) -> None:
    """Run the set-up of the C# language server, and end with its status.

    Raises:
        NotFoundError: Its program is not installed.
    """
    program = Programs(())("filepact-csharp")
    if program is None:
        raise NotFoundError(
            "the program filepact-csharp is not installed",
            hint="Install filepact's extra `csharp`.",
        )
    from filepact.app import write_answers  # noqa: PLC0415 - loads the database
    from filepact.config.person import state_folder  # noqa: PLC0415 - with it

    command = [program, "setup", *(["--json"] if screen.json else [])]
    import subprocess  # noqa: PLC0415 - only here

    status = subprocess.run(command, check=False).returncode  # noqa: S603 - what the extra installs
    write_answers(state_folder(arguments.state), None)  # it answers otherwise now
    raise SystemExit(status)
