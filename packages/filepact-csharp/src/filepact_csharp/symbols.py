"""Names in sources: what they stand for, where else it is used, and other names for it.

A name is looked for as a word in all texts, and the compiler says of each place what it stands for
there.  What overrides or implements what has the same name with it.  Another name is only given where
the compiler finds that each place then stands for what it stood for before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.diagnostics import WARNING, TextPlaces
from filepact_csharp.rpc import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact_csharp.compiler import Compiler
    from filepact_csharp.roslyn import Roslyn

__all__ = ["SourceRange", "SymbolEntry", "SymbolSearch"]

_MEMBERS: Final = frozenset({"Method", "Property", "Event"})
_TYPES: Final = "NamedType"
_ENDING: Final = "Attribute"
_CONSTRUCTING: Final = frozenset({"Constructor", "StaticConstructor", "Destructor"})
_NAME: Final = re.compile(r"@?[^\W\d]\w*")
_MOST_CHECKED: Final = 100
"""How many files are looked through for errors that another name causes."""

_Spots = frozenset[tuple[str, int]]
"""Where a symbol is declared: files as the compiler has them, and offsets in units of UTF-16."""


@dataclass(frozen=True, slots=True, order=True)
class SourceRange:
    """A place where a name stands; offsets in units of UTF-16, the end outside.

    Attributes:
        path: The file.
        start: Where it begins.
        end: Where it ends.
    """

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SymbolEntry:
    """Something that a source declares; offsets as of a `SourceRange`.

    Attributes:
        name: Its name.
        kind: The protocol's number.
        start: Where all of it begins.
        end: Where all of it ends.
        name_start: Where its name begins.
        name_end: Where its name ends.
        inner: What is declared in it.
    """

    name: str
    kind: int
    start: int
    end: int
    name_start: int
    name_end: int
    inner: tuple[SymbolEntry, ...]


@dataclass(frozen=True, slots=True)
class _Use:
    """A name in a file, and what the compiler takes it for: one or, where it is not sure, several."""

    place: SourceRange
    token: Any
    symbols: tuple[Any, ...]


class SymbolSearch:
    """Finds what names stand for, in the present texts of all projects.

    Args:
        roslyn: The compiler.
        compiler: The projects.
        stops: Is given what ends the compiler's work.
        cancelled: Whether nobody waits any more.
    """

    def __init__(
        self,
        roslyn: Roslyn,
        compiler: Compiler,
        stops: Callable[[Callable[[], None] | None], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._roslyn, self._compiler = roslyn, compiler
        self._stops, self._cancelled = stops, cancelled
        self._core, self._csharp = roslyn.core, roslyn.csharp
        self._bind = roslyn.core.ModelExtensions
        self._never = roslyn.threading.CancellationToken(False)
        self._word = int(roslyn.csharp.SyntaxKind.IdentifierToken)
        self._models: dict[tuple[int, str], Any] = {}

    # -- questions --------------------------------------------------------------------------

    def name_at(self, path: str, offset: int) -> SourceRange | None:
        """The name that stands at an offset; None if none does."""
        for _, trees in self._compiler.sources(path):
            token = self._token(trees[path], offset)
            if token is not None:
                return SourceRange(path, int(token.SpanStart), int(token.Span.End))
        return None

    def uses(self, path: str, offset: int) -> list[SourceRange]:
        """Where what stands at an offset is declared and used; empty if no name stands there."""
        found = self._symbols(path, offset)
        if not found:
            return []
        meant = self._family(found)
        return sorted({one.place for one in self._uses(meant, _name(found[0]))})

    def rename(self, path: str, offset: int, new: str) -> dict[str, list[tuple[int, int, str]]]:
        """What giving another name to what stands at an offset changes: edits of texts, by file.

        Raises:
            RequestError: It cannot have this name, or any other.
        """
        found = self._symbols(path, offset)
        if not found:
            return {}
        new = self._checked(new)
        meant = self._family(found)
        self._refuse(meant)
        name = _name(found[0])
        uses = list(self._uses(meant, name))
        edits: dict[str, set[tuple[int, int, str]]] = {}
        for one in uses:
            edits.setdefault(one.place.path, set()).update(self._edits(one, name, new))
        sorted_edits = {path: sorted(some) for path, some in edits.items()}
        self._verify(sorted_edits, uses, meant, new.removeprefix("@"))
        return sorted_edits

    def declarations(self, path: str) -> tuple[SymbolEntry, ...]:
        """What a file declares, in the order of its text."""
        for _, trees in self._compiler.sources(path):
            return tuple(_declared(trees[path].GetRoot(self._never).Members))
        return ()

    # -- what is meant ----------------------------------------------------------------------

    def _symbols(self, path: str, offset: int) -> list[Any]:
        """What the name at an offset stands for, in each project that the file belongs to."""
        found = []
        for compilation, trees in self._compiler.sources(path):
            token = self._token(trees[path], offset)
            if token is not None:
                found += self._bound(self._model(compilation, trees[path]), token)[:1]
        return found

    def _token(self, tree: Any, offset: int) -> Any:
        """The identifier that an offset lies in or behind."""
        root = tree.GetRoot(self._never)
        for at in (offset, offset - 1):
            if 0 <= at < int(root.FullSpan.End):
                token = root.FindToken(at, True)
                start, end = int(token.SpanStart), int(token.Span.End)
                if int(token.RawKind) == self._word and start <= at < end:
                    return token
        return None

    def _model(self, compilation: Any, tree: Any) -> Any:
        key = (id(compilation), str(tree.FilePath))
        kept = self._models.get(key)
        if kept is None:
            # The compilation is kept with it, so that its number is given to no other.
            kept = self._models[key] = (compilation, compilation.GetSemanticModel(tree, False))
        return kept[1]

    def _bound(self, model: Any, token: Any) -> list[Any]:
        """What an identifier stands for; several where the compiler cannot tell."""
        node = token.Parent
        declared = self._bind.GetDeclaredSymbol(model, node, self._never)
        if declared is None and type(node.Parent).__name__ == "NameEqualsSyntax":
            declared = self._bind.GetDeclaredSymbol(model, node.Parent.Parent, self._never)
        if declared is not None and any(
            int(one.SourceSpan.Start) == int(token.SpanStart) for one in declared.Locations
        ):
            return [self._meant(declared)]
        if type(node).__name__ == "IdentifierNameSyntax":
            alias = self._bind.GetAliasInfo(model, node, self._never)
            if alias is not None:
                return [alias]
        info = self._bind.GetSymbolInfo(model, node, self._never)
        found = [info.Symbol] if info.Symbol is not None else list(info.CandidateSymbols)
        return [self._meant(one) for one in found]

    def _meant(self, symbol: Any) -> Any:
        """The symbol that has the name: of a constructor the type, of an accessor the property."""
        if str(symbol.Kind) == "Method":
            method = self._core.IMethodSymbol(symbol)
            if str(method.MethodKind) in _CONSTRUCTING:
                return method.ContainingType.OriginalDefinition
            if method.AssociatedSymbol is not None:
                return method.AssociatedSymbol.OriginalDefinition
            if method.ReducedFrom is not None:
                return method.ReducedFrom.OriginalDefinition
        return symbol.OriginalDefinition

    def _family(self, symbols: list[Any]) -> list[Any]:
        """Symbols with all that have to have the same name: what they override and implement."""
        found = {_key(one): one for one in symbols}
        for one in symbols:
            if str(one.Kind) == "Parameter":
                found |= {_key(each): each for each in self._counterparts(one)}
        waiting = [key for key, one in found.items() if str(one.Kind) in _MEMBERS]
        ties = self._ties(_name(symbols[0])) if waiting else {}
        while waiting:
            for one in ties.get(waiting.pop(), ()):
                if _key(one) not in found:
                    found[_key(one)] = one
                    waiting.append(_key(one))
        return list(found.values())

    def _counterparts(self, parameter: Any) -> Iterator[Any]:
        """The same parameter in the other part of a partial method; of a record, its property."""
        holder = parameter.ContainingSymbol
        if str(holder.Kind) != "Method":
            return
        method, ordinal = self._core.IMethodSymbol(holder), self._core.IParameterSymbol(parameter)
        for part in (method.PartialDefinitionPart, method.PartialImplementationPart):
            if part is not None:
                yield part.Parameters[int(ordinal.Ordinal)]
        for member in method.ContainingType.GetMembers(parameter.Name):
            if _spots([member]) & _spots([parameter]):
                yield member

    def _ties(self, name: str) -> dict[Any, list[Any]]:
        """Members of a name, and those that they override, implement or complete; both ways."""
        ties: dict[Any, list[Any]] = {}

        def tie(one: Any, other: Any) -> None:
            one, other = self._meant(one), self._meant(other)
            ties.setdefault(_key(one), []).append(other)
            ties.setdefault(_key(other), []).append(one)

        for compilation, _ in self._compiler.sources():
            for holder in _types(compilation.Assembly.GlobalNamespace):
                self._raise_if_cancelled()
                for member in holder.GetMembers(name):
                    for other in self._above(member):
                        tie(member, other)
                for interface in holder.AllInterfaces:
                    for member in interface.GetMembers(name):
                        done = holder.FindImplementationForInterfaceMember(member)
                        if done is not None:
                            tie(member, done)
        return ties

    def _above(self, member: Any) -> Iterator[Any]:
        """What a member overrides or completes."""
        kind = str(member.Kind)
        if kind == "Method":
            method = self._core.IMethodSymbol(member)
            yield from (
                one
                for one in (method.OverriddenMethod, method.PartialImplementationPart)
                if one is not None
            )
        elif kind == "Property":
            over = self._core.IPropertySymbol(member).OverriddenProperty
            yield from () if over is None else (over,)
        elif kind == "Event":
            over = self._core.IEventSymbol(member).OverriddenEvent
            yield from () if over is None else (over,)

    # -- where it stands --------------------------------------------------------------------

    def _uses(self, meant: list[Any], name: str) -> Iterator[_Use]:
        """All places that stand for one of some symbols."""
        spots, keys = _spots(meant), {_key(one) for one in meant}
        names = {name}
        if str(meant[0].Kind) == _TYPES and name.endswith(_ENDING) and name != _ENDING:
            names.add(name.removesuffix(_ENDING))
        for one in self._standing(names):
            if any(spots & _spots([each]) or _key(each) in keys for each in one.symbols):
                yield one

    def _standing(self, names: Iterable[str]) -> Iterator[_Use]:
        """All places where names stand as identifiers."""
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
        texts: dict[str, list[int]] = {}
        for compilation, trees in self._compiler.sources():
            for path, tree in trees.items():
                if path not in texts:
                    self._raise_if_cancelled()
                    text = self._compiler.shown(path)
                    found = [one.start() for one in words.finditer(text)]
                    places = TextPlaces(text, "utf-16") if found else None
                    texts[path] = [places.units(one) for one in found] if places else []
                if not texts[path]:
                    continue
                model = self._model(compilation, tree)
                for at in texts[path]:
                    token = self._token(tree, at)
                    if token is not None and str(token.ValueText) in names:
                        place = SourceRange(path, int(token.SpanStart), int(token.Span.End))
                        yield _Use(place, token, tuple(self._bound(model, token)))

    # -- another name -----------------------------------------------------------------------

    def _checked(self, new: str) -> str:
        plain = new.removeprefix("@")
        facts = self._csharp.SyntaxFacts
        if not _NAME.fullmatch(new) or not facts.IsValidIdentifier(plain):
            raise RequestError(f"{new[:80]} is no name in C#")
        if new == plain and str(facts.GetKeywordKind(plain)) != "None":
            raise RequestError(f"{new[:80]} is a word of the language; write @{new[:80]}")
        return new

    def _refuse(self, meant: list[Any]) -> None:
        """Refuse what cannot have another name."""
        for one in meant:
            kind = str(one.Kind)
            if kind == "Namespace":
                raise RequestError("namespaces are not renamed here")
            if not _spots([one]):
                where = one.ContainingAssembly
                holder = f" of {where.Name}" if where is not None else ""
                raise RequestError(f"{one}{holder} is not declared in the sources of this solution")
            of = one.ContainingType
            if of is not None and (of.IsAnonymousType or of.IsTupleType):
                raise RequestError("names in tuples and anonymous types are not renamed here")

    def _edits(self, use: _Use, name: str, new: str) -> Iterator[tuple[int, int, str]]:
        """What changes in a place."""
        text, place = str(use.token.ValueText), use.place
        plain = new.removeprefix("@")
        if text != name and plain.endswith(_ENDING) and plain != _ENDING:
            new = plain.removesuffix(_ENDING)
        node = use.token.Parent
        if type(node.Parent).__name__ == "MemberAccessExpressionSyntax":
            node = node.Parent
        around = node.Parent
        # Where a name is taken over without being said, it is said from now on.
        if type(around).__name__ == "AnonymousObjectMemberDeclaratorSyntax" and (
            around.NameEquals is None and int(node.Span.End) == place.end
        ):
            yield int(node.SpanStart), int(node.SpanStart), f"{text} = "
        yield place.start, place.end, new

    def _verify(
        self,
        edits: Mapping[str, list[tuple[int, int, str]]],
        uses: Iterable[_Use],
        meant: list[Any],
        new: str,
    ) -> None:
        """Refuse a name by which a place would stand for something else, or for nothing."""
        moves = {
            _shown(path): [(end, len(text) - (end - start)) for start, end, text in some]
            for path, some in edits.items()
        }

        def moved(spot: tuple[str, int]) -> tuple[str, int]:
            file, at = spot
            return file, at + sum(more for end, more in moves.get(file, ()) if end <= at)

        def targets(found: Iterable[_Use], move: Callable[[Any], Any]) -> dict[Any, set[Any]]:
            places: dict[Any, set[Any]] = {}
            for one in found:
                spot = move((_shown(one.place.path), one.place.start))
                places.setdefault(spot, set()).update(
                    frozenset(map(move, _spots([each]))) or _key(each) for each in one.symbols
                )
            return places

        others = list(self._standing({new}))
        before, own = targets(others, moved), targets(uses, moved).keys()
        wanted = frozenset(map(moved, _spots(meant)))
        looked = list(dict.fromkeys([*edits, *(one.place.path for one in others)]))[:_MOST_CHECKED]
        wrong = self._errors(looked)
        texts = {path: _edited(self._compiler.shown(path), some) for path, some in edits.items()}
        with self._compiler.supposing(texts):
            after = SymbolSearch(self._roslyn, self._compiler, self._stops, self._cancelled)
            names = {new, new.removesuffix(_ENDING)} - {""}
            found = targets(after._standing(names), lambda spot: spot)
            for spot, stands_for in found.items():
                kept = spot not in own or any(
                    isinstance(one, frozenset) and one & wanted for one in stands_for
                )
                if not kept or stands_for != before.get(spot, stands_for):
                    name = spot[0].rpartition("/")[2][:80]
                    raise RequestError(f"in {name}, {new[:80]} would stand for something else")
            if own - found.keys():
                raise RequestError(f"{new[:80]} would not be read as a name everywhere")
            for path, errors in after._errors(looked).items():
                for code, messages in errors.items():
                    if len(messages) > len(wrong[path].get(code, ())):
                        name = path.rpartition("/")[2][:80]
                        raise RequestError(f"{name} would be wrong: {code} {messages[0][:300]}")

    def _errors(self, paths: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """The messages of all errors of files, by code."""
        found: dict[str, dict[str, list[str]]] = {}
        for path in paths:
            self._raise_if_cancelled()
            of_file: dict[str, list[str]] = found.setdefault(path, {})
            for one in self._compiler.check(path, self._stops):
                if one.severity < WARNING:
                    of_file.setdefault(one.code, []).append(one.message)
        return found

    def _raise_if_cancelled(self) -> None:
        if self._cancelled():
            raise RequestError("the request was cancelled")


# -- symbols ---------------------------------------------------------------------------------------


def _spots(symbols: Iterable[Any]) -> _Spots:
    """Where symbols are declared in sources."""
    return frozenset(
        (str(one.SourceTree.FilePath), int(one.SourceSpan.Start))
        for symbol in symbols
        for one in symbol.Locations
        if one.IsInSource
    )


def _key(symbol: Any) -> tuple[str, str, int]:
    """What is the same of one symbol as two projects see it."""
    spots = _spots([symbol])
    if spots:
        return (str(symbol.Kind), *min(spots))
    where = symbol.ContainingAssembly
    name = symbol.GetDocumentationCommentId() or str(symbol)
    return (f"{where.Name if where is not None else ''} {name}", "", -1)


def _name(symbol: Any) -> str:
    """The name of a symbol, without that of the interface that it implements explicitly."""
    return str(symbol.Name).rpartition(".")[2]


def _types(space: Any) -> Iterator[Any]:
    """All types in a namespace or a type."""
    for one in space.GetTypeMembers():
        yield one
        yield from _types(one)
    if str(space.Kind) == "Namespace":
        for one in space.GetNamespaceMembers():
            yield from _types(one)


def _shown(path: str) -> str:
    """A path as the compiler has it."""
    return path.encode("utf-8", "backslashreplace").decode()


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """A text after edits, which are sorted."""
    places = TextPlaces(text, "utf-16")
    parts, last = [], 0
    for start, end, new in edits:
        parts += [text[last : places.characters(start)], new]
        last = places.characters(end)
    return "".join([*parts, text[last:]])


# -- declarations ----------------------------------------------------------------------------------

_DECLARING: Final = {
    "NamespaceDeclarationSyntax": 3,
    "FileScopedNamespaceDeclarationSyntax": 3,
    "ClassDeclarationSyntax": 5,
    "RecordDeclarationSyntax": 5,
    "DelegateDeclarationSyntax": 5,
    "MethodDeclarationSyntax": 6,
    "PropertyDeclarationSyntax": 7,
    "FieldDeclarationSyntax": 8,
    "ConstructorDeclarationSyntax": 9,
    "EnumDeclarationSyntax": 10,
    "InterfaceDeclarationSyntax": 11,
    "EnumMemberDeclarationSyntax": 22,
    "StructDeclarationSyntax": 23,
    "EventDeclarationSyntax": 24,
    "EventFieldDeclarationSyntax": 24,
}
"""Kinds of declarations, with the protocol's numbers."""

