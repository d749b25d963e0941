"""Writing a trace in Tenure's own format."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TypeAlias

from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import TaskSpec, Workload
from tenure.simulator.traces.numbers import seconds_text
from tenure.simulator.traces.parquet import to_parquet
from tenure.simulator.traces.records import SECOND, Trace, TraceJob
from tenure.simulator.traces.specs import MIB, MODEL_LABEL
from tenure.simulator.traces.tenure_csv import COLUMNS

Cell: TypeAlias = str | int | bool | None

SECONDS = frozenset({"submit_s", "runtime_s", "expected_runtime_s", "checkpoint_s", "restart_s"})
"""Columns of times; kept in µs until they are written."""

TEXTS = frozenset({"job", "namespace", "queue", "gpu_models", "labels"})


def trace_to_csv(trace: Trace) -> str:
    """Give a trace as CSV; reading it back gives the same jobs.

    Raises
    ------
    ValueError
        A workload has what the format cannot express; the message says which and what.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_csv_row(job) for job in trace.jobs)
    return text.getvalue()


def _csv_row(job: TraceJob) -> list[str]:
    return [_csv_cell(name, value) for name, value in _cells(job).items()]


def _csv_cell(name: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return seconds_text(value) if name in SECONDS and isinstance(value, int) else str(value)


def trace_to_parquet(trace: Trace) -> bytes:
    """Give a trace as Parquet, times as 64-bit floating-point seconds.

    Raises
    ------
    ValueError
        A workload has what the format cannot express; the message says which and what.
    ModuleNotFoundError
        Pyarrow is not installed.
    """
    rows = [_cells(job) for job in trace.jobs]
    columns = {name: [_parquet_cell(name, row[name]) for row in rows] for name in COLUMNS}
    return to_parquet(columns, {name: _arrow_type(name) for name in COLUMNS})


def _parquet_cell(name: str, value: Cell) -> object:
    return value / SECOND if name in SECONDS and isinstance(value, int) else value


def _arrow_type(name: str) -> str:
    if name in TEXTS:
        return "string"
    if name in SECONDS:
        return "float64"
    return "bool" if name == "preemptible" else "int64"


def _cells(job: TraceJob) -> dict[str, Cell]:
    workload = job.workload
    spec = _only_spec(workload)
    requests = dict(spec.requests)
    share = spec.gpu_share
    checkpoint = workload.checkpoint
    values: dict[str, Cell] = {
        "job": workload.name,
        "submit_s": workload.created_at,
        "runtime_s": job.runtime,
        "expected_runtime_s": workload.expected_runtime,
        "namespace": workload.namespace,
        "queue": workload.queue,
        "priority": workload.priority,
        "preemptible": workload.preemptible,
        "pods": len(workload.tasks),
        "min_member": workload.min_member,
        "cpu_milli": requests.get(CPU, 0),
        "memory_mib": requests.get(MEMORY, 0) // MIB,
        "gpus": requests.get(GPU, 0) if share is None else share.devices,
        "gpu_milli": MILLI if share is None else share.milli,
        "gpu_models": "|".join(_models(workload, spec)),
        "checkpoint_s": None if checkpoint is None else checkpoint.interval,
        "restart_s": 0 if checkpoint is None else checkpoint.restart_overhead,
        "labels": ";".join(f"{key}={value}" for key, value in workload.labels.items()),
    }
    return {name: values[name] for name in COLUMNS}


def _only_spec(workload: Workload) -> TaskSpec:
    specs = set(_specs(workload))
    if len(specs) != 1:
        raise _inexpressible(workload, "pods that ask for different things" if specs else "no pods")
    spec = specs.pop()
    others = set(dict(spec.requests)) - {CPU, MEMORY, GPU}
    if others:
        raise _inexpressible(workload, f"a request for {', '.join(sorted(others))}")
    if dict(spec.requests).get(MEMORY, 0) % MIB:
        raise _inexpressible(workload, "memory that is no whole number of MiB")
    if spec.gpu_share is not None and not spec.gpu_share.milli:
        raise _inexpressible(workload, "a share of GPU memory")
    if workload.sub_groups or workload.topology or spec.node_selector or spec.tolerations or spec.spread:
        raise _inexpressible(workload, "subgroups or constraints")
    return spec


def _specs(workload: Workload) -> Iterable[TaskSpec]:
    return (task.spec for task in workload.tasks)


def _models(workload: Workload, spec: TaskSpec) -> tuple[str, ...]:
    if spec.affinity is None:
        return ()
    node = spec.affinity.node
    terms = () if node is None or node.required is None else node.required
    wanted = [requirement for term in terms for requirement in term.match_expressions]
    if len(wanted) != 1 or wanted[0].key != MODEL_LABEL or wanted[0].operator != "In":
        raise _inexpressible(workload, "an affinity that is not to GPU models")
    return wanted[0].values


def _inexpressible(workload: Workload, what: str) -> ValueError:
    return ValueError(f"the trace format cannot express {what} (workload {workload.key})")
