"""Find, grep and tree over real folders, and the texts that the tools print."""

from __future__ import annotations

import os

import pytest

from filepact.domain.deadline import Deadline
from filepact.errors import PathBlockedError, SearchFailedError
from filepact.fs import walk as walking
from filepact.fs.root import Root
from filepact.text.query import Query
from filepact.tools.read import render_found, render_grepped
from filepact.workspace import find as finding
from filepact.workspace import grep as grepping
from filepact.workspace import read_ahead
from filepact.workspace.find import find_files, tree
from filepact.workspace.grep import grep
from filepact.workspace.match_lines import lines_of
from filepact.workspace.read_ahead import GroupReader


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    opened = Root.open(str(top))
    yield opened
    opened.close()


def make(root, files):
    for name, data in files.items():
        path = os.path.join(root.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())


def yes(path, is_dir):
    return True


def find(root, pattern, base=".", **options):
    return find_files(root, base, pattern, **{"allow": yes, **options})


def search(root, pattern, base=".", **options):
    known = {name: options.pop(name) for name in ("multiline",) if name in options}
    return grep(root, base, Query.compile(pattern, **known), **{"allow": yes, **options})


def printed(root, pattern, base=".", **options):
    return render_grepped(search(root, pattern, base, **options)).split("\n")


# -- reading ahead ----------------------------------------------------------------------------


def test_files_are_taken_in_the_order_in_which_they_were_given(monkeypatch):
    held = {str(number): (b"x" * 100, ()) for number in range(50)}
    asked = []

    def read(paths):
        asked.append(list(paths))
        return iter([held[path] for path in paths])

    monkeypatch.setattr(read_ahead, "_MOST_BYTES", 250)
    with GroupReader(read) as ahead:
        assert ahead.take() is None
        parts = [["1", "2"], ["3", "4", "5", "6"], ["7"], ["8"]]
        for at, part in enumerate(parts):
            assert ahead.full == (at == 4)
            ahead.add(part)
        assert ahead.full
        for part in parts:
            files = ahead.take()
            assert files.paths == part
            assert list(files.each(read)) == [held[path] for path in part]
        assert ahead.take() is None
    # Of many bytes the rest is read when it is their turn.
    assert ["6"] in asked


def test_what_fails_while_files_are_read_ahead_fails_where_they_are_taken():
    def read(_paths):
        raise PathBlockedError("gone")

    with GroupReader(read) as ahead:
        ahead.add(["a"])
        with pytest.raises(PathBlockedError):
            list(ahead.take().each(read))


def test_files_that_nobody_takes_are_not_waited_for():
    with GroupReader(lambda paths: iter([None] * len(paths))) as ahead:
        for _ in range(20):
            ahead.add(["a"])


def test_many_files_of_many_encodings_are_searched_as_each_alone(root, monkeypatch):
    odd = [b"caf\xe9 needle\n", "für needle\n".encode(), "für\n".encode(), b"\0\1\2", b"k needle\n"]
    odd += ["needle\n".encode("utf-16"), b"plain\n", b"needle\n" * 3, b""]
    make(root, {f"{at % 7}/{at % 13}/{at}.txt": odd[at % len(odd)] for at in range(400)})
    make(root, {"3/key.txt": "needle\n-----BEGIN PRIVATE KEY-----\nAAAA\n"})
    monkeypatch.setattr(grepping, "_FIRST_AHEAD", 5)
    monkeypatch.setattr(grepping, "_MOST_AHEAD", 40)
    quick = search(root, "needle", limit=1_000)
    monkeypatch.setattr(
        Root, "read_small", lambda _root, paths, *_, **__: iter([None] * len(paths))
    )
    assert quick == search(root, "needle", limit=1_000)
    assert (quick.total, quick.unreadable) == (310, ("3/key.txt",))


# -- find -------------------------------------------------------------------------------------


