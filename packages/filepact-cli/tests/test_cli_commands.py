"""Each command in a real folder with a real journal: what it does, says and answers."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord
from filepact.store.sqlite import SqliteStore
from filepact_cli import main, render
from filepact_cli.context import login_name
from filepact_cli.screen import Terminal
from filepact_setup.editor_lines import editors
from tests.faces.command_line import declared
from tests.unprivileged import unprivileged
from tests.workspace.acting import delete

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine


def app(cli: CommandLine) -> str:
    return (cli.root / "src" / "app.py").read_text()


def edit(cli: CommandLine, old: str, new: str) -> str:
    """Make an edit; its operation's id."""
    receipt = cli.json("edit", "src/app.py", "--old", old, "--new", new)
    assert receipt["status"] == "applied"
    operation: str = receipt["operation"]
    return operation


def propose(cli: CommandLine, text: str) -> str:
    """What an agent leaves for a person in preview mode; the proposal's id."""
    workspace = open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview")
    session = Session("s", Actor("agent", "robot", "9"))
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open("proposed.txt"), text)
        receipt = workspace.submit(draft, "create proposed.txt")
    workspace.close()
    assert receipt.operation is not None
    return receipt.operation


# -- the object of a program --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        *(("log",), ("status",), ("doctor",), ("diff",), ("checkpoint", "one"), ("tour",)),
        *(("read", "src/app.py"), ("find", "*"), ("grep", "port"), ("tree",), ("setup",)),
        *(
            ("write", "n.txt", "--content", "n"),
            ("edit", "src/app.py", "--old", "80", "--new", "8"),
        ),
        *(("mkdir", "d"), ("mv", "src/app.py", "src/b.py"), ("rm", "src/app.py")),
        *(
            ("explain", "a", "--action", "write"),
            ("policy", "show"),
            ("policy", "lint"),
            ("policy", "test"),
        ),
        *(("policy", "grants"), ("config", "show"), ("config", "path"), ("completion", "fish")),
        *(("audit", "verify"), ("audit", "stats"), ("runs",), ("guard", "--status"), ("trust",)),
    ],
    ids=" ".join,
)
def test_help_names_the_fields_of_a_commands_object(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    cli("write", "first.txt", "--content", "first")
    found = json.loads(cli(*words, "--json").out)
    usual = declared(words, usual=True)
    if words == ("guard", "--status"):
        usual = {"root", "running"}  # of one that does not run
    assert found.keys() == usual


# -- looking ------------------------------------------------------------------------------------


def test_read_prints_numbered_lines_and_the_revision(cli: CommandLine) -> None:
    said = cli("read", "src/app.py")
    assert said.code == 0
    assert "1\u2502port = 80\n2\u2502host = 'a'\n" in said.out
    known = cli.json("read", "src/app.py", "--lines", "1", "--offset", "1", "--no-numbers")
    assert known["lines"] == ["host = 'a'"]
    assert known["total"] == 2
    assert known["text"].startswith("host = 'a'\n")


def test_read_gives_the_bytes_of_any_file(cli: CommandLine) -> None:
    (cli.root / "image").write_bytes(b"\x00\xff")
    assert cli("read", "image", "--base64").out == "AP8=\n"
    assert cli.json("read", "image", "--base64") == {"text": "AP8="}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("grep", "PORT"), 0),
        (("grep", "PORT", "-s"), 3),
        (("grep", "port", "windows.txt"), 3),
        (("grep", "SECRET", ".env"), 1),
        (("grep", "("), 2),
        (("find", "**/*.py"), 0),
        (("find", "*.rs"), 3),
        (("tree",), 0),
        (("tree", "missing"), 1),
        (("read", "missing"), 1),
        (("read", ".env"), 1),
        (("read", "../../etc/passwd"), 1),
    ],
)
def test_exit_codes_tell_found_from_nothing_from_refused(
    cli: CommandLine, words: tuple[str, ...], code: int
) -> None:
    said = cli(*words)
    assert said.code == code
    assert (said.err == "") == (code in (0, 3))
    assert ("error" in cli.json(*words, code=code)) == (code in (1, 2))


