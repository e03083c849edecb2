"""Servers are tables: the built-in ones and people's own, and what is wrong in one is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from filepact.errors import InvalidParamsError
from filepact_diagnostics.lsp.builtin import TABLES, builtin_servers
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.lsp.spec import SyncMethod, parse_servers
from tests.servers.asking import report_of
from tests.servers.fakes import PROGRAM, SECONDS

FINE = {"command": ["prog"], "files": {"*.x": "x"}}


def test_the_built_in_tables_are_fine_and_say_how_to_get_each() -> None:
    servers = builtin_servers()
    assert [server.name for server in servers] == list(TABLES)
    for server in servers:
        assert server.install
        assert server.first


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a/b.py", {"basedpyright", "pyright", "ty", "ruff"}),
        ("a.tsx", {"typescript", "typescript-language-server"}),
        ("a.json", {"json"}),
        ("style.scss", {"css"}),
        ("index.html", {"html"}),
        ("ci.yml", {"yaml"}),
        ("run.sh", {"bash"}),
        ("a.php", {"php"}),
        ("a.svelte", {"svelte"}),
        ("a.lua", {"lua"}),
        ("a.hpp", {"clangd"}),
        ("go.mod", {"gopls"}),
        ("A.cs", {"roslyn", "csharp-ls", "filepact-csharp", "csharp-syntax", "csharp-projects"}),
        ("lib.rs", {"rust-analyzer"}),
        ("A.java", {"jdtls"}),
        ("notes.txt", set()),
    ],
)
def test_files_have_servers(path: str, names: set[str]) -> None:
    assert {one.name for one in builtin_servers() if one.language(path)} == names


def test_a_table_of_ones_own_adds_a_server() -> None:
    table = {
        **FINE,
        "role": "lint",
        "install": "get it",
        "diagnostics": "push",
        "probe": "sync",
        "quiet": 1,
        "first": 2.5,
        "sync": {"written": "save", "folders": True},
        "options": {"a": 1},
        "settings": {"b": {"c": 2}},
        "announce": [{"method": "m/n", "params": {"u": "{root_uri}"}}],
        "discovers": True,
        "only_new": True,
    }
    (server,) = parse_servers({"mine": table})
    assert server.language("deep/a.x") == "x"
    assert server.sync == SyncMethod(written="save", folders=True)
    assert (server.quiet, server.first) == (1.0, 2.5)
    assert server.announce == (("m/n", {"u": "{root_uri}"}),)
    assert server.only_new
    assert server.discovers


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_command_names_the_root_and_what_the_server_needs(tmp_path: Path) -> None:
    command = ["python", "-I", "-S", PROGRAM, "{}", "{root}", "{parts}", "{other}"]
    (server,) = parse_servers({"x": {**FINE, "command": command, "needs": ["parts"]}})
    places = {"python": sys.executable, "parts": "/where/parts/are"}
    pool = ServerPool([server], {}, places.get)
    try:
        root = str(tmp_path)
        assert pool.servers_for(root, f"{root}/a.x") == (server,)
        (report,) = report_of(pool, root, {f"{root}/a.x": "wrong"}, SECONDS)
        assert report.fresh
        (status,) = pool.status()
        words = Path(f"/proc/{status.pid}/cmdline").read_bytes().decode().split("\0")
        # A word in braces that nobody knows is the server's own.
        assert words[5:8] == [root, "/where/parts/are", "{other}"]
    finally:
        pool.close()


def test_a_server_without_what_it_needs_is_not_there() -> None:
    (server,) = parse_servers({"x": {**FINE, "needs": ["parts"]}})
    pool = ServerPool([server], {}, {"prog": "/bin/true"}.get)
    assert pool.servers_for("/r", "/r/a.x") == ()


def test_a_table_with_a_known_name_changes_only_what_it_names() -> None:
    before = {one.name: one for one in builtin_servers()}
    after = {
        one.name: one
        for one in parse_servers({"ty": {"first": 1}, "pyright": {"enabled": False}}, builtin_servers())
    }  # fmt: skip
    assert before.keys() - after.keys() == {"pyright"}
    assert after["ty"].first == 1.0
    assert after["ty"].command == before["ty"].command
    assert after["ty"].sync == before["ty"].sync
    assert after["ty"].language("a.py") == "python"


@pytest.mark.parametrize(
    ("name", "table", "key"),
    [
        ("No Name", FINE, "No Name"),
        ("x", 7, "x"),
        ("x", {}, "x.files"),
        ("x", {"files": {"*.x": "x"}}, "x.command"),
        ("x", {**FINE, "command": []}, "x.command"),
        ("x", {**FINE, "command": "prog"}, "x.command"),
        ("x", {**FINE, "command": ["a\nb"]}, "x.command"),
        ("x", {**FINE, "files": ["*.x"]}, "x.files"),
        ("x", {**FINE, "files": {"*.x": ""}}, "x.files"),
        ("x", {**FINE, "files": {"../*.x": "x"}}, "x.files"),
        ("x", {**FINE, "role": "cook"}, "x.role"),
        ("x", {**FINE, "diagnostics": "guess"}, "x.diagnostics"),
        ("x", {**FINE, "install": 7}, "x.install"),
        ("x", {**FINE, "quiet": -1}, "x.quiet"),
        ("x", {**FINE, "first": 1_000}, "x.first"),
        ("x", {**FINE, "first": True}, "x.first"),
        ("x", {**FINE, "enabled": "yes"}, "x.enabled"),
        ("x", {**FINE, "only_new": 1}, "x.only_new"),
        ("x", {**FINE, "sync": {"written": "magic"}}, "x.sync.written"),
        ("x", {**FINE, "sync": {"writen": "save"}}, "x.sync.writen"),
        ("x", {**FINE, "sync": []}, "x.sync"),
        ("x", {**FINE, "options": []}, "x.options"),
        ("x", {**FINE, "settings": 1}, "x.settings"),
        ("x", {**FINE, "announce": {}}, "x.announce"),
        ("x", {**FINE, "announce": [7]}, "x.announce[0]"),
        ("x", {**FINE, "announce": [{"verb": 1}]}, "x.announce[0].verb"),
        ("x", {**FINE, "colour": "red"}, "x.colour"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(name: str, table: Any, key: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_servers({name: table})
    assert caught.value.details["key"] == key


@pytest.mark.parametrize(
    ("table", "agents", "people"),
    [
        ({}, True, True),
        ({"risk": "discloses"}, False, True),
        ({"risk": "runs"}, False, False),
        ({"risk": "evaluates"}, True, True),
        ({"risk": "discloses", "trusted": True}, True, True),
        ({"risk": "runs", "trusted": True}, True, True),
    ],
)
def test_a_risk_needs_somebody_s_trust(table: dict[str, Any], agents: bool, people: bool) -> None:
    (server,) = parse_servers({"mine": FINE | table})
    assert (server.serves_agents, server.serves_people) == (agents, people)


def test_what_reads_or_runs_what_an_agent_names_is_not_used_unasked() -> None:
    waiting = {one.name for one in builtin_servers() if not one.serves_agents}
    assert waiting == {
        *("typescript", "typescript-language-server", "clangd", "gopls"),
        *("roslyn", "csharp-ls", "rust-analyzer", "jdtls", "svelte", "lua"),
    }
    (trusted,) = (
        one
        for one in parse_servers({"clangd": {"trusted": True}}, builtin_servers())
        if one.name == "clangd"
    )
    assert trusted.serves_agents


def test_what_is_built_in_is_what_its_tables_would_be_if_a_person_had_written_them() -> None:
    assert parse_servers(TABLES) == builtin_servers()
