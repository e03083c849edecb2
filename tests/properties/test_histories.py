"""A random history that goes wrong is shown in full, with the seed that finds it again."""

from __future__ import annotations

from hypothesis.stateful import invariant

from tests.properties.histories import fault
from tests.properties.test_workspace_machine import WorkspaceMachine


class Forgetful(WorkspaceMachine):
    """A model that takes every write for a mistake of the workspace."""

    @invariant()
    def nothing_was_written(self) -> None:
        assert len(self.past) == 1, "a write was found"


def test_the_smallest_wrong_history_is_printed_step_by_step() -> None:
    # Many, though the first that writes is found soon: what a seed draws also depends on which
    # modules are loaded, from whose constants Hypothesis takes values.
    shown = fault(Forgetful, 200, 7, steps=8)
    assert shown is not None
    assert "a write was found" in shown
    assert "state.write(" in shown or "state.edit(" in shown


def test_a_history_that_is_right_prints_nothing() -> None:
    assert fault(WorkspaceMachine, 1, 7) is None
