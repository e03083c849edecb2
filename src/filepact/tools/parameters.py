"""Parameters of a tool: read from its signature, checked, and refused in words.

One signature gives the schema that agents see, the check of what they send, and the sentences that
tell them what was wrong.  What is plainly right is taken as it is.  Of anything else pydantic, which is
loaded only then, makes what it can, or says why not.
"""

from __future__ import annotations

import json
import typing
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType, NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from filepact.errors import InvalidParamsError
from filepact.values import asdict, dataclass, fields, is_dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

__all__ = ["TEXT_LIMIT", "ParameterName", "ToolParameters", "about", "expected"]

TEXT_LIMIT = 10_000_000
"""Most bytes, as UTF-8, of one text that is sent."""

_NUMBER_LIMIT = 2**53 - 1  # beyond it JSON programs disagree about which number was sent
_SHOWN = 40
_TOLD = 3
_HUMP = late_regex("(?<=[a-z0-9])[A-Z]")

_FOREIGN: dict[str, tuple[str, ...]] = {
    name: meant
    for names, meant in (
        (
            "absolutepath file filename filepath relativepath target targetfile uri",
            ("path", "filePath"),
        ),
        ("basepath cwd dir dirpath folder root searchpath workdir", ("directory", "path")),
        ("directory directorypath", ("path",)),
        ("path", ("directory",)),
        ("find oldcode oldcontent oldstr oldtext original search searchtext", ("old_string",)),
        (
            "newcode newcontent newstr newtext replace replacement replacewith updated",
            ("new_string",),
        ),
        ("all allowmultiple global replaceglobal", ("replace_all",)),
        ("expression globpattern q query regex regexp searchpattern searchterm", ("pattern",)),
        ("filepattern filter include includepattern", ("glob", "pattern")),
        ("body contents data filecontent filetext newfilecontent text", ("content",)),
        ("changes diff patchtext unifieddiff", ("patch",)),
        ("count head headlimit limit linecount maxlines numlines", ("lines", "maxResults", "take")),
        ("from fromline line lineoffset offset skip start startline", ("offset", "skip")),
        ("level levels maxdepth", ("depth",)),
        ("beforecontext aftercontext contextlines", ("context",)),
        ("createparents makedirs mkdir mkdirs parents", ("createDirs",)),
        ("checkonly dry preview simulate", ("dry_run",)),
        ("apply applychange commit confirm write", ("applyChanges",)),
        ("allowcreate create createfile createifnotexists", ("createIfMissing",)),
        ("force", ("forceSync",)),
        ("severity severities", ("minSeverity",)),
        ("timeout timeoutms wait", ("waitSeconds",)),
        ("operations replacements", ("edits",)),
    )
    for name in names.split()
}
"""What other programs call our parameters; told to the sender, never guessed silently."""


@dataclass(frozen=True, slots=True)
class _Options:
    """The purpose of a parameter, and its bounds.

    Attributes:
        empty: Whether an empty text says something, where the parameter may be left out.
    """

    description: str = ""
    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    empty: bool = False


about = _Options
"""Marks a parameter with what agents are told of it."""


@dataclass(frozen=True, slots=True)
class ParameterName:
    """Marks a parameter that is documented under another name than Python's.

    Attributes:
        documented: The name in the schema and in every message.
        aliases: Further names that are accepted; the Python name always is.
    """

    documented: str
    aliases: tuple[str, ...] = ()


