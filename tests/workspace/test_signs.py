"""Changes that wait for a person because of what shows on them, whatever the file is called."""

# ruff: noqa: RUF001 - letters of other scripts are what this is about
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace


def write(workspace: Workspace, session: Session, path: str, text: str):
    with workspace.draft(session, "write_file") as draft:
        draft.write(draft.open(path), text)
        return workspace.submit(draft, f"write {path}")


@pytest.mark.parametrize(
    "text",
    [
        "if x != 'user\u202e \u2066// admin\u2069 \u2066':\n",
        "x = 1 \x1b[2K\x1b[1A# harmless\n",
        "import os\rimport sys\n",
        "p\u0430ss\n",
        "tag \U000e0041\n",
    ],
)
def test_text_that_hides_something_waits(
    workspace: Workspace, session: Session, root: Path, text: str
) -> None:
    (root / "a.py").write_text("x = 0\n")
    receipt = write(workspace, session, "a.py", text)
    assert (receipt.status, receipt.rule) == ("pending", "hidden characters")
    assert (root / "a.py").read_text() == "x = 0\n"


@pytest.mark.parametrize("text", ["жизнь\n", "naïve 😀\n", "می\u200cخواهم\n", "tab\tand\f\n"])
def test_honest_text_does_not_wait(workspace: Workspace, session: Session, text: str) -> None:
    assert write(workspace, session, "a.py", text).status == "applied"


def test_what_was_hidden_before_does_not_make_every_change_wait(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "colours.txt").write_text("\x1b[31mred\x1b[0m\nplain\n")
    receipt = write(workspace, session, "colours.txt", "\x1b[31mred\x1b[0m\nchanged\n")
    assert receipt.status == "applied"
    with workspace.draft(session, "patch_apply") as draft:
        source, target = draft.open_all(["colours.txt", "moved.txt"])
        draft.move(source, target, None)
        assert workspace.submit(draft, "move").status == "applied"


def test_a_new_name_that_looks_like_one_beside_it_waits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "config.txt").write_text("x\n")
    receipt = write(workspace, session, "sub/\u0441onfig.txt", "y\n")
    assert (receipt.status, receipt.rule) == ("pending", "look-alike names")
    assert write(workspace, session, "\u0441onfig.txt", "y\n").status == "applied"
    assert write(workspace, session, "sub/жизнь.txt", "y\n").status == "applied"
    assert write(workspace, session, "other/\u0441onfig.txt", "y\n").status == "applied"


def test_a_new_folder_that_looks_like_one_beside_it_waits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    for name in ("paypal", "dir\xa0x", "l\xfctt", "lu\u0308tt"):
        (root / "in" / name).mkdir(parents=True)
    for name in ("p\u0430ypal", "dir x"):
        receipt = write(workspace, session, f"in/{name}/deep/n.txt", "y\n")
        assert (receipt.status, receipt.rule) == ("pending", "look-alike names")
    for name in ("l\xfctt", "lu\u0308tt", "жизнь", "my files"):
        assert write(workspace, session, f"in/{name}/n.txt", "y\n").status == "applied"


def test_bytes_that_are_no_text_hide_nothing(
    workspace: Workspace, session: Session, root: Path
) -> None:
    with workspace.draft(session, "t") as draft:
        draft.put(draft.open("a.bin"), b"\0\xff\x1b")
        assert workspace.submit(draft, "bytes").status == "applied"
    with workspace.draft(session, "t") as draft:
        draft.put(draft.open("a.sh"), "echo é \u202e | sh # and more\n".encode() + bytes(9))
        assert workspace.submit(draft, "bytes").rule == "hidden characters"


@pytest.mark.parametrize(
    "path",
    ["~", "~/x", "-rf", "sub/-rf", "...", "*.txt", "a?b", "$(id).txt", "`id`", "CON", "sub/nul",
     "COM1", "a|b", " lead.txt", "trail.txt ", " "],
)  # fmt: skip
def test_a_new_name_that_programs_take_for_something_else_waits(
    workspace: Workspace, session: Session, root: Path, path: str
) -> None:
    receipt = write(workspace, session, path, "y\n")
    assert receipt.status == "pending"
    assert "names that trip programs" in receipt.rule
    (root / "sub").mkdir()
    (root / "sub" / "-old").write_text("x\n")
    assert write(workspace, session, "sub/-old", "y\n").status == "applied"


@pytest.mark.parametrize(
    "path",
    ["[slug].tsx", "$userId.tsx", "(group)/page.tsx", "Q&A.md", "don't.md", "a b.txt", "x~y",
     "+page.svelte", "@types/a.ts", "{{name}}/a.txt", "console.py", "aux.c", "~x", "a;b", "a-b", "..a", "a...b"],
)  # fmt: skip
def test_names_that_frameworks_and_people_use_do_not_wait(
    workspace: Workspace, session: Session, path: str
) -> None:
    assert write(workspace, session, path, "y\n").status == "applied"
