"""What ``sacct --json`` writes, as rows with the columns of ``sacct --parsable2``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tenure.simulator.traces.json_objects import JsonObjects
from tenure.simulator.traces.mapping import FurtherColumns
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.table import TableHead, TableRow

NAMES = ("account", "user", "partition", "qos", "cluster")
TIMES = {"submit": "submission", "start": "start", "end": "end"}


def json_rows(source: TraceSource, columns: Sequence[str], problems: ProblemList) -> Iterator[TableRow]:
    """Give the jobs of a file.

    Raises
    ------
    InvalidInputError
        It is no JSON, or has no list of jobs.
    """
    head = TableHead({name: place for place, name in enumerate(columns)}, problems, FurtherColumns({}))
    for line, values in JsonObjects(source, "jobs"):
        cells = _cells(values)
        yield TableRow(line, [cells.get(name, "") for name in columns], head)


def _cells(values: dict[str, Any]) -> dict[str, str]:
    time = _object(values.get("time"))
    tres = _object(values.get("tres"))
    state = _object(values.get("state")).get("current", values.get("state"))
    cells = {name: _text(values.get(name)) for name in NAMES}
    cells |= {name: text for name, key in TIMES.items() if (text := _text(_number(time.get(key)))) not in {"", "0"}}
    limit = _number(time.get("limit"))
    return cells | {
        "jobid": _job_id(values),
        "elapsedraw": _text(_number(time.get("elapsed"))),
        "timelimitraw": "" if limit is None else _text(limit),
        "state": _text(state[0] if isinstance(state, list) and state else state),
        "reqtres": _tres(tres.get("requested")),
        "alloctres": _tres(tres.get("allocated")),
    }


def _job_id(values: dict[str, Any]) -> str:
    """Write a job's number as ``sacct --parsable2`` does: with its place in an array or a heterogeneous job."""
    array, het = _object(values.get("array")), _object(values.get("het"))
    name = _text(values.get("job_id"))
    task = _number(array.get("task_id"))
    if array.get("job_id") and task is not None:
        return f"{array['job_id']}_{task}"
    if array.get("job_id") and array.get("task"):
        return f"{array['job_id']}_[{array['task']}]"
    offset = _number(het.get("job_offset"))
    if het.get("job_id") and offset is not None:
        return f"{het['job_id']}+{offset}"
    return name


def _tres(listed: Any) -> str:
    """Write resources as ``cpu=8,mem=64000M,gres/gpu:a100=2``."""
    parts = []
    for one in listed if isinstance(listed, list) else []:
        given = _object(one)
        kind, name, count = _text(given.get("type")), _text(given.get("name")), _text(given.get("count"))
        if kind in {"cpu", "node", "mem"} and count:
            parts.append(f"{kind}={count}")
        elif kind == "gres" and (name == "gpu" or name.startswith("gpu:")) and count:
            parts.append(f"gres/{name}={count}")
    return ",".join(parts)


def _number(value: Any) -> Any:
    """Give a number, which newer versions write as an object that says whether it is set; ``None`` if it is not."""
    if not isinstance(value, dict):
        return value
    return value.get("number") if value.get("set", True) and not value.get("infinite") else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Give plain values as text, and anything else as nothing."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
