"""Reads a shell command: the words in it that name files, what is done with each, and what it searches.

Of each program it is known, as far as that is common, what it does with its arguments; of one that is not,
that it reads what it names.  Scripts within the command (``sh -c``, ``eval``, the input of a shell) are read
as well.  What is code of another language, or data that a program may take names from, is told as text, in
which names can be looked for.
"""

from __future__ import annotations

import re
from posixpath import basename
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.text.shell_syntax import FILTERS, Argument, ShellScript
from filepact.values import late_regex, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.text.shell_syntax import SimpleCommand, WordUse

__all__ = ["ShellCommand", "ShellSearch", "ShellWord", "read_command"]

_LONGEST: Final = 1 << 20  # characters
_MOST_WORDS: Final = 20_000
_DEEPEST: Final = 8  # scripts within scripts


class ShellWord(NamedTuple):
    """A word that may name a file.

    Attributes:
        text: It, without quotes.
        use: What is done with the file.
        pattern: Whether it holds wildcards or braces that the shell expands.
        inside: Whether it counts only where what stands before its last part is a folder.
    """

    text: str
    use: WordUse
    pattern: bool = False
    inside: bool = False


class ShellSearch(NamedTuple):
    """A program that reads whatever lies below some folders.

    Attributes:
        program: Which.
        folders: Where it looks.
        only: Globs of which a file has to match one; empty for every file.
        without: Globs of files and folders that it leaves out.
        ignores: Whether it leaves out what ignore files name.
        hidden: Whether it reads files whose names begin with a dot.
    """

    program: str
    folders: tuple[str, ...]
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    ignores: bool = False
    hidden: bool = True


class ShellCommand(NamedTuple):
    """A command as it was read.

    Attributes:
        words: The words that may name files.
        searches: What reads whatever lies below a folder.
        programs: Each program that it starts, with its arguments.
        folders: Where it goes with ``cd``.
        patches: What it gives to the program that applies patches of the agents' own form.
        whole: Whether all of it is Bash; else the words are what could be made out.
        too_long: Whether some of it was not read.
    """

    words: tuple[ShellWord, ...]
    searches: tuple[ShellSearch, ...]
    programs: tuple[tuple[str, ...], ...]
    folders: tuple[str, ...]
    patches: tuple[str, ...]
    whole: bool
    too_long: bool


def read_command(command: str) -> ShellCommand:
    """Read one command, as a shell would be given it."""
    reading = _Reading()
    reading.script(command)
    reading.settle()
    return ShellCommand(
        tuple(dict.fromkeys(reading.words)),
        tuple(reading.searches),
        tuple(reading.programs),
        tuple(dict.fromkeys(reading.folders)),
        tuple(reading.patches),
        reading.whole,
        reading.too_long,
    )


# -- programs ----------------------------------------------------------------------------------------


_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh", "rbash"})
_WRAPPERS: Final = dict(
    one.split(":")
    for one in words(
        "sudo:ughpCTRrtD doas:uC env:uC nohup: setsid: time:fo timeout:ks nice:n ionice:cnpPu stdbuf:ioe "
        "xargs:InPLdEsa exec:a command: builtin: busybox: unbuffer: coproc: chrt: taskset: strace:oesp ltrace:oes "
        "parallel:jI flock:wE runuser:u chronic: caffeinate:t arch: winpty: rtk:"
    )
)
"""Programs that start another one, with their options of one letter that take a value."""
_OPERAND_FIRST: Final = frozenset({"timeout", "taskset", "chrt", "flock"})
"""Of these, those that take one word of their own before the other program's name."""

