"""Edits of settings texts: what is put in is there, what others wrote stays, and taking out gives it back."""

from __future__ import annotations

import json
import random

import pytest

from filepact_setup import json_edit, toml_edit
from filepact_setup.settings_edit import put_in, read_settings_text, take_out

ODD_JSON = (
    "",
    "  \n",
    "// only a note\n",
    "{}",
    "{ }\n",
    '{"a": 1}',
    '{"a": 1,}\n',
    '{\n  "a": 1, // one\n  "b": [1, 2] /* two */\n}\n',
    '{\n\t"a": {\n\t\t"b": [\n\t\t\t1,\n\t\t\t2,\n\t\t],\n\t},\n}\n',
    '{\n    "a": {},\n    // last\n}\n',
    '{"a": {"b": {"c": []}}, "d": [{"x": 1}, {"y": [1]}]}',
    "{ // note\n}\n",
    '{"a": [\n  1\n]}',
)
ODD_TOML = (
    "",
    "# note\n",
    "a = 1",
    'a = 1 # one\nb = "x"\n\n[t]\nc = 2\n',
    "[t.u]\na = 1\n\n[[list]]\nx = 1\n\n[[list]]\nx = 2\n",
    "t.a = 1\nt.b = 2\n",
    '"odd key" = 1\n[a."b.c"]\nd = """\nlines\n"""\n',
    "list = [\n  1,\n  2,\n]\n[last]\n",
)
BROKEN_JSON = (
    "{",
    '{"a" 1}',
    '{"a": }',
    "{a: 1}",
    '{"a": 1 "b": 2}',
    '{"a": 1}}',
    '{"a": 1, "a": 2}',
    "nul",
    "[1] 2",
)


@pytest.mark.parametrize("text", BROKEN_JSON)
def test_what_is_no_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        json_edit.read(text)


def test_a_depth_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        json_edit.read("[" * 5_000)


@pytest.mark.parametrize("text", ODD_JSON)
@pytest.mark.parametrize("path", [("new",), ("a2", "b", "c"), ("a",)])
def test_a_value_is_put_and_everything_else_stays(text: str, path: tuple[str, ...]) -> None:
    before = json_edit.read(text)
    after = json_edit.put(text, path, {"x": [1], "y": {}})
    held = json_edit.read(after)
    assert isinstance(held, dict)
    here = held
    for key in path:
        here = here[key]
    assert here == {"x": [1], "y": {}}
    assert isinstance(before, dict)
    assert {key: one for key, one in held.items() if key != path[0]} == {
        key: one for key, one in before.items() if key != path[0]
    }
    for note in ("// only a note", "// one", "/* two */", "// last", "// note"):
        # A value that is replaced takes the notes within it along.
        assert (note in text) <= (note in after or path == ("a",))


def test_what_cannot_be_edited_is_said() -> None:
    with pytest.raises(ValueError, match="a is not an object"):
        json_edit.put('{"a": 1}', ("a", "b"), 2)
    with pytest.raises(ValueError, match="a is not a list"):
        json_edit.append('{"a": 1}', ("a",), 2)
    with pytest.raises(ValueError, match="b is not there"):
        json_edit.append('{"a": 1}', ("b",), 2)
    with pytest.raises(ValueError, match="b is not there"):
        json_edit.drop('{"a": 1}', ("b",))
    with pytest.raises(ValueError, match="x is missing"):
        toml_edit.drop("a = 1\n", ("x",))
    with pytest.raises(ValueError, match="not an object with keys"):
        read_settings_text("[1]", "json")
    for wants in ({"a": {"b": 1}}, {"a": [1]}):
        with pytest.raises(ValueError, match="a is not"):
            put_in('{"a": 1}', wants, "json")


@pytest.mark.parametrize("text", [one for one in ODD_JSON if one.strip().startswith("{")])
def test_items_come_and_go(text: str) -> None:
    for path in (("a",), ("a", "b"), ("b",)):
        value = json_edit.read(text)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, list):
            continue
        longer = json_edit.append(text, path, {"z": 1})
        assert json_edit.read(json_edit.drop(longer, (*path, len(value)))) == json_edit.read(text)
        while value:
            text = json_edit.drop(text, (*path, dice.randrange(len(value))))
            value = json_edit.read(text)
            for key in path:
                value = value[key]


