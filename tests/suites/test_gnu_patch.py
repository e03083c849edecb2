"""GNU patch's own scripts: every check on the contents of a file, or the reason why not.

The scripts run as they are, with a ``patch`` that calls the real tool.  A check on contents is one
that prints a file with ``cat``; those on messages, exit codes, backups and rejects are of a program
that this one is not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.sweeps import often
from tests.suites.packages import UnavailableError, gnu_patch_tests, or_skip

pytestmark = [pytest.mark.slow(after=1), pytest.mark.timeout(400)]

PROJECT = Path(__file__).resolve().parent.parent.parent
CHECK = re.compile(r"(?m)^\[(\d+)\] (cat .*) -- (ok|FAILED)$")

# How many checks on contents pass in each script, by the line of the check.
PASSED = {
    "concat-git-diff": {87, 122},
    "copy-rename": {36, 62, 86, 106, 126},
    "corrupt-patch": {31},
    "create-delete": {252},
    "crlf-handling": {75, 147, 156, 203},
    "git-cleanup": {67},
    "line-numbers": {40},
    "need-filename": {121, 137},
    "symlinks": {34, 66},
}
TWICE = "changes one file twice by more than edits; refused, the parts can be sent one by one"
COPY = "a copy in a Git header is refused by name"
OTHER = "a normal, context or ed diff; only unified diffs and envelopes are read"
PART = "expects a part of the patch to stay when the rest fails; here it is all or none"
BACKUP = "a backup or another output file; undo takes their place"
ASSUMES = "the command is told to assume -R; here an applied patch is refused as such"
SYMLINK = "links are neither made nor followed out of the root by a patch"
REASONS = {
    "concat-git-diff": {55: TWICE},
    "copy-rename": dict.fromkeys((40, 74, 110), COPY) | dict.fromkeys((142, 150, 154), BACKUP),
    "create-delete": dict.fromkeys((146, 168), ASSUMES)
    | dict.fromkeys((189, 209), PART)
    | dict.fromkeys((282, 295), BACKUP)
    | {292: "--posix keeps an emptied file; here a deletion deletes"},
    "criss-cross": dict.fromkeys((37, 41), TWICE) | dict.fromkeys((79, 83), COPY),
    "crlf-handling": dict.fromkeys((63, 87, 101, 125, 134, 169, 178), OTHER),
    "dash-o-append": {40: BACKUP},
    "filename-choice": {30: "picks a missing file out of two names; here the new name counts"},
    "git-cleanup": {55: PART, 59: BACKUP, 69: BACKUP},
    "inname": {35: "two files in a patch that goes to one; refused"},
    "line-numbers": {58: PART},
    "need-filename": dict.fromkeys((66, 87, 103), OTHER),
    "quoted-filenames": {31: "a tab in a file name; the guard refuses invisible characters"},
    "symlinks": {62: SYMLINK, 321: SYMLINK},
    "unmodified-files": dict.fromkeys((40, 57), BACKUP),
}
# Scripts whose checks on contents are all about backups and rejects.
ONLY_BACKUPS = {
    "backup-prefix-suffix",
    "corrupt-reject-files",
    "global-reject-files",
    "reject-format",
    "remember-backup-files",
    "remember-reject-files",
}


@pytest.fixture(scope="module")
def scripts() -> Path:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    try:
        return gnu_patch_tests()
    except UnavailableError as error:
        or_skip(error)
        raise


def test_every_script_that_checks_contents_is_listed(scripts: Path):
    checking = {
        path.name
        for path in scripts.iterdir()
        if path.is_file() and re.search(r"(?m)^\s*n?check 'cat", path.read_text("latin-1"))
    }
    assert checking == PASSED.keys() | REASONS.keys() | ONLY_BACKUPS


LONG = {"create-delete", "need-filename", "symlinks"}
"""They call the command thirty times and more, mostly for what the others try as well: for `scripts/deep`."""


@pytest.mark.parametrize("name", sorted((PASSED.keys() | REASONS.keys()) - often(LONG, set())))
def test_contents_are_as_gnu_patch_leaves_them(name: str, scripts: Path, tmp_path: Path):
    (tmp_path / "tests").mkdir()
    done = subprocess.run(
        ["bash", str(scripts / name)],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "srcdir": str(scripts),
            "abs_top_builddir": str(tmp_path),
            "PATCH": f"{sys.executable} -m tests.suites.patch_command",
            "PYTHONPATH": os.pathsep.join(
                [str(PROJECT), str(PROJECT / "src"), *filter(None, sys.path)]
            ),
        },
        capture_output=True,
        check=False,
        timeout=300,
    )
    said = done.stdout.decode("utf-8", "replace")
    ended = {int(line): state for line, _, state in CHECK.findall(said)}
    passed = {line for line, state in ended.items() if state == "ok"}
    reasons = REASONS.get(name, {})
    assert passed >= PASSED.get(name, set()), said[-3_000:]
    # A check without ``ed``, or of a system without links, may be missing; none is unexplained.
    assert ended.keys() - passed <= reasons.keys(), said[-3_000:]
