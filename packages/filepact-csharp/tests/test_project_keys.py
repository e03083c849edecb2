"""Key files: by which an assembly is known to those that it lets see its inside."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_csharp.strong_names import public_key
from project_tree import ProjectTree, sdk

if TYPE_CHECKING:
    from pathlib import Path

MODULUS = bytes(range(1, 129))
PAIR = struct.pack("<BBHI4sII", 7, 2, 0, 0x2400, b"RSA2", 1024, 65537) + MODULUS + b"private" * 60
ALONE = struct.pack("<BBHI4sII", 6, 2, 0, 0x2400, b"RSA1", 1024, 65537) + MODULUS
# A key that is known to everybody: the one of the platform's own libraries.
ECMA = bytes.fromhex("00000000000000000400000000000000")


@pytest.mark.parametrize("content", [PAIR, ALONE, public_key(ALONE)], ids=["pair", "alone", "done"])
def test_all_forms_of_a_key_give_the_same(content: bytes) -> None:
    key = public_key(content)
    assert key is not None
    assert key[:12] == bytes.fromhex("002400000480000094000000")
    assert key[12:] == ALONE
    # The short form by which people know it is made from this.
    assert len(hashlib.sha1(key, usedforsecurity=False).digest()[-8:]) == 8


@pytest.mark.parametrize(
    "content",
    [
        b"",
        ECMA,
        PAIR[:40],
        PAIR.replace(b"RSA2", b"RSA1"),
        PAIR.replace(b"RSA2", b"DSS2"),
        struct.pack("<BBHI4sII", 7, 2, 0, 0x2400, b"RSA2", 2**31, 3) + MODULUS,
        struct.pack("<BBHI4sII", 7, 2, 0, 0x2400, b"RSA2", 0, 3) + MODULUS,
    ],
)
def test_what_is_no_key_gives_none(content: bytes) -> None:
    assert public_key(content) is None


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", PAIR[:12], ALONE[:20], b"\0" * 8 + b"\xff" * 4 + b"\6"]),
)
def test_any_bytes_give_a_key_or_none(content: bytes, head: bytes) -> None:
    key = public_key(head + content)
    assert key is None or public_key(key) == key


SIGNED = "<PropertyGroup><SignAssembly>true</SignAssembly><AssemblyOriginatorKeyFile>{}</AssemblyOriginatorKeyFile></PropertyGroup>"


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    found = ProjectTree(tmp_path)
    (tmp_path / "key.snk").write_bytes(PAIR)
    return found


def test_the_key_of_a_signed_project_is_found(tree: ProjectTree) -> None:
    tree.put("a/App.csproj", sdk(SIGNED.format("..\\key.snk")))
    assert tree.project("a/App.csproj", quiet=True).key_file == f"{tree.root}/key.snk"


def test_a_project_that_is_not_signed_has_none(tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(SIGNED.format("key.snk").replace("true", "false")))
    assert tree.project(quiet=True).key_file == ""


@pytest.mark.parametrize("name", ["gone.snk", "../key.snk", "/etc/hostname"])
def test_a_key_that_cannot_be_had_is_told(name: str, tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(SIGNED.format(name)))
    project = tree.project()
    assert project.key_file == ""
    assert project.approximate


def test_friends_may_be_known_by_their_keys(tree: ProjectTree) -> None:
    body = '<ItemGroup><InternalsVisibleTo Include="One" Key="0024" /><InternalsVisibleTo Include="Two" /></ItemGroup>'
    tree.put("App.csproj", sdk(body))
    assert tree.project(quiet=True).friends == ("One, PublicKey=0024", "Two")
    tree.put("App.csproj", sdk(body + "<PropertyGroup><PublicKey>0048</PublicKey></PropertyGroup>"))
    assert tree.project(quiet=True).friends == ("One, PublicKey=0024", "Two, PublicKey=0048")
