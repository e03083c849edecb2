"""The client's file system passes the whole conformance suite."""

import asyncio
import logging

import pytest

from filepact.acp import ClientFileSystem, check_client


@pytest.mark.slow
def test_the_clients_file_system_passes_every_check(tmp_path, caplog):
    files = ClientFileSystem(state_dir=str(tmp_path / "state"))
    with caplog.at_level(logging.CRITICAL):
        report = asyncio.run(check_client(files))
    files.close()
    assert report.failed() == ()
    assert report.count("passed") > 120
