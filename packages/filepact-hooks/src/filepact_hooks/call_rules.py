"""The verdict of the rules on a call of an agent's own tool, before it is made: of each file that it names or covers.

Neither is anything of the call carried out, nor is the journal asked.  A command is judged by its text:
what its words name, what its wildcards stand for now, and what programs in it would search.  What is
only known when it runs is not seen.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from filepact.domain.person import DECIDING, decides
from filepact.domain.policy import AccessRequest, EntryFilter, Policy
from filepact.errors import ApprovalRequiredError, FilepactError, TooLargeError
from filepact.fs.path_form import at_home, is_beneath
from filepact.fs.read import look_at
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader, is_ignored
from filepact.text.glob import GlobError, expand_braces, literal_length
from filepact.values import late_regex
from filepact_hooks.shell_command import read_command
from filepact_hooks.shell_programs import SAYING, expand_word, named_in, written_in
from filepact_hooks.shell_syntax import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.domain.policy import Action, Decision, NameFilter, Rule, Verdict
    from filepact.fs.read import PathInfo
    from filepact.workspace.guard import Guard
    from filepact_hooks.shell_command import ShellCommand, ShellWord
    from filepact_hooks.tool_call import FileAccess, FileSearch, ToolCall

__all__ = ["CallJudge", "CallVerdict"]

_LARGEST: Final = 1 << 20  # bytes of a file that is looked through for a key before it is read
_MOST_COVERED: Final = 50_000  # names that are looked at for one search
_MOST_OUTSIDE: Final = 10_000  # the same, outside the roots
_MOST_LOOKED_AT: Final = 100_000  # the same, for all that one call names
_WORTH: Final = 15  # how many of them cost as much as one name that is followed
_MOST_STARTS: Final = 8
_DEPENDENCIES: Final = frozenset({"node_modules", "site-packages", ".venv", "venv"})
"""Folders of other people's packages, whose sample keys keep nobody from a search."""

_SCRATCH: Final = ("/tmp/", "/var/tmp/", "/private/tmp/")  # noqa: S108 - where nobody's project is
_FILEPACT: Final = late_regex(
    r"\bfilepact\b[^\n]{0,200}?\W("
    + "|".join(name for name, words in DECIDING.items() if not words)
    + r")\b"
)


class CallVerdict(NamedTuple):
    """The verdict of the rules on a call.

    Attributes:
        verdict: The strictest one.
        reason: Why; empty where nobody has said a word about any of its files.
        error: The refusal, where a rule denies a file that it names.
    """

    verdict: Verdict
    reason: str = ""
    error: FilepactError | None = None


_SILENT: Final = CallVerdict("allow")


