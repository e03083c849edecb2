"""``python -m filepact`` is the command."""

from __future__ import annotations

import sys

from filepact.faces.cli import run

if __name__ == "__main__":
    sys.exit(run())
