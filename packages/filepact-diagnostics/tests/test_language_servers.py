"""What files may say about language servers, and what counts when two of them speak."""

from __future__ import annotations

import subprocess
import sys

import pytest

from filepact.config.layers import SettingsSource
from filepact.config.rule_files import find_problems, read_project
from filepact.config.settings import Settings, parse_settings
from filepact.errors import InvalidParamsError
from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.settings import (
    LanguageServerOptions,
    LanguageServerSettings,
    ServerTrust,
    options_of,
)

FILE = "f.toml"
MINE = '[servers.mine]\ncommand = ["mine"]\nfiles = {"*.py" = "python"}\n'
ADMINISTRATOR = SettingsSource("administrator", FILE)


def both(administrator: str, person: str) -> LanguageServerOptions:
    """What is in force where both files speak."""
    above = parse_settings(administrator, name=FILE, source=ADMINISTRATOR)
    return options_of(parse_settings(person, name=FILE)).beneath(options_of(above))


def test_where_nothing_is_said_the_defaults_count() -> None:
    assert options_of(parse_settings("", name=FILE)).diagnosing == LanguageServerSettings(
        "auto", 2.0, "allow", 600.0, 2048
    )
    assert options_of(parse_settings("", name=FILE)).servers == builtin_servers()
    assert both("", "").diagnosing == LanguageServerSettings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('diagnostics = "off"\n', LanguageServerSettings(mode="off")),
        ('diagnostics = "always"\n', LanguageServerSettings(mode="always")),
        ('[diagnostics]\nmode = "auto"\nbudget = 5\n', LanguageServerSettings(budget=5.0)),
        (
            "[diagnostics]\nbudget = 0.1\nidle = 1\nmemory = 64\n",
            LanguageServerSettings("auto", 0.1, "allow", 1.0, 64),
        ),
        ('[diagnostics]\nnew_errors = "ask"\n', LanguageServerSettings(new_errors="ask")),
        ('[diagnostics]\nreceipts = "warnings"\n', LanguageServerSettings(receipts="warnings")),
    ],
)
def test_the_word_alone_or_a_table_sets_how_far_servers_are_used(
    text: str, expected: LanguageServerSettings
) -> None:
    assert options_of(parse_settings(text, name=FILE)).diagnosing == expected


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('\ndiagnostics = "on"\n', 2, "diagnostics"),
        ("diagnostics = true\n", 1, "diagnostics"),
        ("diagnostics = []\n", 1, "diagnostics"),
        ('[diagnostics]\n\nmode = "Auto"\n', 3, "diagnostics.mode"),
        ("[diagnostics]\nmode = 1\n", 2, "diagnostics.mode"),
        ('[diagnostics]\nnew_errors = "warn"\n', 2, "diagnostics.new_errors"),
        ('[diagnostics]\nreceipts = "hints"\n', 2, "diagnostics.receipts"),
        ("[diagnostics]\nbudget = 0.05\n", 2, "diagnostics.budget"),
        ("[diagnostics]\nbudget = 61\n", 2, "diagnostics.budget"),
        ("[diagnostics]\nbudget = nan\n", 2, "diagnostics.budget"),
        ("[diagnostics]\nbudget = true\n", 2, "diagnostics.budget"),
        ('[diagnostics]\nbudget = "2"\n', 2, "diagnostics.budget"),
        ("[diagnostics]\nidle = 0\n", 2, "diagnostics.idle"),
        ("[diagnostics]\nmemory = 63\n", 2, "diagnostics.memory"),
        ("[diagnostics]\nmemory = 512.0\n", 2, "diagnostics.memory"),
        ('[diagnostics]\nmode = "auto"\nseverity = "error"\n', 3, "diagnostics.severity"),
        ('[diagnostics]\nmode = "off"\nnew_errors = "deny"\n', 3, "diagnostics.new_errors"),
        ("servers = 1\n", 1, "servers"),
        ("[servers]\nruff = 1\n", 2, "servers.ruff"),
        ("\n[servers.Mine]\n", 2, "servers.Mine"),
        ('\n[servers."a.b"]\n', 2, 'servers."a.b"'),
        ("[servers.mine]\n", 1, "servers.mine.files"),
        (MINE.replace('["mine"]', '"mine"'), 2, "servers.mine.command"),
        (MINE + "colour = 1\n", 4, "servers.mine.colour"),
        (MINE + "first = 121\n", 4, "servers.mine.first"),
        (MINE + 'sync = {written = "often"}\n', 4, "servers.mine.sync.written"),
        (MINE + '\n[servers.mine.sync]\nwhen = "open"\n', 6, "servers.mine.sync.when"),
        (MINE + "\n[[servers.mine.announce]]\nmethod = 1\n", 6, "servers.mine.announce[1].method"),
        (MINE + '[servers.ruff]\nrole = "cook"\n', 5, "servers.ruff.role"),
    ],
)
@pytest.mark.parametrize("layer", ["person", "administrator"])
def test_what_is_wrong_is_refused_with_file_line_and_key(
    text: str, line: int, key: str, layer: str
) -> None:
    source = SettingsSource("person" if layer == "person" else "administrator", FILE)
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name=FILE, source=source)
    assert caught.value.details == {"file": FILE, "line": line, "key": key}
    assert caught.value.message.startswith(f"{FILE}, line {line}, {key}: ")
    (problem,) = find_problems(text, source)
    assert (problem.line, problem.key) == (line, key)


