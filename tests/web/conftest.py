"""What tests of the console share."""

from __future__ import annotations

import pytest
from tests import preloaded


@pytest.fixture(scope="session")
def history(tmp_path_factory):
    """Give a history of a small simulation with evictions; it is only read."""
    folder = tmp_path_factory.mktemp("history")
    jobs, cluster, made = (folder / name for name in ("jobs.csv", "cluster.yaml", "run.db"))
    size = ("--jobs", "120", "--gpus", "16", "--load", "1.2", "--seed", "3")
    for words in (
        ("generate", *size, "--out", jobs, "--cluster", cluster),
        ("simulate", jobs, "--cluster", cluster, "--history", made),
    ):
        preloaded.run(words, check=True, capture_output=True, timeout=300)
    return str(made)
