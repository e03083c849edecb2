"""Whole files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import PAGE, PRACTICE, SCHEMA, Group, builds_on
from filepact.faces.acp.check.groups.windows import line_and_limit
from filepact.faces.acp.check.outcome import an_object, expect, shown

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("reads", "Reading whole files")

_LINE = b"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567\n"


@GROUP.must(PAGE, "A read without `line` and `limit` answers the whole text.")
def whole(scene: Scene) -> None:
    path = scene.folder.put("a.py", b"def hello():\n    print('hello')\n")
    scene.same(scene.text(path), "def hello():\n    print('hello')\n")


@GROUP.must(SCHEMA, "The result is an object with the text as `content`.")
def answer(scene: Scene) -> None:
    result = an_object(scene.read(scene.folder.put("a.txt", b"a\n")).result, "the result")
    expect(isinstance(result.get("content"), str), f"content is {shown(result.get('content'))}")
    meta = result.get("_meta")
    expect(meta is None or isinstance(meta, dict), f"_meta is {shown(meta)}")


@GROUP.must(PAGE, "An empty file is answered with an empty text.")
def empty(scene: Scene) -> None:
    scene.same(scene.text(scene.folder.put("empty.txt", b"")), "")


@GROUP.must(PAGE, "A text without a final line end does not get one.")
def no_final_line_end(scene: Scene) -> None:
    scene.same(scene.text(scene.folder.put("a.txt", b"one\ntwo")), "one\ntwo")


@GROUP.must(PAGE, "Every character of UTF-8 comes as it is in the file, composed or not.")
def characters(scene: Scene) -> None:
    text = "h\u00e9llo e\u0301 \u4e2d\u6587 \U0001f469\u200d\U0001f4bb \u00a0.\n"
    scene.same(scene.text(scene.folder.put("a.txt", text.encode())), text)


@GROUP.should(PRACTICE, "Control characters and Unicode's line separators stay where they are.")
def separators(scene: Scene) -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\th\n"
    scene.same(scene.text(scene.folder.put("a.txt", text.encode())), text)


@GROUP.should(PRACTICE, "A file's CRLF line ends are answered as they are.")
def crlf(scene: Scene) -> None:
    scene.same(scene.text(scene.folder.put("a.txt", b"one\r\ntwo\r\n")), "one\r\ntwo\r\n")


@GROUP.must(PAGE, "A name with spaces, quotes and letters of any script is read.")
def names(scene: Scene) -> None:
    for name in (
        "with space.txt",
        "qu'o\"te.txt",
        "\u00e4\u4e2d.txt",
        "per%20cent.txt",
        "#a?b.txt",
    ):
        scene.same(scene.text(scene.folder.put(name, name.encode())), name)


@GROUP.should(PRACTICE, "What another program has changed on the disk is seen by the next read.")
def fresh(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"before\n")
    scene.same(scene.text(path), "before\n")
    scene.folder.put("a.txt", b"after it\n")
    scene.same(scene.text(path), "after it\n")


@GROUP.should(
    PRACTICE, "Many reads that are sent at once are all answered, each with its own file."
)
def at_once(scene: Scene) -> None:
    paths = [scene.folder.put(f"{number}.txt", b"%d\n" % number) for number in range(50)]
    requests = [scene.read_request(path) for path in paths]
    scene.peer.send(*requests)
    for number, request in enumerate(requests):
        scene.same(scene.peer.wait(request).content, f"{number}\n")


@GROUP.should(PRACTICE, "A file of 10 MB is answered whole.")
def ten_megabytes(scene: Scene) -> None:
    data = _LINE * (10_000_000 // len(_LINE))
    content = scene.text(scene.folder.put("big.txt", data))
    expect(content == data.decode(), f"{len(content):,} of {len(data):,} characters came")


@GROUP.should(PRACTICE, "Some lines of a file of 40 MB are answered.")
def lines_of_a_large_file(scene: Scene) -> None:
    builds_on(scene, line_and_limit)
    path = scene.folder.put("huge.txt", _LINE * (40_000_000 // len(_LINE)))
    got = scene.text(path, {"line": 10, "limit": 50})
    scene.folder.put("huge.txt", b"")
    wanted = _LINE.decode() * 50
    fits = got in {wanted, wanted.removesuffix("\n")}
    expect(fits, f"{len(got):,} characters came instead of {len(wanted):,}")
