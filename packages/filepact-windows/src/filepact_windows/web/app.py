"""The review within a chat: the document that a host puts into a frame, and the calls that the frame makes.

The wire does not tell a call by the frame from one by the model: a host can make both, and a secret that the
frame is given is read by every model that may read resources.  So no call decides anything: one shows what its
caller has proposed, drawn as in the page, and one has the person asked, in the host's own dialog, where they
have set that they may be asked at all.
"""

from __future__ import annotations

import time
from base64 import b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pkgutil import get_data
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import who
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.tools.answers import CallResult, failure
from filepact_mcp.app import SHOW
from filepact_windows.web.elements import Element, document, join, tag
from filepact_windows.web.frame import diff_table, dim
from filepact_windows.web.pages import STATUS, ReviewPages, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filepact.domain.operation import Proposal, Session
    from filepact_cli.review import Review, ReviewFile, ReviewItem
    from filepact_mcp.calls import ElicitationConnection, ElicitationRequest
    from filepact_windows.drawn_diff import DiffLine
    from filepact_windows.elicitation import ElicitationReview

__all__ = ["ReviewFrame"]

_LONGEST: Final = 200  # characters of the list of hunks
_LINES: Final = 1_000  # of one page: it goes through two programs and as many frames


@cache
def _document() -> str:
    """The HTML of the frame; it holds nothing of anybody's."""
    style, script = ((get_data(__package__, name) or b"").decode() for name in _PARTS)
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("style", Element(style)),
    )
    body = (
        tag("p", "…", id="said", role="status"),
        tag("main", id="card", class_="app"),
        tag("script", Element(script)),
    )
    return document("What waits", head, body, data_kind="app")


_PARTS: Final = ("page.css", "app.js")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


