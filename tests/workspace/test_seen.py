"""What a session knows of a file, by what it was shown and what it wrote."""

from __future__ import annotations

from filepact.domain.document import Document, Revision, RootId, WorkspacePath
from filepact.domain.operation import Actor, Session
from filepact.text.diff import shown_by_diff
from filepact.text.edit import Edit, EditList
from filepact.values import replace
from filepact.workspace.read_tracker import KnownText, KnownTextCache, TextCache

AGENT = Session("s1", Actor("agent", "tester"))


def document(text: str, name: str = "a") -> Document:
    data = text.encode()
    return Document(WorkspacePath(RootId("/r"), name), data, Revision.of(data, 0o644))


def binary() -> Document:
    data = b"\0\1\2"
    return Document(WorkspacePath(RootId("/r"), "a"), data, Revision.of(data, 0o644))


def known(text: str, *spans: tuple[int, int]) -> KnownText:
    return KnownText.of(document(text), spans)


def test_what_is_kept_is_bounded_and_can_be_dropped() -> None:
    lately: TextCache[str, Document] = TextCache(10)
    lately.put("a", document("123456"))
    assert lately.get("a") == document("123456")
    lately.put("b", document("1234567"))
    assert lately.get("a") is None
    lately.put("b", document("1"))
    lately.put("a", document("123456789"))
    assert lately.get("b") is not None
    lately.drop("b")
    lately.drop("b")
    assert lately.get("b") is None


def test_sessions_know_only_what_they_were_shown_and_can_forget_it() -> None:
    seen = KnownTextCache()
    seen.shown(AGENT, document("text\n"))
    alone = replace(KnownText.of(document("text\n")), sole="alone")
    assert seen.last(AGENT, document("").path) == alone
    assert seen.last(Session("s2", AGENT.actor), document("").path) is None
    seen.forget(AGENT, document("").path)
    assert seen.last(AGENT, document("").path) is None


def test_parts_that_meet_are_one_and_all_parts_are_the_whole() -> None:
    assert known("abcdef", (3, 4), (0, 2), (1, 3)).shown == ((0, 4),)
    assert known("abcdef", (3, 6), (0, 3)).shown is None
    assert known("").shown is None
    assert known("abc").shown == ()


def test_a_reading_of_the_same_text_adds_to_what_was_shown() -> None:
    first = known("a\nb\nc\n", (0, 2))
    assert first.renewed(document("a\nb\nc\n"), [(4, 6)]).shown == ((0, 2), (4, 6))
    assert first.renewed(document("a\nb\nc\n"), None).shown is None
    whole = known("a\nb\nc\n", (0, 6))
    assert whole.renewed(document("a\nb\nc\n"), [(0, 2)]).shown is None


def test_lines_that_changed_unseen_are_known_as_they_were() -> None:
    lines = [f"{number}\n" for number in range(10)]
    was = known("".join(lines), (0, 20))
    lines[1], lines[8] = "one\n", "eight\n"
    text = "".join(lines)
    now = was.renewed(document(text), [(text.index("7"), text.index("9"))])
    lines[1] = "1\n"
    assert now.text == "".join(lines)
    assert now.shown is None


def test_lines_that_were_never_shown_are_known_as_they_are_now() -> None:
    was = known("a\nb\nc\nd\n", (0, 2))
    now = was.renewed(document("a\nb\nC\nd\nnew\n"), [(6, 8)])
    assert now.text == "a\nb\nC\nd\nnew\n"
    assert now.shown == ((0, 2), (6, 8))


def test_lines_added_and_removed_are_known_where_their_place_was_shown() -> None:
    was = known("a\nb\nc\n", (0, 6))
    added = document("a\nx\nb\nc\n")
    assert was.renewed(added, [(0, 4)]).text == "a\nx\nb\nc\n"
    assert was.renewed(added, [(6, 8)]).text == "a\nb\nc\n"
    removed = document("a\nc\n")
    assert was.renewed(removed, [(0, 3)]).text == "a\nc\n"
    assert was.renewed(removed, [(2, 4)]).text == "a\nb\nc\n"


def test_own_edits_are_known_and_the_rest_as_before() -> None:
    first = known("a\nb\nc\nd\n", (0, 2))
    edited = first.edited(EditList((Edit(4, 5, "see"),)))
    assert edited.text == "a\nb\nsee\nd\n"
    assert edited.shown == ((0, 2), (4, 7))
    assert KnownText.of(document("a\n")).edited(EditList((Edit(0, 1, "b"),))).shown is None


def test_a_diff_shows_its_lines_and_three_around() -> None:
    before = "".join(f"{number}\n" for number in range(10))
    after = before.replace("5\n", "five\n")
    assert shown_by_diff(before, after) == [(4, 21)]


def test_what_is_no_text_is_known_by_its_bytes() -> None:
    of_bytes = KnownText.of(binary())
    assert not of_bytes.differs(binary())
    assert of_bytes.differs(document("text"))
    assert KnownText.of(document("text")).differs(binary())
    assert of_bytes.renewed(document("text"), [(0, 1)]).shown == ((0, 1),)
    assert of_bytes.lost_unshown("x") == ()
    assert of_bytes.taken_back("x") is None


def test_lines_that_would_go_unseen_are_named() -> None:
    text = "".join(f"{number}\n" for number in range(10))
    part = known(text, (0, 4), (10, 12))
    assert part.lost_unshown("0\n1\nnew\n5\n") == ((3, 5), (7, 10))
    assert part.lost_unshown(text.replace("3\n", "three\n")) == ()
    blank = known("a\n\n\n", (0, 2))
    assert blank.lost_unshown("b\n") == ()


def test_a_text_that_keeps_something_of_the_last_change_takes_nothing_back() -> None:
    seen = KnownTextCache()
    path = document("").path
    seen.shown(AGENT, document("1\n2\n3\n4\n5\n"))
    seen.record_write(AGENT, {path: KnownText.of(document("one\n2\n3\n4\nfive\n"))})
    now = seen.last(AGENT, path)
    assert now is not None
    assert now.taken_back("one\n2\nthree\n4\n5\n") is None
    assert now.taken_back("1\n2\nthree\n4\n5\n") == ("1\n2\n3\n4\n5\n", "own")
    assert now.taken_back("I\n2\nthree\n4\nV\n") is None
    assert now.taken_back("1\n2\n3\n4\n5\n") is None
