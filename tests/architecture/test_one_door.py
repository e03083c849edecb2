"""Only `fs` touches files: nothing else may name what opens, lists, changes or starts something.

The import contracts keep floors apart; this test closes the doors beside them, which every Python
module has: `open`, `os`, `pathlib`, `shutil` and their like.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.architecture.project import MODULES, dotted, syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

# Parts of `os` that only compute, only look at the process itself, or are only names and numbers.
HARMLESS = frozenset(
    {
        "os.altsep", "os.fsdecode", "os.fsencode", "os.fspath", "os.getpid", "os.linesep", "os.name",
        "os.path.basename", "os.path.commonpath", "os.path.commonprefix", "os.path.dirname",
        "os.path.isabs", "os.path.join", "os.path.normcase", "os.path.normpath", "os.path.relpath",
        "os.path.sep", "os.path.split", "os.path.splitext", "os.sep", "os.strerror", "os.urandom",
        "os.PathLike", "os.cpu_count", "shutil.get_terminal_size", "os.devnull", "os.get_terminal_size", "os.pathsep",
    }
)  # fmt: skip

# Modules that reach the disk, other programs or the network, with all they hold.
CLOSED = frozenset(
    {
        "_io", "apsw", "codecs.open", "ctypes", "dbm", "fcntl", "fileinput", "glob", "io.FileIO",
        "io.open", "linecache", "mmap", "multiprocessing", "nt", "os", "pathlib", "platformdirs",
        "posix", "shelve", "shutil", "_socket", "socket", "sqlite3", "subprocess", "tempfile", "urllib.request",
        "zipfile", "tarfile",
    }
)  # fmt: skip
PURE_PATHS = frozenset({"pathlib.PurePath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath"})

# Methods that only paths have; a path handed in by a caller needs no import to be used.
METHODS = frozenset(
    {
        "chmod", "expanduser", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat",
        "mkdir", "read_bytes", "read_text", "rglob", "rmdir", "samefile", "symlink_to", "touch",
        "unlink", "write_bytes", "write_text",
    }
)  # fmt: skip

OWN_FOLDER = "the tour's own throw-away folder"
STATE = "the state folder, which lies outside every root"

# Module, what it may use, why. A name ending in "." allows all beneath it.
ALLOWED: dict[str, dict[str, str]] = {
    "config.folders": dict.fromkeys(
        ("os.environ.get", "os.getcwd", "os.path.expanduser", "pathlib.Path().expanduser"),
        "where a person's folders are; names only",
    )
    | dict.fromkeys(
        ("open", "os.path.isfile", "os.path.realpath", "os.stat"),
        "which folders were set up, and to which of them a worktree belongs; agents' files are not opened",
    ),
    "config.person": {
        "os.environ.": "which folders and files the person names",
        **dict.fromkeys(
            (
                *("open", "os.getcwd", "os.path.expanduser", "os.path.realpath", "os.stat"),
                "pathlib.",
            ),
            "the settings files of the person and the system, before any root is opened",
        ),
    },
    "filepact_hooks.client": {
        **dict.fromkeys(
            (
                *("os.chdir", "os.close", "os.fchdir", "os.fstat", "os.geteuid"),
                *("os.getcwd", "os.lstat", "os.makedirs", "os.mkdir", "os.open", "_socket."),
                *("pathlib.Path().lstat", "pathlib.Path().mkdir", "_socket"),
            ),
            "the folder of sockets in the state folder, and the socket of the daemon",
        ),
        **dict.fromkeys(
            (
                *("os._exit", "os.closerange", "os.dup2", "os.fork", "os.pipe", "os.setsid"),
                *("os.sysconf", "fcntl."),
            ),
            "the daemon's process",
        ),
        **dict.fromkeys(("os.read", "os.write"), "standard input and output, and pipes"),
        **dict.fromkeys(
            (
                *("os.environ.get", "os.path.abspath", "os.path.isdir", "os.path.lexists"),
                "os.path.realpath",
            ),
            "which folder the host works in; names only",
        ),
    },
    "filepact_hooks.daemon": {
        **dict.fromkeys(("os.geteuid", "os.umask", "os.write", "socket."), "its own socket"),
        **dict.fromkeys(("fcntl.", "os.close", "os.open", "os.truncate"), STATE),
        "pathlib.": STATE,
        "os.pidfd_open": "whether the host of a call is still there",
    },
    "filepact_hooks.turn_errors": dict.fromkeys(
        ("os.geteuid", "socket."), "a socket without a name on any disk, and whose it is"
    ),
    "filepact_cli.doctor": {
        "os.geteuid": "whether the state folder is this person's",
        **dict.fromkeys(("os.access", "shutil.disk_usage"), "whether it can be written to"),
        "os.walk": "names of our own leftovers, which no tool shows; no file is opened",
        "pathlib.": "the state folder before anything opens it, and the system's own mount table",
    },
    "filepact_cli.wording": dict.fromkeys(
        ("os.path.exists", "pathlib.Path().read_text"),
        "how this copy of filepact was installed; the second is a distribution's, not a path's",
    ),
    "filepact_acp.proxy.start": dict.fromkeys(
        ("os.kill", "socket.", "subprocess."), "the agent's program"
    ),
    "filepact_acp.proxy.tool_socket": dict.fromkeys(
        ("pathlib.", "shutil.rmtree", "socket.", "tempfile."), "the folder of its own socket"
    ),
    "filepact_acp.proxy.stdio_bridge": dict.fromkeys(
        ("os._exit", "os.read", "os.write", "socket."), "standard input and output"
    ),
    "filepact_acp.proxy.peers": {"os.write": "a pipe"},
    "filepact_gateway.issuer": {
        "socket.": "ends a connection to an issuer whose answer never ends"
    },
    "filepact_gateway.metrics": {
        "mmap.": "memory that the gateway's own processes share, of no file"
    },
    "filepact_gateway.server": {
        "socket.": "pairs between its own processes",
        **dict.fromkeys(
            (
                *("os._exit", "os.close", "os.fork", "os.kill", "os.pipe", "os.read"),
                *("os.set_blocking", "os.waitpid", "os.waitstatus_to_exitcode", "os.WNOHANG"),
            ),
            "its own workers, and the pipe by which signals wake it",
        ),
    },
    "filepact_cli.audit": {"pathlib.": "a file of signed heads that a person names"},
    "filepact_acp.command": {"pathlib.": "folders and programs that a person names; names only"},
    "filepact_setup.editor_lines": {
        "pathlib.": "programs that a person names; names only",
        "shutil.which": "the agent's program, for the lines of editors",
    },
    "filepact_run.guard": {
        **dict.fromkeys(("os.kill", "os.pipe", "os.write", "subprocess."), "the guard's process"),
        "pathlib.": "the folder that a person names; names only",
    },
    "filepact_cli.state": {"pathlib.": "names and sizes in the state folder"},
    "integrations.deepagents": {"pathlib.Path().read_bytes": "the method of `Files`, guarded"},
    "filepact_cli.files": {
        "pathlib.": "texts that a person names on the command line (--old-file, patch files)",
    },
    "filepact_cli.config": {
        "os.environ.get": "the person's editor",
        "os.fdopen": "the copy of the settings file that is edited",
        "pathlib.": "the person's settings file, only to be read; `fs` replaces it",
        "shutil.which": "the person's editor",
        "subprocess.": "the person's editor",
        "tempfile.": "the copy of the settings file that is edited",
    },
    "filepact_setup.checks": {"pathlib.": "where a session starts; names only"},
    "filepact_setup.connections": {
        "shutil.which": "which agents' programs are installed",
        **dict.fromkeys(
            ("os.environ.", "subprocess."),
            "the hook that an agent's program runs, as `filepact setup` writes it",
        ),
        **dict.fromkeys(
            ("os.path.", "pathlib."),
            "where a session starts, and when its hook was called; names only",
        ),
    },
    "filepact_setup.host_files": {
        "os.path.realpath": "where a link of the person's settings leads",
        "pathlib.": "settings files of agents' programs, only to be read; `fs` writes them",
    },
    "filepact_setup.hosts": {
        "pathlib.": "the place of this very program, and where hosts have their settings; names only",
        "os.environ.": "where the person has moved a host's settings to",
        "shutil.which": "how this very program is called",
    },
    "faces.cli": {
        "os.environ.": "which variables lead Python to files that agents may have written",
        "os.path.abspath": "where the folders of such a variable are; names only",
        "os.execv": "this very program, started again without them",
    },
    "filepact_setup.hook_command": {
        **dict.fromkeys(
            ("os.environ.", "os.path.realpath", "pathlib."),
            "whether this very program lies in a cache, and what it was told; names only",
        ),
    },
    "filepact_setup.command": {
        **dict.fromkeys(
            ("os.environ.", "os.path.lexists", "os.path.realpath", "pathlib."),
            "the folder that hosts are connected to; names only",
        ),
    },
    "filepact_cli.main": {
        "os._exit": "the end of a server, in which all is closed",
        "os.environ.": "the person's wishes about colours and debugging",
        "os.dup2": "a reader of our output has gone away; what is left goes nowhere",
        "os.open": "the same",
        "open": "our own completion scripts, beside this module",
    },
    "filepact_cli.deciding": dict.fromkeys(
        ("shutil.which", "subprocess."), "the desktop's own program for notices"
    ),
    "filepact_windows.review_editor": {
        "os.environ.get": "which editor the person has chosen",
        "shutil.which": "the same",
        **dict.fromkeys(
            ("pathlib.", "tempfile.TemporaryDirectory"),
            "a proposed text in a throw-away folder, for as long as the person edits it",
        ),
        "subprocess.": "the editor that the person has chosen",
    },
    "filepact_run.command": {
        "os.environ": "what the program sees of it: all",
        "os.path.realpath": "which places the person lets the program change; names only",
        "pathlib.": "the present folder; names only",
        "subprocess.": "the program, where the system has no layers",
    },
    "filepact_cli.screen": {
        "os.environ": "what the pager sees of it: all, and how it is to behave",
        "os.environ.get": "which pager the person has chosen",
        "pathlib.": "whether a pager lies in the present folder; names only",
        "shutil.which": "the pager that the person has chosen",
        "subprocess.": "the same",
    },
    "filepact_cli.context": {
        "os.environ.": "which folders the person names",
        "os.getuid": "the person's name",
        "os.path.lexists": "whether a folder above is a repository's top; names only",
        "pathlib.": "the present folder and those above it; names only",
    },
    "filepact_cli.serve": {
        "os.environ": "which conversation the host names",
        **dict.fromkeys(
            ("os.access", "os.path.exists", "subprocess."),
            "whether what is loaded later has been compiled, and who compiles it",
        ),
    },
    "filepact_setup.tour": {
        "pathlib.": OWN_FOLDER,
        "shutil.rmtree": OWN_FOLDER,
        "tempfile.mkdtemp": OWN_FOLDER,
        "os.environ.": "the environment of the server that the tour starts",
        **dict.fromkeys(("subprocess.Popen", "subprocess.PIPE"), "starts the tour's server"),
    },
    "filepact_setup.tour_tree": {
        "os.walk": "copies a folder that the person names",
        "pathlib.": OWN_FOLDER,
        "shutil.copyfile": "copies a folder that the person names",
    },
    "filepact_diagnostics.programs": {
        "os.environ": "what language servers see of it, name by name",
        "os.path.realpath": "whether a program lies in a root; names only",
        **dict.fromkeys(
            ("os.access", "os.path.isfile", "os.stat"),
            "the programs of language servers, as `shutil.which` does, which is slow to load",
        ),
        "subprocess.": "those that a server needs and that say themselves whether they can be used",
    },
    "filepact_diagnostics.lsp.forkserver": dict.fromkeys(
        (
            *("os.kill", "os.posix_spawn", "os.POSIX_SPAWN_OPEN", "os.set_inheritable"),
            *("os.waitpid", "_socket."),
        ),
        "the fork server, and its line",
    ),
    "filepact_diagnostics.lsp.process": dict.fromkeys(
        (
            *("os.close", "os.killpg", "os.pipe", "os.read", "os.set_blocking", "os.write"),
            *("socket.", "subprocess."),
        ),
        "a language server's process, its pipes, its supervisor and the line to that",
    ),
    "filepact_supervisor.sandbox_process": dict.fromkeys(
        (
            *("ctypes.", "fcntl.", "glob.", "open", "os", "os.", "shutil.rmtree", "shutil.which"),
            "socket.",
        ),
        "the process of a confined server, what it may reach, and the files that it asks for",
    ),
    "filepact_supervisor.supervisor": dict.fromkeys(
        (
            *("ctypes.", "open", "os._exit", "os.chdir", "os.close", "os.closerange"),
            *("os.dup2", "os.environ"),
            *("os.execve", "os.fork", "os.kill", "os.killpg", "os.listdir", "os.pipe"),
            *("os.posix_spawnp", "os.read", "os.set_blocking", "os.set_inheritable", "os.setsid"),
            *("os.sysconf", "os.waitpid", "os.waitstatus_to_exitcode", "os.write", "os.WNOHANG"),
            "socket.",
        ),
        "a process of its own, which starts a language server, and ends whatever that has started",
    ),
    "filepact_fleet.objects.bucket": {"os.environ.get": "where the server is; names only"},
    "store.connection": {
        "apsw.": STATE,
        **dict.fromkeys(
            (
                *(
                    "open",
                    "os.chmod",
                    "os.close",
                    "os.fsync",
                    "os.getcwd",
                    "os.open",
                ),
                *(
                    "os.path.exists",
                    "os.path.getsize",
                    "os.pread",
                    "os.stat",
                    "pathlib.Path().chmod",
                ),
            ),
            "the journal's own files",
        ),
    },
    "extension": dict.fromkeys(
        ("open", "os.listdir"), "what installers have written about packages on Python's path"
    ),
    "filepact_fleet.checkout_index": dict.fromkeys(
        ("fcntl.", "open", "os.", "pathlib.Path().unlink"), STATE
    ),
    "filepact_fleet.git_repository": {
        **dict.fromkeys(
            (
                *("os.defpath", "os.environ.get", "os.read", "os.set_blocking", "os.write"),
                *("subprocess.", "tempfile.TemporaryFile"),
            ),
            "Git's own program, pipes to it, and what it complains of",
        ),
        "os.path.realpath": "the repository that a person names; names only",
        "shutil.which": "where Git is",
    },
    "filepact_index.index_file": dict.fromkeys(
        (
            *("mmap.", "open", "os."),
            *(f"pathlib.Path().{name}" for name in ("lstat", "mkdir", "unlink")),
        ),
        STATE,
    ),
    "filepact_run.inside": dict.fromkeys(
        (
            *("open", "os", "os."),
            *(f"pathlib.Path().{name}" for name in ("chmod", "lstat", "mkdir", "rmdir", "unlink")),
        ),
        "the mounts of a run's own namespace, and what is written through them, before and beside its program",
    ),
    "filepact_run.kernel": dict.fromkeys(
        ("ctypes.", "os.close", "os.uname"),
        "calls for mounts and processes; the files of a project go past it",
    ),
    "filepact_run.namespace": {
        **dict.fromkeys(("fcntl.", "open", "os", "os."), "the program of a run, and what holds it"),
        "socket.": "pairs between the processes of a run",
    },
    "filepact_run.overlay": dict.fromkeys(
        (
            *("os.", "shutil.copy2"),
            *(f"pathlib.Path().{name}" for name in ("chmod", "lstat", "mkdir", "rmdir", "unlink")),
        ),
        "layers, which lie in the state folder; folders that programs fill are moved out of them as they are",
    ),
    "filepact_run.run_folder": dict.fromkeys(
        (
            *("fcntl.", "open", "os."),
            *(f"pathlib.Path().{name}" for name in ("mkdir", "unlink")),
        ),
        STATE,
    ),
    "filepact_gateway.store": {"apsw.": STATE, "pathlib.": STATE},
    "filepact_gateway.tokens": {"os.stat": "the file with the gateway's own tokens"},
    "store.known_texts": dict.fromkeys(
        (
            *("apsw.", "os.close", "os.open", "os.stat", "os.unlink"),
            "pathlib.Path().unlink",
        ),
        STATE,
    ),
    "store.snapshots": {"apsw.": STATE, "pathlib.": STATE},
    "store.content": dict.fromkeys(
        ("os.close", "os.fdopen", "os.fsync", "os.open", "os.path.exists", "pathlib."), STATE
    ),
    "store.integrity": dict.fromkeys(("apsw.", "os.access", "pathlib.", "shutil."), STATE),
    "filepact_fleet.postgres_upkeep": {"pathlib.": STATE},
    "filepact_wire.pipes": {
        "socket.": "where clients of a gateway, and browsers, are waited for",
        **dict.fromkeys(
            (
                *("fcntl.", "os.close", "os.dup", "os.dup2", "os.open", "os.read", "os.write"),
                "os.pwritev",
            ),
            "standard input and output, kept from everybody else",
        ),
        **dict.fromkeys(("os.pipe", "os.set_blocking"), "what a signal wakes a thread with"),
    },
}


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a module takes from closed modules, and `open`."""
    names: dict[str, str] = {}
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                names[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if _closed(f"{node.module}.{alias.name}"):
                    yield node.lineno, f"{node.module}.{alias.name}"
    inner = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }  # `os.path` within `os.path.join` is no use of its own
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in METHODS:
                yield node.lineno, f"pathlib.Path().{node.func.attr}"
        elif isinstance(node, ast.Name) and node.id == "open" and "open" not in names:
            yield node.lineno, "open"
        elif isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner:
            name = _name(node, names)
            if name is not None and _closed(name):
                yield node.lineno, name


