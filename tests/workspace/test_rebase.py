"""Fitting a change set to files that moved: one row is one sentence of the contract."""

from __future__ import annotations

import pytest

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import LINK, Document, Revision, RootId, WorkspacePath
from filepact.errors import FilepactError
from filepact.workspace.rebase import RebaseResult, fit

PATH = WorkspacePath(RootId("/r"), "a.txt")
OTHER = WorkspacePath(RootId("/r"), "b.txt")

State = tuple[bytes, int] | None


def revision(state: State) -> Revision | None:
    return Revision.of(*state) if state is not None else None


def document(path: WorkspacePath, state: State) -> Document | None:
    return Document(path, state[0], Revision.of(*state)) if state is not None else None


def fitted(before: State, after: State, now: State) -> RebaseResult:
    images = {
        Revision.of(*state).content: state[0] for state in (before, after) if state is not None
    }
    changes = ChangeSet((FileChange(PATH, revision(before), revision(after)),))
    return fit(
        changes, lambda path: document(path, now), images.__getitem__, show=lambda path: path.path
    )


A, B = (b"1\n2\n3\n4\n5\n", 0o644), (b"1\n2\n3\n4\nfive\n", 0o644)
A_CRLF, B_CRLF = ((one.replace(b"\n", b"\r\n"), mode) for one, mode in (A, B))
NUL = (b"\0\1\2", 0o644)

KEPT = [
    # before, after, now, result
    (A, B, A, B),
    (None, B, None, B),
    (A, None, A, None),
    (A, B, (b"one\n2\n3\n4\n5\n", 0o644), (b"one\n2\n3\n4\nfive\n", 0o644)),
    (A, B, (A[0], 0o755), (B[0], 0o755)),
    # A mode that somebody has given it since stays.
    (A, (B[0], 0o755), (A[0], 0o600), (B[0], 0o600)),
    (A, (A[0], 0o755), (B[0], 0o644), (B[0], 0o755)),
    # Line ends that somebody has converted since are no change of lines.
    (A, B, A_CRLF, B_CRLF),
    (A_CRLF, B_CRLF, (b"one\n2\n3\n4\n5\n", 0o644), (b"one\n2\n3\n4\nfive\n", 0o644)),
    (A, B, (b"1\r\n2\n3\r\n4\r\n5\r\n", 0o644), (b"1\r\n2\n3\r\n4\r\nfive\r\n", 0o644)),
]


@pytest.mark.parametrize(("before", "after", "now", "result"), KEPT)
def test_what_does_not_touch_is_kept_on_both_sides(
    before: State, after: State, now: State, result: State
) -> None:
    done = fitted(before, after, now)
    (change,) = done.changes.changes
    assert change.before == revision(now)
    assert change.after == revision(result)
    if result is not None:
        assert done.contents[Revision.of(*result).content] == result[0]
    assert bool(done.notes) == (now != before)


LOAD = (b"def load(path):\n    data = read(path)\n    return data\n", 0o644)
ASIDE = (
    b"def load(path):\n    return cached(path)\n\n\n" + LOAD[0].replace(b"load", b"old"),
    0o644,
)

STALE = [
    (A, B, (b"1\n2\n3\n4\nFIVE\n", 0o644)),  # the same line
    (A, B, (b"1\r\n2\r\n3\r\n4\r\nFIVE\r\n", 0o644)),  # so in other line ends
    (A, A_CRLF, (b"one\n2\n3\n4\n5\n", 0o644)),  # all of its line ends were to be others
    (None, B, A),  # the name is taken
    (A, B, None),  # the file is gone
    (A, None, B),  # removing it would lose what was written since
    (NUL, (b"\0\1\3", 0o644), (b"\0\1\4", 0o644)),  # not text: cannot be merged
    (LOAD, (LOAD[0].replace(b"read", b"open"), 0o644), ASIDE),  # its lines are another's now
    ((b"a.txt", LINK), None, (b"b.txt", LINK)),  # a link that leads elsewhere by now
    ((b"a.txt", LINK), None, A),  # a file took the name of the link
    (A, B, (b"b.txt", LINK)),  # a link took the name of the file
]


@pytest.mark.parametrize(("before", "after", "now"), STALE)
def test_what_touches_is_refused(before: State, after: State, now: State) -> None:
    with pytest.raises(FilepactError) as caught:
        fitted(before, after, now)
    assert caught.value.code == "STALE_FILE"


@pytest.mark.parametrize(("before", "after"), [(A, B), (None, B), (A, None)])
def test_what_is_already_so_is_no_change(before: State, after: State) -> None:
    with pytest.raises(FilepactError) as caught:
        fitted(before, after, after)
    assert caught.value.code == "NO_CHANGE"


def test_the_same_lines_written_by_somebody_else_are_no_change() -> None:
    with pytest.raises(FilepactError) as caught:
        fitted(A, B, (B[0], 0o600))
    assert caught.value.code == "NO_CHANGE"


def test_of_several_files_only_those_that_differ_are_changed() -> None:
    images = {Revision.of(*state).content: state[0] for state in (A, B)}
    changes = ChangeSet(
        (
            FileChange(PATH, revision(A), revision(B)),
            FileChange(OTHER, revision(A), revision(B)),
        )
    )
    done = fit(
        changes,
        lambda path: document(path, B if path == PATH else A),
        images.__getitem__,
        show=lambda path: path.path,
    )
    assert done.changes.paths == (OTHER,)
    assert "a.txt is already" in done.notes[0]
