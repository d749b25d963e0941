"""The page on live clusters says all that the running scheduler may say."""

from __future__ import annotations

from pathlib import Path

from tenure.clusters.kubernetes import keys
from tenure.live.metrics import LiveMetrics
from tenure.live.reasons import REASONS
from tenure.live.tables import EVENTS, METRICS, QUEUE_METRICS, WARNINGS
from tenure.telemetry.tables import EVENTS as OF_PLANS
from tenure.telemetry.tables import METRICS as METRICS_OF_PLANS

PAGE = (Path(__file__).parents[2] / "docs" / "live-cluster.md").read_text()


def test_every_metric_event_and_reason_is_documented():
    """Metrics and events stand there with their words, reasons of conditions by name."""
    by_queue = {metric.name: metric.help for metric in QUEUE_METRICS}
    for name, text in (METRICS | EVENTS | by_queue).items():
        assert f"| `{name}` | {text} |" in PAGE
    for reason in REASONS:
        assert f"`{reason}`" in PAGE


def test_every_annotation_is_documented():
    """What is written and what is read on objects stands there."""
    for key in (*keys.WRITTEN, keys.MIN_MEMBER, keys.TASK_ORDER, keys.SUB_GROUP, keys.ROLE, keys.DRAIN, keys.PAUSE):
        assert f"`{key}" in PAGE


def test_what_is_served_is_what_the_tables_have():
    """The exporter has each metric of the tables, and no other."""
    served = {family.name for family in LiveMetrics().registry.collect()}
    tables = (*METRICS, *(m.name for m in METRICS_OF_PLANS), *(m.name for m in QUEUE_METRICS))
    assert served == {name.removesuffix("_total") for name in tables}


def test_warnings_are_events_of_the_tables():
    """What is a warning is an event that there is."""
    assert {*EVENTS, *OF_PLANS} >= WARNINGS
