"""What one server knows of a root's texts is left to the next, and believed only as far as it is still so."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from filepact.config.settings import parse_settings
from filepact.fs.locks import FileLocks
from filepact.fs.root import Root
from filepact.fs.trigrams import TrigramIndex
from filepact.text.query import Query
from filepact_index import index_file, open_indexes, search_index, text_index
from filepact_index.index_file import IndexFile
from filepact_index.name_index import IndexChanges
from filepact_index.name_views import FileList
from filepact_index.text_index import TextIndex
from tests.faces.small_server import wait_for
from tests.needs import NOTICES
from tests.properties.index_histories import ODD_FILES, check, plant, reader
from tests.properties.tree_changes import disturbed

pytestmark = [
    pytest.mark.skipif(
        TrigramIndex.open() is None, reason="filepact was built without a C compiler"
    ),
    NOTICES,
]

RACY = 20_000_000


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    """Also a small tree is left to others, and files may have changed a moment before they are read."""
    monkeypatch.setattr(search_index, "_LEAST_KEPT", 1)
    monkeypatch.setattr(search_index, "_SAVE_EVERY", 0.0)
    monkeypatch.setattr(text_index, "_RACY_NANOSECONDS", RACY)


def rest(root):
    """Wait until no file has changed a moment ago."""
    newest = max((os.lstat(one).st_ctime_ns for one in root.rglob("*")), default=0)
    while time.time_ns() - newest <= 2 * RACY:
        time.sleep(0.005)


@pytest.fixture
def serve(open_here, root):
    """Starts one more server; all are closed in the end."""

    def start(**options):
        workspace = open_here(**options)
        workspace.keep_search_index(partial(open_indexes, shared_by="1"))
        return workspace

    return start


@pytest.fixture
def left(serve, root):
    """Has a server read all, leave it to others, and end; the file."""

    def leave(**options):
        rest(root)
        workspace = serve(**options)
        look(workspace)
        file = Path(kept(workspace)._path)
        workspace.close()
        return file

    return leave


def look(workspace, word="createdAt"):
    """Search, and wait until all that is wanted in the background is done; the files that are found."""
    options = {"glob": "**/*", "limit": 99, "offset": 0, "context": 0, "mode": "files"}
    found = reader(workspace).grep(".", Query.compile(word), **options)
    workspace._indexes.settle()
    return [one.path for one in found.files]


def index_of(workspace):
    (index,) = workspace._indexes._roots.values()
    return index


def kept(workspace):
    return index_of(workspace).kept


def known(workspace):
    texts = index_of(workspace).texts
    return sorted([*texts._numbers, *texts._binary])


@pytest.fixture
def store(root, tmp_path):
    """The file, without a server."""
    with Root.open(root) as opened:
        locks = FileLocks(str(tmp_path / "state" / "locks"))
        yield IndexFile(str(tmp_path / "state" / "indexes"), opened, locks, "1")


@pytest.fixture
def read_paths(monkeypatch):
    """The files that are read many at once from now on."""
    paths, plain = [], Root.read_small

    def read_small(self, some, *needs, **how):
        paths.extend(some)
        return plain(self, some, *needs, **how)

    monkeypatch.setattr(Root, "read_small", read_small)
    return paths


def test_the_next_server_knows_what_the_last_one_knew_without_reading_it(
    serve, left, root, read_paths
):
    plant(root, random.Random(1))
    for name, data in ODD_FILES.items():
        (root / name).write_bytes(data)
    file = left()
    assert file.stat().st_mode & 0o777 == 0o600
    workspace = serve()
    reader(workspace).find(".", "**/*", limit=1)
    read_paths.clear()
    workspace._indexes.settle()
    assert look(workspace, "absent there") == []
    assert set(read_paths) == {"key.txt"}
    files = [
        one for one in root.rglob("*") if one.is_file() and one.name not in ("key.txt", ".env")
    ]
    assert len(known(workspace)) == len(files)
    check(workspace)
    another = serve()
    check(another)
    another._indexes.settle()
    check(another)
    assert index_of(another).texts._trigrams.added == 0


def test_whoever_would_read_the_same_waits_for_the_first(serve, root, store, read_paths):
    plant(root, random.Random(2))
    rest(root)
    workspaces = [serve() for _ in range(3)]
    with store.turn():
        for one in workspaces:
            reader(one).find(".", "**/*", limit=1)
    for one in workspaces:
        one._indexes.settle()
        assert len(known(one)) == 30
    assert len(read_paths) == 30
    for one in workspaces:
        check(one)


def test_another_root_is_read_while_one_waits_for_another_server(serve, root, store, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    plant(root, random.Random(2))
    plant(other, random.Random(3))
    workspace = serve(roots=[str(root), str(other)])
    with store.turn():
        for one in (root, other):
            reader(workspace).find(str(one), "**/*", limit=1)
        indexes = workspace._indexes._roots
        assert wait_for(lambda: len(indexes[str(other)].texts._numbers) > 20)
        assert not indexes[str(root)].texts._numbers
    workspace._indexes.settle()
    assert len(indexes[str(root)].texts._numbers) > 20


@pytest.mark.parametrize("seed", range(6))
def test_what_happened_between_two_servers_is_seen_by_the_second(serve, left, root, seed):
    dice = random.Random(seed)
    plant(root, dice)
    for name, data in ODD_FILES.items():
        (root / name).write_bytes(data)
    if seed % 2:
        subprocess.run(["git", "init", "-q", root], check=True)
    left()
    for _ in range(12):
        disturbed(root, dice)
    workspace = serve()
    reader(workspace).find(".", "**/*", limit=1)
    workspace._indexes.settle()
    check(workspace)


@pytest.mark.parametrize("charset", ["latin1", "utf-16le", "utf-8-bom"])
def test_what_is_said_about_encodings_since_counts(serve, left, root, charset):
    for name, data in ODD_FILES.items():
        (root / name).write_bytes(data)
    left()
    (root / ".editorconfig").write_text(f"root = true\n[*]\ncharset = {charset}\n")
    workspace = serve()
    look(workspace)
    check(workspace)
    settings = parse_settings('[encodings]\n"*.txt" = "cp1252"\n', name="settings.toml")
    workspace = serve(settings=settings)
    look(workspace)
    check(workspace)


def test_a_file_that_was_written_just_before_it_was_read_is_read_again(
    serve, left, root, monkeypatch
):
    plant(root, random.Random(3))
    monkeypatch.setattr(text_index, "_RACY_NANOSECONDS", 3_600_000_000_000)
    left()
    monkeypatch.setattr(search_index.RootIndexes, "_put_all", lambda *_: False)
    workspace = serve()
    assert look(workspace) is not None
    assert known(workspace) == []


@pytest.fixture
def taken(left, root, store):
    """What a server has left, a table that knows nothing yet, and the files that it may know."""
    plant(root, random.Random(19))
    (root / "data.bin").write_bytes(bytes(range(256)) * 4)
    left()
    record, texts = store.load(), TextIndex()
    yield record, texts, FileList(sorted([*filter(None, record.paths), *record.binary]))
    texts.close()


def take_over(store, taken, meanwhile=lambda _path: None):
    record, texts, files = taken

    def glance(path):
        meanwhile(path)
        return store._root.glance(path)

    return texts.adopt(record, files, glance, lambda _path: "")


def test_who_knows_something_already_takes_nothing_over(store, taken):
    _record, texts, files = taken
    texts.claim(FileList(files.paths[:1]))
    texts.put(files.paths[0], b"word", store._root.glance(files.paths[0]))
    assert take_over(store, taken) == 0
    assert [*texts._numbers] == files.paths[:1]


def test_what_changes_while_it_is_taken_over_is_not_taken_in(store, taken):
    record, texts, files = taken
    changed = {next(filter(None, record.paths)), "data.bin"}

    def meanwhile(path):
        if path in changed:
            texts.forget(IndexChanges(frozenset({path}), frozenset()))

    take_over(store, taken, meanwhile)
    assert {*texts._numbers, *texts._binary} == {*files.paths} - changed


def test_a_table_that_is_emptied_while_it_takes_over_stays_empty(store, taken):
    texts = taken[1]
    assert take_over(store, taken, lambda _path: texts.clear()) == 0
    assert texts.size == 0


def test_what_is_too_large_to_be_kept_is_left_to_nobody(left, root, serve, monkeypatch):
    plant(root, random.Random(20))
    monkeypatch.setattr(index_file, "_LARGEST", 1_000)
    assert not left().exists()
    check(serve())


def test_a_file_that_is_used_counts_as_used(left, root, store):
    plant(root, random.Random(21))
    file = left()
    os.utime(file, (1_000_000_000, 1_000_000_000))
    assert store.load() is not None
    assert file.stat().st_mtime != 1_000_000_000


def test_where_no_thread_can_be_started_every_byte_is_searched(serve, root, monkeypatch):
    plant(root, random.Random(22))
    monkeypatch.setattr(search_index, "begun", lambda _thread: False)
    workspace = serve()
    look(workspace)
    check(workspace)
    assert known(workspace) == []


def test_what_may_not_be_read_any_more_is_neither_found_nor_kept(serve, left, root):
    plant(root, random.Random(4))
    (root / "plans.txt").write_text("createdAt secretly\n")
    file = left()
    assert b"plans.txt" in file.read_bytes()
    rule = parse_settings('[[deny]]\npaths = ["plans.txt"]\n', name="settings.toml")
    workspace = serve(settings=rule)
    assert "plans.txt" not in look(workspace)
    check(workspace)
    assert "plans.txt" not in known(workspace)
    data = file.read_bytes()
    assert b"plans.txt" not in data
    record = kept(workspace).load()
    searched = TrigramIndex.open(record.image)
    assert searched.find(((b"secretly",),)) == []
    searched.close()


def test_keys_and_files_with_other_names_are_not_kept(left, root, tmp_path):
    plant(root, random.Random(5))
    (root / ".env").write_text("createdAt = 1\n")
    (root / "notes.txt").write_text(
        "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    )
    (tmp_path / "outside").write_text("createdAt\n")
    os.link(tmp_path / "outside", root / "linked.txt")
    data = left().read_bytes()
    for name in (b".env", b"notes.txt", b"linked.txt"):
        assert name not in data


def test_what_is_damaged_counts_as_nothing_wherever_that_is(serve, left, root, store):
    plant(root, random.Random(6))
    file = left()
    whole = file.read_bytes()
    assert store.load() is not None
    places = [*range(0, 140, 3), *range(140, len(whole), len(whole) // 60), len(whole) - 1]
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        file.write_bytes(damaged)
        assert store.load() is None, at
    for size in (0, 1, 127, 128, 200, 20_000, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert store.load() is None, size
    for other in (whole + b"\0", bytes(len(whole)), os.urandom(len(whole)), whole * 2):
        file.write_bytes(other)
        assert store.load() is None
    fresh = serve()
    look(fresh)
    check(fresh)
    assert len(known(fresh)) == 30
    assert store.load() is not None  # written anew


def test_a_file_that_is_not_only_this_users_counts_as_nothing(serve, left, root, tmp_path, store):
    plant(root, random.Random(7))
    file = left()
    for mode in (0o640, 0o604, 0o660):
        file.chmod(mode)
        assert store.load() is None
    file.chmod(0o600)
    assert store.load() is not None
    if os.geteuid() == 0:
        os.chown(file, 12_345, -1)
        assert store.load() is None
        os.chown(file, 0, -1)
    moved = file.rename(tmp_path / "elsewhere")
    file.symlink_to(moved)
    assert store.load() is None
    file.unlink()
    os.mkfifo(file, 0o600)
    assert store.load() is None
    check(serve())


def test_a_server_of_another_version_has_a_file_of_its_own(open_here, left, root, store):
    plant(root, random.Random(18))
    left()
    workspace = open_here()
    workspace.keep_search_index(partial(open_indexes, shared_by="2"))
    look(workspace)
    assert store.load() is not None
    assert kept(workspace).load() is not None
    assert kept(workspace)._path != store._path


def test_another_folder_in_the_place_of_the_root_is_another_root(serve, left, root, tmp_path):
    plant(root, random.Random(8))
    file = left()
    root.rename(tmp_path / "before")
    root.mkdir()
    (root / "a.txt").write_text("createdAt\n")
    with Root.open(root) as now:
        locks = FileLocks(str(tmp_path / "state" / "locks"))
        there = IndexFile(str(file.parent), now, locks, "1")
        assert there.stamp
        assert there.load() is None
    workspace = serve()
    for _ in range(2):
        assert look(workspace) == ["a.txt"]
    check(workspace)


WRITER = """
import os, signal, sys
from functools import partial
from filepact_index import open_indexes
from filepact_index import index_file
from filepact_index import search_index, text_index
from filepact.app import open_workspace
from filepact.config.settings import Settings
from tests.properties.index_histories import reader
search_index._LEAST_KEPT, text_index._RACY_NANOSECONDS = 1, 0
plain, left = os.write, int(sys.argv[3])
def write(descriptor, data):
    global left
    if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".part"):
        left -= 1
        if left < 0:
            plain(descriptor, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
    return plain(descriptor, data)
index_file.os.write = write
workspace = open_workspace(sys.argv[1], state_dir=sys.argv[2], settings=Settings())
workspace.keep_search_index(partial(open_indexes, shared_by="1"))
reader(workspace).find(".", "**/*", limit=1)
workspace._indexes.settle()
"""


def test_a_server_that_was_killed_while_it_wrote_leaves_nothing_half(serve, root, tmp_path):
    plant(root, random.Random(9))
    folder = tmp_path / "state" / "indexes"
    for writes in (0, 3):
        done = subprocess.run(
            [sys.executable, "-c", WRITER, root, tmp_path / "state", str(writes)],
            cwd=Path(__file__).parents[3],
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
    parts = list(folder.iterdir())
    assert {one.suffix for one in parts} == {".part"}
    workspace = serve()
    check(workspace)
    for part in parts:
        os.utime(part, (1, 1))
    rest(root)
    workspace._indexes.settle()
    another = serve()
    look(another)
    check(another)
    assert kept(another).save(kept(another).load())
    assert list(folder.iterdir()) == [Path(kept(another)._path)]


def test_of_two_who_write_at_once_one_is_there_whole(left, root, store):
    plant(root, random.Random(10))
    left()
    record = store.load()
    stop, wrong = threading.Event(), []

    def write():
        while not stop.is_set():
            store.save(record)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for one in threads:
        one.start()
    for _ in range(60):
        found = store.load()
        if found is None or found.paths != record.paths:
            wrong.append(found)
    stop.set()
    for one in threads:
        one.join()
    assert not wrong


def test_without_room_nothing_is_left_and_everything_goes_on(serve, root, tmp_path):
    plant(root, random.Random(11))
    rest(root)
    workspace = serve()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        look(workspace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "state" / "indexes").iterdir())
    assert len(known(workspace)) == 30
    check(workspace)


def test_what_nobody_uses_any_more_is_removed(serve, left, root):
    plant(root, random.Random(12))
    file = left()
    other = file.with_name("0" * 24)
    other.write_bytes(b"old")
    os.utime(other, (1, 1))
    (root / "more").mkdir()
    plant(root / "more", random.Random(13))
    rest(root)
    workspace = serve()
    look(workspace)
    assert sorted(file.parent.iterdir()) == [file]
    assert file.stat().st_mtime > 1


def test_many_changes_are_left_to_others_and_few_are_not(serve, left, root):
    plant(root, random.Random(14), files=60)
    file = left()
    before = file.stat().st_ino
    (root / "one.txt").write_text("createdAt\n")
    rest(root)
    workspace = serve()
    look(workspace)
    assert file.stat().st_ino == before
    for number in range(20):
        (root / f"{number}.txt").write_text("createdAt\n")
    rest(root)
    assert len(look(workspace)) > 20
    assert file.stat().st_ino != before
    assert look(workspace) == look(serve())


def test_a_server_that_shares_some_folders_only_leaves_nothing_to_others(serve, root):
    plant(root, random.Random(15))
    (root / "some").mkdir()
    plant(root / "some", random.Random(16))
    rest(root)
    workspace = serve()
    workspace.guard.narrow([str(root / "some")])
    look(workspace)
    assert kept(workspace).load() is None
    check(workspace, "some")


def test_who_does_not_want_that_has_no_file(open_here, root, tmp_path):
    plant(root, random.Random(17))
    rest(root)
    workspace = open_here()
    workspace.keep_search_index(open_indexes)
    look(workspace)
    assert known(workspace)
    assert not (tmp_path / "state" / "indexes").exists()
