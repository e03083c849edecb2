"""What the compiler itself knows to do about lines of a file: usings that are missing or too many, and missing members."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact_csharp.compiler import Compiler

__all__ = ["MEMBERS", "UNUSED", "offered"]

UNUSED: Final = "Remove unused usings"
MEMBERS: Final = "Add missing members"
_UNFINISHED: Final = frozenset({"CS0534", "CS0535"})
_THROWN: Final = "throw new System.NotImplementedException();"
_SEEN_BY: Final = {
    "Public": "public",
    "Protected": "protected",
    "Internal": "internal",
    "ProtectedOrInternal": "protected internal",
    "ProtectedAndInternal": "private protected",
}
_MISSING: Final = frozenset({"CS0246", "CS0103"})
_NO_MEMBER: Final = "CS1061"
_NOT_NEEDED: Final = "CS8019"
_MEMBERS: Final = frozenset({"Method", "Property", "Event"})
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
    here = [(code, span) for code, span in found if start <= span.Start < max(end, start + 1)]
    unfinished = {
        int(one.SpanStart): one
        for code, span in here
        if code in _UNFINISHED and (one := _type_around(root, span.Start)) is not None
    }
    if edits := [edit for one in unfinished.values() for edit in _completed(model, tree, one)]:
        yield MEMBERS, "quickfix", edits
    missing = [(code, span) for code, span in here if code in _MISSING or code == _NO_MEMBER]
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


def _type_around(root: Any, position: int) -> Any:
    """The declaration of a type that a position stands in, if it has a body."""
    kinds = importlib.import_module("Microsoft.CodeAnalysis.CSharp.Syntax")
    node = root.FindToken(position, False).Parent
    while node is not None and not isinstance(node, kinds.TypeDeclarationSyntax):
        node = node.Parent
    return None if node is None or not node.CloseBraceToken.Span.Length else node


def _completed(model: Any, tree: Any, node: Any) -> Iterator[Edit]:
    """A type's declaration with the members that it lacks, each of which throws."""
    csharp = importlib.import_module("Microsoft.CodeAnalysis.CSharp")
    never = importlib.import_module("System.Threading").CancellationToken(False)
    holder = csharp.CSharpExtensions.GetDeclaredSymbol(model, node, never)
    lines = tree.GetText(never).Lines
    close = int(node.CloseBraceToken.SpanStart)
    line = lines.GetLineFromPosition(close)
    before = str(line.ToString())[: close - int(line.Start)]
    end = "\r\n" if "\r\n" in str(tree) else "\n"
    first = str(lines.GetLineFromPosition(int(node.SpanStart)).ToString())
    indent = first[: len(first) - len(first.lstrip())]
    inner = indent + ("\t" if indent.startswith("\t") else "    ")
    words = dict.fromkeys(_member(model, close, prefix, one) for prefix, one in _lacking(holder))
    if any(words) and None not in words:
        added = "".join(f"{inner}{one}{end}" for one in words if one)
        behind = close - len(before) + len(before.rstrip())
        alone = not before.strip()
        yield (behind, behind, added) if alone else (behind, close, f"{end}{added}{indent}")


def _lacking(holder: Any) -> Iterator[tuple[str, Any]]:
    """The members that a type has to have and has not, each with the words that stand before it."""
    core = importlib.import_module("Microsoft.CodeAnalysis")
    holder = core.INamedTypeSymbol(holder)
    for interface in holder.AllInterfaces:
        for one in interface.GetMembers():
            if one.IsAbstract and holder.FindImplementationForInterfaceMember(one) is None:
                yield "public static" if one.IsStatic else "public", one
    done: list[Any] = []
    above = holder
    while above is not None:
        for one in above.GetMembers():
            kind = str(one.Kind)
            if one.IsOverride and kind in _MEMBERS:
                over = getattr(core, f"I{kind}Symbol")(one)
                done.append(getattr(over, f"Overridden{kind}"))
            known = any(
                each is not None and each.OriginalDefinition.Equals(one.OriginalDefinition)
                for each in done
            )
            if one.IsAbstract and kind in _MEMBERS and not known:
                yield f"{_SEEN_BY[str(one.DeclaredAccessibility)]} override", one
        above = above.BaseType


def _member(model: Any, position: int, prefix: str, member: Any) -> str | None:
    """The text of a member that throws; empty for an accessor, and None for what cannot be written so."""
    core, kind = importlib.import_module("Microsoft.CodeAnalysis"), str(member.Kind)
    if kind == "Method" and str(core.IMethodSymbol(member).MethodKind) != "Ordinary":
        return "" if core.IMethodSymbol(member).AssociatedSymbol is not None else None
    form = core.SymbolDisplayFormat.MinimallyQualifiedFormat.RemoveMemberOptions(
        core.SymbolDisplayMemberOptions.IncludeContainingType
    ).AddMiscellaneousOptions(
        core.SymbolDisplayMiscellaneousOptions.IncludeNullableReferenceTypeModifier
    )
    if "override" not in prefix:
        form = form.AddGenericsOptions(core.SymbolDisplayGenericsOptions.IncludeTypeConstraints)
    said = f"{prefix} {member.ToMinimalDisplayString(model, position, form)}"
    if kind == "Event":
        return f"{said};"
    if kind == "Method":
        return f"{said} => {_THROWN}"
    found = core.IPropertySymbol(member)
    ways = ["get"] if found.GetMethod is not None else []
    if found.SetMethod is not None:
        ways.append("init" if found.SetMethod.IsInitOnly else "set")
    return f"{said} {{ {' '.join(f'{one} => {_THROWN}' for one in ways)} }}"


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
