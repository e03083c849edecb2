"""Searches straight after whatever can happen to files, with an index and without; answers must be the same.

``changes`` disturbs a small tree and searches it at once, again and again.  ``patterns`` searches a tree of odd
files for generated patterns.  ``switches`` has Git exchange many files between two searches.

Run as a program: ``index_histories.py --tries N [--seed S]``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import SearchFailedError
from filepact.fs.trigrams import TrigramIndex
from filepact.text.query import Query
from filepact.values import replace
from filepact_index import open_indexes, search_index, text_index
from tests.fs.test_trigrams import ATOMS
from tests.properties.tree_changes import (
    disturbed,
    files_in,
    folders_in,
    git,
    git_does,
    line,
    mounted,
    unmount,
)

AGENT = Session("s1", Actor("agent", "somebody"))
PATTERNS = (
    "createdAt",
    "alpha beta",
    "gamma.*delta",
    r"handle_\w+",
    "TODO|render",
    "k",
    "stone",
    "\u00e9t\u00e9",
)
EVERYTHING = (
    (
        *((pattern, "**/*", "content") for pattern in PATTERNS),
        (PATTERNS[0], "**/*.txt", "files"),
        (PATTERNS[0], "!**/*.py", "count"),
    ),
    ("**/*", "**/*.py", "!*.txt", "**/", "**/f*/**"),
    (1, 2, 4),
)
"""What is asked about texts, names and pictures of the tree."""


def reader(workspace, *, indexed=True):
    one = workspace.reader(AGENT, page=100_000)
    if not indexed:
        one._indexes = None
    return one


def answers(workspace, *, indexed, base=".", ask=None):
    one = reader(workspace, indexed=indexed)
    searches, globs, depths = ask or EVERYTHING
    found = [
        told(
            one.grep(
                base,
                Query.compile(pattern),
                glob=glob,
                limit=10_000,
                offset=0,
                context=1,
                mode=mode,
            )
        )
        for pattern, glob, mode in searches
    ]
    names = [one.find(base, glob, limit=10_000) for glob in globs]
    drawn = [
        one.tree(base, depth=depth, include_files=True, pattern=None, budget=1_000)
        for depth in depths
    ]
    return found, names, drawn


def some_of_everything(dice):
    """A few of each kind, always all names: most of a history is spent in searches."""
    searches, globs, depths = EVERYTHING
    return dice.sample(searches, 2), (globs[0], dice.choice(globs[1:])), (dice.choice(depths),)


def told(found):
    """An answer to a search, without what it does not promise.

    One that ends before all was looked into may have met fewer files that hold no text: the index knows them beforehand.
    """
    return replace(found, binary=0) if found.total_is_floor else found


def check(workspace, base="."):
    """Compare the answers, and the totals in them, at this very moment."""
    assert answers(workspace, indexed=True, base=base) == answers(
        workspace, indexed=False, base=base
    )


def plant(folder, dice, files=30):
    folders = [folder]
    for number in range(files // 4):
        made = dice.choice(folders) / f"f{number}"
        made.mkdir()
        folders.append(made)
    for number in range(files):
        name = f"{dice.choice('abc')}{number}.{dice.choice(['py', 'txt', 'md'])}"
        (dice.choice(folders) / name).write_text(line(dice))


def history(workspace, root, seed, steps, *, quick=False, mounts=False):
    """So many changes, each looked for at once.

    Args:
        workspace: Over the root.
        root: The folder.
        seed: Which changes.
        steps: How many.
        quick: Whether only a few searches follow each.
        mounts: As for `disturb`.
    """
    dice = random.Random(seed)
    done = []
    for _ in range(steps):
        if len(files_in(root)) > (120 if quick else 250):
            unmount(root)
            for one in folders_in(root)[:1]:
                shutil.rmtree(one)
        done.append(disturbed(root, dice, mounts=mounts))
        if dice.random() < 0.3:
            workspace._indexes.settle()
        if dice.random() < 0.3:
            done.append(disturbed(root, dice, mounts=mounts))
        base = "."
        if dice.random() < 0.2:
            beyond = tuple(mounted(root))
            bases = [one for one in folders_in(root) if not f"{one}/".startswith(beyond)]
            base = str(dice.choice([root, *bases]).relative_to(root))
        few = some_of_everything(dice) if quick else EVERYTHING
        assert answers(workspace, indexed=True, base=base, ask=few) == answers(
            workspace, indexed=False, base=base, ask=few
        ), (seed, done)


@contextmanager
def opened(folder):
    """A root in a folder, and a workspace over it whose index is as full as it gets."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    workspace = open_workspace(str(root), state_dir=str(folder / "state"))
    try:
        yield root, workspace
    finally:
        workspace.close()
        unmount(root)


