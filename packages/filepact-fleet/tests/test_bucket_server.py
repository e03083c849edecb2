"""Shared workspaces on a real S3 server, and through a proxy that loses answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    ObjectStoreFailedError,
    ObjectStoreUnsafeError,
    SharedBusyError,
    SharedConflictError,
)
from filepact_cli.main import run as command
from filepact_fleet.objects.bucket import (
    StaleItemError,
    UnknownItemError,
    UnknownResultError,
    open_bucket,
    probe,
)
from fleet_objects import Shared, name
from tests.object_server import Fault, FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact_fleet.objects.bucket import Bucket
    from tests.object_server import ObjectServer


@pytest.fixture
def place() -> str:
    return f"s3://tests/{name()}"


@pytest.fixture(autouse=True)
def _tried_already(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes seconds for races of this kind, and one test has it run one."""
    if "refused" not in request.node.name:
        monkeypatch.setattr("filepact_fleet.objects.repository.probe", lambda _bucket: None)


@pytest.fixture
def direct(server: ObjectServer, place: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for key, value in server.environment().items():
        monkeypatch.setenv(key, value)
    return open_bucket(place)


@pytest.fixture
def through(
    direct: Bucket,
    server: ObjectServer,
    proxy: FaultProxy,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Bucket:
    for key, value in server.environment(proxy.port).items():
        monkeypatch.setenv(key, value)
    return open_bucket(place)


def test_a_real_server_keeps_the_conditions(direct: Bucket) -> None:
    probe(direct)
    assert list(direct.list("")) == []
    tag = direct.create("a", b"1")
    with pytest.raises(StaleItemError):
        direct.create("a", b"2")
    assert direct.get("a") == (b"1", tag)
    assert direct.get_other("a", tag) is None
    after = direct.swap("a", b"2", tag)
    with pytest.raises(StaleItemError):
        direct.swap("a", b"3", tag)
    with pytest.raises(StaleItemError):
        direct.swap("none", b"3", tag)
    assert direct.get_other("a", tag) == (b"2", after)
    direct.replace("a", b"0123456789")
    assert direct.get_ranges("a", [(2, 3), (9, 1)]) == [b"234", b"9"]
    assert [(one.name, one.size) for one in direct.list("")] == [("a", 10)]
    direct.delete("a")
    direct.delete("a")
    with pytest.raises(UnknownItemError):
        direct.get("a")
    with pytest.raises(UnknownItemError):
        direct.get_ranges("a", [(0, 1)])


def test_a_workspace_on_a_real_server(direct: Bucket) -> None:
    shared = Shared(direct)
    shared.workspace.create(name(), "tests")
    files = {f"d/{number}": b"%d" % number * 50 for number in range(400)}
    shared.put({**files})
    assert shared.again().read() == files
    shared.put({"d/1": None, "e": b"new"})
    assert shared.again().read() == {
        **{path: data for path, data in files.items() if path != "d/1"},
        "e": b"new",
    }


def test_writers_race_on_a_real_server_and_nothing_is_lost(direct: Bucket) -> None:
    shared = Shared(direct)
    shared.workspace.create(name(), "tests")
    shared.put({"lines": b""})

    def run(number: int) -> None:
        side = shared.again()
        for turn in range(2):
            while True:
                entry = side.workspace.files(side.workspace.newest())["lines"]
                text = side.workspace.content(entry) + b"%d-%d\n" % (number, turn)
                try:
                    side.put({"lines": text}, lambda _, there: there == entry.state)  # noqa: B023
                    break
                except (SharedConflictError, SharedBusyError):
                    continue

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    lines = shared.read()["lines"].split()
    assert sorted(lines) == sorted(b"%d-%d" % (n, turn) for n in range(4) for turn in range(2))


@pytest.mark.parametrize("kind", [409, 412, 500, 503, "lost", "unsent"])
@pytest.mark.parametrize("ends", ["head", "-0"])
def test_whatever_is_answered_to_a_write_it_is_done_once(
    direct: Bucket, through: Bucket, proxy: FaultProxy, kind: int | str, ends: str
) -> None:
    here = Shared(direct)
    here.workspace.create(name(), "tests")
    here.put({"a": b"1"})
    side = Shared(through)
    side.read()
    fault = Fault("PUT", ends, kind)
    proxy.faults.append(fault)
    side.put({"a": b"2", "b": b"3"})
    assert fault.met.is_set()
    assert here.again().read() == {"a": b"2", "b": b"3"}
    assert here.again().workspace.newest().number == 2


@pytest.mark.parametrize("kind", [500, 503, "unsent", "lost"])
def test_a_read_is_asked_again(
    direct: Bucket, through: Bucket, proxy: FaultProxy, kind: int | str
) -> None:
    here = Shared(direct)
    here.workspace.create(name(), "tests")
    here.put({"a": b"1"})
    proxy.faults.append(Fault("GET", "head", kind))
    assert Shared(through).read() == {"a": b"1"}


# What a server may answer to every request of a kind; what that comes to, and how often it was asked.
READ, AGAIN = "OBJECT_STORE_ERROR", 4
ANSWERS: dict[tuple[str, str], dict[int | str, tuple[str, int]]] = {
    ("GET", "/head"): {
        **dict.fromkeys((403, 409, 412), (READ, 1)),
        404: ("SHARED_GONE", 1),
        **dict.fromkeys((429, 500, 503, "unsent", "lost", "half"), (READ, AGAIN)),
        "wrong": ("SHARED_DAMAGED", 1),
        "slow": ("done", 1),
    },
    ("GET", "-0"): {403: (READ, 1), 404: ("SHARED_DAMAGED", 1), "wrong": ("SHARED_DAMAGED", 1)},
    ("PUT", "/head"): {
        403: (READ, 1),
        # The head is another again and again, as far as anybody can tell.
        **dict.fromkeys((404, 409, 412), ("SHARED_BUSY", 24)),
        # It may have been done, and nobody says so: asked until the head would show it.
        **dict.fromkeys((429, 500, 503, "unsent"), ("OUTCOME_UNKNOWN", 7)),
        # Done, and found to be when the head is asked for.
        **dict.fromkeys(("lost", "half", "wrong", "slow"), ("done", 1)),
    },
    ("PUT", "-0"): {
        403: (READ, 1),
        **dict.fromkeys((404, 409, 429, 500, 503, "unsent", "lost"), (READ, 5)),
        "slow": ("done", 1),
    },
}
ROWS = [(*place, kind, *told) for place, row in ANSWERS.items() for kind, told in row.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "ends", "kind", "told", "times"), ROWS)
def test_each_answer_of_a_server_has_a_code_and_is_asked_for_again_or_not(
    direct: Bucket,
    through: Bucket,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    ends: str,
    kind: int | str,
    told: str,
    times: int,
) -> None:
    monkeypatch.setattr("filepact_fleet.objects.bucket._FIRST_WAIT", 0)
    here, side = Shared(direct), Shared(through)
    here.workspace.create(name(), "tests")
    here.put({"a": b"1"})
    if method == "PUT":
        assert side.read() == {"a": b"1"}
    proxy.every = lambda asked, path: kind if asked == method and path.endswith(ends) else None
    proxy.seen.clear()
    said, outcome = "done", None
    try:
        if method == "PUT":
            side.put({"a": b"2"})
        else:
            assert side.read() == {"a": b"1"}
    except FilepactError as error:
        said, outcome = error.code, error.details.get("outcome")
    tried = sum(asked == method and path.endswith(ends) for asked, path in proxy.seen)
    assert (said, tried) == (told, times)
    if method == "PUT" and said != "done":
        assert outcome == ("unknown" if said == "OUTCOME_UNKNOWN" else "not_applied")
    # Whoever was told that nothing was changed, or that nobody knows, can rely on it.
    assert here.again().read() == {"a": b"2" if method == "PUT" and told == "done" else b"1"}
    proxy.every = lambda _asked, _path: None
    assert side.put({"a": b"3"}).number == here.again().workspace.newest().number
    assert here.again().read() == {"a": b"3"}


def test_a_slow_exchange_that_comes_too_late_changes_nothing(
    direct: Bucket, through: Bucket, proxy: FaultProxy
) -> None:
    here = Shared(direct)
    here.workspace.create(name(), "tests")
    here.put({"a": b"1"})
    side = Shared(through)
    entry = side.workspace.files(side.workspace.newest())["a"]
    held = Fault("PUT", "head", "held")
    proxy.faults.append(held)
    ends: list[str] = []

    def late() -> None:
        try:
            side.put({"a": b"late"}, lambda _, there: there == entry.state)
            ends.append("done")
        except SharedConflictError:
            ends.append("conflict")

    thread = threading.Thread(target=late)
    thread.start()
    assert held.met.wait(60)
    here.put({"a": b"first"})
    held.go.set()
    thread.join()
    assert ends == ["conflict"]
    assert here.again().read() == {"a": b"first"}


def test_a_server_that_does_not_answer_is_told_apart(
    through: Bucket, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.every = lambda _method, _path: 403
    with pytest.raises(ObjectStoreFailedError):
        through.get("head")
    with pytest.raises((ObjectStoreFailedError, UnknownResultError)):
        through.create("head", b"")
    with pytest.raises(ObjectStoreFailedError):
        list(through.list(""))
    with pytest.raises(ObjectStoreFailedError):
        through.replace("a", b"")
    with pytest.raises(ObjectStoreFailedError):
        through.delete("a")


# -- servers that keep no conditions -------------------------------------------------------------


class Careless:
    """A bucket without some condition."""

    def __init__(self, bucket: Bucket, forgets: str) -> None:
        self._bucket = bucket
        self._forgets = forgets

    def __getattr__(self, name: str) -> object:
        return getattr(self._bucket, name)

    def create(self, name: str, data: bytes) -> str:
        if self._forgets == "create":
            self._bucket.replace(name, data)
            return self._bucket.get(name)[1]
        return self._bucket.create(name, data)

    def swap(self, name: str, data: bytes, tag: str) -> str:
        if self._forgets == "swap" or (self._forgets == "late" and data == b"late"):
            self._bucket.replace(name, data)
            return self._bucket.get(name)[1]
        return self._bucket.swap(name, data, tag)

    def get_other(self, name: str, tag: str) -> tuple[bytes, str] | None:
        return (
            self._bucket.get(name) if self._forgets == "get" else self._bucket.get_other(name, tag)
        )

    def get(self, name: str) -> tuple[bytes, str]:
        data, tag = self._bucket.get(name)
        return (b"another", tag) if self._forgets == "data" else (data, tag)


@pytest.mark.parametrize("forgets", ["create", "swap", "late", "get", "data"])
def test_a_server_without_a_condition_is_refused(bucket: Bucket, forgets: str) -> None:
    careless: Callable[..., object] = Careless
    with pytest.raises(ObjectStoreUnsafeError):
        Shared(careless(bucket, forgets)).workspace.create(name(), "tests")  # type: ignore[arg-type]
    assert list(bucket.list("")) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3://",
        "s3:///",
        "file:///tmp/x",
        "memory:///",
        "https://example.org/x",
        "gs://b/p",
        "/tmp/x",
    ],
)
def test_what_is_no_place_in_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(InvalidParamsError):
        open_bucket(url)


