"""The built-in rules: names that are protected wherever they stand, and signs of a file or a change.

No project can take these rules away; a person or an administrator can, rule by rule and for paths
that they name.  What a rule about names protects depends on the name alone, so a file that does not
exist yet is protected as well.  The names themselves are data, in ``protected_names.txt`` beside this
module.
"""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Any, Final, cast

from filepact.domain.names import key
from filepact.domain.policy import READS, WRITES, Rule
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.machinery import SourceFileLoader

    from filepact.domain.policy import Action, Sign, Verdict

__all__ = [
    "AGENT_LOGS",
    "BUILT_IN_RULES",
    "NAMES",
    "SIGN_RULES",
    "has_agent_logs",
    "is_agent_log",
    "is_bookkeeping",
    "is_in_git",
    "is_repository",
    "leads_to_git",
    "may_be_inside",
    "steers_git",
]


def _names() -> dict[str, dict[str, tuple[str, ...]]]:
    """The lists of each rule by their titles, as they stand in the file."""
    loader = cast("SourceFileLoader", __spec__.loader)
    data = loader.get_data(join(dirname(__file__), "protected_names.txt"))
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for part in f"\n{data.decode()}".split("\n[")[1:]:
        rule, _, rest = part.partition("]\n")
        lists = (each.partition("\n") for each in f"\n{rest}".split("\n== "))
        found[rule] = {
            title: names
            for title, _, lines in lists
            if (names := tuple(one for one in lines.split("\n") if one and one[:2] != "# "))
        }
    return found


NAMES: Final = _names()
"""By rule, and by the title of each of its lists; a rule of one list has none.  `harmless` has a part of its own."""

_SECRETS_WHY: Final = "passwords or tokens of the project are kept under this name"


def _paths(rule: str) -> tuple[str, ...]:
    return tuple(name for names in NAMES[rule].values() for name in names)


def _named(name: str, verdict: Verdict, actions: frozenset[Action], why: str, **more: Any) -> Rule:
    """The rule about the names that are listed under its own."""
    return Rule(name, verdict, _paths(name), why, actions, **more)


BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    _named(
        "key stores",
        "deny",
        READS | WRITES,
        "keys, passwords or tokens are kept under this name",
        copies=True,
    ),
    _named(
        "project secrets",
        "deny",
        # Whoever deletes or moves it could bring it back under another name.
        READS | {"delete"},
        _SECRETS_WHY,
        copies=True,
    ),
    _named(
        "project secrets",
        "ask",
        WRITES - {"delete"},
        _SECRETS_WHY,
        copies=True,
    ),
    _named(
        "version control internals",
        "deny",
        WRITES,
        "hooks and settings in there run code when version control is used",
    ),
    _named(
        "version control settings",
        "ask",
        READS,
        "the address of a remote may have a password in it",
    ),
    _named(
        "own files", "deny", WRITES, "it says what agents may do, and only a person may change it"
    ),
    _named(
        "temporary files of filepact",
        "deny",
        READS | WRITES,
        "it exists only while filepact replaces a file",
    ),
    _named(
        "control files",
        "ask",
        WRITES,
        "it steers agents or editors, or runs code that nobody has started",
        apart=_paths("working places"),
        files=frozenset({"owners"}),
    ),
    _named(
        "manifests",
        "ask",
        WRITES,
        "it says what is installed, built and run",
        spares="harmless",
        files=frozenset(
            {"build", "workspace", "targets", "deps", "kbuild", "kconfig", "description"}
        ),
    ),
)
"""The rules about names."""


def _shows(
    sign: Sign,
    name: str,
    why: str,
    *,
    verdict: Verdict = "ask",
    actions: frozenset[Action] = WRITES,
) -> Rule:
    return Rule(name, verdict, (), why, actions, signs=frozenset({sign}))


SIGN_RULES: Final[tuple[Rule, ...]] = (
    _shows(
        "private key",
        "private keys",
        "the file holds a private key, whatever it is called",
        verdict="deny",
        actions=READS | WRITES,
    ),
    _shows(
        "repository",
        "version control internals",
        "with it the folder is a Git repository, whose settings run code",
        verdict="deny",
    ),
    _shows(
        "hidden characters",
        "hidden characters",
        "it puts in characters that a reader does not see or takes for others",
    ),
    _shows(
        "encoding",
        "unusual encodings",
        "programs may read its bytes otherwise than people see them",
    ),
    _shows(
        "look-alike name",
        "look-alike names",
        "the new name looks like that of a file beside it",
    ),
    _shows(
        "shell name",
        "names that trip programs",
        "a shell, a command or another system takes the new name for something else",
    ),
    _shows("executable", "executable files", "the change lets the file run as a program"),
)
"""The rules about what a file or a change shows, whatever its name."""


