"""``python -m tests.as_macos WORDS...``: see there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.as_macos import missing, python

if __name__ == "__main__":
    if said := missing():
        sys.exit(said)
    with tempfile.TemporaryDirectory(prefix="as-macos-") as folder:
        sys.exit(subprocess.run([*python(Path(folder)), *sys.argv[1:]], check=False).returncode)
