"""The reference names everything that people and programs can name, and nothing else."""

from __future__ import annotations

import argparse
import ast
import re
from typing import TYPE_CHECKING

import pytest

from filepact.errors import CODES
from tests.architecture.project import (
    DOCUMENTS,
    MODULES,
    REFERENCE,
    ROOT,
    dotted,
    headings,
    present,
    syntax,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENVIRONMENT = re.compile(r"FILEPACT_[A-Z_]+\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


# -- errors ---------------------------------------------------------------------------------


def test_every_error_code_is_documented_and_no_other() -> None:
    assert set(headings(REFERENCE / "errors.md")) == {*CODES, "INTERNAL"}


def test_every_error_says_when_it_comes_and_what_to_do_next() -> None:
    for code, body in headings(REFERENCE / "errors.md").items():
        assert "**When**" in body, code
        assert "**Next**" in body, code


# -- tools ----------------------------------------------------------------------------------


def test_every_tool_is_documented_with_every_parameter_and_no_other() -> None:
    catalogue = present("tools.catalogue")
    tools = {} if catalogue is None else {tool.name: tool for tool in catalogue.TOOLS}
    sections = headings(REFERENCE / "tools.md")
    assert set(sections) == set(tools)
    for name, tool in tools.items():
        rows = set(re.findall(r"^\| `([^`]+)`", sections[name], flags=re.MULTILINE))
        assert rows == set(tool.schema["properties"]), name


# -- the command ----------------------------------------------------------------------------


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, with its parser; hidden ones are left out."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for group in groups:
        shown = {choice.dest for choice in group._choices_actions}
        for name, below in group.choices.items():
            if name in shown:
                yield from commands(below)
    if not groups:
        yield parser.prog, parser


def arguments(parser: argparse.ArgumentParser) -> set[str]:
    """How each argument is written: its long option, or the name of its place."""
    written = set()
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        options = [option for option in action.option_strings if option.startswith("--")]
        place = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        written.add(options[0] if options else place)
    return written


def test_every_command_is_documented_with_every_argument_and_no_other() -> None:
    cli = present("faces.cli")
    found = {} if cli is None else dict(commands(cli.build_parser()))
    sections = headings(REFERENCE / "cli.md")
    assert set(sections) == set(found)
    for name, parser in found.items():
        rows = set(re.findall(r"^\| `([^` =]+)", sections[name], flags=re.MULTILINE))
        assert rows == arguments(parser), name


# -- settings -------------------------------------------------------------------------------


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    read = {
        found
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in ENVIRONMENT.findall(node.value)
    }
    documented = set(ENVIRONMENT.findall((REFERENCE / "settings.md").read_text(encoding="utf-8")))
    assert documented == read


# -- the map of the house -------------------------------------------------------------------


def test_the_architecture_names_every_module_and_none_that_is_not_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {word for word in quoted(text) if re.fullmatch(r"(\w+/)*\w+\.py", word)}
    there = {f"{dotted(path).replace('.', '/')}.py" for path in MODULES if path.name[0] != "_"}
    assert named - there == set(), "named, but not there"
    assert there - named == set(), "there, but not named"


def test_the_architecture_names_only_folders_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for word in quoted(text):
        if re.fullmatch(r"(\w+/)+", word):
            assert (ROOT / word).is_dir() or (ROOT / "src" / "filepact" / word).is_dir(), word


# -- links ----------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_inside_the_project_leads_somewhere(document: Path) -> None:
    text = re.sub(r"(?ms)^(`{3,}).*?^\1", "", document.read_text(encoding="utf-8"))
    targets = [target for target in LINK.findall(text) if "://" not in target]
    for target in targets:
        file, _, anchor = target.partition("#")
        where = (document.parent / file) if file else document
        assert where.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", where.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
            assert anchor in slugs, target


def test_every_page_can_be_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text(encoding="utf-8")
    linked = {(docs / target.partition("#")[0]).resolve() for target in LINK.findall(index)}
    pages = {path for path in docs.rglob("*.md") if path.name != "README.md"}
    assert pages <= linked, pages - linked
