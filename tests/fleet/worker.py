"""A program that works on a checkout of a shared workspace by itself: one call in a line, one answer in a line."""

from __future__ import annotations

import json
import sys
import time

from filepact.app import open_toolbox, open_workspace
from filepact.config.person import read_settings
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.tools.registry import CallContext


def main(folder: str, state: str, config: str, name: str) -> None:
    settings = read_settings(config)
    while True:
        try:
            workspace = open_workspace([folder], state_dir=state, settings=settings)
            break
        except FilepactError as error:  # the database, or the object store, is down just now
            print(error.report(), file=sys.stderr, flush=True)
            time.sleep(0.2)
    with workspace:
        tools = open_toolbox(workspace, own=True)
        for line in sys.stdin:
            tool, arguments = json.loads(line)
            context = CallContext(session=Session(name, Actor("agent", "worker")))
            print(json.dumps(tools.call(tool, arguments, context).text), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