def test_files_are_found_in_path_order_with_the_true_total(root):
    make(root, dict.fromkeys(["b.py", "a/c.py", "a/b/d.py", "a.py", "x.txt"], ""))
    found = find(root, "**/*.py", limit=2)
    assert found.paths == ("a.py", "a/b/d.py")
    assert (found.total, found.total_is_floor) == (4, False)
    assert render_found(found) == ("a.py\na/b/d.py\n[first 2 of 4 files | maxResults gets others]")
    assert render_found(find(root, "*.py")).endswith("\n[4 files]")
    assert render_found(find(root, "a.py")) == "a.py\n[1 file]"


def test_patterns_count_from_the_base_and_paths_from_the_root(root):
    make(root, dict.fromkeys(["src/a/x.py", "src/x.py", "x.py"], ""))
    assert find(root, "/*.py", "src").paths == ("src/x.py",)
    assert find(root, "a/*.{py,js}", "src").paths == ("src/a/x.py",)
    assert find(root, "!*/x.py", "src").paths == ("src/x.py",)


def test_folders_are_found_by_a_slash_at_the_end(root):
    make(root, dict.fromkeys(["a/test/x", "test/y", "b/test"], ""))
    found = find(root, "test/")
    assert found.paths == ("a/test/", "test/")
    assert render_found(found).endswith("[2 folders]")


def test_links_are_found_and_pipes_are_not(root):
    make(root, {"a": ""})
    os.symlink("a", f"{root.path}/link")
    os.mkfifo(f"{root.path}/pipe")
    assert find(root, "*").paths == ("a", "link")


def test_nothing_found_is_said(root):
    assert render_found(find(root, "*.zig")) == "[nothing matches *.zig]"


def test_refused_files_are_not_found(root):
    make(root, dict.fromkeys([".env", "a/.env", "a/b"], ""))
    assert find(root, "**/*", allow=lambda path, _d: not path.endswith(".env")).paths == ("a/b",)


def test_a_cancelled_search_gives_a_floor(root):
    make(root, {"a": "", "b/c": ""})
    given_up = Deadline(cancelled=lambda: True)
    found = find(root, "*", deadline=given_up)
    assert found.total_is_floor
    assert render_found(found) == "a\n[at least 1 file | cancelled, so results are partial]"
    nothing = find(root, "*.zig", deadline=given_up)
    assert "not everything was looked at" in render_found(nothing)


def test_a_folder_of_ten_thousand_entries_is_searched(root):
    os.mkdir(f"{root.path}/many")
    for number in range(10_000):
        os.close(os.open(f"{root.path}/many/f{number:05}", os.O_CREAT | os.O_WRONLY))
    found = find(root, "*7", limit=10)
    assert found.total == 1_000
    assert found.paths[0] == "many/f00007"
    drawn = tree(root, ".", allow=yes, budget=100)
    assert drawn.text.endswith("    └── ... (+9,901 more)\n\n1 directory, 10,000 files")
    assert drawn.hidden == 9_901


def test_names_are_shown_escaped(root):
    make(root, {"a\nb.py": "x", "c\u202ed.py": "x"})
    assert render_found(find(root, "*.py")).split("\n")[:2] == [r"a\x0ab.py", r"c\u202ed.py"]
    assert printed(root, "x")[0] == r"a\x0ab.py:1: x"
    assert r"├── a\x0ab.py" in tree(root, ".", allow=yes).text


def test_a_long_list_of_names_is_cut_by_characters(root):
    make(root, {f"{'d' * 200}/{number:03}{'x' * 200}": "" for number in range(150)})
    text = render_found(find(root, "*", limit=1_000))
    assert len(text) < 41_000
    assert "a narrower pattern gets others" in text


def test_a_bad_glob_is_refused(root):
    with pytest.raises(SearchFailedError):
        find(root, "[a")
    with pytest.raises(SearchFailedError):
        search(root, "a", glob="{a")


# -- grep -------------------------------------------------------------------------------------


def test_matches_are_printed_with_file_and_line(root):
    make(root, {"b.py": "x\nneedle 1\n", "a/c.py": "Needle 2\r\n", "z.txt": "no"})
    assert printed(root, "needle") == [
        "a/c.py:1: Needle 2",
        "b.py:2: needle 1",
        "[2 matches in 2 files]",
    ]


