"""Rules about disruption budgets and the eviction log."""

from __future__ import annotations

from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.cluster import Cluster
from tenure.model.values.duration import format_time
from tenure.model.values.problems import nearest
from tenure.model.values.report import Path


def check_disruption(cluster: Cluster) -> Findings:
    """Check the queues that budgets and weights name, their own names, and the times of the log and of outcomes."""
    queues = {q.name for q in cluster.queues}
    seen: set[str] = set()
    for index, rule in enumerate(cluster.settings.disruption.budgets):
        at: Path = ("scheduler", "disruption", "budgets", index)
        if rule.name in seen:
            yield ClusterFinding((*at, "name"), f"budget {rule.name} is there twice; give each its own name")
        seen.add(rule.name)
        if rule.queue is not None and queues and rule.queue not in queues:
            hint = nearest(rule.queue, sorted(queues)) or "; name one of the queues"
            yield ClusterFinding((*at, "queue"), f"there is no queue {rule.queue}{hint}")
    for index, weight in enumerate(cluster.settings.worth.weights):
        if weight.queue is not None and queues and weight.queue not in queues:
            hint = nearest(weight.queue, sorted(queues)) or "; name one of the queues"
            yield ClusterFinding(
                ("scheduler", "worth", "weights", index, "queue"), f"there is no queue {weight.queue}{hint}"
            )
    if cluster.settings.worth.survival.enabled and not _trusts(cluster):
        text = "has no effect: no rule of patience trusts an estimate; set `trust` of one"
        yield ClusterFinding(("scheduler", "worth", "survival", "enabled"), text, is_warning=True)
    message = f"lies ahead of now, {format_time(cluster.now)}; it counts as if it had happened now"
    times = {"evictions": [e.at for e in cluster.evictions], "outcomes": [o.at for o in cluster.outcomes]}
    for section, index in (
        (section, n) for section, own in times.items() for n, at in enumerate(own) if at > cluster.now
    ):
        yield ClusterFinding((section, index, "at"), message, is_warning=True)


def _trusts(cluster: Cluster) -> bool:
    """Whether any rule of patience trusts an estimate of the start."""
    rules = [cluster.settings.worth.patience, *(queue.patience for queue in cluster.queues)]
    return any(rule.trust for own in rules for rule in own.values())
