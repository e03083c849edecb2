"""What the models of Claude Code and Codex are shown of the answers of `filepact mcp`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.agents.hosts import BOUNDED, Host, drive
from tests.agents.installed import MissingError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TWENTY = [f"line {number}\n" for number in range(1, 21)]


@pytest.fixture(params=BOUNDED, ids=[host.name for host in BOUNDED])
def host(request: pytest.FixtureRequest) -> Host:
    chosen: Host = request.param
    try:
        chosen.command()
    except MissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return chosen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(TWENTY))
    return folder


def changed(lines: list[str], **by_number: str) -> str:
    """The lines with some of them replaced, by ``line_3=...``."""
    texts = list(lines)
    for name, text in by_number.items():
        texts[int(name.removeprefix("line_")) - 1] = f"{text}\n"
    return "".join(texts)


def test_a_model_sees_what_a_person_changed(host: Host, root: Path, tmp_path: Path) -> None:
    files: list[str] = []

    def by_hand() -> None:
        (root / "a.txt").write_text(changed(TWENTY, line_3="line 3 by hand"))

    once = changed(TWENTY, line_15="line 15 by the agent")
    twice = changed(TWENTY, line_15="line 15 by the agent", line_19="line 19 by the agent")
    read, first, second = drive(
        host,
        root,
        tmp_path / "home",
        [
            ("read_file", {"path": "a.txt"}),
            ("write_file", {"path": "a.txt", "content": once}),
            ("write_file", {"path": "a.txt", "content": twice}),
        ],
        meanwhile={1: by_hand, 2: lambda: files.append((root / "a.txt").read_text())},
    )
    assert "3\u2502line 3\n" in read
    assert "+line 15 by the agent" in first
    assert "merged" in first
    assert "+line 19 by the agent" in second
    merged = changed(TWENTY, line_3="line 3 by hand", line_15="line 15 by the agent")
    assert files == [merged]


def test_a_model_sees_a_dry_run_a_refusal_and_why_a_person_said_no(
    host: Host, root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"

    def say_no() -> None:
        where = ("--root", str(root), "--state", str(home / "state"))
        words = [sys.executable, "-m", "filepact"]
        listed = subprocess.run(
            [*words, "pending", *where], check=True, capture_output=True, text=True
        )
        found = re.search(r"\bc[0-9a-z]{8,}\b", listed.stdout)
        assert found is not None, listed.stdout
        subprocess.run(
            [*words, "reject", found[0], *where, "--reason", "not on a Sunday"], check=True
        )

    edit = {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}
    waits, refused, dry, again = drive(
        host,
        root,
        home,
        [
            ("edit_file", edit),
            ("read_file", {"path": "../elsewhere.txt"}),
            ("edit_file", {**edit, "old_string": "line 8\n", "dry_run": True}),
            ("read_file", {"path": "a.txt"}),
        ],
        meanwhile={1: say_no},
        options=("--mode", "preview"),
    )
    assert "Waiting for a person" in waits
    assert "PATH_BLOCKED" in refused
    assert "not on a Sunday" in refused
    assert "-line 8" in dry
    assert "+seven" in dry
    assert "not on a Sunday" not in dry + again


def test_a_page_reaches_the_model_whole(host: Host, root: Path, tmp_path: Path) -> None:
    lines = [f"{number} of many lines, with ünïcödé" for number in range(1, 3_001)]
    (root / "long.txt").write_text("".join(f"{line}\n" for line in lines))
    read, found = drive(
        host,
        root,
        tmp_path / "home",
        [
            ("read_file", {"path": "long.txt"}),
            ("grep", {"pattern": "many", "path": "long.txt", "maxResults": 2_000}),
        ],
    )
    promised = re.search(r"\[lines 1-(\d+) of 3,000 .* next: offset=(\d+)\]", read)
    assert promised is not None, read[-300:]
    assert promised[1] == promised[2]
    shown = re.findall(r"^ *\d+\u2502(.*)$", read, flags=re.MULTILINE)
    assert shown == lines[: int(promised[1])]
    promised = re.search(r"\[matches 1-([\d,]+) of .* next: offset=\d+\]", found)
    assert promised is not None, found[-300:]
    assert (
        re.findall(r"^long\.txt:\d+: (.*)$", found, flags=re.MULTILINE)
        == (lines[: int(promised[1].replace(",", ""))])
    )
