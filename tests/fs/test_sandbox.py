"""The sandbox: what the kernel refuses to a process that has confined itself."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.errors import InvalidParamsError
from filepact.fs import kernel, sandbox
from filepact.fs.root import Root
from filepact.fs.sandbox import confine, libraries, try_sandbox
from tests.needs import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fs.conftest import Grounds

PROGRAM = Path(__file__).with_name("confined.py")
ABI = sandbox.landlock_abi()
needs_landlock = pytest.mark.skipif(not ABI, reason="this system has no Landlock")

# What is tried, and from which ABI on the kernel refuses it.
REFUSED = {
    "read outside": 1,
    "read outside upwards": 1,
    "read outside through a link": 1,
    "read outside through a folder's handle": 1,
    "read outside through an open folder": 1,
    "read outside through a file's handle": 1,
    "read outside through /proc/self/root": 1,
    "read outside through /proc/self/cwd": 1,
    "read the environment": 1,
    "read the memory": 1,
    "read the accounts": 1,
    "list outside": 1,
    "list the top": 1,
    "write outside": 1,
    "append outside": 1,
    "truncate outside": 3,
    "truncate outside while opening": 3,
    "create outside": 1,
    "create outside through a handle": 1,
    "create through a dangling link": 1,
    "remove outside": 1,
    "make a folder outside": 1,
    "remove a folder outside": 1,
    "link in": 1,
    "link out": 1,
    "move in": 1,
    "move out": 1,
    "move into the state of somebody else": 1,
    "make a character device": 1,
    "make a block device": 1,
    "make a pipe": 1,
    "make a socket": 1,
    "make a link": 1,
    "run a program": 1,
    "run a program of the root": 1,
    "change a library": 1,
    "connect": 4,
    "listen": 4,
    "signal": 6,
    "terminate": 6,
}
ALLOWED = {
    "signal ourselves": 1,
    "read": 1,
    "read through a link": 1,
    "read through a file's handle": 1,
    "list": 1,
    "create": 1,
    "write": 1,
    "truncate": 1,
    "make a folder": 1,
    "move between folders": 2,
    "link between folders": 2,
    "exchange": 2,
    "remove": 2,
    "remove a folder": 1,
    "write the state": 1,
    "use /dev/null": 1,
    "use /dev/urandom": 1,
}
NOT_COVERED = ("stat outside", "chmod outside", "read what was open")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    base = tmp_path_factory.mktemp("confined")
    for folder in ("root/src", "state", "outside/empty"):
        (base / folder).mkdir(parents=True)
    (base / "root" / "a.txt").write_text("#!/bin/sh\n")
    (base / "root" / "a.txt").chmod(0o755)
    (base / "root" / "out").symlink_to("../outside")
    (base / "root" / "inner").symlink_to("a.txt")
    (base / "root" / "dangling").symlink_to("../outside/made.txt")
    (base / "outside" / "secret.txt").write_text("SECRET")
    done = subprocess.run(
        [sys.executable, PROGRAM, base],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outside = {path.name: path for path in (base / "outside").iterdir()}
    return json.loads(done.stdout) | {
        "outside": sorted(outside),
        "text": outside["secret.txt"].read_text(),
    }


@needs_landlock
@pytest.mark.parametrize("what", REFUSED)
def test_a_confined_process_is_refused(report: dict[str, Any], what: str) -> None:
    if REFUSED[what] > ABI:
        pytest.skip(f"from ABI {REFUSED[what]} on, this is {ABI}")
    assert report["done"][what] in ("EACCES", "EPERM", "EXDEV")


@needs_landlock
@pytest.mark.parametrize("what", ALLOWED)
def test_a_confined_process_does_its_work(report: dict[str, Any], what: str) -> None:
    if ALLOWED[what] > ABI:
        pytest.skip(f"from ABI {ALLOWED[what]} on, this is {ABI}")
    assert report["done"][what] == "done"


@needs_landlock
@pytest.mark.parametrize("what", NOT_COVERED)
def test_what_the_documents_call_not_covered_is_let_through(
    report: dict[str, Any], what: str
) -> None:
    assert report["done"][what] == "done"


@needs_landlock
def test_every_attempt_is_judged_and_nothing_outside_is_changed(report: dict[str, Any]) -> None:
    assert set(report["done"]) == {*REFUSED, *ALLOWED, *NOT_COVERED}
    assert set(report["before"].values()) == {"done"}
    assert report["outside"] == ["empty", "secret.txt"]
    assert report["text"] == "SECRET"
    assert report["confined"] is True


@needs_landlock
def test_a_confined_process_still_loads_modules_and_knows_its_time_zone(
    report: dict[str, Any],
) -> None:
    assert report["loaded"] == [1, 1, 3]
    assert report["same hour"]


def in_thread(action: Callable[[], Any]) -> Any:
    """The result of something in a thread of its own, which ends with what it gave up."""
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(action())
        except OSError as error:
            results.append(errno.errorcode[error.errno or 0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results[0]


def attempt(action: Callable[[], Any]) -> str:
    """What became of it: the error's name, or ``done``."""
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