_SAYING: Final = frozenset({"echo", "printf", ":", "true", "false"})
_LISTING: Final = words(
    "ls dir vdir exa eza lsd test [ stat file du basename dirname realpath readlink which type chmod chown "
    "chgrp mkdir rmdir cd pushd popd lsattr getfacl exit return kill sleep export unset set alias"
)
_WRITING: Final = frozenset(
    {"touch", "truncate", "tee", "ed", "ex", "sponge", "fallocate", "setfacl"}
)
_DELETING: Final = frozenset({"rm", "unlink", "shred", "trash", "trash-put", "gio"})
_TO_LAST: Final = frozenset({"cp", "mv", "ln", "install", "rsync", "scp", "link", "rename"})
_PATTERN_FIRST: Final = words(
    "grep egrep fgrep zgrep rgrep rg ripgrep ag ack ack-grep jq yq ugrep git-grep"
)
_CODE_FIRST: Final = frozenset({"sed", "gsed", "awk", "gawk", "mawk", "perl", "ruby"})
_RIPGREP: Final = frozenset({"rg", "ripgrep", "ag", "ack", "ack-grep"})
_IN_PLACE: Final = late_regex(r"-(?:[a-zA-Z]*i.*|-in-place.*)")
_SEARCHING: Final = words("grep egrep fgrep zgrep rgrep rg ripgrep ag ack ack-grep ugrep")
_OUTPUT: Final = {
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document", "-o"),
    "sort": ("-o", "--output"),
    **dict.fromkeys(("gcc", "cc", "pandoc"), ("-o", "--output")),
    "openssl": ("-out",),
    "unzip": ("-d",),
}
"""Options after which a program is told what to write."""

_GIT_VALUES: Final = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
_GIT_SAYING: Final = frozenset(
    {"commit", "tag", "merge", "notes", "stash", "revert", "cherry-pick"}
)
_GIT_LISTING: Final = words(
    "add status check-ignore ls-files update-index reset rm log branch push pull fetch remote rev-parse"
)
_GIT_WRITING: Final = frozenset({"restore", "mv"})
_SAID: Final = (
    "-m",
    "-am",
    "--message",
    "--title",
    "--body",
    "-t",
    "-b",
    "--notes",
    "--description",
)

_ODD: Final = late_regex(r"[\s'\"()<>|;&`]")
_PARTS: Final = late_regex(r"[=:,@]")
_REDIRECT: Final = late_regex(r">[>|&]?\s*([^\s'\"()<>|;&`]+)")


