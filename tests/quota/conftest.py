"""What tests of quotas share."""

from types import SimpleNamespace

import pytest

from tenure.actions import quota as action
from tenure.model.settings import ExactSettings
from tenure.rescheduler.memory import MoveMemory


@pytest.fixture(scope="module")
def solve():
    """The solver as the action calls it, in one process for all examples."""
    context = SimpleNamespace(rescheduling=MoveMemory())
    yield lambda program: action._solve(context, ExactSettings(), program)
    context.rescheduling.solver.close()
