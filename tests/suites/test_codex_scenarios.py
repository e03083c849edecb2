"""The scenarios that codex tests its ``apply_patch`` with, through the real tool."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext
from tests.suites.packages import UnavailableError, codex_scenarios, or_skip

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(after=5), pytest.mark.timeout(400)]

NAMES = [
    "001_add_file",
    "002_multiple_operations",
    "003_multiple_chunks",
    "004_move_to_new_directory",
    "005_rejects_empty_patch",
    "006_rejects_missing_context",
    "007_rejects_missing_file_delete",
    "008_rejects_empty_update_hunk",
    "009_requires_existing_file_for_update",
    "010_move_overwrites_existing_destination",
    "011_add_overwrites_existing_file",
    "012_delete_directory_fails",
    "013_rejects_invalid_hunk_header",
    "014_update_file_appends_trailing_newline",
    "015_failure_after_partial_success_leaves_changes",
    "016_pure_addition_update_chunk",
    "017_whitespace_padded_hunk_header",
    "018_whitespace_padded_patch_markers",
    "019_unicode_simple",
    "020_delete_file_success",
    "020_whitespace_padded_patch_marker_lines",
    "021_update_file_deletion_only",
    "022_update_file_end_of_file_marker",
]
# The scenario wants the first file to stay when the second cannot be changed.  Here a patch is
# done as a whole or not at all, so nothing may be left of it.
ALL_OR_NONE = {"015_failure_after_partial_success_leaves_changes"}


@pytest.fixture(scope="module")
def scenarios() -> Path:
    try:
        return codex_scenarios()
    except UnavailableError as error:
        or_skip(error)
        raise


def files(folder: Path) -> dict[str, bytes]:
    paths = folder.rglob("*") if folder.exists() else ()
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def test_every_scenario_is_run(scenarios: Path):
    assert sorted(path.name for path in scenarios.iterdir() if path.is_dir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_ends_as_it_expects(name: str, scenarios: Path, tmp_path: Path):
    scenario, root = scenarios / name, tmp_path / "root"
    root.mkdir()
    if (scenario / "input").exists():
        shutil.copytree(scenario / "input", root, dirs_exist_ok=True)
    before = files(root)
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        call = CallContext(Session("s1", Actor("agent", "scenario")))
        outcome = open_toolbox(workspace).call(
            "patch_apply", {"patch": (scenario / "patch.txt").read_text()}, call
        )
    expected = before if name in ALL_OR_NONE else files(scenario / "expected")
    assert files(root) == expected, outcome.text
    assert outcome.failed == (expected == before), outcome.text
