"""The server for C# over projects of several kinds, each read from its files and compiled."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from filepact_csharp.strong_names import public_key
from project_tree import ProjectTree, sdk
from talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAIR = struct.pack("<BBHI4sII", 7, 2, 0, 0x2400, b"RSA2", 1024, 65537) + bytes(range(1, 129)) * 5
SIGNED = (
    "<PropertyGroup><SignAssembly>true</SignAssembly>"
    "<AssemblyOriginatorKeyFile>..\\key.snk</AssemblyOriginatorKeyFile></PropertyGroup>"
)
REFERS = '<ItemGroup><ProjectReference Include="..\\lib\\Lib.csproj" /></ItemGroup>'


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    return ProjectTree(tmp_path.resolve())


@pytest.fixture
def codes(tree: ProjectTree) -> Iterator[Callable[[], list[str]]]:
    """The codes of all that is wrong in the tree, by a server that is started for it."""
    started: list[Talk] = []

    def ask() -> list[str]:
        talk = Talk(tree.root)
        started.append(talk)
        return sorted(code for found in talk.survey().values() for code in found)

    yield ask
    for talk in started:
        talk.kill()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("app", "wrong"), [(SIGNED, False), ("", True)], ids=["signed", "not signed"]
)
def test_a_friend_that_is_named_with_its_key_has_to_be_signed(
    app: str, wrong: bool, tree: ProjectTree, codes: Callable[[], list[str]]
) -> None:
    (tree.root / "key.snk").write_bytes(PAIR)
    key = public_key(PAIR)
    assert key is not None
    tree.put("lib/Lib.csproj", sdk(SIGNED))
    tree.put(
        "lib/Inside.cs",
        f'[assembly: System.Runtime.CompilerServices.InternalsVisibleTo("App, PublicKey={key.hex()}")]\n'
        "static class Inside { internal const int Number = 3; }\n",
    )
    tree.put("app/App.csproj", sdk(app + REFERS))
    tree.put("app/Use.cs", "public class Use { public int Number => Inside.Number; }\n")
    assert bool(codes()) is wrong


def test_of_several_target_frameworks_one_is_compiled_that_the_runtime_has(
    tree: ProjectTree, codes: Callable[[], list[str]]
) -> None:
    several = "net472;net99.0;netstandard2.0;net6.0"
    body = f"<PropertyGroup><TargetFrameworks>{several}</TargetFrameworks></PropertyGroup>"
    tree.put("App.csproj", sdk(body, framework=""))
    tree.put("A.cs", "#if !NET6_0\n#error another one\n#endif\n")
    assert codes() == []


def test_sources_of_no_project_are_compiled_together(
    tree: ProjectTree, codes: Callable[[], list[str]]
) -> None:
    tree.put("A.cs", "class A { public int Number => new B().Number; }\n")
    tree.put("x/B.cs", "class B { public int Number => missing; }\n")
    assert codes() == ["CS0103"]
