"""Reads a shell command: the words in it that name files, what is done with each, and what it searches.

Of each program it is known, as far as that is common, what it does with its arguments; of one that is not,
that it reads what it names.  Scripts within the command (``sh -c``, ``eval``, the input of a shell) are read
as well.  What is code of another language, or data that a program may take names from, is told as text, in
which names can be looked for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from posixpath import basename
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.values import late_regex
from filepact_hooks.shell_programs import (
    CHOOSING,
    CODE_FIRST,
    DELETING,
    GIT_LISTING,
    GIT_SAYING,
    GIT_VALUES,
    IN_PLACE,
    LEAVING_OUT,
    LISTING,
    OPERAND_FIRST,
    OUTPUT,
    PATTERN_FIRST,
    RUNNERS,
    SAID,
    SAYING,
    SEARCHING,
    SHELLS,
    TO_LAST,
    WRAPPERS,
    WRITING,
    ShellSearch,
    grep_search,
    is_data,
    listing_search,
    used_by,
)
from filepact_hooks.shell_syntax import FILTERS, Argument, ShellScript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact_hooks.shell_syntax import SimpleCommand, WordUse

__all__ = ["ShellCommand", "ShellSearch", "ShellWord", "read_command"]

_LONGEST: Final = 1 << 18  # characters
_MOST_WORDS: Final = 5_000
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


class ShellCommand(NamedTuple):
    """A command as it was read.

    Attributes:
        words: The words that may name files.
        searches: What reads whatever lies below a folder.
        programs: Each program that it starts, with its arguments.
        begins: Where it goes first, if all else waits for that; or empty.
        folders: Where it goes with ``cd``.
        patches: What it gives to the program that applies patches of the agents' own form.
        whole: Whether all of it is Bash; else the words are what could be made out.
        too_long: Whether some of it was not read.
        behind: The statements that go on in the background when it is over.
    """

    words: tuple[ShellWord, ...]
    searches: tuple[ShellSearch, ...]
    programs: tuple[tuple[str, ...], ...]
    begins: str
    folders: tuple[str, ...]
    patches: tuple[str, ...]
    whole: bool
    too_long: bool
    behind: tuple[str, ...]


@lru_cache(maxsize=16)
def read_command(command: str) -> ShellCommand:
    """Read one command, as a shell would be given it; whoever asks about the same call gets the same reading."""
    reading = _Reading()
    reading.script(command)
    reading.settle()
    return ShellCommand(
        tuple(dict.fromkeys(reading.words)),
        tuple(reading.searches),
        tuple(reading.programs),
        reading.begins,
        tuple(dict.fromkeys(reading.folders)),
        tuple(reading.patches),
        reading.whole,
        reading.too_long,
        reading.behind,
    )


_ODD: Final = late_regex(r"[\s'\"()<>|;&`]")
_PARTS: Final = late_regex(r"[=:,@]")
_REDIRECT: Final = late_regex(r">[>|&]?\s*([^\s'\"()<>|;&`]+)")
_JOINED: Final = late_regex(r"(?<=[^\s\\])\\\n(?=\S)")
_SED: Final = late_regex(r"(?:^|[\s;{}/|#,\d$!])([rRwW])\s*([^\s;}]+)")
_IN_QUOTES: Final = late_regex(r'"((?:[^"\\]|\\.)*)"')


class _Reading:
    def __init__(self) -> None:
        self.words: list[ShellWord] = []
        self.searches: list[ShellSearch] = []
        self.programs: list[tuple[str, ...]] = []
        self.folders: list[str] = []
        self.patches: list[str] = []
        self.whole = True
        self.too_long = False
        self.begins = ""
        self.behind: tuple[str, ...] = ()
        self._values: dict[str, tuple[Argument, ...]] = {}
        self._data: list[tuple[str, tuple[str, ...]]] = []
        self._depth = 0

    def script(self, source: str) -> None:
        """Read a script, the command itself or one within it."""
        if len(source) > _LONGEST or self._depth >= _DEEPEST:
            self.too_long = True
            return
        self._depth += 1
        try:
            self._script(source)
            joined = _JOINED.sub("", source)
            if joined != source:
                self._script(joined)
        except (OverflowError, RecursionError):
            self.too_long = True
        self._depth -= 1

    def _script(self, source: str) -> None:
        script = ShellScript(source, self._values)
        if self._depth == 1:
            self.begins, self.behind = script.begins, script.behind
        if not script.whole:
            self.whole = False
            self._add(f"sh {source}", "text")
            for found in _REDIRECT.finditer(source):
                self._add(found[1], "write")
        for word, use in script.mentions:
            self._operand(word, use)
        for one in script.commands:
            self._simple(one.words, one)

    def settle(self) -> None:
        """Take data for text where what it is written to is used again in the same command."""
        runs = [one for one in self.programs if one[0] not in FILTERS | LISTING | {"git", "rm"}]
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
        if (
            found
            and (
                basename(found[0].text) in ("xargs", "parallel")
                # The lines of a list, as a loop takes them.
                or ("$" in (one.text for one in found[1:]) and " " not in "".join(command.given))
            )
        ):
            found = [*found, *(Argument(one) for text in command.given for one in text.split())]
            command = command._replace(given=())
        found = self._unwrapped(found)
        if not found:
            return
        name, rest = basename(found[0].text), found[1:]
        self.programs.append((name, *(one.text for one in rest)))
        if name in SHELLS or name in ("source", "."):
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
        kept = name == "read" and any(one.text.startswith("-d") for one in rest)
        for text in () if name in ("gh", "glab", "git") else command.given:
            if name == "patch":
                self.patches.append(text)
            self._said(text, command, data=name in ("cat", "tee", *SAYING) or kept)
        if name in SAYING:
            for one in rest:
                self._said(one.text, command, data=True)
        elif name == "git":
            self._git(rest, command.given)
        elif name == "find":
            self._find(rest, command)
        else:
            self._arguments(name, rest, command)

    def _said(self, text: str, command: SimpleCommand, *, data: bool) -> None:
        """Take in what a program prints: for data, only what names or code are made of counts."""
        if not data or command.feeds:
            self._add(text, "text")
            taker = self._unwrapped([Argument(one) for one in command.feeds.split()])
            if data and taker and basename(taker[0].text) in SHELLS:
                self.script(text)
            use = used_by(command.feeds)
            if use != "read":
                for one in text.split():
                    self._add(one, use)
        elif command.saved_to:
            self._data.append((text, command.saved_to))

    def _unwrapped(self, found: Sequence[Argument]) -> Sequence[Argument]:
        """The words without a program before them that only starts another."""
        while found and (name := basename(found[0].text)) in WRAPPERS | RUNNERS:
            values, at = WRAPPERS.get(name, ""), 1
            if name in RUNNERS:
                at = next((n for n, one in enumerate(found) if one.text in RUNNERS[name]), 0) + 1
                if at == 1:
                    break
            skip = name in OPERAND_FIRST
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

    def _arguments(self, name: str, rest: Sequence[Argument], command: SimpleCommand) -> None:
        if name.startswith("python") and len(rest) > 1 and rest[0].text == "-m":
            name, rest = rest[1].text, rest[2:]
        if name in ("cd", "pushd"):
            self.folders += [one.text for one in rest if not one.text.startswith("-")]
        if name in SEARCHING:
            self._searched(grep_search(name, rest, self._after_pattern))
        if name in ("gh", "glab"):
            rest = _without_said(rest)
        elif name == "curl":
            rest = [
                one
                for at, one in enumerate(rest)
                if not at or not is_data(rest[at - 1].text, one.text)
            ]
        operands = self._options(name, rest)
        if name in ("ls", "fd", "fdfind"):
            self._searched(listing_search(name, rest, operands, command.feeds))
        if name in PATTERN_FIRST or name in CODE_FIRST:
            operands = self._after_pattern(name, rest, operands)
        self._operands(name, rest, operands)

    def _operands(self, name: str, rest: Sequence[Argument], operands: Sequence[Argument]) -> None:
        """Take in what is no option, by what the program does with it."""
        if name in TO_LAST:
            self._to_last(name, rest, operands)
            return
        use: WordUse = "read"
        if name in LISTING:
            use = "list"
        elif name in DELETING:
            use = "delete"
        elif name in WRITING or any(
            IN_PLACE.get(name, IN_PLACE[""]).fullmatch(one.text) for one in rest
        ):
            use = "write"
        elif name in ("curl", "wget"):
            for one in operands:
                if "://" in one.text and (
                    name == "wget"
                    or any(re.fullmatch("-[a-zA-Z]*O|--remote-name", one.text) for one in rest)
                ):
                    self._add(basename(one.text), "write")
        if name == "filepact" and [one.text for one in operands[:1]] in _OWN_WRITES:
            use, operands = "write", operands[1:]
        if use == "delete" and any(
            re.fullmatch("-[a-zA-Z]*[rR].*|--recursive", one.text) for one in rest
        ):
            folders = tuple(one.text for one in operands)
            self.searches.append(ShellSearch(name, folders, use="delete"))
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
        chosen = CHOOSING.get(name, ())
        output = OUTPUT.get(name)
        only_operands = False
        for at, one in enumerate(rest):
            before = rest[at - 1].text if at else ""
            if before in chosen or LEAVING_OUT.fullmatch(before):
                continue
            if at and output is not None and output.fullmatch(before):
                if name == "tar":
                    self.folders.append(one.text)
                self._add(one.text, "write")
            elif name == "zip" and one.text == "-x":
                break
            elif one.text == "--":
                only_operands = True
            elif only_operands or not one.text.startswith("-") or one.text == "-":
                operands.append(one)
            else:
                head, equals, value = one.text.partition("=")
                if LEAVING_OUT.fullmatch(head) or one.text[:2] in chosen:
                    continue
                if equals:
                    self._operand(Argument(value, one.pattern), "read")
                    if output is not None and output.fullmatch(head):
                        self._add(value, "write")
                elif not one.text.startswith("--") and len(one.text) > 2:
                    self._operand(Argument(one.text[2:], one.pattern), "read")
        return operands

    def _after_pattern(
        self, name: str, rest: Sequence[Argument], operands: list[Argument]
    ) -> list[Argument]:
        """The operands without the pattern or code that goes before them."""
        given = (
            ("-e", "-f", "--regexp", "--file", "--expression")
            if name not in ("perl", "ruby")
            else ("-e", "-E")
        )
        told = any(
            one.text.partition("=")[0] in given
            or (one.text[:2] in ("-e", "-f") and name not in ("perl", "ruby", "jq", "yq"))
            for one in rest
        )
        if name in CODE_FIRST:
            if operands:
                self._code(name, operands[0].text)
            if name in ("perl", "ruby"):
                told = not any(re.fullmatch("-[a-zA-Z0-9]*[eE]", one.text) for one in rest)
            return operands[0 if told else 1 :]
        if told and "-f" not in (one.text[:2] for one in rest):
            patterns = {at + 1 for at, one in enumerate(rest) if one.text in ("-e", "--regexp")}
            said = [one for at, one in enumerate(rest) if at in patterns]
            return [one for one in operands if not any(one is each for each in said)]
        return operands if told else operands[1:]

    def _code(self, name: str, code: str) -> None:
        """Take in code, by what of it can name files."""
        if name in ("sed", "gsed"):
            for sign, path in _SED.findall(code):
                self._add(path, "write" if sign in "wW" else "read")
        elif name in ("awk", "gawk", "mawk"):
            runs = "system " if "system" in code or "|" in code else ""
            self._add(runs + "\n".join(f'"{one}"' for one in _IN_QUOTES.findall(code)), "text")
            for found in re.findall(r'>\s*"([^"\n]+)"', code):
                self._add(found, "write")
        else:
            self._add(code, "text")

    def _operand(self, word: Argument, use: WordUse) -> None:
        """Take in a word, with what stands in it behind signs that names are put together with."""
        if word.text.startswith(("!", ":!", ":^", ":(exclude)")):
            return
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

    def _git_verb(self, rest: Sequence[Argument]) -> tuple[str, Sequence[Argument]]:
        """The verb of a Git command, behind Git's own options."""
        at = 0
        while at < len(rest) and rest[at].text.startswith("-"):
            if rest[at].text == "-C" and at + 1 < len(rest):
                self.folders.append(rest[at + 1].text)
            elif rest[at].text == "-c" and at + 1 < len(rest):
                self._add(f"sh {rest[at + 1].text}", "text")
            at += 2 if rest[at].text in GIT_VALUES else 1
        return (rest[at].text, rest[at + 1 :]) if at < len(rest) else ("", [])

    def _git(self, rest: Sequence[Argument], given: Sequence[str]) -> None:
        verb, rest = self._git_verb(rest)
        texts = [one.text for one in rest]
        if verb == "grep":
            self._searched(grep_search("git grep", rest, self._after_pattern))
            for one in self._after_pattern("grep", rest, self._options("git", rest)):
                self._operand(one, "read")
            return
        if verb in ("apply", "am"):
            self.patches += given
        elif verb == "clean" and any(re.fullmatch("-[a-zA-Z]*[xX][a-zA-Z]*", one) for one in texts):
            named = tuple(one.text for one in self._options("git", rest)) or (".",)
            # It spares its own repository, and told twice to force it, no other.
            forced = sum(one.count("f") for one in texts if one[:2] != "--") > 1
            spared = () if forced else (".git",)
            self.searches.append(ShellSearch("git clean", named, without=spared, use="delete"))
        if verb in GIT_SAYING:
            rest = _without_said(rest)
        else:
            for text in given:
                self._add(text, "text")
        use: WordUse = "list" if verb in GIT_LISTING else "read"
        if verb == "log" and {"-p", "-u", "--patch"} & set(texts):
            use = "read"
        if verb == "checkout" and not {"-b", "-B", "--orphan", "-t", "--track"} & set(texts):
            use, rest = "write", rest[texts.index("--") if "--" in texts else 0 :]
        elif verb == "checkout":
            use = "list"
        elif verb == "restore":
            use = "list" if "--staged" in texts and "--worktree" not in texts else "write"
        elif verb == "mv" or (verb == "rm" and "--cached" not in texts):
            takes = self._to_last if verb == "mv" else self._operands
            takes(verb, rest, self._options("git", rest))
            return
        for one in self._options("git", rest):
            self._operand(one, use)

    def _searched(self, search: ShellSearch | None) -> None:
        if search is not None:
            self.searches.append(search)

    def _find(self, rest: Sequence[Argument], command: SimpleCommand) -> None:
        texts = [one.text for one in rest]
        begin = next((at for at, one in enumerate(texts) if one[:1] in ("-", "(", "!")), len(rest))
        use: WordUse | None = used_by(command.feeds) if command.feeds else None
        only: list[str] = []
        without: list[str] = []
        for one in rest[:begin]:
            self._operand(one, "list")
        for at, text in enumerate(texts):
            if text in ("-name", "-iname", "-path", "-ipath", "-wholename") and at + 1 < len(texts):
                negated = texts[at - 1] in ("!", "-not") or "-prune" in texts[at + 2 : at + 3]
                (without if negated else only if "name" in text else []).append(texts[at + 1])
            elif text == "-delete":
                use = "delete"
            elif text in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
                program = [one for one in self._unwrapped(rest[at + 1 : end]) if one.text != "{}"]
                name = basename(program[0].text) if program else ""
                if name not in LISTING | SAYING:
                    use = used_by(" ".join((*(one.text for one in program), "")))
                self._simple(program, command._replace(given=()))
            elif text in ("-fprint", "-fprint0", "-fls", "-fprintf") and at + 1 < len(texts):
                self._add(texts[at + 1], "write")
        if use is not None and ("-type", "d") not in pairwise(texts):
            deep = not ("-maxdepth" in texts and {"0", "1"} & set(texts))
            folders = tuple(texts[:begin]) or (".",)
            self.searches.append(
                ShellSearch("find", folders, tuple(only), tuple(without), deep=deep, use=use)
            )


_OWN_WRITES: Final = (["write"], ["edit"], ["patch"], ["mv"], ["rm"])


def _without_said(rest: Sequence[Argument]) -> list[Argument]:
    """The words without messages that are only kept or shown."""
    kept: list[Argument] = []
    for at, one in enumerate(rest):
        behind = at > 0 and rest[at - 1].text in SAID
        if not behind and not one.text.startswith(
            tuple(f"{said}=" for said in SAID if said[:2] == "--")
        ):
            kept.append(one)
    return kept
