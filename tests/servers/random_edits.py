"""Random edits of a small project, of which it is known by construction what is wrong after each.

There are modules that define one value each, of one of two types, and users that each take the
value of one module for one of two types.  A user is wrong where the types differ, where the module
is not there, and where it cannot be parsed itself.  Names carry the number of the edit, so that an
answer about an earlier text can never look like one about this.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from filepact_diagnostics.lsp.documents import DiskChange
    from tests.servers.real_servers import Tree

MODULES = 4
USERS = 3


@dataclass
class Language:
    """How one language writes it.

    Attributes:
        module: The file of a module by its number.
        user: The file of a user by its number.
        define: Text of a module, of a type (0 or 1), with padding.
        use: Text of a user that takes a module's value for a type, with a name of this edit.
        broken: Text of a user that cannot be parsed.
        settings: Files that only configure.
        across: Whether the server looks from one file at another.
    """

    module: str
    user: str
    define: tuple[str, str]
    use: tuple[str, str]
    broken: str
    settings: dict[str, str] = field(default_factory=dict)
    across: bool = True


PYTHON = Language(
    "m{}.py",
    "u{}.py",
    ("value: int = 1  # {pad}\n", "value: str = ''  # {pad}\n"),
    ("from m{m} import value\n\nn{edit}: int = value\n", "from m{m} import value\n\nn{edit}: str = value\n"),
    "n{edit}: int = = 1\n",
)  # fmt: skip

LANGUAGES = {
    "ty": PYTHON,
    "basedpyright": PYTHON,
    "ruff": replace(PYTHON, across=False),
    "typescript": Language(
        "m{}.ts",
        "u{}.ts",
        ("export const value: number = 1; // {pad}\n", "export const value: string = ''; // {pad}\n"),
        (
            'import {{ value }} from "./m{m}.js";\n\nexport const n{edit}: number = value;\n',
            'import {{ value }} from "./m{m}.js";\n\nexport const n{edit}: string = value;\n',
        ),
        "export const n{edit}: number = = 1;\n",
        {
            "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext"}}\n',
            "package.json": '{"name": "p", "type": "module"}\n',
        },
    ),
    "gopls": Language(
        "m{}/m.go",
        "u{}/u.go",
        ("package m\n\nvar Value int = 1 // {pad}\n", "package m\n\nvar Value string // {pad}\n"),
        (
            'package u\n\nimport m "p/m{m}"\n\nvar N{edit} int = m.Value\n',
            'package u\n\nimport m "p/m{m}"\n\nvar N{edit} string = m.Value\n',
        ),
        "package u\n\nvar N{edit} int = = 1\n",
        {"go.mod": "module p\n\ngo 1.19\n"},
    ),
    "filepact-csharp": Language(
        "M{}.cs",
        "U{}.cs",
        (
            "public static class M{m} {{ public static int Value; }} // {pad}\n",
            "public static class M{m} {{ public static string Value; }} // {pad}\n",
        ),
        (
            "public static class U{u} {{\n    public static int N{edit} = M{m}.Value;\n}}\n",
            "public static class U{u} {{\n    public static string N{edit} = M{m}.Value;\n}}\n",
        ),
        "public static class U{u} {{\n    public static int N{edit} = = 1;\n}}\n",
        {
            "p.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>'
            "<TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>\n",
        },
    ),
    "clangd": Language(
        "m{}.hpp",
        "u{}.cpp",
        (
            "#pragma once\nstruct A {{}};\ninline A value() {{ return A(); }} // {pad}\n",
            "#pragma once\nstruct B {{}};\ninline B value() {{ return B(); }} // {pad}\n",
        ),
        (
            '#include "m{m}.hpp"\n\nstruct A; A n{edit} = value();\n',
            '#include "m{m}.hpp"\n\nstruct B; B n{edit} = value();\n',
        ),
        "int n{edit} = = 1;\n",
        {"compile_flags.txt": "-xc++\n-std=c++17\n"},
    ),
}  # fmt: skip


class Edits:
    """A tree and what is true about it.

    Args:
        tree: An empty tree with a server that runs.
        seed: Of the edits.
    """

    KINDS: ClassVar = ("define", "define", "use", "delete", "create", "break", "two", "preview")

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree = tree
        self.language = LANGUAGES[tree.server.name]
        self.random = random.Random(seed)
        self.number = 0
        self.modules: dict[int, int | None] = {}
        self.users: dict[int, tuple[int, int] | None] = {}
        for name, text in self.language.settings.items():
            tree.write(name, text)
        for module in range(MODULES):
            self._define(module)
        for user in range(USERS):
            self._use(user)

    def step(self) -> str:
        """Make one edit and tell the server; the answer is what was done."""
        self.number += 1
        kind = self.random.choice(self.KINDS)
        module, user = self.random.randrange(MODULES), self.random.randrange(USERS)
        match kind:
            case "define" | "create":
                self.tree.tell(self._define(module))
            case "use":
                self.tree.tell(self._use(user))
            case "delete" if self.modules[module] is not None:
                self.modules[module] = None
                self.tree.tell(self.tree.delete(self.language.module.format(module)))
            case "break":
                self.users[user] = None
                text = self.language.broken.format(edit=self.number, u=user)
                self.tree.tell(self.tree.write(self.language.user.format(user), text))
            case "two":
                self.tree.tell(self._define(module), self._use(user))
            case "preview":
                self._preview(user)
            case _:
                return "nothing"
        return kind

    def wrong(self) -> set[str]:
        """The users that are wrong."""
        found = set()
        for user, uses in self.users.items():
            if uses is None or (self.language.across and self.modules[uses[0]] != uses[1]):
                found.add(self.language.user.format(user))
        return found

    def stale(self) -> list[str]:
        """Users about which the server says what is not true, and claims to know it."""
        names = [self.language.user.format(user) for user in self.users]
        lies, truth = [], self.wrong()
        for name, report in self.tree.report(*names).items():
            errors = [one for one in report.diagnostics if one.severity == "error"]
            line = next((one.line for one in errors), "")
            if report.fresh and bool(errors) != (name in truth):
                lies.append(f"{name}: {line or 'nothing'}, said by {report.confirmed_by}")
            if errors and line not in self.tree.text(name):
                lies.append(f"{name}: {line} is no line of it")
        return lies

    def unanswered(self) -> list[str]:
        names = [self.language.user.format(user) for user in self.users]
        return [name for name, report in self.tree.report(*names).items() if not report.fresh]

    def _define(self, module: int) -> DiskChange:
        kind = self.random.randrange(2)
        self.modules[module] = kind
        # Of equal and of different lengths, as edits are.
        pad = "x" * self.random.choice((3, 3, 3, self.number % 50))
        text = self.language.define[kind].format(pad=pad, m=module)
        return self.tree.write(self.language.module.format(module), text)

    def _use(self, user: int) -> DiskChange:
        module, kind = self.random.randrange(MODULES), self.random.randrange(2)
        self.users[user] = (module, kind)
        text = self.language.use[kind].format(m=module, edit=self.number, u=user)
        return self.tree.write(self.language.user.format(user), text)

    def _preview(self, user: int) -> None:
        """Propose a text that is wrong; what is true stays as it is."""
        path = self.language.user.format(user)
        names = [self.language.user.format(one) for one in self.users]
        text = self.language.broken.format(edit=self.number, u=user)
        seen = self.tree.preview(path, text, names)
        assert seen.withdrawn, seen.message
        assert seen.delta is not None, seen.message
        if self.users[user] is not None:
            assert seen.delta.new
