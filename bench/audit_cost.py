"""What the audit log costs: an edit through the toolbox with and without it, by turns; and one decision.

    PYTHONPATH=src python bench/audit_cost.py [--write]

Processor time of this process alone, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_toolbox, open_workspace
from filepact.config.settings import parse_settings
from filepact.domain.operation import Actor, Session
from filepact.domain.policy import AccessRequest, decide
from filepact.tools.registry import CallContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.workspace.workspace import Workspace

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by audit_cost.py -->"
END = "<!-- end of what audit_cost.py wrote -->"
TEXT = "".join(f"line {number} of a file of ordinary size\n" for number in range(200))
CALL = CallContext(Session("bench", Actor("agent", "bench")))


def opened(folder: Path, *, audit: bool) -> Workspace:
    root = folder / f"root-{audit}"
    root.mkdir()
    (root / "a.txt").write_text(TEXT)
    settings = parse_settings(f"[audit]\nenabled = {str(audit).lower()}\n", name="filepact.toml")
    return open_workspace(
        str(root), state_dir=str(folder / f"state-{audit}"), settings=settings, home=str(folder)
    )


def editing(workspace: Workspace) -> Callable[[int], None]:
    tools = open_toolbox(workspace)

    def edit(number: int) -> None:
        old, new = (f"line 5{'!' * ((number + more) % 2)} of" for more in (0, 1))
        given = {"path": "a.txt", "old_string": old, "new_string": new}
        done = tools.call("edit_file", given, CALL)
        if done.failed:
            raise SystemExit(done.text)

    return edit


def measured(rounds: int, each: int) -> tuple[list[float], list[float]]:
    """Milliseconds of processor time of one edit with and without, of each round."""
    with (
        tempfile.TemporaryDirectory() as name,
        closing(opened(Path(name), audit=True)) as one,
        closing(opened(Path(name), audit=False)) as other,
    ):
        edits = editing(one), editing(other)
        times: tuple[list[float], list[float]] = ([], [])
        number = 0
        for _ in range(20):
            for edit in edits:
                edit(number)
            number += 1
        gc.disable()
        for turn in range(rounds):
            for at in (0, 1) if turn % 2 else (1, 0):
                start = time.process_time()
                for more in range(each):
                    edits[at](number + more)
                times[at].append((time.process_time() - start) / each * 1_000)
            number += each
            gc.collect()
        return times


def decision(count: int) -> float:
    """Milliseconds of processor time of one decision about a name that was not asked about before."""
    with tempfile.TemporaryDirectory() as name, closing(opened(Path(name), audit=True)) as one:
        policy, root = one.guard.policy, one.guard.roots[0].path
        asked = [
            AccessRequest(root, f"src/part{number}/file{number}.py", "write", "bench")
            for number in range(count)
        ]
        start = time.process_time()
        for request in asked:
            decide(request, policy)
        return (time.process_time() - start) / count * 1_000


def table() -> str:
    on, off = measured(40, 10)
    ratio = statistics.median(one / two for one, two in zip(on, off, strict=True))
    with_it, without = statistics.median(on), statistics.median(off)
    return "\n".join(
        (
            f"Python {platform.python_version()}, {platform.machine()}; medians of 40 turns of 10.",
            "",
            "| | with | without | ratio, bound 1.10 |",
            "| --- | --- | --- | --- |",
            f"| an edit of 200 lines, ms of processor time | {with_it:.2f} | {without:.2f} | {ratio:.3f} |",
            "",
            f"A decision of the rules in force takes {decision(5_000):.4f} ms (bound 0.2).",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What the audit log costs.")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    given = parser.parse_args()
    found = table()
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        tail = rest.partition(END)[2]
        README.write_text(f"{head}{MARK}\n\n{found}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
