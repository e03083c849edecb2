"""The parts of a day's work: what an agent means to do, what a person does beside it, and what is counted."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bench.day_hands import Hands
    from tests.agents.model import Call

TRIES = 4
SETTLED = 2  # seconds until nobody writes a file any more
MADE, UNCHANGED = "made", "unchanged"
TOGETHER = 20  # seconds that one of two agents waits for the other
AS = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")

Mind = Generator[Sequence["Call"], list[str], None]
"""What a model does: calls that are made at once, and what was answered to them."""
Swap = tuple[str, str]
"""A text, and what is to stand in its place."""

WORDS = ("total", "weight", "volume", "discount", "shipping", "refund", "credit", "deposit")


def module(name: str, words: Sequence[str] = WORDS) -> str:
    """A module of functions that look alike, as they do."""
    functions = [
        f"def {name}_{word}(order):\n"
        f"    '''The {word} of an order.'''\n"
        f"    value = order['{word}'] * RATE\n"
        f"    if value > LIMIT:\n"
        f"        log('{word} is over the limit')\n"
        f"        value = LIMIT\n"
        f"    return round(value, 2)\n"
        for word in words
    ]
    head = f"'''What {name} makes of orders.'''\n\nRATE = 1.5\nLIMIT = 1000\n"
    return "\n\n".join([head, *functions])


FILES = {
    **{f"shop/{name}.py": module(name) for name in ("cart", "tax", "stock", "mail", "report")},
    "shop/price.py": module("price"),
    "shop/old_name.py": module("old", WORDS[:3]),
    "shop/unused.py": module("unused", WORDS[:2]),
    "lib/large.py": module("large", [f"{word}{number}" for number in range(25) for word in WORDS]),
    "docs/guide.md": "# Guide\n\n"
    + "\n".join(f"## About {word}\n\nHow {word} is reckoned.\n" for word in WORDS),
    "notes.txt": "".join(f"{word}: to do\r\n" for word in WORDS),
    "package.json": '{\n  "name": "shop",\n  "version": "1.2.0",\n  "description": "A shop",\n'
    '  "scripts": {\n    "build": "tsc",\n    "test": "node --test"\n  }\n}\n',
    "Makefile": "# A shop\nall:\n\ttouch built\n\ncheck:\n\ttrue\n",
}
"""The project, as it is in the morning."""


def swapped(text: str | None, *swaps: Swap, everywhere: bool = False) -> str:
    """A text with the first of some swaps made that it has the old text of."""
    if text is None:
        raise ValueError("the file is not there")
    ends = "\r\n" if "\r\n" in text else "\n"
    for swap in swaps:
        old, new = (one.replace("\n", ends) for one in swap)
        if old in text:
            if not everywhere and text.count(old) > 1:
                raise ValueError(f"{old!r} stands several times")
            return text.replace(old, new)
    raise ValueError(f"none of {swaps} is there")


@dataclass
class Tally:
    """What a day took.

    Attributes:
        calls: Of tools.
        meant: Of them, those without which the work could not be done.
        refused: The part of the day, the call and the answer of each change that was not made.
        waited: Changes that waited for a person.
        left: Changes that it left to a person, refused again and again.
        wrong: The part, the call, the answer and the file of each change of which something else came.
        by_tool: Calls of each tool, characters of their arguments and of their answers.
        listed: Characters of the tools' list.
        together: Whether the agents that it started worked at the same time.
    """

    calls: int = 0
    meant: int = 0
    refused: list[tuple[str, Call, str]] = field(default_factory=list)
    waited: int = 0
    left: int = 0
    wrong: list[tuple[str, Call, str, str]] = field(default_factory=list)
    listed: int = 0
    together: bool = True
    by_tool: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def said(self) -> int:
        """Characters of all calls and answers."""
        return sum(sent + told for _calls, sent, told in self.by_tool.values())

    def count(self, call: Call, answer: str) -> None:
        """Count what was said in a call."""
        calls, sent, told = self.by_tool.get(call[0], (0, 0, 0))
        given = len(json.dumps(call[1], ensure_ascii=False))
        self.by_tool[call[0]] = calls + 1, sent + given, told + len(answer)


class Project:
    """The files, and what the person beside the agent does with them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path, text in FILES.items():
            self.write(path, text)
        self.git("init", "-q", "-b", "main")
        (root / ".git" / "info" / "exclude").write_text(".*\n")
        self.commit()
        self.git("checkout", "-q", "-b", "fix")
        first = "def tax_total("
        self.swap("shop/tax.py", (first, f"def tax_step(order):\n    pass\n\n\n{first}"))
        self.swap("shop/cart.py", ("'''The volume of", "'''The exact volume of"))
        self.commit()
        self.git("checkout", "-q", "main")

    def git(self, *words: str) -> None:
        subprocess.run(["git", *AS, *words], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")

    def read(self, path: str) -> str | None:
        try:
            return (self.root / path).read_bytes().decode()
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str | None) -> None:
        file = self.root / path
        if text is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())

    def swap(self, path: str, *swaps: Swap) -> None:
        self.write(path, swapped(self.read(path), *swaps))

    def tree(self) -> dict[str, str]:
        """All files but those that programs keep for themselves."""
        found = (one.relative_to(self.root) for one in self.root.rglob("*") if one.is_file())
        return {
            str(one): self.read(str(one)) or ""
            for one in found
            if not any(part.startswith(".") for part in one.parts)
        }


