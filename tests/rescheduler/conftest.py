"""What tests of the rescheduler share."""

from __future__ import annotations

import pytest


@pytest.fixture
def command(run_command):
    """Run the command line, which has to succeed; gives what it printed."""

    def call(*arguments):
        code, printed, complaints = run_command(*arguments)
        assert code == 0, complaints
        return printed

    return call
