"""The grammar of a shell: the simple commands of a script, with their words as the shell would make them.

The grammar is Bash's, by tree-sitter; nothing is run, expanded or looked up.  A word is told without its
quotes, with the values of variables that the script itself sets; what is only known when it runs (the
output of another program, a variable from outside) stands in it as ``$``.
"""

from __future__ import annotations

import re
from functools import cache
from posixpath import basename
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.values import late_regex, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node, Parser

__all__ = ["FILTERS", "Argument", "ShellScript", "SimpleCommand", "WordUse"]

WordUse = Literal["read", "write", "delete", "list", "text"]
"""What is done with what a word names; ``text`` is code or data in which names may stand."""

FILTERS: Final = words(
    "grep egrep fgrep rg sort uniq wc head tail cat tee sed awk gawk cut tr jq yq less more column fold fmt nl "
    "rev tac base64 md5sum sha1sum sha256sum diff comm join paste xclip pbcopy hexdump xxd od strings"
)
"""Programs that take what is piped to them for text, and never for names or code."""

_ESCAPE: Final = late_regex(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_MOST_NODES: Final = 60_000
_MOST_WORDS: Final = 10_000
_LONGEST_WORD: Final = 1 << 18
_NAMED: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
}


class Argument(NamedTuple):
    """A word without its quotes.

    Attributes:
        text: It.
        pattern: Whether it holds wildcards or braces that the shell expands.
    """

    text: str
    pattern: bool = False


class SimpleCommand(NamedTuple):
    """One program that is started.

    Attributes:
        words: It, and its arguments.
        given: What stands behind ``<<`` and ``<<<`` for it.
        feeds: What makes names or code of what it prints, as it is written; ``$`` for a substitution.
        saved_to: Where that is written.
    """

    words: tuple[Argument, ...]
    given: tuple[str, ...]
    feeds: str
    saved_to: tuple[str, ...]


@cache
def _parser() -> Parser:
    from tree_sitter import Language, Parser  # noqa: PLC0415 - few processes read commands
    from tree_sitter_bash import language  # noqa: PLC0415 - the same

    return Parser(Language(language()))


