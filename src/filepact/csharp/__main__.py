"""The language server for C# as a program of its own, over standard input and output."""

from __future__ import annotations

import argparse
import os
import sys

from filepact.csharp.conversation import Conversation, standard_pipes
from filepact.csharp.runtime import start
from filepact.csharp.server import Server


def main() -> int:
    """Serve one client; the answer is the process's status."""
    parser = argparse.ArgumentParser(prog="python -m filepact.csharp", description=__doc__)
    parser.add_argument("--roslyn", required=True, help="folder of the compiler's DLLs")
    parser.add_argument("--dotnet", required=True, help="folder of the .NET runtime")
    parser.add_argument("--root", default="", help="folder to serve; else the client names it")
    parser.add_argument("--solution", default="", help="solution, project or folder to read")
    given = parser.parse_args()
    source, sink = standard_pipes()
    root, solution = (one and os.path.abspath(one) for one in (given.root, given.solution))  # noqa: PTH100 - names only
    server = Server(lambda: start(given.roslyn, given.dotnet), root, solution)
    conversation = Conversation(source, sink, server.requests, server.notifications, server.warm)
    server.conversation = conversation
    return conversation.run()


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # The runtime takes its time to be unloaded, and nothing is left to be done.
    os._exit(status)
