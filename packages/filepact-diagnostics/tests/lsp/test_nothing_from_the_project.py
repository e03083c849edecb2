"""No known server runs what lies in the project's folder, or fetches what a text in it names."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_supervisor.sandbox_process import can_confine_servers
from filepact_supervisor.server_sandbox import ServerSandbox
from tests.hostile.sweeps import often
from tests.servers.asking import report_of
from tests.servers.fakes import fake
from tests.servers.real_servers import SECONDS, Tree, locate, node_folders, server

PROGRAMS = ("python", "python3", "node", "ruff", "ty", "clang", "gcc", "cc", "go", "shellcheck")
TEXTS = {
    "*.py": ("a.py", "import installed_here\n\ninstalled_here.f('a')\n"),
    "*.{c,h}": ("a.c", "int main(void) { return x; }\n"),
    "*.go": ("a.go", "package a\n\nvar x int = b\n"),
    "*.{ts,mts,cts}": ("a.ts", "const x: number = 'a';\n"),
    "*.{html,htm}": ("a.html", "<script>let a = ;</script>\n"),
    "*.{sh,bash}": ("a.sh", "#!/bin/bash\necho $1\n"),
    "*.{yaml,yml}": ("a.yaml", "a: [1\n"),
    "*.json": ("a.json", "{,}\n"),
    "*.css": ("a.css", "a { colour: red; }\n"),
}
FILES = {
    "pyproject.toml": '[tool.basedpyright]\nvenvPath = "."\nvenv = ".venv"\n'
    '[tool.pyright]\nvenvPath = "."\nvenv = ".venv"\n[tool.ty.environment]\npython = ".venv"\n',
    "tsconfig.json": '{"compilerOptions": {"plugins": [{"name": "evil"}]}}',
    "package.json": '{"name": "a", "devDependencies": {"typescript": "5.9.3"}}',
    "node_modules/typescript/package.json": '{"name": "typescript", "version": "5.9.3"}',
    "node_modules/evil/package.json": '{"name": "evil", "version": "1.0.0", "main": "index.js"}',
    "go.mod": "module a\n\ngo 1.19\n",
}
SCRIPTS = (
    *(f"node_modules/typescript/lib/{name}.js" for name in ("tsserver", "typescript", "tsc")),
    "node_modules/evil/index.js",
)
NPM = ("pyright", "typescript-language-server", "html", "bash", "yaml", "json", "css")


def lay_traps(root: Path, ran: Path) -> None:
    """Programs in all places where one would look, each of which writes down that it was run."""
    for folder in (root / ".venv" / "bin", root / "node_modules" / ".bin", root / "bin"):
        folder.mkdir(parents=True)
        for program in PROGRAMS:
            trap = folder / program
            trap.write_text(f'#!/bin/sh\necho "$0" >> {ran}\nexec {sys.executable} "$@"\n')
            trap.chmod(0o755)
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    texts = dict.fromkeys(
        SCRIPTS, f'require("fs").appendFileSync({json.dumps(str(ran))}, __filename + "\\n");\n'
    )
    command = {"directory": str(root), "file": "a.c", "command": f"{root}/bin/gcc -c a.c"}
    texts |= FILES | {"compile_commands.json": json.dumps([command])}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("basedpyright", marks=pytest.mark.slow),
        "ty",
        "ruff",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("clangd", "typescript", "gopls", *NPM)
        ),
    ],
)
def test_a_known_server_runs_nothing_that_lies_in_the_project(tmp_path: Path, name: str) -> None:
    root, ran = tmp_path / "deep" / "enough" / "project", tmp_path / "ran"
    root.mkdir(parents=True)
    lay_traps(root, ran)
    file, text = TEXTS[server(name).files[0][0]]
    tree = Tree(root, name)
    try:
        tree.write(file, text)
        report = tree.report(file)[file]
    finally:
        tree.close()
    assert report.fresh, report.reason
    assert not ran.exists(), ran.read_text()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["json", "yaml", "html", "css"])
def test_a_known_server_fetches_nothing_that_a_text_names(tmp_path: Path, name: str) -> None:
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        where = f"http://127.0.0.1:{listener.getsockname()[1]}/a.json"
        texts = {
            "json": f'{{"$schema": "{where}", "a": 1}}\n',
            "yaml": f"# yaml-language-server: $schema={where}\na: 1\n",
            "html": f'<link rel="stylesheet" href="{where}"><script src="{where}"></script>\n',
            "css": f'@import url("{where}");\n',
        }
        tree = Tree(root, name)
        try:
            file = f"a.{name}"
            tree.write(file, texts[name])
            assert tree.report(file)[file].fresh
        finally:
            tree.close()
        with pytest.raises(BlockingIOError):
            listener.accept()


HOW = ("as we use it", "as it comes", "confined", "as it comes, confined")
FETCHING = [
    *(("typescript", how) for how in HOW),
    *(("typescript-language-server", how) for how in HOW[: often(2, 4)]),
]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("name", "how"), FETCHING)
def test_no_types_are_fetched_for_what_a_script_imports(
    tmp_path: Path, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The servers do fetch, as they come: otherwise the test would find nothing either way.

    Confined, what they start to fetch with reaches nothing, though nobody had told them not to fetch.
    """
    if (confined := how.endswith("confined")) and not can_confine_servers():
        pytest.skip("this system lacks what it takes")
    told, held = not how.startswith("as it comes"), how != "as it comes"
    root, ran, programs = tmp_path / "project", tmp_path / "ran", tmp_path / "bin"
    for folder in (root, programs):
        folder.mkdir()
    npm = programs / "npm"
    npm.write_text(f'#!/bin/sh\necho "npm $*" >> {ran}\nexit 1\n')
    npm.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    known = replace(server(name), confined=confined)
    if not told:
        options = dict(known.options or {})
        options.pop("disableAutomaticTypingAcquisition", None)
        known = replace(known, settings={}, options=options | {"npmLocation": str(npm)})
    path = f"{programs}:{os.pathsep.join(node_folders())}:/usr/bin:/bin"
    environment = {"HOME": str(tmp_path), "PATH": path, "LANG": "C.UTF-8"}
    sandbox = ServerSandbox("", (str(root),), ())
    pool = ServerPool([known], environment, locate, sandbox=sandbox)
    texts = {
        "package.json": '{"name": "a", "dependencies": {"jquery": "3", "lodash": "4"}}\n',
        "a.js": "const $ = require('jquery');\nconst _ = require('lodash');\n$(_);\n",
    }
    for file, text in texts.items():
        (root / file).write_text(text)
    try:
        shown = {str(root / "a.js"): texts["a.js"]}
        assert report_of(pool, str(root), shown, SECONDS)[0].fresh
        for _ in range(30 if held else 300):
            if ran.exists():
                break
            time.sleep(0.1)
    finally:
        pool.close()
    assert ran.exists() is not held, ran.read_text()


