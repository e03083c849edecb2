"""Starts the program: `filepact` comes in here, and goes on to the hooks' client or to the command line.

Both are packages that the core does not know otherwise; it imports them by name, since an agent or a person waits for each start.
"""

from __future__ import annotations

import gc
import os
import sys

from filepact import unsupported

TYPE_CHECKING = False  # `typing` takes longer to load than a hook has time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

__all__ = ["isolated_command", "perform", "run"]

_HARMLESS: Final = (
    *("PYTHONCOERCECLOCALE", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "PYTHONHASHSEED"),
    *("PYTHONIOENCODING", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONUTF8"),
)
"""Python's variables that lead to no file; any other may lead to one that an agent has written."""

_PROGRAM: Final = "; from filepact.faces.cli import run; sys.exit(run())"


def run(argv: Sequence[str] | None = None) -> int:
    """Do what a command line says; arguments and exit code are those of `main.run`.

    Args:
        argv: The words after the command; None for those of this process, which starts again where
            its surroundings say what is imported, or that names of files are not UTF-8.
    """
    if argv is not None or unsupported():
        return perform(sys.argv[1:] if argv is None else argv)
    isolated = sys.flags.isolated or not any(map(_leads, os.environ.items()))
    if os.path.basename(sys.argv[0]) == "__main__.py":  # noqa: PTH119 - starts faster
        isolated = sys.flags.isolated  # of `-m`; the folder that we are in comes first on its path
    elif sys.argv[0][-9:] != "/filepact":
        return perform(sys.argv[1:], alone=True)  # in a program of somebody else
    if not isolated or sys.getfilesystemencoding() != "utf-8":
        words = isolated_command()
        os.execv(words[0], [*words, *sys.argv[1:]])  # noqa: S606 - this very program
    return perform(sys.argv[1:], alone=True)


def _leads(variable: tuple[str, str]) -> bool:
    name, value = variable
    return name[:6] == "PYTHON" and bool(value) and name not in _HARMLESS


def perform(words: Sequence[str], *, alone: bool = False) -> int:
    """Do what a command line says, in this process as it is.

    Args:
        words: The words after the command.
        alone: Whether the process may end with it.
    """
    if words[:1] == ["hook"]:
        # An agent waits for it at every call of a tool, and the other commands take longer to load.
        from filepact_hooks.client import hook  # noqa: PLC0415

        code = hook(words[1:])
        if code is not None:
            return code
    if said := unsupported():
        sys.stderr.write(f"filepact: {said}\n")
        return 1
    if words[:1] == ["mcp"]:
        gc.disable()  # until all is loaded: it stays to the end
    try:
        from filepact_cli import main  # noqa: PLC0415 - as above
    except KeyboardInterrupt:
        return 130  # as of `main.run`, which it did not come to

    code = main.run(words)
    if alone and words[:1] == ["mcp"]:
        main.end(code)
    # To hosts of hooks a 2 means that the call is refused.
    return min(code, 1) if words[:1] == ["hook"] else code


def isolated_command() -> tuple[str, ...]:
    """The command that starts this installation, whatever environment and folder would have it import.

    Names of files are UTF-8 in it, whatever the locale.
    """
    import site  # noqa: PLC0415 - not loaded yet where a hook starts

    start = (sys.executable, "-I", *(["-S"] if sys.flags.no_site else []), "-Xutf8")
    given = sys.orig_argv[sys.orig_argv.index("-c") + 1] if sys.argv[:1] == ["-c"] else ""
    if sys.flags.isolated and given.endswith(_PROGRAM):
        return (*start, "-c", given)
    place = __file__
    for _ in range(3):
        place = os.path.dirname(place)  # noqa: PTH120 - starts faster
    named = map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    if place not in named and (not own or place in site.getsitepackages()):
        return (*start, "-m", "filepact")
    # Where an isolated Python does not look: behind its own modules, and before those of others.
    beside = [one for one in sys.path if one.startswith(f"{os.path.dirname(place)}/packages/")]  # noqa: PTH120
    places = list(dict.fromkeys((place, *beside, *own)))
    return (*start, "-c", f"import sys; sys.path[3:3] = {places!r}{_PROGRAM}")
