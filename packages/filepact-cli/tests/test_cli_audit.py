"""The audit log as a person checks it and hands it on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine


def fill(cli: CommandLine, text: bytes = b"one\n") -> None:
    assert cli("write", "a.txt", stdin=text).code == 0
    assert cli("read", "a.txt").code == 0
    assert cli("read", "missing.txt").code == 1


def log(cli: CommandLine) -> Path:
    return cli.state / "audit" / "000000000001.jsonl"


def test_before_anything_was_recorded_there_is_nothing_to_check(cli: CommandLine) -> None:
    assert cli("audit", "verify").code == 3
    assert cli.json("audit", "verify", code=3)["sound"] is None
    for command in ("stats", "export"):
        assert cli("audit", command).code == 1


def test_a_log_is_checked_and_what_was_done_to_it_is_listed_with_its_place(
    cli: CommandLine,
) -> None:
    fill(cli)
    assert cli("audit", "verify").code == 0
    assert cli.json("audit", "verify")["sound"] is True
    log(cli).write_bytes(log(cli).read_bytes().replace(b"a.txt", b"b.txt", 1))
    assert cli("audit", "verify").code == 1
    found = cli.json("audit", "verify", code=1)
    assert found["sound"] is False
    assert found["problems"][0]["file"] == "000000000001.jsonl"
    assert found["problems"][0]["line"] > 1


def test_a_signed_head_that_was_kept_shows_a_log_that_was_cut_off(
    cli: CommandLine, tmp_path: Path
) -> None:
    fill(cli)
    kept = tmp_path / "heads.txt"
    kept.write_text(cli("audit", "sign").out, encoding="utf-8")
    assert cli.json("audit", "verify", "--heads", str(kept))["heads"] == 1
    (key,) = cli.json("audit", "verify")["keys"]
    assert cli("audit", "verify", "--heads", str(kept), "--key", key).code == 0
    assert cli("audit", "verify", "--key", key.replace("filepact", "another")).code == 2
    for file in (cli.state / "audit").iterdir():
        file.unlink()
    fill(cli, b"another\n")
    assert len(cli.json("audit", "verify", code=1)["problems"]) == 1
    assert len(cli.json("audit", "verify", "--heads", str(kept), code=1)["problems"]) == 2
    assert cli("audit", "verify", "--heads", str(tmp_path / "missing")).code == 2


def test_records_are_handed_on_as_they_are_and_as_ocsf_has_them(cli: CommandLine) -> None:
    fill(cli)
    lines = cli("audit", "export").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        json.loads(line) for line in log(cli).read_text().splitlines()
    ]
    events = cli.json("audit", "export", "--format", "ocsf")["records"]
    assert {one["class_uid"] for one in events} == {1001}
    assert [one["activity_id"] for one in events] == [1, 2]
    assert cli("audit", "export", "--agent", "nobody").code == 3
    assert cli("audit", "export", "--session", "cli-").code == 0
    assert cli("audit", "export", "--since", "1h").code == 0


def test_records_are_counted(cli: CommandLine) -> None:
    fill(cli)
    found = cli.json("audit", "stats")
    assert found["codes"] == {"OK": 2, "NOT_FOUND": 1}
    assert found["events"]["intent"] == 1
    assert found["tools"]["read_file"]["calls"] == 2
    assert max(map(len, cli("audit", "stats").out.splitlines())) <= 80


def test_who_wants_no_audit_log_has_none_to_sign(cli: CommandLine, tmp_path: Path) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text("[audit]\nenabled = false\n")
    fill(cli)
    assert cli("--config", str(settings), "audit", "sign").code == 1