def test_packages_of_a_project_are_seen_though_its_python_is_not_run(tmp_path: Path) -> None:
    known = server("basedpyright")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = tmp_path / ".venv" / "lib" / version / "site-packages" / "installed_here"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def f(x: int) -> int:\n    return x\n")
    path = tmp_path / "a.py"
    text = TEXTS["*.py"][1]
    path.write_text(text)
    pool = ServerPool([known], {"PATH": os.environ["PATH"]}, locate)
    try:
        (report,) = report_of(pool, str(tmp_path), {str(path): text}, SECONDS)
    finally:
        pool.close()
    codes = [one.code for one in report.diagnostics]
    assert "reportArgumentType" in codes
    assert "reportMissingImports" not in codes


def test_places_of_programs_are_filled_in_and_nothing_stands_for_one_that_is_missing() -> None:
    inner = {"a": ["{program:python3}", 1, {"b": "x{program:node}"}], "c": "{python3}", "d": None}
    found = fake(settings=inner, options={"p": "{program:python3}"}).placed(
        {"python3": "/usr/bin/python3"}.get
    )
    filled = {"a": ["/usr/bin/python3", 1, {"b": f"x{os.devnull}"}], "c": "{python3}", "d": None}
    assert found.settings == filled
    assert found.options == {"p": "/usr/bin/python3"}
    assert found.language("a.x") == "x"
    assert fake().placed({}.get) == fake()


def test_every_known_server_can_be_placed() -> None:
    for known in builtin_servers():
        assert "{program:" not in str(known.placed(lambda name: f"/bin/{name}"))