class ToolParameters:
    """The parameters of one tool, without its port.

    Args:
        function: A plain function; its first parameter is the port and stays out.

    Raises:
        TypeError: A parameter has no description, or two share a name.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.tool = function.__name__
        parameters = dict(list(signature(function).items())[1:])
        hints = _hints(function, list(parameters))
        self._documented: dict[str, str] = {}
        self._accepted: dict[str, str] = {}
        wanted: dict[str, Any] = {}
        for name, default in parameters.items():
            hint = hints[name]
            alias = next((m for m in _metadata(hint) if isinstance(m, ParameterName)), None)
            documented = alias.documented if alias else name
            self._documented[name] = documented
            for spelt in (documented, name, *(alias.aliases if alias else ())):
                for twin in _twins(spelt):
                    if self._accepted.setdefault(twin, name) != name:
                        raise TypeError(f"{self.tool}: two parameters are called {twin}")
            wanted[name] = (hint, default)
        self.required = frozenset(name for name, (_, default) in wanted.items() if default is ...)
        self._fields = wanted
        self._defaults = {
            name: default for name, (_, default) in wanted.items() if default is not ...
        }
        self._shapes = {name: _shape_of(hint) for name, hint in hints.items()}
        self._lists = frozenset(name for name, one in self._shapes.items() if one.kind is list)
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                self._documented[name]: _described(shape, wanted[name][1])
                for name, shape in self._shapes.items()
            },
        }
        if self.required:
            self.schema["required"] = [
                documented for name, documented in self._documented.items() if name in self.required
            ]
        self.schema["additionalProperties"] = False
        self._folded = self._lists | {
            name
            for name, documented in self._documented.items()
            if "enum" in self.schema["properties"][documented]
        }
        for name, described in self.schema["properties"].items():
            if not described.get("description"):
                raise TypeError(f"{self.tool}: parameter {name} has no description")

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model that pydantic makes of the signature, for what is not plainly right."""
        import pydantic  # noqa: PLC0415 - takes longer to load than all the tools

        def standard(hint: Any) -> Any:
            if typing.get_origin(hint) is Annotated:
                marks = [
                    pydantic.Field(
                        **{
                            name: said
                            for name, said in asdict(one).items()
                            if said is not None and name != "empty"
                        }
                    )
                    if isinstance(one, _Options)
                    else one
                    for one in hint.__metadata__
                ]
                return Annotated[standard(hint.__origin__), *marks]
            if is_dataclass(hint):
                own: Any = {
                    one.name: (_hint_in(hint, one), _or_required(one)) for one in fields(hint)
                }
                strict = pydantic.ConfigDict(extra="forbid")
                return pydantic.create_model("Part", __config__=strict, **own)
            if parts := typing.get_args(hint):
                if typing.get_origin(hint) is list:
                    return list[standard(parts[0])]  # type: ignore[misc]  # made while running
                if NoneType in parts:
                    return standard(parts[0]) | None
            return hint

        config = pydantic.ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)
        known: dict[str, Any] = {
            name: (standard(hint), default) for name, (hint, default) in self._fields.items()
        }
        made: type[BaseModel] = pydantic.create_model(self.tool, __config__=config, **known)
        return made

    def _plainly(self, known: Mapping[str, object]) -> dict[str, Any] | None:
        """The arguments where nothing has to be converted or refused; else None."""
        if not self.required <= known.keys():
            return None
        values = dict(self._defaults)
        try:
            for name, value in known.items():
                values[name] = _taken(self._shapes[name], value)
        except ValueError:
            return None
        return values

    def check(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert the arguments that were sent to those of the function.

        Texts that are a number, true, false, a list or one item of a list are taken as that where one is
        wanted.  What says nothing counts as not sent where a parameter may be left out: some clients send
        every parameter.  Names may be written in camel or snake case, and words to choose from in either
        and with other dashes.

        Raises:
            InvalidParamsError: Something is missing, unknown, of the wrong type or out of range.
        """
        problems: list[str] = []
        known: dict[str, object] = {}
        sent_as: dict[str, str] = {}
        for name, value in arguments.items():
            python_name = self._accepted.get(name)
            if python_name is None:
                # To look for what was meant takes time, and only the first few are told.
                if len(problems) < _TOLD:
                    problems.append(_unknown(name, list(self._documented.values())))
            elif python_name in sent_as:
                problems.append(f"{sent_as[python_name]} and {name} are the same parameter")
            else:
                sent_as[python_name] = name
                folded = python_name in self._folded and value not in _EMPTY
                sent = self._unfold(python_name, value) if folded else value
                if python_name in self.required or self._shapes[python_name].says(sent):
                    known[python_name] = sent
        if not problems and (plain := self._plainly(known)) is not None:
            return plain
        from pydantic import ValidationError  # noqa: PLC0415 - rarely needed

        values: dict[str, Any] = {}
        try:
            checked = self.model.model_validate(known)
            values = {
                name: _as_values(shape, getattr(checked, name))
                for name, shape in self._shapes.items()
            }
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            # A wrong name explains the missing one that it stands for, so it comes first.
            found.sort(key=lambda detail: detail["type"] != "extra_forbidden")
            problems += map(self._problem, found)
        for name in known if values else ():
            problems += _out_of_bounds(values[name], self._documented[name])
        if problems:
            told = list(dict.fromkeys(problems))[:_TOLD]
            raise InvalidParamsError("; ".join(told), hint=self.usage(), tool=self.tool)
        return values

    def usage(self) -> str:
        """One sentence that names every parameter."""
        if not self._documented:
            return f"{self.tool} takes no parameters."
        names = ", ".join(
            f"{documented} (required)" if name in self.required else documented
            for name, documented in self._documented.items()
        )
        return f"{self.tool} takes {names}."

    def _unfold(self, name: str, value: object) -> object:
        """Convert a word in another spelling, or a list sent as JSON text, as some clients do."""
        schema = self.schema["properties"][self._documented[name]]
        if isinstance(value, str) and "enum" in schema and value not in schema["enum"]:
            words = {_squeezed(str(word)): word for word in schema["enum"]}
            return words.get(_squeezed(value), value)
        if name not in self._lists:
            return value
        parts = typing.cast("_Shape", self._shapes[name].item).parts
        if isinstance(value, str):
            found = _from_json(value)
            # A text that says no list is one item, such as a path.
            value = found if isinstance(found, list | dict | None) else value if parts else [value]
        if value is None or isinstance(value, dict):
            value = [value]  # One item stands for a list of it.
        if not isinstance(value, list):
            return value
        if parts:
            items = (_from_json(item) if isinstance(item, str) else item for item in value)
            value = [_renamed(item, parts) for item in items]
        return [item for item in value if item not in _EMPTY]

    def _problem(self, detail: ErrorDetails) -> str:
        """One complaint of the model as a sentence for the sender."""
        where, schema = "", self.schema
        siblings: list[str] = []
        for step in detail["loc"]:
            if isinstance(step, int):
                where, schema = f"{where}[{step}]", schema.get("items", {})
                continue
            documented = step if where else self._documented.get(step, step)
            siblings = list(schema.get("properties", {}))
            schema = schema.get("properties", {}).get(documented, {})
            where = f"{where}.{documented}" if where else documented
        if detail["type"] == "missing":
            return f"{where} is missing"
        if detail["type"] == "extra_forbidden":
            return _unknown(where, siblings)
        if detail["type"] == "string_unicode":
            return f"{where}: {_half_in(detail['input'])}"
        return f"{where}: {_shown(detail['input'])} is not accepted, send {expected(schema)}"


def signature(function: Callable[..., object]) -> dict[str, Any]:
    """The parameters of a plain function with their defaults, ``...`` for those that have none."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = dict.fromkeys(names, ...)
    given = function.__defaults__ or ()
    found.update(zip(names[code.co_argcount - len(given) : code.co_argcount], given, strict=True))
    found.update(function.__kwdefaults__ or {})
    return found


@dataclass(frozen=True, slots=True)
class _Shape:
    """The type of a parameter's value.

    Attributes:
        kind: Its type; of an object the class of ours that it becomes.
        words: Those to choose from; empty for any.
        item: Of a list.
        parts: Of an object, each with its default or ``...``.
    """

    kind: Any
    field: _Options
    words: tuple[str, ...] = ()
    item: _Shape | None = None
    parts: Mapping[str, tuple[_Shape, Any]] = MappingProxyType({})

    def says(self, value: object) -> bool:
        """Whether something is meant by a value, or only that nothing was to be sent."""
        if value in _EMPTY:
            return value == "" and self.field.empty
        if self.kind in (int, float, bool):
            return value not in _SPELT and (value != 0 or (self.field.ge or 0) <= 0)
        if self.words or self.item:
            return value != 0 and value not in _SPELT
        return value not in _SPELT or len(str(value)) >= (self.field.min_length or 0)


_BARE = _Options()
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}


