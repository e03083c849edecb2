"""The command line that hosts run: what it does where filepact is gone, and what it never imports or obeys."""

from __future__ import annotations

import json
import re
import shutil
import site
import subprocess
import sys
import venv
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import filepact
from filepact_hooks import client
from filepact_setup.hook_command import command_lines, hook_text, is_hook
from filepact_setup.hosts import HOSTS
from tests.installed import WINGS
from tests.needs import BARE_PYTHON, CONFIG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.node_programs import Programs

PLUGINS: Final = Path(__file__).resolve().parents[3] / "plugins"
SOURCE: Final = str(Path(filepact.__file__).parents[1])
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
BY_NAME: Final = {one.name: one for one in HOSTS if one.hooks is not None}
LINES: Final = [name for name in BY_NAME if name != "opencode"]


class Installation:
    """A filepact of its own, which can go, a project, and a home.

    Args:
        folder: Where all is made.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "my 'own' $project"
        self.venv = folder / 'it\'s "here"'
        self.ran = folder / "ran"
        for one in (self.root / "src", self.root / ".git", self.home / CONFIG_FOLDER / "filepact"):
            one.mkdir(parents=True)
        (self.home / CONFIG_FOLDER / "filepact" / "filepact.toml").write_text("[hooks]\nidle = 1\n")
        (self.root / ".env").write_text("TOKEN=SECRET\n")
        venv.create(self.venv)
        self.python = self.venv / "bin" / "python"
        version = "python{}.{}".format(*sys.version_info)
        self.packages = self.venv / "lib" / version / "site-packages"
        self.found = self.packages / "theirs.pth"
        packages = (one for one in sys.path if one.endswith("site-packages"))
        beside = (str(one.parent) for one in WINGS)
        self.found.write_text("\n".join([SOURCE, *beside, *packages]))
        self.environment = {"HOME": str(self.home), "PATH": PATH, "LANG": "C.UTF-8"}

    def run(
        self, words: Sequence[str], *, given: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the project."""
        return subprocess.run(
            words,
            cwd=self.root,
            env=self.environment | variables,
            input=given,
            capture_output=True,
            check=False,
            timeout=90,
        )

    def lines(self, name: str, *options: str) -> dict[str, str]:
        """What a host of that name is told to run, by event, as `setup` has written it."""
        words = (str(self.python), "-I", "-m", "filepact", "setup", name)
        done = self.run([*words, "--write", "--unattended", "--json", *options])
        assert done.returncode == 0, done
        hooks = BY_NAME[name].hooks
        assert hooks is not None
        own = self.home / hooks.path.removeprefix("~/")
        path = self.root / hooks.team if "--team" in options else own
        events = json.loads(path.read_text())["hooks"]
        return {event: command_lines(items)[0] for event, items in events.items()}

    def hook(
        self, line: str, event: str, shell: Sequence[str] = ("/bin/sh", "-c"), **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """What a line answers to an event about the project's secrets."""
        facts = {"session_id": "s", "cwd": str(self.root), "hook_event_name": event}
        call = {"tool_name": "Read", "tool_use_id": "1", "tool_input": {"file_path": ".env"}}
        given = json.dumps({**facts, **call}).encode()
        return self.run([*shell, line], given=given, **variables)

    def trap(self, path: str, text: str = "") -> Path:
        """A file of the project that tells when it is run, and then ends the process as if all was well."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        # Early enough for what Python itself imports first.
        trap = f"import posix; posix.open({str(self.ran)!r}, posix.O_CREAT); posix._exit(0)\n"
        place.write_text(text.replace("TRAP", trap.strip()) or trap)
        return place


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def denies(done: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether a call is refused, in one of the forms that hosts take."""
    if done.returncode == 2:
        return bool(done.stderr.strip())
    said = json.loads(done.stdout or b"{}")
    said = said.get("hookSpecificOutput", said)
    return done.returncode == 0 and "deny" in [
        said.get(key) for key in ("permissionDecision", "permission", "decision")
    ]


# -- where filepact is gone ------------------------------------------------------------------


def _uninstalled(one: Installation) -> None:
    one.found.unlink()


def _removed(one: Installation) -> None:
    shutil.rmtree(one.venv)


def _moved(one: Installation) -> None:
    one.venv.rename(one.venv.with_name("elsewhere"))


def _other_python(one: Installation) -> None:
    # One that knows none of these options ends as hooks do that refuse.
    one.python.unlink()
    one.python.write_text("#!/bin/sh\nexit 2\n")
    one.python.chmod(0o755)


def _without_python(one: Installation) -> None:
    one.python.unlink()
    one.python.symlink_to("/nowhere/python")


def _damaged(one: Installation) -> None:
    one.found.write_text("")
    (one.packages / "filepact").mkdir()
    (one.packages / "filepact" / "__init__.py").write_text("raise MemoryError\n")


@pytest.mark.parametrize("name", LINES)
def test_where_filepact_is_gone_calls_are_refused_and_all_else_goes_on(
    installed: Installation, name: str
) -> None:
    hooks = BY_NAME[name].hooks
    assert hooks is not None
    lines = installed.lines(name)
    assert denies(installed.hook(lines[hooks.before[0]], hooks.before[0]))
    for event in hooks.after:
        done = installed.hook(lines[event], event)
        assert (done.returncode, denies(done)) == (0, False)
    shutil.copytree(installed.venv, kept := installed.venv.with_name("kept"), symlinks=True)
    for gone in (_uninstalled, _other_python, _without_python, _damaged, _moved, _removed):
        shutil.rmtree(installed.venv, ignore_errors=True)
        shutil.copytree(kept, installed.venv, symlinks=True)
        gone(installed)
        for event in hooks.before:
            done = installed.hook(lines[event], event)
            assert denies(done) or (gone is _other_python and done.returncode == 2), (gone, done)
        for event in hooks.after:
            done = installed.hook(lines[event], event)
            assert (done.returncode, done.stdout) == (0, b""), (gone, done)


def test_hooks_that_only_record_refuse_nothing_where_filepact_is_gone(
    installed: Installation,
) -> None:
    lines = installed.lines("gemini", "--team", "--guard", "record")
    shutil.rmtree(installed.venv)
    assert {installed.hook(line, event).returncode for event, line in lines.items()} == {0}


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish"])
def test_codex_may_run_its_hooks_in_any_shell(installed: Installation, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    line = installed.lines("codex")["PreToolUse"]
    assert denies(installed.hook(line, "PreToolUse", (shell, "-c")))
    shutil.rmtree(installed.venv)
    assert installed.hook(line, "PreToolUse", (shell, "-c")).returncode == 2


@pytest.mark.parametrize("name", LINES)
def test_lines_of_all_versions_are_known_again(installed: Installation, name: str) -> None:
    new = [*installed.lines(name).values(), hook_text(["filepact", "hook", name])]
    old = [f"/opt/bin/filepact hook {name} --root /a", f"python -P -m filepact hook {name}"]
    assert all(is_hook({"command": line}) for line in [*new, *old])
    assert not is_hook({"command": "echo filepact is gone"})


ASKING: Final = """\
import { Filepact } from "./plugin.js"
const shown = []
const client = { tui: { showToast: async ({ body }) => shown.push(body.message) } }
const hooks = await Filepact({ client, directory: ".", worktree: process.cwd() })
const input = { tool: "read", sessionID: "s", callID: "1", args: { filePath: ".env" } }
const said = await hooks["tool.execute.before"](input, { args: input.args }).then(() => "goes on", () => "refused")
await hooks["tool.execute.after"](input)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
console.log(said)
"""


def _asked(programs: Programs, installed: Installation, **variables: str) -> bytes:
    """What the plugin of OpenCode says to the reading of secrets."""
    (installed.root / "asking.mjs").write_text(ASKING)
    done = installed.run([str(programs.node), "asking.mjs"], **variables)
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_the_plugin_of_opencode_refuses_where_filepact_is_gone(
    programs: Programs, installed: Installation
) -> None:
    words = (str(installed.python), "-I", "-m", "filepact", "setup", "opencode")
    assert installed.run([*words, "--write", "--unattended"]).returncode == 0
    written = installed.home / ".config" / "opencode" / "plugin" / "filepact.js"
    (installed.root / "package.json").write_text('{"type": "module"}')
    plugin = installed.root / "plugin.js"
    plugin.write_text(written.read_text())
    assert _asked(programs, installed) == b"refused"
    (installed.root / ".env").rename(installed.root / "a.txt")
    asking = ASKING.replace(".env", "a.txt")
    (installed.root / "asking.mjs").write_text(asking)
    assert installed.run([str(programs.node), "asking.mjs"]).stdout.strip() == b"goes on"
    for answer in ("exit 1", "exit 2", "kill -9 $$", "echo no JSON", "echo null", "echo '{'"):
        installed.python.unlink()
        installed.python.write_text(f"#!/bin/sh\ncat > /dev/null\n{answer}\n")
        installed.python.chmod(0o755)
        assert installed.run([str(programs.node), "asking.mjs"]).stdout.strip() == b"refused", (
            answer
        )
    shutil.rmtree(installed.venv)
    assert installed.run([str(programs.node), "asking.mjs"]).stdout.strip() == b"refused"


# -- what an agent can write -------------------------------------------------------------------

SHADOWS: Final = (
    *("re", "json", "signal", "csv", "apsw", "filepact", "__future__", "_blake2", "runpy", "enum"),
    *("sitecustomize", "usercustomize", "encodings/__init__", "site", "importlib/__init__"),
)
"""Modules that a start, or what it does, imports."""


def _below_python_path(one: Installation, *, relative: bool = False) -> dict[str, str]:
    for name in SHADOWS:
        one.trap(f"src/{name}.py")
    return {"PYTHONPATH": "src" if relative else str(one.root / "src")}


def _in_the_folder(one: Installation) -> dict[str, str]:
    for name in SHADOWS:
        one.trap(f"{name}.py")
    return {}


def _as_python_path(one: Installation) -> dict[str, str]:
    _in_the_folder(one)
    return {"PYTHONPATH": "."}


def _startup(one: Installation) -> dict[str, str]:
    return {"PYTHONSTARTUP": str(one.trap("start.py")), "PYTHONINSPECT": "1"}


def _home_of_python(one: Installation) -> dict[str, str]:
    for name in SHADOWS:
        one.trap(f"lib/{one.packages.parent.name}/{name}.py")
    return {"PYTHONHOME": str(one.root), "PYTHONPLATLIBDIR": "lib"}


def _home(one: Installation) -> dict[str, str]:
    below = f".local/lib/{one.packages.parent.name}/site-packages"
    for name in SHADOWS:
        one.trap(f"{below}/{name}.py")
    one.trap(f"{below}/more.pth", "TRAP\n")
    return {
        "PYTHONUSERBASE": str(one.root / ".local"),
        "HOME": str(one.root),
        "XDG_STATE_HOME": str(one.home / "state"),
    }


def _compiled(one: Installation) -> dict[str, str]:
    """Bytecode that Python would take for that of filepact's own files."""
    import importlib._bootstrap_external as external  # noqa: PLC0415 - what writes such files

    trap = compile(one.trap("trap.py").read_text(), "trap", "exec")
    folder = one.root / "cache"
    for source in map(Path, (filepact.__file__, client.__file__, json.__file__, re.__file__)):
        found = source.stat()
        made: bytes = external._code_to_timestamp_pyc(trap, int(found.st_mtime), found.st_size)
        place = folder / Path(cache_from_source(str(source))).parent.relative_to("/").parent
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{source.stem}.{sys.implementation.cache_tag}.pyc").write_bytes(made)
    return {"PYTHONPYCACHEPREFIX": str(folder)}


def _warnings(one: Installation) -> dict[str, str]:
    one.trap("theirs.py")
    return {"PYTHONWARNINGS": "error::theirs.Category", "PYTHONBREAKPOINT": "theirs.stop"}


def _search_path(one: Installation) -> dict[str, str]:
    """Programs of the project come first, and of folders that are named from the working folder."""
    for folder in (".venv/bin", "node_modules/.bin"):
        for name in ("filepact", "python", "python3", "git", "sh", "test", "echo", "env", "node"):
            one.trap(f"{folder}/{name}", f'#!/bin/sh\necho >> "{one.ran}"\n').chmod(0o755)
    return {"PATH": f"{one.root}/.venv/bin:node_modules/.bin:{PATH}"}


def _git(one: Installation) -> dict[str, str]:
    one.trap("run", f'#!/bin/sh\necho >> "{one.ran}"\n').chmod(0o755)
    named = one.root / "gitconfig"
    named.write_text('[core]\n\tfsmonitor = "./run"\n\tpager = "./run"\n\tsshCommand = "./run"\n')
    names = ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS")
    return {
        **dict.fromkeys(names, "./run"),
        **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), str(named)),
        **dict.fromkeys(("GIT_DIR", "GIT_WORK_TREE", "GIT_EXEC_PATH"), str(one.root / "src")),
    }


