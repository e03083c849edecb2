"""What an agent's model is shown of the answers of `filepact mcp`: three scenes, for any agent."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from page_client import PageClient
from tests.agents.hosts import drive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.agents.hosts import Host

__all__ = ["SCENES"]

TWENTY = [f"line {number}\n" for number in range(1, 21)]


def _folder(base: Path) -> Path:
    root = base / "root"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("".join(TWENTY))
    return root


def _changed(lines: list[str], **by_number: str) -> str:
    """The lines with some of them replaced, by ``line_3=...``."""
    texts = list(lines)
    for name, text in by_number.items():
        texts[int(name.removeprefix("line_")) - 1] = f"{text}\n"
    return "".join(texts)


def merged_change(host: Host, base: Path) -> None:
    """Of a change that was merged with a person's, the person's is shown, once, and both are kept."""
    root = _folder(base)
    files: list[str] = []

    def by_hand() -> None:
        (root / "a.txt").write_text(_changed(TWENTY, line_3="line 3 by hand"))

    once = _changed(TWENTY, line_15="line 15 by the agent")
    twice = _changed(TWENTY, line_15="line 15 by the agent", line_19="line 19 by the agent")
    read, first, second = drive(
        host,
        root,
        base / "home",
        [
            ("read_file", {"path": "a.txt"}),
            ("write_file", {"path": "a.txt", "content": once}),
            ("write_file", {"path": "a.txt", "content": twice}),
        ],
        meanwhile={1: by_hand, 2: lambda: files.append((root / "a.txt").read_text())},
    )
    assert "3\u2502line 3\n" in read
    assert "+line 3 by hand" in first
    assert "merged" in first
    assert "What others changed before was kept" in second
    assert "line 3 by hand" not in second
    merged = _changed(TWENTY, line_3="line 3 by hand", line_15="line 15 by the agent")
    assert files == [merged]
    # The model goes on from its own text, in which the person's line is the old one.
    assert (root / "a.txt").read_text() == _changed(
        TWENTY,
        line_3="line 3 by hand",
        line_15="line 15 by the agent",
        line_19="line 19 by the agent",
    )


def refusals_and_reasons(host: Host, base: Path) -> None:
    """A dry run is shown, a refusal, and why a person said no, with the refusal."""
    root = _folder(base)
    home = base / "home"

    def say_no() -> None:
        where = ("--root", str(root), "--state", str(home / "state"))
        words = [sys.executable, "-m", "filepact"]
        listed = subprocess.run(
            [*words, "pending", *where], check=True, capture_output=True, text=True
        )
        found = re.search(r"\bc[0-9a-z]{8,}\b", listed.stdout)
        assert found is not None, listed.stdout
        refusal = [
            *words,
            "reject",
            "--unattended",
            found[0],
            *where,
            "--reason",
            "not on a Sunday",
        ]
        subprocess.run(refusal, check=True, capture_output=True)

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


def decided_in_the_page(host: Host, base: Path) -> None:
    """What a person accepts in the page is done, and the model is told; and why they rejected the rest."""
    root = _folder(base)
    home = base / "home"
    where = ("--root", str(root), "--state", str(home / "state"))
    states: list[str] = []

    def decide() -> None:
        words = [sys.executable, "-m", "filepact", "review", "--web", "--unattended", *where]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as served:
            assert served.stderr is not None
            link = next(line.strip() for line in served.stderr if line.startswith("http"))
            page = PageClient(link)
            page.enter()
            first, second = re.findall(r'href="(/p/[^"]+)" data-id', page.get("/").text)
            assert "done" in page.send(first, {"do": "accept:1"}).said
            states.append((root / "a.txt").read_text())
            page.send(second, {"do": "reject:1", "reason": "keep the second as it was"})
            served.send_signal(signal.SIGINT)
            assert served.wait(60) == 0

    other = root / "b.txt"
    other.write_text("".join(TWENTY))
    edit = {"old_string": "line 7\n", "new_string": "seven\n"}
    waits, waits_too, told, read = drive(
        host,
        root,
        home,
        [
            ("edit_file", {"path": "a.txt", **edit}),
            ("edit_file", {"path": "b.txt", **edit}),
            ("read_file", {"path": "a.txt"}),
            ("read_file", {"path": "b.txt"}),
        ],
        meanwhile={2: decide},
        options=("--mode", "preview"),
    )
    assert "Waiting for a person" in waits
    assert "Waiting for a person" in waits_too
    assert states == [_changed(TWENTY, line_7="seven")]
    assert (root / "a.txt").read_text() == states[0]
    assert other.read_text() == "".join(TWENTY)
    assert "approved by a program" in told  # which has opened the page without a terminal
    assert "keep the second as it was" in told
    assert "seven" in told
    assert "seven" not in read


def whole_pages(host: Host, base: Path) -> None:
    """All that a page says it holds is there, and what is said to be next is."""
    root = _folder(base)
    lines = [f"{number} of many lines, with ünïcödé" for number in range(1, 3_001)]
    (root / "long.txt").write_text("".join(f"{line}\n" for line in lines))
    read, found = drive(
        host,
        root,
        base / "home",
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


SCENES: dict[str, Callable[[Host, Path], None]] = {
    "merged change": merged_change,
    "refusals and reasons": refusals_and_reasons,
    "decided in the page": decided_in_the_page,
    "whole pages": whole_pages,
}
"""By name; each wants a folder that is not there yet."""
