"""Command `setup`: what it makes of the settings files of agents and editors, and takes back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.faces.cli import isolated_command
from filepact_cli.screen import Terminal
from filepact_hooks.agents import AGENTS
from filepact_setup import command, json_edit
from filepact_setup.connections import connections
from filepact_setup.hook_command import command_lines
from filepact_setup.hosts import HOSTS, host_place
from tests import forked
from tests.faces.line_client import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faces.command_line import CommandLine

NAMES = tuple(host.name for host in HOSTS)
GUARDS = ("own-tools", "only-filepact", "record")
BROKEN = {".json": b'{"a": 1,, }', ".toml": b"a = = 1\n"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with nothing in it, where every host has its usual places."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without this filepact
    for name in ("CODEX_HOME", "COPILOT_HOME", "CLAUDE_CONFIG_DIR", "UV_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    yield place
    for lock in tmp_path.glob("*/hooks/*.lock"):
        # A hook that was tried has started a daemon.
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def files_of(name: str, root: Path) -> dict[str, Path]:
    """Every file of a host, by the way it is written in the table."""
    (host,) = (one for one in HOSTS if one.name == name)
    parts = [part for guard in GUARDS for part in host.files(guard)]
    return {part.path: host_place(part.path, root) for part in parts}


def held(root: Path) -> dict[str, bytes]:
    """All settings files, in the project and at home, with what they hold."""
    folders = (root, Path.home(), Path(os.environ["XDG_CONFIG_HOME"]))
    found = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return {str(file): file.read_bytes() for file in found if ".git" not in file.parts}


def write(cli: CommandLine, *words: str, code: int = 0) -> Any:
    return cli.json("setup", *words, "--unattended", code=code)


def refused(cli: CommandLine, *words: str) -> str:
    """The code with which it is refused, having left every file as it was."""
    before = held(cli.root)
    said = cli("setup", *words, "--unattended", "--json")
    error: str = json.loads(said.out)["error"]["code"]
    assert said.code == (2 if error == "INVALID_PARAMS" else 1)
    assert held(cli.root) == before
    return error


def ways(name: str) -> list[str]:
    (host,) = (one for one in HOSTS if one.name == name)
    return [
        guard
        for guard in GUARDS
        if (host.only if guard == "only-filepact" else host.hooks is not None)
    ]


# -- every host --------------------------------------------------------------------------------------


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("name", NAMES)
def test_written_twice_is_written_once_and_removed_is_as_before(
    cli: CommandLine, name: str
) -> None:
    before = held(cli.root)
    for guard in (None, *ways(name)):
        words = () if guard is None else ("--guard", guard)
        shown = cli.json("setup", name, *words)
        assert not shown["written"]
        assert held(cli.root) == before
        assert write(cli, name, *words, "--write")["written"]
        after = held(cli.root)
        assert set(after) > set(before)
        assert not write(cli, name, *words, "--write")["written"]
        assert held(cli.root) == after
        assert write(cli, name, "--remove")["written"]
        assert held(cli.root) == before
    write(cli, name, "--remove", code=3)


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("name", NAMES)
def test_one_way_to_guard_takes_the_place_of_another(cli: CommandLine, name: str) -> None:
    before = held(cli.root)
    for guard in (*ways(name), *reversed(ways(name))):
        write(cli, name, "--guard", guard, "--write")
        (found,) = (one for one in connections(cli.root, str(cli.state)) if one.host.name == name)
        assert found.guard == guard
        assert found.server is (guard != "record")
    if ways(name):
        write(cli, name, "--remove")
    assert held(cli.root) == before


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_server_entry_names_a_command_that_serves_this_folder(
    cli: CommandLine, name: str
) -> None:
    write(cli, name, "--write")
    (host,) = (one for one in HOSTS if one.name == name)
    text = host_place(host.server.path, cli.root).read_text()
    value: Any = tomllib.loads(text) if host.server.kind == "toml" else json.loads(text)
    for key in host.server.wants:
        value = value[key]["filepact"]
    words = value["command"]
    words = [words, *value["args"]] if isinstance(words, str) else words
    folder = "." if host.user_wide and host.inside else str(cli.root)
    # The journal is the one that this command was told of.
    assert words == [*isolated_command(), "mcp", folder, "--state", str(cli.state)]


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("name", NAMES)
def test_what_others_have_in_a_file_stays_with_its_comments(cli: CommandLine, name: str) -> None:
    others = {
        ".json": '// mine\n{\n    "theme": "dark", // why\n    "list": [1,\n        2,],\n}\n',
        ".toml": '# mine\ntheme = "dark" # why\n\n[other]\nlist = [\n  1,\n]\n',
    }
    files = [file for file in files_of(name, cli.root).values() if file.suffix in others]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(others[file.suffix])
    before = held(cli.root)
    for guard in ways(name) or [None]:
        write(cli, name, *(["--guard", guard] if guard else []), "--write")
        for file in files:
            for line in ('"theme": "dark", // why', "// mine"):
                assert file.suffix != ".json" or line in file.read_text()
            assert file.suffix != ".toml" or 'theme = "dark" # why' in file.read_text()
    # Somebody else goes on with the file: what is ours goes, and what is theirs stays.
    for file in files:
        with file.open("a") as end:
            end.write("// later\n" if file.suffix == ".json" else "# later\n")
    write(cli, name, "--remove")
    for file in files:
        kept = file.read_text()
        assert "later" in kept
        assert "filepact" not in kept
        value = json_edit.read(kept) if file.suffix == ".json" else tomllib.loads(kept)
        assert value == (
            json_edit.read(others[".json"])
            if file.suffix == ".json"
            else tomllib.loads(others[".toml"])
        )
    assert set(before) == set(held(cli.root))


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_broken_is_left_as_it_is(cli: CommandLine, name: str) -> None:
    for file in files_of(name, cli.root).values():
        for data in (BROKEN.get(file.suffix, b"export default {}\n"), b"\xff\xfe{}"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            assert refused(cli, name, "--write") in ("INVALID_PARAMS", "ENCODING_UNSAFE")
            file.unlink()


@pytest.mark.parametrize("name", [host.name for host in HOSTS if host.hooks])
def test_the_events_of_a_host_are_those_that_the_hook_knows(name: str) -> None:
    (hooks,) = (host.hooks for host in HOSTS if host.name == name and host.hooks)
    known = AGENTS[name].events
    asked = {event for event in hooks.before if known[event] == "before"}
    assert asked == set(hooks.before)
    assert known[hooks.after[0]] == "after"
    assert {known[event] for event in hooks.after} >= {"after", "prompt", "start", "stop"}
    assert "before" not in {known[event] for event in hooks.after}


# -- forms of files ----------------------------------------------------------------------------------


@pytest.mark.slow(after=2, measured=True)
@pytest.mark.parametrize("unit", ["\t", "  ", "    "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_indentation_line_ends_and_mark_are_those_of_the_file(
    cli: CommandLine, unit: str, end: str, mark: str
) -> None:
    file = cli.root / ".mcp.json"
    text = f'{{\n{unit}"mcpServers": {{\n{unit}{unit}"o": {{"command": "o"}}\n{unit}}}\n}}\n'
    data = (mark + text.replace("\n", end)).encode()
    file.write_bytes(data)
    write(cli, "claude", "--guard", "own-tools", "--write")
    after = file.read_bytes().decode()
    assert after.startswith(mark + "{")
    assert after.count("\n") == after.count(end)
    assert f'{end}{unit * 2}"filepact": {{{end}{unit * 3}"command": ' in after
    write(cli, "claude", "--remove")
    assert file.read_bytes() == data


@pytest.mark.parametrize(
    "text",
    ["[1, 2]", '{"mcpServers": []}', '{"a": 1, "a": 2}', '"words"', "{} {}", '{"a": 1}\r{}'],
)
def test_a_form_that_nobody_knows_is_refused(cli: CommandLine, text: str) -> None:
    (cli.root / ".mcp.json").write_text(text)
    assert refused(cli, "claude", "--write") == "INVALID_PARAMS"


def test_an_inline_table_of_toml_is_refused_where_it_would_have_to_grow(
    cli: CommandLine, home: Path
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("features = { web = true }\n")
    assert refused(cli, "codex", "--write") == "INVALID_PARAMS"


def test_a_link_stays_and_what_it_leads_to_is_changed(cli: CommandLine, home: Path) -> None:
    target = home / "dotfiles" / "codex.toml"
    target.parent.mkdir()
    target.write_text('model = "m"\n')
    (home / ".codex").mkdir()
    link = home / ".codex" / "config.toml"
    link.symlink_to(target)
    write(cli, "codex", "--write")
    assert link.is_symlink()
    assert "filepact" in target.read_text()
    write(cli, "codex", "--remove")
    assert target.read_text() == 'model = "m"\n'


def test_a_link_of_the_project_that_leads_out_of_it_is_not_followed(
    cli: CommandLine, home: Path
) -> None:
    (home / "outside.json").write_text("{}")
    (cli.root / ".mcp.json").symlink_to(home / "outside.json")
    assert refused(cli, "claude", "--write") == "PATH_BLOCKED"


def test_a_file_that_is_read_only_is_left_as_it_is(cli: CommandLine, home: Path) -> None:
    file = home / ".copilot" / "mcp-config.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o444)
    assert refused(cli, "copilot", "--write") == "WRITE_ERROR"
    assert not list((home / ".copilot").glob("hooks/*"))


def test_a_mode_stays(cli: CommandLine, home: Path) -> None:
    file = home / ".copilot" / "mcp-config.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o600)
    write(cli, "copilot", "--write")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_file_that_another_changes_between_the_look_and_the_change_is_left_so(
    cli: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = host_place({"claude": ".mcp.json", "codex": "~/.codex/config.toml"}[name], cli.root)
    plan = command._write

    def meanwhile(*arguments: Any) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
        plan(*arguments)

    monkeypatch.setattr(command, "_write", meanwhile)
    assert write(cli, name, "--write", code=1)["error"]["code"] == "STALE_FILE"
    assert file.read_text() == ""
    assert not (cli.root / ".claude").exists()
    assert not (home / ".codex" / "hooks.json").exists()


# -- where the hooks are, and for which folders -------------------------------------------------------

HOOKED = tuple(host.name for host in HOSTS if host.hooks)


def guards(cli: CommandLine, name: str, folder: Path) -> str | None:
    """How an agent that is started in a folder is guarded."""
    return next(one.guard for one in connections(folder, str(cli.state)) if one.host.name == name)


def with_worktree(cli: CommandLine, place: Path) -> Path:
    """Make a repository of the folder, and a linked worktree of it."""
    git = ["git", "-C", str(cli.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    add = ("worktree", "add", "-q", "--detach", str(place))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "s", "--allow-empty"), add):
        subprocess.run([*git, *words], check=True)
    return place


@pytest.mark.parametrize("name", HOOKED)
def test_every_folder_of_a_project_that_was_set_up_is_guarded_and_no_other(
    cli: CommandLine, name: str, tmp_path: Path
) -> None:
    outside = with_worktree(cli, tmp_path / "tree")
    inside = with_worktree(cli, cli.root / ".claude" / "worktrees" / "x")
    write(cli, name, "--write")
    for folder in (cli.root, cli.root / "src", outside, outside / "src", inside):
        assert guards(cli, name, folder) == "own-tools"
    assert guards(cli, name, tmp_path) is None
    write(cli, name, "--remove")
    for folder in (cli.root, outside, inside):
        assert guards(cli, name, folder) is None


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_for_all_projects_go_with_the_last_folder(
    cli: CommandLine, name: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = held(cli.root)
    write(cli, name, "--guard", "record", "--write")
    write(cli, name, "--write", "--root", str(other))
    assert [guards(cli, name, one) for one in (cli.root, other)] == ["record", "own-tools"]
    write(cli, name, "--remove", "--root", str(other))
    assert [guards(cli, name, one) for one in (cli.root, other)] == ["record", None]
    write(cli, name, "--remove")
    assert held(cli.root) == before
    write(cli, name, "--remove", code=3)


@pytest.mark.parametrize("name", HOOKED)
def test_the_list_of_folders_is_not_chosen_by_the_environment_of_an_agent(
    cli: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FILEPACT_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "usual"))
    write(cli, name, "--write")
    (host,) = (one for one in HOSTS if one.name == name)
    assert host.hooks
    text = host_place(host.hooks.path, cli.root).read_text()
    assert text.count(str(tmp_path / "usual" / "filepact")) == text.count("--where-set-up")


def test_hooks_that_were_for_all_folders_are_told_to_be_so_no_more(
    cli: CommandLine, home: Path
) -> None:
    for name, file in (("codex", ".codex/hooks.json"), ("copilot", ".copilot/hooks/filepact.json")):
        write(cli, name, "--write")
        place, before = home / file, len(cli.json("setup", name)["notes"])
        place.write_text(place.read_text().replace(" --where-set-up", ""))
        assert guards(cli, name, home) == "own-tools"
        assert len(write(cli, name, "--write")["notes"]) == before + 1
        assert guards(cli, name, home) is None


@pytest.mark.parametrize("words", [("--write",), ("--remove",)])
def test_folders_that_were_set_up_with_another_state_folder_keep_their_hooks(
    cli: CommandLine, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in ("claude", "opencode"):
        write(cli, name, "--write")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        other = ("--root", str(elsewhere), "--state", str(tmp_path / "an other"))
        assert refused(cli, name, *words, *other) == "INVALID_PARAMS"
        assert guards(cli, name, cli.root) == "own-tools"


def test_from_a_linked_worktree_the_project_is_set_up(cli: CommandLine, tmp_path: Path) -> None:
    tree = with_worktree(cli, tmp_path / "tree")
    write(cli, "claude", "--write", "--root", str(tree))
    assert [guards(cli, "claude", one) for one in (cli.root, tree)] == ["own-tools"] * 2


@pytest.mark.parametrize("name", [host.name for host in HOSTS if host.hooks and host.hooks.team])
def test_hooks_in_a_projects_file_from_before_are_taken_out_by_the_next_setup(
    cli: CommandLine, name: str, home: Path
) -> None:
    (host,) = (one for one in HOSTS if one.name == name)
    assert host.hooks
    write(cli, name, "--team", "--write")
    file = cli.root / host.hooks.team
    assert f"hook {name}" in file.read_text() or "const HOOK" in file.read_text()
    former = cli.root / host.hooks.former if host.hooks.former else None
    if former is not None:
        # As earlier versions wrote it.
        former.write_text(file.read_text())
    write(cli, name, "--write")
    for one in filter(None, (file, former)):
        assert not one.exists() or "hooks" not in json.loads(one.read_text())
    assert guards(cli, name, cli.root) == "own-tools"


def test_hooks_that_somebody_else_of_a_team_has_put_into_the_project_stay(cli: CommandLine) -> None:
    for name in ("claude", "gemini", "opencode"):
        write(cli, name, "--team", "--write")
    shared = (".claude/settings.json", ".gemini/settings.json", ".opencode/plugin/filepact.js")
    before = {one: (cli.root / one).read_bytes() for one in shared}
    (cli.state / "setup.json").unlink()  # another machine
    for name in ("claude", "gemini", "opencode"):
        write(cli, name, "--write")
    for one, data in before.items():
        assert (b"matcher" in data) != (b"const HOOK" in data)
        assert (cli.root / one).read_bytes() == data


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("claude-code", "claude"),
        ("Claude", "claude"),
        ("Claude Code", "claude"),
        ("gemini-cli", "gemini"),
        ("copilot-cli", "copilot"),
        ("code", "vscode"),
        ("vs-code", "vscode"),
        ("VS Code", "vscode"),
        ("codex-cli", "codex"),
        ("cursor-agent", "cursor"),
        ("Claude Desktop", "claude-desktop"),
    ],
)
def test_an_agent_goes_by_its_title_and_its_program_as_well(
    cli: CommandLine, word: str, name: str
) -> None:
    assert [one["host"] for one in cli.json("setup", word)["hosts"]] == [name]


@pytest.mark.parametrize("name", HOOKED)
def test_the_command_that_will_run_is_shown_once_and_whole(
    cli: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    line = f"{' '.join(isolated_command())} hook {name} --where-set-up --state {cli.state}"
    said = cli("setup", name).out
    hooks = cli.json("setup", name)["files"][-1]["diff"]
    if name == "opencode":
        lines = {line}
    else:
        text = "".join(one[1:] for one in hooks.splitlines()[3:])
        lines = {
            re.sub("--event [A-Za-z]+", "--event EVENT", one)
            for one in command_lines(json.loads(text))
        }
        assert len(lines) == 2  # before a call, and else
    assert all(line in one for one in lines)
    for one in lines:
        assert f"  {one}" in said.splitlines()
    assert said.count(line) == len(lines)
    assert len(said.splitlines()) < 60


def test_a_folder_with_the_state_in_it_is_refused_before_anything_is_shown(
    cli: CommandLine,
) -> None:
    words = ("--root", str(cli.state.parent), "setup", "claude")
    assert cli.json(*words, code=1)["error"]["code"] == "STATE_ERROR"
    assert cli.json(*words, "--remove", "--dry-run", code=3)["written"] is False


def test_setup_ends_with_what_to_type_next_and_what_is_not_covered(cli: CommandLine) -> None:
    said = cli("setup", "claude", "--write", "--unattended").out.splitlines()[-4:]
    for word, line in zip(("claude", "Ask", "filepact undo --turn", "docs/"), said, strict=True):
        assert word in line


def test_what_setup_ends_with_fits_a_terminal(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "columns", 80)
    said = cli("setup", "claude", "--write", "--unattended").out
    after = said[said.index("Connected: ") :].splitlines()
    assert [line for line in after if len(line) > 80] == []


def test_a_file_that_its_program_does_not_read_is_told(cli: CommandLine, home: Path) -> None:
    (home / ".claude").mkdir()
    file = home / ".claude" / "settings.json"
    file.write_text('{\n  // mine\n  "model": "m"\n}\n')
    before = cli.json("setup", "claude")["notes"]
    assert len(write(cli, "claude", "--write")["notes"]) == len(before) + 1
    assert guards(cli, "claude", cli.root) is None
    file.write_text(file.read_text().replace("  // mine\n", ""))
    assert guards(cli, "claude", cli.root) == "own-tools"


# -- what is said ------------------------------------------------------------------------------------


def test_a_dry_run_shows_what_a_write_does(cli: CommandLine) -> None:
    shown = cli.json("setup", "claude", "--dry-run")
    done = write(cli, "claude", "--write")
    assert [one["diff"] for one in shown["files"]] == [one["diff"] for one in done["files"]]
    assert '+    "filepact": {' in done["files"][0]["diff"]


def test_files_of_the_project_change_as_one_operation_that_can_be_undone(cli: CommandLine) -> None:
    write(cli, "claude", "gemini", "--write")
    assert {".mcp.json", ".gemini"} <= set(os.listdir(cli.root))
    cli("undo", "--unattended", cli.json("log")["operations"][0]["id"])
    assert sorted(os.listdir(cli.root)) == [".env", "src", "windows.txt"]


def test_what_a_file_held_is_kept_in_the_state_folder(cli: CommandLine, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("# mine\n")
    write(cli, "codex", "--write")
    (kept,) = (cli.state / "backups").iterdir()
    assert kept.read_text() == "# mine\n"
    assert kept.stat().st_mode & 0o077 == 0


def test_without_the_record_what_is_known_as_ours_goes(cli: CommandLine) -> None:
    write(cli, "claude", "gemini", "--guard", "only-filepact", "--write")
    (cli.state / "setup.json").unlink()
    write(cli, "claude", "gemini", "--remove")
    rest = b"".join(held(cli.root).values())
    assert b"filepact" not in rest.replace(b"only-filepact", b"")
    # Nobody knows who has forbidden these tools: so that stays.
    assert b'"Write"' in rest


def test_hooks_of_others_in_one_group_with_ours_stay(cli: CommandLine, home: Path) -> None:
    write(cli, "claude", "--write")
    file = home / ".claude" / "settings.json"
    value = json.loads(file.read_text())
    group = value["hooks"]["PreToolUse"][0]
    group["hooks"].append({"type": "command", "command": "theirs"})
    file.write_text(json.dumps(value))
    write(cli, "claude", "--remove")
    kept = json.loads(file.read_text())
    assert kept["hooks"]["PreToolUse"] == [
        {"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}
    ]


def test_a_second_project_is_added_where_one_server_is_for_all(
    cli: CommandLine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(cli, "windsurf", "--write")
    write(cli, "windsurf", "--write", "--root", str(other))
    file = host_place("~/.codeium/windsurf/mcp_config.json", cli.root)
    words = json.loads(file.read_text())["mcpServers"]["filepact"]["args"]
    assert words[words.index("mcp") + 1 :][:2] == [str(cli.root), str(other)]


def test_the_settings_of_the_person_are_carried_along(
    cli: CommandLine, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("")
    monkeypatch.setenv("FILEPACT_CONFIG", str(mine))
    write(cli, "claude", "--write")
    for file in (cli.root / ".mcp.json", home / ".claude" / "settings.json"):
        assert str(mine) in file.read_text()


def test_a_program_in_a_cache_is_refused(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "python"
    monkeypatch.setattr("sys.executable", str(program))
    for words in (("claude",), ("claude", "--write"), ("acp",)):
        assert refused(cli, *words) == "NOT_FOUND"


@pytest.mark.parametrize(
    "words",
    [
        ("emacs",),
        ("csharp",),
        ("claude", "--write", "--dry-run"),
        ("claude", "--remove", "--guard", "record"),
        ("vscode", "--guard", "own-tools"),
        ("copilot", "--guard", "only-filepact"),
        ("claude-desktop", "--guard", "only-filepact"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: CommandLine, words: tuple[str, ...]) -> None:
    assert refused(cli, *words) == "INVALID_PARAMS"


def test_a_program_without_a_person_has_to_say_so(cli: CommandLine) -> None:
    before = held(cli.root)
    for words in (("claude", "--write"), ("codex", "--write")):
        assert cli.json("setup", *words, code=1)["error"]["code"] == "UNATTENDED"
    assert held(cli.root) == before


def test_the_overview_says_how_each_host_is_connected(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    write(cli, "claude", "--write")
    (cli.root / ".vscode").mkdir()
    (cli.root / ".vscode" / "mcp.json").write_text("{")
    found = {one["host"]: one for one in cli.json("setup")["hosts"]}
    assert list(found)[:2] == ["claude", "gemini"]
    assert found["claude"]["guard"] == "own-tools"
    assert found["gemini"]["installed"] == str(program)
    assert not found["gemini"]["server"]
    assert found["vscode"]["problem"]
    assert max(map(len, cli("setup").out.splitlines())) <= 80


def test_zed_is_told_of_an_agent_as_well(cli: CommandLine) -> None:
    write(cli, "zed", "--agent", "gemini --acp", "--write")
    file = host_place("~/.config/zed/settings.json", cli.root)
    value = json.loads(file.read_text())
    (agent,) = value["agent_servers"].values()
    started = [*isolated_command(), "acp", "--", "gemini", "--acp"]
    assert [agent["command"], *agent["args"]] == started
    write(cli, "zed", "--remove")
    assert not file.exists()


def test_a_plugin_calls_the_hook_of_this_command(cli: CommandLine) -> None:
    write(cli, "opencode", "--guard", "record", "--write")
    text = host_place("~/.config/opencode/plugin/filepact.js", cli.root).read_text()
    found = re.search(r"const HOOK = (.*)", text)
    assert found
    words = json.loads(found[1])
    assert words[: len(isolated_command()) + 3] == [
        *isolated_command(),
        "hook",
        "opencode",
        "--where-set-up",
    ]
    assert '"tool.execute.before"' in text.partition("const EVENTS = ")[2].partition("\n")[0]


@pytest.mark.parametrize("name", ["claude", "gemini", "opencode", "cursor", "vscode"])
def test_a_file_that_a_team_shares_names_no_path_of_this_machine_where_the_shell_finds_filepact(
    cli: CommandLine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host,) = (one for one in HOSTS if one.name == name)
    shared = [
        one for one in host.files("own-tools" if host.hooks else None, team=True) if one.shared
    ]
    before = "\n".join(cli.json("setup", name, "--team")["notes"])
    (tmp_path / "filepact").symlink_to(Path(sys.executable).with_name("filepact"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    written = write(cli, name, "--team", "--write")
    texts = [host_place(one.path, cli.root).read_text() for one in shared]
    # This test has a state folder of its own, which is told to the entries.
    texts = [text.replace(str(cli.state), "STATE") for text in texts]
    paths = [text for text in texts if str(tmp_path) in text or isolated_command()[0] in text]
    assert paths == ([] if host.terminal else texts)
    # Nor does it import what lies in the project.
    assert ('"PYTHONPATH": ""' in "".join(texts)) == host.terminal
    assert shared[0].path in before
    assert "--state" in "\n".join(written["notes"]) or not host.terminal


def test_a_filepact_that_lies_in_the_project_is_told_of(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cli.json("setup", "claude")["notes"]
    monkeypatch.setattr("sys.executable", str(cli.root / ".venv" / "bin" / "python"))
    assert len(cli.json("setup", "claude")["notes"]) == len(before) + 1


def test_another_filepact_on_the_path_is_not_taken_for_this_one(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "filepact").write_text("#!/bin/sh\n")
    (tmp_path / "filepact").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write(cli, "claude", "--write")
    entry = json.loads((cli.root / ".mcp.json").read_text())["mcpServers"]["filepact"]
    assert entry["command"] == isolated_command()[0]
    assert entry["args"][-4:-2] == ["mcp", str(cli.root)]


def test_a_server_for_all_projects_has_no_tools_where_the_state_lies_and_answers_all_the_same(
    tmp_path: Path,
) -> None:
    options = ("--state", str(tmp_path / "home" / "state"))
    (tmp_path / "home" / "project").mkdir(parents=True)
    with serving("mcp", ".", *options, cwd=tmp_path / "home", stderr=subprocess.DEVNULL) as (
        _,
        one,
    ):
        assert "state" in one.shake_hands()["instructions"]
        assert one.ask("tools/list")["result"]["tools"] == []
        assert "error" in one.ask("tools/call", {"name": "read_file", "arguments": {}})
    project = tmp_path / "home" / "project"
    with serving("mcp", ".", *options, cwd=project, stderr=subprocess.DEVNULL) as (_, one):
        one.shake_hands()
        assert one.ask("tools/list")["result"]["tools"]


def test_a_folder_that_holds_the_state_is_not_served_when_it_is_named(tmp_path: Path) -> None:
    done = forked.run(
        ["mcp", str(tmp_path), "--state", str(tmp_path / "state")], capture_output=True, input=b""
    )
    assert (done.returncode, b"STATE_ERROR" in done.stderr) == (1, True)
