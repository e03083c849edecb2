"""The .NET runtime within this process, the C# compiler in it, and the libraries of projects.

A runtime cannot be left once it is started, and a crash of it is a crash of the process, which is why
the server that uses this is a process of its own.
"""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import NotFoundError, StateFailedError
from filepact_csharp.sdk_projects import prepare
from filepact_csharp.strong_names import read_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact_csharp.projects import Project

__all__ = ["Libraries", "Roslyn", "parse_options", "project_options", "start"]

_ASSEMBLIES: Final = ("Microsoft.CodeAnalysis", "Microsoft.CodeAnalysis.CSharp")
_STACK: Final = f"{32 * 1024 * 1024:x}"
_CONFIG: Final = os.path.join(os.path.dirname(__file__), "runtimeconfig.json")  # noqa: PTH118, PTH120 - names only


@dataclass(frozen=True, slots=True)
class Roslyn:
    """The compiler, and what of the runtime it is called with.  Attributes of type Any are .NET's.

    Attributes:
        version: The compiler's, such as ``4.8.0``.
        dotnet: The folder of the runtime.
        shared: The folder of the runtime's own libraries.
        system: The namespace `System`.
        core: The namespace of all of the compiler.
        csharp: The namespace of its C# part.
        text: The namespace of its texts.
        globalization: `System.Globalization`.
        reflection: `System.Reflection`.
        threading: `System.Threading`.
        collections: `System.Collections.Generic`.
        utf8: An encoding.
        clr: The bridge.
        sdk: The folder of the SDK that may evaluate projects; empty for none.
    """

    version: str
    dotnet: str
    shared: str
    system: Any
    core: Any
    csharp: Any
    text: Any
    globalization: Any
    reflection: Any
    threading: Any
    collections: Any
    utf8: Any
    clr: Any
    sdk: str = ""

    def array(self, kind: Any, items: Iterable[Any]) -> Any:
        """A .NET array of some type."""
        found = list(items)
        array = self.system.Array.CreateInstance(self.clr.GetClrType(kind), len(found))
        for number, one in enumerate(found):
            array[number] = one
        return array

    def table(self, key: Any, value: Any) -> Any:
        """An empty .NET table from one type to another."""
        return self.collections.Dictionary[key, value]()

    def field(self, type_name: str, name: str) -> Any:
        """A field of a type that is not meant for others; None where a version has none."""
        assembly = self.clr.GetClrType(self.csharp.CSharpCompilation).Assembly
        flags = self.reflection.BindingFlags
        found = assembly.GetType(type_name)
        found = found and found.GetField(name, flags.Static | flags.Public | flags.NonPublic)
        return found.GetValue(None) if found else None


def start(roslyn: str, dotnet: str, sdk: str = "") -> Roslyn:
    """Start the runtime and load the compiler; at most once in a process.

    Args:
        roslyn: The folder with the compiler's DLLs.
        dotnet: The folder of the runtime, with `host` and `shared` in it.
        sdk: The folder of an SDK that may evaluate projects; empty for none.

    Raises:
        NotFoundError: The bridge to .NET, the runtime or the compiler is not there.
        StateFailedError: They are there and do not start.
    """
    places = [os.path.join(roslyn, f"{name}.dll") for name in _ASSEMBLIES]  # noqa: PTH118 - names only
    for place in places:
        if not os.path.isfile(place):  # noqa: PTH113 - the one question
            raise NotFoundError("the folder of the C# compiler has no compiler in it")
    # Without it the runtime looks for a library of the system that may not be there.
    os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"
    if sdk:
        prepare(sdk)
    # The person's environment, not ours: the bridge would look for Python there.
    os.environ.pop("VIRTUAL_ENV", None)
    # It would listen for programs that look into it.
    os.environ["DOTNET_EnableDiagnostics"] = "0"  # noqa: SIM112 - as the runtime spells it
    # The compiler goes down into expressions as deep as they are, and a full stack ends the process.
    os.environ["DOTNET_DefaultStackSize"] = _STACK  # noqa: SIM112 - as the runtime spells it
    try:
        loader = importlib.import_module("clr_loader")
        bridge = importlib.import_module("pythonnet")
    except ImportError as error:
        raise NotFoundError("the package pythonnet is not installed") from error
    try:
        # A relative folder is refused by the runtime with a number that says nothing.
        runtime = loader.get_coreclr(
            runtime_config=_CONFIG,
            dotnet_root=os.path.abspath(dotnet),  # noqa: PTH100 - names only
        )
        bridge.set_runtime(runtime)
        clr: Any = importlib.import_module("clr")
        system = _namespace("System")
        assembly = _namespace("System.Reflection").Assembly
        for name, place in zip(_ASSEMBLIES, places, strict=True):
            assembly.LoadFrom(os.path.abspath(place))  # noqa: PTH100 - names only
            clr.AddReference(name)
        csharp = _namespace("Microsoft.CodeAnalysis.CSharp")
        version = clr.GetClrType(csharp.CSharpCompilation).Assembly.GetName().Version
        environment = _namespace("System.Runtime.InteropServices").RuntimeEnvironment
        return Roslyn(
            f"{version.Major}.{version.Minor}.{version.Build}",
            os.path.abspath(dotnet),  # noqa: PTH100 - names only
            str(environment.GetRuntimeDirectory()),
            system,
            _namespace("Microsoft.CodeAnalysis"),
            csharp,
            _namespace("Microsoft.CodeAnalysis.Text"),
            _namespace("System.Globalization"),
            _namespace("System.Reflection"),
            _namespace("System.Threading"),
            _namespace("System.Collections.Generic"),
            _namespace("System.Text").Encoding.UTF8,
            clr,
            sdk,
        )
    except Exception as error:
        raise StateFailedError(
            f"the .NET runtime does not start: {type(error).__name__}: {error}",
            hint="Check that the runtime is one for this system, and new enough for the compiler.",
        ) from error


