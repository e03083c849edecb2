"""Finds and reads the settings files and folders of the person at this system.

What is named goes before what the environment names, and that before the usual place.  A settings
file that is not there says nothing, unless somebody named it.  One that is there and cannot be read
or understood stops everything, for nobody knows what it would have forbidden.
"""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from filepact.config.folders import state_folder, usual_folder
from filepact.config.layers import PatternFolders, RuleSet, SettingsSource, exactly
from filepact.config.rule_files import read_source
from filepact.config.settings import Settings, parse_settings
from filepact.domain.operation import StoreOptions
from filepact.domain.policy import READS, WRITES, Rule
from filepact.errors import InvalidParamsError
from filepact.values import replace
from filepact.workspace.documents import PROJECT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from filepact.domain.policy import Layer

__all__ = [
    "home_folder",
    "named_file",
    "own_places",
    "read_known_settings",
    "read_settings",
    "read_store",
    "rule_files",
    "settings_file",
    "settings_text",
    "state_folder",
]


_FILE = "filepact.toml"
_LARGEST = 1_048_576


def home_folder() -> str | None:
    """The person's home folder, whose secrets are known by their inodes too."""
    found = os.path.expanduser("~")
    return None if found.startswith("~") else found


def settings_file(named: str | None = None) -> Path:
    """The path of the person's settings file, whether or not it exists.

    Args:
        named: Another file; else ``FILEPACT_CONFIG`` counts, and then the usual one.
    """
    from pathlib import Path  # noqa: PLC0415 - takes its time to load, and a server needs none

    return Path(_person_file(named))


def _person_file(named: str | None) -> str:
    """As `settings_file`."""
    named = _named(named)
    return (
        _tidied(os.path.join(os.getcwd(), os.path.expanduser(named))) if named else _usual("person")
    )


def read_settings(named: str | None = None) -> Settings:
    """The settings of the person and the administrator, with the rules that protect their files.

    Args:
        named: The person's settings file, if it is not the usual one.

    Raises:
        InvalidParamsError: A file cannot be read, or is wrong, or one that was named is not there.
    """
    settings, above = Settings(), _administrator()
    path = _person_file(named)
    if _exists(path) or _named(named):
        source = _source("person", path)
        settings = parse_settings(settings_text(path), name=source.name, source=source)
    files = dict.fromkeys((_usual("administrator"), _usual("person"), path))
    protecting = tuple(rule for file in files for rule in _protecting(file))
    return replace(
        settings,
        store=_store(settings),
        rules=RuleSet(protecting) + above.rules + settings.rules,
        audit=above.audit or settings.audit,
        extensions=_joined(settings.extensions, above.extensions),
    )


