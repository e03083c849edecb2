"""The fixture ``filepact_files``: the project's files for a test, whose changes are taken back after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.faces.library.files import Files

__all__ = ["filepact_files"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "filepact_root",
        "The folder that the fixture filepact_files opens, relative to the root of the tests.",
        default=".",
    )


@pytest.fixture
def filepact_files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Files]:
    """The files of the project, in a journal of this test's own; what the test changes goes back.

    What other programs write is theirs and stays; where it is on the same lines as a change of the
    test, the test ends with the error ``STALE_FILE``.
    """
    # Not at the top: every test run of an environment with filepact loads this module.
    from filepact.faces.library.files import open_files  # noqa: PLC0415

    root = request.config.rootpath / str(request.config.getini("filepact_root"))
    state = tmp_path_factory.mktemp("filepact")
    with open_files(root, rules="built-in", state_dir=state) as files:
        turn = files.begin_turn(request.node.name)
        yield files
        files.end_turn()
        turn.undo()
