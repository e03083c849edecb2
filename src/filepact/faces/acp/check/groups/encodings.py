"""Line ends, byte order marks and encodings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import ADVICE, PRACTICE, Group
from filepact.faces.acp.check.messages import INVALID
from filepact.faces.acp.check.outcome import expect, shown

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("encodings", "Line ends and encodings")

_BOM = b"\xef\xbb\xbf"


@GROUP.should(ADVICE, "A file of CRLF lines keeps them when the agent sends LF.")
def crlf_kept(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"one\r\ntwo\r\n")
    scene.written(path, "one\n2\nthree\n")
    scene.holds("a.txt", b"one\r\n2\r\nthree\r\n")


@GROUP.should(ADVICE, "CRLF that the agent sends is not doubled.")
def crlf_once(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"one\r\ntwo\r\n")
    scene.written(path, "one\r\n2\r\n")
    scene.holds("a.txt", b"one\r\n2\r\n")
    scene.written(scene.folder.at("new.txt"), "one\r\ntwo\r\n")
    scene.holds("new.txt", b"one\r\ntwo\r\n")


@GROUP.should(ADVICE, "A file of LF lines stays one.")
def lf_kept(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"one\ntwo\n"), "one\n2\n")
    scene.holds("a.txt", b"one\n2\n")


@GROUP.should(PRACTICE, "A carriage return that ends no line stays what it is.")
def lone_cr(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"a\rb\nc\n"), "a\rb\nd\n")
    scene.holds("a.txt", b"a\rb\nd\n")


@GROUP.should(ADVICE, "A file keeps its byte order mark, and gets no second one.")
def bom_kept(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", _BOM + b"one\n"), "two\n")
    scene.holds("a.txt", _BOM + b"two\n")
    scene.written(scene.folder.put("b.txt", _BOM + b"one\n"), "\ufefftwo\n")
    scene.holds("b.txt", _BOM + b"two\n")


@GROUP.should(ADVICE, "A file without a byte order mark gets none.")
def no_bom(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"one\n"), "tw\u00f6\n")
    scene.holds("a.txt", "tw\u00f6\n".encode())


@GROUP.should(ADVICE, "What was read and is written back unchanged leaves every byte as it was.")
def round_trip(scene: Scene) -> None:
    for name, data in (
        ("lf", b"one\ntwo\n"),
        ("crlf", b"one\r\ntwo\r\n"),
        ("mixed", b"one\r\ntwo\nthree\r\n"),
        ("cr", b"one\rtwo\rthree"),
        ("open", b"one\ntwo"),
        ("bom", _BOM + b"one\r\ntwo\r\n"),
        ("marks", "a\u2028b\x0bc\x0cd\x85e\n".encode()),
        ("blank", b"\n\n  \n\t\n"),
    ):
        path = scene.folder.put(f"{name}.txt", data)
        scene.written(path, scene.text(path))
        scene.holds(f"{name}.txt", data)


@GROUP.should(
    ADVICE, "Bytes that are no UTF-8 are refused, or survive; none is replaced or dropped."
)
def other_bytes(scene: Scene) -> None:
    for name, data in (
        ("latin", b"caf\xe9 au lait\nna\xefve\n"),
        ("cut", b"abc \xe4\xb8\n"),
        ("stray", b"a\xffb\xfe\n" * 3),
    ):
        path = scene.folder.put(f"{name}.txt", data)
        read = scene.read(path)
        if not read.is_error:
            expect("\ufffd" not in read.content, f"U+FFFD was shown for a byte of {shown(data)}")
            if not scene.write(path, read.content).is_error:
                scene.holds(f"{name}.txt", data)
        scene.holds(f"{name}.txt", data)


@GROUP.should(ADVICE, "UTF-16 with its mark is refused, or read as the text and written as UTF-16.")
def utf_16(scene: Scene) -> None:
    data = "\ufeffh\u00e9llo\r\n".encode("utf-16-le")
    path = scene.folder.put("a.txt", data)
    read = scene.read(path)
    if not read.is_error:
        text = read.content.removeprefix("\ufeff")
        expect(text in {"h\u00e9llo\r\n", "h\u00e9llo\n"}, f"it answered {shown(read.content)}")
        if not scene.write(path, read.content).is_error:
            scene.holds("a.txt", data)
    scene.holds("a.txt", data)


@GROUP.should(
    PRACTICE, "A text with half of a surrogate pair is refused with -32602, and nothing is written."
)
def half_a_pair(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"old\n")
    scene.write(path, "new \ud800\n").refused(INVALID)
    scene.holds("a.txt", b"old\n")
    scene.write(scene.folder.at("new.txt"), "\udc00").refused(INVALID)
    expect(scene.folder.get("new.txt") is None, "a file was made")
    scene.alive()
