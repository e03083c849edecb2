"""What the tools cost a model before it has done anything: the list as a client is sent it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.tools.engine import SERVER_TOOLS, TOOLS
from filepact_diagnostics.solution import SOLUTION_TOOLS
from filepact_mcp.results import describe_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.tools.registry import Tool

MOST = 6_000
MOST_FURTHER = 700
MOST_OF_SOLUTION = 20_000


def test_what_a_client_is_sent_of_the_seven_tools_stays_small():
    assert len(TOOLS) == 7
    assert len(sent_of(TOOLS)) <= MOST, {tool.name: len(sent_of([tool])) for tool in TOOLS}


def test_a_server_has_few_further_tools_and_small_ones():
    further = SERVER_TOOLS[len(TOOLS) :]
    assert (*TOOLS, *further) == SERVER_TOOLS
    assert len(SERVER_TOOLS) <= 12
    sizes = {tool.name: len(sent_of([tool])) for tool in further}
    assert max(sizes.values()) < MOST_FURTHER, sizes


def test_what_a_client_is_sent_of_the_solution_tools_stays_small():
    assert len(sent_of(SOLUTION_TOOLS)) <= MOST_OF_SOLUTION


def test_no_schema_has_a_list_of_types():
    assert '"type":[' not in sent_of((*SERVER_TOOLS, *SOLUTION_TOOLS))


def test_only_what_changes_nothing_more_the_second_time_is_said_to_be_idempotent():
    listed = [*map(describe_tool, (*SERVER_TOOLS, *SOLUTION_TOOLS))]
    named = [one for one in listed if "idempotentHint" in one["annotations"]]
    # Of a whole text, that is; `write_file` of the seven can append.
    assert [(one["name"], "outputSchema" in one) for one in named] == [("write_file", True)]


def sent_of(tools: Sequence[Tool]) -> str:
    listed = {"tools": [describe_tool(tool) for tool in tools]}
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
