"""Azure's public datasets of 2017 and 2019 (Cortez et al., SOSP 2017): ``vmtable.csv``, a list of virtual machines."""

from __future__ import annotations

from functools import partial

from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.logged import LoggedJob, LoggedTrace
from tenure.simulator.traces.numbers import micros, scaled
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.specs import PodRequest
from tenure.simulator.traces.table import (
    TableLayout,
    TableRow,
    TraceTableReader,
    UniqueNames,
    first_line,
    is_header,
    plain_name,
)

SECONDS = "seconds of the trace's own time"
MACHINES = TraceTable(
    "vmtable.csv",
    (
        needed("vmid", "name of the workload and of its pod"),
        column("subscriptionid", "label `subscriptionid`"),
        column("deploymentid", "label `deploymentid`"),
        needed("vmcreated", "submit time and start", SECONDS),
        needed("vmdeleted", "end", SECONDS),
        column("maxcpu"),
        column("avgcpu"),
        column("p95maxcpu"),
        column("vmcategory", "label `vmcategory`"),
        needed("vmcorecount", "CPU; `vmcorecountbucket` is the same; of `>24` it is 24", "cores"),
        needed("vmmemory", "memory; `vmmemorybucket` is the same; of `>64` it is 64", "GB, read as GiB"),
    ),
)
SAME = {"vmcorecountbucket": "vmcorecount", "vmmemorybucket": "vmmemory"}
LABELS = ("subscriptionid", "deploymentid", "vmcategory")
CATEGORIES = ("Interactive", "Delay-insensitive", "Unknown")
CATEGORY = 8
NOTHING = frozenset({"nan", "null"})
BEYOND = "the largest bucket"

_cpu = partial(scaled, factor=1000, high=10**12)
_memory = partial(scaled, factor=1024, high=10**12)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a list of virtual machines; each is a workload of one pod.

    Raises
    ------
    InvalidInputError
        A line is malformed.
    """
    problems, names = ProblemList(source), UniqueNames()
    trace = LoggedTrace(source, options, "azure", dated=False)
    head = first_line(source.head)
    named = source.is_parquet or is_header(head, MACHINES.names) or options.mapping.pairs
    layout = TableLayout(header=None if named else MACHINES.names, missing=NOTHING, same=SAME)
    table = TraceTableReader(source, MACHINES, problems, layout=layout, mapping=options.mapping)
    beyond = 0
    for row in table.rows():
        trace.records += 1
        beyond += row.text("vmcorecount").startswith(">") or row.text("vmmemory").startswith(">")
        job = _machine(row)
        names.check(row, "vmid", job.name)
        if row.ok:
            trace.add(job)
    problems.raise_if_any()
    told = f"{beyond:,} {'machine is' if beyond == 1 else 'machines are'} of {BEYOND}, and count with its lower bound"
    return trace.trace(table.notes() + ((told,) if beyond else ()))


def _machine(row: TableRow) -> LoggedJob:
    request = PodRequest(
        row.need("vmcorecount", lambda text: _cpu(text.removeprefix(">")), 0),
        row.need("vmmemory", lambda text: _memory(text.removeprefix(">")), 0),
    )
    created = row.need("vmcreated", micros, 0)
    labels = {key: text for key in LABELS if (text := row.value(key, plain_name, ""))}
    job = LoggedJob(row.line, row.need("vmid", plain_name, ""), created, ((request, 1),), labels=row.labels() | labels)
    job.ran(created, row.need("vmdeleted", micros, 0))
    return job


def _recognises(name: str, head: str) -> bool:
    cells = first_line(head)
    if {"vmid", "vmcreated", "vmdeleted"} <= set(cells):
        return True
    return len(cells) == len(MACHINES.columns) and (cells[CATEGORY] in CATEGORIES or name.startswith("vmtable"))


FORMAT = TraceFormat(
    "azure",
    _recognises,
    read,
    "Azure's [public datasets](https://github.com/Azure/AzurePublicDataset) of 2017 (V1) and 2019 (V2): "
    "`vmtable.csv`, a list of virtual machines. It has no GPUs. The datasets about functions and about language models "
    "list requests, not jobs, and are not read.",
    (MACHINES,),
    (
        "The files as they are published have no line of column names; both kinds are read.",
        (
            "Machines that were there before the trace begins, or outlive it, have its first or its last second as "
            "their times, as published."
        ),
    ),
)