def fill(workspace, shared_by=""):
    workspace.keep_search_index(partial(open_indexes, shared_by=shared_by))
    reader(workspace).find(".", "**/*", limit=1)
    workspace._indexes.settle()


def changes(tries, seed, steps=50, *, mounts=False):
    """Histories of so many changes in all; how many were searched after."""
    done = 0
    while done < tries:
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (root, workspace):
            dice = random.Random(f"{seed}-{done}")
            plant(root, dice, files=dice.choice([10, 40]))
            if dice.random() < 0.6:
                git(root, "init", "-q", "-b", "b0")
                git_does("git commit", root, dice)
            fill(workspace)
            some = min(steps, tries - done)
            history(workspace, root, f"{seed}-{done}", some, quick=True, mounts=mounts)
        done += some
    return done


def restarts(tries, seed, steps=8):
    """Histories in which servers end and start between changes, and take over what others have left; how many changes."""
    with (
        patch.object(search_index, "_LEAST_KEPT", 1),
        patch.object(search_index, "_SAVE_EVERY", 0),
        patch.object(text_index, "_RACY_NANOSECONDS", 20_000_000),
    ):
        done = 0
        while done < tries:
            with tempfile.TemporaryDirectory() as folder:
                done += _restarts(Path(folder), random.Random(f"{seed}-{done}"), steps)
        return done


def _restarts(folder, dice, steps):
    (folder / "root").mkdir()
    plant(folder / "root", dice, files=dice.choice([10, 60]))
    for name, data in ODD_FILES.items():
        (folder / "root" / name).write_bytes(data)
    done = 0
    for turn in range(5):
        with opened(folder) as (root, workspace), opened(folder) as (_, beside):
            for one in (workspace, beside):
                fill(one, "1")
                check(one)
            for _ in range(dice.randint(0, steps)):
                done += 1
                disturbed(root, dice)
                one = dice.choice([workspace, beside])
                few = some_of_everything(dice)
                assert answers(one, indexed=True, ask=few) == answers(
                    one, indexed=False, ask=few
                ), (turn, done)
                if dice.random() < 0.4:
                    one._indexes.settle()
        for _ in range(dice.randint(0, steps)):
            done += 1
            disturbed(root, dice)
    return done


ODD_FILES = {
    "crlf.txt": b"abc foo\r\nfoo\r\n\r\nbafo",
    "cr.txt": b"foo\rabc\rfoo oo",
    "latin.txt": "foo \u00e9t\u00e9 abc \u00df".encode("latin-1"),
    "wide.txt": "foo abc \u00e9\nFOO".encode("utf-16"),
    "mark.txt": "\ufefffoo abc\n".encode(),
    "null.bin": b"foo\0abc",
    "escape.txt": b"foo \x1b$B abc",
    "broken.txt": b"foo \xff\xfe abc \xc3",
    "kelvin.txt": "fo\u212a \u017f abc".encode(),
    "empty.txt": b"",
    "blank.txt": b"\n\n",
    "long.txt": b"foo abc " * 40_000,
    "key.txt": b"foo\n-----BEGIN PRIVATE KEY-----\n" + b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3,
    "token.txt": b"foo ghp_" + b"a1B2" * 9,
    ".env": b"foo abc",
}


