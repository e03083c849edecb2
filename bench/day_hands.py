"""How each agent does what it means to, with its own tools and with those of filepact.

What an agent means is the same for all: to look for a text, to read a file, to put one text in the place of another.
`Hands` has the call for each; a hand that an agent does not have is None, and it does the same with others.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.agents.guarded import SUB_AGENTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.model import Call

Texts = Mapping[str, tuple[str | None, str | None]]
"""What files hold and are to hold, by path; None where there is none."""


def _nobody(prompt: str) -> Call:
    raise NotImplementedError(prompt)


@dataclass(frozen=True)
class Hands:
    """Calls of one agent's tools.

    Attributes:
        search: For a regular expression in all files.
        names: For files whose name fits a pattern.
        read: A file by its path.
        window: So many lines of it from one on.
        edit: In a file: its text as the agent knows it, the old text and the new.
        write: A new file.
        overwrite: A file that is there, from its text to another.
        everywhere: An edit at every place of the old text.
        patch: Several files at once.
        move, remove: A file.
        spawn: An agent of its own, by its prompt; what it says last, where it has to say it with a tool.
        wait: For agents that it has started, by what was answered to that; where they do not end first.
        after: What else is called to know whether a change that waited is there.
    """

    search: Callable[[str], Call]
    names: Callable[[str], Call]
    read: Callable[[str], Call]
    window: Callable[[str, int, int], Call]
    edit: Callable[[str, str, str, str], Call]
    write: Callable[[str, str], Call]
    overwrite: Callable[[str, str, str], Call]
    move: Callable[[str, str], Call]
    remove: Callable[[str], Call]
    everywhere: Callable[[str, str, str, str], Call] | None = None
    patch: Callable[[Texts], Call] | None = None
    spawn: Callable[[str], Call] = _nobody
    last: tuple[Call, ...] = ()
    wait: Callable[[str], Call] | None = None
    after: tuple[Call, ...] = ()


def patch_of(texts: Texts) -> str:
    """The patch that makes these changes, as models of OpenAI's write it."""
    parts = []
    for path, (before, after) in texts.items():
        if after is None:
            parts.append(f"*** Delete File: {path}")
        elif before is None:
            parts += [f"*** Add File: {path}", *(f"+{one}" for one in after.splitlines())]
        else:
            parts += [f"*** Update File: {path}", *_hunks(before.splitlines(), after.splitlines())]
    return "\n".join(["*** Begin Patch", *parts, "*** End Patch"])


def _hunks(before: list[str], after: list[str]) -> list[str]:
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        above = before[: group[0][1]]
        header = next((one for one in reversed(above) if one.startswith(("def ", "class "))), "")
        found.append(f"@@ {header}".rstrip())
        for tag, first, last, begin, end in group:
            if tag == "equal":
                found += [f" {one}" for one in before[first:last]]
                continue
            found += [f"-{one}" for one in before[first:last]]
            found += [f"+{one}" for one in after[begin:end]]
    return found


def _differing(before: str, after: str) -> tuple[str, str]:
    """The lines of two texts without those at their ends that are alike."""
    sides = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for at in (0, -1):
        while sides[0][1:] and sides[1][1:] and sides[0][at] == sides[1][at]:
            for one in sides:
                del one[at]
    return "".join(sides[0]), "".join(sides[1])


def own_hands(agent: str, root: Path) -> Hands:
    """What an agent comes with."""
    return _with_helpers(agent, _OWN[agent](root))


def _with_helpers(agent: str, hands: Hands) -> Hands:
    """Hands with those for agents of its own."""
    tool, given = SUB_AGENTS[agent]
    text = json.dumps(given)
    return replace(
        hands,
        spawn=lambda prompt: (tool, json.loads(text.replace("SUBSCRIPT", prompt))),
        last=_LAST.get(agent, ()),
        wait=_WAIT.get(agent),
    )


def served_hands(agent: str, tool: str) -> Hands:
    """The tools of filepact, of which an agent that is used to patches takes that for patches.

    Args:
        agent: Its name.
        tool: What it calls a tool of the server, with ``{}`` for the tool's own name.
    """

    def call(name: str, **given: object) -> Call:
        return tool.format(name), given

    def patch(texts: Texts) -> Call:
        return call("patch_apply", patch=patch_of(texts))

    def edit(path: str, known: str, old: str, new: str) -> Call:
        if agent == "codex":
            return patch({path: (known, known.replace(old, new, 1))})
        return call("edit_file", path=path, old_string=old, new_string=new)

    hands = Hands(
        search=lambda pattern: call("grep", pattern=pattern),
        names=lambda pattern: call("search_files", pattern=pattern),
        read=lambda path: call("read_file", path=path),
        window=lambda path, first, many: call("read_file", path=path, offset=first, lines=many),
        edit=edit,
        write=lambda path, text: call("write_file", path=path, content=text),
        overwrite=lambda path, _, text: call("write_file", path=path, content=text),
        move=lambda old, new: call("manage_files", action="move", path=old, to=new),
        remove=lambda path: call("manage_files", action="delete", path=path),
        everywhere=lambda path, _, old, new: call(
            "edit_file", path=path, old_string=old, new_string=new, replace_all=True
        ),
        patch=patch,
        after=(call("history", action="status"),),
    )
    return _with_helpers(agent, hands)


