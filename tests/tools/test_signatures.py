"""What is made of tools' signatures here is what pydantic makes of them, which judges all odd arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.errors import InvalidParamsError
from filepact.tools.edit import EditParameters
from filepact.tools.engine import SERVER_TOOLS
from filepact.tools.solution import SOLUTION_TOOLS
from filepact.values import asdict, is_dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.tools.registry import Tool

EVERY = [*SERVER_TOOLS, *SOLUTION_TOOLS]

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

OPTIONAL = [
    (one, name)
    for one in EVERY
    for name in one.schema["properties"]
    if name not in one.schema.get("required", ())
]


@pytest.mark.parametrize("empty", ["", [], {}, None, "[]", "null"], ids=repr)
@pytest.mark.parametrize(
    "one", EVERY, ids=lambda one: f"{one.name}{'-in-envelope' * bool(one.output)}"
)
def test_what_may_be_left_out_may_be_sent_empty(one: Tool, empty: Any) -> None:
    """But for texts whose emptiness says something; as a list, also where it is JSON in a text."""
    properties = one.schema["properties"]
    required = {name: WANTED.get(name, "x") for name in one.schema.get("required", ())}
    for name in required:
        if "enum" in properties[name]:
            required[name] = properties[name]["enum"][0]
    bare = one.parameters.check(required)
    filled = {
        name: empty
        for tool, name in OPTIONAL
        if tool is one
        and (empty not in ("[]", "null") or properties[name]["type"] == "array")
        and not (empty == "" and name in ("old_string", "new_string"))
    }
    assert one.parameters.check(required | filled) == bare


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