class ReviewFrame:
    """Answers the calls that the frame of the review makes.  For all threads.

    Args:
        review: Opens the review for a session, which looks and does not decide.
        chat: Asks the person; None where they have not set that they may be asked.
    """

    def __init__(
        self,
        review: Callable[[Session], Review],
        chat: ElicitationReview | None = None,
    ) -> None:
        self._review = review
        self._chat = chat

    def document(self) -> str:
        """The HTML of the frame."""
        return _document()

    def call(
        self,
        channel: ElicitationConnection,
        session: Session,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        """The answer to a call of the frame's; it goes into the audit log as any other.

        Args:
            channel: The way to the person.
            session: Whose call it is.
            tool: One of `APP_TOOLS`.
            arguments: With which.
            cancelled: Whether nobody waits for the answer any more.
        """
        begun = time.perf_counter()
        review = self._review(session)
        code = "OK"
        try:
            given = arguments if isinstance(arguments, dict) else {}
            proposal = self._own(review, session, given.get("change"))
            if tool == SHOW:
                return self._shown(review, proposal, channel, given.get("page", 1))
            return self._asked(proposal, channel, session, tool, arguments, cancelled)
        except FilepactError as error:
            code = error.code
            return failure(error)
        finally:
            if (audit := review.workspace.audit) is not None:
                audit.called(session, tool, "", code, time.perf_counter() - begun)

    def _own(self, review: Review, session: Session, change: object) -> Proposal:
        """A proposal of the session's own, or what stands in its place.

        Raises:
            NotFoundError: There is none, or it is somebody else's.
        """
        workspace = review.workspace
        # What is not there is refused in the words for what is somebody else's: neither is told from the other.
        with suppress(NotFoundError):
            if isinstance(change, str) and workspace.proposal(change).session.id == session.id:
                newest = workspace.newest(change)
                if newest.session.id == session.id:
                    return newest
        raise NotFoundError("this session has no such change")

    def _shown(
        self, review: Review, proposal: Proposal, channel: ElicitationConnection, page: object
    ) -> CallResult:
        waits = proposal.state == "proposed"
        if waits:
            item = review.item(proposal.id)
            whole = review.shows_author_all(item)
            asks = self._chat is not None and self._chat.may_ask(item, channel, whole=whole)
            number = page if type(page) is int and page > 0 else 1
            html, number, pages = _card(item, number, whole=whole, asks=asks)
        else:
            asks, state, number, pages = False, proposal.state, 1, 1
            said = f"{state}, {proposal.reason}" if proposal.reason else state
            html = _over(proposal, said)
        facts = {
            "change": str(proposal.id),
            "waits": waits,
            "asks": asks,
            "html": html,
            "page": number,
            "pages": pages,
        }
        told = "waits for a person" if waits else f"no longer waits: {proposal.state}"
        return CallResult(f"{proposal.id} {told}; the frame shows it.", receipt=facts, whole=True)

    def _asked(
        self,
        proposal: Proposal,
        channel: ElicitationConnection,
        session: Session,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        marked = arguments.get("hunks", "") if isinstance(arguments, dict) else ""
        if not isinstance(marked, str) or len(marked) > _LONGEST:
            raise InvalidParamsError("these are not numbers of hunks", hint="Send them like 1,3-5.")
        if self._chat is None:
            raise InvalidParamsError(
                "the person's settings do not allow questions here",
                hint="The person finds it with `filepact review --list`, and decides there.",
            )
        return self._chat.ask_again(
            proposal.id,
            marked,
            channel,
            session,
            tool=tool,
            arguments=arguments,
            cancelled=cancelled,
        )


_HIDDEN: Final = (
    "It holds what the agent may not see, and your chat is the agent's program: look at it in the "
    "terminal or in your browser."
)


def _card(item: ReviewItem, page: int, *, whole: bool, asks: bool) -> tuple[Element, int, int]:
    """A change that waits, the number of the page of it, and how many there are.

    Args:
        item: The change.
        page: Which of its pages.
        whole: Whether the author may see all of it; nothing of what it holds is shown else.
        asks: Whether the person can be asked about it here.
    """
    pages = ReviewPages(item, set(), most=_LINES)
    number = min(page, pages.count)
    proposal = item.entry.proposal
    mark = asks and item.divisible and len(item.hunks) > 1
    body = join(_files(pages, number, mark=mark)) if whole else tag("p", _HIDDEN, class_="warn")
    bar = (tag("button", "Answer in the chat", id="answer", class_="yes"),) if asks else ()
    elsewhere = dim(f"filepact review, or filepact approve {proposal.id}")
    content = tag(
        "article",
        tag("h1", proposal.summary),
        tag("p", tag("b", who(proposal.session.actor)), tag("code", proposal.id), class_="facts"),
        tag("p", STATUS[item.entry.status], class_="warn") if item.entry.moved else Element(),
        tag(
            "ul",
            *(tag("li", one.name, dim(f" {one.why}")) for one in item.rules),
            class_="rules",
        ),
        body,
        _turning(number, pages.count) if whole else Element(),
        tag("p", *bar, elsewhere, class_="decide"),
        class_="card",
    )
    return content, number, pages.count


def _over(proposal: Proposal, said: str) -> Element:
    """A change that waits no more, with what has become of it."""
    facts = tag("p", tag("code", proposal.id), said, class_="facts")
    return tag("article", tag("h1", proposal.summary), facts, class_="card")


def _files(pages: ReviewPages, page: int, *, mark: bool) -> Sequence[Element]:
    lines = pages.lines(page)
    return [
        _file(pages, file, lines, mark=mark)
        for file in pages.item.files
        if any(hunk.number in lines for hunk in file.hunks)
    ]


def _file(
    pages: ReviewPages, file: ReviewFile, lines: Mapping[int, tuple[DiffLine, ...]], *, mark: bool
) -> Element:
    head = tag("summary", tag("b", file.shown, class_="path"), tag("small", kind_of(file)))
    hunks = [
        tag(
            "section",
            tag("p", *_named(hunk.number, pages.total, mark=mark), class_="head"),
            diff_table(lines[hunk.number], "unified", hunk.path.path),
            class_="hunk",
        )
        for hunk in file.hunks
        if hunk.number in lines
    ]
    return tag("details", head, *hunks, open=True, class_="sheet")


def _named(number: int, total: int, *, mark: bool) -> Sequence[Element]:
    said = f"hunk {number} of {total}"
    if not mark:
        return (tag("span", said),)
    box = tag("input", type="checkbox", class_="mark", value=str(number), checked=True)
    return (tag("label", box, f" {said}"),)


def _turning(page: int, count: int) -> Element:
    """Buttons to the other pages; none where there is but one."""
    if count < 2:
        return Element()
    buttons = [
        tag("button", label, class_="turn", value=str(number))
        for label, number in (("Back", page - 1), ("Next", page + 1))
        if 0 < number <= count
    ]
    return tag("p", f"page {page} of {count} ", *buttons, class_="tools")
