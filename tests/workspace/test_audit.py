"""The audit log of a workspace: nothing is changed, shown, refused or decided without a record."""

from __future__ import annotations

import json
import random
import string
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox
from filepact.config.settings import parse_settings
from filepact.domain.audit import AuditCheck
from filepact.domain.operation import Actor, Approval, AuditOptions, Session
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NotFoundError,
    PathBlockedError,
    StateFailedError,
)
from filepact.text.signed_note import split_notes
from filepact.tools.registry import CallContext
from tests.workspace.acting import delete, edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ada"), "looks right")


@pytest.fixture
def records(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """The records of some events, or of all."""

    def found(*events: str) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for file in sorted((tmp_path / "state" / "audit").glob("*.jsonl")):
            lines += [json.loads(line) for line in file.read_text().splitlines()]
        return [one for one in lines if not events or one["event"] in events]

    return found


def problems(workspace: Workspace) -> tuple[object, ...]:
    assert workspace.audit is not None
    check = AuditCheck()
    return check.end(workspace.audit.file.check(check, lambda _said: None)).problems


def test_a_change_is_written_down_before_and_after_it_with_what_the_file_was_and_is(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    (root / "a.txt").write_text("one\n")
    receipt = edit(workspace, session, "a.txt", "one", "two, and more")
    first, intent, outcome = records("start", "intent", "outcome")
    assert {"pid", "user", "machine", "policy"} <= first.keys()
    assert (intent["change"], outcome["change"]) == (receipt.operation, receipt.operation)
    assert (intent["tool"], intent["session"]["name"]) == ("edit_file", "tester")
    (file,) = intent["files"]
    assert (file["root"], file["path"]) == (str(root), "a.txt")
    assert (file["before"]["size"], file["after"]["size"]) == (4, 14)
    assert outcome["state"] == "applied"
    assert "two" not in json.dumps(records())
    assert not problems(workspace)


def test_creating_deleting_and_going_back_are_effects_as_any_other(
    workspace: Workspace, session: Session, records: Callable[..., list[dict[str, Any]]]
) -> None:
    write(workspace, session, "new.txt", "text\n")
    delete(workspace, session, "new.txt")
    workspace.undo(session)
    workspace.redo(session)
    kinds = [
        (one["kind"], sorted(one["files"][0].keys() & {"before", "after"}))
        for one in records("intent")
    ]
    assert kinds == [
        ("change", ["after"]),
        ("change", ["before"]),
        ("undo", ["after"]),
        ("redo", ["before"]),
    ]
    assert len(records("outcome")) == 4


def test_nothing_is_changed_that_cannot_be_written_down(
    open_here: Callable[..., Workspace], session: Session, root: Path, tmp_path: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    workspace = open_here()
    (tmp_path / "state" / "audit").write_text("in the way")
    with pytest.raises(StateFailedError) as caught:
        edit(workspace, session, "a.txt", "one", "two")
    assert caught.value.details["outcome"] == "not_applied"
    assert (root / "a.txt").read_text() == "one\n"
    assert not workspace.log()
    # Who only looks is not kept from it, and the next record says that some are missing.
    assert read(workspace, session, "a.txt") == "one\n"
    (tmp_path / "state" / "audit").unlink()
    edit(workspace, session, "a.txt", "one", "two")
    lines = (tmp_path / "state" / "audit" / "000000000001.jsonl").read_text()
    assert '"lost":1' in lines


def test_what_is_shown_and_what_is_refused_is_written_down(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    (root / "a.txt").write_text("one\n")
    (root / ".env").write_text("SECRET=1\n")
    read(workspace, session, "a.txt")
    read(workspace, session, "a.txt")
    for path in (".env", "../outside", "/etc/passwd"):
        with pytest.raises(PathBlockedError):
            read(workspace, session, path)
    shown = records("read")
    assert [one["path"] for one in shown] == [str(root / "a.txt")] * 2
    assert shown[0]["size"] == 4
    refused = records("refused")
    assert [one["asked"] for one in refused] == [".env", "../outside", "/etc/passwd"]
    assert {one["code"] for one in refused} == {"PATH_BLOCKED"}


def test_each_call_of_a_tool_is_written_down_with_its_end_and_its_time(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    (root / "a.txt").write_text("one\n")
    tools, context = open_toolbox(workspace), CallContext(session)
    tools.call("read_file", {"path": "a.txt"}, context)
    tools.call("read_file", {"path": "missing"}, context)
    tools.call("read_file", {"lines": "no number"}, context)
    tools.call("grep", {"pattern": "SomethingPrivate"}, context)
    tools.call("edit_file", {"path": "a.txt", "old_string": "x", "new_string": "y"}, context)
    calls = records("call")
    assert [(one["tool"], one.get("asked"), one["code"]) for one in calls] == [
        ("read_file", "a.txt", "OK"),
        ("read_file", "missing", "NOT_FOUND"),
        ("read_file", None, "INVALID_PARAMS"),
        ("grep", None, "OK"),
        ("edit_file", "a.txt", "STRING_NOT_FOUND"),
    ]
    assert all(one["ms"] >= 0 for one in calls)
    assert "SomethingPrivate" not in json.dumps(records())


def test_what_a_call_reads_is_written_down_before_its_end_in_one_chain(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    for number in range(230):
        (root / f"f{number}.txt").write_text(f"text {number}\n")
    toolbox = open_toolbox(workspace)
    call = CallContext(session, page=1_000_000)
    paths = [f"f{number}.txt" for number in range(230)]
    shown = toolbox.call("read_file", {"paths": paths}, call)
    assert "text 229" in shown.text
    told = [one["event"] for one in records("read", "call")]
    assert told == ["read"] * 230 + ["call"]
    before = [one["path"] for one in records("read")]
    assert before == [str(root / path) for path in paths]
    toolbox.call("read_file", {"path": "f0.txt"}, call)
    arguments = {"path": "f1.txt", "old_string": "text", "new_string": "word"}
    toolbox.call("edit_file", arguments, call)
    last = [one["event"] for one in records("read", "call", "intent", "outcome")][231:]
    assert last == ["read", "call", "intent", "outcome", "call"]
    assert not problems(workspace)


def test_calls_that_are_gathered_are_written_down_together_and_before_what_comes_after_them(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    (root / "a.txt").write_text("text\n")
    toolbox, call = open_toolbox(workspace), CallContext(session)
    settle = toolbox.gather_records()
    seen = lambda: [one["event"] for one in records("read", "call", "intent", "outcome")]  # noqa: E731 - of this test
    settle()
    for _ in range(3):
        toolbox.call("read_file", {"path": "a.txt"}, call)
    assert seen() == []
    settle()
    assert seen() == ["read", "call"] * 3
    toolbox.call("read_file", {"path": "a.txt"}, call)
    arguments = {"path": "a.txt", "old_string": "text", "new_string": "word"}
    toolbox.call("edit_file", arguments, call)
    # What is to be done is written down before it is; how it ended, before anybody is told.
    assert seen()[6:] == ["read", "call", "intent"]
    settle()
    settle()
    assert seen()[6:] == ["read", "call", "intent", "outcome", "call"]
    toolbox.call("read_file", {"path": "a.txt"}, call)
    assert workspace.audit is not None
    workspace.audit.close()
    assert seen()[11:] == ["read", "call"]
    assert not problems(workspace)


def test_gathered_calls_that_could_not_be_written_are_counted_as_lost(
    workspace: Workspace,
    session: Session,
    root: Path,
    tmp_path: Path,
    records: Callable[..., list[dict[str, Any]]],
) -> None:
    (root / "a.txt").write_text("text\n")
    (tmp_path / "state" / "audit").write_text("in the way")
    toolbox, call = open_toolbox(workspace), CallContext(session)
    settle = toolbox.gather_records()
    toolbox.call("read_file", {"path": "a.txt"}, call)
    toolbox.call("read_file", {"path": "a.txt"}, call)
    settle()
    (tmp_path / "state" / "audit").unlink()
    for _ in range(2):  # told once
        toolbox.call("read_file", {"path": "a.txt"}, call)
        settle()
    assert [one["lost"] for one in records() if "lost" in one] == [4]
    assert not problems(workspace)


def test_what_a_call_read_and_could_not_be_written_is_counted_as_lost(
    workspace: Workspace,
    session: Session,
    root: Path,
    tmp_path: Path,
    records: Callable[..., list[dict[str, Any]]],
) -> None:
    (root / "a.txt").write_text("text\n")
    (tmp_path / "state" / "audit").write_text("in the way")
    toolbox = open_toolbox(workspace)
    toolbox.call("read_file", {"path": "a.txt"}, CallContext(session))
    refused = toolbox.call("write_file", {"path": "b", "content": "x"}, CallContext(session))
    assert refused.code == "STATE_ERROR"
    assert not (root / "b").exists()
    (tmp_path / "state" / "audit").unlink()
    toolbox.call("read_file", {"path": "a.txt"}, CallContext(session))
    # A read and the ends of two calls; what was not begun did not happen.
    assert [one["lost"] for one in records() if "lost" in one] == [3]
    assert not problems(workspace)


def test_what_a_person_decides_is_written_down_with_who_did(
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
    records: Callable[..., list[dict[str, Any]]],
) -> None:
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    workspace = open_here("preview")
    first = edit(workspace, session, "a.txt", "one", "two").operation
    second = edit(workspace, session, "b.txt", "one", "two").operation
    assert first is not None
    assert second is not None
    workspace.approve(first, PERSON)
    workspace.reject(second, Approval(Actor("person", "ada"), "private reason"))
    assert [one["change"] for one in records("proposed")] == [first, second]
    (intent,) = records("intent")
    assert (intent["change"], intent["approved_by"]) == (first, "ada")
    (decided,) = records("decided")
    assert (decided["change"], decided["verdict"], decided["by"]) == (second, "rejected", "ada")
    assert "private reason" not in json.dumps(records())


def test_what_was_not_begun_or_not_proposed_is_told(
    open_here: Callable[..., Workspace],
    session: Session,
    root: Path,
    records: Callable[..., list[dict[str, Any]]],
) -> None:
    settings = parse_settings("[proposals]\ncount = 1\n", name="filepact.toml")
    workspace = open_here("preview", settings=settings)
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    edit(workspace, session, "a.txt", "one", "two")
    with pytest.raises(FilepactError):
        edit(workspace, session, "b.txt", "one", "two")
    (outcome,) = records("outcome")
    assert outcome["state"] == "not proposed"


def test_what_was_written_past_the_doors_is_written_down_when_it_is_found(
    workspace: Workspace, session: Session, root: Path, records: Callable[..., list[dict[str, Any]]]
) -> None:
    (root / "a.txt").write_text("one\n")
    workspace.external.snapshot()
    (root / "a.txt").write_text("from a shell\n")
    workspace.external.detect(session)
    (found,) = records("external")
    assert found["files"][0]["path"] == "a.txt"


def test_a_change_of_very_many_files_is_told_in_parts(
    workspace: Workspace, session: Session, records: Callable[..., list[dict[str, Any]]]
) -> None:
    with workspace.draft(session, "patch_apply") as draft:
        for target in draft.open_all([f"f{number}" for number in range(1_101)]):
            draft.write(target, "x\n")
        workspace.submit(draft, "many")
    parts = records("intent")
    assert [(one["part"], len(one["files"])) for one in parts] == [(1, 500), (2, 500), (3, 101)]
    assert not problems(workspace)


def test_no_secret_gets_into_it(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path
) -> None:
    dice = random.Random(7)
    letters = string.ascii_letters + string.digits
    planted = [
        *("ghp_" + "".join(dice.choices(letters, k=36)) for _ in range(40)),
        *(
            "AKIA" + "".join(dice.choices(string.ascii_uppercase + "234567", k=16))
            for _ in range(30)
        ),
        *("glpat-" + "".join(dice.choices(letters, k=20)) for _ in range(30)),
    ]
    tools = open_toolbox(workspace)
    for number, secret in enumerate(planted):
        context = CallContext(Session(f"s{number}", Actor("agent", f"bot {secret}", secret)))
        (root / "file.txt").write_text(f"token = {secret}\n")
        sent: list[tuple[str, dict[str, object]]] = [
            ("read_file", {"path": "file.txt"}),
            ("read_file", {"path": f"no/{secret}"}),
            ("grep", {"pattern": secret}),
            ("write_file", {"path": f"{secret}.txt", "content": secret}),
            ("edit_file", {"path": "file.txt", "old_string": secret, "new_string": f"x {secret}"}),
            ("read_file", {"path": f"../{secret}"}),
            ("read_file", {"path": 3, secret: secret}),
        ]
        for name, arguments in sent:
            tools.call(name, arguments, context)
        with suppress(FilepactError):
            read(workspace, context.session, f"{secret}.txt")
    said = (tmp_path / "state" / "audit" / "000000000001.jsonl").read_text()
    assert len(said) > 100_000
    assert [one for one in planted if one in said] == []


def test_heads_are_signed_now_and_then_and_kept_outside_as_well(
    open_here: Callable[..., Workspace], session: Session, tmp_path: Path
) -> None:
    outside = tmp_path / "heads.txt"
    settings = parse_settings(f'[audit]\nheads = "{outside}"\nsync = true\n', name="filepact.toml")
    workspace = open_here(settings=settings)
    assert workspace.audit is not None
    for _ in range(1_100):
        workspace.audit.called(session, "read_file", "a.txt", "OK", 0.001)
    write(workspace, session, "a.txt", "text\n")
    workspace.close()
    heads = split_notes(outside.read_text())
    assert heads
    check = AuditCheck((), heads)
    again = open_here()
    assert again.audit is not None
    found = check.end(again.audit.file.check(check, lambda _said: None))
    assert not found.problems
    assert found.kept == len(heads)
    assert found.signed > 1_000
    assert outside.stat().st_mode & 0o777 == 0o600


def test_old_files_are_given_up_and_the_log_says_so(
    open_here: Callable[..., Workspace],
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("filepact.workspace.audit._LARGEST", 400_000)
    settings = parse_settings("[audit]\nmegabytes = 1\n", name="filepact.toml")
    workspace = open_here(settings=settings)
    assert workspace.audit is not None
    for _ in range(6_000):
        workspace.audit.called(session, "read_file", "a.txt", "OK", 0.001)
    before = len(workspace.audit.file.files())
    workspace.close()
    again = open_here(settings=settings)
    assert again.audit is not None
    assert 1 < len(again.audit.file.files()) < before
    check = AuditCheck()
    found = check.end(again.audit.file.check(check, lambda _said: None))
    assert not found.problems
    assert found.first > 1


def test_without_it_nothing_is_written(
    open_here: Callable[..., Workspace], session: Session, tmp_path: Path
) -> None:
    workspace = open_here(
        settings=parse_settings("[audit]\nenabled = false\n", name="filepact.toml")
    )
    write(workspace, session, "a.txt", "text\n")
    assert workspace.audit is None
    assert not (tmp_path / "state" / "audit").exists()


def test_looking_back_leaves_no_trace(workspace: Workspace, tmp_path: Path) -> None:
    workspace.log()
    workspace.pending()
    workspace.close()
    assert not (tmp_path / "state" / "audit").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        "audit = 3",
        "[audit]\nenabled = 1",
        '[audit]\nheads = "here"',
        "[audit]\ndays = 0",
        "[audit]\nday = 1",
    ],
)
def test_a_wrong_setting_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidParamsError):
        parse_settings(f"{wrong}\n", name="filepact.toml")


def test_a_file_for_heads_that_cannot_be_written_keeps_nobody_from_work_and_is_told_who_signs(
    open_here: Callable[..., Workspace], session: Session, tmp_path: Path
) -> None:
    settings = parse_settings(f'[audit]\nheads = "{tmp_path}"\n', name="filepact.toml")
    workspace = open_here(settings=settings)
    write(workspace, session, "a.txt", "text\n")
    assert workspace.audit is not None
    with pytest.raises(StateFailedError):
        workspace.audit.sign()
    assert settings.audit == AuditOptions(heads=str(tmp_path))


def test_without_the_package_that_signs_the_log_goes_on_unsigned_and_who_asks_is_told(
    workspace: Workspace,
    session: Session,
    root: Path,
    records: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    (root / "a.txt").write_text("one\n")
    for _ in range(60):
        read(workspace, session, "a.txt")
    assert workspace.audit is not None
    with pytest.raises(NotFoundError):
        workspace.audit.sign()
    workspace.close()
    assert records("head") == []
    assert len(records("read")) == 60