class CallJudge:
    """Judges the calls of one agent.

    Args:
        guard: The roots, and all rules, those about other folders among them.
        agent: The name that rules know the agent by.
        start: Where relative names start, absolute.
        home: What ``~`` stands for; empty for nothing.
    """

    def __init__(self, guard: Guard, agent: str, start: str, home: str = "") -> None:
        self._guard = guard
        self._agent = agent
        self._start = start
        self._at_home = partial(at_home, home=home)
        self._left = _MOST_LOOKED_AT
        self._secrets: frozenset[str] | None = None

    def judge(self, call: ToolCall) -> CallVerdict:
        """The verdict on a call; the first denial ends it."""
        self._left, self._secrets = _MOST_LOOKED_AT, None
        if call.deed == "own":
            return _SILENT
        if call.unreadable:
            return CallVerdict("deny", f"the call {call.unreadable}, so it cannot be checked")
        found = _SILENT
        for said in self._parts(call):
            if said.verdict == "deny":
                return said
            if said.verdict == "ask" or (said.reason and not found.reason):
                found = said if found.verdict != "ask" else found
        return found

    def _parts(self, call: ToolCall) -> Iterator[CallVerdict]:
        for use in call.uses:
            yield self._file(use)
        for search in call.searches:
            yield self._search(search, self._start)
        start = posixpath.join(self._start, self._at_home(call.folder))
        for command in call.commands:
            yield from self._command(command, start)

    # -- files that are named -------------------------------------------------------------

    def _file(self, use: FileAccess) -> CallVerdict:
        if wrong := _unsayable(use.path):
            return CallVerdict(
                "deny", f"a name of the call {wrong}, so nobody can tell which file it means"
            )
        path = posixpath.join(self._start, self._at_home(use.path))
        if use.missing == "list" and look_at(path).kind == "missing":
            return _SILENT
        inside = self.inside(use.path)
        if inside is None:
            return self._by_name(path, use.action, use.path)
        try:
            with ExitStack() as keep:
                reads = use.action == "read"
                found = self._guard.find(
                    inside,
                    use.action,
                    agent=self._agent,
                    missing=use.missing if use.action == "write" else None,
                    keep=keep if reads else None,
                )
                if reads and found.place.kind == "file" and found.held is not None:
                    with suppress(TooLargeError):
                        held = found.held.read(limit=_LARGEST).data
                        self._guard.check_held(found.path, "read", held, agent=self._agent)
        except ApprovalRequiredError as error:
            return CallVerdict("ask", error.report())
        except FilepactError as error:
            return CallVerdict("deny", error.report(), error)
        decision = found.decision
        if decision.verdict == "ask":
            return CallVerdict("ask", _because(use.path, decision))
        # Nobody has said a word about most files: then the host goes by its own rules.
        given = decision.rule.layer in ("person", "administrator")
        return CallVerdict("allow", f"rule \u201c{decision.rule.name}\u201d" if given else "")

    def _by_name(self, path: str, action: Action, shown: str) -> CallVerdict:
        """The verdict on a name wherever it lies: as it was sent, and as it leads."""
        try:
            found = look_at(path)
        except ValueError:
            return CallVerdict("deny", f"{shown!r} is no name that a file can have")
        said = _SILENT
        for name in dict.fromkeys((posixpath.normpath(path), found.path)):
            decision = self._decide(name, action)
            if decision.verdict == "deny":
                return CallVerdict("deny", _because(shown, decision))
            if decision.verdict == "ask" and (
                self._root_of(name)
                or decision.rule.name != "manifests"
                or not name.startswith(_SCRATCH)
            ):
                said = CallVerdict("ask", _because(shown, decision))
        if action in ("read", "delete") and found.file is not None and self._is_secret(found):
            why = "it is another name (a hard link) of a file in which keys, passwords or tokens are kept"
            return CallVerdict("deny", f"{shown}: {why}")
        return said

    def _is_secret(self, found: PathInfo) -> bool:
        root, inside = self._guard.inside(found.path) or (self._guard.roots[0], found.path)
        return found.file is not None and root.is_secret(inside, *found.file)

    def _decide(self, path: str, action: Action) -> Decision:
        root = self._root_of(path)
        top = "/" if root is None else root.path
        inside = path[len(top.rstrip("/")) :].lstrip("/") or "."
        return self._guard.policy.decide(AccessRequest(top, inside, action, self._agent))

    def _root_of(self, path: str) -> Root | None:
        """The root that an absolute path lies in, if it lies in one."""
        found = [one for one in self._guard.roots if is_beneath(path, one.path)]
        return max(found, key=lambda one: len(one.path), default=None)

    def inside(self, path: str) -> str | None:
        """A name as an absolute path, or what it leads to, if that lies in a root; else None."""
        path = posixpath.join(self._start, self._at_home(path))
        if self._guard.inside(posixpath.normpath(path)) is not None:
            return path
        true = look_at(path).path
        return true if self._guard.inside(true) is not None else None

    # -- files that are covered -----------------------------------------------------------

    def _search(self, search: FileSearch, start: str) -> CallVerdict:
        """The verdict on a search by the host's own tool."""
        if wrong := _unsayable("".join((search.folder, *search.globs))):
            return CallVerdict("deny", f"the search {wrong}, so nobody can tell what it covers")
        folder = posixpath.join(start, self._at_home(search.folder))
        said = self._by_name(folder, "read", search.folder or ".")
        if said.verdict != "allow":
            return said
        globs = [one for one in search.globs if one[:1] != "!"]
        without = [one[1:] for one in search.globs if one[:1] == "!"]
        for glob in [one for one in globs if one[:1] in ("/", "~") or ".." in one]:
            whole = self._at_home(glob)
            begin = _literal_folder(whole) if literal_length(whole) < len(whole) else whole
            said = self._by_name(posixpath.join(folder, begin), "read", glob)
            if said.verdict != "allow":
                return said
        ignores = search.ignores
        if search.action == "list":
            # Of what is only listed, ignored files count where a glob or a folder is meant for them.
            top = self._root_of(posixpath.normpath(folder))
            below = not globs and (top is None or posixpath.normpath(folder) != top.path)
            ignores = not (below or any(self._is_meant(folder, glob) for glob in globs))
        covered = self._covered(folder, globs, without, "read", deep=search.deep, ignores=ignores)
        hint = "leave it out by the tool's own glob or ignore field, name what you look for, or search with filepact's tools"
        return _covering(covered, "the search", hint)

    def _is_meant(self, folder: str, glob: str) -> bool:
        """Whether what a glob looks for is called as a secret is, whatever its wildcards stand for."""
        name = glob.rpartition("/")[2].replace("*", "").replace("?", "")
        return bool(name) and self._decide(f"{folder}/{name}", "read").verdict == "deny"

    def _covered(
        self,
        folder: str,
        only: Sequence[str],
        without: Sequence[str],
        action: Action,
        *,
        deep: bool,
        ignores: bool,
        hidden: bool = True,
    ) -> tuple[str, Decision] | None:
        """The first file below a folder that a search covers and a rule keeps from it.

        What would have to be asked about counts only where it is changed.

        Args:
            folder: Absolute; wildcards in it stand for what is there.
            only: Globs of which it has to match one, if there are any.
            without: Globs of which it must match none.
            action: What is done with it.
            deep: Whether folders below are looked at.
            ignores: Whether what ignore files name is left out.
            hidden: Whether names that begin with a dot are covered.
        """
        self._left -= _WORTH
        literal = _literal_folder(folder) if literal_length(folder) < len(folder) else folder
        true = look_at(literal)
        if true.kind == "file":
            decision = self._decide(true.path, action)
            return (folder, decision) if decision.verdict == "deny" else None
        if true.kind == "missing" or self._left <= 0:
            return None
        with ExitStack() as keep:
            inside = self._guard.inside(true.path)
            root, base = inside or (keep.enter_context(Root.open(true.path)), ".")
            accepts = _accepts(only, without, hidden=hidden)
            below = folder[len(literal) :].strip("/").split("/") if literal != folder else []
            skip = 0 if base == "." else len(base) + 1
            found: dict[str, tuple[str, Decision]] = {}

            def refused(path: str) -> bool:
                if not ignores and _DEPENDENCIES & set(path.split("/")):
                    return False
                decision = self._decide(f"{root.path.rstrip('/')}/{path}", action)
                if decision.verdict == "deny" or (
                    decision.verdict == "ask" and action in ("write", "delete")
                ):
                    inner = path[skip:]
                    # What Git ignores is made anew; a question about it would be one for nothing.
                    loose = ignores or decision.verdict == "ask"
                    if (
                        accepts(inner)
                        and _is_below(inner, below)
                        and not (loose and root.path != "/" and is_ignored(root, path))
                    ):
                        found.setdefault(decision.verdict, (path, decision))
                    return True
                return False

            walk = TreeReader(
                root,
                base,
                allow=_Covered(self._suspecting(root, action), refused),
                ignore=ignores,
                max_depth=None if deep else 1 + len(below),
                most=min(_MOST_COVERED if root in self._guard.roots else _MOST_OUTSIDE, self._left),
                cancelled=lambda: "deny" in found,
            )
            with suppress(FilepactError), walk:
                for batch in walk.batches():
                    self._left -= 1 + len(batch.names)
                    if "deny" in found:
                        break
            return found.get("deny") or found.get("ask")

    # -- commands -------------------------------------------------------------------------

    def _command(self, command: str, start: str) -> Iterator[CallVerdict]:
        if wrong := _unsayable(command):
            yield CallVerdict("deny", f"the command {wrong}, so nobody can tell what it does")
            return
        read = read_command(command)
        if read.too_long:
            yield CallVerdict(
                "ask", "the command is too long to be checked; take it apart, or write it to a file"
            )
        yield self._deciding(read)
        start = posixpath.join(start, self._at_home(read.begins))
        starts = [start]
        for folder in read.folders[:_MOST_STARTS]:
            starts += [posixpath.join(one, self._at_home(folder)) for one in starts[:1]]
        for word in read.words:
            if word.use == "text":
                yield self._text(word.text, starts)
            for one in starts if word.use != "text" and self._left > 0 else ():
                self._left -= _WORTH
                yield self._word(word, one)
        for search in read.searches:
            for folder in search.folders:
                covered = self._covered(
                    posixpath.join(starts[-1], self._at_home(folder)),
                    search.only,
                    search.without,
                    cast("Action", search.use),
                    deep=search.deep,
                    ignores=search.ignores,
                    hidden=search.hidden,
                )
                yield _covering(
                    covered, search.program, _LEAVE_OUT.get(search.program, _LEAVE_OUT[""])
                )
        if self._left <= 0:
            why = "the command names more files than can be checked; take it apart"
            yield CallVerdict("ask", why)

    def _word(self, word: ShellWord, start: str) -> CallVerdict:
        action = cast("Action", word.use)
        try:
            texts = expand_word(word.text) if word.pattern else [word.text]
        except GlobError:
            return CallVerdict(
                "ask", f"{word.text[:80]}: it stands for more names than can be checked"
            )
        for text in texts:
            path = posixpath.join(start, self._at_home(text))
            if " " in text and action == "read" and look_at(path).kind == "missing":
                said = _SILENT  # a sentence
            elif word.pattern and literal_length(text) < len(text):
                said = self._wildcards(text, path, action)
            elif word.inside and look_at(posixpath.dirname(path)).kind != "folder":
                said = _SILENT
            else:
                said = self._named(path, action, text)
            if said.verdict != "allow":
                return said
        return _SILENT

    def _named(self, path: str, action: Action, shown: str) -> CallVerdict:
        """The verdict on a word that is taken for a name."""
        if action == "write" and look_at(path).kind == "missing":
            said = self._by_name(path, "create", shown)
            if said.verdict == "deny":
                return said
            more = self._by_name(path, "write", shown)
            return more if more.verdict == "deny" or said.verdict == "allow" else said
        said = self._by_name(path, action, shown)
        # A reading that would have to be asked about is not held up: the person sees the command.
        return _SILENT if said.verdict == "ask" and action == "read" else said

    def _wildcards(self, text: str, path: str, action: Action) -> CallVerdict:
        """The verdict on the files that wildcards match at this moment."""
        folder = _literal_folder(path)
        said = self._by_name(path, action, text)
        if said.verdict == "deny":
            return said
        rest = path[len(folder) :].lstrip("/")
        covered = self._covered(
            folder,
            [rest],
            (),
            action,
            deep="/" in rest,
            ignores=False,
            hidden=rest.rpartition("/")[2][:1] in (".", "[", "?"),
        )
        return _covering(covered, text, "name the files that you mean")

    def _text(self, text: str, starts: Sequence[str]) -> CallVerdict:
        """The verdict on names in code or data: of files that exist, or lie anywhere outside."""
        for each in written_in(text):
            name = self._at_home(each)
            for start in starts:
                said = self._named(posixpath.join(start, name), "write", name)
                if said.verdict != "allow":
                    return said
        suspects = self._suspecting(self._guard.roots[0], "read")
        anywhere = self._guard.policy.suspicion("read")
        for each in named_in(text):
            name = self._at_home(each)
            far = name[:1] == "/" or ".." in name
            if not any(map(anywhere if far else suspects, name.split("/"))):
                continue
            for start in starts if self._left > 0 else ():
                self._left -= _WORTH
                path = posixpath.join(start, name)
                decision = self._decide(posixpath.normpath(path), "read")
                if decision.verdict == "deny" and (name[:1] == "/" or self._is_there(path, name)):
                    return CallVerdict("deny", _because(name, decision))
        said_to = _FILEPACT.search(text)
        return _decides(said_to[1]) if said_to else _SILENT

    def _is_there(self, path: str, name: str) -> bool:
        """Whether a protected file is at a place, or one of that name anywhere in a root."""
        if look_at(path).kind != "missing":
            return True
        if self._secrets is None:
            self._secrets = frozenset(self._secret_names())
        return posixpath.basename(name).lower() in self._secrets

    def _suspecting(self, root: Root, action: Action) -> NameFilter:
        """A quick question about one part of a path; with rules about other folders it would be slow."""
        policy = self._guard.policy
        if root in self._guard.roots:
            policy = _about(policy, root.path)
        return policy.suspicion(action)

    def _secret_names(self) -> Iterator[str]:
        names: list[str] = []
        root = self._guard.roots[0]

        def refused(path: str) -> bool:
            if _DEPENDENCIES & set(path.split("/")):
                return False
            denied = self._decide(f"{root.path.rstrip('/')}/{path}", "read").verdict == "deny"
            if denied:
                names.append(posixpath.basename(path).lower())
            return denied

        walk = TreeReader(
            root,
            ".",
            allow=_Covered(self._suspecting(root, "read"), refused),
            ignore=False,
            most=_MOST_COVERED,
        )
        with suppress(FilepactError), walk:
            for batch in walk.batches():
                self._left -= 1 + len(batch.names)
        return iter(names)

    def _deciding(self, read: ShellCommand) -> CallVerdict:
        """A denial of what only a person types."""
        for program in read.programs:
            if program[0] in SAYING | FILTERS:
                continue
            for at, word in enumerate(program):
                if posixpath.basename(word) != "filepact" and not word.startswith("-mfilepact"):
                    continue
                given = program[at + 1 :]
                if decides(given):
                    return _decides(next(one for one in given if one in DECIDING))
                # What it is told is made at run time, or comes from a pipe.
                if given[:1] == ("$",) or (not given and program[0] in ("xargs", "parallel")):
                    return _decides("$")
        return _SILENT