class Worker:
    """One who works: an agent, or one that it has started.

    Args:
        hands: Its tools.
        project: Where.
        tally: Where it is counted.
        approve: Has the person approve what waits; whether anything did.
        alone: Whether nobody else changes these files meanwhile.
    """

    def __init__(
        self,
        hands: Hands,
        project: Project,
        tally: Tally,
        approve: Callable[[], bool],
        *,
        alone: bool = True,
    ) -> None:
        self.hands, self.project, self.tally = hands, project, tally
        self.part = ""
        self._approve = approve
        self._alone = alone
        self.known: dict[str, str | None] = {}

    def call(
        self, *calls: Call, meant: bool = True
    ) -> Generator[Sequence[Call], list[str], list[str]]:
        """Make calls at once; what was answered."""
        self.tally.calls += len(calls)
        self.tally.meant += len(calls) * meant
        answers = yield calls
        for call, answer in zip(calls, answers, strict=True):
            self.tally.count(call, answer)
        return answers

    def look(self, *paths: str, meant: bool = True) -> Mind:
        """Read files."""
        for path in paths:
            yield from self.call(self.hands.read(path), meant=meant)
            self.learn(path)

    def learn(self, path: str) -> None:
        text = self.project.read(path)
        self.known[path] = text and text.replace("\r\n", "\n")

    def edit(self, path: str, *swaps: Swap) -> Mind:
        """Put one text in the place of another; of several the first whose old text it knows."""

        def make() -> Call:
            known = self.known[path] or ""
            old, new = next(one for one in swaps if one[0] in known)
            return self.hands.edit(path, known, old, new)

        yield from self._change({path: lambda text: swapped(text, *swaps)}, make)

    def everywhere(self, path: str, swap: Swap) -> Mind:
        """Put a text in the place of another wherever that stands."""
        make = self.hands.everywhere
        if make is None:
            lines = [one for one in (self.known[path] or "").splitlines() if swap[0] in one]
            for line in lines:
                yield from self.edit(path, (line, line.replace(*swap)))
            return
        yield from self._change(
            {path: lambda text: swapped(text, swap, everywhere=True)},
            lambda: make(path, self.known[path] or "", *swap),
        )

    def write(self, path: str, text: str) -> Mind:
        """Make a file."""
        yield from self._change({path: lambda _: text}, lambda: self.hands.write(path, text))

    def overwrite(self, path: str, swap: Swap) -> Mind:
        """Write a file anew, with one text in the place of another."""
        yield from self._change(
            {path: lambda text: swapped(text, swap)},
            lambda: self.hands.overwrite(
                path, self.known[path] or "", swapped(self.known[path], swap)
            ),
        )

    def patch(self, swaps: Mapping[str, Swap]) -> Mind:
        """Change several files, in one call where there is one for it."""
        make = self.hands.patch
        if make is None:
            for path, swap in swaps.items():
                yield from self.edit(path, swap)
            return
        yield from self._change(
            {path: lambda text, swap=swap: swapped(text, swap) for path, swap in swaps.items()},  # type: ignore[misc]
            lambda: make(
                {
                    path: (self.known[path], swapped(self.known[path], swap))
                    for path, swap in swaps.items()
                }
            ),
        )

    def move(self, old: str, new: str) -> Mind:
        text = self.project.read(old)
        wanted = {old: lambda _: None, new: lambda _: text}
        yield from self._change(wanted, lambda: self.hands.move(old, new))

    def remove(self, path: str) -> Mind:
        yield from self._change({path: lambda _: None}, lambda: self.hands.remove(path))

    def _change(
        self, wanted: Mapping[str, Callable[[str | None], str | None]], make: Callable[[], Call]
    ) -> Mind:
        """Make one change, as often as it takes; what comes of it is counted."""
        before = ""
        for number in range(TRIES):
            # Where others work too, what it knows is what it starts from.
            was = (
                self.project.tree()
                if self._alone
                else {one: self.known[one] or "" for one in wanted}
            )
            want = {**was, **{path: then(was.get(path)) for path, then in wanted.items()}}
            made = make()
            (answer,) = yield from self.call(made, meant=number == 0)
            came = self._came(was, want)
            if came == UNCHANGED and self._approve():
                self.tally.waited += 1
                came = self._came(was, want)
                for one in self.hands.after:
                    yield from self.call(one, meant=False)
            if came == MADE:
                break
            if came != UNCHANGED:
                self.tally.wrong.append((self.part, made, answer, came))
                self._put_right(want)
                break
            self.tally.refused.append((self.part, made, answer))
            if answer == before:
                # Told the same twice, it leaves it to the person.
                self.tally.left += 1
                self._put_right(want)
                break
            before = answer
            yield from self.look(*(path for path in wanted if path in was), meant=False)
        else:
            self.tally.left += 1
            self._put_right(want)
        for path, then in wanted.items():
            # It knows what it has read and done, not what others did since.
            self.known[path] = then(self.known.get(path))

    def _came(self, was: Mapping[str, str], want: Mapping[str, str | None]) -> str:
        """Whether the files hold what they should, or what they held; else the first that does not."""
        wanted = {path: text for path, text in want.items() if text is not None}
        if self._alone:
            now = self.project.tree()
            if now in (was, wanted):
                return UNCHANGED if now == was else MADE
            names = sorted(now.keys() | wanted.keys())
            return next(one for one in names if now.get(one) != wanted.get(one))
        # Where others work too, the lines that it brings are looked for; a file may just be written by them.
        brought = {
            (path, line)
            for path, text in wanted.items()
            for line in {*text.splitlines()} - {*was.get(path, "").splitlines()}
        }
        until = time.monotonic() + SETTLED
        while True:
            now = self.project.tree()
            lost = sorted(one for one in brought if one[1] not in now.get(one[0], "").splitlines())
            if not lost or time.monotonic() > until:
                return MADE if not lost else UNCHANGED if len(lost) == len(brought) else lost[0][0]

    def _put_right(self, want: Mapping[str, str | None]) -> None:
        """Have the person put right what went wrong."""
        for path in self.project.tree().keys() | want.keys() if self._alone else ():
            if self.project.read(path) != want.get(path):
                self.project.write(path, want.get(path))