def _shape_of(hint: Any) -> _Shape:
    field = next((mark for mark in _metadata(hint) if isinstance(mark, _Options)), _BARE)
    if typing.get_origin(hint) is Annotated:
        hint = hint.__origin__
    parts = typing.get_args(hint)
    if NoneType in parts:
        (hint,) = (part for part in parts if part is not NoneType)
        parts = typing.get_args(hint)
    kind = typing.get_origin(hint)
    if kind is Literal:
        return _Shape(str, field, words=parts)
    if kind is list:
        return _Shape(list, field, item=_shape_of(parts[0]))
    if is_dataclass(hint):
        known = {
            one.name: (_shape_of(_hint_in(hint, one)), _or_required(one)) for one in fields(hint)
        }
        return _Shape(hint, field, parts=known)
    if hint not in _NAMES:
        raise TypeError(f"{hint} is no type of a parameter")
    return _Shape(hint, field)


def _hint_in(cls: Any, one: Any) -> Any:
    return typing.get_type_hints(cls, include_extras=True)[one.name]


def _or_required(one: Any) -> Any:
    return one.default if one.default is None or isinstance(one.default, str | int) else ...


def _described(shape: _Shape, default: Any) -> dict[str, Any]:
    """The compact schema of a parameter."""
    field = shape.field
    described: dict[str, Any] = {"type": _NAMES.get(shape.kind, "object")}
    if field.description:
        described["description"] = field.description
    if shape.words:
        described["enum"] = list(shape.words)
    if default is not ... and default is not None:
        described["default"] = default
    sized = "Items" if shape.kind is list else "Length"
    bounds = {
        "minimum": field.ge,
        "maximum": field.le,
        f"min{sized}": field.min_length,
        f"max{sized}": field.max_length,
    }
    described |= {name: bound for name, bound in bounds.items() if bound is not None}
    if shape.item is not None:
        described["items"] = _described(shape.item, ...)
    if shape.parts:
        described["properties"] = {
            name: _described(part, default) for name, (part, default) in shape.parts.items()
        }
        required = [name for name, (_, default) in shape.parts.items() if default is ...]
        if required:
            described["required"] = required
        described["additionalProperties"] = False
    return described


