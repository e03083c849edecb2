"""The settings files of this system and of this person: where they are, and what they say.

A file that is not there says nothing, unless somebody named it.  One that is there and cannot be
read or understood stops everything, for nobody knows what it would have forbidden.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from filepact.config.files import read_source
from filepact.config.layers import Rules, Source
from filepact.config.patterns import Folders, exactly
from filepact.config.settings import Settings, parse_settings
from filepact.domain.policy import WRITES, Rule
from filepact.errors import InvalidParamsError
from filepact.workspace.project import PROJECT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.domain.policy import Layer

__all__ = ["named_file", "read_settings", "rule_files", "settings_file"]

_FILE = "filepact.toml"
_LARGEST = 1_048_576


def settings_file(named: str) -> Path:
    """Where the person's settings stand, whether or not they are there.

    Args:
        named: The file that the person names; empty for the usual one.
    """
    return Path(named).expanduser().absolute() if named else _usual("person")


def read_settings(named: str) -> Settings:
    """What both files say, with the rules that protect the files themselves.

    Args:
        named: The person's file, if it is not the usual one.

    Raises:
        InvalidParamsError: One of them cannot be read, or is wrong.
    """
    settings, above = Settings(), _administrator()
    path = settings_file(named)
    if _exists(path) or named:
        source = _source("person", path)
        settings = parse_settings(_text(path), name=source.name, source=source)
    files = dict.fromkeys((_usual("administrator"), _usual("person"), path))
    protecting = tuple(rule for file in files for rule in _protecting(file))
    return replace(
        settings,
        rules=Rules(protecting) + above.rules + settings.rules,
        wishes=settings.wishes.beneath(above.wishes),
    )


def rule_files(named: str) -> Iterator[tuple[Source, str]]:
    """The files that are there, the administrator's first, each with its text, right or wrong.

    Args:
        named: The person's file, if it is not the usual one.

    Raises:
        InvalidParamsError: One of them cannot be read.
    """
    above = Rules()
    layers: tuple[Layer, ...] = ("administrator", "person")
    for layer in layers:
        path = settings_file(named) if layer == "person" else _usual(layer)
        if _exists(path) or (named and layer == "person"):
            source, text = Source(layer, str(path), folders=_folders(), above=above), _text(path)
            yield source, text
            if layer == "administrator":
                # What is wrong with it is told already to whoever asked for this.
                with suppress(InvalidParamsError):
                    above = read_source(text, source)


def named_file(name: str) -> tuple[Source, str]:
    """One file that need not be in force, as what its name says that it is, with its text.

    Raises:
        InvalidParamsError: It cannot be read.
    """
    path = Path(name).expanduser()
    text = _text(path)
    if path.name == PROJECT_FILE:
        return Source("project", str(path), str(path.absolute().parent)), text
    return _source("person", path), text


def _source(layer: Layer, path: Path) -> Source:
    """Whose a file is, with what goes before it."""
    above = _administrator().rules if layer == "person" else Rules()
    return Source(layer, str(path), folders=_folders(), above=above)


def _usual(layer: Layer) -> Path:
    """Where settings stand when nobody names a file."""
    from platformdirs import site_config_dir, user_config_dir  # noqa: PLC0415 - takes its time

    folder = site_config_dir if layer == "administrator" else user_config_dir
    return Path(folder("filepact", appauthor=False)) / _FILE


def _administrator() -> Settings:
    path = _usual("administrator")
    if not _exists(path):
        return Settings()
    source = _source("administrator", path)
    return parse_settings(_text(path), name=source.name, source=source)


def _exists(path: Path) -> bool:
    # Whatever else is in the way, such as rights, is for reading to tell.
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _text(path: Path) -> str:
    """The text of a settings file.

    Raises:
        InvalidParamsError: It is not there, no regular file, too large or not UTF-8, or it may
            not be read.
    """
    try:
        if not S_ISREG(path.stat().st_mode):
            said = "is not a regular file"
        else:
            with path.open("rb") as stream:
                data = stream.read(_LARGEST + 1)
            if len(data) <= _LARGEST:
                return data.decode("utf-8-sig")
            said = f"has more than {_LARGEST:,} bytes"
    except FileNotFoundError:
        raise InvalidParamsError(
            f"{path}: there is no such file",
            hint="Make it, or name another file.",
            file=str(path),
        ) from None
    except OSError as error:
        said = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        said = f"is not UTF-8 (byte {error.start})"
    raise InvalidParamsError(
        f"{path}: {said}", hint="Nothing starts before it is corrected.", file=str(path)
    )


def _folders() -> Folders:
    def true_path(path: str) -> str:
        with suppress(OSError, RuntimeError):
            return str(Path(path).resolve())
        return path

    try:
        home = true_path(str(Path.home()))
    except RuntimeError:
        return Folders(None, true_path)
    return Folders(home, true_path)


def _protecting(file: Path) -> Iterator[Rule]:
    """Rules that keep agents from a settings file, wherever its folder and itself lead.

    Our own folder is kept whole.  A file that was named may stand among the person's other files.
    """
    why = "it says what agents may do, and only a person may change it"
    own = {_usual("administrator").parent, _usual("person").parent}
    pattern = "**" if file.parent in own else exactly(file.name)
    covered = {(file.parent, pattern)}
    with suppress(OSError, RuntimeError):
        true = file.resolve()
        covered.add((file.parent.resolve(), pattern))
        if (true.parent, "**") not in covered:
            covered.add((true.parent, exactly(true.name)))
    for folder, pattern in sorted(covered):
        yield Rule("own files", "deny", (pattern,), why, WRITES, root=str(folder))
