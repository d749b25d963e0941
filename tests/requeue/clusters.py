"""Clusters in which something overstays and something waits."""

from __future__ import annotations

from tests.builders import SECOND, cluster, node, queue, spec, workload

HOUR = 3600
ACTIONS = ("allocate", "reclaim", "preempt", "requeue")
ONLY = ("allocate", "requeue")


def overdue(name="old", *, gpu=4, on="n", ran=7200, expected=3600, **fields):
    """Something of one task that has run for twice as long as it was expected to."""
    fields.setdefault("age", ran + 100)
    return workload(name, of=spec(gpu=gpu), on=[on], running=ran, expected_runtime=expected, **fields)


def waiting(name="new", *, gpu=4, priority=50, **fields):
    """Something of one task that waits, and is more important than most."""
    fields.setdefault("age", 60)
    return workload(name, of=spec(gpu=gpu), priority=priority, **fields)


def one_node(*workloads, queues=(), gpus=4, actions=ONLY, **settings):
    """One node with a few GPUs."""
    return cluster([node("n", cpu=64, gpu=gpus)], workloads, queues, actions=actions, **settings)


def skips(played, plugin="expected-runtime"):
    """Reasons by name of the workload."""
    return {s.workload.removeprefix("default/"): s.reason for s in played.requeue.skipped if s.plugin == plugin}


def nominated(played):
    """Plugins by name of the workload."""
    return {n.workload.removeprefix("default/"): n.by for n in played.requeue.nominations}


def requeued(played):
    """Whom requeue evicted for whom, by name."""
    return {
        s.workload.removeprefix("default/"): s.beneficiary.removeprefix("default/")
        for s in played.steps
        if s.action == "evict" and s.cause == "requeue"
    }


__all__ = [
    "ACTIONS",
    "HOUR",
    "ONLY",
    "SECOND",
    "nominated",
    "one_node",
    "overdue",
    "queue",
    "requeued",
    "skips",
    "waiting",
]