def _proxies(one: Installation) -> dict[str, str]:
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "SSL_CERT_FILE")
    return dict.fromkeys(names, "http://127.0.0.1:9") | {"SSLKEYLOGFILE": str(one.ran)}


def _shells(one: Installation) -> dict[str, str]:
    script = one.trap("profile", f'echo >> "{one.ran}"\n')
    return {"NODE_OPTIONS": f"--require={script}", "LESSOPEN": f"|{script}", "PS4": "$(./profile)"}


def _state(one: Installation) -> dict[str, str]:
    return {"FILEPACT_STATE_DIR": str(one.root / "state"), "XDG_STATE_HOME": str(one.root / "s")}


def _settings(one: Installation) -> dict[str, str]:
    """Settings that are the person's by their place; agents may not write there, which is tried below."""
    folder = one.root / "xdg" / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text("[hooks]\nidle = 1\n")
    return {"XDG_CONFIG_HOME": str(folder.parent)}


PLANTED: Final[Mapping[str, Any]] = {
    "PYTHONPATH relative": lambda one: _below_python_path(one, relative=True),
    "PYTHONPATH absolute": _below_python_path,
    "PYTHONPATH the folder itself": _as_python_path,
    "the working folder": _in_the_folder,
    "PYTHONSTARTUP, PYTHONINSPECT": _startup,
    "PYTHONHOME": _home_of_python,
    "PYTHONUSERBASE, HOME, .pth": _home,
    "PYTHONPYCACHEPREFIX": _compiled,
    "PYTHONWARNINGS": _warnings,
    "PATH": _search_path,
    "GIT_": _git,
    "proxies": _proxies,
    "of other programs": _shells,
    "the state in the project": _state,
    "the settings in the project": _settings,
}


