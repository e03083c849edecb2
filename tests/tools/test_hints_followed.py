"""Every refusal of an agent's tool says what to do next, and who does that gets on: a walk through the error codes."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import CODES
from filepact.tools.registry import CallContext
from filepact.values import dataclass
from tests.pictures import png

if TYPE_CHECKING:
    from pathlib import Path

CALL = CallContext(Session("s1", Actor("agent", "tester")))
MORE = "".join(f"line {number}\n" for number in range(40))

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A refusal, and what its hint says to do.

    Attributes:
        code: Of the refusal.
        call: What is refused.
        said: Words of the answer that name the next step.
        then: That step; the last of these calls has to be carried out.
        files: What there is; a folder ends with a slash.
        before: Calls before it.
        meanwhile: What another program does after those.
    """

    code: str
    call: Call
    said: str
    then: tuple[Call, ...]
    files: dict[str, bytes] = {}  # noqa: RUF012 - never changed
    before: tuple[Call, ...] = ()
    meanwhile: dict[str, bytes] = {}  # noqa: RUF012 - never changed


def read(path: str, **more: Any) -> Call:
    return "read_file", {"path": path, **more}


def edit(path: str, old: str, new: str, **more: Any) -> Call:
    return "edit_file", {"path": path, "old_string": old, "new_string": new, **more}


def write(path: str, content: str, **more: Any) -> Call:
    return "write_file", {"path": path, "content": content, **more}


def patch(text: str, **more: Any) -> Call:
    return "patch_apply", {"patch": text, **more}


def manage(action: str, path: str, **more: Any) -> Call:
    return "manage_files", {"action": action, "path": path, **more}


def past(action: str, **more: Any) -> Call:
    return "history", {"action": action, **more}


def envelope(body: str) -> str:
    return f"*** Begin Patch\n*** Update File: a.txt\n{body}*** End Patch\n"


A = {"a.txt": b"one\ntwo\nthree\n"}
TWICE = {"a.txt": b"x = 1\n\ny\nx = 1\n"}
HEAD = "--- a/a.txt\n+++ b/a.txt\n"