def _taken(shape: _Shape, value: Any) -> Any:
    """A value that is exactly what is wanted.

    Raises:
        ValueError: It is not; pydantic may still make something of it.
    """
    field, kind = shape.field, shape.kind
    if shape.parts:
        if type(value) is not dict or not value.keys() <= shape.parts.keys():
            raise ValueError
        if any(default is ... and name not in value for name, (_, default) in shape.parts.items()):
            raise ValueError
        return kind(**{name: _taken(shape.parts[name][0], said) for name, said in value.items()})
    if type(value) is not kind:
        raise ValueError
    if kind is str or kind is list:
        size = len(value)
        if size < (field.min_length or 0) or size > (field.max_length or size):
            raise ValueError
        if shape.item is not None:
            return [_taken(shape.item, one) for one in value]
        if (shape.words and value not in shape.words) or _bytes_of(value) > TEXT_LIMIT:
            raise ValueError
    elif kind is not bool:
        least, most = field.ge, field.le
        if (least is not None and value < least) or (most is not None and value > most):
            raise ValueError
        if not -_NUMBER_LIMIT <= value <= _NUMBER_LIMIT:
            raise ValueError
    return value


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _as_values(shape: _Shape, checked: Any) -> Any:
    """The validated values, with our own types in place of pydantic's objects."""
    if shape.item is not None and shape.item.parts and checked is not None:
        return [shape.item.kind(**dict(one)) for one in checked]
    return checked


def _hints(function: Callable[..., object], names: Sequence[str]) -> dict[str, Any]:
    """The annotations of some parameters; that of the port may be for type checkers only."""
    wanted = {name: function.__annotations__[name] for name in names}
    return typing.get_type_hints(
        SimpleNamespace(__annotations__=wanted),
        globalns=function.__globals__,
        include_extras=True,
    )


