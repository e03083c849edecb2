"""What the seven tools cost a model before it has done anything."""

from __future__ import annotations

import json

from filepact.tools.catalogue import TOOLS

MOST = 6_000


def test_the_description_of_all_tools_stays_small():
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for tool in TOOLS
    ]
    sizes = {one["name"]: len(json.dumps(one, separators=(",", ":"))) for one in listed}
    assert sum(sizes.values()) < MOST, sizes