def test_searches_answer_their_findings_as_data(cli: CommandLine) -> None:
    found = cli.json("grep", "po.t", "-C", "1")
    assert found["total"] == 1
    assert [(line["number"], line["matched"]) for line in found["files"][0]["groups"][0]] == [
        (1, True),
        (2, False),
    ]
    assert cli("grep", "t", "-l").out.startswith("src/app.py\nwindows.txt\n")
    assert "src/app.py" in cli("grep", "t", "-c").out
    assert cli.json("find", "*.txt")["paths"] == ["windows.txt"]
    assert cli.json("tree", "--no-files")["directories"] == 1


# -- changing -----------------------------------------------------------------------------------


def test_edit_does_it_at_once_and_shows_the_diff(cli: CommandLine) -> None:
    said = cli("edit", "src/app.py", "--old", "port = 80", "--new", "port = 8080")
    assert said.code == 0
    assert said.out.startswith("Done: edit src/app.py, line 1.\nOperation c")
    assert "\n-port = 80\n+port = 8080\n" in said.out
    assert app(cli) == "port = 8080\nhost = 'a'\n"


def test_a_dry_run_changes_nothing(cli: CommandLine) -> None:
    receipt = cli.json("edit", "src/app.py", "--old", "80", "--new", "81", "--dry-run")
    assert receipt["status"] == "preview"
    assert receipt["operation"] is None
    assert "+port = 81\n" in receipt["diff"]
    assert app(cli) == "port = 80\nhost = 'a'\n"
    assert cli.json("log") == {"operations": []}


