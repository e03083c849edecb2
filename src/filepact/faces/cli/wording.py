"""What tools say to agents, in the words of the command line, and lines that fit a terminal."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from filepact.errors import FilepactError

__all__ = ["cut_in_middle", "fitted", "hint_for_people", "message_for_people", "waiting_for_people"]

_IN_COMMANDS: Final = {
    "Send createDirs: true to make it": "Add --create-dirs to make it",
    "Read it with encoding base64": "Add --base64 to print its bytes",
    "Send more of the lines around the place that is meant, or set replace_all to replace every one": (
        "Give more of the lines around it with --old, or add --all to replace every one"
    ),
    "Nothing was changed; send what should be different": "--new has to differ from --old",
    "Send the lines next to which the text belongs, and send them again with it": (
        "Give the lines next to it as --old, and the same lines with it as --new"
    ),
    "createDirs: true": "--create-dirs",
    "create_dir of manage_files": "`filepact mkdir`",
    "manage_files": "`filepact mv` or `filepact rm`",
    "directory_tree": "`filepact tree`",
    "search_files": "`filepact find`",
    "read_file": "`filepact read`",
    "write_file": "`filepact write`",
    "edit_file": "`filepact edit`",
    "patch_apply": "`filepact patch`",
    "expected_revision": "--expect",
    "replace_all": "--all",
    "old_string": "--old",
    "new_string": "--new",
}
"""What tools and their parameters are called on the command line; longer words come first."""

_LOOK: Final = "Look for the name with `filepact find`"
_ASK: Final = "Work without this file, or ask the person to do this step."
_TAKES: Final = re.compile(r"`(filepact \w+)` takes [\w, ]+\.")
_NOT_ACCEPTED: Final = re.compile(r"(\w+): (.+) is not accepted, send (.+)", re.DOTALL)
_WAITING: Final = re.compile(
    r"Waiting for a person \((?P<rule>.*?)\), nothing changed yet: (?P<what>.*?)\. "
    r"Proposal (?P<id>\w+); .*",
    re.DOTALL,
)


def hint_for_people(error: FilepactError) -> str:
    """The hint of an error, for who typed the command."""
    hint = error.hint
    for words, ours in _IN_COMMANDS.items():
        hint = hint.replace(words, ours)
    path = str(error.details.get("path") or "")
    if path:
        name = shlex.quote(f"**/{os.path.basename(path)}*")  # noqa: PTH119 - of any root
        hint = hint.replace(_LOOK, f"Try `filepact find {name}`")
        hint = hint.replace(_ASK, f"`filepact explain {shlex.quote(path)}` says how to allow it.")
    return _TAKES.sub(r"`\1 --help` says what it takes.", hint)


def message_for_people(error: FilepactError) -> str:
    """What is wrong, for who typed the command."""
    found = _NOT_ACCEPTED.fullmatch(error.message)
    if found is None:
        return error.message
    name, value, wanted = found.groups()
    return f"--{name.replace('_', '-')} takes {wanted}, not {value}"


def waiting_for_people(said: str) -> str:
    """What is said of a change that waits, to the person for whom it waits."""
    found = _WAITING.fullmatch(said)
    if found is None:
        return said
    what = found["what"][:1].upper() + found["what"][1:]
    return f"{what}: needs your approval ({found['rule']}); nothing is changed yet. It is {found['id']}."


def cut_in_middle(text: str, columns: int | None) -> str:
    """The same with the middle of each line left out that is longer than a terminal's."""
    if columns is None:
        return text
    return "".join(
        line
        if len(line.rstrip("\n")) <= columns
        else f"{line[: columns // 2]}\u2026{line.rstrip(chr(10))[columns // 2 + 1 - columns :]}\n"
        for line in text.splitlines(keepends=True)
    )


def fitted(text: str, columns: int | None) -> str:
    """The same with lines that are not longer than a terminal's; words that are stay whole."""
    if columns is None:
        return text
    import textwrap  # noqa: PLC0415 - a pipe needs no width

    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= columns:
            lines.append(line)
            continue
        lead = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            max(20, columns),
            subsequent_indent=lead,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