class ShellScript:
    """A script that was read.

    Args:
        source: It.
        values: What variables hold; those that it sets are added.

    Raises:
        OverflowError: It has more words than are looked at.
        RecursionError: It has more within each other.

    Attributes:
        commands: Every program that it starts, as far as its text says so.
        mentions: Words that name files beside these: of redirections, conditions, lists and assignments.
        whole: Whether all of it is Bash; else this is what could be made out.
        begins: The folder that it goes to first, where nothing of it is done if that fails; or empty.
        behind: The statements that it leaves in the background.
    """

    def __init__(self, source: str, values: dict[str, tuple[Argument, ...]]) -> None:
        self.commands: list[SimpleCommand] = []
        self.mentions: list[tuple[Argument, WordUse]] = []
        self._values = values
        self._saved_to: tuple[str, ...] = ()
        self._others: list[tuple[str, str]] = []
        self._left = _MOST_WORDS
        tree = _parser().parse(source.encode("utf-8", "replace"))
        if tree.root_node.descendant_count > _MOST_NODES:
            raise OverflowError
        self.whole = not tree.root_node.has_error
        self.begins = self._beginning(tree.root_node)
        self.behind = tuple(_behind(tree.root_node))
        self._visit(tree.root_node)

    def _beginning(self, root: Node) -> str:
        node = root.named_children[0] if root.named_child_count == 1 else root
        while node.type in ("redirected_statement", "list"):
            if node.type == "list" and all(one.type != "&&" for one in node.children):
                return ""
            node = node.named_children[0]
        words = node.named_children
        return self._text(words[1]).text if _name(node) == "cd" and len(words) == 2 else ""

    def _mention(self, word: Argument, use: WordUse) -> None:
        self.mentions.append((word, use))

    # -- the tree -------------------------------------------------------------------------

    def _visit(self, node: Node, *, feeds: str = "", given: Sequence[str] = ()) -> None:
        """Take in a statement.

        Args:
            node: It.
            feeds: What makes names or code of what it prints.
            given: What stands behind ``<<`` and ``<<<`` for it.
        """
        kind = node.type
        if kind == "command":
            self._command(node, feeds=feeds, given=given)
        elif kind in ("pipeline", "list"):
            # Redirections behind it are those of its last part.
            *parts, last = node.named_children
            targets, self._saved_to = self._saved_to, ()
            for at, part in enumerate(parts, 1):
                piped = _taken([*parts[at:], last]) if kind == "pipeline" else ""
                self._visit(part, feeds=piped or feeds)
            self._saved_to = targets
            self._visit(last, feeds=feeds, given=given)
        elif kind == "redirected_statement":
            self._redirected(node, feeds=feeds)
        elif kind == "file_redirect":
            self._redirect(node)
        elif kind in ("command_substitution", "process_substitution"):
            for child in node.named_children:
                self._visit(child, feeds="$")
        elif kind == "variable_assignment":
            self._assignment(node)
        elif kind in ("for_statement", "select_statement"):
            self._loop(node, feeds=feeds)
        elif kind == "test_command":
            self.mentions += [(self._text(leaf), "list") for leaf in _leaves(node)]
        elif kind != "comment":
            values = node.children_by_field_name("value") if kind == "case_item" else ()
            for child in node.named_children[len(values) :]:
                self._visit(child, feeds=feeds, given=given)

    def _redirected(self, node: Node, *, feeds: str) -> None:
        given: list[str] = []
        after: list[Node] = []
        for part in node.named_children:
            if part.type == "file_redirect":
                self._redirect(part)
            elif part.type == "heredoc_redirect":
                given += self._heredoc(part, after)
            elif part.type == "herestring_redirect":
                given += [self._text(child).text for child in part.named_children]
        fed = [one for one in after if one.type == "pipeline"]
        into = feeds or _taken([each for one in fed for each in one.named_children])
        body = node.child_by_field_name("body")
        if body is not None:
            targets = tuple(self._targets(node))
            self._saved_to = targets
            self._visit(body, feeds=into, given=given)
            self._saved_to = ()
        for one in after:
            self._visit(one, feeds=feeds)

    def _targets(self, node: Node) -> Iterator[str]:
        for part in node.named_children:
            if part.type == "file_redirect":
                yield from (
                    self._text(one).text for one in part.children_by_field_name("destination")
                )
            elif part.type == "heredoc_redirect":
                yield from self._targets(part)

    def _heredoc(self, node: Node, after: list[Node]) -> Iterator[str]:
        quoted = False
        for part in node.named_children:
            if part.type == "heredoc_start":
                quoted = bool(set(part.text or b"") & set(b"'\"\\"))
            elif part.type == "file_redirect":
                self._redirect(part)
            elif part.type == "heredoc_body":
                for child in part.named_children if not quoted else ():
                    if child.type != "heredoc_content":
                        self._text(child)
                text = _source(part)
                for inner in re.findall(r"(?<!\\)`([^`]*)`", text) if not quoted else ():
                    self._visit(_parser().parse(inner.encode()).root_node, feeds="$")
                yield text
            elif part.type != "heredoc_end":
                after.append(part)

    def _redirect(self, node: Node) -> None:
        sign = next((one.type for one in node.children if not one.is_named), "")
        for one in node.children_by_field_name("destination") or node.named_children[-1:]:
            if one.type in ("number", "file_descriptor"):
                continue
            for word in self._texts(one):
                self._mention(word, "read" if sign.startswith("<") and sign != "<>" else "write")

    def _assignment(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if value is None:
            return
        parts = value.named_children if value.type == "array" else [value]
        found = [each for one in parts for each in self._texts(one)]
        for word in found:
            # A text of several words is kept for where it is used.
            if not re.search(r"\s", word.text):
                self._mention(word, "read")
        if name is not None:
            self._values[_source(name)] = tuple(found)

    def _loop(self, node: Node, *, feeds: str) -> None:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        listed = node.children_by_field_name("value")
        values = [word for child in listed for word in self._texts(child)]
        self.mentions += [(word, "list") for word in values]
        if name is not None:
            self._values[_source(name)] = tuple(values)
        if body is not None:
            self._visit(body, feeds=feeds)

    # -- words ----------------------------------------------------------------------------

    def _texts(self, node: Node) -> list[Argument]:
        """A word as `_text` tells it, once for each value of a variable in it that has several."""
        self._others = []
        found = [self._text(node)]
        self._left -= 1 + len(self._others)
        if self._left < 0 or len(found[0].text) > _LONGEST_WORD:
            raise OverflowError
        for first, other in self._others:
            found += [
                Argument(one.text.replace(first, other, 1), one.pattern)
                for one in found[:1]
                if first in one.text
            ]
        self._others = []
        return found

    def _text(self, node: Node) -> Argument:
        """A word without its quotes; scripts that are substituted in it are read."""
        kind = node.type
        if kind == "word":
            source = _source(node)
            return Argument(
                re.sub(r"\\(.)", r"\1", source, flags=re.DOTALL).replace("\n", ""), _expands(source)
            )
        if kind == "raw_string":
            return Argument(_source(node)[1:-1])
        if kind == "ansi_c_string":
            return Argument(_ESCAPE.sub(_unescaped, _source(node)[2:-1]))
        if kind in ("simple_expansion", "expansion"):
            return self._expansion(node)
        if kind in ("command_substitution", "process_substitution"):
            said = self._only_said(node)
            if said is None:
                self._visit(node, feeds="$")
            return said or Argument("$")
        if kind == "string":
            return self._string(node)
        if kind in ("concatenation", "translated_string", "command_name", "extglob_pattern"):
            parts = [self._text(one) for one in node.children] or [Argument(_source(node))]
            text = "".join(one.text for one in parts if one.text != '$"')
            return Argument(
                text, any(one.pattern for one in parts) or _expands(text) & (kind[0] == "c")
            )
        return Argument(_source(node))

    def _only_said(self, node: Node) -> Argument | None:
        """The output of a substitution, where its script tells it."""
        inner = node.named_children[0] if node.named_child_count == 1 else node
        if inner.type == "command" and _name(inner) in ("echo", "printf"):
            told = [self._text(one) for one in inner.named_children[1:]]
            return Argument(" ".join(one.text for one in told), any(one.pattern for one in told))
        body = inner.child_by_field_name("body") if inner.type == "redirected_statement" else None
        if body is None or _name(body) != "cat" or body.named_child_count > 1:
            return None
        after: list[Node] = []
        parts = inner.named_children[1:]
        if any(one.type != "heredoc_redirect" for one in parts):
            return None
        text = "".join(said for one in parts for said in self._heredoc(one, after))
        return None if after else Argument(text)

    def _string(self, node: Node) -> Argument:
        parts: list[str] = []
        pattern = False
        whole, begin, at = node.text or b"", node.start_byte, 1
        for child in node.named_children:
            if child.type != "string_content":
                parts.append(_unquoted(whole[at : child.start_byte - begin]))
                inner = self._text(child)
                pattern = pattern or (inner.pattern and child.type != "command_substitution")
                parts.append(inner.text)
                at = child.end_byte - begin
        return Argument("".join((*parts, _unquoted(whole[at:-1]))), pattern)

    def _expansion(self, node: Node) -> Argument:
        name = ""
        for child in node.named_children:
            if child.type == "variable_name" and not name:
                name = _source(child)
            elif child.type == "subscript" and not name:
                name = _source(child).partition("[")[0]
            elif child.type not in ("variable_name", "special_variable_name", "subscript"):
                self._mention(self._text(child), "read")
        if name in ("HOME", "PWD"):
            return Argument("~" if name == "HOME" else ".")
        values = self._values.get(name, ())
        self._others += [(values[0].text, more.text) for more in values[1:]]
        return values[0] if values else Argument("$")

    # -- commands -------------------------------------------------------------------------

    def _command(self, node: Node, *, feeds: str, given: Sequence[str]) -> None:
        found: list[Argument] = []
        stdin = list(given)
        for child in node.named_children:
            if child.type == "file_redirect":
                self._redirect(child)
            elif child.type == "herestring_redirect":
                stdin += [self._text(one).text for one in child.named_children]
            elif child.type == "variable_assignment":
                self._assignment(child)
                self._mention(Argument(f"sh {_source(child)}"), "text")
            else:
                found += self._texts(child)
        self.commands.append(SimpleCommand(tuple(found), tuple(stdin), feeds, self._saved_to))


def _behind(node: Node) -> Iterator[str]:
    for at, one in enumerate(node.children):
        if one.type == "&" and at:
            yield _source(node.children[at - 1])
        yield from _behind(one)


def _name(node: Node) -> str:
    """The name of the program that a command starts; empty for none that is written out."""
    name = node.child_by_field_name("name") if node.type == "command" else None
    return basename(_source(name)) if name is not None else ""


def _taken(parts: Sequence[Node]) -> str:
    """The first part of a pipeline that takes what comes to it for more than text."""
    return next((_source(one) for one in parts if not _is_filter(one)), "")


def _is_filter(node: Node) -> bool:
    if node.type == "redirected_statement":
        body = node.child_by_field_name("body")
        return body is not None and _is_filter(body)
    return _name(node) in FILTERS


def _leaves(node: Node) -> Iterator[Node]:
    """The words of a condition."""
    for child in node.named_children:
        if child.type.endswith("_expression"):
            yield from _leaves(child)
        elif child.type != "test_operator":
            yield child


def _unquoted(source: bytes) -> str:
    text = source.decode("utf-8", "replace").replace("\\\n", "")
    return re.sub(r'\\(["\\$`])', r"\1", text)


def _source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _expands(source: str) -> bool:
    """Whether a shell makes other words of one that is not quoted."""
    return any(sign in re.sub(r"\\.", "", source, flags=re.DOTALL) for sign in "*?[{")


def _unescaped(found: re.Match[str]) -> str:
    wide = found[1] or found[2] or found[3]
    if wide or found[4]:
        code = int(wide, 16) if wide else int(found[4], 8)
        return chr(code) if code < 0x110000 else "\ufffd"
    return _NAMED.get(found[5], found[5])