@pytest.fixture
def one_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Landlock as it is without the wish to confine all threads, these tests' own among them."""
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: min(ABI, 7))
    monkeypatch.setattr(sandbox, "_threads", lambda: 1)


@pytest.fixture
def state(tmp_path: Path) -> str:
    (tmp_path / "state").mkdir()
    return str(tmp_path / "state")


@pytest.fixture
def opened(grounds: Grounds) -> Iterator[Root]:
    with Root.open(grounds.root) as root:
        yield root


@needs_landlock
@pytest.mark.usefixtures("one_thread_only")
@pytest.mark.parametrize("version", range(1, 8))
def test_on_every_kernel_as_much_is_given_up_as_it_can_refuse(
    grounds: Grounds, opened: Root, state: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: version)
    if version > ABI:
        pytest.skip(f"this system has ABI {ABI}")

    def attempts() -> tuple[Any, ...]:
        raised = confine("auto", [opened], state)
        tried = []
        for action in (
            (grounds.outside / "secret.txt").read_text,
            lambda: os.truncate(grounds.outside / "empty.txt", 0),
            lambda: (grounds.root / "README.md").rename(grounds.root / "docs" / "README.md"),
            (grounds.root / "src" / "main.py").read_text,
        ):
            try:
                tried.append(action())
            except OSError as error:
                tried.append(errno.errorcode[error.errno or 0])
        return raised, *tried[:2], "XDEV" in str(tried[2]), tried[3]

    (grounds.outside / "empty.txt").write_text("")
    assert in_thread(attempts) == (
        True,
        "EACCES",
        "EACCES" if version >= 3 else None,
        version < 2,
        "main",
    )


@needs_landlock
def test_half_a_process_is_not_confined(
    opened: Root, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: min(ABI, 7))
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        raised = confine("auto", [opened], state)
        with pytest.raises(InvalidParamsError):
            confine("required", [opened], state)
    finally:
        over.set()
        thread.join()
    assert raised is False
    assert os.listdir("/")


def test_without_landlock_auto_goes_on_and_required_does_not(
    opened: Root, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: 0)
    assert confine("auto", [opened], state) is False
    with pytest.raises(InvalidParamsError) as caught:
        confine("required", [opened], state)
    assert caught.value.hint
    assert try_sandbox([opened], state) == "refused"


def test_what_is_switched_off_does_nothing(grounds: Grounds, tmp_path: Path) -> None:
    open_workspace(
        [str(grounds.root)], state_dir=str(tmp_path / "its state"), landlock="off"
    ).close()
    assert os.listdir("/")


