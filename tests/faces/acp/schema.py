"""Messages of the Agent Client Protocol held against its published JSON schema.

``check`` looks at one message; ``Talk`` follows a conversation, so that answers are held against the
method that was asked.  The schema comes with the protocol's own npm package, which is installed on
first use.  Where that cannot be had, only the form of the messages is looked at, except in CI.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from jsonschema import Draft202012Validator

from tests.node_programs import NodeError, install

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Direction", "Talk", "check", "check_next", "problems", "published"]

Direction = Literal["client", "agent"]
"""Who sent a message."""

Message = dict[str, Any]
Types = dict[tuple[str, str], str]
"""The name of a type by the side that serves a method, the method with what it is of it."""


def check(message: Message, direction: Direction, asked: str = "") -> None:
    """Fail unless a message is one that the protocol's schema allows.

    Args:
        message: As it goes over the wire, parsed.
        direction: Who sent it.
        asked: For an answer the method that was asked, if it is known.
    """
    found = problems(message, direction, asked)
    assert not found, "\n".join((json.dumps(message)[:2_000], *found))


class Talk:
    """A conversation, whose every message is checked."""

    def __init__(self) -> None:
        self._asked: dict[tuple[Direction, Any], str] = {}
        self.count = 0

    def see(self, message: Message, direction: Direction) -> None:
        """Check the next message of the conversation, in either direction."""
        other: Direction = "agent" if direction == "client" else "client"
        self.asked(message, direction)
        asked = "" if "method" in message else self._asked.pop((other, message.get("id")), "")
        check(message, direction, asked)
        self.count += 1

    def asked(self, message: Message, direction: Direction) -> None:
        """Know what a request asks for, whatever else is in it."""
        if "method" in message and "id" in message:
            self._asked[direction, message["id"]] = message["method"]


def problems(message: Message, direction: Direction, asked: str = "") -> list[str]:
    """What is wrong with a message; arguments as for ``check``."""
    found = _envelope(message)
    if found or not _types("stable"):
        return found
    other: Direction = "agent" if direction == "client" else "client"
    if "method" in message:
        kind = "Request" if "id" in message else "Notification"
        return _against(kind, other, message["method"], message.get("params"))
    if "error" in message:
        return _errors("Error", "stable", message["error"])
    if asked:
        return _against("Response", direction, asked, message["result"])
    if direction == "client" or isinstance(message["result"], dict):
        return []
    return ["a result that is no object"]


def check_next(name: str, value: Any) -> None:
    """Fail unless a value is of this type in the draft of the protocol's version 2."""
    if _schema("next")["$defs"]:
        found = _errors(name, "next", value)
        assert not found, "\n".join((json.dumps(value)[:2_000], *found))


def _envelope(message: Message) -> list[str]:
    found = []
    if message.get("jsonrpc") != "2.0":
        found.append("jsonrpc is not 2.0")
    if sum(name in message for name in ("method", "result", "error")) != 1:
        found.append("not exactly one of method, result and error")
    if "method" in message and not isinstance(message["method"], str):
        found.append("the method is no string")
    if "method" not in message and "id" not in message:
        found.append("an answer without an id")
    if type(message.get("id")) not in (int, str, type(None)):
        found.append("an id that is neither a number nor a string")
    unknown = message.keys() - {"jsonrpc", "id", "method", "params", "result", "error"}
    found += [f"{name} is no part of a message" for name in sorted(unknown)]
    return found


def _against(kind: str, side: Direction, method: str, value: Any) -> list[str]:
    """Hold parameters or a result against the type that the schema has for a method."""
    if method.startswith("_"):
        return []
    for edition in ("stable", "unstable"):
        types = _types(edition)
        for served in (side, "protocol"):
            name = types.get((served, f"{method} {kind}"))
            if name is not None:
                return _errors(name, edition, value)
    return [f"the schema has no {kind.lower()} {method} that the {side} serves"]


def _errors(name: str, edition: str, value: Any) -> list[str]:
    return [
        f"{name}{error.json_path.removeprefix('$')}: {error.message[:500]}"
        for error in _validator(name, edition).iter_errors(value)
    ]


@cache
def _validator(name: str, edition: str) -> Draft202012Validator:
    schema = _schema(edition)
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@cache
def _types(edition: str) -> Types:
    found: Types = {}
    for name, schema in _schema(edition)["$defs"].items():
        method = schema.get("x-method")
        kind = next((k for k in ("Request", "Response", "Notification") if name.endswith(k)), "")
        if method is not None and kind:
            found[schema["x-side"], f"{method} {kind}"] = name
    return found


@cache
def _schema(edition: str) -> Mapping[str, Any]:
    """A published schema; one without types where it cannot be had."""
    name = {"unstable": "schema.unstable.json", "next": "../v2/schema.json"}.get(
        edition, "schema.json"
    )
    try:
        folder = published()
    except NodeError:
        if os.environ.get("CI"):
            raise
        return {"$defs": {}}
    schema: Mapping[str, Any] = json.loads((folder / name).read_bytes())
    return schema


@cache
def published() -> Path:
    """The folder of the published schemas of version 1; that of version 2 lies beside it.

    Raises:
        NodeError: They cannot be had here.
    """
    return install("acp").modules / "@agentclientprotocol" / "sdk" / "schema" / "v1"
