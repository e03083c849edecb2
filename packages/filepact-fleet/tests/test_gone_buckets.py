"""A bucket that is closed, emptied and made anew under a gateway with several workers, on a real server."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from filepact_cli.main import run as command
from filepact_fleet.objects.bucket import open_bucket
from filepact_fleet.objects.repository import BucketWorkspace
from fleet_objects import name
from gateway_running import RunningGateway
from tests.faces.small_server import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from gateway_running import Client
    from tests.object_server import FaultProxy, ObjectServer

IN_FLIGHT = {"SHARED_GONE", "SHARED_DAMAGED", "SHARED_BUSY", "OUTCOME_UNKNOWN"}
"""With what a call may be refused while objects go one after the other."""


def said(client: Client, number: int = 0) -> set[str]:
    """The codes of calls that read, and of one that would make a file; several, so that each worker gets some."""
    calls = [client.call("read_file", path="a.txt") for _ in range(4)]
    calls += [client.call("directory_tree"), client.call("read_file", path="never.txt")]
    calls += [client.call("write_file", path=f"new{number}.txt", content="new\n")]
    return {one.text.partition(":")[0] for one in calls}


@pytest.mark.slow
def test_a_bucket_that_goes_under_a_gateway_loses_nothing_and_is_not_taken_for_empty(
    server: ObjectServer,
    proxy: FaultProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key, value in server.environment(proxy.port).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("filepact_fleet.objects.repository.probe", lambda _bucket: None)
    monkeypatch.setenv("FILEPACT_STATE_DIR", str(tmp_path / "state"))
    url = f"s3://tests/{name()}"
    files = tmp_path / "files"
    files.mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.txt").write_text("end\n")
    assert command(["workspace", "create", url]) == 0
    assert command(["workspace", "import", url, str(tmp_path / "old")]) == 0
    assert command(["workspace", "checkout", url, str(files)]) == 0
    words = [str(files), "--workers", "2"]
    gateway = RunningGateway(tmp_path, words)
    client = gateway.opened()
    assert "end" in client.call("read_file", path="a.txt").text

    # Access is taken away, and comes back.
    proxy.every = lambda _method, _path: 403
    assert said(client) == {"OBJECT_STORE_ERROR"}
    proxy.every = lambda _method, _path: None
    assert (files / "a.txt").read_text() == "end\n"

    # Objects go while many write.
    told: list[str] = []
    codes: Counter[str] = Counter()
    gone, ended = threading.Event(), threading.Event()
    late: set[str] = set()

    def write(number: int) -> None:
        writer, turn = gateway.opened(), 0
        while not ended.is_set():
            turn += 1
            token, after = f"{number}.{turn}", gone.is_set()
            text = {"old_string": "end\n", "new_string": f"{token}\nend\n"}
            answer = writer.call("edit_file", path="a.txt", **text).text
            if answer.startswith("Done"):
                told.append(token)
            codes[answer.partition(":")[0] if not answer.startswith("Done") else "done"] += 1
            if after:
                late.add(answer.partition(":")[0])
                return

    writers = [threading.Thread(target=write, args=(one,)) for one in range(4)]
    for one in writers:
        one.start()
    assert wait_for(lambda: len(told) >= 12)
    bucket = open_bucket(url)
    while found := list(bucket.list("")):
        for item in found:
            bucket.delete(item.name)
    gone.set()
    for one in writers:
        one.join(60)
    ended.set()
    assert late == {"SHARED_GONE"}
    assert set(codes) - {"done", "STALE_FILE", "STRING_NOT_FOUND"} <= IN_FLIGHT, codes
    lines = (files / "a.txt").read_text().splitlines()
    assert set(told) <= set(lines)
    assert len(set(lines)) == len(lines)
    assert said(client) == {"SHARED_GONE"}
    assert [one.name for one in bucket.list("") if one.name == "head"] == []

    # Another one is made at the place: neither this gateway nor the next takes it for that which was there.
    assert command(["workspace", "create", url]) == 0
    fresh = BucketWorkspace(bucket)
    assert said(client) == {"SHARED_GONE"}
    assert gateway.end() == 0
    gateway = RunningGateway(tmp_path, words)
    assert said(gateway.opened()) == {"SHARED_GONE"}
    assert (fresh.newest().number, fresh.files(fresh.newest())) == (0, {})
    assert (files / "a.txt").read_text().splitlines() == lines

    # What was done here is still told.
    assert gateway.end() == 0
    capsys.readouterr()
    assert command(["log", "--root", str(files), "--limit", "1"]) == 0
    operation = capsys.readouterr().out.split()[0]
    assert command(["show", operation, "--root", str(files)]) == 0
    assert "a.txt" in capsys.readouterr().out

    # A person says that what the folder has counts.
    assert command(["workspace", "import", url, str(files)]) == 0
    assert command(["workspace", "checkout", url, str(files)]) == 0
    gateway = RunningGateway(tmp_path, words)
    edit = {"old_string": "end\n", "new_string": "again\nend\n"}
    assert gateway.opened().call("edit_file", path="a.txt", **edit).text.startswith("Done")
    assert gateway.end() == 0
    assert sorted(fresh.files(fresh.newest())) == ["a.txt"]
