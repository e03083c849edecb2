"""A Git repository, of which a revision is read and a branch written, by the program `git` and never in a work tree.

A repository is somebody else's: its hooks are not run, nothing is fetched that it lacks, and no settings but its own are read, of which
those that start programs are overruled.  A program that stands still is ended.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from contextlib import suppress
from hashlib import new as new_hash
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from filepact.domain.document import content_id
from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    ReadFailedError,
    SharedConflictError,
    TooLargeError,
    WriteFailedError,
)
from filepact.fs.atomic import LARGEST
from filepact.fs.audit_pipes import SAFE_SETTINGS
from filepact.values import dataclass
from filepact_fleet.manifest import MOST_FILES, FileState, fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["CommitRecord", "GitFolder", "GitRevision"]

_PATIENCE: Final = 120.0  # seconds without a byte
_MOST_NAMES: Final = 512 << 20
_PART: Final = 1 << 20
_NO_FILE: Final = {"120000": "is a link", "160000": "is a submodule"}
_SUM: Final = {40: "sha1", 64: "sha256"}


class _Entry(NamedTuple):
    mode: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What a commit says of itself.

    Attributes:
        by: Who made what it holds.
        at: When, in seconds since the epoch.
        message: All of its text.
    """

    by: str
    at: int
    message: str


