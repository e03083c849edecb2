"""Where names lead beneath a root, and which are refused: one table for both resolvers."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from filepact.errors import FilepactError, PathBlockedError
from filepact.fs import resolve
from filepact.fs.kernel import openat2, renameat2
from filepact.fs.mounts import RootMounts
from filepact.fs.path_form import check_form, check_new_name, this_system
from filepact.fs.resolve import Openat2Resolver, PathResolver, choose_resolver
from filepact.fs.root import Root
from tests.needs import ONE_STEP
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from tests.fs.conftest import Grounds

# -- form -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "\0", "README.md\0.txt", "\ud800", "a/\udcff", "\\??\\C:\\x",
        "file:///etc/passwd", "FILE:///etc/passwd", "file:/etc/passwd", "File:/etc/passwd",
        "http://127.0.0.1/x", "vscode-remote://x/y", "C:\\x", "c:/x", "C:", "\\\\server\\share",
        "\\\\?\\C:\\x", "\\\\.\\pipe\\x", "//?/C:/x", "//./x", "a" * 4_097, "a/" * 2_048,
        "n" * 256, "a/" + "é" * 128 + "/b",
    ],
)  # fmt: skip
def test_a_path_that_hides_what_it_is_is_refused_by_its_form(path: str) -> None:
    with pytest.raises(PathBlockedError) as caught:
        check_form(path)
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "src/main.py", "-rf", "a b.txt", "a'b\".txt", "cafe\u0301.txt", "a;b&c|d.txt",
        "#x.txt", "100%.txt", "..a", "a..b", "...", "~/x", "$HOME/x", "%2e%2e/x", "*.md", "`id`",
        " README.md", "n" * 255, "é" * 127, "👩\u200d💻.txt", "\u2025/x", "a:b", "12:30.log",
        "a\nb", "a\x1b[2Jb", "..\\x", "NUL", "COM1.txt", "a.", "a ", "PROGRA~1", ".vol/1",
        "/.vol/1/2", "f/..namedfork/rsrc", "a/" * 2_047,
    ],
)  # fmt: skip
def test_a_plain_path_is_let_pass_as_it_came(path: str) -> None:
    assert check_form(path, "linux") == path


WINDOWS_REFUSED = [
    "..\\x", "..\\/x", "src\\..\\..\\x", "../x", ".. \\x", "C:x", "C:", "\\Windows\\win.ini", "/x",
    "\\\\server\\share\\x", "//server/share/x", "\\\\?\\C:\\x", "\\\\.\\PhysicalDrive0", "\\??\\C:\\x",
    "\\\\localhost\\C$\\x", "//?/C:/x", "f:stream", "f::$DATA", "src::$INDEX_ALLOCATION\\f", "C:\\f:x",
    "NUL", "nul", "src\\NUL", "src/nul/x", "nul .txt", "AUX.c", "COM1", "com9.tar.gz", "LPT\u00b3.log",
    "COM\u00b9", "CONIN$", "CONOUT$", "conout$.x", "a.", "a ", "a./b", "a \\b", "...", "SETTIN~1.JSO",
    "PROGRA~1/x", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "a\tb", "a\0", "n" * 256, "\ud800",
    "file:///x", "http://x/y", "a\\" * 2_049,
]  # fmt: skip


@pytest.mark.parametrize("path", WINDOWS_REFUSED)
def test_what_windows_would_take_for_something_else_is_refused_there(path: str) -> None:
    with pytest.raises(PathBlockedError) as caught:
        check_form(path, "windows")
    assert path == "\0" or "\0" not in caught.value.message


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "src/main.py", "src\\main.py", "SRC\\MAIN.PY", "a\\..\\b", "C:\\work\\x", "c:/project/x",
        "CONSOLE.txt", "COM0", "COM10", "LPT", "nulls", "a.con", "a b.txt", "..a", "a~b", "~x",
        "long-name~1.txt", "n" * 255, "é" * 255, "cafe\u0301.txt", "-rf", "100%.txt", "a;b&c",
    ],
)  # fmt: skip
def test_ordinary_names_of_windows_are_let_pass_there(path: str) -> None:
    assert check_form(path, "windows") == path


@pytest.mark.parametrize(
    "path",
    [
        "/.vol/16777220/2", "//.VOL/1/2", "/.nofollow/etc/passwd", "/.resolve/1/etc/passwd", "/.vol",
        "README.md/..namedfork/rsrc", "a/..NamedFork", "..namedfork/data", "C:\\x", "file:///x",
    ],
)  # fmt: skip
def test_what_macos_would_take_for_something_else_is_refused_there(path: str) -> None:
    with pytest.raises(PathBlockedError):
        check_form(path, "macos")


@pytest.mark.parametrize(
    "path", ["src/main.py", ".volume", "a/.vol/b", "x..namedfork", "..namedforks", "NUL", "a:b"]
)
def test_ordinary_names_of_macos_are_let_pass_there(path: str) -> None:
    assert check_form(path, "macos") == path


@pytest.mark.parametrize(
    ("platform", "system"), [("linux", "linux"), ("darwin", "macos"), ("win32", "windows")]
)
def test_the_rules_are_those_of_the_system_that_runs(
    monkeypatch: pytest.MonkeyPatch, platform: str, system: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert this_system() == system


@pytest.mark.parametrize(
    "name",
    [
        "READ\u200bME.md", "\U000e0061\U000e0062", "a\u202eb", "a\u2028b", "a\u2029b", "\ue000",
        "a\nb", "a\rb", "a\x1b[2Jb", "a\x9bb", "a\x7fb", "a\tb", "a\0b", "a\udcffb", "👩\u200d💻.txt",
    ],
)  # fmt: skip
def test_a_new_name_with_characters_that_cannot_be_seen_is_refused(name: str) -> None:
    with pytest.raises(PathBlockedError) as caught:
        check_new_name(f"src/{name}")
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("name", ["main.py", "é.txt", "cafe\u0301", "日本語.md", "😀.txt"])
def test_a_new_name_that_can_be_seen_is_fine(name: str) -> None:
    check_new_name(name)


# -- names ----------------------------------------------------------------------------------

INSIDE = [
    ("README.md", "README.md", "file"),
    ("./README.md", "README.md", "file"),
    ("src/../README.md", "README.md", "file"),
    ("src//main.py", "src/main.py", "file"),
    ("src/", "src", "directory"),
    ("src/.", "src", "directory"),
    ("", ".", "directory"),
    (".", ".", "directory"),
    ("src/..", ".", "directory"),
    ("...", "...", "missing"),
    ("~/x", "~/x", "missing"),
    ("$HOME", "$HOME", "missing"),
    ("%2e%2e/x", "%2e%2e/x", "missing"),
    ("..%2foutside", "..%2foutside", "missing"),
    ("\u2025/x", "\u2025/x", "missing"),
    ("*.md", "*.md", "missing"),
    ("src/{main.py,x}", "src/{main.py,x}", "missing"),
    (" README.md", " README.md", "missing"),
    ("new/deep/er.txt", "new/deep/er.txt", "missing"),
    ("new/", "new", "missing"),
]


@pytest.mark.parametrize(("path", "true", "kind"), INSIDE)
def test_a_name_that_stays_inside_leads_to_its_place(
    root: Root, path: str, true: str, kind: str
) -> None:
    place = root.place(path)
    assert (place.path, place.kind) == (true, kind)


OUTSIDE = [
    "..", "../outside/secret.txt", "src/../../outside/secret.txt", "src/./.././../outside",
    "src/../..", "src//..//..//outside//secret.txt", "../root-evil/secret.txt", "../root/README.md",
    "/", "/etc/passwd", "//etc/passwd", "/proc/self/root/etc/passwd", "/dev/stdin", "/dev/fd/0",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_name_that_leaves_the_root_is_blocked(root: Root, path: str) -> None:
    for act in (lambda: root.place(path), lambda: root.read(path, limit=99)):
        with pytest.raises(PathBlockedError):
            act()


@pytest.mark.parametrize(
    "path",
    [
        "README.md/", "README.md/.", "README.md/..", "README.md/x", "missing/../README.md",
        "missing/../../outside/secret.txt", "src/main.py/../../README.md",
    ],
)  # fmt: skip
def test_what_is_no_folder_is_not_used_as_one(root: Root, path: str) -> None:
    with pytest.raises(FilepactError) as caught:
        root.read(path, limit=99)
    assert caught.value.code in {"NOT_FOUND", "PATH_BLOCKED"}


# -- links ----------------------------------------------------------------------------------

LINKS_INSIDE = [
    ({"inlink": "README.md"}, "inlink", "README.md", "file"),
    ({"self": "."}, "self/self/self/README.md", "README.md", "file"),
    ({"src/up": ".."}, "src/up/README.md", "README.md", "file"),
    ({"d": "src"}, "d/main.py", "src/main.py", "file"),
    ({"d": "src/"}, "d/main.py", "src/main.py", "file"),
    ({"d": "./docs/../src"}, "d/../README.md", "README.md", "file"),
    ({"docs/a": "../src/b", "src/b": "main.py"}, "docs/a", "src/main.py", "file"),
    ({"new": "src/made.py"}, "new", "src/made.py", "missing"),
    ({"new": "no/such/made.py"}, "new", "no/such/made.py", "missing"),
    ({"d": "src"}, "d/new.py", "src/new.py", "missing"),
]


@pytest.mark.parametrize(("links", "path", "true", "kind"), LINKS_INSIDE)
def test_a_link_that_stays_inside_is_followed(
    grounds: Grounds, root: Root, links: dict[str, str], path: str, true: str, kind: str
) -> None:
    for name, target in links.items():
        (grounds.root / name).symlink_to(target)
    place = root.place(path)
    assert (place.path, place.kind) == (true, kind)


LINKS_OUT = [
    ({"l": "../outside"}, "l/secret.txt"),
    ({"l": "../outside"}, "l"),
    ({"l": "../outside/secret.txt"}, "l"),
    ({"l": "../outside/created.txt"}, "l"),
    ({"l": "../outside"}, "l/made/new.txt"),
    ({"l": ".."}, "l/outside/secret.txt"),
    ({"l": ".."}, "l/root/README.md"),
    ({"src/l": "../.."}, "src/l/outside/secret.txt"),
    ({"l": "/etc"}, "l/passwd"),
    ({"l": "/proc/self"}, "l/environ"),
    ({"l": "/proc/self/root"}, "l/etc/passwd"),
    ({"a": "b", "b": "../outside/secret.txt"}, "a"),
    ({"l": "l"}, "l"),
    ({"a": "b", "b": "a"}, "a/x"),
    ({"l": "README.md/"}, "l"),
    ({"l": "README.md/."}, "l"),
    ({"l": "gone/../../outside/secret.txt"}, "l"),
]


@pytest.mark.parametrize(("links", "path"), LINKS_OUT)
def test_a_link_that_leads_out_or_nowhere_is_refused_without_its_target(
    grounds: Grounds, root: Root, links: dict[str, str], path: str
) -> None:
    for name, target in links.items():
        (grounds.root / name).symlink_to(target)
    acts = (
        lambda: root.read(path, limit=99),
        lambda: root.open_directory(path),
        lambda: root.place(path),
    )
    for act in acts:
        with pytest.raises(FilepactError) as caught:
            act()
        assert caught.value.code in {"PATH_BLOCKED", "NOT_FOUND"}
        told = caught.value.report()
        assert str(grounds.outer) not in told
        assert not any(target in told for target in links.values() if target.startswith("../out"))
    assert grounds.untouched()


@pytest.mark.parametrize(
    ("target", "path", "true"),
    [
        ("README.md", "l", "README.md"),
        ("", "l/src/main.py", "src/main.py"),
        ("/", "l/src/main.py", "src/main.py"),
        ("src", "l/main.py", "src/main.py"),
        ("src/../docs", "l/guide.md", "docs/guide.md"),
        ("src/new.py", "l", "src/new.py"),
    ],
)
def test_an_absolute_link_that_leads_back_inside_is_followed(
    grounds: Grounds, root: Root, target: str, path: str, true: str
) -> None:
    (grounds.root / "l").symlink_to(f"{grounds.root}/{target}".removesuffix("/" * (not target)))
    assert root.place(path).path == true
    (grounds.root / "src/far").symlink_to("../l")
    assert root.place(f"src/far{path.removeprefix('l')}").path == true


@pytest.mark.parametrize(
    "target", ["/..", "/../outside", "-evil", "-evil/secret.txt", "/src/../.."]
)
def test_an_absolute_link_that_begins_like_the_root_and_leads_out_is_refused(
    grounds: Grounds, root: Root, target: str
) -> None:
    (grounds.root / "l").symlink_to(f"{grounds.root}{target}")
    with pytest.raises(PathBlockedError):
        root.place("l")
    with pytest.raises(PathBlockedError):
        root.place("l/secret.txt")


def test_an_absolute_link_is_followed_beneath_the_root_that_is_held(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grounds.root / "l").symlink_to(grounds.root / "README.md")
    monkeypatch.setattr(root, "alive", lambda: True)  # It was, a moment ago.
    grounds.root.rename(grounds.outer / "moved")
    grounds.root.mkdir()
    (grounds.root / "README.md").write_text("SECRET of a folder that took its place")
    assert root.read("l", limit=99).data == b"readme"


@pytest.mark.parametrize(("links", "reached"), [(40, True), (41, False), (50, False)])
def test_as_many_links_are_followed_as_the_kernel_follows(
    grounds: Grounds, root: Root, links: int, reached: bool
) -> None:
    for number in range(links):
        target = f"c{number + 1}" if number + 1 < links else "README.md"
        (grounds.root / f"c{number}").symlink_to(target)
    if reached:
        assert root.place("c0").path == "README.md"
    else:
        with pytest.raises(PathBlockedError):
            root.place("c0")


def test_a_link_whose_expansion_is_longer_than_any_path_does_not_lead_out(
    grounds: Grounds, root: Root
) -> None:
    folder = grounds.root
    fd = os.open(folder, os.O_RDONLY)
    letters = "abcdefghijklmnop"
    for letter in letters:
        long = letter * 247
        os.mkdir(long, dir_fd=fd)
        os.symlink(long, letter, dir_fd=fd)
        below = os.open(long, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    ups = "/".join([".."] * len(letters))
    os.symlink(f"{ups}/../outside/secret.txt", "z", dir_fd=fd)
    os.close(fd)
    (folder / "notes.txt").symlink_to("/".join(letters) + "/z")
    assert os.stat(folder / "notes.txt").st_size == len("SECRET")  # the trick itself works
    with pytest.raises(PathBlockedError):
        root.read("notes.txt", limit=99)
    with pytest.raises(PathBlockedError):
        root.place("/".join(letters) + "/z")


# -- the verbs that take canonical paths ------------------------------------------------------


@pytest.mark.parametrize("path", ["../outside", "src/../../outside", "src/..", "/", "a//b", ""])
def test_no_folder_is_opened_by_a_path_that_is_not_canonical(
    grounds: Grounds, resolver: str, path: str
) -> None:
    fd = os.open(grounds.root, os.O_RDONLY)
    chosen = choose_resolver(str(grounds.root), resolver, RootMounts.around(fd))
    try:
        with pytest.raises(OSError):
            chosen.open_folder(fd, path)
    finally:
        os.close(fd)


def test_no_link_is_followed_by_a_canonical_path(grounds: Grounds, resolver: str) -> None:
    (grounds.root / "l").symlink_to("src")
    fd = os.open(grounds.root, os.O_RDONLY)
    chosen = choose_resolver(str(grounds.root), resolver, RootMounts.around(fd))
    try:
        with pytest.raises(OSError):
            chosen.open_folder(fd, "l")
        os.close(chosen.open_folder(fd, "src"))
    finally:
        os.close(fd)


# -- choosing -------------------------------------------------------------------------------


def test_a_filter_that_answers_in_the_kernels_place_is_noticed(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def obedient(directory: int, path: str, flags: int, resolve: int) -> int:
        return os.open(path, flags, dir_fd=directory)

    monkeypatch.setattr(resolve, "openat2", obedient)
    with Root.open(grounds.root) as root:
        assert root.resolver == "walk"
    with pytest.raises(PathBlockedError):
        Root.open(grounds.root, resolver="openat2")


@pytest.mark.parametrize("number", [1, 38])
def test_where_the_call_is_refused_the_walk_is_taken(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(resolve, "openat2", refused)
    with Root.open(grounds.root) as root:
        assert root.resolver == "walk"
        assert root.place("src/main.py").kind == "file"


@ONE_STEP
def test_the_probe_writes_nothing(grounds: Grounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(grounds.outer / "missing"))
    with Root.open(grounds.root) as root:
        assert root.resolver == "openat2"


@ONE_STEP
def test_a_rename_that_races_a_step_upwards_is_asked_again(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([BlockingIOError(11, "again"), InterruptedError(4, "signal")])

    def sometimes(*args: int | str) -> int:
        for error in answers:
            raise error
        return openat2(*args)

    fd = os.open(grounds.root, os.O_RDONLY)
    monkeypatch.setattr(resolve, "openat2", sometimes)
    found = Openat2Resolver(str(grounds.root), RootMounts.around(fd)).find(fd, "src/main.py")
    os.close(fd)
    found.close()
    assert found.path == "src/main.py"
    assert next(answers, None) is None


def test_renames_that_race_all_the_time_leave_it_to_the_walk(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: int | str) -> int:
        raise BlockingIOError(errno.EAGAIN, "again")

    fd = os.open(grounds.root, os.O_RDONLY)
    monkeypatch.setattr(resolve, "openat2", never)
    found = Openat2Resolver(str(grounds.root), RootMounts.around(fd)).find(fd, "src/main.py")
    os.close(fd)
    found.close()
    assert found.path == "src/main.py"


@pytest.mark.parametrize("call", ["openat2", "walk"])
def test_what_the_system_refuses_is_told_with_its_reason(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def refused(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "no")

    fd = os.open(grounds.root, os.O_RDONLY)
    boundary = RootMounts.around(fd)
    if call == "openat2":
        monkeypatch.setattr(resolve, "openat2", refused)
        resolver = Openat2Resolver(str(grounds.root), boundary)
    else:
        monkeypatch.setattr(os, "open", refused)
        resolver = PathResolver(str(grounds.root), boundary)
    try:
        with pytest.raises(FilepactError) as caught:
            resolver.find(fd, "src/main.py")
    finally:
        monkeypatch.undo()
        os.close(fd)
    assert caught.value.code == "READ_ERROR"
    assert os.strerror(errno.EACCES) in caught.value.message
    assert str(grounds.outer) not in caught.value.report()


def test_a_canonical_path_longer_than_the_kernel_takes_at_once_is_walked(
    grounds: Grounds,
) -> None:
    depth = 5_000 // 201
    deep = "/".join(["d" * 200] * depth)
    with Root.open(grounds.root) as root:
        root.make_directories(deep)
        assert len(deep) > 4_096 - len("/x.txt")
        root.replace(f"{deep}/x.txt", b"deep", mode=0o644, expected=None, token="c0-0")
        assert root.read(f"{deep}/x.txt", limit=9, follow=False).data == b"deep"


@ONE_STEP
def test_names_are_put_together_where_the_system_does_not_tell_them(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.readlink

    def without_proc(path: str, **more: int) -> str:
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(2, "no proc")
        return real(path, **more)

    monkeypatch.setattr(os, "readlink", without_proc)
    (grounds.root / "l").symlink_to("src")
    with Root.open(grounds.root) as root:
        assert root.place("l/main.py").path == "src/main.py"
    with Root.open(grounds.root) as root:
        root._resolver = Openat2Resolver("/somewhere/else", root.boundary)
        monkeypatch.setattr(os, "readlink", real)
        assert root.place("l/main.py").path == "src/main.py"


def test_folders_that_are_exchanged_all_the_time_are_given_up(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> int:
        raise OSError(20, "not a directory")

    fd = os.open(grounds.root, os.O_RDONLY)
    monkeypatch.setattr(os, "open", gone)
    with pytest.raises(PathBlockedError):
        PathResolver().find(fd, "src/main.py")
    monkeypatch.undo()
    os.close(fd)


def test_a_nul_never_shortens_a_name_on_its_way_to_the_kernel(grounds: Grounds) -> None:
    fd = os.open(grounds.root, os.O_RDONLY)
    try:
        with pytest.raises(OSError):
            openat2(fd, "README.md\0.txt", os.O_RDONLY, 8)
        with pytest.raises(OSError):
            renameat2(fd, "README.md\0x", "y", 1)
    finally:
        os.close(fd)


def test_where_there_are_no_such_calls_they_are_reported_as_missing(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    fd = os.open(grounds.root, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as caught:
            renameat2(fd, "README.md", "x", 1 << 20)  # A flag that no system knows.
        assert caught.value.errno == errno.ENOSYS
        monkeypatch.setattr("sys.platform", "darwin")
        with pytest.raises(OSError) as caught:
            openat2(fd, "README.md", os.O_RDONLY, 8)
        assert caught.value.errno == errno.ENOSYS
    finally:
        os.close(fd)


@pytest.mark.parametrize("path", ["src/main.py", "src/new/x"])
def test_a_folder_that_may_not_be_entered_is_told(grounds: Grounds, root: Root, path: str) -> None:
    (grounds.root / "src").chmod(0)
    try:
        with pytest.raises(FilepactError) as caught:
            unprivileged(lambda: root.place(path))
        assert caught.value.code == "READ_ERROR"
        assert str(grounds.outer) not in caught.value.report()
    finally:
        (grounds.root / "src").chmod(0o755)
