"""The files of a folder for a Python program: read, searched and changed as by an agent's tools, and undone."""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Self

from filepact.app import open_toolbox, open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError, NoChangeError
from filepact.faces.library.agent_tool import AgentTool
from filepact.text.query import Query
from filepact.tools.edit import EditParameters, edit_file, manage_files, write_file
from filepact.tools.patch import patch_apply
from filepact.values import dataclass, replace
from filepact.workspace.excerpt import ExcerptOptions
from filepact.workspace.journal import new_turn
from filepact.workspace.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.operation import Operation
    from filepact.tools.registry import Level, Tier, Tool
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Mode, Workspace

    Path = str | os.PathLike[str]

__all__ = ["Files", "Match", "Rules", "Turn", "open_files"]

Rules = Literal["person", "built-in"]
"""``person``: of the settings files, as for the command.  ``built-in``: those alone, and a folder's own."""

_WHOLE = 1 << 62  # characters; a file that is too large is refused before
_MOST_FOUND = 10_000


@dataclass(frozen=True, slots=True)
class Match:
    """A line that a search has found.

    Attributes:
        path: The file, relative to the first folder.
        line: 1-based.
        text: The line, without its end; cut where it is very long.
    """

    path: str
    line: int
    text: str


def open_files(
    root: Path | Sequence[Path] = ".",
    *,
    agent: str = "",
    mode: Mode = "auto",
    rules: Rules = "person",
    state_dir: Path | None = None,
    home: Path | None = None,
) -> Files:
    """Open a folder, guarded and recorded; ``filepact.open``.

    Args:
        root: The folder that may be used, or several, the working folder first.
        agent: In whose name all is done, where that is an agent: rules for agents count then, and
            ``filepact log`` names it.  Else it is this program.
        mode: ``preview`` has every change wait for a person.
        rules: Whose rules count besides the built-in ones and the folder's own.
        state_dir: Where the journal is; None for the person's, in which ``filepact log`` and
            ``filepact undo`` find what was done.
        home: The person's home folder, whose secrets are known by their inodes.

    Raises:
        InvalidParamsError: No folder was named, it is none, or a settings file is wrong.
        StateFailedError: The state folder cannot be used.
    """
    roots = [root] if isinstance(root, str | os.PathLike) else list(root)
    workspace = open_workspace(
        [os.fspath(one) for one in roots],
        state_dir=None if state_dir is None else os.fspath(state_dir),
        mode=mode,
        settings=Settings() if rules == "built-in" else None,
        home=None if home is None else os.fspath(home),
    )
    actor = Actor("agent", agent) if agent else Actor("program", _program())
    return Files(workspace, Session(f"py-{secrets.token_hex(4)}", actor))


def _program() -> str:
    """The name of this program, as far as the command line that started it tells."""
    folder, _, name = (sys.argv[0] if sys.argv else "").rpartition("/")
    if name == "__main__.py":  # python -m
        name = folder.rpartition("/")[2]
    return "python" if name in ("", "-", "-c") else name


