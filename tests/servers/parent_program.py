"""A program with language servers, to be killed by a test.

Says ``begun`` when it begins to start them and ``working`` when all have answered.  With a state
folder it confines itself before, and has a fork server start them.
"""

from __future__ import annotations

import json
import signal
import sys

from filepact.fs.root import Root
from filepact.fs.sandbox import confine
from filepact_diagnostics.lsp.forkserver import ForkServer
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.lsp.spec import parse_servers
from filepact_supervisor.server_sandbox import ServerSandbox


def main() -> None:
    tables, environment, root, state = json.loads(sys.argv[1])
    servers = parse_servers(tables)
    fork_server = None
    if state:
        fork_server = ForkServer.start()
        confine("required", [Root.open(root)], state)
    pool = ServerPool(
        servers,
        environment,
        lambda name: name,
        fork_server=fork_server,
        sandbox=ServerSandbox("", (root,), ()),
    )
    files = {f"{root}/{one.name}.{one.name}": "wrong" for one in servers}
    print("begun", flush=True)
    pool.ask(root, files, {}, 30.0, patient=True).result()
    print("working", flush=True)
    signal.pause()


main()