def _metadata(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
"""What clients send that cannot leave a parameter out."""
_SPELT: Final = ("null", "None", "undefined")  # the same, where it is no text that can be meant


def _from_json(text: str) -> object:
    """The value that a text says in JSON; the text, where it says none."""
    if len(text) <= TEXT_LIMIT:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return None if text in _SPELT else text


def _renamed(item: object, parts: Mapping[str, tuple[_Shape, Any]]) -> object:
    """An object with known names in place of their twins, if none collide; None for a form left blank."""
    if not isinstance(item, dict):
        return item
    known = {twin: part for part in parts for twin in _twins(part)}
    renamed = {known.get(name, name): value for name, value in item.items()}
    if len(renamed) < len(item):
        return item
    if all(said in _EMPTY or said is False for said in renamed.values()):
        return None
    optional = {name: shape for name, (shape, default) in parts.items() if default is not ...}
    return {k: said for k, said in renamed.items() if k not in optional or optional[k].says(said)}


def _twins(name: str) -> set[str]:
    """A name as it is, in snake case and in camel case; some models write every name in one way."""
    snake = _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)
    first, *others = snake.split("_")
    return {name, snake, first + "".join(other.capitalize() for other in others)}


def _unknown(name: str, known: Sequence[str]) -> str:
    """Say that a name is unknown, and the name that was probably meant."""
    head, dot, last = name.rpartition(".")
    meant = next((m for m in _FOREIGN.get(_squeezed(last), ()) if m in known), None)
    if meant is None:
        by_squeezed = {_squeezed(candidate): candidate for candidate in known}
        import difflib  # noqa: PLC0415 - only for what was mistyped

        close = difflib.get_close_matches(_squeezed(last), by_squeezed, n=1, cutoff=0.75)
        meant = by_squeezed[close[0]] if close else None
    if meant == "offset":  # others count lines from 1
        meant = "offset, which counts from 0"
    name = head + dot + (last if len(last) <= _SHOWN else f"{last[:_SHOWN]}...")
    shown = name.encode("utf-8", "backslashreplace").decode()
    return f"unknown parameter {shown}" + (f", did you mean {meant}?" if meant else "")


def _squeezed(name: str) -> str:
    return name[:200].lower().replace("_", "").replace("-", "")


def _shown(value: object) -> str:
    """A value that was sent, shortened for a message."""
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) <= _NUMBER_LIMIT else "a number that large"
    return "a list" if isinstance(value, list) else "an object"


def _half_in(text: str) -> str:
    """Say where a text holds half of a surrogate pair: a character cut in two, or a byte that is none."""
    at = next(at for at, char in enumerate(text) if "\ud800" <= char <= "\udfff")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    said = f"line {line}, column {column} holds half of a surrogate pair, \\u{ord(text[at]):04x}"
    return f"{said}, which is no text; send the whole character there, or leave the half out"


def _out_of_bounds(value: object, where: str) -> Iterator[str]:
    """Violations of the limits that hold for every parameter."""
    if isinstance(value, str):
        try:
            size = _bytes_of(value)
        except UnicodeEncodeError:
            yield f"{where}: {_half_in(value)}"
            return
        if size > TEXT_LIMIT:
            yield f"{where}: {size:,} bytes are too many, send at most {TEXT_LIMIT:,}"
    elif isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        yield f"{where}: a number that large is not accepted"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _out_of_bounds(item, f"{where}[{index}]")
    elif is_dataclass(value):
        for one in fields(value):
            yield from _out_of_bounds(getattr(value, one.name), f"{where}.{one.name}")


def expected(schema: Mapping[str, Any]) -> str:
    """The values that a compact schema allows, as the end of a sentence that begins with "send"."""
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    match schema.get("type"):
        case "integer" | "number" as kind:
            number = "a whole number" if kind == "integer" else "a number"
            return number + _between(schema.get("minimum"), schema.get("maximum"))
        case "boolean":
            return "true or false"
        case "string" | "array" as kind:
            noun, sized = ("a text", "Length") if kind == "string" else ("a list", "Items")
            least, most = schema.get(f"min{sized}"), schema.get(f"max{sized}")
            if (kind, least, most) == ("string", 1, None):
                return "a text that is not empty"
            of_length = _between(least, most)
            return noun + (f" of a length{of_length}" if of_length else "")
        case _:
            return f"an object with {', '.join(schema['properties'])}"


def _between(least: float | None, most: float | None) -> str:
    if least is not None:
        return f" of at least {least}" if most is None else f" from {least} to {most}"
    return f" of at most {most}" if most is not None else ""
