"""The reference names everything that people and programs can name, and nothing else."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

import filepact
from filepact.errors import CODES
from filepact.tools.engine import SERVER_TOOLS
from filepact_cli.main import build_parser
from filepact_diagnostics.solution import SOLUTION_TOOLS
from tests.architecture.project import (
    DOCUMENTS,
    MODULES,
    REFERENCE,
    ROOT,
    dotted,
    headings,
    syntax,
)
from tests.architecture.reference import PAGES, commands

if TYPE_CHECKING:
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


# -- tools and commands ---------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_what_the_code_says(page: str) -> None:
    written = (REFERENCE / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), "run ./scripts/reference"


def test_every_tool_and_every_parameter_says_what_it_is_for() -> None:
    for tool in (*SERVER_TOOLS, *SOLUTION_TOOLS):
        assert tool.description, tool.name
        for name, schema in tool.schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_every_command_and_every_argument_says_what_it_is_for() -> None:
    for name, parser in commands(build_parser()):
        assert parser.description, name
        for action in parser._actions:
            assert action.help, f"{name} {action.dest}"


# -- the library ----------------------------------------------------------------------------


def test_every_public_name_is_documented_and_no_other() -> None:
    page = (REFERENCE / "library.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([^`]+)`", page, flags=re.MULTILINE))
    assert rows == set(filepact.__all__)


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


def test_the_architecture_names_only_modules_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    words = {word for word in quoted(text) if re.fullmatch(r"(\w+/)*\w+\.py", word)}
    named = {word for word in words if not (ROOT / word).exists()}
    there = {f"{dotted(path).replace('.', '/')}.py" for path in MODULES}
    assert named <= there


def test_the_architecture_is_read_over_a_coffee() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 8192


def test_the_architecture_names_only_folders_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for word in quoted(text):
        if re.fullmatch(r"(\w+/)+", word):
            assert (ROOT / word).is_dir() or (ROOT / "src" / "filepact" / word).is_dir(), word


def test_the_glossary_is_short_and_says_where_each_word_comes_from() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    terms = [
        re.fullmatch(r"- \*\*([^*]+)\*\* \((\*own\*|[^()]+(\(\d\))?)\): .+\.", line)
        for line in entries
    ]
    assert None not in terms
    named = [term[1] for term in terms if term]
    assert len(named) == len(set(named)) <= 92  # room for shared workspaces and the gateway


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
