"""The server for C# as one of a pool's: proposed texts, new files, the solution that was opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from filepact_diagnostics.lsp.pool import ServerPool
from filepact_wire.uris import uri_of
from talk import copy_shop
from tests.servers.asking import delta_of, preview_of, report_of
from tests.servers.csharp_toolchain import toolchain_or_skip
from tests.servers.real_servers import SECONDS, locate, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SKU = "Shop.Core/Catalogue/Sku.cs"
ORDER_COMMAND = "Shop.App/Commands/OrderCommand.cs"
CHECK = "Shop.Tests/Check.cs"
EXTRA = "Shop.Core/Extra.cs"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_shop(tmp_path_factory.mktemp("csharp") / "shop")


@pytest.fixture(scope="module")
def pool(root: Path) -> Iterator[ServerPool]:
    toolchain_or_skip()
    made = ServerPool([server("filepact-csharp")], {"PATH": os.environ["PATH"]}, locate)
    # All but the tests, to which nothing refers.
    made.know(str(root), solution_uri=uri_of(str(root / "Shop.App" / "Shop.App.csproj")))
    yield made
    made.close()


def texts(root: Path, *names: str) -> dict[str, str]:
    return {str(root / name): (root / name).read_text(encoding="utf-8") for name in names}


def test_a_proposed_text_of_a_library_is_judged_with_those_who_use_it(
    pool: ServerPool, root: Path
) -> None:
    proposed = {path: text.replace("IsValid", "IsRight") for path, text in texts(root, SKU).items()}
    files = texts(root, SKU, ORDER_COMMAND)
    (seen,) = preview_of(pool, str(root), proposed, files, SECONDS)
    assert seen.complete
    assert delta_of(seen) is not None
    assert [(one.code, os.path.relpath(one.path, root)) for one in delta_of(seen).new] == [
        ("CS0117", ORDER_COMMAND)
    ]
    reports = report_of(pool, str(root), files, SECONDS)
    assert all(one.fresh and not one.diagnostics for one in reports)


def test_a_proposed_file_that_is_not_there_yet_is_seen_by_others(
    pool: ServerPool, root: Path
) -> None:
    new = 'namespace Shop { public static class Extra { public const string Word = ""; } }'
    user = texts(root, ORDER_COMMAND)
    uses = {path: text.replace("(text, 1)", "(text, Extra.Word)") for path, text in user.items()}
    (seen,) = preview_of(pool, str(root), {str(root / EXTRA): new, **uses}, user, SECONDS)
    assert seen.complete
    assert delta_of(seen) is not None
    # The name is found, and its type does not fit.
    assert {one.code for one in delta_of(seen).new} == {"CS0029"}


def test_only_what_was_opened_is_looked_at(pool: ServerPool, root: Path) -> None:
    path = str(root / CHECK)
    (report,) = report_of(pool, str(root), {path: "this is no code"}, SECONDS)
    assert report.fresh
    assert report.diagnostics == ()
