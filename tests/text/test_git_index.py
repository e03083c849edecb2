"""Index files of Git, also such that no Git has written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.fs.work_trees import InvalidIndexError, read_index


def entry(name, *, width=20, extended=False):
    flags = min(len(name), 0xFFF) | (0x4000 if extended else 0)
    head = bytes(40 + width) + flags.to_bytes(2, "big") + (bytes(2) if extended else b"")
    return head + name + bytes(8 - (len(head) + len(name)) % 8)


def index(names, *, version=2, width=20, count=None, more=b"", **options):
    body = b"".join(entry(name, width=width, **options) for name in names)
    head = b"DIRC" + version.to_bytes(4, "big")
    number = len(names) if count is None else count
    return head + number.to_bytes(4, "big") + body + more + bytes(width)


NAMES = [b"a", b"build/x", b"n" * 5_000, "ä".encode(), b"/etc/passwd", b"../x", b"a\xff"]


@pytest.mark.parametrize("width", [20, 32])
@pytest.mark.parametrize("extended", [False, True])
def test_names_are_read_as_they_stand(width, extended):
    version = 3 if extended else 2
    data = index(NAMES, width=width, version=version, extended=extended)
    assert read_index(data).names == NAMES


def test_extensions_are_passed_over_and_the_shared_index_is_named():
    more = b"TREE" + (3).to_bytes(4, "big") + b"abc" + b"link" + (22).to_bytes(4, "big")
    more += bytes(range(20)) + b"xx"
    found = read_index(index([b"a"], more=more))
    assert found == ([b"a"], bytes(range(20)).hex())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"DIRC",
        b"DIRC\0\0\0\5\0\0\0\0" + bytes(20),
        index(NAMES, count=2**32 - 1),
        index(NAMES, count=len(NAMES) + 1),
        index(NAMES, more=b"TREE\xff\xff\xff\xff"),
        index(NAMES)[:-1],
        index(NAMES)[:100],
        index([b"a"], version=4, count=1).replace(b"\0\1a", b"\0\1\xff\xff\xff\xff\xffa"),
    ],
)
def test_what_is_no_index_is_refused(data):
    with pytest.raises(InvalidIndexError):
        read_index(data)


@given(
    st.integers(2, 4),
    st.lists(st.binary(max_size=20), max_size=5),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    st.integers(0, 400),
)
def test_no_bytes_make_it_fail_otherwise_or_read_more_than_is_there(version, names, changes, end):
    data = bytearray(index(names, version=version))
    for at, value in changes:
        data[at % len(data)] = value
    for bytes_ in (bytes(data), bytes(data[:end])):
        try:
            found = read_index(bytes_)
        except InvalidIndexError:
            continue
        assert len(found.names) * 40 <= len(bytes_)
