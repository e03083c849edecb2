"""The lists of names on the page about protected names.

``python -m tests.domain.protected_page`` writes them anew; a test compares.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from filepact.domain.protected import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protected-names.md"

_LISTS = re.compile(r"(<!-- names: ([a-z ]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def lists(rule: str) -> str:
    """The patterns of a rule as the page has them."""
    lines = []
    for title, names in NAMES[rule].items():
        if title:
            lines += [f"*{title}*:", ""]
        lines += [_spelled([name for name in names if name[0] != "!"]), ""]
        spared = [name.removeprefix("!") for name in names if name[0] == "!"]
        if spared:
            lines += [f"Not these: {_spelled(spared)}" if lines else "", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _spelled(names: list[str]) -> str:
    if not names:
        return ""
    # A blank in a name must not become the end of a line.
    text = ", ".join(f"`{name}`".replace(" ", "\0") for name in names)
    wrapped = textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapped).replace("\0", " ")


def written(text: str) -> str:
    """The page with its lists written anew."""
    return _LISTS.sub(lambda found: f"{found[1]}\n{lists(found[2])}\n", text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