# -- the parts of the day ------------------------------------------------------------------------------


def look_around(worker: Worker) -> Mind:
    hands = worker.hands
    yield from worker.call(hands.names("*.py"))
    yield from worker.call(hands.search("_discount"))
    yield from worker.call(hands.window("lib/large.py", 700, 50))
    worker.learn("lib/large.py")


def edit_what_was_read(worker: Worker) -> Mind:
    yield from worker.look("shop/cart.py")
    yield from worker.edit("shop/cart.py", ("RATE = 1.5", "RATE = 1.6"))
    yield from worker.edit("shop/cart.py", *of("cart", "total", "round(value, 2)", "round(value)"))
    yield from worker.edit("shop/cart.py", ("RATE = 1.6", "RATE = 1.7"))
    yield from worker.edit("shop/cart.py", ("RATE = 1.7", "RATE = 1.6"))
    yield from worker.look("notes.txt")
    two = ("total: to do\nweight: to do\n", "total: done\nweight: done\nwidth: to do\n")
    yield from worker.edit("notes.txt", two)


def formatter(worker: Worker) -> Mind:
    """Which runs at each saving, and makes other quotes and blank lines."""

    def save() -> None:
        text = (worker.project.read("shop/price.py") or "").replace("'", '"')
        worker.project.write("shop/price.py", text.replace("\n\n\n\n", "\n\n\n"))

    yield from worker.look("shop/price.py")
    for word, limit in (("total", "10"), ("weight", "20"), ("volume", "30")):
        old, new = f"        log('{word} is over the limit')\n", f"        value = {limit}\n"
        text = f"    value = order['{word}'] * RATE\n"
        checked = f"    value = float(order['{word}']) * RATE\n"
        yield from worker.edit(
            "shop/price.py",
            (old, f"{old}{new}"),
            (old.replace("'", '"'), old.replace("'", '"') + new),
        )
        save()
        yield from worker.edit(
            "shop/price.py",
            (text, checked),
            (text.replace("'", '"'), checked.replace("'", '"')),
        )
        save()
    yield from worker.edit(
        "shop/price.py", *of("price", "refund", "round(value, 2)", "round(value)")
    )
    save()


