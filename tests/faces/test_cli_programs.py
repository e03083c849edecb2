"""Which programs may be started as language servers, and what they see of the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from filepact.app import journal_roots, open_workspace, read_answers, write_answers
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact.faces.cli import isolated_command
from filepact_acp.command import _sessions
from filepact_diagnostics.programs import CHANGEABLE, Programs

GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "agent", "version": "1"},
}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are files with a mode")


def program(folder: Path, name: str = "server", text: str = "#!/bin/sh\n") -> Path:
    """A file that could be started."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    place.write_text(text)
    place.chmod(0o755)
    return place


def programs(root: Path, *path: object, **more: str) -> Programs:
    return Programs([str(root)], {"PATH": os.pathsep.join(map(str, path)), **more})


def test_a_program_is_found_on_the_search_path_by_its_absolute_name(
    root: Path, tmp_path: Path
) -> None:
    first, second = program(tmp_path / "a"), program(tmp_path / "b")
    found = programs(root, first.parent, second.parent)
    assert found("server") == str(first)
    assert found("other") is None
    assert found(str(second)) == str(second)


def test_a_program_in_a_root_is_never_found_though_the_path_leads_there(
    root: Path, tmp_path: Path
) -> None:
    inside, outside = program(root / ".venv" / "bin"), program(tmp_path / "bin")
    assert programs(root, inside.parent)("server") is None
    assert programs(root, inside.parent, outside.parent)("server") == str(outside)
    assert programs(root, inside.parent)(str(inside)) is None
    found = programs(root, inside.parent)
    assert found("server") is None
    assert found.refused == {"server": str(inside)}


def test_no_link_leads_to_a_program_in_a_root(root: Path, tmp_path: Path) -> None:
    inside = program(root / "bin")
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "server").symlink_to(inside)
    (tmp_path / "bin").symlink_to(inside.parent)
    (tmp_path / "way").symlink_to(root)
    assert programs(root, folder)("server") is None
    assert programs(root, tmp_path / "bin")("server") is None
    assert Programs([str(tmp_path / "way")], {"PATH": str(inside.parent)})("server") is None


def test_a_link_in_a_root_is_not_followed_out_of_it(root: Path, tmp_path: Path) -> None:
    outside = program(tmp_path / "bin")
    (root / "server").symlink_to(outside)
    assert programs(root, root)("server") is None


def test_what_is_named_from_the_present_folder_is_never_found(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert programs(root, "bin", ".", "")("server") is None
    assert programs(root, tmp_path)("bin/server") is None
    assert programs(root, tmp_path)("./bin/server") is None


def test_what_is_no_program_is_not_found(root: Path, tmp_path: Path) -> None:
    place = program(tmp_path / "bin")
    place.chmod(0o644)
    (tmp_path / "bin" / "folder").mkdir()
    assert programs(root, place.parent)("server") is None
    assert programs(root, place.parent)("folder") is None


def test_what_an_extra_has_installed_beside_us_is_found_though_no_path_leads_there(
    root: Path,
) -> None:
    beside = Path(sys.executable).parent
    found = programs(root, "/usr/bin")
    assert found("filepact-csharp") == str(beside / "filepact-csharp")
    assert found("filepact-oracle") is None
    # Unless agents may change it.
    assert programs(beside, "/usr/bin")("filepact-csharp") is None


def test_a_program_that_is_needed_with_arguments_has_to_end_well(
    root: Path, tmp_path: Path
) -> None:
    place = program(
        tmp_path / "bin",
        text='#!/bin/sh\necho "{\\"said\\": \\"$2 $FILEPACT_CHANGEABLE\\"}"\nexit $1\n',
    )
    found = programs(root, place.parent, "/usr/bin", "/bin")
    assert found("server 0 yes") == str(place)
    assert found("server 1 no") is None
    assert found("other 0 yes") is None
    # It knows where agents may have put something, and what it says is kept either way.
    assert found.facts(["server 0 yes"]) == {"said": f"yes {root}"}
    assert found.facts(["server 1 no"]) == {"said": f"no {root}"}
    assert found.facts(["server", "other 0 yes"]) == {}


def test_a_program_that_is_needed_may_print_anything(root: Path, tmp_path: Path) -> None:
    for name, text in {"words": "some words", "list": "[1]", "nothing": ""}.items():
        place = program(tmp_path / "bin", name, f"#!/bin/sh\necho '{text}'\n")
        found = programs(root, place.parent, "/bin")
        assert found(f"{name} -v") == str(place)
        assert found.facts([f"{name} -v"]) == {}


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CACHE_HOME"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOPATH", "CARGO_HOME", "DOTNET_ROOT"),
    ],
)
def test_a_server_sees_where_things_are_and_how_its_person_writes(root: Path, name: str) -> None:
    assert programs(root, "/usr/bin", **{name: "/x"}).environment[name] == "/x"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"),
        *("AWS_SESSION_TOKEN", "CLIENT_SECRET", "PGPASSWORD", "DB_PASSWORD", "MY_PASSWORD_FILE"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "DATABASE_URL", "HTTPS_PROXY"),
        # Not even where the beginning of the name would do.
        *("LC_API_KEY", "LC_TOKEN", "lc_secret", "LC_PASSWORD"),
        # What makes a program load code before its own.
        *("LD_PRELOAD", "PYTHONSTARTUP", "NODE_OPTIONS", "DOTNET_STARTUP_HOOKS", "BASH_ENV", "ENV"),
        *("FILEPACT_ROOT", "SOMETHING_ELSE"),
    ],
)
def test_a_server_sees_no_secret_and_nothing_that_nobody_chose(root: Path, name: str) -> None:
    assert name not in programs(root, "/usr/bin", **{name: "x"}).environment


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CPATH"])
def test_lists_of_folders_lose_those_that_an_agent_may_change(
    root: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "way").symlink_to(root)
    said = [
        str(root / "bin"),
        "/usr/bin",
        "",
        ".",
        "lib",
        str(tmp_path / "way" / "x"),
        str(tmp_path),
    ]
    value = os.pathsep.join(said)
    told = {CHANGEABLE: str(root)}
    found = Programs([str(root)], {name: value}).environment
    assert found == {name: os.pathsep.join(["/usr/bin", str(tmp_path)]), **told}
    assert Programs([str(root)], {name: str(root)}).environment == told


