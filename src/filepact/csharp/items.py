"""The items of a project, when all of its properties are known: sources, usings, references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.csharp.expressions import UnknownExpressionError
from filepact.csharp.globs import split_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from filepact.csharp.evaluation import Evaluation, Pending

__all__ = ["MAX_ENTRIES", "Item", "read_items"]

MAX_ENTRIES: Final = 100_000
"""Most entries of items that are taken of one project."""


@dataclass(frozen=True, slots=True)
class Item:
    """What one element says about items.

    Attributes:
        kind: The items' name, in lower case, such as ``compile``.
        includes: The list that comes; may be empty.
        excludes: What of it does not come.
        removes: The list that goes.
        updates: The list of which only something is said.
        metadata: What is said of each, by names in lower case.
        path: The file in which it stands.
        line: The line there.
    """

    kind: str
    includes: tuple[str, ...]
    excludes: tuple[str, ...]
    removes: tuple[str, ...]
    updates: tuple[str, ...]
    metadata: Mapping[str, str]
    path: str
    line: int


def read_items(evaluation: Evaluation, kinds: frozenset[str]) -> Iterator[Item]:
    """The items of some kinds that hold, in order.

    What cannot be evaluated is said, and left out.

    Args:
        evaluation: The project, worked through to its end.
        kinds: Their names, in lower case.
    """
    entries = 0
    # A group's condition is asked for each of its items, and no property changes any more.
    known: dict[tuple[str, str], bool] = {}
    for pending in evaluation.pending:
        kind, line = pending.element.name.lower(), pending.element.line
        if kind not in kinds:
            continue
        evaluation.enter(pending.path)
        try:
            if not _hold(evaluation, pending, known):
                continue
            item = _item(evaluation, kind, pending)
        except UnknownExpressionError as error:
            evaluation.say(f"not evaluated here: {error}", pending.path, line)
            continue
        entries += sum(map(len, (item.includes, item.excludes, item.removes)))
        if entries > MAX_ENTRIES:
            evaluation.say(f"more than {MAX_ENTRIES:,} entries are not read", pending.path, line)
            return
        yield item


def _hold(evaluation: Evaluation, pending: Pending, known: dict[tuple[str, str], bool]) -> bool:
    for condition in (*pending.conditions, pending.element.get("Condition")):
        key = (condition, pending.path)
        if key not in known:
            known[key] = evaluation.holds(condition)
        if not known[key]:
            return False
    return True


def _item(evaluation: Evaluation, kind: str, pending: Pending) -> Item:
    element, expand = pending.element, evaluation.properties.expand

    def entries(attribute: str) -> tuple[str, ...]:
        found = split_list(expand(element.get(attribute)))
        for entry in found:
            if "@(" in entry or "%(" in entry:
                raise UnknownExpressionError(entry[:80])
        return tuple(found)

    includes, excludes = entries("Include"), entries("Exclude")
    removes, updates = entries("Remove"), entries("Update")
    metadata = {key.lower(): value for key, value in element.attributes.items()}
    metadata |= {child.name.lower(): child.text.strip() for child in element.children}
    for key, value in metadata.items():
        try:
            metadata[key] = expand(value)
        except UnknownExpressionError:
            metadata[key] = value
    return Item(kind, includes, excludes, removes, updates, metadata, pending.path, element.line)
