"""What the tools cost a model before it has done anything: the list as a client is sent it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.faces.mcp.results import describe_tool
from filepact.tools.engine import SERVER_TOOLS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.tools.registry import Tool

MOST = 6_000
MOST_FURTHER = 700


def test_what_a_client_is_sent_of_the_seven_tools_stays_small():
    assert len(TOOLS) == 7
    assert len(sent_of(TOOLS)) <= MOST, {tool.name: len(sent_of([tool])) for tool in TOOLS}


def test_a_server_has_few_further_tools_and_small_ones():
    further = SERVER_TOOLS[len(TOOLS) :]
    assert (*TOOLS, *further) == SERVER_TOOLS
    assert len(SERVER_TOOLS) <= 12
    sizes = {tool.name: len(sent_of([tool])) for tool in further}
    assert max(sizes.values()) < MOST_FURTHER, sizes


def sent_of(tools: Sequence[Tool]) -> str:
    listed = {"tools": [describe_tool(tool) for tool in tools]}
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
