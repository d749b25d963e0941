"""Queues: Tenure's own objects, KAI's, or those of YuniKorn's ConfigMap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.pool_status import part_of
from tenure.clusters.kubernetes.read.values import Complain, read, without
from tenure.model.checks.queues import check_queues
from tenure.model.fields.records import record_of
from tenure.model.queue import Queue, QueueStatus
from tenure.model.values.report import BAD
from tenure.model.values.resources import CPU, GPU, MEMORY

QUEUE, KAI_QUEUE = "Queue", "KAI Queue"
_STATUS_KEYS = ("quotaPreemption", "usage", "usageAt")
_KAI_UNITS = {"cpu": (CPU, "m", 1), "memory": (MEMORY, "", 1_000_000), "gpu": (GPU, "m", 1000)}
_KAI_UNLIMITED = 1_000_000_000
"""Stands for KAI's -1 where that is guaranteed: a million cores or GPUs, a petabyte; more than any cluster has."""


def queue_of(item: api.ApiObject, complain: Complain, pool: str) -> Queue | None:
    """Give the queue of one of Tenure's own objects as it stands in a node pool; None where it cannot be read."""
    plain = {**without(item.spec, "name", "createdAt", "status"), "name": item.metadata.name}
    made = _made(item, plain, QUEUE, complain)
    return None if made is None else replace(made, status=_status_of(item, complain, pool))


def kai_queue_of(item: api.ApiObject, complain: Complain) -> Queue | None:
    """Give the queue of one of KAI's objects: quota and limit by resource, CPU in millicores, memory in MB."""
    spec: dict[str, Any] = item.spec if isinstance(item.spec, dict) else {}
    plain: dict[str, Any] = {"name": item.metadata.name, "guaranteed": {}, "max": {}, "weight": {}}
    for own, other in (("parent", "parentQueue"), ("priority", "priority")):
        if spec.get(other) is not None:
            plain[own] = spec[other]
    for name in ("preemptMinRuntime", "reclaimMinRuntime"):
        if spec.get(name) is not None:
            plain[name] = spec[name]
    resources = spec.get("resources")
    for name, amounts in (resources if isinstance(resources, dict) else {}).items():
        if name in _KAI_UNITS and isinstance(amounts, dict):
            _take_kai(name, amounts, plain)
    plain = {key: value for key, value in plain.items() if value != {}}
    return _made(item, plain, KAI_QUEUE, complain)


def _take_kai(name: str, amounts: dict[str, Any], plain: dict[str, Any]) -> None:
    """Take over quota, limit and weight of one resource; -1 has no end."""
    resource, unit, factor = _KAI_UNITS[name]
    for own, other in (("guaranteed", "quota"), ("max", "limit")):
        amount = amounts.get(other, 0 if own == "guaranteed" else -1)
        if amount == -1 and own == "guaranteed":
            amount = _KAI_UNLIMITED / (1000 if resource == GPU else 1)
        if isinstance(amount, int | float) and amount >= 0:
            plain[own][resource] = f"{round(amount * factor)}{unit}"
    if isinstance(amounts.get("overQuotaWeight"), int | float):
        plain["weight"][resource] = amounts["overQuotaWeight"]


def _made(item: api.ApiObject, plain: dict[str, Any], kind: str, complain: Complain) -> Queue | None:
    made, said = read(record_of(Queue), plain)
    for line in said:
        complain(kind, item.metadata, line)
    if made is BAD:
        return None
    found: Queue = made
    return replace(found, created_at=api.micros(item.metadata.creation_timestamp))


def _status_of(item: api.ApiObject, complain: Complain, pool: str) -> QueueStatus | None:
    """Give what the scheduler of a node pool wrote on a queue."""
    status = part_of(item.status, pool)
    own = {key: status[key] for key in _STATUS_KEYS if status.get(key)}
    if not own:
        return None
    made, said = read(record_of(QueueStatus), own, "status")
    for line in said:
        complain(QUEUE, item.metadata, line)
    return None if made is BAD else made


def config_map(pool: str) -> str:
    """Give the name of the ConfigMap with the status of queues that are not Tenure's own."""
    return f"tenure-queues-{pool}"


def stored_status(text: str) -> QueueStatus | None:
    """Read a status as that ConfigMap holds it; None where it cannot be read."""
    try:
        plain = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return None
    made, _ = read(record_of(QueueStatus), {k: v for k, v in plain.items() if v is not None})
    return None if made is BAD else made


def sound(queues: list[tuple[Queue, api.Meta]], complain: Complain) -> tuple[Queue, ...]:
    """Give a tree that the engine may be given, sorted by name; what does not go with the rest is told of.

    A queue whose parent is not there is left out. Amounts beyond what the queues above allow are cut to it: whoever
    takes over finds the same objects and cuts them alike, while a last good state would be in one process's memory.
    """
    listed = sorted(queues, key=lambda pair: pair[0].name)
    metas = {queue.name: meta for queue, meta in listed}
    waiting = {queue.name: queue for queue, _ in listed}
    kept: dict[str, Queue] = {}
    limits: dict[str | None, dict[str, int]] = {None: {}}
    while ready := [n for n, queue in waiting.items() if queue.parent is None or queue.parent in kept]:
        for name in ready:
            queue = waiting.pop(name)
            kept[name] = _within(queue, limits[queue.parent])
            limits[name] = {**limits[queue.parent], **kept[name].max}
            if kept[name] is not queue:
                complain(
                    QUEUE,
                    metas[name],
                    "its amounts are more than its max or a queue above allows; they are cut to that",
                )
    for name, queue in waiting.items():
        complain(QUEUE, metas[name], f"its parent {queue.parent} is not there, or is one of its own descendants")
    return _without_excess(kept, metas, complain)


def _within(queue: Queue, limits: dict[str, int]) -> Queue:
    """Cut a queue's amounts to its own max and to that of the queues above it."""
    most = {r: min(amount, limits.get(r, amount)) for r, amount in queue.max.items()}
    bound = {**limits, **most}
    guaranteed = {r: min(amount, bound.get(r, amount)) for r, amount in queue.guaranteed.items()}
    if most == queue.max and guaranteed == queue.guaranteed:
        return queue
    return replace(queue, max=most, guaranteed=guaranteed)


def _without_excess(kept: dict[str, Queue], metas: dict[str, api.Meta], complain: Complain) -> tuple[Queue, ...]:
    """Where the queues below one are guaranteed more together than its max, they are guaranteed nothing of that."""
    for _ in range(len(kept) + 1):
        names = sorted(kept)
        tree = tuple(kept[name] for name in names)
        wrong = next((f for f in check_queues(tree) if not f.is_warning), None)
        if wrong is None:
            return tree
        above, resource = names[int(wrong.path[1])], str(wrong.path[-1])
        complain(QUEUE, metas[above], f"{wrong.message}; until then none of them is guaranteed any")
        for name in names:
            if _is_below(name, above, kept):
                amounts = {r: n for r, n in kept[name].guaranteed.items() if r != resource}
                kept[name] = replace(kept[name], guaranteed=amounts)
    return tuple(replace(kept[name], guaranteed={}) for name in sorted(kept))


def _is_below(name: str, above: str, queues: dict[str, Queue]) -> bool:
    parent = queues[name].parent
    while parent is not None and parent != above:
        parent = queues[parent].parent
    return parent == above
