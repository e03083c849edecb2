"""Rules of people through the command and the server: real files, real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError, PathBlockedError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

CUSTOMERS = """\
[[deny]]
paths = ["customers/**", "!customers/readme.md"]
why = "personal data"
name = "customers"
"""


class Files:
    """The three places in which rules may stand."""

    def __init__(self, cli: CommandLine) -> None:
        above = cli.root.parent
        self.administrator = above / "etc" / "filepact" / "filepact.toml"
        self.person = above / "home" / ".config" / "filepact" / "filepact.toml"
        self.project = cli.root / ".filepact.toml"
        for each in (self.administrator, self.person):
            each.parent.mkdir(parents=True)
        self.environment = {
            "HOME": str(above / "home"),
            "XDG_CONFIG_HOME": str(above / "home" / ".config"),
            "XDG_CONFIG_DIRS": str(above / "etc"),
            "FILEPACT_STATE_DIR": str(cli.state),
        }


@pytest.fixture
def files(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Files:
    found = Files(cli)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    (cli.root / "customers").mkdir()
    (cli.root / "customers" / "a.csv").write_text("Ann,1\n")
    (cli.root / "customers" / "readme.md").write_text("What this is.\n")
    return found


def explained(cli: CommandLine, *words: str):
    return cli.json("explain", *words)


# -- in force ---------------------------------------------------------------------------------


def test_a_person_s_rule_refuses_and_spares(cli: CommandLine, files: Files) -> None:
    files.person.write_text(CUSTOMERS)
    assert cli.json("read", "customers/a.csv", code=1)["error"]["details"]["rule"] == "customers"
    assert cli("read", "customers/readme.md").code == 0
    assert cli.json("find", "**/*", ".")["paths"].count("customers/a.csv") == 0


def test_an_administrator_s_rule_goes_before_a_person_s(cli: CommandLine, files: Files) -> None:
    files.administrator.write_text('[[deny]]\npaths = ["docs"]\nname = "house rule"\n')
    files.person.write_text('[default]\nread = "ask"\n[[allow]]\npaths = ["docs", "src"]\n')
    assert explained(cli, "docs/a", "--action", "read")["rule"]["name"] == "house rule"
    assert explained(cli, "src/a", "--action", "read")["verdict"] == "allow"
    assert explained(cli, "else/a", "--action", "read")["verdict"] == "ask"


def test_what_is_kept_cannot_be_set_aside_and_nothing_starts(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text('[[allow]]\npaths = ["t/*.pem"]\nlifts = ["key stores"]\n')
    assert explained(cli, "t/a.pem")["verdict"] == "allow"
    files.administrator.write_text('keep = ["key stores"]\n')
    error = cli.json("explain", "t/a.pem", code=2)["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert error["details"] == {"file": str(files.person), "line": 3, "key": "allow[1].lifts[1]"}
    files.person.unlink()
    assert str(files.administrator) in explained(cli, "t/a.pem")["advice"]
    assert cli.json("policy", "show")["keep"] == ["key stores"]


def test_a_project_narrows_for_itself_only(cli: CommandLine, files: Files, tmp_path: Path) -> None:
    files.project.write_text('[[deny]]\npaths = ["/src"]\nactions = ["change"]\n')
    found = explained(cli, "src/app.py")
    assert (found["verdict"], found["rule"]["file"]) == ("deny", str(files.project))
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    roots = ("--root", str(cli.root), "--root", str(other))
    assert explained(cli, str(other / "src/x"), *roots)["verdict"] == "allow"
    assert explained(cli, str(cli.root / "src/x"), *roots)["verdict"] == "deny"


def test_the_library_gives_the_same_verdict(cli: CommandLine, files: Files) -> None:
    files.project.write_text('[[deny]]\npaths = ["/src"]\nname = "frozen"\n')
    workspace = open_workspace([str(cli.root)], state_dir=str(cli.state))
    session = Session("s", Actor("agent", "robot"))
    with workspace.draft(session, "write_file") as draft, pytest.raises(PathBlockedError) as caught:
        draft.open("src/app.py")
    assert caught.value.details["rule"] == "project: frozen"
    workspace.close()


@pytest.mark.parametrize("layer", ["administrator", "person", "project"])
@pytest.mark.parametrize(
    ("data", "details"),
    [
        (b"[[deny]]\npaths = ['a']\nwhat = 1\n", {"line": 3, "key": "deny[1].what"}),
        (b"[[deny]\n", {"line": 1, "key": ""}),
        (b"[[deny]]\npaths = ['../a']\n", {"line": 2, "key": "deny[1].paths[1]"}),
        (
            b"[[expect]]\npaths = ['a']\naction = 'read'\nverdict = 'deny'\n",
            {"line": 1, "key": "expect[1]"},
        ),
        (b"# \xff\n", {}),
    ],
)
def test_nothing_starts_with_a_wrong_file(
    cli: CommandLine, files: Files, layer: str, data: bytes, details: dict[str, object]
) -> None:
    path = getattr(files, layer)
    path.write_bytes(data)
    for words in (("read", "windows.txt"), ("log",), ("explain", "a")):
        error = cli.json(*words, code=2)["error"]
        assert error["code"] == "INVALID_PARAMS"
        assert error["details"] == {"file": str(path), **details}


@pytest.mark.parametrize("layer", ["administrator", "person", "project"])
def test_nothing_starts_with_a_file_that_is_none(
    cli: CommandLine, files: Files, layer: str
) -> None:
    path = getattr(files, layer)
    path.mkdir()
    assert cli.json("log", code=2)["error"]["details"] == {"file": str(path)}
    path.rmdir()
    os.mkfifo(path)
    assert cli.json("log", code=2)["error"]["details"] == {"file": str(path)}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to this user")
def test_nothing_starts_with_a_file_that_may_not_be_read(cli: CommandLine, files: Files) -> None:
    files.administrator.write_text("")
    files.administrator.chmod(0)
    assert cli.json("log", code=2)["error"]["code"] == "INVALID_PARAMS"
    files.administrator.parent.chmod(0)
    assert cli.json("log", code=2)["error"]["code"] == "INVALID_PARAMS"
    files.administrator.parent.chmod(0o700)


def test_a_project_s_file_that_is_a_link_is_refused(cli: CommandLine, files: Files) -> None:
    (cli.root / "rules.toml").write_text("")
    files.project.symlink_to("rules.toml")
    assert cli.json("log", code=2)["error"]["code"] == "INVALID_PARAMS"
    files.project.unlink()
    files.project.symlink_to("../outside.toml")
    assert cli.json("log", code=1)["error"]["code"] == "PATH_BLOCKED"


def test_a_large_file_is_refused(cli: CommandLine, files: Files) -> None:
    files.project.write_text("#" * 40_000)
    assert cli.json("log", code=1)["error"]["code"] == "FILE_TOO_LARGE"
    files.project.unlink()
    files.person.write_text("#" * 1_100_000)
    assert cli.json("log", code=2)["error"]["code"] == "INVALID_PARAMS"


def test_a_folder_above_is_not_taken_for_one_whose_rules_are_wrong(
    cli: CommandLine, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("checkpoint", "a", "--root", str(cli.root)).code == 0
    assert cli("write", "note", stdin=b"x").code == 0
    below = cli.root / "src"
    (below / ".filepact.toml").write_text("[[deny]]\n")
    monkeypatch.chdir(below)
    assert cli.json("log", code=2)["error"]["code"] == "INVALID_PARAMS"
    assert cli.json("policy", "lint", code=1)["problems"][0]["key"] == "deny[1]"


def test_agents_cannot_change_the_settings_wherever_they_lie(
    cli: CommandLine, files: Files
) -> None:
    home = files.person.parents[2]
    real = home / "dotfiles" / "mine.toml"
    real.parent.mkdir()
    real.write_text("")
    files.person.symlink_to(real)
    for path in (files.person, real, files.person.with_name("other.toml")):
        found = explained(cli, str(path), "--root", str(home))
        assert (found["verdict"], found["rule"]["name"]) == ("deny", "own files")
        assert explained(cli, str(path), "--root", str(path.parent))["verdict"] == "deny"
    assert explained(cli, str(files.person.parent), "--root", str(home))["verdict"] == "deny"
    assert explained(cli, str(home / "x"), "--root", str(home))["verdict"] == "allow"
    system = ("--root", str(files.administrator.parents[1]))
    assert explained(cli, str(files.administrator), *system)["verdict"] == "deny"
    assert explained(cli, ".filepact.toml")["rule"]["name"] == "own files"


# -- explain ----------------------------------------------------------------------------------


def test_explain_names_the_rule_its_place_and_what_else_covers(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text(f'{CUSTOMERS}[[ask]]\npaths = ["*.csv"]\n')
    found = explained(cli, "customers/a.csv", "--action", "read", "--agent", "x")
    assert (found["verdict"], found["rule"]["line"]) == ("deny", 1)
    assert [other["name"] for other in found["others"]] == ["filepact.toml:5"]
    said = cli("explain", "customers/a.csv")
    assert said.code == 0
    for part in ("denied", "\u201ccustomers\u201d", "personal data", f"{files.person}:1"):
        assert part in said.out


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("cafe\u0301.md", "caf\xe9.md", "cafe\\u0301.md"),
        ("caf\xe9.md", "cafe\u0301.md", "caf\\u00e9.md"),
        ("8.55\u202fPM.txt", "8.55 PM.txt", "8.55\\u202fPM.txt"),
        ("ReadMe.MD", "readme.md", "ReadMe.MD"),
    ],
)
def test_explain_names_the_file_that_is_read_under_a_name_that_looks_the_same(
    cli: CommandLine, files: Files, name: str, asked: str, said: str
) -> None:
    files.person.write_text("")
    (cli.root / name).write_text("x\n")
    found = explained(cli, asked)
    for side in (found, found["reading"]):
        assert (side["verdict"], side["alike"], side["missing"]) == ("allow", name, True)
    assert f"{said} is the same but for" in cli("explain", asked).out
    for own in (name, said):
        found = explained(cli, own)
        assert (found["alike"], found["missing"], found["reading"]["missing"]) == (
            None,
            False,
            False,
        )
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0b\n-----END RSA PRIVATE KEY-----\n"
    (cli.root / name).write_text(key)
    assert explained(cli, asked)["reading"]["verdict"] == "deny"


def test_explain_says_why_a_file_that_holds_a_private_key_is_refused(
    cli: CommandLine, files: Files
) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0b\n-----END RSA PRIVATE KEY-----\n"
    (cli.root / "notes.txt").write_bytes(b"\xff\n" + key.encode())
    found = explained(cli, "notes.txt")
    for side in (found, found["reading"]):
        assert (side["verdict"], side["rule"]["name"]) == ("deny", "private keys")
    files.person.write_text(found["advice"].partition("\n\n")[2])
    assert explained(cli, "notes.txt")["verdict"] == "allow"


def test_explain_shows_a_disguise_and_a_link_for_what_they_are(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text(CUSTOMERS)
    (cli.root / "innocent").symlink_to("customers")
    found = explained(cli, "innocent/a.csv", "--action", "read")
    assert (found["verdict"], found["resolved"]) == ("deny", "customers/a.csv")
    disguised = explained(cli, "customers/\uff41.csv.", "--action", "read")
    assert (disguised["verdict"], disguised["compared"]) == ("deny", "customers/a.csv")
    assert disguised["missing"]
    assert "read as" in cli("explain", "customers/\uff41.csv.").out
    assert "leads to" in cli("explain", "innocent/a.csv").out


def test_explain_answers_for_reading_and_for_writing_at_once(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text(CUSTOMERS + '[[ask]]\npaths = ["*.sql"]\nactions = ["write"]\n')
    # Both are refused by one rule: one block, and advice for both.
    both = cli("explain", "customers/a.csv").out
    assert both.count("customers/a.csv: ") == 1
    assert "reading and writing it is denied" in both
    # Reading is refused by a rule that does not cover writing, or the other way round.
    apart = cli("explain", "a.sql").out
    assert "reading it is allowed" in apart
    assert "\n\na.sql: writing it is allowed once" in apart
    facts = explained(cli, "a.sql")
    assert (facts["action"], facts["verdict"]) == ("write", "ask")
    assert (facts["reading"]["action"], facts["reading"]["verdict"]) == ("read", "allow")
    assert "reading" not in explained(cli, "a.sql", "--action", "read")


def test_explain_names_what_is_not_asked_about_in_a_manifest(
    cli: CommandLine, files: Files
) -> None:
    for name in ("package.json", "Makefile"):
        (cli.root / name).write_text("{}")
    assert "description" in explained(cli, "package.json", "--action", "write")["harmless"]
    assert explained(cli, "Makefile")["harmless"] == []
    files.person.write_text('[[ask]]\npaths = ["package.json"]\n')
    assert explained(cli, "package.json")["rule"]["layer"] == "person"
    assert explained(cli, "package.json")["harmless"] == []


def test_what_explain_advises_frees_a_file_for_reading_and_writing(
    cli: CommandLine, files: Files
) -> None:
    advice = cli("explain", "keys/a.pem").out.partition("add to ")[2].partition("\n\n")[2]
    files.person.write_text(advice)
    facts = explained(cli, "keys/a.pem")
    assert (facts["verdict"], facts["reading"]["verdict"]) == ("allow", "allow")


def test_explain_tells_what_is_no_matter_of_rules(cli: CommandLine, files: Files) -> None:
    (cli.root / "out").symlink_to("/etc")
    for path in ("/etc/passwd", "out/passwd"):
        found = explained(cli, path, "--action", "read")
        assert (found["verdict"], found["rule"]) == ("deny", None)
        assert found["refusal"]
        assert "because" in cli("explain", path).out


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("path", "verdict"),
    [("keys/a.pem", "deny"), (".vscode/a", "ask"), ("we[i]rd\\/*.pem", "deny"), (".env", "deny")],
)
def test_what_explain_advises_frees_the_file(
    cli: CommandLine, files: Files, path: str, verdict: str
) -> None:
    action = "delete" if path == ".env" else "write"
    found = explained(cli, path, "--action", action)
    assert found["verdict"] == verdict
    files.person.write_text(found["advice"].partition("\n\n")[2])
    freed = explained(cli, path, "--action", action)
    assert freed["verdict"] == "allow"
    assert [other["lifted_by"] for other in freed["others"]] == [freed["rule"]["name"]]
    assert "set aside by" in cli("explain", path, "--action", action).out
    assert (
        explained(cli, path, "--action", "read")["verdict"]
        == explained(cli, f"other/{path}", "--action", "read")["verdict"]
    )


def test_what_explain_advises_works_for_defaults_and_allowed_files(
    cli: CommandLine, files: Files
) -> None:
    advice = explained(cli, "src/a")["advice"]
    files.person.write_text(advice.partition("\n\n")[2])
    assert explained(cli, "src/a")["verdict"] == "deny"
    files.person.write_text('[default]\nwrite = "deny"\n')
    advice = explained(cli, "src/a")["advice"]
    files.person.write_text('[default]\nwrite = "deny"\n' + advice.partition("\n\n")[2])
    assert explained(cli, "src/a")["verdict"] == "allow"
    assert str(files.person) in explained(cli, "src/a")["advice"]


def test_what_explain_advises_sets_aside_all_that_stands_beside_a_default(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text('[default]\nwrite = "deny"\n')
    found = explained(cli, "AGENTS.md")
    assert (found["verdict"], found["rule"]["name"]) == ("deny", "default")
    files.person.write_text('[default]\nwrite = "deny"\n' + found["advice"].partition("\n\n")[2])
    assert explained(cli, "AGENTS.md")["verdict"] == "allow"
    files.administrator.write_text('keep = ["control files"]\n')
    files.person.write_text('[default]\nwrite = "deny"\n')
    assert str(files.administrator) in explained(cli, "AGENTS.md")["advice"]


def test_what_explain_advises_about_a_rule_is_where_to_change_it(
    cli: CommandLine, files: Files
) -> None:
    files.project.write_text('[[ask]]\npaths = ["docs/**"]\n')
    advice = explained(cli, "docs/a.md")["advice"]
    assert f"{files.project}:1" in advice
    assert '"!/docs/a.md"' in advice
    files.project.write_text('[[ask]]\npaths = ["docs/**", "!/docs/a.md"]\n')
    assert explained(cli, "docs/a.md")["verdict"] == "allow"
    files.administrator.write_text('[[deny]]\npaths = ["docs"]\n')
    assert str(files.administrator) in explained(cli, "docs/a.md")["advice"]
    assert "editor" in explained(cli, ".filepact.toml")["advice"]


# -- show, lint, test -------------------------------------------------------------------------


def test_show_lists_every_rule_with_its_place(cli: CommandLine, files: Files) -> None:
    assert str(files.person) in cli("policy", "show").out
    files.administrator.write_text('[[deny]]\npaths = ["//srv"]\nagents = ["x-*"]\n')
    files.person.write_text(
        f'{CUSTOMERS}[[allow]]\npaths = ["t/*.pem"]\nlifts = ["key stores"]\n'
        '[default]\nchange = "ask"\n'
    )
    files.project.write_text('[[ask]]\npaths = ["a1", "a2", "a3", "a4", "a5", "a6", "a7"]\n')
    known = cli.json("policy", "show")
    assert [each["layer"] for each in known["files"]] == ["administrator", "person", "project"]
    assert [rule["name"] for rule in known["rules"]] == [
        "filepact.toml:1",
        "customers",
        "filepact.toml:5",
        *["default"] * 3,
        ".filepact.toml:1",
    ]
    said = cli("policy", "show").out
    for part in ("agents: x-*", "lifts: key stores", "and 1 more", "line 5", str(files.project)):
        assert part in said
    assert "key stores" in cli("policy", "show", "--built-in").out
    assert len(cli.json("policy", "show", "--built-in")["rules"]) > len(known["rules"])


def test_lint_tells_everything_at_once(cli: CommandLine, files: Files) -> None:
    assert cli("policy", "lint").code == 0
    files.administrator.write_text("keep = ['x']\nfoo = 1\n")
    files.person.write_text(f"{CUSTOMERS}[[ask]]\npaths = ['customers/b.csv']\n")
    files.project.write_text("[[allow]]\npaths = ['a']\n")
    known = cli.json("policy", "lint", code=1)
    assert [(one["file"], one["line"]) for one in known["problems"]] == [
        (str(files.administrator), 1),
        (str(files.administrator), 2),
        (str(files.person), 6),
        (str(files.project), 1),
    ]
    said = cli("policy", "lint")
    assert said.code == 1
    assert f"{files.person}:6: ask[1].paths: never decides" in said.out


def test_lint_tells_what_each_rule_answers(cli: CommandLine, files: Files) -> None:
    files.person.write_text(
        "[default]\nchange = 'ask'\n"
        "[[allow]]\npaths = ['docs/**']\nname = 'a name that is too long for its column'\n"
    )
    files.project.write_text(CUSTOMERS)
    allowing, default, denying = cli.json("policy", "lint")["answers"]
    assert (default["rule"], default["edit"], default["new"]) == ("default", "person", "person")
    assert (denying["rule"], denying["line"]) == ("project: customers", 1)
    plain, more = ("read", "edit", "new", "delete"), ("move", "command", "fetch", "other", "mode")
    assert {allowing[name] for name in plain} == {"allow"}
    assert {allowing[name] for name in more} == {"person"}
    assert {denying[name] for name in (*plain, *more)} == {"deny"}
    said = cli("policy", "lint").out.splitlines()
    assert all(len(line) <= 80 for line in said if str(files.person.parents[3]) not in line)
    assert any(line.split() == ["project:", "customers", *["no"] * 9] for line in said)


def test_lint_looks_at_a_file_that_is_not_in_force(
    cli: CommandLine, files: Files, tmp_path: Path
) -> None:
    mine, project = tmp_path / "draft.toml", tmp_path / ".filepact.toml"
    text = "[[allow]]\npaths = ['tests/*.pem']\nlifts = ['key stores']\n"
    mine.write_text(text)
    project.write_text(text)
    assert cli("policy", "lint", str(mine)).code == 0
    assert cli.json("policy", "lint", str(project), code=1)["problems"][0]["key"] == "allow"
    assert cli.json("policy", "lint", "missing", code=2)["error"]["code"] == "INVALID_PARAMS"


def test_test_runs_what_is_expected_and_reports_each(cli: CommandLine, files: Files) -> None:
    assert cli("policy", "test").code == 3
    right = """
