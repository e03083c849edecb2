"""Ignore files as Git reads them, decided for one path at a time.

Within one file the last pattern that matches decides; a nearer file beats one further up; what
lies below an ignored folder cannot be brought back, but what Git tracks is never ignored by its
own files.  ``.ignore`` files beat ``.gitignore`` files
wherever both stand, as in ripgrep; ``.git/info/exclude`` counts last.  A person's global excludes
file does **not** count: answers must not depend on a home folder outside the root.  One difference
from Git is wanted: ``?`` and classes match a code point, not a byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from filepact.text.glob import GlobError, literal_length, translate
from filepact.values import dataclass, field, late_regex, replace

__all__ = [
    "DEFAULT_IGNORED",
    "MACHINE_FOLDERS",
    "MAX_RULES",
    "IgnoreResult",
    "IgnoreRuleSet",
    "IgnoreRules",
    "IgnoredFolder",
    "Tracking",
    "Why",
    "is_build",
]

MACHINE_FOLDERS: Final = frozenset({
    ".cache", ".git", ".next", ".nuxt", ".parcel-cache", ".turbo", ".venv", "__pycache__", "node_modules",
})  # fmt: skip
"""Names of folders that programs fill: left out at any depth, but for what is tracked in them."""

DEFAULT_IGNORED: Final = MACHINE_FOLDERS | {"build", "coverage", "dist", "venv"}
"""These, and names that people give to folders too: such a folder is left out where it is untracked
in a work tree of Git or, outside of any, carries the marks of a build."""

MAX_RULES: Final = 10_000
"""Most rules of one file that are used; the rest of a longer file does nothing."""

Layer = Literal["ignore", "gitignore", "exclude"]
"""Where rules come from: ``.ignore``, ``.gitignore`` or ``.git/info/exclude``."""

_Decide = Callable[[str, str, bool], "bool | None"]
"""Path from the file's folder, name, is it a folder -> ignored, brought back, or no rule."""

Why = Literal["", "ignored", "untracked", "made by a build"]
"""Why a folder is left out; empty for one of `MACHINE_FOLDERS`."""

Tracking = Callable[[], "Callable[[str], bool] | None"]

_Said = Literal["", "for searches", "for git", "brought back"]
"""What the rules say of a name: nothing, ignored by ``.ignore`` or by Git's files, or not ignored."""

_SILENT = frozenset({"__pycache__"})
"""Folders of which nobody is told: there is no text in them that could be missed."""

_MARKS = frozenset(
    """
    CACHEDIR.TAG pyvenv.cfg conda-meta
    CMakeCache.txt CMakeFiles build.ninja .ninja_log config.status meson-info XCBuildData
    .buildinfo .doctrees doctrees .last_build_id asset-manifest.json .vite
    lcov.info lcov-report clover.xml coverage-final.json cobertura-coverage.xml
    """.split()  # noqa: SIM905 - words read better than a list
)
_MARK_ENDINGS = (".tsbuildinfo", ".dist-info", ".egg-info")
_MARK_BEGINNINGS = ("bdist.", "temp.linux", "temp.macos")
_MARK_GROUPS = (frozenset({"classes", "tmp"}), frozenset({"kotlin", "tmp"}))

_GROUP = 100
_REMEMBERED = 20_000
_LITERAL = late_regex(r"[^*?\[\\]*")
_ENDING = late_regex(r"\*(\.[^*?\[\\./]+)")


def _nobody_knows() -> None:
    """Of no work tree that is known."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line: its source as an expression, and how it is compared."""

    pattern: str
    negated: bool
    directories_only: bool
    on_name: bool


def _parse_line(line: str) -> _Rule | None:
    text = _without_trailing_blanks(line.partition("\0")[0])
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    directories_only = text.endswith("/")
    text = text[: len(text) - directories_only]
    on_name = "/" not in text
    text = text.removeprefix("/")
    return _Rule(text, negated, directories_only, on_name) if text else None


