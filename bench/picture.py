"""Pictures of a record: an SVG for each operation, and one of all of them.

Readable on light and on dark paper: nothing is drawn behind, and signs are of a grey that stands out on both.
"""

from __future__ import annotations

import math
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["draw", "overview", "picture"]

_WIDTH = 840
_LEFT = 320
_RIGHT = 90
_ROW = 26
_TOP = 58
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #6e7781 }
.title { font-weight: 600; font-size: 15px }
.small { font-size: 11px }
.axis { stroke: #8c959f; stroke-width: 1; opacity: .35 }
.even { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 4 3 }
.ahead { fill: #2da44e } .behind { fill: #d4772c }
.spread { opacity: .35 }
@media (prefers-color-scheme: dark) { text { fill: #9aa4af } .ahead { fill: #3fb950 } .behind { fill: #e08e45 } }
"""

Row = tuple[str, list[float], str]
"""A name, a ratio with its quartiles, and what stands behind it."""


def draw(record: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write all pictures of a record; the first is the one of everything."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / "overview.svg"]
    made[0].write_text(overview(record), encoding="utf-8")
    names = dict.fromkeys(one["operation"] for one in record["results"])
    for name in names:
        path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.svg"
        path.write_text(picture(record, name), encoding="utf-8")
        made.append(path)
    return made


def overview(record: Mapping[str, Any]) -> str:
    """All operations, each as its ratio of processor time: what else the machine does blurs that least."""
    several = len({one["tree"] for one in record["results"]}) > 1
    rows = [
        (
            f"{one['operation']}, {one['tree']}" if several else one["operation"],
            one["ratio"]["cpu"],
            f"{_times(one['ratio']['cpu'][1])} {one['peer']}",
        )
        for one in record["results"]
    ]
    return _chart("Processor time of others, as a multiple of filepact's", rows, _said(record))


def picture(record: Mapping[str, Any], operation: str) -> str:
    """One operation: by the clock and on processors, for each tree and each peer."""
    rows: list[Row] = []
    for one in record["results"]:
        if one["operation"] == operation:
            for clock, said in (("wall", "by the clock"), ("cpu", "on processors")):
                ours, theirs = one["ours"][clock][1], one["theirs"][clock][1]
                name = f"{one['peer']}, {one['tree']}: {said}"
                rows.append((name, one["ratio"][clock], f"{ours:.3g} / {theirs:.3g} ms"))
    return _chart(operation, rows, f"ours / theirs. {_said(record)}")


def _said(record: Mapping[str, Any]) -> str:
    machine, versions = record["machine"], record["versions"]
    return (
        f"{record['when'][:10]}, {machine['processors']} processors ({machine['processor']}), "
        f"load {machine['load at the start']}, Python {versions['python']}"
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def _chart(title: str, rows: Iterable[Row], below: str) -> str:
    listed = list(rows)
    values = [value for _, three, _ in listed for value in three if value > 0]
    low = math.floor(math.log2(min([*values, 0.5])))
    high = math.ceil(math.log2(max([*values, 2.0])))
    height = _TOP + _ROW * len(listed) + 34

    def at(ratio: float) -> float:
        share = (math.log2(max(ratio, 2.0**low)) - low) / (high - low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{escape(title, quote=True)}">'
        ),
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="8" y="22">{escape(title)}</text>',
    ]
    bottom = _TOP + _ROW * len(listed)
    step = max(1, math.ceil((high - low) / 8))
    for power in range(low, high + 1):
        if power % step and power:
            continue
        x, said = at(2.0**power), f"{2**power}x" if power >= 0 else f"1/{2**-power}"
        kind = "axis" if power else "even"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="small" x="{x:.1f}" y="{_TOP - 8}" text-anchor="middle">{said}</text>'
        )
    for number, (name, (first, middle, last), said) in enumerate(listed):
        y = _TOP + _ROW * number + _ROW / 2
        kind = "ahead" if middle >= 1 else "behind"
        a, b = sorted((at(1.0), at(middle)))
        parts += [
            f'<text x="{_LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{a:.1f}" y="{y - 6:.1f}" width="{max(b - a, 1):.1f}" height="12" rx="2"/>',
            (
                f'<rect class="{kind} spread" x="{at(first):.1f}" y="{y - 9:.1f}" '
                f'width="{max(at(last) - at(first), 1):.1f}" height="18" rx="2"/>'
            ),
            f'<text class="small" x="{max(at(last), b, at(1.0)) + 6:.1f}" y="{y + 4:.1f}">{escape(said)}</text>',
        ]
    parts.append(f'<text class="small" x="8" y="{height - 10}">{escape(below)}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)
