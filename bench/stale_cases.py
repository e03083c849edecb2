"""Edits and patches for a text that somebody has changed since it was read.

Every line of a file is a value of its own, so that it stays known through whatever a person does
to the file: what is right afterwards is the change of that very line, wherever it is by then.
Files with uniform entries are made up; bodies and hunks are those of real source files.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from bench.patch_cases import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MUST_REFUSE", "SERIES", "Stale", "cases"]

SUFFIX = {
    "yaml": "yaml",
    "nested": "yaml",
    "json": "json",
    "css": "css",
    "test": "py",
    "ini": "ini",
}


@dataclass(eq=False, slots=True)
class Line:
    """One line, which is itself and equal to no other."""

    text: str


@dataclass(frozen=True, slots=True)
class Stale:
    """One call that was made for a text that is no longer there.

    Attributes:
        read: What the session read.
        now: What the file holds when the call comes.
        tool: The tool that is called, with its arguments but for the path.
        right: What the file has to hold then; None when only a refusal is right.
        first: A call of the same tool that the session makes between reading and the other's change.
        read_again: The session reads the file once more after that.
    """

    series: str
    suffix: str
    read: str
    now: str
    tool: str
    arguments: dict[str, Any]
    right: str | None
    first: dict[str, Any] | None = None
    read_again: bool = False


def joined(lines: list[Line], changed: dict[Line, str] | None = None) -> str:
    known = changed or {}
    return "".join(known.get(line, line.text) + "\n" for line in lines)


# -- what the agent sends -----------------------------------------------------------------


def patch(
    lines: list[Line], changed: dict[Line, str], *, context: int, numbers: bool = True
) -> str:
    old = [line.text for line in lines]
    new = [changed.get(line, line.text) for line in lines]
    hunks = list(unified_diff(old, new, "a/f", "b/f", n=context, lineterm=""))
    if not numbers:
        hunks = ["@@" if line.startswith("@@") else line for line in hunks]
    return "\n".join(hunks) + "\n"


def envelope(lines: list[Line], changed: dict[Line, str], *, context: int) -> str:
    hunks = patch(lines, changed, context=context, numbers=False).split("\n", 2)[2]
    return f"*** Begin Patch\n*** Update File: {{path}}\n{hunks}*** End Patch\n"


def edit(lines: list[Line], changed: dict[Line, str]) -> dict[str, str] | None:
    """The fewest lines around the change that stand only once, as a model would send them."""
    text = joined(lines)
    at = [i for i, line in enumerate(lines) if line in changed]
    first, last = at[0], at[-1] + 1
    while True:
        old = joined(lines[first:last])
        if text.count(old) == 1:
            return {"old_string": old, "new_string": joined(lines[first:last], changed)}
        if first == 0 and last == len(lines):
            return None
        first = max(first - 1, 0)
        if text.count(joined(lines[first:last])) != 1:
            last = min(last + 1, len(lines))


def sent(
    rng: random.Random, lines: list[Line], changed: dict[Line, str]
) -> tuple[str, dict[str, str]] | None:
    """One of the ways to say a change of a text."""
    way = rng.choice(["patch", "patch", "patch 1", "edit", "edit"])
    if way == "edit":
        arguments = edit(lines, changed)
        return None if arguments is None else ("edit_file", arguments)
    return "patch_apply", {"patch": patch(lines, changed, context=1 if way == "patch 1" else 3)}


# -- files of uniform entries -------------------------------------------------------------

NAMES = ["alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "mu"]
FIELDS = [
    ("image", "registry/app"),
    ("tag", "stable"),
    ("restart", "always"),
    ("cpu", "1"),
    ("memory", "512"),
    ("disk", "10"),
    ("zone", "eu"),
]


def entry(form: str, name: str, fields: list[tuple[str, str]]) -> list[Line]:
    lines = {
        "yaml": lambda: [f"  - name: {name}", *(f"    {k}: {v}" for k, v in fields)],
        "nested": lambda: [
            f"  {name}:",
            "    build:",
            *(f"      {k}: {v}" for k, v in fields[:3]),
            "    limits:",
            *(f"      {k}: {v}" for k, v in fields[3:]),
        ],
        "json": lambda: [
            "    {",
            f'      "name": "{name}",',
            *(f'      "{k}": "{v}",' for k, v in fields[:-1]),
            f'      "{fields[-1][0]}": "{fields[-1][1]}"',
            "    },",
        ],
        "css": lambda: [f".{name} {{", *(f"  {k}: {v};" for k, v in fields), "}", ""],
        "test": lambda: [
            f"def test_{name}(client):",
            *(f"    client.set({k!r}, {v!r})" for k, v in fields),
            "    assert client.ok()",
            "",
            "",
        ],
        "ini": lambda: [f"[{name}]", *(f"{k} = {v}" for k, v in fields), ""],
    }[form]()
    return [Line(text) for text in lines]


def around(form: str) -> tuple[list[Line], list[Line]]:
    top = {"yaml": ["services:"], "nested": ["services:"], "json": ["{", '  "services": [']}
    end = {"json": ["    {}", "  ]", "}"], "yaml": ["volumes: []"], "nested": ["volumes: []"]}
    return (
        [Line(text) for text in top.get(form, ["# made by hand", ""] if form == "ini" else [])],
        [Line(text) for text in end.get(form, [])],
    )


def uniform(
    rng: random.Random, what: Callable[[random.Random, list[list[Line]], int, Fresh], bool]
) -> Iterator[Stale]:
    form = rng.choice(list(SUFFIX))
    fields = FIELDS[: rng.randint(4, len(FIELDS))]
    names = rng.sample(NAMES, 8)
    count = rng.randint(3, 6)
    entries = [entry(form, name, fields) for name in names[:count]]
    top, end = around(form)
    read = [*top, *(line for one in entries for line in one), *end]
    chosen = rng.randrange(count)
    key, value = rng.choice(fields)
    target = next(line for line in entries[chosen] if re.search(rf"\b{key}\b", line.text))
    changed = {target: target.text.replace(value, value + "9")}
    call = sent(rng, read, changed)
    after = [list(one) for one in entries]
    spare = iter(names[count:])
    alive = what(rng, after, chosen, lambda: entry(form, next(spare), fields))
    now = [*top, *(line for one in after for line in one), *end]
    if call is None or joined(now) == joined(read):
        return
    right = joined(now, changed) if alive and target in now else None
    yield Stale("", SUFFIX[form], joined(read), joined(now), *call, right)


Fresh = "Callable[[], list[Line]]"


def added_above(rng: random.Random, entries: list[list[Line]], at: int, fresh: Fresh) -> bool:
    entries.insert(rng.randint(0, at), fresh())
    return True


def added_below(rng: random.Random, entries: list[list[Line]], at: int, fresh: Fresh) -> bool:
    entries.insert(rng.randint(at + 1, len(entries)), fresh())
    return True


def removed_above(rng: random.Random, entries: list[list[Line]], at: int, _: Fresh) -> bool:
    if at:
        del entries[rng.randrange(at)]
    return True


def removed_below(rng: random.Random, entries: list[list[Line]], at: int, _: Fresh) -> bool:
    if at + 1 < len(entries):
        del entries[rng.randint(at + 1, len(entries) - 1)]
    return True


def removed_itself(rng: random.Random, entries: list[list[Line]], at: int, fresh: Fresh) -> bool:
    del entries[at]
    if rng.random() < 0.5:
        entries.insert(rng.randint(0, len(entries)), fresh())
    return False


def renamed_and_added(rng: random.Random, entries: list[list[Line]], at: int, fresh: Fresh) -> bool:
    old, other = entries[at], fresh()
    entries[at] = [a if a.text == b.text else b for a, b in zip(old, other, strict=True)]
    if rng.random() < 0.7:
        entries.insert(rng.choice([at, at + 1, rng.randint(0, len(entries))]), fresh())
    return True


def reordered(rng: random.Random, entries: list[list[Line]], at: int, fresh: Fresh) -> bool:
    mine = entries.pop(at)
    entries.insert(rng.randint(0, len(entries)), mine)
    if rng.random() < 0.3:
        entries.insert(rng.randint(0, len(entries)), fresh())
    return True


def values_swapped(rng: random.Random) -> Iterator[Stale]:
    """Two entries of one value each; a person gives the one's value to the other."""
    a, b = rng.sample(NAMES, 2)
    first, second = Line("  port: 80"), Line("  port: 81")
    read = [Line(f"{a}:"), first, Line(f"{b}:"), second]
    changed = {first: "  port: 443"}
    now = [read[0], Line("  port: 8080"), read[2], Line("  port: 80")]
    call = sent(rng, read, changed)
    if call is not None:
        yield Stale("", "yaml", joined(read), joined(now), *call, None)