@lru_cache(maxsize=4)
def _about(policy: Policy, root: str) -> Policy:
    """The rules that can say something about a folder."""

    def kept(rule: Rule) -> bool:
        return rule.root is None or is_beneath(rule.root, root) or is_beneath(root, rule.root)

    return Policy([*filter(kept, policy.rules)], [*filter(kept, policy.fallbacks)])


class _Covered(EntryFilter):
    """Asks of every name that a walk meets whether it is refused, and leaves out no others and no folder."""

    def __init__(self, suspects: NameFilter, refused: Callable[[str], bool]) -> None:
        super().__init__(lambda _path, _is_dir: True)
        self._suspects = suspects
        self._refuses = refused
        self._entered: tuple[str, ...] = ()

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        # What lies in a protected folder is asked about name by name.
        inside = prefix.startswith(self._entered)
        if not inside and self._suspects.clears(keys):
            return keys
        kept = []
        for key in keys:
            name = key.rstrip("/")
            if (inside or self._suspects(name)) and self._refuses(prefix + name):
                if key[-1:] != "/":
                    continue
                self._entered += (prefix + key,)
            kept.append(key)
        return kept


_LEAVE_OUT: Final = {
    "rg": "leave it out: `--glob '!NAME'`",
    "git grep": "leave it out: `-- ':!NAME'`",
    "find": "leave it out: `-not -name NAME`",
    "": "leave it out: `--exclude=NAME`",
}


