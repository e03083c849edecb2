"""The built-in rules: names that are protected wherever they stand.

No project can take these rules away; a person or an administrator can, rule by rule and for paths
that they name.  What a rule protects depends on the name alone, so a file that does not exist yet
is protected as well.
"""

from __future__ import annotations

from typing import Final

from filepact.domain.policy import READS, WRITES, Rule
from filepact.domain.protected_accounts import AGENT_TOKENS, CLOUDS, PASSWORDS
from filepact.domain.protected_agents import AGENTS, EDITORS
from filepact.domain.protected_keys import BROWSERS_AND_MAIL, PASSWORD_STORES, PRIVATE_KEYS
from filepact.domain.protected_manifests import MANIFESTS, PACKAGES
from filepact.domain.protected_settings import ENVIRONMENTS, PROJECT_FILES, SPARED
from filepact.domain.protected_startup import CI, HOOKS, SHELLS, SYSTEM

__all__ = ["BUILT_IN_RULES"]

_SECRETS: Final = (*ENVIRONMENTS, *PROJECT_FILES, *SPARED)
_SECRETS_WHY: Final = "passwords or tokens of the project are kept under this name"

BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="key stores",
        verdict="deny",
        actions=READS | WRITES,
        why="keys, passwords or tokens are kept under this name",
        paths=(
            *PASSWORD_STORES,
            *BROWSERS_AND_MAIL,
            *CLOUDS,
            *AGENT_TOKENS,
            *PASSWORDS,
            *PRIVATE_KEYS,
        ),
    ),
    Rule(
        name="project secrets",
        verdict="deny",
        # Whoever deletes or moves it could bring it back under another name.
        actions=READS | {"delete"},
        why=_SECRETS_WHY,
        paths=_SECRETS,
    ),
    Rule(
        name="project secrets",
        verdict="ask",
        actions=WRITES - {"delete"},
        why=_SECRETS_WHY,
        paths=_SECRETS,
    ),
    Rule(
        name="version control internals",
        verdict="deny",
        actions=WRITES,
        why="hooks and settings in there run code when version control is used",
        paths=(
            "*.fossil",
            ".bzr",
            ".fslckout",
            ".git",
            ".hg",
            ".jj",
            ".pijul",
            ".sl",
            ".svn",
            "_darcs",
            "_fossil_",
        ),
    ),
    Rule(
        name="version control settings",
        verdict="ask",
        actions=READS,
        why="the address of a remote may have a password in it",
        paths=(
            "**/*.git/config",
            "**/.bzr/branch/branch.conf",
            "**/.git/config.worktree",
            "**/.git/modules/**/config",
            "**/.git/worktrees/*/config.worktree",
            "**/.jj/repo/config.toml",
        ),
    ),
    Rule(
        name="own files",
        verdict="deny",
        actions=WRITES,
        why="it says what agents may do, and only a person may change it",
        paths=(".filepact.toml", ".guardignore", "filepact.toml"),
    ),
    Rule(
        name="temporary files of filepact",
        verdict="deny",
        actions=READS | WRITES,
        why="it exists only while filepact replaces a file",
        paths=(".filepact-*",),
    ),
    Rule(
        name="control files",
        verdict="ask",
        actions=WRITES,
        why="it steers agents or editors, or runs code that nobody has started",
        paths=(*AGENTS, *EDITORS, *CI, *HOOKS, *SHELLS, *SYSTEM, *PACKAGES),
    ),
    Rule(
        name="manifests",
        verdict="ask",
        actions=WRITES,
        why="it says what is installed, built and run",
        paths=MANIFESTS,
    ),
)
"""The rules about names."""
