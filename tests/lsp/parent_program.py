"""A program with language servers, to be killed by a test.

Says ``begun`` when it begins to start them and ``working`` when all have answered.
"""

from __future__ import annotations

import json
import signal
import sys

from filepact.lsp.pool import Pool
from filepact.lsp.servers import parse_servers


def main() -> None:
    tables, environment, root = json.loads(sys.argv[1])
    servers = parse_servers(tables)
    pool = Pool(servers, environment, lambda name: name)
    files = {f"{root}/{one.name}.{one.name}": "wrong" for one in servers}
    print("begun", flush=True)
    pool.report(root, files, 30.0)
    print("working", flush=True)
    signal.pause()


main()
