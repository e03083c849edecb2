"""What language servers would edit, through the door: renames, references, code actions, formatting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Actor, Approval, Session
from filepact.values import replace
from filepact.workspace.buffers import Typed
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.solution import SOLUTION_TOOLS
from filepact_mcp.results import describe_tool
from filepact_wire.uris import uri_of
from tests.hostile.sweeps import often
from tests.servers.fakes import fake, pool_of
from tests.servers.real_servers import locate, node_folders, server
from tests.servers.solution_world import served

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.servers.solution_world import World

USERS = 21
MOST = 7_000
PERSON = Session("p", Actor("human", "person"))
OFFERS = {
    "textDocumentSync": {"openClose": True, "change": 2},
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False},
    "renameProvider": True,
    "referencesProvider": True,
    "codeActionProvider": {"resolveProvider": True},
    "documentFormattingProvider": True,
}


def python_tree() -> dict[str, str]:
    users = {
        f"shop/use{n}.py": "from shop import Widget, make\n\n\n"
        f"def use{n}() -> int:\n    it: Widget = make()\n    return it.total() + {n}\n"
        for n in range(USERS)
    }
    return {
        "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
        "shop/__init__.py": "from shop.impl import Widget as Widget, make as make\n",
        "shop/impl.py": "class Widget:\n    def total(self) -> int:\n        return 1\n\n\n"
        "def make() -> Widget:\n    return Widget()\n",
        **users,
    }


def script_tree() -> dict[str, str]:
    users = {
        f"src/use{n}.ts": 'import { Widget, make } from "./index";\n'
        f"export const row{n} = (): {{ total: number }} => {{\n  const it: Widget = make();\n"
        f"  const total = it.total() + {n};\n  return {{ total }};\n}};\n"
        for n in range(USERS)
    }
    return {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["src"]}\n',
        "src/index.ts": 'export * from "./impl";\n',
        "src/impl.ts": "export class Widget {\n  total(): number {\n    return 1;\n  }\n}\n"
        "export function make(): Widget {\n  return new Widget();\n}\n",
        **users,
    }


def go_tree() -> dict[str, str]:
    users = {
        f"use{n}.go": f"package shop\n\nfunc use{n}() int {{\n\tvar it Widget = make{USERS}()\n"
        f"\treturn it.Total() + {n}\n}}\n"
        for n in range(USERS)
    }
    return {
        "go.mod": "module example.org/shop\n\ngo 1.19\n",
        "impl.go": "package shop\n\ntype Widget struct{}\n\nfunc (it Widget) Total() int {\n\treturn 1\n}\n\n"
        f"func make{USERS}() Widget {{\n\treturn Widget{{}}\n}}\n",
        **users,
    }


BESIDE = str(Path(sys.executable).parent)
LANGUAGES = {
    "basedpyright": (python_tree, "shop/impl.py", [f"{BESIDE}/basedpyright", "."]),
    "ty": (python_tree, "shop/impl.py", [f"{BESIDE}/ty", "check", "."]),
    "typescript": (script_tree, "src/impl.ts", ["tsc", "-p", "."]),
    "gopls": (go_tree, "impl.go", ["go", "vet", "./..."]),
}


@contextmanager
def real(folder: Path, name: str, files: Mapping[str, str]) -> Iterator[World]:
    """A tree with a real server."""
    root = folder / "root"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    environment = {
        "HOME": os.environ["HOME"],
        "PATH": ":".join([BESIDE, *node_folders(), "/usr/bin:/bin"]),
        "LANG": "C.UTF-8",
    }
    with served(folder, ServerPool([server(name)], environment, locate)) as it:
        yield it


@contextmanager
def made_up(
    folder: Path, replies: Mapping[str, Any], files: Mapping[str, str], **orders: Any
) -> Iterator[World]:
    """A tree with a server that answers as it is told."""
    root = folder / "root"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    said = {"capabilities": OFFERS, "replies": dict(replies), **orders}
    with served(folder, pool_of(fake(said))) as it:
        yield it


def state(root: Path) -> dict[str, bytes]:
    """Every file's bytes."""
    paths = (one for one in root.rglob("*") if one.is_file())
    return {str(one.relative_to(root)): one.read_bytes() for one in paths}


