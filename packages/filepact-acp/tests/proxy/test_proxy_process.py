"""The agent's program: started, heard, and gone when the proxy is."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.faces.acp.proxy.rig import Rig
from tests.hostile.sweeps import often

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep)
apart = subprocess.Popen(sleep, start_new_session=True)
sys.stderr.write("x" * 3_000_000)
print(os.getpid(), child.pid, flush=True)
pids = (os.getpid(), child.pid, apart.pid)
print('{"jsonrpc":"2.0","method":"m","params":[%d,%d,%d]}' % pids, flush=True)
time.sleep(600)
"""


def start(tmp_path, *agent, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "filepact", "acp", "--state", str(tmp_path / "state"), "--", *agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def gone(pid):
    """Whether a process ends soon; one that waits to be reaped has ended."""
    for _ in range(400):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.025)
    return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_nothing_that_the_agent_started_is_left(tmp_path, how):
    # Nobody reads what the agent writes to its standard error, and it does not wait for that.
    with start(tmp_path, sys.executable, "-c", STUBBORN) as proxy:
        pids = json.loads(proxy.stdout.readline())["params"]
        if how is None:
            proxy.stdin.close()
        else:
            proxy.send_signal(how)
        assert all(gone(pid) for pid in pids)
        proxy.kill()


def test_the_proxy_ends_as_the_agent_does(tmp_path):
    with start(tmp_path, sys.executable, "-c", "print('{\"a\":1}'); raise SystemExit(5)") as proxy:
        out, _ = proxy.communicate(timeout=90)
        assert out == '{"a":1}\n'
        assert proxy.returncode == 5


def test_an_agent_that_is_ended_with_its_editor_leaves_the_status_that_a_shell_would_tell(tmp_path):
    agent = "import time; print('{\"a\":1}', flush=True); time.sleep(600)"
    with start(tmp_path, sys.executable, "-c", agent) as proxy:
        proxy.stdout.readline()
        proxy.stdin.close()
        assert proxy.wait(90) == 128 + signal.SIGTERM


def test_an_agent_that_cannot_be_started_is_said_with_the_next_step(tmp_path):
    with start(tmp_path, "no-such-agent") as proxy:
        _, said = proxy.communicate(timeout=90)
        assert proxy.returncode == 2
        assert "no-such-agent" in said
        assert "after `--`" in said


def test_a_settings_file_that_is_wrong_stops_everything(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "filepact.toml").write_text("nonsense = 1\n")
    command = [sys.executable, "-m", "filepact", "acp", "--config", str(config / "filepact.toml")]
    done = subprocess.run(
        [*command, "--state", str(tmp_path / "state"), "--", sys.executable, "-c", STUBBORN],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr


@pytest.mark.slow
def test_many_sessions_leave_nothing_open(tmp_path):
    with Rig(tmp_path, checked=False) as rig:
        rig.introduce()
        folder = f"/proc/{rig.process.pid}/fd"

        def use(number):
            place = tmp_path / "places" / str(number)
            place.mkdir(parents=True)
            (place / "a.txt").write_text("a\n")
            name = f"n{number}"
            rig.open(name, cwd=place)
            assert "result" in rig.read(place / "a.txt", sessionId=name)
            rig.editor.ask("session/close", {"sessionId": name})
            rig.agent.answer(rig.agent.request("session/close"), {})
            rig.editor.next()

        for number in range(20):
            use(number)
        before = len(os.listdir(folder))
        for number in range(20, often(200, 1000)):
            use(number)
        # Folders are looked at once more before they are let go of, which a machine that is busy
        # with other things does some time after they were closed.
        for _ in range(1_000):
            after = len(os.listdir(folder))
            if after <= before:
                break
            threading.Event().wait(0.02)
        assert after <= before