[[expect]]
paths = ["customers/a.csv"]
action = "change"
agent = "x"
verdict = "deny"
rule = "customers"
"""
    files.person.write_text(CUSTOMERS + right)
    said = cli("policy", "test")
    assert (said.code, said.out[:2]) == (0, "ok")
    files.person.write_text(CUSTOMERS + right + right.replace('"customers/', '"'))
    known = cli.json("policy", "test", code=1)["expectations"]
    assert [one["met"] for one in known] == [True, False]
    assert len(known[1]["said"]) == 3
    assert "FAIL" in cli("policy", "test").out
    files.person.write_text("[[deny]]\n")
    assert cli.json("policy", "test", code=2)["error"]["code"] == "INVALID_PARAMS"


# -- over the protocol ------------------------------------------------------------------------


def drive(cli: CommandLine, files: Files, steps) -> None:
    """Talk to a real server as an agent's program does."""
    environment = files.environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    async def main() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "filepact", "mcp", str(cli.root)],
            env=environment,
        )
        with anyio.fail_after(60):
            async with Client(
                server, client_info=Implementation(name="robot", version="7")
            ) as client:
                await steps(client)

    anyio.run(main)


async def ask(client: Client, tool: str, **arguments) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    said = "".join(part.text for part in result.content if part.type == "text")
    return bool(result.is_error), said