def stash(worker: Worker) -> Mind:
    """The person takes all away, and the same is made again; later it comes back."""
    project, tax, report = worker.project, "shop/tax.py", "shop/report.py"
    more = of("tax", "credit", "    return", "    assert value >= 0\n    return")
    project.commit()
    yield from worker.look(tax, report, "shop/cart.py")
    before = worker.known[tax]
    yield from worker.edit(tax, *more)
    yield from worker.edit(tax, ("RATE = 1.5", "RATE = 1.75"))
    project.git("stash", "-q")
    worker.known[tax] = before
    yield from worker.edit(tax, *more)
    yield from worker.edit(tax, ("RATE = 1.5", "RATE = 1.75"))
    project.git("stash", "drop", "-q")
    project.commit()
    yield from worker.edit(report, ("RATE = 1.5", "RATE = 2.5"))
    project.git("stash", "-q")
    yield from worker.edit("shop/cart.py", *of("cart", "credit", "value = LIMIT", "value = 0"))
    project.commit()
    project.git("stash", "pop", "-q")
    yield from worker.edit(report, ("LIMIT = 1000", "LIMIT = 500"))
    yield from worker.edit(report, ("RATE = 2.5", "RATE = 2.0"))


def checkout(worker: Worker) -> Mind:
    """The person goes to a branch where the files are a little different, and back."""
    project, tax = worker.project, "shop/tax.py"
    project.commit()
    yield from worker.look(tax, "shop/cart.py")
    before = worker.known[tax]
    project.git("checkout", "-q", "fix")
    yield from worker.edit(tax, *of("tax", "shipping", "value = LIMIT", "value = 0"))
    project.commit()
    project.git("checkout", "-q", "main")
    worker.known[tax] = before
    yield from worker.edit(tax, *of("tax", "refund", "value = LIMIT", "value = 1"))
    project.commit()


def merge(worker: Worker) -> Mind:
    """The person merges the branch; what the agent has read is from before that."""
    worker.project.git("merge", "-q", "-m", "merge", "fix")
    yield from worker.edit("shop/tax.py", *of("tax", "deposit", "value = LIMIT", "value = 2"))
    yield from worker.edit("shop/cart.py", *of("cart", "deposit", "value = LIMIT", "value = 2"))
    yield from worker.edit("shop/cart.py", ("LIMIT = 1000", "LIMIT = 1800"))


def patches(worker: Worker) -> Mind:
    paths = ("shop/stock.py", "shop/mail.py", "shop/report.py")
    yield from worker.look(*paths)
    names = {path: path[5:-3] for path in paths}
    yield from worker.patch(
        {
            path: of(name, "total", "round(value, 2)", "round(value)")[0]
            for path, name in names.items()
        }
    )
    worker.project.swap("shop/stock.py", ("LIMIT = 1000\n", "LIMIT = 1000\nMORE = 1\n"))
    worker.project.swap("shop/mail.py", *of("mail", "weight", "value = LIMIT", "value = RATE"))
    yield from worker.patch(
        {path: of(name, "credit", "value = LIMIT", "value = 0")[0] for path, name in names.items()}
    )


def everywhere(worker: Worker) -> Mind:
    yield from worker.look("shop/mail.py")
    worker.project.swap("shop/mail.py", ("RATE = 1.5\n", "RATE = 1.5\nHOST = 'localhost'\n"))
    yield from worker.everywhere("shop/mail.py", ("log(", "note("))


def whole_files(worker: Worker) -> Mind:
    yield from worker.write("docs/new.md", "# New\n\nWhat is new.\n")
    yield from worker.look("docs/guide.md")
    for word in ("total", "weight"):
        swap = (f"How {word} is reckoned.", f"How {word} is reckoned, in full.")
        yield from worker.overwrite("docs/guide.md", swap)
    worker.project.swap("docs/guide.md", ("# Guide\n", "# Guide\n\nRead this first.\n"))
    swap = ("How refund is reckoned.", "A refund is what it was.")
    yield from worker.overwrite("docs/guide.md", swap)