def test_a_server_that_a_file_names_goes_before_those_that_it_does_not() -> None:
    text = MINE + "[servers.ty]\nfirst = 3\n[servers.basedpyright]\nenabled = false\n"
    found = options_of(parse_settings(text, name=FILE)).servers
    names = [one.name for one in found]
    assert names[:2] == ["mine", "ty"]
    assert "basedpyright" not in names
    assert sorted(names) == sorted(
        {one.name for one in builtin_servers()} - {"basedpyright"} | {"mine"}
    )
    by_name = {one.name: one for one in found}
    assert by_name["ty"].first == 3.0
    assert by_name["ty"].command == ("ty", "server")
    assert by_name["mine"].language("src/a.py") == "python"


@pytest.mark.parametrize(
    ("administrator", "person", "expected"),
    [
        # Its mode is final, whichever way the person would go.
        ('diagnostics = "off"', 'diagnostics = "always"', LanguageServerSettings(mode="off")),
        ('diagnostics = "always"', 'diagnostics = "off"', LanguageServerSettings(mode="always")),
        ('diagnostics = "auto"', 'diagnostics = "off"', LanguageServerSettings(mode="auto")),
        ("", 'diagnostics = "off"', LanguageServerSettings(mode="off")),
        # Of both words on new errors the stricter counts.
        *(
            (
                f'[diagnostics]\nnew_errors = "{one}"',
                f'[diagnostics]\nnew_errors = "{other}"',
                LanguageServerSettings(new_errors=stricter),
            )
            for one, other, stricter in (
                ("deny", "allow", "deny"),
                ("ask", "deny", "deny"),
                ("deny", "ask", "deny"),
                ("allow", "ask", "ask"),
            )
        ),
        # What notices new errors is not switched off where they are to be noticed.
        (
            '[diagnostics]\nnew_errors = "ask"',
            'diagnostics = "off"',
            LanguageServerSettings(mode="auto", new_errors="ask"),
        ),
        (
            '[diagnostics]\nnew_errors = "allow"',
            'diagnostics = "off"',
            LanguageServerSettings(mode="off"),
        ),
        # The rest is the person's.
        (
            "[diagnostics]\nbudget = 1\nidle = 30\nmemory = 512",
            "[diagnostics]\nbudget = 9\nmemory = 4096",
            LanguageServerSettings(budget=9.0, idle=30.0, memory=4096),
        ),
    ],
)
def test_what_an_administrator_says_is_not_loosened(
    administrator: str, person: str, expected: LanguageServerSettings
) -> None:
    assert both(administrator, person).diagnosing == expected