def _namespace(name: str) -> Any:
    return importlib.import_module(name)


# -- how a project is compiled ---------------------------------------------------------------------

_KINDS: Final = {
    "library": "DynamicallyLinkedLibrary",
    "exe": "ConsoleApplication",
    "winexe": "WindowsApplication",
}
_ALWAYS_QUIET: Final = ("CS1701", "CS1702")  # versions of packages that the build brings together
_LEVELLED: Final = re.compile(r"net(\d+)\.\d")
_OLD_LEVEL: Final = 4


def parse_options(roslyn: Roslyn, project: Project, notes: list[str]) -> Any:
    """How the sources of a project are read.

    Args:
        roslyn: The compiler.
        project: The project.
        notes: Gets a sentence where the compiler does not know the version of the language.
    """
    csharp = roslyn.csharp
    facts, version = csharp.LanguageVersionFacts, csharp.LanguageVersion
    known, wanted = facts.TryParse(project.lang_version, version.Default)
    if not known:
        newest = facts.ToDisplayString(facts.MapSpecifiedToEffectiveVersion(version.Latest))
        notes.append(
            f"this compiler does not know C# {project.lang_version[:20]}; C# {newest} is used"
        )
        wanted = version.Preview
    symbols = roslyn.array(roslyn.system.String, project.defines)
    options = csharp.CSharpParseOptions(wanted).WithPreprocessorSymbols(symbols)
    if project.documented:
        options = options.WithDocumentationMode(roslyn.core.DocumentationMode.Diagnose)
    if project.features:
        features = roslyn.table(roslyn.system.String, roslyn.system.String)
        for name, value in project.features:
            features[name] = value
        options = options.WithFeatures(features)
    return options


def project_options(roslyn: Roslyn, project: Project) -> Any:
    """How a project is compiled."""
    core, csharp = roslyn.core, roslyn.csharp
    report = core.ReportDiagnostic
    nullable = getattr(core.NullableContextOptions, project.nullable.title())
    options = csharp.CSharpCompilationOptions(getattr(core.OutputKind, _KINDS[project.output]))
    if project.startup and project.output != "library":
        options = options.WithMainTypeName(project.startup)
    options = (
        options.WithNullableContextOptions(nullable)
        .WithAllowUnsafe(project.unsafe)
        .WithOverflowChecks(project.checked)
        .WithWarningLevel(
            _level(project.target_framework)
            if project.severities.level is None
            else project.severities.level
        )
        .WithAssemblyIdentityComparer(core.DesktopAssemblyIdentityComparer.Default)
    )
    options = _signed(roslyn, project, options)
    actions = {"warning": report.Warn, "info": report.Info, "none": report.Suppress}
    actions |= {"error": report.Error, "hidden": report.Hidden, "default": report.Default}
    kinds = {code: actions[action] for code, action in project.severities.rules}
    if "*" in project.warnings_as_errors:
        options = options.WithGeneralDiagnosticOption(report.Error)
        kinds |= {code: report.Error for code, kind in kinds.items() if kind == report.Warn}
    elif "*" in kinds:
        options = options.WithGeneralDiagnosticOption(kinds["*"])
    kinds.pop("*", None)
    kinds |= dict.fromkeys(_codes(roslyn, project.warnings_as_errors), report.Error)
    for code in _codes(roslyn, project.severities.not_errors):
        kinds[code] = actions[dict(project.severities.rules).get(code, "default")]
    kinds |= dict.fromkeys(_codes(roslyn, (*project.no_warn, *_ALWAYS_QUIET)), report.Suppress)
    table = roslyn.table(roslyn.system.String, report)
    for code, kind in kinds.items():
        table[code] = kind
    return options.WithSpecificDiagnosticOptions(table)


