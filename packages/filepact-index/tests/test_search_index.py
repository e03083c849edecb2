"""Searches with an index answer as searches without one, whatever happened to the files a moment ago."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import threading

import pytest

from filepact.errors import PathBlockedError
from filepact.fs import inotify
from filepact.fs.root import Root
from filepact.fs.trigrams import TrigramIndex
from filepact.text.query import Query
from filepact_index import name_index, open_indexes, search_index, text_index
from filepact_index.name_index import IndexChanges
from filepact_index.name_views import FileList
from filepact_index.text_index import TextIndex
from tests.hostile.sweeps import often
from tests.needs import MOUNTS, NOTICES
from tests.properties.index_histories import (
    changes,
    check,
    history,
    patterns,
    plant,
    reader,
    switches,
)

needs_library = pytest.mark.skipif(
    TrigramIndex.open() is None, reason="filepact was built without a C compiler"
)


@pytest.fixture
def indexed(open_here):
    """Opens the root; its index is as full as it gets."""

    def start(**options):
        workspace = open_here(**options)
        workspace.keep_search_index(open_indexes)
        reader(workspace).find(".", "**/*", limit=1)
        workspace._indexes.settle()
        return workspace

    return start


def known(workspace):
    (index,) = workspace._indexes._roots.values()
    return index


@NOTICES
@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_an_index_is_never_behind(indexed, root, monkeypatch, seed):
    # By turns texts keep their numbers, and are numbered anew.
    monkeypatch.setattr(text_index, "_FEW", text_index._FEW * seed)
    plant(root, random.Random(seed))
    history(indexed(), root, seed, 12)


@pytest.mark.slow(measured=True)
@pytest.mark.parametrize("seed", range(100, 102))
def test_whatever_happens_an_index_is_never_behind_for_long_histories(indexed, root, seed):
    plant(root, random.Random(seed), files=often(40, 80))
    if seed % 2:
        subprocess.run(["git", "init", "-q", root], check=True)
    history(indexed(), root, seed, often(20, 80))


@MOUNTS
def test_a_few_changes_are_seen_at_once_and_a_few_patterns_find_what_they_find_without():
    assert changes(10, 1) == 10
    assert patterns(30, 1)[1] > 5
    assert switches(40, 2) == 2


@NOTICES
@needs_library
@needs_library
def test_a_letter_that_is_another_case_of_one_of_ascii_is_looked_for_with_an_index_too(
    indexed, root
):
    for number in range(9):
        (root / f"{number}.txt").write_text("only {a here\n")
    (root / "k.txt").write_text("K{A\n")
    (root / "kelvin.txt").write_text("\u212a{a\n")
    workspace = indexed()
    query = Query.compile("\u212a{a", case_sensitive=False, literal=True)
    asked = {"glob": "**/*", "limit": 99, "offset": 0, "context": 0, "mode": "content"}
    found = reader(workspace).grep(".", query, **asked)
    assert [one.path for one in found.files] == ["k.txt", "kelvin.txt"]


@NOTICES
def test_files_that_cannot_match_are_not_opened(indexed, root, monkeypatch):
    for number in range(20):
        (root / f"{number}.txt").write_text(f"word{number} and more\n")
    workspace = indexed()
    opened = []
    plain = Root.read_small

    def read_small(self, paths, *needs, **how):
        opened.extend(paths)
        return plain(self, paths, *needs, **how)

    monkeypatch.setattr(Root, "read_small", read_small)
    found = reader(workspace).grep(
        ".", Query.compile("word7 and"), glob="**/*", limit=5, offset=0, context=0, mode="content"
    )
    assert (found.total, found.searched) == (1, 20)
    assert opened == ["7.txt"]


@NOTICES
@needs_library
def test_a_line_is_shown_from_the_disk_and_never_from_what_was_read_before(
    indexed, root, monkeypatch
):
    (root / "a.txt").write_text("word and more\n")
    workspace = indexed()
    query = Query.compile("word")
    how = {"glob": "**/*", "limit": 5, "offset": 0, "context": 0, "mode": "content"}
    for _ in range(2):
        assert reader(workspace).grep(".", query, **how).total == 1

    def refuse(self, path, **how):
        raise PathBlockedError("no", path=path)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "read_small", lambda _root, paths, *_, **__: [None] * len(paths))
        patch.setattr(Root, "read", refuse)
        found = reader(workspace).grep(".", query, **how)
        assert (found.files, found.unreadable) == ((), ("a.txt",))
    (root / "a.txt").write_text("other\n")
    assert reader(workspace).grep(".", query, **how).total == 0
    workspace._indexes.settle()
    assert reader(workspace).grep(".", Query.compile("other"), **how).total == 1
    check(workspace)


@NOTICES
def test_of_many_changes_only_some_are_noted(indexed, root, monkeypatch):
    monkeypatch.setattr(text_index, "_MOST_NOTED", 3)
    for number in range(9):
        (root / f"{number}.txt").write_text(f"createdAt {number}\n")
    workspace = indexed()
    check(workspace)
    for number in range(9):
        (root / f"{number}.txt").write_text(f"createdAt again {number}\n")
        check(workspace)
    workspace._indexes.settle()
    check(workspace)


def test_git_says_anew_what_is_tracked(indexed, root):
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("*.log\nout/\n")
    (root / "out").mkdir()
    for name in ("a.log", "b.log", "out/c.txt"):
        (root / name).write_text("createdAt\n")
    workspace = indexed()
    check(workspace)
    subprocess.run(["git", "-C", root, "add", "-f", "a.log", "out/c.txt"], check=True)
    check(workspace)
    assert reader(workspace).find(".", "**/*.log", limit=9).total == 1
    subprocess.run(["git", "-C", root, "rm", "-q", "--cached", "a.log"], check=True)
    check(workspace)
    (root / ".git" / "info" / "exclude").write_text("*.txt\n")
    check(workspace)


def test_a_repository_that_is_made_in_a_folder_has_its_own_rules(indexed, root):
    (root / ".gitignore").write_text("*.log\n")
    (root / "sub").mkdir()
    (root / "sub" / "a.log").write_text("createdAt\n")
    workspace = indexed()
    check(workspace)
    subprocess.run(["git", "init", "-q", root / "sub"], check=True)
    check(workspace)


def test_a_file_that_has_another_name_outside_is_searched_each_time(indexed, root, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("nothing\n")
    os.link(outside, root / "inside.txt")
    workspace = indexed()
    outside.write_text("createdAt\n")
    check(workspace)


@pytest.fixture(params=["few texts", "many texts"])
def unnoticed(request, indexed, root, monkeypatch):
    """A workspace that knows `file.txt`, and what brings it to compare stamps: a search, or that of a minute."""
    (root / "file.txt").write_text("x" * 100)
    if request.param == "few texts":
        return indexed(), lambda: None
    monkeypatch.setattr(search_index, "_VERIFY_EVERY", -1.0)
    monkeypatch.setattr(search_index, "_FEW_TEXTS", 0)
    workspace = indexed()

    def verified():
        reader(workspace).find(".", "**/*", limit=1)
        workspace._indexes.settle()

    return workspace, verified


def test_a_write_through_a_memory_map_is_found_when_stamps_are_compared(unnoticed, root):
    workspace, verified = unnoticed
    with (root / "file.txt").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as bytes_:
        bytes_[:9] = b"createdAt"
        bytes_.flush()
        # Once it is closed there is a notice.
        verified()
        check(workspace)


def test_a_write_by_a_name_that_came_later_is_found_when_stamps_are_compared(
    unnoticed, root, tmp_path
):
    workspace, verified = unnoticed
    os.link(root / "file.txt", tmp_path / "outside.txt")
    check(workspace)
    (tmp_path / "outside.txt").write_text("createdAt\n")
    verified()
    check(workspace)


def test_a_folder_that_one_agent_may_not_see_is_seen_by_none_of_its_searches(indexed, root):
    (root / ".env").write_text("createdAt = 1\n")
    (root / "keys").mkdir()
    (root / "keys" / "id_rsa").write_text("createdAt\n")
    (root / "seen.txt").write_text("createdAt\n")
    workspace = indexed()
    check(workspace)
    found = reader(workspace).grep(
        ".", Query.compile("createdAt"), glob="**/*", limit=9, offset=0, context=0, mode="content"
    )
    assert [one.path for one in found.files] == ["seen.txt"]
    assert ".env" not in known(workspace).texts._numbers


def test_a_private_key_that_comes_into_a_known_file_is_refused(indexed, root):
    (root / "notes.txt").write_text("createdAt\n")
    workspace = indexed()
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    (root / "notes.txt").write_text(f"createdAt\n{key}-----END PRIVATE KEY-----\n")
    check(workspace)


@MOUNTS
@pytest.mark.parametrize("lacking", ["trigrams", "library", "notices", "watches"])
def test_what_a_system_lacks_changes_no_answer(indexed, root, monkeypatch, lacking):
    plant(root, random.Random(5))
    if lacking == "trigrams":
        monkeypatch.setattr(TrigramIndex, "open", lambda: None)
        monkeypatch.setattr(TextIndex.__init__, "__defaults__", (lambda: None,))
    elif lacking == "library":
        monkeypatch.setattr(Root, "read_small", lambda _root, paths, *_, **__: [None] * len(paths))
    elif lacking == "notices":
        monkeypatch.setattr(name_index.InotifyWatcher, "open", lambda _root: None)
    else:
        monkeypatch.setattr(inotify, "most_watches", lambda: 8)
    history(indexed(), root, 5, 4)


@NOTICES
def test_lost_notices_empty_the_table_until_it_is_made_anew(indexed, root, monkeypatch):
    plant(root, random.Random(6))
    workspace = indexed()
    table = known(workspace).names
    plain = table._watcher.drain
    monkeypatch.setattr(table._watcher, "drain", lambda: plain()._replace(lost=True))
    (root / "late.txt").write_text("createdAt\n")
    check(workspace)
    workspace._indexes.settle()
    assert table.ready
    check(workspace)


@NOTICES
def test_a_search_does_not_wait_for_the_names_to_be_listed(open_here, root, monkeypatch):
    plant(root, random.Random(9))
    workspace = open_here()
    workspace.keep_search_index(open_indexes)
    listing, go_on = threading.Event(), threading.Event()
    plain = name_index.list_folder

    def slowly(*asked, **how):
        listing.set()
        assert go_on.wait(60)
        return plain(*asked, **how)

    monkeypatch.setattr(name_index, "list_folder", slowly)
    reader(workspace).find(".", "**/*", limit=1)
    assert listing.wait(60)
    check(workspace)
    go_on.set()
    workspace._indexes.settle()
    assert known(workspace).names.ready


@NOTICES
def test_a_tree_that_was_too_busy_to_be_listed_gets_its_index_later(indexed, root, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(name_index, "_SETTLING", 0)
        workspace = indexed()
        assert not known(workspace).names.ready
    check(workspace)
    workspace._indexes.settle()
    assert known(workspace).names.ready


@NOTICES
@needs_library
def test_a_budget_that_is_used_up_leaves_the_rest_to_be_searched(indexed, root, monkeypatch):
    monkeypatch.setattr(text_index, "_BUDGET", 1)
    plant(root, random.Random(7))
    workspace = indexed()
    assert 0 < len(known(workspace).texts._numbers) < 25
    check(workspace)


@needs_library
def test_an_index_that_is_mostly_out_of_date_is_made_anew(indexed, root, monkeypatch):
    monkeypatch.setattr(text_index, "_FEW", 5)
    (root / "a.txt").write_text("first\n")
    workspace = indexed()
    for number in range(12):
        (root / "a.txt").write_text(f"createdAt {number}\n")
        check(workspace)
        workspace._indexes.settle()
    assert known(workspace).texts._trigrams.size <= 7


def test_searches_in_many_threads_are_right_while_files_change(indexed, root):
    plant(root, random.Random(8), files=60)
    workspace = indexed()
    wrong = []

    def look(number):
        mine = root / f"mine{number}.txt"
        for turn in range(15):
            mine.write_text(f"unique{number}x{turn}y\n")
            found = reader(workspace).grep(
                *(".", Query.compile(f"unique{number}x{turn}y")),
                glob="**/*",
                limit=5,
                offset=0,
                context=0,
                mode="content",
            )
            if found.total != 1:
                wrong.append((number, turn))

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@NOTICES
def test_no_search_begins_between_the_notice_of_a_change_and_what_it_makes_of_a_text(
    indexed, root, monkeypatch
):
    (root / "a.txt").write_text("before\n")
    workspace = indexed()

    def found(word):
        options = {"glob": "**/*", "limit": 5, "offset": 0, "context": 0, "mode": "content"}
        return reader(workspace).grep(".", Query.compile(word), **options).total

    assert found("before") == 1
    (index,) = workspace._indexes._roots.values()
    forget, told = index.texts.forget, []
    other = threading.Thread(target=lambda: told.append(found("afterwards")))

    def while_another_searches(changes):
        if changes and not other.ident:
            other.start()
            other.join(0.5)  # it waits for us, or it has missed the change by now
        forget(changes)

    monkeypatch.setattr(index.texts, "forget", while_another_searches)
    (root / "a.txt").write_text("afterwards\n")
    assert found("afterwards") == 1
    other.join()
    assert told == [1]


def test_a_command_that_searches_once_keeps_no_index(open_here, root):
    workspace = open_here()
    reader(workspace).find(".", "**/*", limit=1)
    assert workspace._indexes is None


@NOTICES
def test_answers_about_names_are_given_again_only_while_nothing_can_have_changed(indexed, root):
    (root / ".gitignore").write_text("out/\n")
    for place in ("out/deep", "node_modules/a", "src"):
        (root / place).mkdir(parents=True)
        (root / place / "x.py").write_text("createdAt\n")
    workspace = indexed()
    for number in range(3):
        for base in (".", "out", "out/deep", "node_modules", "src"):
            check(workspace, base)
        for place in ("out/deep", "node_modules/a", "src", "."):
            (root / place / f"{number}.py").write_text("createdAt\n")
            check(workspace)
    one = reader(workspace)
    assert one.find("src", "**/*.py", limit=9) is one.find("src", "**/*.py", limit=9)
    assert one.find("out", "**/*.py", limit=9) is not one.find("out", "**/*.py", limit=9)


def test_memory_goes_back_when_nobody_has_searched_for_a_moment(indexed, root, monkeypatch):
    monkeypatch.setattr(search_index, "_REST_SECONDS", 0.02)
    given = threading.Event()
    monkeypatch.setattr(search_index, "give_memory_back", given.set)
    (root / "a.txt").write_text("createdAt\n")
    workspace = indexed()
    check(workspace)
    assert given.wait(60)
    check(workspace)


@NOTICES
def test_servers_of_one_root_watch_no_more_than_half_of_what_a_user_may_watch(
    open_here, root, monkeypatch
):
    monkeypatch.setattr(inotify, "most_watches", lambda: 4_000)
    plant(root, random.Random(4))
    workspaces = [open_here() for _ in range(3)]
    for one in workspaces:
        one.keep_search_index(open_indexes)
        check(one)
        one._indexes.settle()
    tables = [known(one).names for one in workspaces]
    assert [table.ready for table in tables] == [True, True, False]
    assert tables[2].unusable
    (root / "late.txt").write_text("createdAt\n")
    for one in workspaces:
        check(one)
    tables[0].close()
    monkeypatch.setattr(name_index, "_RETRY_SECONDS", 0.0)
    tables[2]._not_before = 0.0
    check(workspaces[2])
    workspaces[2]._indexes.settle()
    assert tables[2].ready


@NOTICES
def test_after_a_long_time_without_a_search_nothing_is_known_or_watched(indexed, root, monkeypatch):
    monkeypatch.setattr(search_index, "_REST_SECONDS", 0.02)
    monkeypatch.setattr(search_index, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(search_index, "_PAUSE_SECONDS", 0.01)
    (root / "a.txt").write_text("createdAt\n")
    workspace = indexed()
    one, forgot = known(workspace), threading.Event()
    plain = one.forget

    def forget():
        plain()
        forgot.set()

    monkeypatch.setattr(one, "forget", forget)
    check(workspace)
    assert forgot.wait(60)
    monkeypatch.setattr(search_index, "_IDLE_SECONDS", 900.0)
    (root / "a.txt").write_text("createdAt createdAt\n")
    check(workspace)
    workspace._indexes.settle()
    assert one.names.ready
    check(workspace)


@NOTICES
def test_readers_who_may_see_the_same_have_it_in_common(indexed, root):
    plant(root, random.Random(9))
    workspace = indexed()

    def lists():
        check(workspace)
        workspace._indexes.settle()
        views = [view for view in known(workspace).names._views.values() if view.base == "."]
        assert len(views) > 1
        assert len({id(view.flat) for view in views}) == 1
        return {id(view.chosen["**/*"]) for view in views}

    assert len(lists()) == 1
    (root / "another.txt").write_text("createdAt\n")
    assert len(lists()) == 1


@needs_library
def test_a_search_that_has_begun_knows_the_texts_of_that_moment(monkeypatch):
    monkeypatch.setattr(text_index, "_FEW", 0)
    texts, files = filled("a", "b", "c")
    before = texts.known(files, ((b"word",),), ())
    texts.forget(IndexChanges(frozenset({"a"}), frozenset()))
    texts.rest()
    after = texts.known(files, ((b"word",),), ())
    for one in (before, after):
        assert [one.same(name, STAMP) for name in "abc"] == [False, True, True]
    texts.close()


# -- texts by themselves ----------------------------------------------------------------------

STAMP = (1, 1, 1, 1)
OTHER = (1, 1, 2, 2)


def filled(*names):
    texts, files = TextIndex(), FileList(sorted(names))
    assert texts.claim(files) == sorted(names)
    for name in names:
        texts.put(name, name.encode(), STAMP)
    return texts, files


def looked_at(texts, files):
    return texts.known(files, ((b"word",),), ()).look


@needs_library
def test_what_changed_without_a_notice_is_searched_once_it_was_verified():
    texts, files = filled("a", "b")
    assert looked_at(texts, files) == []
    texts.verify({"a": STAMP, "b": OTHER}.get)
    assert looked_at(texts, files) == ["b"]

    def changes_meanwhile(name):
        texts.forget(IndexChanges(frozenset({name}), frozenset()))

    texts.verify(changes_meanwhile)
    assert looked_at(texts, files) == ["a", "b"]
    texts.close()


@needs_library
def test_what_was_not_claimed_or_changed_since_is_neither_put_nor_put_off():
    texts, files = filled("a")
    texts.put("b", b"word", STAMP)
    texts.put_off("b")
    texts.claim(FileList(["c"]))
    texts.forget(IndexChanges(frozenset({"c"}), frozenset()))
    texts.put_off("c")
    assert texts.claim(FileList(["a", "b", "c"])) == ["b", "c"]
    texts.put_off("b")
    assert texts.claim(FileList(["a", "b", "c"])) == ["c"]
    assert looked_at(texts, files) == []
    texts.close()


@needs_library
def test_without_room_no_more_texts_are_taken_in(monkeypatch):
    texts = TextIndex()
    files = FileList(["a", "b"])
    texts.claim(files)

    def no_room(_trigrams, _text):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(TrigramIndex, "add", no_room)
        texts.put("a", b"word", STAMP)
    assert texts.full
    assert texts.claim(files) == []
    assert looked_at(texts, files) == ["a", "b"]
    texts.close()


def test_where_texts_cannot_be_indexed_nothing_is_known_and_nothing_fails():
    texts, files = TextIndex(lambda: None), FileList(["a"])
    assert not texts.usable
    assert texts.claim(files) == []
    for act in (texts.rest, texts.clear, texts.close):
        act()
        assert looked_at(texts, files) == ["a"]
