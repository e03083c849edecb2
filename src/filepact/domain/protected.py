"""Names that are protected wherever they stand; no project can take these rules away."""

from __future__ import annotations

from typing import Final

from filepact.domain.policy import READS, WRITES, Rule

__all__ = ["BUILT_IN_RULES"]

BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="key stores",
        verdict="deny",
        actions=READS | WRITES,
        why="keys, passwords or tokens are kept under this name",
        paths=("id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "*.key", "*.pem", ".ssh", ".gnupg"),
    ),
    Rule(
        name="project secrets",
        verdict="deny",
        actions=READS | {"delete"},
        why="passwords or tokens of the project are kept under this name",
        paths=(".env", ".env.*", "!.env.example", "!.env.sample"),
    ),
    Rule(
        name="project secrets",
        verdict="ask",
        actions=WRITES - {"delete"},
        why="passwords or tokens of the project are kept under this name",
        paths=(".env", ".env.*", "!.env.example", "!.env.sample"),
    ),
    Rule(
        name="version control internals",
        verdict="deny",
        actions=WRITES,
        why="hooks and settings in there run code when version control is used",
        paths=(".bzr", ".git", ".hg", ".jj", ".svn"),
    ),
    Rule(
        name="own files",
        verdict="deny",
        actions=WRITES,
        why="it says what agents may do, and only a person may change it",
        paths=(".filepact.toml",),
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
        why="it steers agents and editors or runs code",
        paths=(".vscode", "AGENTS.md", "CLAUDE.md"),
    ),
)
"""The rules about names."""