def _name(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _name(node.value, names)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _closed(name: str) -> bool:
    parts = name.replace("posixpath", "os.path", 1).split(".")
    beginnings = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    if beginnings & (HARMLESS | PURE_PATHS) or re.fullmatch(r"os\.(O_[A-Z]+|[RWXF]_OK)", name):
        return False
    return not beginnings.isdisjoint(CLOSED)


def _permitted(module: str, name: str) -> str | None:
    """The allowance that covers a use, if one does."""
    for allowance in ALLOWED.get(module, ()):
        if name == allowance or (allowance.endswith(".") and name.startswith(allowance)):
            return allowance
    return None


NAMED = {dotted(path): path for path in MODULES}


def test_only_fs_touches_files() -> None:
    around = [
        f"{module}, line {line}: {name}"
        for module, path in NAMED.items()
        if module.partition(".")[0] != "fs"
        for line, name in uses(syntax(path))
        if not _permitted(module, name)
    ]
    assert around == []


DECIDES = frozenset({"decide", "divide", "check_unmoved"})
"""What a window would decide by, past `Review`; of `Workspace.approving`."""


def test_every_window_in_which_a_person_decides_stands_on_the_review() -> None:
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("approving"):
                found.setdefault(dotted(path), set()).add(node.attr)
    past = {module for module, names in found.items() if names & DECIDES}
    # The commands that decide by an id: their person has looked before.
    assert past <= {"filepact_cli.review", "filepact_cli.deciding"}
    windows = ("chat", "command", "elicitation", "web.app", "web.handler")
    for module in ("filepact_acp.approvals", *(f"filepact_windows.{name}" for name in windows)):
        (path,) = (path for path in MODULES if dotted(path) == module)
        assert "filepact_cli.review" in path.read_text(encoding="utf-8"), module


def test_every_allowance_is_used_and_explained() -> None:
    for module, allowances in ALLOWED.items():
        assert module in NAMED, f"{module} is gone; its allowances can go as well"
        path = NAMED[module]
        used = {_permitted(module, name) for _line, name in uses(syntax(path))}
        assert set(allowances) <= used, module
        assert all(allowances.values()), module


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open('x')", ["open"]),
        ("f = open", ["open"]),
        ("self.open('x'); root.open()", []),
        ("from filepact.fs import open\nopen()", []),
        ("import os\nos.remove('x')", ["os.remove"]),
        ("import os\nos.path.join('a', 'b'); os.fspath(x)", []),
        ("import os\nos.path.exists('a')", ["os.path.exists"]),
        ("import os as o\nf = o.listdir", ["os.listdir"]),
        ("import os\nf(os)", ["os"]),
        ("import os.path as p\np.isdir(x); p.join(x)", ["os.path.isdir"]),
        ("from os import replace", ["os.replace"]),
        ("from os.path import join", []),
        ("from posixpath import dirname, exists", ["posixpath.exists"]),
        ("import pathlib\npathlib.Path('x')", ["pathlib.Path"]),
        ("from pathlib import PurePosixPath", []),
        ("from pathlib import Path", ["pathlib.Path"]),
        ("import io\nio.BytesIO(); io.open('x')", ["io.open"]),
        (
            "import shutil, tempfile\nshutil.which; tempfile.mkdtemp",
            ["shutil.which", "tempfile.mkdtemp"],
        ),
        ("from subprocess import run as go\ngo([])", ["subprocess.run", "subprocess.run"]),
        ("from . import os", []),
        ("place.write_text('x'); x = entry.is_dir", ["pathlib.Path().write_text"]),
        ("if TYPE_CHECKING:\n    from pathlib import Path\ndef f(p: Path): ...", []),
    ],
)
def test_a_use_is_seen_however_it_is_spelt(source: str, found: list[str]) -> None:
    assert [name for _line, name in uses(ast.parse(source))] == found
