"""Programs and their arguments in a shell: the tables by which commands are read.

Of a program that stands in none of them it is only known that it may read what it names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.text.glob import GlobError, expand_braces
from filepact.values import late_regex, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact_hooks.shell_syntax import Argument, WordUse

__all__ = [
    "CHOOSING",
    "CODE_FIRST",
    "DELETING",
    "GIT_LISTING",
    "GIT_SAYING",
    "GIT_VALUES",
    "IN_PLACE",
    "LEAVING_OUT",
    "LISTING",
    "OPERAND_FIRST",
    "OUTPUT",
    "PATTERN_FIRST",
    "RUNNERS",
    "SAID",
    "SAYING",
    "SEARCHING",
    "SHELLS",
    "TO_LAST",
    "WRAPPERS",
    "WRITING",
    "ShellSearch",
    "expand_word",
    "grep_search",
    "is_data",
    "listing_search",
    "named_in",
    "used_by",
    "written_in",
]

SHELLS: Final = words("sh bash dash zsh ksh ash fish mksh rbash")
WRAPPERS: Final = dict(
    one.split(":")
    for one in words(
        "sudo:ughpCTRrtD doas:uC env:uC nohup: setsid: time:fo timeout:ks nice:n ionice:cnpPu stdbuf:ioe "
        "xargs:InPLdEsa exec:a command: builtin: busybox: unbuffer: coproc: chrt: taskset: strace:oesp ltrace:oes "
        "parallel:jIa flock:wE runuser:u chronic: caffeinate:t arch: winpty: rtk: npx:p bunx: uvx: unshare:"
    )
)
"""Programs that start another one, with their options of one letter that take a value."""
RUNNERS: Final = {
    **dict.fromkeys(("uv", "poetry", "pdm", "pipenv", "rye", "hatch", "pipx"), ("run",)),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bundle", "mise"), ("exec", "dlx", "x")),
}
"""The same, where a word of their own says so."""
OPERAND_FIRST: Final = words("timeout taskset chrt flock")
"""Of these, those that take one word of their own before the other program's name."""

SAYING: Final = words("echo printf : true false")
LISTING: Final = words(
    "ls dir vdir exa eza lsd test [ stat file du basename dirname realpath readlink which type chmod chown filepact "
    "chgrp mkdir rmdir cd pushd popd lsattr getfacl exit return kill sleep export unset alias fd fdfind"
)
WRITING: Final = words(
    "touch truncate tee ed ex sponge fallocate setfacl vi vim nvim nano emacs patch dos2unix unix2dos"
)
DELETING: Final = words("rm unlink shred trash trash-put gio")
TO_LAST: Final = words("cp mv ln install rsync scp link rename")
PATTERN_FIRST: Final = words(
    "grep egrep fgrep zgrep rgrep rg ripgrep ag ack ack-grep jq yq ugrep git-grep"
)
CODE_FIRST: Final = words("sed gsed awk gawk mawk perl ruby")
_RIPGREP: Final = words("rg ripgrep ag ack ack-grep")
SEARCHING: Final = words("grep egrep fgrep zgrep rgrep rg ripgrep ag ack ack-grep ugrep")
IN_PLACE: Final = {
    **dict.fromkeys(
        ("sed", "gsed", "perl", "ruby", "awk", "gawk", "yq", "clang-format"),
        late_regex(r"-[a-zA-Z]*i.*|--in-?place.*|inplace"),
    ),
    **dict.fromkeys(("gofmt", "prettier"), late_regex(r"-\w*w\w*|--write")),
    "": late_regex(r"--(?:write|fix|in-?place)(?:=.*)?"),
}
"""By which option a program changes the files that it names; the last one for every other."""
OUTPUT: Final = {
    "curl": late_regex(r"-[a-zA-Z]*o|--output"),
    "wget": late_regex(r"-[a-zA-Z]*[oO]|--output-document"),
    **dict.fromkeys(("sort", "gcc", "cc", "pandoc"), late_regex("-o|--output")),
    "openssl": late_regex("-out"),
    **dict.fromkeys(("unzip", "tar"), late_regex("-d|-C|--directory")),
}
"""Options after which a program is told what to write."""

LEAVING_OUT: Final = late_regex(
    r"--(?:exclude|ignore|skip)(?:-dir|-path|-glob|-pattern)?|--grep|--filter|--test-?[nN]ame-?[pP]attern"
)
"""Options whose value is a pattern of what is left out, or looked for in texts."""
CHOOSING: Final = {
    **dict.fromkeys(("pytest", "py.test"), ("-k", "-m")),
    **dict.fromkeys(("jest", "vitest"), ("-t",)),
    **dict.fromkeys(("tree", "ls"), ("-I",)),
    "go": ("-run", "-bench", "-skip"),
    "mocha": ("-g",),
    "git": ("-S", "-G"),
}
"""The same, by program."""

