"""Diagnostics as values: places in characters, differences that survive lines that move."""

from __future__ import annotations

import pytest

from filepact.text.lines import Position
from filepact_diagnostics.lsp.diagnostics import (
    Diagnostic,
    DiagnosticsHistory,
    FileDiagnostics,
    compare,
    read_diagnostics,
    weakest,
)
from filepact_diagnostics.lsp.sync import RacyTexts

TEXT = "é = '😀' + x\nsecond\n"


def item(start: tuple[int, int], end: tuple[int, int], **more: object) -> dict:
    names = ("line", "character")
    span = {"start": dict(zip(names, start)), "end": dict(zip(names, end))}  # noqa: B905
    return {"range": span, "message": "m", **more}


def read(*items: object, unit: str = "utf-16") -> tuple[Diagnostic, ...]:
    return read_diagnostics("/a", TEXT, list(items), unit, "fake")[0]


@pytest.mark.parametrize(("unit", "column"), [("utf-8", 14), ("utf-16", 11), ("utf-32", 10)])
def test_columns_count_characters_whatever_the_server_counts(unit: str, column: int) -> None:
    (found,) = read(item((0, column), (0, column + 1)), unit=unit)
    assert (found.start, found.end) == (Position(0, 10), Position(0, 11))
    assert found.line == "é = '😀' + x"


def test_a_place_behind_the_end_is_the_end() -> None:
    (found,) = read(item((1, 900), (77, 3)))
    assert (found.start, found.end) == (Position(1, 6), Position(2, 0))


@pytest.mark.parametrize(
    ("more", "severity", "code", "source"),
    [
        ({}, "error", "", "fake"),
        ({"severity": 2, "code": 12, "source": "s"}, "warning", "12", "s"),
        ({"severity": 9, "code": {"value": "E1", "target": "u"}}, "error", "E1", "fake"),
        ({"severity": 4, "code": None, "source": ""}, "hint", "", "fake"),
    ],
)
def test_what_servers_leave_out_is_filled_in(
    more: dict, severity: str, code: str, source: str
) -> None:
    (found,) = read(item((0, 0), (0, 1), **more))
    assert (found.severity, found.code, found.source) == (severity, code, source)


def test_a_message_may_be_marked_up() -> None:
    (found,) = read(item((0, 0), (0, 1), message={"kind": "markdown", "value": "**m**"}))
    assert found.message == "**m**"


def test_endings_that_come_and_go_are_cut_off() -> None:
    items = [item((0, 0), (0, 1), message="bad (fixes)"), item((1, 0), (1, 1), message="bad")]
    found, _whole = read_diagnostics("/a", TEXT, items, "utf-16", "fake", (" (fixes)",))
    assert [one.message for one in found] == ["bad", "bad"]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        {},
        {"range": None, "message": "m"},
        item((0, 0), (0, 1), message=None) | {"range": {"start": {}}},
        item((-1, 0), (0, 1)),
        item((0, 0.5), (0, 1)),
    ],
)
def test_what_cannot_be_read_is_left_out_and_said(wrong: object) -> None:
    found, whole = read_diagnostics("/a", TEXT, [wrong, item((0, 0), (0, 1))], "utf-16", "fake")
    assert len(found) == 1
    assert not whole


def test_a_flood_of_diagnostics_is_cut_and_said() -> None:
    found, whole = read_diagnostics("/a", TEXT, [item((0, 0), (0, 1))] * 6_000, "utf-16", "fake")
    assert len(found) == 5_000
    assert not whole


def test_lines_that_move_are_neither_new_nor_fixed() -> None:
    before = read_diagnostics("/a", "x\ny\n", [item((1, 0), (1, 1))], "utf-8", "f")[0]
    after = read_diagnostics(
        "/a", "\n\nx\ny\ny\n", [item((3, 0), (3, 1)), item((4, 0), (4, 1))], "utf-8", "f"
    )[0]
    delta = compare(before, after)
    assert [one.start.line for one in delta.new] == [4]
    assert delta.fixed == ()
    assert delta.total == 2
    assert [one.start.line for one in compare(after, before).fixed] == [4]


def found_in(text: str, *items: object) -> tuple:
    return read_diagnostics("/a", text, list(items), "utf-8", "f")[0]


@pytest.mark.parametrize(
    ("before", "after", "new", "fixed"),
    [
        # A line with an old error is edited; the same with a line put in above.
        (("x = f(1)\n", [(0, "e", "bad")]), ("x = f(2)  # n\n", [(0, "e", "bad")]), [], []),
        (("x = f(1)\n", [(0, "e", "bad")]), ("\nx = f(2)\n", [(1, "e", "bad")]), [], []),
        # What a message names has another name now.
        (("f()\n", [(0, "e", "no f")]), ("g()\n", [(0, "e", "no g")]), [], []),
        # More of a kind than before: the one in a line that was not there.
        (
            ("f()\n", [(0, "e", "bad")]),
            ("f()\nh()\n", [(0, "e", "bad"), (1, "e", "bad")]),
            [1],
            [],
        ),
        # Another kind in an edited line, or one that has no name, is new.
        (("f()\n", [(0, "e", "bad")]), ("g()\n", [(0, "w", "worse")]), [0], [0]),
        (("f()\n", [(0, None, "no f")]), ("g()\n", [(0, None, "no g")]), [0], [0]),
        # The same kind elsewhere, about something else, is new.
        (("f()\n\n", [(0, "e", "no f")]), ("\ng()\n", [(1, "e", "no g")]), [1], [0]),
    ],
)
def test_an_error_is_new_if_there_are_more_of_its_kind(before, after, new, fixed) -> None:
    lists = [
        found_in(
            text,
            *(item((line, 0), (line, 1), code=code, message=says) for line, code, says in some),
        )
        for text, some in (before, after)
    ]
    delta = compare(*lists)
    assert [one.start.line for one in delta.new] == new
    assert [one.start.line for one in delta.fixed] == fixed


