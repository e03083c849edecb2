"""The command `filepact-csharp`: its language servers, and what it says and fetches of compilers."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from filepact_csharp.toolchain import find_here, newest_framework, own_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from filepact_csharp.rpc import LanguageServer

__all__ = ["main", "run"]

_NONE = "no .NET SDK and no fetched compiler is here; `filepact-csharp setup` fetches one"


def run() -> None:
    """Do what the process's command line says, and end it."""
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # The .NET runtime takes its time to be unloaded, and nothing is left to be done.
    os._exit(status)


def main(words: Sequence[str]) -> int:
    """Do what a command line says; the answer is the status for the process to end with."""
    if words[:1] == ["doctor"] and not set(words[1:]) - {"--json"}:
        # `filepact` waits for this one when it starts, so the parser is left out.
        return _doctor(as_json="--json" in words)
    given = _parser().parse_args(words)
    if given.command == "doctor":
        return _doctor(as_json=given.json)
    return _setup(given) if given.command == "setup" else _serve(given)


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser  # noqa: PLC0415 - see `main`

    parser = ArgumentParser(prog="filepact-csharp", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, said in {
        "serve": "a language server over the compiler, on standard input and output",
        "syntax": "a language server that knows the form of each file alone",
        "projects": "a language server that knows which files belong to which project",
    }.items():
        server = commands.add_parser(name, help=said, description=said)
        server.add_argument("--root", default="", help="folder to serve; else the client names it")
        if name != "syntax":
            server.add_argument(
                "--solution", default="", help="solution, project or folder to read"
            )
        if name == "serve":
            server.add_argument("--roslyn", default="", help="folder of the compiler's DLLs")
            server.add_argument("--dotnet", default="", help="folder of the .NET runtime")
            server.add_argument("--sdk", default="", help="folder of the SDK that reads projects")
    for name, said in {
        "doctor": "say which compiler `serve` would use; status 1 if there is none",
        "setup": "fetch a compiler and a .NET runtime, for machines without the .NET SDK",
    }.items():
        command = commands.add_parser(name, help=said, description=said)
        command.add_argument("--json", action="store_true", help="answer for programs")
    return parser


def _serve(given: Namespace) -> int:
    from filepact_wire.pipes import standard_pipes  # noqa: PLC0415 - see `main`

    # Before anything is loaded that may print.
    with standard_pipes() as (source, sink):
        return _server(given).talk(source, sink)


def _server(given: Namespace) -> LanguageServer:
    root = given.root and os.path.abspath(given.root)
    if given.command == "syntax":
        from filepact_csharp.syntax import SyntaxServer  # noqa: PLC0415 - one of three

        return SyntaxServer(root)
    from filepact_csharp.server import CompilerServer, ProjectServer  # noqa: PLC0415 - the others

    solution = given.solution and os.path.abspath(given.solution)
    if given.command == "projects":
        there = find_here()
        return ProjectServer(root, solution, newest_framework(there) if there else 0)
    from filepact.errors import NotFoundError  # noqa: PLC0415 - the same
    from filepact_csharp.roslyn import Roslyn, start  # noqa: PLC0415 - the same
    from filepact_csharp.sdk_projects import is_confined  # noqa: PLC0415 - the same

    def begin() -> Roslyn:
        # What evaluates a project opens what the project says.
        confined = is_confined()
        if given.roslyn and given.dotnet:
            return start(given.roslyn, given.dotnet, given.sdk if confined else "")
        found = find_here()
        if found is None:
            raise NotFoundError(_NONE)
        return start(found.roslyn, found.dotnet, found.sdk if confined else "")

    return CompilerServer(begin, root, solution)


def _doctor(*, as_json: bool) -> int:
    found = find_here()
    if found is None:
        _answer(_NONE, {"said": _NONE}, as_json=as_json)
        return 1
    said = f"{found.source}, in {found.roslyn}"
    facts = {
        "said": said,
        "compiler": found.version,
        "roslyn": found.roslyn,
        "dotnet": found.dotnet,
        "sdk": found.sdk,
    }
    _answer(said, facts, as_json=as_json)
    return 0


def _setup(given: Namespace) -> int:
    from filepact.errors import FilepactError  # noqa: PLC0415 - see `main`
    from filepact_csharp.install import setup  # noqa: PLC0415 - the same

    try:
        said, facts = setup(own_folder(), lambda text: print(text, file=sys.stderr, flush=True))
    except FilepactError as error:
        if given.json:
            told = {name: getattr(error, name) for name in ("code", "message", "hint", "details")}
            _answer("", {"error": told}, as_json=True)
        else:
            print(f"filepact-csharp: {error.report()}", file=sys.stderr)
        return 1
    _answer(said, facts, as_json=given.json)
    return 0


def _answer(said: str, facts: Mapping[str, object], *, as_json: bool) -> None:
    import json  # noqa: PLC0415 - people need none

    print(json.dumps(facts) if as_json else said)
