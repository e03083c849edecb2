"""Folders of proxies that were killed go with the next start, and no others."""

import os
import socket
import tempfile

import pytest

from filepact_acp.proxy.tool_socket import ToolSocket


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_by_a_killed_one(temporary, name):
    folder = temporary / name
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(str(folder / "tools"))
    return folder


def age(*folders):
    for folder in folders:
        os.utime(folder, (1, 1))


def test_what_a_killed_proxy_left_is_cleared_up_and_nothing_else(temporary):
    living = ToolSocket(lambda *_: None)
    (of_the_living,) = temporary.iterdir()
    dead = left_by_a_killed_one(temporary, "filepact-tools-dead")
    starting = left_by_a_killed_one(temporary, "filepact-tools-starting")
    somebodys = left_by_a_killed_one(temporary, "filepact-tools-somebodys")
    (somebodys / "mine.txt").write_text("mine")
    link = temporary / "filepact-tools-link"
    link.symlink_to(somebodys)
    age(of_the_living, dead, somebodys)
    other = ToolSocket(lambda *_: None)
    kept = {one.name for one in temporary.iterdir()}
    assert dead.name not in kept
    assert {of_the_living.name, starting.name, somebodys.name, link.name} <= kept
    assert (somebodys / "mine.txt").exists()
    other.close()
    living.close()
