"""EASY on real logs: every single start is that of an independent textbook implementation."""

from __future__ import annotations

import csv
import gzip
import itertools
from dataclasses import replace

import pytest
from tests.effort import THOROUGH
from tests.simulator.helpers import BLUE, KTH, SECOND, real_trace
from tests.simulator.textbook import Job, easy_starts, mean_bounded_slowdown, mean_wait

from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
from tenure.simulator.log import BIND
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.trace import read_trace


def job_of(record):
    """Give the textbook's job of a job of the trace."""
    workload = record.workload
    ((_, millicores),) = workload.tasks[0].spec.requests
    return Job(
        int(record.record),
        workload.created_at // SECOND,
        millicores // 1000,
        record.runtime // SECOND,
        workload.expected_runtime // SECOND,
    )


BEGINNING = 5_000
"""Jobs of the long log that are replayed in each run; all of them with ``TENURE_EXAMPLES=thorough``, and by B5."""


LINES = 7_000
"""Lines of it that have so many jobs that run, what stands before them included."""


def starts_of(trace):
    """Replay a log; gives by number when each job started, in seconds."""
    cluster = prepare(Cluster(now=0, settings=Settings(backfill="easy", actions=("allocate",))), trace)
    log = Simulation(SimulationSetup(cluster), trace).run().log
    return {int(trace.jobs[job].record): at // SECOND for kind, at, job, *_ in log.events if kind == BIND}


def test_every_start_at_the_beginning_of_a_long_log_equals_the_textbooks(tmp_path):
    """The lines behind it are not read, which takes as long as the replay."""
    path = tmp_path / "beginning.swf"
    with gzip.open(real_trace(BLUE), "rt", encoding="utf-8") as lines:
        path.write_text("".join(itertools.islice(lines, LINES)), encoding="utf-8")
    begun = read_trace(path, processors=1_152)
    trace = replace(begun, jobs=begun.jobs[:BEGINNING])
    starts = starts_of(trace)
    assert len(starts) == BEGINNING
    assert starts == easy_starts([job_of(record) for record in trace.jobs], 1_152)


@pytest.mark.parametrize(
    ("name", "processors", "jobs", "dropped", "wait", "slowdown"),
    [
        (KTH, 100, 27_992, 0, 6_505.3, 86.44),
        *([(BLUE, 1_152, 232_562, 10_744, 8_078.7, 38.77)] if THOROUGH else []),
    ],
    ids=["KTH-SP2", *(["SDSC-BLUE"] if THOROUGH else [])],
)
def test_every_start_equals_the_textbooks(name, processors, jobs, dropped, wait, slowdown, run_command, tmp_path):
    """By the command, as the documentation has it, which tells the same figures as the textbook's starts give."""
    trace, table = real_trace(name), tmp_path / "jobs.csv"
    code, told, _ = run_command(
        "simulate", trace, "--processors", processors, "--set", "scheduler.backfill=easy", "--jobs", table
    )
    assert code == 0
    assert f"mean wait                    {wait:,.1f} s" in told
    assert f"mean {slowdown:.2f}" in told
    assert "broken invariants            none" in told
    with table.open(encoding="utf-8") as rows:
        starts = {int(row["job"]): int(row["start_s"]) for row in csv.DictReader(rows)}
    read = read_trace(trace, processors=processors)
    known = [job_of(record) for record in read.jobs]
    assert starts == easy_starts(known, processors)
    assert (len(starts), read.dropped) == (jobs, dropped)
    assert round(mean_wait(known, starts), 1) == wait
    assert round(mean_bounded_slowdown(known, starts), 2) == slowdown