class GitFolder:
    """A repository, bare or with a work tree, which is neither read nor changed.

    Args:
        path: Its folder.

    Raises:
        InvalidParamsError: There is none, Git refuses it, or `git` is not installed.
    """

    def __init__(self, path: str) -> None:
        program = shutil.which("git")
        if program is None or not os.path.isabs(program):
            raise InvalidParamsError(
                "the program `git` is not installed", hint="Install Git, or name a folder."
            )
        above = os.path.dirname(os.path.realpath(path))
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_CEILING_DIRECTORIES": above,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        self.command = [program, "-C", path]
        for one in SAFE_SETTINGS:
            self.command += ["-c", one]
        code, _, said = self._ask("rev-parse", "--git-dir")
        if code:
            raise InvalidParamsError(
                f"{path} is not a Git repository that can be used here: {said}",
                hint="Name the folder of a repository that is yours.",
            )

    def _ask(self, *words: str, most: int = _PART) -> tuple[int, bytes, str]:
        """The exit code, the answer and the last line that was complained."""
        with _Program(self, *words) as program:
            answer = program.rest(most)
            return program.end(), answer, program.complaint()

    def revision(self, name: str) -> GitRevision:
        """The files of a revision; a context manager.

        Args:
            name: A branch, a tag or a commit, as Git names them.

        Raises:
            NotFoundError: There is no such commit.
        """
        return GitRevision(self, self._commit(name))

    def _commit(self, name: str) -> str:
        wrong = not name or name.startswith("-") or "\0" in name
        code, found, _ = (
            (1, b"", "")
            if wrong
            else self._ask("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        )
        if code:
            raise NotFoundError(
                f"no commit of the repository is called {name}",
                hint="Name a branch, a tag or a commit: `git log` has them.",
            )
        return found.decode().strip()

    def entries(self, commit: str) -> Iterator[tuple[str, _Entry]]:
        """All that a commit names, by path; what is not text in it is kept as it is."""
        code, found, said = self._ask("ls-tree", "-rlz", "--full-tree", commit, most=_MOST_NAMES)
        if code:
            raise ReadFailedError(f"Git cannot list the files of {commit}: {said}")
        lines = found.split(b"\0")
        if len(lines) > MOST_FILES:
            raise TooLargeError(f"a shared workspace has at most {MOST_FILES:,} files")
        for line in lines:
            facts, _, path = line.partition(b"\t")
            if path:
                mode, _kind, name, size = facts.decode().split()
                entry = _Entry(mode, name, int(size) if size.isdigit() else 0)
                yield path.decode("utf-8", "surrogateescape"), entry

    # -- writing -------------------------------------------------------------------------------

    def write(
        self,
        branch: str,
        note: CommitRecord,
        files: Mapping[str, tuple[str, int]],
        contents: Iterable[tuple[str, bytes]],
    ) -> tuple[str, bool]:
        """Have a branch hold these files, by a commit on top of what it has; nothing where it holds them already.

        What no file can be, links and submodules, stays in it.

        Args:
            branch: Its name; made where there is none.
            note: What the commit says.
            files: By path a name of what each holds, and its permission bits.
            contents: What these names stand for, each once.

        Returns:
            The commit that the branch is at, and whether it is new.

        Raises:
            InvalidParamsError: It is no name for a branch, or the branch is in use in a work tree.
            SharedConflictError: Somebody else moved the branch meanwhile.
            WriteFailedError: Git cannot write.
        """
        whole = f"refs/heads/{branch}"
        self._check_branch(branch, whole)
        code, found, _ = self._ask("rev-parse", "--verify", "-q", f"{whole}^{{commit}}")
        tip = "" if code else found.decode().strip()
        there = dict(self.entries(tip)) if tip else {}
        gone = sorted(
            path
            for path, entry in there.items()
            if path not in files and not _fault(path, entry) and entry.mode not in _NO_FILE
        )
        kind = _SUM[len(tip) or len(self._empty())]
        by: dict[str, list[str]] = {}
        for path, (content, _) in files.items():
            by.setdefault(content, []).append(path)

        def edits() -> Iterator[bytes]:
            for path in gone:
                yield b"D " + _quoted(path) + b"\n"
            for content, data in contents:
                name = new_hash(kind, b"blob %d\0" % len(data), usedforsecurity=False)
                name.update(data)
                for path in sorted(by[content]):
                    mode = "100755" if files[path][1] & 0o100 else "100644"
                    was = there.get(path)
                    if was is None or (was.mode, was.name) != (mode, name.hexdigest()):
                        yield b"M %s inline %s\n" % (mode.encode(), _quoted(path))
                        yield _data(data)

        wanted = edits()
        first = next(wanted, None)
        if first is None and tip:
            return tip, False
        with _Program(self, "fast-import", "--quiet", "--done", "--date-format=raw") as program:
            program.give(_opening(whole, tip, note))
            for part in () if first is None else (first,):
                program.give(part)
            for part in wanted:
                program.give(part)
            program.give(b"\ndone\n")
            program.rest(_PART)
            if program.end():
                said = program.complaint()
                if self._commit(whole) != tip if tip else self._exists(whole):
                    raise SharedConflictError(
                        f"the branch {branch} was moved by somebody else meanwhile",
                        hint="Nothing was changed. Try again.",
                    )
                raise WriteFailedError(f"Git cannot write the commit: {said}")
        return self._commit(whole), True

    def _exists(self, whole: str) -> bool:
        return not self._ask("show-ref", "--verify", "-q", whole)[0]

    def _empty(self) -> str:
        """The name of nothing, which is as long as the names of this repository are."""
        return self._ask("hash-object", "--stdin")[1].decode().strip()

    def _check_branch(self, branch: str, whole: str) -> None:
        wrong = branch.startswith("-") or "\0" in branch
        if wrong or self._ask("check-ref-format", whole)[0]:
            raise InvalidParamsError(f"no branch can be called {branch}")
        bare = self._ask("rev-parse", "--is-bare-repository")[1].strip() == b"true"
        head = self._ask("symbolic-ref", "-q", "HEAD")[1].decode().strip()
        used = self._ask("for-each-ref", "--format=%(worktreepath)", whole)[1].strip()
        if used or (not bare and head == whole):
            raise InvalidParamsError(
                f"the branch {branch} is in use in a work tree, whose files would differ from it then",
                hint="Name another branch, and merge it there.",
            )


class GitRevision:
    """The files of one commit that a shared workspace can have; a context manager.

    Args:
        repository: Its repository.
        commit: Its name.

    Attributes:
        commit: The same.
        left_out: What a shared workspace cannot have, with the reason; complete when all was looked at.
    """

    def __init__(self, repository: GitFolder, commit: str) -> None:
        self._repository = repository
        self.commit = commit
        self.left_out: list[str] = []
        self._names: dict[str, str] = {}
        self._reading = _Program(repository, "cat-file", "--batch")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    def states(self) -> Iterator[tuple[str, FileState]]:
        """Every file and what it is, read one after the other."""
        for path, entry in self._repository.entries(self.commit):
            fault = _fault(path, entry) or _NO_FILE.get(entry.mode, "")
            if fault:
                shown = path.encode("utf-8", "backslashreplace").decode()
                self.left_out.append(f"{shown}: {fault}")
                continue
            data = self._read(entry.name)
            self._names[path] = entry.name
            mode = 0o755 if entry.mode == "100755" else 0o644
            yield path, FileState(content_id(data), len(data), mode)

    def content(self, path: str, wanted: str) -> bytes:
        """The bytes of a file that was looked at.

        Raises:
            NoChangeError: They are others by now.
        """
        data = self._read(self._names[path])
        if content_id(data) != wanted:
            raise NoChangeError(f"{path}: the repository has changed this file meanwhile")
        return data

    def _read(self, name: str) -> bytes:
        self._reading.give(name.encode() + b"\n")
        words = self._reading.line().split()
        size = int(words[2]) if len(words) == 3 and words[2].isdigit() else LARGEST + 1
        if len(words) != 3 or words[1] != b"blob" or size > LARGEST:
            raise ReadFailedError(
                f"Git does not have the object {name}",
                hint="An incomplete clone cannot be imported: fetch the rest of it first.",
            )
        return self._reading.exactly(size + 1)[:-1]


class _Program:
    """`git` at work, for as long as bytes come and go."""

    def __init__(self, repository: GitFolder, *words: str) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        self._process = subprocess.Popen(  # noqa: S603 - a program of an absolute path, and words of ours
            [*repository.command, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=repository.environment,
            bufsize=0,
        )
        assert self._process.stdin is not None  # noqa: S101 - as it was asked for
        assert self._process.stdout is not None  # noqa: S101 - the same
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._in.close()
        self._out.close()
        self._complaints.close()

    def give(self, data: bytes) -> None:
        """Write to it; what it does not take any more it complains about in the end."""
        left = memoryview(data)
        with suppress(BrokenPipeError):
            while left:
                self._wait(self._in.fileno(), select.POLLOUT)
                left = left[os.write(self._in.fileno(), left[:_PART]) :]

    def _wait(self, number: int, what: int) -> None:
        poll = select.poll()
        poll.register(number, what)
        if not poll.poll(_PATIENCE * 1_000):
            raise ReadFailedError("Git has stopped answering", hint="Try again.")

    def _more(self) -> bytes:
        self._wait(self._out.fileno(), select.POLLIN)
        return os.read(self._out.fileno(), _PART)

    def line(self) -> bytes:
        """The next line; empty at the end."""
        while b"\n" not in self._held:
            part = self._more()
            if not part:
                return b""
            self._held += part
        return self.exactly(self._held.index(b"\n") + 1)

    def exactly(self, size: int) -> bytes:
        """So many bytes."""
        while len(self._held) < size:
            part = self._more()
            if not part:
                raise ReadFailedError("Git ended before its answer was complete")
            self._held += part
        found = bytes(self._held[:size])
        del self._held[:size]
        return found

    def rest(self, most: int) -> bytes:
        """All that it still says, now that nothing more is written to it."""
        self._in.close()
        parts, size = [], 0
        while part := self._more():
            size += len(part)
            if size > most:
                raise TooLargeError("Git's answer is too large")
            parts.append(part)
        return b"".join(parts)

    def end(self) -> int:
        """Its exit code."""
        return self._process.wait(_PATIENCE)

    def complaint(self) -> str:
        """The last line that it complained."""
        self._complaints.seek(0)
        lines = self._complaints.read(_PART).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].removeprefix("fatal: ") if lines else "it does not say why"


def _fault(path: str, entry: _Entry) -> str:
    """Why a shared workspace cannot have a file; empty where it can."""
    return fault_of(path) or (f"has over {LARGEST:,} bytes" if entry.size > LARGEST else "")


def _quoted(path: str) -> bytes:
    plain = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'"' + plain.encode() + b'"'


def _data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def _opening(whole: str, tip: str, note: CommitRecord) -> bytes:
    """The beginning of a commit."""
    name = " ".join("".join(one for one in note.by if one not in "<>\n\0").split()) or "filepact"
    who = f"{name} <> {note.at} +0000"
    head = f"commit {whole}\nauthor {who}\ncommitter {who}\n".encode()
    return head + _data(note.message.encode()) + (f"from {tip}\n".encode() if tip else b"")
