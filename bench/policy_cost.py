"""What a decision of the rules costs: with the built-in ones, and with 200 of a person's more.

    PYTHONPATH=src python bench/policy_cost.py [--write]

Names are asked about that were never asked about before, and then the same ones again.  Beside it,
where it can be imported, stands pathspec, asked whether any of the same patterns matches.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.config.layers import RuleSet, SettingsSource
from filepact.config.policy_lint import settled
from filepact.config.rule_files import read_source
from filepact.domain.policy import AccessRequest, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by policy_cost.py -->"
END = "<!-- end of what policy_cost.py wrote -->"
NAMES = 20_000
WORDS = """
    account api app auth build cache client config core data docs draft error event export file
    filter form graph handler image index input item job key list log mail menu model network node
    order page parser path plan query queue report route schema search server session sheet state
    store stream string table task test text token tool tree type user util value view web
""".split()  # noqa: SIM905 - a list of words is read more easily than a list of quotes
ENDINGS = (".py", ".ts", ".md", ".json", ".csv", ".sql", ".txt", ".yaml", ".pem", "")


def rules(chance: random.Random, count: int, *, sparing: int) -> str:
    """A settings file with rules of the shapes that people write.

    Args:
        chance: Where words come from.
        count: How many rules.
        sparing: One of so many spares a name in a folder that it covers.
    """
    tables = []
    for number in range(count):
        one, two = chance.sample(WORDS, 2)
        shapes = (
            [f"{one}/{two}{number}/**"],
            [f"{one}-{number}.json"],
            [f"*.{one}{number}"],
            [f"**/{one}/{two}{number}/*.sql"],
            [f"{one}*{number}*.py"],
            [f"/{one}/**/{two}-[0-9]{number}?.txt"],
        )
        paths = shapes[number % 6]
        if number % sparing == 0:
            paths = [f"{one}/{two}{number}/**", f"!{one}/{two}{number}/readme.md"]
        verdict = ("deny", "ask")[number % 2]
        actions = (["read", "change"], ["change"])[number % 3 == 0]
        tables.append(f"[[{verdict}]]\npaths = {paths}\nactions = {actions}\n")
    return "\n".join(tables)


def names(chance: random.Random, count: int) -> list[str]:
    found: set[str] = set()
    while len(found) < count:
        folders = chance.choices(WORDS, k=chance.randint(0, 6))
        name = "-".join(chance.choices(WORDS, k=2)) + str(chance.randint(0, 999))
        found.add("/".join([*folders, name + chance.choice(ENDINGS)]))
    return sorted(found)


def measure(ask: Callable[[str], object], asked: Sequence[str]) -> list[int]:
    """Nanoseconds of each question."""
    clock = time.perf_counter_ns
    taken = []
    gc.disable()
    for name in asked:
        before = clock()
        ask(name)
        taken.append(clock() - before)
    gc.enable()
    return taken


def row(called: str, taken: Sequence[int]) -> str:
    middle = statistics.median(taken) / 1000
    cuts = statistics.quantiles(taken, n=100)
    return f"| {called} | {middle:.1f} | {cuts[98] / 1000:.1f} | {statistics.fmean(taken) / 1000:.1f} |"


def report() -> str:
    chance = random.Random(7)
    texts = [rules(chance, 200, sparing=each) for each in (20, 1)]
    before = time.perf_counter_ns()
    usual = read_source(texts[0], SettingsSource("person", "f.toml"))
    reading = (time.perf_counter_ns() - before) / 1e6
    all_sparing = read_source(texts[1], SettingsSource("person", "f.toml"))
    asked = names(chance, NAMES)
    chance.shuffle(asked)
    about = (
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}; "
        f"{NAMES:,} names, one to seven parts each. Reading and checking a file with 200 rules: "
        f"{reading:,.0f} ms, once at the start."
    )
    lines = [
        MARK,
        "",
        about,
        "",
        "| one decision, in \u00b5s | median | 99 of 100 within | mean |",
        "| --- | --- | --- | --- |",
    ]
    for called, found in (
        ("built-in rules", RuleSet()),
        ("and 200 more", usual),
        ("and 200 more that all spare a name in a folder", all_sparing),
    ):
        lines += timed(called, found, asked)
    lines += beside(usual, asked)
    return "\n".join([*lines, "", END])


def timed(called: str, found: RuleSet, asked: Sequence[str]) -> list[str]:
    policy = found.policy

    def ask(name: str) -> object:
        return decide(AccessRequest("/project", name, "write", "agent"), policy)

    return [row(f"{called}, {state}", measure(ask, asked)) for state in ("new names", "again")]


def beside(mine: RuleSet, asked: Sequence[str]) -> list[str]:
    """The same patterns asked of pathspec, which tells the last one that matches."""
    try:
        import pathspec  # noqa: PLC0415 - need not be there
    except ImportError:
        return []
    everything = RuleSet().policy.rules + mine.rules
    patterns = [each for rule in everything for each in settled(rule.paths)]
    lines = []
    for backend in ("re2", "simple"):
        called = f"pathspec {pathspec.__version__} ({backend}), matching only"
        try:
            found = pathspec.GitIgnoreSpec.from_lines(patterns, backend=backend)
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being measured
            lines.append(f"| {called} | {error} | | |")
        else:
            lines.append(row(called, measure(found.match_file, asked)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    found = report()
    print(found)
    if parser.parse_args().write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
