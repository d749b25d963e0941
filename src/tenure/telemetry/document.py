"""The page on metrics and events, made from the tables."""

from __future__ import annotations

from tenure.telemetry.tables import EVENTS, METRICS

_HEAD = """# Metrics and events

This page is made from the tables in `tenure.telemetry.tables`; a test compares the two.

## Metrics

Counters grow over cycles, gauges stand as of the last one. Label values come from the sets given here: never names of
workloads or queues, never times. The same figures stand under `counters` in `tenure plan --format json`, added up over
its cycles.

| metric | type | labels | meaning |
|---|---|---|---|
"""
_EVENTS = """
## Events

Each is on a workload, those that begin with `Quota` on a queue, `CauseLoses` on the node pool. They stand
under `events` in `tenure plan --format json`.

| reason | meaning |
|---|---|
"""


def document() -> str:
    """Give ``docs/metrics-and-events.md``."""
    rows = []
    for metric in METRICS:
        labels = "; ".join(f"`{name}`: {', '.join(f'`{v}`' for v in values)}" for name, values in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |\n")
    events = [f"| `{reason}` | {text} |\n" for reason, text in EVENTS.items()]
    return _HEAD + "".join(rows) + _EVENTS + "".join(events)
