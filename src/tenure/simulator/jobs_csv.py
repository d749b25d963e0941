"""The table of jobs that `tenure simulate --jobs FILE.csv` writes: one line per job of the trace."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.documents.files import write_atomically
from tenure.simulator.outcomes import Outcomes
from tenure.simulator.traces.numbers import seconds_text

HEADER = ("job", "queue", "submit_s", "first_start_s", "start_s", "end_s", "evictions", "lost_s", "state")


def jobs_csv(outcomes: Outcomes) -> str:
    """Give the table as CSV, in the trace's order.

    ``job`` is the trace's own number or name; times are the trace's own seconds, whole numbers where they are
    whole, and empty where there is none (``start_s`` of a job that waits is that of its last run). Numbers are
    those of `Outcomes`.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    columns = zip(
        outcomes.names,
        (workload.queue or DEFAULT_QUEUE for workload in outcomes.workloads),
        outcomes.submit.tolist(),
        outcomes.first_start.tolist(),
        outcomes.start.tolist(),
        outcomes.end.tolist(),
        outcomes.evictions.tolist(),
        outcomes.lost.tolist(),
        outcomes.state,
        strict=True,
    )
    for index, (name, queue, submit, first_start, start, end, evictions, lost, state) in enumerate(columns):
        if index >= outcomes.initial:
            times = (_time(submit), _time(first_start), _time(start), _time(end))
            writer.writerow((name, queue, *times, evictions, seconds_text(lost), state))
    return text.getvalue()


def write_jobs_csv(outcomes: Outcomes, path: str | Path) -> None:
    """Write the table to a file, as a whole or not at all.

    Raises
    ------
    OSError
        It cannot be written; the error names the target.
    """
    write_atomically(path, jobs_csv(outcomes))


def _time(at: int) -> str:
    return "" if at < 0 else seconds_text(at)