# -- folders that Git takes for a repository ------------------------------------------------------
#
# Git looks for `HEAD`, `objects` and `refs` beside each other (`is_git_directory` in its `setup.c`; with
# `commondir`, which names another folder for both, two files are enough), whatever the folder is
# called.  Whoever stands in it and says ``git status``, as a prompt of a shell does, runs what its
# `config` says.


_PARTS: Final = frozenset(
    {
        *("head", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "info"),
        *("modules", "worktrees", "packed-refs", "index", "gitdir", "reftable"),
    }
)


def may_be_inside(path: str) -> Iterator[str]:
    """The folders above a path that it would be a part of, if they were repositories.

    Args:
        path: Relative to a root; ``.`` stands for the root in the answer.
    """
    parts = path.split("/")
    for at, part in enumerate(parts):
        if key(part) in _PARTS:
            yield "/".join(parts[:at]) or "."


def is_repository(folder: str, there: Callable[[str], bool]) -> bool:
    """Whether Git would take a folder for a repository.

    Args:
        folder: Its path; ``.`` for the root.
        there: Whether something is at a path, or is to be.
    """
    inside = "" if folder == "." else f"{folder}/"
    return there(f"{inside}HEAD") and (
        there(f"{inside}commondir") or (there(f"{inside}objects") and there(f"{inside}refs"))
    )


# -- what in a Git folder runs code, or says which code runs ----------------------------------------


_GIT_FOLDER: Final = r"(?:.+/)?\.git(?:/(?:modules|worktrees)/.+)?"
_STEERS: Final = late_regex(
    rf"{_GIT_FOLDER}/(?:config(?:\.worktree)?|commondir|info(?:/exclude|/attributes)?|hooks(?:/.+)?)\Z"
    r"|(?:.+/)?\.git(?:/(?:modules|worktrees)(?:/[^/]+)?)?\Z"
)
_LEADS: Final = late_regex(
    r"(?:.+/)?\.git(?:/(?:hooks|modules)(?:/.+)?|/info|/worktrees(?:/[^/]+(?:/(?:hooks|info))?)?)?\Z"
)
_SETTING: Final = late_regex(r"\s*([a-z][a-z0-9-]*)\s*(?:=\s*(.*?))?\s*", re.IGNORECASE | re.ASCII)
_SECTION: Final = late_regex(
    r'\s*\[\s*([a-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]\s*', re.IGNORECASE | re.ASCII
)
_HARMLESS: Final = late_regex(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|sparsecheckout(cone)?)"
    r"|extensions\.(worktreeconfig|objectformat|refstorage|partialclone|relativeworktrees)"
    r"|remote\.(url|pushurl|fetch|push|tagopt|prune|prunetags|mirror|promisor|partialclonefilter"
    r"|skipfetchall|skipdefaultupdate|followremotehead|gh-resolved)"
    r"|branch\.(?!mergeoptions\Z).+|user\.(name|email)|submodule\.(url|active|branch|ignore)"
    r"|(advice|color|feature|index|maintenance|rerere)\..+|fetch\.(prune|prunetags|parallel)"
    r"|gc\.(auto|autodetach|pruneexpire|reflogexpire|reflogexpireunreachable|worktreepruneexpire)"
    r"|init\.defaultbranch|lfs\.repositoryformatversion|pull\.(rebase|ff)|(commit|tag)\.gpgsign"
    r"|push\.(default|autosetupremote|followtags)|rebase\.(autostash|autosquash)"
)
"""Settings by which no program is started, and nothing is read from elsewhere, without their subsection."""


def steers_git(path: str) -> bool:
    """Whether a file beneath a root is one by which Git runs code, or that says which: hooks, settings, attributes.

    The examples that Git itself puts among hooks are none.  A ``.git`` that is a file names the folder with the settings,
    and a link in the place of a folder leads to others.
    """
    return ".git" in path and not path.endswith(".sample") and _STEERS.match(path) is not None


def leads_to_git(path: str) -> bool:
    """Whether a folder beneath a root is one that such a file may lie in."""
    return ".git" in path and _LEADS.match(path) is not None