# -- the command -----------------------------------------------------------------------------------


def test_the_command_from_a_folder_to_a_folder(
    direct: Bucket, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: object, code: int = 0) -> dict[str, Any]:
        common = ("--json", "--state", str(tmp_path / "state"))
        assert command([*common, "workspace", *map(str, words)]) == code
        return dict(json.loads(capsys.readouterr().out))

    for name_ in ("source", "work", "out"):
        (tmp_path / name_).mkdir()
    (tmp_path / "source/a.txt").write_text("one\n")
    run("create", place)
    assert run("create", place, code=2)["error"]["code"] == "INVALID_PARAMS"
    assert run("import", place, tmp_path / "source")["files"] == 1
    assert run("checkout", place, tmp_path / "work")["number"] == 1
    (tmp_path / "work/b.txt").write_text("two\n")
    root = ("--root", tmp_path / "work")
    assert run("status", *root)["ours"] == ["b.txt"]
    assert run("sync", *root)["sent"] == ["b.txt"]
    run("export", place, tmp_path / "out")
    assert (tmp_path / "out/b.txt").read_text() == "two\n"
    if shutil.which("git") is not None:
        subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
        made = run("export", place, tmp_path / "bare", "--branch", "main")
        assert (made["files"], made["made"]) == (2, True)
        assert run("export", place, tmp_path / "bare", "--branch", "main")["made"] is False
        again = run("import", place, tmp_path / "bare", "--revision", "main")
        assert (again["files"], again["commit"]) == (2, made["commit"])
    assert run("check", place)["damaged"] == []
    assert run("gc", place)["removed"] == 0
    direct.replace("packs/" + next(direct.list("packs/")).name.rpartition("/")[2], b"?")
    assert len(run("check", place, code=1)["damaged"]) == 1
