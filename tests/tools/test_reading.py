"""read_file: long lines, bytes in parts, pictures, several files, and the end of a file."""

from __future__ import annotations

import base64
import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.text.page import size_of
from filepact.text.picture import MAX_PICTURE, picture_of
from filepact.tools.registry import CallContext, CallResult
from filepact.workspace.documents import EDIT_LIMIT
from tests.pictures import BROKEN, PICTURES, gif, jpeg, png, webp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Reading = Callable[..., CallResult]

SESSION = Session("s1", Actor("agent", "tester"))
NEXT = re.compile(r"next: offset=(-?\d+)(?:, column=(\d+))?")


@pytest.fixture
def read(root: Path, tmp_path: Path) -> Iterator[Reading]:
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        toolbox = open_toolbox(workspace)

        def call(page: int = 40_000, /, **arguments: object) -> CallResult:
            return toolbox.call("read_file", arguments, CallContext(SESSION, page=page))

        yield call


def read_on(read: Reading, page: int, **arguments: object) -> tuple[str, int]:
    """All that the pages show of a file, put together as their last lines say, and how many."""
    text, pages = "", 0
    wanted: dict[str, int] = {"offset": 0, "column": 0}
    while True:
        answer = read(page, **arguments, **wanted, numbers=False).text
        assert size_of(answer) <= page
        *lines, footer = answer.split("\n")
        pages += 1
        following = NEXT.search(footer)
        if following is None:
            return text + "\n".join(lines), pages
        if following[2]:
            lines[-1] = re.sub(r" \[(\+[\d,]+ characters|the line goes on)\]$", "", lines[-1])
            text += "\n".join(lines)
        else:
            text += "\n".join([*lines, ""])
        wanted = {"offset": int(following[1]), "column": int(following[2] or 0)}


# -- long lines -------------------------------------------------------------------------------


def test_a_long_line_that_fits_comes_whole(read: Reading, root: Path) -> None:
    line = '{"a": ' + "1" * 4_990 + "}"
    (root / "one.json").write_text(line)
    (root / "para.md").write_text(f"# Title\n\n{'word ' * 900}\n\nend\n")
    assert read(path="one.json", numbers=False).text.split("\n")[0] == line
    assert read(path="para.md").text.split("\n")[2] == f"3\u2502{'word ' * 900}"