dice = random.Random(3)
WANTS = (
    {"servers": {"filepact": {"command": "x", "args": ["a"]}}},
    {"a": 2, "hooks": {"before": [{"run": "ours 1"}], "after": [{"run": "ours 2"}]}},
    {"deep": {"er": {"value": True}}, "filepact": {"x": 1}},
)


@pytest.mark.parametrize("wants", WANTS)
@pytest.mark.parametrize(
    ("text", "kind"), [*((one, "json") for one in ODD_JSON), *((one, "toml") for one in ODD_TOML)]
)
def test_what_was_put_in_is_taken_out_again(text: str, kind: str, wants: dict) -> None:
    if kind == "toml":
        wants = {key: one for key, one in wants.items() if key != "hooks"}
    try:
        filled, change = put_in(text, wants, kind)
    except ValueError:
        # What stands there is something else; nothing was changed.
        assert not isinstance(read_settings_text(text, kind).get("a", {}), int)
        return
    again, nothing = put_in(filled, wants, kind)
    assert again == filled
    assert not nothing.values
    assert not nothing.items
    back = take_out(filled, wants, kind, change=change, is_ours=lambda _item: False)
    assert read_settings_text(back, kind) == read_settings_text(text, kind)


def test_without_a_record_only_what_is_ours_goes() -> None:
    text = json.dumps(
        {
            "filepact": 1,
            "hooks": [{"run": "ours"}, {"run": "theirs"}, {"list": [{"run": "ours"}, 5], "n": 1}],
            "servers": {"filepact": {"command": "x"}, "other": {}},
        },
        indent=2,
    )
    wants = {"filepact": 1, "hooks": [], "servers": {"filepact": {}}}
    left = take_out(text, wants, "json", change=None, is_ours=lambda item: item == {"run": "ours"})
    assert json.loads(left) == {
        "hooks": [{"run": "theirs"}, {"list": [5], "n": 1}],
        "servers": {"other": {}},
    }


def test_what_others_have_changed_since_stays() -> None:
    wants = {"mode": "ours", "list": [1], "filepact": {"x": 1}}
    filled, change = put_in('{"mode": "theirs"}', wants, "json")
    edited = filled.replace('"ours"', '"mine"')
    left = take_out(edited, wants, "json", change=change, is_ours=lambda _item: False)
    assert json.loads(left) == {"mode": "mine"}
    assert json.loads(
        take_out(filled, wants, "json", change=change, is_ours=lambda _item: False)
    ) == {"mode": "theirs"}


@pytest.mark.parametrize("text", ODD_TOML)
@pytest.mark.parametrize(
    "path", [("a",), ("t", "z"), ("t", "u", "a"), ("new", "table", "x"), ("list2",)]
)
def test_a_value_is_put_into_toml(text: str, path: tuple[str, ...]) -> None:
    try:
        after = toml_edit.put(text, path, "value")
        held = toml_edit.read(after)
    except (ValueError, TypeError):
        return  # A form that `put_in` refuses, since it reads each edit again.
    here = held
    for key in path:
        here = here[key]
    assert here == "value"
    for line in text.splitlines():
        assert not line.startswith("#") or line in after


def test_tables_of_toml_are_replaced_and_dropped_with_those_below_them() -> None:
    text = "top = 1\n\n# about t\n[t]\na = 1\n\n[t.u]\nb = 2\n\n# about v\n[v]\nc = 3\n"
    replaced = toml_edit.put(text, ("t",), {"x": 1, "y": {"z": "\x7f"}})
    assert toml_edit.read(replaced) == {"top": 1, "t": {"x": 1, "y": {"z": "\x7f"}}, "v": {"c": 3}}
    assert "# about v" in replaced
    dropped = toml_edit.drop(text, ("t",))
    assert toml_edit.read(dropped) == {"top": 1, "v": {"c": 3}}
    assert "# about v" in dropped
    assert toml_edit.read(toml_edit.drop(text, ("t", "u", "b"))) == {
        "top": 1,
        "t": {"a": 1, "u": {}},
        "v": {"c": 3},
    }
    assert toml_edit.drop("a = 1\n\n[t]\n", ("a",)) == "[t]\n"
