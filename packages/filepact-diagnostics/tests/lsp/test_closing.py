"""A pool that is closed while somebody still asks its servers."""

from __future__ import annotations

import os
import threading
from concurrent.futures import wait
from typing import TYPE_CHECKING

from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.fakes import SECONDS, fake

if TYPE_CHECKING:
    from pathlib import Path


def test_nobody_goes_on_waiting_for_a_server_that_will_not_be_started_again(
    tmp_path: Path,
) -> None:
    failing = fake({"fail_starts": 99, "notes": str(tmp_path / "notes")})
    pool = ServerPool(
        [failing], {"PATH": os.environ["PATH"]}, lambda name: name, pauses=(0.0, 20.0)
    )
    root = str(tmp_path)
    asked = pool.ask(root, {f"{root}/a.x": "wrong\n"}, {}, 60.0, patient=True)
    while not any(one.state == "waiting" for one in pool.status()):
        threading.Event().wait(0.02)
    pool.close()
    assert wait([asked], SECONDS).not_done == set()
    assert asked.cancelled()
