"""Which programs may be started as language servers, and what they see of this person's environment.

Nothing is ever started that lies in a folder which agents may change, whatever the search path says:
it could be theirs.  What a server sees is chosen by name, and nothing that looks like a secret passes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.csharp.found import Toolchain

__all__ = ["Programs"]

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
        self.environment = dict(self._chosen())
        """The variables that servers see."""
        self.refused: dict[str, str] = {}
        """Programs that are there and are not started, because of the folder that they lie in."""

    def __call__(self, name: str) -> str | None:
        """The absolute path of a program, or None where there is none that may be started.

        Args:
            name: As on a command line, or absolute; names that begin with ``filepact-`` stand for
                what comes with this program, see `filepact.lsp.servers.Server.needs`.
        """
        if name not in self._found:
            self._found[name] = (
                self._own(name) if name.startswith("filepact-") else self._search(name)
            )
        return self._found[name]

    @cached_property
    def csharp(self) -> Toolchain | None:
        """The compiler for C# and its runtime, if they are there and may be started."""
        from filepact.csharp.found import USUAL, find  # noqa: PLC0415 - only for C#
        from filepact.faces.cli.csharp_setup import own_folder  # noqa: PLC0415 - the same

        home = self._all.get("HOME", "")
        return find(
            dotnet_root=self._all.get("DOTNET_ROOT", ""),
            path=self.environment.get("PATH", ""),
            usual=(*([str(Path(home, ".dotnet"))] if home else []), *USUAL),
            own=str(own_folder()),
            allowed=lambda folder: not self._changeable(folder),
        )

    def _own(self, name: str) -> str | None:
        """Where something is that is ours to find."""
        if name == "filepact-python":
            return sys.executable or None
        if name == "filepact-tree-sitter":
            return _module("tree_sitter", "tree_sitter_c_sharp")
        if name in ("filepact-roslyn", "filepact-dotnet"):
            # Neither is of any use without the bridge to them.
            found = self.csharp if _module("pythonnet", "clr_loader") else None
            if found is not None:
                return found.roslyn if name == "filepact-roslyn" else found.dotnet
        return None

    def _search(self, name: str) -> str | None:
        if os.sep in name and not Path(name).is_absolute():
            return None
        for path in (self.environment.get("PATH", ""), self._all.get("PATH", "")):
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


@cache
def _module(*names: str) -> str | None:
    """The file of the first of some modules, if all are there."""
    found = [find_spec(name) for name in names]
    return found[0].origin if found[0] is not None and all(found) else None
