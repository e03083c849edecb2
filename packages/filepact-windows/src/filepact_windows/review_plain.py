"""The review as questions and answers, line by line: for any terminal, a screen reader, or a braille line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError
from filepact.text.confusables import visible
from filepact_cli.render import count
from filepact_cli.screen import TerminalText, plain
from filepact_cli.wording import fitted
from filepact_windows.review_editor import edit_text
from filepact_windows.review_page import page_of
from filepact_windows.review_selection import KEYS, ReviewMessage, ReviewSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact_cli.review import Review
    from filepact_cli.screen import Style, Terminal
    from filepact_windows.review_page import Look, PageLine, ReviewPage
    from filepact_windows.review_selection import Scope

__all__ = ["review_plainly"]

_STYLES: Final[dict[Look, Style]] = {
    "dim": "dim",
    "strong": "strong",
    "title": "title",
    "warn": "warn",
    "bad": "bad",
    "place": "place",
    "add": "add",
    "remove": "remove",
    "other": "warn",
}
_WORDS: Final = {"tab": "next", "j k": "j k"}


class ReviewTerminal:
    """One review at a terminal that shows text and takes lines."""

    def __init__(self, review: Review, screen: Terminal) -> None:
        self._review = review
        self._screen = screen
        self._selection = ReviewSelection(review)
        self._page: ReviewPage | None = None
        self._shown: tuple[object, ...] = ()

    def run(self) -> int:
        """Ask until nothing waits or the person leaves.

        Returns:
            How many proposals are left.
        """
        while True:
            if self._selection.show(self._review.waiting()) or self._selection.item is None:
                self._load()
            if self._selection.current is None:
                self._tell(ReviewMessage("Nothing waits for you."))
                return 0
            self._print_hunk()
            word = self._read(self._question())
            if word in ("q", None):
                if self._selection.left:
                    left = count(self._selection.left, "mark")
                    self._tell(
                        ReviewMessage(f"{left} not carried out; these hunks wait as before.")
                    )
                return len(self._selection.entries)
            self._do(word or "")

    def _load(self) -> None:
        current = self._selection.current
        self._page = None
        if current is None:
            return
        try:
            item = self._review.item(current.id, fine=self._selection.fine)
        except FilepactError as error:
            self._tell(ReviewMessage(visible(error.message), bad=True))
            self._selection.choose(None)
            return
        self._selection.loaded(item)
        self._page = page_of(item, request=self._selection.request)

    def _question(self) -> str:
        selection = self._selection
        if selection.item is None:
            return "Go on? [q]"
        hunks = len(selection.item.hunks)
        place = f"{selection.place + 1} of {len(selection.entries)}"
        mark = {True: ", marked to accept", False: ", marked to reject", None: ""}
        hunk = selection.current_hunk
        said = mark[None if hunk is None else selection.mark_of(hunk.number)]
        at = f"Proposal {place}, hunk {selection.hunk + 1} of {hunks}{said}"
        return f"{at}: accept? [y n a d s e w c u q, ? for all]"

    def _print_hunk(self) -> None:
        """Show the hunk that is looked at with what stands above it, unless it was shown just now."""
        selection, page = self._selection, self._page
        if page is None or selection.item is None:
            return
        shown = (selection.item.entry, selection.hunk, selection.fine)
        if shown == self._shown:
            return
        self._shown = shown
        at = [number for number, line in enumerate(page.lines) if line.hunk == selection.hunk]
        if not at:
            return
        first = at[0]
        while first and page.lines[first - 1].hunk < 0:
            first -= 1
        # No pager: it would take the keys that answer the question below.
        self._screen.write(_spans(page.lines[first : at[-1] + 1], self._screen.columns))

    def _tell(self, message: ReviewMessage) -> None:
        self._screen.write((TerminalText(f"{message.text}\n", "bad" if message.bad else "warn"),))

    def _read(self, question: str) -> str | None:
        """Return the person's typed answer; None at the end of the input."""
        self._screen.ask(f"{question} ")
        said = sys.stdin.readline()
        return said.rstrip("\n").strip() if said else None

    def _do(self, word: str) -> None:
        acts: dict[str, Callable[[], object]] = {
            "y": lambda: self._mark(True),
            "n": lambda: self._mark(False),
            "a": lambda: self._mark(True, rest=True),
            "d": lambda: self._mark(False, rest=True),
            "s": lambda: self._tell(self._selection.split()),
            "e": self._edit,
            "w": lambda: self._tell(self._selection.carry_out()),
            "j": lambda: self._selection.next_hunk(1) or self._selection.step(1),
            "k": lambda: self._selection.next_hunk(-1) or self._selection.step(-1),
            "J": lambda: self._selection.step(1),
            "K": lambda: self._selection.step(-1),
            "": self._selection.next_unmarked,
            "c": self._reason,
            "t": lambda: self._all("turn"),
            "S": lambda: self._all("session"),
            "A": lambda: self._all("all"),
            "u": lambda: self._tell(self._selection.undo()),
            "r": lambda: self._tell(self._selection.redo()),
            "D": self._diagnose,
            "?": self._help,
        }
        if word.startswith("/"):
            self._find(word[1:])
        elif word in acts:
            acts[word]()
        else:
            self._help()

    def _mark(self, verdict: bool, *, rest: bool = False) -> None:
        if verdict and (message := self._selection.renew()) is not None:
            self._tell(message)
            return
        if self._selection.mark(verdict, rest=rest):
            self._tell(self._selection.carry_out())

    def _reason(self) -> None:
        current = self._selection.current
        reason = self._read("Why? The agent reads it with your decision:")
        if current is not None and reason:
            self._selection.reasons[current.id] = reason

    def _all(self, scope: Scope) -> None:
        name, entries = self._selection.group(scope)
        for one in entries:
            self._tell(ReviewMessage(f"{one.id}  {one.proposal.summary}"))
        answer = self._read(
            f"{name}: {count(len(entries), 'proposal')}. y accepts all, n rejects all:"
        )
        if answer in ("y", "n"):
            self._tell(self._selection.decide_all(entries, accept=answer == "y"))

    def _find(self, text: str) -> None:
        page = self._page
        if page is None or not text:
            return
        wanted = text.casefold()
        after = [line for line in page.lines if line.hunk > self._selection.hunk]
        before = [line for line in page.lines if 0 <= line.hunk <= self._selection.hunk]
        for line in (*after, *before):
            if line.left is not None and wanted in line.left.text.casefold():
                self._selection.hunk = line.hunk
                self._shown = ()
                return
        self._tell(ReviewMessage("Not found."))

    def _edit(self) -> None:
        selection, file = self._selection, self._selection.current_file
        if selection.item is None or file is None:
            return
        text = self._review.proposed_text(selection.item.entry.id, file.path)
        if text is None:
            self._tell(ReviewMessage("It is no text, or is removed: there is nothing to edit."))
            return
        try:
            edited = edit_text(text, file.path.path)
        except FilepactError as error:
            self._tell(ReviewMessage(f"{error.message}. {error.hint}", bad=True))
            return
        if edited == text:
            self._tell(ReviewMessage("The text is as it was."))
        else:
            self._tell(selection.edit(file.path, edited))

    def _diagnose(self) -> None:
        current = self._selection.current
        if current is not None:
            found = self._review.diagnostics(current.id)
            self._tell(ReviewMessage(found or "No language server knows these files."))

    def _help(self) -> None:
        rows = (f"{_WORDS.get(key, key):<5} {does}\n" for key, does in KEYS if key != "tab")
        self._screen.write(plain("".join((*rows, "enter next hunk without a mark\n"))))


def _spans(lines: Sequence[PageLine], columns: int | None) -> Iterator[TerminalText]:
    for line in lines:
        diff = line.left
        if diff is None:
            said = line.text if line.hunk >= 0 else fitted(line.text, columns)
            yield TerminalText(f"{said}\n", _STYLES.get(line.look, "plain"))
            continue
        style: Style = {"+": "add", "-": "remove", "\\": "dim"}.get(diff.sign, "plain")  # type: ignore[assignment]  # all are styles
        word: Style = "added word" if diff.sign == "+" else "removed word"
        yield TerminalText(diff.sign, style)
        at = 0
        for start, end in diff.words:
            yield TerminalText(diff.text[at:start], style)
            yield TerminalText(diff.text[start:end], word)
            at = end
        yield TerminalText(f"{diff.text[at:]}\n", style)


def review_plainly(review: Review, screen: Terminal) -> int:
    """Review what waits at a terminal, line by line; how many proposals are left."""
    return ReviewTerminal(review, screen).run()
