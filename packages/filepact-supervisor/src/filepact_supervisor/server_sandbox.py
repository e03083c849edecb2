"""The sandbox that a language server is confined in, as values that one process hands to another."""

from __future__ import annotations

import json
from typing import Any, Final

from filepact.domain.policy import Rule
from filepact.domain.protected import BUILT_IN_RULES, SIGN_RULES
from filepact.values import asdict, dataclass, fields

__all__ = ["ServerSandbox"]


@dataclass(frozen=True, slots=True)
class ServerSandbox:
    """The sandbox that a language server is started in, as values.

    Attributes:
        name: The server's, for the folder of its cache.
        roots: The folders that may be read, absolute.
        programs: Its program and those that it needs, absolute; what belongs to them may be read.
        toolchain: Further folders that may be read; those that are not there are left out.
        rules: What in the roots may not be read: rules, and those that count where none does.
        content: Whether that holds for files with a private key in them, whatever their name.
    """

    name: str
    roots: tuple[str, ...]
    programs: tuple[str, ...]
    toolchain: tuple[str, ...] = ()
    rules: tuple[tuple[Rule, ...], tuple[Rule, ...]] = (BUILT_IN_RULES, ())
    content: bool = True

    def to_json(self) -> str:
        """The form that `from_json` reads; of built-in rules it has the number only."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        return json.dumps(said | {"rules": [list(map(_packed, some)) for some in self.rules]})

    @classmethod
    def from_json(cls, text: str) -> ServerSandbox:
        """The sandbox that another process has put into this form."""
        said = json.loads(text)
        main, rest = (tuple(map(_unpacked, some)) for some in said.pop("rules"))
        lists = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
        return cls(**{**said, **lists}, rules=(main, rest))


_BUILT_IN: Final = (*BUILT_IN_RULES, *SIGN_RULES)


def _packed(rule: Rule) -> int | dict[str, Any]:
    if rule in _BUILT_IN:
        return _BUILT_IN.index(rule)
    return {
        key: sorted(value) if isinstance(value, frozenset) else value
        for key, value in asdict(rule).items()
    }


def _unpacked(packed: int | dict[str, Any]) -> Rule:
    if isinstance(packed, int):
        return _BUILT_IN[packed]
    kinds = {one.name: type(getattr(_BUILT_IN[0], one.name)) for one in fields(Rule)}
    return Rule(
        **{
            key: kinds[key](value) if kinds[key] in (tuple, frozenset) else value
            for key, value in packed.items()
        }
    )