@pytest.mark.parametrize("page", [900, 9_000, 40_000])
@pytest.mark.parametrize("kind", ["loaded", "streamed"])
def test_lines_of_any_length_are_read_page_by_page_to_the_last_character(
    read: Reading, root: Path, page: int, kind: str
) -> None:
    middle = 20 * page if kind == "loaded" else EDIT_LIMIT
    long = "".join(f"{number:06}\u00e4," for number in range(min(middle, 60 * page) // 8))
    text = f"first\n{long}\n\n{'short ' * 50}\n{long[:page]}\nlast"
    (root / "a.txt").write_text(text)
    if kind == "streamed":
        with (root / "a.txt").open("a") as stream:
            stream.write("\n" + "x" * EDIT_LIMIT)
        shown, wanted = "", {"offset": 0, "column": 0}
        while wanted["offset"] < 6:
            answer = read(page, path="a.txt", **wanted, numbers=False).text
            assert size_of(answer) <= page
            *lines, footer = answer.split("\n")
            following = NEXT.search(footer)
            assert following is not None
            lines[-1] = re.sub(r" \[[^]]*\]$", "", lines[-1])
            shown += "\n".join(lines) + ("" if following[2] else "\n")
            wanted = {"offset": int(following[1]), "column": int(following[2] or 0)}
            if shown.startswith(f"{text}\n"):
                break
        assert shown.startswith(f"{text}\n")
    else:
        shown, pages = read_on(read, page, path="a.txt")
        assert shown == text
        assert pages <= 3 * len(text.encode()) / (page - 300) + 6


def test_a_column_past_the_end_of_its_line_shows_the_lines_behind(
    read: Reading, root: Path
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    assert read(path="a.txt", column=9).text.split("\n")[:2] == ["1\u2502", "2\u2502two"]
    assert read(path="a.txt", column=1).text.split("\n")[0] == "1\u2502ne"


# -- the end ----------------------------------------------------------------------------------


def test_a_negative_offset_counts_from_the_end(read: Reading, root: Path) -> None:
    (root / "a.log").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    *lines, footer = read(path="a.log", offset=-3).text.split("\n")
    assert lines == ["18\u2502line 18", "19\u2502line 19", "20\u2502line 20"]
    assert NEXT.search(footer) is None
    *lines, footer = read(path="a.log", offset=-3, lines=1).text.split("\n")
    assert lines == ["18\u2502line 18"]
    assert NEXT.search(footer)[1] == "18"
    assert read(path="a.log", offset=-900).text == read(path="a.log").text


def test_the_end_of_a_huge_file_is_read_without_the_rest(read: Reading, root: Path) -> None:
    count = EDIT_LIMIT // 30
    with (root / "a.log").open("w") as stream:
        stream.writelines(f"line {number:08} and some more of it\n" for number in range(count))
    *lines, footer = read(path="a.log", offset=-5).text.split("\n")
    assert [line.partition("\u2502")[0].strip() for line in lines] == ["-5", "-4", "-3", "-2", "-1"]
    assert lines[-1].endswith(f"line {count - 1:08} and some more of it")
    assert NEXT.search(footer) is None
    *lines, footer = read(path="a.log", offset=-5, lines=2, numbers=False).text.split("\n")
    assert [line[5:13] for line in lines] == [f"{count - 5:08}", f"{count - 4:08}"]
    assert NEXT.search(footer)[1] == "-3"


# -- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5_000, 300_000, EDIT_LIMIT + 5_000])
def test_bytes_of_any_file_come_in_parts_that_are_pure_base64(
    read: Reading, root: Path, size: int
) -> None:
    data = bytes(number * number % 251 for number in range(70_000)) * (size // 70_000 + 1)
    (root / "a.bin").write_bytes(data[:size])
    got, offset, rounds = b"", 0, 0
    while True:
        answer = read(9_000, path="a.bin", encoding="base64", offset=offset)
        assert not answer.failed
        assert size_of(answer.text) + size_of(answer.note) <= 9_000
        got += base64.b64decode(answer.text, validate=True)
        following = NEXT.search(answer.note)
        rounds += 1
        if following is None:
            break
        offset = int(following[1])
        if rounds == 50:
            offset = max(offset, size - 4_000)  # the middle of a large one is like the rest
            got = data[:offset]
    assert got == data[:size]
    if size <= 5_000:
        assert (rounds, answer.note) == (1, "")


def test_some_bytes_can_be_asked_for(read: Reading, root: Path) -> None:
    (root / "a.bin").write_bytes(bytes(range(100)))
    part = read(path="a.bin", encoding="base64", offset=10, lines=4)
    assert part.data == bytes([10, 11, 12, 13])
    assert NEXT.search(part.note)[1] == "14"
    assert read(path="a.bin", encoding="base64", offset=-2).data == bytes([98, 99])
    assert read(path="a.bin", encoding="base64", offset=100).data == b""
    assert read(path="a.bin", encoding="base64", column=1).code == "INVALID_PARAMS"


# -- pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_answered_as_one_with_a_line_about_it(
    read: Reading, root: Path, name: str
) -> None:
    data, mime, pixels = PICTURES[name]
    (root / name).write_bytes(data)
    answer = read(path=name)
    assert (answer.failed, answer.data, answer.mime) == (False, data, mime)
    assert pixels in answer.note
    plain = read(path=name, encoding="base64")
    some = base64.b64decode(plain.text)
    assert (plain.mime, some) == ("", data[: max(len(some), 20)])


@pytest.mark.parametrize("name", BROKEN)
def test_a_picture_that_does_not_decode_is_a_sentence_with_its_size(
    read: Reading, root: Path, name: str
) -> None:
    (root / name).write_bytes(BROKEN[name])
    for answer in (read(path=name), read(paths=[name])):
        assert (answer.data, answer.mime) == (None, "")
        assert "BINARY_FILE" in answer.text
    assert f"{len(BROKEN[name]):,} bytes" in read(path=name).text
    assert read(path=name, encoding="base64").data == BROKEN[name]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.png", png(9_000, 1)),
        ("b.jpg", jpeg(1, 8_001)),
        ("c.webp", webp(8_001, 9)),
        ("d.gif", gif(1, 1).replace(b"a\1\0", b"a\x29\x23")),
    ],
)
def test_a_picture_of_too_many_pixels_is_a_sentence_with_its_size(
    read: Reading, root: Path, name: str, data: bytes
) -> None:
    (root / name).write_bytes(data)
    answer = read(path=name)
    assert (answer.data, answer.code) == (None, "FILE_TOO_LARGE")
    width = picture_of(data).width
    assert f"{width:,} x " in answer.text


def test_what_only_says_that_it_is_a_picture_is_binary(read: Reading, root: Path) -> None:
    (root / "a.png").write_bytes(b"\0\1\2\xff" * 50)
    assert read(path="a.png").code == "BINARY_FILE"
    (root / "b.png").write_text("GIF89a and plain text\n")
    assert read(path="b.png").text.startswith("1\u2502GIF89a")


def test_a_picture_that_is_too_large_to_be_looked_at_says_what_is_possible(
    read: Reading, root: Path
) -> None:
    (root / "a.png").write_bytes(png(9, 9, more=MAX_PICTURE))
    refused = read(path="a.png")
    assert refused.code == "FILE_TOO_LARGE"
    assert "base64" in refused.text
    assert read(path="a.png", encoding="base64").data[:4] == b"\x89PNG"


def test_a_protected_picture_is_not_shown(read: Reading, root: Path) -> None:
    (root / ".env").write_bytes(PICTURES["a.png"][0])
    assert read(path=".env").code == "PATH_BLOCKED"
    assert read(paths=[".env"]).data is None


# -- several files ----------------------------------------------------------------------------


def test_several_files_come_in_one_answer_each_with_its_own_last_line(
    read: Reading, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("two\nthree\n")
    (root / ".env").write_text("SECRET=1\n")
    (root / "p.png").write_bytes(PICTURES["a.png"][0])
    (root / "large.png").write_bytes(png(9, 9, more=MAX_PICTURE))
    (root / "raw").write_bytes(b"\0\1\2\xff" * 50)
    answer = read(
        paths=["a.txt", "gone.txt", ".env", "p.png", "b.txt", "a.txt", "large.png", "raw", ""]
    )
    assert not answer.failed
    parts = [part.split("\n") for part in answer.text.split("==> ")[1:]]
    assert [part[0] for part in parts] == [
        "a.txt <==", "gone.txt <==", ".env <==", "p.png <==", "b.txt <==",
        "large.png <==", "raw <==",
    ]  # fmt: skip
    assert parts[0][1] == "1\u2502one"
    assert "revision" in parts[0][2]
    assert parts[1][1].startswith("NOT_FOUND")
    assert parts[2][1].startswith("PATH_BLOCKED")
    assert "SECRET" not in answer.text
    assert parts[5][1].startswith("FILE_TOO_LARGE")
    assert parts[6][1].startswith("BINARY_FILE")
    assert parts[4][1:3] == ["1\u2502two", "2\u2502three"]


def test_several_files_share_one_page_and_none_is_left_out_silently(
    read: Reading, root: Path
) -> None:
    names = [f"f{number}.txt" for number in range(30)]
    for number, name in enumerate(names):
        (root / name).write_text(f"text of {number}\n" * (5 if number % 2 else 2_000))
    for page in (2_000, 9_000, 40_000):
        left, seen = names, []
        while left:
            answer = read(page, paths=left).text
            assert size_of(answer) <= page
            shown = re.findall(r"==> (\S+) <==\n *1\u2502text of (\d+)", answer)
            assert shown
            seen += [name for name, _ in shown]
            following = re.search(r"next: paths=\[(.*)\]\]$", answer)
            left = re.findall(r'"([^"]+)"', following[1]) if following else []
        assert sorted(seen) == sorted(names)
    small = [name for number, name in enumerate(names) if number % 2]
    answer = read(9_000, paths=["f0.txt", *small[:8]]).text
    assert answer.count("text of") > 8 * 5 + 100
    assert "next: paths" not in answer


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": ""},
        {"paths": []},
        {"path": "a", "paths": ["a"]},
        {"paths": ["a"], "encoding": "base64"},
        {"paths": ["a"], "column": 3},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(read: Reading, arguments: dict[str, object]) -> None:
    assert read(**arguments).code == "INVALID_PARAMS"


def test_no_more_files_are_opened_than_there_can_be_room_for(read: Reading, root: Path) -> None:
    names = [f"{number:03}.txt" for number in range(200)]
    for name in names:
        (root / name).write_text("some text\n" * 200)
    answer = read(9_000, paths=[*names, "gone"]).text
    assert size_of(answer) <= 9_000
    following = re.findall(r'"([^"]+)"', answer.rpartition("next: paths=")[2])
    shown = re.findall(r"==> (\S+) <==", answer)
    assert [*shown, *following] == [*names, "gone"]


# -- names with brackets ----------------------------------------------------------------------


ROUTES = (
    *("app/[id]/page.tsx", "app/i/page.tsx", "app/[[...slug]]/p.tsx", "app/(group)/layout.tsx"),
    *("s/[x].ts", "s/x.ts", "s/ab.ts"),
    *("u/cafe\u0301.md", "u/\xe9t\xe9/[e\u0301].md"),
)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"]),
        ("app/[id]/*.tsx", ["app/[id]/page.tsx"]),
        ("app/[id]", ["app/[id]/"]),
        ("[[...slug]]", ["app/[[...slug]]/"]),
        ("**/[[...slug]]/*", ["app/[[...slug]]/p.tsx"]),
        ("(group)", ["app/(group)/"]),
        ("app/(group)/*", ["app/(group)/layout.tsx"]),
        ("[x].ts", ["s/[x].ts"]),
        ("s/[xy].ts", ["s/x.ts"]),
        ("s/[ab][ab].ts", ["s/ab.ts"]),
        ("app", ["app/"]),
        ("zz[a].ts", []),
        ("caf\xe9.md", ["u/cafe\u0301.md"]),
        ("u/caf\xe9*", ["u/cafe\u0301.md"]),
        ("e\u0301te\u0301", ["u/\xe9t\xe9/"]),
        ("[\xe9].md", ["u/\xe9t\xe9/[e\u0301].md"]),
    ],
)
def test_a_pattern_that_is_a_name_finds_what_has_it(
    tmp_path: Path, pattern: str, found: list[str]
) -> None:
    root = tmp_path / "root"
    for name in ROUTES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("needle\n")
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box, call = open_toolbox(workspace), CallContext(Session("s1", Actor("agent", "tester")))
        lines = box.call("search_files", {"pattern": pattern}, call).text.split("\n")
        searched = box.call("grep", {"pattern": "needle", "glob": pattern}, call).text.split("\n")
        drawn = box.call("directory_tree", {"pattern": pattern}, call).text.split("\n")
    assert lines[:-1] == found
    assert ("brackets" in lines[-1]) is (not found)
    assert found or "brackets" in drawn[-1]
    assert found or "brackets" in searched[-1]
    files = [name for name in found if not name.endswith("/")]
    assert searched[:-1] == [f"{name}:1: needle" for name in files]
