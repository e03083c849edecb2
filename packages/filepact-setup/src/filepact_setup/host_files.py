"""Settings files of agents and editors: read, and planned as they are going to be.

What is put into a file is kept in a record, with what the file held before; so a second time nothing
changes, and what was put in can be taken out to the byte, or out of what others have made of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from filepact.config.folders import SET_UP_FILE, set_up_bytes
from filepact.errors import (
    EncodingUnsafeError,
    InvalidParamsError,
    PathBlockedError,
    ReadFailedError,
    TooLargeError,
)
from filepact.text.lines import adopt_line_ends
from filepact.values import asdict, dataclass, replace
from filepact_setup.hook_command import is_hook
from filepact_setup.hosts import HostFile, host_place
from filepact_setup.settings_edit import (
    OWN,
    SettingsChange,
    SettingsFormat,
    put_in,
    read_settings_text,
    take_out,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "SettingsFile",
    "SettingsRecord",
    "digest",
    "find_file",
    "held",
    "plan_file",
    "read_file",
    "read_record",
    "setup_notes",
]

_LARGEST: Final = 1 << 20
_BOM: Final = "\ufeff"
_RECORD: Final = "setup.json"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file of a host as it is now, and as it is going to be.

    Attributes:
        shown: Its name for people.
        path: What it really is, links followed; absolute.
        inside: Its path from the project, if it lies in there; else empty.
        data: What it holds; None where it is not there.
        wanted: What it is going to hold; None where it goes.
        change: What was put into it; None where nothing of ours is left in it.
        origin: What it held before anything of ours was put in; None where it was not there.
    """

    shown: str
    path: str
    inside: str
    data: bytes | None
    wanted: bytes | None
    change: SettingsChange | None
    origin: bytes | None

    @property
    def changes(self) -> bool:
        """Whether it is going to be another."""
        return self.data != self.wanted


@dataclass(frozen=True, slots=True)
class SettingsRecord:
    """The record of a settings file that was changed.

    Attributes:
        after: SHA-256 of what it held then.
        origin: What it held before anything of ours was in it; None where it was not there.
        change: What was put in.
    """

    after: str
    origin: bytes | None
    change: SettingsChange


def find_file(file: HostFile, project: Path) -> Path:
    """The file that counts: one of another name where that is there."""
    usual = host_place(file.path, project)
    names = [usual, *(usual.with_name(name) for name in file.others)]
    return next((one for one in names if one.exists()), usual)


def read_file(path: Path, project: Path) -> SettingsFile:
    """A file as it is.

    Raises:
        FilepactError: It cannot be read, or a link leads out of the project.
    """
    true, folder = Path(os.path.realpath(path)), Path(os.path.realpath(project))
    shown = str(path)
    own = path.is_relative_to(project)
    with suppress(ValueError, RuntimeError):
        shown = str(path.relative_to(project)) if own else f"~/{path.relative_to(Path.home())}"
    if own and not true.is_relative_to(folder):
        raise PathBlockedError(
            f"{shown}: leads out of the project, to {true}",
            hint="Put the file itself there, or edit it by hand.",
        )
    if true != path.absolute() and true != folder / shown:
        shown = f"{shown} -> {true}"
    data: bytes | None = None
    try:
        if true.exists():
            if not true.is_file():
                raise ReadFailedError(f"{shown}: is not a file")
            if true.stat().st_size > _LARGEST:
                raise TooLargeError(f"{shown}: is larger than any settings file")
            data = true.read_bytes()
    except OSError as error:
        raise ReadFailedError(f"{shown}: {(error.strerror or 'cannot be read').lower()}") from None
    inside = str(true.relative_to(folder)) if own else ""
    return SettingsFile(shown, str(true), inside, data, data, None, data)


