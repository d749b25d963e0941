"""What tests of the rescheduler share."""

from __future__ import annotations

import pytest

from tenure.cli.main import main


@pytest.fixture
def run_command(capsys):
    """Run the command line; gives its exit code, what it printed, and what it complained of."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call


@pytest.fixture
def command(run_command):
    """Run the command line, which has to succeed; gives what it printed."""

    def call(*arguments):
        code, printed, complaints = run_command(*arguments)
        assert code == 0, complaints
        return printed

    return call
