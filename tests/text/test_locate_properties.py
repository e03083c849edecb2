"""Whatever is sent, nothing is written outside the lines that were sent."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.faulty_cases import KINDS, cases, judge, sources
from filepact.errors import FilepactError
from filepact.text.locate import place
from filepact.text.tolerant_match import body_of, fold

MUST_REFUSE = (
    "two equal places",
    "two places but for indentation",
    "rewritten since",
    "gone, a near twin elsewhere",
    "one typo",
    "escaped quotes",
)


EACH = 40
"""Edits of each kind.  They are drawn from files of Python and of packages, so each machine has its own."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Counter[str]]:
    """What becomes of faulty edits, by kind."""
    found: dict[str, Counter[str]] = {}
    for kind, some in cases(sources(60), EACH, 17):
        found[kind] = Counter()
        for case in some:
            result = None
            with suppress(FilepactError):
                result = place(case.text, case.old, case.new).edits.apply(case.text)
            found[kind][judge(case, result)] += 1
    return found


def test_a_faulty_edit_never_writes_what_is_wrong(outcomes: dict[str, Counter[str]]) -> None:
    assert {kind: dict(counted) for kind, counted in outcomes.items() if counted["WRONG"]} == {}
    assert all(counted.total() == EACH for counted in outcomes.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_faulty_edit_is_right_or_refused(outcomes: dict[str, Counter[str]], kind: str) -> None:
    if kind in MUST_REFUSE:
        assert outcomes[kind] == {"refused": EACH}
    else:
        # In files of declarations many places resemble each other: there more is refused.
        assert outcomes[kind]["right"] >= 0.65 * EACH
        assert set(outcomes[kind]) <= {"right", "refused"}


def test_few_edits_are_refused_because_a_place_nearby_resembles_theirs(
    outcomes: dict[str, Counter[str]],
) -> None:
    solvable = [kind for kind in KINDS if kind not in MUST_REFUSE]
    assert sum(outcomes[kind]["right"] for kind in solvable) >= 0.94 * EACH * len(solvable)


VERBATIM = {"exact", "line ends", "line numbers"}
"""Steps that find characters, which may begin and end within lines."""

WORDS = [
    "alpha(beta)",
    "return gamma",
    'say("it\u2019s")',
    "say('no')",
    "one \u2013 two",
    "if x:",
    "}",
]
LINE = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "  ", "    ", "\t", "\t\t", "        "]),
    st.sampled_from([*WORDS, "", "delta = epsilon", "# a comment - here"]),
    st.sampled_from(["", "", "", " ", "\t"]),
)
FILE = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\n", "\r\n"])), min_size=3, max_size=14)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str, str]:
    """A file, and a damaged copy of some of its lines before and after a change."""
    pieces = draw(FILE)
    text = "".join(line + end for line, end in pieces)
    if draw(st.booleans()):
        text = text.removesuffix("\n").removesuffix("\r")
    first = draw(st.integers(0, len(pieces) - 1))
    last = draw(st.integers(first + 1, len(pieces)))
    block = [line for line, _ in pieces[first:last]]
    dedent = draw(st.sampled_from(["keep", "strip", "double", "tabs", "blanks"]))
    copy = []
    for line in block:
        body = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        match dedent:
            case "strip":
                indent = ""
            case "double":
                indent *= 2
            case "tabs":
                indent = indent.replace("    ", "\t")
            case "blanks":
                indent = indent.replace("\t", "    ")
            case _:
                pass
        copy.append(indent + body + draw(st.sampled_from(["", "", " "])))
    if draw(st.booleans()):
        copy = [fold(line) for line in copy]
    extra = draw(st.sampled_from([None, None, 0, len(copy), len(copy) // 2]))
    if extra is not None:
        copy.insert(extra, "")
    changed = list(copy)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(changed) - 1)) if changed else 0
        match draw(st.sampled_from(["replace", "insert", "delete", "word"])):
            case "replace":
                changed[at : at + 1] = [draw(LINE)]
            case "insert":
                changed.insert(at, draw(LINE))
            case "delete":
                changed[at : at + 1] = []
            case _:
                changed[at : at + 1] = [line.replace("a", "o") for line in changed[at : at + 1]]
    if draw(st.booleans()):
        copy = [f"{7 + i}\t{line}" for i, line in enumerate(copy)]
    end = draw(st.sampled_from(["\n", ""]))
    old, new = ("\n".join(lines) + end for lines in (copy, changed))
    return text, old, new


@given(damaged())
def test_random_damage_never_leads_to_a_write_outside_the_lines_that_were_sent(
    case: tuple[str, str, str],
) -> None:
    text, old, new = case
    assume(old and old != new)
    try:
        placement = place(text, old, new)
    except FilepactError:
        return
    ((low, high),) = placement.spans
    for edit in placement.edits.edits:
        assert low <= edit.start
        assert edit.end <= high
    after = placement.edits.apply(text)
    assert after.startswith(text[:low])
    assert after.endswith(text[high:])
    if set(placement.steps) - VERBATIM:
        # What was found are the lines that were sent, wherever they stand.
        there = [fold(body_of(line)) for line in text[low:high].replace("\r", "").split("\n")]
        sent = [line.split("\t", 1)[1] if "line numbers" in placement.steps else line
                for line in old.split("\n") if line]  # fmt: skip
        assert [line for line in there if line] == [
            body for line in sent if (body := fold(body_of(line)))
        ]


@given(damaged())
def test_lines_that_the_author_left_alone_keep_their_bytes(
    case: tuple[str, str, str],
) -> None:
    text, old, new = case
    assume(old and old != new)
    try:
        placement = place(text, old, new)
    except FilepactError:
        return
    if not set(placement.steps) - VERBATIM or "line numbers" in placement.steps:
        return
    ((low, high),) = placement.spans
    after = placement.edits.apply(text)
    region = after[low : len(after) - (len(text) - high)].splitlines(keepends=True)
    sent, fresh = old.split("\n"), new.split("\n")
    gone = Counter(sent) - Counter(fresh)
    for line in text[low:high].splitlines(keepends=True):
        body = fold(body_of(line.rstrip("\r\n")))
        if all(fold(body_of(one)) != body for one in gone):
            stripped = [one.rstrip("\r\n") for one in region]
            assert line.rstrip("\r\n") in stripped
