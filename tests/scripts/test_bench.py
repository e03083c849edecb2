"""`python -m bench` in its smallest form: everything is measured, recorded and drawn, and nothing is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench.measure import Timing, by_turns, spread
from bench.picture import draw, overview, picture
from bench.record import problems
from bench.report import joined, tables
from bench.tree import plant
from tests.hostile.sweeps import often
from tests.node_programs import NodeError, install

PROJECT = Path(__file__).resolve().parent.parent.parent
SVG = "{http://www.w3.org/2000/svg}"


class Dice:
    """Draws nothing: whoever is named first is first."""

    def sample(self, both, _):
        return both


def recorded() -> dict[str, Any]:
    one = {
        "operation": "read <4 kB>",
        "tree": "2k",
        "peer": "Node",
        "agree": True,
        "rounds": 3,
        **{
            side: {"wall": [1.0, 2.0, 3.0], "cpu": [1.0, 1.5, 2.0]}
            for side in ("ours", "theirs", "ratio")
        },
    }
    return {
        "format": 1,
        "when": "2026-11-24T12:00:00+00:00",
        "seed": 1,
        "machine": {
            "processors": 2,
            "processor": "any",
            "file system": "ext4",
            "load at the start": 0.1,
        },
        "versions": {"python": "3.11"},
        "missing": {},
        "results": [one],
        "growth": [],
        "stale": [],
        "facts": {},
    }


def test_two_sides_are_measured_by_turns_and_compared_pair_by_pair():
    done = []

    def side(name, seconds):
        def once(turn):
            done.append((name, turn))
            return Timing(seconds, seconds / 2)

        return once

    pairs = by_turns(3, side("ours", 1.0), side("theirs", 4.0), warm=1, dice=Dice())
    assert done == [(name, turn) for turn in range(4) for name in ("ours", "theirs")]
    assert len(pairs.ours) == 3
    assert pairs.ratio("wall").middle == 4.0
    assert pairs.to_json()["ours"]["cpu"] == [500.0, 500.0, 500.0]


def test_a_spread_is_a_median_between_its_quartiles():
    found = spread([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.low, found.middle, found.high) == (2.0, 3.0, 4.0)


def test_a_tree_is_the_same_for_the_same_seed(tmp_path):
    def planted(name, seed):
        folder = tmp_path / name
        folder.mkdir()
        plant(folder, files=12, seed=seed)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    first = planted("first", 1)
    assert len(first) == 12
    assert planted("second", 1) == first
    assert planted("third", 2) != first


def test_what_is_missing_in_a_record_is_named():
    assert problems(recorded()) == []
    assert problems({**recorded(), "when": "yesterday"})
    without = recorded()
    del without["results"][0]["ratio"]["cpu"]
    assert problems(without)
    wrong = recorded()
    wrong["results"][0]["ours"]["wall"] = [3.0, 2.0, 1.0]
    assert problems(wrong)
    assert problems([])


def test_a_picture_shows_each_ratio_and_is_readable_on_dark_paper(tmp_path):
    for text in (overview(recorded()), picture(recorded(), "read <4 kB>")):
        root = ET.fromstring(text)  # noqa: S314 - our own
        said = " ".join("".join(one.itertext()) for one in root.iter(f"{SVG}text"))
        assert "read <4 kB>" in said
        assert "2026-11-24" in said
        assert root.findall(f"{SVG}rect[@class='ahead']")
        assert "prefers-color-scheme: dark" in text
    assert [path.name for path in draw(recorded(), tmp_path)] == ["overview.svg", "read-4-kb.svg"]


def test_records_of_one_machine_are_told_as_one():
    both = joined([recorded(), {**recorded(), "facts": {"sync, ms": 1.5}, "missing": {"rg": "no"}}])
    assert problems(both) == []
    text = "\n".join(tables(both))
    assert text.count("| read <4 kB>, 2k | Node | 2.00 / 2.00 | 2.00 (1.00 to 3.00) | 1.50 |") == 2
    assert "sync, ms: 1.5" in text
    assert "left out: rg: no" in text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_quick_form_measures_what_is_asked_for_and_finds_answers_alike_and_none_stale(tmp_path):
    try:
        programs = install()
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    peers = tmp_path / "peers"
    (peers / "npm").mkdir(parents=True)
    (peers / "npm" / "node_modules").symlink_to(programs.modules)
    parts = ("start", "calls", "stale", *often((), ("growth",)))
    words = [sys.executable, "-m", "bench", "--quick", "--parts", *parts]
    done = subprocess.run(
        [*words, "--peers", str(peers), "--out", str(tmp_path / "out"), "--work", str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert problems(record) == []
    assert record["missing"] == {}
    operations = {one["operation"] for one in record["results"]}
    assert {"start to first answer", "read 4 kB", "edit of 4 kB", "write 4 kB"} <= operations
    assert all(one["agree"] for one in record["results"])
    assert sum(one["asked"] for one in record["stale"]) > 5
    assert all(one["wrong"] == 0 for one in record["stale"])
    grown = {one["work"] for one in record["growth"]}
    assert grown >= often(set(), {"read 4 kB", "history", "first 50 lines"})
    pictures = {path.name for path in (tmp_path / "out").glob("*.svg")}
    assert len(pictures) == len(operations) + 1


def test_every_part_finds_what_it_needs_without_the_paths_of_pytest() -> None:
    names = [f"bench.{one.stem}" for one in sorted((PROJECT / "bench").glob("*.py"))]
    program = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
