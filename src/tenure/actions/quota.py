"""Quota: bring queues back under a max that was lowered below what they use (spec: quota preemption)."""

from __future__ import annotations

import gc

from tenure.actions.context import Context
from tenure.model.collector import collector_paused
from tenure.quota.rounds import Round

MANY = 10_000
"""Steps of a plan from which on looking through what was made for garbage is felt."""


def quota(context: Context) -> None:
    """Arm and clear deadlines; of queues whose deadline has passed, evict what is over their max."""
    settings = context.session.settings
    stored = any(q.status is not None and q.status.quota_preemption for q in context.session.queues.queues)
    if settings.quota_preemption.enabled or stored:
        with collector_paused():  # a root cut by half makes millions of objects, and none of them is garbage yet
            Round(context.evicting()).run()
            if len(context.plan.steps) > MANY and not gc.get_freeze_count():
                gc.freeze()  # what was made counts as old from now on, without having been looked through
                gc.unfreeze()
