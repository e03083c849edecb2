"""Random histories against the model of `test_workspace_machine`, as many as are asked for.

Run as a program: ``python -m tests.properties.histories [--runs N]``.  Other histories each time.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.test_workspace_machine import WorkspaceMachine

STEPS = 50


class Counted(WorkspaceMachine):
    """The machine, counting what it does."""

    done: ClassVar[Counter[str]] = Counter()

    def check_invariants(self, *what: Any) -> None:
        Counted.done["steps"] += 1
        super().check_invariants(*what)

    def teardown(self) -> None:
        Counted.done["histories"] += 1
        super().teardown()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.properties.histories", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many histories")
    given = parser.parse_args(arguments)
    try:
        run_state_machine_as_test(
            Counted,
            settings=settings(
                max_examples=given.runs,
                stateful_step_count=STEPS,
                derandomize=False,
                database=None,
                deadline=None,
            ),
        )
    except AssertionError as error:
        print(f"WRONG: {error}")
        return 1
    print(f"{Counted.done['histories']} histories, {Counted.done['steps']} steps, 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