def _without_trailing_blanks(line: str) -> str:
    """Leave out blanks at the end, but for one behind a backslash (only blanks, no tabs)."""
    bare = line.rstrip(" ")
    if bare == line:
        return line
    slashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if slashes % 2 else bare


def _expression(rule: _Rule) -> str | None:
    """The rule as an expression for ``fullmatch``; None for a pattern that matches nothing.

    Git compares the literal beginning first and hands only the rest to its matcher, which takes
    a ``**`` there for one at the beginning of a pattern.  Rules about whole paths show it.
    """
    cut = 0 if rule.on_name else literal_length(rule.pattern)
    try:
        return re.escape(rule.pattern[:cut]) + translate(rule.pattern[cut:])
    except GlobError:
        return None


class _Table:
    """Rules of one kind, looked up by literal first and by expressions last.

    Every answer is the number of the last rule that matches, or -1.
    """

    def __init__(self, rules: list[tuple[int, _Rule]], *, files: bool) -> None:
        self._literal: dict[str, int] = {}
        self._ending: dict[str, int] = {}
        sources: list[tuple[int, str]] = []
        for number, rule in rules:
            if files and rule.directories_only:
                continue
            if _LITERAL.fullmatch(rule.pattern):
                self._literal[rule.pattern] = number
            elif rule.on_name and (ending := _ENDING.fullmatch(rule.pattern)):
                self._ending[ending[1]] = number
            elif (source := _expression(rule)) is not None:
                sources.append((number, source))
        sources.reverse()
        self._groups = tuple(
            (
                re.compile("|".join(f"({source})" for _, source in group), re.DOTALL),
                tuple(number for number, _ in group),
            )
            for group in (sources[at : at + _GROUP] for at in range(0, len(sources), _GROUP))
        )
        self.empty = not (self._literal or self._ending or sources)

    def last(self, text: str) -> int:
        best = self._literal.get(text, -1)
        if self._ending:
            dot = text.rfind(".")
            if dot >= 0:
                number = self._ending.get(text[dot:], -1)
                best = max(number, best)
        for expression, numbers in self._groups:
            if numbers[0] < best:
                break
            found = expression.fullmatch(text)
            if found is not None:
                # The later rule stands first, so the first alternative that matches decides.
                return max(best, numbers[(found.lastindex or 1) - 1])
        return best


class _Compiled:
    """The rules of one text, for files and for folders, by name and by path."""

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self.rules = rules
        numbered = list(enumerate(rules))
        names = [pair for pair in numbered if pair[1].on_name]
        paths = [pair for pair in numbered if not pair[1].on_name]
        self._names = (_Table(names, files=True), _Table(names, files=False))
        self._paths = (_Table(paths, files=True), _Table(paths, files=False))
        self._by_path = tuple(not table.empty for table in self._paths)
        self._ignores = tuple(not rule.negated for rule in rules)
        self._remembered: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def decide(self, path: str, name: str, is_dir: bool) -> bool | None:
        known = self._remembered[is_dir]
        best = known.get(name)
        if best is None:
            best = self._names[is_dir].last(name)
            if len(known) < _REMEMBERED:
                known[name] = best
        if self._by_path[is_dir]:
            best = max(best, self._paths[is_dir].last(path))
        return None if best < 0 else self._ignores[best]


