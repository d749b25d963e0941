"""Whole plans on small states equal those of a pod-by-pod reference that shares no code with the engine."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from tests.engine.reference import Reference
from tests.properties.strategies import clusters

from tenure.playthrough import play


def plain(cluster):
    """Leave out what the reference does not know: labels, promises, namespaces' differences."""
    workloads = (
        replace(w, tasks=tuple(replace(t, nominated=None) for t in w.tasks), sub_groups=(), min_sub_group=None)
        for w in cluster.workloads
    )
    nodes = (replace(n, taints=(), unschedulable=False) for n in cluster.nodes)
    return replace(cluster, workloads=tuple(workloads), nodes=tuple(nodes))


@given(clusters(plain=True, placements=("binpack", "spread"), backfills=("none",)))
def test_a_plan_is_that_of_the_reference(cluster):
    cluster = plain(cluster)
    expected = Reference(cluster).run()
    assert [(s.action, s.workload, s.task, s.node, s.devices) for s in play(cluster).steps] == expected