def test_edit_takes_its_texts_from_files_and_standard_input(
    cli: CommandLine, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"port = 80\n")
    said = cli("edit", "src/app.py", "--old-file", str(old), "--new-file", "-", stdin=b"port = 1\n")
    assert said.code == 0
    assert app(cli) == "port = 1\nhost = 'a'\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--old", "x"), "INVALID_PARAMS"),
        (("--new", "x"), "INVALID_PARAMS"),
        (("--old", "x", "--old-file", "y", "--new", "z"), "INVALID_PARAMS"),
        (("--old-file", "-", "--new-file", "-"), "INVALID_PARAMS"),
        (("--old-file", "missing", "--new", "z"), "NOT_FOUND"),
        (("--old-file", ".", "--new", "z"), "READ_ERROR"),
        (("--old-file", "-", "--new", "z"), "ENCODING_UNSAFE"),
        (("--old", "nowhere", "--new", "z"), "STRING_NOT_FOUND"),
        (("--old", "'", "--new", "z"), "AMBIGUOUS_MATCH"),
        (("--old", "80", "--new", "z", "--expect", "0123456789"), "STALE_FILE"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(
    cli: CommandLine, words: tuple[str, ...], error: str
) -> None:
    code = 2 if error == "INVALID_PARAMS" else 1
    problem = cli.json("edit", "src/app.py", *words, stdin=b"\xff", code=code)["error"]
    assert problem["code"] == error
    assert problem["message"]
    assert app(cli) == "port = 80\nhost = 'a'\n"


def test_errors_have_code_message_hint_and_details(cli: CommandLine) -> None:
    said = cli("read", ".env")
    first, second = said.err.splitlines()
    assert said.out == ""
    assert first.startswith("filepact: .env: protected by the rule")
    assert first.endswith(" [PATH_BLOCKED]")
    assert cli.json("read", ".env", code=1)["error"] == {
        "code": "PATH_BLOCKED",
        "message": first.removeprefix("filepact: ").removesuffix(" [PATH_BLOCKED]"),
        "hint": second,
        "details": {"path": ".env", "rule": "project secrets"},
    }


def test_write_takes_the_text_from_standard_input_or_an_option(cli: CommandLine) -> None:
    assert cli("write", "windows.txt", stdin=b"one\nnew\n").code == 0
    assert (cli.root / "windows.txt").read_bytes() == b"one\r\nnew\r\n"
    assert cli("write", "windows.txt", "--append", "--content", "more\n").code == 0
    assert (cli.root / "windows.txt").read_bytes() == b"one\r\nnew\r\nmore\r\n"
    assert cli("write", "windows.txt", "--append", "--content", "").code == 3
    assert cli("write", "a/b/c.txt", "--content", "x").code == 1
    assert cli("write", "a/b/c.txt", "--content", "x", "--create-dirs").code == 0


def test_a_patch_is_applied_and_taken_back(cli: CommandLine) -> None:
    patch = b"--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n-port = 80\n+port = 81\n host = 'a'\n"
    assert cli("patch", stdin=patch).code == 0
    assert app(cli).startswith("port = 81\n")
    (cli.root / "p").write_bytes(patch)
    assert cli("patch", "-R", "--file", "p", "src/app.py").code == 0
    assert app(cli).startswith("port = 80\n")


def test_folders_are_made_and_files_moved_and_removed_from_where_one_stands(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = app(cli)
    monkeypatch.chdir(cli.root / "src")
    assert cli("mkdir", "deep/er").code == 0
    assert (cli.root / "src" / "deep" / "er").is_dir()
    assert cli("mv", "app.py", "deep/main.py", "--dry-run").code == 0
    assert cli("mv", "app.py", "deep/main.py").code == 0
    assert (cli.root / "src" / "deep" / "main.py").read_text() == before
    assert cli("rm", "deep").code == 0
    assert not (cli.root / "src" / "deep").exists()
    for _ in range(3):
        assert cli.undo_own().code == 0
    assert app(cli) == before
    assert not (cli.root / "src" / "deep").exists()
    assert cli("rm", "missing").code == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("app.py/", "NOT_FOUND"),
        ("missing/../app.py", "NOT_FOUND"),
        ("missing/../../../outside", "NOT_FOUND"),
        ("../link/../src/app.py", "PATH_BLOCKED"),
        ("../../outside", "PATH_BLOCKED"),
    ],
)
def test_what_a_path_leads_to_is_decided_by_the_disk_and_not_by_its_text(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    (tmp_path / "outside").mkdir()
    (cli.root / "link").symlink_to(tmp_path / "outside")
    monkeypatch.chdir(cli.root / "src")
    assert cli.json("read", path, code=1)["error"]["code"] == code


def test_paths_count_from_the_present_folder(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    edit(cli, "80", "81")
    monkeypatch.chdir(cli.root / "src")
    assert cli.json("read", "app.py")["shown"] == "src/app.py"
    assert cli.json("read", "../windows.txt")["shown"] == "windows.txt"
    assert cli.json("read", str(cli.root / "src" / "app.py"))["shown"] == "src/app.py"
    assert len(cli.json("log", "app.py")["operations"]) == 1
    assert cli.json("find", "*")["paths"] == ["src/app.py"]
    monkeypatch.chdir(tmp_path)
    assert cli.json("read", "src/app.py", "--root", str(cli.root))["shown"] == "src/app.py"


# -- looking back -------------------------------------------------------------------------------


def test_the_log_of_nothing_says_so(cli: CommandLine) -> None:
    assert cli("log").out == "Nothing was done here yet.\n"
    assert cli.json("log") == {"operations": []}
    assert cli("diff").code == 3
    assert cli("undo", "--unattended").code == 3
    assert cli("checkpoints").out == "No checkpoint is set here.\n"
    assert cli("pending").out == "Nothing waits for you.\n"


def test_the_log_of_what_was_asked_tells_how_it_was_answered_and_by_whom(cli: CommandLine) -> None:
    assert cli("log", "--asked").out == "No agent has asked for anything here.\n"
    assert cli.json("log", "--asked") == {"asked": []}
    workspace = open_workspace([str(cli.root)], state_dir=str(cli.state))
    known = PermissionRecord(
        when=1_000.0,
        session=Session("s", Actor("agent", "robot", "9")),
        root=workspace.guard.roots[0].path,
        title="Edit\nit \u202e",
        action="write",
        files=(
            LoggedFile("src/app.py", 2, 1),
            LoggedFile("/etc/x"),
            LoggedFile("c"),
            LoggedFile("d"),
        ),
        verdict="allowed",
        by="person",
        how="allow_once",
        more=3,
    )
    workspace.asked.note(known)
    workspace.asked.note(replace(known, verdict="cancelled", by="", how="", title="", files=()))
    workspace.close()
    second, first = cli("log", "--asked").out.splitlines()
    assert "robot 9  allowed    Edit it \\u202e  (by person allow_once)  write src/app.py" in first
    assert first.endswith("src/app.py +2 -1, /etc/x, c and 4 more files")
    assert "cancelled  no title" in second
    assert "()" not in second
    told = cli.json("log", "--asked", "src", "--all")["asked"]
    assert [one["title"] for one in told] == ["Edit\nit \u202e"]
    assert told[0]["files"][0] == {"path": "src/app.py", "added": 2, "removed": 1}
    assert (told[0]["by"], told[0]["how"], told[0]["more"]) == ("person", "allow_once", 3)
    other = cli.root.parent / "other"
    other.mkdir()
    far = cli("--root", str(other), "--root", str(cli.root), "log", "--asked").out.splitlines()[1]
    assert f"write {cli.root}/src/app.py" in far


def test_the_log_has_one_line_for_each_operation_newest_first(cli: CommandLine) -> None:
    first = edit(cli, "80", "81")
    second = edit(cli, "81", "82")
    lines = cli("log").out.splitlines()
    assert [line.split()[0] for line in lines] == [second, first]
    assert all("  you  edit    src/app.py  +1 -1" in line for line in lines)
    assert [one["id"] for one in cli.json("log", "-n", "1")["operations"]] == [second]
    assert len(cli.json("log", "--all")["operations"]) == 2
    assert cli.json("log", "windows.txt")["operations"] == []
    known = cli.json("log")["operations"][1]
    assert known["actor"]["kind"] == "person"
    assert (known["added"], known["removed"]) == (1, 1)
    assert [one["path"] for one in known["files"]] == ["src/app.py"]


def test_show_says_everything_about_an_operation(cli: CommandLine) -> None:
    operation = edit(cli, "80", "81")
    text = cli("show", operation[:6]).out
    assert f"operation   {operation}\n" in text
    assert "tool        edit_file\n" in text
    assert "modify      src/app.py" in text
    assert text.endswith("-port = 80\n+port = 81\n host = 'a'\n")
    known = cli.json("show", operation)
    assert known["diff"].startswith("--- a/src/app.py\n")
    assert known["seq"] == 1
    assert cli("show", "czzzzzzzzzz").code == 1


def test_undo_and_redo_are_operations_that_can_be_previewed(cli: CommandLine) -> None:
    operation = edit(cli, "80", "81")
    assert cli.json("undo", "--dry-run")["status"] == "preview"
    assert app(cli).startswith("port = 81")
    taken_back = cli.json("undo", "--unattended", operation)
    assert app(cli).startswith("port = 80")
    line = cli("log").out.splitlines()[1]
    assert line.endswith("  (undone)")
    assert f"undone by {taken_back['operation']}" in cli("show", operation).out
    assert cli("undo", "--unattended").code == 3
    assert cli.json("undo", "--unattended", operation, code=3)["error"]["code"] == "NO_CHANGE"
    assert cli.json("redo", "--dry-run")["status"] == "preview"
    assert cli("redo", "--unattended").code == 0
    assert app(cli).startswith("port = 81")
    shown = cli("show", taken_back["operation"]).out
    assert f"of          {operation}\n" in shown


def test_undo_keeps_what_was_changed_since(cli: CommandLine) -> None:
    operation = edit(cli, "port = 80", "port = 81")
    (cli.root / "src" / "app.py").write_text("port = 81\nhost = 'a'\nextra\n")
    assert cli("undo", "--unattended", operation).code == 0
    assert app(cli) == "port = 80\nhost = 'a'\nextra\n"


def test_a_checkpoint_brings_everything_back(cli: CommandLine) -> None:
    made = cli.json("checkpoint", "before it")
    assert made["name"] == "before it"
    assert "filepact restore 'and again'" in cli("checkpoint", "and again").out
    edit(cli, "80", "81")
    cli("write", "new.txt", "--content", "x")
    assert [one["name"] for one in cli.json("checkpoints")["checkpoints"]] == [
        "before it",
        "and again",
    ]
    assert cli("checkpoints").out.startswith("before it  ")
    # All of that is the person's own, and stays unless they want it gone.
    refusal = cli.json("restore", "--unattended", "before it", code=3)["error"]
    assert "new.txt" in refusal["hint"]
    assert cli("restore", "before it", "--dry-run", "--all").code == 0
    assert (cli.root / "new.txt").exists()
    answer = cli("restore", "--unattended", "before it", "--all")
    assert answer.code == 0
    assert app(cli).startswith("port = 80")
    assert not (cli.root / "new.txt").exists()
    assert cli("restore", "--unattended", "before it", "--all").code == 3
    # It says how to go forward again.
    said = re.search(r"`filepact (redo \w+)`", answer.out)
    assert said
    assert cli(*said[1].split(), "--unattended").code == 0
    assert (cli.root / "new.txt").exists()
    assert cli("restore", "--unattended", "never").code == 1
    assert cli("checkpoint", "a/b").code == 2


# -- reviewing ----------------------------------------------------------------------------------


def test_a_proposal_is_listed_shown_and_approved(cli: CommandLine) -> None:
    proposal = propose(cli, "hello\n")
    text = cli("pending").out
    assert f"{proposal}" in text
    assert "robot 9  create  proposed.txt  +1 -0" in text
    assert cli.json("pending")["pending"][0]["rule"] == "preview mode"
    assert cli("diff", proposal).out.endswith("+hello\n")
    shown = cli("show", proposal).out
    assert f"proposal    {proposal}\n" in shown
    assert "waits for   preview mode\n" in shown
    assert cli.json("approve", "--unattended", proposal)["status"] == "applied"
    assert (cli.root / "proposed.txt").read_text() == "hello\n"
    assert cli("approve", "--unattended", proposal).code == 3
    assert "approved by" in cli("show", proposal).out


def test_a_proposal_is_rejected_with_a_reason(cli: CommandLine) -> None:
    proposal = propose(cli, "hello\n")
    assert (
        cli("reject", "--unattended", proposal[:7], "--reason", "not yet").out
        == f"Rejected {proposal}: not yet\n"
    )
    assert "reason      not yet\n" in cli("show", proposal).out
    assert cli("reject", "--unattended", proposal).code == 3
    other = propose(cli, "other\n")
    assert cli.json("reject", "--unattended", other)["state"] == "rejected"
    assert not (cli.root / "proposed.txt").exists()


# -- how things stand ---------------------------------------------------------------------------


def test_status_says_what_is_used_and_what_happened_last(cli: CommandLine) -> None:
    text = cli("status").out
    assert f"folder   {cli.root}" in text
    assert "last     nothing yet\n" in text
    operation = edit(cli, "80", "81")
    propose(cli, "x")
    known = cli.json("status")
    assert known["operations"] == 1
    assert known["pending"] == 1
    assert known["last"]["id"] == operation
    assert known["origin"] == "journal"
    assert known["roots"][0]["resolver"] in ("openat2", "walk")
    assert f"last     {operation}" in cli("status").out


def test_the_doctor_finds_nothing_wrong_in_a_new_place(cli: CommandLine) -> None:
    said = cli("doctor")
    assert said.code == 0, said.out
    known = cli.json("doctor")
    assert known["ok"] is True
    names = {one["name"] for one in known["checks"]}
    assert {"python", "apsw", "state folder", "journal", "root", "leftovers"} <= names


def test_the_doctor_says_what_a_folder_does_not_keep_of_a_file(cli: CommandLine) -> None:
    (found,) = (one for one in cli.json("doctor")["checks"] if one["name"] == "attributes")
    assert found["level"] == "ok"
    assert ("owner" in found["said"]) == bool(os.geteuid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_the_doctor_says_what_could_not_be_set_until_it_is(cli: CommandLine) -> None:
    session = Session("s", Actor("agent", "a"))
    theirs = cli.root / "theirs.txt"
    theirs.write_text("theirs\n")
    os.chown(theirs, 1234, -1)
    theirs.chmod(0o666)
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        delete(workspace, session, "theirs.txt")
        shutil.rmtree(cli.state / "removed", ignore_errors=True)  # macOS keeps none
        (told,) = unprivileged(partial(workspace.undo, session)).notes
        back = workspace.log(limit=1)[0].id

    def said() -> list[str]:
        checks = cli.json("doctor")["checks"]
        return [
            one["said"] for one in checks if one["name"] == "attributes" and back in one["said"]
        ]

    assert "its owner could not be set (1234, now 0)" in told
    assert said() == [f"{back}, theirs.txt: its owner could not be set (1234, now 0)"]
    os.chown(theirs, 1234, -1)
    assert said() == []


def test_the_doctor_says_what_to_do(cli: CommandLine) -> None:
    edit(cli, "80", "81")
    cli.state.chmod(0o750)
    (cli.root / ".filepact-lost.tmp").write_text("x")
    (cli.state / "rescued").mkdir(exist_ok=True)
    (cli.state / "rescued" / "text").write_text("x")
    said = cli("doctor")
    assert said.code == 0
    assert f"chmod 700 {cli.state}" in said.out
    levels = {one["name"]: one["level"] for one in cli.json("doctor")["checks"]}
    assert levels["state folder"] == levels["leftovers"] == levels["rescued texts"] == "warn"
    cli.state.chmod(0o777)
    assert cli("doctor").code == 1
    known = {one["name"]: one for one in cli.json("doctor", code=1)["checks"]}
    assert known["state folder"]["level"] == known["workspace"]["level"] == "fail"


def test_the_doctor_sees_a_damaged_journal(cli: CommandLine) -> None:
    edit(cli, "80", "81")
    (cli.state / "journal.db").write_bytes(b"no database at all, and long enough" * 100)
    known = {one["name"]: one for one in cli.json("doctor", code=1)["checks"]}
    assert known["workspace"]["level"] == "fail"
    assert known["workspace"]["next"]


def test_setup_prints_the_lines_for_editors_that_start_agents(cli: CommandLine) -> None:
    known = cli.json("setup", "acp", "--agent", f"{sys.executable} -m agent 'two words'")
    agent = [sys.executable, "-m", "agent", "two words"]
    command, after = known["command"], known["command"].index("acp")
    assert command[after + 1] == "--state"  # the folder that this very command was given
    assert command[after + 3 :] == ["--", *agent]
    settings = {one["host"]: one["settings"] for one in known["hosts"]}
    assert set(settings) == {"zed", "jetbrains", "emacs", "codecompanion", "avante"}
    for host in ("zed", "jetbrains"):
        (entry,) = json.loads(settings[host])["agent_servers"].values()
        assert [entry["command"], *entry["args"]] == known["command"]
        assert entry.get("type") == ("custom" if host == "zed" else None)
    without = [*command[: after + 3], "--no-editor-files", *command[after + 3 :]]
    quoted = [f'"{word}"' for word in without]
    assert f"({' '.join(quoted)})" in settings["emacs"]
    assert f"{{ {', '.join(quoted)} }}" in settings["codecompanion"]
    assert f"{{ {', '.join(quoted[1:])} }}" in settings["avante"]
    for nothing in ("'", ""):
        assert "INVALID_PARAMS" in cli("setup", "acp", "--agent", nothing).err


def test_the_lines_for_editors_in_the_documents_are_those_that_are_printed() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "acp-proxy.md"
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:json|elisp|lua)\n(.*?)\n```", text, flags=re.DOTALL)
    rest = ["acp", "--", "gemini", "--acp"]
    zed, jetbrains, *others = editors(["filepact"], rest, "gemini")
    assert blocks[2:5] == [one.settings for one in others]
    for block, host in zip(blocks, (zed, jetbrains), strict=False):
        (said,) = json.loads(block)["agent_servers"].values()
        (printed,) = json.loads(host.settings)["agent_servers"].values()
        assert said.keys() == printed.keys()
        assert said.get("type") == printed.get("type")
        assert [Path(word).name for word in said["args"]] == printed["args"]


# -- which folder -------------------------------------------------------------------------------


def test_the_root_is_the_nearest_that_makes_sense(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = cli.root / "src"
    monkeypatch.chdir(inner)

    def root(*words: str) -> tuple[str, str]:
        known = cli.json("status", *words)
        return known["roots"][0]["path"], known["origin"]

    assert root() == (str(inner), "this folder")
    (cli.root / ".git").mkdir()
    assert root() == (str(cli.root), "git")
    assert cli("write", "x", "--content", "x", "--root", str(inner)).code == 0
    assert root() == (str(inner), "journal")
    monkeypatch.setenv("FILEPACT_ROOT", str(cli.root))
    assert root() == (str(cli.root), "FILEPACT_ROOT")
    assert root("--root", str(inner)) == (str(inner), "--root")
    monkeypatch.setenv("FILEPACT_ROOT", os.pathsep.join([str(inner), str(cli.root)]))
    assert len(cli.json("status")["roots"]) == 2


def test_several_roots_can_be_used_at_once(cli: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    words = ("--root", str(cli.root), "--root", str(other))
    path = str(other / "x.txt")
    assert cli(*words, "write", path, "--content", "x").code == 0
    assert cli.json("log", *words)["operations"][0]["files"][0]["path"] == path
    assert cli.json("status", *words)["roots"][1]["path"] == str(other)


def test_the_state_folder_is_the_users_unless_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cli.json("status", "--state", str(tmp_path / "s2"))["state"] == str(tmp_path / "s2")
    monkeypatch.delenv("FILEPACT_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cli.json("status")["state"].startswith(str(tmp_path))


def test_a_state_folder_inside_the_root_is_refused(cli: CommandLine) -> None:
    said = cli("log", "--state", "state")
    assert said.code == 1
    assert "[STATE_ERROR]\n" in said.err


# -- what nobody expects ------------------------------------------------------------------------


def test_an_internal_error_is_one_line_without_a_traceback(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_name: str) -> object:
        raise RuntimeError("a secret")

    monkeypatch.setattr(main, "_function", broken)
    said = cli("log")
    assert said.code == 1
    assert said.err.startswith("filepact: RuntimeError")
    assert "[INTERNAL]\n" in said.err
    assert "FILEPACT_DEBUG=1" in said.err
    assert "a secret" not in said.err
    assert cli.json("log", code=1)["error"]["code"] == "INTERNAL"
    monkeypatch.setenv("FILEPACT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        cli("log")


def test_an_interruption_has_its_own_exit_code(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_name: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_function", interrupted)
    assert cli("log").code == 130


def give_up_contents(cli: CommandLine) -> None:
    store = SqliteStore(str(cli.state / "journal.db"))
    store.prune(keep_bytes=0, keep_seconds=-1_000.0)
    store.close()


def test_the_log_needs_no_contents(cli: CommandLine) -> None:
    edit(cli, "80", "81")
    give_up_contents(cli)
    assert cli("log").out.endswith("src/app.py  +1 -1\n")


def test_the_log_of_an_earlier_version_survives_contents_that_were_given_up(
    cli: CommandLine,
) -> None:
    edit(cli, "80", "81")
    database = apsw.Connection(str(cli.state / "journal.db"))
    database.execute("UPDATE operation SET added = NULL, removed = NULL")
    database.close()
    assert cli("log").out.endswith("src/app.py  +1 -1\n")
    give_up_contents(cli)
    assert cli("log").out.endswith("src/app.py\n")
    assert cli.json("log")["operations"][0]["added"] is None
    assert cli.json("diff", code=1)["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"), (86_400, "1d"), (-5, "0s")],
)
def test_ages_are_one_short_word(seconds: float, word: str) -> None:
    assert render.age(1_000_000.0 - seconds, 1_000_000.0) == word


def test_old_things_are_dated() -> None:
    assert render.age(0.0, 6_000_000.0) in ("1970-01-01", "1969-12-31")


def test_standard_input_is_read_as_it_is(cli: CommandLine) -> None:
    assert cli("write", "crlf.txt", stdin=b"a\r\nb\n").code == 0
    assert (cli.root / "crlf.txt").read_bytes() == b"a\r\nb\n"


def test_what_came_past_the_doors_is_named_in_the_log_and_can_be_undone(cli: CommandLine) -> None:
    workspace = open_workspace([str(cli.root)], state_dir=str(cli.state))
    workspace.external.snapshot()
    (cli.root / "src" / "app.py").write_text("other\n")
    (cli.root / "id_rsa").write_text("key\n")
    looked = workspace.external.detect(Session("s", Actor("agent", "robot", "9")))
    workspace.close()
    assert looked.operation is not None
    assert looked.lost is not None
    assert cli("log").out.count("1 file changed without filepact") == 2
    assert "none: without filepact" in cli("show", looked.operation.id).out
    assert "was not kept" in cli("show", looked.lost.id).out
    assert cli.json("show", looked.lost.id)["added"] == 0
    assert "id_rsa" in cli("diff", looked.lost.id).out
    undone = cli.json("undo", "--unattended", code=1)
    assert undone["status"] == "applied"
    [lost] = undone["left"]
    assert (lost["path"], lost["bytes"], lost["lost"]) == ("id_rsa", 4, True)
    assert (cli.root / "src" / "app.py").read_text() != "other\n"
    assert cli.json("undo", "--unattended", looked.lost.id, code=1)["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("now", ["src/app.py", "src", "nowhere", "/etc/hosts"])
@pytest.mark.parametrize("name", ["link", "./src/../link"])
def test_a_link_that_is_named_is_meant_itself_where_something_was_done_to_it(
    cli: CommandLine, now: str, name: str
) -> None:
    (cli.root / "link").symlink_to("before")
    text = (cli.root / "src/app.py").read_bytes()
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        workspace.external.snapshot()
        (cli.root / "src/app.py").write_text("other\n")
        (cli.root / "link").unlink()
        (cli.root / "link").symlink_to(now)
        workspace.external.detect(Session("s", Actor("agent", "robot", "9")))
    assert "1 file changed" not in cli("log", name).out
    assert cli("undo", "--unattended", name).code == 0
    assert os.readlink(cli.root / "link") == "before"
    assert (cli.root / "src/app.py").read_bytes() != text
    assert cli("redo", "--unattended", name).code == 0
    assert os.readlink(cli.root / "link") == now
    cli("undo", "--unattended", "src/app.py")
    assert (cli.root / "src/app.py").read_bytes() == text


def test_by_a_link_to_which_nothing_was_done_what_it_leads_to_is_meant(cli: CommandLine) -> None:
    (cli.root / "link").symlink_to("src/app.py")
    text = (cli.root / "src/app.py").read_bytes()
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        workspace.external.snapshot()
        (cli.root / "src/app.py").write_text("other\n")
        workspace.external.detect(Session("s", Actor("agent", "robot", "9")))
    assert "1 file changed" in cli("log", "link").out
    assert cli("undo", "--unattended", "link").code == 0
    assert (cli.root / "src/app.py").read_bytes() == text


@pytest.mark.parametrize(
    ("words", "named", "tool"),
    [
        (("write", "new/deep/a.txt", "--content", "x"), "--create-dirs", "createDirs"),
        (("read", "."), "filepact tree", "directory_tree"),
        (("edit", "none.txt", "--old", "a", "--new", "b"), "filepact write", "write_file"),
        (("edit", "twice.txt", "--old", "a", "--new", "b"), "--all", "replace_all"),
    ],
)
def test_hints_name_commands_and_their_options_and_no_tools_of_agents(
    cli: CommandLine, words: tuple[str, ...], named: str, tool: str
) -> None:
    (cli.root / "twice.txt").write_text("a\na\n")
    said = cli(*words)
    hint = cli.json(*words, code=1)["error"]["hint"]
    assert named in said.err
    assert named in hint
    assert tool not in said.err + hint


@pytest.mark.parametrize("columns", [70, 80, 120])
def test_no_line_of_a_list_is_wider_than_the_terminal(
    columns: int, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    (cli.root / ("deep/" * 20)).mkdir(parents=True)
    for name in ("deep/" * 20 + "long.txt", "\u65e5\u672c" * 30 + ".txt"):
        assert cli("write", name, "--content", "x\n").code == 0
    assert cli("mv", "src/app.py", "deep/app.py").code == 0
    assert cli.undo_own().code == 0
    screen = Terminal(io.BytesIO(), terminal=True, colour=False, json=False)
    for words in (["log"], ["log", "--turns"], ["status"], ["pending"]):
        answer = main.execute([*words, "--root", str(cli.root)], screen)
        assert answer is not None
        text = "".join(screen._render(span) for span in answer.spans)
        wide = columns if words != ["log", "--turns"] else max(columns, 80)
        assert max(map(render.width, text.splitlines())) <= wide, text


def test_a_list_says_what_was_done_to_which_files_and_names_what_is_gone(cli: CommandLine) -> None:
    patch = (
        "--- a/windows.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
        "--- a/src/app.py\n+++ b/src/app.py\n@@ -1 +1 @@\n-port = 80\n+port = 81\n"
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n"
    )
    (cli.root / "windows.txt").write_text("one\ntwo\n")
    assert cli("patch", stdin=patch.encode()).code == 0
    assert cli("mv", "new.txt", "old.txt").code == 0
    assert cli("rm", "old.txt").code == 0
    kinds = [" ".join(line.partition(" you ")[2].split()) for line in cli("log").out.splitlines()]
    assert kinds == [
        "delete old.txt +0 -1",
        "move new.txt -> old.txt",
        "change deletes windows.txt, new.txt (new), src/app.py +2 -3",
    ]


def test_an_agent_that_calls_itself_you_is_not_taken_for_the_person(cli: CommandLine) -> None:
    edit(cli, "80", "81")
    mine = render.by_whom(Actor("person", login_name()))
    assert mine == "you"
    assert render.by_whom(Actor("agent", "you")) == "agent you"
    assert render.by_whom(Actor("program", login_name())) != mine


def test_an_empty_standard_input_empties_no_file(cli: CommandLine) -> None:
    said = cli("write", "src/app.py", stdin=b"")
    assert (said.code, "[INVALID_PARAMS]" in said.err) == (2, True)
    assert app(cli) == "port = 80\nhost = 'a'\n"
    assert cli("write", "src/app.py", "--content", "").code == 0
    assert app(cli) == ""