# -- real files ---------------------------------------------------------------------------

DEFINED = re.compile(r"( *)(?:async )?def (\w+)\(.*\).*:$")


def bodies(lines: list[Line]) -> list[tuple[int, int, int]]:
    """(header, first line, line after the last) of functions with a body of some lines."""
    found = []
    for at, line in enumerate(lines):
        match = DEFINED.match(line.text)
        if match is None:
            continue
        depth = len(match[1])
        end = at + 1
        while end < len(lines) and (
            not lines[end].text or lines[end].text.startswith(" " * (depth + 1))
        ):
            end += 1
        while not lines[end - 1].text:
            end -= 1
        if 5 <= end - at <= 60:
            found.append((at, at + 1, end))
    return found


def named(line: Line) -> tuple[str, str]:
    """The indentation and the name of a function."""
    match = DEFINED.match(line.text)
    return (match[1], match[2]) if match else ("", "")


def indentation(lines: list[Line], at: int) -> str:
    """The blanks before a line, or before the next that has text."""
    text = next((line.text for line in lines[at:] if line.text), "")
    return text[: len(text) - len(text.lstrip())]


def a_file(rng: random.Random) -> list[Line]:
    while True:
        lines = rng.choice(FILES)
        if bodies(made := [Line(text) for text in lines]):
            return made


