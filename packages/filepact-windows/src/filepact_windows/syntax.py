"""The parts of a line of source text that windows colour: comments, strings, numbers and keywords.

A line at a time and without grammars: what it costs does not depend on what a stranger wrote, and
a text of several lines within quotes is taken for what each of its lines looks like.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SyntaxKind", "SyntaxRange", "highlight"]

SyntaxKind = Literal["comment", "string", "number", "keyword"]

_LONGEST: Final = 2_000
_HASH: Final = (
    *("py", "pyi", "sh", "bash", "zsh", "rb", "pl", "toml", "yaml", "yml", "ini", "cfg", "conf"),
    *("mk", "cmake", "r", "jl", "nix", "tf", "dockerfile", "makefile", "gitignore", "ps1"),
)
_SLASHES: Final = (
    *("c", "h", "cc", "cpp", "cxx", "hpp", "cs", "java", "js", "jsx", "mjs", "cjs", "ts", "tsx"),
    *("go", "rs", "swift", "kt", "kts", "scala", "dart", "php", "zig", "proto", "css", "scss"),
    *("less", "groovy", "gradle", "jsonc", "vue", "svelte"),
)
_DASHES: Final = ("sql", "lua", "hs", "elm", "ada", "vhdl")
_NONE: Final = ("json",)
_MARKUP: Final = ("html", "htm", "xml", "svg", "xaml", "csproj", "props", "targets")

_STRING: Final = r"""(?P<string>"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)"""
_NUMBER: Final = r"(?P<number>\b(?:0[xXbBoO][0-9a-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?)\b)"
_WORD: Final = r"(?P<keyword>[A-Za-z_]\w*)"
_SMALL: Final = """
    abstract and as assert async await base begin bool boolean break byte case catch char class
    const constexpr continue debugger declare def default defer del delete do double elif else elseif
    end enum except explicit export extends extern false False final finally float fn for foreach
    from func function global go goto if impl implements import in include inline instanceof int
    interface internal is lambda let local long loop match mod module mut namespace native new nil
    none None nonlocal not null nullptr object operator or override package params pass private
    protected pub public raise readonly record ref require return sealed select self short signed
    sizeof static string struct super switch template then this throw throws trait true True try
    type typedef typename typeof union unless unsafe unsigned until use using val var virtual void
    volatile when where while with yield
"""
_CAPITAL: Final = """
    SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE ALTER DROP JOIN LEFT INNER ON AND OR NOT NULL
    VALUES INTO SET ORDER GROUP BY HAVING LIMIT DISTINCT UNION PRIMARY KEY INDEX AS IN IS RUN COPY CMD
    ENTRYPOINT WORKDIR ENV ARG EXPOSE
"""
_KEYWORDS: Final = frozenset(f"{_SMALL} {_CAPITAL}".split())


@dataclass(frozen=True, slots=True)
class SyntaxRange:
    """Characters of a line that are of one kind."""

    start: int
    end: int
    kind: SyntaxKind


@cache
def _pattern(comment: str) -> re.Pattern[str]:
    parts = [rf"(?P<comment>{comment})"] if comment else []
    return re.compile("|".join((*parts, _STRING, _NUMBER, _WORD)))


@cache
def _comment(kind: str) -> str | None:
    """How comments look in files of a kind; None where nothing is coloured."""
    if kind in _HASH:
        return r"(?:^|(?<=\s))\#.*"
    if kind in _SLASHES:
        return r"//.*|/\*.*?(?:\*/|$)|^\s*\*(?:\s.*|/?$)"
    if kind in _DASHES:
        return r"--.*"
    if kind in _MARKUP:
        return r"<!--.*?(?:-->|$)"
    return "" if kind in _NONE else None


def highlight(line: str, name: str) -> Iterator[SyntaxRange]:
    """The parts of a line, in order and not touching; none of a line that is very long.

    Args:
        line: Without its end.
        name: The file's name, of which the ending tells the language.
    """
    last = name.rpartition("/")[2].lower()
    comment = _comment(last.rpartition(".")[2])
    if comment is None or len(line) > _LONGEST:
        return
    for found in _pattern(comment).finditer(line):
        kind = found.lastgroup
        if kind == "keyword" and found[0] not in _KEYWORDS:
            continue
        yield SyntaxRange(found.start(), found.end(), kind)  # type: ignore[arg-type]  # one of ours
