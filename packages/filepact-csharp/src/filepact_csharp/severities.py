"""What makes errors, warnings or nothing of the compiler's messages: configuration files beside sources, and rule sets.

The build finds the configuration files in the folders above each source; here they are those within the root.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact_csharp.projects import DiagnosticOptions, split_list, unescape
from filepact_csharp.safe_xml import XmlElement, XmlError, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact_csharp.evaluation import ProjectReader
    from filepact_csharp.projects import FileTree
    from filepact_csharp.roslyn import Roslyn

__all__ = [
    "Configs",
    "codes",
    "configs_above",
    "features",
    "read_severities",
    "with_configs",
]

CONFIGS: Final = (".editorconfig", ".globalconfig")

Configs = tuple[tuple[str, str], ...]
"""Configuration files: absolute paths and texts."""

_COUNTS: Final = re.compile(
    r"(?mi)^[ \t]*(?:dotnet_diagnostic\.cs\d+\.severity|generated_code)[ \t]*[=:]"
)
"""What in them reaches the compiler; the rest is for formatters and analyzers."""

_LARGEST: Final = 1_000_000
_DIGITS: Final = 4
_UNHEEDED: Final = ("CompilerResponseFile", "CodePage", "KeyContainerName", "ModuleAssemblyName")
"""Properties that a build gives to the compiler, and that may change its messages."""
_ACTIONS: Final = frozenset({"error", "warning", "info", "hidden", "none", "default"})


def codes(text: str) -> tuple[str, ...]:
    """Codes of warnings, as the compiler names them: a number alone is one of its own."""
    names = text.replace(",", ";").replace(" ", ";").split(";")
    codes = [one.strip().upper() for one in names if one.strip()]
    return tuple(dict.fromkeys(f"CS{int(one):04}" if one.isdigit() else one for one in codes))


def configs_above(path: str, root: str, files: FileTree, name: str = CONFIGS[0]) -> dict[str, str]:
    """The configuration files of a name above a file, by path, the outermost first; what is not read is left out."""
    found: dict[str, str] = {}
    folder = path.rpartition("/")[0]
    while f"{folder}/".startswith(f"{root.rstrip('/')}/"):
        place = f"{folder}/{name}"
        with suppress(FilepactError):
            text = files.text(place, _LARGEST)
            found = found if text is None else {place: text, **found}
        folder = folder.rpartition("/")[0]
    return found


def read_severities(
    evaluation: ProjectReader, sources: Iterable[str], named: Iterable[str], files: FileTree
) -> DiagnosticOptions:
    """What decides about the messages of a project's compilation.

    Args:
        evaluation: The project; is told which files have a say, and what is not taken into account.
        sources: The absolute paths of its sources.
        named: Configuration files that it names, as they stand there.
        files: Where files are.
    """
    for name in filter(evaluation.value, _UNHEEDED):
        evaluation.say(f"{name} is not taken into account")
    rules = evaluation.value("CodeAnalysisRuleSet")
    return DiagnosticOptions(
        codes(evaluation.value("WarningsNotAsErrors")),
        _level(evaluation),
        _read_rules(_absolute(rules, evaluation), evaluation, files) if rules else (),
        _read_configs(sources, [_absolute(one, evaluation) for one in named], evaluation, files),
    )


def _absolute(name: str, evaluation: ProjectReader) -> str:
    place = posixpath.join(evaluation.folder, unescape(name.replace("\\", "/")))
    return posixpath.normpath(place)


def _read_configs(
    sources: Iterable[str], named: Iterable[str], evaluation: ProjectReader, files: FileTree
) -> Configs:
    """The configuration files that count for a project; none where nothing in them reaches the compiler."""
    folders: set[str] = set()
    if evaluation.value("DiscoverEditorConfigFiles").lower() != "false":
        for path in sources:
            folder = path.rpartition("/")[0]
            while folder not in folders and evaluation.within(f"{folder}/"):
                folders.add(folder)
                folder = folder.rpartition("/")[0]
    named = set(named)
    texts: dict[str, str] = {}
    for place in (*(f"{folder}/{name}" for folder in sorted(folders) for name in CONFIGS), *named):
        text = None
        with suppress(FilepactError):
            text = files.text(place, _LARGEST) if evaluation.within(place) else None
        if text is not None:
            texts[place] = text
            evaluation.inputs.append(place)
        elif place in named:
            evaluation.say(f"the settings in {posixpath.basename(place)[:80]} are not read")
    return tuple(texts.items()) if any(map(_COUNTS.search, texts.values())) else ()


def _read_rules(
    path: str, evaluation: ProjectReader, files: FileTree
) -> tuple[tuple[str, str], ...]:
    """What a rule set makes of messages: codes and actions in lower case, ``*`` for all that it does not name.

    Of one that is not there, cannot be read, or takes in others, that is said, and nothing is taken.
    """
    evaluation.inputs.append(path)
    found: dict[str, str] | None = None
    with suppress(FilepactError, XmlError):
        text = files.text(path, _LARGEST) if evaluation.within(path) else None
        found = None if text is None else _rules(parse(text))
    if found is None:
        evaluation.say(f"the rule set {posixpath.basename(path)[:80]} is not taken into account")
    return tuple((found or {}).items())


def _rules(element: XmlElement) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for one in element.all():
        action = one.get("Action").lower()
        if one.name == "Include" or (action and action not in _ACTIONS):
            return None
        if one.name == "IncludeAll":
            found["*"] = action
        elif one.name == "Rule":
            found[one.get("Id")] = action
    return found


def _level(evaluation: ProjectReader) -> int | None:
    """Up to which level a project has warnings told; None for that of its framework."""
    said = evaluation.value("WarningLevel")
    if said and not (said.isdigit() and said.isascii() and len(said) <= _DIGITS):
        evaluation.say(f"WarningLevel is {said[:40]}, which means nothing")
        return None
    return int(said) if said else None


def features(text: str) -> tuple[tuple[str, str], ...]:
    """Features of the compiler as a project lists them, each with its value."""
    pairs = (one.partition("=") for one in split_list(text.replace(",", ";")))
    return tuple((name, value or "true") for name, _, value in pairs)


def with_configs(roslyn: Roslyn, options: Any, configs: Configs, trees: Mapping[str, Any]) -> Any:
    """Compilation options by which each source has the severities that configuration files give it.

    Args:
        roslyn: The compiler.
        options: The options without.
        configs: The files.
        trees: The sources, by absolute path.

    Raises:
        Exception: This compiler cannot do that.
    """
    core, reflection = roslyn.core, roslyn.reflection
    parsed = (core.AnalyzerConfig.Parse(text, place) for place, text in configs)
    known = core.AnalyzerConfigSet.Create(roslyn.array(core.AnalyzerConfig, parsed))
    results = roslyn.array(
        core.AnalyzerConfigOptionsResult, (known.GetOptionsForSourcePath(path) for path in trees)
    )
    roslyn.clr.AddReference("System.Collections.Immutable")
    immutable = importlib.import_module("System.Collections.Immutable").ImmutableArray
    # What the compiler's own program uses is not meant for others, and there is nothing else like it.
    assembly = roslyn.clr.GetClrType(core.SyntaxTree).Assembly
    provider = assembly.GetType("Microsoft.CodeAnalysis.CompilerSyntaxTreeOptionsProvider")
    flags = reflection.BindingFlags
    (make,) = provider.GetConstructors(flags.Instance | flags.Public | flags.NonPublic)
    given = [
        roslyn.array(core.SyntaxTree, trees.values()),
        immutable.Create[core.AnalyzerConfigOptionsResult](results),
        known.GlobalConfigOptions,
    ]
    made = make.Invoke(roslyn.array(roslyn.system.Object, given))
    return options.WithSyntaxTreeOptionsProvider(made)
