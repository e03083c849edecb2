"""Draws what a terminal shows while commands run, from real runs: the picture of the README, and one of each width.

`scripts/pictures` writes them; a test runs the commands again and compares the words.
"""

from __future__ import annotations

import html
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import filepact
from filepact_cli.render import width

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["IMAGES", "PICTURES", "masked", "run", "svg", "text_of"]

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
FIRST = (
    "filepact log",
    "filepact undo --turn   # all that it did, and nothing of yours",
    "cat shop/cart.py",
)
EVERY = (
    "filepact log --turns",
    "filepact review --list",
    "filepact undo --turn --dry-run",
    "filepact undo nosuch",
)
PICTURES = {
    "undo": (78, FIRST),
    **{f"commands-{columns}": (columns, EVERY) for columns in (60, 80, 120)},
}
"""By name: how wide the terminal is, and what is typed."""

CART = "def total(items):\n    return sum(items)\n"

_STYLE = {
    "": "#d4d4d8",
    "2": "#8b8b95",
    "1": "#fafafa",
    "1;36": "#67d4e8",
    "32": "#7ee787",
    "33": "#f0c674",
    "1;31": "#ff7b72",
    "31": "#ff7b72",
    "36": "#67d4e8",
    "7;32": "#7ee787",
    "7;31": "#ff7b72",
}
_FONT = 'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14"'
_CODES = re.compile(r"\x1b\[([0-9;]*)m")


def run(columns: int, typed: Sequence[str]) -> str:
    """What a terminal shows, with the control sequences of colours."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "project"), Path(folder, "home")
        (root / "shop").mkdir(parents=True)
        (root / "tests").mkdir()
        home.mkdir()
        (root / "shop" / "cart.py").write_text(CART)
        (root / "tests" / "test_cart.py").write_text("def test_total():\n    assert True\n")
        (root / ".env").write_text("TOKEN=1\n")
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "COLUMNS": str(columns),
            "LINES": "50",
        }
        state = home / ".local" / "state" / "filepact"
        shown = []
        if typed == FIRST:
            said = "An agent changed the cart, and deleted its tests. Meanwhile you typed a note."
            shown.append(f"\x1b[2m# {said}\x1b[0m\n")
        with filepact.open(root, agent="shop-helper", rules="built-in", state_dir=state) as files:
            with files.turn("Give every customer a discount of ten per cent"):
                files.edit("shop/cart.py", "return sum(items)", "return sum(items) * 0.9")
                files.delete("tests/test_cart.py")
                files.write("shop/discount.py", "RATE = 0.9\n")
            cart = root / "shop" / "cart.py"
            cart.write_text(cart.read_text() + "\n# note to self: ask Mia about taxes\n")
            if typed == EVERY:
                files.write("AGENTS.md", "# Discounts\n\nAsk before you change a rate.\n")
        for said in typed:
            program, *words = shlex.split(said, comments=True)
            ours = [sys.executable, "-m", "filepact"] if program == "filepact" else [program]
            shown.append(f"\x1b[1m$ {said}\x1b[0m\n")
            shown.append(_on_a_terminal([*ours, *words], root, environment))
        return "".join(shown)


def _on_a_terminal(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.wait() in (0, 1), (command, b"".join(parts))
    return b"".join(parts).decode().replace("\r\n", "\n")


def text_of(shown: str) -> str:
    """The same without colours."""
    return _CODES.sub("", shown)


def masked(text: str) -> str:
    """The same without what is another in each run: ids, ages, hashes."""
    text = re.sub(r"\bc[0-9a-z]{10}\b", "cID", text)
    text = re.sub(r"\b\d+s\b", "0s", text)
    text = re.sub(r"\b\d\d:\d\d\b", "00:00", text)
    return re.sub(r" +", " ", text)


def svg(shown: str, columns: int) -> str:
    """The picture: one line of text an element, so that it can be read and searched."""
    lines = shown.rstrip("\n").split("\n")
    high, wide, unit, step = 20 * len(lines) + 56, columns * 8.43 + 40, 8.43, 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" role="img" {_FONT}>',
        "<title>filepact on a terminal: the log, and an undo that keeps a person's note</title>",
        f'<rect width="{wide:.0f}" height="{high}" rx="8" fill="#18181b"/>',
        *(
            f'<circle cx="{22 + 18 * at}" cy="20" r="5.5" fill="{colour}"/>'
            for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for number, line in enumerate(lines):
        at, colour, spans = 0, "", []
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            code = _CODES.fullmatch(piece)
            if code is not None:
                colour = "" if code[1] in ("", "0") else code[1]
            elif piece:
                place = f"{20 + at * unit:.1f}"
                # Each piece has its place, so that another font moves nothing.
                spans.append(
                    f'<tspan x="{place}" fill="{_STYLE.get(colour, _STYLE[""])}">'
                    f"{html.escape(piece, quote=False)}</tspan>"
                )
                at += width(piece)
        out.append(f'<text y="{54 + number * step}" xml:space="preserve">{"".join(spans)}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    for name, (wide, commands) in PICTURES.items():
        (IMAGES / f"{name}.svg").write_text(svg(run(wide, commands), wide), encoding="utf-8")
