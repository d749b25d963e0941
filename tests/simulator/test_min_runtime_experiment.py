"""The experiment on minimum runtimes, as users run it: one command, in processes or on a Dask cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.simulator.helpers import CHECKOUT

RUN = CHECKOUT / "examples" / "min-runtime" / "run.py"
DAY = 86_400
HEAD = "job_id,submit_s,runtime_s,req_time_s,pods,gpus_per_pod,cpu_milli_per_pod,mem_mib_per_pod,user,group,queue,status,logged_wait_s"  # noqa: E501  the trace's own


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """One queue fills all 56 nodes before another comes for its guarantee: first for old jobs, then for a young one."""
    first = 63 * DAY
    rows = [(n, first + n, 40_000, 8, "big") for n in range(55)] + [(55, first + 10_000, 30_000, 8, "big")]
    rows += [(100 + n, first + 10_300 + 3_600 * n, 5_000, 8, "small") for n in range(3)]
    lines = [f"{job},{at},{length},,1,{gpus},,,,,{queue},," for job, at, length, gpus, queue in rows]
    path = tmp_path_factory.mktemp("trace") / "philly.csv"
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def run(trace, *more):
    command = [sys.executable, str(RUN), "--trace", str(trace), "--days", "1", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def rows_of(output):
    """Figures by scenario, without the speed."""
    lines = [line for line in output.splitlines()[1:] if "  " in line]
    return {line.split("  ")[0]: line.split()[-8:-1] for line in lines}


@pytest.fixture(scope="module")
def replayed(trace, tmp_path_factory):
    """Give how the command ended that replays all scenarios in two processes, with its page and its journal."""
    page, journal = (tmp_path_factory.mktemp("replayed") / name for name in ("page.html", "done.jsonl"))
    return run(trace, "--processes", "2", "--html", str(page), "--journal", str(journal)), page, journal


def test_all_scenarios_are_replayed_told_and_drawn(trace, replayed):
    done, page, journal = replayed
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    assert len(rows) == 17
    assert all(row[6] == "0" for row in rows.values())
    assert rows["no reclaim"][:2] == ["0.0", "0"]
    lost = {name: float(row[0].replace(",", "")) for name, row in rows.items()}
    assert 0 < lost["0m, youngest, no checkpoints"] <= lost["0m, cost, no checkpoints"]
    assert lost["30m, cost, checkpoints 30m"] < lost["30m, cost, no checkpoints"]
    assert "17 of 17" in done.stderr
    assert page.read_text().count("<svg") == 5
    again = run(trace, "--journal", str(journal))
    assert again.stderr == "17 of 17 scenarios\n", "nothing is replayed twice"
    assert rows_of(again.stdout) == rows


def test_a_dask_cluster_gives_the_same_figures(trace, replayed):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        done = run(trace, "--dask", cluster.scheduler_address)
    assert done.returncode == 0, done.stderr
    assert rows_of(done.stdout) == rows_of(replayed[0].stdout)


def test_an_empty_period_and_a_missing_trace_are_said_so(trace, tmp_path):
    assert "the period is empty" in run(trace, "--days", "0").stderr
    assert "there is no such file" in run(tmp_path / "none.csv").stderr
