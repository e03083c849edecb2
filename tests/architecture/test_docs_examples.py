"""Every example in the documents runs and prints what stands below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.architecture.examples import Example, Shell, find_examples, matches
from tests.architecture.project import DOCUMENTS, ROOT

if TYPE_CHECKING:
    from pathlib import Path


def examples(document: Path) -> list[Example]:
    return list(find_examples(document.read_text(encoding="utf-8")))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS if examples(document)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_examples_of_a_document_run_in_order(document: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for example in examples(document):
        wrong = shell.run(example)
        assert not wrong, f"{document.relative_to(ROOT)}, {wrong}"


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        ([], [], True),
        ([], ["more"], False),
        (["a"], ["a"], True),
        (["a"], ["a "], True),
        (["a"], ["a", "b"], False),
        (["a (b)"], ["a (b)"], True),
        (["a.c"], ["abc"], False),
        (["id ..., 1 file"], ["id c4f, 1 file"], True),
        (["id ..., 1 file"], ["id c4f,", "x, 1 file"], False),
        (["..."], [], True),
        (["..."], ["a", "b"], True),
        (["a", "...", "z"], ["a", "z"], True),
        (["a", "...", "z"], ["a", "b", "c", "z"], True),
        (["a", "...", "z"], ["a", "b"], False),
        (["...", "z"], ["xz"], False),
    ],
)
def test_wildcards_stand_for_text_in_a_line_or_for_lines(
    expected: list[str], printed: list[str], fits: bool
) -> None:
    assert matches(tuple(expected), tuple(printed)) is fits


PAGE = """\
```sh
$ shown only
```
````text an outer fence
```console
$ also only shown
```
````
```console
$ first
out

$ second \\
  goes on
```
```python
x = 1
```
"""


def test_only_marked_blocks_are_examples() -> None:
    assert list(find_examples(PAGE)) == [
        Example(10, "console", "first", ("out", "")),
        Example(13, "console", "second \\\n  goes on", ()),
        Example(17, "python", "x = 1", None),
    ]


def test_a_console_block_without_a_command_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="line 2"):
        list(find_examples("```console\nfilepact log\n```"))


@pytest.mark.parametrize(
    ("command", "expected", "wrong"),
    [
        ("cat greeting.txt", ("Hello, ...!",), ""),
        ("printf 'a\\n' > new; cat new", ("a",), ""),
        ("echo a", ("b",), "line 7: printed something else"),
        ("exit 3", (), "line 7: ended with status 3"),
        ("false || echo refused", ("refused",), ""),
        ('printf "$HOME" | grep -c "$PWD"', ("0",), "line 7: ended with status 1"),
    ],
)
def test_the_shell_says_which_line_is_wrong(
    tmp_path: Path, command: str, expected: tuple[str, ...], wrong: str
) -> None:
    found = Shell(tmp_path).run(Example(7, "console", command, expected))
    assert found.startswith(wrong) if wrong else not found


def test_a_python_block_is_a_whole_program(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    good = "from filepact.errors import CODES\nassert 'NOT_FOUND' in CODES"
    assert not shell.run(Example(1, "python", good, None))
    assert "NameError" in shell.run(Example(1, "python", "CODES", None))
