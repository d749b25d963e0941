"""What an eviction destroys: weighted resources times the time since the last checkpoint, and the restart.

Sources: spec, words ("disruption cost") and settings. What says nothing of its checkpoints is costed since its start,
or as if it saved every `assumedCheckpoint`; the overhead of a restart counts up to `maxRestartOverhead`. So neither
silence nor a huge overhead protects better than saving does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.device_resources import counted_beside, counts_of
from tenure.model.settings import Settings
from tenure.model.values.duration import MAX_DURATION
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS
from tenure.model.workload import TaskSpec

SECOND = 1_000_000
MICRO = 1_000_000
"""Costs are counted in millionths of a weighted resource-second, so that sums do not depend on their order."""

GIB = 1 << 30
_BYTES = frozenset({MEMORY, "ephemeral-storage"})
UNITS = {GPU: MILLI, CPU: 1000}
"""How much of an amount is one unit of what `disruption.cost` prices."""


def price_of(resource: str, settings: Settings) -> float:
    """Give what one unit of a resource of a node is worth: its own price, and that of what a device of it counts."""
    prices = settings.disruption.cost
    counted = counts_of(resource, settings).items()
    return prices.get(resource, 0.0) + sum(prices.get(name, 0.0) * each / UNITS.get(name, 1) for name, each in counted)


def saved_at(session: Session, workload: WorkloadState) -> int:
    """When the work of a running workload was last safe, in µs since the epoch: its last checkpoint, else its start.

    An unknown start counts as the creation; a checkpoint of an earlier run, or one that lies ahead, does not count.
    """
    now, checkpoint = session.now, workload.model.checkpoint
    start = min(now, workload.created_at if workload.started_at is None else workload.started_at)
    told = workload.saved_at or start
    if checkpoint is not None and checkpoint.last_at is not None and checkpoint.last_at <= now:
        return min(now, max(start, told, checkpoint.last_at))
    interval = interval_of(session, workload)
    if interval:
        start += (now - start) // interval * interval
    elif told is start:  # neither has it told of anything, nor is anything assumed
        return start
    return min(now, max(told, start))


def interval_of(session: Session, workload: WorkloadState) -> int | None:
    """How often a workload makes a checkpoint, in µs: as it says, else as is assumed; None where neither is."""
    checkpoint = workload.model.checkpoint
    own = checkpoint.interval if checkpoint is not None else None
    return own or session.settings.disruption.assumed_checkpoint


def lost_time(session: Session, task: TaskState) -> int:
    """Time in µs that evicting an active task now would destroy, overhead of the restart included.

    A task that joined a running workload later (surplus that grew) loses no more than since it started itself.
    """
    workload = task.workload
    saved, own = saved_at(session, workload), _own_start(session, task)
    if own is not None and saved < own <= session.now:
        saved = own
    return session.now - saved + overhead_of(session, workload)


def overhead_of(session: Session, workload: WorkloadState) -> int:
    """Time in µs that a restart takes, as far as it counts."""
    checkpoint = workload.model.checkpoint
    if checkpoint is None:
        return 0
    return min(checkpoint.restart_overhead, session.settings.disruption.max_restart_overhead)


def rate(session: Session, task: TaskState) -> float:
    """Weighted resources that a placed task holds: what a second of it costs."""
    cls = task.cls
    if cls.rate is not None:
        return cls.rate
    amounts, names = cls.amount_at(task.node, session.nodes), session.queues.resources
    prices = session.settings.disruption.cost
    found = sum(
        prices.get(name, 0.0) * amount / UNITS.get(name, 1) for name, amount in zip(names, amounts, strict=True)
    )
    if cls.milli is None:  # a part of a GPU may differ from node to node
        cls.rate = found
    return found


def _own_start(session: Session, task: TaskState) -> int | None:
    """Give when a task itself started, in µs since the epoch: now, if it was placed since the cluster was looked at."""
    if task.fresh and task.model.node != session.nodes.names[task.node]:
        return session.now
    return task.model.started_at


def cost(session: Session, task: TaskState, weight: float | None = None) -> int:
    """Cost of evicting an active task now, in millionths of a weighted resource-second.

    ``weight`` is the task's `rate`, where that is known already.
    """
    return round((rate(session, task) if weight is None else weight) * lost_time(session, task) / SECOND * MICRO)


def lost_unit(name: str) -> int:
    """Give how much of an amount is one unit of what is lost: a GPU, a core, a GiB of what is counted in bytes."""
    if name in _BYTES or name.startswith("hugepages-"):
        return GIB
    return UNITS.get(name, 1)


def destroyed(amount: int, time: int, unit: int) -> int:
    """Give what is lost of an amount in ``time`` (µs), in µs of its unit, and no more than a duration may be."""
    return min(amount * time // unit, MAX_DURATION)


def in_small_units(lost: Mapping[str, int] | None) -> dict[str, int]:
    """Give what was lost as amounts are counted elsewhere, in thousandths and bytes, of what is said by whole units."""
    return {name: amount * lost_unit(name) for name, amount in (lost or {}).items() if name != PODS and amount}


def cost_of_all(session: Session, tasks: Sequence[TaskState]) -> int:
    """Cost of evicting active tasks of one workload together: the sum of each `cost`."""
    workload, now = tasks[0].workload, session.now
    saved, overhead = saved_at(session, workload), overhead_of(session, workload)
    found = 0
    for task in tasks:
        own = _own_start(session, task)
        since = own if own is not None and saved < own <= now else saved
        found += round(rate(session, task) * (now - since + overhead) / SECOND * MICRO)
    return found


def lost_amounts(spec: TaskSpec, time: int, settings: Settings) -> dict[str, int]:
    """What a task that loses ``time`` (µs) destroys, in resource-µs by resource: of whole GPUs, cores and GiB."""
    amounts = [(n, amount) for n, amount in spec.requests if amount]
    found = {n: destroyed(amount, time, 1 if n == GPU else lost_unit(n)) for n, amount in amounts}
    if spec.gpu_share is not None and spec.gpu_share.milli:
        found[GPU] = destroyed(spec.gpu_share.milli * spec.gpu_share.devices, time, MILLI)
    for name, counted in counted_beside(spec, settings).items():
        found[name] = found.get(name, 0) + destroyed(counted, time, lost_unit(name))
    return found
