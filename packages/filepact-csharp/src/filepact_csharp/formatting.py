"""The form that Roslyn's formatter gives a source, as the `.editorconfig` files above it want it."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from filepact_csharp.roslyn import Roslyn

__all__ = ["SourceFormat", "begin"]

_ASSEMBLIES: Final = (
    "Microsoft.CodeAnalysis.Workspaces",
    "Microsoft.CodeAnalysis.CSharp.Workspaces",
)
_IN_SDK: Final = "../../DotnetTools/dotnet-format"
"""Where an SDK has them, from the folder of its compiler."""

_LANGUAGE: Final = "C#"
_TAB: Final = 4


class SourceFormat:
    """Roslyn's formatter.

    Args:
        roslyn: The compiler.
        folder: Where its further libraries are.

    Raises:
        Exception: They do not belong to this compiler.
    """

    def __init__(self, roslyn: Roslyn, folder: str) -> None:
        self._roslyn = roslyn
        assembly = roslyn.reflection.Assembly
        for name in _ASSEMBLIES:
            assembly.LoadFrom(f"{folder}/{name}.dll")
            roslyn.clr.AddReference(name)
        self._formatting = importlib.import_module("Microsoft.CodeAnalysis.Formatting")
        self._option = importlib.import_module("Microsoft.CodeAnalysis.Options").OptionKey
        self._workspace = roslyn.core.AdhocWorkspace()

    def edits(
        self, path: str, text: str, configs: Mapping[str, str], parsing: Any, indent: str
    ) -> Iterator[tuple[int, int, str]]:
        """What to put in place of what: offsets of UTF-16 units, and texts; nothing that means anything changes.

        Args:
            path: The file, absolute.
            text: What it holds.
            configs: The `.editorconfig` files above it, by path.
            parsing: How it is read.
            indent: What a step of indentation is where these do not say it.
        """
        core, make = self._roslyn.core, self._roslyn.text.SourceText.From
        project = core.ProjectId.CreateNewId()
        info = core.ProjectInfo.Create(project, core.VersionStamp.Create(), "one", "one", _LANGUAGE)
        solution = self._workspace.CurrentSolution.AddProject(info)
        solution = solution.WithProjectParseOptions(project, parsing)
        for place, config in configs.items():
            number = core.DocumentId.CreateNewId(project)
            name = os.path.basename(place)  # noqa: PTH119 - names only
            solution = solution.AddAnalyzerConfigDocument(number, name, make(config), None, place)
        number = core.DocumentId.CreateNewId(project)
        name = os.path.basename(path)  # noqa: PTH119 - names only
        document = solution.AddDocument(number, name, make(text), None, path).GetDocument(number)
        options = self._options(document, configs, path, text, indent)
        formatted = self._formatting.Formatter.FormatAsync(document, options).Result
        before, after = (one.GetSyntaxRootAsync().Result for one in (document, formatted))
        if not before.IsEquivalentTo(after, False):
            return
        for one in formatted.GetTextChangesAsync(document).Result:
            yield one.Span.Start, one.Span.End, str(one.NewText)

    def _options(
        self,
        document: Any,
        configs: Mapping[str, str],
        path: str,
        text: str,
        indent: str,
    ) -> Any:
        """What the files say, and for the rest what the source has."""
        core, names = self._roslyn.core, self._formatting.FormattingOptions
        parsed = self._roslyn.array(
            core.AnalyzerConfig,
            (core.AnalyzerConfig.Parse(config, place) for place, config in configs.items()),
        )
        said = core.AnalyzerConfigSet.Create(parsed).GetOptionsForSourcePath(path).AnalyzerOptions
        options = document.GetOptionsAsync().Result
        system = self._roslyn.system

        def put(option: Any, value: Any) -> None:
            nonlocal options
            options = options.WithChangedOption(self._option(option, _LANGUAGE), value)

        if not said.ContainsKey("indent_style") and not said.ContainsKey("indent_size"):
            put(names.UseTabs, system.Boolean(indent == "\t"))
            put(names.IndentationSize, system.Int32(_TAB if indent == "\t" else len(indent)))
        if not said.ContainsKey("end_of_line"):
            crossed = text.count("\r\n") * 2 > text.count("\n")
            put(names.NewLine, system.String("\r\n" if crossed else "\n"))
        return options


def begin(roslyn: Roslyn) -> SourceFormat | None:
    """The formatter that belongs to a compiler; None where it is not there."""
    place = roslyn.clr.GetClrType(roslyn.csharp.CSharpCompilation).Assembly.Location
    compiler = os.path.dirname(str(place))  # noqa: PTH120 - names only
    for folder in (compiler, os.path.normpath(f"{compiler}/{_IN_SDK}")):
        if all(Path(folder, f"{name}.dll").is_file() for name in _ASSEMBLIES):
            try:
                return SourceFormat(roslyn, folder)
            except (ImportError, roslyn.system.Exception):
                continue
    return None
