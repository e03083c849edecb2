"""Which errors are no certain ones: of what was not restored, cannot be read, or is generated.

Where nothing was restored, a `using` of a package's namespace leads nowhere, and with it every name
that the file takes from there.  Such a name is a warning that says so, and not an error: only
restoring the packages can tell.  In files whose usings all lead somewhere, names that are not found
are errors as ever.  What follows from a type that is not known is held back in the same way: an
error in a statement, or in the head of a type, that has to do with such a type.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.diagnostics import WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact_csharp.diagnostics import CompilerDiagnostic
    from filepact_csharp.roslyn import Roslyn

__all__ = ["GLOBAL_USING", "DiagnosticsFilter", "doubted", "unresolved"]

GLOBAL_USING: Final = re.compile(r"(?m)^[ \t]*global[ \t]+using[ \t]")
"""A file that has one speaks for all files of its project."""

_USING: Final = re.compile(
    r"\s*(?:global\s+)?using\s+(?:static\s+)?(?:\w+\s*=\s*)?[\w.:]+(?:<[\w.:<>,\s]*>)?\s*"
)
_NOWHERE: Final = frozenset({"CS0234", "CS0246", "CS0400"})
_NAMES: Final = _NOWHERE | {"CS0012", "CS0103", "CS1061", "CS1069"}
_EXTENDED: Final = frozenset({"CS0308", "CS1929"})
"""What is said of a method where an extension method of the same name is missing."""
_LONGEST: Final = 1_000
_WHY: Final = " It may be in a package that was not restored."
_FOLLOWS: Final = (
    " It may follow from a type that is not known here, because something was not restored or read."
)
_GENERATED: Final = " It may be in code that a generator writes, and generators do not run here."

_NEWER: Final = " It may be of a newer .NET or C# than those that are here."
_NEWER_CODES: Final = (
    _NAMES | {"CS0117", "CS0131", "CS0225", "CS0305", "CS0501", "CS1009", "CS1501"} | {"CS1503"}
)
_NEWER_SYNTAX: Final = re.compile(r"\bextension\s*[(<]")

_FRIENDS: Final = " Whether what is internal is seen here is decided when it is built."
_FRIENDLY: Final = frozenset({"CS0104", "CS0121", "CS0507"})
"""What is only wrong where more is seen of another assembly."""

_POLYFILLS: Final = frozenset({"CS0518", "CS0656", "CS8356", "CS9035"})
"""Types that the compiler itself wants, and that packages bring where a framework has none."""

_FLOWING: Final = frozenset({"CS0161", "CS0165", "CS0177", "CS0162"})
_MEMBERS: Final = frozenset(
    {"CS0103", "CS0115", "CS0117", "CS0120", "CS0122", "CS0234", "CS0246", "CS0311", "CS0506"}
    | {"CS0534", "CS0535", "CS0738", "CS1061", "CS1501", "CS1503", "CS1674", "CS1729", "CS7036"}
    | {"CS8795", "CS0759", "CS0308", "CS0305", "CS0426", "CS0314", "CS9248"}
)
"""Errors about members that a type might have from a base that is not known, or from a generator."""

_TRIGGERS: Final = frozenset(
    {
        "GeneratedRegex",
        "JsonSerializable",
        "LibraryImport",
        "LoggerMessage",
        "GeneratedComInterface",
    }
    | {"GeneratedComClass", "JSImport", "JSExport", "CustomMarshaller", "OptionsValidator"}
    | {"JsonSourceGenerationOptions"}
)
_CONTEXT: Final = "JsonSerializerContext"
_ATTRIBUTES: Final = "AttributeListSyntax"
"""Packages bring attributes that a framework has only later, in namespaces that are there."""

_TYPED: Final = ("Field", "Property", "Local", "Parameter", "Event")
_MOST_NODES: Final = 400
_MOST_MEMBERS: Final = 400


def unresolved(text: str, found: Iterable[CompilerDiagnostic]) -> bool:
    """Whether a using in a text leads nowhere.

    Args:
        text: Of the file.
        found: What is wrong in it.
    """
    return any(one.code in _NOWHERE and _is_using(text, one.start) for one in found)


def doubted(one: CompilerDiagnostic, why: str = _WHY) -> CompilerDiagnostic:
    """A finding in a file with such a using: a name that is not found is no certain error."""
    if (why == _WHY and one.code not in _NAMES | _EXTENDED) or one.severity >= WARNING:
        return one
    return replace(one, severity=WARNING, message=one.message.rstrip(".") + "." + why)


def _is_using(text: str, at: int) -> bool:
    """Whether a place lies in a using, and not in a statement that begins with the same word."""
    start = max(text.rfind(end, 0, at) for end in "\n\r;") + 1
    end = text.find(";", at, at + _LONGEST)
    return end >= 0 and _USING.fullmatch(text, start, end) is not None


class DiagnosticsFilter:
    """Tells certain errors from others in the files of one compilation.

    Args:
        roslyn: The compiler.
        compilation: Which.
        lacking: Whether something that the project needs was not restored or cannot be read.
        unnamed: Whether names cannot be told from such ones, even where all usings lead somewhere.
        generating: Whether generators of packages would run.
        newer: Whether the project is for a newer .NET, or in a newer C#, than those that are here.
        befriended: Whether it is taken for a friend of a project that may not be one.
    """

    def __init__(
        self,
        roslyn: Roslyn,
        compilation: Any,
        *,
        lacking: bool,
        unnamed: bool,
        generating: bool,
        newer: bool,
        befriended: bool,
    ) -> None:
        self._core = roslyn.core
        self._compilation = compilation
        self._span = roslyn.text.TextSpan
        self._extensions = roslyn.core.ModelExtensions
        self._csharp = roslyn.csharp
        self._never = roslyn.threading.CancellationToken(False)
        self._lacking, self._unnamed, self._generating = lacking, unnamed, generating
        self._newer, self._befriended = newer, befriended
        self._tainted: dict[str, bool] = {}
        self._generated: dict[str, bool] = {}

    def weigh_whole(self, found: Iterable[CompilerDiagnostic]) -> set[CompilerDiagnostic]:
        """The same for what no file is to blame for."""
        return {doubted(one) if self._lacking else one for one in found}

    def weigh(self, tree: Any, found: Iterable[CompilerDiagnostic]) -> set[CompilerDiagnostic]:
        """What is wrong in a file, with what is no certain error as a warning that says why."""
        every = set(found)
        errors = [one for one in every if one.severity < WARNING]
        if not errors:
            return every
        text = str(tree.GetText(self._never))
        if self._lacking and (self._unnamed or unresolved(text, errors)):
            every = {doubted(one) for one in every}
        roots = [one for one in every if one.message.endswith(_WHY)]
        syntax = {
            (str(one.Id), int(one.Location.SourceSpan.Start)) for one in tree.GetDiagnostics()
        }
        model = self._compilation.GetSemanticModel(tree, False)
        root = tree.GetRoot(self._never)
        newer_syntax = self._newer and _NEWER_SYNTAX.search(text) is not None
        scopes: dict[tuple[str, int, int], bool] = {}
        weighed: set[CompilerDiagnostic] = set()
        for one in every:
            if self._newer and (one.code in _NEWER_CODES or newer_syntax):
                weighed.add(doubted(one, _NEWER))
                continue
            if one.severity >= WARNING or (one.code, one.start) in syntax:
                weighed.add(one)
                continue
            scope = self._scope(root, one)
            here = (type(scope).__name__, int(scope.SpanStart), int(scope.Span.End))
            if self._befriended and one.code in _FRIENDLY:
                weighed.add(doubted(one, _FRIENDS))
            elif (self._lacking or self._generating) and one.code in _POLYFILLS:
                weighed.add(doubted(one, _FOLLOWS))
            elif self._is_of_generator(model, scope, one):
                weighed.add(doubted(one, _GENERATED))
            elif not self._lacking or (one.code in _NOWHERE and here[0] != _ATTRIBUTES):
                weighed.add(one)
            else:
                if here not in scopes:
                    scopes[here] = any(
                        here[1] <= each.start < here[2] for each in roots
                    ) or self._follows(model, scope)
                inherited = one.code in _MEMBERS and self._in_tainted(model, scope)
                weighed.add(doubted(one, _FOLLOWS) if scopes[here] or inherited else one)
        return weighed

    # -- where ------------------------------------------------------------------------------

    def _scope(self, root: Any, one: CompilerDiagnostic) -> Any:
        """The statement that an error lies in, or the declaration; of what flows, the whole member."""
        end = min(max(one.end, one.start), int(root.FullSpan.End))
        node = root.FindNode(self._span.FromBounds(min(one.start, end), end), False, True)
        flows = one.code in _FLOWING or one.code.startswith(("CS86", "CS87"))
        while node.Parent is not None:
            name = type(node).__name__
            if name.endswith("DeclarationSyntax") and name != "VariableDeclarationSyntax":
                return node
            if not flows and (
                (name.endswith("StatementSyntax") and name != "LocalFunctionStatementSyntax")
                or name in ("AttributeListSyntax", "UsingDirectiveSyntax")
            ):
                return node
            node = node.Parent
        return node

    def _types_around(self, model: Any, node: Any) -> Iterator[Any]:
        """The types that a node lies in, the innermost first."""
        while node is not None:
            if type(node).__name__ in _TYPES:
                symbol = self._extensions.GetDeclaredSymbol(model, node, self._never)
                if symbol is not None:
                    yield self._named(symbol)
            node = node.Parent

    # -- what is not known ------------------------------------------------------------------

    def _in_tainted(self, model: Any, scope: Any) -> bool:
        return any(self._is_tainted(one) for one in self._types_around(model, scope))

    def _follows(self, model: Any, scope: Any) -> bool:
        """Whether something in a scope has to do with a type that is not known."""
        if type(scope).__name__ in _TYPES:
            symbol = self._extensions.GetDeclaredSymbol(model, scope, self._never)
            return symbol is not None and self._has_tainted_members(self._named(symbol))
        count = 0
        for node in scope.DescendantNodesAndSelf(None, False):
            name = type(node).__name__
            if not name.endswith(
                ("NameSyntax", "ExpressionSyntax", "TypeSyntax", "AttributeSyntax")
            ):
                continue
            count += 1
            if count > _MOST_NODES:
                return True
            if self._is_tainted(self._extensions.GetTypeInfo(model, node, self._never).Type):
                return True
            info = self._extensions.GetSymbolInfo(model, node, self._never)
            symbols = [info.Symbol] if info.Symbol is not None else list(info.CandidateSymbols)
            if any(self._speaks_of_tainted(one) for one in symbols):
                return True
        return False

    def _speaks_of_tainted(self, symbol: Any) -> bool:
        """Whether a member, or an alias, has to do with a type that is not known."""
        kind = str(symbol.Kind)
        if kind == "NamedType":
            return self._is_tainted(self._named(symbol))
        if kind in _TYPED:
            symbol = getattr(self._core, f"I{kind}Symbol")(symbol)
            more = [one.Type for one in symbol.Parameters] if kind == "Property" else []
            return any(map(self._is_tainted, (symbol.Type, *more)))
        if kind != "Method":
            return False
        symbol = self._core.IMethodSymbol(symbol)
        bounds = [one for each in symbol.TypeParameters for one in each.ConstraintTypes]
        types = [symbol.ReturnType, *(one.Type for one in symbol.Parameters), *bounds]
        return any(map(self._is_tainted, types)) or self._is_tainted(symbol.ContainingType)

    def _has_tainted_members(self, symbol: Any) -> bool:
        """Whether a type, or what it promises to be, speaks of types that are not known."""
        if self._is_tainted(symbol):
            return True
        members = 0
        for one in [symbol, *symbol.AllInterfaces, *([symbol.BaseType] if symbol.BaseType else [])]:
            for member in one.GetMembers():
                members += 1
                if members > _MOST_MEMBERS or self._speaks_of_tainted(member):
                    return True
        return False

    def _is_tainted(self, symbol: Any) -> bool:
        """Whether a type is not known, or something that it is made or derived from."""
        if symbol is None:
            return False
        kind = str(symbol.TypeKind)
        if kind == "Error":
            return True
        if kind == "Array":
            return self._is_tainted(self._core.IArrayTypeSymbol(symbol).ElementType)
        if kind == "TypeParameter":
            bounds = self._core.ITypeParameterSymbol(symbol).ConstraintTypes
            return any(self._is_tainted(one) for one in bounds if str(one.TypeKind) != kind)
        if kind not in ("Class", "Struct", "Interface", "Delegate"):
            return False
        symbol = self._named(symbol)
        name = str(symbol)
        if name not in self._tainted:
            self._tainted[name] = False  # of what is made of itself
            self._tainted[name] = (
                any(self._is_tainted(one) for one in symbol.TypeArguments)
                or self._is_tainted(symbol.BaseType)
                or any(self._is_tainted(one) for one in symbol.Interfaces)
            )
        return self._tainted[name]

    def _named(self, symbol: Any) -> Any:
        """A symbol with the members of a type: what is seen of one depends on what it was got as."""
        return self._core.INamedTypeSymbol(symbol)

    # -- what is generated ------------------------------------------------------------------

    def _is_of_generator(self, model: Any, scope: Any, one: CompilerDiagnostic) -> bool:
        """Whether an error is about a member that a generator might add."""
        if one.code not in _MEMBERS:
            return False
        if any(self._is_generated(each) for each in self._types_around(model, scope)):
            return True
        if type(scope).__name__ in _TYPES:
            return False
        for node in scope.DescendantNodes(None, False):
            if not type(node).__name__.endswith("NameSyntax"):
                continue
            found = self._extensions.GetTypeInfo(model, node, self._never).Type
            if found is None:
                found = self._extensions.GetSymbolInfo(model, node, self._never).Symbol
            if found is not None and self._is_generated(found):
                return True
        return False

    def _is_generated(self, symbol: Any) -> bool:
        """Whether a generator might add members to a type."""
        if str(symbol.Kind) != "NamedType":
            return False
        symbol = self._named(symbol)
        name = str(symbol)
        if name not in self._generated:
            self._generated[name] = self._triggers(symbol)
        return self._generated[name]

    def _triggers(self, symbol: Any) -> bool:
        parts = [one.GetSyntax(self._never) for one in symbol.DeclaringSyntaxReferences]
        if not any(
            " partial " in f" {one.Modifiers} " for one in parts if hasattr(one, "Modifiers")
        ):
            return False
        if self._generating:
            return True
        base = symbol.BaseType
        if base is not None and str(base.Name) == _CONTEXT:
            return True
        return any(
            _short(str(each.Name)) in _TRIGGERS
            for part in parts
            for node in (part, *part.Members)
            for group in node.AttributeLists
            for each in group.Attributes
        )


_TYPES: Final = frozenset(
    {"ClassDeclarationSyntax", "StructDeclarationSyntax", "InterfaceDeclarationSyntax"}
    | {"RecordDeclarationSyntax"}
)


def _short(name: str) -> str:
    """The name of an attribute without its namespace and without its ending."""
    return name.rpartition(".")[2].rpartition(":")[2].removesuffix("Attribute")
