"""Tells the person's desktop that something waits: the names of files, and nothing else."""

from __future__ import annotations

import html
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.faces.cli.render import count
from filepact.text.confusables import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["notify"]

_NAMED: Final = 5
_SECONDS: Final = 5


def notify(names: Sequence[str]) -> bool:
    """Show the names of files for which something waits.

    Returns:
        Whether there is a program that could be asked to.
    """
    found = shutil.which("notify-send")
    if found is None or not Path(found).is_absolute():
        return False
    # Some desktops take what looks like markup for it.
    shown = [html.escape(" ".join(visible(one).split())[:200]) for one in names[:_NAMED]]
    if len(names) > _NAMED:
        shown.append(f"and {len(names) - _NAMED} more")
    title = f"A change of {count(len(names), 'file')} waits for you"
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(  # noqa: S603 - the desktop's own
            [found, "--app-name=filepact", "--", title, "\n".join(shown)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    return True