def test_context_is_printed_and_overlaps_are_merged(root):
    make(root, {"a": "1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n11"})
    assert printed(root, "x", context=1) == [
        "a-2- 2",
        "a:3: x3",
        "a-4- 4",
        "a:5: x5",
        "a-6- 6",
        "--",
        "a-9- 9",
        "a:10: x10",
        "a-11- 11",
        "[3 matches in 1 file]",
    ]


def test_context_stops_at_the_ends_of_a_file(root):
    make(root, {"a": "x\nx\n", "b": "1\nx"})
    assert printed(root, "x", context=5) == [
        "a:1: x", "a:2: x", "--", "b-1- 1", "b:2: x", "[3 matches in 2 files]",
    ]  # fmt: skip


def test_the_limit_cuts_and_the_offset_goes_on(root):
    make(root, {f"f{number}": "x\n" * 4 for number in range(5)})
    assert printed(root, "x", limit=3) == [
        "f0:1: x", "f0:2: x", "f0:3: x", "[matches 1-3 of 20 | next: offset=3]",
    ]  # fmt: skip
    assert printed(root, "x", limit=3, offset=3) == [
        "f0:4: x", "f1:1: x", "f1:2: x", "[matches 4-6 of 20 | next: offset=6]",
    ]  # fmt: skip
    assert printed(root, "x", limit=3, offset=18)[-1] == "[matches 19-20 of 20]"
    assert printed(root, "x", offset=20) == ["[offset 20 is past the end: 20 matches]"]


def test_all_pages_together_are_the_whole(root):
    make(root, {f"d{n % 3}/f{n}": "x\ny\nx\n" * (n % 4) for n in range(20)})
    whole = printed(root, "x", limit=1_000)[:-1]
    pages = []
    for offset in range(0, len(whole), 7):
        pages += printed(root, "x", limit=7, offset=offset)[:-1]
    assert pages == whole


def test_files_and_counts_are_modes(root):
    make(root, {"a": "x\nx\n", "b": "y", "c/d": "x"})
    assert printed(root, "x", mode="files") == ["a", "c/d", "[2 files]"]
    assert printed(root, "x", mode="count") == ["a: 2", "c/d: 1", "[2 files | 3 matches]"]
    assert printed(root, "x", mode="files", limit=1) == [
        "a",
        "[files 1-1 of 2 | next: offset=1]",
    ]
    assert printed(root, "x", mode="files", limit=1, offset=1)[0] == "c/d"


def test_counting_on_has_a_limit_and_the_total_is_then_a_floor(root, monkeypatch):
    monkeypatch.setattr(grepping, "_COUNT_BYTES", 10)
    make(root, {f"f{number}": "x\n" * 6 for number in range(9)})
    result = search(root, "x", limit=2)
    assert result.total_is_floor
    assert result.total == 12
    assert render_grepped(result).endswith("[matches 1-2 of at least 12 | next: offset=2]")


def test_the_next_page_is_named_also_when_nothing_more_was_counted(root, monkeypatch):
    monkeypatch.setattr(grepping, "_COUNT_BYTES", 10)
    make(root, {"a": "x\n", **{f"f{number}": "y" * 20 for number in range(5)}, "z": "x\n"})
    assert printed(root, "x", limit=1)[-1] == "[matches 1-1 of at least 1 | next: offset=1]"
    assert printed(root, "x", limit=1, offset=1)[0] == "z:1: x"


def test_a_glob_bounds_the_files_but_not_a_file_named_outright(root):
    make(root, {"a.py": "x", "b.js": "x", "s/c.py": "x"})
    assert printed(root, "x", glob="*.py", mode="files") == ["a.py", "s/c.py", "[2 files]"]
    assert printed(root, "x", glob="!**/*.py", mode="files") == ["b.js", "[1 file]"]
    assert printed(root, "x", "b.js", glob="*.py")[0] == "b.js:1: x"


def test_an_ignored_file_named_outright_is_searched(root):
    make(root, {".gitignore": "*.log\n", "a.log": "x", "node_modules/b": "x"})
    result = search(root, "x")
    assert (result.searched, result.total, result.unsearched.files) == (1, 0, 1)
    assert [(one.path, one.files) for one in result.unsearched.folders] == [("node_modules", 1)]
    assert printed(root, "x", "a.log")[0] == "a.log:1: x"
    assert printed(root, "x", "node_modules")[0] == "node_modules/b:1: x"


