"""What `scripts/test` runs, and how a run ends in which the branches of the core are measured."""

from __future__ import annotations

import fnmatch
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def script():
    """`scripts/test` as a module, with those beside it within reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        loader = SourceFileLoader("scripts_test", str(SCRIPTS / "test"))
        module = module_from_spec(spec_from_loader(loader.name, loader))
        loader.exec_module(module)
        yield module


@pytest.mark.parametrize(
    "given", [[], ["-x"], ["-q", "--tb=short"], ["--numprocesses=4"], ["--durations=20"]]
)
def test_without_a_selection_each_behaviour_is_run_once_in_several_processes(script, given):
    assert script.command(False, given) == ["-m", "pytest", *script.PARALLEL, "--short", *given]
    program, *arguments = script.command(True, given)
    assert Path(program) == SCRIPTS / "measured.py"
    assert arguments == [*script.PARALLEL, *given]


@pytest.mark.parametrize(
    "given",
    [["tests/text"], ["-k", "diff"], ["-m", "slow"], ["--lf"], ["--collect-only"], ["--pdb"]],
)
def test_a_selection_is_for_pytest_alone(script, given):
    assert script.command(False, given) == ["-m", "pytest", *given]


def test_everything_and_a_part_of_it_are_not_asked_for_at_once():
    asked = [sys.executable, str(SCRIPTS / "test"), "--all", "tests/text"]
    assert subprocess.run(asked, check=False, capture_output=True).returncode == 1


def test_the_check_takes_no_option_that_it_does_not_know():
    asked = [sys.executable, str(SCRIPTS / "check"), "--fast"]
    assert subprocess.run(asked, check=False, capture_output=True).returncode == 1


def test_further_tools_come_into_an_environment_without_building_the_project_again(
    script, tmp_path, monkeypatch
):
    ran = []
    monkeypatch.setattr(script.environment, "_run", lambda command, _doing: ran.append(command))
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    script.environment._install(folder, ["", "test"])
    script.environment._install(folder, ["check"])
    (_, whole, more) = ran
    assert whole.count("--editable") == len(script.environment.distributions(SCRIPTS.parent))
    assert "--editable" not in more
    assert any(one.startswith("mypy") for one in more)


def test_an_environment_stays_good_when_python_has_compiled_what_builds_the_library(
    script, tmp_path, monkeypatch
):
    environment = script.environment
    (tmp_path / "pyproject.toml").write_text("")
    source = tmp_path / "native" / "files.c"
    source.parent.mkdir()
    source.write_text("int one;")
    monkeypatch.setattr(environment, "PROJECT", tmp_path)
    before = environment._wanted()
    (tmp_path / "native" / "__pycache__").mkdir()
    (tmp_path / "native" / "__pycache__" / "build_hook.pyc").write_bytes(b"")
    assert environment._wanted() == before
    source.write_text("int two;")
    assert environment._wanted() != before


CORE = """
def sign(number):
    if number < 0:
        return -1
    return 1
"""
HALF = """
from filepact.text.sign import sign

def test_positive(): assert sign(1) == 1
"""
REST = """
import os
from filepact.text.sign import sign

def test_negative(): assert sign(-1) == -1

def test_elsewhere(worker_id): assert worker_id != "master"
"""
WRONG = """
def test_wrong(): assert "this" == "that"
"""
WAITING = """
import subprocess, threading

def test_waiting():
    child = subprocess.Popen(["sleep", "300"])
    open("began", "w").close()
    threading.Event().wait()
"""


PATIENT = """
import os, pytest

alone = "PYTEST_XDIST_WORKER" not in os.environ

@pytest.mark.foreign
def test_beside_nobody(): assert alone
"""
SEVERAL = """
import os, pytest

alone = "PYTEST_XDIST_WORKER" not in os.environ
pytestmark = pytest.mark.foreign

def test_never(): assert not "ever"

def test_not_without_others():
    if alone: pytest.skip("nobody is here")
    assert not "yet"

@pytest.fixture
def others():
    yield
    assert alone

def test_ends_well_alone(others): pass
"""
OURS = """
import os

def test_of_our_own(): assert "PYTEST_XDIST_WORKER" not in os.environ
"""
MANY = """
import os, pytest

@pytest.mark.foreign
@pytest.mark.parametrize("number", range(7))
def test_one_of_many(number): assert "PYTEST_XDIST_WORKER" not in os.environ
"""


class Project:
    """A small project with a core of one module, and with tests of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pyproject.toml").write_text(
            '[tool.pytest]\naddopts = ["--dist=loadfile", "-p", "xdist", "-p", "pytest_cov"]\n'
            'markers = ["foreign"]\n'
            "[tool.coverage.run]\nbranch = true\n"
        )
        for floor in ("", "text", "domain", "fs", "store", "workspace"):
            package = folder / "filepact" / floor
            package.mkdir()
            (package / "__init__.py").touch()
        (folder / "filepact" / "text" / "sign.py").write_text(CORE)

    def write(self, *tests: str) -> None:
        for number, text in enumerate(tests):
            (self.folder / f"test_{number}.py").write_text(text)

    @contextmanager
    def start(self) -> Iterator[subprocess.Popen[str]]:
        """A run in a session of its own; nothing of it is left afterwards."""
        # A shell has what it starts in the background ignore this, and that is inherited.
        ours = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            process = subprocess.Popen(
                [sys.executable, SCRIPTS / "measured.py", "-n", "2", "-p", "no:cacheprovider", "."],
                cwd=self.folder,
                env=environment(self.folder),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        finally:
            signal.signal(signal.SIGINT, ours)
        with process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self) -> tuple[int, str]:
        with self.start() as process:
            said, _ = process.communicate()
        return process.returncode, said


