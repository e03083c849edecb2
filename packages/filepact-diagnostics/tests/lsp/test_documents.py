"""A server that applies what it is sent has the text that we have, whatever was changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.lines import LineIndex, Position
from filepact_diagnostics.lsp.documents import OpenDocuments, SyncKind

PATH = "/p/a.py"
TEXTS = st.text(alphabet="ab\r\n\x0c\u2028é😀", max_size=30)


def documents(**kind: object) -> OpenDocuments:
    made = OpenDocuments(lambda _path: "python")
    made.kind = SyncKind(**kind)
    return made


def methods(sent: list) -> list[str]:
    return [method for method, _params in sent]


class Server:
    """Applies notifications as the protocol has it."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.text = ""
        self.version = 0

    def take(self, sent: list) -> None:
        for method, params in sent:
            version = params["textDocument"].get("version", 0)
            assert version > self.version
            self.version = version
            if method == "textDocument/didOpen":
                self.text = params["textDocument"]["text"]
                continue
            for change in params["contentChanges"]:
                if "range" not in change:
                    self.text = change["text"]
                    continue
                index = LineIndex(self.text)
                start, end = (
                    index.offset(Position(place["line"], place["character"]), self.unit)
                    for place in (change["range"]["start"], change["range"]["end"])
                )
                self.text = self.text[:start] + change["text"] + self.text[end:]


@given(st.lists(TEXTS, min_size=2, max_size=5), st.sampled_from(["utf-8", "utf-16"]))
def test_incremental_changes_lead_to_the_same_text(texts: list[str], unit: str) -> None:
    held = documents(change=2)
    held.unit = unit
    server = Server(unit)
    around = "0123456789\n" * 400  # long enough not to be sent whole
    for text in texts:
        server.take(held.hold(PATH, around + text + around))
        assert server.text == around + text + around


def test_a_short_text_is_sent_whole_and_the_same_text_not_at_all() -> None:
    held = documents(change=2)
    held.hold(PATH, "a")
    assert held.hold(PATH, "a") == []
    ((_, params),) = held.hold(PATH, "b")
    assert params["contentChanges"] == [{"text": "b"}]


def test_versions_rise_over_closing_and_a_new_start() -> None:
    held = documents()
    versions = []
    for sent in (
        held.hold(PATH, "a"),
        held.repeat(PATH),
        held.close(PATH),
        held.hold(PATH, "a"),
        held.reopen(),
    ):
        versions += [params["textDocument"].get("version") for _method, params in sent]
    assert versions == [1, 2, None, 3, 4]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"open_close": False, "change": 0}, []),
        (
            {"change": 0, "save": True},
            ["didOpen", "didClose", "didOpen", "didSave", "didClose"],
        ),
        ({"change": 1}, ["didOpen", "didChange", "didClose"]),
    ],
)
def test_a_server_is_told_what_it_asked_for(kind: dict, expected: list[str]) -> None:
    held = documents(**kind)
    sent = [*held.hold(PATH, "a"), *held.hold(PATH, "b"), *held.save(PATH), *held.close(PATH)]
    assert methods(sent) == [f"textDocument/{name}" for name in expected]


def test_a_save_carries_the_text_where_it_is_wanted() -> None:
    held = documents(save=True, save_text=True)
    held.hold(PATH, "a")
    ((_, params),) = held.save(PATH)
    assert params["text"] == "a"


def test_what_is_not_open_is_neither_saved_nor_closed() -> None:
    held = documents(save=True)
    assert held.save(PATH) == []
    assert held.close(PATH) == []
    assert PATH not in held


def test_the_document_used_last_stands_last() -> None:
    held = documents()
    for path in ("/a", "/b", "/a"):
        held.hold(path, "")
    assert held.paths == ("/b", "/a")
