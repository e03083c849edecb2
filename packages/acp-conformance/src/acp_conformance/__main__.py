"""Runs the command as `python -m acp_conformance`."""

from __future__ import annotations

import sys

from acp_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
