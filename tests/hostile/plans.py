"""Which tools an agent would call, and how, to get what a case asks for."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.hostile.corpus import Case

__all__ = ["Step", "plan"]


@dataclass(frozen=True, slots=True)
class Step:
    """One call; a plan ends at the first that is refused."""

    tool: str
    arguments: dict[str, Any]


def plan(case: Case, files: Mapping[str, str]) -> list[Step]:
    """The calls of a case.

    Args:
        case: What is wanted.
        files: For a folder that is moved or deleted: the files in it, with their texts.
    """
    given, path = case.given, case.path
    match case.do:
        case "read":
            if "cwd" in given:
                path = posixpath.join(given["cwd"], path)
            sent: dict[str, Any] = {"path": given.get("value", path)}
            return [Step("read_file", sent | _some(given, "offset", "column", "lines", "encoding"))]
        case "write":
            sent = {"path": path, "content": given.get("content", "x"), "createDirs": True}
            return [Step("write_file", sent | _some(given, "append", "expected_revision"))]
        case "edit":
            return [
                Step(
                    "edit_file",
                    {"path": path, "old_string": given["old"], "new_string": given["new"]},
                )
            ]
        case "preview":
            sent = {"path": path, "content": given["content"], "dry_run": True}
            return [Step("write_file", sent)]
        case "new folder":
            # Folders come with the files in them; there is no other way to make one.
            sent = {"path": f"{path}/new.txt", "content": "x", "createDirs": True}
            return [Step("write_file", sent)]
        case "list":
            return [Step("directory_tree", {"path": path})]
        case "glob":
            sent = {"pattern": given.get("pattern", path)}
            return [Step("search_files", sent | _some(given, "directory"))]
        case "search":
            return [
                Step("grep", {"path": path, "pattern": given["pattern"]} | _some(given, "glob"))
            ]
        case "patch":
            return [
                Step("patch_apply", {"patch": given["patch"]} | _some(given, "path", "reverse"))
            ]
        case "copy":
            return [
                Step("read_file", {"path": path}),
                Step("patch_apply", {"patch": _copied(path, given["to"])}),
            ]
        case "compare":
            sent = {"path": path, "content": "", "dry_run": True}
            return [Step("write_file", sent), Step("read_file", {"path": path})]
        case "rename":
            return [Step("patch_apply", {"patch": _moved(path, given["to"], files)})]
        case "delete":
            return [Step("patch_apply", {"patch": _deleted(path, files)})]
        case "chmod":
            return [Step("patch_apply", {"patch": _made_executable(path)})]
        case "hard link":
            return [Step("link", {"path": path, "target": given["target"]})]
        case "call":
            return [Step(given["tool"], given["arguments"])]
    return []


def _some(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _quoted(name: str) -> str:
    """A name as Git writes it where it is not plain."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"' if escaped != name or " " in name else name


def _moved(old: str, new: str, files: Mapping[str, str]) -> str:
    pairs = [(f"{old}/{name}", f"{new}/{name}") for name in files] or [(old, new)]
    return "".join(
        f"diff --git {_quoted(f'a/{before}')} {_quoted(f'b/{after}')}\nsimilarity index 100%\n"
        f"rename from {_quoted(before)}\nrename to {_quoted(after)}\n"
        for before, after in pairs
    )


def _copied(old: str, new: str) -> str:
    return (
        f"diff --git {_quoted(f'a/{old}')} {_quoted(f'b/{new}')}\nsimilarity index 100%\n"
        f"copy from {_quoted(old)}\ncopy to {_quoted(new)}\n"
    )


def _deleted(path: str, files: Mapping[str, str]) -> str:
    names = [f"{path}/{name}" for name in files] or [path]
    body = "".join(f"*** Delete File: {name}\n" for name in names)
    return f"*** Begin Patch\n{body}*** End Patch\n"


def _made_executable(path: str) -> str:
    name = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    return f"diff --git {name[0]} {name[1]}\nold mode 100644\nnew mode 100755\n"
