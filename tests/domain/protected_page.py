"""The lists of names on the page about protected names.

``python -m tests.domain.protected_page`` writes them anew; a test compares.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from filepact.domain import (
    protected_accounts,
    protected_agents,
    protected_keys,
    protected_manifests,
    protected_settings,
    protected_startup,
)
from filepact.domain.protected import BUILT_IN_RULES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protected-names.md"

GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "key stores": {
        "Password managers, key rings, wallets": protected_keys.PASSWORD_STORES,
        "Browsers, mail and chat": protected_keys.BROWSERS_AND_MAIL,
        "Cloud services and their programs": protected_accounts.CLOUDS,
        "What agents sign in with": protected_accounts.AGENT_TOKENS,
        "Password files and histories": protected_accounts.PASSWORDS,
        "Private keys and certificate stores": protected_keys.PRIVATE_KEYS,
    },
    "project secrets": {
        "Variables for a program": protected_settings.ENVIRONMENTS,
        "Applications, tools, connections": protected_settings.PROJECT_FILES,
        "Examples": protected_settings.SPARED,
    },
    "control files": {
        "What agents read, start and obey": protected_agents.AGENTS,
        "Editors and remote workplaces": protected_agents.EDITORS,
        "Build and review services": protected_startup.CI,
        "Version control and its hooks": protected_startup.HOOKS,
        "Shells and interactive programs": protected_startup.SHELLS,
        "The machine": protected_startup.SYSTEM,
        "Interpreters, installers, builds": protected_manifests.PACKAGES,
    },
}
"""The lists that a rule is put together from, in their order, by their titles."""

_LISTS = re.compile(r"(<!-- names: ([a-z ]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def lists(rule: str) -> str:
    """The patterns of a rule as the page has them."""
    paths = next(each.paths for each in BUILT_IN_RULES if each.name == rule)
    lines = []
    for title, names in GROUPS.get(rule, {"": paths}).items():
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
