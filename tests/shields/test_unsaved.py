"""Work that a minimum runtime shields although it does not save itself is told: validated, planned, on a queue."""

import pytest

from tenure.cli.main import main
from tenure.model.file.load import load_cluster
from tenure.playthrough import play
from tenure.shields.unsaved import unsaved_of

CLUSTER = """apiVersion: tenure.dev/v1beta1
kind: Cluster
now: 2026-01-01T00:00:00Z
scheduler: {SETTINGS}
nodes: [{name: n, allocatable: {cpu: 8}}]
queues:
  - {name: top}
  - {name: a, parent: top}
  - {name: b, parent: top, OWN}
  - {name: c}
workloads:
  - {name: saves, queue: a, replicas: 1, requests: {cpu: 1}, checkpoint: {interval: 10m}}
  - {name: restarts, queue: a, replicas: 1, requests: {cpu: 1}, checkpoint: {restartOverhead: 1m}}
  - {name: silent, queue: b, replicas: 1, requests: {cpu: 1}}
  - {name: fixed, queue: c, priority: 200, replicas: 1, requests: {cpu: 1}}
"""


@pytest.fixture
def write(tmp_path):
    def write(settings, own="priority: 0"):
        path = tmp_path / "c.yaml"
        path.write_text(CLUSTER.replace("SETTINGS", settings).replace("OWN", own))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        ("reclaimMinRuntime: 30m", "priority: 0", [("top", 2, 3)]),
        ("preemptMinRuntime: 30m", "priority: 0", [("top", 2, 3)]),
        ("reclaimMinRuntime: 30m", "reclaimMinRuntime: 0s", [("top", 1, 2)]),
        ("backfill: none", "reclaimMinRuntime: 5m", [("top", 1, 1)]),
        ("backfill: none", "priority: 0", []),
        ("reclaimMinRuntime: 30m, minRuntime: {mode: price}", "priority: 0", []),
        ("reclaimMinRuntime: 30m, minRuntime: {mode: price}", "minRuntimeMode: shield", [("top", 1, 1)]),
        ("reclaimMinRuntime: 30m, minRuntime: {appliesTo: [preempt]}", "priority: 0", []),
    ],
)
def test_what_is_shielded_and_not_saved_is_counted_by_top_level_queue(write, settings, own, expected):
    assert [tuple(found) for found in unsaved_of(load_cluster(write(settings, own)).cluster)] == expected


def test_validate_names_the_queue_and_says_what_would_be_better(write, capsys):
    path = write("reclaimMinRuntime: 30m")
    with pytest.raises(SystemExit) as left:
        main(["validate", path])
    told = capsys.readouterr().err
    assert left.value.code == 0
    assert told.startswith(f"{path}:7: queues[0]: warning: top: a minimum runtime shields")
    assert told.endswith("minRuntime.mode: price (2 of 3 workloads)\n")


def test_a_plan_warns_and_has_an_event_on_the_queue(write):
    played = play(load_cluster(write("reclaimMinRuntime: 30m")).cluster)
    assert [w for w in played.warnings if w.startswith("top: a minimum runtime shields")]
    assert [(e.kind, e.name) for e in played.events if e.reason == "ShieldWithoutCheckpoints"] == [("queue", "top")]
    assert play(load_cluster(write("backfill: none")).cluster).warnings == []