def _claude(root: Path) -> Hands:
    def edit(path: str, _: str, old: str, new: str, **more: object) -> Call:
        given = {"file_path": f"{root}/{path}", "old_string": old, "new_string": new}
        return "Edit", {**given, **more}

    def write(path: str, text: str) -> Call:
        return "Write", {"file_path": f"{root}/{path}", "content": text}

    def run(command: str) -> Call:
        return "Bash", {"command": command, "description": "Work on files"}

    return Hands(
        search=lambda pattern: (
            "Grep",
            {"pattern": pattern, "output_mode": "content", "-n": True, "-i": True},
        ),
        names=lambda pattern: ("Glob", {"pattern": pattern}),
        read=lambda path: ("Read", {"file_path": f"{root}/{path}"}),
        window=lambda path, first, many: (
            "Read",
            {"file_path": f"{root}/{path}", "offset": first + 1, "limit": many},
        ),
        edit=edit,
        write=write,
        overwrite=lambda path, _, text: write(path, text),
        everywhere=lambda path, known, old, new: edit(path, known, old, new, replace_all=True),
        move=lambda old, new: run(f"mv {old} {new}"),
        remove=lambda path: run(f"rm {path}"),
    )


def _codex(root: Path) -> Hands:
    def run(command: str) -> Call:
        return "exec_command", {"cmd": command}

    def patch(texts: Texts) -> Call:
        return "apply_patch", {"input": patch_of(texts)}

    return Hands(
        search=lambda pattern: run(f"rg -n -i {pattern!r} {root}"),
        names=lambda pattern: run(f"rg --files -g {pattern!r} {root}"),
        read=lambda path: run(f"cat {path}"),
        window=lambda path, first, many: run(f"sed -n {first + 1},{first + many}p {path}"),
        edit=lambda path, known, old, new: patch({path: (known, known.replace(old, new, 1))}),
        write=lambda path, text: patch({path: (None, text)}),
        # As its models do: a file that is added takes the place of one that is there.
        overwrite=lambda path, _, text: patch({path: (None, text)}),
        everywhere=lambda path, known, old, new: patch({path: (known, known.replace(old, new))}),
        patch=patch,
        move=lambda old, new: run(f"mv {old} {new}"),
        remove=lambda path: patch({path: ("", None)}),
    )


def _gemini(_: Path) -> Hands:
    def edit(path: str, _: str, old: str, new: str, **more: object) -> Call:
        given = {"file_path": path, "old_string": old, "new_string": new}
        return "replace", {**given, "instruction": "Change it as the task says.", **more}

    def write(path: str, text: str) -> Call:
        return "write_file", {"file_path": path, "content": text}

    def run(command: str) -> Call:
        return "run_shell_command", {"command": command, "description": "Work on files"}

    return Hands(
        search=lambda pattern: ("grep_search", {"pattern": pattern}),
        names=lambda pattern: ("glob", {"pattern": f"**/{pattern}"}),
        read=lambda path: ("read_file", {"file_path": path}),
        window=lambda path, first, many: (
            "read_file",
            {"file_path": path, "start_line": first + 1, "end_line": first + many},
        ),
        edit=edit,
        write=write,
        overwrite=lambda path, _, text: write(path, text),
        everywhere=lambda path, known, old, new: edit(path, known, old, new, allow_multiple=True),
        move=lambda old, new: run(f"mv {old} {new}"),
        remove=lambda path: run(f"rm {path}"),
    )


def _opencode(root: Path) -> Hands:
    def edit(path: str, _: str, old: str, new: str, **more: object) -> Call:
        given = {"filePath": f"{root}/{path}", "oldString": old, "newString": new}
        return "edit", {**given, **more}

    def write(path: str, text: str) -> Call:
        return "write", {"filePath": f"{root}/{path}", "content": text}

    def run(command: str) -> Call:
        return "bash", {"command": command, "description": "Work on files"}

    return Hands(
        search=lambda pattern: ("grep", {"pattern": f"(?i){pattern}"}),
        names=lambda pattern: ("glob", {"pattern": f"**/{pattern}"}),
        read=lambda path: ("read", {"filePath": f"{root}/{path}"}),
        window=lambda path, first, many: (
            "read",
            {"filePath": f"{root}/{path}", "offset": first + 1, "limit": many},
        ),
        edit=edit,
        write=write,
        overwrite=lambda path, _, text: write(path, text),
        everywhere=lambda path, known, old, new: edit(path, known, old, new, replaceAll=True),
        move=lambda old, new: run(f"mv {old} {new}"),
        remove=lambda path: run(f"rm {path}"),
    )


def _copilot(root: Path) -> Hands:
    def edit(path: str, _: str, old: str, new: str) -> Call:
        return "edit", {"path": f"{root}/{path}", "old_str": old, "new_str": new}

    def run(command: str) -> Call:
        return "bash", {"command": command, "description": "Work on files"}

    return Hands(
        search=lambda pattern: (
            "grep",
            {"pattern": pattern, "output_mode": "content", "-n": True, "-i": True},
        ),
        names=lambda pattern: ("glob", {"pattern": f"**/{pattern}"}),
        read=lambda path: ("view", {"path": f"{root}/{path}"}),
        window=lambda path, first, many: (
            "view",
            {"path": f"{root}/{path}", "view_range": [first + 1, first + many]},
        ),
        edit=edit,
        write=lambda path, text: ("create", {"path": f"{root}/{path}", "file_text": text}),
        # It makes new files alone.
        overwrite=lambda path, known, text: edit(path, known, *_differing(known, text)),
        move=lambda old, new: run(f"mv {old} {new}"),
        remove=lambda path: run(f"rm {path}"),
    )


_OWN: Mapping[str, Callable[[Path], Hands]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
}
_LAST: Mapping[str, tuple[Call, ...]] = {
    "gemini": (("complete_task", {"response": "done", "result": "done"}),)
}
_WAIT: Mapping[str, Callable[[str], Call]] = {
    "codex": lambda said: (
        "multi_agent_v1.wait_agent",
        {"targets": re.findall(r'"agent_id": ?"([^"]+)"', said), "timeout_ms": 60_000},
    )
}
