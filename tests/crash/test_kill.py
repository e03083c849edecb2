"""SIGKILL at many points of every kind of change, then what the next start finds.

``FILEPACT_KILL_STEP`` is how many calls into C lie between two of them; the deep checks set it to 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(0 if "FILEPACT_KILL_STEP" in os.environ else 300)

PROJECT = Path(__file__).resolve().parents[2]


def test_a_change_that_is_killed_at_a_few_steps_is_whole_or_not_there_after_recovery(
    tmp_path: Path,
) -> None:
    assert kill("replace", "60", tmp_path) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        "replace",
        "in-place",
        "create",
        "delete",
        "undo-delete",
        "redo-delete",
        "three",
        "approve",
        "undo",
        "undo-create",
        "delete-link",
        "undo-link",
        "move-folder",
        "move-whole",
        "undo-move-whole",
        "undo-move-folder",
        "moves",
        "undo-moves",
        "rename-joined",
        "undo-rename-joined",
        "redo-rename-joined",
        "swap-joined",
        "swap-both-joined",
        "undo-swap-both-joined",
        "delete-folder",
        "undo-delete-folder",
        "undo-turn",
        "redo-turn",
        "undo-shut",
        "redo-shut",
    ],
)
def test_a_killed_change_is_whole_or_not_there_after_recovery(
    scenario: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Who is killed leaves to others all that the kernel has, so the disk is not waited for here as it is above.
    long = scenario.endswith(("-shut", "-joined")) or scenario in (
        *("approve", "undo-turn", "redo-turn", "moves", "undo-moves"),
    )
    usual = "613" if long else "251"
    folder = tmp_path_factory.mktemp("kill")
    assert kill(scenario, os.environ.get("FILEPACT_KILL_STEP", usual), folder) >= 4


def kill(scenario: str, step: str, tmp_path: Path) -> int:
    """Kill a change at every so many of its steps; how often that was."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.kill_points", scenario, str(tmp_path / "w"), step, "1"],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return int(done.stdout.split()[1])


if __name__ == "__main__":
    os.environ["FILEPACT_KILL_STEP"] = sys.argv[sys.argv.index("--step") + 1]
    words = [__file__, "-q", "-n", str(os.cpu_count() or 1), "--dist=load", "--timeout=0"]
    sys.exit(pytest.main(words))