CASES = [
    Case("NOT_FOUND", read("src/a.txt:3"), "Did you mean a.txt", (read("a.txt"),), A),
    Case("NOT_FOUND", read("A/a.txt"), "Did you mean a.txt", (read("a.txt"),), A),
    Case("NOT_FOUND", edit("new.txt", "", "x"), "write_file", (write("new.txt", "x\n"),)),
    Case("NOT_FOUND", write("d/new.txt", "x"), "createDirs", (write("d/new.txt", "x", createDirs=True),)),
    Case("NOT_FOUND", write("d x/n.txt", "x"), "Did you mean d\\u00a0x/", (write("d\\u00a0x/n.txt", "x"),), {"d\u00a0x/x": b""}),
    Case("NOT_FOUND", read("gone/x.txt"), "search_files", (("search_files", {"pattern": "*.txt"}), read("a.txt")), A),
    Case("NOT_A_FILE", read("d"), "directory_tree", (("directory_tree", {"path": "d"}),), {"d/x": b"x\n"}),
    Case("NOT_A_FILE", ("search_files", {"pattern": "*", "directory": "a.txt"}), "read_file", (read("a.txt"),), A),
    Case("NOT_A_FILE", manage("move", "a.txt", to="d/"), "d/a.txt", (manage("move", "a.txt", to="d/a.txt"),), {**A, "d/x": b""}),
    Case("NOT_A_FILE", manage("move", "a.txt", to="d"), "d/a.txt", (manage("move", "a.txt", to="d/a.txt"),), {**A, "d/x": b""}),
    Case("FILE_TOO_LARGE", read("p.png"), "base64", (read("p.png", encoding="base64"),), {"p.png": png(9_000, 1)}),
    Case("FILE_TOO_LARGE", write("big.txt", "x" * 9_999_999, append=True), "smaller files", (write("next.txt", "x\n"),), {"big.txt": b"12\n"}),
    Case("FILE_TOO_LARGE", edit("big.txt", "12", "3"), "manage_files", (manage("delete", "big.txt"), write("big.txt", "3\n")), {"big.txt": b"12\n" * 3_500_000}),
    Case("FILE_TOO_LARGE", write("big.txt", "x\n", append=True), "manage_files", (manage("move", "big.txt", to="old.txt"), write("big.txt", "x\n")), {"big.txt": b"12\n" * 3_500_000}),
    Case("BINARY_FILE", read("raw"), "base64", (read("raw", encoding="base64"),), {"raw": b"\0\1\2\xff\xfe" * 50}),
    Case("BINARY_FILE", read("p.png"), "base64", (read("p.png", encoding="base64"),), {"p.png": png(3, 3)[:40]}),
    Case("ENCODING_UNSAFE", edit("l.txt", "plain", "\u65e5"), "cannot be written", (edit("l.txt", "plain", "day"),), {"l.txt": b"caf\xe9 tr\xe8s\nplain\n"}),
    Case("STRING_NOT_FOUND", edit("a.txt", "twoo", "2"), "Read the file", (read("a.txt"), edit("a.txt", "two", "2")), A),
    Case("STRING_NOT_FOUND", edit("a.txt", "if (a &lt; b)", "x"), "characters themselves", (edit("a.txt", "if (a < b)", "x"),), {"a.txt": b"if (a < b)\n"}),
    Case("STRING_NOT_FOUND", edit("a.txt", "1\u2502one\n3\u2502two", "x"), "line numbers out", (edit("a.txt", "one\ntwo", "x"),), A),
    Case("STRING_NOT_FOUND", edit("a.txt", "one\ntwo", "x"), "\\r", (edit("a.txt", "one\rtwo", "x"),), {"a.txt": b"one\rtwo\nthree\n"}),
    Case("AMBIGUOUS_MATCH", edit("a.txt", "x = 1", "x = 2"), "more of the lines", (edit("a.txt", "y\nx = 1", "y\nx = 2"),), TWICE),
    Case("AMBIGUOUS_MATCH", edit("a.txt", "x = 1", "x = 2"), "replace_all", (edit("a.txt", "x = 1", "x = 2", replace_all=True),), TWICE),
    Case("NO_CHANGE", edit("a.txt", "two", "two"), "different", (edit("a.txt", "two", "2"),), A),
    Case("NO_CHANGE", past("undo"), "action log", (past("log"),)),
    Case("NO_CHANGE", past("redo"), "action log", (past("log"), past("undo")), A, (edit("a.txt", "two", "2"),)),
    Case("NO_CHANGE", past("undo"), "action log", (past("log"), past("redo")), A, (edit("a.txt", "two", "2"), past("undo"))),
    Case("NOT_FOUND", past("diff"), "action log", (past("log"),)),
    Case("NOT_FOUND", past("undo", change="c2222222222"), "action log", (past("log"),)),
    Case("STALE_FILE", edit("a.txt", "two", "2"), "Read the file again", (read("a.txt"), edit("a.txt", "zwei", "2")), A, (read("a.txt"),), {"a.txt": b"one\nzwei\nthree\n"}),
    Case("STALE_FILE", write("m.txt", "x\n"), "Read the rest", (read("m.txt", offset=5), write("m.txt", "x\n")), {"m.txt": MORE.encode()}, (read("m.txt", lines=5),)),
    Case("STALE_FILE", write("a.txt", "x\n", expected_revision="0" * 12), "Read the file again", (read("a.txt"), write("a.txt", "x\n")), A),
    Case("STALE_FILE", manage("delete", "a.txt"), "Read the file again", (read("a.txt"), manage("delete", "a.txt")), A, (read("a.txt"),), {"a.txt": b"other\n"}),
    Case("PATCH_MALFORMED", patch("<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", path="a.txt"), "edit_file", (edit("a.txt", "two", "2"),), A),
    Case("PATCH_MALFORMED", patch("nothing"), "---", (patch(f"{HEAD}@@ -2 +2 @@\n-two\n+2\n"),), A),
    Case("PATCH_MALFORMED", patch(f"{HEAD}@@ -2 +2 @@\n-two\n+2\nthree\n+4\n"), "blank before context", (patch(f"{HEAD}@@ -2,2 +2,3 @@\n-two\n+2\n three\n+4\n"),), A),
    Case("PATCH_MALFORMED", patch(envelope("")), "@@", (patch(envelope("@@\n-two\n+2\n")),), A),
    Case("PATCH_CONTEXT_MISMATCH", patch(f"{HEAD}@@ -2 +2 @@\n-zwei\n+2\n"), "Read the file", (read("a.txt"), patch(f"{HEAD}@@ -2 +2 @@\n-two\n+2\n")), A),
    Case("PATCH_CONTEXT_MISMATCH", patch(envelope("@@ four\n+4\n")), "anchor", (patch(envelope("@@ three\n+4\n")),), A),
    Case("PATCH_CONTEXT_MISMATCH", patch(f"{HEAD}@@ -9,9 +9,1 @@\n+4\n"), "context", (patch(f"{HEAD}@@ -3 +3,2 @@\n three\n+4\n"),), A),
    Case("PATCH_AMBIGUOUS", patch(envelope("@@\n-x = 1\n+x = 2\n")), "", (patch(envelope("@@\n y\n-x = 1\n+x = 2\n")),), TWICE),
    Case("PATCH_ALREADY_APPLIED", patch(f"{HEAD}@@ -2 +2 @@\n-zwei\n+two\n"), "", (read("a.txt"),), A),
    Case("INVALID_PARAMS", ("read_file", {"file": "a.txt"}), "path", (read("a.txt"),), A),
    Case("INVALID_PARAMS", ("edit_file", {"path": "a.txt", "old_string": "two"}), "new_string", (edit("a.txt", "two", "2"),), A),
    Case("INVALID_PARAMS", manage("move", "a.txt"), "to", (manage("move", "a.txt", to="b.txt"),), A),
    Case("INVALID_PARAMS", edit("e.txt", "", "x"), "write_file", (write("e.txt", "x\n"),), {"e.txt": b""}),
    Case("INVALID_PARAMS", edit("a.txt", "", "x"), "next to which", (edit("a.txt", "two", "two\nx"),), A),
    Case("INVALID_PARAMS", read("a.txt", encoding="base64", column=3), "offset", (read("a.txt", encoding="base64", offset=3),), A),
    Case("INVALID_PARAMS", write("n.txt", "1\u2502one\n2\u2502two\n"), "leave out", (write("n.txt", "one\ntwo\n"),)),
    Case("INVALID_PARAMS", write("n.txt", "1\u2502one\n2\u2502two\n"), "edit_file", (write("n.txt", "x\n"), edit("n.txt", "x\n", "1\u2502one\n2\u2502two\n"))),
    Case("INVALID_PARAMS", edit("a.txt", "two", "\ud83d!"), "line 1, column 1", (edit("a.txt", "two", "\U0001f600!"),), A),
    Case("INVALID_PARAMS", manage("move", "a.txt", to="b.txt"), "another name", (manage("move", "a.txt", to="c.txt"),), {**A, "b.txt": b""}),
    Case("INVALID_PARAMS", patch("@@ -2 +2 @@\n-two\n+2\n"), "path", (patch("@@ -2 +2 @@\n-two\n+2\n", path="a.txt"),), A),
    Case("SEARCH_ERROR", ("grep", {"pattern": "f("}), "backslash before", (("grep", {"pattern": r"f\("}),), A),
    Case("SEARCH_ERROR", ("search_files", {"pattern": "../*"}), "**/*.ts", (("search_files", {"pattern": "**/*.ts"}),), A),
    Case("PATH_BLOCKED", read("../x"), "inside", (read("a.txt"),), A),
    Case("PATH_BLOCKED", read("file:///a.txt"), "plain path", (read("a.txt"),), A),
    Case("PATH_BLOCKED", write("a\u200b.txt", "x"), "can be seen", (write("b.txt", "x"),), A),
    Case("PATH_BLOCKED", read("a.txt\n"), "without it", (read("a.txt"),), A),
    Case("PATH_BLOCKED", read(".env"), "Work without this file", (read("a.txt"),), {**A, ".env": b"K=1\n"}),
    Case("PATH_BLOCKED", manage("delete", ".env"), "Ask the person", (read("a.txt"),), {**A, ".env": b"K=1\n"}),
]  # fmt: skip

