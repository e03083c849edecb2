"""A pager: a program that shows a long answer page by page, as the person has chosen it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["find_pager", "show_paged"]

# As Git has it: end at once where all fits, let colours through, leave the screen as it is.
_OPTIONS: Final = {"LESS": "FRX", "LV": "-c"}


def find_pager() -> list[str]:
    """The pager that is wanted, with its arguments; empty for none.

    FILEPACT_PAGER goes before PAGER.  Never one that lies in the present folder or beneath, where
    agents write.
    """
    wanted = os.environ.get("FILEPACT_PAGER", os.environ.get("PAGER", "less"))
    try:
        words = shlex.split(wanted)
    except ValueError:
        return []
    found = shutil.which(words[0]) if words and words != ["cat"] else None
    if found is None or not Path(found).is_absolute():
        return []
    if Path(found).resolve().is_relative_to(Path.cwd().resolve()):
        return []
    return [found, *words[1:]]


def show_paged(pager: list[str], parts: Iterable[bytes]) -> bool:
    """Hand an answer to a pager, part by part, until it is read or left.

    Returns:
        Whether the pager could be started; if not, nothing is shown yet.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - what the person has chosen
            pager, stdin=subprocess.PIPE, env={**_OPTIONS, **os.environ}
        )
    except OSError:
        return False
    with process:
        # Whoever leaves has seen enough; an interrupt is for the pager, which goes on.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            for part in parts:
                process.stdin.write(part)  # type: ignore[union-attr]  # it is a pipe
        with suppress(BrokenPipeError):
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        while True:
            with suppress(KeyboardInterrupt):
                process.wait()
                return True