def patterns(tries, seed):
    """Search for generated patterns; how many of them were patterns, and for how many it was known what they need."""
    dice = random.Random(seed)
    done = planned = 0
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (root, workspace):
        for name, data in ODD_FILES.items():
            (root / name).write_bytes(data)
        os.link(root / "crlf.txt", root / "linked.txt")
        for number in range(30):
            pieces = (
                "abc",
                "foo",
                "ab",
                "FOO",
                "bafo",
                " ",
                "k",
                "oo",
                "\n",
                "\t",
                "1",
                ".",
                "-",
                "]",
                "{",
            )
            text = "".join(dice.choice(pieces) for _ in range(dice.randint(1, 200)))
            (root / f"{number}.txt").write_text(text)
        fill(workspace)
        while done < tries:
            pattern = "".join(dice.choice(ATOMS) for _ in range(dice.randint(1, 9)))
            how = {
                "case_sensitive": dice.random() < 0.4,
                "literal": dice.random() < 0.1,
                "multiline": dice.random() < 0.2,
            }
            try:
                query = Query.compile(pattern, **how)
            except SearchFailedError:
                continue
            done += 1
            planned += bool(query.needs)
            mode = dice.choice(["content", "files", "count"])
            asked = {"glob": "**/*", "limit": 100_000, "offset": 0, "context": 1, "mode": mode}
            found = [
                told(reader(workspace, indexed=indexed).grep(".", query, **asked))
                for indexed in (True, False)
            ]
            assert found[0] == found[1], (pattern, how, mode)
    return done, planned


def switches(files, times):
    """Git exchanges branches between searches; how often."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (root, workspace):
        git(root, "init", "-q", "-b", "one")
        for branch in ("one", "two"):
            for number in range(files):
                place = root / f"d{number % 97}" / f"e{number % 7}"
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{branch if number % 3 == 0 else 'both'}{number}.txt").write_text(
                    f"{branch} createdAt{number}\n"
                )
            git(root, "add", "-A")
            git(root, "commit", "-q", "-m", branch)
            if branch == "one":
                git(root, "checkout", "-q", "-b", "two")
                git(root, "rm", "-q", "-r", "d0", "d5")
        fill(workspace)
        for turn in range(times):
            git(root, "checkout", "-q", ("one", "two")[turn % 2])
            for base in (".", "d1/e1"):
                few = ("createdAt", "one createdAt12", "two", "absent there")
                ask = [(pattern, "**/*", "content") for pattern in few], *EVERYTHING[1:]
                assert answers(workspace, indexed=True, base=base, ask=ask) == answers(
                    workspace, indexed=False, base=base, ask=ask
                ), (turn, base)
            if turn % 3 == 0:
                workspace._indexes.settle()
    return times


def main() -> int:
    parser = argparse.ArgumentParser(prog="index_histories", description="Searches after changes.")
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mounts", action="store_true", help="mount folders too; wants rights")
    given = parser.parse_args()
    if TrigramIndex.open() is None:
        parser.error("filepact was built without a C compiler: there is no index of texts to try")
    if not given.mounts and (apart := shutil.which("unshare")):
        can = subprocess.run(
            [apart, "--mount", "mount", "--help"], capture_output=True, check=False
        )
        if can.returncode == 0:
            # Where nobody else sees what is mounted, and nothing of it stays.
            program = [sys.executable, "-m", "tests.properties.index_histories"]
            words = [apart, "--mount", *program, *sys.argv[1:], "--mounts"]
            os.execv(apart, words)  # noqa: S606 - the program itself, once more
    start = time.monotonic()
    done = changes(given.tries, given.seed, mounts=given.mounts)
    print(f"{done:,} changes, each searched for at once, 0 answers behind", flush=True)
    done, planned = patterns(given.tries // 2, given.seed)
    print(f"{done:,} patterns, {planned:,} with known needs, 0 differences", flush=True)
    done = restarts(given.tries // 2, given.seed)
    print(f"{done:,} changes while servers ended and started, 0 answers behind", flush=True)
    files = given.tries * 3
    done = switches(files, 6)
    print(
        f"{done} switches of branches of {files:,} files, 0 differences, {time.monotonic() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