def _covering(found: tuple[str, Decision] | None, what: str, hint: str) -> CallVerdict:
    if found is None:
        return _SILENT
    path, decision = found
    return CallVerdict(decision.verdict, f"{what} covers {_because(path, decision)}; {hint}")


def _decides(verb: str) -> CallVerdict:
    why = "is for a person to type, in a terminal of their own: go on with other work, or tell them what waits"
    return CallVerdict("deny", f"`filepact {verb}` {why}")


def _because(shown: str, decision: Decision) -> str:
    return f"{shown}: rule \u201c{decision.rule.name}\u201d ({decision.why})"


def _unsayable(text: str) -> str:
    """Why a text can be no name; empty if it can."""
    if "\0" in text:
        return "holds a NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half a character"
    return ""


def _is_below(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path begins with what wildcards stand for, part by part."""
    parts = path.split("/")
    return len(parts) >= len(patterns) and all(
        fnmatchcase(part, pattern) and (part[:1] != "." or pattern[:1] == ".")
        for part, pattern in zip(parts, patterns, strict=False)
    )


def _literal_folder(pattern: str) -> str:
    """The folder that a pattern begins with, as far as it has no wildcards."""
    return pattern[: literal_length(pattern)].rpartition("/")[0] or (
        "/" if pattern[:1] == "/" else ""
    )


def _accepts(only: Sequence[str], without: Sequence[str], *, hidden: bool) -> Callable[[str], bool]:
    """Whether a search with these globs covers a path."""
    wanted = [one for glob in only for one in _alternatives(glob, "/*")]
    unwanted = [one for glob in without for one in _alternatives(glob)]

    def accepts(path: str) -> bool:
        parts = path.split("/")
        if not hidden and any(one[:1] == "." for one in parts):
            return False
        if any(fnmatchcase(one, glob) for glob in unwanted for one in (path, f"./{path}", *parts)):
            return False
        return not wanted or any(
            fnmatchcase(one, glob) for glob in wanted for one in (path, parts[-1])
        )

    return accepts


def _alternatives(glob: str, inner: str = "") -> list[str]:
    """The globs that braces stand for; what is below a folder is meant by ``inner`` behind it."""
    try:
        found = expand_braces(glob)
    except GlobError:
        found = ["*"] if inner else []
    found = [one.strip("/").removeprefix("./").replace("**/", "") for one in found]
    return [(re.sub(r"/\*\*?$", inner, one) or "*") for one in found]
