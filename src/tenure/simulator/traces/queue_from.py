"""The queue of each job from what else is known of it: a label, or a text with several of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.model.workload import Workload
from tenure.simulator.traces.mapping import listed, quoted
from tenure.simulator.traces.records import Trace, TraceJob
from tenure.simulator.traces.table import plain_name

PLACE = re.compile(r"\{([^{}]*)\}")
FIELDS = ("queue", "namespace")
"""What else than labels may be named."""


def names_in(template: str) -> tuple[str, ...]:
    """Give the columns that a template names: those in braces, or all of it if it has none.

    Raises
    ------
    ValueError
        It is empty, or a brace has no other.
    """
    rest = PLACE.sub("", template)
    if "{" in rest or "}" in rest or not template.strip() or "" in PLACE.findall(template):
        raise ValueError(
            f"{template!r} is neither a column nor a text with columns in braces, such as {{group}}-{{user}}"
        )
    return tuple(dict.fromkeys(PLACE.findall(template))) or (template,)


def with_queues(trace: Trace, template: str, path: str) -> Trace:
    """Give each job the queue that the template says. A job of which nothing named is known is in ``default``.

    Raises
    ------
    InvalidInputError
        No job has a column of that name, or what comes out is no name of a queue.
    """
    known = {name for job in trace.jobs for name in job.workload.labels} | set(FIELDS)
    names = tuple(name if name in known else name.lower() for name in names_in(template))
    missing = [name for name, found in zip(names_in(template), names, strict=True) if found not in known]
    if missing and trace.jobs:
        message = f"--queue-from names {quoted(missing)}, which no job has; there are {listed(sorted(known))}"
        raise InvalidInputError([InputProblem(path, 0, "", message)])
    made: dict[tuple[str, ...], str] = {}
    jobs = []
    without = 0
    for job in trace.jobs:
        values = tuple(_value(job.workload, name) for name in names)
        if values not in made:
            made[values] = _queue(template, dict(zip(names_in(template), values, strict=True)), path)
        without += not any(values)
        jobs.append(TraceJob(replace(job.workload, queue=made[values]), job.runtime, job.record))
    return replace(trace, jobs=tuple(jobs), notes=(*trace.notes, *_told(without, names)))


def _value(workload: Workload, name: str) -> str:
    value = workload.labels.get(name)
    if value is not None:
        return value
    return workload.queue if name == "queue" else workload.namespace if name == "namespace" else ""


def _queue(template: str, values: dict[str, str], path: str) -> str:
    if not any(values.values()):
        return DEFAULT_QUEUE
    text = PLACE.sub(lambda found: values[found[1]], template) if PLACE.search(template) else values[template]
    try:
        return plain_name(text)
    except ValueError as error:
        raise InvalidInputError(
            [InputProblem(path, 0, "", f"--queue-from makes no name of a queue: {error}")]
        ) from None


def _told(without: int, names: tuple[str, ...]) -> Iterator[str]:
    if without:
        what = "1 job has" if without == 1 else f"{without:,} jobs have"
        yield f"{what} no {' and no '.join(names)}, and the queue {DEFAULT_QUEUE!r}"
