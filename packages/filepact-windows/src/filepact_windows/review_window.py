"""The review on the whole screen of a terminal: what waits on the left, the change on the right.

Both are drawn row by row from what is known, so a change of any size costs what is seen of it.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from pathlib import PurePath
from threading import Event, Thread
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Input

from filepact.domain.operation import who
from filepact.errors import FilepactError
from filepact.text.confusables import visible
from filepact_cli.render import count
from filepact_windows.review_editor import edit_text
from filepact_windows.review_page import PageLine, ReviewPage, page_of
from filepact_windows.review_panes import LIST, DiffList, ProposalList, TextLine
from filepact_windows.review_selection import KEYS, ReviewMessage, ReviewSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.events import Resize

    from filepact_cli.review import Review, ReviewEntry
    from filepact_windows.review_selection import Scope

__all__ = ["ReviewProgram"]

_PATIENCE: Final = 0.25
"""Seconds that a key waits for what it shows; afterwards the window says that it is being loaded."""
_LOOK_AGAIN: Final = 5.0
_NOTHING: Final = "Nothing waits for you. New proposals appear here; q leaves."
_LOADING: Final = ReviewMessage("Loading; it takes longer than usual.")
_SCROLLS: Final = ("down", "up", "pagedown", "pageup", "home", "end")
_WITH_LIST, _TWO_WITH_LIST = 70, 120
"""Columns from which on what waits is listed beside a change, and beside one in two columns."""
_HINT: Final = "y accept  n reject  a,d file  s split  e edit  t turn  A all  u undo  ? keys"


class ReviewProgram(App[None]):
    """The review as a program that takes the whole terminal.

    Args:
        review: What it is about.
        notify: Is told the names of files for which something new waits.
    """

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    CSS = f"""
    Screen {{ background: ansi_default; color: ansi_default; layout: vertical; }}
    #title, #message, #keys {{ height: 1; background: ansi_default; }}
    Horizontal {{ height: 1fr; }}
    #list {{ width: {LIST}; background: ansi_default; scrollbar-size: 1 1; overflow-x: hidden; overflow-y: auto; }}
    #diff {{ width: 1fr; background: ansi_default; border-left: solid ansi_bright_black; scrollbar-size: 1 1;
            overflow-x: hidden; overflow-y: scroll; }}
    #list, #diff {{ scrollbar-color: ansi_bright_black; scrollbar-background: ansi_default;
                   scrollbar-color-active: ansi_white; scrollbar-background-active: ansi_default;
                   scrollbar-color-hover: ansi_white; scrollbar-background-hover: ansi_default; }}
    #prompt {{ display: none; height: 1; border: none; padding: 0; background: ansi_default; }}
    """
    BINDINGS: ClassVar = [
        *(
            Binding(key, f"press('{name}')", show=False)
            for key, name in {
                **{one: one for one in "ynadsewjkJKctSAurDq"},
                "space": "y",
                "x": "n",
                "enter": "enter",
                "escape": "escape",
                "slash": "find",
                "question_mark": "help",
                "vertical_line": "layout",
                "down": "down",
                "up": "up",
                "pagedown": "pagedown",
                "pageup": "pageup",
                "ctrl+f": "pagedown",
                "ctrl+b": "pageup",
                "home": "home",
                "end": "end",
                "b": "beside",
            }.items()
        ),
        Binding("tab", "press('tab')", show=False, priority=True),
        Binding("ctrl+c", "press('leave')", show=False, priority=True),
    ]

    def __init__(
        self, review: Review, notify: Callable[[Sequence[str]], object] | None = None
    ) -> None:
        super().__init__(ansi_color=True)
        self._notify = notify
        self.selection = ReviewSelection(review)
        self._review = review
        self._list = ProposalList(self.selection)
        self._diff = DiffList(self.selection)
        self._title, self._message, self._keys = map(TextLine, ("title", "message", "keys"))
        self._prompt = Input(id="prompt", compact=True)
        self._typed: Callable[[str], None] | None = None
        self._answer: Callable[[bool], None] | None = None
        self._ended = Event()
        self._loads = ThreadPoolExecutor(1)
        self._loading: Future[ReviewPage] | None = None
        self._watch = Thread(target=self._look, daemon=True)
        self._leaving = False
        self._help = False
        self._said: dict[str, str] = {}
        self._question = ""
        self._project = visible(PurePath(review.workspace.guard.roots[0].path).name) or "/"
        self._sought = ""
        self._page_shown: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        yield self._title
        with Horizontal():
            yield self._list
            yield self._diff
        yield self._message
        yield self._prompt
        yield self._keys

    def on_resize(self, event: Resize) -> None:
        """The window has another size."""
        self._fold()
        *keys, last = _HINT.split("  ")
        while keys and len("  ".join([*keys, last])) > event.size.width:
            keys.pop()
        self._keys.say("  ".join([*keys, last]), "dim")

    def _fold(self) -> None:
        """Leave the list out where the change needs its room; two columns need more."""
        self._list.display = self.size.width >= (_TWO_WITH_LIST if self._diff.two else _WITH_LIST)

    def on_mount(self) -> None:
        self.selection.show(self._review.waiting())
        self._draw()
        # What waits is on the screen before the first change is loaded.
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        if self.selection.item is None:
            self._load()
        self._watch.start()

    def on_unmount(self) -> None:
        self._ended.set()
        self._loads.shutdown(wait=False, cancel_futures=True)

    # -- what waits -----------------------------------------------------------------------

    def _look(self) -> None:
        """Tell the window of every change, in a thread of its own."""
        seen: tuple[ReviewEntry, ...] = ()
        while not self._ended.is_set():
            try:
                found = self._review.wait(seen, _LOOK_AGAIN, self._ended)
            except FilepactError as error:
                message = visible(error.message)
                with suppress(RuntimeError):
                    self.call_from_thread(self._say, ReviewMessage(message, bad=True))
                self._ended.wait(_LOOK_AGAIN)
                continue
            if found != seen and not self._ended.is_set():
                seen = found
                with suppress(
                    RuntimeError, FilepactError
                ):  # The window is gone; or it is said next.
                    self.call_from_thread(self._news)

    def _news(self) -> None:
        # What was found may be older than what the person has decided since.
        found = self._review.waiting()
        known = {one.id: one.status for one in self.selection.entries}
        new = [one for one in found if one.id not in known]
        worse = [one for one in found if one.status != "fresh" and known.get(one.id) == "fresh"]
        self._take_in(found)
        if new:
            self.bell()
            if self._notify is not None:
                show = self._review.workspace.show
                names = [show(path) for one in new for path in one.proposal.changes.paths]
                Thread(target=self._notify, args=(names,), daemon=True).start()
            self._say(
                ReviewMessage(
                    f"{count(len(new), 'new proposal')} from {who(new[-1].proposal.session.actor)}."
                )
            )
        elif worse:
            self._say(
                ReviewMessage(
                    f"Others have changed files of {count(len(worse), 'proposal')}.", bad=True
                )
            )

    def _take_in(self, entries: Sequence[ReviewEntry]) -> bool:
        """Show what waits now; whether another proposal is shown for it."""
        loads = self.selection.show(entries)
        if loads:
            self._load()
        self._draw()
        return loads

    def _draw(self) -> None:
        self._list.show()
        selection = self.selection
        waits = count(len(selection.entries), "proposal")
        text = f"{self._project}   {waits} {'waits' if len(selection.entries) == 1 else 'wait'}"
        if selection.current is not None and selection.item is not None:
            text = f"{self._project}   {selection.place + 1} of {waits}"
            text += f"   hunk {selection.hunk + 1}/{len(selection.item.hunks)}"
        if selection.left:
            text += f"   {selection.left} marked"
        if selection.current is not None and (why := selection.reasons.get(selection.current.id)):
            text += f"   why: {visible(why)}"
        self._title.say(text, "strong")
        if self._message.says(self._question):
            self._say(ReviewMessage(""))
        self._diff.refresh()

    def _asks(self) -> str:
        """The question that the keys answer; empty where nothing is shown."""
        item, file = self.selection.item, self.selection.current_file
        if item is None or file is None or not item.hunks:
            return ""
        what = (
            f"hunk {self.selection.hunk + 1} of {len(item.hunks)}" if item.divisible else "it all"
        )
        return f"Accept {what} of {' '.join(visible(file.shown).split())}?  y yes  n no"

    def _load(self) -> None:
        """Load the proposal that is looked at; a large one is shown when it is there."""
        current = self.selection.current
        if current is None:
            self.selection.item = None
            self._diff.show(ReviewPage([PageLine(-1, _NOTHING, "strong")]))
            return
        change_id, fine = current.id, self.selection.fine
        more, request = self._said.get(change_id, ""), self.selection.request

        def load() -> ReviewPage:
            return page_of(self._review.item(change_id, fine=fine), more, request)

        self._loading = future = self._loads.submit(load)
        try:
            future.result(_PATIENCE)
        except LateError:
            self._say(_LOADING)
            future.add_done_callback(self._loaded_late)
            return
        except FilepactError:
            pass
        self._loaded(future)

    def _loaded_late(self, future: Future[ReviewPage]) -> None:
        # It may be there before anybody waits for it, so this is no other thread for certain.
        if not future.cancelled():
            with suppress(RuntimeError):  # The window is gone.
                self.call_later(self._loaded, future)

    def _loaded(self, future: Future[ReviewPage]) -> None:
        if future is not self._loading:
            return
        try:
            page = future.result()
        except FilepactError as error:
            self._diff.show(None)
            self._say(ReviewMessage(visible(error.message), bad=True))
            return
        if page.item is not None:
            self.selection.loaded(page.item)
        if self._message.says(_LOADING.text):
            self._say(ReviewMessage(""))
        shown = None if page.item is None else (page.item.entry.id, page.item.entry.status)
        again, self._page_shown = self._page_shown == shown, shown
        self._diff.show(page)
        self._diff.to_hunk(top=not again)
        self._draw()

    def look_at(self, entry: ReviewEntry) -> None:
        """Look at a proposal of the list."""
        self.selection.choose(entry.id)
        self._load()
        self._draw()

    # -- keys -----------------------------------------------------------------------------

    def action_press(self, key: str) -> None:
        """Do what a key says; what cannot be done just now is told."""
        try:
            self._press(key)
        except FilepactError as error:
            self._say(ReviewMessage(visible(error.message), bad=True))

    def _press(self, key: str) -> None:
        if self._typed is not None:
            if key in ("escape", "leave"):
                self._end_prompt()
            return
        if self._answer is not None:
            if key in ("y", "n", "escape", "leave"):
                answer, self._answer = self._answer, None
                self._say(ReviewMessage(""))
                if key == "y":
                    answer(True)
                elif key == "n":
                    answer(False)
            return
        if self._help and key not in _SCROLLS:
            self._help = False
            self._load()
            return
        leaving, self._leaving = self._leaving, False
        if key in ("q", "leave"):
            self._leave(leaving)
            return
        act = self._acts().get(key)
        if act is not None:
            self._say(ReviewMessage(""))
            act()
            self._draw()

    def _acts(self) -> dict[str, Callable[[], object]]:
        diff, page = self._diff, max(self._diff.size.height - 2, 1)
        return {
            "y": lambda: self._mark(True),
            "n": lambda: self._mark(False),
            "a": lambda: self._mark(True, rest=True),
            "d": lambda: self._mark(False, rest=True),
            "w": self._carry_out,
            "s": self._split,
            "e": self._edit,
            "j": lambda: self._go(1),
            "k": lambda: self._go(-1),
            "J": lambda: self._step(1),
            "K": lambda: self._step(-1),
            "tab": self._next_unmarked,
            "c": self._ask_reason,
            "t": lambda: self._ask_all("turn"),
            "S": lambda: self._ask_all("session"),
            "A": lambda: self._ask_all("all"),
            "u": lambda: self._after(self.selection.undo()),
            "r": lambda: self._after(self.selection.redo()),
            "D": self._diagnose,
            "find": self._ask_find,
            "help": self._show_help,
            "layout": self._turn_layout,
            "beside": self._turn_layout,
            "down": lambda: diff.scroll_relative(y=1, animate=False),
            "up": lambda: diff.scroll_relative(y=-1, animate=False),
            "pagedown": lambda: diff.scroll_relative(y=page, animate=False),
            "pageup": lambda: diff.scroll_relative(y=-page, animate=False),
            "home": lambda: diff.scroll_home(animate=False),
            "end": lambda: diff.scroll_end(animate=False),
        }

    def _say(self, message: ReviewMessage) -> None:
        """Show a message; where there is none to show, what is asked stands in its place."""
        if message.text:
            self._message.say(message.text, "bad" if message.bad else "warn")
            return
        self._question = self._asks()
        self._message.say(self._question, "strong")

    def _leave(self, sure: bool) -> None:
        if self.selection.left and not sure:
            left = count(self.selection.left, "mark")
            self._say(ReviewMessage(f"{left} not carried out: w carries out, q again leaves."))
            self._leaving = True
            return
        self._ended.set()
        self.exit()

    def _go(self, by: int) -> None:
        if self.selection.next_hunk(by):
            self._diff.to_hunk()
        elif self._step(by) and by < 0 and self.selection.item is not None:
            self.selection.hunk = max(len(self.selection.item.hunks) - 1, 0)
            self._diff.to_hunk()

    def _step(self, by: int) -> bool:
        if not self.selection.step(by):
            return False
        self._load()
        return True

    def _next_unmarked(self) -> None:
        if self.selection.next_unmarked():
            self._diff.to_hunk()
        else:
            self._step(1)

    def _mark(self, verdict: bool, *, rest: bool = False) -> None:
        if self.selection.item is None:
            self._say(ReviewMessage("Nothing is shown yet."))
            return
        if not self._diff.shows_hunk:
            self._diff.to_hunk()
            self._say(ReviewMessage("This is the hunk that is meant: once more, if you are sure."))
            return
        if verdict and (message := self.selection.renew()) is not None:
            self._after(message)
            return
        if self.selection.mark(verdict, rest=rest):
            self._carry_out()
        else:
            self._say(ReviewMessage(""))
            self._diff.to_hunk()

    def _carry_out(self) -> None:
        self._after(self.selection.carry_out())

    def _after(self, message: ReviewMessage) -> None:
        """Show what has come of something that may have changed what waits."""
        if not self._take_in(self._review.waiting()):
            self._diff.to_hunk()
        self._say(message)

    def _split(self) -> None:
        message = self.selection.split()
        self._load()
        self._say(message)

    def _turn_layout(self) -> None:
        self._diff.two = not self._diff.two
        self._fold()
        self._diff.lay_out()
        self._diff.to_hunk()

    # -- questions ------------------------------------------------------------------------

    def _ask(self, about: str, value: str, typed: Callable[[str], None]) -> None:
        self._typed = typed
        self._say(ReviewMessage(about))
        self._prompt.value = value
        self._prompt.display = True
        self._prompt.focus()

    def _end_prompt(self) -> None:
        self._typed = None
        self._prompt.display = False
        self.set_focus(None)
        self._say(ReviewMessage(""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The line was typed."""
        typed = self._typed
        self._end_prompt()
        if typed is not None:
            typed(event.value)
            self._draw()

    def _ask_reason(self) -> None:
        current = self.selection.current
        if current is None:
            return
        change_id = current.id

        def typed(text: str) -> None:
            self.selection.reasons[change_id] = text.strip()

        known = self.selection.reasons.get(change_id, "")
        self._ask("Why? The agent reads it with your decision (escape leaves it):", known, typed)

    def _ask_find(self) -> None:
        def typed(text: str) -> None:
            self._sought = text or self._sought
            if not (self._sought and self._diff.find(self._sought)):
                self._say(ReviewMessage("Not found."))

        self._ask("Find (enter alone: the next one):", "", typed)

    def _ask_all(self, scope: Scope) -> None:
        name, entries = self.selection.group(scope)
        if not entries:
            return
        files = {path for one in entries for path in one.proposal.changes.paths}
        about = f"{name}: {count(len(entries), 'proposal')}, {count(len(files), 'file')}."
        self._say(ReviewMessage(f"{about} y accepts all, n rejects all, escape neither."))
        self._answer = lambda yes: self._after(self.selection.decide_all(entries, accept=yes))

    def _edit(self) -> None:
        selection, file = self.selection, self.selection.current_file
        if selection.item is None or file is None:
            return
        text = self._review.proposed_text(selection.item.entry.id, file.path)
        if text is None:
            self._say(ReviewMessage("It is no text, or is removed: there is nothing to edit."))
            return
        try:
            with self.suspend():
                edited = edit_text(text, file.path.path)
        except FilepactError as error:
            self._say(ReviewMessage(f"{error.message}. {error.hint}", bad=True))
            return
        if edited == text:
            self._say(ReviewMessage("The text is as it was."))
            return
        self._after(selection.edit(file.path, edited))

    def _diagnose(self) -> None:
        current = self.selection.current
        if current is None:
            return
        change_id = current.id
        self._say(ReviewMessage("Asking language servers."))

        def ask() -> str:
            return self._review.diagnostics(change_id)

        def told(future: Future[str]) -> None:
            if not future.cancelled():
                with suppress(RuntimeError):  # The window is gone.
                    self.call_later(self._diagnosed, str(change_id), future)

        self._loads.submit(ask).add_done_callback(told)

    def _diagnosed(self, change_id: str, future: Future[str]) -> None:
        try:
            found = future.result()
        except FilepactError as error:
            self._say(ReviewMessage(visible(error.message), bad=True))
            return
        self._said[change_id] = found or "No language server knows these files."
        self._say(ReviewMessage(""))
        self._page_shown = None  # It is shown from the top, where this stands.
        self._load()

    def _show_help(self) -> None:
        self._help = True
        keys = (*KEYS, ("| b", "one column, or two beside each other"))
        self._diff.show(ReviewPage(PageLine(-1, f"{key:<5} {does}") for key, does in keys))
        self._diff.scroll_home(animate=False)
        self._say(ReviewMessage("Arrows scroll; any other key goes back."))
