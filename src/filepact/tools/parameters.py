"""Parameters of a tool: read from its signature, checked, and refused in words.

One signature gives the schema that agents see, the model that checks what they send, and the
sentences that tell them what was wrong.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
import typing
from contextlib import suppress
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from filepact.errors import InvalidParamsError
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

__all__ = ["TEXT_LIMIT", "ParameterName", "ToolParameters", "brief", "expected"]

TEXT_LIMIT = 10_000_000
"""Most bytes, as UTF-8, of one text that is sent."""

_NUMBER_LIMIT = 2**53 - 1  # beyond it JSON programs disagree about which number was sent
_SHOWN = 40
_TOLD = 3
_HUMP = re.compile("(?<=[a-z0-9])[A-Z]")

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
        parameters = list(inspect.signature(function).parameters.values())[1:]
        hints = _hints(function, [parameter.name for parameter in parameters])
        self._documented: dict[str, str] = {}
        self._accepted: dict[str, str] = {}
        fields: dict[str, Any] = {}
        for parameter in parameters:
            hint = hints[parameter.name]
            alias = next((m for m in _metadata(hint) if isinstance(m, ParameterName)), None)
            documented = alias.documented if alias else parameter.name
            self._documented[parameter.name] = documented
            for name in (documented, parameter.name, *(alias.aliases if alias else ())):
                for twin in _twins(name):
                    if self._accepted.setdefault(twin, parameter.name) != parameter.name:
                        raise TypeError(f"{self.tool}: two parameters are called {twin}")
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[parameter.name] = (hint, default)
        self.required = frozenset(name for name, (_, default) in fields.items() if default is ...)
        self._lists = frozenset(name for name in fields if _is_list(hints[name]))
        config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)
        self._model: type[BaseModel] = create_model(self.tool, __config__=config, **fields)
        self.schema = compact(self._model.model_json_schema(), rename=self._documented)
        self._folded = self._lists | {
            name
            for name, documented in self._documented.items()
            if "enum" in self.schema["properties"][documented]
        }
        for name, described in self.schema["properties"].items():
            if not described.get("description"):
                raise TypeError(f"{self.tool}: parameter {name} has no description")

    def check(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert the arguments that were sent to those of the function.

        Texts that are a number, true, false or a list are taken as that where one is wanted; null
        stands for "not sent" where a parameter may be left out.  Names may be written in camel or
        snake case, and words to choose from in either and with other dashes.

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
                if value is not None or python_name in self.required:
                    folded = python_name in self._folded
                    known[python_name] = self._unfold(python_name, value) if folded else value
        values: dict[str, Any] = {}
        try:
            checked = self._model.model_validate(known)
            values = {name: getattr(checked, name) for name in self._documented}
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
        """Convert a word in another spelling, or a list sent as JSON text.

        Some clients send every nested value as a text.
        """
        schema = self.schema["properties"][self._documented[name]]
        if isinstance(value, str) and "enum" in schema and value not in schema["enum"]:
            words = {_squeezed(str(word)): word for word in schema["enum"]}
            return words.get(_squeezed(value), value)
        if name not in self._lists:
            return value
        if isinstance(value, str) and len(value) <= TEXT_LIMIT:
            with suppress(ValueError, RecursionError):
                value = json.loads(value)
        if isinstance(value, list):
            names = schema["items"].get("properties", ())
            known = {twin: name for name in names for twin in _twins(name)}
            return [_renamed(item, known) for item in value]
        return value

    def _problem(self, detail: ErrorDetails) -> str:
        """One complaint of the model as a sentence for the sender."""
        where, schema = "", self.schema
        siblings: list[str] = []
        for step in detail["loc"]:
            if "anyOf" in schema:
                break  # what follows names an alternative, not a place
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
            return f"{where}: holds half of a surrogate pair, which is not text"
        return f"{where}: {_shown(detail['input'])} is not accepted, send {expected(schema)}"


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


def _is_list(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        hint = hint.__origin__
    options = [hint, *typing.get_args(hint)] if NoneType in typing.get_args(hint) else [hint]
    return any(typing.get_origin(option) is list for option in options)


def _renamed(item: object, known: Mapping[str, str]) -> object:
    """An object with known names in place of their twins, if none collide."""
    if not isinstance(item, dict):
        return item
    renamed = {known.get(name, name): value for name, value in item.items()}
    return renamed if len(renamed) == len(item) else item


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
        close = difflib.get_close_matches(_squeezed(last), by_squeezed, n=1, cutoff=0.75)
        meant = by_squeezed[close[0]] if close else None
    if meant == "offset":
        # Others count lines from 1.
        meant = "offset, which counts from 0"
    shown = head + dot + (last if len(last) <= _SHOWN else f"{last[:_SHOWN]}...")
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


def _out_of_bounds(value: object, where: str) -> Iterator[str]:
    """Violations of the limits that hold for every parameter."""
    if isinstance(value, str):
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            yield f"{where}: holds half of a surrogate pair, which is not text"
            return
        if size > TEXT_LIMIT:
            yield f"{where}: {size:,} bytes are too many, send at most {TEXT_LIMIT:,}"
    elif isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        yield f"{where}: a number that large is not accepted"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _out_of_bounds(item, f"{where}[{index}]")
    elif isinstance(value, BaseModel):
        for name, item in value:
            yield from _out_of_bounds(item, f"{where}.{name}")


# -- JSON schemas as agents read them --------------------------------------------------------------


_KEPT = (
    "type",
    "description",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def compact(schema: Mapping[str, Any], *, rename: Mapping[str, str]) -> dict[str, Any]:
    """A generated schema without titles, references and the noise of optional values.

    Args:
        schema: The schema of a model, as pydantic makes it.
        rename: Documented names of the model's own fields; those of nested models stay.
    """
    shaped = _compact(schema, schema.get("$defs", {}))
    shaped.pop("description", None)
    shaped["properties"] = {
        rename.get(name, name): described
        for name, described in shaped.get("properties", {}).items()
    }
    if "required" in shaped:
        shaped["required"] = [rename.get(name, name) for name in shaped["required"]]
    return shaped


def _compact(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        named = dict(definitions[schema["$ref"].rpartition("/")[2]])
        # The docstring of a nested model speaks to programmers, not to agents.
        named.pop("description", None)
        schema = {**named, **{name: value for name, value in schema.items() if name != "$ref"}}
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        inner = _compact(options[0], definitions)
        schema = {**inner, **{name: value for name, value in schema.items() if name != "anyOf"}}
    shaped = {
        name: schema[name]
        for name in _KEPT
        if name in schema and not (name == "default" and schema[name] is None)
    }
    if len(options) > 1:
        shaped["anyOf"] = [_compact(option, definitions) for option in options]
    if "items" in schema:
        shaped["items"] = _compact(schema["items"], definitions)
    if shaped.get("type") == "object":
        shaped["properties"] = {
            name: _compact(described, definitions)
            for name, described in schema.get("properties", {}).items()
        }
        if schema.get("required"):
            shaped["required"] = list(schema["required"])
        shaped["additionalProperties"] = False
    return shaped


def brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A compact schema without what goes without saying, for the list that every model is sent.

    That a text is not empty, a number not negative and a flag off unless it is sent nobody has to be
    told, and other names are refused here, in words, or understood.
    """
    shaped = {
        name: value
        for name, value in schema.items()
        if name not in ("additionalProperties", "minLength", "minItems", "maxItems")
        and not (name == "minimum" and value in (0, 1))
        and not (name == "default" and value is False)
    }
    if "properties" in shaped:
        shaped["properties"] = {
            name: brief(described) for name, described in shaped["properties"].items()
        }
    if "items" in shaped:
        shaped["items"] = brief(shaped["items"])
    if "anyOf" in shaped:
        shaped["anyOf"] = [brief(option) for option in shaped["anyOf"]]
    return shaped


def expected(schema: Mapping[str, Any]) -> str:
    """The values that a compact schema allows, as the end of a sentence that begins with "send"."""
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    match schema.get("type"):
        case "integer":
            return "a whole number" + _between(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return "a number" + _between(schema.get("minimum"), schema.get("maximum"))
        case "boolean":
            return "true or false"
        case "string":
            least = schema.get("minLength")
            if least == 1 and "maxLength" not in schema:
                return "a text that is not empty"
            of_length = _between(least, schema.get("maxLength"))
            return "a text" + (f" of a length{of_length}" if of_length else "")
        case "array":
            of_length = _between(schema.get("minItems"), schema.get("maxItems"))
            return "a list" + (f" of a length{of_length}" if of_length else "")
        case "object":
            return f"an object with {', '.join(schema['properties'])}"
        case _:
            return " or ".join(expected(option) for option in schema["anyOf"])


def _between(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    return f" of at most {most}" if most is not None else ""