class Files:
    """The files of one folder or several; a context manager that closes them.

    Paths are relative to the first folder, or absolute.  A refusal is a `FilepactError` with a
    stable ``code``, and the file is what it was.  A change answers with a `Receipt`: its ``status``
    is ``applied``, ``pending`` where a person has to approve it first, or ``unchanged``.

    Args:
        workspace: Closed with this.
        session: In whose name all is done.
        shows: Whether changes are only shown.
    """

    def __init__(self, workspace: Workspace, session: Session, *, shows: bool = False) -> None:
        self.workspace = workspace
        self.session = session
        self._shows = shows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folders and the journal."""
        self.workspace.close()

    # -- reading --------------------------------------------------------------------------

    def read(self, path: Path, *, first: int = 1, lines: int | None = None) -> str:
        """A file's text, or some of its lines, exactly as they stand.

        Args:
            path: The file.
            first: 1-based number of the first line wanted.
            lines: Most lines; None for all the rest.

        Raises:
            InvalidParamsError: ``first`` is below 1, or ``lines`` below 0.
        """
        if first < 1 or (lines is not None and lines < 0):
            raise InvalidParamsError(
                "first has to be at least 1, and lines at least 0",
                hint="first=1 is the first line.",
            )
        name = os.fspath(path)
        with self.workspace.auditing(self.session, "read_file", name):
            reader = self.workspace.reader(self.session)
            if first == 1 and lines is None:
                return reader.document(name).text
            return reader.excerpt(name, ExcerptOptions(first - 1, lines, most=_WHOLE)).text

    def read_bytes(self, path: Path) -> bytes:
        """A file's bytes, text or not."""
        name = os.fspath(path)
        with self.workspace.auditing(self.session, "read_file", name):
            return self.workspace.reader(self.session).piece(name, first=0, most=_WHOLE).data

    def grep(
        self,
        pattern: str,
        path: Path = ".",
        *,
        glob: str = "**/*",
        literal: bool = False,
        case_sensitive: bool = False,
        multiline: bool = False,
        limit: int = _MOST_FOUND,
    ) -> list[Match]:
        """Lines that match a regular expression, in path order.

        Args:
            pattern: In RE2's syntax; what that lacks is tried under a time limit.
            path: A file, or the folder to search; what ignore files name is left out.
            glob: Only files whose path matches.
            literal: Whether the pattern is plain text.
            case_sensitive: Whether letter case is told apart.
            multiline: Whether a match may span lines.
            limit: Most lines.
        """
        query = Query.compile(
            pattern, literal=literal, case_sensitive=case_sensitive, multiline=multiline
        )
        name = os.fspath(path)
        with self.workspace.auditing(self.session, "grep", name):
            reader = self.workspace.reader(self.session)
            found = reader.grep(
                name, query, glob=glob, limit=limit, offset=0, context=0, mode="content"
            )
            lines = {
                one.path: [line for group in one.groups for line in group] for one in found.files
            }
            reader.record_shown_lines(name, lines)
        return [
            Match(path, line.number, line.text)
            for path, matched in lines.items()
            for line in matched
            if line.matched
        ]

    def find(self, pattern: str, path: Path = ".", *, limit: int = _MOST_FOUND) -> list[str]:
        """Files whose path matches a glob, in path order; what ignore files name is left out."""
        name = os.fspath(path)
        with self.workspace.auditing(self.session, "search_files", name):
            reader = self.workspace.reader(self.session)
            return list(reader.find(name, pattern, limit=limit).paths)

    def names(self, path: Path = ".", *, limit: int = _MOST_FOUND) -> list[str]:
        """Return the names in one folder, without those in its folders, which end with a slash."""
        folders = self.find("/*/", path, limit=limit)
        return sorted([*folders, *self.find("/*", path, limit=limit)])[:limit]

    def tree(
        self, path: Path = ".", *, depth: int = 3, files: bool = True, pattern: str | None = None
    ) -> str:
        """A folder and what it holds, drawn as text.

        Args:
            path: The folder.
            depth: How many folders deep.
            files: Whether files are drawn too.
            pattern: Only names that match this glob.
        """
        name = os.fspath(path)
        with self.workspace.auditing(self.session, "directory_tree", name):
            drawn = self.workspace.reader(self.session).tree(
                name, depth=depth, include_files=files, pattern=pattern, budget=_MOST_FOUND
            )
        return drawn.text

    # -- changing -------------------------------------------------------------------------

    def write(
        self,
        path: Path,
        content: str,
        *,
        append: bool = False,
        create_dirs: bool = False,
        expected_revision: str | None = None,
    ) -> Receipt:
        """Give a file a new text, or make it; its encoding, line ends and mode stay.

        Args:
            path: The file.
            content: The whole text, or what is to be appended.
            append: Whether it is appended.
            create_dirs: Whether missing folders above are made.
            expected_revision: Refuse if the file is not this revision any more.
        """
        return self._change(
            write_file,
            path,
            content=content,
            append=append,
            create_dirs=create_dirs,
            expected_revision=expected_revision,
        )

    def edit(
        self,
        path: Path,
        old_string: str | Sequence[tuple[str, str]],
        new_string: str | None = None,
        *,
        replace_all: bool = False,
        expected_revision: str | None = None,
    ) -> Receipt:
        """Replace exact text in a file; every byte outside of it stays.

        Args:
            path: The file.
            old_string: What is replaced, and stands there once; or several pairs of an old and a
                new text, one after the other, all or none.
            new_string: What comes in its place.
            replace_all: Whether every occurrence is replaced.
            expected_revision: Refuse if the file is not this revision any more.
        """
        if isinstance(old_string, str):
            return self._change(
                edit_file,
                path,
                old_string=old_string,
                new_string=new_string,
                replace_all=replace_all,
                expected_revision=expected_revision,
            )
        edits = [EditParameters(old, new, replace_all) for old, new in old_string]
        return self._change(edit_file, path, edits=edits, expected_revision=expected_revision)

    def patch(self, patch: str, path: Path | None = None, *, reverse: bool = False) -> Receipt:
        """Apply a patch to all files that it names, or to none.

        Args:
            patch: A unified diff, of Git or not, or ``*** Begin Patch``.
            path: Only for a patch that does not name its file.
            reverse: Whether it is taken back.
        """
        return self._change(patch_apply, path, patch=patch, reverse=reverse)

    def move(self, path: Path, to: Path) -> Receipt:
        """Move or rename a file, or a folder with all that it holds."""
        return self._change(manage_files, path, action="move", to=os.fspath(to))

    def delete(self, path: Path) -> Receipt:
        """Remove a file, or a folder with all that it holds; `undo` brings it back."""
        return self._change(manage_files, path, action="delete")

    def make_dir(self, path: Path) -> Receipt:
        """Make a folder."""
        return self._change(manage_files, path, action="create_dir")

    def preview(self) -> Files:
        """Return a view of the files in which every change is only shown: its receipt has the diff."""
        return Files(self.workspace, self.session, shows=True)

    def _change(self, tool: Tool, path: Path | None, **sent: object) -> Receipt:
        name = "" if path is None else os.fspath(path)
        sent |= {"dry_run": self._shows} | ({"path": name} if name or path is not None else {})
        auditing = self.workspace.auditing(self.session, tool.name, name)
        with auditing, self.workspace.draft(self.session, tool.name) as draft:
            return self.workspace.submit(draft, str(tool.function(draft, **sent)))

    # -- going back -----------------------------------------------------------------------

    def undo(self, operation: str | None = None, *, partly: bool = False) -> Receipt:
        """Take back one operation, the newest of this session unless one is named.

        What somebody else wrote since stays; where it is on the same lines, nothing is done.

        Args:
            operation: Its id, or the beginning of it.
            partly: Whether files that cannot go back are left, and the others do.
        """
        if operation is None:
            past = self.workspace.past(self.session)
            return past.undo(None, dry_run=self._shows, partly=partly)
        return self.workspace.undo(self.session, operation, partly=partly, dry_run=self._shows)

    def redo(self, operation: str | None = None, *, partly: bool = False) -> Receipt:
        """Bring back what this session took back last, or what the named operation did; else as `undo`."""
        if operation is None:
            past = self.workspace.past(self.session)
            return past.redo(None, dry_run=self._shows, partly=partly)
        return self.workspace.redo(self.session, operation, partly=partly, dry_run=self._shows)

    def log(self, *, path: Path | None = None, limit: int | None = 20) -> tuple[Operation, ...]:
        """Return the operations in these folders, by whomever, newest first."""
        name = None if path is None else os.fspath(path)
        return self.workspace.log(path=name, limit=limit)

    @contextmanager
    def turn(self, name: str = "", *, undo_on_error: bool = False) -> Iterator[Turn]:
        """Changes that belong together, so that they can be taken back together.

        Args:
            name: For ``filepact log --turns`` and ``filepact undo --turn``; a few words.
            undo_on_error: Whether an exception in the block takes them back.

        Raises:
            InvalidParamsError: There is a turn already.
        """
        turn = self.begin_turn(name)
        try:
            yield turn
        except BaseException:
            if undo_on_error:
                turn.undo()
            raise
        finally:
            self.end_turn()

    def begin_turn(self, name: str = "") -> Turn:
        """Begin a turn, to which every operation belongs until `end_turn`; better as a block, `turn`.

        Raises:
            InvalidParamsError: There is a turn already.
        """
        if self.session.turn:
            raise InvalidParamsError(
                "a turn is open already", hint="End it first: turns do not nest."
            )
        words = "-".join(re.findall(r"\w+", name.casefold()))[:40]
        turn = Turn(self, "-".join(filter(None, [words, new_turn()])))
        self.session = replace(self.session, turn=turn.id)
        if name:
            self.workspace.asked.turn(self.session, name)
        return turn

    def end_turn(self) -> None:
        """End the turn: later operations belong to none."""
        self.session = replace(self.session, turn="")

    # -- for agents -----------------------------------------------------------------------

    def tools(
        self, *, tier: Tier = "full", max_level: Level = "dangerous", read_only: bool = False
    ) -> tuple[AgentTool, ...]:
        """The seven tools for an agent of any framework, each with its JSON schema.

        Args:
            tier: Only tools of this set and the smaller ones.
            max_level: Only tools up to this level.
            read_only: Only tools that look.
        """
        toolset = open_toolbox(self.workspace, tier=tier, max_level=max_level, read_only=read_only)
        return tuple(
            AgentTool(one.name, one.description, one.schema, toolset, lambda: self.session)
            for one in toolset.tools
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """Changes that belong together.

    Attributes:
        files: Through which they are made.
        id: The turn's name in the journal.
    """

    files: Files
    id: str

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The turn's operations so far, oldest first."""
        done = self.files.log(limit=None)
        return tuple(one for one in reversed(done) if one.session.turn == self.id)

    def undo(self, *, partly: bool = False) -> Receipt | None:
        """Take back all that was done in it, as one operation; what others wrote since stays.

        Args:
            partly: Whether files that cannot go back are left, and the others do.

        Returns:
            None where nothing of it is in force.

        Raises:
            StaleFileError: Somebody has changed the same lines since; nothing was done.
        """
        workspace, session = self.files.workspace, self.files.session
        try:
            return workspace.undo_selected(session, Selection(turn=self.id), partly=partly)
        except NoChangeError:
            return None