@pytest.mark.parametrize(
    "library", [None, ctypes.CDLL(None, use_errno=True)], ids=["none", "filtered"]
)
def test_a_system_that_refuses_to_say_has_no_landlock(
    library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library is not None:
        # A number that no system call has: as a container's filter answers for one it does not know.
        monkeypatch.setattr(sandbox, "_CREATE_RULESET", 100_000)
    monkeypatch.setattr(sandbox, "_libc", library)
    assert sandbox.landlock_abi.__wrapped__() == 0


@CAPABILITIES
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.usefixtures("one_thread_only")
def test_mounts_are_given_up_where_that_leaves_moves_alone(
    grounds: Grounds, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version > ABI:
        pytest.skip(f"this system has ABI {ABI}")
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: version)
    top = os.open("/", os.O_PATH | os.O_DIRECTORY)

    def attempts() -> tuple[Any, ...]:
        given_up = sandbox.forbid_mounts(top)
        (grounds.root / "README.md").rename(grounds.root / "docs" / "README.md")
        device = attempt(lambda: os.mknod(grounds.root / "dev", stat.S_IFCHR, os.makedev(1, 3)))
        return given_up, device, attempt((grounds.outside / "secret.txt").read_text)

    given_up, device, outside = in_thread(attempts)
    os.close(top)
    assert given_up is (version == 2)
    # Without it, only an administrator makes devices.
    assert device == (("EACCES" if given_up else "done") if os.geteuid() == 0 else "EPERM")
    assert outside == "done"


@CAPABILITIES
def test_a_thread_that_gave_up_its_capabilities_has_none() -> None:
    def attempts() -> str:
        kernel.capset(0)
        return Path("/proc/thread-self/status").read_text().split("CapEff:\t")[1].split()[0]

    assert int(in_thread(attempts), 16) == 0


@CAPABILITIES
def test_capabilities_that_nobody_has_cannot_be_taken() -> None:
    def attempts() -> None:
        kernel.capset(0)
        kernel.capset(1)

    assert in_thread(attempts) == "EPERM"


@needs_landlock
def test_a_trial_proves_the_wall_and_leaves_us_outside(opened: Root, state: str) -> None:
    assert try_sandbox([opened], state) == "holds"
    assert os.listdir("/")


@needs_landlock
def test_a_trial_notices_a_wall_that_leaks_or_blocks(
    opened: Root, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restrict = sandbox.restrict
    monkeypatch.setattr(sandbox, "restrict", lambda _grants, **_: None)
    assert try_sandbox([opened], state) == "leaks"
    monkeypatch.setattr(sandbox, "restrict", lambda _grants, **_: restrict([]))
    assert try_sandbox([opened], state) == "blocks"


@needs_landlock
@pytest.mark.usefixtures("one_thread_only")
def test_a_trial_looks_outside_and_inside(opened: Root, state: str) -> None:
    assert in_thread(lambda: sandbox._look_around([opened], state)) == 0


@needs_landlock
@pytest.mark.usefixtures("one_thread_only")
def test_a_trial_tells_leaks_from_blocks(
    opened: Root, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restrict = sandbox.restrict
    monkeypatch.setattr(sandbox, "restrict", lambda _grants, **_: None)
    assert in_thread(lambda: sandbox._look_around([opened], state)) == 1
    monkeypatch.setattr(sandbox, "restrict", lambda _grants, **_: restrict([]))
    assert in_thread(lambda: sandbox._look_around([opened], state)) == 2


@needs_landlock
@pytest.mark.usefixtures("one_thread_only")
def test_a_present_folder_that_was_removed_is_no_hindrance(
    opened: Root, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert in_thread(lambda: confine("auto", [opened], state))


def test_the_search_path_for_modules_opens_no_folder_around_a_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("script", "home", "vendored"):
        (tmp_path / name).mkdir()
    (tmp_path / "alias").symlink_to("home")
    monkeypatch.setattr(
        sys,
        "path",
        [str(tmp_path / name) for name in ("script", "vendored", "home", "alias")] + [""],
    )
    found = libraries(frozenset({str(tmp_path / "home"), str(tmp_path), "/"}))
    assert [path for path in found if path.startswith(str(tmp_path))] == [
        str(tmp_path / "vendored")
    ]
    assert "" not in found
    assert "/" not in found
