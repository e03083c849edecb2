"""Every example in the documents runs, and prints what stands below it; or it is named here, with the reason.

The examples of one document run in order.  Those of the shell begin with a folder in which an agent has
changed a file, and what one of them needs besides is done right before it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

import filepact
from tests.architecture.examples import Example, Shell, find_examples, matches
from tests.architecture.project import DOCUMENTS, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NETWORK = "fetches packages; tests/faces/test_light_install.py installs what is built here"
SUITE = "is the tests themselves, or takes minutes to hours"
BUCKET = (
    "wants a bucket; packages/filepact-fleet/tests/test_bucket_server.py runs it on a real server"
)
DATABASE = "wants a database; packages/filepact-fleet/tests/test_postgres.py and test_copy.py have a real one"
CHILD = "wants an agent's program; tests/agents runs the real ones"
LOGIN = "wants a gateway; tests/agents/test_through_a_gateway.py and tests/faces/test_inspector_login.py run it"

ELSEWHERE = {
    "uv tool install": NETWORK,
    "pipx install": NETWORK,
    "pip install": NETWORK,
    "filepact install csharp": "fetches packages; tests/faces/test_cli_csharp.py",
    "./scripts/": SUITE,
    "python -m bench": SUITE,
    ".venv-test/bin/python -m tests.hostile.corpus": SUITE,
    "claude mcp": LOGIN,
    "codex mcp": LOGIN,
    "npx @modelcontextprotocol/inspector": LOGIN,
    "claude plugin": CHILD,
    "gemini extensions": CHILD,
    'claude "': CHILD,
    'codex "': CHILD,
    "gemini -i": CHILD,
    "cp /path/to/the/clone/plugins/opencode": CHILD,
    "filepact acp -- gemini": CHILD,
    "filepact run": "wants an agent's program, whose runs are tests/agents/test_run_agents.py; packages/filepact-run/tests/test_run.py",
    "export AWS": BUCKET,
    "mkdir ~/work": BUCKET,
    "filepact mcp ~/work": BUCKET,
    "filepact workspace": BUCKET,
    "filepact store": DATABASE,
    "acp-conformance": "wants a client; tests of packages/acp-conformance run it",
    "filepact tour": "takes seconds; tests/faces/test_tour.py",
    "filepact review": "draws a window; packages/filepact-windows/tests",
    "filepact serve": "serves on a fixed port; packages/filepact-gateway/tests",
    "filepact diagnostics": "wants language servers; tests/faces/test_cli_diagnostics.py",
    "filepact audit sign": "wants a backup's disk; packages/filepact-cli/tests/test_cli_audit.py",
    "filepact audit verify": "the same",
    "EDITOR=nano": "wants an editor; packages/filepact-cli/tests/test_cli_config.py",
    'eval "$(filepact completion bash)"': "wants bash, here is any shell; packages/filepact-cli/tests/test_cli_parser.py",
}
"""How commands begin that are not run here, and why."""


def changed(shell: Shell, mode: Literal["auto", "preview"] = "auto") -> None:
    """Have an agent make a file in a turn, or want to."""
    state = shell.work.parent / "home" / ".local" / "state" / "filepact"
    with (
        filepact.open(shell.work, agent="my-agent", mode=mode, state_dir=state) as files,
        files.turn("what the person asked for"),
    ):
        files.write(f"greeting-{secrets.token_hex(4)}.txt", "hello\n")


def undone(shell: Shell) -> None:
    changed(shell)
    shell.do("filepact undo")


def wants(shell: Shell) -> None:
    changed(shell, mode="preview")


def granted(shell: Shell) -> None:
    wants(shell)
    shell.do("filepact approve c4k2m --also 'greeting-*' --unattended")


def repository(shell: Shell) -> None:
    shell.do(
        "rm -rf .git && git init -q && git add . && git -c user.name=n -c user.email=e commit -qm m"
        " && echo more >> greeting.txt"
    )


def files(shell: Shell) -> None:
    """The files that the reference of the command names."""
    for name, text in {
        "src/app.py": "def one_test(): ...\n" * 70,
        "src/old.py": "old\n",
        "docs/old.md": "old\n",
        "app.py": "port = 80\n",
        "event.json": '{"session_id": "s", "hook_event_name": "SessionStart"}',
        ".filepact.toml": "[[expect]]\npaths = ['a.txt']\naction = 'read'\nverdict = 'allow'\n",
    }.items():
        (shell.work / name).parent.mkdir(exist_ok=True)
        (shell.work / name).write_text(text)


BEFORE: dict[str, Callable[[Shell], None]] = {
    "filepact mcp ~/project": files,
    "filepact diff c4k2m | git": changed,
    "filepact undo": changed,
    "filepact redo": undone,
    "filepact restore": changed,
    "filepact approve": wants,
    "filepact reject": wants,
    "filepact policy grants": granted,
    "git diff": repository,
}
"""What is done before commands that begin so."""

STOPPED = {"filepact mcp": ""}
"""What goes on until it is stopped, and what it prints before."""

TYPED = {
    "filepact trust": [("[y/N]", "n\n")],
    "filepact approve": [("[y/N]", "y\n")],
}
"""What a person answers."""

ANSWERED = "[y/N] y"
"""How a question ends that is answered in a document."""

LEFT_OVER = {"filepact guard": "filepact guard ~/project --stop"}
NOTHING_TO_DO = ("filepact doctor --repair", "filepact trust", "filepact policy test")
"""What ends with 3 here, as it may."""


def examples(document: Path) -> list[Example]:
    return list(find_examples(document.read_text(encoding="utf-8")))


def begins(example: Example, names: object) -> str:
    """With which of some names a command of a shell block begins; empty for none."""
    found = [one for one in names if example.command.startswith(one)]  # type: ignore[attr-defined]
    return max(found, key=len, default="") if example.language == "sh" else ""


def unechoed(example: Example) -> Example:
    """The example as a terminal shows it that does not echo what is typed: an answer and the end of its line are missing."""
    lines: list[str] = []
    for line in example.expected or ():
        if lines and lines[-1].endswith(ANSWERED):
            lines[-1] = lines[-1].removesuffix("y") + line.strip()
            lines += [line] if line.strip() == "..." else []
        else:
            lines.append(line)
    return example if example.expected is None else replace(example, expected=tuple(lines))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS if examples(document)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_examples_of_a_document_run_in_order(document: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    found = [one for one in examples(document) if not begins(one, ELSEWHERE)]
    if any(one.language == "sh" for one in found):
        changed(shell)
    for example in found:
        if before := begins(example, BEFORE):
            BEFORE[before](shell)
        answered = any(line.endswith(ANSWERED) for line in example.expected or ())
        wrong = shell.run(
            unechoed(example),
            typed=[("[y/N]", "y\n")] if answered else TYPED.get(begins(example, TYPED), ()),
            stop_at=STOPPED.get(begins(example, STOPPED)),
            allowed=(0, 3) if begins(example, NOTHING_TO_DO) else (0,),
        )
        if after := begins(example, LEFT_OVER):
            shell.do(LEFT_OVER[after])
        assert not wrong, f"{document.relative_to(ROOT)}, {wrong}"


def test_what_is_not_run_stands_in_a_document() -> None:
    every = [
        one for document in (*DOCUMENTS, ROOT / "bench" / "README.md") for one in examples(document)
    ]
    used = {begins(one, ELSEWHERE) for one in every}
    assert {*ELSEWHERE} <= used


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
        Example(2, "sh", "$ shown only", None),
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
