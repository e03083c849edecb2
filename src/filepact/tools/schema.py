"""JSON schemas as agents read them: short, flat, and said in words when something does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["brief", "compact", "expected"]

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


def brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A compact schema without what goes without saying, for the list that every model is sent.

    That a text is not empty, a number not negative and a flag off unless it is sent nobody has to be
    told, and other names are refused here, in words, or understood.
    """
    shaped = {
        name: value
        for name, value in schema.items()
        if name not in ("additionalProperties", "minLength", "minItems", "maxItems")
        and not (name == "minimum" and value in (0, 1))
        and not (name == "default" and value is False)
    }
    if "properties" in shaped:
        shaped["properties"] = {
            name: brief(described) for name, described in shaped["properties"].items()
        }
    if "items" in shaped:
        shaped["items"] = brief(shaped["items"])
    if "anyOf" in shaped:
        shaped["anyOf"] = [brief(option) for option in shaped["anyOf"]]
    return shaped


def expected(schema: Mapping[str, Any]) -> str:
    """What a compact schema allows, as the end of a sentence that begins with "send"."""
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    match schema.get("type"):
        case "integer":
            return "a whole number" + _between(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return "a number" + _between(schema.get("minimum"), schema.get("maximum"))
        case "boolean":
            return "true or false"
        case "string":
            least = schema.get("minLength")
            if least == 1 and "maxLength" not in schema:
                return "a text that is not empty"
            of_length = _between(least, schema.get("maxLength"))
            return "a text" + (f" of a length{of_length}" if of_length else "")
        case "array":
            of_length = _between(schema.get("minItems"), schema.get("maxItems"))
            return "a list" + (f" of a length{of_length}" if of_length else "")
        case "object":
            return f"an object with {', '.join(schema['properties'])}"
        case _:
            return " or ".join(expected(option) for option in schema["anyOf"])


def _between(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    return f" of at most {most}" if most is not None else ""
