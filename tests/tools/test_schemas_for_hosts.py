"""The schemas of all tools by the rules of those who show them to models.

| who | what is asked | from where |
| --- | --- | --- |
| OpenAI, strict functions | after the conversion that its Agents SDK makes: every object closed, everything required; at most 5,000 properties, 10 levels, 1,000 words to choose from, 120,000 characters of names and words | `agents.strict_schema`; the guide "Structured model outputs", supported schemas |
| Gemini | nothing but what `Schema` of the API has; names of at most 64 letters, digits and `_.:-` that begin with a letter or `_` | `google.genai.types`; the reference of `FunctionDeclaration` |
| Anthropic | names `^[a-zA-Z0-9_-]{1,64}$`; for strict tools what its package can convert | `anthropic.transform_schema`; the guide "Define tools" |
| Cursor | server and tool together at most 60 characters, at most 40 tools | what it says where there are more |
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest

from filepact.tools.engine import SERVER_TOOLS
from filepact_diagnostics.solution import SOLUTION_TOOLS
from filepact_mcp.results import describe_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOLSETS = {"files": SERVER_TOOLS, "solution": SOLUTION_TOOLS}
LISTED = [
    pytest.param(describe_tool(tool), id=f"{toolset}-{tool.name}")
    for toolset, tools in TOOLSETS.items()
    for tool in tools
]


def objects_in(
    schema: Mapping[str, Any], level: int = 1
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A schema and all in it, each with how deep it lies."""
    yield schema, level
    for part in schema.get("properties", {}).values():
        yield from objects_in(part, level + 1)
    if "items" in schema:
        yield from objects_in(schema["items"], level + 1)


@pytest.mark.parametrize("listed", LISTED)
def test_a_schema_can_be_made_one_of_a_strict_function(listed: dict[str, Any]):
    from agents.strict_schema import ensure_strict_json_schema  # noqa: PLC0415

    strict = ensure_strict_json_schema(copy.deepcopy(listed["inputSchema"]))
    properties = words = characters = 0
    for schema, level in objects_in(strict):
        assert level <= 10
        words += len(schema.get("enum", ()))
        characters += sum(map(len, [*schema.get("enum", ()), *schema.get("properties", ())]))
        if schema["type"] == "object":
            properties += len(schema["properties"])
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) == set(schema["properties"])
    assert (properties <= 5_000, words <= 1_000, characters <= 120_000) == (True, True, True)


@pytest.mark.parametrize("listed", LISTED)
def test_gemini_knows_all_that_a_schema_says(listed: dict[str, Any]):
    from google.genai import types  # noqa: PLC0415

    assert types.Schema.model_config["extra"] == "forbid"
    types.Schema.model_validate(listed["inputSchema"])
    assert re.fullmatch(r"[A-Za-z_][\w.:-]{0,63}", listed["name"], re.ASCII)
    for schema, _ in objects_in(listed["inputSchema"]):
        assert isinstance(schema["type"], str)  # a list of types is taken from a few models on
        assert ("items" in schema) == (schema["type"] == "array")
        assert "enum" not in schema or schema["type"] == "string"


@pytest.mark.parametrize("listed", LISTED)
def test_anthropic_takes_a_schema_for_a_strict_tool(listed: dict[str, Any]):
    from anthropic import transform_schema  # noqa: PLC0415

    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", f"mcp__filepact__{listed['name']}")
    strict = transform_schema(listed["inputSchema"])
    assert strict["properties"].keys() == listed["inputSchema"]["properties"].keys()


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_a_toolset_fits_what_cursor_takes(toolset: str):
    tools = TOOLSETS[toolset]
    assert len(tools) <= 40
    assert max(len(f"filepact{tool.name}") for tool in tools) <= 60
