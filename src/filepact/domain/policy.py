"""What may be done to which name: a pure function over rules, failing closed.

Precedence, highest first: a rule that denies, a rule that asks, a rule that allows, else allow
(whoever asks is already beneath a root).  A name is compared by its *key*, so that a disguise
(letter case, compatibility characters, invisible characters, trailing dots, streams, short
names) is the name it would reach on some system.  Callers ask for the name as it was sent and
for the name with every link resolved; both must pass.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BUILT_IN_RULES", "Action", "Decision", "Rule", "Verdict", "decide", "key", "suspicion"]

Action = Literal["read", "list", "write", "create", "delete"]
Verdict = Literal["allow", "ask", "deny"]

READS: frozenset[Action] = frozenset({"read"})
WRITES: frozenset[Action] = frozenset({"write", "create", "delete"})

_PRECEDENCE: dict[Verdict, int] = {"deny": 0, "ask": 1, "allow": 2}
_SHORT_NAME = re.compile(r"git~\d+")


@dataclass(frozen=True, slots=True)
class Rule:
    """Names that share a verdict.

    A path is covered when its own name is covered or when a folder above it is.

    Attributes:
        name: How the rule is called when it decides, such as ``secret files``.
        actions: What it decides about.
        why: One sentence for the reader of a refusal.
        names: Whole names, in key form.
        starts: Beginnings of a name.
        ends: Ends of a name.
        folders: Names of folders that are covered with all they hold.
        tails: Ends of a path, several parts long, joined by ``/``.
        spared: Whole names that are not covered though a pattern above says so.
        spared_ends: Ends of a name that are not covered.
    """

    name: str
    verdict: Verdict
    actions: frozenset[Action]
    why: str
    names: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    tails: tuple[str, ...] = ()
    spared: frozenset[str] = frozenset()
    spared_ends: tuple[str, ...] = ()

    def covers(self, parts: tuple[str, ...]) -> bool:
        """Whether a path, given as the keys of its parts, is one of the rule's."""
        if not self.folders.isdisjoint(parts):
            return True
        if any(self._names(part) for part in parts):
            return True
        return bool(self.tails) and f"/{'/'.join(parts)}".endswith(self.tails)

    def _names(self, part: str) -> bool:
        if part in self.spared or (self.spared_ends and part.endswith(self.spared_ends)):
            return False
        return part in self.names or part.startswith(self.starts) or part.endswith(self.ends)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the rule that gave it."""

    verdict: Verdict
    rule: str
    why: str = ""


DEFAULT = Decision("allow", "default", "inside a root and protected by no rule")

# Examples are what a project shares on purpose; blocking them would only hide documentation.
_SHARED_ENV = (".example", ".sample", ".template", ".dist", ".schema", ".defaults")

BUILT_IN_RULES: tuple[Rule, ...] = (
    Rule(
        name="secret files",
        verdict="deny",
        actions=READS | WRITES,
        why="the name is one under which keys, passwords or tokens are kept",
        names=frozenset(
            {
                ".boto",
                ".env",
                ".envrc",
                ".flaskenv",
                ".git-credentials",
                ".htpasswd",
                ".my.cnf",
                ".netrc",
                ".pgpass",
                ".pypirc",
                ".s3cfg",
                ".terraformrc",
                ".vault-token",
                "_netrc",
                "application_default_credentials.json",
                "credentials.json",
                "credentials.yml.enc",
                "id_dsa",
                "id_ecdsa",
                "id_ed25519",
                "id_rsa",
                "master.key",
                "secrets.env",
                "service-account.json",
                "service_account.json",
                "wallet.dat",
            }
        ),
        starts=(".env.",),
        ends=(
            "_dsa",
            "_ecdsa",
            "_ed25519",
            "_rsa",
            ".agilekeychain",
            ".bek",
            ".env",
            ".fve",
            ".jks",
            ".kdbx",
            ".key",
            ".keychain",
            ".keychain-db",
            ".keystore",
            ".kwallet",
            ".ovpn",
            ".p12",
            ".pem",
            ".pfx",
            ".pkcs12",
            ".ppk",
            ".psafe3",
            ".tfstate",
            ".tfstate.backup",
            ".tfvars",
            "_history",
        ),
        folders=frozenset({".gnupg", ".password-store", ".ssh"}),
        tails=(
            "/.aws/credentials",
            "/.aws/config",
            "/.azure/accesstokens.json",
            "/.cargo/credentials",
            "/.cargo/credentials.toml",
            "/.claude/.credentials.json",
            "/.codex/auth.json",
            "/.config/gcloud/credentials.db",
            "/.config/gh/hosts.yml",
            "/.docker/config.json",
            "/.kube/config",
            "/.m2/settings.xml",
            "/.terraform.d/credentials.tfrc.json",
        ),
        spared=frozenset({"_history"}),
        spared_ends=_SHARED_ENV,
    ),
    Rule(
        name="version control internals",
        verdict="deny",
        actions=WRITES,
        why="hooks and settings in there run code when version control is used",
        folders=frozenset({".bzr", ".git", ".hg", ".jj", ".svn"}),
    ),
    Rule(
        name="temporary files of filepact",
        verdict="deny",
        actions=READS | WRITES,
        why="it exists only while filepact replaces a file",
        starts=(".filepact-",),
    ),
)
"""The rules that no project can remove."""


@lru_cache(maxsize=65_536)
def key(part: str) -> str:
    """One part of a path as rules compare it: what a lenient system would take it for."""
    if part.isascii():
        plain = part.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", part).casefold())
        plain = "".join(c for c in folded if not _ignorable(c))
    head, colon, _stream = plain.partition(":")
    if colon and head:
        plain = head
    plain = plain.rstrip(". ") or plain
    return ".git" if _SHORT_NAME.fullmatch(plain) else plain


def _ignorable(char: str) -> bool:
    """Format and variation characters, which some file systems leave out of comparisons."""
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f" or char == "\u034f"


def suspicion(action: Action, rules: tuple[Rule, ...]) -> Callable[[str], bool]:
    """A quick question about one part of a path: could any rule cover a path that ends in it?

    Nearly every name in a tree is told to be harmless by it in a fraction of a microsecond; only
    for the others `decide` has to be asked.
    """
    named = [rule for rule in rules if action in rule.actions]
    whole = frozenset().union(*(rule.names | rule.folders for rule in named))
    whole |= {tail.rpartition("/")[2] for rule in named for tail in rule.tails}
    starts = tuple(start for rule in named for start in rule.starts)
    ends = tuple(end for rule in named for end in rule.ends)

    def suspicious(part: str) -> bool:
        # Of most names the key is plain to see, and a tree has too many to remember them all.
        odd = not part.isascii() or part[-1:] in ". " or ":" in part or "~" in part
        plain = key(part) if odd else part.lower()
        return plain in whole or plain.startswith(starts) or plain.endswith(ends)

    return suspicious


def decide(path: str, action: Action, rules: tuple[Rule, ...] = BUILT_IN_RULES) -> Decision:
    """Decide about one name.

    Args:
        path: Parts joined by ``/``, relative to a root; ``.`` parts are skipped.
        action: What is to be done.
        rules: Every rule in force, in any order.
    """
    parts = tuple(key(part) for part in path.split("/") if part not in ("", "."))
    found = [rule for rule in rules if action in rule.actions and rule.covers(parts)]
    if not found:
        return DEFAULT
    first = min(found, key=lambda rule: _PRECEDENCE[rule.verdict])
    return Decision(first.verdict, first.name, first.why)