@pytest.mark.parametrize("what", PLANTED)
def test_no_variable_and_no_folder_has_a_hook_or_server_run_what_an_agent_has_written(
    installed: Installation, what: str
) -> None:
    line = installed.lines("claude")["PreToolUse"]
    assert denies(installed.hook(line, "PreToolUse"))
    variables = PLANTED[what](installed)
    assert denies(installed.hook(line, "PreToolUse", **variables))
    entry = json.loads((installed.root / ".mcp.json").read_text())["mcpServers"]["filepact"]
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    hello = json.dumps({**message, "params": {**greeting, "clientInfo": {"name": "x"}}})
    done = installed.run(
        [entry["command"], *entry["args"]], given=f"{hello}\n".encode(), **variables
    )
    # A state folder in the project is refused: an agent could write it.
    assert (b'"id":1' in done.stdout.replace(b" ", b"")) == (what != "the state in the project")
    assert not installed.ran.exists()


@BARE_PYTHON
def test_an_installation_in_the_folder_of_its_user_is_started_isolated(
    installed: Installation,
) -> None:
    python = installed.python = Path(sys._base_executable)  # type: ignore[attr-defined]
    site_of = "import site; print(site.getusersitepackages())"
    mine = Path(installed.run([str(python), "-c", site_of]).stdout.decode().strip())
    mine.mkdir(parents=True)
    for one in (
        Path(SOURCE) / "filepact",
        *WINGS,
        *(
            each
            for top in map(Path, site.getsitepackages())
            if top.is_dir()
            for each in top.iterdir()
        ),
    ):
        if one.suffix != ".pth" and one.name != "__pycache__" and not (mine / one.name).exists():
            (mine / one.name).symlink_to(one)
    done = installed.run(
        [str(python), "-m", "filepact", "setup", "gemini", "--write", "--unattended"]
    )
    assert done.returncode == 0, done
    file = installed.home / ".gemini" / "settings.json"
    (line,) = command_lines(json.loads(file.read_text())["hooks"]["BeforeTool"])
    assert denies(installed.hook(line, "BeforeTool"))
    for planted in (_below_python_path, _home):
        assert denies(installed.hook(line, "BeforeTool", **planted(installed)))
    assert not installed.ran.exists()