@lru_cache(maxsize=256)
def _compile(text: str) -> _Compiled:
    lines = text.removeprefix("\ufeff").split("\n")
    rules = [rule for line in lines if (rule := _parse_line(line.removesuffix("\r")))]
    return _Compiled(tuple(rules[:MAX_RULES]))


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of one ignore file.

    Attributes:
        base: The folder it stands in, relative to the root; ``.`` is the root.
    """

    base: str
    _compiled: _Compiled = field(repr=False, compare=False)
    _skip: int

    @classmethod
    def parse(cls, text: str, base: str) -> IgnoreRules:
        """Read the text of an ignore file; the same text is compiled once only."""
        return cls._at(base, _compile(text))

    @classmethod
    def _at(cls, base: str, compiled: _Compiled) -> IgnoreRules:
        return cls(base, compiled, 0 if base in ("", ".") else len(base) + 1)

    def __bool__(self) -> bool:
        return bool(self._compiled.rules)

    def sparing(self, path: str) -> IgnoreRules:
        """These rules without those that ignore a folder or a folder above it."""
        if not path.startswith(f"{self.base}/") and self._skip:
            return self
        parts = path[self._skip :].split("/")
        above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        if not any(self._compiled.decide(p, p[p.rfind("/") + 1 :], True) for p in above):
            return self
        kept = tuple(
            rule
            for rule in self._compiled.rules
            if rule.negated
            or all(_Compiled((rule,)).decide(p, p[p.rfind("/") + 1 :], True) is None for p in above)
        )
        return self._at(self.base, _Compiled(kept))


def is_build(names: Collection[str]) -> bool:
    """Whether the names in a folder are those of what a build, a test run or an installer leaves."""
    return (
        not _MARKS.isdisjoint(names)
        or any(group.issubset(names) for group in _MARK_GROUPS)
        or any(name.endswith(_MARK_ENDINGS) or name.startswith(_MARK_BEGINNINGS) for name in names)
    )


class IgnoredFolder(NamedTuple):
    """A folder that is left out, relative to the root, and why."""

    path: str
    why: Why


class IgnoreResult(NamedTuple):
    """The names of one folder, some of them left out.

    Attributes:
        kept: Those that are not; names of folders with a slash behind them.
        bare: Folders among them of which only what is tracked is kept.
        folders: Folders that are left out, but for those of which nobody needs to know.
        files: Paths of files that are left out.
        doubtful: Whether rules said something of a name, so that it may depend on what Git tracks.
    """

    kept: list[str]
    bare: frozenset[str] = frozenset()
    folders: tuple[IgnoredFolder, ...] = ()
    files: tuple[str, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class IgnoreRuleSet:
    """All rules in force in one folder; the nearest file stands last.

    Attributes:
        tracked: Answers whether Git tracks a path, or anything below it, in the work tree that the
            folder belongs to; None where it belongs to none, or nobody can tell.
        bare: Whether the folder itself is left out, so that only what is tracked is kept of it.
    """

    ignore: tuple[IgnoreRules, ...] = ()
    gitignore: tuple[IgnoreRules, ...] = ()
    exclude: tuple[IgnoreRules, ...] = ()
    defaults: frozenset[str] = DEFAULT_IGNORED
    tracked: Tracking = _nobody_knows
    bare: bool = False
    _order: tuple[tuple[_Decide, int, _Said], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layers: tuple[tuple[_Said, tuple[IgnoreRules, ...]], ...] = (
            ("for searches", self.ignore),
            ("for git", self.gitignore),
            ("for git", self.exclude),
        )
        order = [
            (rules._compiled.decide, rules._skip, said)  # noqa: SLF001 (one family in one module)
            for said, layer in layers
            for rules in reversed(layer)
        ]
        object.__setattr__(self, "_order", tuple(order))

    def with_rules(self, layer: Layer, rules: IgnoreRules) -> IgnoreRuleSet:
        """The stack with one more file, nearer than all that it has."""
        if not rules:
            return self
        if layer == "ignore":
            return replace(self, ignore=(*self.ignore, rules))
        if layer == "gitignore":
            return replace(self, gitignore=(*self.gitignore, rules))
        return replace(self, exclude=(*self.exclude, rules))

    def repository(self, tracked: Tracking = _nobody_knows) -> IgnoreRuleSet:
        """The stack at the top of a repository: rules of Git above it do not reach inside.

        Args:
            tracked: Answers what is tracked there; asked when something would be left out.
        """
        return replace(self, gitignore=(), exclude=(), tracked=tracked, bare=False)

    def within(self, folder: str, bare: frozenset[str]) -> IgnoreRuleSet:
        """The stack for a folder that was kept.

        Args:
            folder: Its name.
            bare: Folders beside it of which only what is tracked is kept.
        """
        return replace(self, bare=True) if folder in bare and not self.bare else self

    def sparing(self, path: str) -> IgnoreRuleSet:
        """The stack without the rules that ignore a folder which was named outright.

        Where nothing in that folder is tracked, that says nothing of the folders in it either.
        """
        everywhere = self.tracked

        def tracked() -> Callable[[str], bool] | None:
            found = everywhere()
            return found if found is not None and found(path) else None

        return replace(
            self,
            tracked=tracked,
            ignore=tuple(rules.sparing(path) for rules in self.ignore),
            gitignore=tuple(rules.sparing(path) for rules in self.gitignore),
            exclude=tuple(rules.sparing(path) for rules in self.exclude),
        )

    def sift(
        self, prefix: str, names: list[str], built: Callable[[str], bool] = lambda _name: True
    ) -> IgnoreResult:
        """The names in a folder that are not ignored; the folder itself is not.

        Rules for Git say nothing about tracked files; those of ``.ignore`` files do.

        Args:
            prefix: The folder's path with a slash behind it; empty for the root.
            names: Names in the folder; those of folders with a slash behind them.
            built: Whether a folder in it, by its name, carries the marks of a build.
        """
        order, defaults, bare = self._order, self.defaults, self.bare
        if not order and not bare:
            kept = [key for key in names if key[-1] != "/" or key[:-1] not in defaults]
            if len(kept) == len(names):
                return IgnoreResult(kept)
        kept = []
        doubtful: list[tuple[str, _Said]] = []
        for key in names:
            is_dir = key[-1] == "/"
            name = key[:-1] if is_dir else key
            path = prefix + name
            for decide, skip, ignored in order:
                decided = decide(path[skip:], name, is_dir)
                if decided is not None:
                    if decided:
                        doubtful.append((key, ignored))
                    elif bare or (is_dir and name in defaults):
                        doubtful.append((key, "brought back"))
                    else:
                        kept.append(key)
                    break
            else:
                if bare or (is_dir and name in defaults):
                    doubtful.append((key, ""))
                else:
                    kept.append(key)
        return self._settled(prefix, kept, doubtful, built) if doubtful else IgnoreResult(kept)

    def _settled(
        self,
        prefix: str,
        kept: list[str],
        doubtful: list[tuple[str, _Said]],
        built: Callable[[str], bool],
    ) -> IgnoreResult:
        """Keep those names after all that are tracked, or that people may have given."""
        tracked = self.tracked()
        bare: set[str] = set()
        folders: list[IgnoredFolder] = []
        files: list[str] = []
        for key, said in doubtful:
            is_dir = key[-1] == "/"
            name = key[:-1] if is_dir else key
            path = prefix + name
            ignored = said[:3] == "for"
            if is_dir and name == ".git" and name in self.defaults:
                continue
            if tracked is not None and said != "for searches" and tracked(path):
                kept.append(key)
                if is_dir and (ignored or name in MACHINE_FOLDERS):
                    bare.add(name)
                continue
            why: Why = "ignored"
            if is_dir and name in self.defaults and not ignored and not self.bare:
                if name in MACHINE_FOLDERS:
                    why = ""
                elif said == "brought back" or (tracked is None and not built(name)):
                    kept.append(key)
                    continue
                else:
                    why = "made by a build" if tracked is None else "untracked"
            if not is_dir:
                files.append(path)
            elif name not in _SILENT:
                folders.append(IgnoredFolder(path, why))
        return IgnoreResult(kept, frozenset(bare), tuple(folders), tuple(files), doubtful=True)
