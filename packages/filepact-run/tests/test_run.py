"""`filepact run`: what a program changes behind an overlay is judged, merged, recorded and undoable."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_place import AS_NOBODY, TEXT, Place
from tests import forked
from tests.faces.guarded import INSTALL

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_a_program_changes_is_one_operation_that_can_be_undone(place: Place) -> None:
    place.file("a.txt")
    place.file("old/deep/b.txt")
    before = place.state()
    script = (
        "sed -i s/two/2/ a.txt; rm -r old; mkdir -p new/er; echo x > new/c.txt; ln -s c.txt new/l"
    )
    done = place.run(script)
    assert done.returncode == 0, done.stderr
    assert place.state() == {
        "a.txt": TEXT.replace("two", "2"),
        "new": None,
        "new/c.txt": "x\n",
        "new/er": None,
        "new/l": "c.txt",
    }
    assert len(place.operations()) == 1
    place.undo()
    assert place.state() == before


def test_a_file_that_a_second_run_makes_is_not_told_of_as_one_that_came_back(place: Place) -> None:
    for _ in range(2):
        done = place.run("echo x > a; echo y > b")
        assert (place.state(), done.returncode) == ({"a": "x\n", "b": "y\n"}, 0)
        assert "made anew" not in done.stdout + done.stderr
        place.undo()
    # What comes back, all or in part, is told of.
    for words in (("a",), ()):
        for kept in (place.root.parent / "state/removed").iterdir():
            os.utime(kept, ns=(1, 1))
        assert "made anew" in place.command("redo", "--unattended", *words).stdout
        place.undo()


def test_what_a_person_writes_meanwhile_is_kept_and_stays_when_the_program_is_undone(
    place: Place,
) -> None:
    path = place.file("a.txt")

    def person() -> None:
        path.write_text(TEXT.replace("seven", "7"))
        place.file("mine.txt", "mine\n")

    place.beside("sed -i s/two/2/ a.txt; echo begun; read x; sed -i s/one/1/ a.txt", person)
    mine = TEXT.replace("seven", "7")
    if place.waiting():
        # The person was faster than the snapshot: nobody can tell whose lines are whose.
        assert path.read_text() == mine
    else:
        assert path.read_text() == mine.replace("two", "2").replace("one", "1")
    for one in place.operations():
        place.undo(one)
    assert path.read_text() == TEXT.replace("seven", "7")
    assert (place.root / "mine.txt").read_text() == "mine\n"


def test_an_overlap_waits_and_neither_side_is_lost(place: Place) -> None:
    path = place.file("a.txt")
    place.beside(
        "sed -i s/two/program/ a.txt; echo begun; read x",
        lambda: path.write_text(TEXT.replace("two", "person")),
    )
    assert path.read_text() == TEXT.replace("two", "person")
    (waiting,) = place.waiting()
    assert waiting["rule"] == "changed meanwhile"
    diff = place.command("diff", waiting["id"]).stdout
    assert "-person" in diff
    assert "+program" in diff


def test_version_control_is_read_only_unless_a_person_permits_it(place: Place) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=place.root, check=True)
    place.run("echo x > .git/commondir; echo x > .git/hooks/pre-commit; echo x > a")
    assert not (place.root / ".git" / "commondir").exists()
    assert not (place.root / ".git" / "hooks" / "pre-commit").exists()
    identity = "-c user.name=n -c user.email=e"
    script = f"git add a && git {identity} commit -qm one"
    assert place.run(script).returncode != 0
    assert place.run(script, "--writable", ".git").returncode == 0
    done = subprocess.run(
        ["git", "log", "--oneline"], cwd=place.root, check=True, capture_output=True
    )
    assert done.stdout.endswith(b" one\n")


def test_an_agent_keeps_its_own_folder_and_what_steers_it_stays(
    place: Place, tmp_path: Path
) -> None:
    folder = place.home / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    (place.home / ".cache").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    agent = programs / "claude"
    agent.write_text(
        "#!/bin/sh\ncd ~\nfor one in .claude/log .claude/settings.json .claude/settings.local.json .cache/x .y "
        ".claude/skills/s\n"
        "do echo x > $one; done\nexit 0\n"
    )
    agent.chmod(0o755)
    done = place.command("run", "--writable", str(programs), "--", str(agent))
    assert done.returncode == 0, done.stderr
    assert {one.name for one in folder.iterdir()} == {"log", "settings.json"}
    assert (folder / "settings.json").read_text() == "{}"
    assert [*(place.home / ".cache").iterdir()] == []
    assert not (place.home / ".y").exists()
    (left,) = place.facts("runs")["runs"]
    assert [*left["left"]] == [str(folder / "settings.local.json")]


@pytest.mark.slow
def test_a_link_to_what_steers_an_agent_stays_that_link(place: Place, tmp_path: Path) -> None:
    folder, kept = place.home / ".claude", place.home / "dotfiles"
    folder.mkdir()
    kept.mkdir()
    (kept / "settings.json").write_text("{}")
    (folder / "settings.json").symlink_to("../dotfiles/settings.json")
    (folder / "hooks").symlink_to(kept)
    programs = tmp_path / "bin"
    programs.mkdir()
    agent = programs / "claude"
    agent.write_text(
        "#!/bin/sh\ncd ~/.claude\nrm settings.json hooks\necho x > settings.json; mkdir hooks\n"
        "echo x > hooks/y\nexit 0\n"
    )
    agent.chmod(0o755)
    visible = ("--writable", str(programs), "--writable", str(folder))
    done = place.command("run", *visible, "--", str(agent))
    assert done.returncode == 0, done.stderr
    assert os.readlink(folder / "settings.json") == "../dotfiles/settings.json"
    assert os.readlink(folder / "hooks") == str(kept)
    assert [(one.name, one.read_text()) for one in kept.iterdir()] == [("settings.json", "{}")]


def test_in_review_everything_waits(place: Place) -> None:
    place.file("a.txt")
    before = place.state()
    place.run("echo x > a.txt; echo y > b.txt", "--mode", "review")
    assert place.state() == before
    (waiting,) = place.waiting()
    done = place.command("approve", "--unattended", waiting["id"])
    assert done.returncode == 0, done.stderr
    assert place.state() == {"a.txt": "x\n", "b.txt": "y\n"}


def test_what_a_rule_asks_about_waits_and_the_rest_is_done(place: Place) -> None:
    place.run("echo x > a.txt; echo '{}' > package.json; echo y > t; chmod +x t")
    assert place.state() == {"a.txt": "x\n"}
    (waiting,) = place.waiting()
    assert sorted(one["path"] for one in waiting["files"]) == ["package.json", "t"]


def test_what_is_denied_stays_in_the_layer_until_it_is_discarded(place: Place) -> None:
    place.run("mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/post-commit; echo y > sub/ok")
    assert place.state() == {"sub": None, "sub/ok": "y\n"}
    (left,) = place.facts("runs")["runs"]
    assert [*left["left"]] == [str(place.root / "sub/.git")]
    assert place.command("runs", "--discard", left["run"]).returncode == 0
    assert place.facts("runs") == {"runs": []}


def test_secrets_are_hidden_and_not_taken_for_removed(place: Place) -> None:
    place.file(".env", "TOKEN=secret\n")
    place.file("deep/.env.local", "TOKEN=secret\n")
    (place.home / ".ssh").mkdir()
    (place.home / ".ssh" / "id_ed25519").write_text("secret\n")
    before = place.state()
    done = place.run(
        "cat .env deep/.env.local ~/.ssh/* $FILEPACT_STATE_DIR/*; rm -f .env; echo x > .env; exit 0"
    )
    assert "secret" not in done.stdout
    assert place.state() == before
    assert place.operations() == []


def test_the_rest_of_the_system_cannot_be_written(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place.run(f"mkdir -p {outside}; echo x > {outside}/a; echo x > ~/b; echo x > /tmp/filepact-c")
    assert [*outside.iterdir(), *place.home.iterdir()] == []
    assert not Path("/tmp/filepact-c").exists()
    place.run(f"echo x > {outside}/a", "--writable", str(outside))
    assert (outside / "a").read_text() == "x\n"


@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
)
def test_the_exit_code_is_the_programs(place: Place, script: str, status: int) -> None:
    assert place.run(script).returncode == status


def test_a_program_that_is_not_there_is_said_and_leaves_nothing(place: Place) -> None:
    assert place.command("run", "--", "no-such-program").returncode == 127
    assert place.facts("runs") == {"runs": []}


def test_a_folder_in_which_secrets_cannot_all_be_found_is_refused(place: Place) -> None:
    (place.root / "/".join(["d"] * 402)).mkdir(parents=True)
    done = place.command("run", "--json", "--", "true")
    assert json.loads(done.stdout)["error"]["code"] == "FILE_TOO_LARGE"
    assert place.facts("runs") == {"runs": []}


def test_a_signal_that_is_sent_to_filepact_reaches_the_program(place: Place) -> None:
    words = (
        "run",
        "--",
        "sh",
        "-c",
        "trap 'echo x > got; exit 9' TERM; echo begun; read x; read x",
    )
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 9
    assert place.state() == {"got": "x\n"}


def test_a_folder_and_a_file_may_take_each_others_place(place: Place) -> None:
    place.file("a/deep/x")
    place.file("b", "file\n")
    before = place.state()
    place.run("rm -r a; echo file > a; rm b; mkdir b; echo y > b/y")
    assert place.state() == {"a": "file\n", "b": None, "b/y": "y\n"}
    for one in place.operations():
        place.undo(one)
    assert place.state() == before


def test_a_folder_made_anew_holds_nothing_of_the_old_one(place: Place) -> None:
    place.file("a/x")
    place.file("a/keep/z")
    place.run("rm -r a; mkdir a; echo y > a/y")
    assert place.state() == {"a": None, "a/y": "y\n"}


def test_odd_files_stay_in_the_layer_and_a_bit_that_makes_one_somebody_else_waits(
    place: Place,
) -> None:
    place.run("mkfifo pipe; echo x > a; chmod 4644 a; echo y > b; chmod 1644 b")
    assert place.state() == {"b": "y\n"}
    assert (place.root / "b").stat().st_mode & 0o7777 == 0o1644
    (waiting,) = place.waiting()
    place.command("approve", "--unattended", waiting["id"])
    assert (place.root / "a").stat().st_mode & 0o7777 == 0o4644
    (left,) = place.facts("runs")["runs"]
    assert [*left["left"]] == [str(place.root / "pipe")]


def test_a_pipe_that_a_program_removes_stays_and_that_is_told(place: Place) -> None:
    place.file("d/f")
    for name in ("pipe", "d/pipe"):
        os.mkfifo(place.root / name)
    with (place.root / "d/large").open("wb") as sparse:
        sparse.truncate(65 << 20)
    done = place.run("rm -r pipe d; echo x > a")
    there = [str(path.relative_to(place.root)) for path in sorted(place.root.rglob("*"))]
    assert there == ["a", "d", "d/large", "d/pipe", "pipe"]
    (left,) = place.facts("runs")["runs"]
    # Of what lay in a folder nothing is kept that could be tried again.
    assert [*left["left"]] == [str(place.root / "pipe")]
    for said in ("d stays: ", "d/large stays: ", "d/pipe stays: ", "  pipe: "):
        assert said in done.stderr
    for name in ("pipe", "d/pipe", "d/large"):
        (place.root / name).unlink()
    assert place.command("runs", "--commit", left["run"]).returncode == 0
    assert place.state() == {"a": "x\n", "d": None}
    assert place.facts("runs") == {"runs": []}
    place.undo()
    assert place.state() == {"d": None, "d/f": TEXT}


def test_a_link_that_leads_out_waits(place: Place) -> None:
    place.run("ln -s /etc/passwd out; ln -s ../.. up; ln -s a in")
    assert place.state() == {"in": "a"}
    (waiting,) = place.waiting()
    assert waiting["rule"] == "links out"


def test_when_filepact_is_killed_the_program_ends_and_its_changes_can_be_committed(
    place: Place,
) -> None:
    place.file("a.txt")
    words = ("run", "--", "sh", "-c", "echo x > a.txt; echo begun; sleep 1000 & read x; read x")
    with forked.Command(words, **place.options(stdin=subprocess.PIPE)) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
        # Its output ends when the last process inside has.
        assert process.stdout.read() == ""
    assert place.left_over() == []
    assert place.state() == {"a.txt": TEXT}
    (left,) = place.facts("runs")["runs"]
    # A program that is not there takes nothing away.
    assert place.command("run", "--resume", left["run"], "--", "no-such-program").returncode == 127
    assert place.command("runs", "--commit", left["run"]).returncode == 0
    assert place.state() == {"a.txt": "x\n"}
    assert place.facts("runs") == {"runs": []}


def test_folders_that_programs_fill_are_moved_without_a_record(place: Place) -> None:
    place.file("node_modules/a/index.js", "old\n")
    place.file("node_modules/b/index.js", "old\n")
    done = place.run(
        "echo new > node_modules/a/index.js; rm -r node_modules/b; mkdir node_modules/c; "
        "echo '{}' > node_modules/c/package.json; mkdir -p x/__pycache__; echo c > x/__pycache__/y.pyc; "
        "mkdir dist; echo mine > dist/page; echo x > a"
    )
    assert place.state() == {
        "a": "x\n",
        "dist": None,
        "dist/page": "mine\n",
        "node_modules": None,
        "node_modules/a": None,
        "node_modules/a/index.js": "new\n",
        "node_modules/c": None,
        "node_modules/c/package.json": "{}\n",
        "x": None,
        "x/__pycache__": None,
        "x/__pycache__/y.pyc": "c\n",
    }
    (operation,) = place.facts("log")["operations"]
    assert sorted(one["path"] for one in operation["files"]) == ["a", "dist/page", "x"]
    assert place.waiting() == []
    said = {"moved": ["node_modules", "x/__pycache__"], "dropped": []}
    assert ", ".join(said["moved"]) in done.stderr
    before = place.state()
    script = ("--json", "--", "sh", "-c", "rm -r node_modules; echo x > x/__pycache__/z.pyc")
    facts = json.loads(place.command("run", "--mode", "review", *script).stdout)
    assert {"moved": facts["dropped"], "dropped": facts["moved"]} == said
    assert place.state() == before
    facts = json.loads(place.command("run", *script).stdout)
    assert {name: facts[name] for name in said} == said
    assert "node_modules" not in place.state()
    assert len(place.operations()) == 1
    # What was not recorded keeps its folder there, which is named.
    assert place.command("undo", "--unattended").returncode == 1
    assert list(place.state()) == [
        "x",
        "x/__pycache__",
        "x/__pycache__/y.pyc",
        "x/__pycache__/z.pyc",
    ]


def test_a_run_can_be_gone_on_with(place: Place) -> None:
    place.run("mkfifo pipe; echo x > a")
    (left,) = place.facts("runs")["runs"]
    done = place.command(
        "run", "--resume", left["run"], "--", "sh", "-c", "rm pipe; cat a; echo y >> a"
    )
    assert done.returncode == 0, done.stderr
    assert place.state() == {"a": "x\ny\n"}
    assert place.facts("runs") == {"runs": []}


def test_without_layers_what_changes_is_recorded_afterwards(place: Place) -> None:
    place.file("a.txt")
    assert place.run("echo x > a.txt; exit 4", "--layers", "off").returncode == 4
    place.undo()
    assert place.state() == {"a.txt": TEXT}


def test_without_layers_only_what_goes_back_is_said_to(place: Place) -> None:
    place.file("a.txt")
    with (place.root / "large").open("wb") as sparse:
        sparse.truncate(65 << 20)
    done = place.run("echo x > a.txt; rm large", "--layers", "off")
    assert "not kept: large\n" in done.stderr
    (advised,) = re.findall("`filepact undo ([^`]+)` takes that back", done.stderr)
    # It ends with 1, as something of the same call is left as it is.
    assert "large" in place.command("undo", "--unattended", advised).stdout
    assert place.state() == {"a.txt": TEXT}


def test_without_layers_a_pipe_a_socket_and_a_device_that_go_are_named_and_no_undo_brings_them(
    place: Place,
) -> None:
    place.file("a.txt")
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place.root / "socket"))
    odd = ["pipe", "socket"]
    with suppress(PermissionError):
        os.mknod(place.root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        odd.append("device")
    done = place.run(f"echo x > a.txt; rm {' '.join(odd)}", "--layers", "off")
    (said,) = re.findall("not kept: (.*)\n", done.stderr)
    assert sorted(said.split(", ")) == sorted(odd)
    log = place.command("log").stdout
    assert all(name in log for name in odd)
    (advised,) = re.findall("`filepact undo ([^`]+)` takes that back", done.stderr)
    undone = place.command("undo", "--unattended", advised).stdout
    assert all(name in undone for name in odd)
    assert place.state() == {"a.txt": TEXT}


def test_without_layers_what_steers_git_is_told_and_taken_back(place: Place) -> None:
    subprocess.run(["git", "init", "-q", place.root], check=True)
    hook = place.root / ".git/hooks/pre-push"
    done = place.run("echo evil > .git/hooks/pre-push; echo x > AGENTS.md", "--layers", "off")
    assert ".git/hooks/pre-push" in done.stderr
    assert hook.exists()
    place.undo()
    assert not hook.exists()
    assert not (place.root / "AGENTS.md").exists()


@pytest.fixture
def nobodys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place of a user who is no administrator."""
    if os.geteuid() != 0:
        pytest.skip("only an administrator can become somebody else")
    with tempfile.TemporaryDirectory(prefix="filepact-", dir="/srv") as base:
        place = Place(Path(base))
        subprocess.run(["chown", "-R", "nobody:", base], check=True)
        yield place


