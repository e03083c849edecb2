"""Diffs that are made are diffs that apply, here and in the programs that everybody has."""

from __future__ import annotations

import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.errors import (
    FilepactError,
    PatchAlreadyAppliedError,
    PatchAmbiguousError,
    PatchContextMismatchError,
)
from filepact.text.compare import compare_lines
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.edit import merge
from filepact.text.patch import apply, created_text, parse
from filepact.text.patch import reverse as reversed_patch
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path

bounded = settings(max_examples=3 * settings().max_examples // 2)

LINES = st.sampled_from(
    [
        "",
        "a",
        "b",
        "    return x",
        "page\x0cbreak",
        "one\u2028two",
        "next\x85line",
        "-- q",
        "++ q",
        "@@ -1 +1 @@",
        "\\ No newline at end of file",
        "diff --git a/x b/x",
        "tab\there",
        "lone\rreturn",
        "é 漢字 🙂",
    ]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"], ["\r"]]))
    parts = draw(st.lists(st.tuples(LINES, st.sampled_from(ends)), max_size=14))
    text = "".join(line + end for line, end in parts)
    return text[:-1] if draw(st.booleans()) else text


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    old = draw(texts())
    if draw(st.booleans()):
        return old, draw(texts())
    return old, draw(changed(old))


@st.composite
def changed(draw: st.DrawFn, old: str) -> str:
    parts = []
    for line in old.splitlines(keepends=True):
        kind = draw(st.integers(0, 9))
        parts.append("" if kind == 0 else f"new\n{line}" if kind == 1 else line)
    return "".join(parts)


def make(old: str, new: str, context: int = 3) -> str:
    return unified(old, new, old_name="f", new_name="f", context=context)


@bounded
@given(pairs(), st.integers(1, 4))
def test_a_diff_turns_the_old_text_into_the_new_and_back(pair: tuple[str, str], context: int):
    old, new = pair
    if old == new:
        assert make(old, new) == ""
        return
    (patch,) = parse(make(old, new, context))
    assert apply(old, patch).edits.apply(old) == new
    assert apply(new, reversed_patch(patch)).edits.apply(new) == old
    assert reversed_patch(reversed_patch(patch)) == patch


@bounded
@given(texts())
def test_a_file_is_created_and_deleted_by_its_diff(text: str):
    (patch,) = parse(unified(None, text, old_name="f", new_name="f"))
    assert patch.creates
    assert patch.new_path == "f"
    assert created_text(patch) == text
    assert apply(text, reversed_patch(patch)).edits.apply(text) == ""


@bounded
@given(pairs())
def test_a_patch_sent_with_crlf_throughout_gives_the_same_text(pair: tuple[str, str]):
    old, new = (text.replace("\r", "") for text in pair)
    if old != new:
        (patch,) = parse(make(old, new).replace("\n", "\r\n"))
        assert apply(old, patch).edits.apply(old).replace("\r", "") == new
        if "\n" in old:
            assert apply(old, patch).edits.apply(old) == new


@bounded
@given(pairs())
def test_a_lf_patch_of_a_crlf_file_leaves_no_lone_lf(pair: tuple[str, str]):
    old, new = (text.replace("\r", "") for text in pair)
    if old != new and "\n" in old and not old.startswith("\n" * len(old)):
        (patch,) = parse(make(old, new))
        crlf = old.replace("\n", "\r\n")
        assert apply(crlf, patch).edits.apply(crlf) == new.replace("\n", "\r\n")


@bounded
@given(
    st.lists(st.sampled_from("abcde"), max_size=12), st.lists(st.sampled_from("abcde"), max_size=12)
)
def test_regions_are_shortest_and_rebuild_the_new_lines(old: list[str], new: list[str]):
    regions = compare_lines(old, new)
    rebuilt, at = [], 0
    for region in regions:
        assert region.old_start >= at
        rebuilt += old[at : region.old_start] + new[region.new_start : region.new_end]
        at = region.old_end
    assert rebuilt + old[at:] == new
    removed = sum(region.old_end - region.old_start for region in regions)
    assert len(old) - removed == longest_common(old, new)


def longest_common(old: list[str], new: list[str]) -> int:
    row = [0] * (len(new) + 1)
    for line in old:
        diagonal = 0
        for j, other in enumerate(new):
            above = row[j + 1]
            row[j + 1] = diagonal + 1 if line == other else max(above, row[j])
            diagonal = above
    return row[-1]


@bounded
@given(pairs(), st.integers(1, 200))
def test_a_cut_diff_is_never_longer_than_its_limit(pair: tuple[str, str], limit: int):
    diff = make(*pair)
    cut = cut_diff(diff, limit)
    assert len(cut) <= limit
    assert cut == diff or len(diff) > limit
    assert cut_diff(diff, 0) == diff


@bounded
@given(texts(), texts())
def test_merging_with_a_side_that_did_not_change_gives_the_other(base: str, side: str):
    assert merge(base, base, side).text == side
    assert merge(base, side, base).text == side
    assert merge(base, side, side).text == side


@bounded
@given(st.data())
def test_a_merge_without_conflict_keeps_both_changes(data: st.DataObject):
    base = data.draw(texts())
    mine, theirs = data.draw(changed(base)), data.draw(changed(base))
    result = merge(base, mine, theirs)
    swapped = merge(base, theirs, mine)
    assert result.text == swapped.text
    if result.text is not None and mine != base:
        # What they did to the base is what the merge did to mine, and nothing else.
        assert result.text.count("new\n") <= mine.count("new\n") + theirs.count("new\n")


@bounded
@given(st.integers(5, 40), st.data())
def test_edits_of_different_lines_are_both_kept(size: int, data: st.DataObject):
    places = data.draw(st.permutations(range(size)))
    own, other = set(places[: size // 3]), set(places[size // 3 : 2 * size // 3])
    lines = [f"line {i}\n" for i in range(size)]

    def text(*changes: tuple[set[int], str]) -> str:
        return "".join(
            next((f"{word} {i}\n" for where, word in changes if i in where), line)
            for i, line in enumerate(lines)
        )

    merged = merge("".join(lines), text((own, "mine")), text((other, "theirs")))
    assert merged.text == text((own, "mine"), (other, "theirs"))


def random_text(rng: random.Random) -> str:
    words = ["a", "b", "", "-- q", "++ q", "page\x0c", "x\u2028y", "n\x85", "deep", "@@ -1 +1 @@"]
    end = rng.choice(["\n", "\n", "\r\n"])
    text = "".join(rng.choice(words) + end for _ in range(rng.randrange(1, 25)))
    return text.removesuffix("\n") if rng.random() < 0.25 else text


def random_change(rng: random.Random, old: str) -> str:
    lines = old.split("\n")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines))
        lines[at : at + rng.randrange(2)] = ["new"] * rng.randrange(3)
    return "\n".join(lines)


NAMES = [
    "plain.txt",
    "with blank.txt",
    "two  blanks and more",
    " blank at both ends ",
    'quo"te',
    "apo'strophe",
    "back\\slash",
    "é漢",
    "e\u0301 decomposed",
    "deep/er/file",
    "-dash",
    "--- a",
    "+++ b",
    "@@ -1 +1 @@",
    "a/b/a",
    "tab\there",
]


def cases(count: int) -> list[tuple[str, str | None, str | None]]:
    rng = random.Random(20)
    found: list[tuple[str, str | None, str | None]] = []
    while len(found) < count:
        old = random_text(rng)
        new = random_change(rng, old)
        if old in ("", new) or new == "":
            continue
        name = f"{len(found)}/{rng.choice(NAMES)}"
        kind = rng.randrange(10)
        found.append((name, None if kind == 0 else old, None if kind == 1 else new))
    return found


def write(root: Path, name: str, text: str | None) -> None:
    if text is not None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())


def read(root: Path, name: str) -> str | None:
    return (root / name).read_bytes().decode() if (root / name).exists() else None


@pytest.mark.parametrize(
    "command", [["git", "apply", "--whitespace=nowarn"], ["patch", "-p1", "-s", "--binary"]]
)
@pytest.mark.parametrize("back", [False, True])
def test_other_programs_apply_our_diffs_to_the_same_bytes(
    tmp_path: Path, command: list[str], back: bool
):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    table = cases(300)
    diff = ""
    for name, old, new in table:
        diff += unified(old, new, old_name=name, new_name=name)
        write(tmp_path, name, new if back else old)
    flags = ["-R"] if back else []
    done = subprocess.run(
        [*command, *flags], cwd=tmp_path, input=diff.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    for name, old, new in table:
        assert read(tmp_path, name) == (old if back else new), name


@pytest.mark.parametrize("back", [False, True])
def test_names_are_read_back_as_they_were_written(back: bool):
    for name in NAMES:
        diff = unified("a\n", "b\n", old_name=name, new_name=name)
        (patch,) = parse(diff)
        patch = reversed_patch(patch) if back else patch
        assert (patch.old_path, patch.new_path) == (name, name)


def drifted(rng: random.Random, text: str) -> str:
    """The text after somebody else worked on it, mostly above and below."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            lines[at:at] = [f"drift {n}\n" for n in range(rng.randrange(1, 9))]
        elif kind == 1:
            del lines[at : at + rng.randrange(1, 3)]
        else:
            lines[at : at + 1] = [f"other {at}\n"]
    return "".join(lines)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [80, *[250] * often(0, 1)])
def test_a_drifted_file_is_patched_as_gnu_patch_does_or_not_at_all(tmp_path: Path, count: int):
    """Where both apply, the bytes are the same; what GNU patch does by fuzz may be refused."""
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    rng = random.Random(11)
    applied = refused = 0
    for _ in range(count):
        old = "".join(f"line {n} {rng.choice('abc')}\n" for n in range(rng.randrange(10, 60)))
        new = random_change(rng, old)
        now = drifted(rng, old)
        if new == old or not now:
            continue
        diff = make(old, new)
        (patch,) = parse(diff)
        (tmp_path / "f").write_bytes(now.encode())
        done = subprocess.run(
            ["patch", "-p1", "-s", "-f", "-r-", "--no-backup-if-mismatch", "f"],
            cwd=tmp_path,
            input=diff.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            continue
        try:
            mine = apply(now, patch).edits.apply(now)
        except FilepactError:
            refused += 1
            continue
        applied += 1
        assert mine == read(tmp_path, "f"), diff
    assert applied > count // 5
    assert refused > count // 50


@bounded
@given(pairs(), st.integers(0, 5), st.integers(0, 5))
def test_lines_above_and_below_do_not_change_what_a_patch_does(
    pair: tuple[str, str], above: int, below: int
):
    old, new = (text.replace("\r", "") for text in pair)
    if old == new or not old.endswith("\n") or not new.endswith("\n"):
        return
    head = "".join(f"above {n}\n" for n in range(above))
    tail = "".join(f"below {n}\n" for n in range(below))
    (patch,) = parse(make(old, new))
    text = head + old + tail
    try:
        assert apply(text, patch).edits.apply(text) == head + new + tail
    except (PatchAmbiguousError, PatchContextMismatchError, PatchAlreadyAppliedError):
        # Only repeated lines leave room for doubt.
        assert len(set(old.splitlines())) < len(old.splitlines()) or len(old.splitlines()) < 4


def test_we_apply_what_git_prints(tmp_path: Path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    table = cases(300)
    for name, old, new in table:
        write(tmp_path / "old", name, old)
        write(tmp_path / "new", name, new)
    done = subprocess.run(
        [
            "git",
            "diff",
            "--no-index",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--text",
            "old",
            "new",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    patches = parse(done.stdout.decode())
    by_name = {(p.new_path or p.old_path or "").split("/", 1)[1]: p for p in patches}
    assert len(by_name) == len(table)
    for name, old, new in table:
        patch = by_name[name]
        if old is None:
            assert patch.creates
            assert created_text(patch) == new
        else:
            assert apply(old, patch).edits.apply(old) == (new or "")
            assert patch.deletes == (new is None)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [40, *[150] * often(0, 1)])
def test_a_merge_agrees_with_git_wherever_git_has_no_conflict(tmp_path: Path, count: int):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    rng = random.Random(4)
    agreed = conflicts = 0
    for _ in range(count):
        base = "".join(f"{rng.choice('abcdefghijklmnop')}{i % 7}\n" for i in range(20))
        mine, theirs = random_change(rng, base), random_change(rng, base)
        for name, text in (("base", base), ("mine", mine), ("theirs", theirs)):
            write(tmp_path, name, text)
        done = subprocess.run(
            ["git", "merge-file", "-p", "mine", "base", "theirs"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        result = merge(base, mine, theirs)
        conflicts += result.text is None
        if done.returncode == 0 and result.text is not None:
            agreed += 1
            assert result.text == done.stdout.decode()
    assert agreed > count // 3
    assert conflicts
