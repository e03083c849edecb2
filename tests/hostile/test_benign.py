"""The built-in rules stand in nobody's way: measured over the files of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile.benign import (
    CONTROL,
    ENOUGH,
    MANIFESTS,
    SECRETS,
    Hit,
    examine,
    files,
    folders,
    share,
)

if TYPE_CHECKING:
    from pathlib import Path

PRIVATE = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.fixture(scope="module")
def measured() -> tuple[int, list[Hit]]:
    count, hits = examine(files(folders(), ENOUGH))
    if count < ENOUGH:
        pytest.skip(f"only {count} files of packages are installed on this machine")
    return count, hits


@pytest.mark.parametrize(
    ("rules", "most"), [(SECRETS, 0.05), (CONTROL, 0.2), (MANIFESTS, 0.2)], ids=str
)
def test_few_files_of_packages_are_wrongly_blocked(
    measured: tuple[int, list[Hit]], rules: tuple[str, ...], most: float
) -> None:
    count, hits = measured
    wrong = [hit.path for hit in hits if hit.rule in rules and hit.wrong]
    assert share(count, hits, rules, wrong=True) <= most, "\n".join(wrong)


def test_few_files_of_packages_are_control_files_at_all(measured: tuple[int, list[Hit]]) -> None:
    count, hits = measured
    # Packages from npm bring the files along by which they themselves are built and published.
    assert share(count, hits, CONTROL, wrong=False) <= 0.5


def test_a_hit_is_right_when_the_file_is_what_the_rule_says(tmp_path: Path) -> None:
    contents = {
        "notes.txt": "nothing",
        "server.key": PRIVATE,
        "client.pem": "-----BEGIN CERTIFICATE-----",
        "store.p12": "",
        "docs/Agent.md": "a class",
        "dockerfile.vim": "syntax",
        "package.json": "{}",
        ".vscode/settings.json": "{}",
    }
    for name, text in contents.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    count, hits = examine(files([str(tmp_path)]))
    assert count == len(contents)
    assert {hit.path.removeprefix(f"{tmp_path}/"): hit.wrong for hit in hits} == {
        "server.key": False,
        "client.pem": True,
        "store.p12": False,
        "docs/Agent.md": True,
        "dockerfile.vim": True,
        "package.json": False,
        ".vscode/settings.json": False,
    }
    assert share(count, hits, SECRETS, wrong=False) == 100 * 3 / 8
    assert share(count, hits, SECRETS, wrong=True) == 100 * 1 / 8


def test_a_file_below_two_folders_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").touch()
    assert len(list(files([str(tmp_path), str(tmp_path / "a")]))) == 1
    assert len(list(files([str(tmp_path), "/usr"], enough=1))) == 1
