"""How long a workload says it will run, and what else it says about requeue.

Annotations win over fields, on the workload as in its tasks: what a controller cannot write into a field it writes
there. A bad annotation is not passed over for what stands behind it. Source: spec, expected runtime and requeue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.duration import LAST_TIME, format_duration, format_time, parse_duration, parse_time
from tenure.model.values.problems import shorten
from tenure.model.workload import Workload

PREFIXES = ("tenure.dev/", "kai.scheduler/", "volcano.sh/")
"""Of annotation keys; where several are set, the first of these counts."""

EXPECTED_RUNTIME, REQUEUE_DELAY, NOT_BEFORE = "expected-runtime", "requeue-delay", "requeue-not-before"
WRITTEN = PREFIXES[0] + NOT_BEFORE
"""The annotation that the scheduler writes."""


class AnnotationValue(NamedTuple):
    """The value of an annotation: its key, and its text, or why there is not one text."""

    key: str
    text: str
    conflict: str = ""


class ResolvedSetting(NamedTuple):
    """A setting that applies. ``value`` in µs (a time in µs since the epoch), None where nothing is set.

    ``problem`` says what is wrong with what was stated; ``valid`` is False where it is therefore not known.
    """

    value: int | None
    problem: str = ""
    valid: bool = True

    def end(self, start: int) -> int:
        """Give when a duration that begins at ``start`` is over, in µs since the epoch; one that is not set at once."""
        return min(start + (self.value or 0), LAST_TIME)


def stated(model: Workload, name: str) -> AnnotationValue | None:
    """Give what annotations say: the workload's own, else those of its tasks, if all that have one agree."""
    if model.annotations:
        for prefix in PREFIXES:
            text = model.annotations.get(prefix + name)
            if text is not None:
                return AnnotationValue(prefix + name, text)
    found: AnnotationValue | None = None
    for task in model.tasks:
        if not task.annotations:
            continue
        key = next((p + name for p in PREFIXES if p + name in task.annotations), None)
        if key is None:
            continue
        text = task.annotations[key]
        if found is not None and found.text != text:
            return AnnotationValue(key, "", f"its tasks do not agree on it ({shorten(found.text)}, {shorten(text)})")
        found = found or AnnotationValue(key, text)
    return found


def expected_runtime(model: Workload, queues: Sequence[Queue], settings: Settings) -> ResolvedSetting:
    """Give the expected runtime that applies: the workload's, else that of the first queue upward, else the pool's.

    Parameters
    ----------
    model
        The workload.
    queues
        Its leaf queue and all above it, upward.
    settings
        The node pool's. An explicit 0 anywhere ends inheritance: the workload is never a candidate.
    """
    said = _annotated(model, EXPECTED_RUNTIME, parse_duration, model.expected_runtime, format_duration)
    if said is not None:
        return said
    if model.expected_runtime is not None:
        return ResolvedSetting(model.expected_runtime)
    return ResolvedSetting(
        next((q.expected_runtime for q in queues if q.expected_runtime is not None), settings.expected_runtime)
    )


def requeue_delay(model: Workload, queues: Sequence[Queue], settings: Settings) -> ResolvedSetting:
    """Give the time for which a requeued workload is not requeued again; a bad one means the node pool's default."""
    said = _annotated(model, REQUEUE_DELAY, parse_duration, model.requeue_delay, format_duration)
    if said is not None:
        return said if said.valid else ResolvedSetting(settings.requeue_delay, said.problem)
    if model.requeue_delay is not None:
        return ResolvedSetting(model.requeue_delay)
    return ResolvedSetting(
        next((q.requeue_delay for q in queues if q.requeue_delay is not None), settings.requeue_delay)
    )


def not_before(model: Workload) -> ResolvedSetting:
    """Give the time before which a workload is not requeued again; an unreadable one counts as none."""
    said = _annotated(model, NOT_BEFORE, parse_time, None, format_time)
    return ResolvedSetting(model.requeue_not_before) if said is None else ResolvedSetting(said.value, said.problem)


def problems_of(model: Workload, queues: Sequence[Queue], settings: Settings) -> list[str]:
    """Say what is wrong with what a workload states of these."""
    said = (expected_runtime(model, queues, settings), requeue_delay(model, queues, settings), not_before(model))
    return [setting.problem for setting in said if setting.problem]


def _annotated(
    model: Workload, name: str, parse: Callable[[str], int], field: int | None, show: Callable[[int], str]
) -> ResolvedSetting | None:
    """What annotations say, if they say anything; ``field`` is what they win over."""
    said = stated(model, name)
    if said is None:
        return None
    if said.conflict:
        return ResolvedSetting(None, f"annotation {said.key}: {said.conflict}", valid=False)
    try:
        value = parse(said.text)
    except ValueError as error:
        text = f"{error}" if said.text else "it is empty"
        return ResolvedSetting(None, f"annotation {said.key}: {text}", valid=False)
    differs = field is not None and field != value
    problem = (
        f"annotation {said.key} says {show(value)} and wins over the field's {show(field or 0)}" if differs else ""
    )
    return ResolvedSetting(value, problem)