def touched(rng: random.Random, lines: list[Line], low: int, high: int) -> dict[Line, str] | None:
    """A change of a line or two neighbours in a stretch that has something to change."""
    places = [i for i in range(low, high) if re.search(r"\w{3}", lines[i].text)]
    if not places:
        return None
    at = rng.choice(places)
    some = [i for i in (at, at + 1) if i in places][: rng.randint(1, 2)]
    return {lines[i]: re.sub(r"(\w{3,})", r"\1_new", lines[i].text, count=1) for i in some}


def rewritten(rng: random.Random, depth: str, count: int) -> list[Line]:
    words = rng.sample(NAMES, 4)
    return [Line(f"{depth}{rng.choice(words)}_{i} = {rng.randint(0, 999)}") for i in range(count)]


def copied_aside(rng: random.Random) -> Iterator[Stale]:
    """A body is kept under another name, and the original gets a new one."""
    read = a_file(rng)
    header, first, end = rng.choice(bodies(read))
    changed = touched(rng, read, first, end)
    call = None if changed is None else sent(rng, read, changed)
    if changed is None or call is None:
        return
    depth, name = named(read[header])
    legacy = Line(read[header].text.replace(f"{name}(", f"{name}_legacy("))
    copy = [Line(line.text) for line in read[first:end]]
    body = rewritten(rng, depth + "    ", rng.randint(1, 8))
    head = read[header]
    above = rng.random() < 0.5
    if above and rng.random() < 0.3:
        head = Line(read[header].text.replace("(", "_fast(", 1))
    if above:
        there = [head, *body, Line(""), legacy, *copy]
    else:
        there = [legacy, *copy, Line(""), head, *body]
    now = [*read[:header], *there, *read[end:]]
    yield Stale("", "py", joined(read), joined(now), *call, None)