def is_in_git(path: str) -> bool:
    """Whether a path beneath a root is a Git folder, or lies in one."""
    return ".git" in path and ".git" in path.split("/")


def is_bookkeeping(root: str, path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether a change of a file that steers Git is one that everyday commands make, and that starts no program.

    Such as a remote or the upstream of a branch in ``config``, or a ``.git`` that leads to another worktree.

    Args:
        root: The folder that the path starts at, absolute.
        path: One for which `steers_git` holds.
        before: What it held; None for no file.
        after: What it holds.
    """
    name, folder = path.rpartition("/")[2], join(root, dirname(path))
    sides = [one for one in (before, after) if one is not None]
    if "/hooks/" in path:
        return False
    if name == "commondir":
        return "/.git/worktrees/" in f"/{path}" and all(one.strip() == b"../.." for one in sides)
    if name == ".git":
        # What an ignored folder holds is not watched; what lies above a file that is seen is none.
        tops = [_inside(root, folder, one, "gitdir: ").partition("/.git/") for one in sides]
        return all(
            f"{folder}/".startswith(f"{top or '?'}/")
            and kind.startswith(("worktrees/", "modules/"))
            for top, _, kind in tops
        )
    held: list[object] = []
    if name in ("exclude", "attributes"):
        held += ({*filter(None, map(_uncommented, one.splitlines()))} for one in sides)
    elif name in ("config", "config.worktree") and not (path == ".git/config" and after is None):
        for settings in map(_settings, sides):
            if settings is None:
                return False
            # In their order, since the last one of a name counts.
            held.append([one for one in settings if not _is_harmless(root, folder, *one)])
    else:
        return False
    return held[0] == held[1] if len(held) > 1 else not held[0]


def _is_harmless(root: str, folder: str, name: str, _section: str, value: str) -> bool:
    if name == "core.worktree":
        return bool(_inside(root, folder, value.encode()))
    # An address with two colons is a program's.
    return _HARMLESS.fullmatch(name) is not None and "::" not in value


def _inside(root: str, folder: str, name: bytes, lead: str = "") -> str:
    """Where a name in a file leads, if that is beneath the root; else empty."""
    target = name.decode("utf-8", "replace").strip()
    place = normpath(join(folder, target.removeprefix(lead)))
    return place if target.startswith(lead) and place.startswith(f"{root.rstrip('/')}/") else ""


def _uncommented(line: bytes) -> bytes:
    return b"" if line.startswith(b"#") else line.strip()


def _settings(data: bytes) -> list[tuple[str, str, str]] | None:
    """The settings of Git that a text holds, each with its section in full; None where Git would not write it so."""
    found: list[tuple[str, str, str]] = []
    section = whole = ""
    for line in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"):
        head, said = _SECTION.fullmatch(line), _SETTING.fullmatch(line)
        if line.endswith("\\"):
            return None
        if head:
            section, whole = head[1].lower(), line.strip()
        elif said and section:
            found.append((f"{section}.{said[1].lower()}", whole, said[2] or ""))
        elif line.strip() and line.lstrip()[0] not in "#;":
            return None
    return found


# -- what agents keep for themselves: logs, sessions and caches ------------------------------------
#
# Nothing is here that steers an agent or runs: what does is protected, and stays in sight.


AGENT_LOGS: Final[Mapping[str, tuple[str, ...]]] = {
    "aider": (
        ".aider.chat.history.md",
        ".aider.input.history",
        ".aider.llm.history",
        ".aider.tags.cache.v*/",
    ),
    "crush": (".crush/crush.db*", ".crush/logs/"),
    "fast-agent": (".fast-agent/logs/", ".fast-agent/sessions/", "fastagent.jsonl"),
}
"""By agent: paths at the top of a root; a slash at the end means all below, a star any name."""


def _pattern(path: str) -> str:
    return re.escape(path).replace(r"\*", "[^/]*") + ("" if path.endswith("/") else r"\Z")


_KEPT: Final = late_regex("|".join(_pattern(path) for kept in AGENT_LOGS.values() for path in kept))


def is_agent_log(path: str) -> bool:
    """Whether a path beneath a root is one of these."""
    return _KEPT.match(path) is not None


def has_agent_logs(folder: str) -> bool:
    """Whether a folder beneath a root is where agents put them."""
    below = f"{folder}/"
    names = (path for kept in AGENT_LOGS.values() for path in kept)
    return is_agent_log(below) or any(path.startswith(below) for path in names)
