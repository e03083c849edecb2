"""Agents and another program write at the same moments; once it is quiet, answers are true."""

from __future__ import annotations

import os
import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from filepact.errors import FilepactError
from tests.lsp.real_servers import SECONDS
from tests.semantic.scene import AGENT, Scene

if TYPE_CHECKING:
    from pathlib import Path

BURSTS = int(os.environ.get("LSP_BURSTS", "8"))
# Of such bursts with files that go and come again, about one in fifty ends with a file taken for
# missing; docs/explanation/diagnostics.md says so.
GOING = bool(os.environ.get("LSP_BURSTS"))
PAIRS = range(4)
KINDS = {"int": "value: int = 1\n", "str": "value: str = ''\n"}


def module(kind: str) -> str:
    return KINDS[kind]


def user(number: int, kind: str) -> str:
    return f"from m{number} import value\n\nx: {kind} = value\n"


def wrong(scene: Scene) -> set[str]:
    """The users that do not fit their modules, as the disk has them."""
    found = set()
    for number in PAIRS:
        place = scene.root / f"m{number}.py"
        kind = scene.get(f"u{number}.py").partition("x: ")[2][:3]
        if not place.exists() or place.read_text() != module(kind):
            found.add(f"u{number}.py")
    return found


def another_program(scene: Scene, chance: random.Random, over: threading.Event) -> None:
    while not over.wait(chance.random() * 0.02):
        number = chance.choice(PAIRS)
        match chance.randrange(5):
            case 0 if GOING:
                (scene.root / f"m{number}.py").unlink(missing_ok=True)
            case 1:
                scene.put(f"u{number}.py", user(number, chance.choice(list(KINDS))))
            case _:
                scene.put(f"m{number}.py", module(chance.choice(list(KINDS))))


def an_agent(scene: Scene, chance: random.Random) -> None:
    for _ in range(4):
        number = chance.choice(PAIRS)
        # That somebody else was quicker is refused, and no matter here.
        with suppress(FilepactError):
            text = user(number, chance.choice(list(KINDS)))
            scene.write({f"u{number}.py": text.encode()})
        with suppress(FilepactError):
            scene.foresee({f"m{number}.py": b"value: bytes = b''\n"})


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_true_after_everybody_wrote_at_once(seed: int, tmp_path: Path) -> None:
    files = {f"m{one}.py": module("int") for one in PAIRS}
    files |= {f"u{one}.py": user(one, "int") for one in PAIRS}
    scene = Scene(tmp_path, ["ty"], files)
    try:
        for burst in range(BURSTS):
            over = threading.Event()
            chances = [random.Random(f"{seed} {burst} {one}") for one in range(3)]
            others = threading.Thread(target=another_program, args=(scene, chances[0], over))
            agents = [threading.Thread(target=an_agent, args=(scene, one)) for one in chances[1:]]
            for one in (others, *agents):
                one.start()
            for one in agents:
                one.join()
            over.set()
            others.join()
            names = [f"u{one}.py" for one in PAIRS]
            reports = scene.insight.look(names, session=AGENT, seconds=SECONDS)
            assert all(one.fresh for one in reports)
            found = {os.path.basename(one.path) for one in reports if one.diagnostics}
            assert found == wrong(scene)
    finally:
        scene.close()
