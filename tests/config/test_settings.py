from __future__ import annotations

import dataclasses

import pytest

from filepact.config.settings import GuardSettings, Settings, parse_settings
from filepact.domain.deadline import DEFAULT_SECONDS
from filepact.errors import InvalidParamsError


def test_nothing_set_is_every_setting_at_its_default() -> None:
    assert parse_settings("", name="f.toml") == Settings()
    assert parse_settings("[encodings]\n", name="f.toml") == Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().encodings = ()


def test_globs_name_encodings_in_the_order_of_the_file() -> None:
    text = '[encodings]\n"legacy/**" = "Latin1"\n"*.{sjis,jp}" = "Shift_JIS"\n"/srv/**" = "utf-8"\n'
    found = parse_settings(text, name="f.toml").encodings
    assert [(glob.pattern, codec) for glob, codec in found] == [
        ("legacy/**", "iso8859-1"),
        ("*.{sjis,jp}", "shift_jis"),
        ("/srv/**", "utf-8"),
    ]
    assert found[1][0].matches("a/b.jp")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("\nencoding = 1\n", 2, "encoding"),
        ("[encodings]\n\n[limits]\nx = 1\n", 3, "limits"),
        ("# a\n[a.b.c]\nx = 1\n", 2, "a"),
        ("encodings = 1\n", 1, "encodings"),
        ("[[encodings]]\na = 1\n", 1, "encodings"),
        ('[encodings]\n"*.a" = "utf-8"\n"*.b" = 1\n', 3, 'encodings."*.b"'),
        ("[encodings]\n'*.b' = ['utf-8']\n", 2, 'encodings."*.b"'),
        ('[encodings]\n"*.b" = "klingon"\n', 2, 'encodings."*.b"'),
        ('[encodings]\n"*.b" = "rot13"\n', 2, 'encodings."*.b"'),
        ('[encodings]\n"*.b" = ""\n', 2, 'encodings."*.b"'),
        ('[encodings]\n"../x" = "utf-8"\n', 2, 'encodings."../x"'),
        ('[encodings]\n"" = "utf-8"\n', 2, 'encodings.""'),
        ("[encodings]\na.txt = 'utf-8'\n", 2, "encodings.a"),
        ('encodings."*.b" = 2\n', 1, 'encodings."*.b"'),
        ("[encodings.x]\ny = 1\n", 1, "encodings.x"),
    ],
)
def test_what_is_not_known_is_refused_with_file_line_and_key(
    text: str, line: int, key: str
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name="f.toml")
    assert caught.value.details == {"file": "f.toml", "line": line, "key": key}
    assert caught.value.hint


@pytest.mark.parametrize("text", ["[", "a", "a = 1\na = 2\n", "[encodings]\nx = \n"])
def test_what_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(InvalidParamsError, match=r"f\.toml.*line|f\.toml.*end of document"):
        parse_settings(text, name="f.toml")


def test_how_far_the_guard_goes_is_set() -> None:
    assert parse_settings("", name="f.toml").guard == GuardSettings()
    text = '[guard]\nmounts = true\ncontent = false\nlandlock = "required"\n'
    assert parse_settings(text, name="f.toml").guard == GuardSettings(
        mounts=True, content=False, landlock="required"
    )


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("guard = 1\n", 1, "guard"),
        ("\n[guard]\nmount = true\n", 3, "guard.mount"),
        ("[guard]\nmounts = 1\n", 2, "guard.mounts"),
        ('[guard]\ncontent = "no"\n', 2, "guard.content"),
        ('[guard]\n\nlandlock = "on"\n', 3, "guard.landlock"),
        ("[guard]\nlandlock = true\n", 2, "guard.landlock"),
    ],
)
def test_a_wrong_word_about_the_guard_is_refused_with_its_line(
    text: str, line: int, key: str
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_settings(text, name="f.toml")
    assert (caught.value.details["line"], caught.value.details["key"]) == (line, key)


def test_what_an_answer_may_take_is_set() -> None:
    assert parse_settings("[mcp]\npage = 12_000\n", name="f.toml").server.page == 12_000
    assert parse_settings("[mcp]\n", name="f.toml").server.page is None
    limits = parse_settings("[proposals]\ndays = 3\ncount = 7\n", name="f.toml").limits
    assert (limits.days, limits.count, limits.megabytes) == (3, 7, 100)
    assert parse_settings("[mcp]\n", name="f.toml").server.timeout == DEFAULT_SECONDS
    assert parse_settings("[mcp]\ntimeout = 1.5\n", name="f.toml").server.timeout == 1.5
    assert parse_settings("[mcp]\napp = true\n", name="f.toml").server.shared_index
    assert not parse_settings("[mcp]\nshared_index = false\n", name="f.toml").server.shared_index


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("mcp = 1\n", 1, "mcp"),
        ("[mcp]\npages = 1\n", 2, "mcp.pages"),
        ("[mcp]\nshared_index = 1\n", 2, "mcp.shared_index"),
        ("[mcp]\npage = '9000'\n", 2, "mcp.page"),
        ("proposals = 3\n", 1, "proposals"),
        ("[proposals]\nhours = 3\n", 2, "proposals.hours"),
        ("[proposals]\ndays = 0\n", 2, "proposals.days"),
        ("[proposals]\ncount = true\n", 2, "proposals.count"),
        ("[proposals]\nmegabytes = 1_000_001\n", 2, "proposals.megabytes"),
        ("[mcp]\npage = true\n", 2, "mcp.page"),
        ("[mcp]\ntimeout = true\n", 2, "mcp.timeout"),
        ("[mcp]\ntimeout = 0.5\n", 2, "mcp.timeout"),
        ("[mcp]\ntimeout = inf\n", 2, "mcp.timeout"),
        ("[mcp]\ntimeout = nan\n", 2, "mcp.timeout"),
        ("[mcp]\npage = 1_999\n", 2, "mcp.page"),
        ("[mcp]\npage = 1_000_001\n", 2, "mcp.page"),
    ],
)
def test_an_answer_of_no_size_is_refused_with_its_line(text: str, line: int, key: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        parse_settings(text, name="f.toml")
    assert (refused.value.details["line"], refused.value.details["key"]) == (line, key)
