"""Random histories against a model: writes, edits, foreign saves, undo, redo, restore, restarts.

The model keeps what the files hold and, in the manner of an editor, what can be undone and
redone.  Every foreign save is on lines of its own, far from the ones the machine writes, so the
model can say exactly what an undo has to keep.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, StaleFileError
from tests.workspace.acting import edit, write

NAMES = st.sampled_from(["a.txt", "sub/b.txt", "c.md"])
WORDS = st.text(alphabet="abcä€\t ", min_size=1, max_size=8).map(lambda word: f"{word}\n")
ENDS = st.sampled_from(["\n", "\r\n"])

TAIL = "=== 1\n=== 2\n=== 3\n"
KEPT = 8  # earlier texts of a file that are looked at
FOREIGN = "---\nkept apart\n---\n"


class WorkspaceMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.scratch = Path(tempfile.mkdtemp())
        self.base = self.scratch / "root"
        self.base.mkdir()
        self.session = Session("s1", Actor("agent", "machine"))
        self.open()
        # What filepact wrote, by path, at each step that can be undone; and what can be redone.
        self.past: list[dict[str, bytes]] = [{"a.txt": TAIL.encode()}]
        (self.base / "a.txt").write_bytes(TAIL.encode())
        self.future: list[dict[str, bytes]] = []
        # What somebody else appended, by path; it stays whatever is undone.
        self.foreign: dict[str, bytes] = {}
        # What filepact had written at each checkpoint.
        self.marks: list[dict[str, bytes]] = []
        # The texts of each file that the session may hold one of, the newest last.
        self.texts: dict[str, list[str]] = {}
        # The files that the session has written whole, and that nothing else has changed since.
        self.whole: set[str] = set()

    def open(self) -> None:
        self.workspace = open_workspace(
            [str(self.base)], state_dir=str(self.scratch / "state"), mode="auto"
        )

    def expect(self) -> dict[str, bytes]:
        return {name: data + self.foreign.get(name, b"") for name, data in self.past[-1].items()}

    def step(self, name: str, data: bytes) -> None:
        self.past.append(self.past[-1] | {name: data})
        self.future.clear()
        self.note()

    def note(self) -> None:
        """Remember what the files hold now."""
        for name, data in self.past[-1].items():
            texts = self.texts.setdefault(name, [])
            if (text := data.decode()) not in texts[-1:]:
                texts.append(text)
                self.whole.discard(name)

    @rule(name=NAMES, lines=st.lists(WORDS, min_size=1, max_size=6))
    def write(self, name: str, lines: list[str]) -> None:
        if name in self.foreign:
            return
        data = "".join(lines) + (TAIL if name == "a.txt" else "")
        present = self.past[-1].get(name)
        try:
            receipt = write(self.workspace, self.session, name, data)
        except StaleFileError as refusal:
            assert (self.base / name).read_bytes() == present
            if name not in self.whole and "have not been shown" in refusal.message:
                return  # It has been shown a part of the file, by an edit for example.
            # Somebody may have made it from an earlier text of this file.
            *earlier, now = self.texts[name]
            assert any(_may_be_from(data, one, now) for one in earlier[-KEPT:] if one != now)
            return
        if receipt.status == "unchanged":
            return
        now = (self.base / name).read_bytes()
        assert now.replace(b"\r\n", b"\n") == data.encode()
        if present is None:
            assert now == data.encode()
        self.step(name, now)
        self.whole.add(name)

    @rule(name=NAMES, word=WORDS)
    def edit(self, name: str, word: str) -> None:
        present = self.past[-1].get(name)
        if present is None:
            return
        first = present.split(b"\n", 1)[0].rstrip(b"\r").decode()
        if not first or (present + FOREIGN.encode()).decode().count(first) != 1:
            return
        if word.rstrip("\n") == first:
            return
        edit(self.workspace, self.session, name, first, word.rstrip("\n"))
        whole = name in self.whole
        self.step(name, present.replace(first.encode(), word.rstrip("\n").encode(), 1))
        self.whole |= {name} if whole else set()

    @rule(name=NAMES, end=ENDS)
    def somebody_else_appends(self, name: str, end: str) -> None:
        present = self.past[-1].get(name)
        # Only where no undo would remove the file: that is refused, see below.
        if present is None or name in self.foreign or name not in self.past[0]:
            return
        text = FOREIGN.replace("\n", end).encode()
        self.foreign[name] = text
        with (self.base / name).open("ab") as stream:
            stream.write(text)

    @precondition(lambda self: len(self.past) > 1)
    @rule()
    def undo(self) -> None:
        self.workspace.undo(self.session, dry_run=False)
        self.future.append(self.past.pop())
        self.note()

    @precondition(lambda self: bool(self.future))
    @rule()
    def redo(self) -> None:
        self.workspace.redo(self.session, dry_run=False)
        self.past.append(self.future.pop())
        self.note()

    @precondition(lambda self: len(self.past) == 1)
    @rule()
    def nothing_to_undo(self) -> None:
        with pytest.raises(FilepactError) as caught:
            self.workspace.undo(self.session, dry_run=False)
        assert caught.value.code == "NO_CHANGE"

    @precondition(lambda self: not self.future)
    @rule()
    def nothing_to_redo(self) -> None:
        with pytest.raises(FilepactError) as caught:
            self.workspace.redo(self.session, dry_run=False)
        assert caught.value.code == "NO_CHANGE"

    @rule()
    def checkpoint(self) -> None:
        self.workspace.checkpoint(f"mark {len(self.marks)}")
        self.marks.append(self.past[-1])

    @precondition(lambda self: bool(self.marks))
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.marks) - 1))
        if self.marks[number] == self.past[-1]:
            with pytest.raises(FilepactError) as caught:
                self.workspace.restore(self.session, f"mark {number}")
            assert caught.value.code == "NO_CHANGE"
            return
        now = self.past[-1]
        self.workspace.restore(self.session, f"mark {number}")
        self.past[-1] = self.marks[number]
        self.note()
        # It is an undo of all of it, which one redo takes back; what could be redone before still can.
        self.workspace.redo(self.session)
        self.past[-1] = now
        self.note()

    @precondition(lambda self: len(self.past) > 1)
    @rule()
    def undo_spares_what_somebody_else_wrote(self) -> None:
        old, new = self.past[-2:]
        changed = [name for name in new if new[name] != old.get(name)]
        if not changed:
            return
        name = next((one for one in changed if _taken(new[one], old.get(one))), changed[0])
        path = self.base / name
        saved = path.read_bytes()
        path.write_bytes(b"mine, all of it")
        try:
            self.workspace.undo(self.session, dry_run=False)
        except StaleFileError:
            assert path.read_bytes() == b"mine, all of it"
        else:
            # One that only adds lines takes nothing of what somebody else wrote, and may be done.
            assert not _taken(new[name], old.get(name))
            assert b"mine, all of it" in path.read_bytes()
            self.workspace.redo(self.session, dry_run=False)
            assert path.read_bytes() == b"mine, all of it"
            # The session has been shown what somebody else wrote, which is gone below.
            path.write_bytes(saved)
            self.restart()
        path.write_bytes(saved)

    @rule()
    def restart(self) -> None:
        self.workspace.close()
        self.open()
        self.texts.clear()
        self.whole.clear()
        self.note()

    @invariant()
    def the_disk_is_what_the_model_says(self) -> None:
        on_disk = {
            str(file.relative_to(self.base)): file.read_bytes()
            for file in self.base.rglob("*")
            if file.is_file()
        }
        expected = self.expect()
        assert on_disk == expected, f"the disk has {on_disk}, the model {expected}"

    def teardown(self) -> None:
        if hasattr(self, "workspace"):
            self.workspace.close()
            shutil.rmtree(self.scratch)


def _may_be_from(text: str, earlier: str, now: str) -> bool:
    """Whether a text shares lines with an earlier one, and takes back some of what came since."""
    lines, before, after = (
        set(one.splitlines()) - set(TAIL.splitlines()) for one in (text, earlier, now)
    )
    return bool(lines & before) and bool((before - after) & lines or (after - before) - lines)


def _taken(new: bytes, old: bytes | None) -> bool:
    """Whether going from one text to the other takes lines, or the file, away."""
    return old is None or bool(Counter(new.splitlines()) - Counter(old.splitlines()))


class ShortMachine(WorkspaceMachine):
    """The same rules, for a few short histories."""


TestShortHistories = ShortMachine.TestCase
TestShortHistories.settings = settings(max_examples=5, stateful_step_count=15, deadline=None)

TestWorkspaceMachine = WorkspaceMachine.TestCase
TestWorkspaceMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestWorkspaceMachine.pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