class _Reading:
    def __init__(self) -> None:
        self.words: list[ShellWord] = []
        self.searches: list[ShellSearch] = []
        self.programs: list[tuple[str, ...]] = []
        self.folders: list[str] = []
        self.patches: list[str] = []
        self.whole = True
        self.too_long = False
        self._values: dict[str, tuple[str, ...]] = {}
        self._data: list[tuple[str, tuple[str, ...]]] = []
        self._depth = 0

    def script(self, source: str) -> None:
        """Read a script, the command itself or one within it."""
        if len(source) > _LONGEST or self._depth >= _DEEPEST:
            self.too_long = True
            return
        self._depth += 1
        script = ShellScript(source, self._values)
        if not script.whole:
            self.whole = False
            self._add(source, "text")
            for found in _REDIRECT.finditer(source):
                self._add(found[1], "write")
        for word, use in script.mentions:
            self._operand(word, use)
        for one in script.commands:
            self._simple(one.words, one)
        self._depth -= 1

    def settle(self) -> None:
        """Take data for text where what it is written to is used again in the same command."""
        runs = [one for one in self.programs if one[0] not in FILTERS | _LISTING | {"git"}]
        used = {basename(word) for one in runs for word in one}
        for text, targets in self._data:
            if any(basename(one) in used for one in targets):
                self._add(text, "text")

    def _add(self, text: str, use: WordUse, *, pattern: bool = False, inside: bool = False) -> None:
        if len(self.words) >= _MOST_WORDS:
            self.too_long = True
        elif text:
            self.words.append(ShellWord(text, use, pattern, inside))

    # -- commands -------------------------------------------------------------------------

    def _simple(self, found: Sequence[Argument], command: SimpleCommand) -> None:
        """Take in one program with its arguments.

        Args:
            found: It, and they.
            command: What it stands in.
        """
        piped = any(basename(one.text) in ("xargs", "parallel") for one in found[:2])
        found = self._unwrapped(found)
        if not found:
            return
        name, rest = basename(found[0].text), found[1:]
        self.programs.append((name, *(one.text for one in rest)))
        if name in _SHELLS or name in ("source", "."):
            self._shell(rest, command.given)
            return
        if name in ("apply_patch", "applypatch"):
            self.patches += [*command.given, *(one.text for one in rest)]
            return
        if name in ("eval", "trap", "watch", "alias", "su", "script"):
            for one in rest if name != "eval" else [Argument(" ".join(one.text for one in rest))]:
                inner = one.text.partition("=")[2] if name == "alias" else one.text
                if not inner.startswith("-"):
                    self.script(inner)
        for text in command.given:
            self._said(text, command, data=not piped and name in ("cat", "tee", *_SAYING))
        if name in _SAYING:
            for one in rest:
                self._said(one.text, command, data=True)
        elif name == "git":
            self._git(rest)
        elif name == "find":
            self._find(rest, command)
        else:
            self._arguments(name, rest)

    def _said(self, text: str, command: SimpleCommand, *, data: bool) -> None:
        """Take in what a program prints: for data, only what names or code are made of counts."""
        if not data or command.feeds:
            self._add(text, "text")
        elif command.saved_to:
            self._data.append((text, command.saved_to))

    def _unwrapped(self, found: Sequence[Argument]) -> Sequence[Argument]:
        """The words without a program before them that only starts another."""
        while found and (name := basename(found[0].text)) in _WRAPPERS:
            values, at = _WRAPPERS[name], 1
            skip = name in _OPERAND_FIRST
            while at < len(found):
                text = found[at].text
                if text.startswith("-") and len(text) > 1:
                    if name == "env" and text in ("-S", "--split-string"):
                        self.script(" ".join(one.text for one in found[at + 1 :]))
                    at += 1
                    if len(text) == 2 and text[1] in values and at < len(found):
                        self._operand(found[at], "read")
                        at += 1
                elif name == "env" and "=" in text:
                    self._operand(found[at], "read")
                    at += 1
                elif skip:
                    skip, at = False, at + 1
                else:
                    break
            self.programs.append((name, *(one.text for one in found[1:])))
            found = found[at:]
        return found

    def _shell(self, rest: Sequence[Argument], given: Sequence[str]) -> None:
        script = next(
            (
                at + 1
                for at, one in enumerate(rest)
                if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", one.text)
            ),
            None,
        )
        for text in given:
            self.script(text)
        for at, one in enumerate(rest):
            if at == script:
                self.script(one.text)
            else:
                self._operand(one, "read")

    # -- arguments ------------------------------------------------------------------------

    def _arguments(self, name: str, rest: Sequence[Argument]) -> None:
        if name in ("cd", "pushd"):
            self.folders += [one.text for one in rest if not one.text.startswith("-")]
        if name in _SEARCHING:
            self._search(name, rest)
        if name in ("gh", "glab"):
            rest = _without_said(rest)
        operands = self._options(name, rest)
        if name in _PATTERN_FIRST or name in _CODE_FIRST:
            operands = self._after_pattern(name, rest, operands)
        self._operands(name, rest, operands)

    def _operands(self, name: str, rest: Sequence[Argument], operands: Sequence[Argument]) -> None:
        """Take in what is no option, by what the program does with it."""
        if name in _TO_LAST:
            self._to_last(name, rest, operands)
            return
        use: WordUse = "read"
        if name in _LISTING:
            use = "list"
        elif name in _DELETING:
            use = "delete"
        elif name in _WRITING:
            use = "write"
        elif name in ("sed", "gsed", "perl", "ruby", "awk", "gawk"):
            in_place = any(_IN_PLACE.fullmatch(one.text) for one in rest) or "inplace" in (
                one.text for one in rest
            )
            use = "write" if in_place else "read"
        elif (
            name == "filepact"
            and operands
            and operands[0].text in ("write", "edit", "patch", "mv", "rm")
        ):
            use, operands = "write", operands[1:]
        for one in operands:
            if name == "dd" and one.text.startswith("of="):
                self._add(one.text[3:], "write")
            else:
                self._operand(one, use)
                if use == "write" and name not in ("touch", "tee", "truncate"):
                    self._operand(one, "read")

    def _to_last(self, name: str, rest: Sequence[Argument], operands: Sequence[Argument]) -> None:
        """Take in sources and the target behind them."""
        named = [
            rest[at + 1]
            for at, one in enumerate(rest[:-1])
            if one.text in ("-t", "--target-directory")
        ]
        named += [
            Argument(one.text.partition("=")[2])
            for one in rest
            if one.text.startswith("--target-directory=")
        ]
        target = named[0] if named else operands[-1] if len(operands) > 1 else None
        sources = [one for one in operands if one is not target]
        for one in sources:
            self._operand(one, "read")
            if name == "mv":
                self._operand(one, "delete")
        if target is not None:
            self._add(target.text, "write", pattern=target.pattern)
            for one in sources:
                below = f"{target.text.rstrip('/')}/{basename(one.text.rstrip('/'))}"
                self._add(below, "write", inside=not target.text.endswith("/"))

    def _options(self, name: str, rest: Sequence[Argument]) -> list[Argument]:
        """Take in the values of options; what is left are the operands."""
        operands: list[Argument] = []
        output = _OUTPUT.get(name, ())
        only_operands = False
        for at, one in enumerate(rest):
            if at and rest[at - 1].text in output:
                self._add(one.text, "write")
            elif one.text == "--":
                only_operands = True
            elif only_operands or not one.text.startswith("-") or one.text == "-":
                operands.append(one)
            else:
                head, equals, value = one.text.partition("=")
                if equals:
                    self._operand(Argument(value, one.pattern), "read")
                    if head in output:
                        self._add(value, "write")
                elif not one.text.startswith("--") and len(one.text) > 2:
                    self._operand(Argument(one.text[2:], one.pattern), "read")
        return operands

    def _after_pattern(
        self, name: str, rest: Sequence[Argument], operands: list[Argument]
    ) -> list[Argument]:
        """The operands without the pattern or code that goes before them."""
        given = ("-e", "-f", "--regexp", "--file") if name not in ("perl", "ruby") else ("-e", "-E")
        told = any(
            one.text in given
            or (one.text[:2] in ("-e", "-f") and name not in ("perl", "ruby", "jq", "yq"))
            for one in rest
        )
        if name in ("perl", "ruby") or name in _CODE_FIRST:
            if operands:
                self._add(operands[0].text, "text")
            return operands if name in ("perl", "ruby") else operands[0 if told else 1 :]
        if told and "-f" not in (one.text[:2] for one in rest):
            patterns = {at + 1 for at, one in enumerate(rest) if one.text in ("-e", "--regexp")}
            said = [one for at, one in enumerate(rest) if at in patterns]
            return [one for one in operands if not any(one is each for each in said)]
        return operands if told else operands[1:]

    def _operand(self, word: Argument, use: WordUse) -> None:
        """Take in a word, with what stands in it behind signs that names are put together with."""
        if _ODD.search(word.text):
            self._add(word.text, "text")
            if "\n" not in word.text:
                self._add(word.text, use, pattern=word.pattern)
            return
        self._add(word.text, use, pattern=word.pattern)
        if _PARTS.search(word.text):
            for part in _PARTS.split(word.text):
                self._add(part, "list" if use == "list" else "read", pattern=word.pattern)

    # -- programs with a language of their own --------------------------------------------

    def _git(self, rest: Sequence[Argument]) -> None:
        at = 0
        while at < len(rest) and rest[at].text.startswith("-"):
            if rest[at].text == "-C" and at + 1 < len(rest):
                self.folders.append(rest[at + 1].text)
            at += 2 if rest[at].text in _GIT_VALUES else 1
        verb, rest = (rest[at].text, rest[at + 1 :]) if at < len(rest) else ("", [])
        texts = [one.text for one in rest]
        if verb == "grep":
            self._search("git grep", rest)
            for one in self._after_pattern("grep", rest, self._options("git", rest)):
                self._operand(one, "read")
            return
        if verb in _GIT_SAYING:
            rest = _without_said(rest)
        use: WordUse = "list" if verb in _GIT_LISTING else "read"
        if verb == "log" and {"-p", "-u", "--patch"} & set(texts):
            use = "read"
        if verb in _GIT_WRITING or (verb == "checkout" and "--" in texts):
            use = "write"
        elif verb == "rm" and "--cached" not in texts:
            use = "delete"
        elif verb == "checkout":
            use = "list"
        if verb == "checkout" and "--" in texts:
            rest = rest[texts.index("--") :]
        for one in self._options("git", rest):
            self._operand(one, use)

    def _search(self, name: str, rest: Sequence[Argument]) -> None:
        """Take in a program that reads whatever lies below a folder, if it does."""
        texts = [one.text for one in rest]
        short = "".join(one[1:] for one in texts if re.fullmatch(r"-[a-zA-Z.]+", one))
        grep = name in ("grep", "egrep", "fgrep", "zgrep")
        if grep and not (
            set(short) & set("rR") or {"--recursive", "--dereference-recursive"} & set(texts)
        ):
            return
        only: list[str] = []
        without: list[str] = []
        for option, value in _valued(texts):
            if option in ("--include", "-g", "--glob", "--iglob", "-G"):
                (without if value.startswith("!") else only).append(value.lstrip("!"))
            elif option in (
                "--exclude",
                "--exclude-dir",
                "--ignore",
                "--ignore-dir",
                "--ignore-file",
            ):
                without.append(value)
        folders: list[str] = []
        taking = _TAKING if name in _RIPGREP else _TAKING - {"-r", "-t", "-T", "-j", "-g"}
        taken = {at + 1 for at, one in enumerate(texts[:-1]) if one in taking}
        left = [one for at, one in enumerate(rest) if at not in taken]
        for one in self._after_pattern(
            "grep", left, [each for each in left if each.text[:1] != "-"]
        ):
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
        self.searches.append(
            ShellSearch(
                name,
                tuple(folders) or (".",),
                tuple(only),
                tuple(without),
                ignores=(
                    rg
                    and not only
                    and not count
                    and not any(one.startswith("--no-ignore") for one in texts)
                )
                or (name == "git grep" and "--no-index" not in texts),
                hidden=not rg or bool(only) or count > 1 or "." in short or "--hidden" in texts,
            )
        )

    def _find(self, rest: Sequence[Argument], command: SimpleCommand) -> None:
        texts = [one.text for one in rest]
        begin = next((at for at, one in enumerate(texts) if one[:1] in ("-", "(", "!")), len(rest))
        reads = command.feeds
        only: list[str] = []
        without: list[str] = []
        for one in rest[:begin]:
            self._operand(one, "list")
        for at, text in enumerate(texts):
            if text in ("-name", "-iname", "-path", "-ipath", "-wholename") and at + 1 < len(texts):
                negated = at > 0 and texts[at - 1] in ("!", "-not")
                (without if negated else only if "name" in text else []).append(texts[at + 1])
            elif text in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
                program = [one for one in self._unwrapped(rest[at + 1 : end]) if one.text != "{}"]
                name = basename(program[0].text) if program else ""
                reads = reads or name not in (_LISTING | _DELETING | _SAYING)
                self._simple(program, command._replace(given=()))
            elif text in ("-fprint", "-fprint0", "-fls", "-fprintf") and at + 1 < len(texts):
                self._add(texts[at + 1], "write")
        if reads:
            folders = tuple(texts[:begin]) or (".",)
            self.searches.append(ShellSearch("find", folders, tuple(only), tuple(without)))


_TAKING: Final = words(
    "-A -B -C -m -g --glob --iglob -t -T --type --include --exclude --exclude-dir -G --max-count --context "
    "--ignore --ignore-dir -j --threads --max-depth -d --color --colors --sort -r --replace"
)
"""Options of programs that search which take a value."""


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


def _without_said(rest: Sequence[Argument]) -> list[Argument]:
    """The words without messages that are only kept or shown."""
    kept: list[Argument] = []
    for at, one in enumerate(rest):
        behind = at > 0 and rest[at - 1].text in _SAID
        if not behind and not one.text.startswith(
            tuple(f"{said}=" for said in _SAID if said[:2] == "--")
        ):
            kept.append(one)
    return kept