@pytest.mark.slow
def test_it_needs_no_administrator(nobodys: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY],
        env={
            **{key: one for key, one in nobodys.environment.items() if key[:4] != "XDG_"},
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 5, done.stderr
    assert nobodys.state() == {"a.txt": "x\n", "d": None, "d/b": "y\n"}
    assert not Path("/etc/filepact-x").exists()


@pytest.mark.slow
def test_a_folder_among_the_devices_has_no_layers_and_it_is_said_why() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        place = Place(Path(folder))
        refused = place.run("echo x > a", "--layers", "required")
        assert (refused.returncode, place.state()) == (2, {})
        assert f"{place.root} lies in /dev, of which a program behind layers has its own" in (
            refused.stderr
        )
        done = place.run("echo x > a")
        assert (done.returncode, place.state()) == (0, {"a": "x\n"})
        assert "no layers here" in done.stderr


@pytest.mark.parametrize(("builds", "kept"), [("record", True), ("discard", False)])
def test_folders_that_programs_fill_are_recorded_or_thrown_away_by_setting(
    place: Place, tmp_path: Path, builds: str, kept: bool
) -> None:
    place.file("node_modules/a/index.js", "old\n")
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[run]\nbuilds = "{builds}"\n')
    place.environment["FILEPACT_CONFIG"] = str(settings)
    before = place.state()
    place.run("echo new > node_modules/a/index.js; mkdir -p target; echo x > target/CACHEDIR.TAG")
    changed = {**before, "node_modules/a/index.js": "new\n"} if kept else before
    found = place.state()
    assert {name: found.get(name) for name in before} == changed
    assert len(place.operations()) == kept
    assert place.facts("runs") == {"runs": []}


@pytest.mark.parametrize("layers", ["auto", "off"])
def test_what_is_said_of_a_file_holds_no_line_and_no_command_that_its_name_holds(
    place: Place, layers: str
) -> None:
    names = ["line\none", "escape\033[31m"]
    for name in names:
        place.file(f"{name}.txt")
        (place.root / name).mkdir()
    script = (
        'for n in line*.txt escape*.txt; do truncate -s 20000000 "$n"; rm "$n"; done; '
        'for d in line*e escape*m; do mkfifo "$d/pipe"; mkdir "$d/node_modules" "$d/.git"; '
        'echo x > "$d/node_modules/x"; echo x > "$d/.git/config"; done'
    )
    done = place.run(script, "--layers", layers)
    assert "\033" not in done.stderr
    assert all(one.startswith(("filepact: ", "  ")) for one in done.stderr.splitlines())
    assert "line\\x0aone" in done.stderr or layers == "off"


@pytest.mark.parametrize("name", ["__pycache__", "d/.venv"])
@pytest.mark.parametrize("what", ["", "/deep"])
def test_what_is_moved_out_of_a_folder_that_programs_fill_goes_back_there(
    place: Place, name: str, what: str
) -> None:
    place.file(f"{name}/deep/only", "the only copy\n")
    before = place.state()
    place.run(f"mv {name}{what} saved; echo new > made; echo more > saved/more")
    assert "made" in place.state()
    place.undo()
    assert place.state() == before


@pytest.mark.slow
def test_an_install_that_is_recorded_is_one_operation_and_one_step_back(place: Place) -> None:
    settings = place.home / "settings.toml"
    settings.write_text('[run]\nbuilds = "record"\n')
    script = INSTALL.format(folder="node_modules")
    place.run(script, "--commit", "end", "--config", str(settings))
    (made,) = place.facts("log")["operations"]
    assert len(made["files"]) == 200
    assert "197 more files" in place.command("log").stdout
    state = Path(place.environment["FILEPACT_STATE_DIR"])
    assert sum(one.stat().st_size for one in state.rglob("*") if one.is_file()) < 5 << 20
    place.undo()
    assert place.state() == {}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not here")
def test_a_package_that_npm_installs_is_there_and_its_manifest_waits(place: Place) -> None:
    place.file("package.json", '{"name": "app", "version": "1.0.0"}\n')
    place.file("lib/package.json", '{"name": "lib", "version": "1.0.0", "main": "i.js"}\n')
    place.file("lib/i.js", "module.exports = 7\n")
    script = (
        "npm install --offline --no-audit --no-fund --install-links ./lib >/dev/null && "
        "node -e 'console.log(require(\"lib\"))'"
    )
    done = place.run(script)
    assert done.stdout == "7\n", done.stderr
    assert place.state()["node_modules/lib/i.js"] == "module.exports = 7\n"
    assert place.operations() == []
    (waiting,) = place.waiting()
    assert [one["path"] for one in waiting["files"]] == ["package-lock.json", "package.json"]


@pytest.mark.slow
def test_git_works_in_a_repository_that_it_may_write(place: Place) -> None:
    script = (
        "git init -q . && git config user.name n && git config user.email e && "
        "echo 1 > a && git add a && git commit -qm one"
    )
    subprocess.run(["sh", "-c", script], cwd=place.root, check=True)
    work = (
        "git checkout -qb side && echo 2 > b && git add b && git commit -qm two && "
        "echo 3 >> a && git stash -q && git stash pop -q && git diff --stat && git status --short"
    )
    done = place.run(work, "--writable", ".git")
    assert done.stdout.endswith(" M a\n"), done.stderr
    status = subprocess.run(
        ["git", "status", "--short"], cwd=place.root, check=True, capture_output=True, text=True
    )
    assert status.stdout == " M a\n"
    for one in place.operations():
        place.undo(one)
    assert sorted(one.name for one in place.root.iterdir()) == [".git", "a"]
    assert (place.root / "a").read_text() == "1\n"