def test_the_environment_is_that_of_this_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("SOME_API_KEY", "x")
    found = Programs([str(root)]).environment
    assert found["LC_ALL"] == "C.UTF-8"
    assert "SOME_API_KEY" not in found


# -- other projects of the same journal ------------------------------------------------------------


@pytest.mark.parametrize("command", ["diagnostics", "mcp", "tour"])
def test_a_program_in_another_project_of_the_journal_is_not_started(
    tmp_path: Path, command: str
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other, tmp_path / "home"):
        folder.mkdir()
    (other / "a.py").write_text("x: int = 'a'\n")
    state = str(tmp_path / "state")
    with open_workspace([str(one)], state_dir=state, settings=Settings()) as workspace:
        with workspace.draft(Session("s", Actor("agent", "a")), "write_file") as draft:
            draft.write(draft.open("a.txt"), "a\n")
            workspace.submit(draft, "write")
        assert str(one) in workspace.changeable
    assert journal_roots(state) == (str(one),)
    for name in ("ruff", "basedpyright-langserver", "pyright-langserver", "ty"):
        program(one / "bin", name, f"#!/bin/sh\necho {name} >> {tmp_path / 'started'}\n")
    path = os.pathsep.join([str(one / "bin"), "/usr/bin", "/bin"])
    environment = {"HOME": str(tmp_path / "home"), "PATH": path, "FILEPACT_STATE_DIR": state}
    words = {"diagnostics": ["a.py", "--seconds", "3"], "mcp": [str(other)], "tour": []}[command]
    content = {"path": "a.py", "content": "x: int = 'b'\n"}
    messages = (
        {"id": 1, "method": "initialize", "params": GREETING},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "write_file", "arguments": content}},
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "filepact", command, *words],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages),
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=one if command == "tour" else other,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout
    assert not (tmp_path / "started").exists()


def test_a_state_folder_that_is_not_there_names_no_folders_and_is_not_made(tmp_path: Path) -> None:
    assert journal_roots(str(tmp_path / "none")) == ()
    assert not (tmp_path / "none").exists()


def test_no_module_of_the_folder_that_one_stands_in_is_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "filepact.py").write_text("raise SystemExit('theirs')\n")
    python = sys.executable
    monkeypatch.setattr(sys, "argv", ["python"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    first, *words = isolated_command()
    assert first == str(tmp_path / "python")
    done = subprocess.run(
        [python, *words, "--version"],
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "theirs" in done.stderr) == (0, False)


def test_a_program_that_has_answered_is_not_run_again_until_it_or_its_surroundings_change(
    root: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    asked = program(
        tmp_path / "bin", text=f'#!/bin/sh\necho >> {ran}\necho \'{{"said": "here"}}\'\n'
    )

    def found(kept: dict[str, list[object]], **more: str) -> dict[str, list[object]]:
        some = Programs([str(root)], {"PATH": f"{asked.parent}:/usr/bin:/bin", **more}, kept)
        assert some("server --ask") == str(asked)
        assert some.facts(["server --ask"]) == {"said": "here"}
        return {**kept, **some.answers}

    kept = found({})
    assert found(kept) == kept
    assert len(ran.read_text()) == 1
    kept = found(kept, DOTNET_ROOT="/elsewhere")
    asked.write_text(asked.read_text() + "\n")
    kept = found(kept)
    assert len(ran.read_text()) == 3
    assert found({key: [when - 1e6, well, said] for key, (when, well, said) in kept.items()})
    assert len(ran.read_text()) == 4


def test_the_proxy_asks_no_program_that_has_answered_not_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, state, root = tmp_path / "ran", str(tmp_path / "state"), tmp_path / "root"
    root.mkdir()
    program(tmp_path / "bin", text=f"#!/bin/sh\nprintf x >> '{ran}'\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    settings = tmp_path / "settings.toml"
    table = (
        '[servers.mine]\ncommand = ["server"]\nneeds = ["server --ask"]\nfiles = {"*.x" = "x"}\n'
    )
    settings.write_text(table)
    sessions = _sessions(Namespace(config=str(settings), state=state, mode="auto", agent=[]))
    for _ in range(2):
        with open_workspace([str(root)], state_dir=state) as workspace:
            assert sessions._look is not None
            semantics = sessions._look(workspace)
            assert semantics is not None
            semantics.close()
    assert ran.read_text() == "x"


def test_answers_are_kept_in_the_state_folder_and_nonsense_in_it_is_none(tmp_path: Path) -> None:
    state = str(tmp_path)
    assert read_answers(state) == {}
    write_answers(state, {"a": [1.0, True, {"said": "here"}]})
    write_answers(state, {"b": [2.0, False, {}]})
    assert read_answers(state) == {"a": (1.0, True, {"said": "here"}), "b": (2.0, False, {})}
    for nonsense in ("[1]", "{", '{"a": 3}', '{"a": ["x", true, {}]}'):
        (tmp_path / "programs.json").write_text(nonsense)
        assert read_answers(state) == {}
    write_answers(state, {"a": [1.0, True, {}]})
    write_answers(state, None)
    assert read_answers(state) == {}
