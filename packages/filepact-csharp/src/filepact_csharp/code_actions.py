"""What the compiler itself knows to do about lines of a file: usings that are missing, and usings too many."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact_csharp.compiler import Compiler

__all__ = ["UNUSED", "offered"]

UNUSED: Final = "Remove unused usings"
_MISSING: Final = frozenset({"CS0246", "CS0103"})
_NO_MEMBER: Final = "CS1061"
_NOT_NEEDED: Final = "CS8019"
_MOST: Final = 8
_NOT_MEANT: Final = ("Internal", "System.Private")
"""Namespaces of the runtime itself, whose libraries stand in for those that a build refers to."""

Edit = tuple[int, int, str]
"""From where to where, in units of UTF-16, and what comes there."""


def offered(
    compiler: Compiler, path: str, start: int, end: int
) -> Iterator[tuple[str, str, list[Edit]]]:
    """The title and kind of each action, and its edits of the file; of several projects, as the first has it.

    Args:
        compiler: All projects.
        path: The file.
        start: Where the lines begin, in units of UTF-16.
        end: Where they end.
    """
    for compilation, trees in compiler.sources(path):
        certain = not compiler.caveats(path).approximate
        yield from _offered(compilation, trees[path], start, end, certain=certain)
        return


def _offered(
    compilation: Any, tree: Any, start: int, end: int, *, certain: bool
) -> Iterator[tuple[str, str, list[Edit]]]:
    root, model = tree.GetRoot(), compilation.GetSemanticModel(tree, False)
    usings = list(root.Usings)
    found = [(str(one.Id), one.Location.SourceSpan) for one in model.GetDiagnostics()]
    too_many = {span.Start for code, span in found if code == _NOT_NEEDED}
    if certain and (gone := [one for one in usings if one.SpanStart in too_many]):
        edits = [(one.SpanStart, one.FullSpan.End, "") for one in gone]
        yield UNUSED, "source.organizeImports", edits
    missing = [
        (code, span)
        for code, span in found
        if start <= span.Start < max(end, start + 1) and (code in _MISSING or code == _NO_MEMBER)
    ]
    if not missing:
        return
    if any(one.ContainsDirectives for one in usings) or (not usings and root.ContainsDirectives):
        return  # what would be added might count in some builds only
    at = usings[-1].FullSpan.End if usings else 0
    line = "\r\n" if "\r\n" in str(tree) else "\n"
    names: dict[str, None] = {}
    spaces = list(_namespaces(compilation))
    for code, span in missing:
        token = root.FindToken(span.Start, False)
        if code in _MISSING:
            names |= dict.fromkeys(_with_type(compilation, spaces, str(token.ValueText)))
        else:
            names |= dict.fromkeys(_with_method(compilation, spaces, model, token))
    names = {one: None for one in names if not one.startswith(_NOT_MEANT)}
    for name in sorted(names, key=lambda one: (not one.startswith("System"), one))[:_MOST]:
        yield f"using {name};", "quickfix", [(at, at, f"using {name};{line}")]


def _namespaces(compilation: Any) -> Iterator[Any]:
    waiting = [compilation.GlobalNamespace]
    while waiting:
        one = waiting.pop()
        inner = list(one.GetNamespaceMembers())
        yield from inner
        waiting += inner


def _with_type(compilation: Any, spaces: list[Any], name: str) -> Iterator[str]:
    """The namespaces with a type of a name that can be used here."""
    for space in spaces:
        for each in (name, f"{name}Attribute"):
            types = space.GetTypeMembers(each)
            if any(_can_be_used(compilation, one) for one in types):
                yield str(space.ToDisplayString())


def _with_method(compilation: Any, spaces: list[Any], model: Any, token: Any) -> Iterator[str]:
    """The namespaces with an extension method that fits what stands before a name."""
    access = token.Parent.Parent
    receiver = getattr(access, "Expression", None)
    kind = receiver and model.GetTypeInfo(receiver).Type
    if not kind:
        return
    as_method = importlib.import_module("Microsoft.CodeAnalysis").IMethodSymbol
    name = str(token.ValueText)
    for space in spaces:
        for one in space.GetTypeMembers():
            if (
                one.MightContainExtensionMethods
                and _can_be_used(compilation, one)
                and any(
                    as_method(each).ReduceExtensionMethod(kind)
                    for each in one.GetMembers(name)
                    if str(each.Kind) == "Method"
                )
            ):
                yield str(space.ToDisplayString())
                break


def _can_be_used(compilation: Any, symbol: Any) -> bool:
    return bool(compilation.IsSymbolAccessibleWithin(symbol, compilation.Assembly))