def test_what_was_not_searched_is_told_as_far_as_the_search_was_about_it(root):
    make(
        root,
        {
            ".gitignore": "out/\n*.log\n",
            "out/a.py": "x",
            "out/b.js": "x",
            "node_modules/m/c.js": "x",
            "sub/.venv/d.py": "x",
            "e.log": "x",
            "__pycache__/f.pyc": "x",
            "g.txt": "",
        },
    )
    found = search(root, "x").unsearched
    assert [(one.path, one.why, one.files, one.floor) for one in found.folders] == [
        ("out", "ignored", 2, False),
        ("node_modules", "", 1, False),
        ("sub/.venv", "", 1, False),
    ]
    assert found.files == 1
    found = search(root, "x", glob="*.py").unsearched
    assert [(one.path, one.files) for one in found.folders] == [("out", 1), ("sub/.venv", 1)]
    assert found.files == 0
    found = find(root, "sub/**/*.py").unsearched
    assert [(one.path, one.files) for one in found.folders] == [("sub/.venv", 1)]
    assert search(root, "x", "out").unsearched.folders == ()
    assert "out/ (2 files, ignored)" in printed(root, "nothing")[-1]


def test_counting_what_was_left_out_ends_early(root, monkeypatch):
    monkeypatch.setattr(finding, "_MOST_LOOKED_AT", 10)
    make(root, {f"node_modules/{name}/{number}": "x" for name in "abc" for number in range(9)})
    make(root, {f"{name}/node_modules/x": "x" for name in "defghi"})
    (first, *others) = search(root, "x").unsearched.folders
    assert first.path == "node_modules"
    assert first.floor
    assert 0 < first.files <= 10
    assert [(one.path, one.files) for one in others] == [
        (f"{name}/node_modules", None) for name in "defghi"
    ]


def test_the_number_of_protected_names_says_nothing_of_what_was_looked_for(root):
    make(root, {".env": "SECRET=x", "sub/.env": "SECRET=x", "keys/id_rsa": "x", "a": "x"})

    def allow(path, is_dir):
        return not path.endswith((".env", "keys"))

    counts = {
        found.unsearched.protected
        for found in (
            search(root, "x", allow=allow),
            search(root, "SECRET", allow=allow, glob=".env"),
            search(root, "x", allow=allow, glob="*.nothing"),
            find(root, ".env", allow=allow),
            find(root, "**/id_rsa", allow=allow),
            find(root, "nothing", allow=allow),
        )
    }
    assert counts == {3}
    for text in (*printed(root, "x", allow=allow), render_found(find(root, ".e*", allow=allow))):
        assert ".env" not in text
        assert "keys" not in text


def test_where_not_everything_was_looked_at_no_matches_is_not_said_alone(root, monkeypatch):
    monkeypatch.setattr(walking, "MAX_ENTRIES", 5)
    make(root, {f"{folder}/{name}": "x" for folder in "abc" for name in "123"})
    whole, cut = search(root, "x", "a"), search(root, "nothing")
    assert (whole.total, whole.total_is_floor) == (3, False)
    assert (cut.total, cut.total_is_floor) == (0, True)
    assert "not everything was looked at" in render_grepped(cut)


def test_a_refused_file_is_never_searched(root):
    make(root, {".env": "SECRET=x", "a": "x"})

    def allow(path, is_dir):
        return path != ".env"

    assert printed(root, "x", allow=allow, mode="files")[0] == "a"
    with pytest.raises(PathBlockedError):
        search(root, "x", ".env", allow=allow)


def test_binary_files_are_skipped_and_said(root):
    make(root, {"a.bin": b"\x00\x01x\x02\xff" * 50, "b": "x"})
    assert printed(root, "x") == ["b:1: x", "[1 match in 1 file | 1 binary file skipped]"]


