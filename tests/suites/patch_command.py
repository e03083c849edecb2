"""A command like ``patch``, enough of it for GNU patch's own tests, over the real ``patch_apply``.

Only what decides the contents of files is understood; options about backups, rejects and messages
are passed over.  Messages are not imitated.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

_HEADER = re.compile(r"(?m)^(--- |\+\+\+ )([^\t\n]+)")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-p", "--strip", type=int, default=None)
    parser.add_argument("-i", "--input")
    parser.add_argument("-o", "--output")
    parser.add_argument("-d", "--directory", default=".")
    parser.add_argument("-R", "--reverse", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    for unused in ("-B", "-z", "-Y", "-r", "-V", "-F", "-D"):
        parser.add_argument(unused)
    chosen, rest = parser.parse_known_args(arguments)
    operands = [one for one in rest if not one.startswith("-")]
    source = operands[1] if len(operands) > 1 else chosen.input
    data = Path(source).read_bytes() if source else sys.stdin.buffer.read()
    patch = data.decode("utf-8", "surrogateescape")
    sent: dict[str, object] = {"reverse": chosen.reverse, "dry_run": chosen.dry_run}
    if operands:
        sent["path"] = operands[0]
    else:
        patch = _stripped(patch, chosen.strip)
    with tempfile.TemporaryDirectory() as state:
        workspace = open_workspace([os.getcwd()], state_dir=f"{state}/state")
        with closing(workspace):
            call = CallContext(Session("suite", Actor("agent", "patch")))
            outcome = open_toolbox(workspace).call("patch_apply", {"patch": patch, **sent}, call)
    print(outcome.text)
    return int(outcome.failed)


def _stripped(patch: str, strip: int | None) -> str:
    """The patch with names as ``-p`` makes them; without it, the last part of each name."""
    if "diff --git" in patch and strip == 1:
        return patch

    def cut(found: re.Match[str]) -> str:
        name = found[2]
        if name == "/dev/null":
            return found[0]
        parts = name.split("/")
        return found[1] + ("/".join(parts[strip:]) if strip is not None else parts[-1])

    return _HEADER.sub(cut, patch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
