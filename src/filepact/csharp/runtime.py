"""Microsoft's .NET runtime within this process, and the C# compiler in it.

A runtime cannot be left once it is started, and a crash of it is a crash of the process, which is why
the server that uses this is a process of its own.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import NotFoundError, StateFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Roslyn", "start"]

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


def start(roslyn: str, dotnet: str) -> Roslyn:
    """Start the runtime and load the compiler; at most once in a process.

    Args:
        roslyn: The folder with the compiler's DLLs.
        dotnet: The folder of the runtime, with `host` and `shared` in it.

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
        )
    except Exception as error:
        raise StateFailedError(
            f"the .NET runtime does not start: {type(error).__name__}: {error}",
            hint="Check that the runtime is one for this system, and new enough for the compiler.",
        ) from error


def _namespace(name: str) -> Any:
    return importlib.import_module(name)
