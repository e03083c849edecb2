"""Agents and another program write at the same moments; once it is quiet, answers are true."""

from __future__ import annotations

import os
import random
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from filepact.errors import FilepactError
from tests.hostile.sweeps import often
from tests.servers.real_servers import SECONDS
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = range(4)
BURSTS = int(os.environ.get("LSP_BURSTS", "0"))


@dataclass(frozen=True)
class Language:
    """Pairs of files, of which one uses the other; a server finds nothing but that they do not fit.

    Attributes:
        bursts: How many are tried, if nobody asks for more.
        module: The name of what is used; the number of the pair stands for the brackets.
        user: The name of its user, likewise.
        texts: What a module holds, by the kind of users that it fits; the last one fits none.
        uses: What a user holds; its kind stands for ``KIND``.
        settings: Files that only configure.
    """

    bursts: int
    module: str
    user: str
    texts: dict[str, str]
    uses: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        return list(self.texts)[:-1]

    def a_module(self, number: int, kind: str) -> tuple[str, str]:
        """Name and text."""
        return self.module.replace("[]", str(number)), self.texts[kind].replace("[]", str(number))

    def a_user(self, number: int, kind: str) -> tuple[str, str]:
        """Name and text."""
        text = self.uses.replace("[]", str(number)).replace("KIND", kind)
        return self.user.replace("[]", str(number)), text


def python(bursts: int) -> Language:
    return Language(
        bursts,
        "m[].py",
        "u[].py",
        {"int": "value: int = 1\n", "str": "value: str = ''\n", "": "value: bytes = b''\n"},
        "from m[] import value\n\nx: KIND = value\n",
        {"pyproject.toml": '[project]\nname = "p"\nversion = "1"\n'},
    )


LANGUAGES = {
    "ty": python(often(3, 8)),
    "basedpyright": python(1),
    "typescript": Language(
        often(2, 4),
        "m[].ts",
        "u[].ts",
        {
            "number": "export const value: number = 1;\n",
            "string": "export const value: string = '';\n",
            "": "export const value: bigint = 1n;\n",
        },
        'import { value } from "./m[].js";\n\nexport const x: KIND = value;\n',
        {
            "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, '
            '"target": "es2022", "module": "nodenext"}, "include": ["**/*.ts"]}\n',
            "package.json": '{"name": "p", "type": "module"}\n',
        },
    ),
    "clangd": Language(
        1,
        "m[].h",
        "u[].c",
        {
            "int": "extern int *value;\n",
            "float": "extern float *value;\n",
            "": "extern struct other *value;\n",
        },
        '#include "m[].h"\n\nKIND *get(void) { return value; }\n',
    ),
    "gopls": Language(
        1,
        "m[].go",
        "u[].go",
        {
            "int": "package p\n\nvar value[] int = 1\n",
            "string": 'package p\n\nvar value[] string = ""\n',
            "": "package p\n\nvar value[] bool = true\n",
        },
        "package p\n\nvar X[] KIND = value[]\n",
        {"go.mod": "module p\n\ngo 1.18\n"},
    ),
    "filepact-csharp": Language(
        1,
        "M[].cs",
        "U[].cs",
        {
            "int": "public class M[] { public int Value() => 1; }\n",
            "string": 'public class M[] { public string Value() => ""; }\n',
            "": "public class M[] { public byte[] Value() => null; }\n",
        },
        "public class U[] { public KIND Get() => new M[]().Value(); }\n",
        {
            "p.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>'
            "<TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>\n"
        },
    ),
}


def wrong(scene: Scene, language: Language) -> set[str]:
    """The users that do not fit their modules, as the disk has them."""
    found = set()
    for number in PAIRS:
        user, _ = language.a_user(number, "")
        (kind,) = [
            one for one in language.kinds if scene.get(user) == language.a_user(number, one)[1]
        ]
        module, text = language.a_module(number, kind)
        place = scene.root / module
        if not place.exists() or place.read_text() != text:
            found.add(user)
    return found


def another_program(
    scene: Scene, language: Language, chance: random.Random, over: threading.Event
) -> None:
    while not over.wait(chance.random() * 0.02):
        number, kind = chance.choice(PAIRS), chance.choice(language.kinds)
        match chance.randrange(5):
            case 0:
                name, _ = language.a_module(number, kind)
                (scene.root / name).unlink(missing_ok=True)
            case 1:
                scene.put(*language.a_user(number, kind))
            case _:
                scene.put(*language.a_module(number, kind))


def an_agent(scene: Scene, language: Language, chance: random.Random) -> None:
    for _ in range(4 if language.bursts > 1 else 2):
        number = chance.choice(PAIRS)
        # That somebody else was quicker is refused, and no matter here.
        with suppress(FilepactError):
            name, text = language.a_user(number, chance.choice(language.kinds))
            scene.write({name: text.encode()})
        with suppress(FilepactError):
            name, text = language.a_module(number, "")
            scene.foresee({name: text.encode()})


def test_answers_are_true_after_several_wrote_at_once(tmp_path: Path) -> None:
    several_write("ty", 1, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600 + 120 * BURSTS)
@pytest.mark.parametrize(
    ("server", "seed"),
    # Of a slow server, a burst takes up to a minute, of the slowest several: `scripts/deep bursts`.
    [
        (name, seed)
        for seed in (1, *(2,) * often(0, 1))
        for name, one in LANGUAGES.items()
        if one.bursts > 1 or (seed == 1 and (BURSTS or name not in ("clangd", "gopls")))
    ],
)
def test_answers_are_true_after_everybody_wrote_at_once(
    server: str, seed: int, tmp_path: Path
) -> None:
    several_write(server, seed, BURSTS or LANGUAGES[server].bursts, tmp_path)


def several_write(server: str, seed: int, bursts: int, tmp_path: Path) -> None:
    language = LANGUAGES[server]
    kind = language.kinds[0]
    files = dict(language.a_module(one, kind) for one in PAIRS)
    files |= dict(language.a_user(one, kind) for one in PAIRS)
    scene = Scene(tmp_path, [server], language.settings | files)
    try:
        for burst in range(bursts):
            over = threading.Event()
            chances = [random.Random(f"{seed} {burst} {one}") for one in range(3)]
            others = threading.Thread(
                target=another_program, args=(scene, language, chances[0], over)
            )
            agents = [
                threading.Thread(target=an_agent, args=(scene, language, one))
                for one in chances[1:]
            ]
            for one in (others, *agents):
                one.start()
            for one in agents:
                one.join()
            over.set()
            others.join()
            names = [language.a_user(one, kind)[0] for one in PAIRS]
            reports = scene.semantics.look(names, session=AGENT, seconds=SECONDS)
            assert all(one.fresh for one in reports)
            found = {os.path.basename(one.path) for one in reports if one.diagnostics}
            assert found == wrong(scene, language), (
                burst,
                [(one.path[-6:], [d.message for d in one.diagnostics]) for one in reports],
            )
    finally:
        scene.close()