def copied_beside(rng: random.Random) -> Iterator[Stale]:
    """A function is copied under another name, and the original stays but for another line."""
    read = a_file(rng)
    header, first, end = rng.choice(bodies(read))
    changed = touched(rng, read, first, end)
    call = None if changed is None else sent(rng, read, changed)
    if changed is None or call is None:
        return
    _, name = named(read[header])
    legacy = Line(read[header].text.replace(f"{name}(", f"{name}_two("))
    copy = [legacy, *(Line(line.text) for line in read[first:end])]
    original = list(read[header:end])
    if rng.random() < 0.5:
        other = rng.randrange(1, len(original))
        if original[other] not in changed:
            original[other] = Line(original[other].text + "  # looked at")
    pair = [[*original, Line("")], [*copy, Line("")]]
    rng.shuffle(pair)
    now = [*read[:header], *pair[0], *pair[1], *read[end:]]
    yield Stale("", "py", joined(read), joined(now), *call, joined(now, changed))


def repeated(rng: random.Random) -> tuple[list[Line], dict[Line, str], int] | None:
    """A file, and the change of a place whose lines stand there more than once."""
    read = a_file(rng)
    size = rng.randint(3, 5)
    blocks = ["\n".join(one.text for one in read[i : i + size]) for i in range(len(read) - size)]
    counted = Counter(blocks)
    places = [
        i
        for i, block in enumerate(blocks)
        if counted[block] > 1 and re.search(r"\w{3}", read[i + size // 2].text)
    ]
    if not places:
        return None
    at = rng.choice(places) + size // 2
    changed = {read[at]: re.sub(r"(\w{3,})", r"\1_new", read[at].text, count=1)}
    return read, changed, at


def moved_by_lines_above(rng: random.Random) -> Iterator[Stale]:
    """A hunk of repeated lines; above it lines were added or removed."""
    found = repeated(rng)
    if found is None:
        return
    read, changed, at = found
    now = list(read)
    limit = max(at - 8, 0)
    where = rng.randint(0, limit)
    if rng.random() < 0.5:
        now[where:where] = rewritten(rng, indentation(read, where), rng.randint(1, 40))
    else:
        some = [span for span in bodies(read) if span[2] < limit]
        header, first, end = rng.choice(some) if some else (where, where, where)
        del now[rng.choice([header, first, end - 1]) : end]
    if len(now) == len(read):
        return
    arguments = {"patch": patch(read, changed, context=rng.choice([1, 2, 3]))}
    yield Stale("", "py", joined(read), joined(now), "patch_apply", arguments, joined(now, changed))


def place_rewritten(rng: random.Random) -> Iterator[Stale]:
    """A hunk of repeated lines whose own place was rewritten."""
    found = repeated(rng)
    if found is None:
        return
    read, changed, at = found
    now = list(read)
    depth = indentation(read, at)
    low, high = max(at - rng.randint(0, 4), 0), at + rng.randint(1, 5)
    now[low:high] = rewritten(rng, depth, rng.randint(1, 6))
    if rng.random() < 0.4:
        now[:0] = rewritten(rng, "", rng.randint(1, 20))
    way = rng.choice(["patch", "bare", "envelope"])
    context = rng.choice([1, 2, 3])
    text = {
        "patch": lambda: patch(read, changed, context=context),
        "bare": lambda: patch(read, changed, context=context, numbers=False),
        "envelope": lambda: envelope(read, changed, context=context),
    }[way]()
    yield Stale("", "py", joined(read), joined(now), "patch_apply", {"patch": text}, None)


def elsewhere(rng: random.Random) -> Iterator[Stale]:
    """A real file, and a few ordinary changes by a person in other places of it."""
    read = a_file(rng)
    changed = touched(rng, read, 0, len(read) - 1)
    call = None if changed is None else sent(rng, read, changed)
    if changed is None or call is None:
        return
    at = next(i for i, line in enumerate(read) if line in changed)
    pieces: list[tuple[int, int, list[Line]]] = []
    for _ in range(rng.randint(1, 6)):
        low = rng.randrange(len(read))
        high = min(low + rng.choice([0, 1, 1, 1, 2, 5, 12]), len(read))
        if low - 4 < at + 1 and high + 3 > at:
            continue
        depth = indentation(read, low)
        way = rng.choice(["change", "change", "new", "twin", "remove"])
        if way == "change":
            new = [Line(re.sub(r"(\w{3,})", r"\1_2", one.text, count=1)) for one in read[low:high]]
        elif way == "twin":
            header, first, end = rng.choice(bodies(read))
            copy = textwrap.dedent(joined(read[rng.choice([header, first]) : end]))
            new = [*read[low:high], *map(Line, textwrap.indent(copy, depth).split("\n")[:-1])]
        else:
            new = rewritten(rng, depth, rng.randint(1, 9)) if way == "new" else []
        pieces.append((low, high, new))
    now: list[Line] = []
    reached = 0
    for low, high, new in sorted(pieces, key=lambda piece: piece[:2]):
        if low >= reached:
            now += [*read[reached:low], *new]
            reached = high
    now += read[reached:]
    if joined(now) != joined(read):
        yield Stale("", "py", joined(read), joined(now), *call, joined(now, changed))


def neighbours_changed(rng: random.Random) -> Iterator[Stale]:
    """A line that stands once; those before and after it are rewritten, one for one."""
    read = a_file(rng)
    counted = Counter(line.text for line in read)
    some = [
        at
        for at in range(1, len(read) - 1)
        if counted[read[at].text] == 1 and re.search(r"\w{3}", read[at].text)
    ]
    at = rng.choice(some)
    changed = {read[at]: re.sub(r"(\w{3,})", r"\1_new", read[at].text, count=1)}
    arguments = {"old_string": read[at].text + "\n", "new_string": changed[read[at]] + "\n"}
    if joined(read).count(arguments["old_string"]) != 1:
        return
    now = list(read)
    for near in (at - 1, at + 1):
        (now[near],) = rewritten(rng, indentation(read, near), 1)
    yield Stale("", "py", joined(read), joined(now), "edit_file", arguments, joined(now, changed))


def header_remarked(rng: random.Random) -> Iterator[Stale]:
    """A body whose function gets a remark at its header; nothing else changes."""
    read = a_file(rng)
    header, first, end = rng.choice(bodies(read))
    changed = touched(rng, read, first, end)
    arguments = None if changed is None else edit(read, changed)
    if changed is None or arguments is None:
        return
    now = list(read)
    now[header] = Line(read[header].text + "  # noqa")
    if read[header].text in arguments["old_string"]:
        return
    yield Stale("", "py", joined(read), joined(now), "edit_file", arguments, joined(now, changed))


def bodies_swapped(rng: random.Random) -> Iterator[Stale]:
    """Two functions give each other their bodies: what was meant for the one stands below the other's name."""
    read = a_file(rng)
    some = [one for one in bodies(read) if one[0] + 1 == one[1]]
    pairs = [(a, b) for a in some for b in some if a[2] <= b[0]]
    if not pairs:
        return
    (_, first, end), (_, other, stop) = rng.choice(pairs)
    changed = touched(rng, read, first, end)
    call = None if changed is None else sent(rng, read, changed)
    # A line that both have is changed below the name that was meant, whichever body it came from.
    if (
        changed is None
        or call is None
        or {one.text for one in changed} & {one.text for one in read[other:stop]}
    ):
        return
    now = [*read[:first], *read[other:stop], *read[end:other], *read[first:end], *read[stop:]]
    yield Stale("", "py", joined(read), joined(now), *call, None)


def copied_below_an_equal_header(rng: random.Random) -> Iterator[Stale]:
    """A function is put into a second class as it is, and the first may be rewritten."""
    read = a_file(rng)
    header, first, end = rng.choice(bodies(read))
    changed = touched(rng, read, first, end)
    call = None if changed is None else sent(rng, read, changed)
    if changed is None or call is None or "old_string" not in call[1]:
        return
    depth, _ = named(read[header])
    other = [Line("class Other:"), *(Line(one.text) for one in read[header:end]), Line("")]
    if not depth:
        other = [other[0], *(Line("    " + one.text) for one in other[1:])]
    mine = read[header:end]
    if rng.random() < 0.5:
        mine = [read[header], *rewritten(rng, depth + "    ", rng.randint(1, 6))]
    now = [*read[:header], *mine, *read[end:]]
    tops = [at for at, one in enumerate(now) if one.text.startswith(("class ", "def "))]
    at = rng.choice([*tops, len(now)])
    now[at:at] = other
    right = joined(now, changed) if set(changed) <= set(now) else None
    yield Stale("", "py", joined(read), joined(now), *call, right)


def a_list(rng: random.Random) -> Iterator[Stale]:
    """Lines of one kind, sorted anew with some that came and some that went."""
    words = [f"{a}_{b}" for a in NAMES for b in NAMES]
    shape = rng.choice(["{} = {}", "    '{}': {},", "- {} ({})", "export const {} = {};"])
    some = rng.sample(words, rng.randint(8, 30))
    read = [Line(shape.format(word, rng.randint(0, 9))) for word in sorted(some)]
    mine = rng.choice(read)
    changed = {mine: mine.text + rng.choice(["0", " ", "!"])}
    call = sent(rng, read, changed)
    kept = [one for one in read if rng.random() < 0.9]
    fresh = [
        Line(shape.format(rng.choice(words), rng.randint(0, 9))) for _ in range(rng.randint(0, 4))
    ]
    now = [*kept, *fresh]
    way = rng.choice(["sort", "reverse", "shuffle", "end"])
    if way == "shuffle":
        rng.shuffle(now)
    elif way != "end":
        now.sort(key=lambda one: one.text, reverse=way == "reverse")
    if call is None or joined(now) == joined(read):
        return
    if mine not in now and any(one.text == mine.text for one in fresh):
        return  # In a list in another order nobody can tell it from the one that went.
    # Lines are told apart by what they are and not by their text: an equal one that came is another.
    right = joined(now, changed) if mine in now else None
    yield Stale("", "txt", joined(read), joined(now), *call, right)


def everywhere(rng: random.Random) -> Iterator[Stale]:
    """A word that is to be replaced in every place; some of them have come or gone since."""
    read = a_file(rng)
    words = re.findall(r"\b[a-z_]{4,}\(", joined(read))
    if not words:
        return
    word = rng.choice(words)
    now = list(read)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(now))
        if rng.random() < 0.6:
            now.insert(at, Line(f"{indentation(now, at)}{word}{rng.randint(0, 9)})"))
        elif word not in now[at].text or rng.random() < 0.5:
            del now[at]
    text = joined(now)
    arguments = {"old_string": word, "new_string": f"other.{word}", "replace_all": True}
    right = text.replace(word, f"other.{word}") if word in text else None
    if text != joined(read):
        yield Stale("", "py", joined(read), text, "edit_file", arguments, right)


def put_back(rng: random.Random) -> Iterator[Stale]:
    """The session's own change is taken away, as Git does, and made once more."""
    read = a_file(rng)
    changed = touched(rng, read, 0, len(read) - 1)
    arguments = None if changed is None else edit(read, changed)
    if changed is None or arguments is None:
        return
    text = joined(read)
    if rng.random() < 0.4:
        more = "".join(line.text + "\n" for line in rewritten(rng, "", rng.randint(1, 3)))
        arguments |= {"new_string": arguments["old_string"] + more}
    right = text.replace(arguments["old_string"], arguments["new_string"])
    yield Stale("", "py", text, text, "edit_file", arguments, right, first=arguments)


def written_again(rng: random.Random) -> Iterator[Stale]:
    """A whole text that the session wrote before, of a file in which something else stands by now."""
    read = a_file(rng)
    changed = touched(rng, read, 0, len(read) - 1)
    if changed is None:
        return
    mine = joined(read, changed)
    now = joined(read) if rng.random() < 0.5 else "".join(joined(read).splitlines(True)[:-2])
    if now == mine:
        return
    again = rng.random() < 0.5
    arguments = {"content": mine}
    right = mine if again else None
    yield Stale("", "py", joined(read), now, "write_file", arguments, right, arguments, again)


def equal_hunks(rng: random.Random) -> Iterator[Stale]:
    """A patch without numbers for each of several equal places, or for one less of them."""
    count = rng.randint(2, 5)
    block = [f"  {word}();" for word in rng.sample(NAMES, rng.randint(1, 3))]
    lines: list[str] = []
    for name in rng.sample(NAMES, count):
        lines += [f"{name} {{", *block, "}", *[""] * rng.randint(0, 1)]
    missing = rng.random() < 0.5
    hunk = "@@\n" + "".join(f" {one}\n" for one in block[:-1]) + f"-{block[-1]}\n+  changed();\n"
    hunks = hunk * (count - missing)
    text = "\n".join(lines) + "\n"
    patch = f"*** Begin Patch\n*** Update File: {{path}}\n{hunks}*** End Patch\n"
    right = None if missing else text.replace(block[-1], "  changed();")
    yield Stale("", "ts", text, text, "patch_apply", {"patch": patch}, right)


FILES = sources(60)[:60]

SERIES: dict[str, Callable[[random.Random], Iterator[Stale]]] = {
    "uniform entries, one added above": lambda rng: uniform(rng, added_above),
    "uniform entries, one added below": lambda rng: uniform(rng, added_below),
    "uniform entries, one removed above": lambda rng: uniform(rng, removed_above),
    "uniform entries, one removed below": lambda rng: uniform(rng, removed_below),
    "uniform entries, itself removed": lambda rng: uniform(rng, removed_itself),
    "uniform entries, itself renamed, one added": lambda rng: uniform(rng, renamed_and_added),
    "uniform entries, itself moved": lambda rng: uniform(rng, reordered),
    "values swapped": values_swapped,
    "body copied aside, original rewritten": copied_aside,
    "function copied beside": copied_beside,
    "repeated hunk, lines added or removed above": moved_by_lines_above,
    "repeated hunk, its place rewritten": place_rewritten,
    "ordinary changes elsewhere": elsewhere,
    "both neighbours rewritten": neighbours_changed,
    "a remark at the header": header_remarked,
    "bodies swapped": bodies_swapped,
    "copied below an equal header": copied_below_an_equal_header,
    "a list sorted anew": a_list,
    "replaced everywhere": everywhere,
    "put back, and made again": put_back,
    "a whole text, written again": written_again,
    "equal hunks in order": equal_hunks,
}
MUST_REFUSE = (
    "uniform entries, itself removed",
    "values swapped",
    "body copied aside, original rewritten",
    "repeated hunk, its place rewritten",
    "bodies swapped",
)


def cases(count: int, seed: int) -> Iterator[Stale]:
    """So many cases of each series."""
    for series, make in SERIES.items():
        rng = random.Random(f"{seed} {series}")
        made = 0
        while made < count:
            for case in make(rng):
                made += 1
                yield replace(case, series=series)
