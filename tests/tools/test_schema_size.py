"""What the tools cost a model before it has done anything."""

from __future__ import annotations

import json

from filepact.tools.catalogue import SERVER_TOOLS, TOOLS

MOST = 6_000
MOST_FURTHER = 700


def test_the_description_of_all_tools_stays_small():
    sizes = sizes_of(TOOLS)
    assert sum(sizes.values()) < MOST, sizes


def test_a_server_has_few_further_tools_and_small_ones():
    further = SERVER_TOOLS[len(TOOLS) :]
    assert (*TOOLS, *further) == SERVER_TOOLS
    assert len(SERVER_TOOLS) <= 12
    sizes = sizes_of(further)
    assert max(sizes.values()) < MOST_FURTHER, sizes


def sizes_of(tools):
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for tool in tools
    ]
    return {one["name"]: len(json.dumps(one, separators=(",", ":"))) for one in listed}
