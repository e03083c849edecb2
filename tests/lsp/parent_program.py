"""A program with language servers, to be killed by a test.

Says ``begun`` when it begins to start them and ``working`` when all have answered.  With a state
folder it confines itself before, and has a nursery start them.
"""

from __future__ import annotations

import json
import signal
import sys

from filepact.fs.root import Root
from filepact.fs.wall import raise_wall
from filepact.lsp.nursery import Nursery
from filepact.lsp.pool import Pool
from filepact.lsp.servers import parse_servers


def main() -> None:
    tables, environment, root, state = json.loads(sys.argv[1])
    servers = parse_servers(tables)
    nursery = None
    if state:
        nursery = Nursery.start()
        raise_wall("required", [Root.open(root)], state)
    pool = Pool(servers, environment, lambda name: name, nursery=nursery, roots=[root])
    files = {f"{root}/{one.name}.{one.name}": "wrong" for one in servers}
    print("begun", flush=True)
    pool.report(root, files, 30.0)
    print("working", flush=True)
    signal.pause()


main()
