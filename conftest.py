"""What every test has: repeatable examples, and a home that is not the person's."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pkgutil
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from filepact.domain.person import AGENT_VARIABLES
from filepact.fs import kernel
from filepact.fs.state import who_calls
from tests.foreign import is_foreign

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# The same examples on every run and every machine, so that a red test is red for everybody.  No
# deadline: how long an example takes says more about the machine's other work than about us.
# Being the same, they find what a change breaks, and as many again find hardly more of that.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=50, print_blob=True
)
settings.register_profile("ci", settings.get_profile("steady"))
# By hand, to look for what the steady examples miss: --hypothesis-profile=deep
settings.register_profile("deep", deadline=None, max_examples=1_000, print_blob=True)
# With --short: the bounded form of the same properties.
settings.register_profile("short", settings.get_profile("steady"), max_examples=30)
settings.load_profile("steady")


def leave_agents() -> None:
    """Go on as a child of the system's where an agent has started the tests: a person's commands are tested here.

    Our own process stays behind, and ends as the tests do.
    """
    for name in AGENT_VARIABLES:
        os.environ.pop(name, None)
    if not who_calls(()).agent:
        return
    there, here = os.pipe()
    if os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(here)
        os._exit(int(os.read(there, 8) or b"1"))
    first = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == first:
        os.sched_yield()
    if tests := os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = os.waitstatus_to_exitcode(os.waitpid(tests, 0)[1])
        os.write(here, b"%d" % (status if status >= 0 else 128 - status))
        os._exit(0)
    os.close(there)
    os.close(here)
    if (caller := who_calls(())).agent:
        raise pytest.UsageError(f"the tests cannot leave the agent that has started them: {caller}")


leave_agents()
# A shell has what it starts in the background pass by Ctrl-C, and all that this starts; programs are ended by it here.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(
            number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        )

MEASURED = (
    *(f"tests/{floor}/" for floor in ("text", "domain", "fs", "store", "workspace")),
    *(f"tests/{place}/" for place in ("tools", "config", "crash", "hostile")),
    *(f"tests/{place}/" for place in ("properties", "suites")),
    *(
        f"tests/faces/test_{what}"
        for what in ("hook", "named", "never", "own", "set_aside", "un", "whose")
    ),
    *(f"tests/faces/test_{what}" for what in ("audit", "heads", "two", "person", "kinds")),
    *(
        f"packages/filepact-cli/tests/test_cli_{what}"
        for what in ("audit", "policy", "state", "turns")
    ),
    *(f"packages/filepact-{wing}/tests/" for wing in ("fleet", "index", "run")),
    *(
        "tests/faces/test_every_door.py",
        "tests/faces/test_library.py",
        "packages/filepact-acp/tests/test_",
    ),
)
"""Places of the tests whose way through the core is measured: with its branches counted, a test takes half as
long again, and the others take few ways that these do not."""

COUNTED = pytest.StashKey[bool]()
"""Whether the branches that a test takes are counted."""

ON_DISK = (
    *(f"tests/{place}/" for place in ("fs", "store", "crash", "properties", "agents")),
    *(f"tests/hostile/test_{what}" for what in ("races", "removals", "special")),
    *(f"tests/faces/test_{what}" for what in ("every_door", "audit_lines", "kinds", "tour")),
    *("tests/architecture/", "tests/workspace/test_external.py"),
    *("packages/filepact-fleet/tests/", "packages/filepact-run/tests/"),
)
"""Places of the tests whose folders lie on a disk, also where those of the others lie in memory: a run has no
layers below ``/dev``, and what a crash leaves is for a disk to show."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="leave out what is marked slow")


def pytest_configure(config: pytest.Config) -> None:
    # Tests and their modules stay to the end.  While they are loaded there is nothing to collect, and
    # afterwards each full garbage collection would look through all of them once more.
    gc.disable()
    if config.getoption("short") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that no long one is left to a single process in the end."""
    cases: Counter[str] = Counter()
    slow = []
    for item in items:
        mark = item.get_closest_marker("slow")
        test = item.nodeid.partition("[")[0]
        if mark is not None and cases[test] >= mark.kwargs.get("after", 0):
            slow.append(item)
        cases[test] += 1
    top = config.rootpath
    foreign = {path for path in {item.path for item in items} if is_foreign(_place(path, top))}
    for item in items:
        if item.path in foreign:
            item.add_marker("foreign")
    long = {item.path for item in slow}
    items.sort(key=lambda item: item.path not in long)
    for item in items:
        item.stash[COUNTED] = _place(item.path, top).startswith(MEASURED)
    for item in slow:
        # What most of them repeat has been measured, and every line that is counted takes its time.
        mark = item.get_closest_marker("slow")
        if mark is not None and not mark.kwargs.get("measured", False):
            item.stash[COUNTED] = False
    if config.getoption("short"):
        left_out = set(slow)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=slow)


def _place(path: Path, top: Path) -> str:
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else ""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Count no lines while tests are collected, which takes twice as long: only those of the measured modules as such."""
    if (counter := _counter(session.config)) is not None:
        for name in session.config.getoption("cov_source"):
            for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
                importlib.import_module(module.name)
        counter.pause()
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count what a measured test does, with its fixtures."""
    counter = _counter(item.config) if item.stash.get(COUNTED, False) else None
    if counter is None:
        return (yield)
    counter.resume()
    try:
        return (yield)
    finally:
        counter.pause()


def _counter(config: pytest.Config) -> Any:
    """What pytest-cov counts with; None where nothing is counted."""
    return getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)


@pytest.fixture(autouse=True, scope="session")
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no program that a test starts, sees state or settings of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    own = ("FILEPACT_CONFIG", "FILEPACT_STATE_DIR", "FILEPACT_ROOT")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_DIRS", str(home / "etc"))
        for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", *own):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def kept_for_disks() -> Iterator[None]:
    """Keep what the kernel has made for one `FileSync` for the next: to give it back takes 30 ms.

    No request is under way in what is given back, and a process that is forked has none of them.
    """
    made, given_back = kernel._setup, kernel._destroy  # noqa: SLF001 - nothing else names the kernel's calls
    kept: list[int] = []

    def setup(number: int, most: int, place: int) -> int:
        if not kept:
            return made(number, most, place)  # type: ignore[misc,no-any-return]
        ctypes.c_ulong.from_address(place).value = kept.pop()
        return 0

    def keep(_number: int, context: ctypes.c_ulong) -> None:
        kept.append(context.value)

    os.register_at_fork(after_in_child=kept.clear)
    with pytest.MonkeyPatch.context() as patch:
        if made is not None and given_back is not None:
            patch.setattr(kernel, "_setup", setup)
            patch.setattr(kernel, "_destroy", keep)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if not _place(request.path, request.config.rootpath).startswith(ON_DISK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to work in; folders of tests that need more in it have one of their own."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder
