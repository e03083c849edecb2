"""What a call may change is told by its words, before it runs."""

from __future__ import annotations

import pytest

from filepact_hooks.call_files import files_of
from filepact_hooks.tool_call import read_tool_call


@pytest.fixture
def told(root, workspace):
    for name in ("a.txt", "sub/b.log", "sub/.c.log", "sub/deep/d.log", ".git/config", "lib/x/y"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "link").symlink_to("a.txt")
    (root / "to sub").symlink_to("sub")

    def told(tool, home="", **given):
        found = files_of(read_tool_call(tool, given), workspace.guard, str(root), home)
        return (
            {one.path for one in found.files},
            {path for _, path in found.folders},
            found.sweeping,
        )

    return told


BY_LINK = {"to/new", "to/b.log", "sub/new", "sub/b.log"}
BY_OTHER = {"lib/to/new", "lib/to/b.log", "sub/new", "sub/b.log"}


@pytest.mark.parametrize(
    ("command", "files", "folders"),
    # One name too many does no harm: it is only looked at.
    [
        ("cat a.txt; ls sub", set(), set()),
        ("echo x > a.txt", {"a.txt"}, set()),
        ("echo x >> sub/new", {"sub/new"}, set()),
        ("rm -f a.txt missing", {"a.txt", "missing"}, set()),
        ("rm -r sub", set(), {"sub"}),
        ("rm -r .", set(), {"."}),
        ("rm sub/*.log", {"sub/b.log"}, set()),
        ("rm sub/.*.log", {"sub/.c.log"}, set()),
        ("rm */*.log", {"sub/b.log"}, set()),
        ("rm l??*", {"link"}, {"lib"}),
        ("rm {a,b}.txt", {"a.txt", "b.txt"}, set()),
        ("rm link", {"link"}, set()),
        ("rm 'to sub/b.log'", {"sub/b.log"}, set()),
        ("ln -s sub to; echo x > to/new; rm to/b.log", {"to", *BY_LINK}, set()),
        (
            "ln -sfn ../sub lib/to; echo x > lib/to/new; rm lib/to/b.log",
            {"lib/to", *BY_OTHER},
            set(),
        ),
        ("ln --symbolic sub to; rm -r to/deep", {"to", "to/deep"}, {"sub/deep"}),
        ("ln sub/b.log to; ln -s a b c; echo x > other", {"to", "c", "other"}, set()),
        ("cd sub && rm b.log", {"sub/b.log", "sub/sub/b.log"}, set()),
        ("mv lib other", {"other"}, {"lib"}),
        ("mv a.txt sub", {"a.txt", "sub/a.txt"}, set()),
        ("sed -i s/a/b/ a.txt", {"a.txt"}, set()),
        ("find sub -name '*.log' -delete", set(), {"sub"}),
        ("rm -r .git; echo x > .git/config", set(), set()),
        ("rm -r /somewhere/else ../root2 /elsewhere/*", set(), set()),
        ("echo x > ~/a.txt", {"~/a.txt"}, set()),
        ("rm " + "{a,b}" * 20, set(), set()),
    ],
)
def test_a_command_names_what_it_changes(told, command, files, folders):
    assert told("Bash", command=command) == (files, folders, False)


@pytest.mark.parametrize("verb", ["checkout main", "stash -u", "reset --hard", "clean -fd"])
def test_git_may_change_what_nobody_names(told, verb):
    assert told("Bash", command=f"git {verb}")[2]
    assert not told("Bash", command="git status")[2]


def test_a_tool_names_its_file_and_home_is_known(told, root):
    assert told("Write", file_path=str(root / "new/file"), content="x")[0] == {"new/file"}
    assert told("Read", file_path=str(root / "a.txt")) == (set(), set(), False)
    assert told("Bash", str(root), command="echo x > ~/a.txt")[0] == {"a.txt"}
    assert told("Write", file_path="a\0b", content="x")[0] == set()


def test_arguments_that_are_text_within_others_are_read_and_those_for_files_are_not(told):
    given = '{"cmd": "rm a.txt", "content": "{\\"command\\": \\"rm link\\"}"}'
    assert told("mcp__x__call", name="shell", arguments=given)[0] == {"a.txt"}
    assert "a.txt" in told("mcp__x__write", arguments='{"file_path": "a.txt"}')[0]


def test_of_very_many_names_some_are_told(told):
    files = told("Bash", command="rm " + " ".join(f"f{number}" for number in range(1_200)))[0]
    assert len(files) == 1_000


@pytest.mark.parametrize(
    "tool",
    # Each may be open for minutes, in which a person saves.
    [
        *("LSP", "StructuredOutput", "TeamCreate", "SendUserMessage", "ScheduleWakeup", "Sleep"),
        *("codebase_investigator", "complete_task", "update_topic", "lsp", "lsp_diagnostics"),
        *("request_user_input", "request_permissions", "wait", "ask_question", "stop_powershell"),
        *("AskQuestion", "SwitchMode", "CreatePlan", "Await", "todo_write"),
    ],
)
def test_what_asks_waits_plans_or_looks_changes_no_file(tool):
    given = {"filePath": "a.txt", "question": "Shall I write b.txt?", "seconds": 60}
    call = read_tool_call(tool, given)
    assert not call.open_ended
    assert {one.action for one in call.uses} <= {"read"}


def test_what_watches_a_program_is_a_command():
    call = read_tool_call("Monitor", {"command": "./watch > out.log", "description": "errors"})
    assert call.deed == "run"
    assert call.commands == ("./watch > out.log",)
