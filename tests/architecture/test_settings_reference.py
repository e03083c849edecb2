"""The page about settings names every key about language servers, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields

from filepact.text import page as pages
from filepact_diagnostics.lsp.spec import ServerSpec, SyncMethod
from filepact_diagnostics.settings import LanguageServerSettings
from filepact_mcp.clients import PAGES
from tests.architecture.project import REFERENCE

PAGE = (REFERENCE / "settings.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The part of the page below a heading, up to the next one."""
    return PAGE.partition(f"### {title}\n")[2].partition("\n##")[0]


def keys(text: str) -> set[str]:
    """What stands in the first column of its tables."""
    rows = re.findall(r"^\| (`[^|]+) \|", text, flags=re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def test_every_key_about_diagnostics_is_documented_with_its_default() -> None:
    text = section("`diagnostics`")
    assert keys(text) == {field.name for field in fields(LanguageServerSettings)}
    for field in fields(LanguageServerSettings):
        default = getattr(LanguageServerSettings(), field.name)
        said = f'`"{default}"`' if isinstance(default, str) else f"{default:g}"
        assert re.search(rf"^\| `{field.name}` .*\| {said} \|$", text, flags=re.MULTILINE)


def test_every_key_of_a_server_is_documented() -> None:
    names = {field.name for field in fields(ServerSpec) if not field.name.startswith("_")}
    # Two are no keys: `filepact trust` and the system say them.
    renamed = {"asking": "diagnostics"}
    known = {renamed.get(name, name) for name in names - {"name", "only_in", "confined"}} | {
        "enabled"
    }
    documented = keys(section("`[servers.NAME]`"))
    assert documented == known | {field.name for field in fields(SyncMethod)}


def test_what_answers_may_take_is_documented_for_every_client_that_is_known() -> None:
    page = (REFERENCE / "mcp.md").read_text(encoding="utf-8")
    table = page.partition("## How long an answer is\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \|$", table, flags=re.MULTILINE)
    documented = {
        name: int(size.replace(",", ""))
        for names, size in rows
        for name in re.findall(r"`([^`]+)`", names) or [""]
    }
    assert documented == PAGES | {"": pages.PAGE}
