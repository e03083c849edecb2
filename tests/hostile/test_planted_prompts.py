"""Planted secrets, looked for in what leaves towards a person: prompts, notices, pages, logs, errors."""

from __future__ import annotations

from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Session
from filepact.errors import FilepactError
from filepact.tools.registry import CallContext
from filepact.workspace.guard import Guard
from filepact_cli.review import Review
from filepact_mcp.calls import ElicitationConnection
from filepact_windows.elicitation import ElicitationReview
from filepact_windows.web.access import PageRequest, PageSession
from filepact_windows.web.app import ReviewFrame
from filepact_windows.web.handler import ReviewHandler
from tests.hostile.planted import AGENT, FORMS, PERSON, make, seen_in
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from filepact.workspace.workspace import Workspace
    from tests.hostile.planted import Form, Planted

PAGES = ("/", "/log", "/grants")


class Person:
    """Who is asked in the chat of an agent's program, and what that program is handed for it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.review = Review(workspace, Session("p", PERSON.actor))
        self.chat = ElicitationReview(lambda _name: self.review, frozenset({"form"}), 20)
        self.toolbox = open_toolbox(workspace, own=True)
        self.frame = ReviewFrame(lambda _session: self.review, self.chat)
        self.heard: list[str] = []
        self.asked = self.hidden = 0

    def call(
        self, session: Session, meanwhile: Callable[[], object], tool: str, **given: Any
    ) -> None:
        """A call of an agent, and what the person says when it is put to them."""

        def ask(params: dict[str, Any], _seconds: float, _cancelled: Callable[[], bool]) -> Any:
            self.asked += 1
            self.heard.append(str(params))
            meanwhile()
            return {"action": "accept", "content": {"decision": "accept"}}

        outcome = self.toolbox.call(tool, given, CallContext(session))
        channel = ElicitationConnection(frozenset({"form"}), ask)
        done = self.chat.ask(
            *(outcome, channel, session), tool=tool, arguments=given, cancelled=lambda: False
        )
        self.heard.append(f"{done}")
        # What the frame in the chat of the agent's program is handed of it, and of what waits in its place.
        change = (outcome.receipt or {}).get("operation")
        shown = self.frame.call(
            *(channel, session),
            tool="review_show",
            arguments={"change": change},
            cancelled=lambda: False,
        )
        self.heard.append(f"{shown}")
        self.hidden += "may not see" in f"{shown}"

    def look_around(self) -> None:
        """What stands in lists and logs, without any one proposal being opened."""
        handler, browser = ReviewHandler(self.review, Event()), PageSession()
        for place in PAGES:
            answer = handler.answer(PageRequest("GET", place, ()), browser, {}, {})
            self.heard.append(answer.content.decode())
        for entry in self.review.waiting():
            # What the desktop is told, and what a watcher prints.
            self.heard += [self.workspace.show(one) for one in entry.proposal.changes.paths]
            self.heard.append(entry.proposal.summary)

    def decide(self) -> None:
        """Say yes to all that waits; what an error tells the person of others' changes is for them alone."""
        for entry in self.review.waiting():
            try:
                self.review.decide(self.review.item(entry.id), {1})
            except FilepactError as error:
                self.heard.append(error.code)


def ask_about(folder: Path, forms: Sequence[Form]) -> tuple[list[str], int, int]:
    """What of the secrets was seen, how often the person was asked, and how often a frame hid a change."""
    planted = make(folder, forms)
    root = planted[0].root
    with closing(
        open_workspace(
            [str(root)], state_dir=str(folder / "state"), home=str(folder), mode="preview"
        )
    ) as workspace:
        person = Person(workspace)
        for one in planted:
            session = Session(f"s{one.number}", AGENT)
            _try_all(person, session, one)
        person.look_around()
        person.decide()
        person.look_around()
        return seen_in("".join(person.heard), planted), person.asked, person.hidden


def _try_all(person: Person, session: Session, one: Planted) -> None:
    path = one.path
    person.call(session, lambda: None, "write_file", path="ok.txt", content=f"{one.number}\n")
    if one.form.turns:
        made = {"path": path, "content": "one\ntwo\nthree\n", "createDirs": True}
        person.call(session, lambda: one.plant(0), "write_file", **made)
    for state, (tool, given) in enumerate(
        (
            ("write_file", {"path": path, "content": "A=1\n"}),
            ("write_file", {"path": path, "content": "B=1\n", "append": True}),
            ("manage_files", {"action": "move", "path": path, "to": f"{path}-moved.txt"}),
            ("manage_files", {"action": "delete", "path": path}),
        )
    ):
        person.call(session, lambda state=state: one.plant(state % 3), tool, **given)


@pytest.mark.timeout(600)
@pytest.mark.slow(after=1)
@pytest.mark.parametrize("forms", [FORMS[::12], FORMS[:: often(3, 1)]], ids=["few", "more"])
def test_planted_secrets_are_in_no_prompt_notice_list_or_log(
    tmp_path: Path,
    forms: Sequence[Form],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen, asked, hidden = ask_about(tmp_path, forms)
    assert seen == []
    assert asked >= len(forms)
    assert hidden
    written = capfd.readouterr()
    logged = f"{caplog.text}{written.out}{written.err}"
    assert seen_in(logged, make(tmp_path / "again", forms)) == []


def test_a_prompt_that_does_not_ask_whether_its_author_may_see_it_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "hides", lambda *_arguments, **_words: False)
    seen, *_ = ask_about(tmp_path, FORMS[:1])
    assert "text" in {line.partition(" ")[0] for line in seen}
