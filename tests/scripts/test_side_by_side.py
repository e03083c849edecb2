"""Two pytest processes at once: what is printed, how they end, and how they are ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "scripts"

RIGHT = """
import os

def test_right(): assert os.environ["SHARE"] in "12"
"""
WRONG = """
def test_wrong(): assert "this" == "that"
"""
WAITING = """
import pathlib, threading

import pytest

@pytest.fixture
def tidy():
    yield
    pathlib.Path("tidied-{number}").touch()

def test_waiting(tidy):
    open("began-{number}", "w").close()
    threading.Event().wait()
"""
LEAVING = """
import pathlib, subprocess

def test_leaving(capfd):
    with capfd.disabled():
        left = subprocess.Popen(["sleep", "300"])
    pathlib.Path("left").write_text(str(left.pid))
    left.returncode = 0
"""


class Project:
    """A project with a folder of tests for each process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pyproject.toml").write_text("[tool.pytest]\n")

    def write(self, number: int, text: str, name: str = "test_it.py") -> None:
        (self.folder / f"{number}").mkdir(exist_ok=True)
        (self.folder / f"{number}" / name).write_text(text)

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(HERE / "two_runs.py"), str(SCRIPTS), ".", *options, "1", "2"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )

    def run(self, *options: str) -> tuple[int, str]:
        with self.start(*options) as process:
            said, _ = process.communicate()
        return process.returncode, said


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_both_are_run_and_each_report_is_whole(project: Project) -> None:
    project.write(1, RIGHT)
    project.write(2, RIGHT)
    code, said = project.run()
    assert code == 0
    assert re.search(r"^1\| 1/test_it.py \.", said, re.MULTILINE)
    assert re.search(r"^2\| 2/test_it.py \.", said, re.MULTILINE)
    assert len(re.findall(r"^=+ 1 passed in ", said, re.MULTILINE)) == 2
    assert said.endswith("all have ended\n")


@pytest.mark.parametrize("wrong", [1, 2])
def test_what_failed_is_told_again_in_the_end(project: Project, wrong: int) -> None:
    project.write(wrong, WRONG)
    project.write(3 - wrong, RIGHT)
    code, said = project.run()
    assert code == 1
    during, after = said.split("all have ended\n")
    assert "assert 'this' == 'that'" in during
    assert f"-- {wrong} failed:" in after
    assert f"FAILED {wrong}/test_it.py::test_wrong" in after
    assert "passed" not in after


@pytest.mark.parametrize(
    ("text", "code"),
    [("import nothing_of_this_name\n", 2), ("import os\nos.abort()\n", 1), ("", 5)],
    ids=["does not load", "dies", "no tests"],
)
def test_whatever_ends_one_of_them_counts(project: Project, text: str, code: int) -> None:
    project.write(1, RIGHT)
    project.write(2, text)
    assert project.run()[0] == code


def test_the_first_failure_ends_the_other_where_it_has_to(project: Project) -> None:
    os.mkfifo(project.folder / "began-1")
    project.write(1, WAITING.format(number=1))
    project.write(2, 'open("began-1").read()\n' + WRONG)
    code, said = project.run("-x")
    assert code == 1
    assert "1 failed" in said
    assert "KeyboardInterrupt" in said


def test_what_holds_the_output_open_keeps_nobody_waiting(project: Project) -> None:
    project.write(1, RIGHT)
    project.write(2, LEAVING)
    code, said = project.run()
    os.kill(int((project.folder / "left").read_text()), signal.SIGKILL)
    assert code == 0
    assert said.endswith("all have ended\n")


@pytest.mark.parametrize(
    ("number", "all_of_them"),
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False)],
    ids=["at the terminal", "asked to end", "terminal closed"],
)
def test_whoever_ends_us_ends_both_in_order(
    project: Project, number: signal.Signals, all_of_them: bool
) -> None:
    pipes = [project.folder / f"began-{share}" for share in (1, 2)]
    for share, pipe in enumerate(pipes, start=1):
        project.write(share, WAITING.format(number=share))
        os.mkfifo(pipe)
    with project.start() as process:
        for pipe in pipes:
            pipe.read_bytes()
        if all_of_them:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert said.count("! KeyboardInterrupt !") == 2
    assert sorted(path.name for path in project.folder.glob("tidied-*")) == ["tidied-1", "tidied-2"]
