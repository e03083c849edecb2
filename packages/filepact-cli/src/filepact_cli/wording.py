"""Texts of tools for agents, in the words of the command line, and lines that fit a terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from filepact.errors import FilepactError

__all__ = [
    "cut_in_middle",
    "extras",
    "fitted",
    "hint_for_people",
    "how_to_decide",
    "install_line",
    "message_for_people",
    "size",
    "source",
    "waiting_for_people",
    "with_install_line",
]

_EXTRAS: Final = {"sign": ("cryptography", "signed heads of the audit log")}
"""The extras of the core; as of `Extension`."""

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

_EXTRA: Final = re.compile(r"(filepact's extra `(\w+)`)\.?")
_TELL: Final = re.compile(r"Tell the person: (\w)")
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
    hint = _TELL.sub(lambda found: found[1].upper(), hint)
    return with_install_line(_TAKES.sub(r"`\1 --help` says what it takes.", hint))


def with_install_line(text: str) -> str:
    """Return a text with the command that installs an extra, where an extra is named."""
    return _EXTRA.sub(lambda found: f"{found[1]}: {install_line(found[2])}", text)


def extras() -> dict[str, tuple[str, str]]:
    """Return all extras by name: a module that each brings, and its purpose."""
    from filepact.extension import extensions  # noqa: PLC0415 - hardly ever needed

    found = dict(_EXTRAS)
    for one in extensions():
        found |= one.extras
    return found


def install_line(extra: str) -> str:
    """The command that adds an extra to this copy, which knows how it was installed.

    What a tool keeps in an environment of its own it installs anew, so there the extras that are here are named too.
    """
    from importlib.util import find_spec  # noqa: PLC0415 - hardly ever needed

    names = [name for name, (module, _) in extras().items() if name == extra or find_spec(module)]
    editable = ["--editable"] if _installed().get("dir_info", {}).get("editable") else []
    beside = (
        f"{source()}/packages/filepact-csharp"  # the extra is that package, which is on no index
    )
    here = extra == "csharp" and os.path.exists(beside)  # noqa: PTH110 - starts faster
    for tool, receipt in (("uv tool", "uv-receipt.toml"), ("pipx", "pipx_metadata.json")):
        if os.path.exists(os.path.join(sys.prefix, receipt)):  # noqa: PTH110, PTH118 - the same
            line = [*tool.split(), "install", "--force", *editable, source(*names)]
            if here:
                line = ["pipx", "inject", "filepact", beside]
                if tool != "pipx":
                    line = [
                        "uv",
                        "tool",
                        "install",
                        "--force",
                        *editable,
                        source(),
                        "--with",
                        beside,
                    ]
            return shlex.join(line)
    pip = [sys.executable, "-I", "-m", "pip", "install"]
    if find_spec("pip") is None:
        pip = ["uv", "pip", "install", "--python", sys.prefix]
    return shlex.join([*pip, *([beside] if here else [*editable, source(extra)])])


def source(*extras: str) -> str:
    """Where this copy of filepact was installed from, as installers take it; its name if from an index."""
    from urllib.parse import unquote  # noqa: PLC0415 - hardly ever needed

    known = _installed()
    named = f"[{','.join(extras)}]" if extras else ""
    url = known.get("url", "")
    if "dir_info" in known:
        return f"{unquote(url.removeprefix('file://'))}{named}"
    if revision := known.get("vcs_info", {}).get("commit_id"):
        url = f"{known['vcs_info']['vcs']}+{url}@{revision}"
    return f"filepact{named} @ {url}" if url else f"filepact{named}"


def _installed() -> dict[str, Any]:
    """Return the installer's note about the origin of this copy (PEP 610); empty if it came from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - as above

    try:
        noted: dict[str, Any] = json.loads(
            distribution("filepact").read_text("direct_url.json") or "{}"
        )
    except (PackageNotFoundError, ValueError):
        return {}
    return noted


def message_for_people(error: FilepactError) -> str:
    """Return an error's message for the person who typed the command."""
    found = _NOT_ACCEPTED.fullmatch(error.message)
    if found is None:
        return error.message
    name, value, wanted = found.groups()
    return f"--{name.replace('_', '-')} takes {wanted}, not {value}"


def waiting_for_people(said: str) -> str:
    """Return the message about a change that waits, for the person for whom it waits."""
    found = _WAITING.fullmatch(said)
    if found is None:
        return said
    what = found["what"][:1].upper() + found["what"][1:]
    return f"{what}: needs your approval ({found['rule']}); nothing is changed yet. Proposal {found['id']}."


def cut_in_middle(text: str, columns: int | None) -> str:
    """Return a text in which lines longer than a terminal's lack their middle."""
    if columns is None:
        return text
    return "".join(
        line
        if len(line.rstrip("\n")) <= columns
        else f"{line[: columns // 2]}\u2026{line.rstrip(chr(10))[columns // 2 + 1 - columns :]}\n"
        for line in text.splitlines(keepends=True)
    )


_LISTED: Final = re.compile(r" +\S+(?: \S+)*  +(?=\S)")


def fitted(text: str, columns: int | None) -> str:
    """Return a text wrapped to a terminal's width; a longer word stays whole."""
    if columns is None:
        return text
    import textwrap  # noqa: PLC0415 - a pipe needs no width

    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= columns:
            lines.append(line)
            continue
        # What a list says of a name goes on below itself.
        room, lead = max(20, columns), len(line) - len(line.lstrip())
        if (listed := _LISTED.match(line)) and listed.end() <= room // 2:
            lead = listed.end()
        indent = " " * lead
        lines += textwrap.wrap(
            line, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


def size(taken: int) -> str:
    """Bytes for people, in steps of 1,000."""
    left = float(taken)
    for unit in ("bytes", "kB", "MB"):
        if left < 1_000:
            return f"{left:.0f} {unit}" if unit == "bytes" else f"{left:.1f} {unit}"
        left /= 1_000
    return f"{left:.1f} GB"


def how_to_decide(columns: int | None) -> str:
    """Return the commands that decide about waiting changes."""
    return f"{fitted('Look with `filepact diff ID`, then `filepact approve ID` or `reject ID`.', columns)}\n"
