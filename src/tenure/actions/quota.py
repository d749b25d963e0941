"""Quota: bring queues back under a max that was lowered below what they use (spec: quota preemption)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.quota.rounds import QuotaRound


def quota(context: Context) -> None:
    """Arm and clear deadlines; of queues whose deadline has passed, evict what is over their max."""
    settings = context.session.settings
    stored = any(q.status is not None and q.status.quota_preemption for q in context.session.queues.queues)
    if settings.quota_preemption.enabled or stored:
        QuotaRound(context.evicting()).run()