def _signed(roslyn: Roslyn, project: Project, options: Any) -> Any:
    """Options with the public key by which others let the project see their inside."""
    key = read_key(project.key_file) if project.key_file else None
    if key is None:
        return options
    name = f"Any, PublicKey={key.hex()}"
    known, identity = roslyn.core.AssemblyIdentity.TryParseDisplayName(name, None)
    return options.WithCryptoPublicKey(identity.PublicKey) if known else options


def _codes(roslyn: Roslyn, codes: Iterable[str]) -> Iterator[str]:
    """Codes, with those in place of the name that stands for all about null."""
    for code in codes:
        if code.lower() != "nullable":
            yield code
            continue
        found = roslyn.field("Microsoft.CodeAnalysis.CSharp.ErrorFacts", "NullableWarnings")
        yield from (str(one) for one in found or ())


def _level(target: str) -> int:
    """The warning level: one more with each version of .NET since the fifth."""
    modern = _LEVELLED.match(target)
    return max(int(modern[1]), _OLD_LEVEL) if modern else _OLD_LEVEL


# -- the libraries of a project --------------------------------------------------------------------

_USUAL: Final = "Microsoft.NETCore.App"
_NUMBERS: Final = re.compile(r"\d+")
_MODERN: Final = re.compile(r"net(?:coreapp)?(\d+)\.(\d+)")


class Libraries:
    """Libraries as the compiler refers to them; each is read once.

    Args:
        roslyn: The compiler.
    """

    def __init__(self, roslyn: Roslyn) -> None:
        self._roslyn = roslyn
        self._known: dict[str, tuple[tuple[int, int], Any]] = {}
        self._folders: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, project: Project) -> tuple[list[Any], list[str], bool]:
        """References of a project, what should be known of them as sentences, whether one is missing."""
        paths: list[str] = []
        notes: list[str] = []
        short = False
        for name in dict.fromkeys((_USUAL, *project.frameworks)):
            found = self._framework(name, project.target_framework)
            paths += found
            short = short or not found
            if not found:
                notes.append(f"the framework {name} is not installed; its types are not known")
        notes += self._differing(project.target_framework)
        references = [one for path in paths if (one := self._reference(path)) is not None]
        for path in project.packages:
            one = self._reference(path)
            short = short or one is None
            if one is None:
                notes.append(f"the library {Path(path).name[:80]} is not there or cannot be read")
            else:
                references.append(one)
        return references, notes, short

    def are_older(self, project: Project) -> bool:
        """Whether the libraries are of an older .NET than a project is for."""
        target = project.target_framework
        modern = _MODERN.match(target)
        if modern is None or self._pack(_USUAL, target):
            return False
        return int(modern[1]) > int(Path(self._roslyn.shared).name.partition(".")[0])

    def _framework(self, name: str, target: str) -> tuple[str, ...]:
        """The DLLs of a framework: of its targeting pack if there is one, else of the runtime."""
        key = (name, target)
        if key not in self._folders:
            folder = self._pack(name, target) or self._shared(name)
            names = sorted(Path(folder).glob("*.dll")) if folder else []
            self._folders[key] = tuple(str(one) for one in names)
        return self._folders[key]

    def _pack(self, name: str, target: str) -> str:
        packs = Path(self._roslyn.dotnet, "packs", f"{name}.Ref")
        for version in _newest(packs):
            folder = version / "ref" / target.partition("-")[0]
            if target and folder.is_dir():
                return str(folder)
        return ""

    def _shared(self, name: str) -> str:
        if name == _USUAL:
            return self._roslyn.shared
        folder = Path(self._roslyn.dotnet, "shared", name)
        running = Path(self._roslyn.shared).name.partition(".")[0]
        for version in _newest(folder):
            if version.name.partition(".")[0] == running:
                return str(version)
        return ""

    def _differing(self, target: str) -> Iterator[str]:
        """Says so where a project is checked against another framework than its own."""
        if not target or self._pack(_USUAL, target):
            return
        version = Path(self._roslyn.shared).name
        modern = _MODERN.match(target)
        if modern is None:
            yield f"{target} is checked against the libraries of .NET {version}, which has more"
        elif modern[1] != version.partition(".")[0]:
            yield f"{target} is checked against the libraries of .NET {version}"

    def _reference(self, path: str) -> Any:
        """One library; None if it is not there or is none of .NET's."""
        try:
            stat = os.stat(path)  # noqa: PTH116 - one call for time and size
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if path not in self._known or self._known[path][0] != stamp:
            reference = None
            if self._is_managed(path):
                reference = self._roslyn.core.MetadataReference.CreateFromFile(path)
            self._known[path] = (stamp, reference)
        return self._known[path][1]

    def _is_managed(self, path: str) -> bool:
        try:
            self._roslyn.reflection.AssemblyName.GetAssemblyName(path)
        except self._roslyn.system.Exception:
            return False
        return True


def _newest(folder: Path) -> Iterable[Path]:
    """The versions in a folder, the newest first."""
    found = [one for one in folder.glob("*") if one.name[:1].isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda one: [int(part) for part in _NUMBERS.findall(one.name)])[::-1]
