"""What tests of the rescheduler share."""

from __future__ import annotations

import pytest

from tenure.rescheduler.milp.solver import ProcessSolver


@pytest.fixture(scope="session")
def solver():
    """Give a solver, the same in all modules: several workers change between these, and each start is 0.2 s."""
    with ProcessSolver() as process:
        yield process


@pytest.fixture
def command(run_command):
    """Run the command line, which has to succeed; gives what it printed."""

    def call(*arguments):
        code, printed, complaints = run_command(*arguments)
        assert code == 0, complaints
        return printed

    return call
