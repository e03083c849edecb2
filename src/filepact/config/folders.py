"""Where a person's state folder is.  A hook asks at every event, so this loads next to nothing."""

from __future__ import annotations

import os
import sys

__all__ = ["state_folder"]


def state_folder(named: str | None = None) -> str:
    """The person's state folder, where `filepact log` and `filepact undo` look.

    Args:
        named: Another; else ``FILEPACT_STATE_DIR`` counts, and then the usual one.
    """
    named = named or os.environ.get("FILEPACT_STATE_DIR")
    if named:
        path = os.path.join(os.getcwd(), os.path.expanduser(named))
        return path.rstrip("/") or "/"
    if sys.platform.startswith("linux"):
        # As platformdirs says, which takes longer to load than all the rest of a hook.
        base = os.environ.get("XDG_STATE_HOME", "")
        base = base if base.strip() else os.path.expanduser("~/.local/state")
        return os.path.join(base, "filepact")
    from platformdirs import user_state_dir  # noqa: PLC0415 - only where nothing was named

    return user_state_dir("filepact", appauthor=False)
