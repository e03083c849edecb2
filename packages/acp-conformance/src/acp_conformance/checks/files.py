"""Checks of reading and writing files: whole, by lines, line ends and encodings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_conformance.check import ADVICE, PAGE, PRACTICE, SCHEMA, CheckGroup, requires
from acp_conformance.connection import INVALID_PARAMS
from acp_conformance.report import as_object, expect, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acp_conformance.check import CheckContext

READS = CheckGroup("reads", "Reading whole files")

_LINE = b"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567\n"


@READS.must(PAGE, "A read without `line` and `limit` answers the whole text.")
def reads_whole(context: CheckContext) -> None:
    path = context.folder.put("a.py", b"def hello():\n    print('hello')\n")
    context.expect_text(context.text(path), "def hello():\n    print('hello')\n")


@READS.must(SCHEMA, "The result is an object with the text as `content`.")
def reads_answer(context: CheckContext) -> None:
    result = as_object(context.read(context.folder.put("a.txt", b"a\n")).result, "the result")
    expect(isinstance(result.get("content"), str), f"content is {short(result.get('content'))}")
    meta = result.get("_meta")
    expect(meta is None or isinstance(meta, dict), f"_meta is {short(meta)}")


@READS.must(PAGE, "An empty file is answered with an empty text.")
def reads_empty(context: CheckContext) -> None:
    context.expect_text(context.text(context.folder.put("empty.txt", b"")), "")


@READS.must(PAGE, "A text without a final line end does not get one.")
def reads_no_final_line_end(context: CheckContext) -> None:
    context.expect_text(context.text(context.folder.put("a.txt", b"one\ntwo")), "one\ntwo")


@READS.must(PAGE, "Every character of UTF-8 comes as it is in the file, composed or not.")
def reads_characters(context: CheckContext) -> None:
    text = "h\u00e9llo e\u0301 \u4e2d\u6587 \U0001f469\u200d\U0001f4bb \u00a0.\n"
    context.expect_text(context.text(context.folder.put("a.txt", text.encode())), text)


@READS.should(PRACTICE, "Control characters and Unicode's line separators stay where they are.")
def reads_separators(context: CheckContext) -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\th\n"
    context.expect_text(context.text(context.folder.put("a.txt", text.encode())), text)


@READS.should(PRACTICE, "A file's CRLF line ends are answered as they are.")
def reads_crlf(context: CheckContext) -> None:
    context.expect_text(
        context.text(context.folder.put("a.txt", b"one\r\ntwo\r\n")), "one\r\ntwo\r\n"
    )


@READS.must(PAGE, "A name with spaces, quotes and letters of any script is read.")
def reads_names(context: CheckContext) -> None:
    for name in (
        "with space.txt",
        "qu'o\"te.txt",
        "\u00e4\u4e2d.txt",
        "per%20cent.txt",
        "#a?b.txt",
    ):
        context.expect_text(context.text(context.folder.put(name, name.encode())), name)


@READS.should(PRACTICE, "What another program has changed on the disk is seen by the next read.")
def reads_fresh(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"before\n")
    context.expect_text(context.text(path), "before\n")
    context.folder.put("a.txt", b"after it\n")
    context.expect_text(context.text(path), "after it\n")


@READS.should(
    PRACTICE, "Many reads that are sent at once are all answered, each with its own file."
)
def reads_at_once(context: CheckContext) -> None:
    paths = [context.folder.put(f"{number}.txt", b"%d\n" % number) for number in range(50)]
    requests = [context.read_request(path) for path in paths]
    context.connection.send(*requests)
    for number, request in enumerate(requests):
        context.expect_text(context.connection.wait(request).content, f"{number}\n")


@READS.should(PRACTICE, "A file of 10 MB is answered whole.")
def reads_ten_megabytes(context: CheckContext) -> None:
    data = _LINE * (10_000_000 // len(_LINE))
    content = context.text(context.folder.put("big.txt", data))
    expect(content == data.decode(), f"{len(content):,} of {len(data):,} characters came")


@READS.should(PRACTICE, "Some lines of a file of 40 MB are answered.")
def reads_lines_of_a_large_file(context: CheckContext) -> None:
    requires(context, windows_line_and_limit)
    path = context.folder.put("huge.txt", _LINE * (40_000_000 // len(_LINE)))
    got = context.text(path, {"line": 10, "limit": 50})
    context.folder.put("huge.txt", b"")
    wanted = _LINE.decode() * 50
    fits = got in {wanted, wanted.removesuffix("\n")}
    expect(fits, f"{len(got):,} characters came instead of {len(wanted):,}")


WINDOWS = CheckGroup("windows", "Reading some lines")

_TEXT = "one\ntwo\nthree\nfour\nfive\n"


@WINDOWS.must(PAGE, "`line` is the first line to read, counted from 1.")
def windows_line(context: CheckContext) -> None:
    _window(context, {"line": 2}, "two\nthree\nfour\nfive\n")


@WINDOWS.must(PAGE, "`limit` is the most lines to read, also without `line`.")
def windows_limit(context: CheckContext) -> None:
    _window(context, {"limit": 2}, "one\ntwo\n")


@WINDOWS.must(PAGE, "`line` and `limit` together give that many lines from there.")
def windows_line_and_limit(context: CheckContext) -> None:
    requires(context, windows_line, windows_limit)
    _window(context, {"line": 2, "limit": 3}, "two\nthree\nfour\n")


@WINDOWS.must(PAGE, "`limit` counts as well when `line` is 1.")
def windows_limit_from_line_one(context: CheckContext) -> None:
    requires(context, windows_limit)
    _window(context, {"line": 1, "limit": 2}, "one\ntwo\n")


@WINDOWS.must(PAGE, "A `limit` beyond the end gives what there is.")
def windows_limit_beyond_the_end(context: CheckContext) -> None:
    requires(context, windows_line)
    _window(context, {"line": 4, "limit": 2_000}, "four\nfive\n")


@WINDOWS.must(SCHEMA, "`line: null` counts as absent.")
def windows_line_null(context: CheckContext) -> None:
    path = context.folder.put("five.txt", _TEXT.encode())
    context.expect_text(
        context.text(path, {"line": None, "limit": 1}), context.text(path, {"limit": 1})
    )


@WINDOWS.must(SCHEMA, "`limit: null` counts as absent.")
def windows_limit_null(context: CheckContext) -> None:
    path = context.folder.put("five.txt", _TEXT.encode())
    context.expect_text(
        context.text(path, {"line": 4, "limit": None}), context.text(path, {"line": 4})
    )


@WINDOWS.should(PRACTICE, "`line: 0`, which the schema allows, reads from the first line.")
def windows_line_zero(context: CheckContext) -> None:
    requires(context, windows_limit)
    _window(context, {"line": 0, "limit": 1}, "one\n")


@WINDOWS.should(PRACTICE, "`limit: 0`, which the schema allows, reads nothing.")
def windows_limit_zero(context: CheckContext) -> None:
    requires(context, windows_limit)
    _window(context, {"line": 2, "limit": 0}, "")


@WINDOWS.should(PRACTICE, "A `line` past the end answers an empty text.")
def windows_past_the_end(context: CheckContext) -> None:
    requires(context, windows_line)
    for number in (6, 7, 1_000):
        _window(context, {"line": number}, "")
        _window(context, {"line": number, "limit": 5}, "")


@WINDOWS.should(SCHEMA, "The largest `line` and `limit` of the schema are understood.")
def windows_largest(context: CheckContext) -> None:
    requires(context, windows_line)
    _window(context, {"line": 4_294_967_295, "limit": 1}, "")
    _window(context, {"line": 5, "limit": 4_294_967_295}, "five\n")


@WINDOWS.should(PRACTICE, "A part is cut out of the text exactly: its last line keeps its end.")
def windows_exact(context: CheckContext) -> None:
    requires(context, windows_line_and_limit)
    for more, wanted in (({"line": 2, "limit": 1}, "two\n"), ({"line": 4}, "four\nfive\n")):
        context.expect_text(
            context.text(context.folder.put("five.txt", _TEXT.encode()), more), wanted
        )
    path = context.folder.put("open.txt", b"one\ntwo")
    context.expect_text(context.text(path, {"line": 2, "limit": 1}), "two")


@WINDOWS.should(PRACTICE, "Parts put together are the whole text.")
def windows_parts_are_the_whole(context: CheckContext) -> None:
    requires(context, windows_exact)
    whole = "a\n\n\nb\r\nc\u2028d\n \ne\rf\x0cg"
    path = context.folder.put("a.txt", whole.encode())
    parts = [context.text(path, {"line": number, "limit": 2}) for number in (1, 3, 5, 7)]
    context.expect_text("".join(parts), whole)


@WINDOWS.should(PRACTICE, "Only LF ends a line; U+2028, NEL, form feed and a lone CR do not.")
def windows_only_lf(context: CheckContext) -> None:
    requires(context, windows_line_and_limit)
    for name, mark in (
        ("u2028", "\u2028"),
        ("u2029", "\u2029"),
        ("nel", "\x85"),
        ("vt", "\x0b"),
        ("ff", "\x0c"),
        ("fs", "\x1c"),
        ("cr", "\r"),
    ):
        path = context.folder.put(f"{name}.txt", f"a{mark}b\nc\nd\n".encode())
        got = context.text(path, {"line": 2, "limit": 1})
        expect(got in {"c\n", "c"}, f"with {mark!r} in line 1, line 2 was {short(got)}")


@WINDOWS.should(PRACTICE, "Lines that end with CRLF count as lines.")
def windows_crlf(context: CheckContext) -> None:
    requires(context, windows_line_and_limit)
    path = context.folder.put("a.txt", b"one\r\ntwo\r\nthree\r\n")
    got = context.text(path, {"line": 2, "limit": 1})
    expect(got in {"two\r\n", "two\r", "two\n", "two"}, f"line 2 was {short(got)}")


@WINDOWS.should(
    SCHEMA,
    "A `line` or `limit` that is no such number counts as absent, or is refused with -32602.",
)
def windows_odd_numbers(context: CheckContext) -> None:
    path = context.folder.put("a.txt", _TEXT.encode())
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
        reply = context.read(path, more)
        if reply.is_error:
            reply.refused(INVALID_PARAMS)
        else:
            expect(reply.content == _TEXT, f"{more} gave {short(reply.content)}")


def _window(context: CheckContext, more: Mapping[str, object], wanted: str) -> None:
    """Go on only if a part is the wanted text, be it without the end of its last line."""
    got = context.text(context.folder.put("five.txt", _TEXT.encode()), more)
    fits = got in (wanted, wanted.removesuffix("\n"))
    expect(fits, f"{dict(more)} gave {short(got)} instead of {short(wanted)}")


WRITES = CheckGroup("writes", "Writing")


@WRITES.must(PAGE, "A file that does not exist is created, before the answer.")
def writes_new_file(context: CheckContext) -> None:
    context.written(context.folder.at("new.txt"), "new\n")
    context.holds("new.txt", b"new\n")


@WRITES.must(PAGE, "A file that exists has the sent text and nothing else afterwards.")
def writes_replaced(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"a long text of\nseveral lines\n"), "short\n")
    context.holds("a.txt", b"short\n")


@WRITES.must(SCHEMA, "The result of a write is an object, or null as the documents show it.")
def writes_answer(context: CheckContext) -> None:
    result = context.write(context.folder.at("a.txt"), "a\n").result
    expect(result is None or isinstance(result, dict), f"the result is {short(result)}")


@WRITES.should(ADVICE, "Missing parent folders are made.")
def writes_parents(context: CheckContext) -> None:
    context.written(context.folder.at("deep/er/new.txt"), "deep\n")
    context.holds("deep/er/new.txt", b"deep\n")


@WRITES.should(PRACTICE, "What was written is what the next read answers.")
def writes_read_back(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"before\n")
    context.text(path)
    context.written(path, "h\u00e9llo\nworld\n")
    context.expect_text(context.text(path), "h\u00e9llo\nworld\n")


@WRITES.must(PAGE, "An empty text makes an empty file.")
def writes_empty(context: CheckContext) -> None:
    context.written(context.folder.at("new.txt"), "")
    context.holds("new.txt", b"")
    context.written(context.folder.put("a.txt", b"text\n"), "")
    context.holds("a.txt", b"")


@WRITES.should(
    ADVICE, "A text is written to a new file as UTF-8 and in the form in which it was sent."
)
def writes_characters(context: CheckContext) -> None:
    text = "h\u00e9llo e\u0301 \u4e2d\u6587 \U0001f469\u200d\U0001f4bb\n"
    context.written(context.folder.at("a.txt"), text)
    context.holds("a.txt", text.encode())


@WRITES.should(PRACTICE, "A text without a final line end is written without one.")
def writes_no_final_line_end(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"one\ntwo\n"), "one\ntwo")
    context.holds("a.txt", b"one\ntwo")
    context.written(context.folder.at("new.txt"), "new")
    context.holds("new.txt", b"new")


@WRITES.should(PRACTICE, "Writing a file's own text once more is no error.")
def writes_unchanged(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"same\n"), "same\n")
    context.holds("a.txt", b"same\n")


@WRITES.should(PRACTICE, "A file keeps its permission bits.")
def writes_mode(context: CheckContext) -> None:
    for bits in (0o755, 0o640):
        context.written(context.folder.put(f"{bits:o}.sh", b"old\n", bits), "new\n")
        there = context.folder.mode(f"{bits:o}.sh")
        expect(there == bits, f"{bits:o} became {there:o}")


@WRITES.should(PRACTICE, "No other files are left beside the written one.")
def writes_nothing_left(context: CheckContext) -> None:
    folder = context.folder.below("alone")
    context.written(folder.put("a.txt", b"old\n"), "new\n")
    context.written(folder.at("b.txt"), "new\n")
    expect(folder.names() == ["a.txt", "b.txt"], f"there are {folder.names()}")


@WRITES.should(PRACTICE, "Writes to one file that are sent at once happen in their order.")
def writes_in_order(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"first\n")
    texts = [f"{number}\n" * (1 if number % 2 else 3_000) for number in range(20)]
    requests = [context.write_request(path, text) for text in texts]
    context.connection.send(*requests)
    for request in requests:
        reply = context.connection.wait(request)
        expect(not reply.is_error, f"a write was refused: {reply.error_text}")
    context.holds("a.txt", texts[-1].encode())


@WRITES.should(PRACTICE, "A read that is sent right behind a write of the same file sees it.")
def writes_read_behind_write(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"old\n")
    for number in range(5):
        write = context.write_request(path, f"{number}\n" * 1_000)
        read = context.read_request(path)
        context.connection.send(write, read)
        expect(not context.connection.wait(write).is_error, "the write was refused")
        context.expect_text(context.connection.wait(read).content, f"{number}\n" * 1_000)


@WRITES.must(PAGE, "Writes to several files that are sent at once all happen.")
def writes_at_once(context: CheckContext) -> None:
    names = [f"{number}.txt" for number in range(20)]
    requests = [context.write_request(context.folder.at(name), name) for name in names]
    context.connection.send(*requests)
    for name, request in zip(names, requests, strict=True):
        expect(not context.connection.wait(request).is_error, f"the write of {name} was refused")
        context.holds(name, name.encode())


@WRITES.should(PRACTICE, "A text of 5 MB is written whole.")
def writes_five_megabytes(context: CheckContext) -> None:
    text = "0123456789\n" * (5_000_000 // 11)
    context.written(context.folder.at("big.txt"), text)
    there = context.folder.get("big.txt") or b""
    expect(there == text.encode(), f"{len(there):,} of {len(text):,} bytes are there")


ENCODINGS = CheckGroup("encodings", "Line ends and encodings")

_BOM = b"\xef\xbb\xbf"


@ENCODINGS.should(ADVICE, "A file of CRLF lines keeps them when the agent sends LF.")
def encodings_crlf_kept(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"one\r\ntwo\r\n")
    context.written(path, "one\n2\nthree\n")
    context.holds("a.txt", b"one\r\n2\r\nthree\r\n")


@ENCODINGS.should(ADVICE, "CRLF that the agent sends is not doubled.")
def encodings_crlf_once(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"one\r\ntwo\r\n")
    context.written(path, "one\r\n2\r\n")
    context.holds("a.txt", b"one\r\n2\r\n")
    context.written(context.folder.at("new.txt"), "one\r\ntwo\r\n")
    context.holds("new.txt", b"one\r\ntwo\r\n")


@ENCODINGS.should(ADVICE, "A file of LF lines stays one.")
def encodings_lf_kept(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"one\ntwo\n"), "one\n2\n")
    context.holds("a.txt", b"one\n2\n")


@ENCODINGS.should(PRACTICE, "A carriage return that ends no line stays what it is.")
def encodings_lone_cr(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"a\rb\nc\n"), "a\rb\nd\n")
    context.holds("a.txt", b"a\rb\nd\n")


@ENCODINGS.should(ADVICE, "A file keeps its byte order mark, and gets no second one.")
def encodings_bom_kept(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", _BOM + b"one\n"), "two\n")
    context.holds("a.txt", _BOM + b"two\n")
    context.written(context.folder.put("b.txt", _BOM + b"one\n"), "\ufefftwo\n")
    context.holds("b.txt", _BOM + b"two\n")


@ENCODINGS.should(ADVICE, "A file without a byte order mark gets none.")
def encodings_no_bom(context: CheckContext) -> None:
    context.written(context.folder.put("a.txt", b"one\n"), "tw\u00f6\n")
    context.holds("a.txt", "tw\u00f6\n".encode())


@ENCODINGS.should(
    ADVICE, "What was read and is written back unchanged leaves every byte as it was."
)
def encodings_round_trip(context: CheckContext) -> None:
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
        path = context.folder.put(f"{name}.txt", data)
        context.written(path, context.text(path))
        context.holds(f"{name}.txt", data)


@ENCODINGS.should(
    ADVICE, "Bytes that are no UTF-8 are refused, or survive; none is replaced or dropped."
)
def encodings_other_bytes(context: CheckContext) -> None:
    for name, data in (
        ("latin", b"caf\xe9 au lait\nna\xefve\n"),
        ("cut", b"abc \xe4\xb8\n"),
        ("stray", b"a\xffb\xfe\n" * 3),
    ):
        path = context.folder.put(f"{name}.txt", data)
        read = context.read(path)
        if not read.is_error:
            expect("\ufffd" not in read.content, f"U+FFFD was short for a byte of {short(data)}")
            if not context.write(path, read.content).is_error:
                context.holds(f"{name}.txt", data)
        context.holds(f"{name}.txt", data)


@ENCODINGS.should(
    ADVICE, "UTF-16 with its mark is refused, or read as the text and written as UTF-16."
)
def encodings_utf_16(context: CheckContext) -> None:
    data = "\ufeffh\u00e9llo\r\n".encode("utf-16-le")
    path = context.folder.put("a.txt", data)
    read = context.read(path)
    if not read.is_error:
        text = read.content.removeprefix("\ufeff")
        expect(text in {"h\u00e9llo\r\n", "h\u00e9llo\n"}, f"it answered {short(read.content)}")
        if not context.write(path, read.content).is_error:
            context.holds("a.txt", data)
    context.holds("a.txt", data)


@ENCODINGS.should(
    PRACTICE, "A text with half of a surrogate pair is refused with -32602, and nothing is written."
)
def encodings_half_a_pair(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"old\n")
    context.write(path, "new \ud800\n").refused(INVALID_PARAMS)
    context.holds("a.txt", b"old\n")
    context.write(context.folder.at("new.txt"), "\udc00").refused(INVALID_PARAMS)
    expect(context.folder.get("new.txt") is None, "a file was made")
    context.expect_alive()