def test_files_in_other_encodings_are_searched(root):
    make(
        root,
        {
            "be.txt": "\ufeffgrün\r\nend\r\n".encode("utf-16-be"),
            "le.txt": "grün\nend\n".encode("utf-16"),
            "u8.txt": b"\xef\xbb\xbf" + "grün\n".encode(),
        },
    )
    assert printed(root, "^GRÜN$") == [
        "be.txt:1: grün", "le.txt:1: grün", "u8.txt:1: grün", "[3 matches in 3 files]",
    ]  # fmt: skip


@pytest.mark.parametrize("base", [".", "big"])
def test_a_file_over_the_limit_is_skipped_and_said(root, base, monkeypatch):
    monkeypatch.setattr(grepping, "FILE_LIMIT", 10)
    make(root, {"big": "x" * 11})
    assert printed(root, "x", base) == ["[no matches in 0 files | over 64 MB, not searched: big]"]


def test_a_line_of_a_megabyte_is_cut_around_its_match(root):
    make(root, {"min.js": "a" * 500_000 + "needle" + "a" * 500_000})
    (line, _) = printed(root, "needle")
    assert "needle" in line
    assert "[line of 1,000,006 bytes, cut]" in line
    assert len(line) < 400


def test_a_hostile_pattern_on_a_long_line_ends(root):
    make(root, {"a": "a" * 1_000_000 + "b"})
    assert printed(root, "(a+)+$") == ["[no matches in 1 file]"]


def test_a_pattern_that_is_too_slow_on_a_file_is_said(root, monkeypatch):
    monkeypatch.setattr(grepping, "_STEP_SECONDS", 0.05)
    make(root, {"a": "a" * 60 + "b", "z": "aa"})
    assert printed(root, r"(?=a)(a|aa)+$") == [
        "z:1: aa",
        "[at least 1 match in 1 file | the pattern took too long in: a]",
    ]


def test_a_search_out_of_time_returns_what_it_has(root):
    make(root, {"a": "x", "b/c": "x"})
    result = search(root, "x", deadline=Deadline(0))
    assert (result.stopped, result.total_is_floor) == ("time", True)
    assert "out of time, so results are partial" in render_grepped(result)


def test_a_cancelled_search_returns_what_it_has(root):
    make(root, {"a": "x\n", "b": "x\n", "c": "x\n"})
    answers = iter([False, False, False] + [True] * 20)
    result = search(root, "x", deadline=Deadline(cancelled=lambda: next(answers)))
    assert result.stopped == "cancelled"
    assert 1 <= result.total < 3
    assert "cancelled, so results are partial" in render_grepped(result)


def test_a_file_that_vanishes_is_said(root):
    make(root, {"a": "x", "b": "x"})

    def allow(path, is_dir):
        if path == "b":
            os.unlink(f"{root.path}/b")
        return True

    assert printed(root, "x", allow=allow) == ["a:1: x", "[1 match in 1 file | not readable: b]"]


def test_newer_text_than_the_disk_has_is_searched(root):
    make(root, {"a": "old\n", "b": "old\n"})
    newer = {"a": b"new\n"}
    assert printed(root, "old|new", overlay=newer.get) == [
        "a:1: new", "b:1: old", "[2 matches in 2 files]",
    ]  # fmt: skip
    assert printed(root, "new", "a", overlay=newer.get)[0] == "a:1: new"
    assert printed(root, "old", "a", overlay={"a": b""}.get) == ["[no matches in 1 file]"]


def test_progress_is_told_now_and_then(root):
    make(root, {f"f{number:03}": "" for number in range(450)})
    told = []
    search(root, "x", progress=lambda done, what: told.append((done, what)))
    assert told == [(64, "f063"), (192, "f191"), (448, "f447"), (450, "f449")]


def test_a_bar_with_a_backslash_gets_a_note(root):
    make(root, {"a": "foo"})
    assert "alternatives are written a|b" in printed(root, r"foo\|bar")[0]


def test_a_multiline_match_is_shown_with_all_its_lines(root):
    make(root, {"a": "1\nbegin\nmid\nend\n5\n"})
    assert printed(root, "begin.*end", multiline=True, context=1) == [
        "a-1- 1", "a:2: begin", "a:3: mid", "a:4: end", "a-5- 5", "[1 match in 1 file]",
    ]  # fmt: skip
    assert printed(root, r"1|begin\nmid|end", multiline=True)[-1] == "[3 matches in 1 file]"