GIT_VALUES: Final = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
GIT_SAYING: Final = words("commit tag merge notes stash revert cherry-pick")
GIT_LISTING: Final = words(
    "add status check-ignore ls-files update-index reset rm log branch push pull fetch remote rev-parse switch"
)
SAID: Final = words("-m -am --message --title --body -t -b --notes --description")
"""Options of Git and its services after which a text is only kept or shown."""

_TAKING: Final = words(
    "-A -B -C -m -g --glob --iglob -t -T --type --include --exclude --exclude-dir -G --max-count --context "
    "--ignore --ignore-dir -j --threads --max-depth -d --color --colors --sort -r --replace"
)
"""Options of programs that search which take a value."""

_REMOVES: Final = late_regex(r"(?:^|[\s;&|(/])(?:rm|unlink|shred|trash|trash-put|git rm)(?:\s|$)")
_CHANGES: Final = late_regex(
    r"(?:^|[\s;&|(/])(?:(?:sed|perl|ruby|yq)\s+(?:-\S+\s+)*-\w*i|(?:tee|mv|touch|truncate|dos2unix)(?:\s|$)|\S+ .*--write\b)"
)
_DATA: Final = late_regex(r"-[a-zA-Z]*[dFH]|--(?:data(?:-\w+)?|json|form(?:-string)?|header)")
_FROM_FILE: Final = late_regex(r"(?:[^=\s{]*=)?[@<]|[\w-]+@[^\s@]+$")


def used_by(taker: str) -> WordUse:
    """The action on files whose names a program takes."""
    return "delete" if _REMOVES.search(taker) else "write" if _CHANGES.search(taker) else "read"


def is_data(option: str, value: str) -> bool:
    """Whether the value of an option of curl's is sent as it is."""
    return bool(_DATA.fullmatch(option)) and not _FROM_FILE.match(value)


class ShellSearch(NamedTuple):
    """A program that takes whatever lies below some folders.

    Attributes:
        program: Which.
        folders: Where it looks.
        only: Globs of which a file has to match one; empty for every file.
        without: Globs of files and folders that it leaves out.
        ignores: Whether it leaves out what ignore files name.
        hidden: Whether it takes files whose names begin with a dot.
        deep: Whether it goes into folders below.
        use: What is done with the files.
    """

    program: str
    folders: tuple[str, ...]
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    ignores: bool = False
    hidden: bool = True
    deep: bool = True
    use: WordUse = "read"


def grep_search(
    name: str,
    rest: Sequence[Argument],
    operands: Callable[[str, Sequence[Argument], list[Argument]], list[Argument]],
) -> ShellSearch | None:
    """The search for text that a program makes through folders; None where it makes none.

    Args:
        name: It.
        rest: Its arguments.
        operands: Takes the pattern from those that are no options.
    """
    texts = [one.text for one in rest]
    short = "".join(one[1:] for one in texts if re.fullmatch(r"-[a-zA-Z.]+", one))
    grep = name in ("grep", "egrep", "fgrep", "zgrep")
    if grep and not (
        set(short) & set("rR") or {"--recursive", "--dereference-recursive", "recurse"} & set(texts)
    ):
        return None
    only: list[str] = []
    without: list[str] = []
    for option, value in _valued(texts):
        if option in ("--include", "-g", "--glob", "--iglob", "-G"):
            (without if value.startswith("!") else only).append(value.lstrip("!"))
        elif option in ("--exclude", "--exclude-dir", "--ignore", "--ignore-dir", "--ignore-file"):
            without.append(value)
    folders: list[str] = []
    taking = _TAKING if name in _RIPGREP else _TAKING - {"-r", "-t", "-T", "-j", "-g"}
    taken = {at + 1 for at, one in enumerate(texts[:-1]) if one in taking}
    left = [one for at, one in enumerate(rest) if at not in taken]
    for one in operands("grep", left, [each for each in left if each.text[:1] != "-"]):
        if one.text[:2] in (":!", ":^"):
            without.append(one.text[2:])
        elif one.text.startswith(":(exclude)"):
            without.append(one.text[10:])
        elif name == "git grep" and one.pattern:
            only.append(one.text)
        else:
            folders.append(one.text)
    rg = name in _RIPGREP
    count = short.count("u")
    return ShellSearch(
        name,
        tuple(folders) or (".",),
        tuple(only),
        tuple(without),
        ignores=(
            rg
            and not only
            and not count
            and not any(one.startswith("--no-ignore") for one in texts)
            and not (name == "ag" and "U" in short)
        )
        or (name == "git grep" and "--no-index" not in texts),
        hidden=not rg or bool(only) or count > 1 or "." in short or "--hidden" in texts,
    )


