"""What is made of tools' signatures here is what pydantic makes of them, which judges all odd arguments."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError
from filepact.tools.edit import EditParameters
from filepact.tools.engine import SERVER_TOOLS
from filepact.tools.registry import CallContext
from filepact.values import asdict, is_dataclass
from filepact_diagnostics.solution import SOLUTION_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from filepact.tools.registry import Tool

EVERY = [*SERVER_TOOLS, *SOLUTION_TOOLS]

CALL = CallContext(Session("s1", Actor("agent", "tester")))

_KEPT = (
    "type",
    "description",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def compact(schema: Mapping[str, Any], *, rename: Mapping[str, str]) -> dict[str, Any]:
    """A generated schema without titles, references and the noise of optional values.

    Args:
        schema: The schema of a model, as pydantic makes it.
        rename: Documented names of the model's own fields; those of nested models stay.
    """
    shaped = _compact(schema, schema.get("$defs", {}))
    shaped.pop("description", None)
    shaped["properties"] = {
        rename.get(name, name): described
        for name, described in shaped.get("properties", {}).items()
    }
    if "required" in shaped:
        shaped["required"] = [rename.get(name, name) for name in shaped["required"]]
    return shaped


def _compact(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        named = dict(definitions[schema["$ref"].rpartition("/")[2]])
        # The docstring of a nested model speaks to programmers, not to agents.
        named.pop("description", None)
        schema = {**named, **{name: value for name, value in schema.items() if name != "$ref"}}
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        inner = _compact(options[0], definitions)
        schema = {**inner, **{name: value for name, value in schema.items() if name != "anyOf"}}
    shaped = {
        name: schema[name]
        for name in _KEPT
        if name in schema and not (name == "default" and schema[name] is None)
    }
    if len(options) > 1:
        shaped["anyOf"] = [_compact(option, definitions) for option in options]
    if "items" in schema:
        shaped["items"] = _compact(schema["items"], definitions)
    if shaped.get("type") == "object":
        shaped["properties"] = {
            name: _compact(described, definitions)
            for name, described in schema.get("properties", {}).items()
        }
        if schema.get("required"):
            shaped["required"] = list(schema["required"])
        shaped["additionalProperties"] = False
    return shaped


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.name}-{bool(one.output)}")
def test_the_schema_is_that_of_pydantic(one: Tool) -> None:
    rename = one.parameters._documented
    assert one.schema == compact(one.parameters.model.model_json_schema(), rename=rename)


VALUES: st.SearchStrategy[Any] = st.one_of(
    *(
        st.none(),
        st.booleans(),
        st.integers(-5, 5),
        st.integers(),
        st.floats(),
        st.text(max_size=9),
    ),
    st.sampled_from(["utf-8", "base64", "move", "text", "files", "9", "true", "\ud800", "a\u00fc"]),
    st.lists(st.text(max_size=3), max_size=3),
    st.lists(
        st.fixed_dictionaries(
            {"old_string": st.text(max_size=3), "new_string": st.text(max_size=3)},
            optional={"replace_all": st.booleans() | st.integers(), "more": st.none()},
        ),
        max_size=2,
    ),
)


@given(st.data())
def test_what_is_plainly_right_is_what_pydantic_makes_of_it(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(EVERY))
    names = st.sampled_from(sorted(one.parameters._shapes))
    known = data.draw(st.dictionaries(names, VALUES, max_size=4))
    plain = one.parameters._plainly(known)
    if plain is None:
        return
    checked = one.parameters.model.model_validate(known)
    for name, value in plain.items():
        made = getattr(checked, name)
        if isinstance(value, list) and value and is_dataclass(value[0]):
            assert [asdict(item) for item in value] == [dict(item) for item in made]
        else:
            assert (type(value), value) == (type(made), made)


def test_edits_are_the_same_whichever_way_they_were_taken() -> None:
    (edit,) = (one for one in SERVER_TOOLS if one.name == "edit_file")
    swap = {"old_string": "a", "new_string": "b"}
    wanted = [EditParameters("a", "b", replace_all=True)]
    plain = {"path": "p", "edits": [{**swap, "replace_all": True}]}
    odd = {"path": "p", "edits": [{**swap, "replace_all": "true"}]}
    assert edit.parameters.check(plain)["edits"] == edit.parameters.check(odd)["edits"] == wanted
    for wrong in ({**swap, "more": 1}, {"old_string": "a"}, {**swap, "new_string": "\ud800"}):
        with pytest.raises(InvalidParamsError):
            edit.parameters.check({"path": "p", "edits": [wrong]})


WANTED: dict[str, Any] = {"path": "p", "filePath": "p", "action": "delete"}
"""Values of required parameters; any other is a text."""

BLANK: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "array": [], "boolean": False}

MEANT = {"old_string", "new_string", "maxDiffChars", "waitSeconds"}
"""Parameters that mean something by the blank value of their type, as flags do that are set unless they are sent."""


def _required(described: Mapping[str, Any]) -> dict[str, Any]:
    """Some value of each part of an object that is required."""
    parts = described["properties"]
    return {
        name: parts[name].get("enum", [WANTED.get(name, "x")])[0]
        for name in described.get("required", ())
    }


def _filled(
    described: Mapping[str, Any], how: Callable[[Mapping[str, Any]], Any]
) -> dict[str, Any]:
    """An object with each of its optional parts as some client fills it in."""
    required = _required(described)
    filled = {
        name: how(part)
        for name, part in described["properties"].items()
        if name not in required and (how is not _blank or name not in MEANT)
    }
    return required | filled


def _default(described: Mapping[str, Any]) -> Any:
    """As clients whose schemas require everything: the default, or else the blank value."""
    return described.get("default", BLANK[described["type"]])


def _blank(described: Mapping[str, Any]) -> Any:
    """As models that have nothing to say; of words to choose from, and of a flag that is set, the default."""
    if "enum" in described or described.get("default") is True:
        return described["default"]
    return BLANK[described["type"]]


def _null(described: Mapping[str, Any]) -> Any:
    """As clients whose schemas let everything be null."""
    return None


@pytest.mark.parametrize("how", [_default, _blank, _null])
@pytest.mark.parametrize(
    "one", EVERY, ids=lambda one: f"{one.name}{'-in-envelope' * bool(one.output)}"
)
def test_what_may_be_left_out_may_be_filled_in_at_every_depth(
    one: Tool, how: Callable[[Mapping[str, Any]], Any]
) -> None:
    bare, filled = _required(one.schema), _filled(one.schema, how)
    if one.name == "edit_file":
        filled |= {"old_string": None, "new_string": None}
    assert one.parameters.check(filled) == one.parameters.check(bare)
    for name, described in one.schema["properties"].items():
        if described["type"] != "array":
            continue
        item = described["items"]
        nested = "properties" in item
        said, sent = (_required(item), _filled(item, how)) if nested else ("p", "p")
        wanted = one.parameters.check(bare | {name: [said]})
        nothing = [None, "", *([_filled(item | {"required": []}, how)] if nested else [])]
        for items in ([sent], sent, [sent, *nothing], [*nothing, sent], json.dumps([sent])):
            assert one.parameters.check(filled | {name: items}) == wanted
        for items in (nothing, nothing[-1:], json.dumps(nothing)):
            assert one.parameters.check(filled | {name: items}) == one.parameters.check(bare)


@pytest.mark.parametrize("empty", ["", [], {}, None], ids=repr)
@pytest.mark.parametrize(
    "one", EVERY, ids=lambda one: f"{one.name}{'-in-envelope' * bool(one.output)}"
)
def test_what_is_empty_of_another_type_says_nothing_either(one: Tool, empty: Any) -> None:
    bare = _required(one.schema)
    filled = {
        name: empty
        for name in one.schema["properties"].keys() - bare.keys()
        if empty != "" or name not in MEANT
    }
    assert one.parameters.check(bare | filled) == one.parameters.check(bare)


@pytest.mark.parametrize("said", ["null", "None", "undefined", 0, False], ids=repr)
@pytest.mark.parametrize(
    "one", EVERY, ids=lambda one: f"{one.name}{'-in-envelope' * bool(one.output)}"
)
def test_what_spells_nothing_says_nothing_where_it_can_be_no_value(one: Tool, said: Any) -> None:
    bare = _required(one.schema)
    for name in one.schema["properties"].keys() - bare.keys():
        described = one.schema["properties"][name]
        word, spelt = "enum" in described or described["type"] == "array", isinstance(said, str)
        if word or (spelt and described["type"] != "string"):
            assert one.parameters.check(bare | {name: said}) == one.parameters.check(bare), name


def test_a_text_that_spells_nothing_is_kept_where_it_may_be_meant() -> None:
    edit, read = (
        next(one for one in SERVER_TOOLS if one.name == name) for name in ("edit_file", "read_file")
    )
    sent = {"path": "None", "old_string": "null", "new_string": "None", "replace_all": "None"}
    taken = edit.parameters.check(sent)
    assert (taken["path"], taken["old_string"], taken["new_string"]) == ("None", "null", "None")
    assert taken["replace_all"] is False
    inner = {"old_string": "a", "new_string": "undefined", "replace_all": "null"}
    (taken_inner,) = edit.parameters.check({"path": "p", "edits": [inner]})["edits"]
    assert (taken_inner.new_string, taken_inner.replace_all) == ("undefined", False)
    assert read.parameters.check({"paths": ["None"]})["paths"] == ["None"]
    moved = {"action": "move", "path": "a", "to": "null"}
    (manage,) = (one for one in SERVER_TOOLS if one.name == "manage_files")
    assert manage.parameters.check(moved)["to"] == "null"
    (history,) = (one for one in SERVER_TOOLS if one.name == "history")
    assert history.parameters.check({"action": "undo", "change": "None"})["change"] == "None"
    # A revision is longer.
    assert edit.parameters.check({**sent, "expected_revision": "null"}) == taken


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"paths": ["a.txt"]}),
    ("read_file", {"path": "a.txt", "encoding": "base64"}),
    ("write_file", {"path": "new.txt", "content": ""}),
    ("edit_file", {"path": "a.txt", "old_string": "one", "new_string": ""}),
    ("edit_file", {"path": "a.txt", "edits": [{"old_string": "two", "new_string": ""}]}),
    ("search_files", {"pattern": "*.txt"}),
    ("grep", {"pattern": "t"}),
    ("directory_tree", {}),
    ("patch_apply", {"patch": "--- /dev/null\n+++ b/p.txt\n@@ -0,0 +1 @@\n+x\n"}),
    ("manage_files", {"action": "create_dir", "path": "d"}),
    ("manage_files", {"action": "move", "path": "a.txt", "to": "b.txt"}),
    ("history", {"action": "log"}),
]
"""Calls of every tool, by each of its forms."""


@pytest.mark.parametrize("how", [_default, _blank, _null])
def test_calls_with_everything_filled_in_do_what_was_meant(
    tmp_path: Path, how: Callable[[Mapping[str, Any]], Any]
) -> None:
    tools = {one.name: one for one in SERVER_TOOLS}
    assert {name for name, _ in CALLS} == tools.keys()

    def held_after(at: int, *, filled: bool) -> tuple[bool, dict[str, bytes]]:
        name, sent = CALLS[at]
        root = tmp_path / f"{at}-{filled}"
        root.mkdir()
        (root / "a.txt").write_bytes(b"one\ntwo\n")
        rest = _filled(tools[name].schema, how) if filled else {}
        if filled and name == "edit_file":
            # Clients send these in the one form as empty texts, and know no null.
            rest |= dict.fromkeys(("old_string", "new_string"), None if how is _null else "")
        with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
            outcome = open_toolbox(workspace, own=True).call(name, rest | sent, CALL)
        files = [file for file in root.rglob("*") if file.is_file()]
        return outcome.failed, {file.name: file.read_bytes() for file in files}

    for at in range(len(CALLS)):
        bare = held_after(at, filled=False)
        assert (CALLS[at], held_after(at, filled=True)) == (CALLS[at], bare)
        assert not bare[0]


@pytest.mark.parametrize("name", ["maxDiffChars", "waitSeconds", "includeDiff", "include_files"])
def test_0_and_false_are_kept_where_they_say_something(name: str) -> None:
    for one in EVERY:
        if name in one.schema["properties"]:
            sent = BLANK[one.schema["properties"][name]["type"]]
            taken = one.parameters.check(_required(one.schema) | {name: sent})
            assert taken != one.parameters.check(_required(one.schema))


def test_an_empty_text_that_says_something_is_kept() -> None:
    (edit,) = (one for one in SERVER_TOOLS if one.name == "edit_file")
    sent = {"path": "p", "old_string": "a", "new_string": "", "edits": [], "expected_revision": ""}
    assert edit.parameters.check(sent)["new_string"] == ""


@pytest.mark.parametrize(
    ("sent", "taken"),
    [("a", ["a"]), ('["a", "b"]', ["a", "b"]), ("[id].tsx", ["[id].tsx"]), ("5", ["5"])],
)
def test_one_path_or_a_list_as_text_is_a_list_of_paths(sent: str, taken: list[str]) -> None:
    (read,) = (one for one in SERVER_TOOLS if one.name == "read_file")
    assert read.parameters.check({"path": "", "paths": sent})["paths"] == taken