def same_line(worker: Worker) -> Mind:
    """The person changes the very line that the agent is about to change."""
    yield from worker.look("shop/stock.py")
    worker.project.swap("shop/stock.py", ("RATE = 1.5", "RATE = 4.5"))
    yield from worker.edit(
        "shop/stock.py", ("RATE = 1.5", "RATE = 9.5"), ("RATE = 4.5", "RATE = 9.5")
    )


def waiting(worker: Worker) -> Mind:
    """Files that steer what runs, which wait for a person; a description does not."""
    yield from worker.look("package.json", "Makefile")
    yield from worker.edit("package.json", ('"A shop"', '"A small shop"'))
    yield from worker.edit("package.json", ('"build": "tsc"', '"build": "tsc -b"'))
    yield from worker.edit("package.json", ('"node --test"', '"node --test test"'))
    yield from worker.edit("Makefile", ("\ttouch built", "\ttouch built all"))


def large_file(worker: Worker) -> Mind:
    worker.project.swap("lib/large.py", ("LIMIT = 1000\n", "LIMIT = 1000\n" + "# more\n" * 30))
    yield from worker.edit(
        "lib/large.py", *of("large", "discount10", "value = LIMIT", "value = RATE")
    )


def moves(worker: Worker) -> Mind:
    yield from worker.look("shop/old_name.py")
    yield from worker.move("shop/old_name.py", "shop/new_name.py")
    yield from worker.edit("shop/new_name.py", ("RATE = 1.5", "RATE = 0.5"))
    yield from worker.look("shop/unused.py")
    yield from worker.remove("shop/unused.py")


def sub_agents(worker: Worker) -> Mind:
    """Two agents that it starts change the same two files at the same time."""
    project, hands = worker.project, worker.hands
    want = project.tree()
    for changes in HELP.values():
        for path, swaps in changes:
            want[path] = swapped(want[path], *swaps)
    answers = yield from worker.call(*map(hands.spawn, HELP))
    if hands.wait is not None:
        answers += yield from worker.call(hands.wait("".join(answers)))
    end = time.monotonic() + TOGETHER  # Some hosts answer when the first of them is done.
    while (now := project.tree()) != want and time.monotonic() < end:
        time.sleep(0.1)
    for path in sorted(path for path in now if now[path] != want.get(path)):
        worker.tally.wrong.append((worker.part, ("", {}), "\n".join(answers), path))
        project.write(path, want.get(path))


def help_with(worker: Worker, part: str, ready: threading.Barrier) -> Mind:
    """What one of them does."""
    yield from worker.look(*dict(HELP[part]))
    try:
        ready.wait(TOGETHER)
    except threading.BrokenBarrierError:
        worker.tally.together = False
    for path, swaps in HELP[part]:
        yield from worker.edit(path, *swaps)
    for one in worker.hands.last:
        yield from worker.call(one)


def of(name: str, word: str, old: str, new: str) -> tuple[Swap, ...]:
    """A change in one of the functions of a module, with enough around it to stand once."""
    lines = module(name, [word]).splitlines(keepends=True)[-3:]
    text = "".join(lines)
    return tuple((one, swapped(one, (old, new))) for one in (text, text.replace("'", '"')))


HELP: Mapping[str, Sequence[tuple[str, tuple[Swap, ...]]]] = {
    "FIRST-PART": (
        ("shop/cart.py", of("cart", "weight", "value = LIMIT", "value = LIMIT - 1")),
        ("shop/stock.py", of("stock", "refund", "value = LIMIT", "value = LIMIT - 2")),
        ("shop/cart.py", of("cart", "shipping", "value = LIMIT", "value = LIMIT - 3")),
    ),
    "OTHER-PART": (
        ("shop/cart.py", of("cart", "volume", "value = LIMIT", "value = LIMIT + 1")),
        ("shop/stock.py", of("stock", "shipping", "value = LIMIT", "value = LIMIT + 2")),
        ("shop/cart.py", of("cart", "refund", "value = LIMIT", "value = LIMIT + 3")),
    ),
}
"""What two agents do at the same time, by a word of their prompts."""

PARTS: Mapping[str, Callable[[Worker], Mind]] = {
    one.__name__: one
    for one in (
        *(look_around, edit_what_was_read, formatter, stash, checkout, merge, patches),
        *(everywhere, whole_files, same_line, waiting, large_file, moves, sub_agents),
    )
}
