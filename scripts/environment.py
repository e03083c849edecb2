"""Make the virtual environments that the commands beside this file run in.

Standard library only, and nothing but old syntax until the interpreter's version was checked.
Everything is said on standard error: the standard output belongs to the command that is run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
_STAMP = "filepact-installed.json"


def say(text: str) -> None:
    print(f"filepact: {text}", file=sys.stderr, flush=True)


def require_python() -> None:
    """Go on under a new enough Python, or end with one sentence that says what is missing."""
    if os.name != "posix":
        sys.exit("filepact does not run on Windows yet; use Linux, macOS or WSL.")
    if sys.version_info < OLDEST:
        for minor in range(20, OLDEST[1] - 1, -1):
            found = shutil.which(f"python3.{minor}")
            if found:
                os.execv(found, [found, *sys.argv])
        present = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"filepact needs Python {OLDEST[0]}.{OLDEST[1]} or newer; "
            f"{sys.executable} is {present} and no newer one is on the PATH."
        )
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"filepact: this Python has no module {' and no module '.join(missing)}, so it cannot "
            "make a virtual environment.\nOn Debian and Ubuntu: apt-get install python3-venv"
        )


def prepare(name: str, *groups: str) -> Path:
    """A folder of the project with a virtual environment that is up to date.

    The project and the distributions in `packages/` are installed from the tree.  The environment
    is made when it is missing, when its interpreter is gone, or when Python or the project's place
    is another; what is installed in it is renewed when one of their `pyproject.toml` changed.

    Args:
        name: The folder, such as `.venv`.
        groups: Dependency groups of the project's `pyproject.toml` to install as well.

    Returns:
        The environment's folder of programs.
    """
    folder = PROJECT / name
    if _missing(folder, groups):
        # Two hosts may start us at the same moment: the second waits, and finds it done.
        # (Unix only, as is everything here; `require_python` has said so before.)
        import fcntl  # noqa: PLC0415

        with (PROJECT / "pyproject.toml").open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            missing = _missing(folder, groups)
            if missing:
                _install(folder, missing)
    return folder / "bin"


def distributions(project: Path) -> list[Path]:
    """The folders of what is installed from the tree: the project, then each package that its own wheel does not carry."""
    import tomllib  # noqa: PLC0415  # not there before Python 3.11

    declared = tomllib.loads((project / "pyproject.toml").read_text())
    wheel = declared.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {})
    carried = {Path(one).parts[:2] for one in wheel.get("wheel", {}).get("packages", ())}
    packages = sorted(one.parent for one in project.glob("packages/*/pyproject.toml"))
    return [project, *(one for one in packages if one.parts[-2:] not in carried)]


def _wanted() -> dict[str, str]:
    """What has to be the same for an environment to be used as it is."""
    declared = hashlib.sha256()
    for one in distributions(PROJECT):
        declared.update(f"{one.relative_to(PROJECT)}\0".encode())
        declared.update((one / "pyproject.toml").read_bytes())
        # The build hook there is imported by what installs, and leaves a folder of compiled modules.
        for source in sorted(one.glob("native/*.[chp]*")):
            declared.update(source.read_bytes())
    return {
        "python": f"{'.'.join(map(str, sys.version_info[:3]))} for {PROJECT}",
        "project": declared.hexdigest(),
    }


def _stamp(folder: Path) -> dict[str, str]:
    """What the environment was made for; empty when it has to be made anew."""
    try:
        stamp = json.loads((folder / _STAMP).read_text())
    except (OSError, ValueError):
        return {}
    usable = (folder / "bin" / "python").exists() and isinstance(stamp, dict)
    return stamp if usable and stamp.get("python") == _wanted()["python"] else {}


def _missing(folder: Path, groups: tuple[str, ...]) -> list[str]:
    """The groups that are not installed as declared; `""` is what is installed from the tree."""
    stamp, project = _stamp(folder), _wanted()["project"]
    return [group for group in ("", *groups) if stamp.get(f"group:{group}") != project]


def _install(folder: Path, groups: list[str]) -> None:
    start = time.monotonic()
    stamp = _stamp(folder)
    if not stamp:
        say(f"making {folder.name} with Python {sys.version.split()[0]} (once)")
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], "making the environment")
        stamp = {"python": _wanted()["python"]}
    requirements = [one for group in groups for one in _group(group)]
    what = " and ".join(f"the {group} tools" if group else "filepact" for group in groups)
    say(f"installing {what} into {folder.name}")
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    # Of ten thousand modules of the tools a quarter is ever loaded, and compiled then.
    pip += ["--no-compile"] if any(groups) else []
    trees = [word for one in distributions(PROJECT) for word in ("--editable", str(one))]
    # What is installed from the tree as it is now is not built once more for further tools.
    trees = trees if "" in groups else []
    _run([*pip, *trees, *requirements], "installing")
    stamp.update({f"group:{group}": _wanted()["project"] for group in groups})
    # Written last: an installation that was cut off is done again.
    (folder / _STAMP).write_text(json.dumps(stamp, indent=2) + "\n")
    say(f"ready after {time.monotonic() - start:.0f} s")


def _group(name: str) -> list[str]:
    """The requirements of one dependency group, those it includes among them."""
    import tomllib  # noqa: PLC0415  # not there before Python 3.11

    if not name:
        return []
    with (PROJECT / "pyproject.toml").open("rb") as handle:
        groups = tomllib.load(handle)["dependency-groups"]
    found: list[str] = []
    for entry in groups[name]:
        found += [entry] if isinstance(entry, str) else _group(entry["include-group"])
    return found


def _run(command: list[str], doing: str) -> None:
    code = subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False)
    if code.returncode:
        sys.exit(f"filepact: {doing} failed; the lines above say why. Nothing was started.")
