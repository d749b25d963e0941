"""What ``tenure plan --format json`` says of requeueing. Its fields are a contract."""

from __future__ import annotations

from typing import Any

from tenure.engine.requeued import RequeueOutcome


def requeue_json(requeue: RequeueOutcome) -> dict[str, Any]:
    """Give nominations, skips with their reasons, and how many candidates were sent back and how many run on."""
    return {
        "nominations": [{"workload": n.workload, "by": list(n.by)} for n in requeue.nominations],
        "skipped": [{"workload": s.workload, "plugin": s.plugin, "reason": s.reason} for s in requeue.skipped],
        "committed": requeue.committed,
        "rolledBack": requeue.rolled_back,
    }
