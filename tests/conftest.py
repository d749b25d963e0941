"""How much hypothesis tries, and the command line as a test runs it.

A moderate number of examples, or many with ``TENURE_EXAMPLES=thorough``.

Moderately, the examples are the same in each run, and one that fails is shown as it was found: making a random cluster
smaller takes minutes. Thoroughly, they are new each time, and what fails is made as small as it goes.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tenure.cli.main import main

COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}

settings.register_profile(
    "moderate", max_examples=100, derandomize=True, phases=[Phase.explicit, Phase.generate], **COMMON
)
settings.register_profile("thorough", max_examples=3000, **COMMON)
settings.load_profile(os.environ.get("TENURE_EXAMPLES", "moderate"))


@pytest.fixture
def run_command(capsys):
    """Run the command line; gives its exit code, what it printed, and what it complained of."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call
