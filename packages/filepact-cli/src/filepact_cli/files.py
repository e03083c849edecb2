"""Commands over files: an agent's tools for a person, with the same registry, rules and errors."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.errors import EncodingUnsafeError, InvalidParamsError, NotFoundError, ReadFailedError
from filepact.text.page import PAGE
from filepact.tools.engine import SERVER_TOOLS
from filepact.tools.registry import ContentAnswer
from filepact.values import asdict
from filepact.workspace.excerpt import LineExcerpt
from filepact.workspace.find import FolderTree, NameSearchResult
from filepact.workspace.grep import TextSearchResult
from filepact_cli.context import acting, here, opened
from filepact_cli.render import answer_receipt
from filepact_cli.screen import DONE, NOTHING, CommandAnswer, plain, remark
from filepact_cli.wording import fitted

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from filepact.tools.registry import Tool
    from filepact.workspace.reader import Reader
    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Terminal

__all__ = ["edit", "find", "grep", "mkdir", "mv", "patch", "read", "rm", "tree", "write"]

_PLACES = ("path", "directory", "to")


def read(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Print a file."""
    page, encoding = PAGE, "utf-8"
    if arguments.base64:
        page, encoding = sys.maxsize, "base64"  # a program takes the bytes
    sent = {"encoding": encoding, "numbers": not arguments.no_numbers}
    as_named = ("path", "lines", "offset", "column")
    return _look(arguments, screen, "read_file", as_named, page=page, **sent)


def find(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """List files by a glob."""
    as_named = ("pattern", "directory")
    return _look(arguments, screen, "search_files", as_named, max_results=arguments.max)


def grep(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Print matching lines."""
    shape = ("context", "case_sensitive", "output_mode", "multiline", "offset")
    as_named = ("pattern", "path", "glob", *shape)
    return _look(arguments, screen, "grep", as_named, max_results=arguments.max)


def tree(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Draw a folder."""
    as_named, files = ("path", "depth", "pattern"), not arguments.no_files
    return _look(arguments, screen, "directory_tree", as_named, include_files=files)


def write(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Give a file a new text."""
    content = arguments.content if arguments.content is not None else _text_of("-")
    if arguments.content is None and not content:
        raise InvalidParamsError(
            "standard input was empty, so nothing was written",
            hint="Use --content '' to make the file empty.",
        )
    as_named = ("path", "append", "create_dirs")
    return _change(arguments, screen, "write_file", as_named, content=content)


def edit(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Replace text in a file."""
    if arguments.old_file == arguments.new_file == "-":
        raise InvalidParamsError(
            "--old-file and --new-file cannot both be standard input",
            hint="Put one of them into a file, or use --old or --new.",
        )
    return _change(
        arguments,
        screen,
        "edit_file",
        ("path",),
        old_string=_either(arguments.old, arguments.old_file, "--old"),
        new_string=_either(arguments.new, arguments.new_file, "--new"),
        replace_all=arguments.all,
    )


def patch(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Apply a patch."""
    doing = "the patch is read from the terminal (--file FILE names one)"
    text = _text_of(arguments.file or "-", doing)
    return _change(arguments, screen, "patch_apply", ("path", "reverse"), patch=text)


def mkdir(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Make a folder."""
    return _manage(arguments, screen, "create_dir")


def mv(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Move or rename a file or a folder."""
    return _manage(arguments, screen, "move", to=arguments.to)


def rm(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Remove a file or a folder."""
    return _manage(arguments, screen, "delete")


def _manage(arguments: Namespace, screen: Terminal, action: str, **sent: object) -> CommandAnswer:
    return _change(arguments, screen, "manage_files", ("path",), action=action, **sent)


def _look(
    arguments: Namespace,
    screen: Terminal,
    name: str,
    as_named: Sequence[str],
    *,
    page: int = PAGE,
    **sent: object,
) -> CommandAnswer:
    """Call a reading tool with arguments that it and the command call alike, and others."""
    sent |= {one: getattr(arguments, one) for one in as_named}
    with opened(arguments) as workspace:
        session, values = acting(arguments), _with_places(workspace, sent)
        noting = _Noting(workspace.reader(session, page=page))
        with workspace.auditing(session, name, str(values.get("path") or "")):
            answer = _tool(name).run(noting, values)
    found = noting.found
    text = _printed(answer) if isinstance(answer, ContentAnswer) else str(answer)
    body, line_end, foot = text.rpartition("\n")
    shown = f"{body}{line_end}{fitted(foot, screen.columns)}" if foot.startswith("[") else text
    facts: dict[str, object] = {"text": text}
    if found is not None:
        facts = asdict(found) | facts
    nothing = isinstance(found, NameSearchResult | TextSearchResult) and not found.total
    return CommandAnswer(plain(f"{shown}\n"), facts, NOTHING if nothing else DONE)


def _printed(blob: ContentAnswer) -> str:
    """Bytes for a terminal or a program, and one sentence about what a terminal cannot show."""
    return blob.note if blob.mime else b64encode(blob.data).decode("ascii")


class _Noting:
    """The port of a reading tool that remembers what was found before it became text."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.found: Any = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reader, name)
        if not callable(method):
            return method

        def noted(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if isinstance(answer, LineExcerpt | NameSearchResult | TextSearchResult | FolderTree):
                self.found = answer
            return answer

        return noted


def _change(
    arguments: Namespace, screen: Terminal, name: str, as_named: Sequence[str], **sent: object
) -> CommandAnswer:
    """Call a writing tool, as `_look`, and do what it says."""
    sent |= {one: getattr(arguments, one) for one in as_named}
    sent |= {"dry_run": arguments.dry_run, "expected_revision": getattr(arguments, "expect", None)}
    with opened(arguments) as workspace:
        session, values = acting(arguments), _with_places(workspace, sent)
        auditing = workspace.auditing(session, name, str(values.get("path") or ""))
        with auditing, workspace.draft(session, name) as draft:
            summary = _tool(name).run(draft, values)
            return answer_receipt(workspace.submit(draft, summary), screen)


def _tool(name: str) -> Tool:
    """A tool by its name."""
    return next(one for one in SERVER_TOOLS if one.name == name)


def _with_places(workspace: Workspace, sent: dict[str, Any]) -> dict[str, Any]:
    """The arguments with their paths as tools count them, from the root."""
    return {
        name: here(workspace, value, there=True) if name in _PLACES and value else value
        for name, value in sent.items()
        if value is not None
    }


def _either(text: str | None, file: str | None, option: str) -> str:
    """A text that was given on the command line, or as a file."""
    if (text is None) == (file is None):
        raise InvalidParamsError(
            f"`filepact edit` needs {option} or {option}-file, and not both",
            hint="filepact edit FILE --old 'what is there' --new 'what is wanted'",
        )
    return text if text is not None else _text_of(file or "")


def _text_of(name: str, doing: str = "reading from the terminal") -> str:
    """The text of a file of the person's, every character as it is; ``-`` is standard input."""
    if name == "-" and sys.stdin.isatty():
        remark(f"filepact: {doing}; end with Ctrl-D on a line of its own\n")
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{name}: no such file", hint="The name counts from the folder that you are in."
        ) from error
    except OSError as error:
        raise ReadFailedError(f"{name}: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "standard input" if name == "-" else name
        raise EncodingUnsafeError(
            f"{what}: is not UTF-8, at byte {error.start:,}", hint="Convert it to UTF-8 first."
        ) from error