def test_a_server_refuses_what_a_person_or_a_project_denies_with_the_rule_s_name(
    cli: CommandLine, files: Files
) -> None:
    files.person.write_text(CUSTOMERS)
    files.project.write_text('[[deny]]\npaths = ["src"]\nactions = ["change"]\nname = "frozen"\n')

    async def steps(client: Client) -> None:
        refused, said = await ask(client, "read_file", path="customers/a.csv")
        assert refused
        assert said.startswith("PATH_BLOCKED")
        assert "\u201ccustomers\u201d (personal data)" in said
        assert "Ann" not in said
        refused, said = await ask(client, "read_file", path="customers/readme.md")
        assert not refused
        refused, said = await ask(client, "grep", pattern="Ann")
        assert "Ann,1" not in said
        edit = {"path": "src/app.py", "old_string": "80", "new_string": "81"}
        refused, said = await ask(client, "edit_file", **edit)
        assert refused
        assert "\u201cproject: frozen\u201d" in said

    drive(cli, files, steps)


def test_a_change_that_a_rule_asks_about_waits_for_approval_from_another_process(
    cli: CommandLine, files: Files
) -> None:
    files.project.write_text('[[ask]]\npaths = ["src"]\nactions = ["change"]\nname = "look"\n')
    app = cli.root / "src" / "app.py"

    async def steps(client: Client) -> None:
        edit = {"path": "src/app.py", "old_string": "80", "new_string": "81"}
        refused, said = await ask(client, "edit_file", **edit)
        assert not refused
        assert "look" in said
        assert "80" in app.read_text()
        (waiting,) = cli.json("pending")["pending"]
        assert waiting["rule"] == "project: look"
        done = await anyio.run_process(
            [sys.executable, "-m", "filepact", "approve", "--unattended", waiting["id"]],
            cwd=cli.root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.returncode == 0
        assert "81" in app.read_text()

    drive(cli, files, steps)


def test_a_server_does_not_start_with_a_wrong_file(cli: CommandLine, files: Files) -> None:
    files.project.write_text("[[deny]]\n")
    done = subprocess.run(
        [sys.executable, "-m", "filepact", "mcp", str(cli.root)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert f"{files.project}, line 1".encode() in done.stderr


def test_the_library_refuses_a_wrong_file_too(cli: CommandLine, files: Files) -> None:
    files.project.write_text("[[deny]]\n")
    with pytest.raises(InvalidParamsError):
        open_workspace([str(cli.root)], state_dir=str(cli.state))
