"""What records say, as tables for people: into bench/README.md, and the picture beside the documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import picture

__all__ = ["joined", "tables", "write"]

_HERE = Path(__file__).resolve().parent
_BEGIN = "<!-- figures: python -m bench -->"
_END = "<!-- end of the figures of python -m bench -->"

Record = Mapping[str, Any]


def joined(records: Sequence[Record]) -> dict[str, Any]:
    """Records of one machine as one: the first says when and where, and all add what they measured."""
    first = dict(records[0])
    for name in ("results", "growth", "stale"):
        first[name] = [one for record in records for one in record[name]]
    for name in ("versions", "facts", "missing"):
        backwards = reversed(records)
        first[name] = {key: value for record in backwards for key, value in record[name].items()}
    loads = [record["machine"]["load at the start"] for record in records]
    first["machine"] = {**first["machine"], "load at the start": max(loads)}
    return first


def tables(record: Record) -> list[str]:
    """All figures of a record as lines of Markdown."""
    machine, versions = record["machine"], record["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        (
            f"Measured {record['when'][:10]} on {machine['processors']} processors "
            f"({machine['processor']}), {machine['file system']}, load {machine['load at the start']}; {named}."
        ),
        "",
        "| work | beside | ours / theirs, ms | ratio by the clock | on processors | wanted |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in record["results"]:
        wall, cpu = one["ratio"]["wall"], one["ratio"]["cpu"]
        both = f"{_number(one['ours']['wall'][1])} / {_number(one['theirs']['wall'][1])}"
        goal = one.get("goal") or ""
        lines.append(
            f"| {one['operation']}, {one['tree']} | {one['peer']} | {both} "
            f"| {_number(wall[1])} ({_number(wall[0])} to {_number(wall[2])}) | {_number(cpu[1])} "
            f"| {goal} |"
        )
    lines += [
        "",
        "| there is more | work | processor time, much by little | at most |",
        "| --- | --- | --- | --- |",
    ]
    for one in record["growth"]:
        low, middle, high = one["ratio"]["cpu"]
        lines.append(
            f"| {one['grows']} | {one['work']} | {middle:.2f} ({low:.2f} to {high:.2f}) "
            f"| {one['bound'] or ''} |"
        )
    lines.append("")
    for one in record["stale"]:
        lines += [f"Stale answers, {one['tree']}: {one['wrong']} of {one['asked']}.", ""]
    lines += [f"- {said}: {value}" for said, value in record["facts"].items()]
    lines += [f"- left out: {name}: {why}" for name, why in record["missing"].items()]
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def write(paths: Sequence[Path]) -> None:
    """Put what records say into the README of this folder, and draw the picture for the documents."""
    record = joined([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    readme = _HERE / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    text = "\n".join([_BEGIN, "", *tables(record), "", _END])
    readme.write_text(f"{before}{text}{after}", encoding="utf-8")
    image = _HERE.parent / "docs" / "images" / "bench.svg"
    image.parent.mkdir(exist_ok=True)
    image.write_text(picture.overview(record), encoding="utf-8")
    kept = json.dumps(record, indent=1, ensure_ascii=False)
    (_HERE / "record.json").write_text(f"{kept}\n", encoding="utf-8")
