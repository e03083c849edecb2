"""Every refusal of the tools for files has at most 1,200 characters, however much was sent or is there."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import NotFoundError
from filepact.tools.answers import CallContext, TextFormat, failure
from filepact.workspace.pending import SessionEvent
from filepact_acp.errors import to_refusal
from filepact_diagnostics.envelope import CallSummary, in_envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.tools.registry import CallResult

MOST = 1_200
TOOLS = (
    *("read_file", "search_files", "grep", "directory_tree"),
    *("edit_file", "write_file", "patch_apply", "manage_files", "history"),
)
FEW = " word" * 60
LONG = "".join(f"line {number}{FEW}\n" for number in range(400))
HUGE = "x" * 100_000
DEEP = "/".join(letter * 200 for letter in "defghi")
NEAR = "near-" + "n" * 150
SENT: tuple[dict[str, Any], ...] = (
    {},
    {HUGE: 1},
    {f"key{number}": 1 for number in range(3_000)},
    *(
        {name: value}
        for name in (
            *("path", "paths", "pattern", "patch", "edits", "action", "lines", "content", "change"),
            *("old_string", "glob", "encoding", "max_results", "dry_run", "directory"),
        )
        for value in (HUGE, [HUGE] * 50, {"a": HUGE}, 10**400)
    ),
)
NAMES = (
    *(DEEP, f"{DEEP}/{'z' * 200}", HUGE, NEAR, f"{NEAR}-7", ".env", "bin.dat", "/etc/passwd"),
    *(
        "../" * 5_000,
        "a\0b",
        "q\n" * 3_000,
        "é" * 5_000,
        "small.js",
        "long.txt",
        "p1.txt/x/x",
        "文" * 80,
    ),
)


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., CallResult]]:
    tmp_path = tmp_path_factory.mktemp("refusals")
    root: Path = tmp_path / "root"
    (root / DEEP).mkdir(parents=True)
    (root / "long.txt").write_text(LONG)
    (root / "same.txt").write_text("same line\n" * 2_000)
    (root / "bin.dat").write_bytes(bytes(range(256)) * 100)
    (root / ".env").write_text("X=1\n")
    (root / "small.js").write_text("var a=1;" * 20_000)
    for number in range(200):
        (root / f"p{number}.txt").write_text(f"{number} x\n")
        (root / f"{NEAR}-{number}.txt").write_text("x\n")
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box = open_toolbox(workspace, own=True)

        def send(tool: str, session: str = "", **sent: Any) -> CallResult:
            named = session or f"s{os.urandom(4).hex()}"
            return box.call(tool, sent, CallContext(Session(named, Actor("agent", "tester"))))

        send.root = root  # type: ignore[attr-defined]
        yield send


def check(outcome: CallResult, code: str = "") -> None:
    assert outcome.failed
    assert len(outcome.text) <= MOST
    if code:
        assert outcome.code == code


@pytest.mark.parametrize("tool", TOOLS)
def test_of_arguments_that_are_none(call: Callable[..., CallResult], tool: str) -> None:
    for sent in SENT:
        outcome = call(tool, **sent)
        if outcome.failed:
            check(outcome)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_of_names_and_of_texts_that_are_not_there(
    call: Callable[..., CallResult], name: str
) -> None:
    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-no {HUGE}\n+y\n*** End Patch\n"
    unified = f"--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n no\n-x{HUGE}\n+y\n z\n"
    many = [{"old_string": f"no {number}{FEW}", "new_string": "y"} for number in range(500)]
    tries: tuple[tuple[str, dict[str, Any]], ...] = (
        ("read_file", {"path": name}),
        ("grep", {"path": name, "pattern": "("}),
        ("directory_tree", {"path": name}),
        ("search_files", {"directory": name, "pattern": "{" * 3_000}),
        ("edit_file", {"path": name, "old_string": f"no {HUGE}", "new_string": "y"}),
        ("edit_file", {"path": name, "old_string": LONG[:-99], "new_string": "y", "dry_run": True}),
        ("edit_file", {"path": name, "edits": many}),
        ("write_file", {"path": name, "content": "x", "expected_revision": "0" * 12}),
        ("write_file", {"path": name, "content": "x", "expected_revision": HUGE}),
        ("manage_files", {"action": "delete", "path": name, "expected_revision": "1" * 12}),
        ("manage_files", {"action": "move", "path": name, "to": name + "2" * 300}),
        ("patch_apply", {"patch": patch}),
        ("patch_apply", {"patch": unified}),
    )
    for tool, sent in tries:
        outcome = call(tool, **sent)
        if outcome.failed:
            check(outcome)


def test_of_edits_and_patches_that_do_not_fit(call: Callable[..., CallResult]) -> None:
    same = {"old_string": "same line\n", "new_string": "x\n"}
    check(call("edit_file", path="same.txt", **same), "AMBIGUOUS_MATCH")
    check(call("edit_file", path="same.txt", edits=[same] * 500), "AMBIGUOUS_MATCH")
    near = LONG[: len(LONG) // 2].replace("line 7 ", "line seven ")
    check(call("edit_file", path="long.txt", old_string=near, new_string="x"), "STRING_NOT_FOUND")
    for name in ("p{}.txt", f"gone-{NEAR}{{}}.txt"):
        parts = [
            f"*** Update File: {name.format(number)}\n@@\n-wrong {number}{FEW}\n+y\n"
            for number in range(200)
        ]
        check(call("patch_apply", patch=f"*** Begin Patch\n{''.join(parts)}*** End Patch\n"))
    hunks = "".join(f"@@\n-wrong {number}{FEW}\n+y\n" for number in range(200))
    for name, body in (("long.txt", hunks), ("same.txt", "@@\n-same line\n+y\n")):
        check(
            call(
                "patch_apply",
                patch=f"*** Begin Patch\n*** Update File: {name}\n{body}*** End Patch\n",
            )
        )
    check(call("patch_apply", patch=f"rubbish {FEW}\n" * 3_000), "PATCH_MALFORMED")
    check(call("history", action="diff", change=f"c{HUGE}"), "NOT_FOUND")


def test_of_files_that_somebody_changed(call: Callable[..., CallResult]) -> None:
    root: Path = call.root  # type: ignore[attr-defined]
    for name in ("long.txt", "same.txt"):
        assert not call("read_file", "reader", path=name).failed
    (root / "long.txt").write_text(LONG.replace("word", "other"))
    (root / "same.txt").write_text("same line\n" * 900 + "other\n" * 300)
    old = LONG.split("\n")[7]
    patch = f"*** Begin Patch\n*** Update File: long.txt\n@@\n-{old}\n+x\n*** End Patch\n"
    tries: tuple[tuple[str, dict[str, Any]], ...] = (
        ("write_file", {"path": "long.txt", "content": LONG.replace("line 7 ", "line seven ")}),
        ("edit_file", {"path": "long.txt", "old_string": old, "new_string": "x"}),
        ("patch_apply", {"patch": patch}),
        ("manage_files", {"action": "delete", "path": "long.txt"}),
        ("write_file", {"path": "same.txt", "content": "same line\n" * 1_999}),
    )
    for tool, sent in tries:
        check(call(tool, "reader", **sent), "STALE_FILE")


def test_the_next_step_is_kept_where_the_rest_is_cut() -> None:
    error = NotFoundError("m" * 5_000, hint="Do this next.")
    call = CallContext(Session("s", Actor("agent", "tester")))
    text = TextFormat().answer(call, error, ()).text
    assert len(text) <= MOST
    assert text.startswith("NOT_FOUND: m")
    assert text.endswith("\nDo this next.")
    # Where there is much to be told besides, it does not take the refusal's place.
    news = [SessionEvent(f"n{number}", "n" * 900) for number in range(20)]
    assert TextFormat().answer(call, error, news).text.startswith(text)
    both = NotFoundError("m" * 5_000, hint="h" * 5_000)
    assert len(TextFormat().answer(call, both, ()).text) <= MOST


LONG_ERROR = NotFoundError("m" * 5_000, hint="Do this next.")


def test_of_what_a_face_refuses_by_itself() -> None:
    outcome = failure(LONG_ERROR)
    check(outcome, "NOT_FOUND")
    assert outcome.text.endswith("\nDo this next.")


def test_of_the_envelope() -> None:
    answer = in_envelope(None, CallSummary(1.0, cancelled=False, timed_out=False), LONG_ERROR)
    error = answer["error"]
    assert len(error["message"]) + len(error["hint"]) <= MOST
    assert error["hint"] == "Do this next."


def test_of_the_agent_client_protocol() -> None:
    refusal = to_refusal(LONG_ERROR, "x", ())
    assert len(refusal.message) <= MOST
    assert refusal.message.endswith("\nDo this next.")