def listing_search(
    name: str, rest: Sequence[Argument], folders: Sequence[Argument], taker: str
) -> ShellSearch | None:
    """The listing that a program makes for another one; None where it makes none."""
    short = "".join(one.text[1:] for one in rest if re.fullmatch("-[a-zA-Z0-9]+", one.text))
    long = {one.text for one in rest if one.text.startswith("--")}
    if name == "ls":
        if taker:
            named = tuple(one.text for one in folders) or (".",)
            hidden = bool(set(short) & set("aA")) or bool({"--all", "--almost-all"} & long)
            deep = "R" in short
            use = used_by(taker)
            return ShellSearch("ls", named, hidden=hidden, deep=deep, use=use)
    elif taker or set(short) & set("xX") or {"--exec", "--exec-batch"} & long:
        hidden = bool(set(short) & set("Hu")) or "--hidden" in long
        ignores = not (set(short) & set("Iu") or "--no-ignore" in long)
        return ShellSearch("fd", (".",), ignores=ignores, hidden=hidden)
    return None


def _valued(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options that have a value, joined to them or behind."""
    for at, text in enumerate(texts):
        option, equals, value = text.partition("=")
        if equals and option.startswith("--"):
            yield option, value
        elif text in (
            "-g",
            "-G",
            "--glob",
            "--iglob",
            "--include",
            "--exclude",
            "--exclude-dir",
            "--ignore",
        ):
            yield text, texts[at + 1] if at + 1 < len(texts) else ""
        elif text.startswith("-g") and len(text) > 2:
            yield "-g", text[2:]


# -- names in code and data ----------------------------------------------------------------------


_NAME: Final = late_regex(r"(?<![\\\w.~/+%$-])[\w.~/+%$-]+|(?<=\\)[\w~/+%$-][\w.~/+%$-]*")
_LITERAL: Final = late_regex(r"(?:(?<![\s\\\w.~/+%$-])|(?<=< ))[\w.~/+%$-]+(?![\s\w.~/+%$-])")
_EXISTS: Final = late_regex(
    r"""\b(?:exists|existsSync|is_?file|isfile)\(\s*['"][^'"\n]*['"]\s*\)|['"][^'"\n]*['"]\)\.(?:exists|is_file)\("""
)
_REMARKS: Final = late_regex(r"^[ \t]*(?:#|//)[ \t!].*$", re.MULTILINE)
_LONG_TEXTS: Final = late_regex(
    r"(\"{3}|'{3})(?=[^\n]{0,500}\n).*?\1|`[^`\n]{0,500}\n[^`]*`", re.DOTALL
)
_RUNS: Final = late_regex(
    r"\b(?:system|popen|subprocess|child_process|exec\w*|eval|spawn\w*|sh|bash)\b"
)
_WRITTEN: Final = late_regex(
    r"""(['"])(?P<a>[^'"\n]{1,200})\1(?=\s*(?:,\s*(?:mode\s*=\s*)?['"][rb]*[wax+]|\)\s*\.\s*(?:write_|unlink|touch|rename)))"""
    r"""|\b(?:write\w*|append\w*|unlink\w*|remove|rm(?:Sync)?|truncate\w*|createWriteStream|rename\w*)\(\s*['"](?P<b>[^'"\n]{1,200})['"]"""
    r"""|['"]>+\s*(?P<c>[^'"\s]{1,200})['"]"""
)


def named_in(text: str) -> list[str]:
    """Possible names of files in code, or in data that a program may take for names."""
    plain, names = _REMARKS.sub("", text), _NAME
    short = _LONG_TEXTS.sub("", plain)
    if not _RUNS.search(short):
        plain = _EXISTS.sub("", short)
        # In code that starts no program, a name stands by itself between its quotes.
        names = _LITERAL if re.search("['\"]", short) else _NAME
    found = dict.fromkeys(names.findall(plain))
    return [one.rstrip(".").lstrip("$+%") for one in found]


def written_in(text: str) -> list[str]:
    """The files that code plainly writes or removes."""
    return [one["a"] or one["b"] or one["c"] for one in _WRITTEN.finditer(text)]


_MANY_COMMAS: Final = 10
_RANGE: Final = late_regex(r"\{(\w)\.\.(\w)\}")


def expand_word(text: str) -> list[str]:
    """The words that a word with braces stands for.

    Raises:
        GlobError: They stand for more than is looked at.
    """
    ranged = _RANGE.sub(_letters, text)
    try:
        return expand_braces(ranged)
    except GlobError:
        if "}" in ranged and ranged.count(",") > _MANY_COMMAS:
            raise
        return [text]


def _letters(found: re.Match[str]) -> str:
    begin, end = sorted(map(ord, found.groups()))
    return "{" + ",".join(map(chr, range(begin, end + 1))) + "}"
