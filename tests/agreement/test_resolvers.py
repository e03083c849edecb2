"""Both resolvers say the same of every name, and neither ever says anything of the outside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filepact.errors import FilepactError, PathBlockedError
from filepact.fs.root import Root
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow] * often(0, 1)

LINKS = {
    "self": ".",
    "up": "..",
    "out": "../outside",
    "file": "f",
    "slash": "f/",
    "dot": "d/./../f",
    "dir": "d/",
    "deep": "d/e/g",
    "gone": "no/such",
    "dangling": "d/new",
    "absolute": "/",
    "loop": "loop",
    "d/back": "../f",
    "d/high": "../..",
    "d/e/top": "../../self/d",
    "d/e/way": "../back",
    "proc": "/proc/self/root",
}
PARTS = [
    *(name.rpartition("/")[2] for name in LINKS),
    "d", "e", "f", "g", "new", "outside", "root", "secret", ".", "..", "", "...",
]  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Root, Root]]:
    outer = tmp_path_factory.mktemp("outer")
    top = outer / "root"
    (top / "d/e").mkdir(parents=True)
    (outer / "outside").mkdir()
    for name, text in (("root/f", "f"), ("root/d/e/g", "g"), ("outside/secret", "SECRET")):
        (outer / name).write_text(text)
    os.mkfifo(top / "d/pipe")
    for name, target in LINKS.items():
        (top / name).symlink_to(target)
    try:
        first = Root.open(top, resolver="openat2")
    except PathBlockedError:
        pytest.skip("this system has no openat2")
    with first, Root.open(top, resolver="walk") as second:
        yield top, first, second


def answer(act) -> tuple[object, ...]:
    try:
        return (act(),)
    except FilepactError as error:
        return error.code, error.message, error.hint


def kernel(top: Path, path: str) -> str | None:
    """What the system opens for a name, as a true path; None when nothing."""
    try:
        handle = os.open(top / path, os.O_PATH)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


@settings(
    max_examples=often(500, 2_500), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=7))
def test_both_lead_to_the_same_place_or_refuse_in_the_same_words(
    both: tuple[Path, Root, Root], parts: list[str]
) -> None:
    top, first, second = both
    path = "/".join(parts)
    place = answer(lambda: first.place(path))
    assert place == answer(lambda: second.place(path))
    read = answer(lambda: first.read(path, limit=99))
    assert read == answer(lambda: second.read(path, limit=99))
    assert "SECRET" not in repr(read)
    assert str(top.parent) not in repr((place, read))


@pytest.mark.slow
@settings(
    max_examples=often(300, 1_500), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=7))
def test_what_both_find_is_what_the_kernel_finds_without_a_guard(
    both: tuple[Path, Root, Root], parts: list[str]
) -> None:
    top, first, _ = both
    path = "/".join(parts)
    try:
        place = first.place(path)
    except FilepactError:
        return
    truth = kernel(top, path)
    if place.kind == "missing":
        assert truth is None
    else:
        assert truth == str(top if place.path == "." else top / place.path)


@pytest.mark.parametrize("name", [*LINKS, "d/pipe", "slash/x", "self/up", "deep/.."])
def test_both_agree_on_what_can_be_opened_as_a_folder(
    both: tuple[Path, Root, Root], name: str
) -> None:
    _, first, second = both

    def opened(root: Root) -> tuple[int, int]:
        descriptor = root.open_directory(name)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return status.st_dev, status.st_ino

    assert answer(lambda: opened(first)) == answer(lambda: opened(second))
