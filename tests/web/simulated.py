"""Histories of simulations that the console shows in tests."""

from __future__ import annotations

from tests import preloaded


def simulated_history(folder, *, jobs, gpus):
    """Simulate some jobs on a cluster that they overload, by Tenure's own commands; gives the path of the history."""
    trace, cluster, history = (folder / name for name in ("jobs.csv", "cluster.yaml", "run.db"))
    size = ("--jobs", str(jobs), "--gpus", str(gpus), "--load", "1.2", "--seed", "3")
    for words in (
        ("generate", *size, "--out", trace, "--cluster", cluster),
        ("simulate", trace, "--cluster", cluster, "--history", history),
    ):
        preloaded.run(words, check=True, capture_output=True, timeout=300)
    return str(history)
