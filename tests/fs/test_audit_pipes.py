"""Signed heads go to a file, to notes of Git, or to a command, and what goes wrong there is told."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import AuditOptions
from filepact.errors import StateFailedError
from filepact.fs.audit_pipes import HeadPlace, open_appending, open_audit_pipes

if TYPE_CHECKING:
    from pathlib import Path

NOTE = b"a head\n"
COMMAND = """import sys
if sys.argv[-1] == "keep":
    open({file!r}, "ab").write(sys.stdin.buffer.read())
else:
    print(open({file!r}).read(), end="")
"""


def command(folder: Path) -> list[str]:
    program = folder / "keeps.py"
    program.write_text(COMMAND.format(file=str(folder / "kept")))
    return [sys.executable, "-I", str(program)]


def repository(folder: Path) -> str:
    subprocess.run(["git", "init", "-q", folder], check=True)
    return f"git:{folder}"


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize("kind", ["file", "git", "command"])
def test_a_head_is_kept_and_found_again(tmp_path: Path, kind: str, confined: bool) -> None:
    named = {
        "file": lambda: str(tmp_path / "heads"),
        "git": lambda: repository(tmp_path / "notes"),
        "command": lambda: command(tmp_path),
    }[kind]()
    with closing(HeadPlace(named)) as place:
        assert place.name.startswith(kind)
        if kind != "command":
            assert place.kept() == ""
        place.open(confined=confined)
        place.keep(NOTE)
        place.keep(NOTE)
        assert place.kept().count("a head") == 2
    # Without having been opened before, as by who only looks.
    assert HeadPlace(named).kept().count("a head") == 2
    HeadPlace(named).keep(NOTE)
    assert HeadPlace(named).kept().count("a head") == 3


@pytest.mark.parametrize("kind", ["file", "git", "command"])
def test_nothing_in_a_folder_that_agents_change_is_used(tmp_path: Path, kind: str) -> None:
    (tmp_path / "root").mkdir()
    inside = tmp_path / "root" / "x"
    named = {"file": str(inside), "git": f"git:{inside}", "command": [str(inside)]}[kind]
    place = HeadPlace(named, [str(tmp_path / "root")])
    place.open(confined=True)
    with pytest.raises(OSError, match="folder that agents change"):
        place.keep(NOTE)
    with pytest.raises(OSError, match="folder that agents change"):
        place.kept()
    assert not inside.exists()


@pytest.mark.parametrize("confined", [False, True])
def test_a_place_that_takes_nothing_is_told(tmp_path: Path, confined: bool) -> None:
    for named in (["/bin/false"], ["/nowhere/at/all"], f"git:{tmp_path / 'none'}"):
        with closing(HeadPlace(named)) as place:
            place.open(confined=confined)
            with pytest.raises(OSError):
                place.keep(NOTE)
            with pytest.raises(OSError):
                place.kept()
    missing = str(tmp_path / "no" / "heads")
    with closing(HeadPlace(missing)) as place:
        place.open(confined=confined)
        with pytest.raises(OSError):
            place.keep(NOTE)
        assert place.kept() == ""


def test_a_helper_that_has_ended_keeps_nothing(tmp_path: Path) -> None:
    with closing(HeadPlace(command(tmp_path))) as place:
        place.open(confined=True)
        assert place._helper is not None
        place._helper.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError):
            place.keep(NOTE)


def test_a_log_of_the_system_is_told_and_found_again_when_it_was_started_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    told = open_audit_pipes(AuditOptions(syslog=str(path)), ())
    assert told.keep("one") != ([], "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        assert told.keep("two") == ([], "")
        assert b"two" in log.recv(4_096)
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        assert told.keep("three") == ([], "")
        assert b"three" in log.recv(4_096)
    told.close()


def test_what_telemetry_goes_to_has_to_be_there(tmp_path: Path) -> None:
    pipes = open_audit_pipes(AuditOptions(telemetry=str(tmp_path / "spans")), ())
    assert pipes.spans is not None
    pipes.spans.close()
    pipes.close()
    with pytest.raises(StateFailedError):
        open_appending(str(tmp_path / "no" / "file"))