ELSEWHERE = {
    "nothing is changed any more, or a person decides; the next step is not the agent's": {
        *("APPROVAL_REQUIRED", "UNATTENDED", "BELOW_AGENT", "USER_DENIED", "PROPOSAL_CHANGED"),
        *("PROPOSAL_EXPIRED", "PENDING_FULL"),
    },
    "of language servers, in test_server_hints and test_server_edits": {
        *("NEW_ERRORS", "NOT_JUDGED", "NO_SERVER", "SERVER_REFUSED", "NAMES_LEFT"),
    },
    "time, the system, a disk or a server is in the way": {
        *("TIMEOUT", "CANCELLED", "READ_ERROR", "WRITE_ERROR", "STATE_ERROR", "NO_THREADS"),
        *("SHUTTING_DOWN", "OUTCOME_UNKNOWN", "LOCALE_NOT_UTF8", "FOLDERS_UNKNOWN"),
    },
    "a mistake of filepact itself, in test_results_proven": {"RESULT_UNPROVEN"},
    "of the gateway, in its test_hints": {
        *("REQUEST_TOO_LARGE", "RATE_LIMITED", "TOO_MANY_CALLS", "SESSION_UNKNOWN"),
        *("OTHER_REQUEST", "UNAUTHORIZED", "FORBIDDEN"),
    },
    "of shared workspaces and their stores": {
        one for one in CODES if one.startswith(("SHARED_", "STORE_", "OBJECT_STORE_"))
    },
}
"""Codes that stand in no case here, and why."""


def test_every_code_has_a_case_or_a_reason_to_have_none() -> None:
    """A new code comes with what provokes it, and with what its hint leads to."""
    here = {case.code for case in CASES}
    elsewhere = set().union(*ELSEWHERE.values())
    assert here | elsewhere == set(CODES)
    assert not here & elsewhere


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{CASES.index(case)}")
def test_who_does_what_a_refusal_says_gets_on(tmp_path: Path, case: Case) -> None:
    root = tmp_path / "root"
    root.mkdir()

    def put(files: dict[str, bytes]) -> None:
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)

    put(case.files)
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box = open_toolbox(workspace, own=True)
        for name, sent in case.before:
            assert not box.call(name, sent, CALL).failed
        put(case.meanwhile)
        there = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        refused = box.call(*case.call, CALL)
        assert (refused.failed, refused.code) == (True, case.code), refused.text
        assert case.said in refused.text
        assert there == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for name, sent in case.then:
            done = box.call(name, sent, CALL)
        assert not done.failed, done.text
        assert "Waiting for a person" not in done.text
