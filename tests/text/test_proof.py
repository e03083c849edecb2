"""What is asked for is proven of every result before it is written; a fault in placing it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filepact.errors import FilepactError, UnprovenError
from filepact.text.codec import decode, rewrite, rewrite_whole
from filepact.text.edit import Edit, EditList, RequestMatch, TextRequest, merge, prove
from filepact.text.multi_edit import EditRequest, place_all
from filepact.text.patch import apply, parse
from filepact.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = st.lists(
    st.sampled_from(["one", "two", "  two", "", "  three", "four()", "}"]), max_size=12
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
PUT = st.sampled_from(["", "new", "two", "a\nb", "  x\n", "}"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    end = draw(ENDS)
    return end.join(draw(LINES)) + draw(st.sampled_from(["", end]))


@st.composite
def edits_asked(draw: st.DrawFn) -> tuple[str, EditList, TextRequest]:
    """A text, edits of it as the tools make them, and what was asked."""
    text = draw(texts())
    wanted = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        old = text[start : start + draw(st.integers(1, 14))].replace("\r\n", "\n")
        if draw(st.booleans()):
            old = "\n".join(line.strip() for line in old.split("\n"))
        wanted.append(EditRequest(old, draw(PUT), draw(st.booleans())))
    made = None
    try:
        made = place_all(text, wanted)
    except FilepactError:
        assume(False)
    assert made is not None
    return text, made.edits, TextRequest(made.steps)


@st.composite
def hunks_asked(draw: st.DrawFn) -> tuple[str, EditList, TextRequest]:
    """The same, of a patch whose header may be wrong by a line."""
    text = draw(texts())
    lines = text.splitlines()
    start = draw(st.integers(0, max(len(lines) - 1, 0)))
    body = []
    for line in lines[start : start + draw(st.integers(1, 5))]:
        sign = draw(st.sampled_from([" ", "-", " "]))
        body.append(sign + (line if draw(st.booleans()) else line.strip()))
        if draw(st.booleans()):
            body.append(f"+{draw(st.sampled_from(['new', 'two', '']))}")
    assume(any(line[0] != " " for line in body))
    old, new = (sum(line[0] != sign for line in body) for sign in "+-")
    at = max(start + 1 + draw(st.integers(-1, 1)), 1)
    header = draw(st.sampled_from([f"@@ -{at},{old} +{at},{new} @@", "@@ ... @@"]))
    made = None
    try:
        (patch,) = parse("\n".join([header, *body, ""]))
        made = apply(text, patch)
    except FilepactError:
        assume(False)
    assert made is not None
    return text, made.edits, TextRequest((made.asked,))


@st.composite
def merges_asked(draw: st.DrawFn) -> tuple[str, EditList, TextRequest]:
    """The same, of a text that somebody else has changed, too."""
    base, theirs = draw(texts()), draw(texts())
    steps: tuple[tuple[RequestMatch, ...], ...] = ()
    if draw(st.booleans()):
        base_lines = base.splitlines(keepends=True)
        at = draw(st.integers(0, len(base_lines)))
        theirs = "".join([*base_lines[:at], "theirs\n", *base_lines[at:]])
    mine = draw(texts())
    if draw(st.booleans()) and base:
        start = draw(st.integers(0, len(base) - 1))
        made = Edit(start, min(start + 3, len(base)), draw(PUT))
        mine = EditList((made,)).apply(base)
        steps = TextRequest.as_made(EditList((made,))).steps
    merged = merge(base, mine, theirs)
    assume(merged.text is not None)
    return theirs, merged.edits, TextRequest(steps, base, merged.pieces)


MADE = st.one_of(edits_asked(), hunks_asked(), merges_asked())


@given(MADE)
def test_whatever_was_placed_rightly_is_proven(made: tuple[str, EditList, TextRequest]):
    text, edits, asked = made
    prove(text, edits.apply(text), asked)


@pytest.mark.parametrize(
    ("text", "patch", "after"),
    [
        # A whole line is not the end of another one.
        ("  two\ntwo\n", "@@ ... @@\n-two\n", "  two\n"),
        ("a {\n  }\n}", "@@ ... @@\n-}\n", "a {\n  }\n"),
        ("a {\n  }\n}", "@@ ... @@\n-}\n+]\n", "a {\n  }\n]"),
        (
            "    import os\r\nimport os\r\n",
            "@@ ... @@\n-import os\n+import re\n",
            "    import os\r\nimport re\r\n",
        ),
        ("\n", "@@ ... @@\n-\n", ""),
        # The end of the file tells which of several is meant.
        ("a\nb\na\n", "@@ ... @@\n a\n+c\n\\ No newline at end of file\n", "a\nb\na\nc"),
        ("a\nb\na", "@@ ... @@\n-a\n\\ No newline at end of file\n+a\n", "a\nb\na\n"),
        (
            "a\nb\na\n",
            "*** Begin Patch\n*** Update File: f\n@@\n-a\n+c\n*** End of File\n*** End Patch\n",
            "a\nb\nc\n",
        ),
    ],
)
def test_a_line_that_stands_elsewhere_too_is_proven_where_its_place_is_told(
    text: str, patch: str, after: str
):
    (parsed,) = parse(patch)
    made = apply(text, parsed)
    assert prove(text, made.edits.apply(text), TextRequest((made.asked,))) == after


def moved(edit: Edit, by: int) -> Edit:
    return Edit(max(edit.start + by, 0), max(edit.end + by, 0), edit.text)


FAULTS: list[Callable[[list[Edit], int, int], object]] = [
    lambda edits, at, by: edits.__setitem__(at, moved(edits[at], by)),
    lambda edits, at, by: edits.__setitem__(
        at, Edit(edits[at].start, max(edits[at].end + by, edits[at].start), edits[at].text)
    ),
    lambda edits, at, _: edits.pop(at),
    lambda edits, at, by: edits.insert(at, moved(edits[at], by)),
    lambda edits, at, by: edits.__setitem__(at, replace(edits[at], text=edits[at].text[by:])),
    lambda edits, at, _: edits.__setitem__(at, replace(edits[at], text=edits[at].text * 2)),
    lambda edits, at, _: edits.__setitem__(at, replace(edits[at], text=f"{edits[at].text}x")),
]
"""What may go wrong between the place of an edit and the bytes: another place, more or less, or something else."""


@given(MADE, st.sampled_from(FAULTS), st.integers(0, 9), st.integers(-3, 3))
def test_no_fault_in_edits_is_written(
    made: tuple[str, EditList, TextRequest],
    fault: Callable[[list[Edit], int, int], object],
    number: int,
    by: int,
):
    text, edits, asked = made
    assume(edits.edits)
    faulty = list(edits.edits)
    fault(faulty, number % len(faulty), by)
    wrong = right = edits.apply(text)
    try:
        wrong = EditList(tuple(faulty)).apply(text)
    except ValueError:
        assume(False)
    assume(wrong != right)
    with pytest.raises(UnprovenError):
        prove(text, wrong, asked)


@given(st.one_of(edits_asked(), hunks_asked()), st.integers(0, 9), st.integers(-4, 4))
def test_no_other_place_is_taken_for_the_one_that_was_named(
    made: tuple[str, EditList, TextRequest], number: int, by: int
):
    """The place itself is wrong, and all that follows of it is alike."""
    text, _, asked = made
    places = [(at, one) for at, step in enumerate(asked.steps) for one in range(len(step))]
    at, one = places[number % len(places)]
    if at or len(asked.steps) > 1:
        return
    step = list(asked.steps[0])
    was = step[one]
    step[one] = replace(was, start=max(was.start + by, 0), end=max(was.end + by, 0))
    there = text[step[one].start : step[one].end]
    assume(was.old and "".join(there.split()) != "".join(was.old.split()))
    after = "".join((text[: step[one].start], was.put, text[step[one].end :]))
    with pytest.raises(UnprovenError):
        prove(text, after, TextRequest((tuple(step),)))


@given(st.one_of(edits_asked(), hunks_asked()), st.sampled_from(["x", "\nx", "  x", "two\n"]))
def test_nothing_else_is_put_in_than_was_sent(made: tuple[str, EditList, TextRequest], more: str):
    """What is put in is wrong, and all that follows of it is alike."""
    text, _, asked = made
    assume(len(asked.steps) == 1 and asked.steps[0])
    first, *others = asked.steps[0]
    step = (replace(first, put=first.put + more), *others)
    after, at = "", 0
    for one in step:
        after, at = f"{after}{text[at : one.start]}{one.put}", one.end
    with pytest.raises(UnprovenError):
        prove(text, after + text[at:], TextRequest((step,)))


@given(st.lists(st.sampled_from(["a\n", "a\r\n", "b\n", "b\r\n", "\n"]), max_size=9), PUT)
def test_every_place_may_end_its_lines_in_its_own_way(lines: list[str], new: str):
    text = "".join(lines)
    made = None
    try:
        made = place_all(text, [EditRequest("a\nb", new, replace_all=True)])
    except FilepactError:
        assume(False)
    assert made is not None
    prove(text, made.edits.apply(text), TextRequest(made.steps))


def single(text: str, old: str, new: str, at: int, *, every: bool) -> tuple[str, TextRequest]:
    start = [i for i in range(len(text)) if text.startswith(old, i)][at]
    one = RequestMatch(start, start + len(old), new, old, new, every=every)
    return f"{text[:start]}{new}{text[start + len(old) :]}", TextRequest(((one,),))


def test_one_of_several_places_is_not_what_was_asked():
    for every in (True, False):
        after, asked = single("a b a\n", "a", "x", 1, every=every)
        with pytest.raises(UnprovenError):
            prove("a b a\n", after, asked)
    after, asked = single("a b c\n", "c", "x", 0, every=False)
    prove("a b c\n", after, asked)


def test_a_text_that_has_come_to_stand_elsewhere_is_not_the_one_that_was_read():
    base, theirs = "one\ntwo\nthree\n", "one\ntwo\nthree\nfour\ntwo\n"
    mine, asked = single(base, "two", "2", 0, every=False)
    merged = merge(base, mine, theirs)
    assert merged.text is not None
    with pytest.raises(UnprovenError):
        prove(theirs, merged.text, TextRequest(asked.steps, base, merged.pieces))


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_merge_that_loses_a_side_is_refused(lost: int):
    base, mine, theirs = "a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n"
    merged = merge(base, mine, theirs)
    prove(theirs, "A\nb\nc\nD\n", TextRequest(pieces=merged.pieces))
    wrong = [mine, theirs, "A\nb\nD\n"][lost]
    with pytest.raises(UnprovenError):
        prove(theirs, wrong, TextRequest(pieces=merged.pieces))
    pieces = [("a\nb\nc\nd\n", "A\nb\nc\nd\n", "A\nb\nc\nd\n"), (base, theirs, theirs)]
    with pytest.raises(UnprovenError):
        prove(theirs, "A\nb\nc\nd\n", TextRequest(pieces=(pieces[lost % 2],)))


def test_a_whole_text_is_the_one_that_was_sent():
    source = decode(b"a\r\nb\r\n")
    assert rewrite_whole(source, "x\r\ny\r\n", sent="x\ny\n") == b"x\r\ny\r\n"
    for wrong in ("x\r\n", "x\r\ny\r\nz\r\n", " x\r\ny\r\n"):
        with pytest.raises(UnprovenError):
            rewrite_whole(source, wrong, sent="x\ny\n")


def test_nothing_is_written_of_edits_that_do_not_do_what_was_asked():
    source = decode(b"one\ntwo\n")
    made = place_all(source.text, [EditRequest("two", "2")])
    assert rewrite(source, made.edits, asked=TextRequest(made.steps)) == b"one\n2\n"
    with pytest.raises(UnprovenError) as caught:
        rewrite(source, EditList((Edit(0, 3, "2"),)), name="a.py", asked=TextRequest(made.steps))
    assert caught.value.details["path"] == "a.py"