def plan_file(
    file: SettingsFile,
    kind: SettingsFormat | str,
    wanted: Sequence[Any],
    everything: Sequence[Any],
    known: SettingsRecord | None,
) -> SettingsFile:
    """A file as it is going to be.

    Raises:
        InvalidParamsError: It is broken, or in no form that is known.
        EncodingUnsafeError: It is no UTF-8.
    """
    exact = known is not None and file.data is not None and known.after == digest(file.data)
    if kind == "text":
        text = wanted[0] if wanted else None
        origin = known.origin if known is not None and exact else None
        held = None if file.data is None else file.data.decode("utf-8", "replace")
        if held is not None and not exact and "filepact" not in held.partition("\n")[0]:
            raise InvalidParamsError(
                f"{file.shown}: is somebody else's file",
                hint="Give it another name, then try again.",
            )
        after = origin if text is None else text.encode()
        return replace(file, wanted=after, change=SettingsChange() if text else None, origin=origin)
    form = cast("SettingsFormat", kind)
    try:
        origin = file.data
        if known is not None and exact:
            origin = known.origin
        elif file.data is not None:
            change = None if known is None else known.change
            origin = _edited(
                file.data,
                lambda text: take_out(
                    text, _merged(everything), form, change=change, is_ours=is_hook
                ),
            )
            if known is not None and known.origin is None and _is_empty(origin, form):
                origin = None
        if not wanted:
            return replace(file, wanted=origin, origin=origin)
        made: list[SettingsChange] = []

        def put(text: str) -> str:
            text, change = put_in(text, _merged(wanted), form)
            made.append(change)
            return text

        after = _edited(origin or b"", put)
        if file.data is not None and _value(after, form) == _value(file.data, form):
            # Only the order would be another.
            after = file.data
        return replace(file, wanted=after, change=made[0], origin=origin)
    except ValueError as error:
        raise InvalidParamsError(
            f"{file.shown}: {error}; it was left as it is",
            hint="Correct it first, or put the entry in by hand.",
        ) from None
    except UnicodeDecodeError:
        raise EncodingUnsafeError(f"{file.shown}: is not UTF-8; it was left as it is") from None


def _edited(data: bytes, edit: Callable[[str], str]) -> bytes:
    """Edit the text of a file, and keep its mark at the beginning and its line ends."""
    text = data.decode("utf-8")
    mark = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    bare = text.replace("\r\n", "\n")
    if "\r" in bare:
        raise ValueError("its lines end in a way that no host reads")
    return f"{mark}{adopt_line_ends(edit(bare), text)}".encode()


def _value(data: bytes, kind: SettingsFormat) -> object:
    return read_settings_text(data.decode("utf-8").removeprefix(_BOM).replace("\r\n", "\n"), kind)


def _is_empty(data: bytes, kind: SettingsFormat) -> bool:
    return _value(data, kind) in ({}, {"version": 1}, {"hooks": {}}, {"version": 1, "hooks": {}})


def _merged(parts: Sequence[Any]) -> dict[str, Any]:
    """Return the settings of several parts of one file, merged."""
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            have = found.get(key)
            if isinstance(have, dict) and isinstance(value, dict) and key != OWN:
                found[key] = _merged([have, value])
            elif isinstance(have, list):
                found[key] = have + [one for one in value if one not in have]
            else:
                found[key] = value
    return found


def held(file: HostFile, project: Path) -> Any:
    """Return a file's content as its format has it; None where there is no file.

    Raises:
        FilepactError: It cannot be read or understood.
    """
    found = read_file(find_file(file, project), project)
    if found.data is None:
        return None
    if file.kind == "text":
        return found.data.decode("utf-8", "replace")
    try:
        return _value(found.data, file.kind)
    except ValueError as error:
        raise InvalidParamsError(f"{found.shown}: {error}") from None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_record(state: str) -> dict[str, SettingsRecord]:
    """Return the records of changed settings files; none where they cannot be read."""
    try:
        found = json.loads(Path(state, _RECORD).read_bytes())
        return {
            path: SettingsRecord(
                one["after"],
                None if one["origin"] is None else one["origin"].encode(),
                SettingsChange(**one["change"]),
            )
            for path, one in found["files"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # Then `--remove` takes out what is known as ours, and leaves the rest.
        return {}


def setup_notes(
    record: Mapping[str, SettingsRecord], set_up: Iterable[tuple[str, str, str]]
) -> dict[str, bytes]:
    """Return the notes for the state folder about files and folders that were set up, by their names."""
    files = {
        path: {
            "after": one.after,
            "origin": None if one.origin is None else one.origin.decode(),
            "change": asdict(one.change),
        }
        for path, one in record.items()
    }
    kept = json.dumps({"files": files}, ensure_ascii=False, indent=1).encode()
    return {_RECORD: kept, SET_UP_FILE: set_up_bytes(set_up)}
