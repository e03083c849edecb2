"""What a program behind layers sees: the roots, what an agent keeps at home, and no secrets."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.policy import EntryFilter
from filepact.errors import TooLargeError
from filepact.fs.outside import existing
from filepact.fs.path_form import is_beneath
from filepact.fs.walk import TreeReader
from filepact_run.inside import NamespaceSettings
from filepact_run.layer_reader import REPOSITORIES
from filepact_run.overlay import make_folders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.fs.root import Root
    from filepact.workspace.guard import Guard
    from filepact_run.run_folder import RunFolder

__all__ = ["AGENT_FOLDERS", "RunContext"]


class AgentFolders(NamedTuple):
    """The folders of an agent in a person's home, relative to it.

    Attributes:
        writable: Files and folders that it may change while it runs.
        fixed: Those in them that steer it, or run programs, the next time.
    """

    writable: tuple[str, ...]
    fixed: tuple[str, ...]


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


AGENT_FOLDERS: Final[Mapping[str, AgentFolders]] = {
    "claude": AgentFolders(
        (".claude", ".claude.json"),
        _in(
            ".claude",
            *("settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks"),
            *("plugins", "skills", "output-styles"),
        ),
    ),
    "codex": AgentFolders(
        (".codex",),
        _in(".codex", "config.toml", "hooks.json", "AGENTS.md", "prompts", "rules", "skills"),
    ),
    "gemini": AgentFolders(
        (".gemini",),
        _in(
            ".gemini",
            *("settings.json", "GEMINI.md", "commands", "extensions", "policies"),
            "trustedFolders.json",
        ),
    ),
    "opencode": AgentFolders(
        (
            *(".config/opencode", ".local/share/opencode", ".local/state/opencode"),
            ".cache/opencode",
        ),
        _in(
            ".config/opencode",
            *("opencode.json", "opencode.jsonc", "config.json", "package.json", "AGENTS.md"),
            *("agent", "agents", "command", "commands", "mode", "modes", "node_modules"),
            *("plugin", "plugins", "skill", "skills", "tool", "tools"),
        ),
    ),
    "copilot": AgentFolders(
        (".copilot",), _in(".copilot", "hooks", "mcp-config.json", "agents", "skills")
    ),
    "cursor-agent": AgentFolders(
        (".cursor",), _in(".cursor", "mcp.json", "hooks.json", "cli-config.json", "extensions")
    ),
}
"""By the program that starts the agent."""

_CACHES: Final = (".cache", ".npm")
"""Shown empty: what lies in there would be run, or installed, by the person later."""

_PACKAGES: Final = frozenset({"node_modules/"})
"""Not looked through for secrets: others' packages by the ten thousands."""

_SOCKETS: Final = (".docker/run", ".docker/desktop", ".local/share/containers/podman/machine")
_SYSTEM_SECRETS: Final = (
    *("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/ssh", "/var/lib/docker", "/var/spool/cron"),
)


class RunContext:
    """The files and folders that the program of a run may see and change.

    Args:
        guard: The roots and the rules.
        state: The state folder, which it may not see.
        home: The person's home folder; None for nobody's.
        secrets: The secrets below that, by absolute path.
        writable: What the person lets the program change as it is, by absolute path.

    Attributes:
        missing: Files that would steer an agent the next time, and were not there; absolute paths.
        made: Folders of that kind, which were made to have the program's own over them.
    """

    def __init__(
        self,
        guard: Guard,
        state: str,
        *,
        home: str | None,
        secrets: Sequence[str],
        writable: Sequence[str],
    ) -> None:
        self._guard = guard
        self._state = state
        self._home = home
        self._secrets = secrets
        self._writable = writable
        self.missing: tuple[str, ...] = ()
        self.made: tuple[str, ...] = ()

    def settings(self, folder: RunFolder) -> NamespaceSettings:
        """The mounts that make it so.

        Raises:
            TooLargeError: Not all secrets in a root can be found.
        """
        agent = folder.record.agent
        mine = AGENT_FOLDERS.get(agent, AgentFolders((), ()))
        own = self._at_home(mine.writable)
        make_folders(filter(_is_folder, own))
        steers = self._at_home(mine.fixed)
        missing = set(steers) - set(existing(steers))
        self.made = tuple(sorted(filter(_is_folder, missing)))
        make_folders(self.made)
        self.missing = tuple(missing - set(self.made))
        thrown_away = (*self._at_home(_CACHES), *self.made)
        hidden = [*_SYSTEM_SECRETS, *self._secrets, *self._at_home(_SOCKETS), self._state]
        roots = [root.path for root in self._guard.roots]
        inside: list[str] = []
        fixed: list[str] = []
        for root in self._guard.roots:
            names = _HiddenNames(self._guard, root, agent)
            inside += names.hidden
            fixed += names.repositories
        outside = [
            one
            for one in existing(hidden)
            if not any(is_beneath(one, kept) for kept in (*own, *self._writable, *roots))
        ]
        return NamespaceSettings(
            # A root in another is mounted over it.
            layers=tuple(sorted(folder.layers(), key=lambda one: one.root)),
            writable=existing((*own, *self._writable)),
            fixed=existing(
                (*(missing ^ set(steers)), *(one for one in fixed if one not in self._writable))
            ),
            hidden=(*_outermost(outside), *inside),
            temporary=tuple(one for one in existing(thrown_away) if one not in self._writable),
            private=folder.private,
        )

    def _at_home(self, names: Sequence[str]) -> tuple[str, ...]:
        return () if self._home is None else tuple(f"{self._home}/{name}" for name in names)


def _is_folder(path: str) -> bool:
    """Whether one of the paths above is that of a folder, which have no ending."""
    return "." not in basename(path).lstrip(".")


class _HiddenNames(EntryFilter):
    """The names in a root that a program may not read, and the repositories in it.

    Args:
        guard: The rules.
        root: The root.
        agent: The name that they know the program by.

    Attributes:
        hidden: Absolute paths.
        repositories: The insides of version control, which stay as they are; absolute paths.
    """

    def __init__(self, guard: Guard, root: Root, agent: str) -> None:
        self._rules = guard.listing(root, "read", agent=agent)
        self._prefix = f"{root.path.rstrip('/')}/"
        self.hidden: list[str] = []
        self.repositories: list[str] = []
        with TreeReader(root, allow=self, ignore=False) as entries:
            for _batch in entries.batches():
                pass
            if entries.cut or entries.too_deep:
                raise TooLargeError(
                    f"{root.path}: too many files, or folders too deep, to find the secrets that are to be hidden",
                    hint="Name a folder below it as the root: `filepact run --root DIR -- CMD`.",
                )

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        # All of them begin so; this is asked about each name in a tree.
        inside = {key for key in keys if key[0] == "." and key.rstrip("/").lower() in REPOSITORIES}
        self.repositories += [self._prefix + prefix + key.rstrip("/") for key in sorted(inside)]
        kept = self._rules.among(prefix, keys)
        if len(kept) < len(keys):
            gone = set(keys).difference(kept, inside)
            self.hidden += [self._prefix + prefix + key.rstrip("/") for key in sorted(gone)]
        if not inside and _PACKAGES.isdisjoint(kept):
            return kept
        return [key for key in kept if key not in inside and key not in _PACKAGES]


def _outermost(paths: Sequence[str]) -> list[str]:
    """Paths without those that lie in others of them."""
    kept: list[str] = []
    for path in sorted(paths):
        if not kept or not is_beneath(path, kept[-1]):
            kept.append(path)
    return kept
