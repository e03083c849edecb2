"""Parts of files: `line` and `limit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import PAGE, PRACTICE, SCHEMA, Group, builds_on
from filepact.faces.acp.check.messages import INVALID
from filepact.faces.acp.check.outcome import expect, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("windows", "Reading some lines")

_TEXT = "one\ntwo\nthree\nfour\nfive\n"


@GROUP.must(PAGE, "`line` is the first line to read, counted from 1.")
def line(scene: Scene) -> None:
    _window(scene, {"line": 2}, "two\nthree\nfour\nfive\n")


@GROUP.must(PAGE, "`limit` is the most lines to read, also without `line`.")
def limit(scene: Scene) -> None:
    _window(scene, {"limit": 2}, "one\ntwo\n")


@GROUP.must(PAGE, "`line` and `limit` together give that many lines from there.")
def line_and_limit(scene: Scene) -> None:
    builds_on(scene, line, limit)
    _window(scene, {"line": 2, "limit": 3}, "two\nthree\nfour\n")


@GROUP.must(PAGE, "`limit` counts as well when `line` is 1.")
def limit_from_line_one(scene: Scene) -> None:
    builds_on(scene, limit)
    _window(scene, {"line": 1, "limit": 2}, "one\ntwo\n")


@GROUP.must(PAGE, "A `limit` beyond the end gives what there is.")
def limit_beyond_the_end(scene: Scene) -> None:
    builds_on(scene, line)
    _window(scene, {"line": 4, "limit": 2_000}, "four\nfive\n")


@GROUP.must(SCHEMA, "`line: null` counts as absent.")
def line_null(scene: Scene) -> None:
    path = scene.folder.put("five.txt", _TEXT.encode())
    scene.same(scene.text(path, {"line": None, "limit": 1}), scene.text(path, {"limit": 1}))


@GROUP.must(SCHEMA, "`limit: null` counts as absent.")
def limit_null(scene: Scene) -> None:
    path = scene.folder.put("five.txt", _TEXT.encode())
    scene.same(scene.text(path, {"line": 4, "limit": None}), scene.text(path, {"line": 4}))


@GROUP.should(PRACTICE, "`line: 0`, which the schema allows, reads from the first line.")
def line_zero(scene: Scene) -> None:
    builds_on(scene, limit)
    _window(scene, {"line": 0, "limit": 1}, "one\n")


@GROUP.should(PRACTICE, "`limit: 0`, which the schema allows, reads nothing.")
def limit_zero(scene: Scene) -> None:
    builds_on(scene, limit)
    _window(scene, {"line": 2, "limit": 0}, "")


@GROUP.should(PRACTICE, "A `line` past the end answers an empty text.")
def past_the_end(scene: Scene) -> None:
    builds_on(scene, line)
    for number in (6, 7, 1_000):
        _window(scene, {"line": number}, "")
        _window(scene, {"line": number, "limit": 5}, "")


@GROUP.should(SCHEMA, "The largest `line` and `limit` of the schema are understood.")
def largest(scene: Scene) -> None:
    builds_on(scene, line)
    _window(scene, {"line": 4_294_967_295, "limit": 1}, "")
    _window(scene, {"line": 5, "limit": 4_294_967_295}, "five\n")


@GROUP.should(PRACTICE, "A part is cut out of the text exactly: its last line keeps its end.")
def exact(scene: Scene) -> None:
    builds_on(scene, line_and_limit)
    for more, wanted in (({"line": 2, "limit": 1}, "two\n"), ({"line": 4}, "four\nfive\n")):
        scene.same(scene.text(scene.folder.put("five.txt", _TEXT.encode()), more), wanted)
    path = scene.folder.put("open.txt", b"one\ntwo")
    scene.same(scene.text(path, {"line": 2, "limit": 1}), "two")


@GROUP.should(PRACTICE, "Parts put together are the whole text.")
def parts_are_the_whole(scene: Scene) -> None:
    builds_on(scene, exact)
    whole = "a\n\n\nb\r\nc\u2028d\n \ne\rf\x0cg"
    path = scene.folder.put("a.txt", whole.encode())
    parts = [scene.text(path, {"line": number, "limit": 2}) for number in (1, 3, 5, 7)]
    scene.same("".join(parts), whole)


@GROUP.should(PRACTICE, "Only LF ends a line; U+2028, NEL, form feed and a lone CR do not.")
def only_lf(scene: Scene) -> None:
    builds_on(scene, line_and_limit)
    for name, mark in (
        ("u2028", "\u2028"),
        ("u2029", "\u2029"),
        ("nel", "\x85"),
        ("vt", "\x0b"),
        ("ff", "\x0c"),
        ("fs", "\x1c"),
        ("cr", "\r"),
    ):
        path = scene.folder.put(f"{name}.txt", f"a{mark}b\nc\nd\n".encode())
        got = scene.text(path, {"line": 2, "limit": 1})
        expect(got in {"c\n", "c"}, f"with {mark!r} in line 1, line 2 was {shown(got)}")


@GROUP.should(PRACTICE, "Lines that end with CRLF count as lines.")
def crlf(scene: Scene) -> None:
    builds_on(scene, line_and_limit)
    path = scene.folder.put("a.txt", b"one\r\ntwo\r\nthree\r\n")
    got = scene.text(path, {"line": 2, "limit": 1})
    expect(got in {"two\r\n", "two\r", "two\n", "two"}, f"line 2 was {shown(got)}")


@GROUP.should(
    SCHEMA,
    "A `line` or `limit` that is no such number counts as absent, or is refused with -32602.",
)
def odd_numbers(scene: Scene) -> None:
    path = scene.folder.put("a.txt", _TEXT.encode())
    numbers: tuple[dict[str, object], ...] = (
        {"line": -1},
        {"line": "x"},
        {"line": [2]},
        {"line": 1.5},
        {"limit": -1},
        {"limit": {}},
        {"limit": "x"},
    )
    for more in numbers:
        reply = scene.read(path, more)
        if reply.is_error:
            reply.refused(INVALID)
        else:
            expect(reply.content == _TEXT, f"{more} gave {shown(reply.content)}")


def _window(scene: Scene, more: Mapping[str, object], wanted: str) -> None:
    """Go on only if a part is the wanted text, be it without the end of its last line."""
    got = scene.text(scene.folder.put("five.txt", _TEXT.encode()), more)
    fits = got in (wanted, wanted.removesuffix("\n"))
    expect(fits, f"{dict(more)} gave {shown(got)} instead of {shown(wanted)}")
