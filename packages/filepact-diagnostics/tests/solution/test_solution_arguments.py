"""Whatever is sent to a solution's tools, the answer is an envelope as its schema says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filepact.errors import CODES
from filepact_diagnostics.solution import SOLUTION_TOOLS
from tests.servers.solution_world import world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.solution_world import World

NAMES = sorted({name for one in SOLUTION_TOOLS for name in one.schema["properties"]})
ODD = st.sampled_from(
    [
        "",
        ".",
        "..",
        "/",
        "a.cs",
        "sub/b.cs",
        "sub",
        "gone.cs",
        "/etc/passwd",
        "\0",
        "\ud800",
        "é\u2028",
    ]
)
VALUES = st.one_of(
    ODD,
    st.text(max_size=20),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("solution")) as made:
        made.put("a.cs", "one\n")
        made.put("sub/b.cs", "two\n")
        yield made


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("tool", [one.name for one in SOLUTION_TOOLS])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(arguments=st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=6)), VALUES))
def test_the_answer_is_an_envelope(it: World, tool: str, arguments: dict[str, Any]) -> None:
    error = it.answer(tool, **arguments)["error"]
    assert error is None or error["code"] in CODES


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.one_of(ODD, st.text(max_size=12)),
    content=st.text(max_size=200),
    apply=st.booleans(),
    create=st.booleans(),
    most=st.integers(0, 300),
    style=st.sampled_from(["absolute", "relative"]),
)
def test_what_is_said_of_a_write_is_so(
    it: World, path: str, content: str, apply: bool, create: bool, most: int, style: str
) -> None:
    before = {one: one.read_bytes() for one in it.root.rglob("*") if one.is_file()}
    answer = it.answer(
        "write_file",
        filePath=path,
        content=content,
        applyChanges=apply,
        createIfMissing=create,
        maxDiffChars=most,
        pathStyle=style,
    )
    after = {one: one.read_bytes() for one in it.root.rglob("*") if one.is_file()}
    data = answer["data"]
    if data is None or not data["applied"]:
        assert after == before
        return
    (changed,) = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert data["created"] is (changed not in before)
    assert after[changed].decode() == content
    assert not most or len(data["unifiedDiff"]) <= most
    shown = data["filePath"] if style == "absolute" else f"{it.root}/{data['filePath']}"
    assert shown == str(changed)
