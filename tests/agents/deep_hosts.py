"""Every agent that calls `filepact mcp` by itself, in every scene: what its model is shown.

``python -m tests.agents.deep_hosts [AGENT...]`` installs and runs them, and prints a table; what
cannot be had here is said to be so.  It ends with 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from subprocess import TimeoutExpired

from tests.agents.host_scenes import SCENES
from tests.agents.hosts import HOSTS, Host
from tests.agents.installed import MissingError

__all__ = ["main"]


def _outcome(host: Host, scene: str) -> str:
    with tempfile.TemporaryDirectory() as base:
        try:
            SCENES[scene](host, Path(base, "scene"))
        except MissingError as error:
            return f"not here: {error}"
        except (AssertionError, TimeoutExpired) as error:
            return f"WRONG: {str(error)[:2_000]}"
    return "right"


def main() -> int:
    """Run the agents that are named, or all."""
    parser = argparse.ArgumentParser(prog="deep_hosts")
    parser.add_argument("agents", nargs="*", choices=[[], *(host.name for host in HOSTS)])
    named = parser.parse_args().agents
    wrong = 0
    for host in HOSTS:
        if named and host.name not in named:
            continue
        for scene in SCENES:
            outcome = _outcome(host, scene)
            wrong += outcome.startswith("WRONG")
            print(f"{host.name:12} {scene:22} {outcome}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
