"""Which page answers what is asked, and what a form does.  Nothing is decided here."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from functools import partial
from hashlib import sha256
from posixpath import basename
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import Approval
from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, NotFoundError
from filepact.text.confusables import visible
from filepact.values import dataclass, field
from filepact_cli.review import in_groups
from filepact_windows.web.elements import Element, tag
from filepact_windows.web.frame import (
    MOST_REASON,
    LineSelection,
    PageContext,
    framed,
    message_page,
    secret_field,
)
from filepact_windows.web.pages import (
    ReviewPages,
    edit_page,
    grants_page,
    inbox_page,
    proposal_page,
    turn_page,
)
from filepact_windows.web.timeline import operation_page, timeline_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

    from filepact_cli.review import Review, ReviewEntry, ReviewGroup, ReviewItem, ReviewResult
    from filepact_windows.web.access import PageRequest, PageSession

__all__ = ["PageAnswer", "ReviewHandler"]

_WAIT: Final = 20.0  # seconds; browsers and proxies give up later
_WAITERS: Final = 8
_REMEMBERED: Final = 1_000
_KEPT: Final = 4
_LISTED: Final = 200
_SEARCHED: Final = 2_000
_TURN: Final = 20  # proposals of a turn on one page
_HTML: Final = "text/html"
_FOLD: Final = re.compile(r"(?:above|below)[0-9]{1,6}")

_Fields = dict[str, str]


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """An answer to a browser.

    Attributes:
        content: Its body.
        code: Of HTTP.
        media: The type of the content.
        headers: Besides those of every answer.
        shows: Pages of proposals that a person has seen once all of it was sent, with where that is kept.
    """

    content: bytes
    code: int = 200
    media: str = _HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    shows: tuple[tuple[set[int], int], ...] = ()


class ReviewHandler:
    """The pages of one review.

    Args:
        review: The service, which knows and decides.
        ended: Set when nobody is to wait any more.
    """

    def __init__(self, review: Review, ended: Event) -> None:
        self._review = review
        self._ended = ended
        self._lock = Lock()
        self._waiters = BoundedSemaphore(_WAITERS)
        self._versions: OrderedDict[str, tuple[ReviewEntry, ...]] = OrderedDict()
        self._seen: OrderedDict[tuple[str, bool], set[int]] = OrderedDict()
        self._pages: OrderedDict[tuple[str, bool], ReviewPages] = OrderedDict()
        self._redoable = 0

    # -- finding the page -----------------------------------------------------------------

    def answer(
        self,
        asked: PageRequest,
        session: PageSession,
        query: Mapping[str, str],
        form: Mapping[str, str],
    ) -> PageAnswer:
        """The answer to a request that was let in."""
        parts = asked.path.strip("/").split("/") if asked.path != "/" else []
        if "/" + "/".join(parts) != asked.path:
            return self._missing(session)
        if asked.method == "POST":
            return self._act(session, parts, form)
        match parts:
            case []:
                # A page that only looks for news does not take what the next one is to say.
                tells = query.get("part") != "1"
                return self._html(inbox_page(self._context(session, tells=tells)))
            case ["wait"]:
                return self._wait(query)
            case ["p", change]:
                return self._proposal(session, change, query)
            case ["p", change, "edit"]:
                return self._edit(session, change, query)
            case ["p", change, "diagnostics"]:
                return self._diagnostics(session, change, query)
            case ["turn", change]:
                return self._turn(session, change)
            case ["grants"]:
                granted = self._review.workspace.approving.granted
                counting = frozenset(one.id for one in granted.in_force())
                return self._html(grants_page(self._context(session), granted.listed(), counting))
            case ["log"]:
                return self._log(session, query)
            case ["o", change]:
                return self._operation(session, change)
            case _:
                return self._missing(session)

    def _act(
        self, session: PageSession, parts: Sequence[str], form: Mapping[str, str]
    ) -> PageAnswer:
        match parts:
            case ["p", change]:
                return self._decide(session, change, form)
            case ["p", change, "edit"]:
                return self._propose_edited(session, change, form)
            case ["turn", change]:
                return self._decide_turn(session, change, form)
            case ["grants", given]:
                revoked = self._review.workspace.approving.granted.revoke(given)
                session.said.append((f"{revoked.id} counts no more.", False))
                return _go("/grants")
            case ["undo"]:
                return self._go_back(session, self._review.undo, "taken back")
            case ["redo"]:
                return self._go_back(session, self._review.redo, "brought back")
            case ["o", change, "undo"]:
                return self._take_back(session, change, partly=form.get("partly") == "1")
            case _:
                return self._missing(session)

    def _missing(self, session: PageSession) -> PageAnswer:
        return self._html(message_page(self._context(session), "There is no such page"), 404)

    def refusal(self, session: PageSession, code: int, error: FilepactError) -> PageAnswer:
        """A page that says why something was not done."""
        lines = (error.message, error.hint, error.code)
        context, rest = self._context(session), Element()
        others, operation = error.details.get("others"), error.details.get("operation")
        if others and operation:
            rest = tag(
                *("form", secret_field(context)),
                tag("input", type="hidden", name="partly", value="1"),
                tag("button", f"Change the other {others:,}", id="partly"),
                method="post",
                action=f"/o/{operation}/undo",
            )
        page = message_page(context, "That was not done", *filter(None, (*lines, rest)))
        return self._html(page, code)

    def over(self, session: PageSession, error: NoChangeError) -> PageAnswer:
        """The way on from what waits no more: to what stands in its place, or to the list."""
        later = error.details.get("superseded_by")
        session.said.append((f"{error.message}.", True))
        return _go(f"/p/{later}" if later else "/")

    def _html(
        self, page: Element, code: int = 200, shows: Sequence[tuple[ReviewPages, int]] = ()
    ) -> PageAnswer:
        seen = tuple((pages.seen, number) for pages, number in shows)
        return PageAnswer(page.encode("utf-8", "backslashreplace"), code, shows=seen)

    def _context(self, session: PageSession, *, tells: bool = True) -> PageContext:
        entries = self._review.waiting()
        said = tuple(session.said) if tells else ()
        if tells:
            session.said.clear()
        return PageContext(
            session.secret,
            self._version(entries),
            entries,
            session.view,
            said,
            undoable=self._review.last_done or "",
            redoable=self._redoable > 0,
            project=visible(basename(self._review.workspace.guard.roots[0].path)),
            requests=self._review.workspace.asked.requests(),
        )

    # -- news -----------------------------------------------------------------------------

    def _version(self, entries: tuple[ReviewEntry, ...]) -> str:
        facts = [
            (one.id, one.status, [(str(m.path), m.said, m.since) for m in one.moved])
            for one in entries
        ]
        version = sha256(json.dumps(facts).encode()).hexdigest()[:16]
        with self._lock:
            self._versions[version] = entries
            self._versions.move_to_end(version)
            while len(self._versions) > _WAITERS:
                self._versions.popitem(last=False)
        return version

    def _wait(self, query: Mapping[str, str]) -> PageAnswer:
        """Answer with the waiting proposals once they are others than the page knows."""
        with self._lock:
            seen = self._versions.get(query.get("seen", ""))
        if seen is not None and self._waiters.acquire(blocking=False):
            try:
                entries = self._review.wait(seen, _WAIT, self._ended)
            finally:
                self._waiters.release()
        else:
            entries = self._review.waiting()
        news = {
            "version": self._version(entries),
            "waiting": [str(one.id) for one in entries],
            "ended": self._ended.is_set(),
        }
        return PageAnswer(json.dumps(news).encode(), media="application/json")

    # -- a proposal -----------------------------------------------------------------------

    def _paged(self, change: str, *, fine: bool) -> ReviewPages:
        """A proposal as it is now, and what of it was shown."""
        item = self._review.item(change, fine=fine)
        key = (str(item.entry.id), fine)
        with self._lock:
            known = self._pages.get(key)
            seen = self._seen.setdefault(key, set())
            self._seen.move_to_end(key)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            if known is not None and known.item == item and known.seen is seen:
                self._pages.move_to_end(key)
                return known
        made = ReviewPages(item, seen)
        with self._lock:
            self._pages[key] = made
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
        return made

    def _proposal(self, session: PageSession, change: str, query: Mapping[str, str]) -> PageAnswer:
        view = query.get("view")
        if view in ("unified", "split"):
            session.view = "split" if view == "split" else "unified"
        pages = self._paged(change, fine=query.get("fine") == "1")
        number = _whole(query.get("page", "1"))
        if not 1 <= number <= pages.count:
            return self._missing(session)
        opened = frozenset(filter(_FOLD.fullmatch, query.get("open", "")[:_LISTED].split(",")))
        text = partial(self._review.text_before, str(pages.item.entry.id))
        unfolded = LineSelection(opened, text)
        page = proposal_page(self._context(session), pages, number, unfolded)
        return self._html(page, shows=[(pages, number)])

    def _decide(self, session: PageSession, change: str, form: Mapping[str, str]) -> PageAnswer:
        what, _, named = form.get("do", "").partition(":")
        if what not in ("accept", "reject"):
            return PageAnswer(b"", 204)
        pages = self._paged(change, fine=form.get("fine") == "1")
        numbers = _numbers(named)
        if what == "accept" and not pages.shown().issuperset(numbers):
            raise InvalidParamsError(
                "not all of this was shown in full, so it cannot be accepted",
                hint="Look at all pages of it first.",
            )
        reason = form.get("reason", "")[:MOST_REASON]
        also = form.get("also", "").strip() if what == "accept" else ""
        granted, proposal = self._review.workspace.approving.granted, pages.item.entry.proposal
        if also:
            granted.check(proposal, also)
        yes, no = (numbers, ()) if what == "accept" else ((), numbers)
        result = self._review.decide(pages.item, yes, no, reason)
        session.said.append(_told(result, what, len(numbers), len(pages.item.hunks)))
        if also and result.receipt is not None:
            given = granted.give(proposal, also, Approval(self._review.session.actor, reason))
            session.said.append(
                (f"{also} is approved in advance for this session: {given.id}.", False)
            )
        if result.waits is not None:
            return _go(
                f"/p/{result.waits}{'?fine=1' if pages.item.fine and not result.moved else ''}"
            )
        return _go(self._next())

    def _next(self) -> str:
        """The page of the oldest that waits."""
        return next((f"/p/{one.id}" for one in self._review.waiting()), "/")

    def _diagnostics(
        self, session: PageSession, change: str, query: Mapping[str, str]
    ) -> PageAnswer:
        said = self._review.diagnostics(change) or "No language server says anything of it."
        content = tag("pre", said, class_="said")
        if query.get("part") == "1":
            return self._html(content)
        return self._html(framed(self._context(session), "Diagnostics", content, kind="message"))

    # -- editing --------------------------------------------------------------------------

    def _editable(self, item: ReviewItem, index: str) -> tuple[int, str]:
        """The text of a file of a proposal that can be edited in a field.

        Raises:
            InvalidParamsError: It cannot: what a field shows would not be what is in it.
            NotFoundError: There is no such file.
        """
        number = _whole(index)
        if not 0 <= number < len(item.files):
            raise NotFoundError("there is no such file in this proposal")
        text = self._review.proposed_text(item.entry.id, item.files[number].path)
        plain = text is not None and (text.replace("\r\n", "\n") if "\r\n" in text else text)
        mixed = text is not None and "\r\n" in text and text.count("\n") != text.count("\r\n")
        if text is None or plain is False or mixed or visible(plain) != plain:
            raise InvalidParamsError(
                "this text cannot be edited in a page, which would not show or keep all that is in it",
                hint="Edit it in the terminal: `filepact review`.",
            )
        return number, text

    def _edit(self, session: PageSession, change: str, query: Mapping[str, str]) -> PageAnswer:
        item = self._paged(change, fine=False).item
        number, text = self._editable(item, query.get("file", ""))
        return self._html(edit_page(self._context(session), item, number, text))

    def _propose_edited(
        self, session: PageSession, change: str, form: Mapping[str, str]
    ) -> PageAnswer:
        item = self._paged(change, fine=False).item
        number, text = self._editable(item, form.get("file", ""))
        # A form has CRLF at the end of every line, whatever the text had.
        edited = form.get("text", "").replace("\r\n", "\n")
        if "\r\n" in text:
            edited = edited.replace("\n", "\r\n")
        reason = form.get("reason", "")[:MOST_REASON]
        now = self._review.edit(item.entry.id, {item.files[number].path: edited}, reason)
        session.said.append(
            ("Your text waits. Nothing is done yet: look at it, and accept it.", False)
        )
        return _go(f"/p/{now}")

    # -- a turn ---------------------------------------------------------------------------

    def _group(self, change: str) -> ReviewGroup:
        """The turn in which a proposal that waits was made.

        Raises:
            NoChangeError: It does not wait any more.
        """
        for group in in_groups(self._review.waiting()):
            if any(one.id == change for one in group.entries):
                return group
        raise NoChangeError(f"{visible(change[:20])} no longer waits")

    def _turn(self, session: PageSession, change: str) -> PageAnswer:
        group = self._group(change)
        shown: list[ReviewPages] = []
        left: list[str] = []
        for one in group.entries:
            pages = self._paged(one.id, fine=False) if len(shown) < _TURN else None
            if pages is None or pages.count > 1:
                left.append(one.id)
            else:
                shown.append(pages)
        page = turn_page(self._context(session), group, shown, left)
        return self._html(page, shows=[(pages, 1) for pages in shown])

    def _decide_turn(
        self, session: PageSession, change: str, form: Mapping[str, str]
    ) -> PageAnswer:
        what, _, named = form.get("do", "").partition(":")
        if what not in ("accept", "reject"):
            return PageAnswer(b"", 204)
        group = self._group(change)
        ids = [one.id for one in group.entries if one.id in named.split(",")]
        reason = form.get("reason", "")[:MOST_REASON]
        if what == "reject":
            results = self._review.reject_all(ids, reason)
        else:
            for one in ids:
                pages = self._paged(one, fine=False)
                if not pages.shown().issuperset(hunk.number for hunk in pages.item.hunks):
                    raise InvalidParamsError(
                        f"not all of {one} was shown in full, so it cannot be accepted",
                        hint="Look at it first.",
                    )
            results = self._review.accept_all(ids, reason)
        session.said += [_told(one, what, 1, 1) for one in results]
        return _go(self._next())

    # -- going back, and looking back -----------------------------------------------------

    def _go_back(
        self, session: PageSession, act: Callable[[], ReviewResult], done: str
    ) -> PageAnswer:
        result = act()
        self._redoable += 1 if done == "taken back" else -1
        session.said.append((f"{result.id} was {done}.", False))
        return _go("/")

    def _take_back(self, session: PageSession, change: str, *, partly: bool) -> PageAnswer:
        done = self._review.workspace.undo(self._review.session, change, partly=partly)
        part = " in part" if done.left else ""
        session.said.append((f"{change} was taken back{part}, as {done.operation}.", False))
        session.said += [(f"Left as it is: {one.reason}", True) for one in done.left]
        return _go("/log")

    def _log(self, session: PageSession, query: Mapping[str, str]) -> PageAnswer:
        wanted = {name: query[name] for name in ("path", "agent", "turn") if query.get(name)}
        before = _whole(query.get("before", ""))
        workspace = self._review.workspace
        narrow = "agent" in wanted or "turn" in wanted
        some = workspace.log(
            path=wanted.get("path"),
            limit=_SEARCHED if narrow else _LISTED + 1,
            before_seq=before if before > 0 else None,
        )
        found = [
            one
            for one in some
            if wanted.get("agent", one.session.actor.name) == one.session.actor.name
            and wanted.get("turn", one.session.turn) == one.session.turn
        ]
        listed = found[:_LISTED]
        full = len(found) > _LISTED or (narrow and len(some) == _SEARCHED)
        last = (listed if len(found) > _LISTED else some)[-1].seq if full else None
        shown = {str(one.id): tuple(map(workspace.show, one.changes.paths)) for one in listed}
        page = timeline_page(self._context(session), listed, shown, wanted, more=last)
        return self._html(page)

    def _operation(self, session: PageSession, change: str) -> PageAnswer:
        operation = self._review.workspace.operation(change)
        receipt = self._review.workspace.receipt(operation)
        return self._html(operation_page(self._context(session), operation, receipt))


def _go(place: str) -> PageAnswer:
    return PageAnswer(b"", 303, headers={"Location": place})


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InvalidParamsError("these are not numbers of hunks")
    return tuple(map(int, parts))


def _told(result: ReviewResult, what: str, some: int, every: int) -> tuple[str, bool]:
    """Return a decision's result in words, and whether it is bad news."""
    part = f"{some} of {every} hunks of {result.id}" if some < every else str(result.id)
    if result.error is not None:
        return f"{result.id}: {result.error.message}", True
    if result.moved:
        return (
            f"Nothing was done: others have changed the files since. This is what fits them now: {result.waits}.",
            True,
        )
    if what == "reject":
        return f"{part}: rejected.", False
    undo = result.receipt.operation if result.receipt else ""
    return f"{part}: done, as {undo}.", False
