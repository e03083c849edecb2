"""Random histories against the model of `test_workspace_machine`, as many as are asked for.

Run as a program: ``python -m tests.properties.histories [--runs N] [--seed S]``.  Other histories
each time, unless a seed is given.  The smallest history that goes wrong is printed step by step,
with the seed that finds it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from typing import Any, ClassVar

from hypothesis import seed, settings
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


def fault(
    machine: type[WorkspaceMachine], runs: int, chosen: int, steps: int = STEPS
) -> str | None:
    """Run random histories.

    Returns:
        None when all were right; else the exception with its traceback, and the smallest history
        that raises it.
    """
    try:
        run_state_machine_as_test(
            seed(chosen)(machine),
            settings=settings(
                max_examples=runs,
                stateful_step_count=steps,
                derandomize=False,
                database=None,
                deadline=None,
            ),
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a step raises is the finding
        # Hypothesis adds the steps of that history to the exception as notes.
        return "".join(traceback.format_exception(error))
    return None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.properties.histories", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many histories")
    parser.add_argument("--seed", type=int, help="which histories (default: others each time)")
    given = parser.parse_args(arguments)
    chosen = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    wrong = fault(Counted, given.runs, chosen)
    if wrong is not None:
        print(wrong)
        print(f"WRONG: the history above; the same again with --runs {given.runs} --seed {chosen}")
        return 1
    counted = Counted.done
    print(f"{counted['histories']} histories, {counted['steps']} steps, 0 wrong; seed {chosen}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
