"""Classes are named by words that the glossary or the field has, and docstrings have a subject or a verb."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.architecture.project import HOUSE, ROOT, dotted, syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = (*HOUSE, *sorted((ROOT / "packages").glob("*/src/**/*.py")))
PUBLIC = ("src/filepact/__init__.py", "src/filepact/acp.py", "packages/acp-conformance/src")
"""Where names are listed that other programs rely on; these stay as they are."""

NOUNS = {
    "task",  # of the protocol for tools
    # A request and what comes of it: of a function, of a protocol, for a person or an agent.
    *("request", "result", "response", "answer", "error", "problem", "call", "method", "parameter"),
    *(
        "selection",
        "recorder",
        "recording",
        "message",
        "event",
        "connection",
        "protocol",
        "context",
        "step",
        "end",
    ),
    # What does something.
    *(
        "reader",
        "writer",
        "publisher",
        "parser",
        "handler",
        "watcher",
        "engine",
        "filter",
        "check",
        "update",
    ),
    *("process", "thread", "program", "compiler", "lifecycle", "transaction", "sync"),
    # What holds something.
    *("index", "tree", "list", "group", "item", "entry", "record", "cache", "store", "database"),
    *(
        "pool",
        "content",
        "package",
        "extension",
        "library",
        "project",
        "solution",
        "history",
        "element",
    ),
    # What describes something.
    *("setting", "option", "status", "summary", "statistic", "count", "limit", "info", "spec"),
    # Of what a shell is given, and what is said of it.
    *("shell", "script", "word", "argument", "judge", "verdict"),
    *("profile", "kind", "format", "pattern", "property", "explanation", "hint", "access"),
    # Where something is or comes from.
    *("path", "position", "range", "excerpt", "page", "source", "side", "disk", "terminal"),
    *("pipe", "socket", "frame", "image", "query", "search", "secret", "syntax"),
    *("encoding", "line", "daemon", "namespace", "mount", "audit"),
    *("link", "move", "overwrite"),
    # Commands and tools of ours.
    *("command", "tour", "prune", "salvage", "load", "trust", "write", "review"),
}
"""Nouns of the field that need no explanation; before one is added, look for the one that is here."""

STATES = {
    *("open", "pending", "changed", "skipped", "invalid", "unknown"),
    *("failed", "timeout", "cancelled", "closed", "exited", "simple"),
}

FORMS = {
    "committer": "commit",
    "ignored": "ignore",
    "logged": "log",
    "matcher": "match",
    "merged": "merge",
    "named": "name",
    "rebased": "rebase",
    "resolver": "resolution",
    "staged": "staging",
}
"""Other forms of words of the glossary."""

PROPER = {
    *(
        "claim",
        "gateway",
        "http",
        "issuer",
        "metric",
        "realm",
        "token",
        "user",
        "worker",
    ),  # of gateways
    *("acp", "conductor", "sdk"),  # the Agent Client Protocol and its package
    "elicitation",  # the Model Context Protocol
    "telemetry",  # OpenTelemetry
    "git",
    *("framework", "global", "using", "roslyn", "toolchain", "xml"),  # C# and MSBuild
    *("config", "glob", "toml", "work"),  # EditorConfig, TOML; Git's work tree
    *("action", "code", "formatting", "reference", "rename", "symbol"),  # LSP
    *(
        "inotify",
        "openat2",
        "short",
        "postgre",  # Postgres, as one
        "sql",
        "sqlite",
        "trigram",
    ),  # systems; short names are those of Windows
}
"""Names of things that others have named."""


def singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


def terms() -> frozenset[str]:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"^- \*\*([^*]+)\*\*", glossary, flags=re.MULTILINE)
    return frozenset(singular(word) for term in found for word in re.findall("[a-z]+", term))


def public() -> frozenset[str]:
    names: set[str] = set()
    files = [file for place in PUBLIC for file in (ROOT / place, *(ROOT / place).glob("*/*.py"))]
    files = [file for file in files if file.name in {"__init__.py", "acp.py"}]
    for file in (*files, *(ROOT / "src/filepact/integrations").glob("*.py")):
        for node in syntax(file).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return frozenset(names)


def classes() -> Iterator[str]:
    """The classes without an underscore, but for errors with a code, which is their name."""
    listed = public()
    for path in SOURCES:
        if path == ROOT / "src" / "filepact" / "errors.py":
            continue
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and node.name not in listed:
                yield node.name


def words(name: str) -> list[str]:
    return [singular(word.lower()) for word in re.findall("[A-Z][a-z0-9]*", name)]


def test_the_name_of_a_class_is_made_of_words_of_the_glossary_and_of_the_field() -> None:
    known = terms() | NOUNS | STATES | PROPER | FORMS.keys()
    strange = {name: found for name in classes() if (found := set(words(name)) - known)}
    assert not strange


def test_every_word_that_is_allowed_is_used_and_none_is_allowed_twice() -> None:
    used = {word for name in classes() for word in words(name)}
    lists = (NOUNS, STATES, PROPER, set(FORMS))
    assert set().union(*lists) <= used
    assert len(set().union(*lists)) == sum(map(len, lists))
    assert not set().union(*lists) & terms()
    assert set(FORMS.values()) <= terms()


SUBJECTS = re.compile(r"(What|Those|The same|That|It|Some) ")
"""How a docstring begins whose subject is no noun."""


def test_a_docstring_of_the_core_begins_with_a_noun_or_a_verb() -> None:
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [
        f"{dotted(path)}.{getattr(node, 'name', '')}: {said}"
        for path in HOUSE
        for node in ast.walk(syntax(path))
        if isinstance(node, kinds)
        and (said := ast.get_docstring(node)) is not None
        and SUBJECTS.match(said)
    ]
    assert not found
