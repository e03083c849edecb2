"""What the doctor finds, and what a server tells its agent."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact_cli import doctor, wording
from filepact_cli.doctor import check_folders, check_programs, check_state, file_system
from filepact_cli.serve import instructions
from filepact_mcp import INSTRUCTIONS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from filepact_cli.render import CheckResult

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /mnt/far rw - nfs4 server:/x rw
31 22 0:27 / /mnt/a\\040b rw shared:2 master:1 - fuse.sshfs host: rw
32 22 0:28 / /tmp rw - tmpfs tmpfs rw
33 22 0:29 / /tmp rw - xfs /dev/sdb rw
"""


def by_name(findings: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {one.name: one for one in findings}


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me", "ext4"),
        ("/mnt/far", "nfs4"),
        ("/mnt/far/deep", "nfs4"),
        ("/mnt/farther", "ext4"),
        ("/mnt/a b/c", "fuse.sshfs"),
        ("/tmp/x", "xfs"),
    ],
)
def test_the_mount_nearest_to_a_folder_says_what_it_is_on(folder: str, kind: str) -> None:
    assert file_system(folder, MOUNTS) == kind


def test_a_package_that_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES", {"regex": "regex", "gone": "gone_module"})
    found = by_name(check_programs())
    assert found["regex"].level == "ok"
    assert found["gone"].level == "fail"
    assert found["gone"].next


def test_a_system_without_openat2_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = by_name(check_programs())["system"]
    assert (found.level, "openat2" in found.message) == ("ok", True)


def test_a_state_folder_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    (finding,) = check_state(str(tmp_path / "state"))
    assert finding.level == "ok"


def test_a_state_folder_that_cannot_be_used_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (finding,) = check_state(str(tmp_path / "file" / "state"))
    assert finding.level == "fail"
    assert "--state" in finding.next


def test_a_state_folder_of_another_user_is_a_fault(tmp_path: Path) -> None:
    folder = tmp_path
    if os.geteuid() == 0:
        os.chown(folder, 12_345, 12_345)
    foreign = str(folder) if os.geteuid() == 0 else "/"
    found = by_name(check_state(foreign))
    assert found["state folder"].level == "fail"


def test_what_recovery_did_and_a_weak_resolver_are_told(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    workspace = open_workspace(
        [str(tmp_path / "root")], state_dir=str(tmp_path / "state"), resolver="walk"
    )
    with closing(workspace):
        with workspace.draft(Session("s", Actor("agent", "a")), "write_file") as draft:
            draft.write(draft.open("x"), "x")
            workspace.submit(draft, "create x")
        cut_off = replace(workspace.log()[0], state="interrupted")
        workspace.recovered = (cut_off,)
        found = by_name(check_folders(workspace))
    assert found["recovery"].level == "fail"
    assert found["recovery"].next == f"filepact show {cut_off.id}"
    assert found["root"].level == ("warn" if sys.platform == "linux" else "ok")


def test_a_large_folder_is_not_searched_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_MOST_NAMES", 1)
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/x", "a/y", "a/b/.filepact-late.tmp"):
        (tmp_path / name).write_text("x")
    (finding,) = doctor._check_remains(str(tmp_path))
    assert finding.level == "ok"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_500, "1.5 kB"),
        (2_000_000, "2.0 MB"),
        (3 * 10**9, "3.0 GB"),
    ],
)
def test_sizes_are_in_steps_of_a_thousand(size: int, text: str) -> None:
    assert wording.size(size) == text


@pytest.mark.parametrize("mode", ["auto", "preview"])
@pytest.mark.parametrize("changes", [True, False])
def test_instructions_name_the_folders_and_stay_short(
    tmp_path: Path, mode: str, changes: bool
) -> None:
    folders = [tmp_path / f"{'deep' * 40}-{number}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
    workspace = open_workspace(
        [str(folder) for folder in folders],
        state_dir=str(tmp_path / "state"),
        mode="preview" if mode == "preview" else "auto",
    )
    with closing(workspace):
        text = instructions(workspace, changes=changes, own=changes)
    assert f"{'deep' * 10}-0." in text
    assert len(text) <= INSTRUCTIONS_LIMIT
    assert ("undo" in text) == changes
    assert ("pending" in text) == (changes and mode == "preview")
