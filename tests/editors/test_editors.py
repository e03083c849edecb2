"""Editors by their own code behind `filepact acp`: CodeCompanion and avante in Neovim, acp.el in Emacs.

No registry has these plugins.  `FILEPACT_EDITORS` names a folder with clones of them, by the names below; without it,
or without the editor, the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from filepact_setup.editor_lines import editors
from tests.faces.command_line import command

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
AGENT: Final = HERE.parent / "faces" / "acp" / "raw_agent.py"
PLUGINS: Final = os.environ.get("FILEPACT_EDITORS", "")
NVIM: Final = ("nvim", "--headless", "--clean", "-u", "NONE", "-c")
EDITORS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "codecompanion": (
        ("plenary.nvim", "codecompanion.nvim"),
        (*NVIM, f"luafile {HERE / 'codecompanion.lua'}"),
    ),
    "avante": (
        ("plenary.nvim", "nui.nvim", "avante.nvim"),
        (*NVIM, f"luafile {HERE / 'avante.lua'}"),
    ),
    "emacs": (("acp.el",), ("emacs", "--batch", "-Q", "-l", str(HERE / "acp_el.el"))),
}
"""What each needs, and the command that plays its scene."""


def options_of(name: str) -> Sequence[str]:
    """The options of `filepact acp` in the lines that `filepact setup acp` prints for an editor."""
    (lines,) = (one for one in editors(["filepact"], ["acp", "--", "x"], "x") if one.name == name)
    return ["--no-editor-files"] if "--no-editor-files" in lines.settings else []


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "typed"])
@pytest.mark.parametrize("name", EDITORS)
def test_a_change_is_shown_what_was_typed_stays_and_the_change_is_undone(
    tmp_path: Path, name: str, typed: str
) -> None:
    plugins, words = EDITORS[name]
    places = [Path(PLUGINS) / one for one in plugins]
    if not PLUGINS or not all(one.is_dir() for one in places) or not shutil.which(words[0]):
        pytest.skip("FILEPACT_EDITORS names no folder with these plugins, or there is no editor")
    root, state, home = (tmp_path / one for one in ("project", "state", "home"))
    root.mkdir()
    home.mkdir()
    file = root / "a.txt"
    file.write_text("one\ntwo\n")
    script = {
        "prompt": [
            ["fs/read_text_file", {"path": str(file)}],
            ["fs/write_text_file", {"path": str(file), "content": "ONE\ntwo\n"}],
        ]
    }
    agent = [sys.executable, str(AGENT), json.dumps(script), "scripted"]
    guarded = [sys.executable, "-m", "filepact", "acp", "--state", str(state), *options_of(name)]
    scene = {
        "plugins": [str(one) for one in places],
        "command": [*guarded, "--", *agent],
        "file": str(file),
        "typed": typed,
    }
    done = subprocess.run(
        words,
        cwd=root,
        env=os.environ
        | {
            "FILEPACT_SCENE": json.dumps(scene),
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **{f"XDG_{kind}_HOME": str(home) for kind in ("DATA", "CONFIG", "CACHE", "STATE")},
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said: dict[str, Any] = dict(
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")
    )
    assert done.returncode == 0, done
    assert file.read_text() == "ONE\ntwo\n"
    assert said["buffer"] == (["one", "two", "typed"] if typed else ["ONE", "two"])
    assert said["modified"] is bool(typed)
    told = command("--root", str(root), "--state", str(state), "undo", "--unattended")
    assert told.code == 0, told
    assert file.read_text() == "one\ntwo\n"
