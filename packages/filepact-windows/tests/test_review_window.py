"""The review on the whole screen, driven by keys in a terminal of 80 columns and 24 rows."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

from filepact_cli.review import Review
from reviewing import AGENT, NEW, OLD, OTHER, propose, reviewing
from terminal_pictures import IMAGES

pytest.importorskip("textual", reason="the extra `review` is not installed")

from filepact_windows.review_panes import ProposalList
from filepact_windows.review_window import ReviewProgram

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

    Keys = Callable[["Window"], Awaitable[None]]

TRIES = 500
SECOND = OLD.replace("line 7\n", "seventh\n")


class Window:
    """A running window: what it shows, and keys for it."""

    def __init__(self, program: ReviewProgram, pilot: Any) -> None:
        self.program = program
        self.pilot = pilot

    async def press(self, *keys: str) -> str:
        """What is shown once the keys have done their work."""
        await self.pilot.press(*keys)
        return await self.shows()

    async def shows(self, wanted: str = "") -> str:
        """What is shown, once it shows this."""
        text = ""
        for _ in range(TRIES):
            await self.pilot.pause()
            screen = self.program.screen
            strips = screen._compositor.render_strips()
            text = "\n".join(strip.text for strip in strips)
            if wanted in text:
                return text
            await asyncio.sleep(0.02)
        raise AssertionError(f"{wanted!r} is not shown:\n{text}")


def run(
    review: Review,
    act: Keys,
    size: tuple[int, int] = (80, 24),
    notify: Callable[[Sequence[str]], object] | None = None,
) -> ReviewProgram:
    program = ReviewProgram(review, notify)

    async def go() -> None:
        async with program.run_test(size=size) as pilot:
            while program._diff.page is None:
                await pilot.pause(0.02)
            await act(Window(program, pilot))

    asyncio.run(go())
    return program


@pytest.fixture
def review(open_here: Callable[..., Workspace], root: Path) -> Review:
    return reviewing(open_here, root)


def told(review: Review) -> str:
    return " ".join(one.text for one in review.workspace.events(AGENT))


def test_pictures_of_the_window_are_made_where_the_documents_have_them() -> None:
    for name in (60, 80, 120, "moved", "two"):
        assert (IMAGES / f"review-terminal-{name}.svg").is_file()


def test_hunks_are_accepted_and_rejected_by_one_key_each(review: Review, root: Path) -> None:
    propose(review)
    propose(review, "b.txt", SECOND, OTHER)

    async def act(window: Window) -> None:
        first = await window.shows("hunk 1/3")
        assert "agent tester 1.0 t1" in first
        assert "● M a.txt" in first
        assert "hunk 2/3" in await window.press("y")
        assert "hunk 3/3" in await window.press("n")
        assert (root / "a.txt").read_text() == OLD
        after = await window.press("space")
        assert "Done as" in after
        assert "1 of 1 proposal" in after
        assert "hunk 1/1" in after
        assert "Nothing waits" in await window.press("x")

    run(review, act)
    done = OLD.replace("line 3\n", "third\n").replace("line 38\n", "line 38\nx\n")
    assert (root / "a.txt").read_text() == done
    assert (root / "b.txt").read_text() == OLD
    assert "hunk 2 rejected" in told(review)


def test_marks_are_taken_back_and_what_was_done_is_undone_and_redone(
    review: Review, root: Path
) -> None:
    propose(review)

    async def act(window: Window) -> None:
        assert "2 marked" in await window.press("y", "n")
        assert "1 marked" in await window.press("u")
        assert "marked" not in await window.press("u")
        assert "Done as" in await window.press("a")
        assert (root / "a.txt").read_text() == NEW
        assert "Undone" in await window.press("u")
        assert (root / "a.txt").read_text() == OLD
        assert "Done again" in await window.press("r")

    run(review, act)
    assert (root / "a.txt").read_text() == NEW


def test_the_rest_of_a_file_is_rejected_with_a_reason_for_the_agent(
    review: Review, root: Path
) -> None:
    propose(review)

    async def act(window: Window) -> None:
        assert "Why?" in await window.press("y", "c")
        assert "why: no y" in await window.press(*"no y", "enter")
        assert "rejected 2 hunks" in await window.press("d")

    run(review, act)
    assert (root / "a.txt").read_text() == OLD.replace("line 3\n", "third\n")
    assert "no y" in told(review)


def test_only_what_is_marked_is_carried_out_and_the_rest_waits(review: Review, root: Path) -> None:
    propose(review)

    async def act(window: Window) -> None:
        assert "Nothing is marked" in await window.press("w")
        assert "the rest waits as" in await window.press("j", "y", "w")
        assert "not carried out: w carries out" in await window.press("y", "q")
        await window.press("q")

    run(review, act)
    assert (root / "a.txt").read_text() == OLD.replace("line 20\n", "")
    assert len(review.waiting()) == 1


def test_a_turn_a_session_and_all_are_decided_about_after_a_question(
    review: Review, root: Path
) -> None:
    for name in ("c.txt", "d.txt"):
        propose(review, name, "new\n")
    propose(review, "b.txt", SECOND, OTHER)

    async def act(window: Window) -> None:
        assert "2 proposals, 2 files" in await window.press("t")
        assert "of 3 proposals" in await window.press("escape")
        assert "Accepted 2 proposals" in await window.press("t", "y")
        assert "1 proposal" in await window.press("S")
        assert "Rejected 1 proposal" in await window.press("n")
        await window.press("A")

    run(review, act)
    assert (root / "c.txt").read_text() == "new\n"
    assert (root / "b.txt").read_text() == OLD
    assert not review.waiting()


def test_hunks_are_split_and_joined_again(review: Review, root: Path) -> None:
    propose(review, text=OLD.replace("line 3\n", "third\n").replace("line 5\n", "fifth\n"))

    async def act(window: Window) -> None:
        assert "hunk 1/1" in await window.press("j")
        assert "hunk 1/2" in await window.press("s")
        assert "hunk 1/1" in await window.press("s")
        assert "rejected 1 hunk" in await window.press("s", "n", "y")

    run(review, act)
    assert (root / "a.txt").read_text() == OLD.replace("line 5\n", "fifth\n")


def test_new_proposals_appear_and_what_others_change_is_said(
    review: Review, root: Path, open_here: Callable[..., Workspace]
) -> None:
    agents = Review(open_here("preview"), review.session)
    agents_id = propose(agents)
    notices: list[Sequence[str]] = []

    async def act(window: Window) -> None:
        await window.shows("● M a.txt")
        threading.Thread(target=propose, args=(agents, "b.txt", SECOND, OTHER)).start()
        assert "another" in await window.shows("1 new proposal")
        (root / "a.txt").write_text(OLD.replace("line 12\n", "a person's\n"))
        assert "~ M a.txt" in await window.shows("MOVED")
        shown = await window.press("j", "k", "y")
        if "once more" in shown:
            shown = await window.press("y")
        assert "Nothing done" in shown
        assert "Others have changed since you saw it" in shown

    run(review, act, notify=notices.append)
    assert notices == [["b.txt"]]
    assert agents_id not in [one.id for one in review.waiting()]
    assert "third" not in (root / "a.txt").read_text()


def test_a_hunk_out_of_view_is_shown_before_a_key_counts(review: Review, root: Path) -> None:
    propose(review)

    async def act(window: Window) -> None:
        assert "once more" in await window.press("end", "y")
        assert "1 marked" in await window.press("y")

    run(review, act, (80, 14))


def test_two_columns_text_is_found_and_keys_are_told(review: Review) -> None:
    propose(review, "src/long_name_of_a_module_in_a_folder.py", "def f():\n    return 1\n")
    propose(review)

    async def act(window: Window) -> None:
        assert "module_in_a_folder.py" in await window.press("J", "K")
        assert "reject this hunk" in await window.press("question_mark")
        shown = await window.press("y", "J", "vertical_line")
        assert any("-line 3" in row and "+third" in row for row in shown.splitlines())
        assert not window.program.query_one(ProposalList).display
        assert "hunk 3/3" in await window.press("b", "slash", *"line 38", "enter")
        assert "Not found" in await window.press("slash", *"nowhere", "enter")
        assert "hunk 1/3" in await window.press("slash", "escape", "tab")
        await window.press("pagedown", "pageup", "down", "up", "home", "ctrl+c")

    run(review, act)
    assert len(review.waiting()) == 2


def test_proposals_are_chosen_by_a_click(review: Review) -> None:
    propose(review)
    propose(review, "b.txt", SECOND, OTHER)

    async def act(window: Window) -> None:
        await window.shows("1 of 2")
        await window.pilot.click(ProposalList, offset=(2, 3))
        await window.shows("2 of 2")

    run(review, act)


def test_an_answer_of_servers_that_is_there_before_anybody_waits_is_shown(
    open_here: Callable[..., Workspace], root: Path
) -> None:
    plain = reviewing(open_here, root)
    propose(plain)

    def at_once(work: Callable[[], object]) -> Future[object]:
        done: Future[object] = Future()
        done.set_result(work())
        return done

    async def act(window: Window) -> None:
        window.program._loads.submit = at_once  # type: ignore[assignment]
        await window.press("D")
        await window.shows("No language server knows")

    run(plain, act)


def test_servers_are_asked_for_one_proposal(
    open_here: Callable[..., Workspace], root: Path
) -> None:
    plain = reviewing(open_here, root)
    propose(plain)
    asked = Review(plain.workspace, plain.session, lambda _one: "pyright: 1 new error")

    async def act(window: Window) -> None:
        assert "! pyright: 1 new error" in await window.press("D") or await window.shows(
            "! pyright"
        )

    run(asked, act)

    async def none(window: Window) -> None:
        await window.press("D")
        await window.shows("No language server knows")

    run(plain, none)


def test_a_change_of_every_line_of_a_large_file_is_drawn(review: Review, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(8_000)))
    propose(review, text="".join(f"{number}.\n" for number in range(8_000)))

    async def act(window: Window) -> None:
        await window.shows("hunk 1/1")
        assert "+7999." in await window.press("end")

    run(review, act)


def test_what_somebody_else_has_decided_meanwhile_ends_nothing(review: Review) -> None:
    change_id = propose(review)

    async def act(window: Window) -> None:
        review.reject_all([change_id])
        await window.press("e", "a", "s", "t")
        assert "Nothing waits" in await window.shows("Nothing waits")

    run(review, act)


def test_without_anything_to_review_it_says_so_and_keys_do_nothing(review: Review) -> None:
    async def act(window: Window) -> None:
        assert "Nothing waits" in await window.shows("Nothing waits")
        await window.press(*"ynadwsetSAcDjkJK", "tab")
        await window.press("u")

    run(review, act)


@pytest.mark.parametrize("two", [False, True])
def test_every_character_of_a_long_line_is_on_the_screen(review: Review, two: bool) -> None:
    text = "".join(f"<{number}>" for number in range(100, 150))
    propose(review, "c.txt", f"{text}\n" + "x\n" * 50)

    async def act(window: Window) -> None:
        if two:
            await window.press("b")
        shown = await window.shows("<149>")
        rows = [row.rpartition("│")[2][1 - two :] for row in shown.splitlines()]
        first = next(at for at, row in enumerate(rows) if "<100>" in row)
        body = "".join(row[5:].rstrip(" ▁▂▃▄▅▆▇█") for row in rows[first : first + 8])
        assert text in body

    run(review, act)


def test_where_the_same_lines_were_changed_it_can_only_be_rejected(
    review: Review, root: Path
) -> None:
    propose(review)
    (root / "a.txt").write_text(OLD.replace("line 3\n", "mine\n"))

    async def act(window: Window) -> None:
        assert "STALE" in await window.shows("! M a.txt")
        shown = await window.press("j", "k", "y")
        if "once more" in shown:
            shown = await window.press("y")
        assert "the same lines were changed" in shown
        assert "Rejected 3 hunks" in await window.press("d")

    run(review, act)
    assert not review.waiting()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["lines", "line"])
def test_what_is_seen_of_a_hostile_change_is_drawn_and_little_more_is_kept(
    review: Review, root: Path, what: str
) -> None:
    if what == "lines":
        old = "".join(f"value_{number} = {number}\n" for number in range(64_000))
        new = old.replace(" = ", " = 1")
    else:
        old, new = "x\n", f"{'y' * 9_900_000}END\n"
    (root / "a.txt").write_text(old)
    propose(review, text=new)
    kept: list[int] = []

    async def act(window: Window) -> None:
        await window.shows("hunk 1/1")
        page = window.program._diff.page
        assert page is not None
        assert page.height > 100_000
        for _ in range(3):  # what is looked up beside it now and then is not meant
            await window.press("home")
            tracemalloc.start()
            shown = await window.press("end")
            kept.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert ("value_63999" if what == "lines" else "END") in shown
        assert "Done as" in await window.press("home", "a")

    run(review, act)
    assert (root / "a.txt").read_text() == new
    # A screen of it, whatever the size of the change: all of its rows, drawn, are more than 100 MB.
    assert min(kept) < 10_000_000


# -- small windows, and what is asked ------------------------------------------------------------


@pytest.mark.parametrize(("columns", "listed"), [(60, False), (69, False), (70, True), (120, True)])
def test_a_narrow_window_leaves_the_list_out_and_names_the_keys_that_fit(
    review: Review, columns: int, listed: bool
) -> None:
    propose(review)

    async def act(window: Window) -> None:
        shown = await window.shows("hunk 1/3")
        assert ("agent tester 1.0 t1 " in shown) == listed
        assert "y accept  n reject" in shown
        assert shown.splitlines()[-1].rstrip().endswith("? keys")
        assert "Accept hunk 1 of 3 of a.txt?" in shown.splitlines()[-2]

    run(review, act, size=(columns, 24))


def test_what_is_asked_stands_above_the_keys_whenever_nothing_else_is_said(
    review: Review, root: Path
) -> None:
    propose(review)
    propose(review, "b.txt", SECOND, OTHER)

    async def act(window: Window) -> None:
        shown = await window.shows("hunk 1/3")
        assert shown.startswith("root   1 of 2 proposals")
        assert "hunk 2 of 3 of a.txt?" in await window.press("y")
        shown = await window.press("A")
        assert "y accepts all" in shown
        assert "a.txt?" not in shown
        assert "hunk 2 of 3 of a.txt?" in await window.press("escape")
        assert "Find" in await window.press("slash")
        assert "hunk 2 of 3 of a.txt?" in await window.press("escape")
        assert "Done as" in await window.press("a")
        assert "hunk 1 of 1 of b.txt?" in await window.press("down")
        shown = await window.press("y")
        assert "?" not in shown.splitlines()[-2]

    run(review, act)


def test_what_becomes_of_files_is_a_letter_of_the_list(review: Review, root: Path) -> None:
    for name in ("new.txt", "a.txt"):
        propose(review, name)
    counted = {one.letter: "+{} -{}".format(*one.lines or ()) for one in review.waiting()}
    assert set(counted) == {"A", "M"}

    async def act(window: Window) -> None:
        shown = await window.shows("● M a.txt")
        rows = {row.partition("│")[0] for row in shown.splitlines()}
        for letter, name in (("A", "new.txt"), ("M", "a.txt")):
            (row,) = (row for row in rows if f"● {letter} {name}" in row)
            assert counted[letter] in row

    run(review, act)


def test_long_lines_end_between_words_and_go_on_with_a_mark(review: Review) -> None:
    words = " ".join(f"word{number:03}" for number in range(40))
    propose(review, "new.txt", f"{words}\n")

    async def act(window: Window) -> None:
        shown = await window.shows("↪")
        rows = [row.partition("│")[2] for row in shown.splitlines() if "word0" in row]
        assert len(rows) > 3
        for row in rows:
            assert all(
                len(one) == len("word000")
                for one in row.replace("+", " ").split()
                if one[:4] == "word"
            )

    run(review, act)


@pytest.mark.parametrize("width", [80, 60])
def test_what_the_person_had_asked_for_stands_with_what_was_done_for_it(
    review: Review, width: int
) -> None:
    review.workspace.asked.turn(AGENT, "third, please\x1b[31m")
    propose(review)
    propose(review, "b.txt", SECOND, OTHER)

    async def act(window: Window) -> None:
        shown = await window.shows("hunk 1/3")
        assert "\u201cthird, please\\x1b[31m\u201d" in shown
        assert ("tester 1.0 third, p" in shown) == (width == 80)
        assert "please" not in await window.press("J")

    run(review, act, size=(width, 24))