def test_of_a_server_that_both_files_name_the_administrator_s_fields_count() -> None:
    administrator = '[servers.mine]\ncommand = ["/opt/mine"]\nfiles = {"*.go" = "go"}\n'
    found = both(
        administrator + "[servers.ty]\nenabled = false\n", MINE + "first = 3\n[servers.ty]\n"
    )
    names = [one.name for one in found.servers]
    assert names[0] == "mine"
    assert "ty" not in names
    assert found.servers[0].command == ("/opt/mine",)
    assert found.servers[0].first == 3.0


@pytest.mark.parametrize("text", ['diagnostics = "auto"\n', 'diagnostics = "off"\n', MINE])
def test_a_project_s_file_has_no_say_in_which_programs_run(text: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_project(text, "/r", "/r/.filepact.toml")
    assert caught.value.details["line"] == 1
    assert "must not start" in caught.value.message


@pytest.mark.parametrize("text", ["[guard]\ncontent = false\n", "[encodings]\n"])
def test_the_rest_of_a_person_s_settings_has_no_place_in_an_administrator_s_file(text: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name=FILE, source=ADMINISTRATOR)
    assert caught.value.details["line"] == 1
    assert len(find_problems(text, ADMINISTRATOR)) == 1


def test_a_file_that_names_no_server_loads_nothing_about_servers() -> None:
    program = (
        "import sys\n"
        "from filepact.config.settings import parse_settings\n"
        "from filepact_diagnostics.settings import options_of\n"
        "options_of(parse_settings('diagnostics = \"auto\"', name='f')).diagnosing\n"
        "print([name for name in sys.modules if name.startswith('filepact_diagnostics.lsp')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_settings_stay_values() -> None:
    assert parse_settings(MINE, name=FILE) == parse_settings(MINE, name=FILE) != Settings()


def test_servers_with_a_risk_are_for_agents_only_where_they_are_trusted() -> None:
    def names(text: str) -> tuple[set[str], set[str]]:
        settings = options_of(parse_settings(text, name=FILE))
        return (
            {one.name for one in settings.agents_servers(ServerTrust())},
            {one.name for one in settings.peoples_servers()},
        )

    agents, people = names("")
    assert {"ruff", "basedpyright", "filepact-csharp"} <= agents & people
    assert not {"clangd", "typescript", "rust-analyzer"} & agents
    assert {"clangd", "typescript"} <= people
    assert "rust-analyzer" not in people
    confined = options_of(parse_settings("", name=FILE)).agents_servers(
        ServerTrust(), confines=True
    )
    by_name = {one.name: one for one in confined}
    assert by_name["clangd"].is_confined("/a")
    assert by_name["typescript"].is_confined("/a")
    assert by_name["filepact-csharp"].is_confined("/a")
    assert not by_name["ruff"].is_confined("/a")
    for_people = options_of(parse_settings("", name=FILE)).peoples_servers(confines=True)
    assert [one.name for one in for_people if one.is_confined("/a")] == ["filepact-csharp"]
    assert "rust-analyzer" not in by_name
    agents, people = names("[servers.clangd]\ntrusted = true\n")
    assert "clangd" in agents


def test_everything_that_is_wrong_with_a_file_is_found_at_once() -> None:
    text = (
        "[servers.basedpyright]\nenabledd = false\n"
        '[servers.mine]\ncommand = "mine"\nfiles = {"*.py" = "python"}\n'
        "[diagnostics]\nbudgt = 1\nmodee = 'x'\n"
        "[guard]\nlandlock = 'perhaps'\n"
        "[encodings]\n'*.txt' = 'nope'\n'*.md' = 'utf-8'\n'*.log' = 5\n"
        "[[deny]]\npaths = 5\n"
    )
    found = find_problems(text, SettingsSource("person", FILE))
    assert [(one.line, one.key) for one in found if one.line < 15] == [
        (2, "servers.basedpyright.enabledd"),
        (4, "servers.mine.command"),
        (7, "diagnostics.budgt"),
        (8, "diagnostics.modee"),
        (10, "guard.landlock"),
        (12, 'encodings."*.txt"'),
        (14, 'encodings."*.log"'),
    ]
    assert any(one.key.startswith("deny") for one in found)