def test_two_multiline_matches_on_one_line_count_twice_and_show_once(root):
    make(root, {"a": "xx\n"})
    assert printed(root, "x", multiline=True) == ["a:1: xx", "[2 matches in 1 file]"]


def test_an_endless_multiline_match_is_cut(root):
    make(root, {"a": "x\n" * 500})
    lines = printed(root, "x.*x", multiline=True)
    assert len(lines) == 51
    assert lines[-2] == "a:50: x [+450 lines of this match]"


def test_a_long_answer_is_cut_by_characters_and_says_how_to_go_on(root):
    make(root, {"a": ("x" * 250 + "\n") * 1_000})
    result = search(root, "x", limit=1_000)
    text = render_grepped(result)
    assert len(text) < 41_000
    sent = text.count("\n")
    assert text.endswith(f"[matches 1-{sent} of 1,000 | next: offset={sent}]")


def test_names_can_be_shown_in_another_way(root):
    make(root, {"a": "x"})
    text = render_grepped(search(root, "x"), show=lambda path: f"/other/{path}")
    assert text.startswith("/other/a:1: x")
    assert render_found(find(root, "a"), show=lambda p: f"/other/{p}").startswith("/other/a")


def test_many_left_out_files_are_named_in_part(root, monkeypatch):
    monkeypatch.setattr(grepping, "FILE_LIMIT", 1)
    make(root, {f"f{number}": "xx" for number in range(5)})
    assert printed(root, "x")[0].endswith("not searched: f0, f1, f2 (+2 more)]")


# -- tree -------------------------------------------------------------------------------------


def draw(root, base=".", **options):
    return tree(root, base, **{"allow": yes, **options})


def test_a_tree_is_drawn_folders_first(root):
    make(root, dict.fromkeys(["b/x.py", "b/a/deep", "a.txt", "c/y"], ""))
    os.symlink("/etc/passwd", f"{root.path}/b/link")
    os.mkfifo(f"{root.path}/pipe")
    assert draw(root).text == (
        ".\n"
        "├── b/\n"
        "│   ├── a/\n"
        "│   │   └── deep\n"
        "│   ├── link -> (link)\n"
        "│   └── x.py\n"
        "├── c/\n"
        "│   └── y\n"
        "├── a.txt\n"
        "└── pipe (no file)\n"
        "\n"
        "3 directories, 6 files"
    )


def test_depth_bounds_the_tree_and_its_totals(root):
    make(root, dict.fromkeys(["a/b/c/d", "a/x"], ""))
    drawn = draw(root, depth=1)
    assert drawn.text == ".\n└── a/\n\n1 directory, 0 files"
    drawn = draw(root, "a", depth=2)
    assert drawn.text == "a/\n├── b/\n│   └── c/\n└── x\n\n2 directories, 1 file"


def test_files_can_be_left_out_and_are_counted_all_the_same(root):
    make(root, dict.fromkeys(["a/b", "c"], ""))
    assert draw(root, include_files=False).text == ".\n└── a/\n\n1 directory, 2 files"


def test_a_pattern_leaves_out_folders_without_a_match(root):
    make(root, dict.fromkeys(["a/x.py", "b/y.js", "c/d/z.py", "e/f/g"], ""))
    assert draw(root, pattern="*.py").text == (
        ".\n├── a/\n│   └── x.py\n└── c/\n    └── d/\n        └── z.py\n\n3 directories, 2 files"
    )
    assert draw(root, pattern="c/**/*.py").files == 1


def test_ignored_and_refused_entries_are_not_drawn(root):
    make(root, {".gitignore": "*.o\n", "a.o": "", "node_modules/x": "", ".env": "", "b": ""})
    drawn = draw(root, allow=lambda path, _d: path != ".env")
    assert drawn.text == (
        ".\n├── .gitignore\n└── b\n\n0 directories, 2 files; left out: node_modules/"
    )


