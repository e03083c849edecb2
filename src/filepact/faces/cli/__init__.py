"""The command for people: look at what agents did, take it back, and do the same by hand.

The only part of filepact that reads the environment, the home folder and the terminal.  Every
command answers a value; `screen` alone turns it into bytes, so that nothing a file or an agent
wrote can steer a terminal.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False  # `typing` takes longer to load than a hook has time
if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.cli.parser import CommandParser

__all__ = ["build_parser", "run"]


def run(argv: Sequence[str] | None = None) -> int:
    """Do what a command line says; arguments and exit code are those of `main.run`."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["hook"]:
        # An agent waits for it at every call of a tool, and the other commands take longer to load.
        from filepact.faces.hooks.client import hook  # noqa: PLC0415

        code = hook(words[1:])
        if code is not None:
            return code
    if words[:1] == ["mcp"]:
        gc.disable()  # until all is loaded: it stays to the end
    from filepact.faces.cli import main  # noqa: PLC0415 - as above

    code = main.run(words)
    if argv is None and words[:1] == ["mcp"]:
        main.end(code)
    # To hosts of hooks a 2 means that the call is refused.
    return min(code, 1) if words[:1] == ["hook"] else code


def build_parser() -> CommandParser:
    """The parser of all commands."""
    from filepact.faces.cli import main  # noqa: PLC0415 - as above

    return main.build_parser()