_PROPERTY: Final = 7
_CONSTRUCTOR: Final = 9


def _declared(members: Iterable[Any]) -> Iterator[SymbolEntry]:
    for one in members:
        kind = _DECLARING.get(type(one).__name__)
        if kind is None:
            continue
        inner = tuple(_declared(one.Members)) if hasattr(one, "Members") else ()
        if type(one).__name__ == "RecordDeclarationSyntax" and one.ParameterList is not None:
            parts = one.ParameterList.Parameters
            inner = (*(_declaration(each, each.Identifier, _PROPERTY) for each in parts), *inner)
        if hasattr(one, "Declaration"):
            for each in one.Declaration.Variables:
                yield _declaration(one, each.Identifier, kind)
        else:
            name = one.Name if hasattr(one, "Name") else one.Identifier
            yield _declaration(one, name, kind, inner)


def _declaration(
    node: Any, name: Any, kind: int, inner: tuple[SymbolEntry, ...] = ()
) -> SymbolEntry:
    # A constructor has its type's name, and cannot be meant by it.
    more = str(node.ParameterList) if kind == _CONSTRUCTOR else ""
    of = getattr(node, "ExplicitInterfaceSpecifier", None)
    start, end = int(node.SpanStart), int(node.Span.End)
    name_start, name_end = int(name.SpanStart), int(name.Span.End)
    return SymbolEntry(f"{of or ''}{name}{more}", kind, start, end, name_start, name_end, inner)
