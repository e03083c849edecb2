"""A session's writes start from what it was shown and what it wrote, not from what the disk has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.document import Revision
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError, ProposalChangedError
from filepact.tools.registry import CallContext, CallResult, Toolset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

    Tool = Callable[..., CallResult]

AGENT = Session("s1", Actor("agent", "tester"))
OTHER = Session("s2", Actor("agent", "another"))
LINES = [f"line {number}" for number in range(1, 41)]


def text(lines: list[str] = LINES, /, **changed: str) -> str:
    """The lines with some of them, such as ``line_3``, given another text."""
    new = {int(name.partition("_")[2]): value for name, value in changed.items()}
    return "".join(f"{new.get(number, line)}\n" for number, line in enumerate(lines, start=1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text(text())
    return folder


@pytest.fixture
def tool(workspace: Workspace) -> Tool:
    toolbox = open_toolbox(workspace)

    def call(name: str, path: str, /, session: Session = AGENT, **arguments: object) -> CallResult:
        return toolbox.call(name, {"path": path, **arguments}, CallContext(session))

    return call


def revision(outcome: CallResult) -> str:
    found = re.search(r"revision ([0-9a-f]{12})", outcome.text)
    assert found, outcome.text
    return found[1]


# -- after an edit that fits what is there now --------------------------------------------------------

VALUES = "v1 = 42\nv0 = 31\nv1 = 42\nv2 = 88\nv3 = 41\n"


def test_what_others_put_in_beside_an_edit_is_told_and_stays(
    workspace: Workspace, tool: Tool, root: Path
) -> None:
    (root / "a.txt").write_text(VALUES)
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(f"theirs()\nv3 = 41 # 88\n{VALUES}")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n+v1 = 42\n+v2 = 88\n+  new()\n v1 = 42\n v0 = 31\n"
        "-v1 = 42\n-v2 = 88\n-v3 = 41\n+other()\n*** End Patch\n"
    )
    said = open_toolbox(workspace).call("patch_apply", {"patch": patch}, CallContext(AGENT))
    assert not said.failed
    assert "+theirs()\n+v3 = 41 # 88\n" in said.text
    mine = "v2 = 88\n  new()\nv1 = 42\nv0 = 31\nother()\nmore()\n"  # without the first line
    assert not tool("write_file", "a.txt", content=mine).failed
    assert (root / "a.txt").read_text() == f"theirs()\nv3 = 41 # 88\n{mine}"


def test_what_stands_around_an_edit_and_was_not_shown_stays(tool: Tool, root: Path) -> None:
    tool("read_file", "a.txt")
    theirs = [*LINES[:3], "one", "two", "three", *LINES[3:]]
    (root / "a.txt").write_text(text(theirs))
    # It knows of this line by other means, and not of those beside it.
    assert not tool("edit_file", "a.txt", old_string="two\n", new_string="mine\n").failed
    said = tool("write_file", "a.txt", content=text([*LINES[:3], "mine", *LINES[3:]], line_9="x"))
    assert said.failed
    assert said.text.startswith("STALE_FILE: ")
    assert (root / "a.txt").read_text() == text(theirs).replace("two\n", "mine\n")


# -- after a merge --------------------------------------------------------------------------------


def test_a_second_write_of_the_old_view_keeps_the_persons_line(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's"))
    first = tool("write_file", "a.txt", content=text(line_15="first"))
    second = tool("write_file", "a.txt", content=text(line_15="first", line_19="second"))
    assert not first.failed
    assert not second.failed
    assert (root / "a.txt").read_text() == text(
        line_3="a person's", line_15="first", line_19="second"
    )


def test_a_write_after_an_edit_that_was_merged_keeps_the_persons_line(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's", line_15="theirs"))
    refused = tool("edit_file", "a.txt", old_string="line 15\n", new_string="mine\n")
    assert refused.code == "STALE_FILE"
    (root / "a.txt").write_text(text(line_3="a person's"))
    assert not tool(
        "edit_file", "a.txt", old_string="line 2\nline 3\n", new_string="two\nline 3\n"
    ).failed
    assert not tool("write_file", "a.txt", content=text(line_2="two", line_19="mine")).failed
    assert (root / "a.txt").read_text() == text(line_2="two", line_3="a person's", line_19="mine")


def test_who_reads_again_may_take_the_persons_line_back(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's"))
    tool("write_file", "a.txt", content=text(line_15="mine"))
    tool("read_file", "a.txt")
    answer = tool("edit_file", "a.txt", old_string="a person's", new_string="line 3")
    assert not answer.failed
    assert (root / "a.txt").read_text() == text(line_15="mine")


def test_the_revision_of_a_receipt_is_accepted_and_still_keeps_the_persons_line(
    tool: Tool, root: Path
):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's"))
    first = tool("write_file", "a.txt", content=text(line_15="first"))
    (file,) = first.receipt["files"]
    second = tool(
        "write_file",
        "a.txt",
        content=text(line_15="first", line_19="second"),
        expected_revision=file["after"],
    )
    assert not second.failed
    assert (root / "a.txt").read_text() == text(
        line_3="a person's", line_15="first", line_19="second"
    )


def test_a_change_that_a_person_approved_counts_as_the_sessions_own_text(
    tool: Tool, workspace: Workspace, root: Path
):
    (root / "Makefile").write_text(text())
    tool("read_file", "Makefile")
    waiting = tool("write_file", "Makefile", content=text(line_15="first"))
    assert waiting.receipt["status"] == "pending"
    (root / "Makefile").write_text(text(line_3="a person's"))
    person = Approval(Actor("person", "ann"))
    with pytest.raises(ProposalChangedError) as caught:
        workspace.approve(waiting.receipt["operation"], person)
    workspace.approve(str(caught.value.details["proposal"]), person)
    again = tool("write_file", "Makefile", content=text(line_15="second"))
    assert not again.failed, again.text
    workspace.approve(again.receipt["operation"], person)
    assert (root / "Makefile").read_text() == text(line_3="a person's", line_15="second")


# -- lines that were never shown ------------------------------------------------------------------


def test_a_whole_write_after_the_reading_of_a_part_is_refused_with_the_way_out(
    tool: Tool, root: Path
):
    read = tool("read_file", "a.txt", lines=5)
    content = text(LINES[:5]) + "one more\n"
    refused = tool("write_file", "a.txt", content=content)
    assert refused.code == "STALE_FILE"
    assert "6-40" in refused.text
    assert (root / "a.txt").read_text() == text()
    meant = tool("write_file", "a.txt", content=content, expected_revision=revision(read))
    assert not meant.failed
    assert (root / "a.txt").read_text() == content


def test_who_has_read_all_parts_may_write_the_whole(tool: Tool, root: Path):
    tool("read_file", "a.txt", lines=5)
    tool("read_file", "a.txt", offset=20)
    assert tool("write_file", "a.txt", content="new\n").code == "STALE_FILE"
    tool("read_file", "a.txt", offset=5, lines=15)
    assert not tool("write_file", "a.txt", content="new\n").failed
    assert (root / "a.txt").read_text() == "new\n"


def test_who_sends_the_lines_that_were_not_shown_knows_them(tool: Tool, root: Path):
    tool("read_file", "a.txt", lines=5)
    assert not tool("write_file", "a.txt", content=text(line_20="mine")).failed
    assert (root / "a.txt").read_text() == text(line_20="mine")


def test_a_line_that_was_cut_is_not_dropped_by_a_whole_write(tool: Tool, root: Path):
    long = "x" * 60_000
    (root / "long.txt").write_text(f"first\n{long}\nlast\n")
    shown = tool("read_file", "long.txt", numbers=False).text.split("\n")
    cut = shown[1]
    assert cut != long
    for line in (cut, long[:2_000]):
        answer = tool("write_file", "long.txt", content=f"first\n{line}\nlast one\n")
        assert answer.failed
    assert not tool("write_file", "long.txt", content=f"first\n{long}\nlast one\n").failed


def test_a_part_read_after_somebodys_change_does_not_hide_what_changed_elsewhere(
    tool: Tool, root: Path
):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's", line_30="theirs"))
    tool("read_file", "a.txt", offset=25)
    answer = tool("write_file", "a.txt", content=text(line_15="mine", line_30="theirs"))
    assert not answer.failed
    assert (root / "a.txt").read_text() == text(
        line_3="a person's", line_15="mine", line_30="theirs"
    )


def test_an_unread_file_is_overwritten_and_the_answer_says_so(tool: Tool, root: Path):
    answer = tool("write_file", "a.txt", content="new\n")
    assert "had not read" in answer.text
    assert "had not read" not in tool("write_file", "a.txt", content="newer\n").text
    (root / "empty.txt").write_text("")
    assert "had not read" not in tool("write_file", "empty.txt", content="new\n").text


def test_who_has_only_edited_a_file_may_write_it_as_if_unread(tool: Tool, root: Path):
    tool("edit_file", "a.txt", old_string="line 3\n", new_string="mine\n")
    assert not tool("write_file", "a.txt", content="new\n").failed
    assert (root / "a.txt").read_text() == "new\n"


def test_a_file_that_was_deleted_since_it_was_read_is_said_to_be_made_again(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    (root / "a.txt").unlink()
    answer = tool("write_file", "a.txt", content="new\n")
    assert not answer.failed
    assert "deleted since" in answer.text


# -- lines that grep printed ----------------------------------------------------------------------


def test_a_line_that_grep_printed_is_not_overwritten_when_somebody_changed_it(
    tool: Tool, root: Path
):
    tool("grep", "a.txt", pattern="line 15$")
    (root / "a.txt").write_text(text(line_15="a person's"))
    stale = tool("write_file", "a.txt", content=text(line_15="mine"))
    assert stale.code == "STALE_FILE"
    assert (root / "a.txt").read_text() == text(line_15="a person's")


def test_a_text_that_was_learned_by_grep_is_merged(tool: Tool, root: Path):
    tool("grep", ".", pattern="^line", max_results=100)
    (root / "a.txt").write_text(text(line_3="a person's"))
    answer = tool("write_file", "a.txt", content=text(line_15="mine"))
    assert not answer.failed
    assert (root / "a.txt").read_text() == text(line_3="a person's", line_15="mine")


def test_lines_around_a_match_count_and_names_alone_do_not(tool: Tool, root: Path):
    tool("grep", ".", pattern="line 15$", output_mode="files")
    tool("grep", ".", pattern="line 15$", output_mode="count")
    assert "had not read" in tool("write_file", "a.txt", content=text(), dry_run=True).text + (
        tool("write_file", "a.txt", content="new\n", dry_run=True).text
    )
    tool("grep", "a.txt", pattern="line 5$", context=4)
    assert tool("write_file", "a.txt", content=text(LINES[:9])).code == "STALE_FILE"


# -- names of folders -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sub/", "deep/sub/"])
def test_a_file_is_not_made_under_a_folders_name(tool: Tool, root: Path, name: str):
    answer = tool("write_file", name, content="", createDirs=True)
    assert answer.code == "NOT_A_FILE"
    assert not (root / "sub").exists()
    assert not (root / "deep").exists()


# -- files that may not be read -------------------------------------------------------------------

SECRET, GUESS = "KEY=SECRET\n", "KEY=WRONGS\n"


def answers(tool: Tool, **arguments: object) -> list[tuple[str, object]]:
    """What a right and a wrong guess are answered, each by a session of its own."""
    found = []
    for guess in (SECRET, GUESS):
        session = Session(guess, AGENT.actor)
        outcome = tool("write_file", ".env", session, content=guess, **arguments)
        found.append((re.sub(r"\bc[a-z0-9]{10}\b", "ID", outcome.text), outcome.failed))
        assert not any(file["before"] or file["after"] for file in _files(outcome))
    return found


def _files(outcome: CallResult) -> list[dict[str, object]]:
    return outcome.receipt["files"] if outcome.receipt else []


def test_a_guess_of_what_a_protected_file_holds_is_not_confirmed(
    tool: Tool, workspace: Workspace, root: Path
):
    (root / ".env").write_text(SECRET)
    (root / ".env").chmod(0o640)
    for arguments in (
        {"dry_run": True},
        {"dry_run": True, "expected_revision": _revision_of(root / ".env")},
        {"expected_revision": _revision_of(root / ".env")},
        {},
    ):
        first, second = answers(tool, **arguments)
        assert first == second
    assert (root / ".env").read_text() == SECRET
    same, other = workspace.pending()
    with pytest.raises(FilepactError) as caught:
        workspace.approve(same.id, Approval(Actor("person", "ann")))
    assert caught.value.code == "NO_CHANGE"
    assert workspace.diff(same) == ""
    assert "mode" not in workspace.diff(other)
    workspace.approve(other.id, Approval(Actor("person", "ann")))
    assert (root / ".env").read_text() == GUESS
    assert (root / ".env").stat().st_mode & 0o777 == 0o640


def test_guesses_one_after_the_other_are_not_confirmed_either(
    tool: Tool, workspace: Workspace, root: Path
):
    (root / ".env").write_text(SECRET)
    said = [
        tool("write_file", ".env", content=guess).receipt["status"]
        for guess in (GUESS, SECRET, GUESS, SECRET)
    ]
    assert said == ["pending"] * 4
    assert len(workspace.pending()) == 1


def _revision_of(path: Path) -> str:
    return Revision.of(path.read_bytes(), path.stat().st_mode & 0o777).short


# -- our own marks --------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [True, False])
def test_an_answer_of_read_file_is_not_written_back_with_what_was_added_to_it(
    tool: Tool, root: Path, numbers: bool
):
    shown = tool("read_file", "a.txt", numbers=numbers).text
    lines = shown.split("\n")
    assert tool("write_file", "a.txt", content=shown).code == "INVALID_PARAMS"
    assert tool("write_file", "copy.txt", content=shown + "\n").code == "INVALID_PARAMS"
    if numbers:
        without_footer = "\n".join(lines[:-1]) + "\n"
        assert tool("write_file", "a.txt", content=without_footer).code == "INVALID_PARAMS"
        assert tool("write_file", "one.txt", content=f"{lines[0]}\n").code == "INVALID_PARAMS"
    assert (root / "a.txt").read_text() == text()


def test_a_cut_line_is_not_written_into_a_new_file(tool: Tool, root: Path):
    (root / "long.txt").write_text("x" * 60_000)
    cut = tool("read_file", "long.txt", numbers=False).text.split("\n")[0]
    assert tool("write_file", "copy.txt", content=cut).code == "INVALID_PARAMS"
    assert not (root / "copy.txt").exists()


def test_a_text_that_only_speaks_of_such_marks_is_written(tool: Tool, root: Path):
    shown = tool("read_file", "a.txt").text
    about = f"# How it looks\n\n```text\n{shown}\n```\n\nlong lines end in [+3,007 characters]\n"
    assert not tool("write_file", "about.md", content=about).failed
    assert not tool("write_file", "about.md", content=about + "and so on\n").failed


def test_a_file_that_holds_such_marks_itself_may_be_written(tool: Tool, root: Path):
    shown = tool("read_file", "a.txt").text + "\n"
    (root / "golden.txt").write_text(shown)
    tool("read_file", "golden.txt")
    new = shown.replace("line 7\n", "line seven\n")
    assert not tool("write_file", "golden.txt", content=new).failed
    assert (root / "golden.txt").read_text() == new


# -- several agents behind one connection ---------------------------------------------------------


def test_a_text_made_before_another_agents_change_does_not_take_it_back(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    tool("edit_file", "a.txt", old_string="line 3\n", new_string="another's\n")
    stale = text(line_15="mine")
    refused = tool("write_file", "a.txt", content=stale)
    assert refused.code == "STALE_FILE"
    assert "another's" in refused.text
    assert (root / "a.txt").read_text() == text(line_3="another's")
    tool("read_file", "a.txt")
    now = text(line_3="another's", line_15="mine")
    assert not tool("write_file", "a.txt", content=now).failed
    assert (root / "a.txt").read_text() == now


def test_who_looked_again_may_take_a_change_back(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    tool("edit_file", "a.txt", old_string="line 3\n", new_string="another's\n")
    stale = text(line_15="mine")
    refused = tool("write_file", "a.txt", content=stale)
    assert refused.code == "STALE_FILE"
    tool("read_file", "a.txt")
    assert not tool("write_file", "a.txt", content=stale).failed
    assert (root / "a.txt").read_text() == stale


def test_the_named_revision_lets_an_earlier_text_stand(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    done = tool("edit_file", "a.txt", old_string="line 3\n", new_string="another's\n")
    (file,) = done.receipt["files"]
    stale = text(line_15="mine")
    assert not tool("write_file", "a.txt", content=stale, expected_revision=file["after"]).failed
    assert (root / "a.txt").read_text() == stale


def test_an_agent_that_writes_a_file_again_and_again_is_not_held_up(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    for content in (
        text(line_3="one"),
        text(line_3="two"),
        text(line_3="two", line_5="three"),
        text(line_3="two", line_5="four", line_9="five"),
        text(line_3="two", line_9="five"),
        text(),
    ):
        answer = tool("write_file", "a.txt", content=content)
        assert not answer.failed, answer.text
        assert (root / "a.txt").read_text() == content


@pytest.mark.parametrize("whole", [True, False])
def test_a_persons_line_is_taken_back_only_after_all_of_the_file_was_read_and_it_is_said(
    tool: Tool, root: Path, whole: bool
):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's"))
    tool("read_file", "a.txt", **({} if whole else {"lines": 5}))
    answer = tool("write_file", "a.txt", content=text(line_15="mine"))
    if whole:
        assert "takes back what somebody changed before you read a.txt" in answer.text
        assert "+a person's" in answer.text
    assert answer.code == ("" if whole else "STALE_FILE")
    assert (root / "a.txt").read_text() == (
        text(line_15="mine") if whole else text(line_3="a person's")
    )


def test_what_another_agent_of_the_session_has_changed_is_not_taken_back_after_a_reading(
    tool: Tool, root: Path
):
    tool("read_file", "a.txt")
    tool("edit_file", "a.txt", old_string="line 3\n", new_string="another's\n")
    tool("read_file", "a.txt")
    assert tool("write_file", "a.txt", content=text(line_15="mine")).code == "STALE_FILE"
    assert (root / "a.txt").read_text() == text(line_3="another's")


def test_whole_texts_that_one_agent_sends_take_back_what_it_sent_itself(tool: Tool, root: Path):
    first, second, third = text(line_3="tried"), text(line_5="5"), text(line_3="tried", line_9="9")
    for content in (first, second, third):
        answer = tool("write_file", "a.txt", content=content)
        assert not answer.failed, answer.text
        assert (root / "a.txt").read_text() == content


def test_who_alone_was_shown_a_file_may_take_back_what_it_wrote_whole(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    tried, other = text(line_3="tried"), text(line_15="other")
    assert not tool("write_file", "a.txt", content=tried).failed
    answer = tool("write_file", "a.txt", content=other)
    assert not answer.failed, answer.text
    assert (root / "a.txt").read_text() == other
    # If it was another agent's after all, which knew the text by another way, the answer has it.
    assert "+tried" in answer.text.split("---")[1]


@pytest.mark.parametrize("again", ["before", "between", "search"])
def test_a_file_that_was_shown_twice_may_be_known_to_two_agents(tool: Tool, root: Path, again: str):
    tool("read_file", "a.txt")
    if again == "search":
        tool("grep", ".", pattern="line 3")
    elif again == "before":
        tool("read_file", "a.txt")
    tried = text(line_3="tried")
    assert not tool("write_file", "a.txt", content=tried).failed
    if again == "between":
        tool("read_file", "a.txt")
    assert tool("write_file", "a.txt", content=text(line_15="other")).code == "STALE_FILE"
    assert (root / "a.txt").read_text() == tried


@pytest.mark.parametrize("between", ["read", "edit", "person"])
def test_what_another_agent_may_have_a_part_in_is_not_taken_back_by_whole_texts(
    tool: Tool, root: Path, between: str
):
    first, second, third = text(line_3="tried"), text(line_5="5"), text(line_3="tried", line_9="9")
    assert not tool("write_file", "a.txt", content=first).failed
    if between == "read":
        # Who reads may be another one, who then makes the second text.
        tool("read_file", "a.txt")
        assert not tool("write_file", "a.txt", content=second).failed
    elif between == "edit":
        assert not tool("write_file", "a.txt", content=second).failed
        done = tool("edit_file", "a.txt", old_string="line 15\n", new_string="another's\n")
        assert not done.failed, done.text
    else:
        assert not tool("write_file", "a.txt", content=second).failed
        (root / "a.txt").write_text(text(line_5="5", line_15="a person's"))
        tool("read_file", "a.txt", lines=4)
    held = (root / "a.txt").read_text()
    assert tool("write_file", "a.txt", content=third).code == "STALE_FILE"
    assert (root / "a.txt").read_text() == held


def test_what_one_session_knows_another_does_not(tool: Tool, root: Path):
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(text(line_3="a person's"))
    answer = tool("write_file", "a.txt", OTHER, content=text(line_15="mine"))
    assert "had not read" in answer.text
    assert (root / "a.txt").read_text() == text(line_15="mine")


# -- where several processes act for it -----------------------------------------------------------


def test_a_session_that_several_processes_act_for_knows_the_same_at_each(
    open_here: Callable[..., Workspace], root: Path
) -> None:
    shared = Session("s9", Actor("agent", "tester"), "gateway s9", shared=True)
    one, other = (open_toolbox(open_here()) for _ in range(2))

    def call(box: Toolset, name: str, **arguments: object) -> CallResult:
        return box.call(name, {"path": "a.txt", **arguments}, CallContext(shared))

    call(one, "read_file")
    call(other, "edit_file", old_string="line 40\n", new_string="line 40\nline 41\n")
    # What it wrote by one process is its own at the other as well, so that it can take it out again.
    assert not call(one, "write_file", content=text(line_1="1")).failed
    assert (root / "a.txt").read_text() == text(line_1="1")
    # What somebody else wrote is not lost, whichever process the session comes to.
    call(one, "read_file")
    (root / "a.txt").write_text(text(line_1="1", line_40="theirs"))
    assert not call(other, "write_file", content=text(line_1="mine")).failed
    assert (root / "a.txt").read_text() == text(line_1="mine", line_40="theirs")


# -- line ends and layout that were changed ---------------------------------------------------------


@pytest.mark.parametrize("step", ["a part is read", "an edit is made"])
@pytest.mark.parametrize("to", ["\n", "\r\n"])
def test_what_came_with_other_line_ends_is_not_known_before_it_is_shown(
    root: Path, tool: Tool, step: str, to: str
) -> None:
    other = "\n" if to == "\r\n" else "\r\n"
    (root / "a.txt").write_bytes(text().replace("\n", other).encode())
    tool("read_file", "a.txt")
    theirs = text(line_30="line 30, and one\nthat a person put in")
    (root / "a.txt").write_bytes(theirs.replace("\n", to).encode())
    mine: dict[str, str] = {}
    if step == "a part is read":
        tool("read_file", "a.txt", lines=4)
    else:
        mine["line_3"] = "LINE 3"
        tool("edit_file", "a.txt", old_string="line 2\nline 3\n", new_string="line 2\nLINE 3\n")
    tool("write_file", "a.txt", content=text(**mine, line_38="LINE 38"))
    held = text(**mine, line_30="line 30, and one\nthat a person put in", line_38="LINE 38")
    assert (root / "a.txt").read_bytes() == held.replace("\n", to).encode()


FIRST = "def a():\n    x = 1\n    y = 2\n    return x\n\n\ndef b():\n    z = 3\n    return z\n"
REWRITTEN = FIRST.replace("x = 1\n    y = 2", "x = 10").replace("z = 3", "x = 1\n    y = 2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FIRST.replace("\n", "\r\n"), REWRITTEN),
        (FIRST.replace("x = 1", "x = 1 "), REWRITTEN),
        (FIRST.replace("    ", "\t"), REWRITTEN),
        (FIRST.replace("2", "“2”"), REWRITTEN.replace("2", '"2"')),
    ],
    ids=["line ends", "trailing blanks", "tabs", "quotes"],
)
@pytest.mark.parametrize("several", [False, True])
def test_an_edit_is_not_made_in_a_twin_that_has_the_better_layout(
    root: Path, tool: Tool, before: str, after: str, *, several: bool
) -> None:
    (root / "a.txt").write_text(before, newline="")
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(after, newline="")
    old = "    x = 1\n    y = 2\n" if '"' not in after else '    x = 1\n    y = "2"\n'
    edit: dict[str, object] = {"old_string": old, "new_string": old.replace("x = 1", "x = 3")}
    more = {"old_string": "    return z\n", "new_string": "    return 2\n"}
    sent: dict[str, object] = {"edits": [edit, more]} if several else edit
    assert tool("edit_file", "a.txt", **sent).code == "STALE_FILE"
    assert (root / "a.txt").read_text() == after


@pytest.mark.parametrize("several", [False, True])
def test_an_edit_in_the_form_that_a_formatter_gave_a_file_is_made_there(
    root: Path, tool: Tool, *, several: bool
) -> None:
    (root / "a.txt").write_text(FIRST.replace("    ", "\t"))
    tool("read_file", "a.txt")
    (root / "a.txt").write_text(f"# new\n{FIRST}")
    edits = [{"old_string": "    y = 2\n    return x\n", "new_string": "    return x + 2\n"}]
    edits += [
        {"old_string": "    z = 3\n", "new_string": "    z = (\n        4\n    )\n"}
    ] * several
    tool("edit_file", "a.txt", edits=edits)
    held = f"# new\n{FIRST}".replace("    y = 2\n    return x\n", "    return x + 2\n")
    held = held.replace("z = 3", "z = (\n        4\n    )") if several else held
    assert (root / "a.txt").read_text() == held
