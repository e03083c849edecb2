"""Damaged patches for the two parsers and the applier: nothing but a refusal or a result.

    python -m tests.fuzz.fuzz_patches [--seconds N] [--seed N]

Starts from the patches in ``tests/text/patches``, mutates them, and applies what can be read to
texts made from the patch's own lines.  A crash, a case that takes longer than a second of
processor time, or growing memory ends it with the case on the standard output.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from filepact.errors import FilepactError
from filepact.text.patch import FilePatch, apply, created_text, parse, reverse

SEEDS = Path(__file__).resolve().parent.parent / "text" / "patches"
MOST_BYTES = 30_000
MOST_SECONDS = 1.0
MOST_MESSAGE = 20_000
TOKENS = (
    "@@",
    "@@ -1,3 +1,3 @@",
    "@@ -0,0 +1 @@",
    "@@ -999999999,999999999 +1 @@",
    "@@ ... @@",
    "--- a/f",
    "+++ b/f",
    "--- /dev/null",
    "+++ /dev/null",
    "diff --git a/f b/f",
    'diff --git "a/\\303\\251" "b/\\303\\251"',
    "new file mode 100644",
    "deleted file mode 100755",
    "rename from f",
    "rename to g",
    "old mode 100644",
    "\\ No newline at end of file",
    "*** Begin Patch",
    "*** End Patch",
    "*** Add File: f",
    "*** Delete File: f",
    "*** Update File: f",
    "*** Move to: g",
    "*** End of File",
    "@@ def f",
    "GIT binary patch",
    "```",
    "-- ",
    "2.39.5",
    "",
    " ",
    "+",
    "-",
    "\r",
    "\x0c",
    "\u2028",
    "\x85",
    "\x00",
    "\ud800",
    "\t",
    "é",
)


@dataclass(slots=True)
class Tally:
    """What happened to the cases of one run."""

    cases: int = 0
    malformed: int = 0
    applied: int = 0
    refused: int = 0
    slowest: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)


def seeds() -> list[str]:
    return [path.read_bytes().decode() for path in sorted(SEEDS.iterdir())]


def mutated(rng: random.Random, corpus: list[str]) -> str:
    text = rng.choice(corpus)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(11)
        if kind == 0:
            lines.insert(at, rng.choice(TOKENS))
        elif kind == 1:
            lines[at] = rng.choice(TOKENS) + lines[at]
        elif kind == 2:
            del lines[at : at + rng.randrange(1, 4)]
        elif kind == 3:
            lines[at:at] = lines[at : at + rng.randrange(1, 9)] * rng.choice((1, 2, 50))
        elif kind == 4:
            other = rng.choice(corpus).split("\n")
            start = rng.randrange(len(other))
            lines[at:at] = other[start : start + rng.randrange(1, 12)]
        elif kind == 5:
            lines[at] = lines[at][1:]
        elif kind == 6:
            lines[at] = "".join(str(rng.randrange(40)) if c.isdigit() else c for c in lines[at])
        elif kind == 7:
            rest = lines[at:]
            rng.shuffle(rest)
            lines[at:] = rest
        elif kind == 8:
            lines = [line + "\r" for line in lines]
        elif kind == 9:
            del lines[at:]
        elif lines[at]:
            where = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:where] + rng.choice(TOKENS) + lines[at][where + 1 :]
        text = "\n".join(lines)[:MOST_BYTES]
    return text


def text_for(rng: random.Random, patch: FilePatch) -> str:
    """A text that the patch may fit: its own lines, with others around and between."""
    parts: list[str] = []
    for hunk in patch.hunks:
        parts += [f"filler {n}\n" for n in range(rng.choice((0, 0, 1, 5)))]
        parts += [anchor + "\n" for anchor in hunk.anchors]
        parts += rng.choice((hunk.old, hunk.old, hunk.old, hunk.new))
        if parts and rng.random() < 0.2:
            parts[rng.randrange(len(parts))] = rng.choice(("other\n", "", "x\r\n"))
    text = "".join(parts)
    return text * rng.choice((1, 1, 1, 2, 30)) if len(text) < MOST_BYTES else text


def try_case(rng: random.Random, source: str, tally: Tally) -> None:
    """Parse and apply one patch; only refusals pass."""
    tally.cases += 1
    begin = time.process_time()
    try:
        patches = parse(source)
    except FilepactError as error:
        tally.malformed += 1
        check_refusal(error, tally)
        patches = ()
    for patch in patches[:20]:
        text = text_for(rng, patch)
        try:
            if patch.creates:
                created_text(patch)
            else:
                applied = apply(text, reverse(patch) if rng.random() < 0.3 else patch)
                applied.edits.apply(text)
            tally.applied += 1
        except FilepactError as error:
            tally.refused += 1
            check_refusal(error, tally)
    taken = time.process_time() - begin
    tally.slowest = max(tally.slowest, taken)
    if taken > MOST_SECONDS:
        raise AssertionError(f"{taken:.1f} s for one case")


def check_refusal(error: FilepactError, tally: Tally) -> None:
    tally.codes[error.code] = tally.codes.get(error.code, 0) + 1
    if not error.code.startswith("PATCH_"):
        raise AssertionError(f"{error.code} from a patch")
    if len(error.message) > MOST_MESSAGE:
        raise AssertionError(f"a message of {len(error.message)} characters")


def run(*, seed: int, seconds: float = 0.0, cases: int = 0) -> Tally:
    """Mutate and try until the time or the number of cases is over."""
    rng, corpus, tally = random.Random(seed), seeds(), Tally()
    begin, settled = time.monotonic(), 0
    while tally.cases < cases or time.monotonic() - begin < seconds:
        source = mutated(rng, corpus)
        try:
            try_case(rng, source, tally)
        except BaseException:
            print(f"case {tally.cases} of seed {seed}:\n{source!r}")
            raise
        if tally.cases == 20_000:
            settled = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - settled
    if settled and grown > 50_000:
        raise AssertionError(f"grown by {grown} KiB")
    return tally


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    print(run(seed=chosen.seed, seconds=chosen.seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
