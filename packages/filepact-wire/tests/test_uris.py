"""Files as URIs, and back: one table for every protocol."""

from __future__ import annotations

from socket import gethostname

import pytest

from filepact.errors import PathBlockedError
from filepact.fs.path_form import check_form
from filepact_wire.uris import path_named, path_of, uri_of


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
        ("file://127.0.0.1/a", "/a"),
        ("file://[::1]/a", "/a"),
        (f"file://{gethostname()}/a", "/a"),
        (f"file://{gethostname().partition('.')[0].upper()}.example.org/a", "/a"),
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


@pytest.mark.parametrize(
    "path", ["C:\\a b\\é#?%.py", "c:\\", "C:\\a;b@c", "\\\\server\\share\\x y"]
)
def test_paths_of_windows_survive_as_uris(path: str) -> None:
    assert path_of(uri_of(path, "win32"), "win32") == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/a/b%2Ec", "C:\\a\\b.c"),
        ("file:///c%3A/a%20b", "c:\\a b"),  # as VS Code writes it
        ("file:///C:/a%2520b", "C:\\a%20b"),
        ("file:///C:/", "C:\\"),
        ("FILE://LOCALHOST/C:/a", "C:\\a"),
        ("file:C:/a", "C:\\a"),
        ("file://C:/a", "C:\\a"),
        ("file:\\\\\\C:\\a", "C:\\a"),
        ("file:///C:%5Ca%2Fb", "C:\\a\\b"),
        ("file:///C:/a/../../.env", "C:\\.env"),
        ("file:///C:/a/%2e%2e/b", "C:\\b"),
        ("file:///C:/a%5C..%5Cb", "C:\\b"),
        ("file:///C:/a#b.py", "C:\\a#b.py"),
        ("file:///C:/é", "C:\\é"),
    ],
)
def test_a_uri_names_a_path_of_windows_there(uri: str, path: str) -> None:
    assert path_of(uri, "win32") == path
    assert check_form(path, "windows") == path


@pytest.mark.parametrize(
    "uri",
    [
        *("file://server/share/x", "file:////server/share/x", "file://///server/share/x"),
        *("file:///%5C%5Cserver/share/x", "file://server", "file:///%5C%5C?%5CC:/x"),
        *("file:////?/C:/x", "file:////./pipe/x", "file://./pipe/x", "file:///C:/f:stream"),
        *("file:///C:/f%3A%3A$DATA", "file:///C:/NUL", "file:///C:/a.", "file:///C:/a%20"),
        *("file:///C:/PROGRA~1/x", "file:///C:/a%3Fb", "file:///C:/\ud800"),
    ],
)
def test_what_a_uri_names_on_windows_is_no_plain_path_in_that_form_either(uri: str) -> None:
    path = path_of(uri, "win32")
    with pytest.raises(PathBlockedError):
        check_form(uri if path is None else path, "windows")


@pytest.mark.parametrize(
    "uri",
    [
        *("file:///a/b", "file:/a", "file:///C:", "file:///C:a", "file:C:a", "file:///C|/a"),
        *("file:///C:/a%00b", "file:///C:/\ud800", "file:a", "file://", "file:///", "file:"),
        *("https:///C:/a", "C:/a", "", None, 7),
    ],
)
def test_what_names_no_whole_path_on_windows_is_none_there(uri: object) -> None:
    assert path_of(uri, "win32") is None
