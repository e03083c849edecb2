"""Values, patterns and loggers: what has to be made for them is not made while modules are loaded.

The package of the standard library compiles six functions for every class when the class is made,
which was a third of the time that a server took to start.  Here a class has its ``__init__`` compiled
when the first instance is made, and all other methods are ordinary functions.  To type checkers, and to
whoever asks the standard library for the fields, these are dataclasses like any other.
"""

from __future__ import annotations

import json
import re
from operator import attrgetter, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import logging
    import threading
    from collections.abc import Callable
    from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace

__all__ = [
    "asdict",
    "before_logging",
    "begun",
    "dataclass",
    "field",
    "fields",
    "is_dataclass",
    "json_writer",
    "late_logger",
    "late_regex",
    "replace",
    "words",
]

_ABSENT: Any = type("_Absent", (), {"__repr__": lambda _: "<absent>"})()
_FIELDS = "__value_fields__"
_GIVEN = "__value_given__"
_FEW = 2
"""Instances that are made without a function for their class; of many there is one, or two."""


class _Pattern:
    """A regular expression that is compiled when it is first asked for anything."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._wanted = source, flags

    def __getattr__(self, name: str) -> Any:
        compiled: Any = re.compile(*self._wanted)
        for known in ("match", "fullmatch", "search", "sub", "finditer", "split", "findall"):
            setattr(self, known, getattr(compiled, known))
        return getattr(compiled, name)


def begun(thread: threading.Thread) -> bool:
    """Begin a thread; whether the system had one left, or the memory that it takes."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def late_regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but that it is compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


_to_prepare: list[Callable[[], None]] = []


def words(text: str) -> frozenset[str]:
    """The words of a text as a set, for tables that are easier to read so."""
    return frozenset(text.split())


def before_logging(prepare: Callable[[], None]) -> None:
    """Have something done when the first late logger has something to say, and before it says it."""
    _to_prepare.append(prepare)


class _Logger:
    """A logger that loads the package when there is something to say."""

    def __init__(self, name: str) -> None:
        self._named = name

    def __getattr__(self, name: str) -> Any:
        import logging  # noqa: PLC0415 - that is the point

        while _to_prepare:
            _to_prepare.pop()()
        return getattr(logging.getLogger(self._named), name)


def late_logger(name: str) -> logging.Logger:
    """As `logging.getLogger`, which takes 5 ms to load, and mostly has nothing to say."""
    return cast("logging.Logger", _Logger(name))