def test_every_entry_of_the_upper_level_shows_before_deep_ones(root):
    make(root, {f"big/f{number:03}": "" for number in range(300)})
    make(root, dict.fromkeys(["small/only", "tiny/one", "top.txt"], ""))
    drawn = draw(root, budget=16)
    lines = drawn.text.split("\n")
    assert {"├── big/", "├── small/", "├── tiny/", "└── top.txt"} <= set(lines)
    assert "│   └── only" in lines
    assert "│   └── ... (+290 more)" in lines
    assert lines[-1] == "3 directories, 303 files"
    assert drawn.hidden == 290


def test_folders_without_room_say_how_much_they_hold(root):
    make(root, dict.fromkeys(["a/1", "a/2", "b/1"], ""))
    drawn = draw(root, budget=2)
    assert drawn.text == (
        ".\n├── a/\n│   └── ... (+2 more)\n└── b/\n    └── ... (+1 more)\n\n2 directories, 3 files"
    )
    assert draw(root, budget=1).text.split("\n")[1:4] == [
        "├── a/", "│   └── ... (+2 more)", "└── ... (+1 more)",
    ]  # fmt: skip


def test_totals_are_a_floor_when_not_all_was_seen(root):
    make(root, {"a/b": ""})
    drawn = draw(root, deadline=Deadline(cancelled=lambda: True))
    assert drawn.totals_are_floor
    assert drawn.text.endswith("\nat least 1 directory, 0 files; cancelled, so this is not all")


def test_an_empty_folder_is_drawn(root):
    assert draw(root).text == ".\n\n0 directories, 0 files"


def test_a_pattern_that_is_too_slow_again_and_again_ends_the_search(root):
    make(root, {f"{number:02}.txt": "a" * 50_000 + "!\n" for number in range(20)})
    found = search(root, r"(a+)+\1$")
    assert found.stopped == "time"
    assert len(found.slow) == 2


# -- what only proposals and buffers have ------------------------------------------------------


def test_what_is_only_proposed_is_found_also_in_a_folder_that_is_not_there(root):
    make(root, {"a.py": ""})
    more = ["new/b.py", "new/c.txt", "new/d.py"]
    assert find(root, "*.py", "new", more=more).paths == ("new/b.py", "new/d.py")
    assert find(root, "*.py", "new", more=more, limit=1).total == 2
    assert find(root, "**/*.py", more=more).paths == ("a.py", "new/b.py", "new/d.py")


def test_folders_beyond_the_limit_are_counted(root):
    make(root, dict.fromkeys(["a/x", "b/x", "c/x"], ""))
    found = find(root, "**/", limit=2)
    assert (found.paths, found.total) == (("a/", "b/"), 3)


def test_a_pattern_leaves_out_what_is_only_proposed_as_well(root):
    make(root, {"a/x.py": ""})
    drawn = draw(root, pattern="*.py", more=["a/y.py", "b/z.py", "b/z.txt"])
    assert drawn.files == 3
    assert "z.txt" not in drawn.text


def test_a_search_that_has_ended_looks_at_no_proposal_any_more(root):
    make(root, {"a": "x\n"})
    looked = []

    def overlay(path):
        looked.append(path)
        return b"x\n" if path.startswith("new") else None

    ends = Deadline(cancelled=lambda: "new1" in looked)
    found = search(root, "x", more=["new1", "new2"], overlay=overlay, deadline=ends)
    assert found.stopped == "cancelled"
    assert "new2" not in looked


def test_a_line_is_looked_at_once_however_many_matches_begin_on_it():
    text = b"one\n" + b"a" * 1_000 + b"\nlast"
    looked = []

    def show(text, start, end, *, focus=None):
        looked.append((start, end))
        return text[start:end].decode()

    hits = Query.compile("a|st|$", multiline=True).find(text)
    (lines,) = lines_of(text, hits, 0, show)
    assert [(one.number, one.hits) for one in lines] == [(1, 1), (2, 1_001), (3, 2)]
    assert looked == [(0, 3), (4, 1_004), (1_005, 1_009)]
    assert [one.text for one in lines] == text.decode().split("\n")