def is_right(it: World, command: list[str]) -> bool:
    """Whether the language's own checker finds nothing in the tree."""
    path = ":".join([*node_folders(), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        command, cwd=it.root, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode == 0


def edit(first: tuple[int, int], last: tuple[int, int], text: str) -> dict[str, Any]:
    """An edit as the protocol has it."""
    (line, column), (end, behind) = first, last
    start = {"line": line, "character": column}
    return {"range": {"start": start, "end": {"line": end, "character": behind}}, "newText": text}


# -- real servers --------------------------------------------------------------------------


@pytest.mark.timeout(600)  # a server reads all files, beside whatever else the machine does
@pytest.mark.slow(after=2)
@pytest.mark.parametrize("name", ["ty", "typescript", *["basedpyright", "gopls"] * often(0, 1)])
def test_a_rename_over_many_files_is_right_afterwards_and_undone_to_the_byte(
    tmp_path: Path, name: str
) -> None:
    tree, main, command = LANGUAGES[name]
    with real(tmp_path, name, tree()) as it:
        before = state(it.root)
        assert is_right(it, command)
        for old, new in (("Widget", "Gadget"), ("total" if name != "gopls" else "Total", "Sum")):
            sent = {"filePath": main, "name": old, "newName": new}
            shown = it.data("rename_symbol", **sent)
            assert shown["applied"] is False
            assert shown["filesChanged"] > 20
            assert {one["changeCount"] > 0 for one in shown["changedFiles"]} == {True}
            assert state(it.root) == before
            done = it.data("rename_symbol", **sent, applyChanges=True)
            assert (done["applied"], done["filesChanged"]) == (True, shown["filesChanged"])
            assert done["unifiedDiff"] == shown["unifiedDiff"]
            assert state(it.root) != before
            assert is_right(it, command)
            it.workspace.undo(PERSON, done["operation"])
            assert state(it.root) == before


@pytest.mark.parametrize("name", ["ty", "typescript"])
def test_references_are_listed_with_their_lines_in_pages(tmp_path: Path, name: str) -> None:
    tree, main, _ = LANGUAGES[name]
    with real(tmp_path, name, tree()) as it:
        first = it.data("find_references", filePath=main, name="make", take=5)
        assert first["paging"] == {
            "skip": 0,
            "take": 5,
            "returned": 5,
            "total": first["paging"]["total"],
        }
        assert first["paging"]["total"] > 2 * USERS
        assert (first["hidden"], first["outside"], first["server"]) == (0, 0, name)
        rest = it.data("find_references", filePath=main, name="make", skip=5, take=1_000)
        every = [*first["references"], *rest["references"]]
        assert len(every) == first["paging"]["total"]
        for one in every:
            line = (it.root / one["filePath"]).read_text().split("\n")[one["line"] - 1]
            assert line[one["column"] - 1 : one["endColumn"] - 1] == "make"
            assert one["text"] == line.strip()


LEAVING = {
    # What a server does not look into: a module's other half, what the compiler skips, another build.
    "pyright": (
        {
            "lib.py": "def give() -> int:\n    return 1\n",
            "lib.pyi": "def give() -> int: ...\n",
            "use.py": "from lib import give\n\ngive()\n",
            "same.py": '"""give way."""\n\n# give\n\n\ndef give() -> None: ...\n\n\ngive()\n'
            "\n\ndef f(it) -> None:\n    it.give()\n",
        },
        ["lib.pyi:1", "use.py:1", "use.py:3"],
    ),
    "clangd": (
        {
            "compile_flags.txt": "-std=c17\n",
            "lib.h": "#pragma once\nint give(void);\n",
            "lib.py": "int give(void) { return 1; }\n",
            "use.c": '#include "lib.h"\n/* give\n   give */\nint use(void) { return give(); }\n'
            "#ifdef OTHER\nint other(void) { return give(); }\n#endif\n",
            "same.c": "static int give(void) { return 2; }\nint same(void) { return give(); }\n",
        },
        ["use.c:6"],
    ),
    "gopls": (
        {
            "go.mod": "module example.org/shop\n\ngo 1.19\n",
            "lib.go": "package shop\n\nfunc give() int { return 1 }\n",
            "use.go": "package shop\n\n// give\nvar Text = `give`\n\nfunc Use() int { return give() }\n",
            "other.go": "//go:build plan9 && ignore\n\npackage shop\n\nfunc Other() int { return give() }\n",
            "sub/same.go": "package sub\n\nfunc give() int { return 2 }\n\nfunc Same() int { return give() }\n",
        },
        ["other.go:5"],
    ),
    "typescript": (
        {
            "a/tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["*.ts"]}\n',
            "a/lib.ts": "export function give(): number {\n  return 1;\n}\n",
            "a/use.ts": 'import { give } from "./lib";\n// give\nexport const x = `give ${give()}`;\n',
            "a/same.ts": "export class A {\n  give(): number {\n    return 2;\n  }\n}\n"
            "export const y = new A().give();\nexport const z = (it: any) => it.give();\n",
            "b/old.js": "module.exports = () => give();\n",
        },
        ["b/old.js:1"],
    ),
}
LEAVING["clangd"][0]["lib.c"] = '#include "lib.h"\n' + LEAVING["clangd"][0].pop("lib.py")


def test_what_a_rename_leaves_is_said_where_the_server_can_not_be_asked_what_it_means(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("a.ts", "b.ts"):
        (root / name).write_text("let give = 1\nprint(give, it.give)  // give\n")
    changes = {(root / "a.ts").as_uri(): [edit((0, 4), (0, 8), "hand")]}
    said = {"capabilities": OFFERS, "replies": {"textDocument/rename": {"changes": changes}}}
    with served(tmp_path, pool_of(fake(said, files={"*.ts": "typescript"}))) as it:
        sent = {"filePath": "a.ts", "line": 1, "name": "give", "newName": "hand"}
        before = state(root)
        refused = it.answer("rename_symbol", **sent, applyChanges=True)["error"]
        assert refused["code"] == "NAMES_LEFT", refused
        assert "a.ts:2, b.ts:1, b.ts:2" in refused["message"]
        assert state(root) == before
        assert it.data("rename_symbol", **sent, applyChanges=True, leaveUses=True)["applied"]
        assert state(root)["a.ts"].startswith(b"let hand = 1\nprint(give")


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", LEAVING)
def test_a_rename_that_leaves_uses_behind_is_done_only_if_they_may_stay(
    tmp_path: Path, name: str
) -> None:
    tree, left = LEAVING[name]
    with real(tmp_path, name, tree) as it:
        main = next(one for one in tree if "lib." in one and not one.endswith(".h"))
        sent = {"filePath": main, "name": "give", "newName": "hand"}
        shown = it.data("rename_symbol", **sent)
        before = state(it.root)
        said = it.answer("rename_symbol", **sent, applyChanges=True)["error"]
        assert said["code"] == "NAMES_LEFT", (said, shown["notes"])
        assert said["message"].partition("left: ")[2].partition(";")[0] == ", ".join(left)
        assert state(it.root) == before
        done = it.data("rename_symbol", **sent, applyChanges=True, leaveUses=True)
        assert (done["applied"], done["unifiedDiff"]) == (True, shown["unifiedDiff"])
        # What was left is another's now, and nothing stands in the way any more.
        for one in left:
            path = it.root / one.partition(":")[0]
            path.write_text(path.read_text().replace("give()", "hand()"))
        back = {"filePath": main, "name": "hand", "newName": "give"}
        assert (
            it.answer("rename_symbol", **back, applyChanges=True)["error"]["code"] == "NAMES_LEFT"
        )


@pytest.mark.parametrize("name", ["ty", "typescript"])
def test_what_goes_on_under_the_old_name_is_no_use_that_is_left(tmp_path: Path, name: str) -> None:
    files = {
        "ty": {
            "lib.py": "class Box:\n    def give(self) -> int:\n        return 1\n",
            "use.py": "from lib import Box\n\n\ndef give(it: Box, other) -> int:\n"
            "    return it.give() + other.give()\n",
        },
        "typescript": {
            "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}}\n',
            "lib.ts": "export function give(): number {\n  return 1;\n}\n",
            "index.ts": 'export { give } from "./lib";\n',
            "use.ts": 'import { give } from "./index";\nexport const x = give();\n',
        },
    }[name]
    with real(tmp_path, name, files) as it:
        sent = {"filePath": next(one for one in files if "lib." in one), "newName": "hand"}
        place = {"name": "Box.give" if name == "ty" else "give"}
        assert it.data("rename_symbol", **sent, **place, applyChanges=True)["applied"]


def test_line_ends_marks_and_what_columns_count_are_the_files_own(tmp_path: Path) -> None:
    files = {
        "lib.py": "\ufeffdef give() -> str:\r\n    return '\U0001f600'\r\n",
        "use.py": "from lib import give\r\n\r\nx = '\U0001f600\U0001f600', give(), give()",
        "old.py": "from lib import give\ny = give()\n",
    }
    with real(tmp_path, "basedpyright", files) as it:
        sent = {"filePath": "use.py", "line": 3, "column": 12, "newName": "hand_over"}
        done = it.data("rename_symbol", **sent, applyChanges=True)
        assert done["filesChanged"] == 3
        assert state(it.root) == {
            name: text.replace("give", "hand_over").encode() for name, text in files.items()
        }
        it.workspace.undo(PERSON, done["operation"])
        assert state(it.root) == {name: text.encode() for name, text in files.items()}


def test_what_an_editor_has_not_saved_is_renamed_with_the_rest(tmp_path: Path) -> None:
    files = {"lib.py": "def give() -> int:\n    return 1\n", "use.py": "x = 1\n"}
    with real(tmp_path, "ty", files) as it:
        typed = "from lib import give\n\nx = give()\n"
        it.workspace.editors.open("use.py", "x = 1\n", client="e", version=1)
        it.workspace.editors.buffers.change(
            it.workspace.editors.locate("use.py").path, [Typed(typed)], client="e", version=2
        )
        found = it.data("find_references", filePath="lib.py", name="give")
        assert [one["filePath"] for one in found["references"]] == ["lib.py", "use.py", "use.py"]
        sent = {"filePath": "lib.py", "name": "give", "newName": "hand"}
        done = it.data("rename_symbol", **sent, applyChanges=True)
        assert done["filesChanged"] == 2
        assert it.held("lib.py") == files["lib.py"].replace("give", "hand")
        assert it.held("use.py") == typed.replace("give", "hand")


def test_what_the_session_has_proposed_is_renamed_with_the_rest(tmp_path: Path) -> None:
    files = {
        ".filepact.toml": '[[ask]]\nname = "a"\npaths = ["use.py"]\nactions = ["write"]\nwhy = "it is"\n',
        "lib.py": "def give() -> int:\n    return 1\n",
        "use.py": "x = 1\n",
    }
    with real(tmp_path, "ty", files) as it:
        mine = "from lib import give\n\nx = give()\n"
        first = it.data("write_file", filePath="use.py", content=mine, applyChanges=True)
        assert first["pending"]
        sent = {"filePath": "lib.py", "name": "give", "newName": "hand"}
        waits = it.data("rename_symbol", **sent, applyChanges=True)
        assert waits["pending"]
        assert it.held("lib.py") == files["lib.py"]
        it.workspace.approve(waits["pending"]["id"], Approval(PERSON))
        assert it.held("lib.py") == files["lib.py"].replace("give", "hand")
        assert it.held("use.py") == mine.replace("give", "hand")


RULES = '[[deny]]\nname = "d"\npaths = ["secret/"]\nactions = ["{action}"]\nwhy = "it is"\n'
GUARDED = {
    "lib.py": "def give() -> int:\n    return 1\n",
    "use.py": "from lib import give\n\nx = give()\n",
    "secret/__init__.py": "",
    "secret/use.py": "from lib import give\n\ny = give()\n",
}


@pytest.mark.parametrize("action", ["read", "write"])
def test_a_rename_that_touches_what_a_rule_protects_changes_nothing(
    tmp_path: Path, action: str
) -> None:
    files = {**GUARDED, ".filepact.toml": RULES.format(action=action)}
    with real(tmp_path, "ty", files) as it:
        before = state(it.root)
        sent = {"filePath": "lib.py", "name": "give", "newName": "hand"}
        assert it.code("rename_symbol", **sent) == "PATH_BLOCKED"
        refused = it.answer("rename_symbol", **sent, applyChanges=True)["error"]
        assert refused["code"] == "PATH_BLOCKED"
        assert ("secret" in refused["message"]) is (action == "write")
        assert state(it.root) == before


def test_uses_in_files_that_may_not_be_read_are_only_counted(tmp_path: Path) -> None:
    files = {**GUARDED, ".filepact.toml": RULES.format(action="read")}
    with real(tmp_path, "ty", files) as it:
        found = it.data("find_references", filePath="lib.py", name="give")
        assert {one["filePath"] for one in found["references"]} == {"lib.py", "use.py"}
        assert found["hidden"] == 2
        assert "secret" not in json.dumps(found)


def test_places_that_are_not_clear_are_refused_with_what_would_be(tmp_path: Path) -> None:
    text = "class A:\n    def go(self) -> int:\n        return 1\n\n\nclass B:\n    def go(self) -> int:\n        return 2\n\n\nx, y = A().go(), B().go()\n"
    with real(tmp_path, "ty", {"a.py": text}) as it:
        sent = {"filePath": "a.py", "newName": "run"}
        refused = it.answer("rename_symbol", **sent, name="go")["error"]
        assert refused["code"] == "AMBIGUOUS_MATCH"
        assert "A.go at line 2" in refused["message"]
        assert "B.go at line 7" in refused["message"]
        assert it.code("rename_symbol", **sent, name="go", line=11) == "AMBIGUOUS_MATCH"
        assert it.code("rename_symbol", **sent, name="gone") == "STRING_NOT_FOUND"
        assert it.code("rename_symbol", **sent, line=4) == "STRING_NOT_FOUND"
        assert it.code("rename_symbol", **sent, line=400) == "INVALID_PARAMS"
        assert it.code("rename_symbol", **sent) == "INVALID_PARAMS"
        assert it.code("rename_symbol", **sent, line=3, name="return") == "SERVER_REFUSED"
        assert (
            it.code("rename_symbol", filePath="a.py", name="A", newName="a b") == "INVALID_PARAMS"
        )
        assert it.code("rename_symbol", filePath="a.py", name="A", newName="A") == "NO_CHANGE"
        assert it.held("a.py") == text
        done = it.data("rename_symbol", **sent, name="B.go", applyChanges=True)
        assert done["filesChanged"] == 1
        renamed = text.replace("B().go", "B().run").split("class B")
        assert it.held("a.py") == "class B".join(
            [renamed[0], renamed[1].replace("go(self", "run(self")]
        )


def test_a_name_that_servers_leave_in_texts_is_told(tmp_path: Path) -> None:
    files = {
        "lib.py": "def give() -> int:\n    return 1\n",
        "said.py": "what = 'give is a word here'\n",
    }
    with real(tmp_path, "ty", files) as it:
        (note,) = it.data("rename_symbol", filePath="lib.py", name="give", newName="hand")["notes"]
        assert "said.py" in note


def test_formatting_and_fixes_are_listed_and_done_as_changes(tmp_path: Path) -> None:
    messy = "import os\nimport sys\nx = [ 1,2 ]\nprint( sys.argv )\n"
    with real(tmp_path, "ruff", {"a.py": messy}) as it:
        offered = it.data("code_action", filePath="a.py", line=1)["actions"]
        titles = [one["title"] for one in offered]
        assert "Format document" in titles
        fix = next(one for one in titles if "os" in one and "F401" in one and "import" in one)
        shown = it.data("code_action", filePath="a.py", line=1, title=fix)
        assert shown["applied"] is False
        assert "-import os" in shown["change"]["unifiedDiff"]
        assert it.held("a.py") == messy
        done = it.data("code_action", filePath="a.py", line=1, title=fix, applyChanges=True)
        assert done["applied"] is True
        assert it.held("a.py") == messy.removeprefix("import os\n")
        sent = {"filePath": "a.py", "title": "Format document"}
        formatted = it.data("code_action", **sent, applyChanges=True)
        assert formatted["change"]["filesChanged"] == 1
        assert it.held("a.py") == "import sys\n\nx = [1, 2]\nprint(sys.argv)\n"
        assert it.code("code_action", **sent) == "NO_CHANGE"
        assert it.code("code_action", filePath="a.py", title="No such") == "NOT_FOUND"
        for one in (formatted, done):
            it.workspace.undo(PERSON, one["operation"])
        assert it.held("a.py") == messy


# -- servers that go wrong -----------------------------------------------------------------

TREE = {"a.x": "one name\n", "b.x": "two name\n"}
SENT = {"filePath": "a.x", "name": "name", "newName": "other"}


def rename_with(folder: Path, reply: Any, files: Mapping[str, str] = TREE, **orders: Any) -> Any:
    """The answer to a rename with a server's reply, and whether all files are as they were."""
    with made_up(folder, {"textDocument/rename": reply}, files, **orders) as it:
        before = state(it.root)
        answer = it.answer("rename_symbol", **SENT, applyChanges=True)
        return answer, {
            path: text for path, text in state(it.root).items() if before.get(path) != text
        } | dict.fromkeys(before.keys() - state(it.root).keys())


NAMED = edit((0, 4), (0, 8), "other")
BROKEN: dict[str, Any] = {
    "null": None,
    "empty": {"changes": {}},
    "no edits": {"documentChanges": []},
    "refused": {"refused": "not this one"},
    "overlapping": {"changes": {"A": [NAMED, edit((0, 6), (0, 7), "x")]}},
    "backwards": {"changes": {"A": [edit((0, 8), (0, 4), "other")]}},
    "no text": {"changes": {"A": [{"range": NAMED["range"], "newText": 7}]}},
    "no range": {"changes": {"A": [{"newText": "other"}]}},
    "no edit at all": "yes",
    "no file": {"changes": {"untitled:Untitled-1": [NAMED]}},
    "a file that is not there": {"changes": {"A": [NAMED], "C": [NAMED]}},
    "a name that is taken": {"documentChanges": [{"kind": "rename", "oldUri": "A", "newUri": "B"}]},
    "a file that is there": {"documentChanges": [{"kind": "create", "uri": "B"}]},
    "a snippet": {
        "documentChanges": [
            {
                "textDocument": {"uri": "A", "version": None},
                "edits": [
                    {"range": NAMED["range"], "snippet": {"kind": "snippet", "value": "x$0"}}
                ],
            }
        ]
    },
    "a version that is none": {
        "documentChanges": [{"textDocument": {"uri": "A", "version": "1"}, "edits": [NAMED]}]
    },
    "an unknown step": {"documentChanges": [{"kind": "burn", "uri": "A"}]},
}


def moved(old: str, new: str) -> dict[str, str]:
    return {"kind": "rename", "oldUri": old, "newUri": new}


TEXTS = {name: text.encode() for name, text in TREE.items()}
ANEW: dict[str, tuple[list[dict[str, Any]], dict[str, bytes | None]]] = {
    "left and made anew": (
        [
            moved("A", "C"),
            {"kind": "create", "uri": "A"},
            {
                "textDocument": {"uri": "A", "version": None},
                "edits": [edit((0, 0), (0, 0), "see c\n")],
            },
        ],
        {"a.x": b"see c\n", "c.x": TEXTS["a.x"]},
    ),
    "exchanged": (
        [moved("A", "C"), moved("B", "A"), moved("C", "B")],
        {"a.x": TEXTS["b.x"], "b.x": TEXTS["a.x"]},
    ),
    "exchanged and edited": (
        [
            moved("A", "C"),
            moved("B", "A"),
            moved("C", "B"),
            *(
                {
                    "textDocument": {"uri": letter, "version": None},
                    "edits": [edit((0, 0), (0, 0), f"now {letter}\n")],
                }
                for letter in "AB"
            ),
        ],
        {"a.x": b"now A\n" + TEXTS["b.x"], "b.x": b"now B\n" + TEXTS["a.x"]},
    ),
    "moved onto a name that was just left": (
        [moved("A", "C"), moved("B", "A")],
        {"a.x": TEXTS["b.x"], "b.x": None, "c.x": TEXTS["a.x"]},
    ),
    "moved there and back": (
        [moved("A", "C"), moved("C", "A"), moved("B", "D")],
        {
            "b.x": None,
            "d.x": TEXTS["b.x"],
        },
    ),
    "deleted and made anew": (
        [{"kind": "delete", "uri": "A"}, {"kind": "create", "uri": "A"}, moved("B", "D")],
        {"a.x": b"", "b.x": None, "d.x": TEXTS["b.x"]},
    ),
}


@pytest.mark.parametrize("what", ANEW)
def test_a_name_that_is_left_and_taken_again_is_carried_out_and_undone(
    tmp_path: Path, what: str
) -> None:
    steps, wanted = ANEW[what]
    reply = placed({"documentChanges": steps}, tmp_path)
    with made_up(tmp_path, {"textDocument/rename": reply}, TREE) as it:
        before = state(it.root)
        done = it.data("rename_symbol", **SENT, applyChanges=True)
        after = {**before, **wanted}
        assert state(it.root) == {name: text for name, text in after.items() if text is not None}
        it.workspace.undo(PERSON, done["operation"])
        assert state(it.root) == before


@pytest.mark.parametrize("version", [0, 7])
def test_edits_for_another_version_of_a_text_are_refused(tmp_path: Path, version: int) -> None:
    named = {"textDocument": {"uri": "A", "version": version}, "edits": [NAMED]}
    answer, changed = rename_with(tmp_path, placed({"documentChanges": [named]}, tmp_path))
    assert answer["error"]["code"] == "SERVER_REFUSED", answer
    assert changed == {}


def test_a_folder_is_not_deleted_by_a_server(tmp_path: Path) -> None:
    inside = {"kind": "delete", "uri": uri_of(str(tmp_path / "root" / "in"))}
    reply = placed({"documentChanges": [inside]}, tmp_path)
    answer, changed = rename_with(tmp_path, reply, {**TREE, "in/one.x": "one\n"})
    assert answer["error"]["code"] == "SERVER_REFUSED", answer
    assert "folder" in json.dumps(answer)
    assert changed == {}


def test_a_file_that_takes_the_name_of_one_that_is_deleted_replaces_it(tmp_path: Path) -> None:
    steps = [{"kind": "delete", "uri": "A"}, moved("B", "A")]
    answer, changed = rename_with(tmp_path, placed({"documentChanges": steps}, tmp_path))
    assert answer["success"], answer
    assert changed == {"a.x": TREE["b.x"].encode(), "b.x": None}


@pytest.mark.parametrize("what", BROKEN)
def test_an_answer_that_cannot_be_carried_out_changes_nothing(tmp_path: Path, what: str) -> None:
    answer, changed = rename_with(tmp_path, placed(BROKEN[what], tmp_path))
    assert answer["error"]["code"] == "SERVER_REFUSED", answer
    assert changed == {}


def placed(value: Any, folder: Path) -> Any:
    """A reply with real files in the place of letters."""
    text = json.dumps(value)
    for letter in "ABCD":
        uri = uri_of(str(folder / "root" / f"{letter.lower()}.x"))
        text = text.replace(f'"{letter}"', json.dumps(uri))
    return json.loads(text)


@pytest.mark.parametrize("line", [1, 2, 7, 2**31 - 1])
def test_a_position_behind_the_last_line_is_the_end_of_the_text(tmp_path: Path, line: int) -> None:
    whole = edit((0, 0), (line, 999_999), "one other\n")
    answer, changed = rename_with(tmp_path, placed({"changes": {"A": [whole]}}, tmp_path))
    assert answer["success"], answer
    assert changed == {"a.x": b"one other\n"}


def test_a_file_outside_is_refused_and_not_named(tmp_path: Path) -> None:
    (tmp_path / "beyond.x").write_text("name\n")
    uri = uri_of(str(tmp_path / "beyond.x"))
    reply = placed({"changes": {"A": [NAMED], uri: [edit((0, 0), (0, 4), "other")]}}, tmp_path)
    answer, changed = rename_with(tmp_path, reply)
    assert answer["error"]["code"] == "PATH_BLOCKED"
    assert "beyond" not in json.dumps(answer)
    assert changed == {}


def test_files_that_are_made_moved_and_deleted_are_one_change(tmp_path: Path) -> None:
    steps = [
        {"textDocument": {"uri": "A", "version": None}, "edits": [NAMED]},
        {"kind": "rename", "oldUri": "A", "newUri": "C"},
        {"textDocument": {"uri": "C", "version": None}, "edits": [edit((0, 0), (0, 3), "first")]},
        {"kind": "create", "uri": "D"},
        {"textDocument": {"uri": "D", "version": None}, "edits": [edit((0, 0), (0, 0), "new\n")]},
        {"kind": "delete", "uri": "B"},
    ]
    reply = placed({"documentChanges": steps}, tmp_path)
    with made_up(tmp_path, {"textDocument/rename": reply}, TREE) as it:
        before = state(it.root)
        done = it.data("rename_symbol", **SENT, applyChanges=True)
        assert state(it.root) == {"c.x": b"first other\n", "d.x": b"new\n"}
        it.workspace.undo(PERSON, done["operation"])
        assert state(it.root) == before


FOLDER = {"a.x": "one name\n", "p/in.x": "in name\n", "p/deep/in.x": "deep name\n", "q/in.x": "q\n"}


def in_root(folder: Path, old: str, new: str) -> dict[str, str]:
    return moved(*(uri_of(str(folder / "root" / name)) for name in (old, new)))


def test_a_folder_that_gets_another_name_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    inside = uri_of(str(tmp_path / "root" / "new/p/in.x"))
    steps = [
        {"textDocument": {"uri": "A", "version": None}, "edits": [NAMED]},
        in_root(tmp_path, "p", "new/p"),
        {
            "textDocument": {"uri": inside, "version": None},
            "edits": [edit((0, 3), (0, 7), "other")],
        },
    ]
    reply = placed({"documentChanges": steps}, tmp_path)
    with made_up(tmp_path, {"textDocument/rename": reply}, FOLDER) as it:
        (it.root / ".gitignore").write_text("*.log\n")
        (it.root / "p" / "seen.log").write_text("ignored\n")
        (it.root / "p" / "picture.png").write_bytes(b"\x89PNG\0\1\2")
        (it.root / "p" / "empty").mkdir()
        (it.root / "p" / "deep").chmod(0o750)
        before = state(it.root)
        shown = it.data("rename_symbol", **SENT)
        assert state(it.root) == before
        assert not shown["applied"]
        done = it.data("rename_symbol", **SENT, applyChanges=True)
        assert state(it.root) == {
            ".gitignore": before[".gitignore"],
            "a.x": b"one other\n",
            "q/in.x": b"q\n",
            "new/p/in.x": b"in other\n",
            "new/p/deep/in.x": b"deep name\n",
            "new/p/seen.log": b"ignored\n",
            "new/p/picture.png": before["p/picture.png"],
        }
        assert not (it.root / "p").exists()
        assert (it.root / "new" / "p" / "empty").is_dir()
        assert (it.root / "new" / "p" / "deep").stat().st_mode & 0o777 == 0o750
        it.workspace.undo(PERSON, done["operation"])
        assert state(it.root) == before
        assert (it.root / "p" / "empty").is_dir()


@pytest.mark.parametrize(
    ("moves", "code"),
    [
        ([("p", "q")], "SERVER_REFUSED"),
        ([("p", "a.x")], "SERVER_REFUSED"),
        ([("p", "p/deep/p")], "SERVER_REFUSED"),
        ([("gone", "new")], "SERVER_REFUSED"),
        ([("p", "new"), ("q", "p")], "SERVER_REFUSED"),
        ([("p", "new"), ("new/deep", "p")], "SERVER_REFUSED"),
        ([("p", ".git/p")], "PATH_BLOCKED"),
        ([("p", "../p")], "PATH_BLOCKED"),
    ],
)
def test_a_folder_that_cannot_get_another_name_stays(
    tmp_path: Path, moves: list[tuple[str, str]], code: str
) -> None:
    steps = [in_root(tmp_path, *one) for one in moves]
    reply = placed({"changes": {}, "documentChanges": [*steps]}, tmp_path)
    answer, changed = rename_with(tmp_path, reply, FOLDER)
    assert answer["error"]["code"] == code, answer
    assert changed == {}


def test_edits_of_one_place_keep_their_order_and_line_ends(tmp_path: Path) -> None:
    edits = [NAMED, edit((0, 0), (0, 0), "x\n"), edit((0, 0), (0, 0), "y\n")]
    files = {"a.x": "one name\r\n"}
    reply = placed({"changes": {"A": edits}}, tmp_path)
    answer, changed = rename_with(tmp_path, reply, files)
    assert answer["success"]
    assert changed == {"a.x": b"x\r\ny\r\none other\r\n"}


def test_a_file_that_changes_while_the_server_is_asked_is_asked_about_again(
    tmp_path: Path,
) -> None:
    reply = placed({"changes": {"A": [NAMED], "B": [NAMED]}}, tmp_path)
    written = {"textDocument/rename": [str(tmp_path / "root" / "b.x"), "two name, theirs\n"]}
    answer, changed = rename_with(tmp_path, reply, writes=written)
    assert answer["success"], answer
    assert changed == {"a.x": b"one other\n", "b.x": b"two other, theirs\n"}


def test_a_place_that_moved_while_the_server_was_asked_is_refused(tmp_path: Path) -> None:
    reply = placed({"changes": {"A": [NAMED]}}, tmp_path)
    written = {"textDocument/rename": [str(tmp_path / "root" / "a.x"), "theirs: one name\n"]}
    answer, changed = rename_with(tmp_path, reply, writes=written)
    assert answer["error"]["code"] == "STALE_FILE"
    assert changed == {"a.x": b"theirs: one name\n"}


def test_a_server_that_renames_something_else_is_not_followed(tmp_path: Path) -> None:
    reply = placed({"changes": {"A": [edit((0, 0), (0, 3), "other")]}}, tmp_path)
    answer, changed = rename_with(tmp_path, reply)
    assert answer["error"]["code"] == "SERVER_REFUSED"
    assert changed == {}


@pytest.mark.parametrize("tool", ["rename_symbol", "find_references", "code_action"])
def test_what_no_server_offers_is_said(tmp_path: Path, tool: str) -> None:
    sent = SENT if tool == "rename_symbol" else {"filePath": "a.x"}
    sent = {**sent, "name": "name"} if tool == "find_references" else sent
    lacking = {"textDocumentSync": {"openClose": True, "change": 2}}
    with made_up(tmp_path, {}, {**TREE, "c.y": "name\n"}, capabilities=lacking) as it:
        assert it.code(tool, **sent) == "NO_SERVER"
        assert it.code(tool, **{**sent, "filePath": "c.y"}) == "NO_SERVER"


@pytest.mark.parametrize(("title", "becomes"), [("Fix", "first"), ("Fix (2)", "second")])
def test_of_actions_with_one_title_each_can_be_chosen(
    tmp_path: Path, title: str, becomes: str
) -> None:
    edits = [
        placed({"changes": {"A": [edit((0, 0), (0, 3), new)]}}, tmp_path)
        for new in ("first", "second")
    ]
    replies = {"textDocument/codeAction": [{"title": "Fix", "edit": one} for one in edits]}
    with made_up(tmp_path, replies, TREE) as it:
        offered = it.data("code_action", filePath="a.x")["actions"]
        assert [one["title"] for one in offered] == ["Fix", "Fix (2)"]
        it.data("code_action", filePath="a.x", title=title, applyChanges=True)
        assert it.held("a.x") == f"{becomes} name\n"


@pytest.mark.parametrize(("title", "becomes"), [("Fix", "first"), ("Fix (other)", "second")])
def test_of_actions_of_two_servers_with_one_title_each_can_be_chosen(
    tmp_path: Path, title: str, becomes: str
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.x").write_text(TREE["a.x"])
    servers = []
    for name, new in (("fake", "first"), ("other", "second")):
        change = placed({"changes": {"A": [edit((0, 0), (0, 3), new)]}}, tmp_path)
        replies = {"textDocument/codeAction": [{"title": "Fix", "edit": change}]}
        orders = {"capabilities": OFFERS, "replies": replies}
        role = "types" if name == "fake" else "lint"
        servers.append(replace(fake(orders, role=role), name=name))
    with served(tmp_path, pool_of(*servers)) as it:
        offered = it.data("code_action", filePath="a.x")["actions"]
        assert [one["title"] for one in offered if one["title"] != "Format document"] == [
            "Fix",
            "Fix (other)",
        ]
        it.data("code_action", filePath="a.x", title=title, applyChanges=True)
        assert it.held("a.x") == f"{becomes} name\n"


def test_a_command_of_a_server_is_not_executed(tmp_path: Path) -> None:
    action = {"title": "Tidy", "command": {"title": "Tidy", "command": "tidy"}}
    log = tmp_path / "log"
    replies = {"textDocument/codeAction": [action], "codeAction/resolve": action}
    with made_up(tmp_path, replies, TREE, log=str(log)) as it:
        offered = it.data("code_action", filePath="a.x")["actions"]
        assert [one["title"] for one in offered] == ["Tidy"]
        sent = {"filePath": "a.x", "title": "Tidy", "applyChanges": True}
        assert it.code("code_action", **sent) == "SERVER_REFUSED"
        assert "workspace/executeCommand" not in log.read_text()


# -- what a model is sent ------------------------------------------------------------------


def test_the_toolset_stays_small() -> None:
    """Without the schemas of answers, which a client checks and a model need not see."""
    sent = [describe_tool(tool) for tool in SOLUTION_TOOLS]
    for one in sent:
        one.pop("outputSchema", None)
    listed = json.dumps({"tools": sent}, ensure_ascii=False, separators=(",", ":"))
    assert len(listed) <= MOST, len(listed)
