"""The only code that touches files; nothing of it can be imported on a system that it does not know."""

import sys

if sys.platform == "win32":
    from filepact.errors import NOT_ON_WINDOWS

    # Whatever is imported of filepact, and by whichever way, it comes to this before it lacks something.
    raise ImportError(NOT_ON_WINDOWS)