@pytest.mark.parametrize(
    ("names", "weak"),
    [((), "none"), (("pull", "version"), "version"), (("pull", "none"), "none"), (("pull",), "pull")],
)  # fmt: skip
def test_the_weakest_confirmation_counts(names: tuple, weak: str) -> None:
    assert weakest(FileDiagnostics("s", "/a", confirmed_by=name) for name in names) == weak


class TestDiagnosticsHistory:
    """What was found before a change is told from what was found since."""

    def found(self, message: str) -> FileDiagnostics:
        one = item((0, 0), (0, 1), message=message)
        some, whole = read_diagnostics("/a", TEXT, [one], "utf-16", "s")
        assert whole
        return FileDiagnostics("s", "/a", some, "pull")

    def test_what_was_found_since_a_moment_does_not_count_as_before_it(self) -> None:
        last, old, new = DiagnosticsHistory(), self.found("old"), self.found("new")
        last.keep(old, TEXT, 1)
        last.keep(new, TEXT, 3)
        assert last.get("s", "/a", TEXT) == new.diagnostics
        assert last.get("s", "/a", TEXT, 3) == old.diagnostics
        assert last.get("s", "/a", TEXT, 1) is None

    def test_the_same_once_more_is_known_from_the_first_time(self) -> None:
        last, old = DiagnosticsHistory(), self.found("old")
        last.keep(old, TEXT, 1)
        last.keep(old, TEXT, 3)
        assert last.get("s", "/a", TEXT, 2) == old.diagnostics

    def test_an_answer_that_is_told_late_is_not_the_last(self) -> None:
        last, old, new = DiagnosticsHistory(), self.found("old"), self.found("new")
        last.keep(new, TEXT, 3)
        last.keep(old, TEXT, 1)
        assert last.get("s", "/a", TEXT) == new.diagnostics
        assert last.get("s", "/a", TEXT, 2) == old.diagnostics

    def test_another_text_is_another_question(self) -> None:
        last = DiagnosticsHistory()
        last.keep(self.found("old"), TEXT, 1)
        assert last.get("s", "/a", TEXT + "\n") is None
        assert last.get("other", "/a", TEXT) is None
        last.clear()
        assert last.get("s", "/a", TEXT) is None

    def test_the_longest_unheard_of_files_and_moments_are_forgotten(self) -> None:
        last = DiagnosticsHistory()
        for number in range(6_000):
            last.keep(FileDiagnostics("s", f"/{number}"), TEXT, number)
        assert last.get("s", "/0", TEXT) is None
        assert last.get("s", "/5999", TEXT) == ()
        for number in range(10):
            last.keep(self.found(str(number)), TEXT, number)
        assert last.get("s", "/a", TEXT, 1) is None
        assert last.get("s", "/a", TEXT, 9) == self.found("8").diagnostics


class TestRacyTexts:
    """Texts of one length within one second are texts."""

    def test_racy_texts_are_sent_again_when_the_second_is_over(self) -> None:
        now = [10.25]
        texts = RacyTexts(lambda: now[0])
        for text in ("1234", "12345", "1234"):  # the same text once more is not racy
            texts.sent_text("/a", text, replaced=False)
            assert not texts
        texts.sent_text("/a", "4321", replaced=False)
        assert texts
        texts.note_sent()
        texts.confirm()
        assert texts.pause == 0.75
        now[0] = 11.5
        assert texts.pause == 0
        assert texts.take() == {"/a"}
        texts.sent_text("/a", "4321", replaced=False)
        assert not texts

    @pytest.mark.parametrize(("answered", "later", "racy"), [
        (10.9, 11.1, False), (11.0, 11.1, True), (None, 12.0, True),
    ])  # fmt: skip
    def test_a_text_counts_as_got_only_when_something_behind_it_was_answered(
        self, answered: float | None, later: float, racy: bool
    ) -> None:
        now = [10.25]
        texts = RacyTexts(lambda: now[0])
        texts.sent_text("/a", "1234", replaced=False)
        if answered:
            now[0] = answered
            texts.confirm()
        now[0] = later
        texts.sent_text("/a", "4321", replaced=False)
        assert bool(texts) is racy

    @pytest.mark.parametrize(("waiting", "at", "replaced", "racy"), [
        (True, 12.0, True, True), (False, 10.5, True, True), (False, 12.0, True, False),
        (False, 10.5, False, False),
    ])  # fmt: skip
    def test_an_unknown_text_before_may_make_one_racy(
        self, waiting: bool, at: float, replaced: bool, racy: bool
    ) -> None:
        now = [10.25]
        texts = RacyTexts(lambda: now[0])
        texts.confirm()
        if waiting:
            texts.note_sent()
        now[0] = at
        texts.sent_text("/a", "1234", replaced=replaced)
        assert bool(texts) is racy

    def test_what_was_left_or_forgotten_is_not_racy(self) -> None:
        texts = RacyTexts(lambda: 10.25)
        for end in (lambda: texts.forget("/a"), texts.clear):
            texts.sent_text("/a", "1234", replaced=False)
            texts.sent_text("/a", "4321", replaced=False)
            end()
            texts.sent_text("/a", "5678", replaced=False)
            assert not texts
            texts.forget("/a")