def json_writer(*, ascii_only: bool) -> Callable[[Any], str]:
    """A writer of values as JSON without blanks.

    It keeps the standard library's encoder in C, where there is one: to make it takes as long as to write a record.

    Args:
        ascii_only: Whether other characters are written as escapes.
    """
    plain = json.JSONEncoder(ensure_ascii=ascii_only, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    chunks = make(None, plain.default, text, None, ":", ",", False, False, True)
    return lambda value: "".join(chunks(value, 0))


class _Field:
    """One field: the attributes are those of `dataclasses.Field` that are used here."""

    __slots__ = ("compare", "default", "default_factory", "init", "name", "repr", "type")

    def __init__(
        self, default: Any, default_factory: Any, options: tuple[bool, bool, bool]
    ) -> None:
        self.name, self.type = "", ""
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = options


def _field(
    *,
    default: Any = _ABSENT,
    default_factory: Any = _ABSENT,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - as the standard library calls it
    compare: bool = True,
) -> Any:
    return _Field(default, default_factory, (init, repr, compare))


def _value(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    order: bool = False,
    eq: bool = True,
) -> Any:
    def make(made: type) -> type:
        return _made(made, frozen=frozen, slots=slots, order=order, eq=eq)

    return make if cls is None else make(cls)


def _made(cls: type, *, frozen: bool, slots: bool, order: bool, eq: bool) -> type:
    own = _own_fields(cls)
    known: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        known.update(base.__dict__.get(_FIELDS, {}))
    inherited = tuple(known)
    known.update(own)
    space = dict(cls.__dict__)
    for name, one in own.items():
        space.pop(name, None)
        if not slots and one.default is not _ABSENT:
            space[name] = one.default
    space[_FIELDS] = known
    given = [one.name for one in known.values() if one.init]
    space[_GIVEN] = given, _getter(given)
    space["__dataclass_fields__"] = _StandardFields()
    space.setdefault("__match_args__", tuple(given))
    space.setdefault("__repr__", _repr)
    if frozen:
        space["__setattr__"], space["__delattr__"] = _refuse, _refuse
    if eq:
        _compared(space, frozen=frozen, order=order)
    if slots:
        if frozen and "__getstate__" not in space:
            space["__getstate__"], space["__setstate__"] = _state, _set_state
        space["__slots__"] = tuple(name for name in own if name not in inherited)
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    if "__init__" not in space:
        few = _FEW

        def late(self: Any, /, *args: Any, **named: Any) -> None:
            nonlocal few
            few -= 1
            if few < 0 or not _fill(self, args, named):
                made.__init__ = found = _init(made, frozen=frozen)  # type: ignore[misc]  # that is the point
                found(self, *args, **named)

        late.__name__, late.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
        made.__init__ = late  # type: ignore[misc]  # the same
    return made


def _own_fields(cls: type) -> dict[str, _Field]:
    found: dict[str, _Field] = {}
    for name, spelt in cls.__annotations__.items():
        if "ClassVar" in str(spelt):
            continue
        default = cls.__dict__.get(name, _ABSENT)
        one = default if isinstance(default, _Field) else _field(default=default)
        one.name, one.type = name, spelt
        found[name] = one
    return found


def _compared(space: dict[str, Any], *, frozen: bool, order: bool) -> None:
    key = _getter([one.name for one in space[_FIELDS].values() if one.compare])

    def same(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    explicit = space.get("__hash__") is not None
    if not explicit:
        space["__hash__"] = (lambda self: hash(key(self))) if frozen else None
    space.setdefault("__eq__", same)
    if order:
        space.update((f"__{by.__name__}__", _ordered(by, key)) for by in (lt, le, gt, ge))


def _getter(names: list[str]) -> Callable[[Any], Any]:
    """A function that gets a tuple of attributes."""
    if len(names) > 1:
        return attrgetter(*names)

    # As the standard library: an object is equal to itself, whatever it says.
    def get(one: Any) -> Any:
        return tuple(getattr(one, name) for name in names)

    return get


def _ordered(by: Callable[[Any, Any], Any], key: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        return by(key(self), key(other)) if other.__class__ is self.__class__ else NotImplemented

    return compare


def _fill(self: Any, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Set the fields without a function for it; false, and nothing is set, where that cannot be right."""
    values, given = [], iter(args)
    left = len(args)
    for one in getattr(self, _FIELDS).values():
        if one.init and left:
            left -= 1
            values.append((one.name, next(given)))
            if one.name in named:
                return False
        elif one.init and one.name in named:
            values.append((one.name, named[one.name]))
        elif one.default_factory is not _ABSENT:
            values.append((one.name, one.default_factory()))
        elif one.default is not _ABSENT:
            values.append((one.name, one.default))
        elif one.init:
            return False
    if left or not named.keys() <= {one.name for one in _fields(self) if one.init}:
        return False
    for name, value in values:
        object.__setattr__(self, name, value)
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    return True


def _init(cls: Any, *, frozen: bool) -> Callable[..., None]:
    """The function that sets the fields of one class."""
    names: dict[str, Any] = {"_absent": _ABSENT, "_set": object.__setattr__}
    head, body = ["self"], []
    for name, one in getattr(cls, _FIELDS).items():
        value = name
        if one.default_factory is not _ABSENT:
            names[f"_make_{name}"] = one.default_factory
            value = f"_make_{name}()"
            if one.init:
                head.append(f"{name}=_absent")
                value += f" if {name} is _absent else {name}"
        elif one.default is not _ABSENT:
            names[f"_default_{name}"] = one.default
            if one.init:
                head.append(f"{name}=_default_{name}")
            else:
                value = f"_default_{name}"
        elif one.init:
            head.append(name)
        else:
            continue
        slot: Any = getattr(cls, name, None)
        if not frozen:
            body.append(f"    self.{name} = {value}")
        elif type(slot).__name__ == "member_descriptor":
            names[f"_set_{name}"] = slot.__set__
            body.append(f"    _set_{name}(self, {value})")
        else:
            body.append(f"    _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    text = "\n".join([f"def __init__({', '.join(head)}):", *(body or ["    pass"])])
    # Compiled first: an interrupt in the exec of a text makes Python end by the signal, whatever caught it.
    exec(compile(text, "<string>", "exec"), names)  # noqa: S102 - of names in our own source
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class _StandardFields:
    """The fields as the standard library has them, made when somebody asks."""

    def __get__(self, one: Any, cls: Any = None) -> Any:
        import dataclasses  # noqa: PLC0415 - nobody asks in a server

        def standard(ours: _Field) -> Any:
            options = {"init": ours.init, "repr": ours.repr, "compare": ours.compare}
            if ours.default_factory is not _ABSENT:
                return dataclasses.field(default_factory=ours.default_factory, **options)  # type: ignore[call-overload]  # one of many
            given = dataclasses.MISSING if ours.default is _ABSENT else ours.default
            return dataclasses.field(default=given, **options)  # type: ignore[call-overload]  # the same

        known = getattr(type(one) if cls is None else cls, _FIELDS).values()
        spelt = [(ours.name, ours.type, standard(ours)) for ours in known]
        made: Any = dataclasses.make_dataclass("Fields", spelt)
        return made.__dataclass_fields__


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in _fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(_self: Any, name: str, *_value: Any) -> None:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - it does not come to that

    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in _fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _fields(of: Any) -> tuple[_Field, ...]:
    return tuple(getattr(of, _FIELDS).values())


def _replace(one: Any, /, **changes: Any) -> Any:
    names, get = getattr(one, _GIVEN)
    return one.__class__(**(dict(zip(names, get(one), strict=True)) | changes))


def _is_value(one: Any) -> bool:
    return hasattr(one, _FIELDS)


def _asdict(one: Any) -> dict[str, Any]:
    return dict(_plain(one))


def _plain(one: Any) -> Any:
    if hasattr(one, _FIELDS) and not isinstance(one, type):
        return {field_.name: _plain(getattr(one, field_.name)) for field_ in _fields(one)}
    if isinstance(one, list | tuple):
        return type(one)(map(_plain, one))
    if isinstance(one, dict):
        return {_plain(key): _plain(value) for key, value in one.items()}
    return one


if not TYPE_CHECKING:
    asdict, dataclass, field = _asdict, _value, _field
    fields, is_dataclass, replace = _fields, _is_value, _replace
