"""A language server that knows the form of C# and nothing else: the last resort, without a compiler.

It reads each text by itself with a grammar that takes damaged texts too, and reports what the grammar could
make nothing of.  It reports such places in right texts as well, where preprocessor directives cut an expression
in two, which is why only what a change adds means anything.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import NotFoundError
from filepact_csharp.diagnostics import CompilerDiagnostic, published
from filepact_csharp.files import SourceTree, document_path
from filepact_csharp.rpc import LanguageServer, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact_csharp.rpc import RequestContext

__all__ = ["SyntaxReader", "SyntaxServer"]

_MOST: Final = 500
_LARGEST: Final = 8_000_000
_SHOWN: Final = 40
_ENCODING: Final = "utf-16-le"


class SyntaxReader:
    """The grammar, ready to read texts.

    Raises:
        NotFoundError: Its packages are not installed.
    """

    def __init__(self) -> None:
        try:
            library: Any = importlib.import_module("tree_sitter")
            language: Any = importlib.import_module("tree_sitter_c_sharp")
        except ImportError as error:
            raise NotFoundError(
                "the packages tree-sitter and tree-sitter-c-sharp are not installed",
                hint="Install filepact's extra `csharp`.",
            ) from error
        self._parser = library.Parser(library.Language(language.language()))

    def check(self, text: str) -> list[CompilerDiagnostic]:
        """The syntax errors and missing tokens of a text, in order; at most 500."""
        # In this encoding a place in bytes is twice a place as findings count.
        content = text.encode(_ENCODING, "surrogatepass")
        tree = self._parser.parse(content, encoding="utf16le")
        found: list[CompilerDiagnostic] = []
        for node in _damaged(tree.root_node):
            found.append(_finding(node, content))
            if len(found) >= _MOST:
                break
        return found


def _damaged(root: Any) -> Iterator[Any]:
    """The outermost nodes that are errors, and all that are missing, in order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting.extend(reversed(node.children))


def _finding(node: Any, content: bytes) -> CompilerDiagnostic:
    start, end = node.start_byte, node.end_byte
    if node.is_missing:
        return CompilerDiagnostic(
            start // 2, end // 2, 1, "missing", f"{_named(node.type)} is missing here"
        )
    # What follows on further lines is often right, and only has lost its beginning.
    shown = content[start:end].decode(_ENCODING, "replace")
    first = shown.lstrip().split("\n", maxsplit=1)[0].rstrip()
    start += 2 * _units(shown[: len(shown) - len(shown.lstrip())])
    end = start + 2 * _units(first)
    short = first if len(first) <= _SHOWN else f"{first[:_SHOWN]}..."
    said = f"`{short}` is not understood here" if short else "something is not understood here"
    return CompilerDiagnostic(start // 2, end // 2, 1, "syntax", said)


def _named(kind: str) -> str:
    """A kind of node as a reader sees it: signs and words of the language quoted, others in words."""
    if kind.isidentifier() and "_" in kind:
        return f"a {kind.strip('_').replace('_', ' ')}"
    return "a name" if kind == "identifier" else f"`{kind}`"


def _units(text: str) -> int:
    return len(text.encode(_ENCODING, "surrogatepass")) // 2


class SyntaxServer(LanguageServer):
    """The server.

    Args:
        root: The folder to serve; empty for the one that the client names.
    """

    name = "csharp-syntax"

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._grammar: SyntaxReader | None = None
        self.requests["textDocument/diagnostic"] = self._diagnose

    def begin(self, _able: Any) -> dict[str, Any]:
        """Load the grammar."""
        self._grammar = SyntaxReader()
        return {
            "textDocumentSync": {"openClose": True, "change": 2, "save": False},
            "diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False},
        }

    def _diagnose(self, params: Any, _context: RequestContext) -> Any:
        path = document_path(params["textDocument"])
        if self.documents.lost(path):
            raise RequestError("the document's text is not known any more; send it whole")
        text = SourceTree(self.root or "/", self.documents.texts).source(path) or ""
        if len(text) > _LARGEST:
            raise RequestError(f"a text of more than {_LARGEST:,} characters is not read")
        if self._grammar is None:
            raise RequestError("the grammar was not loaded")
        return {
            "kind": "full",
            "items": published(text, self._grammar.check(text), self.documents.unit),
        }
