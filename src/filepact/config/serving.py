"""The settings of the gateway: the tables `serve` and `realms`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.config.problems import refusal
from filepact.values import dataclass, field, late_regex

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AccessMode",
    "CallLimits",
    "GatewaySettings",
    "Level",
    "RealmAccess",
    "Tier",
    "read_serving",
]

AccessMode = Literal["auto", "review", "read-only"]
Level = Literal["safe", "moderate", "dangerous"]
Tier = Literal["essential", "standard", "full"]

_NUMBERS: Final[dict[str, tuple[float, float]]] = {
    "workers": (1, 64),
    "megabytes": (1, 64),
    "threads": (1, 256),
    "drain": (1, 3_600),
    "patience": (1, 3_600),
    "session_hours": (1, 720),
    "session_calls": (1, 1_000_000),
    "user_calls": (1, 1_000_000),
    "session_at_once": (1, 1_000),
    "user_at_once": (1, 10_000),
    "user_megabytes": (1, 100_000),
}
_LISTS: Final = ("hosts", "origins")
_REALM: Final = late_regex(r"[a-z0-9][a-z0-9_-]{0,62}")
_ORIGIN: Final = late_regex(r"https?://[^/?#@\s]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one session, and one user with all sessions, may ask for.

    Attributes:
        session_calls: Calls of a session within a minute.
        user_calls: Calls of a user within a minute.
        session_at_once: Calls of a session in flight.
        user_at_once: Calls of a user in flight.
        user_megabytes: Millions of bytes that a user may send within a minute.
    """

    session_calls: int = 600
    user_calls: int = 1_200
    session_at_once: int = 8
    user_at_once: int = 32
    user_megabytes: int = 64


@dataclass(frozen=True, slots=True)
class RealmAccess:
    """How somebody may use a workspace.

    Attributes:
        mode: Whether changes are done, wait for a person, or are not to be had.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
    """

    mode: AccessMode = "auto"
    tier: Tier = "full"
    max_level: Level = "dangerous"


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The settings of `filepact serve`.

    Attributes:
        hosts: The names by which clients reach it, with the port where that is not the usual one.
        origins: Web pages that may ask, as schemes and hosts.
        workers: How many processes serve.
        megabytes: Millions of bytes that a request may have.
        threads: Most calls that a worker carries out at once.
        drain: Seconds that calls in flight have to finish when it is ended.
        patience: Seconds that a client may take to send a request, and to take an answer.
        session_hours: Hours for which a session lasts.
        session_calls: As of `CallLimits`, as the next four.
        realms: The folders of workspaces, by the name that stands in their address.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 1
    megabytes: int = 8
    threads: int = 16
    drain: float = 30.0
    patience: float = 30.0
    session_hours: float = 24.0
    session_calls: int = 600
    user_calls: int = 1_200
    session_at_once: int = 8
    user_at_once: int = 32
    user_megabytes: int = 64
    realms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def limits(self) -> CallLimits:
        """What may be asked for."""
        return CallLimits(
            self.session_calls,
            self.user_calls,
            self.session_at_once,
            self.user_at_once,
            self.user_megabytes,
        )


def read_serving(found: Mapping[str, Any], text: str, name: str) -> GatewaySettings:
    """Read the tables about the gateway.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.

    Raises:
        InvalidParamsError: A key or a value in them is not one that is known.
    """
    return _Reader(text, name).read(found.get("serve", {}), found.get("realms", {}))


class _Reader:
    """Refuses what is wrong in one file."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def read(self, table: Any, realms: Any) -> GatewaySettings:
        chosen = dict(self._table(table, ("serve",), (*_NUMBERS, *_LISTS)))
        self._check_numbers(chosen, ("serve",), _NUMBERS)
        for key in _LISTS:
            chosen[key] = self._texts(chosen.get(key, []), ("serve", key))
        for one in chosen["origins"]:
            if not _ORIGIN.fullmatch(one):
                raise self._wrong(("serve", "origins"), f"{one!r} is not scheme://host[:port]")
        return GatewaySettings(realms=self._realms(realms), **chosen)

    def _realms(self, table: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(table, dict):
            raise self._wrong(("realms",), "has to be a table")
        found: dict[str, tuple[str, ...]] = {}
        for realm, value in table.items():
            path = ("realms", realm)
            if not _REALM.fullmatch(realm):
                raise self._wrong(path, "a name has small letters, digits, - and _")
            chosen = self._table(value, path, ("roots",))
            roots = self._texts(chosen.get("roots"), (*path, "roots"))
            if not roots or not all(one.startswith("/") for one in roots):
                said = "has to be a list of absolute paths, and not empty"
                raise self._wrong((*path, "roots"), said)
            found[realm] = roots
        return found

    def _table(self, table: Any, path: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self._wrong(path, "has to be a table")
        for key in table:
            if key not in known:
                said = f"there is no such key; known are {', '.join(known)}"
                raise self._wrong((*path, key), said)
        return table

    def _texts(self, value: Any, path: tuple[str, ...]) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self._wrong(path, "has to be a list of texts")
        return tuple(value)

    def _check_numbers(
        self,
        table: Mapping[str, Any],
        path: tuple[str, ...],
        known: Mapping[str, tuple[float, float]],
    ) -> None:
        for key, (least, most) in known.items():
            value = table.get(key, least)
            whole = key not in ("drain", "patience", "session_hours")
            kinds = (int,) if whole else (int, float)
            if type(value) not in kinds or not least <= value <= most:
                unit = "whole number" if whole else "number"
                said = f"has to be a {unit} from {least:g} to {most:g}"
                raise self._wrong((*path, key), said)

    def _wrong(self, path: tuple[str, ...], said: str) -> Exception:
        return refusal(self._text, self._name, path, said)
