"""The command that adds an extra is one that works for how this copy was installed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from filepact_cli.wording import extras, install_line, with_install_line
from tests.architecture.project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0" * 40


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have this copy look as if it had been installed in some way; none of the extras is here."""

    def install(origin: dict[str, Any] | None, receipt: str = "", *, pip: bool = True) -> None:
        folder = tmp_path / "site" / "filepact-0.1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: filepact\nVersion: 0.1.0\n")
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        if receipt:
            (tmp_path / receipt).write_text("")
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.syspath_prepend(folder.parent)
        here = {"textual", "pip"} if pip else {"textual"}
        monkeypatch.setattr("importlib.util.find_spec", lambda name: name in here or None)

    return install


FOLDER = {"url": "file:///src/my%20clone", "dir_info": {}}
EDITABLE = {"url": "file:///src/my%20clone", "dir_info": {"editable": True}}
GIT = {"url": "https://git.example/f.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
WHEEL = {"url": "file:///w/filepact-0.1.0-py3-none-any.whl", "archive_info": {}}
PIP = [sys.executable, "-I", "-m", "pip", "install"]
UV = ["uv", "tool", "install", "--force"]
PIPX = ["pipx", "install", "--force"]


@pytest.mark.parametrize(
    ("origin", "receipt", "line"),
    [
        (None, "", [*PIP, "filepact[web]"]),
        (FOLDER, "", [*PIP, "/src/my clone[web]"]),
        (EDITABLE, "", [*PIP, "--editable", "/src/my clone[web]"]),
        (GIT, "", [*PIP, f"filepact[web] @ git+https://git.example/f.git@{COMMIT}"]),
        (WHEEL, "", [*PIP, f"filepact[web] @ {WHEEL['url']}"]),
        # An environment of a tool is made anew, so what it has already is named as well.
        (FOLDER, "uv-receipt.toml", [*UV, "/src/my clone[review,web]"]),
        (EDITABLE, "uv-receipt.toml", [*UV, "--editable", "/src/my clone[review,web]"]),
        (FOLDER, "pipx_metadata.json", [*PIPX, "/src/my clone[review,web]"]),
        (None, "pipx_metadata.json", [*PIPX, "filepact[review,web]"]),
    ],
)
def test_an_extra_is_added_by_what_installed_this_copy(
    noted: Any, origin: dict[str, Any] | None, receipt: str, line: list[str]
) -> None:
    noted(origin, receipt)
    assert shlex.split(install_line("web")) == line


def test_an_environment_without_pip_is_told_of_what_made_it(noted: Any) -> None:
    noted(FOLDER, pip=False)
    words = shlex.split(install_line("web"))
    assert words == ["uv", "pip", "install", "--python", sys.prefix, "/src/my clone[web]"]


@pytest.mark.parametrize("receipt", ["", "uv-receipt.toml", "pipx_metadata.json"])
def test_the_package_for_c_sharp_comes_from_the_clone_that_holds_it(
    noted: Any, tmp_path: Path, receipt: str
) -> None:
    package = tmp_path / "clone" / "packages" / "filepact-csharp"
    package.mkdir(parents=True)
    noted({"url": f"file://{tmp_path}/clone", "dir_info": {}}, receipt)
    assert shlex.split(install_line("csharp"))[-1] == str(package)


@pytest.mark.parametrize("extra", [*extras(), "csharp", "otel"])
def test_a_sentence_that_names_an_extra_gets_its_line(noted: Any, extra: str) -> None:
    noted(FOLDER)
    said = with_install_line(f"Install filepact's extra `{extra}`.")
    assert said.endswith(shlex.quote(f"/src/my clone[{extra}]"))
    assert with_install_line("Nothing is missing.") == "Nothing is missing."


def test_no_module_names_a_line_of_its_own_that_installs_an_extra() -> None:
    """How this copy was installed is known in one place; any other line is wrong for somebody."""
    pattern = re.compile(r"(pip|pipx|uv tool|uv) install [^\n]*filepact\[")
    modules = [*ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]
    assert len(modules) > 300
    assert [one.name for one in modules if pattern.search(one.read_text(encoding="utf-8"))] == []
