"""Fetches what the whole suite needs from elsewhere, before it begins.

Otherwise the first test that needs something would fetch it, and one in another process would wait
for that in its own time.  What cannot be had is said; the tests then skip or fail as they do.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.faces.acp.sdk_versions import SdkError, fetch_all
from tests.node_programs import NodeError, install
from tests.servers.csharp_toolchain import ToolchainError, toolchain
from tests.suites.packages import UnavailableError, codex_scenarios, gnu_patch_tests

PARTS = {
    "programs from npm": install,
    "schemas from npm": lambda: install("acp"),
    "language servers from npm": lambda: install("servers"),
    "a language server for PHP": lambda: install("php"),
    "a language server for Svelte": lambda: install("svelte"),
    "the protocol's own suite from npm": lambda: install("conformance"),
    "the compiler for C#": toolchain,
    "other versions of the package for editors": fetch_all,
    "the tests of GNU patch": gnu_patch_tests,
    "the scenarios of codex": codex_scenarios,
}


def main() -> int:
    wrong = 0
    with ThreadPoolExecutor(len(PARTS)) as pool:
        fetched = {name: pool.submit(get) for name, get in PARTS.items()}
        for name, part in fetched.items():
            try:
                part.result()
            except (NodeError, SdkError, ToolchainError, UnavailableError) as error:
                print(f"filepact: {name} cannot be had: {error}", file=sys.stderr, flush=True)
                wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