@BARE_PYTHON
@pytest.mark.parametrize("module", [True, False])
def test_a_command_that_is_typed_starts_again_where_a_variable_leads_into_the_project(
    installed: Installation, module: bool
) -> None:
    # What Python and an installer's script import before ours is out of reach here.
    early = ("re", "enum", "__future__", "sitecustomize", "usercustomize")
    early += ("encodings/__init__", "importlib/__init__")
    for name in set(SHADOWS) - {*early, "filepact"}:
        installed.trap(f"src/{name}.py")
    script = installed.venv / "bin" / "filepact"
    script.write_text(
        "#!/usr/bin/env python3\nimport sys\nfrom filepact.faces.cli import run\nsys.exit(run())\n"
    )
    words = ["-m", "filepact"] if module else [str(script)]
    line = hook_text([str(installed.python), *words, "hook", "claude"])
    assert denies(installed.hook(line, "PreToolUse", PYTHONPATH="src"))
    assert not installed.ran.exists()


def test_a_filepact_below_the_project_is_not_taken_by_its_name(
    programs: Programs, installed: Installation
) -> None:
    place = installed.home / "bin"
    place.mkdir()
    (place / "filepact").write_text(
        f'#!/bin/sh\nexec "{installed.python}" -m filepact "$@"\n'.replace(
            'it\'s "here"', 'it\'s \\"here\\"'
        )
    )
    (place / "filepact").chmod(0o755)
    lines = json.loads((PLUGINS / "claude" / "hooks" / "hooks.json").read_text())["hooks"]
    (line,), (after,) = (command_lines(lines[one]) for one in ("PreToolUse", "PostToolUse"))
    plugin = (PLUGINS / "opencode" / "filepact.js").read_text()
    (installed.root / "plugin.js").write_text(plugin)
    (installed.root / "package.json").write_text('{"type": "module"}')
    harmless = {"PATH": f"{place}:{PATH}"}
    assert denies(installed.hook(line, "PreToolUse", **harmless))
    assert _asked(programs, installed, **harmless) == b"refused"
    led = _search_path(installed) | _below_python_path(installed)
    for path in (led["PATH"], f"node_modules/.bin:{PATH}", PATH):
        variables = {**led, "PATH": path}
        assert installed.hook(line, "PreToolUse", **variables).returncode == 2
        done = installed.hook(after, "PostToolUse", **variables)
        assert (done.returncode, done.stdout) == (0, b"")
        assert _asked(programs, installed, **variables) == b"refused"
    variables = {**led, **harmless}
    done = installed.hook(line, "PreToolUse", **variables)
    assert (done.returncode, denies(done)) == (0, True)
    assert _asked(programs, installed, **variables) == b"refused"
    assert not installed.ran.exists()