def _joined(mine: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of extensions, of a person and of an administrator."""
    if not above:
        return mine
    from filepact.extension import extensions  # noqa: PLC0415 - few administrators say anything

    wanted = {one.name: one for one in extensions() if one.name in above}
    joined = {name: one.joined(mine.get(name), above[name]) for name, one in wanted.items()}
    return {**mine, **joined}


def read_known_settings(named: str | None = None) -> tuple[Settings, str]:
    """The settings as far as they can be understood, and what is wrong with the rest; empty for nothing.

    Args:
        named: The person's settings file, if it is not the usual one.
    """
    try:
        return read_settings(named), ""
    except InvalidParamsError as error:
        wrong = error.report()
    try:
        above = _administrator()
    except InvalidParamsError:
        above = Settings()
    return replace(Settings(), rules=above.rules), wrong


def own_places(state: str, named: str | None = None) -> RuleSet:
    """The rule that keeps agents out of the folders of filepact itself, wherever these and their links lead.

    Args:
        state: The state folder in use.
        named: The person's settings file, if it is not the usual one.
    """
    file = _person_file(named)
    folders = {state, state_folder(), usual_folder("data")}
    folders |= {os.path.dirname(_usual(layer)) for layer in ("person", "administrator")}
    why = "filepact keeps there what it guards with"
    places = {(one, "**") for folder in folders for one in (folder, os.path.realpath(folder))}
    for path in (file, os.path.realpath(file)):
        places.add((os.path.dirname(path), exactly(os.path.basename(path))))
    return RuleSet(
        tuple(
            Rule("own files", "deny", (pattern,), why, READS | WRITES, root=folder)
            for folder, pattern in sorted(places)
        )
    )


def read_store(named: str | None = None) -> StoreOptions | None:
    """Where the journal is; what is wrong with the settings is told by whoever reads all of them."""
    with suppress(InvalidParamsError):
        return read_settings(named).store
    return _store(Settings())


def _store(settings: Settings) -> StoreOptions | None:
    url = os.environ.get("FILEPACT_STORE", "")
    if not url:
        return settings.store
    from filepact.extension import extensions  # noqa: PLC0415 - few have one

    known = tuple(address for one in extensions() for address in one.stores)
    if not url.startswith(known):
        raise InvalidParamsError(
            f"FILEPACT_STORE has to begin with {' or '.join(known)}",
            hint="Unset it to keep the journal in the state folder.",
        )
    return replace(settings.store or StoreOptions(url), url=url)


def rule_files(named: str | None = None) -> Iterator[tuple[SettingsSource, str]]:
    """The files that are there, the administrator's first, each with its text, right or wrong.

    Args:
        named: The person's file, if it is not the usual one.

    Raises:
        InvalidParamsError: One of them cannot be read.
    """
    above = RuleSet()
    layers: tuple[Layer, ...] = ("administrator", "person")
    for layer in layers:
        path = _person_file(named) if layer == "person" else _usual(layer)
        if _exists(path) or (layer == "person" and _named(named)):
            source = SettingsSource(layer, path, folders=_folders(), above=above)
            text = settings_text(path)
            yield source, text
            if layer == "administrator":
                # What is wrong with it is told already to whoever asked for this.
                with suppress(InvalidParamsError):
                    above = read_source(text, source)


def named_file(name: str) -> tuple[SettingsSource, str]:
    """A file that need not be in force, read as the kind that its name says, with its text.

    Raises:
        InvalidParamsError: It cannot be read.
    """
    path = _tidied(os.path.expanduser(name))
    text = settings_text(path)
    folder, _, last = _tidied(os.path.join(os.getcwd(), path)).rpartition("/")
    if last == PROJECT_FILE:
        return SettingsSource("project", path, folder or "/"), text
    return _source("person", path), text


def _named(named: str | None) -> str:
    """The file of the person's that a caller or the environment names, else empty."""
    return named or os.environ.get("FILEPACT_CONFIG") or ""


def _tidied(path: str) -> str:
    """A path without empty parts and dots, as `pathlib` has it, which takes its time to load."""
    parts = "/".join(part for part in path.split("/") if part not in {"", "."})
    return f"/{parts}" if path.startswith("/") else parts


def _source(layer: Layer, path: str) -> SettingsSource:
    """The source of a settings file, with the layer that it belongs to."""
    above = _administrator().rules if layer == "person" else RuleSet()
    return SettingsSource(layer, path, folders=_folders(), above=above)


def _usual(layer: Layer) -> str:
    """The usual path of a settings file."""
    folder = usual_folder("settings" if layer == "person" else "administrator")
    return _tidied(f"{folder}/{_FILE}")


def _administrator() -> Settings:
    path = _usual("administrator")
    if not _exists(path):
        return Settings()
    source = _source("administrator", path)
    return parse_settings(settings_text(path), name=source.name, source=source)


def _exists(path: str) -> bool:
    # Whatever else is in the way, such as rights, is for reading to tell.
    try:
        os.stat(path)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return True


def settings_text(path: str) -> str:
    """The text of a settings file.

    Raises:
        InvalidParamsError: It is not there, no regular file, too large or not UTF-8, or it may
            not be read.
    """
    try:
        if not S_ISREG(os.stat(path).st_mode):
            said = "is not a regular file"
        else:
            with open(path, "rb") as stream:
                data = stream.read(_LARGEST + 1)
            if len(data) <= _LARGEST:
                return data.decode("utf-8-sig")
            said = f"has more than {_LARGEST:,} bytes"
    except FileNotFoundError:
        raise InvalidParamsError(
            f"{path}: there is no such file",
            hint="Make it, or name another file.",
            file=path,
        ) from None
    except OSError as error:
        said = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        said = f"is not UTF-8 (byte {error.start})"
    raise InvalidParamsError(
        f"{path}: {said}", hint="Correct it; nothing starts until then.", file=path
    )


def _folders() -> PatternFolders:
    def true_path(path: str) -> str:
        with suppress(OSError):
            return os.path.realpath(path)
        return path

    home = home_folder()
    return PatternFolders(None if home is None else true_path(home), true_path)


def _protecting(file: str) -> Iterator[Rule]:
    """Rules that keep agents from a settings file, wherever its folder and itself lead.

    Our own folder is kept whole.  A file that was named may stand among the person's other files.
    """
    why = "it says what agents may do, and only a person may change it"
    own = {os.path.dirname(_usual("administrator")), os.path.dirname(_usual("person"))}
    folder, name = os.path.split(file)
    pattern = "**" if folder in own else exactly(name)
    covered = {(folder, pattern)}
    with suppress(OSError):
        covered.add((os.path.realpath(folder), pattern))
        folder, name = os.path.split(os.path.realpath(file))
        if (folder, "**") not in covered:
            covered.add((folder, exactly(name)))
    for folder, pattern in sorted(covered):
        yield Rule("own files", "deny", (pattern,), why, WRITES, root=folder)
