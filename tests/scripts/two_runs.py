"""Run pytest on folders side by side: `two_runs.py SCRIPTS PROJECT [-x] FOLDER...`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import side_by_side

project, *folders = sys.argv[2:]
ends = "-x" in folders
command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(["-x"] if ends else [])]
commands = {
    str(number): [*command, folder]
    for number, folder in enumerate((one for one in folders if one != "-x"), start=1)
}
named = {number: {"SHARE": number} for number in commands}
try:
    runs = side_by_side.run(commands, Path(project), named, first_failure_ends=ends)
except KeyboardInterrupt:
    sys.exit(side_by_side.INTERRUPTED)
print("all have ended")
side_by_side.print_failed(runs)
sys.exit(side_by_side.status(runs))