def environment(folder: Path) -> dict[str, str]:
    """That of a run that nobody has started from within another."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # All that is installed beside us takes several times as long to load.
    return ours | {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_several_processes_measured_counts_together(project):
    project.write(HALF, REST)
    code, said = project.run()
    assert code == 0, said
    assert said.splitlines()[-1].split() == ["all", "100.0", "%", "4", "100.0", "%", "2"]


def test_too_few_branches_fail_a_run_in_which_all_tests_passed(project):
    project.write(HALF)
    code, said = project.run()
    assert code == 1, said
    assert " 1 passed" in said
    assert said.splitlines()[-1] == "  filepact/text/sign.py: 1 branches missed"


def test_too_few_branches_of_one_floor_are_not_made_up_for_by_the_others(project):
    signs = "".join(f"    if number == {one}:\n        found += 1\n" for one in range(40))
    (project.folder / "filepact" / "domain" / "signs.py").write_text(
        f"def signs(number):\n    found = 0\n{signs}    return found\n"
    )
    all_signs = (
        "from filepact.domain.signs import signs\n"
        "def test_signs(): assert sum(map(signs, range(41))) == 40\n"
    )
    project.write(HALF, all_signs)
    code, said = project.run()
    assert code == 1, said
    *_, together, floor, worst = said.splitlines()
    assert together.split()[4] == "98.8"
    assert "branches of text were" in floor
    assert worst == "  filepact/text/sign.py: 1 branches missed"


def test_a_failure_in_one_process_fails_the_run_and_is_printed(project):
    project.write(HALF, REST, WRONG)
    code, said = project.run()
    assert code == 1
    assert "assert 'this' == 'that'" in said
    assert "FAILED test_2.py::test_wrong" in said
    assert "100.0 %" in said


def told(said: str, words: str) -> set[str]:
    """The tests below a heading, up to the next one."""
    lines = iter(said.splitlines())
    if not any(line.strip("= ") == words for line in lines):
        return set()
    return set(takewhile(lambda line: line.startswith("test_"), lines))


PASSED, FAILED = "failed beside others, passed alone", "failed beside others, and alone as well"


def test_what_hangs_on_programs_of_others_and_passes_alone_does_not_fail_the_run(project):
    project.write(HALF, REST, PATIENT)
    code, said = project.run()
    assert code == 0, said
    assert told(said, PASSED) == {"test_2.py::test_beside_nobody"}
    assert "100.0 %" in said


def test_what_fails_alone_as_well_or_is_not_run_there_fails_the_run(project):
    project.write(HALF, REST, SEVERAL)
    code, said = project.run()
    assert code == 1, said
    assert told(said, PASSED) == {"test_2.py::test_ends_well_alone"}
    names = {"test_2.py::test_never", "test_2.py::test_not_without_others"}
    assert told(said, FAILED) == names


def test_what_is_our_own_and_fails_once_fails_the_run(project):
    project.write(HALF, REST, PATIENT, OURS)
    code, said = project.run()
    assert code == 1, said
    assert told(said, PASSED) == {"test_2.py::test_beside_nobody"}
    assert told(said, FAILED) == set()


def test_too_many_failures_are_no_accident(project):
    project.write(HALF, REST, MANY)
    code, said = project.run()
    assert code == 1, said
    assert told(said, PASSED) == told(said, FAILED) == set()


def test_too_few_branches_fail_a_run_whose_failures_were_accidents(project):
    project.write(HALF, PATIENT)
    code, said = project.run()
    assert code == 1, said
    assert told(said, PASSED) == {"test_1.py::test_beside_nobody"}


def test_the_tests_that_hang_on_programs_of_others_are_there_and_not_of_the_core():
    top = SCRIPTS.parent
    modules = {
        str(path.relative_to(top))
        for pattern in ("tests/**/test_*.py", "packages/*/tests/**/test_*.py")
        for path in top.glob(pattern)
    }
    assert [one for one in foreign.PLACES if not fnmatch.filter(modules, one)] == []
    assert {
        one for one in modules if foreign.is_foreign(one) and one.split("/")[1] in foreign.NEVER
    } == set()


def test_tests_are_marked_by_the_place_of_their_module():
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "foreign"]
    chosen = ["tests/faces/test_inspector.py", "tests/fs/test_locks.py"]
    done = subprocess.run(
        [sys.executable, *words, *chosen],
        cwd=SCRIPTS.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    found = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == {"tests/faces/test_inspector.py"}


def test_an_interrupt_ends_all_processes(project):
    os.mkfifo(project.folder / "began")
    project.write(WAITING)
    with project.start() as process:
        with (project.folder / "began").open():
            pass
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate()
        assert process.returncode == pytest.ExitCode.INTERRUPTED, said
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