# -- names beyond ASCII ------------------------------------------------------------------------


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
@pytest.mark.parametrize("entry", ["written", "typed"])
def test_rules_beyond_ascii_hold_in_every_locale(
    installed: Installation, latin: str, locale: str, entry: str
) -> None:
    settings = installed.home / CONFIG_FOLDER / "filepact" / "filepact.toml"
    settings.write_text(
        '[hooks]\nidle = 1\n[[deny]]\npaths = ["geheim-\u00e9/**"]\n', encoding="utf-8"
    )
    secret = installed.root / "geheim-\u00e9"
    secret.mkdir()
    (secret / "k.txt").write_text("KEY\n")
    installed.environment |= {
        "LC_ALL": locale,
        "LOCPATH": latin,
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    start = [str(installed.python), *(["-I", "-Xutf8"] if entry == "written" else ["-P"])]
    done = installed.run([*start, "-m", "filepact", "read", "geheim-\u00e9/k.txt", "--json"])
    assert json.loads(done.stdout)["error"]["code"] == "PATH_BLOCKED"
    call = {"tool_name": "Read", "tool_input": {"file_path": "geheim-\u00e9/k.txt"}}
    event = {"session_id": "s", "hook_event_name": "PreToolUse", "cwd": str(installed.root), **call}
    given = json.dumps(event, ensure_ascii=False).encode()
    line = installed.lines("claude")["PreToolUse"]
    words = (
        ["/bin/sh", "-c", line]
        if entry == "written"
        else [*start, "-m", "filepact", "hook", "claude"]
    )
    assert denies(installed.run(words, given=given))
