"""Files as URIs, and back: one table for every protocol."""

from __future__ import annotations

import pytest

from filepact.wire.uris import path_named, path_of, uri_of


@pytest.mark.parametrize(
    "path", ["/a/b.py", "/with space/é#?%.py", "/\udcff/raw", "/c:/d", "/a;b@c", "/a\nb\t"]
)
def test_paths_survive_as_uris(path: str) -> None:
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%2Ec", "/a/b.c"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:///a%2520b", "/a%20b"),
        ("file:///%ff", "/\udcff"),
        ("file:///a%zz", "/a%zz"),
        ("file://localhost/a", "/a"),
        ("file://LOCALHOST/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:/a/b", "/a/b"),
        ("file:///c%3A/d", "/c:/d"),
        ("file:///a/../b", "/b"),
        ("file:///a/%2e%2e/b", "/b"),
        ("file:///a@b/c[1].py", "/a@b/c[1].py"),
        ("file:///a#b?c.py", "/a#b?c.py"),
        ("file:///a\n/.env", "/a\n/.env"),
        ("file:///é", "/é"),
    ],
)
def test_a_uri_is_decoded_once_and_nothing_of_it_is_cut_off(uri: str, path: str) -> None:
    assert path_of(uri) == path
    assert path_named(uri) == path


@pytest.mark.parametrize(
    "uri",
    [
        "file://host/a",
        "file://[/a",
        "file://user@localhost/a",
        "file:///a%00b",
        "file:///a\0b",
        "file:///\ud800",
        "file:a",
        "file://",
        "file:",
        "https:///a",
        "untitled:1",
        "/a",
        "",
        None,
        7,
    ],
)
def test_what_names_no_file_of_this_machine_is_none(uri: object) -> None:
    assert path_of(uri) is None
    if isinstance(uri, str):
        assert path_named(uri) == uri
