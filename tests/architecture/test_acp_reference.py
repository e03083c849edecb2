"""The page about the Agent Client Protocol says what the code does."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import filepact.acp
from filepact.errors import CODES
from filepact_acp import errors
from filepact_acp.agents import QUIRKS, AgentProfile
from filepact_acp.client import ClientFileSystem
from tests.architecture.project import REFERENCE

_PARTS = re.split(r"^## (.+)$", (REFERENCE / "acp.md").read_text(), flags=re.MULTILINE)
PAGE = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))
FACE = Path(errors.__file__).parent
NUMBERS = {name: getattr(errors, name) for name in ("INVALID", "MISSING", "REFUSED", "CANCELLED")}


def rows(heading: str) -> list[list[str]]:
    """The rows of the last table below a heading, by their cells."""
    table: list[list[str]] = []
    for line in PAGE[heading].splitlines():
        if line.startswith("| ---"):
            table = []
        elif line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_refusal_of_our_own_has_a_row() -> None:
    said = set()
    for module in FACE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refuse":
                code, kind, *_ = node.args
                if isinstance(code, ast.Name) and isinstance(kind, ast.Constant):
                    said.add((NUMBERS[code.id], kind.value))
    assert said
    documented = {(int(number), quoted(kind)[0]) for number, kind, _ in rows("Errors")}
    assert said <= documented, said - documented


def test_every_error_of_the_engine_has_the_number_that_is_written() -> None:
    numbers = {quoted(kind)[0]: int(number) for number, kind, _ in rows("Errors")}
    for code, cls in CODES.items():
        refusal = errors.to_refusal(cls("x"), "/root/x", ("/root",))
        kind = str(refusal.data["errorKind"])
        assert numbers.get(kind, -32603) == refusal.code, code
        assert kind in numbers or kind == code.lower(), code
    outside = errors.to_refusal(CODES["PATH_BLOCKED"]("x"), "/etc/x", ("/root",))
    ruled = errors.to_refusal(CODES["PATH_BLOCKED"]("x", rule="r"), "/root/x", ("/root",))
    for refusal in (outside, ruled):
        assert numbers[str(refusal.data["errorKind"])] == refusal.code


def test_every_agent_has_a_row_with_what_differs() -> None:
    table = {quoted(agent)[0]: set(quoted(differs)) for agent, differs, _ in rows("Single agents")}
    usual = dataclasses.asdict(AgentProfile())
    assert table == {
        agent: {name for name, value in dataclasses.asdict(quirks).items() if value != usual[name]}
        for agent, quirks in QUIRKS.items()
    }


def test_every_public_name_and_parameter_has_a_row() -> None:
    names = {quoted(row[0])[0] for row in rows("Python names")}
    parameters = set(inspect.signature(ClientFileSystem).parameters)
    assert names == parameters
    listed = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", PAGE["Python names"], re.MULTILINE)
    assert set(listed) == set(filepact.acp.__all__)


def test_every_capability_has_a_row() -> None:
    announced = ClientFileSystem(state_dir="/nowhere").capabilities()
    fs = announced.model_dump(by_alias=True, exclude_unset=True)
    assert fs == {"fs": {"readTextFile": True, "writeTextFile": True}}
    assert {quoted(row[0])[0] for row in rows("Capabilities")} == {
        f"fs.{name}" for name in fs["fs"]
    }
