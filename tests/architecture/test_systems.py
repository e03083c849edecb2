"""Where the program asks which system it runs on: what differs is chosen in one module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.project import MODULES, PACKAGE, dotted, syntax

if TYPE_CHECKING:
    from pathlib import Path

ASKS = {
    "sys.platform": "which system",
    "os.uname": "which processor, by which calls are numbered",
    "platform.system": "which system",
    "platform.machine": "which processor",
}

ALLOWED = {
    "": "says where filepact does not run",
    "fs": "as well: nothing beneath it is for Windows",
    "fs.kernel": "chooses the calls that differ, for all others",
    "filepact_run.kernel": "calls have numbers by the processor",
    "filepact_run.namespace": "Linux alone has what it is made of",
    "fs.sandbox": "Linux alone has what it is made of, and its calls have numbers by the processor",
    "filepact_supervisor.sandbox_process": "the same",
    "fs.path_form": "each system takes other names for something else",
    "fs.state": "the name of the machine, and nothing of the system",
    "filepact_supervisor.supervisor": "a process that starts without anything of ours: Linux alone hands orphans on",
    "filepact_wire.uris": "paths have another form, and so have their URIs",
    "config.folders": "folders of a person and of agents",
    "filepact_hooks.daemon": "Linux alone tells that a process has ended which is not a child",
    "filepact_hooks.turn_errors": "a socket without a file, which Linux alone has",
    "filepact_cli.doctor": "says it",
}
"""Modules that ask, and why each may."""

_LAST = {name.rpartition(".")[2] for name in ASKS}


def asked(path: Path) -> list[str]:
    """What a module asks of the system that it runs on."""
    return [
        f"line {node.lineno}: {name}"
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in _LAST  # spelling one out takes its time
        if (name := ast.unparse(node)) in ASKS
    ]


def test_what_differs_from_system_to_system_is_chosen_in_one_place() -> None:
    """What differs is put into `fs.kernel` and `fs.darwin`."""
    found = {dotted(path): asked(path) for path in MODULES}
    assert {name: said for name, said in found.items() if said and name not in ALLOWED} == {}


def test_every_module_that_may_ask_does() -> None:
    named = {dotted(path): path for path in MODULES}
    idle = [name for name in ALLOWED if not asked(named[name])]
    assert not idle


def test_both_systems_have_every_call_that_is_chosen() -> None:
    tree = syntax(PACKAGE / "fs" / "kernel.py")
    (chosen,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "sys.platform == 'darwin'"
    ]
    there, here = (set(names(body)) for body in (chosen.body, chosen.orelse))
    assert there == {name for name in here if not name.startswith("_")}


def names(body: list[ast.stmt]) -> list[str]:
    """What some statements define or import."""
    found: list[str] = []
    for one in body:
        if isinstance(one, ast.ImportFrom):
            found += [alias.asname or alias.name for alias in one.names]
        elif isinstance(one, ast.FunctionDef):
            found.append(one.name)
        elif isinstance(one, ast.Assign):
            found += [
                node.id
                for target in one.targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name)
            ]
    return found
