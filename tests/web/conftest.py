"""What tests of the console share."""

from __future__ import annotations

import pytest
from tests.web.simulated import simulated_history


@pytest.fixture(scope="session")
def history(tmp_path_factory):
    """Give a history of a small simulation with evictions; it is only read."""
    return simulated_history(tmp_path_factory.mktemp("history"), jobs=120, gpus=16)
