"""Writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import ADVICE, PAGE, PRACTICE, SCHEMA, Group
from filepact.faces.acp.check.outcome import expect, shown

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("writes", "Writing")


@GROUP.must(PAGE, "A file that does not exist is created, before the answer.")
def new_file(scene: Scene) -> None:
    scene.written(scene.folder.at("new.txt"), "new\n")
    scene.holds("new.txt", b"new\n")


@GROUP.must(PAGE, "A file that exists has the sent text and nothing else afterwards.")
def replaced(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"a long text of\nseveral lines\n"), "short\n")
    scene.holds("a.txt", b"short\n")


@GROUP.must(SCHEMA, "The result of a write is an object, or null as the documents show it.")
def answer(scene: Scene) -> None:
    result = scene.write(scene.folder.at("a.txt"), "a\n").result
    expect(result is None or isinstance(result, dict), f"the result is {shown(result)}")


@GROUP.should(ADVICE, "Missing parent folders are made.")
def parents(scene: Scene) -> None:
    scene.written(scene.folder.at("deep/er/new.txt"), "deep\n")
    scene.holds("deep/er/new.txt", b"deep\n")


@GROUP.should(PRACTICE, "What was written is what the next read answers.")
def read_back(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"before\n")
    scene.text(path)
    scene.written(path, "h\u00e9llo\nworld\n")
    scene.same(scene.text(path), "h\u00e9llo\nworld\n")


@GROUP.must(PAGE, "An empty text makes an empty file.")
def empty(scene: Scene) -> None:
    scene.written(scene.folder.at("new.txt"), "")
    scene.holds("new.txt", b"")
    scene.written(scene.folder.put("a.txt", b"text\n"), "")
    scene.holds("a.txt", b"")


@GROUP.should(
    ADVICE, "A text is written to a new file as UTF-8 and in the form in which it was sent."
)
def characters(scene: Scene) -> None:
    text = "h\u00e9llo e\u0301 \u4e2d\u6587 \U0001f469\u200d\U0001f4bb\n"
    scene.written(scene.folder.at("a.txt"), text)
    scene.holds("a.txt", text.encode())


@GROUP.should(PRACTICE, "A text without a final line end is written without one.")
def no_final_line_end(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"one\ntwo\n"), "one\ntwo")
    scene.holds("a.txt", b"one\ntwo")
    scene.written(scene.folder.at("new.txt"), "new")
    scene.holds("new.txt", b"new")


@GROUP.should(PRACTICE, "Writing a file's own text once more is no error.")
def unchanged(scene: Scene) -> None:
    scene.written(scene.folder.put("a.txt", b"same\n"), "same\n")
    scene.holds("a.txt", b"same\n")


@GROUP.should(PRACTICE, "A file keeps its permission bits.")
def mode(scene: Scene) -> None:
    for bits in (0o755, 0o640):
        scene.written(scene.folder.put(f"{bits:o}.sh", b"old\n", bits), "new\n")
        there = scene.folder.mode(f"{bits:o}.sh")
        expect(there == bits, f"{bits:o} became {there:o}")


@GROUP.should(PRACTICE, "No other files are left beside the written one.")
def nothing_left(scene: Scene) -> None:
    folder = scene.folder.below("alone")
    scene.written(folder.put("a.txt", b"old\n"), "new\n")
    scene.written(folder.at("b.txt"), "new\n")
    expect(folder.names() == ["a.txt", "b.txt"], f"there are {folder.names()}")


@GROUP.should(PRACTICE, "Writes to one file that are sent at once happen in their order.")
def in_order(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"first\n")
    texts = [f"{number}\n" * (1 if number % 2 else 3_000) for number in range(20)]
    requests = [scene.write_request(path, text) for text in texts]
    scene.peer.send(*requests)
    for request in requests:
        reply = scene.peer.wait(request)
        expect(not reply.is_error, f"a write was refused: {reply.told}")
    scene.holds("a.txt", texts[-1].encode())


@GROUP.should(PRACTICE, "A read that is sent right behind a write of the same file sees it.")
def read_behind_write(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"old\n")
    for number in range(5):
        write = scene.write_request(path, f"{number}\n" * 1_000)
        read = scene.read_request(path)
        scene.peer.send(write, read)
        expect(not scene.peer.wait(write).is_error, "the write was refused")
        scene.same(scene.peer.wait(read).content, f"{number}\n" * 1_000)


@GROUP.must(PAGE, "Writes to several files that are sent at once all happen.")
def at_once(scene: Scene) -> None:
    names = [f"{number}.txt" for number in range(20)]
    requests = [scene.write_request(scene.folder.at(name), name) for name in names]
    scene.peer.send(*requests)
    for name, request in zip(names, requests, strict=True):
        expect(not scene.peer.wait(request).is_error, f"the write of {name} was refused")
        scene.holds(name, name.encode())


@GROUP.should(PRACTICE, "A text of 5 MB is written whole.")
def five_megabytes(scene: Scene) -> None:
    text = "0123456789\n" * (5_000_000 // 11)
    scene.written(scene.folder.at("big.txt"), text)
    there = scene.folder.get("big.txt") or b""
    expect(there == text.encode(), f"{len(there):,} of {len(text):,} bytes are there")
